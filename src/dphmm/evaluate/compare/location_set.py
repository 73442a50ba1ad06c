"""The delta-location set with planar isotropic noise (Xiao and Xiong 2015)."""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.evaluate.compare.contender import Budget, Contender, Told
from dphmm.evaluate.compare.world import World
from dphmm.geometry.exact import exact
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.stream import Stream

__all__ = ["LocationSet"]


class LocationSet(Contender):
    """K-norm noise for all pairs of the likeliest places, which change with the belief.

    Somebody outside the set is answered as its nearest member. Epsilon is per answer, as for
    everybody; what it covers is larger (every pair of the set) and smaller (nobody outside).

    Args:
        world: What is public.
        budget: What it may spend, the same at every step.
        delta: The probability that the set leaves out.
    """

    name = "delta-location set"
    source = "Xiao and Xiong 2015"
    promise = (
        "Any two places of the set of the likeliest, 0.99 of the belief, lose at most epsilon "
        "at each answer if the belief is right; a place outside is promised nothing."
    )

    def __init__(self, world: World, budget: Budget, delta: str = "0.01") -> None:
        super().__init__(world, budget)
        self.delta = delta
        complete = PolicyGraph.complete(world.query.n_states)
        self.plan = Plan(complete, world.query, mechanism="isotropic", delta=delta)

    @property
    def knobs(self) -> str:
        """What the set leaves out."""
        return f"delta {self.delta}"

    def release(self, paths: IntArray, rng: np.random.Generator) -> Told:
        """A stream of the library for each path."""
        people, steps = paths.shape
        price = exact(self.budget.total, "total") / self.budget.steps
        shown = np.empty((people, steps, 2))
        rows = np.zeros((steps, people, self.world.query.n_states), dtype=np.float32)
        spent = np.zeros((people, steps))
        for person, path in enumerate(paths):
            stream = Stream(
                self.world.chain, self.plan, epsilon=price, start=self.world.start,
                randomness=SeededRandomness(rng),
            )  # fmt: skip
            for step, place in enumerate(path.tolist()):
                release = stream.release(place)
                shown[person, step] = release.answer
                spent[person, step] = float(release.epsilon)
            for step, row in enumerate(stream.observations()):
                if row is not None:
                    rows[step, person] = row

        def log_likelihood(step: int) -> FloatArray:
            return rows[step].astype(np.float64)

        return Told(shown, spent, log_likelihood)
