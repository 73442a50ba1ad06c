"""Whole numbers of two 64-bit words, for products that one word cannot hold.

A number below 2**128 is a pair (high, low) of np.uint64, and additions, subtractions and
products are modulo 2**128. Every constant is an np.uint64: numba makes a float of a signed
and an unsigned integer together.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from dphmm.kernels.compiling import kernel

Word: TypeAlias = np.uint64
Wide: TypeAlias = tuple[np.uint64, np.uint64]

ZERO, ONE, HALF, WORD = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(64)
HALF_MASK = np.uint64(0xFFFFFFFF)
BASE = np.uint64(1 << 32)


@kernel()
def product(a: Word, b: Word) -> Wide:
    """a b of two words."""
    a_high, a_low, b_high, b_low = a >> HALF, a & HALF_MASK, b >> HALF, b & HALF_MASK
    low = a_low * b_low
    middle = a_high * b_low + (low >> HALF)
    other = a_low * b_high + (middle & HALF_MASK)
    high = a_high * b_high + (middle >> HALF) + (other >> HALF)
    return high, (other << HALF) | (low & HALF_MASK)


@kernel()
def times(a: Wide, b: Word) -> Wide:
    """a b of a wide number and a word."""
    high, low = product(a[1], b)
    return high + a[0] * b, low


@kernel()
def plus(a: Wide, b: Wide) -> Wide:
    """a + b."""
    low = a[1] + b[1]
    return a[0] + b[0] + (ONE if low < b[1] else ZERO), low


@kernel()
def minus(a: Wide, b: Wide) -> Wide:
    """a - b."""
    return a[0] - b[0] - (ONE if a[1] < b[1] else ZERO), a[1] - b[1]


@kernel()
def is_less(a: Wide, b: Wide) -> bool:
    """Whether a < b."""
    return bool(a[0] < b[0] or (a[0] == b[0] and a[1] < b[1]))


@kernel()
def shift_up(a: Wide, bits: Word) -> Wide:
    """a 2**bits, for fewer than 64 bits."""
    if bits == ZERO:
        return a
    return (a[0] << bits) | (a[1] >> (WORD - bits)), a[1] << bits


@kernel()
def leading_zeros(a: Word) -> Word:
    """How many bits above the highest one of a word that is not zero."""
    count = ZERO
    for bits in (HALF, np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), ONE):
        if a >> (WORD - bits) == ZERO:
            count += bits
            a <<= bits
    return count


@kernel()
def _digit(high: Word, next_digit: Word, divisor: Word) -> tuple[Word, Word]:
    """One 32-bit digit of a quotient and the remainder, by a divisor whose top bit is set."""
    top, bottom = divisor >> HALF, divisor & HALF_MASK
    digit = high // top
    rest = high - digit * top
    # The estimate is at most two too large (Knuth, The Art of Computer Programming, 4.3.1).
    while digit >= BASE or digit * bottom > ((rest << HALF) | next_digit):
        digit -= ONE
        rest += top
        if rest >= BASE:
            break
    return digit, (high << HALF) + next_digit - digit * divisor


@kernel()
def divide(a: Wide, divisor: Word) -> tuple[Word, Word]:
    """Quotient and remainder by a word that is larger than a's high word."""
    if a[0] == ZERO:
        return a[1] // divisor, a[1] % divisor
    bits = leading_zeros(divisor)
    high, low = shift_up(a, bits)
    scaled = divisor << bits
    first, rest = _digit(high, low >> HALF, scaled)
    second, rest = _digit(rest, low & HALF_MASK, scaled)
    return (first << HALF) + second, rest >> bits


@kernel()
def remainder(a: Wide, divisor: Wide) -> Wide:
    """a modulo a wide number that is not zero."""
    if is_less(a, divisor):
        return a
    if divisor[0] == ZERO:
        return ZERO, divide((a[0] % divisor[1], a[1]), divisor[1])[1]
    # One word of the divisor gives the quotient but for one (Hacker's Delight, 9-5).
    bits = leading_zeros(divisor[0])
    quotient, _ = divide((a[0] >> ONE, (a[0] << (WORD - ONE)) | (a[1] >> ONE)),
                         shift_up(divisor, bits)[0])  # fmt: skip
    quotient >>= WORD - ONE - bits
    if quotient > ZERO:
        quotient -= ONE
    rest = minus(a, times(divisor, quotient))
    return rest if is_less(rest, divisor) else minus(rest, divisor)
