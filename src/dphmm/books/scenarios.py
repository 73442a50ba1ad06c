"""The scenarios of a store: each is one text, under its digest."""

from __future__ import annotations

from dphmm.books.quotas import check_scenarios
from dphmm.books.store import Store
from dphmm.errors import NotFoundError

__all__ = ["add_scenario", "find_scenario", "list_scenarios"]


def add_scenario(
    store: Store,
    digest: str,
    content: str,
    *,
    client: str = "",
    most: tuple[int, int] | None = None,
) -> bool:
    """Keep a scenario's text under its digest; True if it was not there.

    `most` is how many a client may have, and how many letters in all.
    """
    with store.database.transaction() as transaction:
        added = transaction.rows(
            "INSERT INTO scenarios (client, digest, content) VALUES (?, ?, ?) "
            "ON CONFLICT (client, digest) DO NOTHING RETURNING digest",
            (client, digest, content),
        )
        if added and most is not None:
            check_scenarios(transaction, client, most)
    return bool(added)


def find_scenario(store: Store, digest: str, *, client: str = "") -> str:
    """The text of a scenario."""
    with store.database.transaction(write=False) as transaction:
        row = transaction.row(
            "SELECT content FROM scenarios WHERE client = ? AND digest = ?", (client, digest)
        )
    if row is None:
        raise NotFoundError("scenario must be one of the store, got another")
    return str(row[0])


def list_scenarios(store: Store, *, client: str = "") -> list[str]:
    """The digests of a client's scenarios."""
    with store.database.transaction(write=False) as transaction:
        found = transaction.rows(
            "SELECT digest FROM scenarios WHERE client = ? ORDER BY digest", (client,)
        )
    return [row[0] for row in found]
