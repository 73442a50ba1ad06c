"""A body's lattice cut into half-open cones, and noise drawn from it with integers.

A lattice point of the cone over a boundary simplex is one of D = |det| points of a
half-open parallelepiped plus whole multiples of the simplex's corners, and the norm is
linear there. So a cone, a point of its cell and the multiples can be drawn one after the
other, each exactly, from uniform words.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ceil, exp, expm1, factorial
from typing import Any

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray
from dphmm.errors import GeometryError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import SAFE, adjugate, determinant, exact_product, hermite, largest
from dphmm.noise.coins import bernoulli_exp, geometric
from dphmm.noise.drawing import LEVELS, WIDE, Compiled, Sampler
from dphmm.noise.randomness import Words
from dphmm.noise.staircase import radial_sum

__all__ = ["Cone", "Fan", "fan_of"]

MAX_SUMMED = 2**25
"""Lattice sums are taken term by term up to this many cosets, about half a second."""


@dataclass(frozen=True)
class Cone:
    """The half-open cone over one boundary simplex, in the coordinates of the span."""

    generators: list[list[int]]
    adjugate: list[list[int]]
    volume: int
    strict: list[bool]
    """Which sides the cone does not own: there the first whole layer is one step out."""


@dataclass(frozen=True, eq=False)
class Fan(Sampler):
    """Every lattice point of the span once, by half-open cones over K's boundary."""

    body: SensitivityHull
    cones: list[Cone]
    gamma: Fraction | None = None
    """Of staircase noise: a point's layer is that of its cell's point and its multiples."""

    @cached_property
    def _edges(self) -> list[int]:
        return list(accumulate(cone.volume for cone in self.cones))

    def words_wanted(self, epsilon: float) -> int:
        """Words that are nearly always enough: twice what an answer takes on average."""
        rank = self.body.rank
        kept = -expm1(-epsilon)
        if self.gamma is None:
            tries = (epsilon / kept) ** rank
        else:
            tries = factorial(rank) / (kept ** (rank + 1) * radial_sum(rank, self.gamma, epsilon))
        return ceil(2 * tries * (rank + 4) + 12 * rank)

    def _compile(self, epsilon: Fraction) -> Compiled | None:
        p, q = epsilon.numerator, epsilon.denominator
        if not self.cones or self._arrays is None or max(p, q * LEVELS) >= SAFE:
            return None
        widest = max(p * self.body.rank, q * LEVELS) * self._largest
        # One multiple less, for the cell's own point: noise stays within 2**62.
        prices = p, q, SAFE // (self.body.rank * self._reach) - 1
        if self._is_narrow and widest < SAFE:
            return kernels.sampler.draw_many, (*self._arrays, *prices)
        if widest >= WIDE:
            return None
        return kernels.sampler.wide_draw_many, (*self._unsigned, *prices)

    @cached_property
    def _largest(self) -> int:
        return max(cone.volume for cone in self.cones)

    @cached_property
    def _reach(self) -> int:
        return max(1, largest(self.body.lattice_vertices))

    @cached_property
    def _is_narrow(self) -> bool:
        """Whether the products of every cell fit one word."""
        return self._largest < 2**31 and self.body.rank * self._largest * self._reach < SAFE

    @cached_property
    def _arrays(self) -> tuple[Any, ...] | None:
        widest = self.body.rank * self._largest * max(self._largest, self._reach)
        if widest >= WIDE or max(self._edges[-1], self.body.rank * self._largest) >= SAFE:
            return None
        inverses = [[[a % c.volume for a in row] for row in c.adjugate] for c in self.cones]
        generators = [exact_product(np.array(c.generators), self.body.basis) for c in self.cones]
        return (
            np.array(self._edges, dtype=np.int64),
            np.array([cone.volume for cone in self.cones], dtype=np.int64),
            np.array(inverses, dtype=np.int64),
            np.array([cone.strict for cone in self.cones]),
            np.array(generators, dtype=np.int64),
            np.array([] if self.gamma is None else self._free, dtype=np.int64),
        )

    @cached_property
    def _free(self) -> list[int]:
        """For every cone, the whole part of gamma times its volume: up to here layer 0 goes."""
        g, h = (self.gamma or Fraction(1)).as_integer_ratio()
        return [g * cone.volume // h for cone in self.cones]

    @cached_property
    def _unsigned(self) -> tuple[Any, ...]:
        edges, volumes, inverses, *rest = self._arrays or ()
        return (edges, volumes.astype(np.uint64), inverses.astype(np.uint64), *rest)

    def draw_with_integers(self, epsilon: Fraction, words: Words) -> list[int]:
        """The same draw from the same words, with integers of any size."""
        p, q = epsilon.numerator, epsilon.denominator
        while True:
            number = bisect_right(self._edges, words.below(self._edges[-1]))
            cone = self.cones[number]
            layer = self._parallelepiped_point(cone, words)
            height, size = sum(layer), cone.volume
            if self.gamma is not None:
                # The multiples add whole norms, so with gamma below 1 layers add up as well.
                height, size = -(min(self._free[number] - height, 0) // size), 1
            if bernoulli_exp(p * height, q * size, words):
                break
        layer = [n + cone.volume * geometric(p, q, words) for n in layer]
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

    def masses(self, epsilon: float) -> FloatArray:
        """The share of noise that falls into each cone; above 2**25 cosets by volume."""
        volumes = np.array([float(cone.volume) for cone in self.cones])
        if sum(cone.volume for cone in self.cones) > MAX_SUMMED:
            return volumes / volumes.sum()
        weights = np.array([self._cell(i, epsilon)[0] for i in range(len(self.cones))])
        return weights / weights.sum()

    def sums(self, epsilon: float) -> tuple[float, float]:
        """The sums of e^(-epsilon g) and of it times E|w + V m|^2 over every cell point w.

        g is the norm of w, or its layer.
        """
        decay = exp(-epsilon)
        mean, variance = decay / (1 - decay), decay / (1 - decay) ** 2
        mass = second = 0.0
        for number, cone in enumerate(self.cones):
            weight, first, pairs = self._cell(number, epsilon)
            vectors = exact_product(np.array(cone.generators, dtype=object), self.body.basis)
            vectors = vectors.astype(np.float64)
            gram = vectors @ vectors.T
            pairs = pairs + mean * (first[:, None] + first[None, :]) + weight * mean**2
            mass += weight
            second += float((pairs * gram).sum() + weight * variance * np.trace(gram))
        return mass, second

    def _cell(self, number: int, epsilon: float) -> tuple[float, FloatArray, FloatArray]:
        """The sums over the points of a cone's half-open cell."""
        sums: tuple[float, FloatArray, FloatArray] = kernels.cells.moments(
            *self.cell(number), epsilon
        )
        return sums

    def cell(self, number: int) -> tuple[Any, ...]:
        """A cone's half-open cell as the kernels of `kernels.cells` read it."""
        cone = self.cones[number]
        diagonal = [row[i] for i, row in enumerate(hermite(cone.generators))]
        return (
            np.array(diagonal, dtype=np.int64),
            np.array([[a % cone.volume for a in row] for row in cone.adjugate], dtype=np.int64),
            cone.volume,
            np.array(cone.strict),
            -1 if self.gamma is None else self._free[number],
        )


def fan_of(body: SensitivityHull, gamma: Fraction | None = None) -> Fan:
    """The checked fan of a body, made once; a failed check raises and releases nothing."""
    made: dict[Fraction | None, Fan] = body.__dict__.setdefault("_fans", {})
    if None not in made:
        made[None] = Fan(body, _checked_cones(body))
    if gamma not in made:
        made[gamma] = Fan(body, made[None].cones, gamma)
    return made[gamma]


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
        inverse = [[sign * a for a in row] for row in adjugate(generators)]
        parts.append((generators, inverse, abs(volume)))
    # Larger than every root of every adjugate column read as a polynomial: on no side of any cone.
    base = 2 + max(abs(a) for _, inverse, _ in parts for row in inverse for a in row)
    generic = [base**i for i in range(body.rank)]
    cones, inner = [], 0
    for generators, inverse, volume in parts:
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
