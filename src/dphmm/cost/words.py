"""Losses in words: numbers that say "at most" are rounded up."""

from __future__ import annotations

from decimal import Context
from math import inf

from dphmm.cost.charges import Loss
from dphmm.geometry.exact import round_up

__all__ = ["show_count", "show_factor", "show_number", "show_odds"]

LARGEST_FACTOR = 14.0
"""Above this loss a factor is over a million and is no longer written out."""


def show_number(value: Loss) -> str:
    """A loss in at most four digits, never less than it is."""
    return "infinite" if value == inf else f"{float(round_up(value, 4)):.4g}"


def show_odds(loss: Loss) -> str:
    """What even odds become at most by a finite loss: e^loss, never less than it is."""
    if loss > LARGEST_FACTOR:
        return f"e^{show_number(loss)}"
    return f"{float(round_up(Context(prec=30).exp(round_up(loss, 30)), 3)):.3g}"


def show_count(number: int, noun: str) -> str:
    """So many of something."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show_factor(loss: Loss) -> str:
    """By how much a loss moves odds, in words."""
    if loss == inf:
        return "without limit (epsilon infinite: some releases tell them apart for certain)"
    if loss > LARGEST_FACTOR:
        return f"by at most {show_odds(loss)} (epsilon {show_number(loss)}: no useful limit)"
    return f"by at most ×{show_odds(loss)} (epsilon {show_number(loss)})"
