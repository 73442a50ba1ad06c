"""Stores as an earlier dphmm would have left them."""

from __future__ import annotations

from dphmm.books.database import Transaction


def make_older(transaction: Transaction, version: int) -> None:
    """Take away from a store of this version what came after an earlier one, 3 or 4."""
    for column in ("head", "closed", "clocks"):
        transaction.rows(f"ALTER TABLE tombstones DROP COLUMN {column}")
    for column in ("salt", "head", "marks"):
        transaction.rows(f"ALTER TABLE people DROP COLUMN {column}")
    transaction.rows("ALTER TABLE people RENAME COLUMN commits TO version")
    transaction.rows("ALTER TABLE keys DROP COLUMN expires")
    for table in ("roots", "acts"):
        transaction.rows(f"DROP TABLE {table}")
    if version == 3:
        transaction.rows("ALTER TABLE adoptions DROP COLUMN content")
    transaction.rows("UPDATE facts SET value = ? WHERE name = 'version'", (str(version),))
