"""Envelope noise on the lattice, word for word that of `noise.envelope`."""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.kernels import wide
from dphmm.kernels.coins import laplace, wide_bernoulli_exp
from dphmm.kernels.compiling import kernel
from dphmm.kernels.gauge import is_narrow

NEARLY = 1 - 2.0**-40
"""Ratios of floats are right within 2**-50, so a facet below this share is not the largest."""


@kernel(nogil=True)
def draw_many(
    words: IntArray,
    powers: IntArray,
    rates: IntArray,
    slopes: IntArray,
    scale: int,
    normals: IntArray,
    offsets: IntArray,
    shares: FloatArray,
    basis: IntArray,
    p: int,
    q: int,
    reach: int,
    places: IntArray,
    done: Mask,
) -> None:
    """Add a noise vector to every row of places, and say which are done.

    The others need Python integers: places must be below 2**62, and so must be where noise leads.

    `powers` are the first 32 digits of e^-1, e^-2, ... down to a zero. Coordinate j is drawn
    at the rate rates[0, j] / rates[1, j], which is epsilon slopes[j] / scale. Normals are in
    the coordinates of the basis, `shares` are 1 / offsets as floats, `basis` is in the query's
    own coordinates, and `reach` bounds each |x_j|.
    """
    cursor = np.empty(1, dtype=np.int64)
    x = np.empty(len(slopes), dtype=np.int64)
    for row in range(len(words)):
        cursor[0] = 0
        while cursor[0] >= 0:
            below = np.int64(0)
            for j in range(len(x)):
                x[j] = laplace(rates[0, j], rates[1, j], powers, words[row], cursor)
                if abs(x[j]) > reach:
                    cursor[0] = -1
                    x[j] = 0
                below += abs(x[j]) * slopes[j]
            height, offset = _norm(x, normals, offsets, shares)
            # ||x|| - below / scale = excess / (offset scale), never negative.
            excess = wide.minus(
                wide.product(np.uint64(height), np.uint64(scale)),
                wide.product(np.uint64(offset), np.uint64(below)),
            )
            whole = wide.times(wide.product(np.uint64(offset), np.uint64(scale)), np.uint64(q))
            if wide_bernoulli_exp(wide.times(excess, np.uint64(p)), whole, words[row], cursor):
                break
        if cursor[0] >= 0:
            for axis in range(places.shape[1]):
                for j in range(len(x)):
                    places[row, axis] += x[j] * basis[j, axis]
        done[row] = cursor[0] >= 0 and is_narrow(places, row)


@kernel()
def _norm(
    x: IntArray, normals: IntArray, offsets: IntArray, shares: FloatArray
) -> tuple[np.int64, np.int64]:
    """The height and offset of the first facet with the largest quotient of the two."""
    best_height, best_offset, best = np.int64(0), offsets[0], -1.0
    for facet in range(len(offsets)):
        height = np.int64(0)
        for j in range(len(x)):
            height += normals[facet, j] * x[j]
        height = abs(height)
        # Floats only say which facets need no look; whole numbers decide.
        ratio = height * shares[facet]
        if ratio > best * NEARLY:
            if best < 0 or wide.is_less(
                wide.product(np.uint64(best_height), np.uint64(offsets[facet])),
                wide.product(np.uint64(height), np.uint64(best_offset)),
            ):
                best_height, best_offset, best = height, offsets[facet], ratio
    return best_height, best_offset
