"""The boundary of conv(vectors and their negatives), exactly: corners, simplices, facets.

Rank 1 is an interval, rank 2 a monotone chain, rank 3 and above an incremental hull whose
every decision is the sign of an integer. The result depends on the body alone, not on how
or in which order its generators were found, so that everyone computes the same noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm import kernels
from dphmm._types import IntArray, ObjectArray
from dphmm.errors import GeometryError
from dphmm.geometry.lattice import SAFE, adjugate, determinant, exact_product, largest, primitive


@dataclass(frozen=True)
class Boundary:
    """A centrally symmetric lattice polytope of full rank k around the origin."""

    corners: ObjectArray
    """(V, k) extreme points, in an order that the body decides; counter-clockwise in the plane."""
    simplices: IntArray
    """(F, k) rows of corner numbers: the boundary, cut into simplices."""
    normals: ObjectArray
    """(H, k) one normal of each pair of opposite facets."""
    offsets: ObjectArray
    """(H,) positive; the body is {y : |normals y| <= offsets}."""

    def free_heights(self, gamma: Fraction) -> ObjectArray:
        """For every facet the whole part of gamma times its offset, for a gamma below 1."""
        free: ObjectArray = self.offsets.astype(object) * gamma.numerator // gamma.denominator
        return free.astype(self.offsets.dtype)


def boundary(vectors: ObjectArray) -> Boundary:
    """The boundary of the body spanned by integer vectors of full rank."""
    rank = vectors.shape[1]
    if rank == 0:
        none = np.zeros((0, 0), dtype=np.int64)
        return Boundary(np.zeros((1, 0), dtype=np.int64), none, none, none.ravel())
    if rank == 1:
        end = largest(vectors)
        return _fitted([[-end], [end]], [[0], [1]], [[1]], [end])
    if rank == 2:
        ring = planar_hull(np.concatenate([vectors, -vectors]))
        return _polygon(ring)
    return _polytope(vectors)


def planar_hull(points: ObjectArray) -> ObjectArray:
    """Strictly convex corners, counter-clockwise from the lexicographically smallest."""
    spread = max(int(column.max()) - int(column.min()) for column in points.T)
    if points.dtype != object and spread < 2**31:
        return kernels.planar.convex_hull(np.ascontiguousarray(points, dtype=np.int64))
    ordered = sorted({(int(x), int(y)) for x, y in points})
    halves = []
    for sequence in (ordered, ordered[::-1]):
        chain: list[tuple[int, int]] = []
        for x, y in sequence:
            while len(chain) > 1:
                (ox, oy), (px, py) = chain[-2], chain[-1]
                if (px - ox) * (y - oy) - (py - oy) * (x - ox) > 0:
                    break
                chain.pop()
            chain.append((x, y))
        halves.append(chain[:-1])
    corners = halves[0] + halves[1] or ordered
    return _compact(np.array(corners, dtype=object))


def _polygon(ring: ObjectArray) -> Boundary:
    half = len(ring) // 2
    # Corners fit 64 bits, their differences may not.
    wide = ring.astype(object)
    edges = np.roll(wide, -1, axis=0) - wide
    normals, offsets = [], []
    for (ex, ey), (x, y) in zip(edges[:half], wide[:half], strict=True):
        *normal, offset = primitive([int(ey), -int(ex), int(ey) * int(x) - int(ex) * int(y)])
        normals.append(normal)
        offsets.append(offset)
    numbers = np.arange(len(ring))
    return _fitted(ring, np.stack([numbers, np.roll(numbers, -1)], axis=1), normals, offsets)


def _polytope(vectors: ObjectArray) -> Boundary:
    first = _Incremental(vectors)
    extreme = first.extreme_points()
    again = _Incremental(np.array(extreme, dtype=object))
    if len(again.points) != len(extreme):
        raise GeometryError("the corners of a hull do not reproduce it; nothing was released")
    half = {
        (tuple(plane[:-1]), plane[-1])
        for plane in again.planes
        if plane and next(entry for entry in plane if entry) > 0
    }
    normals, offsets = zip(*sorted(half), strict=True)
    simplices = sorted(filter(None, again.simplices))
    return _fitted(again.points, simplices, normals, offsets)


class _Incremental:
    """A hull grown point by point, starting from a cross-polytope of independent vectors.

    A boundary simplex is a sorted tuple of point numbers and has a row: there stand the
    integers (a, b) of its plane a.y = b, with which `beside` finds what shares a ridge. A new
    point replaces the simplices that it sees strictly by cones over their horizon; the cone
    over a ridge lies in a positive combination of the two planes that meet there, so no
    determinant is ever computed.
    """

    def __init__(self, vectors: ObjectArray) -> None:
        candidates = sorted({_upward(tuple(map(int, v))) for v in vectors if any(v)})
        rank = vectors.shape[1]
        self.points: list[tuple[int, ...]] = []
        # Row 0 stays empty, so that a row is never zero in `beside`.
        self.simplices: list[tuple[int, ...]] = [()]
        self.planes: list[list[int]] = [[]]
        self.beside: dict[tuple[int, ...], int] = {}
        """For each ridge the exclusive or of its rows: two of them, or one while it is open."""
        self._free: list[int] = []
        self._rows: ObjectArray = np.zeros((64, rank + 1), dtype=np.int64)
        reach = max(abs(entry) for vector in candidates for entry in vector)
        self._narrow = SAFE // (rank * reach + 1)
        """Planes with no larger integers have heights that fit 64 bits at every point."""
        start = _independent(candidates)
        self._start([candidates[i] for i in start])
        for i, point in enumerate(candidates):
            if i not in start:
                self._insert(point)
                self._insert(tuple(-entry for entry in point))

    def extreme_points(self) -> list[tuple[int, ...]]:
        """The points at which the facets' normals have full rank, in lexicographic order."""
        used = sorted({number for simplex in self.simplices for number in simplex})
        planes = np.array(sorted({tuple(p) for p in self.planes if p}), dtype=object)
        normals, offsets = _compact(planes[:, :-1]), _compact(planes[:, -1])
        rank = normals.shape[1]
        found = []
        for number in used:
            point = _compact(np.array(self.points[number], dtype=object))
            tight = normals[exact_product(normals, point) == offsets]
            if len(_independent([tuple(row) for row in tight.tolist()])) == rank:
                found.append(self.points[number])
        return sorted(found)

    def _start(self, axes: list[tuple[int, ...]]) -> None:
        rank = len(axes)
        for axis in axes:
            self.points += [axis, tuple(-entry for entry in axis)]
        columns = np.array(axes, dtype=object)
        for signs in np.ndindex(*(2,) * rank):
            corners = [2 * i + sign for i, sign in enumerate(signs)]
            signed = np.array([(-1) ** sign for sign in signs], dtype=object)
            self._add(tuple(sorted(corners)), _plane_through(columns * signed[:, None]))

    def _insert(self, point: tuple[int, ...]) -> None:
        rows = self._rows[: len(self.planes)]
        # A removed simplex has a plane of zeros, which no point is above.
        heights = rows[:, :-1] @ np.array(point, dtype=rows.dtype) - rows[:, -1]
        visible = np.flatnonzero(heights > 0).tolist()
        if not visible:
            return
        above = heights.tolist()
        number = len(self.points)
        self.points.append(point)
        cones = []
        for row in visible:
            for ridge in _ridges(self.simplices[row]):
                other = self.beside[ridge] ^ row
                if above[other] <= 0:
                    near, far = above[row], -above[other]
                    plane = [
                        near * b + far * a
                        for a, b in zip(self.planes[row], self.planes[other], strict=True)
                    ]
                    cones.append(((*ridge, number), primitive(plane)))
        for row in visible:
            self._remove(row)
        for cone, plane in cones:
            self._add(cone, plane)

    def _remove(self, row: int) -> None:
        for ridge in _ridges(self.simplices[row]):
            self.beside[ridge] ^= row
            if not self.beside[ridge]:
                del self.beside[ridge]
        self.simplices[row], self.planes[row] = (), []
        self._rows[row] = 0
        self._free.append(row)

    def _add(self, simplex: tuple[int, ...], plane: list[int]) -> None:
        if self._free:
            row = self._free.pop()
            self.simplices[row], self.planes[row] = simplex, plane
        else:
            row = len(self.planes)
            self.simplices.append(simplex)
            self.planes.append(plane)
            if row == len(self._rows):
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        if self._rows.dtype != object and max(map(abs, plane)) > self._narrow:
            self._rows = self._rows.astype(object)
        self._rows[row] = plane
        for ridge in _ridges(simplex):
            self.beside[ridge] = self.beside.get(ridge, 0) ^ row


def _ridges(simplex: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [simplex[:i] + simplex[i + 1 :] for i in range(len(simplex))]


def _upward(vector: tuple[int, ...]) -> tuple[int, ...]:
    """The one of v and -v whose first non-zero entry is positive."""
    lead = next((entry for entry in vector if entry), 0)
    return vector if lead >= 0 else tuple(-entry for entry in vector)


def _independent(vectors: list[tuple[int, ...]]) -> list[int]:
    """The numbers of the first vectors that are linearly independent of those before."""
    chosen: list[int] = []
    echelon: list[tuple[int, list[int]]] = []
    for number, vector in enumerate(vectors):
        row = list(vector)
        for pivot, base in echelon:
            if row[pivot]:
                scale = row[pivot]
                row = [base[pivot] * a - scale * b for a, b in zip(row, base, strict=True)]
        if any(row):
            row = primitive(row)
            echelon.append((next(i for i, entry in enumerate(row) if entry), row))
            chosen.append(number)
            if len(chosen) == len(vector):
                break
    return chosen


def _plane_through(rows: ObjectArray) -> list[int]:
    """The primitive (a, b) with a.y = b > 0 on k independent points."""
    matrix = rows.tolist()
    volume = determinant(matrix)
    normal = [sum(row) for row in adjugate(matrix)]
    plane = primitive([*normal, volume])
    return plane if plane[-1] > 0 else [-entry for entry in plane]


def _fitted(corners: object, simplices: object, normals: object, offsets: object) -> Boundary:
    rank = np.asarray(corners).shape[1]
    return Boundary(
        corners=_compact(np.array(corners, dtype=object)),
        simplices=np.array(simplices, dtype=np.int64).reshape(-1, rank),
        normals=_compact(np.array(normals, dtype=object).reshape(-1, rank)),
        offsets=_compact(np.array(offsets, dtype=object).reshape(-1)),
    )


def _compact(array: ObjectArray) -> ObjectArray:
    """The same integers, in 64 bits if they fit."""
    compact = array.astype(np.int64) if largest(array) < 2**63 else array
    compact.setflags(write=False)
    return compact
