"""Released rows that wait for their estimate: each leaves when it is final."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dphmm.release.answers import Answers
from dphmm.release.book import Book
from dphmm.release.engine import Ask
from dphmm.release.lagging import Estimated, Estimates
from dphmm.release.moment import Line

if TYPE_CHECKING:
    from dphmm.scenario.scenario import Scenario

__all__ = ["LateRows", "Leaving"]


class Leaving(NamedTuple):
    """A row whose estimate is final."""

    number: int
    """Of the rows in the order in which they came."""
    cells: list[Any]


class LateRows:
    """The rows of a release, with estimates that some more steps are waited for.

    What was answered is in the book already; only its row waits. Memory is that of the steps
    which wait, for every person.

    Args:
        scenario: What the answers follow.
        book: Where they are written down.
        client: Whose people they are.
        lag: How many later steps count.
    """

    def __init__(self, scenario: Scenario, book: Book, client: str, lag: int) -> None:
        self._scenario, self._book, self._client, self._lag = scenario, book, client, lag
        self._following: dict[str, Estimates | None] = {}
        self._waiting: dict[str, dict[int, list[Leaving]]] = {}
        self._count = 0

    def begin(self, ask: Ask, since: Mapping[str, int] | None = None) -> None:
        """Look where people stand before some rows of theirs are answered.

        Where gaps are answered, `since` says after which slot each person's steps will leave.
        """
        firsts = {person: slot + 1 for person, slot in (since or {}).items()}
        for person, slot in zip(ask.people, ask.times.tolist(), strict=True):
            firsts[person] = min(slot, firsts.get(person, slot))
        for person, first in firsts.items():
            if person not in self._following:
                self._following[person] = self._follow(person, first)
                self._waiting[person] = {}

    def add(self, answers: Answers, cells: Iterable[list[Any]]) -> Iterator[Leaving]:
        """Take some answered rows; gives those, old and new, whose estimate is final now."""
        rows = list(cells)
        numbers = range(self._count, self._count + len(rows))
        self._count += len(rows)
        for row in np.argsort(answers.times, kind="stable").tolist():
            person, time = answers.lines[row].person, int(answers.times[row])
            leaving = Leaving(numbers[row], rows[row])
            estimates, waiting = self._following[person], self._waiting[person]
            epsilon = answers.epsilons[row]
            assert epsilon is not None
            if time in waiting:
                waiting[time].append(leaving)
            elif estimates is None or time <= estimates.time:
                # What cannot be followed, or is final already, leaves with what the book holds.
                yield leaving
            else:
                waiting[time] = [leaving]
                said = () if answers.silent[row] else answers.lattice[row]
                yield from self._leave(person, estimates.tell(time, said, epsilon))

    def finish(self) -> Iterator[Leaving]:
        """The rows that still wait, with what is known by now."""
        for person, estimates in self._following.items():
            if estimates is not None:
                yield from self._leave(person, estimates.finish())

    def _leave(self, person: str, final: Iterable[Estimated]) -> Iterator[Leaving]:
        width = len(self._scenario.columns)
        for time, value in final:
            rows = self._waiting[person].pop(time, [])
            place = self._scenario.in_places([value]).tolist()[0] if rows else []
            for number, cells in rows:
                yield Leaving(number, [*cells[: 2 + width], *place, *cells[2 + 2 * width :]])

    def _follow(self, person: str, first: int) -> Estimates | None:
        """What is believed about somebody before a slot; None if another law led there."""
        terms = self._scenario.terms
        line = Line(self._client, person, terms.query)
        (place,) = self._book.places([line])
        standing = place.standing
        if standing is None:
            standing = terms.begin(self._client, person, first)
        elif standing.time >= first:
            # Rows that were answered before are followed from the start of their law.
            begun = terms.begin(self._client, person, standing.began + 1)
            standing = self._book.adopted(line) or begun
        if standing.law != terms.law or standing.time >= first:
            return None
        # A store has no answers of somebody whom it does not know, not even none.
        said = self._book.answers(line, after=standing.time) if place.known else ()
        estimates = Estimates(
            terms.model, terms.plan, start=standing.belief, time=standing.time, lag=self._lag,
            estimate=terms.estimate,
        )  # fmt: skip
        for record in said:
            if record.time < first:
                estimates.tell(record.time, record.lattice, record.epsilon)
        return estimates
