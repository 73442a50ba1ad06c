"""Sums over the lattice points of a half-open parallelepiped."""

from __future__ import annotations

import math

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.kernels.compiling import kernel
from dphmm.kernels.gauge import layer


@kernel(lambda diagonal, inverse, volume, *rest: 2 * inverse.size * volume, nogil=True)
def moments(
    diagonal: IntArray, inverse: IntArray, volume: int, strict: Mask, free: int, epsilon: float
) -> tuple[float, FloatArray, FloatArray]:
    """The sums of w, w c_j and w c_i c_j, with w = exp(-epsilon g), over the cell's points.

    A point has coordinates c = n / volume, n = x `inverse` modulo the volume, and `diagonal`
    is the box of representatives x (the diagonal of the generators' Hermite form). A strict
    side counts volume instead of zero. g is the sum of c or, unless `free` is negative, its
    layer (see `gauge.layer`).
    """
    rank = len(diagonal)
    if rank == 2:
        return _plane_moments(diagonal, inverse, np.int64(volume), strict, free, epsilon)
    weight = 0.0
    first = np.zeros(rank)
    pairs = np.zeros((rank, rank))
    x = np.zeros(rank, dtype=np.int64)
    share = np.empty(rank)
    for _ in range(volume):
        total = np.int64(0)
        for j in range(rank):
            n = np.int64(0)
            for i in range(rank):
                n = (n + x[i] * inverse[i, j]) % volume
            if strict[j] and n == 0:
                n = np.int64(volume)
            share[j] = n / volume
            total += n
        w = _weight(total, volume, free, epsilon)
        weight += w
        for j in range(rank):
            first[j] += w * share[j]
            for i in range(rank):
                pairs[i, j] += w * share[i] * share[j]
        axis = 0
        while axis < rank:
            x[axis] += 1
            if x[axis] < diagonal[axis]:
                break
            x[axis] = 0
            axis += 1
    return weight, first, pairs


@kernel()
def _plane_moments(
    diagonal: IntArray, inverse: IntArray, volume: np.int64, strict: Mask, free: int, epsilon: float
) -> tuple[float, FloatArray, FloatArray]:
    """The same in the plane, bit for bit, in half the time: no arrays, no divisions of integers.

    Maps are here, and a page waits for it at every move of a slider.
    """
    weight = first_a = first_b = aa = ab = ba = bb = 0.0
    row_a = row_b = np.int64(0)
    for _ in range(diagonal[1]):
        next_a, next_b = row_a, row_b
        for _ in range(diagonal[0]):
            n_a = volume if strict[0] and next_a == 0 else next_a
            n_b = volume if strict[1] and next_b == 0 else next_b
            a, b = n_a / volume, n_b / volume
            w = _weight(n_a + n_b, volume, free, epsilon)
            weight += w
            first_a += w * a
            first_b += w * b
            aa += w * a * a
            ab += w * a * b
            ba += w * b * a
            bb += w * b * b
            next_a = _next(next_a, inverse[0, 0], volume)
            next_b = _next(next_b, inverse[0, 1], volume)
        row_a = _next(row_a, inverse[1, 0], volume)
        row_b = _next(row_b, inverse[1, 1], volume)
    return weight, np.array([first_a, first_b]), np.array([[aa, ab], [ba, bb]])


@kernel()
def _next(n: np.int64, step: np.int64, volume: np.int64) -> np.int64:
    """n + step modulo the volume, of two that are below it."""
    return n + step - volume if n + step >= volume else n + step


@kernel(lambda diagonal, inverse, volume, *rest: 2 * inverse.size * volume)
def binned(
    diagonal: IntArray,
    inverse: IntArray,
    volume: int,
    strict: Mask,
    free: int,
    epsilon: float,
    bins: int,
) -> FloatArray:
    """The sums of exp(-epsilon g) over the cell's points, by their place in a bins^rank grid.

    Bins are numbered with the first coordinate slowest; arguments as in `moments`.
    """
    rank = len(diagonal)
    sums = np.zeros(bins**rank)
    x = np.zeros(rank, dtype=np.int64)
    for _ in range(volume):
        total = np.int64(0)
        place = np.int64(0)
        for j in range(rank):
            n = np.int64(0)
            for i in range(rank):
                n = (n + x[i] * inverse[i, j]) % volume
            layer = n
            if strict[j]:
                n = np.int64(volume) if n == 0 else n
                layer = n - 1
            total += n
            place = place * bins + layer * bins // volume
        sums[place] += _weight(total, volume, free, epsilon)
        axis = 0
        while axis < rank:
            x[axis] += 1
            if x[axis] < diagonal[axis]:
                break
            x[axis] = 0
            axis += 1
    return sums


@kernel()
def _weight(total: np.int64, volume: int, free: int, epsilon: float) -> float:
    if free < 0:
        return math.exp(-epsilon * (total / volume))
    return math.exp(-epsilon * layer(total, np.int64(free), np.int64(volume)))
