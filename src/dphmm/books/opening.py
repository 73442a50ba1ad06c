"""Make a store, or bring an older one to the present version."""

from __future__ import annotations

import hashlib
import secrets

from dphmm.books.database import Database, Transaction
from dphmm.books.schema import MIGRATIONS, OLDEST, VERSION, statements
from dphmm.errors import StoreError

__all__ = ["prepare", "version_of"]

LOCK = 0x6470686D6D
"""The name of PostgreSQL's advisory lock while tables are made: "dphmm" in hexadecimal."""


def prepare(database: Database, secret: bytes | None, create: bool) -> bytes:
    """Bring the tables to the present version and return the secret of the tombstones."""
    with database.transaction(write=False) as transaction:
        version = version_of(transaction, database.dialect)
    if version > VERSION:
        raise StoreError(
            f"the store {database.name} has version {version}, this dphmm knows up to {VERSION}; "
            f"use a newer dphmm"
        )
    if 0 < version < OLDEST:
        raise StoreError(
            f"the store {database.name} was made by an earlier dphmm, whose times were relative; "
            f"nothing in it was changed, export it with that dphmm and begin another store"
        )
    if version == 0 and not create:
        raise StoreError(f"the store {database.name} does not exist; a release makes it")
    if version < VERSION:
        _migrate(database)
    with database.transaction(write=False) as transaction:
        facts = dict(map(tuple, transaction.rows("SELECT name, value FROM facts")))
    used = bytes.fromhex(facts["secret"]) if secret is None else secret
    # Under another secret nobody erased would be found again, with slots and budget as new.
    fingerprint = hashlib.shake_256(b"dphmm tombstones 1" + used).hexdigest(16)
    if "tombstones" not in facts:
        with database.transaction() as transaction:
            transaction.rows(
                "INSERT INTO facts (name, value) VALUES ('tombstones', ?) "
                "ON CONFLICT (name) DO NOTHING",
                (fingerprint,),
            )
    elif facts["tombstones"] != fingerprint:
        raise StoreError(
            f"the store {database.name} names erased people by another secret; open it with that"
        )
    return used


def version_of(transaction: Transaction, dialect: str) -> int:
    """The version of the tables; 0 if there are none."""
    if dialect == "sqlite":
        there = transaction.row("SELECT 1 FROM sqlite_master WHERE name = 'facts'")
        others = transaction.row("SELECT 1 FROM sqlite_master")
    else:
        there = transaction.row("SELECT 1 WHERE to_regclass('facts') IS NOT NULL")
        others = None
    if there is None:
        if others is not None:
            raise StoreError("the store is another program's database; choose another file")
        return 0
    row = transaction.row("SELECT value FROM facts WHERE name = 'version'")
    if row is None or not str(row[0]).isdigit():
        raise StoreError("the store has no version; it is damaged or another program's")
    return int(row[0])


def _migrate(database: Database) -> None:
    with database.transaction() as transaction:
        if database.dialect == "postgresql":
            transaction.rows("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        # Asked again under the lock: another server may have done it meanwhile.
        version = version_of(transaction, database.dialect)
        for migration in MIGRATIONS[version:]:
            for statement in statements(migration, database.dialect):
                transaction.rows(statement)
        if version == 0:
            transaction.rows(
                "INSERT INTO facts (name, value) VALUES ('secret', ?)", (secrets.token_hex(32),)
            )
        transaction.rows(
            "INSERT INTO facts (name, value) VALUES ('version', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (str(VERSION),),
        )
