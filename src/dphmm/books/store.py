"""Every answer once: release, ledger entry and belief are written together, then it leaves.

A true state passes through `Store.release` into the stream and is written nowhere. A
second request for a moment gets the stored answer, whatever state it brings: refusing a
different one would tell that it is different.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import numpy as np

from dphmm.books.database import Database, Sqlite, Transaction, connect
from dphmm.books.opening import prepare
from dphmm.books.rows import (
    Person,
    stored_release,
    stored_releases,
    write_entry,
    write_release,
)
from dphmm.books.rules import Account, Answer, Request, Rules, identity
from dphmm.books.tombstones import Tombstone, tombstone_name, tombstones_of
from dphmm.cost.ledger import Entry, Ledger
from dphmm.errors import ArgumentError, DataError, DphmmError, NotFoundError, StoreError
from dphmm.geometry.exact import Exact, as_epsilon
from dphmm.release.snapshot import restore, snapshot
from dphmm.release.stream import Release, Said, Stream

__all__ = ["Store"]

LATEST_TIME = 2**53
LONGEST_GAP = 100_000
"""How many steps a request may skip: each costs a step of the belief."""

REMEMBERED_STATES = 2**22
"""Streams are kept in memory up to this many states in all, about 32 MB."""


_Moved: TypeAlias = tuple[int, Stream]
"""A person's number and their stream after a release."""


class Store:
    """People's streams, releases and ledgers in a database.

    >>> import tempfile
    >>> from dphmm import MarkovModel, Plan, PolicyGraph, Query, Stream
    >>> model = MarkovModel([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    >>> query, policy = Query([0, 1, 2]), PolicyGraph(3, [(0, 1), (1, 2)])
    >>> def begin(person):
    ...     return Stream(
    ...         model, policy, query, epsilon=1, start=0, person=person, scenario="walk"
    ...     )
    >>> rules = Rules("walk", query, begin)
    >>> store = Store.open(tempfile.mkdtemp() + "/streams.db")
    >>> store.begin(rules, "anna", budget=2)
    0
    >>> first = store.release(rules, "anna", 1, 0)
    >>> again = store.release(rules, "anna", 1, 1)
    >>> again.repeated, again.release.answer == first.release.answer
    (True, array([ True]))
    >>> store.ledger("anna")
    Ledger(1 entries, 1 spent, limit 2)
    >>> store.close()
    """

    def __init__(self, database: Database, secret: bytes) -> None:
        self.database = database
        self._secret = secret
        self._streams: OrderedDict[tuple[int, str, int], Stream] = OrderedDict()
        self._kept_states = 0
        self._guard = Lock()

    @classmethod
    def open(cls, url: str, *, secret: bytes | None = None, create: bool = True) -> Store:
        """The store at a path, sqlite:///path or postgresql://..., made or migrated if needed.

        `secret` names erased people's tombstones; without one the store keeps its own.
        """
        database = connect(url)
        if isinstance(database, Sqlite) and not create and not Path(database.name).exists():
            raise StoreError(f"the store {database.name} does not exist; a release makes it")
        return cls(database, prepare(database, secret, create))

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def begin(
        self, rules: Rules, person: str, *, client: str = "", budget: Exact | None = None
    ) -> int:
        """Open a stream for a person and return its time; opening it again changes nothing.

        `budget` limits a person's sum over all scenarios and can be set once; it is the
        lower of this and the scenario's own limit that counts.
        """
        limit = None if budget is None else as_epsilon(budget)
        name = identity(client, person)
        with self.database.transaction() as transaction:
            found = self._person(transaction, client, person, name, create=True)
            if limit is not None and found.limit != limit:
                if found.limit is not None:
                    raise ArgumentError("budget must stay what it was when it was first set")
                transaction.rows(
                    "UPDATE people SET budget = ? WHERE id = ?", (str(limit), found.number)
                )
            time, stream = self._stream(transaction, rules, found, create=True)
            if time is None:
                self._write_stream(transaction, found.number, stream)
            return stream.time

    def release(
        self,
        rules: Rules,
        person: str,
        time: int,
        true_state: int,
        epsilon: Exact | None = None,
        *,
        client: str = "",
        create: bool = True,
    ) -> Answer:
        """The answer for a person at a time: the stored one, or a new one that is now stored.

        Steps between the stream's time and this one are skipped; a time before it that was
        not answered is refused. Everything is on the disk before this returns.
        """
        request = Request(rules, person, time, true_state, epsilon, client, create)
        with self.database.transaction() as transaction:
            answer, moved = self._release(transaction, request)
        self._remember(moved)
        return answer

    def release_all(self, requests: Sequence[Request]) -> list[Answer | DphmmError]:
        """The answers to many requests that share one wait for the disk; a refusal is in its place.

        One person's requests are answered in the order given. Nothing is returned before all
        is durable; if the store fails, nothing was released.
        """
        results: dict[int, Answer | DphmmError] = {}
        moved: list[_Moved | None] = []
        # Everybody locks people in the same order, so that no two servers wait for each other.
        order = sorted(range(len(requests)), key=lambda i: (requests[i].client, requests[i].person))
        with self.database.transaction() as transaction:
            for place in order:
                transaction.rows("SAVEPOINT request")
                try:
                    results[place], stream = self._release(transaction, requests[place])
                    moved.append(stream)
                except DphmmError as fault:
                    if isinstance(fault, StoreError) and not isinstance(fault, NotFoundError):
                        raise
                    transaction.rows("ROLLBACK TO SAVEPOINT request")
                    results[place] = fault
                transaction.rows("RELEASE SAVEPOINT request")
        for stream in moved:
            self._remember(stream)
        return [results[place] for place in range(len(requests))]

    def _release(self, transaction: Transaction, request: Request) -> tuple[Answer, _Moved | None]:
        """One answer within a transaction, and the stream as it will be once that is committed."""
        rules, time = request.rules, request.time
        _check_time(time)
        name = identity(request.client, request.person)
        found = self._person(transaction, request.client, request.person, name, request.create)
        stored = stored_release(transaction, rules, found.number, time)
        if stored is not None:
            return Answer(stored, repeated=True), None
        _, stream = self._stream(transaction, rules, found, request.create)
        gap = time - stream.time - 1
        if not 0 <= gap <= LONGEST_GAP:
            raise ArgumentError(
                f"time must be {stream.time + 1} to {stream.time + 1 + LONGEST_GAP} or one "
                f"already answered, got {time}"
            )
        limits = [limit for limit in (found.limit, stream.ledger.limit) if limit is not None]
        own_ledger = stream.ledger
        stream.ledger = Account(min(limits, default=None), found.spent)
        with rules.lock:
            stream.skip(gap)
            release = stream.release(request.true_state, request.epsilon)
        (entry,), stream.ledger, stream.said = stream.ledger.entries, own_ledger, []
        self._write_stream(transaction, found.number, stream)
        write_release(transaction, found.number, rules.query_name, release, rules.scenario)
        write_entry(transaction, found, entry)
        return Answer(release, repeated=False), (found.number, stream)

    def releases(
        self,
        rules: Rules,
        person: str,
        *,
        client: str = "",
        after: int = 0,
        most: int | None = None,
    ) -> list[Release]:
        """The answers for a person in a scenario after a time, in order, not more than `most`."""
        with self.database.transaction(write=False) as transaction:
            number, _ = self._time(transaction, rules, client, person)
            return stored_releases(transaction, rules, number, after, most)

    def stream(self, rules: Rules, person: str, *, client: str = "") -> Stream:
        """A copy of a person's stream with all it said, to smooth or to explain."""
        with self.database.transaction(write=False) as transaction:
            number, _ = self._time(transaction, rules, client, person)
            data = transaction.row(
                "SELECT snapshot FROM streams WHERE person = ? AND scenario = ?",
                (number, rules.scenario),
            )
            said = stored_releases(transaction, rules, number)
        assert data is not None
        stream = _restored(rules, identity(client, person), bytes(data[0]))
        stream.said = [Said(r.time, rules.query, r.epsilon, r.lattice) for r in said]
        return stream

    def time(self, rules: Rules, person: str, *, client: str = "") -> int:
        """The time of a person's latest step."""
        with self.database.transaction(write=False) as transaction:
            return self._time(transaction, rules, client, person)[1]

    def ledger(self, person: str, *, client: str = "") -> Ledger:
        """All that was said about a person, in every scenario, what was erased included."""
        with self.database.transaction(write=False) as transaction:
            row = transaction.row(
                "SELECT id, budget, carried FROM people WHERE client = ? AND name = ?",
                (client, person),
            )
            if row is None:
                raise NotFoundError("person must be one of the store, got another")
            entries = transaction.rows(
                "SELECT time, query, epsilon, constrained, scenario FROM ledger "
                "WHERE person = ? ORDER BY number",
                (row[0],),
            )
        account = Account(row[1], Fraction(row[2]))
        for time, query, epsilon, constrained, scenario in entries:
            cost = float("inf") if constrained == "inf" else Fraction(constrained)
            account._append(Entry(time, query, Fraction(epsilon), cost, scenario))
        return account

    def people(self, *, client: str = "") -> list[str]:
        """The names of a client's people."""
        with self.database.transaction(write=False) as transaction:
            found = transaction.rows(
                "SELECT name FROM people WHERE client = ? ORDER BY name", (client,)
            )
        return [row[0] for row in found]

    def erase(self, person: str, *, client: str = "") -> Tombstone:
        """Delete a person's releases, beliefs and name; a tombstone keeps times and epsilon.

        Whoever comes back under the same name goes on from the tombstone: no moment is
        answered twice and no budget is filled again.
        """
        name = identity(client, person)
        with self.database.transaction() as transaction:
            found = self._person(transaction, client, person, name, create=False)
            hashed = tombstone_name(self._secret, name)
            before = tombstones_of(transaction, hashed)
            streams = transaction.rows(
                "SELECT scenario, time FROM streams WHERE person = ?", (found.number,)
            )
            costs = transaction.rows(
                "SELECT scenario, epsilon FROM ledger WHERE person = ?", (found.number,)
            )
            buried = before.merged(dict(map(tuple, streams)), costs)
            for scenario, (time, spent) in buried.scenarios.items():
                transaction.rows(
                    "INSERT INTO tombstones (person, scenario, time, spent) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (person, scenario) DO UPDATE SET "
                    "time = excluded.time, spent = excluded.spent",
                    (hashed, scenario, time, str(spent)),
                )
            for table in ("ledger", "releases", "streams"):
                transaction.rows(f"DELETE FROM {table} WHERE person = ?", (found.number,))
            transaction.rows("DELETE FROM people WHERE id = ?", (found.number,))
        self.database.forget_erased()
        with self._guard:
            for moment in [moment for moment in self._streams if moment[0] == found.number]:
                self._kept_states -= self._streams.pop(moment).query.n_states
        return buried

    def add_scenario(self, digest: str, content: str, *, client: str = "") -> bool:
        """Keep a scenario's text under its digest; True if it was not there."""
        with self.database.transaction() as transaction:
            added = transaction.rows(
                "INSERT INTO scenarios (client, digest, content) VALUES (?, ?, ?) "
                "ON CONFLICT (client, digest) DO NOTHING RETURNING digest",
                (client, digest, content),
            )
        return bool(added)

    def scenario(self, digest: str, *, client: str = "") -> str:
        """The text of a scenario."""
        with self.database.transaction(write=False) as transaction:
            row = transaction.row(
                "SELECT content FROM scenarios WHERE client = ? AND digest = ?", (client, digest)
            )
        if row is None:
            raise NotFoundError("scenario must be one of the store, got another")
        return str(row[0])

    def scenarios(self, *, client: str = "") -> list[str]:
        """The digests of a client's scenarios."""
        with self.database.transaction(write=False) as transaction:
            found = transaction.rows(
                "SELECT digest FROM scenarios WHERE client = ? ORDER BY digest", (client,)
            )
        return [row[0] for row in found]

    def _person(
        self, transaction: Transaction, client: str, person: str, name: str, create: bool
    ) -> Person:
        """The person, locked until the end of the transaction."""
        select = (
            "SELECT id, budget, spent, entries FROM people WHERE client = ? AND name = ?"
            + transaction.for_update
        )
        row = transaction.row(select, (client, person))
        if row is None:
            if not create:
                raise NotFoundError("person must be one of the store, got another")
            carried = str(tombstones_of(transaction, tombstone_name(self._secret, name)).spent)
            transaction.rows(
                "INSERT INTO people (client, name, budget, carried, spent, entries) "
                "VALUES (?, ?, NULL, ?, ?, 0) ON CONFLICT (client, name) DO NOTHING",
                (client, person, carried, carried),
            )
            row = transaction.row(select, (client, person))
        assert row is not None
        number, budget, spent, entries = row
        limit = None if budget is None else Fraction(budget)
        return Person(number, name, limit, Fraction(spent), entries)

    def _time(
        self, transaction: Transaction, rules: Rules, client: str, person: str
    ) -> tuple[int, int]:
        row = transaction.row(
            "SELECT people.id, streams.time FROM people JOIN streams ON streams.person = people.id "
            "WHERE client = ? AND name = ? AND scenario = ?",
            (client, person, rules.scenario),
        )
        if row is None:
            raise NotFoundError("person must have a stream in this scenario, got none")
        return row[0], row[1]

    def _stream(
        self, transaction: Transaction, rules: Rules, person: Person, create: bool
    ) -> tuple[int | None, Stream]:
        """The stream and its stored time; a new one, where a tombstone left off, has none."""
        row = transaction.row(
            "SELECT time FROM streams WHERE person = ? AND scenario = ?",
            (person.number, rules.scenario),
        )
        if row is None:
            if not create:
                raise NotFoundError("person must have a stream in this scenario, got none")
            stream = rules.fresh(person.name)
            hashed = tombstone_name(self._secret, person.name)
            times = tombstones_of(transaction, hashed).scenarios
            stream.skip(times.get(rules.scenario, (0, Fraction(0)))[0])
            return None, stream
        kept = self._recall(person.number, rules.scenario, row[0])
        if kept is not None:
            return row[0], kept
        data = transaction.row(
            "SELECT snapshot FROM streams WHERE person = ? AND scenario = ?",
            (person.number, rules.scenario),
        )
        assert data is not None
        return row[0], _restored(rules, person.name, bytes(data[0]))

    def _write_stream(self, transaction: Transaction, person: int, stream: Stream) -> None:
        transaction.rows(
            "INSERT INTO streams (person, scenario, time, snapshot) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (person, scenario) DO UPDATE SET "
            "time = excluded.time, snapshot = excluded.snapshot",
            (person, stream.scenario, stream.time, snapshot(stream, history=False)),
        )

    def _recall(self, person: int, scenario: str, time: int) -> Stream | None:
        """Take the stream out of memory: it comes back only if its next step is committed.

        A number is given to one person only and each of their times is written once, so a
        stream of this person, scenario and time is the one in the database, whichever server
        wrote it.
        """
        with self._guard:
            stream = self._streams.pop((person, scenario, time), None)
            if stream is not None:
                self._kept_states -= stream.query.n_states
            return stream

    def _remember(self, moved: _Moved | None) -> None:
        if moved is None:
            return
        person, stream = moved
        with self._guard:
            self._streams[person, stream.scenario, stream.time] = stream
            self._kept_states += stream.query.n_states
            while self._kept_states > REMEMBERED_STATES:
                _, oldest = self._streams.popitem(last=False)
                self._kept_states -= oldest.query.n_states


def _check_time(time: int) -> None:
    whole = isinstance(time, (int, np.integer)) and not isinstance(time, bool)
    if not whole or not 1 <= time <= LATEST_TIME:
        raise ArgumentError(f"time must be a whole number from 1, got {time!r}")


def _restored(rules: Rules, name: str, data: bytes) -> Stream:
    try:
        return restore(rules.fresh(name), data)
    except (ArgumentError, DataError) as error:
        raise StoreError(f"a stream of the store cannot be resumed: {error}") from error
