"""How much of a store is a client's."""

from __future__ import annotations

from dphmm.books.database import Transaction
from dphmm.books.store import Store
from dphmm.errors import TooLargeError

__all__ = ["check_scenarios", "count_people", "some_people"]


def count_people(store: Store, client: str) -> int:
    """How many people a client has."""
    with store.database.transaction(write=False) as transaction:
        row = transaction.row("SELECT count(*) FROM people WHERE client = ?", (client,))
    return int(row[0]) if row else 0


def some_people(store: Store, client: str, after: str, most: int) -> list[str]:
    """The names of a client's people after one, in order, not more than so many."""
    with store.database.transaction(write=False) as transaction:
        rows = transaction.rows(
            "SELECT name FROM people WHERE client = ? AND name > ? ORDER BY name LIMIT ?",
            (client, after, most),
        )
    return [row[0] for row in rows]


def check_scenarios(transaction: Transaction, client: str, most: tuple[int, int]) -> None:
    """Refuse what makes a client's scenarios more than so many, or than so many letters."""
    row = transaction.row(
        "SELECT count(*), coalesce(sum(length(content)), 0) FROM scenarios WHERE client = ?",
        (client,),
    )
    count, letters = row or (0, 0)
    if count > most[0] or letters > most[1]:
        raise TooLargeError(
            f"scenarios must be at most {most[0]}, with {most[1]} bytes in all, for each client; "
            f"ask the operator for more"
        )
