"""w-event privacy: budget division and budget absorption (Kellaris et al. 2014), for places.

Both were made for streams of counts. Half of a window's budget pays for a private comparison of
the truth with what was published last, the same at every step; the other half for publications,
which happen only where the comparison exceeds the expected error of a fresh answer. Here the
comparison is a distance and a publication a planar Laplace answer.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.evaluate.compare.contender import Budget, Contender, Told
from dphmm.evaluate.compare.planar import draw_planar, log_planar
from dphmm.evaluate.compare.testing import farther, log_farther
from dphmm.evaluate.compare.world import World

__all__ = ["BudgetAbsorption", "BudgetDivision"]


class _WindowEvent(Contender):
    """What division and absorption have in common: all but the price of a publication.

    Args:
        world: What is public.
        budget: What it may spend.
        window: The steps of a window, w; its share of the budget holds in any so many steps.
    """

    source = "Kellaris, Papadopoulos, Xiao, Papadias 2014"
    promise = (
        "Over any w steps two paths lose at most w steps' share of the budget times their "
        "largest distance over span, whatever is known beforehand; a single step may cost half "
        "a window's budget."
    )

    def __init__(self, world: World, budget: Budget, window: int = 0) -> None:
        super().__init__(world, budget)
        self.window = budget.part(window or budget.steps, "window")

    @property
    def knobs(self) -> str:
        """The window."""
        return f"w = {self.window}"

    @property
    def total(self) -> float:
        """What a window may cost."""
        return self.budget.each * self.window

    @abstractmethod
    def prices(self, published: FloatArray, step: int) -> FloatArray:
        """What a publication at a step would cost each path; 0 where none may happen.

        `published` is what publications cost at the steps before: (k, step).
        """

    def release(self, paths: IntArray, rng: np.random.Generator) -> Told:
        """Comparisons and publications of all paths, step by step."""
        world, people, steps = self.world, *paths.shape
        test = self.total / (2 * self.window)
        shown = np.empty((people, steps, 2))
        published = np.zeros((people, steps))
        offered = np.zeros((people, steps))
        before = np.empty((people, steps, 2))
        last = np.tile(world.nearest_to_all(world.prior[None]), (people, 1))
        for step in range(steps):
            before[:, step] = last
            price = offered[:, step] = self.prices(published[:, :step], step)
            truth = world.places[paths[:, step]]
            distance = np.hypot(*(truth - last).T)
            far = farther(distance, self._threshold(price), test / world.span, rng)
            fresh = far & (price > 0)
            answers = draw_planar(truth, np.where(price > 0, price, 1.0) / world.span, rng)
            last = np.where(fresh[:, None], answers, last)
            shown[:, step] = last
            published[:, step] = np.where(fresh, price, 0.0)

        def log_likelihood(step: int) -> FloatArray:
            price, fresh = offered[:, step], published[:, step] > 0
            gaps = before[:, step, None] - world.places[None, :]
            chance = log_farther(
                np.hypot(*gaps.T).T, self._threshold(price), test / world.span, fresh
            )
            rate = np.where(price > 0, price, 1.0) / world.span
            noise = log_planar(shown[:, step], world.places, rate)
            logs = chance + np.where(fresh[:, None], noise, 0.0)
            return np.where(price[:, None] > 0, logs, 0.0)

        return Told(shown, published + test, log_likelihood)

    def _threshold(self, price: FloatArray) -> FloatArray:
        """The expected error of a publication: two over the rate of planar Laplace noise."""
        return 2 * self.world.span / np.where(price > 0, price, 1.0)


class BudgetDivision(_WindowEvent):
    """A publication takes half of what the window has left (BD)."""

    name = "w-event, budget division"

    def prices(self, published: FloatArray, step: int) -> FloatArray:
        """Half of what the last w - 1 steps left of the publications' half."""
        recent = published[:, max(0, step + 1 - self.window) :].sum(axis=1)
        return np.asarray(np.maximum(self.total / 2 - recent, 0.0) / 2)


class BudgetAbsorption(_WindowEvent):
    """A publication takes what skipped steps before it saved, and later ones pay back (BA)."""

    name = "w-event, budget absorption"

    def prices(self, published: FloatArray, step: int) -> FloatArray:
        """A step's share for each step since the last publication that was not paid back."""
        unit = self.total / (2 * self.window)
        happened = published > 0
        ever = happened.any(axis=1)
        last = np.where(ever, step - 1 - happened[:, ::-1].argmax(axis=1) if step else -1, -1)
        cost = published[np.arange(len(published)), last] if step else np.zeros(len(published))
        owed = np.where(ever, np.rint(cost / unit) - 1, 0)
        saved = np.clip(step - last - owed, 0, self.window)
        return np.asarray(unit * saved)
