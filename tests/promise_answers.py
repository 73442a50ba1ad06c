"""Answers in small worlds, and what they tell, computed a second time.

From the paper's definitions and in fractions. An answer z about a state s has probability
proportional to exp(-epsilon ||z - f(s)||), so between two states it tells at most epsilon times the
norm of the difference of their answers, once a state outside the possible set is replaced by the
one that is answered in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, inf

import numpy as np
import pytest

from dphmm import (
    Release,
    SeededRandomness,
)
from dphmm.release.said import Said

Loss = Fraction | float


Point = tuple[int, ...]


CONDITION = "for people who move as the model says is possible from its start"


FLOATS = 1e-9
"""How far the floats of likelihoods and odds may be off, relatively."""


ANSWERS, LINKS = [0, 100, 110, 1, 111], {(0, 1), (0, 3), (2, 4)}


def seeded(seed: int = 0) -> SeededRandomness:
    return SeededRandomness(np.random.default_rng(seed))


@lru_cache(maxsize=100_000)
def gauge(corners: tuple[Point, ...], vector: Point) -> Loss:
    """The norm of a vector for the body with these corners, on a line or in the plane.

    The smallest a + b with vector = a p + b q, a and b not negative, over all pairs of corners.
    """
    if not any(vector):
        return Fraction(0)
    pairs = product(corners, repeat=2)
    sizes = [size for p, q in pairs if (size := combination(p, q, vector)) is not None]
    return min(sizes, default=inf)


def combination(p: Point, q: Point, vector: Point) -> Fraction | None:
    """The a + b of one pair of corners, if the vector lies between them."""
    if p == q:
        shares = {Fraction(v, x) for v, x in zip(vector, p, strict=True) if x}
        outside = any(v for v, x in zip(vector, p, strict=True) if not x)
        return min(shares) if len(shares) == 1 and min(shares) > 0 and not outside else None
    if len(vector) == 1 or not (area := p[0] * q[1] - p[1] * q[0]):
        return None
    a = Fraction(vector[0] * q[1] - vector[1] * q[0], area)
    b = Fraction(p[0] * vector[1] - p[1] * vector[0], area)
    return a + b if min(a, b) >= 0 else None


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer that was given, with the law that it followed."""

    time: int
    query: str
    points: tuple[Point, ...]
    lattice: Point
    epsilon: Fraction
    gamma: Fraction | None
    corners: tuple[Point, ...]
    possible: tuple[bool, ...]
    text: str
    """The sentence that came with it."""

    @classmethod
    def of(cls, said: Said, release: Release) -> Answer:
        assert (release.time, release.epsilon) == (said.time, said.epsilon)
        body = [] if said.step.is_lone else said.step.body.lattice_vertices.tolist()
        answer = cls(
            said.time,
            said.query.name,
            tuple(map(tuple, said.query.points.tolist())),
            tuple(map(int, release.lattice)),
            said.epsilon,
            None if said.step.is_lone else said.step.mechanism(said.epsilon).gamma,
            tuple(sorted({tuple(sign * x for x in v) for v in body for sign in (1, -1)})),
            tuple(said.step.possible.tolist()),
            release.statement,
        )
        if not said.step.is_lone:
            # The law by which the answer was drawn is the one that this test computes with.
            logs = said.step.mechanism(said.epsilon).lattice_log_probability(said.lattice)
            for state in np.flatnonzero(said.step.possible).tolist():
                expected = -float(answer.distance(answer.lattice, state))
                constant = said.step.mechanism(said.epsilon).log_normalizer
                assert logs[state] == pytest.approx(expected - constant, rel=FLOATS, abs=FLOATS)
        return answer

    def spoken(self, state: int) -> Point:
        """What a state is answered around: its own point, or that of its stand-in."""
        if self.possible[state]:
            return self.points[state]
        near = (
            (sum((a - b) ** 2 for a, b in zip(point, self.points[state], strict=True)), number)
            for number, point in enumerate(self.points)
            if self.possible[number]
        )
        return self.points[min(near)[1]]

    def norm(self, point: Point, state: int) -> Loss:
        """The norm between a point and what a state is answered around."""
        apart = tuple(a - b for a, b in zip(point, self.spoken(state), strict=True))
        return gauge(self.corners, apart)

    def distance(self, point: Point, state: int) -> Loss:
        """Minus the log-likelihood of a point in a state: of K-norm noise, or of a staircase."""
        norm = self.norm(point, state)
        if norm < inf and self.gamma is not None:
            norm = Fraction(ceil(max(norm - self.gamma, 0)))
        return inf if norm == inf else self.epsilon * norm

    def told(self, j: int, k: int) -> Loss:
        """The most that an answer by this law tells between two states.

        Norms obey the triangle inequality, so norms of one point differ by at most that of the
        two answers' difference, and rounded up by at most that rounded up.
        """
        norm = self.norm(self.spoken(j), k)
        if norm < inf and self.gamma is not None:
            norm = Fraction(ceil(norm))
        return inf if norm == inf else self.epsilon * norm

    def gives(self, state: int) -> bool:
        """Whether somebody in a state could have got this very answer."""
        return self.distance(self.lattice, state) < inf
