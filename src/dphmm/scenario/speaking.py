"""How often a schedule speaks at most, what that costs, and whether a budget lasts for it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm._types import Mask
from dphmm.cost.limit import Window
from dphmm.geometry.exact import as_text
from dphmm.release.hours import DAY, rhythms_within
from dphmm.release.schedule import Schedule, allowed_at, price_of
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

MOST_STEPS = 10**7
"""Steps that are looked at after every slot at which a start may be."""


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


def spoken_steps(
    schedule: Schedule | None, steps: int, begins: int | None = None
) -> list[tuple[bool, ...]] | None:
    """At which of so many steps after a start it may speak, for every slot of the start.

    A bound on the error counts as passed. Starts after which it is silent are left out. None where
    there are too many slots to look at.

    Args:
        schedule: When it speaks; None for always.
        steps: How many steps.
        begins: The slot of the start, if it is known.

    >>> spoken_steps(Schedule(every=2, apart=3), 6, begins=0)
    [(False, True, False, False, False, True)]
    >>> spoken_steps(Schedule(every=2), 3)
    [(False, True, False), (True, False, True)]
    """
    if schedule is None:
        return [(True,) * steps]
    allowed = _allowed(schedule, steps, begins)
    if allowed is None or sum(len(some) - steps + 1 for some in allowed) * steps > MOST_STEPS:
        return None
    view = np.lib.stride_tricks.sliding_window_view
    windows = np.unique(np.concatenate([view(some, steps) for some in allowed]), axis=0)
    ways = {_apart(window, int(schedule.apart)) for window in windows.tolist()}
    return sorted(way for way in ways if any(way))


def _allowed(schedule: Schedule, steps: int, begins: int | None) -> list[Mask] | None:
    """The steps that the clock allows after one start, and after the next ones."""
    every, phase = int(schedule.every), int(schedule.phase)
    if begins is not None:
        return [allowed_at(schedule, begins + 1 + np.arange(steps))]
    if not schedule.hours or schedule.size is None:
        # Whoever starts earlier hears nothing in these steps, or what somebody later hears.
        starts = min(every, steps)
        return [allowed_at(schedule, phase - starts + 1 + np.arange(starts - 1 + steps))]
    law = schedule.hours, schedule.size, schedule.zone
    masks = rhythms_within(steps, *law, every, phase)
    if masks is None:
        return None
    return [np.resize(mask, len(mask) - 1 + steps) for mask in masks]


def _apart(allowed: list[bool], apart: int) -> tuple[bool, ...]:
    """Where it speaks of the steps that the clock allows, so far apart, the first at once."""
    spoken, silent = [], apart
    for allows in allowed:
        speaks = allows and silent >= apart
        silent = 1 if speaks else silent + 1
        spoken.append(speaks)
    return tuple(spoken)
