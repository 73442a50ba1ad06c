"""Which links two versions of a scenario do not share."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm._types import IntArray
from dphmm.studio.effects import COUNTED_EDGES, Situation
from dphmm.studio.opened import Opened
from dphmm.studio.requests import Between

__all__ = ["compare"]

SHOWN = 150
"""Links of one version only that are drawn; more would cover the map."""


def compare(opened: Opened, request: Between) -> dict[str, Any]:
    """How many links are in one version only, as released, and some of them to draw."""
    sides = [Situation.of(opened.scenario_of(draft), request.step) for draft in request.runs]
    policies = [side.scenario.plan.at(side.possible).policy for side in sides]
    if any(policy.most_edges > COUNTED_EDGES for policy in policies):
        return {"only_a": None, "only_b": None, "both": None}
    size = len(opened.scenario.states)
    a, b = (np.sort(policy.edges, axis=1) @ np.array([size, 1]) for policy in policies)
    both = np.intersect1d(a, b)
    return {
        "only_a": _some(np.setdiff1d(a, b), size),
        "only_b": _some(np.setdiff1d(b, a), size),
        "both": len(both),
    }


def _some(pairs: IntArray, size: int) -> dict[str, Any]:
    """The number of pairs, and some of them spread over all."""
    shown = pairs[:: max(1, -(-len(pairs) // SHOWN))]
    drawn = np.stack(np.divmod(shown, size), axis=1)
    return {"count": len(pairs), "drawn": drawn.ravel().tolist()}
