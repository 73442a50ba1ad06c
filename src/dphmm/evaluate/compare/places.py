"""Home and work: one place where somebody often is, from what was told. Private when judged.

The adversary knows how often other people are at home, or at work, at each hour, and where their
homes and workplaces are; not where this person was before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.evaluate.compare.cast import BANDS, bands_of
from dphmm.evaluate.compare.contender import Told
from dphmm.evaluate.compare.world import World
from dphmm.tables.datasets.city import City

__all__ = ["PLACES", "Habit", "find_places", "habits_of"]

PLACES = ("home", "work")


@dataclass(frozen=True, eq=False)
class Habit:
    """What is known of people's homes, or workplaces, from others."""

    prior: FloatArray = field(repr=False)
    """How often each place is one, without zeros."""
    there: FloatArray = field(repr=False)
    """How often people are there, in each hour of working and of free days."""


def habits_of(city: City, known: slice) -> dict[str, Habit]:
    """The habits of some people of a city: those whom everybody knows.

    Args:
        city: Made-up people.
        known: Which of them are public.
    """
    bands, found = bands_of(city.times), {}
    for name, places in zip(PLACES, (city.homes[known], city.workplaces[known]), strict=True):
        have = places >= 0
        counts = np.bincount(places[have], minlength=city.grid.n_states) + 0.05
        there = (city.states[known][have] == places[have, None]).mean(axis=0)
        hours = np.bincount(bands, weights=there, minlength=BANDS) / np.bincount(
            bands, minlength=BANDS
        )
        found[name] = Habit(counts / counts.sum(), np.clip(hours, 0.001, 0.99))
    return found


def find_places(
    world: World, told: Told, habit: Habit, bands: IntArray, ends: list[int]
) -> list[IntArray]:
    """The adversary's best guess of each person's home, or work, once some steps are over.

    Each step counts as if somebody were there with the chance of its hour and otherwise
    anywhere, whatever the steps before said.

    Args:
        world: What is public.
        told: All that was told.
        habit: What is known of others.
        bands: The hour of each step, as in the habit.
        ends: After how many steps guesses are made, in order.
    """
    logs = np.tile(np.log(habit.prior), (len(told.spent), 1))
    guesses = []
    for step in range(max(ends) + 1):
        if step in ends:
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            guesses.append(world.best_guesses(weights / weights.sum(axis=1, keepdims=True)))
        row = told.log_likelihood(step) if step < told.steps else None
        if row is None:
            continue
        likely = np.exp(row - row.max(axis=1, keepdims=True))
        there = habit.there[bands[step]]
        logs += np.log(there * likely + (1 - there) * (likely @ world.prior)[:, None])
    return guesses
