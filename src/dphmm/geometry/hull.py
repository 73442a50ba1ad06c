"""The sensitivity hull K: the convex hull of the differences that a policy hides.

Definition 5.1, exactly and in any rank. K lives in the span of the policy's differences,
on the integer lattice of the query; every norm is a rational number, every containment a
comparison of integers, and a vector outside the span has an infinite norm.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import factorial, inf

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.boundary import Boundary, boundary
from dphmm.geometry.exact import Exact, as_epsilon, as_text, exact
from dphmm.geometry.lattice import SAFE, determinant, exact_product, largest, span_transform
from dphmm.geometry.plotting import plot_hull
from dphmm.geometry.query import Query
from dphmm.geometry.states import as_array

__all__ = ["SensitivityHull", "check_body"]


@dataclass(frozen=True, eq=False, repr=False)
class SensitivityHull:
    """A convex body, symmetric around the origin, with corners on the query's lattice.

    >>> hull = SensitivityHull.from_vertices([[1, 1], [1, -1]])
    >>> hull.norm([2, 0]), hull.contains([1, 0]), hull.contains([1, 1])
    (Fraction(2, 1), True, True)
    >>> flat = SensitivityHull.from_vertices([[1, 1]])
    >>> flat.norm([3, 3]), flat.norm([1, 0]), flat.volume
    (Fraction(3, 1), inf, Fraction(0, 1))
    """

    step: Fraction
    """The lattice's spacing in the units of the query."""
    rank: int
    """The dimension of the span, at most that of the query."""
    transform: ObjectArray
    """Unimodular U: v U holds the coordinates of v in the span, then zeros (see lattice)."""
    body: Boundary
    """The boundary in the coordinates of the span."""

    @classmethod
    def from_vertices(cls, vertices: ArrayLike, step: Exact = 1) -> SensitivityHull:
        """The hull of vectors in the units of the query, and of their negatives.

        Args:
            vertices: The vectors, in the units of the query, each entry a multiple of the step.
            step: The lattice's spacing in the units of the query: `query.step`.

        >>> SensitivityHull.from_vertices([[4, 2]], step=2).lattice_vertices.tolist()
        [[-2, -1], [2, 1]]
        """
        spacing = as_epsilon(step, "step")
        rows = np.atleast_2d(np.array(vertices, dtype=object))
        if rows.ndim != 2 or 0 in rows.shape:
            raise ArgumentError(f"vertices must be vectors, got an array of shape {rows.shape}")
        vectors = [[exact(entry, "vertices") / spacing for entry in row] for row in rows]
        for vector in vectors:
            if any(entry.denominator != 1 for entry in vector):
                got = ", ".join(as_text(entry * spacing) for entry in vector)
                raise ArgumentError(
                    f"vertices must be in the units of the query and on its lattice of step "
                    f"{as_text(spacing)}, got [{got}]; from_lattice takes whole steps"
                )
        return cls.from_lattice(np.array([[int(x) for x in v] for v in vectors], object), spacing)

    @classmethod
    def from_lattice(cls, vectors: ObjectArray, step: Exact = 1) -> SensitivityHull:
        """The hull of integer vectors on the lattice, and of their negatives.

        None or zeros give a hull of rank 0.

        Args:
            vectors: (m, d) integers that count steps, such as differences of `query.points`.
            step: The lattice's spacing in the units of the query: `query.step`.

        >>> SensitivityHull.from_lattice(np.array([[4, 2]]), step=2).vertices.tolist()
        [[-8.0, -4.0], [8.0, 4.0]]
        """
        whole = as_array(vectors, "vectors")
        if whole.ndim != 2 or not (whole.dtype.kind in "iu" or _are_integers(whole)):
            raise ArgumentError(
                f"vectors must be (m, d) integers that count steps of the lattice, "
                f"got {whole.dtype} of shape {whole.shape}; "
                f"from_vertices takes the units of the query"
            )
        rank, transform = span_transform(whole)
        inside = exact_product(whole, transform[:, :rank])
        return cls(as_epsilon(step, "step"), rank, transform, boundary(inside))

    @property
    def dimension(self) -> int:
        """The d of the query's R^d."""
        return len(self.transform)

    @cached_property
    def lattice_vertices(self) -> ObjectArray:
        """The corners as integer vectors."""
        return exact_product(self.body.corners, self.basis)

    @property
    def vertices(self) -> FloatArray:
        """The corners in the units of the query, each entry rounded once."""
        # A product with float(step) would round twice, and 3 steps of 0.1 be no multiple of 0.1.
        scaled = self.lattice_vertices.astype(object) * self.step.numerator
        corners: FloatArray = (scaled / self.step.denominator).astype(np.float64)
        return corners

    @cached_property
    def basis(self) -> ObjectArray:
        """(rank, d) integer rows: a basis of the lattice within the span."""
        size = self.dimension
        rows = self.transform.tolist()
        sign = determinant(rows)
        inverse = [
            [sign * (-1) ** (i + j) * determinant(_minor(rows, j, i)) for j in range(size)]
            for i in range(self.rank)
        ]
        return np.array(inverse, dtype=object).reshape(self.rank, size)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the body, the same on every machine and for every way to it."""
        corners = sorted(tuple(map(int, corner)) for corner in self.lattice_vertices)
        return hashlib.sha256(f"hull {self.dimension} {corners}".encode()).digest()

    @cached_property
    def determinants(self) -> list[int]:
        """|det| of every boundary simplex, in the coordinates of the span."""
        if self.rank == 2:
            a, b = (self.body.corners[self.body.simplices[:, i]].astype(object) for i in (0, 1))
            return list(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
        corners = self.body.corners
        return [abs(determinant(corners[simplex].tolist())) for simplex in self.body.simplices]

    @cached_property
    def volume(self) -> Fraction:
        """The d-dimensional volume in the units of the query; zero when the hull is flat."""
        if self.rank < self.dimension:
            return Fraction(0)
        return Fraction(sum(self.determinants), factorial(self.rank)) * self.step**self.dimension

    @cached_property
    def l1_sensitivity(self) -> Fraction:
        """S_f, the largest l1 norm of a difference (Definition 3.2)."""
        return largest(np.abs(self.lattice_vertices.astype(object)).sum(axis=1)) * self.step

    def mean_squared_error(self, epsilon: Exact) -> Fraction:
        """E|z|^2 of continuous K-norm noise, exactly: (k+1)(k+2) E|U|^2 / epsilon^2.

        U is uniform on K; on the cone over a boundary simplex with corners v_1..v_k the
        expectation is (sum |v_i|^2 + |sum v_i|^2) / ((k+1)(k+2)).

        Args:
            epsilon: What an answer costs between two linked states.

        >>> SensitivityHull.from_vertices([[2, 0]]).mean_squared_error(1)
        Fraction(8, 1)
        """
        share = as_epsilon(epsilon)
        if self.rank == 0:
            return Fraction(0)
        cones = self.lattice_vertices.astype(object)[self.body.simplices]
        moments = (cones**2).sum(axis=(1, 2)) + (cones.sum(axis=1) ** 2).sum(axis=1)
        total = sum(m * d for m, d in zip(moments.tolist(), self.determinants, strict=True))
        return Fraction(total, sum(self.determinants)) * self.step**2 / share**2

    def norm(self, vector: ArrayLike) -> Fraction | float:
        """inf{r : v in rK} as an exact fraction, for one vector in the units of the query.

        Infinite outside the span. A float means the decimal that it prints as.

        Args:
            vector: One vector in the units of the query; a float is the decimal that it prints as.
        """
        entries = np.array(vector, dtype=object).ravel()
        rational = [exact(entry, "vector") / self.step for entry in entries]
        if len(rational) != self.dimension:
            raise ArgumentError(f"vector must have {self.dimension} entries, got {len(rational)}")
        scale = np.lcm.reduce([entry.denominator for entry in rational], dtype=object)
        whole = np.array([[int(entry * scale) for entry in rational]], dtype=object)
        norm = self.lattice_norm(whole[0])
        return norm / int(scale) if isinstance(norm, Fraction) else norm

    def contains(self, vector: ArrayLike) -> bool:
        """Whether one vector in the units of the query lies in K, its boundary included.

        Args:
            vector: One vector in the units of the query; a float is the decimal that it prints as.
        """
        return self.norm(vector) <= 1

    def lattice_norm(self, vector: ObjectArray) -> Fraction | float:
        """The norm of one integer vector, exactly.

        Args:
            vector: (d,) integers that count steps of the lattice.
        """
        (whole,) = self._checked(as_array(vector, "vector")[None], "vector")
        inside = exact_product(whole[None, :], self.transform)[0]
        if inside[self.rank :].any():
            return inf
        heights = np.abs(exact_product(self.body.normals, inside[: self.rank, None])[:, 0])
        pairs = zip(heights.tolist(), self.body.offsets.tolist(), strict=True)
        return max((Fraction(height, offset) for height, offset in pairs), default=Fraction(0))

    def lattice_norms(self, vectors: ObjectArray) -> FloatArray:
        """The norms of many integer vectors, each correctly rounded but for the last bit.

        Args:
            vectors: (m, d) integers that count steps of the lattice.
        """
        inside, spanned = self._coordinates(self._checked(vectors, "vectors"))
        if self._fits(inside):
            norms: FloatArray = kernels.gauge.norms(inside, self.body.normals, self.body.offsets)
        else:
            heights = np.abs(inside.astype(object) @ self.body.normals.astype(object).T)
            ratios = heights / self.body.offsets.astype(object)
            norms = ratios.astype(np.float64).max(axis=1, initial=0.0)
        return np.where(spanned, norms, inf)

    def lattice_layers(self, vectors: ObjectArray, gamma: Exact) -> FloatArray:
        """ceil(max(||v||_K - gamma, 0)) of many integer vectors, exactly; infinite off the span.

        Args:
            vectors: (m, d) integers that count steps of the lattice.
            gamma: Where layer 0 ends, at least 0 and below 1.
        """
        inside, spanned = self._coordinates(self._checked(vectors, "vectors"))
        share = exact(gamma, "gamma")
        if not 0 <= share < 1:
            raise ArgumentError(f"gamma must be at least 0 and below 1, got {gamma!r}")
        free, offsets = self.body.free_heights(share), self.body.offsets
        if self._fits(inside):
            layers: FloatArray = kernels.gauge.layers(inside, self.body.normals, offsets, free)
        else:
            heights = np.abs(inside.astype(object) @ self.body.normals.astype(object).T)
            layers = (-(np.minimum(free - heights, 0) // offsets.astype(object))).astype(np.float64)
            layers = layers.max(axis=1, initial=0.0)
        return np.where(spanned, layers, inf)

    def lattice_contains(self, vectors: ObjectArray) -> Mask:
        """Which of many integer vectors lie in K, exactly.

        Args:
            vectors: (m, d) integers that count steps of the lattice.
        """
        inside, spanned = self._coordinates(self._checked(vectors, "vectors"))
        if self._fits(inside):
            held: Mask = kernels.gauge.contains(inside, self.body.normals, self.body.offsets)
        else:
            heights = np.abs(inside.astype(object) @ self.body.normals.astype(object).T)
            held = np.all(np.asarray(heights <= self.body.offsets, dtype=bool), axis=1)
        return held & spanned

    @cached_property
    def compiled_facets(self) -> tuple[IntArray, IntArray, IntArray] | None:
        """Half the bounding box, normals and offsets, if K spans everything within 64 bits."""
        extent = np.abs(self.body.corners).max(axis=0, initial=0)
        if self.rank < self.dimension or not self._fits(extent[None, :]):
            return None
        return extent, self.body.normals, self.body.offsets

    def largest_lattice_norm(self, points: ObjectArray) -> Fraction | float:
        """max ||a - b||_K over lattice points a, b: by facet, the spread of the points along it.

        Args:
            points: (m, d) lattice points, such as `query.points`.
        """
        moved = exact_product(self._checked(points, "points"), self.transform)
        inside, outside = moved[:, : self.rank], moved[:, self.rank :]
        if (outside != outside[0]).any():
            return inf
        heights = exact_product(inside, self.body.normals.T)
        spreads = heights.max(axis=0).astype(object) - heights.min(axis=0).astype(object)
        pairs = zip(spreads.tolist(), self.body.offsets.tolist(), strict=True)
        return max((Fraction(spread, offset) for spread, offset in pairs), default=Fraction(0))

    def l1_ball(self) -> SensitivityHull:
        """The cross-polytope of the l1 sensitivity, Laplace's body (Theorem 5.1)."""
        size = int(self.l1_sensitivity / self.step)
        return self.from_lattice(size * np.eye(self.dimension, dtype=object), self.step)

    plot = plot_hull

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SensitivityHull):
            return NotImplemented
        return self.step == other.step and self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.step, self.digest))

    def __repr__(self) -> str:
        return (
            f"SensitivityHull(dimension={self.dimension}, rank={self.rank}, "
            f"corners={len(self.body.corners)}, step={as_text(self.step)})"
        )

    def _checked(self, vectors: ObjectArray, argument: str) -> ObjectArray:
        """Lattice vectors as an array; its type is looked at, not every Python integer in it."""
        whole = as_array(vectors, argument)
        if whole.ndim != 2 or whole.shape[1] != self.dimension or whole.dtype.kind not in "iuO":
            raise ArgumentError(
                f"{argument} must be integers that count steps of the lattice in "
                f"{self.dimension} dimensions, got {whole.dtype} of shape {whole.shape}"
            )
        return whole

    def _coordinates(self, vectors: ObjectArray) -> tuple[ObjectArray, Mask]:
        if self.rank == self.dimension:
            return vectors, np.ones(len(vectors), dtype=bool)
        moved = exact_product(vectors, self.transform)
        return moved[:, : self.rank], ~(moved[:, self.rank :] != 0).any(axis=1)

    def _fits(self, vectors: ObjectArray) -> bool:
        """Whether facets times vectors stay within 64 bits."""
        if object in (vectors.dtype, self.body.normals.dtype, self.body.offsets.dtype):
            return False
        return self.rank * largest(self.body.normals) * largest(vectors) < SAFE


def check_body(body: SensitivityHull, query: Query, argument: str = "hull") -> None:
    """Refuse a body that does not live on a query's lattice, or that is none.

    Args:
        body: The body of some noise.
        query: The query that the noise is for.
        argument: What a message calls the body.
    """
    expect(query, Query, "query")
    expect(body, SensitivityHull, argument)
    if body.dimension != query.dimension or body.step != query.step:
        raise ArgumentError(
            f"{argument} must live on the query's lattice ({query.dimension} dimensions, "
            f"step {as_text(query.step)}), got {body.dimension} dimensions, "
            f"step {as_text(body.step)}"
        )


def _are_integers(vectors: ObjectArray) -> bool:
    return vectors.dtype == object and all(
        isinstance(entry, int | np.integer) for entry in vectors.flat
    )


def _minor(rows: list[list[int]], row: int, column: int) -> list[list[int]]:
    return [r[:column] + r[column + 1 :] for i, r in enumerate(rows) if i != row]
