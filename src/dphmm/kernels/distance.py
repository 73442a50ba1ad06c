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


@kernel(lambda points, candidates: 2 * points.size * len(candidates))
def nearest_among(points: IntArray, candidates: IntArray) -> IntArray:
    """For every point the number of the nearest candidate, the first on ties."""
    nearest = np.zeros(len(points), dtype=np.int64)
    for i in range(len(points)):
        record = np.int64(np.iinfo(np.int64).max)
        for j in range(len(candidates)):
            distance = np.int64(0)
            for axis in range(points.shape[1]):
                distance += (points[i, axis] - candidates[j, axis]) ** 2
            if distance < record:
                record = distance
                nearest[i] = j
    return nearest
