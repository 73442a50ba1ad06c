"""Lengths as people write and read them: '250m', '0.25 km', 1,923 m."""

from __future__ import annotations

import re
from fractions import Fraction
from math import floor, log10

from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, exact

__all__ = ["lattice_step", "length", "measure", "roughly"]

METRES = {"m": exact(1), "km": exact(1000), "cm": exact("0.01"), "mm": exact("0.001")}
METRES |= {"mi": exact("1609.344"), "yd": exact("0.9144"), "ft": exact("0.3048")}
_WRITTEN = re.compile(r"\s*([-+0-9./eE]*[0-9.])\s*([^\W\d_]+)\s*")


def length(given: Exact, unit: str, argument: str, *, plain: str | None = None) -> Fraction:
    """A length in `unit`, exactly; a bare number is in the unit `plain`, or in that one.

    >>> length("0.25 km", "m", "error"), length("500m", "km", "cell"), length(3, "", "error")
    (Fraction(250, 1), Fraction(1, 2), Fraction(3, 1))
    """
    expect(unit, str, "unit")
    written = _WRITTEN.fullmatch(given) if isinstance(given, str) else None
    number, theirs = (given, plain or unit) if written is None else written.groups()
    value = exact(number, argument)
    if theirs == unit:
        return value
    if unit not in METRES or theirs not in METRES:
        known = f"in {unit}" if unit else 'a bare number; for another give the scenario unit = "m"'
        raise ArgumentError(f"{argument} must be {known}, got {given!r}")
    return value * METRES[theirs] / METRES[unit]


def lattice_step(spacing: float) -> Fraction:
    """The lattice for answers about places so far apart: a round number, a tenth of it or less.

    >>> lattice_step(500), lattice_step(9.9)
    (Fraction(10, 1), Fraction(1, 10))
    """
    return Fraction(10) ** floor(log10(spacing / 10))


def measure(value: float, unit: str = "") -> str:
    """A number with as many digits as anybody reads, and its unit, if that is known.

    >>> measure(1923.4, "m"), measure(10_000), measure(6.5217), measure(0.0123, "km")
    ('1,923 m', '10,000', '6.52', '0.0123 km')
    """
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def roughly(value: float, unit: str = "") -> str:
    """Two digits, in the unit that people would say: what is typical, not what is measured.

    >>> roughly(1923.4, "m"), roughly(0.183, "km"), roughly(6.5217), roughly(42.9, "min")
    ('1.9 km', '180 m', '6.5', '43 min')
    """
    if unit in ("m", "km"):
        value *= float(METRES[unit])
        unit = "km" if value >= 995 else "m"
        value /= float(METRES[unit])
    if 0 < value < 0.001:
        return f"less than 0.001 {unit}".strip()
    digits = f"{float(f'{value:.2g}'):,f}".rstrip("0").rstrip(".")
    return f"{digits} {unit}".strip()
