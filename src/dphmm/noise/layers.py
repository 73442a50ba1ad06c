"""Staircase noise as a mixture of uniform laws, drawn layer by layer.

exp(-epsilon L(x)) is (1 - e^-epsilon) times the sum of e^(-epsilon k) over the k = 0, 1, ...
for which x lies in (gamma + k) K. So draw k with probability proportional to e^(-epsilon k)
times the lattice points of a box around (gamma + k) K, a point of that box, and keep it if it
lies in (gamma + k) K. How often that is depends on the shape of K and hardly on epsilon. Boxes
are those of the envelope's basis, which comes from whole numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, count
from math import ceil, factorial, prod

import numpy as np

from dphmm import kernels
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import SAFE, exact_product, largest
from dphmm.noise.coins import WORD_DIGITS, exp_bounds, whole_steps
from dphmm.noise.drawing import Compiled, Sampler
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

    @cached_property
    def tries(self) -> Fraction:
        """How many times the box holds K's volume: draws for one that is kept."""
        sides = prod(2 * extent for extent in self.envelope.extents)
        return Fraction(factorial(self.body.rank) * sides, sum(self.body.determinants))

    def box(self, layer: int) -> list[int]:
        """Half the sides of a box around a layer, in whole steps of the basis."""
        return self._grown(self.envelope.extents, layer)

    def limits(self, layer: int) -> list[int]:
        """What the facets' heights must not pass in a layer."""
        return self._grown(self.body.body.offsets.tolist(), layer)

    def _grown(self, sizes: list[int], layer: int) -> list[int]:
        """The whole parts of gamma + layer times some sizes."""
        g, h = self.gamma.as_integer_ratio()
        return [(g + layer * h) * size // h for size in sizes]

    def draw_with_integers(self, epsilon: Fraction, words: Words) -> list[int]:
        """One noise vector from words, with integers of any size."""
        while True:
            layer = whole_steps(words, lambda m, digits: self._tail(epsilon, m, digits))
            x = [words.below(2 * side + 1) - side for side in self.box(layer)]
            point = np.array(x, dtype=object)
            heights = np.abs(exact_product(self.envelope.normals, point[:, None])[:, 0])
            pairs = zip(heights.tolist(), self.limits(layer), strict=True)
            if all(height <= limit for height, limit in pairs):
                break
        noise: list[int] = exact_product(point[None], self.envelope.rows)[0].tolist()
        return noise

    def words_wanted(self, epsilon: float) -> int:
        """Words that are nearly always enough: about three times what an answer takes."""
        width = 1 if 4 * max(self.envelope.extents) <= SHORT else 2
        return ceil(3 * (self.tries + 1) * (1 + width * self.body.rank))

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
        return None

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
        # A box holds at most (layer + 1)^rank times this many points.
        widest = prod(2 * extent + 1 for extent in self.envelope.extents)
        power_low = power_high = 1 << scale
        lows: list[int] = []
        highs: list[int] = []
        for layer in count():
            if not power_low:
                break
            # From here on weights fall at least as fast as this ratio of two whole numbers.
            above, below = (layer + 2) ** rank * high, (layer + 1) ** rank << scale
            first = widest * (layer + 1) ** rank * power_high
            if lows and above < below:
                rest = first * below // (below - above) + 1
                if rest << (digits + guard // 2) <= lows[0]:
                    return lows, highs, rest
            points = prod(2 * side + 1 for side in self.box(layer))
            lows.append(points * power_low)
            highs.append(points * power_high)
            power_low = power_low * low >> scale
            power_high = (power_high * high >> scale) + 1
        return lows, highs, None

    def _compile(self, epsilon: Fraction) -> Compiled | None:
        tails = self.tails(epsilon, WORD_DIGITS)
        boxes = [self.box(layer) for layer in range(len(tails))]
        limits = [self.limits(layer) for layer in range(len(tails))]
        steepest = max(1, largest(self.envelope.normals), largest(self.envelope.rows))
        furthest = self.body.rank * steepest * (2 * max(boxes[-1]) + 1)
        if max(furthest, *limits[-1]) >= SAFE:
            return None
        return kernels.layers.draw_many, (
            np.array(tails, dtype=np.int64),
            np.array(boxes, dtype=np.int64),
            np.array(limits, dtype=np.int64),
            self.envelope.normals.astype(np.int64),
            self.envelope.rows.astype(np.int64),
        )


def layers_of(body: SensitivityHull, gamma: Fraction) -> Layers:
    """The layers of a checked body, made once for each gamma."""
    made: dict[Fraction, Layers] = body.__dict__.setdefault("_layers", {})
    if gamma not in made:
        made[gamma] = Layers(body, envelope_of(body), gamma)
    return made[gamma]
