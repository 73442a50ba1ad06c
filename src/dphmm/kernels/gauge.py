"""Norms and containment of many integer vectors, against facets |a y| <= b.

The caller guarantees that no sum of products passes 2**62.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.kernels.compiling import kernel

LIMIT = np.int64(2**62)
"""Lattice coordinates stay below this, so that any difference of two fits 64 bits."""


@kernel(lambda vectors, normals, offsets: 2 * normals.size * len(vectors))
def norms(vectors: IntArray, normals: IntArray, offsets: IntArray) -> FloatArray:
    """max_i |a_i y| / b_i for every row y."""
    out = np.zeros(len(vectors))
    for i in range(len(vectors)):
        largest = 0.0
        for h in range(len(offsets)):
            total = np.int64(0)
            for j in range(vectors.shape[1]):
                total += normals[h, j] * vectors[i, j]
            largest = max(largest, abs(total) / offsets[h])
        out[i] = largest
    return out


@kernel()
def first_above(edges: IntArray, value: int | np.int64) -> int:
    """The first of some rising numbers that is above a value, by its place."""
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) // 2
        if edges[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@kernel()
def layer(height: np.int64, free: np.int64, offset: np.int64) -> np.int64:
    """ceil(max(height / offset - gamma, 0)), where free is the whole part of gamma offset."""
    if height <= free:
        return np.int64(0)
    return np.int64((height - free + offset - np.int64(1)) // offset)


@kernel(lambda vectors, normals, offsets, free: 2 * normals.size * len(vectors))
def layers(vectors: IntArray, normals: IntArray, offsets: IntArray, free: IntArray) -> FloatArray:
    """max_i ceil(max(|a_i y| / b_i - gamma, 0)) for every row y, free as in `layer`."""
    out = np.zeros(len(vectors))
    for i in range(len(vectors)):
        largest = np.int64(0)
        for h in range(len(offsets)):
            total = np.int64(0)
            for j in range(vectors.shape[1]):
                total += normals[h, j] * vectors[i, j]
            largest = max(largest, layer(abs(total), free[h], offsets[h]))
        out[i] = largest
    return out


@kernel(lambda vectors, normals, offsets: 2 * normals.size * len(vectors))
def contains(vectors: IntArray, normals: IntArray, offsets: IntArray) -> Mask:
    """Whether every |a_i y| <= b_i, for every row y."""
    out = np.ones(len(vectors), dtype=np.bool_)
    for i in range(len(vectors)):
        out[i] = inside(vectors[i], normals, offsets)
    return out


@kernel(lambda ordered, heights, reach, extent, normals, *_: normals.size * len(ordered) ** 2)
def count_neighbors(
    ordered: IntArray,
    heights: IntArray,
    reach: int,
    extent: IntArray,
    normals: IntArray,
    offsets: IntArray,
    enough: int,
) -> IntArray:
    """How many points lie in y + K for every point y, itself included, up to `enough`.

    Points are ordered by their heights, which differ by at most `reach` in K, so only a window
    of them is looked at, from the point outwards: who has neighbours mostly has near ones, and
    then a few are enough. `extent` is half the size of K's bounding box; products with what lies
    outside it might not fit 64 bits.
    """
    n, rank = ordered.shape
    counts = np.ones(n, dtype=np.int64)
    vector = np.empty(rank, dtype=np.int64)
    for i in range(n):
        for direction in (-1, 1):
            j = i + direction
            while 0 <= j < n and counts[i] < enough and abs(heights[j] - heights[i]) <= reach:
                near = True
                for axis in range(rank):
                    vector[axis] = ordered[j, axis] - ordered[i, axis]
                    near = near and abs(vector[axis]) <= extent[axis]
                if near and inside(vector, normals, offsets):
                    counts[i] += 1
                j += direction
    return counts


@kernel(lambda ordered, row, extent, normals, offsets: normals.size * len(ordered))
def is_alone(
    ordered: IntArray, row: int, extent: IntArray, normals: IntArray, offsets: IntArray
) -> bool:
    """Whether no other point lies in y + K, for one point y of those ordered as above."""
    vector = np.empty(ordered.shape[1], dtype=np.int64)
    for direction in (-1, 1):
        i = row + direction
        while 0 <= i < len(ordered) and abs(ordered[i, 0] - ordered[row, 0]) <= extent[0]:
            for axis in range(len(vector)):
                vector[axis] = ordered[i, axis] - ordered[row, axis]
            if inside(vector, normals, offsets):
                return False
            i += direction
    return True


@kernel()
def is_narrow(vectors: IntArray, row: int) -> bool:
    """Whether every entry of a row is below 2**62."""
    narrow = True
    for axis in range(vectors.shape[1]):
        narrow = narrow and abs(vectors[row, axis]) < LIMIT
    return narrow


@kernel()
def inside(vector: IntArray, normals: IntArray, offsets: IntArray) -> bool:
    """Whether every |a_i y| <= b_i."""
    for h in range(len(offsets)):
        total = np.int64(0)
        for j in range(len(vector)):
            total += normals[h, j] * vector[j]
        if abs(total) > offsets[h]:
            return False
    return True
