"""Anchors: what a store's roots were, kept outside of it, so that an old copy can be told.

A file will do for one server; several share a database. Either goes forward only, and is durable
when a call returns.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TypeAlias

from dphmm.books.database import BUSY_SECONDS, Database, Transaction, connect
from dphmm.books.sealing import NO_ROOT, Root, Roots
from dphmm.errors import ArgumentError, StoreError

__all__ = ["Anchor", "Anchored", "DatabaseAnchor", "FileAnchor", "open_anchor"]

BLOCK = 4096
"""A file has two blocks, written by turns: one of them is whole whenever the power fails."""


@dataclass(frozen=True)
class Anchored:
    """What an anchor says of a store.

    Args:
        store: The store's own name, a random word.
        epoch: A word that changes when the store is recovered.
        roots: Its roots.
    """

    store: str
    epoch: str
    roots: Roots = field(default_factory=dict)

    def lifted(self, roots: Roots) -> Anchored:
        """With those of some roots that have more commits than the present ones."""
        later = {n: root for n, root in roots.items() if root.commits > self.count(n)}
        return Anchored(self.store, self.epoch, {**self.roots, **later})

    def count(self, number: int) -> int:
        """How many commits of a root it knows."""
        return self.roots[number].commits if number in self.roots else 0


Judge: TypeAlias = Callable[[int, Root], object]
"""Is told, of each root to be lifted, what the anchor has of it; it raises if that is another's."""


class Anchor(ABC):
    """Where a store's roots are kept outside of it."""

    @abstractmethod
    def read(self, store: str) -> Anchored | None:
        """What is known of a store; None before anything was written."""

    @abstractmethod
    def lift(self, store: str, epoch: str, roots: Roots, judge: Judge) -> Roots:
        """Go forward to some roots, where that is forward; refused in another epoch.

        Gives all roots that it knows then: of two who lift at once one sees the other's.
        """

    @abstractmethod
    def replace(self, anchored: Anchored) -> None:
        """Forget what was known of a store: when it is first anchored, or recovered."""

    @abstractmethod
    def make_room(self, store: str) -> None:
        """See that it can be written and is not in the store, before that is told to need it."""

    def close(self) -> None:  # noqa: B027  a file is open only while it is used
        """Close connections."""


class FileAnchor(Anchor):
    """A file for one store; processes that share it wait for each other."""

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)

    def read(self, store: str) -> Anchored | None:
        """See `Anchor`."""
        try:
            with open(self.name, "rb") as file:
                found = self._newest(file.read(2 * BLOCK))
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise self._fault("read", fault) from None
        return None if found is None else self._check(found[1], store)

    def lift(self, store: str, epoch: str, roots: Roots, judge: Judge) -> Roots:
        """See `Anchor`."""
        with self._locked() as file:
            found = self._newest(os.pread(file, 2 * BLOCK, 0))
            if found is None:
                raise StoreError(f"the anchor {self.name} is not there any more")
            turn, anchored = found[0], self._check(found[1], store)
            if anchored.epoch != epoch:
                raise recovered(self.name)
            for number in roots:
                judge(number, anchored.roots.get(number, NO_ROOT))
            later = anchored.lifted(roots)
            if later != anchored:
                self._write(file, turn + 1, later)
            return later.roots

    def replace(self, anchored: Anchored) -> None:
        """See `Anchor`."""
        with self._locked() as file:
            found = self._newest(os.pread(file, 2 * BLOCK, 0))
            if found is not None:
                self._check(found[1], anchored.store)
            self._write(file, 1 if found is None else found[0] + 1, anchored)

    def make_room(self, store: str) -> None:
        """See `Anchor`; no file is a store and an anchor."""
        with self._locked() as file:
            if not os.pread(file, 1, 0):
                self._put(file, 0, b"\0" * (2 * BLOCK))

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            file = os.open(self.name, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                self._lock(file)
                yield file
            finally:
                # A process that was forked meanwhile has the file open, too, and would keep it.
                fcntl.flock(file, fcntl.LOCK_UN)
                os.close(file)
        except OSError as fault:
            raise self._fault("written", fault) from None

    def _lock(self, file: int) -> None:
        """Wait for whoever has the file, as long as for a database; they may have been stopped."""
        until = monotonic() + BUSY_SECONDS
        pause = 0.0005
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if monotonic() > until:
                    raise StoreError(
                        f"the anchor {self.name} is locked by another program; nothing is said "
                        f"until that ends or goes on"
                    ) from None
            sleep(pause)
            pause = min(2 * pause, 0.002)

    def _write(self, file: int, turn: int, anchored: Anchored) -> None:
        roots = {number: list(root) for number, root in anchored.roots.items()}
        facts = {"turn": turn, **vars(anchored), "roots": roots}
        text = json.dumps(facts).encode()
        line = hashlib.sha256(text).hexdigest().encode() + b" " + text
        block = line.ljust(BLOCK - 1) + b"\n"
        self._put(file, BLOCK * (turn % 2), block)

    @staticmethod
    def _put(file: int, place: int, content: bytes) -> None:
        if os.pwrite(file, content, place) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # a part of it, without an error
        os.fsync(file)

    def _newest(self, content: bytes) -> tuple[int, Anchored] | None:
        found = []
        for begin in range(0, len(content), BLOCK):
            check, _, text = content[begin : begin + BLOCK].strip().partition(b" ")
            if hashlib.sha256(text).hexdigest().encode() == check:
                facts = json.loads(text)
                roots = {int(n): Root(*root) for n, root in facts["roots"].items()}
                found.append((facts["turn"], Anchored(facts["store"], facts["epoch"], roots)))
        if content.strip(b"\0") and not found:
            raise StoreError(f"the anchor {self.name} is damaged or no anchor; choose another file")
        return max(found, key=lambda one: one[0], default=None)

    def _check(self, anchored: Anchored, store: str) -> Anchored:
        if anchored.store != store:
            raise StoreError(f"the anchor {self.name} is another store's; give each its own file")
        return anchored

    def _fault(self, what: str, fault: OSError) -> StoreError:
        return StoreError(
            f"the anchor {self.name} cannot be {what} ({fault.strerror}); nothing is said until "
            f"it can"
        )


class DatabaseAnchor(Anchor):
    """A table in another database, for any number of stores and servers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_made = False

    def read(self, store: str) -> Anchored | None:
        """See `Anchor`."""
        self._make()
        with self._database.transaction(write=False) as transaction:
            epoch = self._epoch(transaction, store)
            rows = transaction.rows(
                "SELECT number, count, value FROM anchors WHERE store = ? AND epoch = ? "
                "AND number >= 0",
                (store, epoch),
            )
        roots = {number: Root(count, value) for number, count, value in rows}
        return None if epoch is None else Anchored(store, epoch, roots)

    def make_room(self, store: str) -> None:
        """See `Anchor`; what is in the store would go back together with it."""
        found = None
        with suppress(StoreError), self._database.transaction(write=False) as transaction:
            found = transaction.row(
                "SELECT 1 FROM facts WHERE name = 'store' AND value = ?", (store,)
            )
        if found is not None:
            raise ArgumentError("anchor must be another database than the store, got the same one")
        self._make()

    def _epoch(self, transaction: Transaction, store: str) -> str | None:
        """The epoch has a row of its own, with a number that no root has."""
        row = transaction.row("SELECT epoch FROM anchors WHERE store = ? AND number = -1", (store,))
        return None if row is None else row[0]

    def lift(self, store: str, epoch: str, roots: Roots, judge: Judge) -> Roots:
        """See `Anchor`; servers that lift different roots do not wait for each other."""
        self._make()
        with self._database.transaction() as transaction:
            if self._epoch(transaction, store) != epoch:
                raise recovered(self._database.name)
            for number, root in sorted(roots.items()):
                place = (store, epoch, number)
                judge(number, self._find(transaction, place))
                self._put(transaction, (*place, *root))
        known = self.read(store)
        if known is None or known.epoch != epoch:
            raise recovered(self._database.name)
        return known.roots

    def _find(self, transaction: Transaction, place: tuple[str, str, int]) -> Root:
        """What there is of a root, held until the end."""
        row = transaction.row(
            "SELECT count, value FROM anchors WHERE store = ? AND epoch = ? AND number = ?"
            + transaction.for_update,
            place,
        )
        return NO_ROOT if row is None else Root(*row)

    def replace(self, anchored: Anchored) -> None:
        """See `Anchor`."""
        self._make()
        with self._database.transaction() as transaction:
            transaction.rows("DELETE FROM anchors WHERE store = ?", (anchored.store,))
            rows = [(-1, 0, ""), *((n, *root) for n, root in sorted(anchored.roots.items()))]
            for row in rows:
                self._put(transaction, (anchored.store, anchored.epoch, *row))

    def _put(self, transaction: Transaction, row: tuple[object, ...]) -> None:
        transaction.rows(
            "INSERT INTO anchors (store, epoch, number, count, value) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (store, epoch, number) DO UPDATE SET count = excluded.count, "
            "value = excluded.value WHERE anchors.count < excluded.count",
            row,
        )

    def _make(self) -> None:
        if self._is_made:
            return
        whole = "INTEGER" if self._database.dialect == "sqlite" else "BIGINT"
        with self._database.transaction() as transaction:
            transaction.rows(
                f"CREATE TABLE IF NOT EXISTS anchors (store TEXT, epoch TEXT, "
                f"number {whole}, count {whole} NOT NULL, value TEXT NOT NULL, "
                f"PRIMARY KEY (store, epoch, number))"
            )
        self._is_made = True

    def close(self) -> None:
        """See `Anchor`."""
        self._database.close()


def recovered(anchor: str) -> StoreError:
    """What is said to a server of an epoch that is over."""
    return StoreError(
        f"the anchor {anchor} is of another epoch: the store was recovered meanwhile, or is a copy "
        f"from before; start the servers again on the one that was recovered"
    )


def open_anchor(place: str | Path) -> Anchor:
    """The anchor at a path or, for several servers, in the database of a URL."""
    if isinstance(place, str) and "://" in place:
        return DatabaseAnchor(connect(place))
    return FileAnchor(place)
