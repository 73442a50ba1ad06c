"""The book of a database, SQLite or PostgreSQL: every answer once, whoever else writes to it.

Answers and standings are written in one transaction, and only if nobody has answered the same
people since they were read: a row of people counts its commits. No true state comes here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from numbers import Integral
from pathlib import Path
from threading import Lock

from cachetools import LRUCache

from dphmm.books.database import Database, Sqlite, Transaction, connect
from dphmm.books.opening import prepare
from dphmm.books.rows import (
    AnsweredTimes,
    Person,
    find_answers,
    find_entries,
    find_key_in_use,
    find_latest,
    find_person,
    find_prices,
    find_queries,
    find_standing,
    latest_answers,
    list_answers,
    write,
)
from dphmm.books.tombstones import Tombstone, bury, tombstone_name, tombstone_of
from dphmm.cost.budget import Span
from dphmm.cost.ledger import Ledger
from dphmm.cost.limit import FOREVER, Limit, begin_of, slot_from, step_of
from dphmm.errors import (
    ArgumentError,
    MovedError,
    NotFoundError,
    StoreError,
    check_name,
    expect,
    expect_each,
)
from dphmm.geometry.exact import Exact
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.book import KeyInUse, check_commit
from dphmm.release.moment import Line, check_client
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = ["Store"]

REMEMBERED_STATES = 2**22
"""Standings are kept in memory up to this many states in all, about 32 MB."""


class Store:
    """Answers, standings and budgets in a database.

    Args:
        database: Where they are; see `Store.open`.
        secret: What names the tombstones of erased people.

    >>> import tempfile
    >>> store = Store.open(tempfile.mkdtemp() + "/answers.db")
    >>> store.begin("ann", budget=2)
    >>> store.ledger("ann")
    Ledger(0 entries, 0 spent, limit 2)
    >>> store.close()
    """

    def __init__(self, database: Database, secret: bytes) -> None:
        self.database = database
        self._secret = secret
        self._guard = Lock()
        self._key: KeyInUse | None = None
        """As it was when it was last read; None before there is one."""
        self._standings: LRUCache[tuple[int, str], tuple[int, Standing]] = LRUCache(
            REMEMBERED_STATES, getsizeof=lambda kept: kept[1].belief.n_states
        )
        """Of a person's number and a query: the person's version and where the line stood then."""

    @classmethod
    def open(cls, url: str | Path, *, secret: bytes | None = None, create: bool = True) -> Store:
        """The store at a path, sqlite:///path or postgresql://..., made or migrated if needed.

        Args:
            url: Where it is.
            secret: What names the tombstones of erased people; by default the store's own.
            create: Whether it may be made.
        """
        expect(b"" if secret is None else secret, bytes, "secret")
        expect(create, bool, "create")
        database = connect(url)
        if isinstance(database, Sqlite) and not create and not Path(database.name).exists():
            raise StoreError(f"the store {database.name} does not exist; a release makes it")
        return cls(database, prepare(database, secret, create))

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __repr__(self) -> str:
        return f"Store({self.database.dialect})"

    def places(self, lines: Sequence[Line]) -> list[Place]:
        """See `Book`."""
        if not expect_each(lines, Line, "lines"):
            return []
        with self.database.transaction(write=False) as transaction:
            self._key = self._key or find_key_in_use(transaction)
            return [self._place(transaction, line, self._key) for line in lines]

    def _place(self, transaction: Transaction, line: Line, key: KeyInUse | None) -> Place:
        person = find_person(transaction, line.client, line.person)
        standing = None if person is None else self._standing(transaction, person, line.query)
        latest = None if standing is None else standing.time
        found, clock = person, None
        if standing is None:
            stone = self._stone(transaction, line.client, line.person)
            latest, clock = stone.times.get(line.query), stone.clocks.get(line.query)
            if found is None:
                found = Person(0, stone.budget, stone.spent, stone.spent, 0, stone.version)
            else:
                # A question that only came beside another one has answers and no standing.
                latest = latest_answers(transaction, found.number).get(line.query, latest)
        assert found is not None
        return Place(
            standing=standing,
            latest=latest,
            answered=()
            if person is None
            else AnsweredTimes(self.database, person.number, line.query),
            spent=found.spent,
            recent=cache(partial(self._recent, line, found)),
            limit=found.limit,
            opens=Place.opens if key is None else key.opens,
            key=key,
            known=person is not None,
            version=found.version,
            clock=clock,
        )

    def _stone(self, transaction: Transaction, client: str, person: str) -> Tombstone:
        return tombstone_of(transaction, tombstone_name(self._secret, client, person))

    def _standing(self, transaction: Transaction, person: Person, query: str) -> Standing | None:
        with self._guard:
            version, kept = self._standings.get((person.number, query), (-1, None))
        if kept is not None and version == person.version:
            return kept
        return find_standing(transaction, person.number, query)

    def _recent(self, line: Line, person: Person, clock: str, since: int) -> list[Span]:
        """What was spent on a person from an instant of the line's clock on, on every line."""
        found: list[Span] = []
        with self.database.transaction(write=False) as transaction:
            if person.carried:
                found += self._stone(transaction, line.client, line.person).spans(clock)
            for query in find_queries(transaction, person):
                own = clock if query == line.query else self._clock(transaction, person, query)
                earliest = slot_from(since, own, clock)
                for time, price in find_prices(transaction, person.number, query, earliest):
                    found.append((*begin_of(time, own, clock), price))
        return found

    def _clock(self, transaction: Transaction, person: Person, query: str) -> str:
        standing = self._standing(transaction, person, query)
        return "" if standing is None else standing.clock

    def unsaid(self, line: Line, after: int) -> Sequence[Record]:
        """See `Book`: a database's standings are never behind."""
        return ()

    def find(self, line: Line, times: Sequence[int]) -> dict[int, Record]:
        """See `Book`."""
        expect(line, Line, "line")
        if not expect_each(times, Integral, "times"):
            return {}
        with self.database.transaction(write=False) as transaction:
            person = self._known(transaction, line.client, line.person)
            return find_answers(transaction, person.number, line, times)

    def commit(
        self, answers: Sequence[Answers], standings: Sequence[Standing], places: Sequence[Place]
    ) -> None:
        """See `Book`."""
        check_commit(answers, standings, places)
        said: dict[tuple[str, str], list[Record]] = {}
        for table in answers:
            for record in table.records():
                said.setdefault(record.line[:2], []).append(record)
        # Everybody locks people in the same order, so that no two servers wait for each other.
        pairs = sorted(zip(standings, places, strict=True), key=lambda pair: pair[0].line)
        with self.database.transaction() as transaction:
            self._key = find_key_in_use(transaction)
            moved, work = [], []
            for standing, place in pairs:
                person = self._lock(transaction, standing.line)
                # Nor has the key been rotated between reading and writing.
                if person.version != place.version or place.key not in (None, self._key):
                    moved.append(standing.line)
                work.append((person, standing, said.pop(standing.line[:2], [])))
            if moved:
                raise MovedError(moved)
            write(transaction, work)
        with self._guard:
            for person, standing, _ in work:
                if standing.belief.n_states <= REMEMBERED_STATES:
                    name = person.number, standing.line.query
                    self._standings[name] = person.version + 1, standing

    def _lock(self, transaction: Transaction, line: Line) -> Person:
        """The person, made if new, locked until the end of the transaction."""
        person = find_person(transaction, line.client, line.person, lock=True)
        if person is None:
            stone = self._stone(transaction, line.client, line.person)
            budget = None if stone.budget is None else str(stone.budget)
            carried = str(stone.spent)
            transaction.rows(
                "INSERT INTO people (client, name, budget, carried, spent, entries, version) "
                "VALUES (?, ?, ?, ?, ?, 0, ?) ON CONFLICT (client, name) DO NOTHING",
                (line.client, line.person, budget, carried, carried, stone.version),
            )
            person = find_person(transaction, line.client, line.person, lock=True)
        assert person is not None
        return person

    def adopt(self, standing: Standing) -> None:
        """Let a line go on under another law, from where the standing says; it is recorded.

        Args:
            standing: Where the line stands, under the other law.
        """
        expect(standing, Standing, "standing")
        with self.database.transaction() as transaction:
            person = self._lock(transaction, standing.line)
            before = self._standing(transaction, person, standing.line.query)
            if before is not None and before.time != standing.time:
                raise MovedError([standing.line])
            line = (person.number, standing.line.query)
            # Only the latest one is gone on from.
            transaction.rows(
                "UPDATE adoptions SET content = NULL WHERE person = ? AND query = ?", line
            )
            old = "" if before is None else before.law.hex()
            transaction.rows(
                "INSERT INTO adoptions (person, query, time, old, new, content) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*line, standing.time, old, standing.law.hex(), standing.to_bytes()),
            )
            write(transaction, [(person, standing, [])])

    def adopted(self, line: Line) -> Standing | None:
        """See `Book`."""
        expect(line, Line, "line")
        with self.database.transaction(write=False) as transaction:
            person = self._known(transaction, line.client, line.person)
            return find_standing(transaction, person.number, line.query, adopted=True)

    def key(self) -> KeyInUse | None:
        """See `Book`; read once, and compared with the store's at every commit."""
        if self._key is None:
            with self.database.transaction(write=False) as transaction:
                self._key = find_key_in_use(transaction)
        return self._key

    def use_key(self, key: KeyInUse) -> None:
        """See `Book`; of two servers that begin at once the first one's key stays."""
        expect(key, KeyInUse, "key")
        clause = "DO UPDATE SET value = excluded.value" if key.rotated else "DO NOTHING"
        with self.database.transaction() as transaction:
            transaction.rows(
                f"INSERT INTO facts (name, value) VALUES ('key', ?) ON CONFLICT (name) {clause}",
                (json.dumps(vars(key)),),
            )
        self._key = None

    def latest(self) -> dict[str, int]:
        """The last slot of each clock that was answered for anybody."""
        with self.database.transaction(write=False) as transaction:
            return find_latest(transaction)

    def begin(self, person: str, *, client: str = "", budget: Exact | Limit | None = None) -> None:
        """Make a person known; doing it again changes nothing.

        Args:
            person: Their name.
            client: Whose person it is.
            budget: A limit on everything said about them, which can be set once; it counts
                beside the scenario's own limit.
        """
        limit = None if budget is None else Limit.read(budget, "budget")
        line = Line(check_client(client), check_name(person, "person"), "")
        with self.database.transaction() as transaction:
            found = self._lock(transaction, line)
            if limit is not None and found.limit != limit:
                if found.limit is not None:
                    raise ArgumentError("budget must stay what it was when it was first set")
                transaction.rows(
                    "UPDATE people SET budget = ?, version = version + 1 WHERE id = ?",
                    (str(limit), found.number),
                )

    def answers(
        self, line: Line, *, after: int | None = None, most: int | None = None
    ) -> list[Record]:
        """The answers of a line after a slot, in order.

        Args:
            line: Whose, and to which question.
            after: Only those after this slot.
            most: Not more than so many.
        """
        expect(line, Line, "line")
        with self.database.transaction(write=False) as transaction:
            person = self._known(transaction, line.client, line.person)
            return list_answers(transaction, person.number, line, after, most)

    def ledger(self, person: str, *, client: str = "") -> Ledger:
        """All that was said about a person, to every question, what was erased included.

        Args:
            person: Their name.
            client: Whose person it is.
        """
        with self.database.transaction(write=False) as transaction:
            found = self._known(transaction, client, person)
            entries = find_entries(transaction, found.number)
            queries = find_queries(transaction, found)
            clocks = {query: self._clock(transaction, found, query) for query in queries}
        ledger = Ledger(found.limit, entries, spent=found.carried)
        if ledger.width and clocks:
            # At the finest clock's slots windows are shortest, if they are counted in steps.
            query = min(clocks, key=lambda query: step_of(clocks[query])[1])
            clock = clocks[query]
            (place,) = self.places([Line(client, person, query)])
            with suppress(ArgumentError):  # where the windows are no whole steps of it
                begins = [begin_of(e.time, clocks.get(e.query, clock), clock)[1] for e in entries]
                latest = max(begins, default=0) // step_of(clock)[1]
                ledger._count(place.budget(place.both(None, clock), clock, -FOREVER), latest)
        return ledger

    def people(self, *, client: str = "") -> list[str]:
        """The names of a client's people.

        Args:
            client: Which client's.
        """
        check_client(client)
        with self.database.transaction(write=False) as transaction:
            found = transaction.rows(
                "SELECT name FROM people WHERE client = ? ORDER BY name", (client,)
            )
        return [row[0] for row in found]

    def lines(self) -> list[Line]:
        """Every line that stands somewhere."""
        with self.database.transaction(write=False) as transaction:
            rows = transaction.rows(
                "SELECT client, name, query FROM standings JOIN people ON people.id = person "
                "ORDER BY client, name, query"
            )
        return [Line(*row) for row in rows]

    def erase(self, person: str, *, client: str = "") -> Tombstone:
        """Delete a person's answers, beliefs and name; a tombstone keeps slots, price and budget.

        Whoever comes back under the same name goes on from the tombstone: no moment is
        answered twice and no budget is filled again.

        Args:
            person: Their name.
            client: Whose person it is.
        """
        with self.database.transaction() as transaction:
            found = find_person(transaction, client, person, lock=True)
            if found is None:
                raise NotFoundError("person must be one of the store, got another")
            hashed = tombstone_name(self._secret, client, person)
            queries = find_queries(transaction, found)
            clocks = {query: self._clock(transaction, found, query) for query in queries}
            stone = bury(transaction, hashed, found, clocks)
        self.database.forget_erased()
        with self._guard:
            for name in [name for name in self._standings if name[0] == found.number]:
                self._standings.pop(name, None)
        return stone

    def _known(self, transaction: Transaction, client: str, person: str) -> Person:
        found = find_person(transaction, client, person)
        if found is None:
            raise NotFoundError("person must be one of the store, got another")
        return found
