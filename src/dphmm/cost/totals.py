"""Prices added up exactly, for many people at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from math import inf, lcm

import numpy as np

from dphmm._types import IntArray, Mask

__all__ = ["Totals", "add_costs", "add_up"]


def add_up(prices: Collection[Fraction]) -> Fraction:
    """The sum of some prices, quicker than fractions add.

    >>> add_up([Fraction(1, 2), Fraction(1, 3)])
    Fraction(5, 6)
    """
    if len(prices) == 2:  # the price of one answer is added to those before
        before, price = prices
        if before.denominator == price.denominator:
            return Fraction(before.numerator + price.numerator, before.denominator)
        return before + price
    size = lcm(*(price.denominator for price in prices))
    return Fraction(sum(price.numerator * (size // price.denominator) for price in prices), size)


def add_costs(costs: Sequence[Fraction | float]) -> Fraction | float:
    """The same of costs that may be infinite.

    >>> add_costs([Fraction(1, 2), inf])
    inf
    """
    if not any(isinstance(cost, float) for cost in costs):
        return add_up(costs)  # type: ignore[arg-type]
    if inf in costs:
        return inf
    return add_up([Fraction(cost) if isinstance(cost, float) else cost for cost in costs])


class Totals:
    """What each of some people has spent, exactly: whole multiples of one common fraction.

    The only place where prices are added up: a `Budget` has one, for one person, and
    `Budgets` have one for all of their people.

    Args:
        spent: What each person begins with.

    >>> totals = Totals([Fraction(0), Fraction(1, 2)])
    >>> totals.add([0, 1], Fraction(1, 3))
    >>> totals.of(1), totals.allow(Fraction(1, 2), Fraction(1)).tolist()
    (Fraction(5, 6), [True, False])
    """

    def __init__(self, spent: Sequence[Fraction | float]) -> None:
        self._units = np.zeros(len(spent), dtype=object)
        self.denominator = 1
        """How many units make 1."""
        self._infinite = np.zeros(len(spent), dtype=bool)
        for person, already in enumerate(spent):
            if already:
                self.add(person, already)

    def add(self, people: IntArray | list[int] | int, price: Fraction | float) -> None:
        """Charge somebody or some people; an infinite price stays infinite."""
        if isinstance(price, Fraction):
            units = self.scale(price)
            self._units[people] += units
        elif price == inf:
            self._infinite[people] = True
        else:
            self.add(people, Fraction(price))

    def of(self, person: int) -> Fraction | float:
        """What a person has spent."""
        if self._infinite[person]:
            return inf
        return Fraction(int(self._units[person]), self.denominator)

    def allow(self, price: Fraction, limit: Fraction) -> Mask:
        """Whose sum stays within a limit after one more price."""
        self.scale(price)
        most = self.scale(limit)
        within = self._units + self.scale(price) <= most
        return np.asarray(within, dtype=bool) & ~self._infinite

    def scale(self, price: Fraction) -> int:
        """A price in units, after making the unit small enough for it."""
        # In plain integers: this runs for every release, and fractions are slow.
        size = price.denominator
        if self.denominator % size:
            finer = lcm(self.denominator, size) // self.denominator
            self._units *= finer
            self.denominator *= finer
        return price.numerator * (self.denominator // size)
