"""Read a ledger file or a store while others write it, without changing a byte of it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dphmm.books.database import BUSY_SECONDS, Sqlite, Transaction, connect
from dphmm.books.journal import END, HEAD, read_record
from dphmm.books.opening import version_of
from dphmm.books.rows import ANSWER, PERSON, Person, person_of, record_of
from dphmm.books.schema import VERSION
from dphmm.errors import DataError, StoreError
from dphmm.release.moment import Line
from dphmm.release.said import Record

__all__ = ["News", "StoreTail", "Tail"]


class Tail:
    """The answers of a ledger file, as they come.

    Only what was written whole is read: a write that is under way, or that was killed, ends
    before its last line, and none of its answers has left.

    Args:
        path: The file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._read = 0
        with self._open() as file:
            if file.read(len(HEAD)) != HEAD:
                raise DataError(f"{self.path}: ledger must be one that this dphmm wrote")

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as fault:
            raise DataError(
                f"{self.path}: ledger must be readable, got: {fault.strerror}"
            ) from None

    def more(self) -> list[Record]:
        """The answers that were written since the last time."""
        with self._open() as file:
            file.seek(self._read)
            content = file.read()
        end = content.rfind(b"\n" + END) + 1
        # A name may hold the same letters, so only the beginning of a line counts.
        end = end + len(END) if end else (len(END) if content.startswith(END) else 0)
        place = self._read
        self._read += end
        try:
            lines = [json.loads(line) for line in content[:end].splitlines()]
            return [read_record(facts) for facts in lines if facts.get("kind") == "answer"]
        except (ValueError, KeyError, TypeError, ArithmeticError):
            raise DataError(f"{self.path}: ledger must hold records after byte {place}") from None


class _SqliteRead(Sqlite):
    """A store's file that cannot be written through here, not even to close it to others."""

    def _connect(self) -> sqlite3.Connection:
        if not Path(self.name).is_file():
            raise StoreError(f"the store {self.name} must be a file, got none of that name")
        address = f"{Path(self.name).absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA query_only = ON")
        return connection


class News(NamedTuple):
    """What a look at a store found.

    Args:
        answers: What was said since the last look, silent steps included.
        people: Everybody who is in the store now.
        unread: Of how many people there is more to read than one look takes.
    """

    answers: list[Record]
    people: list[Person]
    unread: int


class StoreTail:
    """The answers of a store, as they come; nothing is written and no secret is needed.

    Args:
        address: The file of an SQLite store, or the address of one on PostgreSQL.
    """

    def __init__(self, address: str) -> None:
        database = connect(address)
        if isinstance(database, Sqlite):
            database = _SqliteRead(database.name)
        self.name = Path(database.name).name
        self._database = database
        self._read: dict[int, int] = {}
        """How many commits about a person were read."""
        self._last: dict[int, int] = {}
        """The number of the last answer about a person that was read."""
        with database.transaction(write=False) as transaction:
            version = version_of(transaction, database.dialect)
        if version != VERSION:
            database.close()
            raise StoreError(
                f"the store {self.name} must have version {VERSION} to be watched, got {version}"
            )

    def more(self, most: int) -> News:
        """What was said since the last time: of whole people, until there are `most` answers."""
        found: list[Record] = []
        unread = 0
        with self._database.transaction(write=False) as transaction:
            rows = transaction.rows(f"SELECT client, name, {PERSON} FROM people")
            people = [person_of(client, name, row) for client, name, *row in rows]
            for person in people:
                if self._read.get(person.number, 0) == person.version:
                    continue
                if len(found) >= most:
                    unread += 1
                    continue
                found += self._answers(transaction, person)
        return News(found, people, unread)

    def _answers(self, transaction: Transaction, person: Person) -> list[Record]:
        number = person.number
        rows = transaction.rows(
            f"SELECT number, query, {ANSWER} FROM answers WHERE person = ? AND number > ? "
            "ORDER BY number",
            (number, self._last.get(number, -1)),
        )
        self._read[number] = person.version
        if rows:
            self._last[number] = rows[-1][0]
        lines = {query: Line(person.client, person.name, query) for _, query, *_ in rows}
        return [record_of(lines[query], answer) for _, query, *answer in rows]

    def close(self) -> None:
        """Close all connections."""
        self._database.close()
