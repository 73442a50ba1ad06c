"""Exact numbers: what a user writes is what is used, to the last digit.

One rule for every epsilon, limit, radius and length: an integer, a fraction, a decimal or a
text is that very number, and a float is the shortest decimal that means it, so that 0.1,
"0.1" and Fraction(1, 10) are the same.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from dphmm.errors import ArgumentError

__all__ = ["Exact", "as_delta", "as_epsilon", "as_text", "exact", "round_up", "seconds", "whole"]

Exact: TypeAlias = int | str | float | Fraction | Decimal

LARGEST_EXPONENT = 400
"""Powers of ten in a number, either way; floats end at 308."""
LARGEST_POWER = 1000
"""Powers of two by which a number may differ from 1 and be a float."""

MOST = 2**62
"""No count or time is larger; what is made of a few of them is a 64-bit integer still."""

_UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
_DURATION = re.compile(r"^\s*([0-9]{1,9})\s*([a-z]+)\s*$")


def exact(number: Exact, argument: str = "number") -> Fraction:
    """The rational number that was written; `argument` is what messages call it.

    Args:
        number: An int, a fraction, a decimal or a text such as "0.1" or "1/3"; a float means the
            shortest decimal that is this float.
        argument: What a message calls the number.

    >>> exact(0.1), exact("1/3"), exact(Fraction(5))
    (Fraction(1, 10), Fraction(1, 3), Fraction(5, 1))
    """
    if type(number) is Fraction:
        return _within_floats(number, argument)
    if type(number) is int:
        return _within_floats(Fraction(number), argument)
    given = number
    if isinstance(number, (float, np.floating)):
        number = repr(float(number))
    elif isinstance(number, np.integer):
        number = int(number)
    try:
        if isinstance(number, bool):
            raise TypeError
        # A fraction writes 1e999999999 out, which would take all memory and never end.
        if isinstance(number, (str, Decimal)) and "/" not in str(number):
            if abs(Decimal(number).adjusted()) > LARGEST_EXPONENT:
                raise ValueError
        found = Fraction(number)
    except (TypeError, ValueError, ArithmeticError):
        raise ArgumentError(f"{argument} must be finite and rational, got {given!r}") from None
    return _within_floats(found, argument)


def _within_floats(number: Fraction, argument: str) -> Fraction:
    """The number, unless it would be infinite or zero as a float, and is not."""
    power = number.numerator.bit_length() - number.denominator.bit_length()
    if abs(power) > LARGEST_POWER and number:
        raise ArgumentError(f"{argument} must be 0 or of a size from 1e-300 to 1e300")
    return number


def as_epsilon(epsilon: Exact, argument: str = "epsilon") -> Fraction:
    """A positive exact number, such as an epsilon or a limit.

    Args:
        epsilon: The number, as for `exact`.
        argument: What a message calls it.

    >>> as_epsilon("0.1"), as_epsilon(1), as_epsilon(0.1)
    (Fraction(1, 10), Fraction(1, 1), Fraction(1, 10))
    """
    used = exact(epsilon, argument)
    if used <= 0:
        raise ArgumentError(f"{argument} must be positive, got {epsilon!r}")
    return used


def as_delta(delta: Exact, argument: str = "delta") -> Fraction:
    """An exact probability below one, such as what a location set may leave out.

    Args:
        delta: The number, as for `exact`.
        argument: What a message calls it.
    """
    used = exact(delta, argument)
    if not 0 <= used < 1:
        raise ArgumentError(f"{argument} must be at least 0 and below 1, got {delta!r}")
    return used


def whole(number: int, argument: str, least: int | None = 0) -> int:
    """A whole number, such as a count or a time.

    Args:
        number: An integer, Python's or numpy's; True and 3.0 are none.
        argument: What a message calls it.
        least: The smallest number that will do; None if any will.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise ArgumentError(f"{argument} must be a whole number, got {number!r}")
    if least is not None and number < least:
        raise ArgumentError(f"{argument} must be at least {least}, got {number!r}")
    if abs(int(number)) > MOST:
        raise ArgumentError(f"{argument} must be at most 2**62 in size")
    return int(number)


def seconds(duration: str, argument: str) -> int:
    """The length of a duration such as "5 min", in seconds.

    Args:
        duration: A whole number and a unit: seconds, minutes, hours or days.
        argument: What a message calls it.

    >>> seconds("5 min", "step")
    300
    """
    found = _DURATION.match(duration)
    size = None if found is None else _UNITS.get(found[2])
    if found is None or size is None or int(found[1]) < 1:
        raise ArgumentError(
            f"{argument} must be a number or a duration like '5 min', got {duration!r}"
        )
    return int(found[1]) * size


@lru_cache(maxsize=256)
def as_text(number: Fraction) -> str:
    """A rational number as it would be written: a decimal if it has one, else a quotient.

    Args:
        number: The number.

    >>> as_text(Fraction(1, 10)), as_text(Fraction(3)), as_text(Fraction(1, 3))
    ('0.1', '3', '1/3')
    """
    rest, places = number.denominator, 0
    for factor in (2, 5):
        power = 0
        while rest % factor == 0:
            rest //= factor
            power += 1
        places = max(places, power)
    if rest != 1 or places > 30:
        return str(number)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def round_up(number: Fraction | Decimal | float, digits: int) -> Decimal:
    """The least decimal of some digits that is at least a number: for what is "at most" so much.

    Args:
        number: The number, finite; a float is what its bits say.
        digits: How many digits to keep.

    >>> print(round_up(Fraction(1, 3), 4), round_up(Fraction(2), 4))
    0.3334 2
    """
    exactly = Fraction(number)
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return context.divide(Decimal(exactly.numerator), Decimal(exactly.denominator))
