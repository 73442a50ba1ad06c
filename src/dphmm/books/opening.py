"""Make a store, or bring an older one to the present version."""

from __future__ import annotations

import hashlib
import secrets

from dphmm.books.database import Database, Transaction
from dphmm.books.rows import (
    PERSON,
    find_facts,
    person_of,
    set_fact,
)
from dphmm.books.schema import MIGRATIONS, OLDEST, VERSION, statements
from dphmm.books.sealing import NO_HEAD, Seals, extend, make_roots
from dphmm.books.tombstones import STONE, read_tombstone
from dphmm.books.writing import CELLS, put_mark, replace_people
from dphmm.errors import StoreError

__all__ = ["SALT_BYTES", "make_tables", "prepare", "version_of"]

LOCK = 0x6470686D6D
"""The name of PostgreSQL's advisory lock while tables are made: "dphmm" in hexadecimal."""

SALT_BYTES = 32
SEALED_VERSION = 6
"""The first version with chains and roots."""


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
    if version:
        _find_secret(database, secret)
    if version < VERSION:
        with database.transaction() as transaction:
            make_tables(transaction, database.dialect, secret)
    return _find_secret(database, secret)


def _find_secret(database: Database, secret: bytes | None) -> bytes:
    """The secret of the tombstones, which must be the one that the store was made with."""
    with database.transaction(write=False) as transaction:
        facts = find_facts(transaction)
    used = bytes.fromhex(facts.get("secret", "")) if secret is None else secret
    # Under another secret nobody erased would be found again, with slots and budget as new.
    if facts.get("tombstones", _fingerprint(used)) != _fingerprint(used):
        raise StoreError(
            f"the store {database.name} names erased people by another secret; open it with that"
        )
    if "tombstones" not in facts:
        with database.transaction() as transaction:
            set_fact(transaction, "tombstones", _fingerprint(used))
    return used


def _fingerprint(secret: bytes) -> str:
    return hashlib.shake_256(b"dphmm tombstones 1" + secret).hexdigest(16)


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


def make_tables(transaction: Transaction, dialect: str, secret: bytes | None = None) -> None:
    """Make the tables, or bring older ones to the present version.

    A new store keeps the secret of its tombstones, unless somebody else does.
    """
    if dialect == "postgresql":
        transaction.rows("SELECT pg_advisory_xact_lock(?)", (LOCK,))
    # Asked again under the lock: another server may have done it meanwhile.
    version = version_of(transaction, dialect)
    for migration in MIGRATIONS[version:]:
        for statement in statements(migration, dialect):
            transaction.rows(statement)
    if version == 0:
        used = secrets.token_bytes(SALT_BYTES) if secret is None else secret
        set_fact(transaction, "tombstones", _fingerprint(used))
        set_fact(transaction, "secret", used.hex() if secret is None else None)
    if version < SEALED_VERSION:
        for name in ("store", "epoch"):
            set_fact(transaction, name, secrets.token_hex(16))
        make_roots(transaction)
        seal_everything(transaction)
    set_fact(transaction, "version", str(VERSION))


def seal_everything(transaction: Transaction) -> None:
    """Begin the chains of people and tombstones that were written without, in one commit."""
    seals = Seals(transaction)
    transaction.rows("UPDATE tombstones SET head = ?", (NO_HEAD,))
    for hashed, *row in transaction.rows(f"SELECT person, {STONE} FROM tombstones"):
        seals.swap(0, read_tombstone(row).seal(hashed))
    for client, name, *row in transaction.rows(f"SELECT client, name, {PERSON} FROM people"):
        *cells, _, _, _ = row
        salt, head = secrets.token_bytes(SALT_BYTES), NO_HEAD
        for answer in transaction.rows(
            f"SELECT number, {CELLS} FROM answers WHERE person = ? ORDER BY number", (row[0],)
        ):
            head = extend(head, salt, tuple(answer))
        standings = transaction.rows(
            "SELECT query, content FROM standings WHERE person = ?", (row[0],)
        )
        marks = ""
        for query, content in standings:
            marks = put_mark(marks, query, bytes(content))
        person = person_of(client, name, (*cells, salt, head, marks))
        replace_people(seals, [(None, person)])
    seals.write_root()
