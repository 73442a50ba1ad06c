"""What stays of an erased person: enough not to answer twice, too little to say who it was."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dphmm.books.database import Transaction
from dphmm.noise.randomness import encoded

__all__ = ["Tombstone", "bury", "tombstone_name", "tombstone_of"]


@dataclass(frozen=True)
class Tombstone:
    """The epsilon spent, the budget, the last slot of each question, and a version.

    Args:
        spent: What was spent in all.
        budget: The person's own limit, if one was set.
        times: For every question the last slot that was answered or passed.
        version: What the person's version goes on from, so that nobody who read them before
            they were erased can commit afterwards.
    """

    spent: Fraction = Fraction(0)
    budget: Fraction | None = None
    times: Mapping[str, int] = field(default_factory=dict)
    version: int = 0


def tombstone_name(secret: bytes, client: str, person: str) -> str:
    """A keyed hash of the identity: without the secret nobody can try out names."""
    identity = encoded((client.encode(), person.encode()))
    return hmac.new(secret, identity, hashlib.sha256).hexdigest()


def tombstone_of(transaction: Transaction, hashed: str) -> Tombstone:
    """What is known of an erased person; nothing for anybody else."""
    row = transaction.row(
        "SELECT spent, budget, times, version FROM tombstones WHERE person = ?", (hashed,)
    )
    if row is None:
        return Tombstone()
    spent, budget, times, version = row
    limit = None if budget is None else Fraction(budget)
    return Tombstone(Fraction(spent), limit, json.loads(times), version)


def bury(transaction: Transaction, hashed: str, stone: Tombstone) -> None:
    """Write a tombstone, or a newer one in its place."""
    budget = None if stone.budget is None else str(stone.budget)
    transaction.rows(
        "INSERT INTO tombstones (person, spent, budget, times, version) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (person) DO UPDATE SET spent = excluded.spent, budget = excluded.budget, "
        "times = excluded.times, version = excluded.version",
        (hashed, str(stone.spent), budget, json.dumps(dict(stone.times)), stone.version),
    )
