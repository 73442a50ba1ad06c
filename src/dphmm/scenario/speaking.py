"""How often a schedule speaks at most, what that costs, and whether a budget lasts for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dphmm.cost.limit import Window
from dphmm.geometry.exact import as_text
from dphmm.release.hours import DAY
from dphmm.release.schedule import Schedule, allowed_at, holds, price_of
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Settings

__all__ = [
    "Speaking",
    "binding_window",
    "even_price",
    "how_often",
    "spoken_steps",
    "tell_shortage",
]

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


def binding_window(settings: Settings) -> Window | None:
    """The window of the limit, in steps, that allows the lowest price at the schedule."""
    if settings.limit is None or not settings.limit.windows:
        return None
    windows = settings.limit.in_steps(settings.clock.law).windows
    return min(windows, key=lambda window: even_price(settings, window))


def even_price(settings: Settings, window: Window) -> Fraction:
    """The price at which every answer of the schedule fits into a window, in steps."""
    return window.amount / _most_answers(settings, window)


def tell_shortage(settings: Settings) -> str | None:
    """That a budget does not pay for every answer of the schedule, if so."""
    window, price = binding_window(settings), price_of(settings.schedule, settings.epsilon)
    if window is None or even_price(settings, window) >= price:
        return None
    paid, most = int(window.amount / price), _most_answers(settings, window)
    return (
        f"The budget of {window} does not last: of up to {most:,} answers in that time it pays "
        f"for {paid:,}, and the others are refused."
    )


def _most_answers(settings: Settings, window: Window) -> int:
    """How many answers the schedule allows in a window, in steps."""
    return window.width if settings.schedule is None else settings.schedule.most_in(window.width)


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
