"""What the theory says of a day's answers beside what was measured: all of it public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm._types import FloatArray
from dphmm.cost.charges import Charge, constrained_epsilon
from dphmm.cost.history import History
from dphmm.cost.leakage import temporal_leakage
from dphmm.cost.privacy_loss import privacy_loss
from dphmm.cost.sequences import paper_sequence_epsilon
from dphmm.evaluate.compare.cast import CITY_STEPS, JUDGED_PEOPLE
from dphmm.evaluate.compare.contender import Budget
from dphmm.evaluate.compare.shaped import KNorm, Staircase
from dphmm.evaluate.compare.tasks import city_cast
from dphmm.evaluate.workloads import Workload

__all__ = ["DELTA", "Guaranteed"]

DELTA = "0.000001"
NOISES = {"knorm": KNorm, "staircase": Staircase}


@dataclass(frozen=True)
class Guaranteed:
    """The losses of a day's answers in the made-up city, for one noise and one interval."""

    label: str
    total: float
    every: int = 1
    at: tuple[int, ...] = ()
    mechanism: str = "staircase"
    people: int = JUDGED_PEOPLE

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"guaranteed_{self.label}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Losses of an answer and of a day, between linked and between any places."""
        world = city_cast(self.people, 1).world
        budget = Budget(self.total, CITY_STEPS)
        contender = NOISES[self.mechanism](world, budget, every=self.every, at=self.at)
        law, policy = contender.law, world.policy
        charge = Charge(world.query, law.body, law.epsilon, law.gamma)
        steps = [[charge] if contender.speaks(step) else [] for step in range(CITY_STEPS)]
        history = History(world.chain, steps, start=world.start)
        spoken = [step for step, said in enumerate(steps) if said]
        moment = spoken[len(spoken) // 2]
        leakage = temporal_leakage(history, start=world.start, policy=policy, moment=moment)
        everywhere = constrained_epsilon(world.query, law.body, law.epsilon, gamma=law.gamma)
        curve = privacy_loss(law, policy) * len(spoken)
        assert leakage.linked is not None
        found = {
            "answers": len(spoken),
            "linked": float(law.epsilon),
            "worst": float(everywhere),
            "linked_day": float(law.epsilon) * len(spoken),
            "worst_day": float(paper_sequence_epsilon(history)),
            "likely_day": float(curve.epsilon(DELTA)),
            "moment": leakage.loss,
            "moment_linked": leakage.linked,
        }
        return {name: np.array(value, dtype=np.float64) for name, value in found.items()}
