"""Servers, copies, kills and stores put back in any order of their effects: one answer a moment.

What a store does with its anchor is the real code, `Store.writing` and what it calls. Databases and
anchors are in memory, with transactions as PostgreSQL has them (a write sees what was committed by
then, a read a snapshot; who finds a root locked takes another), so that every order can be had by
a seed, thousands a minute. Before and after each effect somebody else may go on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Semaphore, Thread
from typing import Any

import pytest

from dphmm import StoreError
from dphmm.books.anchors import Anchor, Anchored, Judge
from dphmm.books.database import Row, Transaction
from dphmm.books.schema import VERSION
from dphmm.books.sealing import NO_ROOT, Roots
from dphmm.books.store import Store
from dphmm.books.witness import Witness
from dphmm.errors import MovedError

FACTS = {"version": str(VERSION), "store": "s", "epoch": "e", "anchored": "1"}


class Killed(BaseException):
    """Somebody is stopped where they are."""


@dataclass(frozen=True)
class State:
    """What a database holds: rows of roots, what was said of moments, and what was done."""

    roots: dict[int, tuple[Any, ...]]
    said: dict[str, int] = field(default_factory=dict)
    done: tuple[int, ...] = ()


class Turns:
    """Threads of which one runs at a time: each waits at its next effect until it is its turn."""

    def __init__(self) -> None:
        self.running: Turn | None = None

    def stop_at(self, effect: str) -> None:
        """Let somebody else go on; nothing outside of a turn."""
        turn = self.running
        if turn is not None:
            turn.at = effect
            turn.give_back()

    def go_on(self, turn: Turn) -> None:
        """Let somebody run to their next effect."""
        self.running = turn
        turn.mine.release()
        turn.back.acquire()
        self.running = None


class Turn(Thread):
    """Somebody who acts, until they are killed."""

    def __init__(self, turns: Turns, acts: Sequence[Callable[[], object]]) -> None:
        super().__init__(daemon=True)
        self._acts, self.mine, self.back = acts, Semaphore(0), Semaphore(0)
        self.at, self.is_killed, self.is_over = "", False, False
        self.start()

    def give_back(self) -> None:
        """Wait until it is our turn again."""
        self.back.release()
        self.mine.acquire()
        if self.is_killed:
            raise Killed

    def run(self) -> None:
        """Do everything, whatever is refused."""
        self.mine.acquire()
        with suppress(Killed):
            for act in self._acts:
                with suppress(StoreError, MovedError):
                    act()
        self.is_over = True
        self.back.release()


class Database:
    """One state at a time, and those that it had."""

    def __init__(self, turns: Turns, state: State) -> None:
        self.name, self.turns, self.state = "s", turns, state
        self.before: list[State] = []
        self.locks: set[int] = set()
        self.life = 0

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[MemoryTransaction]:
        """See `dphmm.books.database.Database`."""
        self.turns.stop_at("begin")
        transaction = MemoryTransaction(self, write)
        try:
            yield transaction
            if write:
                self.turns.stop_at("commit")
                transaction.commit()
        finally:
            transaction.end()
        self.turns.stop_at("committed" if write else "read")

    def put_back(self, state: State) -> None:
        """Go on from an earlier state; whoever had begun is cut off."""
        self.state, self.life, self.locks = state, self.life + 1, set()


class MemoryTransaction(Transaction):
    """Knows the few statements that the code under test makes."""

    for_update, for_update_skipping = " FOR UPDATE", " FOR UPDATE SKIP LOCKED"

    def __init__(self, database: Database, write: bool) -> None:
        self._database, self._life = database, database.life
        self._snapshot = None if write else database.state
        self._locked: int | None = None
        self.said: dict[str, int] = {}
        self.done: tuple[int, ...] = ()
        self._root: dict[int, tuple[Any, ...]] = {}

    def state(self) -> State:
        """What it sees."""
        if self._database.life != self._life:
            raise StoreError("the connection is lost")
        return self._snapshot or self._database.state

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """See `Transaction`."""
        if "FROM facts" in sql:
            return list(FACTS.items())
        if sql.startswith("UPDATE roots"):
            self._root = {int(str(values[-1])): tuple(values[:-1])}
            return []
        self._database.turns.stop_at("roots")
        return [(number, *row) for number, row in self.state().roots.items() if row[0]]

    def row(self, sql: str, values: Sequence[object] = ()) -> Row | None:
        """See `Transaction`; the roots are as many as those who may write at once."""
        number = min(set(self.state().roots) - self._database.locks)
        self._database.locks.add(number)
        self._locked = number
        return (number, *self.state().roots[number])

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """See `Transaction`."""
        raise NotImplementedError

    def commit(self) -> None:
        """Everything or nothing, and no moment twice."""
        state = self.state()
        if self.said.keys() & state.said.keys():
            raise MovedError([])
        self._database.before.append(state)
        self._database.state = State(
            state.roots | self._root, state.said | self.said, state.done + self.done
        )

    def end(self) -> None:
        """Give back what was locked."""
        if self._locked is not None and self._database.life == self._life:
            self._database.locks.discard(self._locked)


class MemoryAnchor(Anchor):
    """What is kept outside; a file's lock covers what it says, a database is asked once more."""

    def __init__(self, turns: Turns, is_file: bool) -> None:
        self._turns, self._is_file, self._known = turns, is_file, Anchored("s", "e")

    def read(self, store: str) -> Anchored:
        """See `Anchor`."""
        self._turns.stop_at("look")
        known = self._known
        self._turns.stop_at("looked")
        return known

    def lift(self, store: str, epoch: str, roots: Roots, judge: Judge) -> Roots:
        """See `Anchor`."""
        self._turns.stop_at("lift")
        for number in roots:
            judge(number, self._known.roots.get(number, NO_ROOT))
        self._known = self._known.lifted(roots)
        known = self._known.roots
        self._turns.stop_at("lifted")
        return known if self._is_file else self._known.roots

    def replace(self, anchored: Anchored) -> None:
        """See `Anchor`."""
        raise NotImplementedError

    def make_room(self, store: str) -> None:
        """See `Anchor`."""
        raise NotImplementedError


class Server(Store):
    """A store without its tables of people: moments are names, and answers are numbers."""

    def __init__(self, world: World, database: Database) -> None:
        self.database, self._key, self.world = database, None, world  # type: ignore[assignment]
        self.witness = Witness("s", FACTS, world.anchor)

    def answer(self, moment: str, value: int) -> None:
        """Say what was said of a moment, or something new."""
        expected = self.witness.look()
        with self.database.transaction(write=False) as transaction:
            self.witness.check(transaction, expected)
            is_known = moment in transaction.state().said  # type: ignore[attr-defined]
        if is_known:
            self.repeat(moment)
            return
        with self.writing(looked=True) as seals:
            seals.transaction.said[moment] = value  # type: ignore[attr-defined]
            seals.change = value
        self.world.said.setdefault(moment, set()).add(value)

    def repeat(self, moment: str) -> None:
        """Say what was said of a moment."""
        value = self._read(lambda transaction: transaction.state().said.get(moment))  # type: ignore[attr-defined]
        if value is not None:
            self.world.said.setdefault(moment, set()).add(value)

    def do(self, act: int) -> None:
        """Something that changes no answer, and is reported as done."""
        with self.writing() as seals:
            seals.transaction.done = (act,)  # type: ignore[attr-defined]
        self.world.done.append(act)


class World:
    """One order of everything, by its seed."""

    def __init__(self, seed: int, dangers: str) -> None:
        self._random, self._dangers = random.Random(seed), dangers
        rng, self.turns = self._random, Turns()
        self.said: dict[str, set[int]] = {}
        self.done: list[int] = []
        # Where there are few values two answers are often the same.
        self._values = rng.choice([2, 10**9])
        acting = rng.randint(2, 6)
        self.anchor = MemoryAnchor(self.turns, rng.random() < 0.5)
        rows = {number: (0, bytes(256), None) for number in range(acting)}  # one for each
        self._databases = [Database(self.turns, State(rows))]
        for act in range(rng.randrange(3)):
            Server(self, self._databases[0]).do(-act)
        if "copies" in dangers:
            self._databases.append(Database(self.turns, replace(self._databases[0].state)))
        self._shared = [Server(self, self._databases[-1 if n % 2 else 0]) for n in range(4)]
        self._acting = [
            Turn(self.turns, [self._act() for _ in range(rng.choice([1, 1, 2, 3]))])
            for _ in range(acting)
        ]

    def _act(self) -> Callable[[], object]:
        rng = self._random
        server = rng.choice(self._shared)
        if rng.random() < 0.3:
            server = Server(self, server.database)  # type: ignore[arg-type]
        moment, value = rng.choice("aab"), rng.randrange(self._values)
        return rng.choice(
            [
                *[lambda: server.answer(moment, value)] * 5,
                *[lambda: server.repeat(moment)] * 2,
                *[lambda: server.do(rng.randrange(1, 2**60))] * 2,
                server.check,
            ]
        )

    def run(self) -> None:
        """Let everybody act, one effect of somebody after the other."""
        rng, waiting = self._random, set[Turn]()
        constancy, danger, turn = rng.random(), rng.choice([0.1, 0.3, 0.6]), None
        while acting := [one for one in self._acting if not one.is_over]:
            if rng.random() < 0.03:
                waiting.clear()
            awake = [one for one in acting if one not in waiting] or acting
            if turn not in awake or rng.random() > constancy:
                turn = rng.choice(awake)
            turn.is_killed |= "kills" in self._dangers and rng.random() < 0.02
            self.turns.go_on(turn)
            database = rng.choice(self._databases)
            if "put back" in self._dangers and turn.at == "committed" and database.before:
                if rng.random() < danger:  # by one commit, mostly, while who made it waits
                    some = database.before[-1 if rng.random() < 0.8 else -3 :]
                    database.put_back(some[0])
                    waiting.add(turn)

    def problems(self) -> list[str]:
        """What is wrong with what was said, and with each store that goes on."""
        found = [f"two answers for {moment}" for moment, all_ in self.said.items() if len(all_) > 1]
        for database in self._databases:
            server = Server(self, database)
            try:
                server.check()
                with server.writing():
                    pass
            except StoreError:
                if self._dangers == "kills":
                    found.append("a whole store is refused")
                continue
            for moment, values in self.said.items():
                if database.state.said.get(moment) not in values:
                    found.append(f"what was said of {moment} is lost")
            if set(self.done) - set(database.state.done):
                found.append("what was reported as done is lost")
        return found


DANGERS = ["kills", "put back", "copies", "kills, copies, put back"]
COUNTS = [pytest.param(150), pytest.param(10_000, marks=pytest.mark.slow)]


def run_worlds(dangers: str, count: int) -> dict[int, list[str]]:
    """What went wrong, by seed."""
    found = {}
    for seed in range(count):
        world = World(seed, dangers)
        world.run()
        if problems := world.problems():
            found[seed] = problems
    return found


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dangers", DANGERS)
def test_in_any_order_a_moment_has_one_answer_and_nothing_that_was_said_is_lost(
    dangers: str, count: int
) -> None:
    assert run_worlds(dangers, count) == {}


def test_a_store_that_does_not_look_for_what_it_says_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check is no decoration."""
    monkeypatch.setattr(Witness, "check_passed", lambda *_: None)
    found = run_worlds("put back", 300)
    assert any("is lost" in problem for problems in found.values() for problem in problems)


def test_a_commit_on_a_root_that_the_anchor_does_not_have_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Witness, "settle", lambda *_: {})
    found = run_worlds("copies", 100)
    assert any("two answers" in problem for problems in found.values() for problem in problems)
