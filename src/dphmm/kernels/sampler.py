"""The exact lattice sampler in 64-bit integers, word for word the one in `mechanisms`.

Words are read from an array; `cursor[0]` is the next one, and becomes -1 when the array
runs out or a product might pass 64 bits. The caller then draws that answer again from the
same words with Python integers, so the two never disagree.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from dphmm._types import IntArray, Mask

LEVELS = 64
"""Deeper than any exponential series goes in practice; beyond it the caller takes over."""


@njit(cache=True)
def _below(n: int, words: IntArray, cursor: IntArray) -> int:
    """A uniform integer in 0..n-1 by throwing away the last, broken run of words."""
    # Every return is np.int64: signed and unsigned together would make this function a float.
    if n == 1:
        return np.int64(0)
    size = np.uint64(n)
    broken = (np.uint64(0) - size) % size
    while True:
        if cursor[0] < 0 or cursor[0] >= len(words):
            cursor[0] = -1
            return np.int64(0)
        word = words[cursor[0]]
        cursor[0] += 1
        if word <= np.uint64(0xFFFFFFFFFFFFFFFF) - broken:
            return np.int64(word % size)


@njit(cache=True)
def _bernoulli_exp(numerator: int, denominator: int, words: IntArray, cursor: IntArray) -> bool:
    while numerator > denominator:
        if not _bernoulli_series(1, 1, words, cursor):
            return False
        numerator -= denominator
    return _bernoulli_series(numerator, denominator, words, cursor)


@njit(cache=True)
def _bernoulli_series(numerator: int, denominator: int, words: IntArray, cursor: IntArray) -> bool:
    if numerator == 0:
        return True
    k = 1
    while _below(k * denominator, words, cursor) < numerator:
        k += 1
        if k > LEVELS:
            cursor[0] = -1
        if cursor[0] < 0:
            return True
    return k % 2 == 1


@njit(cache=True)
def _geometric(p: int, q: int, words: IntArray, cursor: IntArray) -> int:
    while True:
        remainder = _below(q, words, cursor)
        if _bernoulli_exp(remainder, q, words, cursor):
            break
    whole = 0
    while cursor[0] >= 0 and _bernoulli_series(1, 1, words, cursor):
        whole += 1
    return (remainder + q * whole) // p


@njit(cache=True)
def draw(
    words: IntArray,
    edges: IntArray,
    volumes: IntArray,
    inverses: IntArray,
    strict: Mask,
    generators: IntArray,
    p: int,
    q: int,
    reach: int,
    noise: IntArray,
) -> bool:
    """Write one noise vector into `noise`; False if it must be drawn with Python integers.

    Cones come as arrays: cumulated volumes, volumes, adjugates modulo the volume, strict
    sides, and generators in the query's own coordinates. `reach` bounds the multiples m.
    """
    rank = volumes.size and inverses.shape[1]
    cursor = np.zeros(1, dtype=np.int64)
    layer = np.empty(rank, dtype=np.int64)
    x = np.empty(rank, dtype=np.int64)
    while True:
        cone = np.searchsorted(edges, _below(edges[-1], words, cursor), side="right")
        volume = volumes[cone]
        for j in range(rank):
            x[j] = _below(volume, words, cursor)
        total = np.int64(0)
        for j in range(rank):
            n = np.int64(0)
            for i in range(rank):
                n = (n + x[i] * inverses[cone, i, j]) % volume
            if strict[cone, j] and n == 0:
                n = volume
            layer[j] = n
            total += n
        if _bernoulli_exp(p * total, q * volume, words, cursor):
            break
    for axis in range(len(noise)):
        part = np.int64(0)
        for j in range(rank):
            part += layer[j] * generators[cone, j, axis]
        noise[axis] = part // volume
    for j in range(rank):
        m = _geometric(p, q, words, cursor)
        if m > reach:
            cursor[0] = -1
        for axis in range(len(noise)):
            noise[axis] += m * generators[cone, j, axis]
    return cursor[0] >= 0


@njit(cache=True, parallel=True)
def draw_many(
    words: IntArray,
    edges: IntArray,
    volumes: IntArray,
    inverses: IntArray,
    strict: Mask,
    generators: IntArray,
    p: int,
    q: int,
    reach: int,
    noise: IntArray,
) -> Mask:
    """`draw` for every row of words, on all cores."""
    done = np.empty(len(words), dtype=np.bool_)
    for i in prange(len(words)):
        done[i] = draw(
            words[i], edges, volumes, inverses, strict, generators, p, q, reach, noise[i]
        )
    return done
