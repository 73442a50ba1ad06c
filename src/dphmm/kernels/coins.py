"""Exact random numbers from words, read as `noise.coins` and `noise.randomness` read them.

Words are read from an array; `cursor[0]` is the next one, and becomes -1 when the array
runs out or a product might pass what is computed here. The caller then draws that answer
again from the same words with Python integers, so the two never disagree.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from dphmm._types import IntArray
from dphmm.kernels import wide
from dphmm.kernels.compiling import kernel

Whole: TypeAlias = int | np.int64

LEVELS = 64
"""Deeper than any exponential series goes in practice; beyond it the caller takes over."""

SHORT = np.uint64(1 << 24)
"""Numbers below this many take one word, others two or four; the same as in `randomness`."""

ONE = np.int64(1)
"""Of the type of every other number here, so that no coin is compiled a second time for it."""

NARROW = np.uint64(1 << 56)
"""Denominators whose first multiples, up to `LEVELS`, fit a signed word."""


@kernel()
def below(n: Whole, words: IntArray, cursor: IntArray) -> Whole:
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


@kernel()
def wide_below(n: wide.Wide, words: IntArray, cursor: IntArray) -> wide.Wide:
    """A uniform integer in 0..n-1 for n above 2**24: two words up to 2**64, then four."""
    everything = np.uint64(0xFFFFFFFFFFFFFFFF)
    long = n[0] > wide.ONE or (n[0] == wide.ONE and n[1] > wide.ZERO)
    width = 4 if long else 2
    last = (everything if long else wide.ZERO, everything)
    beyond = wide.minus(last, n)
    while True:
        if cursor[0] < 0 or cursor[0] + width > len(words):
            cursor[0] = -1
            return wide.ZERO, wide.ZERO
        value = (wide.ZERO, wide.ZERO)
        for i in range(width):
            value = wide.shift_up(value, wide.HALF)
            value = (value[0], value[1] | np.uint64(words[cursor[0] + i]))
        cursor[0] += width
        if wide.is_less(beyond, value):
            broken = wide.remainder(wide.plus(beyond, (wide.ZERO, wide.ONE)), n)
            if wide.is_less(wide.minus(last, broken), value):
                continue
        return wide.remainder(value, n)


@kernel()
def bernoulli_exp(numerator: Whole, denominator: Whole, words: IntArray, cursor: IntArray) -> bool:
    """True with probability exp(-numerator/denominator)."""
    # Once the words are out every coin says True, and the loop need not go on.
    while numerator > denominator and cursor[0] >= 0:
        if not _series(ONE, ONE, words, cursor):
            return False
        numerator -= denominator
    return _series(numerator, denominator, words, cursor)


@kernel()
def _series(numerator: Whole, denominator: Whole, words: IntArray, cursor: IntArray) -> bool:
    if numerator == 0:
        return True
    k = 1
    while below(k * denominator, words, cursor) < numerator:
        k += 1
        if k > LEVELS:
            cursor[0] = -1
        if cursor[0] < 0:
            return True
    return k % 2 == 1


@kernel()
def wide_bernoulli_exp(
    numerator: wide.Wide, denominator: wide.Wide, words: IntArray, cursor: IntArray
) -> bool:
    """`bernoulli_exp` for a denominator below 2**120."""
    while wide.is_less(denominator, numerator) and cursor[0] >= 0:
        if not _series(ONE, ONE, words, cursor):
            return False
        numerator = wide.minus(numerator, denominator)
    if denominator[0] == wide.ZERO and denominator[1] < NARROW:
        return _series(np.int64(numerator[1]), np.int64(denominator[1]), words, cursor)
    if numerator[0] == wide.ZERO and numerator[1] == wide.ZERO:
        return True
    k = 1
    bound = denominator
    while wide.is_less(wide_below(bound, words, cursor), numerator):
        k += 1
        bound = wide.plus(bound, denominator)
        if k > LEVELS:
            cursor[0] = -1
        if cursor[0] < 0:
            return True
    return k % 2 == 1


@kernel()
def geometric(p: int, q: int, words: IntArray, cursor: IntArray) -> Whole:
    """m with probability proportional to exp(-m p/q)."""
    while True:
        remainder = below(q, words, cursor)
        if bernoulli_exp(remainder, q, words, cursor):
            break
    whole = np.int64(0)
    while cursor[0] >= 0 and _series(ONE, ONE, words, cursor):
        whole += 1
        if whole > LEVELS:
            cursor[0] = -1
    return (remainder + q * whole) // p


@kernel()
def whole_steps(powers: IntArray, words: IntArray, cursor: IntArray) -> Whole:
    """m with probability proportional to exp(-m); `powers` are the first digits of e^-1, ..."""
    if cursor[0] < 0 or cursor[0] >= len(words):
        cursor[0] = -1
        return np.int64(0)
    value = np.int64(words[cursor[0]])
    cursor[0] += 1
    m = 0
    while value < powers[m]:
        m += 1
    # Digits of a power, the last of which are zeros: one word cannot decide.
    if value == powers[m]:
        cursor[0] = -1
    return np.int64(m)


@kernel()
def laplace(p: int, q: int, powers: IntArray, words: IntArray, cursor: IntArray) -> Whole:
    """m with probability proportional to exp(-|m| p/q); the sign comes with the remainder."""
    while True:
        number = below(2 * q, words, cursor)
        remainder = number >> 1
        if not bernoulli_exp(remainder, q, words, cursor):
            continue
        m = (remainder + q * whole_steps(powers, words, cursor)) // p
        if cursor[0] < 0:
            return np.int64(0)
        if number & 1 == 0:
            return m
        if m > 0:
            return -m
