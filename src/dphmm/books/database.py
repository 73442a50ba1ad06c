"""Transactions on SQLite or PostgreSQL in one way, and their errors as sentences."""

from __future__ import annotations

import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakSet

from dphmm.books.watching import Watch
from dphmm.errors import ArgumentError, DphmmError, StoreError, expect, require
from dphmm.tables.files import as_path, is_at

__all__ = ["Database", "Postgres", "Sqlite", "Transaction", "connect"]

Row: TypeAlias = Sequence[Any]

BUSY_SECONDS = 10.0
"""How long to wait for another program before saying that the store is locked."""

SILENT_SECONDS = 15.0
"""How long a statement may take, and how long a server may say nothing."""


class Transaction(ABC):
    """What may be done between begin and commit."""

    for_update = ""
    """What makes a SELECT lock its rows, where rows can be locked."""
    for_update_skipping = ""
    """The same, passing over rows that another transaction has locked."""
    by_bytes = ""
    """What makes texts come in the order in which Python sorts them."""

    def hold(self, table: str, mode: str) -> None:  # noqa: B027
        """Lock a table until the end; nothing where there is one writer at a time anyway."""

    @abstractmethod
    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement, with ? for each value, and return what it gives."""

    @abstractmethod
    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """Run one statement for each row of values, and count the rows that it changed."""

    def row(self, sql: str, values: Sequence[object] = ()) -> Row | None:
        """The first row, or None."""
        found = self.rows(sql, values)
        return found[0] if found else None


class Database(ABC):
    """A place for transactions; safe to share between threads, each has its own connection.

    So has each process: what is forked makes new ones.
    """

    dialect: str

    def __init__(self, name: str) -> None:
        self.name = name
        self._inherited: list[Any] = []
        """The connections of the process that this one was forked from: not ours to close."""
        self._open: set[Any] = set()
        self._begin()
        _DATABASES.add(self)

    def _begin(self) -> None:
        """Have no connection, and no lock that a thread of another process holds."""
        self._inherited.append(self._open)
        self._open = set()
        self._local = threading.local()
        self._guard = threading.Lock()

    @abstractmethod
    def transaction(self, write: bool = True) -> AbstractContextManager[Transaction]:
        """A context in which everything is done or nothing; it is durable when left."""

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection for this thread."""

    @abstractmethod
    def _is_idle(self, connection: Any) -> bool:
        """Whether no transaction has begun on a connection."""

    def _connection(self) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is not None and connection in self._open and not self._is_idle(connection):
            # Of somebody who was stopped. What is said now would be a part of it, and only as
            # durable as its end, which never comes.
            self._drop(connection)
        if connection is None or connection not in self._open:
            connection = self._connect()
            with self._guard:
                self._open.add(connection)
            self._local.connection = connection
        return connection

    def _drop(self, connection: Any) -> None:
        """Forget a connection that failed; the next transaction makes another."""
        with self._guard:
            self._open.discard(connection)
        connection.close()

    def forget_erased(self) -> bool:
        """Leave no copy of deleted rows, where the database can be told to; False if it cannot yet.

        PostgreSQL's vacuum does it in its own time.
        """
        return True

    def close(self) -> None:
        """Close every thread's connection; call when no transaction is running."""
        with self._guard:
            for connection in self._open:
                connection.close()
            self._open.clear()


_DATABASES: WeakSet[Database] = WeakSet()


def _forget_inherited() -> None:
    for database in _DATABASES:
        database._begin()


os.register_at_fork(after_in_child=_forget_inherited)


class _SqliteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        return self._connection.executemany(sql, rows).rowcount


class Sqlite(Database):
    """A file, with a write-ahead log that is on the disk before a commit returns."""

    dialect = "sqlite"

    def __init__(self, path: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        super().__init__(path)
        self._busy_seconds = busy_seconds
        self._where = Path(path).absolute()  # wherever the process goes
        self._opened: os.stat_result | None = None

    def _begin(self) -> None:
        super()._begin()
        # SQLite has one writer at a time anyway; its own way of waiting is to sleep and retry.
        # A thread that was stopped with it has it still, and may have it again.
        self._writing = threading.RLock()

    def _connect(self) -> sqlite3.Connection:
        self._check_place()
        if not self._where.parent.is_dir():
            raise StoreError(f"the store {self.name} must stand in a folder that exists")
        if self._where.exists() and not self._where.is_file():
            # A folder or a device, whose rights are not ours to take away.
            raise StoreError(f"the store {self.name} must be a file, got something else")
        _close_to_others(str(self._where))
        connection = sqlite3.connect(
            self._where, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")  # what is erased is overwritten
        except sqlite3.Error:
            connection.close()
            raise
        self._opened = self._opened or os.stat(self._where)
        return connection

    def _check_place(self) -> None:
        """Refuse a file that nobody finds any more, or that others have replaced."""
        if self._opened is not None and not is_at(self._where, self._opened):
            raise StoreError(
                f"the store {self.name} was moved, deleted or replaced while it was open; nothing "
                f"more is said, start again"
            )

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[Transaction]:
        """See `Database.transaction`; a write takes the file's one lock from the start."""
        if not write:
            yield from self._run("BEGIN")
            return
        if not self._writing.acquire(timeout=self._busy_seconds):
            raise self._refusal(sqlite3.SQLITE_BUSY)
        try:
            yield from self._run("BEGIN IMMEDIATE")
        finally:
            with suppress(RuntimeError):  # as often as it was taken
                while True:
                    self._writing.release()

    def _is_idle(self, connection: sqlite3.Connection) -> bool:
        return not connection.in_transaction

    def _run(self, begin: str) -> Iterator[Transaction]:
        connection = None
        try:
            connection = self._connection()
            self._check_place()
            connection.execute(begin)
            yield _SqliteTransaction(connection)
            self._check_place()
            connection.execute("COMMIT")
        except BaseException as error:
            if connection is not None:
                self._leave(connection, error)
            if isinstance(error, sqlite3.Error):
                raise self._explained(error) from error
            raise

    def _leave(self, connection: sqlite3.Connection, fault: BaseException) -> None:
        """Undo what a transaction has done that ended with a fault."""
        if not isinstance(fault, DphmmError):
            self._drop(connection)
        elif connection.in_transaction:
            connection.execute("ROLLBACK")

    def forget_erased(self) -> bool:
        """Move the log into the file and empty it, so that it holds no erased page.

        Whoever reads meanwhile needs the log: they are waited for as long as for a lock.
        """
        try:
            ((busy, _, _),) = self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise self._explained(error) from error
        return not busy

    def _explained(self, error: sqlite3.Error) -> StoreError:
        return self._refusal(getattr(error, "sqlite_errorcode", 0) & 0xFF, error)

    def _refusal(self, code: int, error: Exception | None = None) -> StoreError:
        reasons = {
            sqlite3.SQLITE_BUSY: "is locked by another program; try again when it has finished",
            sqlite3.SQLITE_LOCKED: "is locked by another program; try again when it has finished",
            sqlite3.SQLITE_READONLY: "cannot be written; check the rights of the file and folder",
            sqlite3.SQLITE_CANTOPEN: "cannot be opened; check the path and its rights",
            sqlite3.SQLITE_FULL: "has no room left on its disk; free some, nothing was lost",
            sqlite3.SQLITE_IOERR: "cannot be read or written; check its disk, nothing was lost",
            sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup",
            sqlite3.SQLITE_NOTADB: "is not a store; choose another file",
        }
        return StoreError(f"the store {self.name} {reasons.get(code, f'failed: {error}')}")


def _close_to_others(path: str) -> None:
    """Make a file that only its owner can read, or close one that others could, with its log."""
    # Only a new file is opened here: closing one drops every lock that this process has on it, and
    # then other processes remove the log that it still writes to.
    with suppress(OSError):  # it is there, or SQLite says what is wrong with it
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    for name in (path, f"{path}-wal", f"{path}-shm"):
        with suppress(OSError):  # it is another user's, or not there
            if os.stat(name).st_mode & 0o077:
                os.chmod(name, 0o600)


class _PostgresTransaction(Transaction):
    for_update = " FOR UPDATE"
    for_update_skipping = " FOR UPDATE SKIP LOCKED"
    by_bytes = ' COLLATE "C"'

    def __init__(self, connection: Any, hear: Callable[[], None]) -> None:
        self._connection = connection
        self._hear = hear

    def hold(self, table: str, mode: str) -> None:
        """See `Transaction`."""
        self.rows(f"LOCK TABLE {table} IN {mode} MODE")

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        self._hear()
        cursor = self._connection.execute(sql.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        self._hear()
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), rows)
            return int(cursor.rowcount)


class Postgres(Database):
    """A PostgreSQL server; a person's row is locked while something is released for them."""

    dialect = "postgresql"

    def __init__(self, url: str) -> None:
        self._psycopg = require("psycopg", "postgres")
        try:
            facts = self._psycopg.conninfo.conninfo_to_dict(url)
        except self._psycopg.Error:
            # Its own message would quote the address.
            raise ArgumentError("url must be an address that PostgreSQL can read") from None
        # For messages: without the user and password, wherever in the address they are.
        port = f":{facts['port']}" if "port" in facts else ""
        place = f"{facts.get('host', '')}{port}/{facts.get('dbname', '')}"
        super().__init__(f"postgresql://{place}")
        self._facts: dict[str, Any] = {
            "connect_timeout": int(BUSY_SECONDS),
            "keepalives_idle": int(BUSY_SECONDS),
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": int(1000 * SILENT_SECONDS),
            **facts,
        }

    def _begin(self) -> None:
        super()._begin()
        self._watch = Watch(SILENT_SECONDS)

    def _connect(self) -> Any:
        connection = self._psycopg.connect(**self._facts, autocommit=True)
        with self._watch.over(connection.fileno()):
            # A commit that may be forgotten at power loss would forget what was spent.
            connection.execute(
                f"SET synchronous_commit = on; SET lock_timeout = '{int(BUSY_SECONDS)}s'; "
                f"SET statement_timeout = '{int(SILENT_SECONDS)}s'; "
                f"SET idle_in_transaction_session_timeout = '{int(4 * SILENT_SECONDS)}s'"
            )
        return connection

    def _is_idle(self, connection: Any) -> bool:
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return bool(connection.pgconn.transaction_status == idle)

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[Transaction]:
        """See `Database.transaction`; given up when the server says nothing for a while."""
        connection = None
        try:
            connection = self._connection()
            with self._watch.over(connection.fileno()) as hear, connection.transaction():
                if not write:
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield _PostgresTransaction(connection, hear)
                hear()
        except BaseException as error:
            if connection is not None and not isinstance(error, DphmmError):
                self._drop(connection)  # stopped somewhere in it: nobody knows where it stands
            if isinstance(error, self._psycopg.Error):
                raise self._explained(error) from error
            raise

    def _explained(self, error: Exception) -> StoreError:
        errors = self._psycopg.errors
        if isinstance(error, errors.LockNotAvailable):
            reason = "is locked by another program; try again when it has finished"
        elif isinstance(error, (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege)):
            reason = "cannot be written; check the rights of its user"
        elif isinstance(error, (errors.DiskFull, errors.OutOfMemory)):
            reason = "has no room left; free some, nothing was lost"
        elif isinstance(error, errors.QueryCanceled):
            reason = "takes too long; look at what else its server does"
        elif isinstance(error, self._psycopg.OperationalError):
            reason = "cannot be reached; start the server or check the address"
        else:
            reason = f"failed: {type(error).__name__}"
        return StoreError(f"the store {self.name} {reason}")


def connect(url: str | Path) -> Database:
    """The database of a URL: postgresql://..., sqlite:///path, or the path of a file."""
    if isinstance(url, Path):
        url = str(url)
    expect(url, str, "url")
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "sqlite":
        path = rest.removeprefix("/") if separator else url
        if not path or path.startswith((":memory:", "file:")):
            # SQLite takes these for databases that are gone with their connection.
            raise ArgumentError(
                "url must be the path of a file, got none: what is said would be forgotten and "
                "said again"
            )
        return Sqlite(str(as_path(path, "url")))
    if scheme in ("postgresql", "postgres"):
        return Postgres(url)
    raise ArgumentError(
        f"url must be a path, sqlite:///path or postgresql://..., got one with {scheme!r}"
    )
