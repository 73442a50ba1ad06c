"""Staircase noise on the lattice by layers, word for word that of `noise.layers`."""

from __future__ import annotations

import numpy as np
from numba import njit

from dphmm._types import IntArray, Mask
from dphmm.kernels.coins import below, whole_steps
from dphmm.kernels.gauge import inside


@njit(cache=True, nogil=True)
def draw_many(
    words: IntArray,
    tails: IntArray,
    boxes: IntArray,
    limits: IntArray,
    normals: IntArray,
    basis: IntArray,
    noise: IntArray,
) -> Mask:
    """Write a noise vector for every row of words; not done is what needs Python integers.

    `tails` are the first 32 digits of the probabilities of layer 1 or more, 2 or more, ...
    down to a zero. `boxes` and `limits` hold, for every layer, half the sides of its box and
    what heights must not pass; `basis` is in the query's own coordinates.
    """
    done = np.empty(len(words), dtype=np.bool_)
    cursor = np.empty(1, dtype=np.int64)
    x = np.empty(len(basis), dtype=np.int64)
    for row in range(len(words)):
        cursor[0] = 0
        while cursor[0] >= 0:
            layer = whole_steps(tails, words[row], cursor)
            for j in range(len(x)):
                side = boxes[layer, j]
                x[j] = below(2 * side + 1, words[row], cursor) - side
            if inside(x, normals, limits[layer]):
                break
        for axis in range(noise.shape[1]):
            noise[row, axis] = 0
            for j in range(len(x)):
                noise[row, axis] += x[j] * basis[j, axis]
        done[row] = cursor[0] >= 0
    return done
