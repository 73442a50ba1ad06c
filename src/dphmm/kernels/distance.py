"""Nearest integer points by exact squared distance.

Coordinates must stay below 2**29, so that six squared differences fit 64 bits.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import IntArray
from dphmm.kernels.compiling import kernel


@kernel(lambda points, groups: 2 * points.size * len(points))
def nearest_elsewhere(points: IntArray, groups: IntArray) -> IntArray:
    """For every point the nearest one of another group, the first on ties; -1 if there is none."""
    n, dimension = points.shape
    nearest = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        record = np.int64(np.iinfo(np.int64).max)
        for j in range(n):
            if groups[i] != groups[j]:
                distance = np.int64(0)
                for axis in range(dimension):
                    distance += (points[i, axis] - points[j, axis]) ** 2
                if distance < record:
                    record = distance
                    nearest[i] = j
    return nearest


@kernel(lambda points, candidates, numbers: 2 * points.size * len(candidates))
def nearest_among(points: IntArray, candidates: IntArray, numbers: IntArray) -> IntArray:
    """For every point the number of the nearest candidate, the least on ties.

    Candidates come in the order of their first coordinate, so that a search ends where that
    coordinate alone is further away than the nearest.
    """
    nearest = np.empty(len(points), dtype=np.int64)
    last = len(candidates)
    for i in range(len(points)):
        # The first candidate that is not before the point; from there both ways.
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if candidates[middle, 0] < points[i, 0]:
                low = middle + 1
            else:
                high = middle
        record = np.int64(np.iinfo(np.int64).max)
        best = np.int64(-1)
        for way in range(2):
            j = low if way else low - 1
            while 0 <= j < last:
                distance = (points[i, 0] - candidates[j, 0]) ** 2
                if distance > record:
                    break
                for axis in range(1, points.shape[1]):
                    distance += (points[i, axis] - candidates[j, axis]) ** 2
                if distance < record or (distance == record and numbers[j] < best):
                    record = distance
                    best = numbers[j]
                j += 1 if way else -1
        nearest[i] = best
    return nearest
