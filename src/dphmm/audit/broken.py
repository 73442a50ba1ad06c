"""Mechanisms and streams that are broken on purpose, for an audit to catch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from itertools import count, takewhile
from math import exp

import numpy as np
from numpy.typing import NDArray

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.audit.sampler import Answers, MechanismSampler
from dphmm.audit.sequences import BatchSampler
from dphmm.noise.cones import Fan, fan_of
from dphmm.noise.envelope import envelope_of
from dphmm.noise.layers import Layers
from dphmm.noise.randomness import (
    FIRST_WORDS,
    KEY_BYTES,
    WORD,
    KeyedRandomness,
    Randomness,
    SecureRandomness,
    SeededRandomness,
)
from dphmm.noise.reference import reference_knorm

__all__ = [
    "ArcLength",
    "CutOff",
    "Floats",
    "FreeSecondAnswer",
    "Parity",
    "Printing",
    "RepeatingDays",
    "Replayed",
    "Uncounted",
]

PRINTED = 0.01
"""How often the printing control says the truth."""

REACH = 6
"""Hulls over epsilon beyond which the cut-off control says nothing."""


class ArcLength(MechanismSampler):
    """Chooses a side of the hull by its length instead of by its cone."""

    @property
    def lengths(self) -> FloatArray:
        """The length of each side, in the order of the cones."""
        corners = self.body.lattice_vertices.astype(np.float64)[self.body.body.simplices]
        return np.asarray(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1))

    def sample(self, state: int, size: int) -> Answers:
        """Lattice answers from a fan with lengths, in millionths, in place of volumes."""
        fan = Fan(self.body, fan_of(self.body).cones)
        fan.__dict__["_edges"] = np.cumsum(np.rint(1e6 * self.lengths)).astype(np.int64).tolist()
        names = [b""] * size
        states = np.full(size, state)
        source = SecureRandomness()
        return self.points[state] + fan.draw_many(self.claimed, source, names, (), states)


class Uncounted(MechanismSampler):
    """Chooses a layer of a staircase by e^(-epsilon k) alone, not by how many points it has."""

    @property
    def layers(self) -> Layers:
        """The layers, chosen wrongly."""
        assert self.gamma is not None
        return _Uncounted(self.body, envelope_of(self.body), self.gamma)

    def sample(self, state: int, size: int) -> Answers:
        """Lattice answers."""
        names, states = [b""] * size, np.full(size, state)
        noise = self.layers.draw_many(self.claimed, SecureRandomness(), names, (), states)
        return self.points[state] + noise


class _Uncounted(Layers):
    def tails(self, epsilon: Fraction, digits: int) -> list[int]:
        """Those of a geometric number."""
        numbers = (int(exp(-float(epsilon) * m) * 2**digits) for m in count(1))
        return [*takewhile(bool, numbers), 0]


class Floats(MechanismSampler):
    """Draws with floating-point numbers, as the paper describes the mechanism."""

    def sample(self, state: int, size: int) -> Answers:
        """Float answers."""
        rng = np.random.default_rng()
        mechanism = self.mechanism
        return reference_knorm(
            mechanism.query, mechanism.body, mechanism.epsilon, state, rng=rng, size=size
        )


class Replayed(SeededRandomness):
    """A generator with a fixed seed, read in long pieces."""

    def many(
        self,
        people: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
        size: int = FIRST_WORDS,
    ) -> NDArray[np.uint32]:
        """The generator's next words, from one call."""
        data = self._rng.bytes(WORD * size * len(states))
        return np.frombuffer(data, dtype="<u4").reshape(len(states), size)


class Printing(MechanismSampler):
    """Says the answer without noise, one time in a hundred."""

    def sample(self, state: int, size: int) -> Answers:
        """Lattice answers, some of them true."""
        answers = super().sample(state, size)
        answers[np.random.default_rng().random(size) < PRINTED] = self.points[state]
        return answers


class Parity(MechanismSampler):
    """Answers whose sum is even for even states and odd for odd ones, and otherwise fair."""

    def sample(self, state: int, size: int) -> Answers:
        """Lattice answers, moved by one where their parity is wrong."""
        answers = super().sample(state, size)
        answers[:, 0] += (answers.sum(axis=1) - state) % 2
        return answers


class CutOff(MechanismSampler):
    """Draws again whatever is further out than six hulls over epsilon."""

    def far(self, noise: Answers) -> Mask:
        """Which noise is drawn again."""
        return np.asarray(self.body.lattice_norms(noise) * float(self.claimed) > REACH)

    def sample(self, state: int, size: int) -> Answers:
        """Lattice answers within reach."""
        answers = super().sample(state, size)
        again = np.flatnonzero(self.far(answers - self.points[state]))
        while len(again):
            answers[again] = super().sample(state, len(again))
            again = again[self.far(answers[again] - self.points[state])]
        return answers


class RepeatingDays(BatchSampler):
    """Keyed noise that knows the time of day and not the day."""

    def begins(self, day: int) -> int:
        """Every day begins at the same slot."""
        return 0


class FreeSecondAnswer(BatchSampler):
    """Noise that is drawn anew when somebody asks again about the same moment."""

    def sources(self) -> list[Randomness]:
        """A key of its own for each time of asking."""
        return [KeyedRandomness(os.urandom(KEY_BYTES)) for _ in range(self.asks)]
