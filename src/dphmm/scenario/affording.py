"""What it takes to answer every step of some trips, and whether a limit allows that.

For whoever owns the trips, before anything is asked: it tells how many steps people have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm._types import IntArray
from dphmm.cost.limit import Limit, Window
from dphmm.geometry.exact import as_epsilon, as_text
from dphmm.release.hours import DAY
from dphmm.release.schedule import Schedule, allowed_at, fills_gaps, price_of
from dphmm.scenario.settings import Settings
from dphmm.tables.clock import Clock
from dphmm.tables.trips import Row

__all__ = ["Need", "day_of", "need_of", "need_of_rows"]

STEPS = 100
"""What stands for a day where steps are no times of day."""


@dataclass(frozen=True)
class Need:
    """Trips that a limit does not allow to answer to their end; as private as they are.

    Args:
        cost: What the person with the most answers takes.
        refused: How many people take more than the limit allows.
        people: How many there are.
        limit: The limit.
        day: A limit by which every day could be answered.
    """

    cost: Fraction
    refused: int
    people: int
    limit: Limit
    day: Window

    def __str__(self) -> str:
        return (
            f"all steps take up to {as_text(self.cost)} a person, and the limit of "
            f"{self.limit.words} is too little for {self.refused} of {self.people} people"
        )


def need_of(settings: Settings, people: IntArray, slots: IntArray) -> Need | None:
    """What some trips need and a scenario's limit does not allow; None if it allows all of them.

    Also None where the clock alone does not decide when something is said.

    Args:
        settings: Limit, price, clock and schedule.
        people: Whose row it is, as numbers from 0 in order; rows of a person stand together.
        slots: The row's slot; those of a person rise, or repeat.
    """
    limit, schedule = settings.limit, settings.schedule
    if limit is None or not len(slots) or not (schedule is None or schedule.is_by_clock):
        return None
    if fills_gaps(schedule):
        people, slots = _filled(people, slots)
    if schedule is not None:
        spoken = allowed_at(schedule, slots)
        people, slots = people[spoken], slots[spoken]
    steps, price = limit.in_steps(settings.clock.law), price_of(schedule, settings.epsilon)
    counts = _most(people, slots, None)
    over = np.zeros(len(counts), dtype=bool)
    for amount, width in [(steps.total, None), *((one.amount, one.width) for one in steps.windows)]:
        if amount is not None:
            over |= _most(people, slots, width) > int(amount / price)
    if not over.any():
        return None
    day = day_of(settings.epsilon, settings.clock, schedule)
    return Need(price * int(counts.max()), int(over.sum()), len(counts), limit, day)


def need_of_rows(settings: Settings, rows: Iterable[Row]) -> Need | None:
    """The same of rows in any order; of several in a slot one is answered."""
    steps = sorted({(row.person, row.slot) for row in rows})
    slots = np.array([slot for _, slot in steps], dtype=np.int64)
    _, people = np.unique([person for person, _ in steps], return_inverse=True)
    return need_of(settings, people, slots)


def day_of(epsilon: Fraction, clock: Clock, schedule: Schedule | None = None) -> Window:
    """What answering a day takes, wherever it begins; of a hundred steps where there are no days.

    >>> print(day_of(Fraction(1, 2), Clock("5 min")), "/", day_of(Fraction(1), Clock()))
    144 per 1 day / 100 per 100 steps
    """
    size = clock.seconds if clock.has_dates else None
    steps = STEPS if size is None else max(1, DAY // size)
    answers = steps if schedule is None else schedule.most_in(steps)
    amount = as_epsilon(price_of(schedule, epsilon)) * answers
    whole_day = size is not None and steps * size == DAY
    return Window(amount, DAY, timed=True) if whole_day else Window(amount, steps)


def _most(people: IntArray, slots: IntArray, width: int | None) -> IntArray:
    """The most answers of everybody who has some: in all, or in any so many steps in a row."""
    _, first, counts = np.unique(people, return_index=True, return_counts=True)
    if width is None or not len(slots):
        return counts
    # Everybody in a stretch of their own, so that one search finds where all windows end.
    stretch = int(np.ptp(slots)) + width
    line = (slots - slots.min()) + stretch * people
    within = np.searchsorted(line, line + width) - np.arange(len(line))
    return np.asarray(np.maximum.reduceat(within, first))


def _filled(people: IntArray, slots: IntArray) -> tuple[IntArray, IntArray]:
    """Every step between somebody's first and last."""
    who, first, counts = np.unique(people, return_index=True, return_counts=True)
    lengths = slots[first + counts - 1] - slots[first] + 1
    behind = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(who, lengths), np.arange(len(behind)) - behind + np.repeat(
        slots[first], lengths
    )
