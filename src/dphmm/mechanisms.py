"""Exact K-norm noise on the lattice: sample, log-probability, error.

P(z | s) is proportional to exp(-epsilon ||z - f(s)||_K) over the lattice points z of
f(s) + span K. The normaliser is the same for every state, so on an edge the ratio is at
most e^epsilon, exactly. Sampling cuts K into half-open cones over its boundary simplices:
a lattice point of such a cone is one of D = |det| points of a parallelepiped plus whole
multiples of the generators, and the norm is linear there. Everything is integer arithmetic
on uniform words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import exp, log, log1p

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, Mask
from dphmm.errors import ArgumentError, GeometryError
from dphmm.hull import SensitivityHull
from dphmm.lattice import adjugate, determinant, exact_product, hermite, largest
from dphmm.query import LATTICE_LIMIT, Query
from dphmm.randomness import Randomness, SecureRandomness, Words
from dphmm.shapes import enlarged

__all__ = ["Mechanism", "body_for"]

MAX_SUMMED = 2**25
"""Lattice sums are taken term by term up to this many cosets, about half a second."""


def body_for(
    mechanism: str, shape: str = "hull"
) -> Callable[[SensitivityHull], SensitivityHull] | None:
    """What a mechanism's name makes of the policy's hull; None leaves it as it is.

    `isotropic` is K-norm noise under another name: transforming K and back changes nothing.
    """
    bodies = {"knorm": None, "isotropic": None, "laplace": SensitivityHull.l1_ball}
    if mechanism == "reference_knorm":
        raise ArgumentError(
            "mechanism must be knorm, laplace or isotropic, got 'reference_knorm', which is for "
            "tests and plots: the last bits of its floats tell linked states apart"
        )
    if mechanism not in bodies:
        raise ArgumentError(f"mechanism must be knorm, laplace or isotropic, got {mechanism!r}")
    if shape not in ("hull", "enlarged"):
        raise ArgumentError(f"shape must be hull or enlarged, got {shape!r}")
    if shape == "enlarged":
        if mechanism == "laplace":
            raise ArgumentError("shape 'enlarged' must go with knorm, got laplace")
        return enlarged
    return bodies[mechanism]


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """K-norm noise for one query, one body and one epsilon.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> mechanism = Mechanism(query, SensitivityHull.from_vertices([[1, -1], [4, 1]]), Fraction(1))
    >>> answer = mechanism.sample(1)
    >>> answer.dtype, answer.shape
    (dtype('int64'), (2,))
    """

    query: Query
    body: SensitivityHull
    epsilon: Fraction

    def sample(
        self,
        state: int,
        randomness: Randomness | None = None,
        context: tuple[bytes, ...] = (),
        possible: Mask | None = None,
    ) -> IntArray:
        """The lattice answer for a state: this is where a true state meets noise.

        A state that is not possible is answered as the possible one with the nearest answer.
        """
        if not 0 <= state < self.query.n_states:
            raise ArgumentError(f"state must be one of the {self.query.n_states} states")
        if possible is not None and not possible[state]:
            (state,) = self.query.nearest_states([state], possible)
        source = SecureRandomness() if randomness is None else randomness
        words = source.words((*context, *self.law), state)
        noise = fan_of(self.body).draw(self.epsilon, words)
        point = self.query.points[state].tolist()
        return lattice_vector([p + n for p, n in zip(point, noise, strict=True)])

    @property
    def law(self) -> tuple[bytes, ...]:
        """All that decides the distribution of an answer, for keyed noise."""
        return (self.query.digest, self.body.digest, str(self.epsilon).encode())

    def log_likelihood(self, answer: ArrayLike) -> FloatArray:
        """-epsilon ||z - f(s)||_K for every state: its log-probability but for one constant.

        Minus infinity exactly where the answer lies outside the state's span.
        """
        norms = self.body.lattice_norms(lattice_vector(answer) - self.query.points)
        return np.multiply(norms, -float(self.epsilon), out=norms)

    def log_probability(self, answer: ArrayLike) -> FloatArray:
        """The logarithm of P(answer | s) for every state."""
        return self.log_likelihood(answer) - self.log_normalizer

    @cached_property
    def log_normalizer(self) -> float:
        """log of the sum of exp(-epsilon ||x||_K) over the lattice of the span."""
        return self._moments[0]

    @cached_property
    def mean_squared_error(self) -> float:
        """E|z - f(s)|^2 in the units of the query, summed over the lattice.

        Above 2**25 cosets, where the lattice is a millionth of the hull, the continuous
        formula stands in.
        """
        return self._moments[1] * float(self.query.step) ** 2

    @cached_property
    def _moments(self) -> tuple[float, float]:
        body, rank = self.body, self.body.rank
        if rank == 0:
            return 0.0, 0.0
        epsilon = float(self.epsilon)
        total = sum(body.determinants)
        if total > MAX_SUMMED:
            error = float(body.mean_squared_error(self.epsilon) / body.step**2)
            return log(total) - rank * log(epsilon), error
        mass, second = fan_of(body).sums(epsilon)
        return log(mass) - rank * log1p(-exp(-epsilon)), second / mass


def lattice_vector(entries: ArrayLike) -> IntArray:
    """Integers as an array: 64-bit if their differences from a query's points fit, else Python's.

    NumPy left alone would make floats of integers beyond 63 bits.
    """
    vector = np.array(entries, dtype=object)
    if not all(isinstance(entry, (int, np.integer)) for entry in vector.flat):
        raise ArgumentError("answer must be integers on the query's lattice")
    return vector.astype(np.int64) if largest(vector) < LATTICE_LIMIT else vector


@dataclass(frozen=True)
class Cone:
    """The half-open cone over one boundary simplex, in the coordinates of the span."""

    generators: list[list[int]]
    adjugate: list[list[int]]
    volume: int
    strict: list[bool]
    """Which sides the cone does not own: there the first whole layer is one step out."""


@dataclass(frozen=True, eq=False)
class Fan:
    """Every lattice point of the span once, by half-open cones over K's boundary."""

    body: SensitivityHull
    cones: list[Cone]

    @cached_property
    def _edges(self) -> list[int]:
        return list(accumulate(cone.volume for cone in self.cones))

    def draw(self, epsilon: Fraction, words: Words) -> list[int]:
        """One noise vector on the lattice, exactly with probability exp(-epsilon ||.||_K)/Z."""
        if not self.cones:
            return [0] * self.body.dimension
        p, q = epsilon.numerator, epsilon.denominator
        while True:
            cone = self.cones[bisect_right(self._edges, words.below(self._edges[-1]))]
            layer = self._parallelepiped_point(cone, words)
            if _bernoulli_exp(p * sum(layer), q * cone.volume, words):
                break
        layer = [n + cone.volume * _geometric(p, q, words) for n in layer]
        inside = [
            sum(n * v[axis] for n, v in zip(layer, cone.generators, strict=True)) // cone.volume
            for axis in range(self.body.rank)
        ]
        basis = self.body.basis.tolist()
        return [
            sum(y * row[axis] for y, row in zip(inside, basis, strict=True))
            for axis in range(self.body.dimension)
        ]

    def _parallelepiped_point(self, cone: Cone, words: Words) -> list[int]:
        """The numerators n_j of a uniform point sum (n_j / D) v_j of the half-open cell."""
        rank, volume = self.body.rank, cone.volume
        x = [words.below(volume) for _ in range(rank)]
        layer = [sum(x[i] * cone.adjugate[i][j] for i in range(rank)) % volume for j in range(rank)]
        return [
            volume if strict and n == 0 else n for n, strict in zip(layer, cone.strict, strict=True)
        ]

    def sums(self, epsilon: float) -> tuple[float, float]:
        """The sums of exp(-epsilon g) and of it times E|w + V m|^2 over every cell point w."""
        decay = exp(-epsilon)
        mean, variance = decay / (1 - decay), decay / (1 - decay) ** 2
        mass = second = 0.0
        for cone in self.cones:
            diagonal = [row[i] for i, row in enumerate(hermite(cone.generators))]
            weight, first, pairs = kernels.cells.moments(
                np.array(diagonal, dtype=np.int64),
                np.array([[a % cone.volume for a in row] for row in cone.adjugate], dtype=np.int64),
                cone.volume,
                np.array(cone.strict),
                epsilon,
            )
            vectors = exact_product(np.array(cone.generators, dtype=object), self.body.basis)
            vectors = vectors.astype(np.float64)
            gram = vectors @ vectors.T
            pairs = pairs + mean * (first[:, None] + first[None, :]) + weight * mean**2
            mass += weight
            second += float((pairs * gram).sum() + weight * variance * np.trace(gram))
        return mass, second


def fan_of(body: SensitivityHull) -> Fan:
    """The checked fan of a body, made once; a failed check raises and releases nothing."""
    fan = body.__dict__.get("_fan")
    if fan is None:
        fan = Fan(body, _checked_cones(body))
        body.__dict__["_fan"] = fan
    return fan


def _checked_cones(body: SensitivityHull) -> list[Cone]:
    if body.rank == 0:
        return []
    _check_facets(body)
    parts = []
    for simplex in body.body.simplices:
        generators = [[int(x) for x in corner] for corner in body.body.corners[simplex]]
        volume = determinant(generators)
        sign = 1 if volume > 0 else -1
        if volume == 0:
            raise GeometryError("a boundary simplex is flat; nothing was released")
        parts.append((generators, [[sign * a for a in row] for row in adjugate(generators)]))
    # Larger than every root of every adjugate column read as a polynomial: on no side of any cone.
    base = 2 + max(abs(a) for _, inverse in parts for row in inverse for a in row)
    generic = [base**i for i in range(body.rank)]
    cones, inner = [], 0
    for (generators, inverse), volume in zip(parts, body.determinants, strict=True):
        sides = [
            sum(g * row[j] for g, row in zip(generic, inverse, strict=True))
            for j in range(body.rank)
        ]
        if 0 in sides:
            raise GeometryError(
                "the generic direction of a fan lies on a side; nothing was released"
            )
        inner += min(sides) > 0
        cones.append(Cone(generators, inverse, volume, [side < 0 for side in sides]))
    if inner != 1:
        raise GeometryError(
            f"{inner} cones of a fan hold the generic direction; nothing was released"
        )
    return cones


def _check_facets(body: SensitivityHull) -> None:
    """Every facet supports K, every simplex lies in one, every ridge belongs to two."""
    shape = body.body
    heights = exact_product(shape.corners, shape.normals.T)
    if (shape.offsets <= 0).any() or (np.abs(heights) > shape.offsets).any():
        raise GeometryError("a facet of a hull cuts off a corner; nothing was released")
    on_facet = np.concatenate([heights == shape.offsets, heights == -shape.offsets], axis=1)
    held = np.all(on_facet[shape.simplices], axis=1)
    if not np.any(held, axis=1).all():
        raise GeometryError("a boundary simplex is in no facet; nothing was released")
    ridges: dict[tuple[int, ...], int] = {}
    for simplex in np.sort(shape.simplices, axis=1).tolist():
        for i in range(body.rank):
            ridge = tuple(simplex[:i] + simplex[i + 1 :])
            ridges[ridge] = ridges.get(ridge, 0) + 1
    if set(ridges.values()) != {2}:
        raise GeometryError("the boundary of a hull is not closed; nothing was released")


def _bernoulli_exp(numerator: int, denominator: int, words: Words) -> bool:
    """True with probability exp(-numerator/denominator), exactly (Canonne et al. 2020)."""
    while numerator > denominator:
        if not _bernoulli_exp(1, 1, words):
            return False
        numerator -= denominator
    if numerator == 0:
        return True
    k = 1
    while words.below(k * denominator) < numerator:
        k += 1
    return k % 2 == 1


def _geometric(p: int, q: int, words: Words) -> int:
    """m with probability proportional to exp(-m p/q), exactly (Canonne et al. 2020)."""
    while True:
        remainder = words.below(q)
        if _bernoulli_exp(remainder, q, words):
            break
    whole = 0
    while _bernoulli_exp(1, 1, words):
        whole += 1
    return (remainder + q * whole) // p
