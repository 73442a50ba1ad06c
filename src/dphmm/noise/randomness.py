"""Where random words come from: the operating system, a secret key, or a named experiment.

Every exact sampler draws from a `Words`, a stream of uniform 32-bit integers made for one
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
from dphmm.errors import ArgumentError, expect

__all__ = ["KeyedRandomness", "Randomness", "SecureRandomness", "SeededRandomness"]

KEY_BYTES = 32
NOISE = b"dphmm noise 2"
FINGERPRINT = b"dphmm key 1"
WORD = 4
"""Bytes of a word; most numbers that an answer needs are small, so words are short."""

LITTLE = np.dtype("<u4")
"""A word as bytes hold it, on every machine."""

IS_NATIVE = sys.byteorder == "little"

BLOCK_WORDS = 34
"""What one block of SHAKE-256 gives."""

FIRST_WORDS = 2 * BLOCK_WORDS
"""An answer in the plane takes about thirty, more are made if needed."""

SHORT = 1 << 24
"""Numbers below this many take one word, so that fewer than one in 256 is thrown away."""


class Words:
    """Uniform 32-bit words from a function that returns any number of leading bytes."""

    __slots__ = ("_buffer", "_data", "_next", "_prefix")

    def __init__(self, prefix: Callable[[int], bytes]) -> None:
        self._prefix = prefix
        self._data = b""
        self._buffer: Sequence[int] = ()
        self._next = 0

    def leading(self, size: int = FIRST_WORDS) -> NDArray[np.uint32]:
        """The words made so far, at least `size`, for a sampler that starts from the first."""
        if WORD * size > len(self._data):
            self._grow(WORD * size)
        words = np.frombuffer(self._data, LITTLE)
        return words if IS_NATIVE else words.astype(np.uint32)

    def _grow(self, size: int) -> None:
        self._data = self._prefix(size)

    def word(self) -> int:
        """The next word."""
        if self._next == len(self._buffer):
            if WORD * self._next >= len(self._data):
                self._grow(2 * len(self._data) or WORD * FIRST_WORDS)
            self._buffer = _as_words(self._data)
        self._next += 1
        return self._buffer[self._next - 1]

    def below(self, n: int) -> int:
        """A uniform integer in 0..n-1, exactly: words in the last, broken run are thrown away."""
        if n == 1:
            return 0
        size, width = (1 << 32, 1) if n <= SHORT else (1 << 64, 2)
        while size < n:
            size, width = size << 64, width + 2
        limit = size - size % n
        while True:
            value = self.word()
            for _ in range(width - 1):
                value = value << 32 | self.word()
            if value < limit:
                return value % n


class Randomness(ABC):
    """A source that gives each answer its own words."""

    private: bool = True
    """Whether what is written with it may be called private."""

    keyed: bool = False
    """Whether words depend on the question, so that asking again gives them again."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """Fresh words for an answer with this public context, given by this state.

        Args:
            context: The moment and the law, which only a key reads.
            state: The state that is answered for. Secret.
        """

    def many(
        self,
        people: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
        size: int = FIRST_WORDS,
    ) -> NDArray[np.uint32]:
        """The first words of many answers, a row each; contexts are (person, *shared).

        Args:
            people: Each answer's own part of the context.
            shared: The part that all have in common.
            states: The state that each is answered for. Secret.
            size: How many words a row has.
        """
        rows = [
            self.words((person, *shared), state).leading(size)[:size]
            for person, state in zip(people, states.tolist(), strict=True)
        ]
        return np.array(rows, dtype=np.uint32).reshape(len(rows), size)

    def longer(
        self,
        rows: NDArray[np.uint32],
        people: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
        size: int,
    ) -> NDArray[np.uint32]:
        """Rows of `many` with what follows them, up to `size` words; see `after`.

        Args:
            rows: The rows so far.
            people: See `many`.
            shared: See `many`.
            states: See `many`. Secret.
            size: How many words each row shall have.
        """
        more = np.frombuffer(self._following(WORD * (size - rows.shape[1]) * len(rows)), "<u4")
        return np.hstack([rows, more.reshape(len(rows), -1)])

    def _following(self, size: int) -> bytes:
        return os.urandom(size)

    def after(self, row: NDArray[np.uint32], context: tuple[bytes, ...], state: int) -> Words:
        """All words of one answer again: a row of `many`, and what follows it.

        A draw that the row cut short goes on with the words that it has read. With others in
        their place long draws, which are the far ones, would be too rare. What follows is the
        operating system's, unless a source can do as it would have done.

        Args:
            row: The words that were read.
            context: See `words`.
            state: See `words`. Secret.
        """
        return _Growing(row.astype("<u4").tobytes(), self._following)


class SecureRandomness(Randomness):
    """The operating system's secure source: every call is independent of every other."""

    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """Words that depend on nothing."""
        return _Growing(b"", os.urandom)

    def many(
        self,
        people: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
        size: int = FIRST_WORDS,
    ) -> NDArray[np.uint32]:
        """Words that depend on nothing, from one call."""
        data = os.urandom(WORD * size * len(states))
        return np.frombuffer(data, dtype=LITTLE).reshape(len(states), size)


class KeyedRandomness(Randomness):
    """A pseudo-random function, SHAKE-256, of a secret key and all that decides the answer.

    The same question repeats its answer; any other question gets unrelated noise.

    Args:
        key: 32 secret bytes.
    """

    keyed = True

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            # The key itself is a secret: say what it is, never what it holds.
            size = len(key) if isinstance(key, bytes) else type(key).__name__
            raise ArgumentError(f"key must be {KEY_BYTES} bytes, got {size}")
        self._key = key

    @property
    def fingerprint(self) -> str:
        """What tells this key from others and nothing about it; ledgers and stores keep it."""
        return hashlib.shake_256(encoded((FINGERPRINT, self._key))).hexdigest(16)

    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """The words of this question."""
        sponge = hashlib.shake_256(encoded((NOISE, self._key, *context, b"%d" % state)))
        return Words(sponge.digest)

    def longer(
        self,
        rows: NDArray[np.uint32],
        people: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
        size: int,
    ) -> NDArray[np.uint32]:
        """The words of these questions, which begin with the rows."""
        return self.many(people, shared, states, size)

    def after(self, row: NDArray[np.uint32], context: tuple[bytes, ...], state: int) -> Words:
        """The words of this question, which begin with the row."""
        return self.words(context, state)

    def many(
        self,
        people: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
        size: int = FIRST_WORDS,
    ) -> NDArray[np.uint32]:
        """The same words as one by one, with what they share encoded once."""
        heads, tail, width = _Heads(encoded((NOISE, self._key))), encoded(shared), WORD * size
        numbers = states.tolist()
        ends = {state: tail + encoded((b"%d" % state,)) for state in set(numbers)}
        absorb = hashlib.shake_256
        data = b"".join(
            [
                absorb(heads[len(person)] + person + ends[state]).digest(width)
                for person, state in zip(people, numbers, strict=True)
            ]
        )
        return np.frombuffer(data, dtype=LITTLE).reshape(len(states), size)

    def __repr__(self) -> str:
        return "KeyedRandomness(key=<secret>)"


class SeededRandomness(Randomness):
    """A repeatable generator for experiments; what it writes is marked as not private.

    Args:
        rng: The generator.
    """

    private = False

    def __init__(self, rng: np.random.Generator) -> None:
        expect(rng, np.random.Generator, "rng")
        self._rng = rng

    def words(self, context: tuple[bytes, ...], state: int) -> Words:
        """The generator's next words."""
        return _Growing(b"", self._rng.bytes)

    def _following(self, size: int) -> bytes:
        return self._rng.bytes(size)


def encoded(fields: tuple[bytes, ...]) -> bytes:
    """The fields one after the other, each behind its length, so that no two lists agree."""
    return b"".join(len(field).to_bytes(8, "big") + field for field in fields)


class _Heads(dict[int, bytes]):
    """What comes before a field of some length, as `encoded` writes it, made once each."""

    def __init__(self, before: bytes) -> None:
        self._before = before

    def __missing__(self, length: int) -> bytes:
        return self.setdefault(length, self._before + length.to_bytes(8, "big"))


class _Growing(Words):
    """Words that begin with some bytes and go on with as many more as are read."""

    __slots__ = ()

    def __init__(self, beginning: bytes, more: Callable[[int], bytes]) -> None:
        # As Words does, without calling it: this is a tenth of an answer.
        self._prefix, self._data, self._buffer, self._next = more, beginning, (), 0

    def _grow(self, size: int) -> None:
        self._data += self._prefix(size - len(self._data))


def _as_words(data: bytes) -> array[int]:
    words = array("I", data)
    if not IS_NATIVE:
        words.byteswap()
    return words


def source_of(randomness: Randomness | None, person: str) -> Randomness:
    """Where somebody's noise comes from: the system's secure source by default."""
    source = SecureRandomness() if randomness is None else randomness
    if source.keyed and not person:
        raise ArgumentError("person must be named when noise is keyed, got an empty name")
    return source
