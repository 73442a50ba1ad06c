"""What the engine is asked, and how it is cut into parts: rows of one person, in order of time.

A part has steps: its rows and, where a scenario wants no gaps, what lies between them. All of
this holds true states, so none of it is printed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from dphmm._types import IntArray
from dphmm.cost.budget import Span
from dphmm.cost.limit import begin_of
from dphmm.errors import check_name
from dphmm.release.admission import LATEST, LONGEST_GAP, Place
from dphmm.release.drawing import Work
from dphmm.release.moment import Line, check_client
from dphmm.release.terms import Terms

__all__ = ["Ask", "Part", "cut_into_parts", "find_steps", "people_waiting", "take_together"]

TOGETHER = 2**16
"""Rows that share one commit."""

ONLY = np.zeros(1, dtype=np.int64)
ONLY.flags.writeable = False
"""The number of the row of an ask that has one."""

NOWHERE = Place()
"""Where a person is whom nobody has looked up."""

STEP = 400
"""States that could be looked at in the time that a step takes besides."""


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
        last: The true state of the row before these, of people for whom the asker still knows
            it: a gap is filled from there. Secret.
        moments: When each row was, for rows that have no order of their own: of several in one
            slot the earliest counts, and of equally early ones that of the first state. Without,
            it is the one that came first.
    """

    terms: Terms
    people: Sequence[str]
    times: IntArray
    states: IntArray
    prices: Sequence[Fraction] | None = None
    client: str = ""
    create: bool = True
    last: Mapping[str, int] = field(default_factory=dict)
    moments: IntArray | None = None

    @property
    def fills_gaps(self) -> bool:
        """Whether steps without a row are answered too."""
        return self.terms.fills_gaps


@dataclass(eq=False, repr=False)
class Part:
    """Rows of one person in an ask, in order of time."""

    number: int
    """Which ask."""
    line: Line
    rows: IntArray
    size: int
    """How many steps there are to be answered."""
    last: int | None = None
    """The true state of the row before, if the ask knows it."""
    steps: tuple[IntArray, ...] = ()
    """Rows, slots and states of all steps to be looked at; -1 for a step without a row."""
    done: int = 0
    """How many of them have been looked at."""
    found: Place = NOWHERE
    """Where the book says that the person is."""
    recalled: bool = False
    """Whether it only remembers that, so that a commit must compare it."""
    place: Place = NOWHERE
    """Where they are after what was drawn since."""
    works: list[Work] = field(default_factory=list)
    spent: list[Span] = field(default_factory=list)
    """What was drawn since cost, for the windows of a limit."""
    repeats: bool = False
    """Whether a row of it gets an answer that was given before."""
    behind: bool = False
    """Whether the book's standing was older than its answers, and was led to them."""

    def turn(self, terms: Terms) -> slice:
        """The steps that can be judged now: all, or one slot where what is believed decides."""
        times, first = self.steps[1], self.done
        self.done = len(times)
        if terms.schedule is not None and terms.schedule.error is not None:
            self.done = int(np.searchsorted(times, times[first], side="right"))
        return slice(first, self.done)

    def way(self, terms: Terms) -> int:
        """What leading the belief to the last step takes, in states that are looked at."""
        times, standing = self.steps[1], self.place.standing
        began = int(times[0]) - 1 if terms.origin is None else terms.origin
        steps = int(times[-1]) - (began if standing is None else standing.time)
        return max(steps, len(times)) * (terms.model.n_states + STEP)

    @property
    def has_more(self) -> bool:
        """Whether steps are left."""
        return self.done < len(self.steps[1])

    def go_on(self) -> None:
        """Take the person to be where the answers that were drawn last lead."""
        work = self.works[-1] if self.works else None
        if work is None or work.standing is None or work.standing is self.place.standing:
            return
        assert work.answers is not None
        prices = [price or Fraction(0) for price in work.answers.epsilons[slice(*work.span)]]
        times = work.times.tolist()
        own = work.standing.clock
        self.spent += (
            (*begin_of(time, own, own), price)
            for time, price in zip(times, prices, strict=True)
            if price
        )
        self.place = replace(
            self.place,
            standing=work.standing,
            latest=work.standing.time,
            spent=sum(prices, start=self.place.spent),
            recent=lambda clock, since: [*self.found.recent(clock, since), *self.spent],
        )


def cut_into_parts(asks: Sequence[Ask], longest: int) -> Iterator[Part]:
    """Everybody's rows in order of time, in pieces."""
    for number, ask in enumerate(asks):
        check_client(ask.client)
        if len(ask.people) == 1:  # there is nothing to sort
            name = check_name(ask.people[0], "person")
            line = Line(ask.client, name, ask.terms.query)
            yield Part(number, line, ONLY, 1, ask.last.get(name))
            continue
        names: dict[str, int] = {}
        owners = np.array([names.setdefault(name, len(names)) for name in ask.people])
        within = () if ask.moments is None else (ask.states, ask.moments)
        keys = (*within, ask.times, owners)
        order = np.lexsort(keys) if len(owners) else np.empty(0, dtype=np.int64)
        bounds = np.searchsorted(owners[order], np.arange(len(names) + 1))
        for person, name in enumerate(names):
            line = Line(ask.client, check_name(name, "person"), ask.terms.query)
            rows = order[bounds[person] : bounds[person + 1]]
            last = ask.last.get(name)
            for piece in _pieces(ask, rows, longest):
                size = _span(ask, piece)
                yield Part(number, line, piece, size, last)
                last = int(ask.states[piece[-1]])


def _span(ask: Ask, rows: IntArray) -> int:
    """The steps that rows of a person take, if each is answered, or how many rows they are."""
    return int(ask.times[rows[-1]] - ask.times[rows[0]]) + 1 if ask.fills_gaps else len(rows)


def _pieces(ask: Ask, rows: IntArray, longest: int) -> Sequence[IntArray]:
    """A person's rows in pieces of not too many steps."""
    if _span(ask, rows) <= longest:
        return [rows]
    places = ask.times[rows] - ask.times[rows[0]] if ask.fills_gaps else np.arange(len(rows))
    return np.split(rows, np.flatnonzero(np.diff(places // longest)) + 1)


def find_steps(ask: Ask, part: Part) -> tuple[IntArray, ...]:
    """The steps of a part: its rows and, if the scenario asks for it, what lies between them.

    A step without a row has the state of the last row before it. Before the first row nobody
    knows another state than that row's own, unless the ask does.
    """
    rows, times, states = part.rows, ask.times[part.rows], ask.states[part.rows]
    if not ask.fills_gaps:
        return rows, times, states
    stands = part.place.standing is not None and part.place.latest is not None
    latest = part.place.latest if stands else int(times[0]) - 1
    assert latest is not None
    # What lies too far ahead is refused, and so is what lies between.
    near = np.diff(times, prepend=latest) <= LONGEST_GAP
    reach = len(times) if near.all() else int(np.argmin(near))
    end = latest if not reach else int(times[reach - 1])
    missing = np.setdiff1d(np.arange(latest + 1, min(end, LATEST)), times)
    before = np.searchsorted(times, missing) - 1
    filled = states[np.maximum(before, 0)]
    if part.last is not None:
        filled[before < 0] = part.last
    order = np.argsort(np.concatenate([times, missing]), kind="stable")
    return (
        np.concatenate([rows, np.full(len(missing), -1)])[order],
        np.concatenate([times, missing])[order],
        np.concatenate([states, filled])[order],
    )


def people_waiting(parts: Iterable[Part]) -> deque[deque[Part]]:
    """Everybody's parts, in the order that a person's must keep."""
    people: dict[tuple[str, str], deque[Part]] = {}
    for part in parts:
        people.setdefault(part.line[:2], deque()).append(part)
    return deque(people.values())


def take_together(waiting: deque[deque[Part]]) -> list[deque[Part]]:
    """The people whose next parts share a commit: not too many steps."""
    taken: list[deque[Part]] = []
    steps = 0
    while waiting and steps < TOGETHER:
        taken.append(waiting.popleft())
        steps += taken[-1][0].size
    return taken
