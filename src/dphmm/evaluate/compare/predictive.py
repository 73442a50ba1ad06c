"""The predictive mechanism (Chatzikokolakis, Palamidessi, Stronati 2014)."""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.errors import ArgumentError
from dphmm.evaluate.compare.contender import Budget, Contender, Told
from dphmm.evaluate.compare.planar import draw_planar, log_planar
from dphmm.evaluate.compare.testing import farther, log_farther
from dphmm.evaluate.compare.world import World

__all__ = ["Predictive"]


class Predictive(Contender):
    """The last answer is repeated while a private test finds it near enough; else fresh noise.

    A step is a test of the prediction (the last answer, the paper's "parrot") and, where the
    test fails, a planar Laplace answer. The budget manager is ours, for a budget in a window:
    a step at which test and answer would not fit into the budget, or would be ahead of the
    clock by more than one answer, repeats the prediction untested, for nothing.

    Args:
        world: What is public.
        budget: What it may spend.
        loudness: What a fresh answer costs, in steps' shares of the budget.
        share: What a test costs, as a share of a fresh answer's price.
        patience: The threshold of the test, in expected errors of a fresh answer.
    """

    name = "predictive"
    source = "Chatzikokolakis, Palamidessi, Stronati 2014"
    promise = (
        "Two places d apart lose at most d / span times what a step spends, whatever is known "
        "beforehand; how much a step spends follows from what was published."
    )

    def __init__(
        self,
        world: World,
        budget: Budget,
        loudness: float = 4.0,
        share: float = 0.2,
        patience: float = 1.5,
    ) -> None:
        super().__init__(world, budget)
        for value, name in ((loudness, "loudness"), (share, "share"), (patience, "patience")):
            if not value > 0:
                raise ArgumentError(f"{name} must be above 0, got {value!r}")
        # A step pays for both at most, so their sum must fit into the budget.
        self.loudness = min(loudness, budget.steps / (1 + share))
        self.share, self.patience = share, patience

    @property
    def knobs(self) -> str:
        """The settings of manager and test."""
        return f"answer {self.loudness:g} steps, test {self.share:g}, patience {self.patience:g}"

    def release(self, paths: IntArray, rng: np.random.Generator) -> Told:
        """Predictions, tests and fresh answers of all paths, step by step."""
        world, people, steps = self.world, *paths.shape
        price = self.budget.each * self.loudness
        test = price * self.share
        rate = price / world.span
        # The expected length of planar Laplace noise is two over its rate.
        threshold = np.full(people, self.patience * 2 / rate)
        shown = np.empty((people, steps, 2))
        spent = np.zeros((people, steps))
        predicted = np.empty((people, steps, 2))
        tested, fresh = np.zeros((2, people, steps), dtype=bool)
        last = np.tile(world.nearest_to_all(world.prior[None]), (people, 1))
        for step in range(steps):
            predicted[:, step] = last
            window = spent[:, max(0, step + 1 - self.budget.steps) : step].sum(axis=1)
            fits = window + price + test <= self.budget.total * (1 + 1e-12)
            due = spent.sum(axis=1) <= self.budget.each * (step + 1)
            able = tested[:, step] = fits & due
            distance = np.hypot(*(world.places[paths[:, step]] - last).T)
            far = farther(distance, threshold, test / world.span, rng)
            answers = draw_planar(world.places[paths[:, step]], rate, rng)
            fresh[:, step] = able & far
            last = np.where(fresh[:, step, None], answers, last)
            shown[:, step] = last
            spent[:, step] = able * test + fresh[:, step] * price

        def log_likelihood(step: int) -> FloatArray:
            gaps = predicted[:, step, None] - world.places[None, :]
            chance = log_farther(np.hypot(*gaps.T).T, threshold, test / world.span, fresh[:, step])
            noise = log_planar(shown[:, step], world.places, rate)
            logs = chance + np.where(fresh[:, step, None], noise, 0.0)
            return np.where(tested[:, step, None], logs, 0.0)

        return Told(shown, spent, log_likelihood)
