"""What many answers tell of two linked paths, with a small probability left out of it.

The loss of an answer is random, because its noise is. A `PrivacyLoss` is a law of the loss
that no edge passes: at every epsilon it tells at least as much as each of them (a dominating
pair, Zhu, Dong and Wang 2022). So sums of independent losses bound what answers tell together,
for two paths that are equal or linked at every time, as long as prices and bodies do not depend
on answers. Every rounding is upwards: on the grid by "connecting the dots" (Doroshenko et al.
2022), in floats by a factor that is carried along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, nextafter

import numpy as np

from dphmm._types import FloatArray
from dphmm.cost.charges import Loss
from dphmm.cost.edge_losses import HALF, edge_curve, edge_differences, pure_curve
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, as_epsilon, as_text, exact
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.graph import PolicyGraph, check_policy

__all__ = ["PrivacyLoss", "privacy_loss"]

ENTRIES = 2**12
"""A law is kept on at most twice so many losses; a longer one gets a wider grid."""

ROUNDING = 4e-15
"""More than what the second differences of a curve lose; it counts as telling everything."""

TRIMMED = 1e-25
"""Ends of a law that weigh less are cut off, pessimistically."""

SUMMING = 1e-12
"""More than the part by which a sum over a law, and what it is made of, is rounded."""

UNIT = 2.0**-52

SMALLEST, LARGEST = 1e-9, 600.0
"""Prices whose powers floats can tell apart and hold; no more is said of others than the price."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """A law of the loss that bounds what answers tell of two linked states, or paths.

    Laws add up: `a + b` is for both answers, `a * 288` for so many like it.

    >>> one = PrivacyLoss.pure("0.1")
    >>> day = one * 288
    >>> day
    PrivacyLoss(epsilon at most 28.8)
    >>> round(day.epsilon(1e-6), 2), day.epsilon(0) == Fraction("28.8")
    (8.95, True)
    """

    total: Fraction
    """The largest loss: the sum of the epsilons."""
    step: float
    """The spacing of the grid of losses."""
    first: int
    """The loss of the first mass, in steps."""
    masses: FloatArray
    """The probability of every loss on the grid."""
    beyond: float = 0.0
    """The probability that is counted as telling everything."""
    rounding: float = 0.0
    """The part by which masses may be too small."""

    @classmethod
    def pure(cls, epsilon: Exact) -> PrivacyLoss:
        """The law for answers of which only the price is known: randomised response.

        It bounds every mechanism whose edges lose at most epsilon, whatever its noise.

        Args:
            epsilon: The price of an answer.
        """
        price = as_epsilon(epsilon)
        if not SMALLEST <= price <= LARGEST:
            return cls(price, SMALLEST, 0, np.ones(1), beyond=1.0)
        entries = float(price) * np.arange(-HALF, HALF + 1) / HALF
        return cls._of_curve(price, pure_curve(float(price), entries))

    @classmethod
    def _of_curve(cls, price: Fraction, curve: FloatArray) -> PrivacyLoss:
        """The law with this convex curve from -epsilon to epsilon, straight in e^a in between."""
        step = float(price) / HALF
        entries = step * np.arange(-HALF, HALF + 1)
        odds = np.exp(entries)
        slopes = np.concatenate([[-1.0], np.diff(curve) / np.diff(odds), [0.0]])
        masses = np.clip(np.diff(slopes), 0, None) * odds
        law = cls(price, step, -HALF, masses)
        missing = max(c - law.delta(a) for a, c in zip(entries, curve, strict=True))
        beyond = max(missing, 0.0) + ROUNDING * (1 + float(price))
        # The part by which `delta` rounds up was not missed, so the masses are to have it.
        return cls(price, step, -HALF, masses, beyond, SUMMING)

    def __repr__(self) -> str:
        return f"PrivacyLoss(epsilon at most {as_text(self.total)})"

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        step = max(self.step, other.step)
        a, b = self._on_grid(step), other._on_grid(step)
        # A sum of n products is rounded by at most n + 1 units, and errors of factors multiply.
        units = UNIT * (min(len(a.masses), len(b.masses)) + 1)
        together = PrivacyLoss(
            self.total + other.total,
            step,
            a.first + b.first,
            np.convolve(a.masses, b.masses),
            a.beyond + b.beyond,
            (1 + a.rounding) * (1 + b.rounding) * (1 + units) - 1 + UNIT,
        )
        together = together._trimmed()
        return together if len(together.masses) <= 2 * ENTRIES else together._on_grid(2 * step)

    def __mul__(self, count: int) -> PrivacyLoss:
        if not isinstance(count, int) or isinstance(count, bool):
            return NotImplemented
        if count < 1:
            raise ArgumentError(f"count must be at least 1, got {count!r}")
        if count == 1:
            return self
        half = self * (count // 2)
        whole_pairs = half + half
        return whole_pairs + self if count % 2 else whole_pairs

    def delta(self, epsilon: float) -> float:
        """By how much the probability of any set of answers exceeds e^epsilon times the other one.

        At most: the hockey-stick divergence. The probability of answers that tell more than
        epsilon can be larger.

        Args:
            epsilon: What may be told.
        """
        epsilon = float(exact(epsilon, "epsilon"))
        above = self._losses > epsilon
        rest = -np.expm1(epsilon - self._losses[above])
        told = float(self.masses[above] @ rest) * (1 + self.rounding) * (1 + SUMMING)
        return min(1.0, told + self.beyond)

    def epsilon(self, delta: Exact) -> Loss:
        """The smallest epsilon, or a little more, that is told with a probability delta left out.

        That is, no set of answers is more than e^epsilon times as probable, and delta besides, in
        one state as in the other. The sum of the epsilons where delta is zero, or too small for
        floats.

        Args:
            delta: The probability left out, at least 0 and below 1.
        """
        chance = exact(delta, "delta")
        if not 0 <= chance < 1:
            raise ArgumentError(f"delta must be at least 0 and below 1, got {delta!r}")
        spare = nextafter(float(chance), 0.0)
        if spare <= self.beyond:
            return self.total
        low, high = 0.0, nextafter(float(self.total), inf)
        if self.delta(low) <= spare:
            return Fraction(0)
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= spare else (middle, high)
        return self.total if high >= self.total else high

    @cached_property
    def _losses(self) -> FloatArray:
        """The losses on the grid, the last bit rounded up."""
        numbers = np.arange(self.first, self.first + len(self.masses), dtype=np.float64)
        return np.nextafter(numbers * self.step, inf)

    def _trimmed(self) -> PrivacyLoss:
        """The law without its ends: the low one counts as more, the high one as everything."""
        below, above = np.cumsum(self.masses), np.cumsum(self.masses[::-1])
        first, last = int((below < TRIMMED).sum()), int((above < TRIMMED).sum())
        if first + last >= len(self.masses):
            return self
        kept = self.masses[first : len(self.masses) - last].copy()
        kept[0] += below[first - 1] if first else 0.0
        lost = 2 * float(above[last - 1]) if last else 0.0
        return replace(self, first=self.first + first, masses=kept, beyond=self.beyond + lost)

    def _on_grid(self, step: float) -> PrivacyLoss:
        """The law on a wider grid: each mass goes to the two losses around it, as it weighs."""
        if step == self.step:
            return self
        places = np.nextafter(self._losses / step, inf)
        below = np.floor(places).astype(np.int64)
        up = self.masses * np.expm1((below - places) * step) / np.expm1(-step)
        up = np.clip(up, 0, self.masses)
        masses = np.zeros(int(below[-1] - below[0]) + 2)
        np.add.at(masses, below - below[0], self.masses - up)
        np.add.at(masses, below - below[0] + 1, up)
        # Where a loss lies is rounded up; how a mass is parted, by parts that the factor covers.
        return PrivacyLoss(
            self.total, step, int(below[0]), masses, self.beyond, self.rounding + SUMMING
        )


def privacy_loss(mechanism: Mechanism, policy: PolicyGraph) -> PrivacyLoss:
    """The law of what one answer tells of two states that a policy links.

    From the exact law of the noise on the lattice, over all edges at once: no single edge need
    tell most at every epsilon, so the law follows the pointwise largest of their curves.

    Args:
        mechanism: The noise; its body must hold every edge's difference.
        policy: Which states are linked.

    >>> from dphmm.geometry.query import Query
    >>> from dphmm.policy.sensitivity import sensitivity_hull
    >>> query = Query([[x, y] for x in range(5) for y in range(5)])
    >>> policy = PolicyGraph.within_distance(query, 3)
    >>> loss = privacy_loss(Mechanism(query, sensitivity_hull(query, policy), "0.1"), policy)
    >>> round((loss * 288).epsilon(1e-6), 2)
    6.76
    """
    expect(mechanism, Mechanism, "mechanism")
    check_policy(policy, mechanism.query)
    if not SMALLEST <= mechanism.epsilon <= LARGEST:
        return PrivacyLoss.pure(mechanism.epsilon)
    curve = edge_curve(mechanism, edge_differences(mechanism, policy))
    return PrivacyLoss._of_curve(mechanism.epsilon, curve)
