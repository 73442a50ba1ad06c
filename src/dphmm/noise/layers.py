"""Staircase noise as a mixture of uniform laws, drawn layer by layer.

exp(-epsilon L(x)) is (1 - e^-epsilon) times the sum of e^(-epsilon k) over the k = 0, 1, ...
for which x lies in (gamma + k) K. So draw k with probability proportional to e^(-epsilon k)
times the lattice points of a box around (gamma + k) K, a point of that box, and keep it if it
lies in (gamma + k) K. How often that is depends on the shape of K and hardly on epsilon. Boxes
are those of the envelope's basis, which comes from whole numbers alone; where its cross-polytope
is much smaller, points are drawn from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, count, pairwise
from math import ceil, factorial, prod

import numpy as np

from dphmm import kernels
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import SAFE, exact_product, largest
from dphmm.noise.coins import WORD_DIGITS, exp_bounds, whole_steps
from dphmm.noise.drawing import REMEMBERED, Compiled, Sampler
from dphmm.noise.envelope import Envelope, envelope_of
from dphmm.noise.randomness import SHORT, Words

__all__ = ["Layers", "layers_of"]

GUARD = 64
"""Binary digits by which sums are first more exact than what is read off them."""


@dataclass(frozen=True, eq=False)
class Layers(Sampler):
    """The uniform laws on gamma K, (gamma + 1) K, ... that staircase noise is made of."""

    body: SensitivityHull
    envelope: Envelope
    gamma: Fraction

    @property
    def slopes(self) -> list[int]:
        """Those of a cross-polytope that points are drawn from; none for a box."""
        return []

    @cached_property
    def tries(self) -> Fraction:
        """How many times the box holds K's volume: draws for one that is kept."""
        sides = prod(2 * extent for extent in self.envelope.extents)
        return Fraction(factorial(self.body.rank) * sides, sum(self.body.determinants))

    def sides(self, layer: int, gamma: Fraction | None = None) -> list[int]:
        """How many values each number has of which a point of a layer's box is made."""
        return [2 * half + 1 for half in self._grown(self.envelope.extents, layer, gamma)]

    def point(self, numbers: list[int], sides: list[int]) -> list[int] | None:
        """The point that some numbers make, in coordinates of the basis; None if they make none."""
        return [number - side // 2 for number, side in zip(numbers, sides, strict=True)]

    def limits(self, layer: int) -> list[int]:
        """What the facets' heights must not pass in a layer."""
        return self._grown(self.body.body.offsets.tolist(), layer)

    def _grown(self, sizes: list[int], layer: int, gamma: Fraction | None = None) -> list[int]:
        """The whole parts of gamma + layer times some sizes."""
        g, h = (self.gamma if gamma is None else gamma).as_integer_ratio()
        return [(g + layer * h) * size // h for size in sizes]

    def draw_with_integers(self, epsilon: Fraction, words: Words) -> list[int]:
        """One noise vector from words, with integers of any size."""
        while True:
            layer = whole_steps(words, lambda m, digits: self._tail(epsilon, m, digits))
            sides = self.sides(layer)
            x = self.point([words.below(side) for side in sides], sides)
            if x is None:
                continue
            point = np.array(x, dtype=object)
            heights = np.abs(exact_product(self.envelope.normals, point[:, None])[:, 0])
            pairs = zip(heights.tolist(), self.limits(layer), strict=True)
            if all(height <= limit for height, limit in pairs):
                break
        noise: list[int] = exact_product(point[None], self.envelope.rows)[0].tolist()
        return noise

    def words_wanted(self, epsilon: float) -> int:
        """Words that are nearly always enough: about three times what an answer takes."""
        widths = sum(1 if side <= SHORT else 2 for side in self.sides(1))
        return ceil(3 * (self.tries + 1) * (1 + widths))

    def _tail(self, epsilon: Fraction, layer: int, digits: int) -> int:
        """The whole part of 2**digits times the probability of this layer or a further one."""
        tails = self.tails(epsilon, digits)
        return tails[layer - 1] if layer <= len(tails) else 0

    def tails(self, epsilon: Fraction, digits: int) -> list[int]:
        """The same for the layers 1, 2, ... down to the first zero.

        All sums are kept between two whole numbers; where those leave a digit open, they are
        taken again with twice the guard.
        """
        known: dict[tuple[Fraction, int], list[int]] = self.__dict__.setdefault("_tails", {})
        guard, found = GUARD, known.get((epsilon, digits))
        while found is None:
            found = self._tails_within(epsilon, digits, guard)
            guard *= 2
            if len(known) >= REMEMBERED:
                known.clear()
        known[epsilon, digits] = found
        return found

    def _tails_within(self, epsilon: Fraction, digits: int, guard: int) -> list[int] | None:
        lows, highs, rest = self._weights(epsilon, digits, guard)
        if rest is None:
            return None
        low_sums = list(accumulate(reversed(lows)))
        high_sums = [high + rest for high in accumulate(reversed(highs))]
        least, most = low_sums.pop(), high_sums.pop()
        tails = []
        for low, high in zip(reversed(low_sums), reversed(high_sums), strict=True):
            tails.append((low << digits) // most)
            if tails[-1] != (high << digits) // least:
                return None
            if tails[-1] == 0:
                return tails
        # What follows is less than a digit: `_weights` went on until then.
        return [*tails, 0]

    def _weights(
        self, epsilon: Fraction, digits: int, guard: int
    ) -> tuple[list[int], list[int], int | None]:
        """Whole numbers around each layer's weight, until what follows is too small to matter.

        The last is above the sum of what follows, or None if the guard did not reach so far.
        """
        scale, rank = digits + guard, self.body.rank
        parts = ceil(epsilon)
        low, high = exp_bounds(epsilon / parts, scale)
        shift = (parts - 1) * scale
        low, high = low**parts >> shift, (high**parts >> shift) + 1
        # A layer has at most (layer + 1)^rank times the points of K itself.
        widest = prod(self.sides(0, Fraction(1)))
        power_low = power_high = 1 << scale
        lows: list[int] = []
        highs: list[int] = []
        for layer in count():
            # From here on weights fall at least as fast as this ratio of two whole numbers.
            above, below = (layer + 2) ** rank * high, (layer + 1) ** rank << scale
            first = widest * (layer + 1) ** rank * power_high
            if lows and above < below:
                rest = first * below // (below - above) + 1
                if rest << (digits + guard // 2) <= lows[0]:
                    return lows, highs, rest
            if not power_low:
                break
            points = prod(self.sides(layer))
            lows.append(points * power_low)
            highs.append(points * power_high)
            power_low = power_low * low >> scale
            power_high = (power_high * high >> scale) + 1
        return lows, highs, None

    def _compile(self, epsilon: Fraction) -> Compiled | None:
        tails = self.tails(epsilon, WORD_DIGITS)
        sides = [self.sides(layer) for layer in range(len(tails))]
        limits = [self.limits(layer) for layer in range(len(tails))]
        steepest = max(1, largest(self.envelope.normals), largest(self.envelope.rows))
        furthest = self.body.rank * steepest * max(sides[-1])
        if max(furthest, *limits[-1]) >= SAFE:
            return None
        return kernels.layers.draw_many, (
            np.array(tails, dtype=np.int64),
            np.array(sides, dtype=np.int64),
            np.array(limits, dtype=np.int64),
            np.array(self.slopes, dtype=np.int64),
            self.envelope.normals.astype(np.int64),
            self.envelope.rows.astype(np.int64),
        )


class CrossLayers(Layers):
    """Layers drawn from the envelope's cross-polytope sum |x_j| slopes_j <= scale.

    If whole numbers y_j from 0 up have a sum of at most N, and r_j = y_j modulo slopes_j, then
    x_j = y_j // slopes_j is every point with sum x_j slopes_j <= N - sum (slopes_j - 1) equally
    often. And k different numbers below N + k, in order, are such y and their sums: y_j is how
    many numbers lie between two of them. A last number has the signs.
    """

    @property
    def slopes(self) -> list[int]:
        """Those of the envelope."""
        return self.envelope.slopes

    @cached_property
    def tries(self) -> Fraction:
        """How many times the cross-polytope holds K's volume."""
        return self.envelope.tries

    def sides(self, layer: int, gamma: Fraction | None = None) -> list[int]:
        """Those of the numbers in order, and of the signs."""
        rank = self.body.rank
        (most,) = self._grown([self.envelope.scale], layer, gamma)
        return [most + sum(self.slopes)] * rank + [2**rank]

    def point(self, numbers: list[int], sides: list[int]) -> list[int] | None:
        """The point of the numbers; None if two are equal, or a zero would have a sign."""
        *unordered, signs = numbers
        ordered = sorted(unordered)
        gaps = [b - a - 1 for a, b in pairwise([-1, *ordered])]
        if min(gaps) < 0:
            return None
        x = [gap // slope for gap, slope in zip(gaps, self.slopes, strict=True)]
        if any(signs >> j & 1 and not entry for j, entry in enumerate(x)):
            return None
        return [-entry if signs >> j & 1 else entry for j, entry in enumerate(x)]


BOX_TRY, CROSS_TRY = 1, 2
"""What a try costs: a number for each coordinate, or as many in order and the signs."""


def layers_of(body: SensitivityHull, gamma: Fraction) -> Layers:
    """The layers of a checked body, made once for each gamma; whole numbers choose the kind."""
    made: dict[Fraction, Layers] = body.__dict__.setdefault("_layers", {})
    if gamma not in made:
        box, cross = (kind(body, envelope_of(body), gamma) for kind in (Layers, CrossLayers))
        made[gamma] = cross if CROSS_TRY * cross.tries < BOX_TRY * box.tries else box
    return made[gamma]
