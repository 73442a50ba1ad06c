"""Trips into a store: the rows of `dphmm release --store`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.books.releasing import Answer
from dphmm.books.rules import Request
from dphmm.books.scenarios import rules_of
from dphmm.books.store import Store
from dphmm.errors import ArgumentError, BudgetError, DataError, DphmmError, NotFoundError
from dphmm.scenario import Row, Scenario

__all__ = ["StoreReleaser"]


@dataclass
class _Planned:
    """What one person's rows so far would come to."""

    spent: Fraction
    limit: Fraction | None
    said: set[int]
    latest: int


class StoreReleaser:
    """Answers for many people under one scenario, from a store that others may share.

    A moment must have the same number in every run, so the scenario's clock has an origin.
    """

    def __init__(
        self, scenario: Scenario, store: Store, key: bytes | None = None, file: str = "trips"
    ) -> None:
        first = scenario.settings.clock.first_slot
        if first is None:
            raise DataError("time.origin must be given in the scenario for a store, got none")
        self._origin = first
        self._scenario = scenario
        self._store = store
        self._rules = rules_of(scenario, key=key)
        self._file = file

    def check(self, rows: Iterable[Row]) -> int:
        """Go through all rows without releasing, and count them; raises what `answer` would."""
        price = self._scenario.settings.epsilon
        people: dict[str, _Planned] = {}
        count = 0
        for row in rows:
            count += 1
            person = people.get(row.person) or people.setdefault(row.person, self._planned(row))
            time = row.slot - self._origin
            if time in person.said:
                continue
            if time <= person.latest:
                raise self._located(row, DataError(_EARLY))
            person.said.add(time)
            person.latest = time
            if person.limit is not None and person.spent + price > person.limit:
                remaining = person.limit - person.spent
                fault = BudgetError(spent=person.spent, requested=price, remaining=remaining)
                raise self._located(row, fault)
            person.spent += price
        return count

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """The answers to some rows, in order, durable when this returns."""
        requests = [
            Request(self._rules, row.person, row.slot - self._origin, row.state) for row in rows
        ]
        found = self._store.release_all(requests)
        answers = []
        for row, result in zip(rows, found, strict=True):
            if isinstance(result, DphmmError):
                raise self._located(row, result)
            release = result.release
            places = self._scenario.in_places(np.stack([release.answer, release.estimate]))
            answers.append(
                Answer(
                    person=row.person,
                    time=row.time,
                    answer=places[0],
                    estimate=places[1],
                    epsilon=release.epsilon,
                    statement=release.statement,
                    repeated=result.repeated,
                )
            )
        return answers

    def _planned(self, row: Row) -> _Planned:
        limits = [self._scenario.settings.limit]
        try:
            ledger = self._store.ledger(row.person)
            limits.append(ledger.limit)
            spent = ledger.spent
        except NotFoundError:
            spent = Fraction(0)
        try:
            latest = self._store.time(self._rules, row.person)
            said = {release.time for release in self._store.releases(self._rules, row.person)}
        except NotFoundError:
            latest, said = 0, set()
        limit = min((given for given in limits if given is not None), default=None)
        return _Planned(spent, limit, said, latest)

    def _located(self, row: Row, fault: DphmmError) -> DphmmError:
        """The same fault with the row's place; it stays a refusal by the budget if it was one."""
        if isinstance(fault, ArgumentError):
            return DataError(f"{self._file}:{row.line}: {fault}")
        fault.args = (f"{self._file}:{row.line}: {fault}",)
        return fault


_EARLY = (
    "time must come after the scenario's origin and after the answers already given for the person"
)
