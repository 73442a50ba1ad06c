"""A scenario's releases through a book: trips in, answers out, and streams that go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.books.memory import MemoryBook
from dphmm.cost.ledger import Entry, Ledger
from dphmm.cost.statement import PrivacyStatement
from dphmm.errors import ArgumentError, DataError, DphmmError, check_name, expect, require
from dphmm.geometry.exact import Exact, as_epsilon, as_text, whole
from dphmm.geometry.query import Query
from dphmm.noise.randomness import Randomness
from dphmm.release import engine
from dphmm.release.admission import Place, Verdict, check_fit, refusal
from dphmm.release.answers import Answers
from dphmm.release.book import Book, check_key
from dphmm.release.engine import Answered, Ask
from dphmm.release.moment import Line, check_client
from dphmm.release.said import Record, Release
from dphmm.release.stating import state_costs
from dphmm.release.stream import Stream
from dphmm.release.terms import Terms, follow
from dphmm.scenario.building import build_surroundings
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
    "latest_steps",
    "ledger_at",
    "open_stream",
    "published",
    "refuse_first",
    "release_trips",
]

TOGETHER = 4096
"""Rows of a table whose coordinates are looked up together."""


def ask_rows(
    scenario: Scenario, rows: list[Row], client: str = "", last: Mapping[str, int] | None = None
) -> Ask:
    """Rows of trips as the engine takes them; `last` is where people were before, if known."""
    return Ask(
        terms=scenario.terms,
        people=[row.person for row in rows],
        times=np.array([row.slot for row in rows], dtype=np.int64),
        states=np.array([row.state for row in rows], dtype=np.int64),
        moments=np.array([row.moment for row in rows], dtype=np.int64),
        client=client,
        last=last or {},
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
    since = latest_steps(kept, ask)
    (answered,) = engine.release(kept, [ask], randomness)
    refuse_first(answered, rows, file)
    polars = require("polars", "cli")
    cells = list(answer_rows(scenario, published(kept, ask, answered, since)))
    # Silent steps have no answer, and there may be many before the first that has one.
    table = polars.DataFrame(
        cells, schema=answer_columns(scenario), orient="row", infer_schema_length=None
    )
    return like(table, trips)


def latest_steps(book: Book, ask: Ask) -> dict[str, int]:
    """After which slot the steps come that an ask's people will have been told about.

    Only where gaps are answered: what was filled between the last answer and somebody's first
    row belongs to the row. Where that row was answered before, nobody knows what came with it,
    so everything does from the person's start on.
    """
    if not ask.fills_gaps:
        return {}
    firsts: dict[str, int] = {}
    for person, time in zip(ask.people, ask.times.tolist(), strict=True):
        firsts[person] = min(time, firsts.get(person, time))
    lines = [Line(ask.client, person, ask.terms.query) for person in firsts]
    since = {}
    for (person, first), place in zip(firsts.items(), book.places(lines), strict=True):
        since[person] = first - 1
        if place.standing is not None and place.latest is not None:
            since[person] = place.latest if place.latest < first else place.standing.began
    return since


def published(book: Book, ask: Ask, answered: Answered, since: Mapping[str, int]) -> Answers:
    """What leaves: an answer for each row or, where gaps are answered, for each step.

    Then every step is there once, in order of person and time, so that neither the number of
    lines nor their order says which of them had a row.
    """
    if not ask.fills_gaps:
        return answered.answers
    lasts: dict[str, int] = {}
    for person, time in zip(ask.people, ask.times.tolist(), strict=True):
        lasts[person] = max(time, lasts.get(person, time))
    found = [
        record
        for person, last in lasts.items()
        for record in book.answers(Line(ask.client, person, ask.terms.query), after=since[person])
        if record.time <= last
    ]
    times = np.array([record.time for record in found], dtype=np.int64)
    table = Answers(ask.terms.plan.query, ask.terms.law, [one.line for one in found], times)
    for row, record in enumerate(found):
        table.put(row, record)
    return table


def answer_columns(scenario: Scenario) -> list[str]:
    """The columns of a table of answers."""
    columns = scenario.columns
    estimates = (f"estimate_{name}" for name in columns)
    return ["person", "time", *columns, *estimates, "epsilon", "law"]


def answer_rows(
    scenario: Scenario, answers: Answers, times: list[str] | None = None
) -> Iterator[list[Any]]:
    """The cells of a table of answers: the time of each step, or those given instead.

    A silent step has empty cells for its answer, one that an earlier law shaped none for its law.
    """
    clock, law = scenario.settings.clock, scenario.terms.law_parts
    count = len(answers)
    both = np.concatenate([answers.in_units(), answers.estimate])
    places = scenario.in_places(both).tolist()
    nothing = [None] * len(scenario.columns)
    for row in range(count):
        epsilon = answers.epsilons[row]
        if epsilon is None:
            continue
        time = clock.time_of(int(answers.times[row])) if times is None else times[row]
        yield [
            answers.lines[row].person,
            time,
            *(nothing if answers.silent[row] else places[row]),
            *places[count + row],
            as_text(epsilon),
            None if row in answers.earlier else law,
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
    if ledger is not None:
        expect(ledger, Ledger, "ledger")
        ledger._use(scenario.terms.clock)
    stream = Stream(
        scenario.model,
        scenario.plan,
        epsilon=settings.epsilon,
        start=scenario.start,
        time=settings.clock.first_slot if time is None else time,
        person=person,
        client=client,
        ledger=Ledger(scenario.terms.limit) if ledger is None else ledger,
        schedule=settings.schedule,
        randomness=randomness,
        law=scenario.terms.law,
        estimate=settings.estimate,
    )
    stream._clock, stream._plane = scenario.terms.clock, scenario.terms.plane
    stream._locate, stream._around = scenario.state_of, build_surroundings(scenario)
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
    check_fit(place, terms.clock, terms.plane)
    if standing is not None and standing.law != terms.law:
        raise refusal(Verdict.CHANGED)
    said: Sequence[Record] = ()
    if standing is None:
        began = terms.origin if time is None else time
        began = place.latest if began is None else began
        if began is None and randomness is not None and randomness.keyed:
            raise ArgumentError("time must be given for somebody new when noise is keyed, got none")
        began = 0 if began is None else whole(began, "time", None)
        standing = terms.stand(line, began)
    else:
        began = standing.began
        # What was said under an earlier law cannot be followed; what came after can.
        standing = book.adopted(line) or terms.stand(line, began)
        said = [record for record in book.answers(line) if record.time > standing.time]
    # Somebody new begins where the stream does, also if its first steps are skipped.
    terms = replace(terms, origin=began)
    stream = terms.resume(_BookStream, standing, randomness)
    follow(stream, said)
    if place.latest is not None:
        stream.skip(max(0, place.latest - stream.time))
    again = partial(open_stream, scenario, book, client, person, began, randomness)
    stream._bind(book, terms, place, again)
    stream._locate, stream._around = scenario.state_of, build_surroundings(scenario)
    return stream


def ledger_at(place: Place, terms: Terms, time: int) -> Ledger:
    """What somebody has spent by all questions until a step, and what limits them."""
    limit = place.both(terms.limit, terms.clock)
    ledger = Ledger(limit, spent=place.spent)
    ledger._count(place.budget(limit, terms.clock, time), time)
    return ledger


class _BookStream(Stream):
    """A stream whose answers come from a book, by the engine like everybody's.

    It only follows them: what somebody else has answered meanwhile is followed too.
    """

    _fills_gaps = False

    def _bind(self, book: Book, terms: Terms, place: Place, again: Callable[[], Stream]) -> None:
        self._book, self._terms, self._version, self._again = book, terms, place.version, again
        self._fills_gaps = terms.fills_gaps
        self.ledger = ledger_at(place, terms, self.time)

    def release(self, true_state: Any, epsilon: Exact | None = None) -> Release:
        """See `Stream.release`; the answer is in the book before it comes back."""
        with self._lock:
            asked = Ask(
                terms=self._terms,
                people=[self.person],
                times=np.array([self.time + 1]),
                states=np.array([self._state(true_state)]),
                prices=None if epsilon is None else [as_epsilon(epsilon)],
                client=self.client,
            )
            (answered,) = engine.release(self._book, [asked], self._randomness)
            release = answered.release(0)
            if answered.answers.earlier:
                # Somebody else's, after another law was adopted: no belief here leads to it.
                raise refusal(Verdict.CHANGED)
            if release.epsilon and not self.ledger.has(release.time, self.query.name):
                cost = answered.answers.constrained[0]
                # Without a check, which the engine has made against the book.
                entry = Entry(release.time, self.query.name, release.epsilon, cost)
                self.ledger._append(entry)
            self.repeat(release.lattice, release.epsilon)
            return release

    def statement(self, *, width: int = 10) -> PrivacyStatement:
        """See `Stream.statement`; about what the book says now, whoever has asked it."""
        (place,) = self._book.places([self.line])
        now = self if place.version == self._version else self._again()
        self.ledger._count(ledger_at(place, self._terms, now.time)._budget, now.time)
        return state_costs(now, width)

    def skip(self, steps: int = 1) -> None:
        """See `Stream.skip`; refused where every step is answered."""
        if steps and self._fills_gaps:
            raise ArgumentError("skip must not be asked of a stream without gaps; release instead")
        super().skip(steps)

    def release_also(self, true_state: Any, query: Query, epsilon: Exact | None = None) -> Release:
        """Refused: a book's moments are answered one question at a time."""
        raise ArgumentError("release_also must be asked of a stream without a book")
