"""A mechanism on a day of the made-up people, and whose day it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.compare.cast import CITY_STEPS, JUDGED_PEOPLE
from dphmm.evaluate.compare.contender import Budget
from dphmm.evaluate.compare.field import contender_of, grid_of
from dphmm.evaluate.compare.tasks import choose_setting, city_cast, figures_of
from dphmm.evaluate.workloads import Workload

__all__ = ["Daily"]


@dataclass(frozen=True)
class Daily:
    """A mechanism on the made-up people's Monday."""

    contender: str
    total: float
    people: int = JUDGED_PEOPLE
    tuned: int = 4
    """On how many people its settings are chosen."""
    seeds: int = 1

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"compare_daily_{self.contender}_{self.total:g}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """A figure a person of each kind, what was spent, the setting, and ranks. Private."""
        cast = city_cast(self.people, 1)
        budget = Budget(self.total, CITY_STEPS)
        choice = choose_setting(
            self.contender, replace(cast, tuned=cast.tuned[: self.tuned]), budget
        )
        knobs = grid_of(self.contender, budget)[choice]
        chosen = contender_of(self.contender, cast.world, budget, **knobs)
        found = figures_of(chosen, cast, self.seeds, ranked=True)
        return {**found, "choice": np.array(choice)}
