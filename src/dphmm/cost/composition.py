"""What several answers at one time cost together (Theorem 7.1), over all pairs of states.

Losses of pairs are counted in 64-bit integers, in a unit chosen once for a whole history:
the common denominator where it fits, so that nothing is rounded; otherwise a unit so small
that rounding up by one for each answer costs about one part in 2**50.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, lcm, nextafter

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import IntArray
from dphmm.cost.charges import Charge, Loss, loss_at, worst_of
from dphmm.errors import ArgumentError, TooLargeError, expect
from dphmm.geometry.states import possible_mask

__all__ = ["Composition", "compose"]

TIGHT_STATES = 3000
"""Values over all pairs of states are computed up to this many possible states."""

FINITE = 2**60
"""Sums of losses stay below this many units; the kernels keep 2**62 for infinity."""


@dataclass(frozen=True)
class Composition:
    """What several answers at one time cost together (Theorem 7.1)."""

    linked: Fraction
    """Between two states that every policy links: the epsilons' sum."""
    constrained: Loss
    """Between any two possible states, as the theorem states it: a sum of maxima."""
    tight: Loss
    """The same, exactly: the maximum over pairs of the sum."""


def compose(charges: Iterable[Charge], possible: ArrayLike | None = None) -> Composition:
    """What several answers about the same state cost together, and the tight value beside it.

    Theorem 7.1 adds each query's worst pair, which need not be the same pair.

    Args:
        charges: The answers, all about the same states.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.

    >>> from dphmm.geometry.hull import SensitivityHull
    >>> from dphmm.geometry.query import Query
    >>> body = SensitivityHull.from_vertices([[1]])
    >>> compose([Charge(Query([0, 1, 3]), body, 1), Charge(Query([3, 1, 3]), body, 1)])
    Composition(linked=Fraction(2, 1), constrained=Fraction(5, 1), tight=Fraction(4, 1))
    """
    expect(charges, Iterable, "charges")
    answers = tuple(charges)
    for charge in answers:
        expect(charge, Charge, "charges")
    if not answers:
        raise ArgumentError("charges must contain at least one charge, got none")
    n_states = same_states(answers)
    states = np.flatnonzero(possible_mask(possible, n_states))
    linked = sum((charge.epsilon for charge in answers), Fraction(0))
    total = total_worst(answers, states)
    if len(answers) == 1 or total == inf:
        return Composition(linked, total, total)
    check_size(len(states))
    unit = Unit.of((charge, states) for charge in answers)
    tight = unit.loss(int(pair_losses(answers, states, unit).max()))
    return Composition(linked, total, tight)


def same_states(charges: tuple[Charge, ...]) -> int:
    """How many states all the charges are about."""
    sizes = {charge.query.n_states for charge in charges}
    if len(sizes) > 1:
        raise ArgumentError(f"charges must be about the same states, got {sorted(sizes)} states")
    return sizes.pop()


def total_worst(charges: tuple[Charge, ...], states: IntArray) -> Loss:
    """The sum of each charge's worst pair among some states."""
    return sum((worst_of(charge, states).epsilon for charge in charges), Fraction(0))


def check_size(n_states: int) -> None:
    """Refuse a square table over more possible states than TIGHT_STATES."""
    if n_states > TIGHT_STATES:
        raise TooLargeError(
            f"tight values are computed for up to {TIGHT_STATES} possible states, got {n_states}; "
            f"sequence_bracket and paper_sequence_epsilon have no such bound"
        )


@dataclass(frozen=True)
class Unit:
    """The unit in which losses are counted: 1/denominator of one."""

    denominator: Fraction
    slack: int
    """How many units a counted loss may fall short of the true one; 0 means exact."""
    most: int = FINITE
    """No sum of counted losses passes this."""

    @classmethod
    def of(cls, answers: Iterable[tuple[Charge, IntArray]]) -> Unit:
        """A unit for sums over answers, each with the states that were possible for it."""
        denominator, bound, count = 1, Fraction(0), 0
        known: dict[tuple[int, bytes], Fraction] = {}
        for charge, states in answers:
            count += 1
            key = (id(charge), states.tobytes())
            if key not in known:
                known[key] = _largest(charge, states)
                if denominator < FINITE:
                    denominator = lcm(denominator, charge.denominator)
            bound += known[key]
        if denominator * bound < FINITE:
            return cls(Fraction(denominator), 0, int(denominator * bound) + 1)
        return cls((FINITE - count) / bound, count)

    def loss(self, count: int) -> Loss:
        """The loss that a count stands for: exact, or a float no less than the true one."""
        value = (count + self.slack) / self.denominator
        if self.slack == 0:
            return value
        rounded = float(value)
        return rounded if rounded >= value else nextafter(rounded, inf)


def pair_losses(charges: tuple[Charge, ...], states: IntArray, unit: Unit) -> IntArray:
    """The loss of every pair of states in units; infinity is the kernels' INFINITE."""
    infinite = kernels.pairs.INFINITE
    total: IntArray | None = None
    for charge in charges:
        if charge.gamma is None:
            loss = kernels.pairs.losses(*_counted(charge, states, unit))
        else:
            loss = _rounded_up(charge, states, unit)
        if total is not None:
            endless = (total >= infinite) | (loss >= infinite)
            loss = np.where(endless, infinite, total + np.where(endless, 0, loss))
        total = loss
    return np.zeros((len(states), len(states)), dtype=np.int64) if total is None else total


def _counted(charge: Charge, states: IntArray, unit: Unit) -> tuple[IntArray, IntArray]:
    """The facets' heights in units, from zero up, rounded to the nearest; and the cosets.

    Two heights rounded to the nearest differ by at most one unit less than they should,
    which is the unit's slack.
    """
    heights, cosets = charge.heights(states)
    counted = np.empty(heights.shape, dtype=np.int64)
    for h, offset in enumerate(charge.hull.body.offsets.tolist()):
        weight = charge.epsilon * unit.denominator / offset
        height = heights[:, h] - heights[:, h].min()
        if weight.denominator == 1:
            # Within 64 bits: Unit.of bounds every product by FINITE.
            counted[:, h] = height * int(weight)
        else:
            above, below = weight.numerator, weight.denominator
            counted[:, h] = (2 * height.astype(object) * above + below) // (2 * below)
    return counted, cosets


def _rounded_up(charge: Charge, states: IntArray, unit: Unit) -> IntArray:
    """The losses of all pairs in units, where each is a whole number of epsilons."""
    heights, cosets = charge.heights(states)
    offsets, price = charge.hull.body.offsets, charge.epsilon * unit.denominator
    if object in (heights.dtype, offsets.dtype):
        layers = np.zeros((len(states), len(states)), dtype=object)
        for height, offset in zip(heights.astype(object).T, offsets.tolist(), strict=True):
            apart = np.abs(height[:, None] - height[None, :])
            layers = np.maximum(layers, -(-apart // offset))
        layers = np.where(cosets[:, None] == cosets[None, :], layers, kernels.pairs.INFINITE)
    else:
        layers = kernels.pairs.layers(heights, offsets, cosets)
    # Few layers are different; each is counted once, rounded up where the unit is not exact.
    each, places = np.unique(layers, return_inverse=True)
    infinite = kernels.pairs.INFINITE
    counts = [infinite if layer == infinite else ceil(layer * price) for layer in each.tolist()]
    return np.array(counts, dtype=np.int64)[places].reshape(layers.shape)


def _largest(charge: Charge, states: IntArray) -> Fraction:
    """The largest loss within a coset of the span, or more."""
    heights, _ = charge.heights(states)
    offsets = charge.hull.body.offsets.tolist()
    spreads = [int(column.max()) - int(column.min()) for column in heights.T]
    ratios = (Fraction(spread, b) for spread, b in zip(spreads, offsets, strict=True))
    return Fraction(loss_at(charge, max(ratios, default=Fraction(0))))
