"""A scenario's releases through a book: trips in, answers out, and streams that go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.books.memory import MemoryBook
from dphmm.cost.ledger import Entry, Ledger
from dphmm.errors import ArgumentError, DataError, DphmmError, require
from dphmm.geometry.exact import Exact, as_epsilon, as_text, whole
from dphmm.geometry.query import Query
from dphmm.noise.randomness import Randomness
from dphmm.release import engine
from dphmm.release.admission import Verdict, refusal
from dphmm.release.book import Book, check_key
from dphmm.release.engine import Answered, Ask
from dphmm.release.moment import Line, check_client, check_name
from dphmm.release.said import Record, Release
from dphmm.release.standing import Standing
from dphmm.release.stream import Stream
from dphmm.release.terms import Terms
from dphmm.release.truth import state_of
from dphmm.tables.frames import like
from dphmm.tables.trips import Row, read_trips

if TYPE_CHECKING:
    from dphmm.scenario.scenario import Scenario

__all__ = [
    "answer_columns",
    "answer_rows",
    "ask_rows",
    "begin_stream",
    "hold_open",
    "open_stream",
    "refuse_first",
    "release_trips",
]

TOGETHER = 4096
"""Rows of a table whose coordinates are looked up together."""


def ask_rows(scenario: Scenario, rows: list[Row], client: str = "") -> Ask:
    """Rows of trips as the engine takes them."""
    return Ask(
        terms=scenario.terms,
        people=[row.person for row in rows],
        times=np.array([row.slot for row in rows], dtype=np.int64),
        states=np.array([row.state for row in rows], dtype=np.int64),
        client=client,
    )


def locate(fault: DphmmError, file: str, row: Row) -> DphmmError:
    """The same fault with the row's place; it stays a refusal by the budget if it was one."""
    if isinstance(fault, ArgumentError):
        return DataError(f"{file}:{row.line}: {fault}")
    fault.args = (f"{file}:{row.line}: {fault}",)
    return fault


def refuse_first(answered: Answered, rows: list[Row], file: str) -> None:
    """Raise the first refusal, if there is one, with its place in the file."""
    if answered.faults:
        first = min(answered.faults)
        raise locate(answered.faults[first], file, rows[first])


def release_trips(
    scenario: Scenario,
    trips: Any,
    book: Book | None,
    client: str,
    person: str | None,
    columns: Mapping[str, str] | None,
    randomness: Randomness | None,
) -> Any:
    """See `Scenario.release`."""
    rows = list(
        read_trips(
            trips,
            scenario.states,
            scenario.settings.clock,
            columns=columns,
            person=person,
            together=TOGETHER,
        )
    )
    kept = MemoryBook() if book is None else book
    file = Path(trips).name if isinstance(trips, (str, Path)) else "trips"
    ask = ask_rows(scenario, rows, client)
    refuse_first(engine.judge(kept, ask, randomness), rows, file)
    (answered,) = engine.release(kept, [ask], randomness)
    refuse_first(answered, rows, file)
    polars = require("polars", "cli")
    cells = [[*answer] for answer in answer_rows(scenario, answered)]
    table = polars.DataFrame(cells, schema=answer_columns(scenario), orient="row")
    return like(table, trips)


def answer_columns(scenario: Scenario) -> list[str]:
    """The columns of a table of answers."""
    columns = scenario.columns
    return ["person", "time", *columns, *(f"estimate_{name}" for name in columns), "epsilon"]


def answer_rows(
    scenario: Scenario, answered: Answered, times: list[str] | None = None
) -> Iterator[list[Any]]:
    """The cells of a table of answers: the time of each step, or those given instead."""
    answers, clock = answered.answers, scenario.settings.clock
    count = len(answers)
    both = np.concatenate([answers.in_units(), answers.estimate])
    places = scenario.in_places(both).tolist()
    for row in range(count):
        epsilon = answers.epsilons[row]
        if epsilon is None:
            continue
        time = clock.time_of(int(answers.times[row])) if times is None else times[row]
        yield [
            answers.lines[row].person,
            time,
            *places[row],
            *places[count + row],
            as_text(epsilon),
        ]


def hold_open(rows: Iterable[Row], slots: int) -> Iterator[list[Row]]:
    """Live rows in groups whose slots have closed: at once, or when a later row says so.

    A slot is open until a row comes that is more than `slots` later, for the same person.
    """
    waiting: dict[str, list[Row]] = {}
    for row in rows:
        if not slots:
            yield [row]
            continue
        held = waiting.setdefault(row.person, [])
        held.append(row)
        closed = max(other.slot for other in held) - slots
        ready = [other for other in held if other.slot < closed]
        if ready:
            waiting[row.person] = [other for other in held if other.slot >= closed]
            yield ready
    for held in waiting.values():
        if held:
            yield held


def begin_stream(
    scenario: Scenario,
    client: str,
    person: str,
    time: int | None,
    ledger: Ledger | None,
    randomness: Randomness | None,
) -> Stream:
    """A stream of its own, from the scenario's start."""
    settings = scenario.settings
    stream = Stream(
        scenario.model,
        scenario.plan,
        epsilon=settings.epsilon,
        start=scenario.start,
        time=settings.clock.first_slot if time is None else time,
        person=person,
        client=client,
        ledger=Ledger(settings.limit) if ledger is None else ledger,
        randomness=randomness,
        law=scenario.terms.law,
        estimate=settings.estimate,
    )
    stream._locate = scenario.state_of
    return stream


def open_stream(
    scenario: Scenario,
    book: Book,
    client: str,
    person: str,
    time: int | None,
    randomness: Randomness | None,
) -> Stream:
    """A stream that goes on where the book says; every answer comes from the engine."""
    check_key(book, randomness)
    terms = scenario.terms
    line = Line(check_client(client), check_name(person, "person"), terms.query)
    (place,) = book.places([line])
    standing = place.standing
    if standing is not None and standing.law != terms.law:
        raise refusal(Verdict.CHANGED, place, terms.epsilon)
    said: Sequence[Record] = ()
    if standing is None:
        began = terms.origin if time is None else time
        began = place.latest if began is None else began
        if began is None and randomness is not None and randomness.keyed:
            raise ArgumentError("time must be given for somebody new when noise is keyed, got none")
        began = 0 if began is None else whole(began, "time")
        standing = Standing(line, terms.law, began, began, terms.start, clock=terms.clock)
    else:
        began = standing.began
        said = book.answers(line)
        if all(record.law == standing.law.hex() for record in said):
            # Nothing was adopted, so the whole history can be followed from its start.
            standing = Standing(line, terms.law, began, began, terms.start, clock=terms.clock)
        else:
            said = book.unsaid(line, standing.time)
    # Somebody new begins where the stream does, also if its first steps are skipped.
    terms = replace(terms, origin=began)
    stream = _BookStream.resume(
        standing,
        terms.model,
        terms.plan,
        epsilon=terms.epsilon,
        start=terms.start,
        randomness=randomness,
        law=terms.law,
        estimate=terms.estimate,
    )
    assert isinstance(stream, _BookStream)
    for record in said:
        stream.skip(record.time - stream.time - 1)
        stream.repeat(record.lattice, record.epsilon)
    if place.latest is not None:
        stream.skip(max(0, place.latest - stream.time))
    limits = [limit for limit in (terms.limit, place.limit) if limit is not None]
    stream.ledger = Ledger(min(limits, default=None), spent=place.spent)
    stream._locate = scenario.state_of
    stream._bind(book, terms)
    return stream


class _BookStream(Stream):
    """A stream whose answers come from a book, by the engine like everybody's.

    It only follows them: what somebody else has answered meanwhile is followed too.
    """

    def _bind(self, book: Book, terms: Terms) -> None:
        self._book, self._terms = book, terms

    def release(self, true_state: Any, epsilon: Exact | None = None) -> Release:
        """See `Stream.release`; the answer is in the book before it comes back."""
        with self._lock:
            asked = Ask(
                terms=self._terms,
                people=[self.person],
                times=np.array([self.time + 1]),
                states=np.array([state_of(true_state, self.query.n_states, self._locate)]),
                prices=None if epsilon is None else [as_epsilon(epsilon)],
                client=self.client,
            )
            (answered,) = engine.release(self._book, [asked], self._randomness)
            release = answered.release(0)
            if release.epsilon and not self.ledger.has(release.time, self.query.name):
                cost = answered.answers.constrained[0]
                limit, spent = self.ledger.limit, self.ledger.spent
                entries = [*self.ledger.entries]
                entry = Entry(release.time, self.query.name, release.epsilon, cost)
                before = spent - sum((one.epsilon for one in entries), start=Fraction(0))
                self.ledger = Ledger(limit, [*entries, entry], spent=before)
            self.repeat(release.lattice, release.epsilon)
            return release

    def release_also(self, true_state: Any, query: Query, epsilon: Exact | None = None) -> Release:
        """Refused: a book's moments are answered one question at a time."""
        raise ArgumentError("release_also must be asked of a stream without a book")
