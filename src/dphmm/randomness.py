"""Where random words come from: the operating system, a secret key, or a named experiment.

Every exact sampler draws from a `Words`, a stream of uniform 64-bit integers made for one
answer and used for no other. Python and compiled samplers read the same words in the same
order, so under the same key they give the same answer.
"""

from __future__ import annotations

import hashlib
import os
import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dphmm._types import IntArray
from dphmm.errors import ArgumentError

__all__ = ["KeyedRandomness", "Randomness", "SecureRandomness", "SeededRandomness"]

KEY_BYTES = 32
NOISE = b"dphmm noise 1"
FIRST_WORDS = 51
"""Three blocks of SHAKE-256; an answer in the plane takes about thirty, more are made if needed."""


class Words:
    """Uniform 64-bit words from a function that returns any number of leading bytes."""

    __slots__ = ("_buffer", "_next", "_prefix")

    def __init__(self, prefix: Callable[[int], bytes]) -> None:
        self._prefix = prefix
        self._buffer = _as_words(prefix(8 * FIRST_WORDS))
        self._next = 0

    def leading(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """The words made so far, for a compiled sampler that starts from the first."""
        return np.frombuffer(self._buffer, dtype=np.uint64)

    def word(self) -> int:
        """The next word."""
        if self._next == len(self._buffer):
            self._buffer = _as_words(self._prefix(16 * len(self._buffer)))
        self._next += 1
        return self._buffer[self._next - 1]

    def below(self, n: int) -> int:
        """A uniform integer in 0..n-1, exactly: words in the last, broken run are thrown away."""
        if n == 1:
            return 0
        size = 1 << 64
        width = 1
        while size < n:
            size <<= 64
            width += 1
        limit = size - size % n
        while True:
            value = self.word()
            for _ in range(width - 1):
                value = value << 64 | self.word()
            if value < limit:
                return value % n


class Randomness(ABC):
    """A source that gives each answer its own words."""

    private: bool = True
    """Whether what is written with it may be called private."""

    @abstractmethod
    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """Fresh words for an answer with this public context, given by this state."""

    def many(
        self, people: Sequence[bytes], shared: tuple[bytes, ...], states: IntArray
    ) -> NDArray[np.uint64]:
        """The first words of many answers, a row each; contexts are (person, *shared)."""
        rows = [
            self.words((person, *shared), state).leading()
            for person, state in zip(people, states.tolist(), strict=True)
        ]
        return np.array(rows, dtype=np.uint64).reshape(len(rows), FIRST_WORDS)

    def after(self, row: NDArray[np.uint64], context: tuple[bytes, ...], state: int) -> Words:
        """All words of one answer again: a row of `many`, and what follows it.

        A draw that the row cut short goes on with the words that it has read. With others in
        their place long draws, which are the far ones, would be too rare. What follows is the
        operating system's, unless a source can do as it would have done.
        """
        return _growing(row.astype("<u8").tobytes(), os.urandom)


class SecureRandomness(Randomness):
    """The operating system's secure source: every call is independent of every other."""

    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """Words that depend on nothing."""
        return _growing(b"", os.urandom)

    def many(
        self, people: Sequence[bytes], shared: tuple[bytes, ...], states: IntArray
    ) -> NDArray[np.uint64]:
        """Words that depend on nothing, from one call."""
        data = os.urandom(8 * FIRST_WORDS * len(states))
        return np.frombuffer(data, dtype="<u8").reshape(len(states), FIRST_WORDS)


class KeyedRandomness(Randomness):
    """A pseudo-random function, SHAKE-256, of a secret key and all that decides the answer.

    The same question repeats its answer; any other question gets unrelated noise.
    """

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            # The key itself is a secret: say what it is, never what it holds.
            size = len(key) if isinstance(key, bytes) else type(key).__name__
            raise ArgumentError(f"key must be {KEY_BYTES} bytes, got {size}")
        self._key = key

    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """The words of this question."""
        sponge = hashlib.shake_256(encoded((NOISE, self._key, *context, b"%d" % state)))
        return Words(sponge.digest)

    def after(self, row: NDArray[np.uint64], context: tuple[bytes, ...], state: int) -> Words:
        """The words of this question, which begin with the row."""
        return self.words(context, state)

    def many(
        self, people: Sequence[bytes], shared: tuple[bytes, ...], states: IntArray
    ) -> NDArray[np.uint64]:
        """The same words as one by one, with what they share encoded once."""
        head, tail = encoded((NOISE, self._key)), encoded(shared)
        names = {state: encoded((b"%d" % state,)) for state in set(states.tolist())}
        size = 8 * FIRST_WORDS
        data = b"".join(
            hashlib.shake_256(head + encoded((person,)) + tail + names[state]).digest(size)
            for person, state in zip(people, states.tolist(), strict=True)
        )
        return np.frombuffer(data, dtype="<u8").reshape(len(states), FIRST_WORDS)

    def __repr__(self) -> str:
        return "KeyedRandomness(key=<secret>)"


class SeededRandomness(Randomness):
    """A repeatable generator for experiments; what it writes is marked as not private."""

    private = False

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """The generator's next words."""
        return _growing(b"", self._rng.bytes)

    def after(self, row: NDArray[np.uint64], context: tuple[bytes, ...], state: int) -> Words:
        """The row, then the generator's next words."""
        return _growing(row.astype("<u8").tobytes(), self._rng.bytes)


def randomness_for(key: bytes | None, experiment_rng: np.random.Generator | None) -> Randomness:
    """Keyed, an experiment's, or by default the operating system's."""
    if key is not None and experiment_rng is not None:
        raise ArgumentError("key must not go with experiment_rng: keyed noise is private")
    if experiment_rng is not None:
        return SeededRandomness(experiment_rng)
    return SecureRandomness() if key is None else KeyedRandomness(key)


def encoded(fields: tuple[bytes, ...]) -> bytes:
    """The fields one after the other, each behind its length, so that no two lists agree."""
    return b"".join(len(field).to_bytes(8, "big") + field for field in fields)


def _growing(beginning: bytes, more: Callable[[int], bytes]) -> Words:
    """Words that begin with some bytes and go on with as many more as are read."""
    held = bytearray(beginning)

    def prefix(size: int) -> bytes:
        held.extend(more(size - len(held)))
        return bytes(held)

    return Words(prefix)


def _as_words(data: bytes) -> array[int]:
    words = array("Q", data)
    if sys.byteorder == "big":
        words.byteswap()
    return words
