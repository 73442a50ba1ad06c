"""One rule for what may be answered, used by every route before anything is drawn.

The rows of one person that come together are looked at in order of time, whatever order they
came in. A slot is answered once: the first row for it decides, every other gets that answer
again. Where the schedule is silent nothing is said or spent. What lies before the latest step
is closed. A gap is carried by the belief step by step, so it has a longest length. And no limit
is ever passed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import partial

import numpy as np

from dphmm._types import IntArray
from dphmm.cost.budget import Budget, Span, is_anywhere
from dphmm.cost.limit import FOREVER, Limit, step_of
from dphmm.errors import ArgumentError, BudgetError, DphmmError
from dphmm.release.schedule import Schedule, allowed_at, holds
from dphmm.release.standing import Standing

__all__ = ["LONGEST_GAP", "Place", "Verdict", "admit", "check_fit", "refusal", "refusals"]

LONGEST_GAP = 100_000
"""Steps that may pass between two rows; the belief is carried through each of them."""

LATEST = 2**53
"""Slots beyond, or as far before zero, are refused: JSON and floats could not tell them apart."""


class Verdict(IntEnum):
    """What happens to a row."""

    SILENT = -1
    """The schedule says nothing here: it gets the estimate, at no price."""
    NEW = 0
    """It is answered."""
    REPEATED = 1
    """Its slot was answered: the same answer again, whatever the row says now, at no price."""
    LATE = 2
    """Its slot is closed: it lies before the start, before a later answer, or before the key's."""
    FAR = 3
    """It lies too many steps after the row before."""
    OVER = 4
    """The limit does not allow its price."""
    CHANGED = 5
    """The book's answers follow another law, which nobody has adopted."""
    ELSEWHERE = 6
    """The book's answers would be printed as other places: the map has another centre."""
    OTHERWISE = 7
    """The book's answers are of other times: time is cut into slots in another way."""


def _nothing(clock: str, since: int) -> Iterable[Span]:
    return ()


def _anytime(clock: str) -> int | None:
    return None


@dataclass(frozen=True, eq=False)
class Place:
    """Where a person is in a book, as far as admission needs to know.

    Args:
        standing: Where the line stands; None for somebody new.
        latest: The last slot that was answered or passed; None for somebody new.
        answered: The slots that were answered.
        spent: The sum over everything said about the person, on every line.
        recent: What was spent from an instant on, on every line, as a clock counts instants; see
            `Span`. Asked only where a limit has a window.
        limit: The person's own limit, beside the scenario's.
        opens: The slot of a clock before which none may be answered now; None if any may.
        known: Whether the book knows the person at all.
        clock: What the slots of `latest` are, where there is no standing that says so.
        row: What the book itself knows of the person, for its commit.
        version: What the book compares when it commits.
        key: The key of the book's noise then, which it compares too.
    """

    standing: Standing | None = None
    latest: int | None = None
    answered: Container[int] = ()
    spent: Fraction = Fraction(0)
    recent: Callable[[str, int], Iterable[Span]] = _nothing
    limit: Limit | None = None
    opens: Callable[[str], int | None] = _anytime
    known: bool = False
    version: int = 0
    key: object = None
    clock: str | None = None
    row: object = field(default=None, repr=False)

    def misfit(self, clock: str, plane: str) -> Verdict | None:
        """Why a scenario can neither go on from the answers nor read them, adopted or not.

        Args:
            clock: How it cuts time into slots; under another clock no slot is the same time.
            plane: The centre of its map; from another one the same metres are another place.
        """
        own = self.clock if self.standing is None else self.standing.clock
        if own not in (None, clock):
            return Verdict.OTHERWISE
        if self.standing is not None and self.standing.plane not in (None, plane):
            return Verdict.ELSEWHERE
        return None

    def both(self, limit: Limit | None, clock: str) -> Limit | None:
        """A scenario's limit and the person's own, at once, with windows in steps.

        Args:
            limit: The scenario's.
            clock: How the scenario cuts time into slots.
        """
        if self.limit is None:
            return limit
        own = self.limit.in_steps(clock, "budget")
        return own if limit is None else limit & own

    def budget(self, limit: Limit | None, clock: str, first: int) -> Budget:
        """What was spent on the person, as far as a limit counts it from a slot on.

        Args:
            limit: Both limits.
            clock: How the scenario cuts time into slots.
            first: The slot.
        """
        if limit is None or not limit.width:
            return Budget(limit, self.spent)
        size = step_of(clock)[1]
        # A window with the slot may begin between two slots, where another clock has one.
        spans = list(self.recent(clock, (first - limit.width) * size + 1))
        if any(map(is_anywhere, spans)):
            spans = list(self.recent(clock, -FOREVER))
        return Budget(limit, self.spent, spans, size)


def admit(
    place: Place,
    times: IntArray,
    prices: Fraction | Sequence[Fraction],
    *,
    limit: Limit | None = None,
    origin: int | None = None,
    law: bytes = b"",
    clock: str = "",
    schedule: Schedule | None = None,
    error: Callable[[int], float] | None = None,
    plane: str = "",
) -> IntArray:
    """The verdict on each row of one person, in the order in which they came.

    Args:
        place: Where the person is.
        times: The slots of the rows.
        prices: One epsilon for all, or one for each.
        limit: The scenario's limit on everything said about a person, its windows in steps.
        origin: The slot of step 0, which the first answer comes after; by default the slot
            before the first row.
        law: The law that new answers would follow.
        clock: How time is cut into slots now, see `Place.misfit`.
        schedule: When to speak; at every slot by default.
        error: The expected error of the estimate at a slot, if nothing is said until there. Where
            the schedule asks for it, only one slot can be judged; without it nothing is said.
        plane: The centre of the map, see `Place.misfit`.

    >>> admit(Place(), np.array([5, 6, 6, 4]), Fraction(1), limit=Limit.read(2)).tolist()
    [0, 4, 4, 0]
    """
    limit = place.both(limit, clock)
    latest = place.latest
    if latest is None:
        latest = origin if origin is not None else int(times.min()) - 1
    if origin is not None:
        latest = max(latest, origin)
    closed = place.opens(clock)
    opens = latest + 1 if closed is None else max(latest + 1, closed)
    changed = place.standing is not None and bool(law) and place.standing.law != law
    verdicts = np.zeros(len(times), dtype=np.int64)
    misfit = place.misfit(clock, plane)
    if misfit is not None:
        return np.full(len(times), misfit)
    speaking = None if schedule is None else allowed_at(schedule, times)
    # Nearly everybody's rows are all new; these lines run once for each person of a table.
    if not changed and isinstance(prices, Fraction) and _is_plain(times, latest, opens):
        if schedule is None or schedule.is_by_clock:
            said = times if speaking is None else times[speaking]
            if limit is None or _is_cheap(place, said, prices, limit, clock):
                return verdicts if speaking is None else speaking - 1
    budget = place.budget(limit, clock, int(times.min()))
    spoke = None if place.standing is None else place.standing.spoke
    order = np.argsort(times, kind="stable")
    taken: dict[int, int] = {}
    for row in order.tolist():
        time = int(times[row])
        price = prices if isinstance(prices, Fraction) else prices[row]
        if time in taken:
            verdict = taken[time]
            verdicts[row] = Verdict.REPEATED if verdict <= Verdict.NEW else verdict
            continue
        verdict = Verdict.NEW
        if time < opens:
            verdict = Verdict.REPEATED if time in place.answered else Verdict.LATE
        elif time - latest > LONGEST_GAP or abs(time) > LATEST:
            verdict = Verdict.FAR
        elif changed:
            verdict = Verdict.CHANGED
        elif schedule is not None and not (
            (speaking is None or speaking[row])
            and holds(schedule, time, spoke, error and partial(error, time))
        ):
            verdict = Verdict.SILENT
            latest = time
        elif limit is not None and budget.opens(time, price) != time:
            verdict = Verdict.OVER
        else:
            latest = spoke = time
            budget.add(time, price)
        verdicts[row] = taken[time] = verdict
    return verdicts


def _is_plain(times: IntArray, latest: int, opens: int) -> bool:
    """Whether rows come in order of time, and none is late, far or there twice."""
    if not len(times):
        return False
    first, last = int(times[0]), int(times[-1])
    if first < max(opens, -LATEST) or last > LATEST or last - latest > LONGEST_GAP:
        return False
    return len(times) == 1 or bool((times[1:] > times[:-1]).all())


def _is_cheap(place: Place, times: IntArray, price: Fraction, limit: Limit, clock: str) -> bool:
    """Whether rows in order of time are all within the limit."""
    if limit.total is not None and place.spent + len(times) * price > limit.total:
        return False
    if not limit.windows or not len(times):
        return True
    budget = place.budget(limit, clock, int(times[0]))
    budget.add_all(times.tolist(), price)
    return budget.holds


def refusals(
    place: Place,
    times: IntArray,
    prices: Fraction | Sequence[Fraction],
    verdicts: IntArray,
    *,
    limit: Limit | None = None,
    clock: str = "",
    time_of: Callable[[int], int | str] = int,
) -> Iterator[tuple[int, DphmmError]]:
    """Why each row that gets no answer gets none, as the error that every route raises.

    Args:
        place: Where the person was.
        times: The slots of the rows, in order of time.
        prices: One epsilon for all, or one for each.
        verdicts: What `admit` said.
        limit: See `admit`.
        clock: See `admit`.
        time_of: What a slot is called.
    """
    budget = place.budget(place.both(limit, clock), clock, int(times[0]))
    requested = Fraction(0)
    full: dict[int, BudgetError] = {}
    for row, (time, verdict) in enumerate(zip(times.tolist(), verdicts.tolist(), strict=True)):
        price = prices if isinstance(prices, Fraction) else prices[row]
        if verdict in (Verdict.NEW, Verdict.OVER):
            requested += price
        if verdict == Verdict.NEW:
            budget.add(time, price)
        elif verdict == Verdict.OVER:
            fault = full.get(time) or budget.fault(time, price, time_of)
            if fault.window is None:
                # Nothing of it was spent yet: the price of the row and of those before it.
                left = fault.remaining + budget.spent - place.spent
                fault = BudgetError(spent=place.spent, requested=requested, remaining=left)
            full[time] = fault  # the first row of a slot has decided for all of them
            yield row, fault
        elif verdict > Verdict.REPEATED:
            yield row, refusal(verdict)


def check_fit(place: Place, clock: str, plane: str) -> None:
    """Refuse a scenario that can neither go on from somebody's answers nor read them.

    Args:
        place: Where the person is.
        clock: See `Place.misfit`.
        plane: See `Place.misfit`.
    """
    misfit = place.misfit(clock, plane)
    if misfit is not None:
        raise refusal(misfit)


def refusal(verdict: int) -> DphmmError:
    """Why a row gets no answer that the limit would allow."""
    return ArgumentError(_REASONS[Verdict(verdict)])


_REASONS = {
    Verdict.LATE: (
        "time must come after the scenario's origin, after the answers already given for the "
        "person, and not before the key's first slot"
    ),
    Verdict.FAR: (
        f"time must be within {LONGEST_GAP} steps of the one before; check the scenario's time "
        f"step and origin"
    ),
    Verdict.CHANGED: (
        "scenario must be as it was when the person was last answered, got another model, policy "
        "or query; continue under the new one with: dphmm ledger adopt"
    ),
    Verdict.ELSEWHERE: (
        "scenario must have the map of the person's answers, got one with another centre, on "
        "which they would be other places; give its query another name"
    ),
    Verdict.OTHERWISE: (
        "scenario must have the time step of the person's answers, got another, in which their "
        "slots are other times; give its query another name"
    ),
}
