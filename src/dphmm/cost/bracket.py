"""A bracket around the cost of a sequence, for more states than pairs can be tabulated for.

A norm is the largest of its facets' heights. For a fixed choice of one facet at every time
the two paths decouple: one climbs as high as it can along the facets, the other as low. Good
facets for two paths and good paths for the facets are found in turn; every pair of paths met
on the way is a lower bound, computed exactly at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import FloatArray, IntArray
from dphmm.cost.charges import Charge, Loss, loss_at
from dphmm.cost.history import History
from dphmm.cost.sequences import paper_sequence_epsilon
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.states import state_numbers

__all__ = ["Bracket", "path_epsilon", "sequence_bracket"]

ROUNDS = 50
"""Ascents end by themselves after a handful of rounds; this ends one that floats keep going."""

TIMES = 8
"""How many ascents begin at a single time."""


@dataclass(frozen=True)
class Bracket:
    """Two ends with the value between them, and where each end comes from."""

    lower: Loss
    """What two paths attain."""
    upper: Loss
    """What no two paths pass."""
    lower_from: str = "facet sequence"
    """Where the lower end comes from."""
    upper_from: str = "Theorem 7.2"
    """Where the upper end comes from."""

    @property
    def is_tight(self) -> bool:
        """Whether the ends meet, so that the value is known."""
        return self.lower == self.upper

    @property
    def found(self) -> Loss | Bracket:
        """The value where it is known, else the bracket."""
        return self.upper if self.is_tight else self


def path_epsilon(history: History, path: ArrayLike, other: ArrayLike) -> Loss:
    """The loss between two given paths, exactly: the sum of what each release tells.

    Args:
        history: What was released, or will be, step by step.
        path: One state for each step; nobody asks whether the chain can take it.
        other: Another.
    """
    expect(history, History, "history")
    n_states = history.models[0].n_states
    pair = state_numbers(path, n_states, "path"), state_numbers(other, n_states, "other")
    for name, states in zip(("path", "other"), pair, strict=True):
        if states.shape != (len(history),):
            raise ArgumentError(f"{name} must have one state for each of {len(history)} steps")
    total: Loss = Fraction(0)
    for answers, j, k in zip(history.charges, *pair, strict=True):
        for charge in answers:
            points = charge.query.points
            total += loss_at(charge, charge.hull.lattice_norm(points[j] - points[k]))
    return total


def sequence_bracket(history: History) -> Bracket:
    """A lower and an upper bound of `sequence_epsilon`, in O(T E) a round and without pairs.

    Above is what the paper's Theorem 7.2 gives, below what two paths attain that were found
    by alternating ascent. Where the two meet, the value is exact.

    Args:
        history: What was released, or will be, step by step.

    >>> from dphmm.geometry.hull import SensitivityHull
    >>> from dphmm.chain.markov import MarkovModel
    >>> from dphmm.geometry.query import Query
    >>> ring = MarkovModel([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> body = SensitivityHull.from_vertices([[1]])
    >>> bracket = sequence_bracket(History.of(Query([0, 0, 10]), ring, [body] * 6, 1))
    >>> bracket.lower, bracket.upper, bracket.is_tight
    (Fraction(40, 1), Fraction(60, 1), False)
    """
    upper = paper_sequence_epsilon(history)
    if upper == inf:
        return Bracket(inf, inf, lower_from="a release outside the span of its hull")
    best: Loss = Fraction(0)
    climber = _Climber(history)
    for weights in climber.beginnings():
        best = max(best, path_epsilon(history, *climber.climb(weights)))
        if best == upper:
            break
    return Bracket(best, upper)


def _directions(history: History) -> list[FloatArray]:
    """Axes and, in up to three dimensions, their diagonals."""
    dimensions = {charge.query.dimension for charge, _ in history.answers()}
    size = max(dimensions, default=1)
    if size > 3:
        return list(np.eye(size))
    signs = [np.array(signs, dtype=np.float64) for signs in product((-1, 0, 1), repeat=size)]
    return signs[: len(signs) // 2]


class _Climber:
    """Alternating ascent over facets and paths, in floats: it proposes, integers decide.

    It climbs by norms, which for a staircase are not the losses but close to them.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.states = [history.states(step) for step in range(len(history))]
        kinds = history.kinds()
        first = {kind: step for step, kind in reversed([*enumerate(kinds)][1:])}
        moves = {kind: history.moves(step) for kind, step in first.items()}
        self.moves = [moves[kind] for kind in kinds[1:]]
        known: dict[tuple[int, bytes], FloatArray] = {}
        self.heights: list[list[FloatArray]] = []
        for states, answers in zip(self.states, history.charges, strict=True):
            row = []
            for charge in answers:
                key = (id(charge), states.tobytes())
                if key not in known:
                    known[key] = _float_heights(charge, states)
                row.append(known[key])
            self.heights.append(row)

    def beginnings(self) -> Iterator[list[FloatArray]]:
        """Weights of all states at all times, to begin with: a direction, or one time alone.

        Along a direction two paths drift apart and stay there; on a ring no path is further
        along than another, and two are told apart by when they pass.
        """
        for direction in _directions(self.history):
            yield [
                sum((_along(c, states, direction) for c in answers), np.zeros(len(states)))
                for states, answers in zip(self.states, self.history.charges, strict=True)
            ]
        for time in np.unique(np.linspace(0, len(self.states) - 1, TIMES).astype(int)):
            weights = [np.zeros(len(states)) for states in self.states]
            for heights in self.heights[time]:
                if heights.size:
                    weights[time] += heights[:, np.argmax(heights.max(axis=0))]
            yield weights

    def climb(self, weights: list[FloatArray]) -> tuple[IntArray, IntArray]:
        """Two paths that no change of facets alone, nor of paths alone, drives further apart."""
        high, low = self._longest(weights, 1.0), self._longest(weights, -1.0)
        apart = self._apart(high, low)
        for _ in range(ROUNDS):
            weights = self._facing(high, low)
            new_high, new_low = self._longest(weights, 1.0), self._longest(weights, -1.0)
            further = self._apart(new_high, new_low)
            if further <= apart:
                break
            high, low, apart = new_high, new_low, further
        return self._numbered(high), self._numbered(low)

    def _apart(self, high: IntArray, low: IntArray) -> float:
        return sum(
            float(np.abs(heights[high[step]] - heights[low[step]]).max(initial=0.0))
            for step, row in enumerate(self.heights)
            for heights in row
        )

    def _facing(self, high: IntArray, low: IntArray) -> list[FloatArray]:
        """The heights of all states along the facet that faces from one path to the other."""
        weights = []
        for step, row in enumerate(self.heights):
            total = np.zeros(len(self.states[step]))
            for heights in row:
                gaps = heights[high[step]] - heights[low[step]]
                if gaps.size:
                    facet = int(np.argmax(np.abs(gaps)))
                    total += heights[:, facet] * (1.0 if gaps[facet] >= 0 else -1.0)
            weights.append(total)
        return weights

    def _longest(self, weights: list[FloatArray], sign: float) -> IntArray:
        """The path with the largest sum of sign times weights, by its places in `states`."""
        values = sign * weights[0]
        chosen = []
        for moves, weight in zip(self.moves, weights[1:], strict=True):
            values, before = kernels.pairs.best_predecessors(values, *moves)
            values = values + sign * weight
            chosen.append(before)
        path = [int(np.argmax(values))]
        for before in reversed(chosen):
            path.append(int(before[path[-1]]))
        return np.array(path[::-1], dtype=np.int64)

    def _numbered(self, places: IntArray) -> IntArray:
        return np.array([s[p] for s, p in zip(self.states, places, strict=True)], dtype=np.int64)


def _float_heights(charge: Charge, states: IntArray) -> FloatArray:
    heights, _ = charge.heights(states)
    offsets = charge.hull.body.offsets.astype(np.float64)
    raised: FloatArray = (heights - heights.min(axis=0)).astype(np.float64)
    return np.asarray(raised * (float(charge.epsilon) / offsets))


def _along(charge: Charge, states: IntArray, direction: FloatArray) -> FloatArray:
    answers = charge.query.points[states].astype(np.float64)
    return np.asarray((answers - answers.mean(axis=0)) @ direction[: charge.query.dimension])
