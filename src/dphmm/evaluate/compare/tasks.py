"""What is measured for the comparison's tables: one mechanism on one set of people at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.compare.cast import (
    CITY_STEPS,
    JUDGED_PEOPLE,
    Cast,
    bands_of,
    cast_of,
    made_up_cast,
    made_up_city,
)
from dphmm.evaluate.compare.contender import Budget, Contender
from dphmm.evaluate.compare.field import contender_of, grid_of
from dphmm.evaluate.compare.harness import Outcome, compare, error_so_far
from dphmm.evaluate.compare.places import PLACES, find_places, habits_of
from dphmm.evaluate.workloads import Workload
from dphmm.tables.datasets.city import City

__all__ = [
    "ENDS",
    "FIGURES",
    "Judged",
    "Settled",
    "choose_setting",
    "city_cast",
    "figures_of",
]

FIGURES = (
    "raw", "filtered", "lagged", "hindsight", "expected", "within", "own", "own_within",
)  # fmt: skip
NOISE, TUNING = 1600, 1601
GROUP = 10
"""Draws of noise that are read at once: more take too much memory."""
ENDS = (0, CITY_STEPS, 7 * CITY_STEPS)
"""Nothing told, a day, a week."""


@dataclass(frozen=True)
class Judged:
    """A mechanism on people of a data set: runs of a hundred steps."""

    contender: str
    total: float
    steps: int = 100
    most: int = 40
    """How many runs at most."""
    seeds: int = 2

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"compare_{self.contender}_{self.total:g}_in_{self.steps}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """A figure a person of each kind, what was spent and which setting was chosen. Private."""
        cast = _data_cast(workload, self.steps, self.most)
        budget = Budget(self.total, self.steps)
        choice = choose_setting(self.contender, cast, budget)
        chosen = contender_of(
            self.contender, cast.world, budget, **grid_of(self.contender, budget)[choice]
        )
        return {**figures_of(chosen, cast, self.seeds), "choice": np.array(choice)}


@dataclass(frozen=True)
class Settled:
    """Staircase answers at some steps of a day, or of a week, for the question of home and work."""

    label: str
    total: float
    at: tuple[int, ...] = ()
    every: int = 1
    days: int = 1
    """The days that the budget is for."""
    mechanism: str = "staircase"
    people: int = JUDGED_PEOPLE
    seeds: int = 4

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"compare_places_{self.label}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Errors of a day's estimates, ranks, and distances of found places. Private."""
        budget = Budget(self.total, self.days * CITY_STEPS)
        knobs = {"every": self.every, "at": self.at}
        day, week = city_cast(self.people, 1), city_cast(self.people, 7)
        chosen = contender_of(self.mechanism, day.world, budget, **knobs)
        found = figures_of(chosen, day, self.seeds, ranked=True)
        again = contender_of(self.mechanism, week.world, budget, **knobs)
        return {**found, **_found_places(again, week, self.people, self.seeds)}


def choose_setting(name: str, cast: Cast, budget: Budget) -> int:
    """The number of the setting with the least error so far, on people who are not judged."""
    grid = grid_of(name, budget)
    if len(grid) == 1:
        return 0
    errors = []
    for knobs in grid:
        tried = contender_of(name, cast.world, budget, **knobs)
        errors.append(error_so_far(tried, cast.tuned, np.random.default_rng(TUNING)))
    return int(np.argmin(errors))


def figures_of(
    contender: Contender, cast: Cast, seeds: int, ranked: bool = False
) -> dict[str, FloatArray]:
    """For each person the mean over their paths and over so many draws of noise.

    Where asked for also how many suspects explain each day better than its owner: (seeds, people).
    """
    suspects = cast.own if ranked else None
    outcomes: list[Outcome] = []
    for first in range(0, seeds, GROUP):
        again = min(GROUP, seeds - first)
        paths = np.tile(cast.judged, (again, 1))
        rng = np.random.default_rng([NOISE, first])
        own = cast.own * again or None
        outcomes.append(compare(contender, paths, rng, own=own, suspects=suspects))
    found: dict[str, FloatArray] = {}
    for name in FIGURES:
        every = np.concatenate([getattr(one, name) for one in outcomes])
        found[name] = cast.mean(every.reshape(seeds, -1).mean(axis=0))
    for name in ("instant", "window"):
        found[name] = np.array(max(one.spent[name] for one in outcomes))
    found["step"] = np.array(np.mean([one.spent["step"] for one in outcomes]))
    if ranked:
        found["rank"] = np.concatenate([one.rank for one in outcomes]).reshape(seeds, -1)
    return found


def _found_places(
    contender: Contender, cast: Cast, people: int, seeds: int
) -> dict[str, FloatArray]:
    """For home and work the distances of the guesses: (seeds, ends, people); NaN where none is."""
    city, world = _city(people), cast.world
    steps = cast.judged.shape[1]
    habits = habits_of(city, slice(people, None))
    bands = bands_of(city.times)[-7 * CITY_STEPS :]
    ends = [end for end in ENDS if end <= steps]
    truths = dict(zip(PLACES, (city.homes[:people], city.workplaces[:people]), strict=True))
    found: dict[str, list[Any]] = {name: [] for name in PLACES}
    for seed in range(seeds):
        told = contender.release(cast.judged, np.random.default_rng([NOISE, seed]))
        for name, truth in truths.items():
            guesses = find_places(world, told, habits[name], bands, ends)
            gaps = [np.where(truth >= 0, world.apart[truth, guess], np.nan) for guess in guesses]
            found[name].append(gaps)
    return {name: np.array(rows, dtype=np.float64) for name, rows in found.items()}


# A worker measures many mechanisms on the same people, and makes them once.
_kept: dict[tuple[str, int, int], Cast] = {}


def _data_cast(workload: Workload, steps: int, most: int) -> Cast:
    key = workload.digest, steps, most
    if key not in _kept:
        _kept[key] = cast_of(workload, steps, most)
    return _kept[key]


@lru_cache(maxsize=1)
def _city(people: int) -> City:
    return made_up_city(people)


@lru_cache(maxsize=2)
def city_cast(people: int, days: int) -> Cast:
    """The made-up people and some days of theirs, made once; own pasts for one day only."""
    return made_up_cast(_city(people), people, days=days)
