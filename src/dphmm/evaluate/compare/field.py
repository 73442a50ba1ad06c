"""The mechanisms that are compared, by name; a new one is a class and a line here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from dphmm.errors import expect_one_of
from dphmm.evaluate.compare.contender import Budget, Contender
from dphmm.evaluate.compare.location_set import LocationSet
from dphmm.evaluate.compare.optimal import OptimalOnRegions
from dphmm.evaluate.compare.planar import PlanarLaplace, RemappedPlanarLaplace
from dphmm.evaluate.compare.predictive import Predictive
from dphmm.evaluate.compare.shaped import KNorm, L1Laplace, Staircase
from dphmm.evaluate.compare.window_event import BudgetAbsorption, BudgetDivision
from dphmm.evaluate.compare.world import World

__all__ = ["CONTENDERS", "contender_of", "grid_of"]

CONTENDERS: dict[str, Callable[..., Contender]] = {
    "planar": PlanarLaplace,
    "remapped": RemappedPlanarLaplace,
    "l1": L1Laplace,
    "location_set": LocationSet,
    "predictive": Predictive,
    "division": BudgetDivision,
    "absorption": BudgetAbsorption,
    "optimal": OptimalOnRegions,
    "knorm": KNorm,
    "staircase": Staircase,
    "planar_scheduled": PlanarLaplace,
    "scheduled": Staircase,
}
"""Twelve rows of a table: the last two are a mechanism with a schedule."""

LOUDNESS, SHARES, PATIENCES = (2.0, 6.0, 20.0, 60.0), (0.1, 0.3), (1.0, 2.0)


def grid_of(name: str, budget: Budget) -> list[dict[str, Any]]:
    """The settings that a mechanism is tried with, on people whom it is not judged by.

    A mechanism without settings has one entry, with nothing in it.

    >>> grid_of("knorm", Budget(1, 4)), grid_of("scheduled", Budget(1, 4))
    ([{}], [{'every': 2}, {'every': 4}])
    """
    if name == "predictive":
        return [
            {"loudness": loudness, "share": share, "patience": patience}
            for loudness, share, patience in product(LOUDNESS, SHARES, PATIENCES)
        ]
    if name in ("division", "absorption"):
        return [{"window": window} for window in _apart(budget.parts[1:])]
    if "scheduled" in name:
        return [{"every": every} for every in _apart(budget.parts[1:])]
    return [{}]


def _apart(widths: list[int]) -> list[int]:
    """The widths that are at least half as long again as the one before."""
    kept: list[int] = []
    for width in widths:
        if not kept or width >= 1.5 * kept[-1]:
            kept.append(width)
    return kept


def contender_of(name: str, world: World, budget: Budget, **knobs: Any) -> Contender:
    """The mechanism of a name, for a world and a budget.

    Args:
        name: One of `CONTENDERS`.
        world: What is public.
        budget: What it may spend.
        knobs: The mechanism's own settings.
    """
    expect_one_of(name, tuple(CONTENDERS), "name")
    return CONTENDERS[name](world, budget, **knobs)
