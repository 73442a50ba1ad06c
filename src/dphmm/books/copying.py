"""Copies of a store, as it was at one moment, in a file of SQLite, and stores from copies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from dphmm.books.checking import find_problems
from dphmm.books.database import Database, Row, Sqlite, Transaction, connect
from dphmm.books.opening import make_tables, version_of
from dphmm.books.rows import set_fact
from dphmm.books.schema import TABLES
from dphmm.books.store import Store
from dphmm.errors import StoreError

__all__ = ["backup", "restore"]

TOGETHER = 1000
"""People, or rows of another table, that are copied at once."""


def backup(store: Store, path: str | Path) -> None:
    """Copy a store, as it is at one moment, into a new file of SQLite, whichever database it has.

    Args:
        store: The store, which may be in use.
        path: The file, which must not be there; it has the names of people and is closed to others.
    """
    store.check()
    if Path(path).exists():
        raise StoreError(f"the backup {path} must be a new file, got one that is there")
    partial = Path(path).with_name(f".{Path(path).name}.part")
    partial.unlink(missing_ok=True)
    try:
        with closing(Sqlite(str(partial))) as target:
            _copy(store.database, target)
            target.forget_erased()
        os.replace(partial, path)
    finally:
        for name in ("", "-wal", "-shm"):
            Path(f"{partial}{name}").unlink(missing_ok=True)


def restore(
    source: str | Path,
    url: str | Path,
    *,
    secret: bytes | None = None,
    anchor: str | Path | None = None,
) -> Store:
    """Put a backup back as a store, which must not be there; gives it open.

    It answers only if its anchor knows the same commits, and no later ones. Without, nobody can
    tell what was said since the backup, and nothing is answered before `recover`.

    Args:
        source: The backup.
        url: Where the store shall be; either database.
        secret: What names the tombstones of erased people; by default the store's own.
        anchor: See `Store.open`.
    """
    with closing(Store.open(source, secret=secret, create=False)) as copy:
        # Whether it is behind its anchor is seen when it is a store again.
        problems = [one for one in find_problems(copy) if not one.startswith("anchor:")]
        if problems:
            raise StoreError(f"the backup {source} is damaged: {problems[0]}")
        target = connect(url)
        if isinstance(target, Sqlite) and Path(target.name).exists():
            raise StoreError(f"the store {target.name} must be a new one, got one that is there")
        with closing(target):
            _copy(copy.database, target, restored=True)
    store = Store.open(url, secret=secret, create=False, anchor=anchor)
    if store.is_current():
        with store.database.transaction() as transaction:
            set_fact(transaction, "restored", None)
    return store


def _copy(source: Database, target: Database, *, restored: bool = False) -> None:
    """Copy every row, as they are at one moment."""
    with source.transaction(write=False) as read, target.transaction() as write:
        if version_of(write, target.dialect):
            raise StoreError(f"the store {target.name} must be a new one, got one that is there")
        make_tables(write, target.dialect)
        for table in reversed(TABLES):
            write.rows(f"DELETE FROM {table}")
        for table in TABLES:
            names = _columns(read, source.dialect, table)
            marks = ", ".join("?" * len(names))
            own = " OVERRIDING SYSTEM VALUE" if target.dialect == "postgresql" else ""
            into = f"INSERT INTO {table} ({', '.join(names)}){own} VALUES ({marks})"
            for rows in _chunks(read, table, names):
                write.many(into, rows)
        if restored:
            set_fact(write, "restored", "1")
        if target.dialect == "postgresql":
            write.rows(
                "SELECT setval(pg_get_serial_sequence('people', 'id'), "
                "(SELECT coalesce(max(id), 0) + 1 FROM people), false)"
            )


def _columns(transaction: Transaction, dialect: str, table: str) -> list[str]:
    if dialect == "sqlite":
        rows = transaction.rows("SELECT name FROM pragma_table_info(?)", (table,))
    else:
        rows = transaction.rows(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position",
            (table,),
        )
    return [row[0] for row in rows]


def _chunks(transaction: Transaction, table: str, names: Iterable[str]) -> Iterator[list[Row]]:
    """All rows of a table; those of people by so many people at once."""
    chosen = f"SELECT {', '.join(names)} FROM {table}"
    key = {"people": "id", "tombstones": None}.get(table, "person")
    if key is None or key not in chosen:
        rows = transaction.rows(chosen)
        yield from (rows[n : n + TOGETHER] for n in range(0, len(rows), TOGETHER))
        return
    (last,) = transaction.row("SELECT coalesce(max(id), 0) FROM people") or (0,)
    for first in range(0, last, TOGETHER):
        yield transaction.rows(
            f"{chosen} WHERE {key} > ? AND {key} <= ?", (first, first + TOGETHER)
        )
