"""The folder that a run leaves: answers with their prices, and where everybody stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._types import IntArray, Mask, ObjectArray
from dphmm.cost.limit import begin_of
from dphmm.errors import DataError, require
from dphmm.geometry.exact import as_text
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.book import KeyInUse
from dphmm.release.moment import Line
from dphmm.release.said import Record
from dphmm.release.standing import Standing
from dphmm.scenario.releasing import answer_columns
from dphmm.scenario.scenario import Scenario

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ANSWERS", "DROPPED", "STATE", "FolderBook", "Person", "Tables"]

ANSWERS, STATE, DROPPED = "answers", "state", "dropped"


@dataclass(eq=False)
class Person:
    """Somebody's row of the state; bytes are read only when there is something to answer."""

    data: bytes | None = None
    spent: str = "0"
    late: int = 0
    """Rows that came after a later step was answered."""
    repeated: int = 0
    """Further rows for a step that was answered."""
    standing: Standing | None = field(default=None)

    def find_standing(self) -> Standing | None:
        """Where the person stands; None for somebody new."""
        if self.standing is None and self.data is not None:
            self.standing = Standing.from_bytes(self.data)
        return self.standing

    def move(self, standing: Standing) -> None:
        """Stand somewhere else."""
        self.standing, self.data, self.spent = standing, None, str(standing.spent)

    def to_bytes(self) -> bytes:
        """Where the person stands, to be kept."""
        if self.data is None:
            assert self.standing is not None
            self.data = self.standing.to_bytes()
        return self.data


class FolderBook:
    """The book of a run's folder, as one task sees it: standings in, answers and standings out.

    Nobody else writes for its people, and what a task wrote counts only when Spark says so, so
    there is nothing to compare. What earlier runs said is in their folders and not said again.

    Args:
        used: The fingerprint of the key that earlier answers come from; None for a first run.
    """

    def __init__(self, used: str | None = None) -> None:
        self.people: dict[str, Person] = {}
        self.drawn: list[Answers] = []
        """What was committed since somebody last took it away."""
        self._key = None if used is None else KeyInUse(used, 0)

    def places(self, lines: Sequence[Line]) -> list[Place]:
        """See `Book`; of the slots that were answered it knows the latest."""
        return [self._place(line) for line in lines]

    def _place(self, line: Line) -> Place:
        person = self.people.get(line.person)
        standing = None if person is None else person.find_standing()
        if standing is None:
            return Place()
        return Place(
            standing=standing,
            latest=standing.time,
            answered=(standing.time,) if standing.time > standing.began else (),
            spent=standing.spent,
            recent=lambda clock, since: (
                (*begin_of(slot, standing.clock, clock), price) for slot, price in standing.recent
            ),
            known=True,
        )

    def unsaid(self, line: Line, after: int) -> Sequence[Record]:
        """See `Book`: standings are never behind."""
        return ()

    def find(self, line: Line, times: Sequence[int]) -> dict[int, Record]:
        """See `Book`: earlier answers are in earlier folders."""
        return {}

    def answers(self, line: Line, *, after: int | None = None) -> Sequence[Record]:
        """See `Book`."""
        return ()

    def adopted(self, line: Line) -> Standing | None:
        """See `Book`: a folder keeps its law."""
        return None

    def commit(
        self, answers: Sequence[Answers], standings: Sequence[Standing], places: Sequence[Place]
    ) -> None:
        """See `Book`; durable when Spark commits the task."""
        self.drawn += answers
        for standing in standings:
            self.people.setdefault(standing.line.person, Person()).move(standing)

    def key(self) -> KeyInUse | None:
        """See `Book`."""
        return self._key

    def use_key(self, key: KeyInUse) -> None:
        """See `Book`."""
        self._key = key


class Tables:
    """The columns of a run's output."""

    def __init__(self, scenario: Scenario, client: str = "") -> None:
        pa = require("pyarrow", "spark")
        self._scenario = scenario
        text, whole, real = pa.string(), pa.int64(), pa.float64()
        self.releases = tuple(answer_columns(scenario))
        self.ledger = (
            *("client", "person", "time", "slot", "query", "law", "epsilon"),
            *("constrained", "lattice"),
        )
        self.state = ("client", "key", "person", "spent", "late", "repeated", "standing")
        kinds = {"table": text, "person": text, "time": text, "slot": whole}
        self._numbers = self.releases[2:-2]
        kinds |= dict.fromkeys(self._numbers, real)
        # Exact numbers have no largest size, so they are texts.
        kinds |= dict.fromkeys(("epsilon", "constrained", "lattice", "key", "spent"), text)
        kinds |= {"late": whole, "repeated": whole, "standing": pa.binary()}
        self.varying = pa.schema(list(kinds.items()))
        # The same in every row, so Spark adds them and no worker has to copy them.
        self.constants = {
            "client": client,
            "query": scenario.query.name,
            "law": scenario.law,
            "law_parts": scenario.terms.law_parts,
        }
        self.schema = pa.schema([*self.varying, *((name, text) for name in self.constants)])
        said = {"table", *self.releases, *self.ledger}
        self.said = pa.schema([field for field in self.varying if field.name in said])

    def answers(self, answers: Answers) -> pa.RecordBatch:
        """Answers and their prices."""
        pa = require("pyarrow", "spark")
        rows = len(answers)
        both = np.concatenate([answers.in_units(), answers.estimate])
        places = self._scenario.in_places(both)
        coordinates = np.hstack([places[:rows], places[rows:]]).T
        prices = [Fraction(0) if price is None else price for price in answers.epsilons]
        columns = {
            "table": pa.repeat(ANSWERS, rows),
            "person": pa.array([line.person for line in answers.lines], pa.string()),
            "time": self._times(answers.times),
            "slot": pa.array(answers.times),
            # Where nothing was said there is no number.
            **{
                name: pa.array(column, from_pandas=True)
                for name, column in zip(self._numbers, coordinates, strict=True)
            },
            "epsilon": _texts(prices, as_text),
            "constrained": _texts(answers.constrained, str),
            "lattice": _lattice(answers.lattice, answers.silent),
        }
        return self._batch(columns, rows)

    def standings(self, people: Iterable[tuple[str, Person]], key: str) -> pa.RecordBatch:
        """Where people stand, and the fingerprint of the key that answered them."""
        pa = require("pyarrow", "spark")
        names, chosen = zip(*people, strict=True)
        columns = {
            "table": pa.repeat(STATE, len(names)),
            "person": pa.array(names, pa.string()),
            "key": pa.repeat(key, len(names)),
            "spent": pa.array([person.spent for person in chosen], pa.string()),
            "late": pa.array([person.late for person in chosen], pa.int64()),
            "repeated": pa.array([person.repeated for person in chosen], pa.int64()),
            "standing": pa.array([person.to_bytes() for person in chosen], pa.binary()),
        }
        return self._batch(columns, len(names))

    def dropped(self, person: str, slots: IntArray) -> pa.RecordBatch:
        """Rows that were not answered: whose they were and of when."""
        pa = require("pyarrow", "spark")
        columns = {
            "table": pa.repeat(DROPPED, len(slots)),
            "person": pa.repeat(person, len(slots)),
            "time": self._times(slots),
            "slot": pa.array(slots, pa.int64()),
        }
        return self._batch(columns, len(slots))

    def _times(self, slots: IntArray) -> pa.Array:
        """The time of each step, never that of a row."""
        pa = require("pyarrow", "spark")
        time_of = self._scenario.settings.clock.time_of
        different, places = np.unique(slots, return_inverse=True)
        texts = [str(time_of(slot)) for slot in different.tolist()]
        return pa.array(texts, pa.string()).take(pa.array(places))

    def _batch(self, columns: dict[str, Any], rows: int) -> pa.RecordBatch:
        pa = require("pyarrow", "spark")
        full = [columns.get(field.name, pa.nulls(rows, field.type)) for field in self.varying]
        return pa.RecordBatch.from_arrays(full, schema=self.varying)


def read_people(book: FolderBook, rows: pa.RecordBatch) -> None:
    """Put rows of a state table into a book."""
    cells = (rows[name].to_pylist() for name in ("person", "standing", "spent", "late", "repeated"))
    for name, *rest in zip(*cells, strict=True):
        if name in book.people:
            raise DataError("state must have one row for each person, got a second")
        book.people[name] = Person(*rest)


def _texts(values: Sequence[Any], text: Callable[[Any], str]) -> pa.Array:
    """Numbers as texts; many rows share one object, which is written once."""
    pa = require("pyarrow", "spark")
    numbers = np.fromiter(map(id, values), np.int64, len(values))
    _, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    texts = [text(values[row]) for row in first.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(places))


def _lattice(points: ObjectArray, silent: Mask) -> pa.Array:
    """Points as texts like [12, -7]; [] where nothing was said."""
    pa, pc = require("pyarrow", "spark"), require("pyarrow.compute", "spark")
    try:
        columns = [pa.array(column.astype(np.int64)).cast(pa.string()) for column in points.T]
    except OverflowError:
        columns = [pa.array([str(number) for number in column]) for column in points.T]
    joined = pc.binary_join_element_wise(*columns, ", ")
    joined = pc.if_else(pa.array(silent), "", joined)
    return pc.binary_join_element_wise("[", joined, "]", "")
