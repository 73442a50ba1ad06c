"""How often a scenario's schedule speaks, at most, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dphmm.geometry.exact import as_text
from dphmm.release.hours import DAY
from dphmm.release.schedule import Schedule, allowed_at, holds
from dphmm.scenario.scenario import Scenario

__all__ = ["Speaking", "how_often", "spoken_steps"]

MOST_SLOTS = 10**6
"""Slots that are looked at for the first at which it speaks."""


@dataclass(frozen=True)
class Speaking:
    """How often a schedule speaks, at most, and what that costs."""

    when: str
    steps: int
    """Of the window that it is counted in."""
    window: str
    """Its length in words."""
    answers: int
    epsilon: Fraction

    def __str__(self) -> str:
        one = "answer" if self.answers == 1 else "answers"
        total, share = as_text(self.epsilon), as_text(self.epsilon / self.steps)
        return (
            f"It speaks {self.when}: at most {self.answers} {one} in any {self.window}, which "
            f"cost {total} in all, as much as {share} at every step. At other steps nothing is "
            f"said or spent."
        )


def how_often(scenario: Scenario) -> Speaking | None:
    """The most that the schedule says in a day or, without dates, between two answers."""
    schedule = scenario.settings.schedule
    if schedule is None:
        return None
    every = int(schedule.every)
    steps = every * -(-int(schedule.apart) // every)
    window = "step" if steps == 1 else f"{steps} steps"
    if schedule.size is not None:
        steps = -(-DAY // schedule.size)
        window = "24 hours" if steps * schedule.size == DAY else f"{steps} steps"
    answers = schedule.most_in(steps)
    price = answers * scenario.settings.epsilon
    return Speaking(scenario.settings.speaks, steps, window, answers, price)


def spoken_steps(schedule: Schedule | None, steps: int) -> list[bool]:
    """Whether it may speak at each of so many steps, of which the first is one that it does.

    A bound on the error counts as passed, so it may be fewer.

    >>> spoken_steps(Schedule(every=2, apart=3), 6)
    [True, False, False, False, True, False]
    """
    if schedule is None:
        return [True] * steps
    day = 1 if schedule.size is None or not schedule.hours else 1 + DAY // schedule.size
    known = min(int(schedule.every) * day, MOST_SLOTS)
    allowed = allowed_at(schedule, np.arange(known + steps))
    first = int(allowed[:known].argmax())
    spoke: int | None = None
    spoken = []
    for slot in range(first, first + steps):
        speaks = bool(allowed[slot]) and holds(replace(schedule, error=None), slot, spoke, None)
        spoke = slot if speaks else spoke
        spoken.append(speaks)
    return spoken
