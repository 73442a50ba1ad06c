"""Exact geometry of integer points in the plane.

Coordinates must differ by less than 2**31, so that a cross product of two differences fits
64 bits; `dphmm.geometry.boundary` sends anything larger to Python integers.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from dphmm._types import FloatArray, IntArray
from dphmm.kernels.compiling import kernel


@kernel(lambda points: 20 * len(points))
def convex_hull(points: IntArray) -> IntArray:
    """Strictly convex corners, counter-clockwise from the lexicographically smallest."""
    survivors = _outside_octagon(points) if len(points) > 64 else points
    return _monotone_chain(_ordered(survivors))


@kernel()
def _ordered(points: IntArray) -> IntArray:
    """The points in lexicographic order, merged by twos, fours and so on.

    Written out, number by number: numba needs seconds to compile its own sorts, and assignments
    of whole rows, on everybody's first run.
    """
    n = len(points)
    rows, spare = np.empty((n, 2), dtype=np.int64), np.empty((n, 2), dtype=np.int64)
    for i in range(n):
        rows[i, 0], rows[i, 1] = points[i, 0], points[i, 1]
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(n, start + width), min(n, start + 2 * width)
            i, j = start, middle
            for k in range(start, end):
                first = j >= end
                if i < middle and j < end:
                    first = rows[i, 0] < rows[j, 0]
                    if rows[i, 0] == rows[j, 0]:
                        first = rows[i, 1] <= rows[j, 1]
                p = i if first else j
                spare[k, 0], spare[k, 1] = rows[p, 0], rows[p, 1]
                if first:
                    i += 1
                else:
                    j += 1
        rows, spare = spare, rows
        width *= 2
    return rows


@kernel()
def _monotone_chain(ordered: IntArray) -> IntArray:
    n = len(ordered)
    chain = np.empty((2 * n + 2, 2), dtype=np.int64)
    size = np.int64(0)
    for direction in range(2):
        floor = size + 1 if direction == 0 else size
        for step in range(n):
            i = step if direction == 0 else n - 1 - step
            x, y = ordered[i, 0], ordered[i, 1]
            if size > 0 and chain[size - 1, 0] == x and chain[size - 1, 1] == y:
                continue
            while size > floor:
                ax = chain[size - 1, 0] - chain[size - 2, 0]
                ay = chain[size - 1, 1] - chain[size - 2, 1]
                bx = x - chain[size - 2, 0]
                by = y - chain[size - 2, 1]
                if ax * by - ay * bx > 0:
                    break
                size -= 1
            chain[size, 0] = x
            chain[size, 1] = y
            size += 1
    if size > 1 and chain[0, 0] == chain[size - 1, 0] and chain[0, 1] == chain[size - 1, 1]:
        size -= 1
    return _first(chain, size)


@kernel()
def _outside_octagon(points: IntArray) -> IntArray:
    """The points that are not strictly inside the hull of eight extreme points."""
    best = np.zeros(8, dtype=np.int64)
    record = np.full(8, np.iinfo(np.int64).min, dtype=np.int64)
    for i in range(len(points)):
        x, y = points[i, 0], points[i, 1]
        for j, height in enumerate((x, -x, y, -y, x + y, -x - y, x - y, y - x)):
            if height > record[j]:
                record[j] = height
                best[j] = i
    extremes = np.empty((8, 2), dtype=np.int64)
    for j in range(8):
        extremes[j, 0], extremes[j, 1] = points[best[j], 0], points[best[j], 1]
    ring = _monotone_chain(_ordered(extremes))
    survivors = np.empty((len(points), 2), dtype=np.int64)
    size = np.int64(0)
    for i in range(len(points)):
        if len(ring) < 3 or not _strictly_inside(ring, points[i, 0], points[i, 1]):
            survivors[size, 0], survivors[size, 1] = points[i, 0], points[i, 1]
            size += 1
    return _first(survivors, size)


@kernel()
def _strictly_inside(ring: IntArray, x: int, y: int) -> bool:
    h = len(ring)
    for i in range(h):
        j = i + 1 if i + 1 < h else 0
        ax = ring[j, 0] - ring[i, 0]
        ay = ring[j, 1] - ring[i, 1]
        if ax * (y - ring[i, 1]) - ay * (x - ring[i, 0]) <= 0:
            return False
    return True


@kernel()
def difference_body(ring: IntArray) -> IntArray:
    """Corners of P + (-P) for a convex P given counter-clockwise: the edges merged by angle.

    Where P has parallel edges a corner is listed although the boundary is straight there.
    """
    h = len(ring)
    low = 0
    high = 0
    for i in range(h):
        below, above = ring[i, 1] - ring[low, 1], ring[i, 1] - ring[high, 1]
        if below < 0 or (below == 0 and ring[i, 0] < ring[low, 0]):
            low = i
        if above > 0 or (above == 0 and ring[i, 0] > ring[high, 0]):
            high = i
    body = np.empty((2 * h, 2), dtype=np.int64)
    size = np.int64(0)
    i = 0
    j = 0
    while i < h or j < h:
        p, p_next = (low + i) % h, (low + i + 1) % h
        q, q_next = (high + j) % h, (high + j + 1) % h
        body[size, 0], body[size, 1] = ring[p, 0] - ring[q, 0], ring[p, 1] - ring[q, 1]
        size += 1
        ax, ay = ring[p_next, 0] - ring[p, 0], ring[p_next, 1] - ring[p, 1]
        bx, by = ring[q, 0] - ring[q_next, 0], ring[q, 1] - ring[q_next, 1]
        turn = ax * by - ay * bx
        # The end of one polygon wraps to its first edge, which turns away from what is left.
        if i < h and (j == h or turn >= 0):
            i += 1
            if turn == 0 and j < h:
                j += 1
        elif j < h:
            j += 1
    return _first(body, size)


@kernel(lambda points, members, offsets: 40 * len(members))
def clique_differences(points: IntArray, members: IntArray, offsets: IntArray) -> IntArray:
    """Corners of every clique's difference body, one after the other."""
    corners = np.empty((64, 2), dtype=np.int64)
    size = np.int64(0)
    for clique in range(len(offsets) - 1):
        first = offsets[clique]
        chosen = np.empty((offsets[clique + 1] - first, 2), dtype=np.int64)
        for i in range(len(chosen)):
            state = members[first + i]
            chosen[i, 0], chosen[i, 1] = points[state, 0], points[state, 1]
        body = difference_body(convex_hull(chosen))
        while size + len(body) > len(corners):
            corners = _first(corners, 2 * len(corners))
        for i in range(len(body)):
            corners[size, 0], corners[size, 1] = body[i, 0], body[i, 1]
            size += 1
    return _first(corners, size)


@kernel()
def _first(points: IntArray, size: int) -> IntArray:
    """A copy of the first points, or of all of them with room for more."""
    copy = np.empty((size, 2), dtype=np.int64)
    for i in range(min(size, len(points))):
        copy[i, 0], copy[i, 1] = points[i, 0], points[i, 1]
    return copy


@kernel(lambda ring, vectors: 4 * len(ring) * len(vectors))
def extended_moments(ring: FloatArray, vectors: FloatArray) -> FloatArray:
    """For every w: (sum of c, sum of c m) over the edges of conv(K and +-w).

    K is given by its corners, counter-clockwise; c is the cross product of an edge's two
    ends and m their |p|^2 + |q|^2 + |p + q|^2, so that c sums to twice the area and the
    ratio is K's mean squared error at epsilon 1. Edges that w sees are replaced by its two
    tangents, and by symmetry so are those that -w sees.
    """
    out = np.zeros((len(vectors), 2), dtype=ring.dtype)
    h = len(ring)
    for k in range(len(vectors)):
        x, y = vectors[k, 0], vectors[k, 1]
        for i in range(h):
            j = (i + 1) % h
            px, py, qx, qy = ring[i, 0], ring[i, 1], ring[j, 0], ring[j, 1]
            ex, ey = qx - px, qy - py
            height = ex * (y - py) - ey * (x - px)
            mirrored = ex * (-y - py) - ey * (-x - px)
            cross = px * qy - py * qx
            if height >= 0 and mirrored >= 0:
                out[k, 0] += cross
                out[k, 1] += cross * _edge_moment(px, py, qx, qy)
            elif height < 0:
                a, b = (i - 1) % h, (i + 2) % h
                ax, ay, bx, by = ring[a, 0], ring[a, 1], ring[b, 0], ring[b, 1]
                if (px - ax) * (y - ay) - (py - ay) * (x - ax) >= 0:
                    tangent = px * y - py * x
                    out[k, 0] += 2 * tangent
                    out[k, 1] += 2 * tangent * _edge_moment(px, py, x, y)
                if (bx - qx) * (y - qy) - (by - qy) * (x - qx) >= 0:
                    tangent = x * qy - y * qx
                    out[k, 0] += 2 * tangent
                    out[k, 1] += 2 * tangent * _edge_moment(x, y, qx, qy)
    return out


# Not compiled when called from Python, so that big integers pass through unharmed.
@register_jitable
def _edge_moment(px: float, py: float, qx: float, qy: float) -> float:
    x, y = px + qx, py + qy
    return px * px + py * py + qx * qx + qy * qy + x * x + y * y
