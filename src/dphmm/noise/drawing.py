"""Noise from words, compiled where it can be: what the exact samplers have in common.

A sampler says how one noise vector is drawn from words, once with integers of any size and
once compiled. The two read the same words in the same order and give the same vector, so it
does not matter which of them drew it, nor whether it was drawn alone or among many.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from dphmm._types import IntArray, Mask, ObjectArray
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import SAFE, largest
from dphmm.noise.randomness import BLOCK_WORDS, FIRST_WORDS, Randomness, Words

__all__ = ["Compiled", "Sampler"]

LONGER = 8
"""How many times the first words are tried with compiled integers before Python's."""

MANY_WORDS = 4096
"""The longest rows of words that are made for many answers at once."""

PER_THREAD = 8192
"""Answers that one thread draws at a time."""

PER_ROUND = 512
"""Answers that were cut short and get longer rows of words at a time."""

REMEMBERED = 64
"""Epsilons for which a compiled draw is kept ready."""

LEVELS = 64
"""How deep the compiled samplers follow an exponential series."""

WIDE = 2**126
"""Sums of products below this are computed in two words."""

Compiled: TypeAlias = tuple[Callable[..., Mask], tuple[Any, ...]]
"""A compiled draw and its arguments between the words and the noise."""


class Sampler(ABC):
    """Exact noise on the lattice of a body's span, by its norm or, with a gamma, its layers."""

    body: SensitivityHull

    def __getstate__(self) -> dict[str, Any]:
        # A compiled function that travels to another process is compiled there once more.
        return {name: held for name, held in vars(self).items() if name != "_ready"}

    @abstractmethod
    def draw_with_integers(self, epsilon: Fraction, words: Words) -> list[int]:
        """One noise vector, with integers of any size."""

    @abstractmethod
    def _compile(self, epsilon: Fraction) -> Compiled | None:
        """The compiled draw and its arguments; None if a product could pass two words."""

    def compiled(self, epsilon: Fraction) -> Compiled | None:
        """The same draw from the same words, compiled; None if its products may not fit."""
        ready: dict[tuple[int, int], Compiled | None]
        ready, ratio = self.__dict__.setdefault("_ready", {}), epsilon.as_integer_ratio()
        if ratio not in ready:
            if len(ready) >= REMEMBERED:
                ready.clear()
            ready[ratio] = self._compile(epsilon)
        return ready[ratio]

    @abstractmethod
    def words_wanted(self, epsilon: float) -> int:
        """Words that nearly always suffice for a vector; answers do not depend on it."""

    def draw(self, epsilon: Fraction, words: Words) -> ObjectArray:
        """One noise vector on the lattice, compiled if its first words are enough."""
        if self.body.rank == 0:
            return np.zeros(self.body.dimension, dtype=np.int64)
        for size in (FIRST_WORDS, LONGER * FIRST_WORDS):
            noise, done = self._draw_compiled(epsilon, words.leading(size)[None])
            if done[0]:
                return noise[0]
        return np.array(self.draw_with_integers(epsilon, words), dtype=object)

    def draw_under(
        self,
        laws: Sequence[tuple[bytes, ...]],
        law_of: IntArray,
        epsilon: Fraction,
        source: Randomness,
        names: Sequence[bytes],
        states: IntArray,
    ) -> ObjectArray:
        """`draw_many` for rows of several laws; `law_of` is the number of each row's."""
        if len(laws) == 1:
            return self.draw_many(epsilon, source, names, laws[0], states)
        noise = np.zeros((len(names), self.body.dimension), dtype=object)
        for number in np.unique(law_of).tolist():
            some = np.flatnonzero(law_of == number)
            chosen = [names[row] for row in some.tolist()]
            noise[some] = self.draw_many(epsilon, source, chosen, laws[number], states[some])
        return noise

    def draw_many(
        self,
        epsilon: Fraction,
        source: Randomness,
        names: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
    ) -> ObjectArray:
        """One noise vector for each name, as `draw` gives with the words of (name, *shared)."""
        if self.body.rank == 0:
            return np.zeros((len(names), self.body.dimension), dtype=np.int64)
        blocks = -(-self.words_wanted(float(epsilon)) // BLOCK_WORDS)
        size = min(MANY_WORDS, max(FIRST_WORDS, BLOCK_WORDS * blocks))
        words = source.many(names, shared, states, size)
        noise, done = self._draw_compiled(epsilon, words)
        left = np.flatnonzero(~done)
        for first in range(0, len(left), PER_ROUND):
            some = left[first : first + PER_ROUND]
            people = [names[row] for row in some.tolist()]
            more = self._go_on(epsilon, source, words[some], people, shared, states[some])
            noise = noise if more.dtype != object else noise.astype(object)
            noise[some] = more
        return noise

    def _go_on(
        self,
        epsilon: Fraction,
        source: Randomness,
        words: Any,
        names: list[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
    ) -> ObjectArray:
        """The noise of draws that their words cut short: with twice as many, then Python's way."""
        if self.compiled(epsilon) is None or words.shape[1] > LONGER * MANY_WORDS:
            rest = [
                source.after(row, (name, *shared), int(state))
                for row, name, state in zip(words, names, states, strict=True)
            ]
            single = [self.draw_with_integers(epsilon, more) for more in rest]
            return np.array(single, dtype=object).reshape(len(rest), -1)
        words = source.longer(words, names, shared, states, 2 * words.shape[1])
        noise, done = self._draw_compiled(epsilon, words)
        left = np.flatnonzero(~done)
        if not len(left):
            return noise
        people = [names[row] for row in left.tolist()]
        more = self._go_on(epsilon, source, words[left], people, shared, states[left])
        noise = noise if largest(more) < SAFE else noise.astype(object)
        noise[left] = more
        return noise

    def _draw_compiled(self, epsilon: Fraction, words: Any) -> tuple[IntArray, Mask]:
        """Noise for every row of words, on all cores, and which rows were enough for it."""
        noise = np.empty((len(words), self.body.dimension), dtype=np.int64)
        done = np.zeros(len(words), dtype=bool)
        compiled = self.compiled(epsilon)
        if compiled is None:
            return noise, done
        kernel, arguments = compiled
        # A stream's words may be written to and a batch's may not: one kind, compiled once.
        words = words.view()
        words.flags.writeable = False

        def part(rows: slice) -> None:
            done[rows] = kernel(words[rows], *arguments, noise[rows])

        if len(words) <= PER_THREAD:
            part(slice(None))
        else:
            parts = [slice(i, i + PER_THREAD) for i in range(0, len(words), PER_THREAD)]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(part, parts))
        return noise, done
