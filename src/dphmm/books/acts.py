"""Who did what to a store, without saying whom about: rows are added, and none is changed.

Each row has a hash of itself and of the row before, so that one that was taken out or altered
leaves a break.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dphmm.books.database import Transaction
from dphmm.books.store import Store
from dphmm.noise.randomness import encoded

__all__ = ["Act", "find_break", "list_acts", "record_act", "write_act"]

COLUMNS = "number, time, who, client, act, chain"


@dataclass(frozen=True)
class Act:
    """Something that was done.

    Args:
        number: Its place in the list.
        time: When, to the second.
        who: The first letters of the key's SHA-256; empty for a command on the machine itself.
        client: Whose people or keys it was about.
        act: What: a budget, an erasure, a key made, closed or exchanged, a scenario.
        chain: A hash of this and of the act before.
    """

    number: int
    time: str
    who: str
    client: str
    act: str
    chain: str


def write_act(transaction: Transaction, who: str, client: str, act: str) -> None:
    """Write down what is being done, in the transaction that does it."""
    # One at a time, also where several servers write: who comes next must see this one.
    transaction.rows("SELECT 1 FROM facts WHERE name = 'version'" + transaction.for_update)
    row = transaction.row("SELECT number, chain FROM acts ORDER BY number DESC LIMIT 1")
    number, before = row or (0, "")
    said = (datetime.now(UTC).isoformat(timespec="seconds"), who, client, act)
    transaction.rows(
        f"INSERT INTO acts ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        (number + 1, *said, _chain(before, said)),
    )


def record_act(store: Store, who: str, client: str, act: str) -> None:
    """Write down what will be done next, by a transaction of its own."""
    with store.writing() as seals:
        write_act(seals.transaction, who, client, act)


def list_acts(
    store: Store, *, client: str | None = None, after: int = 0, most: int = 1000
) -> list[Act]:
    """What was done, of all clients or of one, in order."""
    chosen, values = ("", ()) if client is None else (" AND client = ?", (client,))
    with store.database.transaction(write=False) as transaction:
        rows = transaction.rows(
            f"SELECT {COLUMNS} FROM acts WHERE number > ?{chosen} ORDER BY number LIMIT ?",
            (after, *values, most),
        )
    return [Act(*row) for row in rows]


def find_break(store: Store) -> int | None:
    """The number of the first act that does not follow from the one before; None if all do."""
    before, after = "", 0
    while acts := list_acts(store, after=after):
        for act in acts:
            if act.chain != _chain(before, (act.time, act.who, act.client, act.act)):
                return act.number
            before, after = act.chain, act.number
    return None


def _chain(before: str, said: Sequence[str]) -> str:
    return hashlib.sha256(encoded((before.encode(), *map(str.encode, said)))).hexdigest()
