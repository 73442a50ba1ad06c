"""Which difference to add to a hull of full rank, by volume or error, without building hulls.

With w and -w a body K grows by a pyramid from w over every boundary simplex that w sees, and by
their mirror images: a plane through w that K lies below has -w below it too, so nothing is
counted twice. A pyramid's volume is the simplex's own times how far w is above its plane, and
its second moment follows from its corners. Floats propose; near ties are settled in integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import exact_product, largest

__all__ = ["best_extension"]

TIE = 1e-9
"""Sums of a few thousand positive floats are right within this share, by far."""

TOGETHER = 256
"""Differences that are scored at once."""

MOST_CELLS = 2**24
"""Of the table of simplices by facets; larger bodies go the plain way."""

EXACT = 2**53
"""Floats hold every whole number below this."""


def best_extension(hull: SensitivityHull, vectors: ObjectArray, *, by_volume: bool) -> int | None:
    """The number of the difference whose hull is best, the first on ties; None if not found here.

    Args:
        hull: The hull so far; where it is flat or huge nothing is found.
        vectors: (m, d) differences.
        by_volume: Whether the least volume is best, not the least mean squared error.
    """
    if hull.rank == hull.dimension == 2:
        return _best_in_plane(hull, vectors, by_volume)
    body, rank = hull.body, hull.rank
    cells = len(body.simplices) * len(body.offsets) * rank
    reach = rank * largest(body.normals) * largest(vectors) + largest(body.offsets)
    if rank < hull.dimension or cells > MOST_CELLS or max(reach, largest(vectors) ** 2) >= EXACT:
        return None
    _, firsts = np.unique(vectors, axis=0, return_index=True)
    lengths = (vectors[firsts].astype(np.float64) ** 2).sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    firsts, lengths = firsts[order], lengths[order]
    pyramids, record, scores = _Pyramids.over(hull), np.inf, [np.zeros(0)]
    for first in range(0, len(firsts), TOGETHER):
        # No convex body that holds w has a mean squared error below 2|w|^2.
        if not by_volume and 2 * lengths[first] > record * (1 + TIE):
            break
        some = vectors[firsts[first : first + TOGETHER]].astype(np.float64)
        scores.append(pyramids.scores(some, by_volume))
        record = min(record, float(scores[-1].min()))
    close = firsts[np.flatnonzero(np.concatenate(scores) <= record * (1 + TIE))]
    if len(close) == 1:
        return int(close[0])
    return min(close.tolist(), key=lambda i: (pyramids.score(vectors[i], by_volume), i))


def _best_in_plane(hull: SensitivityHull, vectors: IntArray, by_volume: bool) -> int:
    """The same by tangents, whatever the numbers."""
    ring = hull.body.corners
    close = np.arange(len(vectors))
    # Below 2**25 every cross product is a whole float, so only the sums, all positive, round.
    if max(largest(ring), largest(vectors)) < 2**25:
        moments = kernels.planar.extended_moments(
            ring.astype(np.float64), vectors.astype(np.float64)
        )
        scores = moments[:, 0] if by_volume else moments[:, 1] / moments[:, 0]
        close = np.flatnonzero(scores <= scores.min() * (1 + TIE))
    if len(close) == 1:
        return int(close[0])
    settle = kernels.planar.extended_moments.py_func
    whole = settle(ring.astype(object), vectors[close].astype(object))
    exact_scores = [area if by_volume else Fraction(moment, area) for area, moment in whole]
    return int(close[min(range(len(close)), key=lambda i: (exact_scores[i], close[i]))])


@dataclass(frozen=True)
class _Pyramids:
    """For every boundary simplex: its plane, its volume, and what moments need of its corners."""

    planes: ObjectArray
    """(F, k) normals, outwards."""
    offsets: ObjectArray
    volumes: ObjectArray
    squares: ObjectArray
    """The sum of the corners' squares, and the square of their sum."""
    centres: ObjectArray
    """(F, k) the sum of the corners."""

    @classmethod
    def over(cls, hull: SensitivityHull) -> _Pyramids:
        body = hull.body
        heights = exact_product(body.corners, body.normals.T)
        sides = [np.all((s * heights == body.offsets)[body.simplices], axis=1) for s in (1, -1)]
        on: Mask = np.concatenate(sides, axis=1)
        facet: IntArray = np.argmax(on, axis=1)
        signed = np.concatenate([body.normals, -body.normals])
        corners = body.corners.astype(object)[body.simplices]
        centres = corners.sum(axis=1)
        return cls(
            signed[facet],
            np.concatenate([body.offsets, body.offsets])[facet],
            np.array(hull.determinants, dtype=object),
            (corners**2).sum(axis=(1, 2)) + (centres**2).sum(axis=1),
            centres,
        )

    def scores(self, vectors: FloatArray, by_volume: bool) -> FloatArray:
        """Volumes, or second moments over volumes, of the hulls with each of some vectors."""
        planes, offsets, volumes, squares, centres = (
            part.astype(np.float64)
            for part in (self.planes, self.offsets, self.volumes, self.squares, self.centres)
        )
        above = np.maximum(vectors @ planes.T - offsets, 0.0) * (volumes / offsets)
        whole = volumes.sum() + 2 * above.sum(axis=1)
        if by_volume:
            return np.asarray(whole)
        lengths = (vectors**2).sum(axis=1)[:, None]
        moments = above * (squares + 2 * vectors @ centres.T + 2 * lengths)
        return np.asarray(((volumes * squares).sum() + 2 * moments.sum(axis=1)) / whole)

    def score(self, vector: Any, by_volume: bool) -> Fraction:
        """The same for one vector, exactly."""
        w = np.array(vector.tolist(), dtype=object)
        heights = self.planes.astype(object) @ w - self.offsets.astype(object)
        whole, moment = Fraction(sum(self.volumes)), Fraction(sum(self.volumes * self.squares))
        for i in np.flatnonzero(heights > 0).tolist():
            added = Fraction(2 * int(self.volumes[i]) * int(heights[i]), int(self.offsets[i]))
            whole += added
            moment += added * (self.squares[i] + 2 * (self.centres[i] @ w) + 2 * (w @ w))
        return whole if by_volume else moment / whole
