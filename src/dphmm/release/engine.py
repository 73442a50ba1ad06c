"""The one way to release: rows in, admission, noise, the book, and only then an answer out.

Every route asks here: a scenario in memory, the command line with a file or a store, the
service, Spark's workers. What may be answered is decided by `admission`, from where a book says
that people are. Noise is drawn outside any transaction, for many people together where that is
quicker. Answers and standings are committed together; if somebody else has answered one of the
people meanwhile, what was drawn for them is thrown away unseen and they are asked for again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dphmm._types import IntArray
from dphmm.errors import ArgumentError, DphmmError, MovedError, NotFoundError, check_name
from dphmm.noise.randomness import Randomness, SecureRandomness
from dphmm.release.admission import Place, Verdict, admit, refusals
from dphmm.release.answers import Answers
from dphmm.release.book import Book, KeyInUse, check_key, fingerprint_of
from dphmm.release.drawing import Work, draw
from dphmm.release.moment import Line, check_client
from dphmm.release.said import Release
from dphmm.release.standing import Standing
from dphmm.release.terms import Terms

__all__ = ["Answered", "Ask", "judge", "release"]

TOGETHER = 2**16
"""Rows that share one commit."""

LONG = 20_000
"""Rows of one person that are drawn before they are committed."""


@dataclass(frozen=True, eq=False, repr=False)
class Ask:
    """Rows to be answered under one scenario; it holds true states, so it is never printed.

    Args:
        terms: What the answers follow.
        people: Whose each row is.
        times: The slot of each row.
        states: The true state of each row. Secret.
        prices: The epsilon of each row, if not the terms' own.
        client: Whose people they are, in a service.
        create: Whether somebody whom the book does not know may be answered.
    """

    terms: Terms
    people: Sequence[str]
    times: IntArray
    states: IntArray
    prices: Sequence[Fraction] | None = None
    client: str = ""
    create: bool = True


class Answered:
    """What came of an ask, a row each; everything in it may be shown to anybody."""

    def __init__(self, ask: Ask, private: bool = True) -> None:
        query = ask.terms.query
        named = {person: Line(ask.client, person, query) for person in dict.fromkeys(ask.people)}
        lines = [named[person] for person in ask.people]
        self.answers = Answers(ask.terms.plan.query, ask.terms.law, lines, ask.times, private)
        self.verdicts = np.zeros(len(lines), dtype=np.int64)
        self.faults: dict[int, DphmmError] = {}
        """Why a row got no answer."""

    def release(self, row: int) -> Release:
        """The answer to a row, or its refusal raised."""
        if row in self.faults:
            raise self.faults[row]
        return self.answers.release(row)

    @property
    def repeated(self) -> int:
        """How many rows got an answer that was given before."""
        return int((self.verdicts == Verdict.REPEATED).sum())


@dataclass(eq=False)
class _Part:
    """Rows of one person in an ask, in order of time."""

    number: int
    """Which ask."""
    line: Line
    rows: IntArray
    place: Place = field(default_factory=Place)
    work: Work | None = None
    repeats: bool = False
    """Whether a row of it gets an answer that was given before."""


def judge(book: Book, ask: Ask, randomness: Randomness | None = None) -> Answered:
    """The verdict on every row, and nothing drawn or written: what `release` would say."""
    check_key(book, randomness)
    judged = Answered(ask)
    parts = list(_parts([ask], longest=len(ask.times)))
    for part, place in zip(parts, book.places([part.line for part in parts]), strict=True):
        part.place = place
        _admit(ask, judged, part)
    return judged


def release(
    book: Book,
    asks: Sequence[Ask],
    randomness: Randomness | None = None,
    done: Callable[[int], object] = lambda rows: None,
) -> list[Answered]:
    """The answers to some asks, durable when this returns; a refusal stands in its row.

    Args:
        book: Where they are written down.
        asks: The rows; those of one person are answered in order of time.
        randomness: Where noise comes from; the operating system by default.
        done: Hears how many more rows have their answer.
    """
    check_key(book, randomness)
    source = SecureRandomness() if randomness is None else randomness
    answered = [Answered(ask, source.private) for ask in asks]
    waiting = _waiting(_parts(asks, LONG))
    while waiting:
        taken = _take(waiting)
        now = [parts[0] for parts in taken]
        try:
            _answer(book, asks, answered, now, source)
        except MovedError as moved:
            # Nothing was written for anybody; those who did not move are simply asked again.
            if not any(part.line in moved.lines for part in now):
                raise
            check_key(book, randomness)
            waiting.extendleft(reversed(taken))
            continue
        done(sum(len(part.rows) for part in now))
        for parts in taken:
            parts.popleft()
        waiting.extend(parts for parts in taken if parts)
    return answered


def _parts(asks: Sequence[Ask], longest: int) -> Iterator[_Part]:
    """Everybody's rows in order of time, in pieces."""
    for number, ask in enumerate(asks):
        check_client(ask.client)
        names: dict[str, int] = {}
        owners = np.array([names.setdefault(name, len(names)) for name in ask.people])
        order = np.lexsort((ask.times, owners)) if len(owners) else np.empty(0, dtype=np.int64)
        bounds = np.searchsorted(owners[order], np.arange(len(names) + 1))
        for person, name in enumerate(names):
            line = Line(ask.client, check_name(name, "person"), ask.terms.query)
            rows = order[bounds[person] : bounds[person + 1]]
            for first in range(0, len(rows), longest):
                yield _Part(number, line, rows[first : first + longest])


def _waiting(parts: Iterable[_Part]) -> deque[deque[_Part]]:
    """Everybody's parts, in the order that a person's must keep."""
    people: dict[tuple[str, str], deque[_Part]] = {}
    for part in parts:
        people.setdefault(part.line[:2], deque()).append(part)
    return deque(people.values())


def _take(waiting: deque[deque[_Part]]) -> list[deque[_Part]]:
    """The people whose next parts share a commit: not too many rows."""
    taken: list[deque[_Part]] = []
    rows = 0
    while waiting and rows < TOGETHER:
        taken.append(waiting.popleft())
        rows += len(taken[-1][0].rows)
    return taken


def _answer(
    book: Book,
    asks: Sequence[Ask],
    answered: Sequence[Answered],
    parts: list[_Part],
    source: Randomness,
) -> None:
    for part, place in zip(parts, book.places([part.line for part in parts]), strict=True):
        part.place = place
        part.work = _admit(asks[part.number], answered[part.number], part)
    works = [part.work for part in parts if part.work is not None]
    for work in works:
        standing, latest = work.place.standing, work.place.latest
        if standing is not None and latest is not None:
            # Only what the place knows of: of anything newer the commit will say that it moved.
            later = book.unsaid(work.line, standing.time)
            work.unsaid = [record for record in later if record.time <= latest]
    drawn = draw(works, source)
    if works:
        if any(work.place.key is None for work in works):
            _bind_key(book, source, min(int(work.times[0]) for work in works))
        book.commit(drawn, [_moved(work) for work in works], [work.place for work in works])
    _fill(answered, parts)
    for part in parts:
        if part.repeats:
            _repeat(book, answered[part.number], part)


def _admit(ask: Ask, answered: Answered, part: _Part) -> Work | None:
    """Judge one person's rows; gives those to be answered."""
    terms, place, rows = ask.terms, part.place, part.rows
    if not ask.create and not place.known:
        missing = NotFoundError("person must be one of the book, got another")
        answered.verdicts[rows] = Verdict.LATE
        answered.faults.update(dict.fromkeys(rows.tolist(), missing))
        return None
    for row in answered.faults.keys() & set(rows.tolist()) if answered.faults else ():
        del answered.faults[row]  # of a try that somebody else was faster than
    prices: Fraction | list[Fraction] = terms.epsilon
    if ask.prices is not None:
        prices = [ask.prices[row] for row in rows]
    times, limit = ask.times[rows], terms.limit
    verdicts = admit(
        place, times, prices, limit=limit, origin=terms.origin, law=terms.law, clock=terms.clock
    )
    answered.verdicts[rows] = verdicts
    kept = rows
    if verdicts.any():
        part.repeats = bool((verdicts == Verdict.REPEATED).any())
        for row, fault in refusals(
            place, times, prices, verdicts, limit=limit, clock=terms.clock, time_of=terms.time_of
        ):
            answered.faults[int(rows[row])] = fault
        kept = rows[verdicts == Verdict.NEW]
    if not len(kept):
        return None
    return Work(
        terms=terms,
        line=part.line,
        place=place,
        times=ask.times[kept],
        states=ask.states[kept],
        prices=None if ask.prices is None else [ask.prices[row] for row in kept],
        rows=kept,
    )


def _fill(answered: Sequence[Answered], parts: Sequence[_Part]) -> None:
    """Give the rows that were admitted their answers."""
    together: dict[tuple[int, int], list[Work]] = {}
    for part in parts:
        if part.work is not None:
            together.setdefault((part.number, id(part.work.answers)), []).append(part.work)
    for (number, _), works in together.items():
        drawn = works[0].answers
        assert drawn is not None
        rows = np.concatenate([work.rows for work in works])
        sources = np.concatenate([np.arange(*work.span) for work in works])
        answered[number].answers.copy(rows, drawn, sources)


def _repeat(book: Book, answered: Answered, part: _Part) -> None:
    """Give every row whose slot was answered that answer again."""
    table, work = answered.answers, part.work
    again = part.rows[answered.verdicts[part.rows] == Verdict.REPEATED]
    if not len(again):
        return
    new = {} if work is None else dict(zip(work.times.tolist(), work.rows.tolist(), strict=True))
    times = table.times[again].tolist()
    found = book.find(part.line, [time for time in times if time not in new])
    for row, time in zip(again.tolist(), times, strict=True):
        if time in new:
            table.copy(np.array([row]), table, np.array([new[time]]))
        elif time in found and len(found[time].lattice) != table.query.dimension:
            answered.faults[row] = ArgumentError(
                "query must be the one that was answered in this slot, got another of its name"
            )
        elif time in found:
            table.put(row, found[time])


def _moved(work: Work) -> Standing:
    assert work.standing is not None
    return work.standing


def _bind_key(book: Book, source: Randomness, first: int) -> None:
    if book.key() is None:
        book.use_key(KeyInUse(fingerprint_of(source), first))
    check_key(book, source)
