"""The loop of a release: rows in, the ledger first, then answers out.

An answer that the ledger holds is said again as it was, whatever the row says now, and costs
nothing: so a run that was stopped is simply run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

import numpy as np

from dphmm._types import FloatArray, ObjectArray
from dphmm.books.bulk import Walk, groups, released_together
from dphmm.books.journal import Journal, Record
from dphmm.cost.ledger import Entry, Ledger
from dphmm.errors import BudgetError, DataError
from dphmm.release.batch import BatchRelease
from dphmm.release.stream import Release, Stream
from dphmm.scenario.scenario import Scenario
from dphmm.tables.trips import Row

__all__ = ["Answer", "Releaser"]

LONGEST_GAP = 100_000
"""Steps that may pass between two rows; the belief is carried through each of them."""

SHARED = 256
"""Rows of a file whose answers leave together."""

SHARED_IN_BULK = 4096
"""Answers that share a wait for the disk when many people move together."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What leaves: everything in it may be shown to anybody."""

    person: str
    time: str
    answer: FloatArray
    """In the units of the query; latitude and longitude if the states have them."""
    estimate: FloatArray
    epsilon: Fraction
    statement: str
    repeated: bool = False
    """Whether the ledger held the answer already."""


@dataclass(eq=False)
class _Person:
    """Where one person's stream and records stand."""

    ledger: Ledger
    stream: Stream
    base: int
    """The slot of the stream's step 0."""
    ahead: list[Record] = field(default_factory=list)
    """Records that the stream has not said again yet, the next one last."""


@dataclass
class _Checked:
    """What one person's rows so far would come to."""

    spent: Fraction
    said: set[int]
    latest: int
    allowed: int | float
    """Answers that the limit leaves room for."""
    new: int = 0


class _Said:
    """What batches said to the rows of a file, kept small until it leaves."""

    def __init__(self, scenario: Scenario, rows: int) -> None:
        self._scenario = scenario
        self._places = np.empty((2, rows, scenario.query.dimension))
        self.statements: list[str | None] = [None] * rows
        """None for a row that no batch answered."""

    def keep(self, numbers: list[int], release: BatchRelease) -> None:
        """Write down what a step of a batch said to some rows."""
        both = np.concatenate([release.answer, release.estimate])
        places = self._scenario.in_places(both)
        self._places[:, numbers] = places.reshape(2, len(numbers), -1)
        for charge in release.charges:
            for place in np.searchsorted(release.people, charge.people).tolist():
                self.statements[numbers[place]] = charge.statement

    def answer(self, row: Row, number: int) -> Answer:
        """The answer to a row."""
        answer, estimate = self._places[:, number]
        statement = self.statements[number] or ""
        price = self._scenario.settings.epsilon
        return Answer(row.person, row.time, answer, estimate, price, statement)


class Releaser:
    """Answers for many people under one scenario, each written down before it leaves."""

    def __init__(
        self, scenario: Scenario, journal: Journal, key: bytes | None = None, file: str = "trips"
    ) -> None:
        self.scenario = scenario
        self.journal = journal
        self._key = key
        self._file = file
        self._people: dict[str, _Person] = {}

    def check(self, rows: Iterable[Row]) -> int:
        """Go through all rows without releasing, and count them; raises what `answer` would."""
        count = 0
        seen: dict[str, _Checked] = {}
        price, limit = self.scenario.settings.epsilon, self.scenario.settings.limit
        for row in rows:
            count += 1
            if row.person not in seen:
                records = self._records(row.person)
                base = self._base(records, row)
                spent = self.journal.ledger(row.person, None).spent
                seen[row.person] = _Checked(
                    spent=spent,
                    said={record.slot for record in records},
                    latest=max((record.slot for record in records), default=base),
                    allowed=inf if limit is None else (limit - spent) // price,
                )
            person = seen[row.person]
            if row.slot in person.said:
                continue
            self._check_slot(row, person.latest)
            person.latest = row.slot
            person.new += 1
            if limit is not None and person.new > person.allowed:
                planned = person.new * price
                raise self._over(row, person.spent, planned, limit - person.spent)
        return count

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """The answers to some rows, in order; their records are on disk when this returns."""
        answers: list[Answer] = []
        records: list[Record] = []
        try:
            for row in rows:
                answer, record = self._one(row)
                answers.append(answer)
                if record is not None:
                    records.append(record)
        finally:
            # What was drawn before a refusal is paid for, although it is not said now.
            self.journal.add(records)
        return answers

    def answer_all(
        self, rows: Sequence[Row], done: Callable[[int], object] = lambda count: None
    ) -> Iterator[list[Answer]]:
        """The answers to all rows of a file that was checked, in order, some at a time.

        People about whom the ledger says nothing yet are moved together if they are many (see
        `dphmm.books.bulk`), with the answers that `answer` would give them, and everything
        about them is on disk before the first answer leaves. `done` hears how many more rows
        have their answer.
        """
        said = _Said(self.scenario, len(rows))
        if not self.scenario.settings.delta:
            self._together(rows, said, done)
        for first in range(0, len(rows), SHARED):
            numbers = range(first, min(first + SHARED, len(rows)))
            alone = self.answer([rows[n] for n in numbers if said.statements[n] is None])
            done(len(alone))
            single = iter(alone)
            yield [
                next(single) if said.statements[n] is None else said.answer(rows[n], n)
                for n in numbers
            ]

    def _together(self, rows: Sequence[Row], said: _Said, done: Callable[[int], object]) -> None:
        """Release the groups of people that are worth a batch."""
        walks: dict[str, Walk] = {}
        for number, row in enumerate(rows):
            walk = walks.get(row.person)
            if walk is None:
                walk = walks[row.person] = Walk(row.person, self._base([], row))
            walk.rows.append(number)
            walk.steps.append(row.slot - walk.base)
        new = (walk for walk in walks.values() if not self.journal.of(walk.person))
        states = np.array([row.state for row in rows], dtype=np.int64)
        for group in groups(new, len(self.scenario.states)):
            waiting: list[Record] = []
            try:
                for numbers, release in released_together(self.scenario, self._key, group, states):
                    waiting += self._records_of(rows, numbers, release)
                    said.keep(numbers, release)
                    if len(waiting) >= SHARED_IN_BULK:
                        self.journal.add(waiting)
                        waiting = []
                    done(len(numbers))
            finally:
                # As in `answer`: what was drawn before a fault is paid for.
                self.journal.add(waiting)

    def _records_of(
        self, rows: Sequence[Row], numbers: list[int], release: BatchRelease
    ) -> list[Record]:
        """The ledger's records of the rows that a step of a batch answers."""
        return [
            self._record(rows[numbers[place]], release.time, charge.entry, release.lattice[place])
            for charge in release.charges
            for place in np.searchsorted(release.people, charge.people).tolist()
        ]

    def _one(self, row: Row) -> tuple[Answer, Record | None]:
        person = self._people.get(row.person) or self._new_person(row)
        stream = person.stream
        while person.ahead and person.ahead[-1].slot < row.slot:
            self._again(person, person.ahead.pop())
        if person.ahead and person.ahead[-1].slot == row.slot:
            release = self._again(person, person.ahead.pop())
            return self._as_answer(row, release, repeated=True), None
        if person.ahead:
            raise self._too_early(row)
        self._check_slot(row, person.base + stream.time)
        step = row.slot - person.base
        stream.skip(step - stream.time - 1)
        try:
            release = stream.release(row.state)
        except BudgetError as fault:
            raise self._over(row, fault.spent, fault.requested, fault.remaining) from None
        record = self._record(row, step, stream.ledger.entries[-1], release.lattice)
        return self._as_answer(row, release, repeated=False), record

    def _record(self, row: Row, step: int, entry: Entry, lattice: ObjectArray) -> Record:
        return Record(
            person=row.person,
            time=row.time,
            slot=row.slot,
            step=step,
            scenario=self.scenario.name,
            law=self.scenario.law,
            query=entry.query,
            epsilon=entry.epsilon,
            constrained=entry.constrained,
            answer=tuple(int(number) for number in lattice),
        )

    def _again(self, person: _Person, record: Record) -> Release:
        person.stream.skip(record.step - person.stream.time - 1)
        return person.stream.repeat(record.answer, record.epsilon)

    def _new_person(self, row: Row) -> _Person:
        ledger = self.journal.ledger(row.person, self.scenario.settings.limit)
        stream = self.scenario.stream(row.person, self._key, ledger)
        records = self._records(row.person)
        person = _Person(ledger, stream, self._base(records, row), records[::-1])
        self._people[row.person] = person
        return person

    def _records(self, person: str) -> list[Record]:
        """What this scenario said about a person before."""
        records = [r for r in self.journal.of(person) if r.scenario == self.scenario.name]
        if any(record.law != self.scenario.law for record in records):
            raise DataError(
                f"{self.journal.path}: ledger must be of this scenario as it is now, got answers "
                f"of an earlier form of {self.scenario.name!r}; give the new form another name"
            )
        return records

    def _base(self, records: list[Record], row: Row) -> int:
        """The slot of step 0: fixed by the clock, by what was said, or by the first row."""
        first = self.scenario.settings.clock.first_slot
        if first is not None:
            return first
        return records[0].slot - records[0].step if records else row.slot - 1

    def _check_slot(self, row: Row, latest: int) -> None:
        if row.slot <= latest:
            raise self._too_early(row)
        if row.slot - latest > LONGEST_GAP:
            raise DataError(
                f"{self._file}:{row.line}: time must be within {LONGEST_GAP} steps of the one "
                f"before; check the scenario's time step and origin"
            )

    def _too_early(self, row: Row) -> DataError:
        return DataError(
            f"{self._file}:{row.line}: time must come after the scenario's origin and after the "
            f"answers already given for the person"
        )

    def _over(
        self, row: Row, spent: Fraction, requested: Fraction, remaining: Fraction
    ) -> BudgetError:
        fault = BudgetError(spent=spent, requested=requested, remaining=remaining)
        fault.args = (f"{self._file}:{row.line}: {fault}",)
        return fault

    def _as_answer(self, row: Row, release: Release, repeated: bool) -> Answer:
        places = self.scenario.in_places(np.stack([release.answer, release.estimate]))
        return Answer(
            person=row.person,
            time=row.time,
            answer=places[0],
            estimate=places[1],
            epsilon=release.epsilon,
            statement=release.statement,
            repeated=repeated,
        )
