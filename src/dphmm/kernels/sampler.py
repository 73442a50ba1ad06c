"""The exact lattice sampler in 64-bit integers, word for word the one in `mechanisms`.

Words are read from an array; `cursor[0]` is the next one, and becomes -1 when the array
runs out or a product might pass 64 bits. The caller then draws that answer again from the
same words with Python integers, so the two never disagree.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit

from dphmm._types import IntArray, Mask

Whole: TypeAlias = int | np.int64

LEVELS = 64
"""Deeper than any exponential series goes in practice; beyond it the caller takes over."""


SHORT = np.uint64(1 << 24)
"""Numbers below this many take one word, others two; the same as in `randomness`."""


@njit(cache=True)
def _below(n: Whole, words: IntArray, cursor: IntArray) -> Whole:
    """A uniform integer in 0..n-1 by throwing away the last, broken run of words."""
    # Every return is np.int64: signed and unsigned together would make this function a float.
    if n == 1:
        return np.int64(0)
    size = np.uint64(n)
    width = 1 if size <= SHORT else 2
    last = np.uint64(0xFFFFFFFF) if size <= SHORT else np.uint64(0xFFFFFFFFFFFFFFFF)
    while True:
        if cursor[0] < 0 or cursor[0] + width > len(words):
            cursor[0] = -1
            return np.int64(0)
        value = np.uint64(words[cursor[0]])
        if width == 2:
            value = value << np.uint64(32) | np.uint64(words[cursor[0] + 1])
        cursor[0] += width
        # The division that finds the broken run is only needed near the end.
        if value <= last - size or value <= last - (last - size + np.uint64(1)) % size:
            return np.int64(value % size)


@njit(cache=True)
def _bernoulli_exp(numerator: Whole, denominator: Whole, words: IntArray, cursor: IntArray) -> bool:
    while numerator > denominator:
        if not _bernoulli_series(1, 1, words, cursor):
            return False
        numerator -= denominator
    return _bernoulli_series(numerator, denominator, words, cursor)


@njit(cache=True)
def _bernoulli_series(
    numerator: Whole, denominator: Whole, words: IntArray, cursor: IntArray
) -> bool:
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
def _geometric(p: int, q: int, words: IntArray, cursor: IntArray) -> Whole:
    while True:
        remainder = _below(q, words, cursor)
        if _bernoulli_exp(remainder, q, words, cursor):
            break
    whole = 0
    while cursor[0] >= 0 and _bernoulli_series(1, 1, words, cursor):
        whole += 1
    return (remainder + q * whole) // p


@njit(cache=True, nogil=True)
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
    """Write a noise vector for every row of words; not done is what needs Python integers.

    Cones come as arrays: cumulated volumes, volumes, adjugates modulo the volume, strict
    sides, and generators in the query's own coordinates. `reach` bounds the multiples m.
    """
    done = np.empty(len(words), dtype=np.bool_)
    cursor = np.empty(1, dtype=np.int64)
    layer = np.empty(inverses.shape[1], dtype=np.int64)
    x = np.empty(inverses.shape[1], dtype=np.int64)
    for row in range(len(words)):
        cursor[0] = 0
        _draw(
            words[row], edges, volumes, inverses, strict, generators, p, q, reach, noise[row],
            cursor, layer, x,
        )  # fmt: skip
        done[row] = cursor[0] >= 0
    return done


@njit(cache=True)
def _draw(
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
    cursor: IntArray,
    layer: IntArray,
    x: IntArray,
) -> None:
    rank = len(layer)
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
