"""Exact coins and steps from words, with integers of any size (Canonne et al. 2020)."""

from __future__ import annotations

from dphmm.noise.randomness import Words

__all__ = ["bernoulli_exp", "geometric", "laplace"]


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
    return (remainder + q * _whole_steps(words)) // p


def laplace(p: int, q: int, words: Words) -> int:
    """m with probability proportional to exp(-|m| p/q), exactly.

    One number gives the remainder and the sign; minus zero is drawn again, or zero would
    come twice as often.
    """
    while True:
        remainder, sign = divmod(words.below(2 * q), 2)
        if bernoulli_exp(remainder, q, words):
            m = (remainder + q * _whole_steps(words)) // p
            if m or not sign:
                return -m if sign else m


def _whole_steps(words: Words) -> int:
    whole = 0
    while bernoulli_exp(1, 1, words):
        whole += 1
    return whole
