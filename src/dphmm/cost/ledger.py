"""What has been said and what it cost: one ledger a person, across queries and scenarios.

The sum of epsilon over everything released bounds what it can tell about two states that were
linked, and both possible, at every one of those moments (Theorems 7.1 and 7.2). The constrained
epsilon beside each entry is the same for the worst pair of possible states (Theorem 6.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from dphmm.cost.budget import NO_LIMIT, Budget
from dphmm.cost.limit import Limit
from dphmm.cost.sharing import Single
from dphmm.cost.totals import Totals
from dphmm.errors import ArgumentError, expect, expect_each
from dphmm.geometry.exact import Exact, as_epsilon, as_text, exact, whole

__all__ = ["ELSEWHERE", "Entry", "Ledger"]


@dataclass(frozen=True)
class Entry:
    """One thing that was said.

    Args:
        time: The slot of the clock that it was about.
        query: The name of the question.
        epsilon: Its price.
        constrained: What it costs the worst pair of possible states; infinite if some are
            told apart (Theorem 6.3).
    """

    time: int
    query: str
    epsilon: Fraction
    constrained: Fraction | float = inf


class Ledger(Single):
    """Everything that was said about one person, and an optional limit on the sum of epsilon.

    Args:
        limit: The most that may be spent: a number in all, a text such as "24 per 288 steps" or
            "24 per 288 steps, 100 in all", or a `Limit`; None for no limit.
        entries: What was said before, in order.
        spent: What was spent before those entries, if they are not all that was said.
        recent: Which of it the limit's windows may still hold: slots and prices.

    >>> ledger = Ledger(limit="2 per 3 steps")
    >>> ledger.record(Entry(1, "place", Fraction(3, 2)))
    >>> ledger.spent, ledger.remaining_at(3), ledger.remaining_at(4)
    (Fraction(3, 2), Fraction(1, 2), Fraction(2, 1))
    >>> ledger.check(1, time=3)
    Traceback (most recent call last):
    dphmm.errors.BudgetError: epsilon must stay within the limit of 2 per 3 steps, got a request \
for 1 with 1.5 spent and 0.5 remaining; ask for less or ask again at slot 4 or later
    """

    def __init__(
        self,
        limit: Exact | Limit | None = None,
        entries: Iterable[Entry] = (),
        *,
        spent: Exact = 0,
        recent: Iterable[tuple[int, Fraction]] = (),
    ) -> None:
        self.limit = None if limit is None else Limit.read(limit)
        if self.limit is not None and not isinstance(limit, Limit):
            self.limit = self.limit.in_steps()
        self._entries: list[Entry] = []
        self._said: set[tuple[str, int]] = set()
        try:
            before = [(whole(slot, "recent", None), slot, exact(p, "recent")) for slot, p in recent]
        except (TypeError, ValueError):
            raise ArgumentError("recent must be pairs of a slot and a price") from None
        self._budget = Budget(self.limit, exact(spent, "spent"), before)
        self._clock: str | None = None
        self._share("ledger")
        self._latest: int | None = max((slot for slot, _, _ in before), default=None)
        for entry in expect_each(entries, Entry, "entries"):
            self._append(entry)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that was said, in order."""
        return tuple(self._entries)

    @property
    def spent(self) -> Fraction:
        """The sum of every epsilon (Theorems 7.1 and 7.2 for linked states)."""
        return self._budget.spent

    @property
    def remaining(self) -> Fraction | float:
        """What may still be spent at the latest slot; infinite without a limit."""
        return self.remaining_at(0 if self._latest is None else self._latest)

    @property
    def width(self) -> int:
        """The steps of the limit's longest window; 0 without one."""
        return self._budget.limit.width

    def remaining_at(self, time: int) -> Fraction | float:
        """What may still be spent at a time: in all, and in the windows that contain it.

        Args:
            time: The slot of the clock.
        """
        with self._lock:
            return self._budget.left(time)

    @property
    def constrained(self) -> Fraction | float:
        """The sum over every release for the worst pair of possible states.

        Infinite if something was spent before the entries, since nothing says what on.
        """
        total = Totals([Fraction(0)])
        for entry in self._entries:
            total.add(0, entry.constrained)
        if self.spent > sum(entry.epsilon for entry in self._entries):
            return inf
        return total.of(0)

    def spent_at(self, time: int) -> Fraction:
        """The sum over the queries answered at one time (Theorem 7.1).

        Args:
            time: The slot of the clock.
        """
        return sum((e.epsilon for e in self._entries if e.time == time), start=Fraction(0))

    def spent_by_query(self) -> dict[str, Fraction]:
        """The sum over time for each query (Theorem 7.2)."""
        totals: dict[str, Fraction] = {}
        for entry in self._entries:
            totals[entry.query] = totals.get(entry.query, Fraction(0)) + entry.epsilon
        return totals

    def check(self, epsilon: Exact, time: int | None = None) -> None:
        """Raise `BudgetError` if this much more would pass the limit; nothing is written.

        Args:
            epsilon: The price of what is to be said.
            time: The slot that it is about; needed where the limit has a window.
        """
        if self.limit is None:
            return
        if time is None and self.limit.windows:
            raise ArgumentError("time must be given where the limit has a window, got none")
        price, slot = as_epsilon(epsilon), time or 0
        with self._lock:
            if self._budget.opens(slot, price) != slot:
                raise self._budget.fault(slot, price)

    def record(self, entry: Entry) -> None:
        """Write down one release; refuses one beyond the limit, and a second one for a moment.

        Args:
            entry: What is said.
        """
        expect(entry, Entry, "entry")
        with self._lock:
            if entry.epsilon:
                self.check(entry.epsilon, entry.time)
            self._append(entry)

    def has(self, time: int, query: str) -> bool:
        """Whether a query was answered at a time.

        Args:
            time: The slot of the clock.
            query: The name of the question.
        """
        expect(query, str, "query")
        return (query, whole(time, "time", None)) in self._said

    def _count(self, budget: Budget, latest: int) -> None:
        """Let a book's budget say what remains, by default at its clock's latest slot."""
        self.limit = None if budget.limit == NO_LIMIT else budget.limit
        self._budget, self._latest = budget, latest

    def _use(self, clock: str) -> None:
        """Count the slots of a clock, and of no other if there is a window."""
        if self._clock not in (None, clock) and self.width:
            raise ArgumentError(
                "ledger must count the slots of one time step where its limit has a window, got "
                "those of another; a book counts several"
            )
        self._clock = clock

    def _append(self, entry: Entry) -> None:
        expect(entry, Entry, "entry")
        moment = (entry.query, entry.time)
        if moment in self._said:
            raise ArgumentError(
                f"time must be new for each query, got a second answer for time {entry.time}"
            )
        self._said.add(moment)
        self._entries.append(entry)
        self._budget.add(entry.time, entry.epsilon)
        self._latest = entry.time if self._latest is None else max(self._latest, entry.time)

    def __repr__(self) -> str:
        limit = "no limit" if self.limit is None else f"limit {self.limit}"
        return f"Ledger({len(self._entries)} entries, {as_text(self.spent)} spent, {limit})"

    def _repr_html_(self) -> str:
        limit = "no limit" if self.limit is None else f"limit {self.limit}"
        return (
            f"<b>{len(self._entries)}</b> answers, epsilon <b>{as_text(self.spent)}</b> spent, "
            f"{limit}"
        )


class _Elsewhere(Ledger):
    """The ledger of a stream whose answers a book admits and counts: it keeps nothing itself."""

    def has(self, time: int, query: str) -> bool:
        return False

    def check(self, epsilon: Exact, time: int | None = None) -> None:
        pass

    def record(self, entry: Entry) -> None:
        pass


ELSEWHERE = _Elsewhere()
