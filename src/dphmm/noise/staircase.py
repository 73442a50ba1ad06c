"""Staircase noise: the norm rounded up, and where its first step ends.

L(x) = ceil(max(||x||_K - gamma, 0)) with 0 < gamma < 1, and P(z | s) is proportional to
exp(-epsilon L(z - f(s))). Norms of linked states differ by at most 1, so their layers do, and
every edge loses exactly epsilon. On a line this is the staircase of Geng and Viswanath (2014).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, exp, inf
from typing import Any

from dphmm.errors import ArgumentError
from dphmm.geometry.exact import Exact, as_epsilon, exact, whole

__all__ = ["as_gamma", "best_gamma", "largest_loss", "radial_sum"]

HUNDREDTHS = 100
DIGITS = 60
"""Decimal digits of the sums that decide gamma: the same on every machine."""

FLATTEST, STEEPEST = Fraction(1, 1000), Fraction(1000)
"""The best gamma does not change by a hundredth beyond these epsilons."""


def as_gamma(gamma: Exact | None, mechanism: str = "staircase") -> Fraction | None:
    """An exact gamma between 0 and 1; None where none is given."""
    if gamma is None:
        return None
    if not isinstance(mechanism, str) or mechanism != "staircase":
        raise ArgumentError(f"gamma must go with staircase noise, got {mechanism}")
    share = exact(gamma, "gamma")
    if not 0 < share < 1:
        raise ArgumentError(f"gamma must lie between 0 and 1, got {gamma!r}")
    return share


def best_gamma(rank: int, epsilon: Exact) -> Fraction:
    """The gamma, in hundredths, whose answers are nearest to the truth on average.

    Of the continuous law, where it depends on rank and epsilon alone: there the mean of
    ||x||_K, and with it that of every distance, is k/(k+1) times the quotient of the sums of
    (gamma + j)^(k+1) e^(-epsilon j) and of (gamma + j)^k e^(-epsilon j).

    Args:
        rank: The dimension of the body's span.
        epsilon: What an answer costs between two linked states.

    >>> [float(best_gamma(2, epsilon)) for epsilon in (1, 2, 4, 8)]
    [0.67, 0.54, 0.31, 0.09]
    """
    return _best_gamma(max(1, whole(rank, "rank")), as_epsilon(epsilon))


@lru_cache(maxsize=1024)
def _best_gamma(rank: int, epsilon: Fraction) -> Fraction:
    price = min(max(epsilon, FLATTEST), STEEPEST)
    # Decimals are rounded correctly, exponentials included, so nobody's floats decide.
    with localcontext(prec=DIGITS):
        decay = (-Decimal(price.numerator) / Decimal(price.denominator)).exp()
        moments = _moments(rank + 1, decay)

        def distance(hundredths: int) -> Decimal:
            gamma = Decimal(hundredths) / HUNDREDTHS
            far: Decimal = _shifted(rank + 1, gamma, moments) / _shifted(rank, gamma, moments)
            return far

        return Fraction(min(range(1, HUNDREDTHS), key=distance), HUNDREDTHS)


def radial_sum(power: int, gamma: Fraction, epsilon: float) -> float:
    """The sum over j = 0, 1, ... of (gamma + j)^power e^(-epsilon j).

    Times (1 - e^(-epsilon)) / power it is the integral of r^(power - 1) e^(-epsilon L(r)).
    """
    return float(_shifted(power, float(gamma), _moments(power, exp(-epsilon))))


def _moments(order: int, decay: Any) -> list[Any]:
    """The sums of j^i decay^j over j, for i = 0..order, each from those before it."""
    moments = [1 / (1 - decay)]
    for i in range(1, order + 1):
        moments.append(decay * moments[0] * sum(comb(i, n) * moments[n] for n in range(i)))
    return moments


def _shifted(power: int, gamma: Any, moments: list[Any]) -> Any:
    """The sum of (gamma + j)^power decay^j, by the binomial theorem."""
    return sum(comb(power, i) * gamma ** (power - i) * moments[i] for i in range(power + 1))


def largest_loss(norm: Fraction | float, epsilon: Fraction, staircase: bool) -> Fraction | float:
    """What two states lose at most whose answers differ by a vector of this norm.

    epsilon times the norm under K-norm noise, and times its ceiling under a staircase: no two
    layers differ by more. Some answer attains it (docs/mathematics.md).
    """
    return (ceil(norm) if staircase and norm < inf else norm) * epsilon
