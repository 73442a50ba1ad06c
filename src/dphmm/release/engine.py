"""The one way to release: rows in, admission, noise, the book, and only then an answer out.

Every route asks here: a scenario in memory, the command line with a file or a store, the
service, Spark's workers. What may be answered is decided by `admission`, from where a book says
that people are; where a schedule looks at what is believed, one step after the other. Noise is
drawn outside any transaction, for many people together where that is quicker. Answers and
standings are committed together; if somebody else has answered one of the people meanwhile,
what was drawn for them is thrown away unseen and they are asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import compress

import numpy as np

from dphmm._types import IntArray
from dphmm.errors import ArgumentError, DphmmError, MovedError, NotFoundError, TooLargeError
from dphmm.noise.randomness import Randomness, SecureRandomness
from dphmm.release.admission import LATEST, Place, Verdict, admit, refusal, refusals
from dphmm.release.answers import Answers
from dphmm.release.asking import (
    Ask,
    Part,
    cut_into_parts,
    find_steps,
    people_waiting,
    take_together,
)
from dphmm.release.book import Book, KeyInUse, check_key, fingerprint_of, recall
from dphmm.release.drawing import Work, draw
from dphmm.release.moment import Line
from dphmm.release.phases import enter
from dphmm.release.said import Release
from dphmm.release.schedule import expected_error
from dphmm.release.standing import Standing

__all__ = ["Answered", "Ask", "LongWayError", "judge", "release"]

LONG = 20_000
"""Rows of one person that are drawn before they are committed."""


class LongWayError(TooLargeError):
    """It is a long way to a row from where its person stands; nothing was drawn or written.

    Args:
        alone: Whether it is too long by itself, and not only together with others.
    """

    def __init__(self, alone: bool = True) -> None:
        super().__init__("time must be nearer to the one before; ask for one in between first")
        self.alone = alone


class Answered:
    """What came of an ask, a row each; everything in it may be shown to anybody."""

    def __init__(self, ask: Ask, private: bool = True) -> None:
        self._rows = ask.terms, ask.client, ask.people, ask.times, private  # and no true state
        self.verdicts = np.zeros(len(ask.people), dtype=np.int64)
        self.faults: dict[int, DphmmError] = {}
        """Why a row got no answer."""
        self.filled = Fraction(0)
        """What the answers to steps without a row cost."""
        self._drawn: list[tuple[IntArray, Answers, IntArray]] = []
        """Rows, and the rows of the table that has their answers."""

    @cached_property
    def answers(self) -> Answers:
        """All rows as a table; it is empty where a row got none."""
        terms, client, people, times, private = self._rows
        named = {person: Line(client, person, terms.query) for person in dict.fromkeys(people)}
        lines = [named[person] for person in people]
        table = Answers(terms.plan.query, terms.law, lines, times, private)
        for rows, drawn, sources in self._drawn:
            table.copy(rows, drawn, sources)
        return table

    def take(self, rows: IntArray, drawn: Answers, sources: IntArray) -> None:
        """Give rows the answers of another table's; they are copied when somebody looks."""
        if "answers" in self.__dict__:
            self.answers.copy(rows, drawn, sources)
        else:
            self._drawn.append((rows, drawn, sources))

    def release(self, row: int) -> Release:
        """The answer to a row, or its refusal raised."""
        if row in self.faults:
            raise self.faults[row]
        return self.answers.release(row)

    @property
    def repeated(self) -> int:
        """How many rows got an answer that was given before."""
        return int((self.verdicts == Verdict.REPEATED).sum())


def judge(book: Book, ask: Ask, randomness: Randomness | None = None) -> Answered:
    """The verdict on every row, and nothing drawn or written: what `release` would say."""
    check_key(book, randomness)
    judged = Answered(ask)
    parts = list(cut_into_parts([ask], LATEST))
    _find(book, [ask], parts)
    for part in parts:
        _admit(ask, judged, part, slice(None))
    return judged


def release(
    book: Book,
    asks: Sequence[Ask],
    randomness: Randomness | None = None,
    done: Callable[[int], object] = lambda rows: None,
    most: int | None = None,
) -> list[Answered]:
    """The answers to some asks, durable when this returns; a refusal stands in its row.

    Args:
        book: Where they are written down.
        asks: The rows; those of one person are answered in order of time.
        randomness: Where noise comes from; the operating system by default.
        done: Hears how many more rows have their answer.
        most: How long the ways of all who share a commit may be, see `Part.way`; whose would be
            longer get a `LongWayError`, and can be asked for where there is time.
    """
    check_key(book, randomness)
    source = SecureRandomness() if randomness is None else randomness
    answered = [Answered(ask, source.private) for ask in asks]
    waiting = people_waiting(cut_into_parts(asks, LONG))
    sure = False
    while waiting:
        taken = take_together(waiting)
        now = [parts[0] for parts in taken]
        try:
            _answer(book, asks, answered, now, source, most, sure)
        except MovedError as moved:
            # Nothing was written for anybody; those who did not move are simply asked again.
            if not any(part.line in moved.lines for part in now):
                raise
            check_key(book, randomness)
            sure = True
            waiting.extendleft(reversed(taken))
            continue
        done(sum(len(part.rows) for part in now))
        for parts in taken:
            parts.popleft()
        waiting.extend(parts for parts in taken if parts)
    return answered


def _look(book: Book, parts: Sequence[Part], sure: bool) -> list[Place]:
    """Where people are; of one alone, unless it must be sure, what the book remembers will do."""
    if not sure and len(parts) == 1 and (place := recall(book, parts[0].line)) is not None:
        parts[0].recalled = True
        return [place]
    for part in parts:
        part.recalled = False
    return book.places([part.line for part in parts])


def _find(book: Book, asks: Sequence[Ask], parts: Sequence[Part], sure: bool = True) -> None:
    """Look up where people are, and which steps of theirs are to be answered."""
    for part, place in zip(parts, _look(book, parts, sure), strict=True):
        terms, standing = asks[part.number].terms, place.standing
        part.found, part.done, part.works, part.spent = place, 0, [], []
        part.repeats = part.behind = False
        if standing is not None and (standing.law, standing.clock) == (terms.law, terms.clock):
            # A killed run left answers that no standing knows of. Only what the place knows of: of
            # anything newer the commit will say that it moved.
            later = book.unsaid(part.line, standing.time)
            unsaid = [one for one in later if place.latest is None or one.time <= place.latest]
            part.behind = bool(unsaid)
            if unsaid:
                place = replace(place, standing=terms.follow(standing, unsaid))
        part.place = place
        part.steps = find_steps(asks[part.number], part)


def _answer(
    book: Book,
    asks: Sequence[Ask],
    answered: Sequence[Answered],
    parts: list[Part],
    source: Randomness,
    most: int | None = None,
    sure: bool = True,
) -> None:
    enter("admission")
    _find(book, asks, parts, sure)
    if most is not None:
        parts = _within(most, asks, answered, parts)
    drawn: list[Answers] = []
    waiting = parts
    while waiting:
        works = []
        for part in waiting:
            ask = asks[part.number]
            error = partial(_expected_error, ask, part)
            work = _admit(ask, answered[part.number], part, part.turn(ask.terms), error)
            if work is not None:
                part.works.append(work)
                works.append(work)
        if works:
            enter("draw")
        drawn += draw(works, source)
        waiting = [part for part in waiting if part.has_more]
        for part in waiting:
            part.go_on()
    # Who was led to answers that no standing knew of stands there now, also if nothing is new:
    # a law can be adopted from nowhere else.
    moved = [part for part in parts if part.works or part.behind]
    if moved:
        firsts = [int(part.works[0].times[0]) for part in moved if part.works]
        if firsts and any(part.found.key is None for part in moved):
            key = _bind_key(book, source, min(firsts))
            for part in moved:  # so that a rotation before the commit is seen there
                part.found = replace(part.found, key=part.found.key or key)
        standings = [_moved(part) for part in moved]
        enter("commit")
        book.commit(drawn, standings, [part.found for part in moved])
    _fill(answered, parts)
    for part in parts:
        if part.repeats:
            _repeat(book, answered[part.number], part)


def _within(
    most: int, asks: Sequence[Ask], answered: Sequence[Answered], parts: list[Part]
) -> list[Part]:
    """Those whose ways, the shortest first, are not too long together; the others are told."""
    ways = [part.way(asks[part.number].terms) for part in parts]
    near, walked = [], 0
    for place in sorted(range(len(parts)), key=ways.__getitem__):
        part, walked = parts[place], walked + ways[place]
        if walked <= most:
            near.append(part)
        else:
            _be_sure(part)
            fault = LongWayError(alone=ways[place] > most)
            answered[part.number].faults.update(dict.fromkeys(part.rows.tolist(), fault))
    return near


def _admit(
    ask: Ask,
    answered: Answered,
    part: Part,
    chosen: slice,
    error: Callable[[int], float] | None = None,
) -> Work | None:
    """Judge some of a person's steps; gives those to be answered."""
    terms, place = ask.terms, part.place
    rows, times, states = part.steps
    if chosen != slice(0, len(times)):
        rows, times, states = (column[chosen] for column in part.steps)
    given = rows[rows >= 0] if ask.fills_gaps else rows
    if not ask.create and not place.known:
        missing = NotFoundError("person must be one of the book, got another")
        answered.verdicts[given] = Verdict.LATE
        answered.faults.update(dict.fromkeys(given.tolist(), missing))
        return None
    for row in answered.faults.keys() & set(given.tolist()) if answered.faults else ():
        del answered.faults[row]  # of a try that somebody else was faster than
    prices: Fraction | list[Fraction] = terms.epsilon
    if ask.prices is not None:
        prices = [terms.epsilon if row < 0 else ask.prices[row] for row in rows]
    verdicts = admit(
        place,
        times,
        prices,
        limit=terms.limit,
        origin=terms.origin,
        law=terms.law,
        clock=terms.clock,
        schedule=terms.schedule,
        error=error,
        plane=terms.plane,
    )
    answered.verdicts[given] = verdicts[rows >= 0] if ask.fills_gaps else verdicts
    spoken = verdicts == 0  # numpy is slow with the names of verdicts, and this runs for everybody
    if np.count_nonzero(verdicts):
        kept = verdicts <= 0
        if not kept.all():
            _be_sure(part)
            part.repeats = part.repeats or bool((verdicts == int(Verdict.REPEATED)).any())
            for row, fault in refusals(
                place, times, prices, verdicts, limit=terms.limit, clock=terms.clock,
                time_of=terms.time_of,
            ):  # fmt: skip
                if rows[row] >= 0:
                    answered.faults[int(rows[row])] = fault
        if not kept.any():
            return None
        rows, times, states, spoken = (one[kept] for one in (rows, times, states, spoken))
        prices = prices if isinstance(prices, Fraction) else [*compress(prices, kept)]
    return Work(
        terms=terms,
        line=part.line,
        place=place,
        times=times,
        states=states,
        prices=None if isinstance(prices, Fraction) else prices,
        rows=rows,
        spoken=spoken,
    )


def _be_sure(part: Part) -> None:
    """Have somebody looked up who was only remembered: nothing is refused or repeated from that."""
    if part.recalled:
        raise MovedError([part.line])


def _expected_error(ask: Ask, part: Part, time: int) -> float:
    """The expected error of the estimate at a slot, if nothing is said until there."""
    terms, standing = ask.terms, part.place.standing
    if standing is None:
        standing = terms.begin(ask.client, part.line.person, time)
    belief = standing.belief
    for step in range(standing.time + 1, time + 1):
        belief = terms.model.predict(belief, step)
    return expected_error(terms.model, belief, terms.plan.query.values)


def _fill(answered: Sequence[Answered], parts: Sequence[Part]) -> None:
    """Give the rows that were admitted their answers."""
    together: dict[tuple[int, int], list[Work]] = {}
    for part in parts:
        for work in part.works:
            together.setdefault((part.number, id(work.answers)), []).append(work)
    for (number, _), works in together.items():
        drawn = works[0].answers
        assert drawn is not None
        if len(drawn) == len(answered[number].verdicts) == 1 and works[0].rows[0] >= 0:
            answered[number].answers = drawn  # a table of nothing else
            continue
        rows = np.concatenate([work.rows for work in works])
        sources = np.concatenate([np.arange(*work.span) for work in works])
        if works[0].terms.fills_gaps:
            for source in sources[rows < 0].tolist():
                answered[number].filled += drawn.epsilons[source] or 0
            rows, sources = rows[rows >= 0], sources[rows >= 0]
        answered[number].take(rows, drawn, sources)


def _repeat(book: Book, answered: Answered, part: Part) -> None:
    """Give every row whose slot was answered that answer again."""
    table = answered.answers
    again = part.rows[answered.verdicts[part.rows] == Verdict.REPEATED]
    if not len(again):
        return
    new = {
        time: row
        for work in part.works
        for time, row in zip(work.times.tolist(), work.rows.tolist(), strict=True)
    }
    times = table.times[again].tolist()
    found = book.find(part.line, [time for time in times if time not in new])
    for row, time in zip(again.tolist(), times, strict=True):
        if time in new:
            table.copy(np.array([row]), table, np.array([new[time]]))
        elif time in found and len(found[time].lattice) not in (0, table.query.dimension):
            answered.faults[row] = ArgumentError(
                "query must be the one that was answered in this slot, got another of its name"
            )
        elif time in found:
            table.put(row, found[time])
        else:  # somebody erased it meanwhile, or it stands in the folder of another run
            answered.faults[row] = refusal(Verdict.LATE)


def _moved(part: Part) -> Standing:
    standing = part.works[-1].standing if part.works else part.place.standing
    assert standing is not None
    return standing


def _bind_key(book: Book, source: Randomness, first: int) -> KeyInUse | None:
    """Write down which key a book's first answer comes from; gives the one that is used."""
    if book.key() is None:
        book.use_key(KeyInUse(fingerprint_of(source), first))
    key = book.key()
    check_key(book, source)
    return key
