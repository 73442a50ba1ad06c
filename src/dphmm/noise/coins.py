"""Exact coins and steps from words, with integers of any size (Canonne et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dphmm.noise.randomness import Words

__all__ = ["bernoulli_exp", "exp_bounds", "exp_digits", "geometric", "laplace", "whole_steps"]

WORD_DIGITS = 32
"""Binary digits of a word."""


def bernoulli_exp(numerator: int, denominator: int, words: Words) -> bool:
    """True with probability exp(-numerator/denominator), exactly."""
    while numerator > denominator:
        if not bernoulli_exp(1, 1, words):
            return False
        numerator -= denominator
    if numerator == 0:
        return True
    k = 1
    while words.below(k * denominator) < numerator:
        k += 1
    return k % 2 == 1


def geometric(p: int, q: int, words: Words) -> int:
    """m with probability proportional to exp(-m p/q), exactly."""
    while True:
        remainder = words.below(q)
        if bernoulli_exp(remainder, q, words):
            break
    whole = 0
    while bernoulli_exp(1, 1, words):
        whole += 1
    return (remainder + q * whole) // p


def laplace(p: int, q: int, words: Words) -> int:
    """m with probability proportional to exp(-|m| p/q), exactly.

    One number gives the remainder and the sign; minus zero is drawn again, or zero would
    come twice as often.
    """
    while True:
        remainder, sign = divmod(words.below(2 * q), 2)
        if bernoulli_exp(remainder, q, words):
            m = (remainder + q * whole_steps(words)) // p
            if m or not sign:
                return -m if sign else m


def whole_steps(words: Words, tail: Callable[[int, int], int] | None = None) -> int:
    """m with probability proportional to exp(-m), exactly, nearly always from one word.

    A word holds the first 32 binary digits of a uniform number, and m counts the powers
    e^-1, e^-2, ... above it. If the digits are those of such a power, more words decide.
    `tail(m, digits)` gives the digits of other probabilities of m or more.
    """
    tail = tail or exp_digits
    value, digits = words.word(), WORD_DIGITS
    while True:
        m = 0
        while value < (bound := tail(m + 1, digits)):
            m += 1
        if value != bound:
            return m
        value, digits = value << WORD_DIGITS | words.word(), digits + WORD_DIGITS


@lru_cache(maxsize=256)
def exp_digits(m: int, digits: int) -> int:
    """The whole part of 2**digits e**-m."""
    guard = 2 * digits + 32
    while True:
        low, high = (bound**m for bound in exp_bounds(Fraction(1), guard))
        shift = m * guard - digits
        if low >> shift == high >> shift:
            return low >> shift
        guard *= 2


def exp_bounds(share: Fraction, guard: int) -> tuple[int, int]:
    """Whole numbers around 2**guard e**-share, for a share up to 1, a few dozen apart."""
    # The alternating series: what is left out is below its first term, which is cut to zero.
    total, term, k = 0, 1 << guard, 0
    while term:
        total += -term if k % 2 else term
        k += 1
        term = term * share.numerator // (share.denominator * k)
    # A term's own rounding and what it has of the one before make it less than two too small.
    return total - 2 * k - 2, total + 2 * k + 2
