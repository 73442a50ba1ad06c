"""What a store can be asked: where people are, what was said, what it cost.

Nothing is written here. No true state is in a store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from numbers import Integral
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakSet

from cachetools import LRUCache

from dphmm.books.anchors import Anchor, Anchored
from dphmm.books.database import Database, Transaction
from dphmm.books.rows import (
    AnsweredTimes,
    Person,
    RecentSpans,
    find_answers,
    find_entries,
    find_facts,
    find_latest,
    find_person,
    find_prices,
    find_queries,
    find_standing,
    key_in_use,
    latest_answers,
    list_answers,
)
from dphmm.books.sealing import Roots, find_roots
from dphmm.books.tombstones import Tombstone, tombstone_name, tombstone_of
from dphmm.books.witness import Witness
from dphmm.cost.budget import Span
from dphmm.cost.ledger import Ledger
from dphmm.cost.limit import FOREVER, begin_of, slot_from, step_of
from dphmm.errors import ArgumentError, NotFoundError, check_text, expect, expect_each
from dphmm.geometry.exact import whole
from dphmm.release.admission import Place
from dphmm.release.book import KeyInUse
from dphmm.release.moment import Line, check_client
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = ["StoreReading"]

Found = TypeVar("Found")

REMEMBERED_STATES = 2**22
"""Standings are kept in memory up to this many states in all, about 32 MB."""


class StoreReading:
    """What a store can be asked without changing it; see `Store`."""

    def __init__(self, database: Database, secret: bytes, anchor: Anchor | None = None) -> None:
        self.database = database
        self._secret = secret
        self._key: KeyInUse | None = None
        """As it was when it was last read; None before there is one."""
        self._begin()
        _STORES.add(self)
        self._meet(anchor)

    def _meet(self, anchor: Anchor | None) -> None:
        """Begin to watch the store, as it is now."""
        with self.database.transaction(write=False) as transaction:
            facts = find_facts(transaction)
        self.witness = Witness(self.database.name, facts, anchor)

    def _begin(self) -> None:
        """Remember nobody, with no lock that a thread of another process holds."""
        self._guard = Lock()
        self._kept: LRUCache[tuple[str, str], tuple[Person, dict[str, Standing]]] = LRUCache(
            REMEMBERED_STATES, getsizeof=_count_states
        )
        """Of each client and name: the person after our last commit, and where lines stood then."""

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
        if self.witness.anchor is not None:
            self.witness.anchor.close()

    def __repr__(self) -> str:
        return f"Store({self.database.dialect})"

    def check(self) -> None:
        """Refuse a store that may not answer: behind its anchor, or recovered meanwhile.

        What somebody who was killed has committed is anchored, as before the next answer.
        """
        expected = self.witness.look()
        with self.database.transaction(write=False) as transaction:
            _, roots = self.witness.check(transaction, expected)
        self._settle(roots)

    def is_current(self) -> bool:
        """Whether the anchor knows the store's commits, all of them and no other."""
        with self.database.transaction(write=False) as transaction:
            roots = find_roots(transaction)
        known = self._anchored()
        return known is not None and (known.epoch, known.roots) == (self.witness.epoch, roots)

    def _anchored(self) -> Anchored | None:
        anchor = self.witness.anchor
        return None if anchor is None else anchor.read(self.witness.store)

    def places(self, lines: Sequence[Line]) -> list[Place]:
        """See `Book`."""
        if not expect_each(lines, Line, "lines"):
            return []
        expected = self.witness.look()
        is_checked = self._key is not None and self.witness.anchor is None
        with self.database.transaction(write=False) as transaction:
            if not is_checked:
                self._key = key_in_use(self.witness.check(transaction, expected)[0])
            return [self._place(transaction, line, self._key) for line in lines]

    def recall(self, line: Line) -> Place | None:
        """See `Remembering`; with an anchor nothing is said from memory.

        Args:
            line: Who, and which question.
        """
        if self._key is None or self.witness.anchor is not None:
            return None
        with self._guard:
            person, standings = self._kept.get(line[:2], _NOBODY)
        standing = standings.get(line.query)
        if person is None or standing is None:
            return None
        self.witness.look()
        return self._place_of(line, person, self._key, standing=standing, latest=standing.time)

    def _place(self, transaction: Transaction, line: Line, key: KeyInUse | None) -> Place:
        person = find_person(transaction, line.client, line.person)
        standing = None if person is None else self._standing(transaction, person, line.query)
        latest = None if standing is None else standing.time
        clock = None
        if standing is None:
            stone = self._stone(transaction, line.client, line.person)
            latest, clock = stone.times.get(line.query), stone.clocks.get(line.query)
            if person is None:
                person = self._unknown(line, stone)
                if stone.closed:
                    return Place(opens=_never, version=person.version, limit=person.limit, key=key)
            else:
                # A question that only came beside another one has answers and no standing.
                latest = latest_answers(transaction, person.number).get(line.query, latest)
        assert person is not None
        return self._place_of(line, person, key, standing=standing, latest=latest, clock=clock)

    def _place_of(self, line: Line, person: Person, key: KeyInUse | None, **facts: Any) -> Place:
        known = person.number != 0
        return Place(
            answered=AnsweredTimes(self.database, person.number, line.query) if known else (),
            spent=person.spent,
            recent=RecentSpans(partial(self._recent, line, person)),
            limit=person.limit,
            opens=partial(self._opens, key),
            key=key,
            known=known,
            version=person.version,
            row=person if known else None,
            **facts,
        )

    def _opens(self, key: KeyInUse | None, clock: str) -> int | None:
        """The slot of a clock before which none is answered, since the key or the store is new."""
        opens = None if key is None else key.opens(clock)
        closed, unit = self.witness.closed, step_of(clock)[0]
        if not closed:
            return opens
        # Of times that nobody spoke of when the store was recovered nobody knows what was said.
        first = slot_from(closed[unit], clock, clock) if unit in closed else FOREVER
        return first if opens is None else max(opens, first)

    def _unknown(self, line: Line, stone: Tombstone) -> Person:
        """Somebody who goes on from a tombstone, or is new."""
        budget = None if stone.budget is None else str(stone.budget)
        return Person(
            *(line.client, line.person, 0, budget, str(stone.spent), str(stone.spent), 0),
            *(stone.version, b"", stone.head),
        )

    def _stone(self, transaction: Transaction, client: str, person: str) -> Tombstone:
        return tombstone_of(transaction, self.hash_name(person, client=client))

    def hash_name(self, person: str, *, client: str = "") -> str:
        """What a tombstone calls a person.

        Args:
            person: Their name.
            client: Whose person it is.
        """
        check_text(client, "client")
        check_text(person, "person")
        return tombstone_name(self._secret, client, person)

    def _standing(self, transaction: Transaction, person: Person, query: str) -> Standing | None:
        kept = self._remembered(person, query)
        return find_standing(transaction, person.number, query) if kept is None else kept

    def _remembered(self, person: Person, query: str) -> Standing | None:
        """Where a line stands, if it was written here and nobody has written since."""
        with self._guard:
            before, standings = self._kept.get(person[:2], _NOBODY)
        return standings.get(query) if before == person else None

    def _remember(self, written: Sequence[tuple[Person, Standing]]) -> None:
        """Keep where people stand who were just written."""
        with self._guard:
            for person, standing in written:
                name, others = person[:2], {}
                before, standings = self._kept.get(name, _NOBODY)
                if before is not None and _follows(before, person):
                    others = standings  # the commit has compared: nobody has moved them
                try:
                    self._kept[name] = person, {**others, standing.line.query: standing}
                except ValueError:  # more states than there is room for
                    self._kept.pop(name, None)

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
        times = [whole(time, "times", None) for time in expect_each(times, Integral, "times")]
        if not times:
            return {}

        def read(transaction: Transaction) -> dict[int, Record]:
            person = find_person(transaction, line.client, line.person)
            if person is None:  # erased since somebody saw that they were answered
                return {}
            return find_answers(transaction, person.number, line, times)

        return self._read(read)

    def _read(self, read: Callable[[Transaction], Found]) -> Found:
        """What was said, when the anchor knows of it."""
        expected = self.witness.expect()
        with self.database.transaction(write=False) as transaction:
            found = read(transaction)
            roots = self.witness.check(transaction, expected)[1] if self.witness.anchor else {}
        self._settle(roots)
        return found

    def _settle(self, roots: Roots, changed: int | None = None) -> None:
        """Let the anchor know of roots before anything is said of what they stand for."""
        known = self.witness.settle(roots, changed)
        if known:  # by another server or, if this store does not have them, by a copy of it
            with self.database.transaction(write=False) as transaction:
                _, later = self.witness.check(transaction, known)
            self.witness.check_passed(
                roots if changed is None else {changed: roots[changed]}, later
            )

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
                self._key = key_in_use(find_facts(transaction))
        return self._key

    def latest(self) -> dict[str, int]:
        """The last slot of each clock that was answered for anybody."""
        with self.database.transaction(write=False) as transaction:
            return find_latest(transaction)

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

        def read(transaction: Transaction) -> list[Record]:
            person = self._known(transaction, line.client, line.person)
            return list_answers(transaction, person.number, line, after, most)

        return self._read(read)

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

    def _known(self, transaction: Transaction, client: str, person: str) -> Person:
        found = find_person(transaction, client, person)
        if found is None:
            raise NotFoundError("person must be one of the store, got another")
        return found


_STORES: WeakSet[StoreReading] = WeakSet()


def _forget_inherited() -> None:
    for store in _STORES:
        store._begin()


os.register_at_fork(after_in_child=_forget_inherited)

_NOBODY: tuple[None, dict[str, Standing]] = None, {}


def _follows(before: Person, after: Person) -> bool:
    """Whether one commit leads from a row to another of the same person."""
    return before.number == after.number and before.version + 1 == after.version


def _count_states(kept: tuple[Person, dict[str, Standing]]) -> int:
    return sum(standing.belief.n_states for standing in kept[1].values())


def _never(clock: str) -> int:
    """Nothing is answered any more."""
    return FOREVER
