"""Chains, seals and roots: how a store knows that nothing in it is missing or altered.

An answer is a link of its person's chain. A seal stands for all that is kept of a person, and
the sum of all seals is written with every commit, in parts that commits do not share: the roots.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from secrets import token_bytes
from typing import TypeAlias

from dphmm.books.database import Transaction
from dphmm.books.schema import ROOTS

__all__ = ["NO_HEAD", "NO_ROOT", "Root", "Roots", "Seals", "extend", "find_roots", "seal", "total"]

HEAD_BYTES = 32
NO_HEAD = bytes(HEAD_BYTES)
"""Where the chain of somebody begins who was never erased."""

SEAL_BYTES = 256
"""So long that no list attack finds two sets of seals with one sum."""

MODULUS = 1 << (8 * SEAL_BYTES)


MARK_BYTES = 8
"""Of a root, what the later ones know it by; two of the same place have one mark by chance only."""

PASSED = 128
"""So many roots back it can be told whether one goes on from another."""


@dataclass(frozen=True)
class Root:
    """One of a store's roots, as an anchor holds it.

    Args:
        commits: How many there have been.
        value: The hash of the sum, and of a random word, so that no two commits have one root.
        past: The marks of those before it, if they were read, too.
    """

    commits: int
    value: str
    past: bytes = field(default=b"", compare=False, repr=False)

    def __iter__(self) -> Iterator[int | str]:
        """What an anchor holds."""
        return iter((self.commits, self.value))

    @property
    def mark(self) -> bytes:
        """What the later ones know it by."""
        return bytes.fromhex(self.value)[:MARK_BYTES]

    def follows(self, earlier: Root) -> bool | None:
        """Whether it is another root or goes on from it; None if that is too long ago to tell."""
        back = self.commits - earlier.commits
        if back <= 0 or not earlier.commits:
            return back > 0 or self == earlier
        place = len(self.past) - back * MARK_BYTES
        return None if place < 0 else self.past[place : place + MARK_BYTES] == earlier.mark


NO_ROOT = Root(0, "")
"""Before the first commit."""

Roots: TypeAlias = Mapping[int, Root]
"""By number."""


@cache
def _joined(count: int) -> str:
    """What writes so many cells as one text; several times quicker than `join`."""
    return "\0".join(["%s"] * count)


def extend(head: bytes, salt: bytes, cells: tuple[object, ...]) -> bytes:
    """The head of a chain after an answer; the last cell may hold any text."""
    content = b"dphmm answer 1" + salt + (_joined(len(cells)) % cells).encode()
    commitment = hashlib.blake2b(content, digest_size=HEAD_BYTES).digest()
    return hashlib.blake2b(b"dphmm link 1" + head + commitment, digest_size=HEAD_BYTES).digest()


def seal(kind: bytes, secret: bytes, head: bytes, cells: tuple[object, ...]) -> int:
    """The seal of a row; the last cell may hold any text."""
    content = b"dphmm seal 1 " + kind + secret + head + (_joined(len(cells)) % cells).encode()
    return int.from_bytes(hashlib.shake_256(content).digest(SEAL_BYTES), "little")


@dataclass
class Seals:
    """What a transaction changes in the sum of all seals.

    Args:
        transaction: The one that it belongs to.
        change: New seals less old ones.
    """

    transaction: Transaction
    change: int = field(default=0, repr=False)

    def swap(self, before: int, after: int) -> None:
        """One seal is in another's place; 0 is none."""
        self.change += after - before

    def write_root(self) -> tuple[int, Root, Root]:
        """Add the change to a root that no other transaction is using, until this one ends.

        Gives its number, what it was and what it is.
        """
        asked = f"SELECT {ROOT} FROM roots ORDER BY number LIMIT 1"
        row = self.transaction.row(asked + self.transaction.for_update_skipping)
        if row is None:  # all are in use
            row = self.transaction.row(asked + self.transaction.for_update)
        assert row is not None
        number, count, seals, _ = row
        before = _root(*row)
        value = (int.from_bytes(seals, "little") + self.change) % MODULUS
        marks = before.past + before.mark if count else b""
        after = (
            *(number, count + 1, value.to_bytes(SEAL_BYTES, "little")),
            token_bytes(MARK_BYTES) + marks[-PASSED * MARK_BYTES :],
        )
        self.transaction.rows(
            "UPDATE roots SET count = ?, seals = ?, past = ? WHERE number = ?",
            (*after[1:], number),
        )
        return number, before, _root(*after)


ROOT = "number, count, seals, past"


def _root(number: int, count: int, seals: bytes, past: bytes | None) -> Root:
    """The root of a row; its past begins with the random word."""
    past = bytes(past or b"")
    content = b"dphmm root 1 %d %d " % (number, count) + seals + past
    return Root(count, hashlib.sha256(content).hexdigest(), past[MARK_BYTES:])


def make_roots(transaction: Transaction) -> None:
    """Begin with no commit and no seal."""
    rows = [(number, 0, bytes(SEAL_BYTES)) for number in range(ROOTS)]
    transaction.many("INSERT INTO roots (number, count, seals) VALUES (?, ?, ?)", rows)


def find_roots(transaction: Transaction) -> dict[int, Root]:
    """The roots of a store, of those that have a commit."""
    rows = transaction.rows(f"SELECT {ROOT} FROM roots WHERE count > 0")
    return {row[0]: _root(*row) for row in rows}


def total(transaction: Transaction) -> int:
    """The sum of all roots, which is that of all seals."""
    rows = transaction.rows("SELECT seals FROM roots")
    return sum(int.from_bytes(kept, "little") for (kept,) in rows) % MODULUS
