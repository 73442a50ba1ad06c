"""Staircase noise on the lattice by layers, word for word that of `noise.layers`."""

from __future__ import annotations

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.kernels.coins import below, whole_steps
from dphmm.kernels.compiling import kernel
from dphmm.kernels.gauge import inside, is_narrow


@kernel(lambda words, *rest: 1000 * len(words), nogil=True)
def draw_many(
    words: IntArray,
    tails: IntArray,
    sides: IntArray,
    limits: IntArray,
    slopes: IntArray,
    normals: IntArray,
    basis: IntArray,
    places: IntArray,
    done: Mask,
) -> None:
    """Add a noise vector to every row of places, and say which are done.

    The others need Python integers: places must be below 2**62, and so must be where noise leads.

    `tails` are the first 32 digits of the probabilities of layer 1 or more, 2 or more, ...
    down to a zero. `sides` and `limits` hold, for every layer, how many values each number of a
    point has and what heights must not pass. `slopes` are a cross-polytope's, none for a box;
    `basis` is in the query's own coordinates.
    """
    cursor = np.empty(1, dtype=np.int64)
    x = np.empty(len(basis), dtype=np.int64)
    numbers = np.empty(sides.shape[1], dtype=np.int64)
    for row in range(len(words)):
        cursor[0] = 0
        while cursor[0] >= 0:
            layer = whole_steps(tails, words[row], cursor)
            for j in range(len(numbers)):
                numbers[j] = below(sides[layer, j], words[row], cursor)
            if len(slopes) == 0:
                for j in range(len(x)):
                    x[j] = numbers[j] - sides[layer, j] // 2
            elif not _placed(numbers, slopes, x):
                continue
            if inside(x, normals, limits[layer]):
                break
        if cursor[0] >= 0:
            for axis in range(places.shape[1]):
                for j in range(len(x)):
                    places[row, axis] += x[j] * basis[j, axis]
        done[row] = cursor[0] >= 0 and is_narrow(places, row)


@kernel()
def _placed(numbers: IntArray, slopes: IntArray, x: IntArray) -> bool:
    """Write the point of a cross-polytope that numbers make; whether they make one."""
    rank = len(x)
    for j in range(1, rank):
        number, i = numbers[j], j
        while i > 0 and numbers[i - 1] > number:
            numbers[i] = numbers[i - 1]
            i -= 1
        numbers[i] = number
    before = np.int64(-1)
    for j in range(rank):
        gap = numbers[j] - before - 1
        if gap < 0:
            return False
        before = numbers[j]
        x[j] = gap // slopes[j]
        if numbers[rank] >> j & 1:
            if x[j] == 0:
                return False
            x[j] = -x[j]
    return True
