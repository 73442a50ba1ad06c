"""What stays of an erased person: enough not to answer twice, too little to say who it was."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dphmm.books.database import Row, Transaction
from dphmm.books.rows import Person, latest_answers
from dphmm.books.sealing import NO_HEAD, Seals, seal
from dphmm.cost.budget import Span
from dphmm.cost.limit import FOREVER, Limit, begin_of
from dphmm.noise.randomness import encoded

__all__ = [
    "Tombstone",
    "bury",
    "hold_tombstones",
    "tombstone_name",
    "tombstone_of",
    "write_tombstone",
]


@dataclass(frozen=True)
class Tombstone:
    """The epsilon spent, the budget, the last slots, and the head of the chain.

    Args:
        spent: What was spent in all.
        budget: The person's own limit, if one was set.
        times: For every question the last slot that was answered or passed.
        clocks: For every question what its slots are, as far as that is known.
        version: What the person's version goes on from, so that nobody who read them before
            they were erased can commit afterwards.
        head: The end of the person's chain, which whoever comes back goes on with.
        closed: Whether its time was over: all but the name's hash is gone then, and nothing is
            ever answered for that name again.
    """

    spent: Fraction = Fraction(0)
    budget: Limit | None = None
    times: Mapping[str, int] = field(default_factory=dict)
    version: int = 0
    clocks: Mapping[str, str] = field(default_factory=dict)
    head: bytes = field(default=NO_HEAD, repr=False)
    closed: bool = False

    def cells(self) -> tuple[object, ...]:
        """The row that is written of it, but for the name's hash and the head."""
        budget = None if self.budget is None else str(self.budget)
        times, clocks = (json.dumps(dict(one)) for one in (self.times, self.clocks))
        return str(self.spent), budget, times, self.version, clocks, int(self.closed)

    def seal(self, hashed: str) -> int:
        """What stands in the store's sum for it; 0, for none, if nobody was erased.

        Args:
            hashed: The keyed hash of the name.
        """
        is_none = not self.version and not self.closed
        return 0 if is_none else seal(b"tombstone", b"", self.head, (hashed, *self.cells()))

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


STONE = "spent, budget, times, version, clocks, closed, head"


def tombstone_of(transaction: Transaction, hashed: str) -> Tombstone:
    """What is known of an erased person; nothing for anybody else."""
    row = transaction.row(f"SELECT {STONE} FROM tombstones WHERE person = ?", (hashed,))
    return Tombstone() if row is None else read_tombstone(row)


def read_tombstone(row: Row) -> Tombstone:
    """The tombstone of a row with the columns `STONE`."""
    spent, budget, times, version, clocks, closed, head = row
    limit = None if budget is None else Limit.read(budget)
    return Tombstone(
        *(Fraction(spent), limit, json.loads(times), version, json.loads(clocks)),
        *(bytes(head), bool(closed)),
    )


def hold_tombstones(seals: Seals, *, alone: bool = False) -> None:
    """Let no tombstone change until the transaction ends, or let it alone change them.

    Whoever comes back goes on from a tombstone, and none may be written meanwhile. Asked for
    before anybody is locked, so that no two wait for each other.
    """
    seals.transaction.hold("tombstones", "EXCLUSIVE" if alone else "ROW SHARE")


def write_tombstone(seals: Seals, hashed: str, before: Tombstone, after: Tombstone) -> None:
    """Put a tombstone in the place of the one before it, if there was one."""
    seals.swap(before.seal(hashed), after.seal(hashed))
    changed = ", ".join(f"{name} = excluded.{name}" for name in STONE.split(", "))
    seals.transaction.rows(
        f"INSERT INTO tombstones (person, {STONE}) VALUES (?{7 * ', ?'}) "
        f"ON CONFLICT (person) DO UPDATE SET {changed}",
        (hashed, *after.cells(), after.head),
    )


def bury(seals: Seals, hashed: str, person: Person, clocks: Mapping[str, str]) -> Tombstone:
    """Delete all that is kept of a person and write a tombstone, a newer one in an older's place.

    `clocks` says of every question that stands somewhere what its slots are.
    """
    transaction = seals.transaction
    before = tombstone_of(transaction, hashed)
    times = dict(before.times)
    standings = transaction.rows(
        "SELECT query, time FROM standings WHERE person = ?", (person.number,)
    )
    for query, time in (*latest_answers(transaction, person.number).items(), *standings):
        times[query] = max(time, times.get(query, time))
    stone = Tombstone(
        *(person.spent, person.limit, times, person.version + 1, {**before.clocks, **clocks}),
        person.head,
    )
    write_tombstone(seals, hashed, before, stone)
    seals.swap(person.seal(), 0)
    for table in ("answers", "standings", "adoptions"):
        transaction.rows(f"DELETE FROM {table} WHERE person = ?", (person.number,))
    transaction.rows("DELETE FROM people WHERE id = ?", (person.number,))
    return stone
