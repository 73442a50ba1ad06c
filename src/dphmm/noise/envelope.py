"""A cross-polytope around a body, in a basis of its lattice, and noise drawn under it.

In coordinates x of a basis of the whole lattice of the span, take S_j > 0 with
||x||_K >= sum |x_j| / S_j. Draw each coordinate from discrete Laplace noise at epsilon / S_j
and keep x with probability exp(-epsilon (||x||_K - sum |x_j| / S_j)): what is kept has
probability exp(-epsilon ||x||_K) / Z. How often that is depends on the shape of K and hardly
on epsilon. Basis and S_j come from whole numbers alone, because keyed answers depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from math import ceil, exp, gcd, prod, tanh

import numpy as np

from dphmm import kernels
from dphmm._types import ObjectArray
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import SAFE, adjugate, exact_product, largest
from dphmm.noise.coins import WORD_DIGITS, bernoulli_exp, exp_digits, laplace
from dphmm.noise.cones import fan_of
from dphmm.noise.drawing import LEVELS, WIDE, Compiled, Sampler
from dphmm.noise.randomness import SHORT, Words

__all__ = ["Envelope", "envelope_of"]

ROUNDS = 64
"""Steps towards the smallest cross-polytope, which is then within a few percent."""

GRAIN = 64
"""The smallest slope; the others are whole multiples of its part, so they lose up to 1/64."""

FAR = 64
"""How many times its own scale a coordinate must have room in 64 bits: e^-64 lies beyond."""


@dataclass(frozen=True, eq=False)
class Envelope(Sampler):
    """The cross-polytope sum |x_j| slopes_j <= scale around K, with S_j = scale / slopes_j."""

    body: SensitivityHull
    basis: list[list[int]]
    """Rows in the coordinates of the span, of determinant 1 or -1: the whole lattice."""
    slopes: list[int]
    scale: int

    @cached_property
    def tries(self) -> Fraction:
        """How many times the cross-polytope holds K's volume: draws for one that is kept."""
        sides = (2 * self.scale) ** self.body.rank
        return Fraction(sides, prod(self.slopes) * sum(self.body.determinants))

    @cached_property
    def extents(self) -> list[int]:
        """How far K reaches along each coordinate x_j."""
        inverse = np.array(_inverse(self.basis), dtype=object)
        return [largest(column) for column in exact_product(self.body.body.corners, inverse).T]

    @cached_property
    def normals(self) -> ObjectArray:
        """The facets' normals in the coordinates x."""
        return exact_product(self.body.body.normals, np.array(self.basis, dtype=object).T)

    @cached_property
    def rows(self) -> ObjectArray:
        """The basis in the coordinates of the query."""
        return exact_product(np.array(self.basis, dtype=object), self.body.basis)

    def draw_with_integers(self, epsilon: Fraction, words: Words) -> list[int]:
        """One noise vector from words, with integers of any size."""
        p, q = epsilon.numerator, epsilon.denominator
        rates = self._rates(epsilon)
        while True:
            x = [laplace(rate.numerator, rate.denominator, words) for rate in rates]
            height, offset = self._norm(x)
            below = sum(abs(entry) * slope for entry, slope in zip(x, self.slopes, strict=True))
            excess = height * self.scale - offset * below
            if bernoulli_exp(p * excess, q * offset * self.scale, words):
                break
        noise: list[int] = exact_product(np.array([x], dtype=object), self.rows)[0].tolist()
        return noise

    def _norm(self, x: list[int]) -> tuple[int, int]:
        """Height and offset of the first facet with the largest quotient of the two."""
        heights = np.abs(exact_product(self.normals, np.array(x, dtype=object)[:, None])[:, 0])
        pairs = zip(heights.tolist(), self.body.body.offsets.tolist(), strict=True)
        best, best_offset = next(pairs)
        for height, offset in pairs:
            if height * best_offset > best * offset:
                best, best_offset = height, offset
        return best, best_offset

    def _rates(self, epsilon: Fraction) -> list[Fraction]:
        return [epsilon * slope / self.scale for slope in self.slopes]

    def words_wanted(self, epsilon: float) -> int:
        """Words that are nearly always enough: over twice what an answer takes on average."""
        rates = [epsilon * slope / self.scale for slope in self.slopes]
        # The normaliser of the proposal bounds the tries, since that of the noise is above 1.
        tries = min(float(self.tries), prod(1 / tanh(rate / 2) for rate in rates))
        short = 2 * Fraction(epsilon).limit_denominator().denominator * self.scale <= SHORT
        # Half of the zeros are thrown away with their words.
        steps = sum(2 / (1 + exp(-rate)) for rate in rates)
        return ceil(2.5 * (tries + 0.5) * ((5 if short else 8) * steps + 5))

    def _compile(self, epsilon: Fraction) -> Compiled | None:
        p, q, rank = epsilon.numerator, epsilon.denominator, self.body.rank
        offsets, rates = self.body.body.offsets, self._rates(epsilon)
        steepest = max(1, largest(self.normals))
        reach = min(
            SAFE // (rank * max(steepest, largest(self.rows), *self.slopes)),
            WIDE // (rank * steepest * self.scale * p),
        )
        numbers = [p, q, self.scale, largest(offsets)]
        numbers += [2 * LEVELS * number for rate in rates for number in rate.as_integer_ratio()]
        if (
            max(numbers) >= SAFE
            or LEVELS * q * self.scale * largest(offsets) >= WIDE
            or min(rates) * reach < FAR
        ):
            return None
        whole = offsets.astype(np.int64)
        powers = [exp_digits(m, WORD_DIGITS) for m in range(1, LEVELS)]
        return kernels.envelope.draw_many, (
            np.array(powers, dtype=np.int64),
            np.array([rate.as_integer_ratio() for rate in rates], dtype=np.int64).T.copy(),
            np.array(self.slopes, dtype=np.int64),
            self.scale,
            self.normals.astype(np.int64),
            whole,
            1 / whole,
            self.rows.astype(np.int64),
            p,
            q,
            reach,
        )


def envelope_of(body: SensitivityHull) -> Envelope:
    """The envelope of a checked body, made once."""
    envelope = body.__dict__.get("_envelope")
    if envelope is None:
        fan_of(body)  # its checks hold for the facets that the norm is taken from
        envelope = Envelope(body, *_smallest_envelope(body))
        body.__dict__["_envelope"] = envelope
    return envelope


def _smallest_envelope(body: SensitivityHull) -> tuple[list[list[int]], list[int], int]:
    """A basis, slopes and scale: reduced in K's metric, then by the best additions."""
    basis = _reduced_basis(_metric(body))
    inverse = _inverse(basis)
    corners = exact_product(body.body.corners, np.array(inverse, dtype=object)).astype(object)
    slopes, scale = _slopes(corners)
    moves = [(i, j, sign) for i, j in permutations(range(body.rank), 2) for sign in (1, -1)]
    while body.rank > 2:
        fits = [_slopes(_moved(corners, *move)) for move in moves]
        best = min(range(len(moves)), key=lambda number: _volume(*fits[number]))
        if _volume(*fits[best]) >= _volume(slopes, scale):
            break
        i, j, sign = moves[best]
        basis[i] = [a + sign * b for a, b in zip(basis[i], basis[j], strict=True)]
        corners, (slopes, scale) = _moved(corners, i, j, sign), fits[best]
    return basis, slopes, scale


def _moved(corners: ObjectArray, i: int, j: int, sign: int) -> ObjectArray:
    """The coordinates of corners after basis vector j was added to vector i."""
    moved = corners.copy()
    moved[:, j] -= sign * corners[:, i]
    return moved


def _volume(slopes: list[int], scale: int) -> Fraction:
    """The volume of a cross-polytope, but for a factor of the rank alone."""
    return Fraction(scale ** len(slopes), prod(slopes))


def _inverse(basis: list[list[int]]) -> list[list[int]]:
    inverse = adjugate(basis)
    sign = sum(a * row[0] for a, row in zip(basis[0], inverse, strict=True))
    return [[sign * entry for entry in row] for row in inverse]


def _metric(body: SensitivityHull) -> list[list[int]]:
    """The inverse, but for a factor, of the second moments of a uniform point of K."""
    cones = body.body.corners.astype(object)[body.body.simplices]
    volumes = np.array(body.determinants, dtype=object)[:, None]
    sums = cones.sum(axis=1)
    moments = (volumes * sums).T @ sums
    for corner in range(body.rank):
        moments = moments + (volumes * cones[:, corner]).T @ cones[:, corner]
    return adjugate(moments.tolist())


def _reduced_basis(metric: list[list[int]]) -> list[list[int]]:
    """A basis of Z^k whose vectors are short in a metric.

    From each vector take the multiple of a sum or difference of others that makes it
    shortest, until none is shorter; lengths are whole numbers, so this ends.
    """
    rank = len(metric)
    rows = [[int(i == j) for j in range(rank)] for i in range(rank)]

    def inner(a: list[int], b: list[int]) -> int:
        return sum(x * metric[i][j] * y for i, x in enumerate(a) for j, y in enumerate(b))

    # Up to three others at once, which in four dimensions are all; one sign of each is enough.
    steps = [
        signs
        for signs in product((0, 1, -1), repeat=rank)
        if 0 < rank - signs.count(0) <= 3 and next(sign for sign in signs if sign) > 0
    ]
    shorter = True
    while shorter:
        shorter = False
        for j, signs in product(range(rank), steps):
            if signs[j]:
                continue
            along = [sum(s * row[axis] for s, row in zip(signs, rows, strict=True))
                     for axis in range(rank)]  # fmt: skip
            length = inner(along, along)
            # The whole number nearest to <b_j, along> / <along, along>.
            multiple = (2 * inner(rows[j], along) + length) // (2 * length)
            moved = [b - multiple * a for b, a in zip(rows[j], along, strict=True)]
            if inner(moved, moved) < inner(rows[j], rows[j]):
                rows[j], shorter = moved, True
    return rows


def _slopes(corners: ObjectArray) -> tuple[list[int], int]:
    """Whole a_j and the smallest b with sum |x_j| a_j <= b on K, for a small b^k / prod a_j.

    The best slopes are 1 / sum_i w_i |x_ij| for some weights w of the corners; weights that
    are multiplied by how far their corners stick out approach them (Titterington 1976).
    Whatever the weights, b is the largest sum over the corners, so the bound holds exactly.
    """
    heights = np.array(sorted({tuple(map(abs, corner)) for corner in corners.tolist()}), object)
    rank, tops = heights.shape[1], heights.max(axis=0)
    shares = np.array(heights * 2**12 // tops, dtype=np.int64)
    weights = np.full(len(shares), 2**30 // len(shares), dtype=np.int64)
    for _ in range(ROUNDS):
        # sum_i w_i score_i is at most rank 2**56, so nothing here passes 64 bits.
        scores = shares @ (2**56 // (weights @ shares))
        weights = np.maximum(1, weights * scores // (rank * 2**26))
    wide = [int(sum_) * int(top) for sum_, top in zip(weights @ shares, tops, strict=True)]
    slopes = [GRAIN * max(wide) // entry for entry in wide]
    scale = largest(exact_product(heights, np.array(slopes, dtype=object)[:, None]))
    shared = gcd(scale, *slopes)
    return [slope // shared for slope in slopes], scale // shared
