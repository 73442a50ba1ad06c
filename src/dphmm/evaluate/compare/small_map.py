"""One answer on a small map, where the optimum is known: what each noise leaves to be had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.markov import MarkovModel
from dphmm.evaluate.compare.contender import Budget, OneLaw
from dphmm.evaluate.compare.field import contender_of
from dphmm.evaluate.compare.optimal import OptimalOnRegions, solve_optimal
from dphmm.evaluate.compare.planar import PlanarLaplace, remapped
from dphmm.evaluate.compare.shaped import KNorm, L1Laplace, Staircase
from dphmm.evaluate.compare.world import World
from dphmm.evaluate.workloads import Workload
from dphmm.geometry.query import Query
from dphmm.noise.distance import mean_noise

__all__ = ["DRAWS", "METRIC", "ON_SMALL_MAP", "OneAnswer", "small_map"]

ON_SMALL_MAP = ("planar", "l1", "knorm", "staircase", "optimal")
DRAWS = 4000
"""Of noise, for each place."""
METRIC = "optimal_metric"
"""The optimum among mechanisms whose loss grows with distance: geo-indistinguishability's."""


def small_map(side: int = 5, cell: str = "0.34", radius: str = "0.7") -> World:
    """A square of cells, most people near one corner; places up to `radius` apart are linked."""
    cells = np.array([(x, y) for x in range(side) for y in range(side)])
    weights = np.exp(-0.5 * cells.sum(axis=1))
    query = Query(cells * float(cell), step="0.01")
    chain = MarkovModel(np.eye(len(cells)), anywhere=0.1)
    return World(query, radius, chain, Belief.from_probabilities(weights / weights.sum()))


@dataclass(frozen=True)
class OneAnswer:
    """The expected error of one answer, as it is and after the best guess, at one epsilon."""

    epsilon: float
    draws: int = DRAWS
    """For each place."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"one_answer_{self.epsilon:g}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """For each mechanism both errors under the prior, and what chance adds or takes."""
        world, found = small_map(), {}
        for number, name in enumerate(ON_SMALL_MAP):
            contender = contender_of(name, world, Budget(self.epsilon, 1))
            assert isinstance(contender, OneLaw)
            rng = np.random.default_rng([1602, number])
            found[name] = one_answer(world, contender, self.draws, rng)
        everybody = np.argwhere(np.triu(np.ones_like(world.apart), 1))
        losses = self.epsilon * world.apart[everybody[:, 0], everybody[:, 1]] / world.span
        apart = world.apart.astype(np.float64)
        matrix = solve_optimal(world.prior, apart, everybody, losses.astype(np.float64))
        best = float((world.prior[:, None] * matrix * apart).sum())
        found[METRIC] = np.array([best, best, 0.0])
        return found


def one_answer(world: World, contender: OneLaw, draws: int, rng: np.random.Generator) -> FloatArray:
    """The error of an answer, that of the best guess from it, and the latter's standard error.

    The first is exact. For the second places are drawn in turn and weighed by the prior, so only
    the noise is left to chance; for the optimum, whose answers are few, it is exact too.
    """
    if isinstance(contender, OptimalOnRegions):
        joint = world.prior[:, None] * contender.matrix[contender.region]
        apart = world.apart.astype(np.float64)
        raw = float((joint * apart[:, contender.middles]).sum())
        return np.array([raw, float((apart @ joint).min(axis=0).sum()), 0.0])
    places = np.repeat(np.arange(world.query.n_states), draws)
    answers = contender.draw(places, rng)
    guesses = remapped(world, contender.log_likelihoods(answers))
    error = np.hypot(*(guesses - world.places[places]).T).reshape(-1, draws)
    spread = np.sqrt((world.prior**2 * error.var(axis=1)).sum() / draws)
    best = float(world.prior @ error.mean(axis=1))
    return np.array([expected_length(contender), best, float(spread)])


def expected_length(contender: OneLaw) -> float:
    """The expected length of one answer's noise, in kilometres, without draws."""
    if isinstance(contender, PlanarLaplace):
        return 2 / contender.rate
    assert isinstance(contender, (KNorm, L1Laplace, Staircase))
    return mean_noise(contender.law)
