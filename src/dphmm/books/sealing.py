"""Chains, seals and roots: how a store knows that nothing in it is missing or altered.

An answer is a link of its person's chain. A seal stands for all that is kept of a person, and
the sum of all seals is written with every commit, in parts that commits do not share: the roots.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeAlias

from dphmm.books.database import Transaction
from dphmm.books.schema import ROOTS

__all__ = ["NO_HEAD", "NO_ROOT", "Root", "Roots", "Seals", "extend", "find_roots", "seal", "total"]

HEAD_BYTES = 32
NO_HEAD = bytes(HEAD_BYTES)
"""Where the chain of somebody begins who was never erased."""

SEAL_BYTES = 256
"""So long that no list attack finds two sets of seals with one sum."""

MODULUS = 1 << (8 * SEAL_BYTES)


class Root(NamedTuple):
    """One of a store's roots, as an anchor holds it: how many commits, and the hash of the sum."""

    commits: int
    value: str


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
        kept: What of it must be in the store whenever something is said about it, each asked in
            a later transaction.
    """

    transaction: Transaction
    change: int = field(default=0, repr=False)
    kept: list[Callable[[Transaction], bool]] = field(default_factory=list, repr=False)

    def swap(self, before: int, after: int) -> None:
        """One seal is in another's place; 0 is none."""
        self.change += after - before

    def is_kept(self, transaction: Transaction) -> bool:
        """Whether what was written is in the store, in a later transaction."""
        return all(is_kept(transaction) for is_kept in self.kept)

    def write_root(self) -> tuple[int, Root, Root]:
        """Add the change to a root that no other transaction is using, until this one ends.

        Gives its number, what it was and what it is.
        """
        asked = "SELECT number, count, sum FROM roots ORDER BY number LIMIT 1"
        row = self.transaction.row(asked + self.transaction.for_update_skipping)
        if row is None:  # all are in use
            row = self.transaction.row(asked + self.transaction.for_update)
        assert row is not None
        number, count, kept = row
        value = (int.from_bytes(kept, "little") + self.change) % MODULUS
        summed = value.to_bytes(SEAL_BYTES, "little")
        self.transaction.rows(
            "UPDATE roots SET count = ?, sum = ? WHERE number = ?", (count + 1, summed, number)
        )
        return number, _root(number, count, bytes(kept)), _root(number, count + 1, summed)


def _root(number: int, count: int, summed: bytes) -> Root:
    return Root(
        count, hashlib.sha256(b"dphmm root 1 %d %d " % (number, count) + summed).hexdigest()
    )


def make_roots(transaction: Transaction) -> None:
    """Begin with no commit and no seal."""
    rows = [(number, 0, bytes(SEAL_BYTES)) for number in range(ROOTS)]
    transaction.many("INSERT INTO roots (number, count, sum) VALUES (?, ?, ?)", rows)


def find_roots(transaction: Transaction) -> dict[int, Root]:
    """The roots of a store, of those that have a commit."""
    rows = transaction.rows("SELECT number, count, sum FROM roots WHERE count > 0")
    return {number: _root(number, count, bytes(kept)) for number, count, kept in rows}


def total(transaction: Transaction) -> int:
    """The sum of all roots, which is that of all seals."""
    rows = transaction.rows("SELECT sum FROM roots")
    return sum(int.from_bytes(kept, "little") for (kept,) in rows) % MODULUS
