"""What the theorems bound for whole cities: the loss between any two places, and over a run.

Every state stays possible, as with every learned model that can go anywhere, so that the figures
hold whatever people do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm._types import FloatArray
from dphmm.cost.charges import constrained_epsilon
from dphmm.evaluate.experiments import make_policy
from dphmm.evaluate.observed import WORDS, city_settings
from dphmm.evaluate.parts import EXACT, Part, Study
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.workloads import Workload
from dphmm.policy.plan import Plan

__all__ = ["Bounds", "theorems_study"]

CITIES = {
    "geolife": "Beijing within the third ring",
    "gowalla": "Los Angeles",
    "gowalla-nyc": "New York City",
}


@dataclass(frozen=True)
class Bounds:
    """The largest loss of one answer at epsilon 1, in epsilons, for both kinds of noise."""

    policy: str
    radius: str = ""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"bounds_{self.policy}_{self.radius}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """The value of Theorem 6.3, exact before it is written as a float."""
        policy, _ = make_policy(workload, self.policy, self.radius, workload.model("others"))
        everywhere = np.ones(workload.query.n_states, dtype=bool)
        found = {}
        for mechanism in ("knorm", "staircase"):
            noise = Plan(policy, workload.query, mechanism=mechanism).at(everywhere)
            gamma = noise.mechanism(Fraction(1)).gamma
            worst = constrained_epsilon(workload.query, noise.hull, 1, gamma=gamma)
            found[mechanism] = np.array(float(worst))
        return found


def theorems_study(*, quick: bool = False) -> Study:
    """Theorems 6.3 and 7.2 for every city and for both policies.

    Args:
        quick: Whether to take the first city only.
    """
    cities = list(CITIES)[:1] if quick else list(CITIES)
    steps = protocol()["people"]["steps"]
    parts: dict[Part, str] = {}
    for name in cities:
        radius = city_settings(name)["radius"]
        parts[name, Bounds("distance", radius)] = f"{WORDS['distance']}, {radius} km"
        parts[name, Bounds("one_step")] = WORDS["one_step"]

    def summarise(
        workloads: Mapping[str, Workload], found: Mapping[Part, dict[str, FloatArray]]
    ) -> tuple[dict[str, Value], dict[str, Table]]:
        values: dict[str, Value] = {}
        rows = []
        for (name, task), words in parts.items():
            assert isinstance(task, Bounds)
            row = [CITIES[name], words]
            for mechanism in ("knorm", "staircase"):
                once = float(found[name, task][mechanism])
                values[f"{name}.{task.policy}.{mechanism}.once"] = Value(once, ".2f")
                values[f"{name}.{task.policy}.{mechanism}.run"] = Value(steps * once, ".0f")
                row += [f"{once:.2f}", f"{steps * once:.0f}"]
            rows.append(tuple(row))
        head = (
            "city", "policy", "K-norm: one answer (6.3)", f"{steps} answers (7.2)",
            "staircase: one answer", f"{steps} answers",
        )  # fmt: skip
        return values, {"bounds": Table(head, tuple(rows))}

    return Study(
        name="theorems",
        about="The largest loss between any two places and any two paths at ε = 1 an answer",
        module=__name__,
        parts=tuple(parts),
        summarise=summarise,
        settings={"epsilon": "1", "steps": steps},
        noise=EXACT,
    )
