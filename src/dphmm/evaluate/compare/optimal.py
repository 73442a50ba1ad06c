"""The optimal mechanism of one step, by linear programming (Bordenabe et al. 2014)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from dphmm._types import FloatArray, IntArray
from dphmm.errors import ArgumentError
from dphmm.evaluate.compare.contender import Budget, OneLaw
from dphmm.evaluate.compare.world import World
from dphmm.policy.plan import Plan

__all__ = ["OptimalOnRegions", "regions_of", "solve_optimal"]

MOST_REGIONS = 49
"""A program has a variable for every pair of regions; Bordenabe et al. go to about 75."""


def solve_optimal(
    prior: FloatArray, distance: FloatArray, pairs: IntArray, losses: FloatArray
) -> FloatArray:
    """The matrix P(answer | place) with the least expected distance under the prior.

    Subject to K[a, z] <= e^loss K[b, z] for every listed pair, both ways round. Solvers keep
    constraints up to a tolerance; the result is mixed with the uniform matrix by as little as
    makes every one of them hold.

    Args:
        prior: (n,) how likely each place is.
        distance: (n, m) how far each answer is from each place.
        pairs: (k, 2) places that must look alike.
        losses: (k,) the most that each pair may lose.

    >>> near = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> solve_optimal(np.array([0.5, 0.5]), near, np.array([[0, 1]]), np.log([3.0])).round(6)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    places, answers = distance.shape
    if prior.shape != (places,) or len(pairs) != len(losses):
        raise ArgumentError("prior must fit distance, and losses pairs")
    both = np.concatenate([pairs, pairs[:, ::-1]])
    factor = np.exp(np.concatenate([losses, losses]))
    rows = np.arange(len(both) * answers)
    first = (both[:, :1] * answers + np.arange(answers)).ravel()
    second = (both[:, 1:] * answers + np.arange(answers)).ravel()
    size = places * answers
    entries = np.concatenate([np.ones(len(rows)), -np.repeat(factor, answers)])
    where = (np.concatenate([rows, rows]), np.concatenate([first, second]))
    bounds = sparse.csr_array((entries, where), shape=(len(rows), size))
    sums = sparse.kron(sparse.eye_array(places), np.ones((1, answers)), format="csr")
    solve: Any = linprog
    found = solve(
        (prior[:, None] * distance).ravel(),
        A_ub=bounds, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(places),
        method="highs-ds" if size <= 400 else "highs-ipm",
    )  # fmt: skip
    if found.x is None:
        raise ArgumentError(f"losses must leave a mechanism, got {found.message}")
    matrix = np.maximum(found.x.reshape(places, answers), 0.0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return _within(matrix, both, factor)


def _within(matrix: FloatArray, pairs: IntArray, factor: FloatArray) -> FloatArray:
    """The matrix mixed with the uniform one until every ratio holds."""
    answers = matrix.shape[1]
    over = matrix[pairs[:, 0]] - factor[:, None] * matrix[pairs[:, 1]]
    worst = over.max(axis=1, initial=0.0)
    # (1 - a) over <= a (factor - 1) / answers; a little more than that, for rounding.
    need = worst / (worst + (factor - 1) / answers)
    share = min(1.0, 1e-12 + 1.001 * float(need.max(initial=0.0)))
    return np.asarray((1 - share) * matrix + share / answers)


def regions_of(places: FloatArray, most: int = MOST_REGIONS) -> IntArray:
    """The square region of each place, of the smallest side that gives at most so many."""
    extent = np.ptp(places, axis=0).max() + 1e-9
    for parts in range(int(np.ceil(np.sqrt(len(places)))) + 1, 0, -1):
        side = extent / parts
        cell = np.floor((places - places.min(axis=0)) / side).astype(np.int64)
        _, number = np.unique(cell, axis=0, return_inverse=True)
        if number.max() + 1 <= most:
            break
    return np.asarray(number.ravel(), dtype=np.int64)


class OptimalOnRegions(OneLaw):
    """The linear program on a map of square regions, answered by their middle places.

    Regions with linked places lose at most epsilon, so every linked pair keeps the policy's
    promise; two places of one region lose nothing. What a program cannot do is a map of a
    thousand places, so its answers are as coarse as its regions.
    """

    name = "optimal on regions (LP)"
    source = "Bordenabe, Chatzikokolakis, Palamidessi 2014"
    promise = (
        "Two linked places lose at most epsilon at each answer, whatever is known beforehand; "
        "the error is the least possible for one answer on regions, if the prior is right."
    )

    def __init__(
        self,
        world: World,
        budget: Budget,
        every: int = 1,
        at: tuple[int, ...] = (),
        most: int = 0,
    ) -> None:
        super().__init__(world, budget, every, at)
        self.region = regions_of(world.places, most or MOST_REGIONS)

    @cached_property
    def middles(self) -> IntArray:
        """For each region its place with the least expected distance to its others."""
        world, chosen = self.world, []
        for number in range(int(self.region.max()) + 1):
            inside = np.flatnonzero(self.region == number)
            far = world.prior[inside] @ world.apart[np.ix_(inside, inside)]
            chosen.append(inside[far.argmin()])
        return np.array(chosen, dtype=np.int64)

    @cached_property
    def matrix(self) -> FloatArray:
        """P(answer | region)."""
        world, count = self.world, len(self.middles)
        plan = Plan(world.policy, world.query)
        edges = plan.at(np.ones(world.query.n_states, dtype=bool)).policy.edges
        pairs = np.unique(np.sort(self.region[edges], axis=1), axis=0)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        weights = np.zeros((count, world.query.n_states))
        weights[self.region, np.arange(world.query.n_states)] = world.prior
        prior = weights.sum(axis=1)
        distance = weights @ world.apart[:, self.middles] / prior[:, None]
        return solve_optimal(prior, distance, pairs, np.full(len(pairs), self.epsilon))

    def draw(self, places: IntArray, rng: np.random.Generator) -> FloatArray:
        """The middle of a region drawn from the row of each place's own."""
        reached = self.matrix.cumsum(axis=1)[self.region[places]]
        drawn = (rng.random((len(places), 1)) * reached[:, -1:] >= reached).sum(axis=1)
        return self.world.places[self.middles[np.minimum(drawn, len(self.middles) - 1)]]

    def log_likelihoods(self, answers: FloatArray) -> FloatArray:
        """The logarithm of the matrix's column, for every place."""
        middles = self.world.places[self.middles]
        number = np.hypot(*(answers[:, None] - middles[None, :]).T).T.argmin(axis=1)
        return np.asarray(np.log(self.matrix[:, number].T[:, self.region]))
