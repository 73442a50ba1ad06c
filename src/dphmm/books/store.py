"""The book of a database, SQLite or PostgreSQL: every answer once, whoever else writes to it.

Answers and standings are written in one transaction, and only if nobody has answered the same
people since they were read: a row of people counts its commits. No true state comes here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from secrets import token_bytes

from dphmm.books.anchors import Anchor, open_anchor
from dphmm.books.database import Sqlite, Transaction, connect
from dphmm.books.opening import SALT_BYTES, prepare
from dphmm.books.reading import StoreReading
from dphmm.books.rows import (
    Person,
    find_facts,
    find_latest,
    find_person,
    find_queries,
    key_in_use,
    set_fact,
)
from dphmm.books.sealing import Seals, find_roots
from dphmm.books.tombstones import Tombstone, bury, hold_tombstones
from dphmm.books.writing import add_person, replace_people, write
from dphmm.cost.limit import Limit
from dphmm.errors import (
    ArgumentError,
    MovedError,
    NotFoundError,
    StoreError,
    check_name,
    expect,
    expect_function,
)
from dphmm.geometry.exact import Exact
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.book import KeyInUse, check_adoption, check_commit
from dphmm.release.moment import Line, check_client
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = ["Store"]

BEGUN = "begun"
"""What is written of a store whose anchor has not got its first roots yet, or may not have."""


class Store(StoreReading):
    """Answers, standings and budgets in a database.

    Args:
        database: Where they are; see `Store.open`.
        secret: What names the tombstones of erased people.
        anchor: Where the store's roots are kept outside of it, if anywhere.

    >>> import tempfile
    >>> store = Store.open(tempfile.mkdtemp() + "/answers.db")
    >>> store.begin("ann", budget=2)
    >>> store.ledger("ann")
    Ledger(0 entries, 0 spent, limit 2)
    >>> store.close()
    """

    open_again: Callable[[], Store]
    """Opens the same store in another process."""

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        secret: bytes | None = None,
        create: bool = True,
        anchor: str | Path | None = None,
    ) -> Store:
        """The store at a path, sqlite:///path or postgresql://..., made or migrated if needed.

        Args:
            url: Where it is.
            secret: What names the tombstones of erased people; by default the store's own.
            create: Whether it may be made, and its anchor.
            anchor: Where its roots are kept, so that an old copy can be told: a file, or another
                database for several servers. A store that was used with one needs it.
        """
        expect(b"" if secret is None else secret, bytes, "secret")
        expect(create, bool, "create")
        database = connect(url)
        if isinstance(database, Sqlite) and not create and not Path(database.name).exists():
            raise StoreError(f"the store {database.name} does not exist; a release makes it")
        used = prepare(database, secret, create)
        store = cls(database, used, None if anchor is None else open_anchor(anchor))
        store.open_again = partial(cls.open, url, secret=secret, create=False, anchor=anchor)
        try:
            if store.witness.anchor is not None:
                store._attach(store.witness.anchor, create)
            store._finish_erasing()
        except BaseException:  # nobody has it who could close it
            store.close()
            raise
        return store

    def _attach(self, anchor: Anchor, create: bool) -> None:
        """Give the anchor its first roots, if neither it nor the store know of each other.

        Nobody says anything before it has them; if who began is killed, the next one goes on.
        """
        with self.database.transaction(write=False) as transaction:
            facts = find_facts(transaction)
        state = facts.get("anchored")
        is_new = create and not {"anchored", "restored"} & facts.keys()
        if is_new:  # or the store would need what a slip of the pen has named
            anchor.make_room(self.witness.store)
        anchored = self._anchored() if create else None  # which may be damaged
        if is_new and anchored is None:
            with self.database.transaction() as transaction:
                transaction.hold("facts", "EXCLUSIVE")  # nobody speaks on without the anchor
                state = find_facts(transaction).get("anchored")
                if state is None:
                    # Copies from before are of another epoch, and can be told from this one.
                    self.witness.begin_epoch(transaction)
                    set_fact(transaction, "anchored", state := BEGUN)
        if state == BEGUN:
            with self.database.transaction() as transaction:
                transaction.hold("facts", "EXCLUSIVE")
                facts = find_facts(transaction)
                # A copy from then that was put back is not where the store went on from.
                if facts.get("anchored") == BEGUN and "restored" not in facts:
                    self.witness.epoch = facts["epoch"]  # whoever began it
                    if self._anchored() is None:
                        self.witness.anchor_first(find_roots(transaction))
                    set_fact(transaction, "anchored", "1")
        self._meet(anchor)  # others may have anchored it meanwhile

    def _finish_erasing(self) -> None:
        """Empty a log that somebody was still reading when a person was erased."""
        with self.database.transaction(write=False) as transaction:
            is_over = "erased" not in find_facts(transaction)
        if not is_over and self.database.forget_erased():
            with self.database.transaction() as transaction:
                set_fact(transaction, "erased", None)

    @contextmanager
    def writing(self, *, looked: bool = False, alone: bool = False) -> Iterator[Seals]:
        """A transaction that ends with a root, which the anchor knows of when this is left.

        Args:
            looked: Whether the anchor was read since the work was begun.
            alone: Whether to wait for everybody who has begun to write, and let nobody begin.
        """
        expected = self.witness.expect() if looked else self.witness.look()
        with self.database.transaction() as transaction:
            if alone:
                transaction.hold("facts", "EXCLUSIVE")  # which whoever writes reads first
            facts, roots = self.witness.check(transaction, expected, writing=True)
            self._key = key_in_use(facts)
            seals = Seals(transaction)
            yield seals
            number, before, root = seals.write_root()
            self.witness.check_next(number, before, root)
        self._settle({**roots, number: root}, number)

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
        with self.writing(looked=True) as seals:
            work = [
                (person, standing, said.pop(standing.line[:2], []))
                for (standing, _), person in zip(pairs, self._unmoved(seals, pairs), strict=True)
            ]
            written = write(seals, work)
        self._remember(written)

    def _unmoved(self, seals: Seals, pairs: Sequence[tuple[Standing, Place]]) -> list[Person]:
        """The people as they were read; if one of them is not so any more, it is refused here.

        Those whom the store knows are compared, and locked, when they are written. Where there is
        somebody new all are locked now, so that everybody locks in one order.
        """
        held = [place.row for _, place in pairs]
        people = [person for person in held if isinstance(person, Person)]
        if len(people) < len(pairs):
            people = self._lock(seals, [standing.line for standing, _ in pairs])
        moved = [
            standing.line
            for (standing, place), person in zip(pairs, people, strict=True)
            # Nor has the key been rotated between reading and writing.
            if person.version != place.version or place.key not in (None, self._key)
        ]
        if moved:
            raise MovedError(moved)
        return people

    def _lock(self, seals: Seals, lines: Sequence[Line]) -> list[Person]:
        """People in order, made if new, locked until the end of the transaction."""
        hold_tombstones(seals)
        return [self._lock_one(seals, line) for line in lines]

    def _lock_one(self, seals: Seals, line: Line) -> Person:
        person = find_person(seals.transaction, line.client, line.person, lock=True)
        if person is None:
            stone = self._stone(seals.transaction, line.client, line.person)
            if stone.closed:
                raise ArgumentError(
                    "person must be somebody who may come back, got one who was erased and whose "
                    "tombstone has expired; nothing is answered for that name again"
                )
            salted = self._unknown(line, stone)._replace(salt=token_bytes(SALT_BYTES))
            add_person(seals, salted)
            person = find_person(seals.transaction, line.client, line.person, lock=True)
        assert person is not None
        return person

    def adopt(self, standing: Standing) -> None:
        """Let a line go on under another law, from where the standing says; it is recorded.

        Args:
            standing: Where the line stands, under the other law.
        """
        expect(standing, Standing, "standing")
        with self.writing() as seals:
            transaction = seals.transaction
            person = find_person(transaction, *standing.line[:2], lock=True)
            if person is None:
                raise MovedError([standing.line])
            stood = self._standing(transaction, person, standing.line.query)
            before = check_adoption(stood, standing)
            line = (person.number, standing.line.query)
            # Only the latest one is gone on from.
            transaction.rows(
                "UPDATE adoptions SET content = NULL WHERE person = ? AND query = ?", line
            )
            transaction.rows(
                "INSERT INTO adoptions (person, query, time, old, new, content) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*line, standing.time, before.law.hex(), standing.law.hex(), standing.to_bytes()),
            )
            write(seals, [(person, standing, [])])

    def use_key(self, key: KeyInUse) -> None:
        """See `Book`; of two servers that begin at once the first one's key stays."""
        expect(key, KeyInUse, "key")
        with self.writing() as seals:
            seals.transaction.rows(
                "INSERT INTO facts (name, value) VALUES ('key', ?) ON CONFLICT (name) DO NOTHING",
                (json.dumps(vars(key)),),
            )
        self._key = None

    def rotate(self, make: Callable[[KeyInUse | None, dict[str, int]], KeyInUse]) -> KeyInUse:
        """Write down another key in the place of the present one; nothing is answered meanwhile.

        Args:
            make: The other key, for the present one and the last slot of each clock.
        """
        expect_function(make, "make")
        with self.writing(alone=True) as seals:
            key = make(self._key, find_latest(seals.transaction))
            set_fact(seals.transaction, "key", json.dumps(vars(key)))
        self._key = None
        return key

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
        with self.writing() as seals:
            (found,) = self._lock(seals, [line])
            if limit is not None and found.limit != limit:
                if found.limit is not None:
                    raise ArgumentError("budget must stay what it was when it was first set")
                after = found._replace(budget=str(limit), version=found.version + 1)
                replace_people(seals, [(found, after)])

    def erase(
        self,
        person: str,
        *,
        client: str = "",
        unless: Callable[[Transaction, Person], bool] | None = None,
    ) -> Tombstone:
        """Delete a person's answers, beliefs and name; a tombstone keeps slots, price and budget.

        Whoever comes back under the same name goes on from the tombstone: no moment is
        answered twice and no budget is filled again.

        Args:
            person: Their name.
            client: Whose person it is.
            unless: Who is left as they are: it is asked when nobody else can change them.
        """
        if unless is not None:
            expect_function(unless, "unless")
        with self.writing() as seals:
            hold_tombstones(seals, alone=True)
            transaction = seals.transaction
            found = find_person(transaction, client, person, lock=True)
            if found is None or (unless is not None and unless(transaction, found)):
                raise NotFoundError("person must be one of the store, got another")
            hashed = self.hash_name(person, client=client)
            queries = find_queries(transaction, found)
            clocks = {query: self._clock(transaction, found, query) for query in queries}
            stone = bury(seals, hashed, found, clocks)
            set_fact(transaction, "erased", "1")
        with self._guard:
            self._kept.pop((client, person), None)
        self.forget_erased()
        return stone

    def forget_erased(self) -> None:
        """Leave no copy of what was erased in the database's files.

        Somebody who reads a file of SQLite needs its log, which has it. They are waited for; if
        they take too long, this says so, and the next one to open the store does it.
        """
        if not self.database.forget_erased():
            raise StoreError(
                f"the person is erased, but somebody else still reads the store "
                f"{self.database.name}, and its log has the name until they end; then run: "
                f"dphmm store verify"
            )
        with self.database.transaction() as transaction:
            set_fact(transaction, "erased", None)
