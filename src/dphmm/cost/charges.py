"""What one answer costs: the worst pair of possible states (Theorem 6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import IntArray, ObjectArray
from dphmm.geometry.exact import Exact, as_epsilon, as_text
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.lattice import exact_product
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask, state_numbers
from dphmm.noise.staircase import as_gamma, largest_loss

Loss: TypeAlias = Fraction | float
"""An exact fraction, or a float that is infinite or rounded up."""


@dataclass(frozen=True, init=False, repr=False)
class Charge:
    """One answer: the query, the body that shapes the noise, and the epsilon it was given.

    Args:
        query: What is asked: the answer of every state.
        hull: The body that shaped the noise, on the lattice of the query.
        epsilon: What the answer costs between two linked states; 0.1 and "0.1" are both a tenth.
        gamma: That of staircase noise; None for K-norm noise.

    >>> Charge(Query([0, 1, 3]), SensitivityHull.from_vertices([[1]]), "0.5").epsilon
    Fraction(1, 2)
    """

    query: Query
    hull: SensitivityHull
    epsilon: Fraction
    gamma: Fraction | None

    def __init__(
        self, query: Query, hull: SensitivityHull, epsilon: Exact, gamma: Exact | None = None
    ) -> None:
        check_body(hull, query)
        law = as_epsilon(epsilon), as_gamma(gamma)
        for name, value in zip(
            ("query", "hull", "epsilon", "gamma"), (query, hull, *law), strict=True
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        steps = "" if self.gamma is None else f", gamma={as_text(self.gamma)}"
        return f"Charge({self.query!r}, {self.hull!r}, epsilon={as_text(self.epsilon)}{steps})"

    def loss(self, norm: Loss) -> Loss:
        """What the answer tells at most about two states whose answers are this far apart.

        Args:
            norm: The norm of the difference of their answers.
        """
        return largest_loss(norm, self.epsilon, self.gamma is not None)

    @property
    def denominator(self) -> int:
        """A number of which every loss between two states is a whole part."""
        offsets = [] if self.gamma is not None else map(int, self.hull.body.offsets)
        return self.epsilon.denominator * lcm(*offsets)

    def heights(self, states: IntArray) -> tuple[ObjectArray, IntArray]:
        """The facets' integer heights at each state, and the coset of the span it lies in.

        Two states of one coset differ in norm by max_h |height difference| / offset; two of
        different cosets by infinity.

        Args:
            states: State numbers.
        """
        states = np.atleast_1d(state_numbers(states, self.query.n_states, "states"))
        moved = exact_product(self.query.points[states], self.hull.transform)
        rank = self.hull.rank
        heights = exact_product(moved[:, :rank], self.hull.body.normals.T)
        if rank == self.hull.dimension:
            return heights, np.zeros(len(states), dtype=np.int64)
        outside = moved[:, rank:]
        # numpy sorts rows of 64-bit numbers or of text, not of Python integers
        comparable = outside.astype(str) if outside.dtype == object else outside
        return heights, np.unique(comparable, axis=0, return_inverse=True)[1].ravel()


class WorstPair(NamedTuple):
    """The two possible states that an answer tells apart most, and what that costs."""

    epsilon: Loss
    first: int
    second: int


def constrained_epsilon(
    query: Query,
    hull: SensitivityHull,
    epsilon: Exact,
    possible: ArrayLike | None = None,
    gamma: Exact | None = None,
) -> Loss:
    """The loss between any two possible states: max ||f(j) - f(k)||_K epsilon (Theorem 6.3).

    Exact, and infinite if two possible answers differ by something outside the span of K. A
    norm is the largest of its facets' heights, so the facets' spans decide; no pair is formed.

    Args:
        query: What is asked: the answer of every state.
        hull: The body that shapes the noise, on the lattice of the query.
        epsilon: What the answer costs between two linked states; 0.1 and "0.1" are both a tenth.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.
        gamma: That of staircase noise, where norms are rounded up; None for K-norm noise.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> hull = SensitivityHull.from_vertices([[-1, 1], [4, 1], [1, 1], [3, 0]])
    >>> constrained_epsilon(query, hull, 1)
    Fraction(2, 1)
    >>> constrained_epsilon(query, SensitivityHull.from_vertices([[1, 1]]), 1)
    inf
    """
    return worst_pair(query, hull, epsilon, possible, gamma).epsilon


def worst_pair(
    query: Query,
    hull: SensitivityHull,
    epsilon: Exact,
    possible: ArrayLike | None = None,
    gamma: Exact | None = None,
) -> WorstPair:
    """The pair behind `constrained_epsilon`; both states are public, being any two possible.

    Args:
        query: What is asked: the answer of every state.
        hull: The body that shapes the noise, on the lattice of the query.
        epsilon: What the answer costs between two linked states; 0.1 and "0.1" are both a tenth.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.
        gamma: See `constrained_epsilon`.

    >>> worst_pair(Query([0, 1, 3]), SensitivityHull.from_vertices([[1]]), 1)
    WorstPair(epsilon=Fraction(3, 1), first=0, second=2)
    """
    charge = Charge(query, hull, epsilon, gamma)
    return worst_of(charge, np.flatnonzero(possible_mask(possible, query.n_states)))


def worst_of(charge: Charge, states: IntArray) -> WorstPair:
    """The worst pair among some states."""
    heights, cosets = charge.heights(states)
    elsewhere = np.flatnonzero(cosets != cosets[0])
    if len(elsewhere):
        return WorstPair(inf, int(states[0]), int(states[elsewhere[0]]))
    worst = WorstPair(Fraction(0), int(states[0]), int(states[0]))
    if not heights.shape[1]:
        return worst
    highest, lowest = heights.argmax(axis=0), heights.argmin(axis=0)
    for h, offset in enumerate(charge.hull.body.offsets.tolist()):
        spread = int(heights[highest[h], h]) - int(heights[lowest[h], h])
        loss = charge.loss(Fraction(spread, offset))
        if loss > worst.epsilon:
            ends = sorted((int(states[highest[h]]), int(states[lowest[h]])))
            worst = WorstPair(loss, ends[0], ends[1])
    return worst
