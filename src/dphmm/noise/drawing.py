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
from dphmm.noise.randomness import BLOCK_WORDS, Randomness, Words

__all__ = ["Compiled", "Sampler"]

ONE_BLOCK = 5 * BLOCK_WORDS // 3
"""Where this many words are nearly always enough, one block is for nine in ten."""

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

Compiled: TypeAlias = tuple[Callable[..., None], tuple[Any, ...]]
"""A compiled draw and its arguments between the words, and the places and what is done."""


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
        return self._prepare(epsilon)[0]

    def _prepare(self, epsilon: Fraction) -> tuple[Compiled | None, int]:
        """The compiled draw, and the words that it gets at first, in whole blocks.

        The few draws that want more get them.
        """
        ready: dict[tuple[int, int], tuple[Compiled | None, int]]
        ready, ratio = self.__dict__.setdefault("_ready", {}), epsilon.as_integer_ratio()
        made = ready.get(ratio)
        if made is None:
            if len(ready) >= REMEMBERED:
                ready.clear()
            wanted = self.words_wanted(float(epsilon)) if self.body.rank else 0
            blocks = 1 if wanted <= ONE_BLOCK else max(2, -(-wanted // BLOCK_WORDS))
            made = ready[ratio] = self._compile(epsilon), min(MANY_WORDS, BLOCK_WORDS * blocks)
        return made

    @abstractmethod
    def words_wanted(self, epsilon: float) -> int:
        """Words that nearly always suffice for a vector; answers do not depend on it."""

    def draw(self, epsilon: Fraction, words: Words, place: IntArray | None = None) -> ObjectArray:
        """A place (1, d) on the lattice and one noise vector, compiled if the words are enough.

        64-bit integers are below 2**62; where they might not do, the sum is of Python's.
        """
        if place is None:
            place = np.zeros((1, self.body.dimension), np.int64)
        compiled, first = self._prepare(epsilon)
        if compiled is not None:
            kernel, arguments = compiled
            done = np.empty(1, np.bool_)
            for size in (first, LONGER * first):
                there = place.copy()
                kernel(words.leading(size)[None], *arguments, there, done)
                if done[0]:
                    return there[0]
        if self.body.rank == 0:
            return place[0].copy()
        return place[0] + np.array(self.draw_with_integers(epsilon, words), dtype=object)

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
        words = source.many(names, shared, states, self._prepare(epsilon)[1])
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
        noise = np.zeros((len(words), self.body.dimension), dtype=np.int64)
        done = np.zeros(len(words), dtype=bool)
        compiled = self.compiled(epsilon)
        if compiled is None:
            return noise, done
        kernel, arguments = compiled
        # A stream's words may be written to and a batch's may not: one kind, compiled once.
        words = words.view()
        words.flags.writeable = False

        def part(rows: slice) -> None:
            kernel(words[rows], *arguments, noise[rows], done[rows])

        if len(words) <= PER_THREAD:
            part(slice(None))
        else:
            parts = [slice(i, i + PER_THREAD) for i in range(0, len(words), PER_THREAD)]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(part, parts))
        return noise, done
