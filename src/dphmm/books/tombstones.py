"""What stays of an erased person: enough not to answer twice, too little to say who it was."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dphmm.books.database import Transaction
from dphmm.books.rows import Person, latest_answers
from dphmm.cost.budget import Span
from dphmm.cost.limit import FOREVER, Limit, begin_of
from dphmm.noise.randomness import encoded

__all__ = ["Tombstone", "bury", "tombstone_name", "tombstone_of"]


@dataclass(frozen=True)
class Tombstone:
    """The epsilon spent, the budget, the last slot of each question, and a version.

    Args:
        spent: What was spent in all.
        budget: The person's own limit, if one was set.
        times: For every question the last slot that was answered or passed.
        clocks: For every question what its slots are, as far as that is known.
        version: What the person's version goes on from, so that nobody who read them before
            they were erased can commit afterwards.
    """

    spent: Fraction = Fraction(0)
    budget: Limit | None = None
    times: Mapping[str, int] = field(default_factory=dict)
    version: int = 0
    clocks: Mapping[str, str] = field(default_factory=dict)

    def spans(self, clock: str) -> list[Span]:
        """When it was spent, as far as windows of a clock are concerned: at the last slot.

        The slots of single answers are erased, too. So whoever comes back within a window waits
        until none of them can be in it.
        """
        if not self.spent:
            return []
        last = -FOREVER
        for query, time in self.times.items():
            own = self.clocks.get(query)
            last = max(last, FOREVER if own is None else begin_of(time, own, clock)[1])
        return [(-FOREVER, last, self.spent)]


def tombstone_name(secret: bytes, client: str, person: str) -> str:
    """A keyed hash of the identity: without the secret nobody can try out names."""
    identity = encoded((client.encode(), person.encode()))
    return hmac.new(secret, identity, hashlib.sha256).hexdigest()


def tombstone_of(transaction: Transaction, hashed: str) -> Tombstone:
    """What is known of an erased person; nothing for anybody else."""
    row = transaction.row(
        "SELECT spent, budget, times, version, clocks FROM tombstones WHERE person = ?", (hashed,)
    )
    if row is None:
        return Tombstone()
    spent, budget, times, version, clocks = row
    limit = None if budget is None else Limit.read(budget)
    return Tombstone(Fraction(spent), limit, json.loads(times), version, json.loads(clocks))


def bury(
    transaction: Transaction, hashed: str, person: Person, clocks: Mapping[str, str]
) -> Tombstone:
    """Delete all that is kept of a person and write a tombstone, a newer one in an older's place.

    `clocks` says of every question that stands somewhere what its slots are.
    """
    before = tombstone_of(transaction, hashed)
    times = dict(before.times)
    standings = transaction.rows(
        "SELECT query, time FROM standings WHERE person = ?", (person.number,)
    )
    for query, time in (*latest_answers(transaction, person.number).items(), *standings):
        times[query] = max(time, times.get(query, time))
    known = {**before.clocks, **clocks}
    stone = Tombstone(person.spent, person.limit, times, person.version + 1, known)
    budget = None if stone.budget is None else str(stone.budget)
    transaction.rows(
        "INSERT INTO tombstones (person, spent, budget, times, version, clocks) "
        "VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (person) DO UPDATE SET spent = excluded.spent, budget = excluded.budget, "
        "times = excluded.times, version = excluded.version, clocks = excluded.clocks",
        (
            *(hashed, str(stone.spent), budget, json.dumps(times), stone.version),
            json.dumps(known),
        ),
    )
    for table in ("answers", "standings", "adoptions"):
        transaction.rows(f"DELETE FROM {table} WHERE person = ?", (person.number,))
    transaction.rows("DELETE FROM people WHERE id = ?", (person.number,))
    return stone
