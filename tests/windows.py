"""What limits with windows allow, worked out the slow way: every window, every time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

from dphmm import Limit, Schedule
from dphmm.cost.limit import Window
from dphmm.release.admission import Verdict

Paid = list[tuple[int, Fraction]]
Row = tuple[int, Fraction]

PRICES = st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(7, 5)])
SLOTS = st.integers(1, 14)
SCHEDULES = st.one_of(
    st.none(),
    st.builds(
        Schedule,
        every=st.integers(1, 3),
        phase=st.integers(0, 2),
        apart=st.integers(1, 4),
        error=st.sampled_from([None, Fraction(1, 1000)]),
    ),
)
"""Any schedule; a bound on the error is one that is always passed, so that it is judged alone."""


@st.composite
def limits(draw: st.DrawFn, *, windows: int = 0) -> Limit:
    """Any limit that binds for a few prices: windows, at least so many, a total, or both."""
    amounts = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(10, 3)])
    held = st.builds(Window, amounts, st.integers(1, 9))
    total = draw(st.sampled_from([None, None, Fraction(3), Fraction(6)]))
    least = max(windows, total is None)
    return Limit(total, tuple(draw(st.lists(held, min_size=least, max_size=3))))


def sums(paid: Paid, width: int, slot: int | None = None) -> list[Fraction]:
    """What every window of a width holds, or every one that contains a slot."""
    starts = range(slot - width + 1, slot + 1) if slot is not None else range(-70, 60)
    return [
        sum((price for when, price in paid if start <= when < start + width), start=Fraction(0))
        for start in starts
    ]


def allows(paid: Paid, limit: Limit | None, slot: int, price: Fraction) -> bool:
    if limit is None:
        return True
    spent = sum((cost for _, cost in paid), start=Fraction(0))
    if limit.total is not None and spent + price > limit.total:
        return False
    return all(
        held + price <= window.amount
        for window in limit.windows
        for held in sums(paid, window.width, slot)
    )


def holds(paid: Paid, limit: Limit) -> bool:
    """Whether no window, and not the whole, is over the limit."""
    spent = sum((cost for _, cost in paid), start=Fraction(0))
    within = all(max(sums(paid, window.width)) <= window.amount for window in limit.windows)
    return within and (limit.total is None or spent <= limit.total)


class Plain:
    """One person's answers, and the verdicts of the plain rules on further rows."""

    def __init__(self) -> None:
        self.paid: Paid = []
        self.answered: dict[str, set[int]] = {}
        self.spoke: dict[str, int] = {}

    def judge(
        self,
        query: str,
        rows: Sequence[Row],
        *allowed: Limit | None,
        when: Schedule | None = None,
        size: int = 1,
    ) -> tuple[list[int], list[int]]:
        """The verdict on each row, and which rows are answered, in order of time.

        With a slot of so many instants, prices are paid where slots begin, and the windows of
        limits are that many instants long.
        """
        answered = self.answered.setdefault(query, set())
        latest = max(answered, default=min(slot for slot, _ in rows) - 1)
        verdicts = [0] * len(rows)
        decided: dict[int, Verdict] = {}
        new = []
        for number in sorted(range(len(rows)), key=lambda row: rows[row][0]):
            slot, price = rows[number]
            if slot in decided:
                before = decided[slot]
                verdicts[number] = Verdict.REPEATED if before <= Verdict.NEW else before
                continue
            verdict = Verdict.NEW
            if slot <= latest:
                verdict = Verdict.REPEATED if slot in answered else Verdict.LATE
            elif when is not None and not when.speaks(slot, self.spoke.get(query), lambda: 1.0):
                verdict = Verdict.SILENT
                latest = slot
                answered.add(slot)
            elif not all(allows(self.paid, limit, slot * size, price) for limit in allowed):
                verdict = Verdict.OVER
            else:
                latest = self.spoke[query] = slot
                self.paid.append((slot * size, price))
                new.append(number)
            verdicts[number] = decided[slot] = verdict
        answered |= {rows[number][0] for number in new}
        return verdicts, new
