"""Two copies of a store under one anchor: whatever is said, it is one answer a moment."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from dphmm import ArgumentError, Store, StoreError
from dphmm.books.acts import record_act
from dphmm.books.anchors import FileAnchor
from dphmm.books.changing import rotate_key
from dphmm.books.checking import find_problems
from dphmm.books.copying import backup, restore
from dphmm.books.database import Sqlite
from dphmm.books.keeping import lower_budgets, recover
from dphmm.books.keys import create_key
from dphmm.books.sealing import Root, Roots, Seals
from dphmm.books.witness import Witness
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release.moment import Line
from tests.crash.world import release, terms

WIDE = terms(epsilon="0.01")
"""So much noise that two answers are never the same."""


@pytest.fixture(params=["file", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def anchor(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where roots are kept: a file, or a database of either kind."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_server").new_database())
    return f"{tmp_path}/anchor" if request.param == "file" else f"sqlite:///{tmp_path}/anchor.db"


@pytest.fixture
def copies(anchor: str, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """A store and what `cp` makes of it, each opened by a server of its own."""
    with closing(Store.open(tmp_path / "one.db", anchor=anchor)) as store:
        release(store, "ann", 1, 4)
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    with (
        closing(Store.open(tmp_path / "one.db", anchor=anchor)) as one,
        closing(Store.open(tmp_path / "two.db", anchor=anchor)) as two,
    ):
        yield one, two


def before_anchoring(store: Store, act: Any) -> None:
    """Have something happen between the next commit of a store and its anchor."""
    settle = store.witness.settle

    def late(*roots: Any) -> Any:
        store.witness.settle = settle  # type: ignore[method-assign]
        act()
        return settle(*roots)

    store.witness.settle = late  # type: ignore[method-assign]


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("further", [0, 1, 5])
def test_a_copy_that_was_quicker_to_the_anchor_leaves_the_other_silent(
    copies: tuple[Store, Store], further: int, looked: bool
) -> None:
    one, two = copies

    def act() -> None:
        for slot in range(2, 3 + further):
            release(two, "ann", slot, 4)
        if looked:  # another thread of the first server sees how far the anchor is
            with suppress(StoreError):
                release(one, "ben", 2, 4)

    before_anchoring(one, act)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"is behind its anchor|not the one of its anchor"):
            release(one, "ann", 2, 4)
    release(two, "ann", 9, 4)  # whoever was anchored goes on


class LastRoot(Seals):
    """The second copy takes other roots than the first, as where many commit at once."""

    def write_root(self) -> tuple[int, Root, Root]:
        (_, _, path), *_ = self.transaction.rows("PRAGMA database_list")
        last = " ORDER BY number DESC " if str(path).endswith("two.db") else " ORDER BY number "
        transaction = self.transaction
        self.transaction = Asking(transaction, last)  # type: ignore[assignment]
        try:
            return super().write_root()
        finally:
            self.transaction = transaction


class Asking:
    """A transaction that asks for roots in another order."""

    def __init__(self, transaction: Any, order: str) -> None:
        self._transaction, self._order = transaction, order

    def row(self, sql: str, values: Any = ()) -> Any:
        return self._transaction.row(sql.replace(" ORDER BY number ", self._order), values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)


def test_copies_that_take_different_roots_are_told_apart_too(
    copies: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = copies
    monkeypatch.setattr("dphmm.books.store.Seals", LastRoot)
    before_anchoring(one, lambda: release(two, "ann", 2, 4))
    with pytest.raises(StoreError, match="behind its anchor"):
        release(one, "ann", 2, 4)
    with pytest.raises(StoreError, match="behind its anchor"):  # nor is it said to who only reads
        one.answers(ANN)
    with pytest.raises(StoreError, match="behind its anchor"):
        one.find(ANN, [2])


ANN = Line("", "ann", "state")


def put_back(old: Path, path: Path) -> None:
    """Put an old copy in the place of a store, whose servers go on with it and notice nothing."""
    with closing(sqlite3.connect(old)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


@pytest.fixture
def servers(anchor: str, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two servers of one store, of which there is a copy that is called old."""
    path = tmp_path / "one.db"
    with (
        closing(Store.open(path, anchor=anchor)) as one,
        closing(Store.open(path, anchor=anchor)) as two,
    ):
        release(one, "ann", 1, 4, WIDE)
        put_back(path, tmp_path / "old.db")
        yield one, two


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("further", [0, 1, 5])
@pytest.mark.parametrize("how", ["release", "answers", "find"])
def test_what_was_not_said_when_a_store_was_put_back_is_never_said(
    servers: tuple[Store, Store], tmp_path: Path, how: str, further: int, looked: bool
) -> None:
    """A standby that was behind takes over between commit and anchor, and others go on with it."""
    one, two = servers
    if how != "release":  # committed by somebody who was killed then
        before_anchoring(two, die)
        with pytest.raises(KeyboardInterrupt):
            release(two, "ann", 2, 4, WIDE)

    def act() -> None:
        put_back(tmp_path / "old.db", tmp_path / "one.db")
        for slot in range(2, 3 + further):
            release(two, "ann", slot, 4, WIDE)
        if looked:  # another thread of the first server goes on, too
            release(one, "ben", 2, 4, WIDE)

    before_anchoring(one, act)
    ask: dict[str, Callable[[], object]] = {
        "release": lambda: release(one, "ann", 2, 4, WIDE),
        "answers": lambda: one.answers(ANN),
        "find": lambda: one.find(ANN, [2]),
    }
    with pytest.raises(StoreError, match=r"is behind its anchor|not the one of its anchor"):
        ask[how]()
    assert [record.time for record in two.answers(ANN)] == [*range(1, 3 + further)]


def die(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("late", [False, True])
def test_a_store_whose_first_server_was_killed_while_it_was_anchored_goes_on(
    anchor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """It has its anchor then, and no other: an empty one is refused from the first answer on."""
    with closing(Store.open(tmp_path / "one.db")) as store:
        release(store, "ann", 1, 4)
    first = Witness.anchor_first

    def stop(witness: Witness, roots: Roots) -> None:
        if late:
            first(witness, roots)
        raise KeyboardInterrupt

    monkeypatch.setattr(Witness, "anchor_first", stop)
    with pytest.raises(KeyboardInterrupt):
        Store.open(tmp_path / "one.db", anchor=anchor)
    monkeypatch.setattr(Witness, "anchor_first", first)
    for time in (2, 3):
        with closing(Store.open(tmp_path / "one.db", create=False, anchor=anchor)) as store:
            assert not release(store, "ann", time, 4)[1]
    with (
        closing(Store.open(tmp_path / "one.db", anchor=tmp_path / "other")) as store,
        pytest.raises(StoreError, match="does not know the store"),
    ):
        release(store, "ann", 4, 4)


@pytest.fixture
def begun(anchor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Begins to anchor a store, and is killed before the anchor has anything."""

    def begin() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Witness, "anchor_first", die)
            with pytest.raises(KeyboardInterrupt):
                Store.open(tmp_path / "one.db", anchor=anchor)

    return begin


@pytest.mark.parametrize("killed", [False, True])
def test_servers_that_anchor_a_store_at_once_have_one_epoch(
    anchor: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    begun: Callable[[], None],
    killed: bool,
) -> None:
    """The second one knows the store from before the first one began, who may be killed then."""
    path = tmp_path / "one.db"
    Store.open(path).close()
    attach = Store._attach

    def attach_late(store: Store, *given: Any) -> None:
        monkeypatch.setattr(Store, "_attach", attach)
        begun() if killed else Store.open(path, anchor=anchor).close()
        attach(store, *given)

    monkeypatch.setattr(Store, "_attach", attach_late)
    with closing(Store.open(path, anchor=anchor)) as store:
        assert not release(store, "ann", 1, 4)[1]
    with closing(Store.open(path, anchor=anchor)) as store:
        assert release(store, "ann", 1, 4)[1]


@pytest.mark.parametrize("recovered", [False, True])
def test_a_server_that_anchors_a_store_finds_what_others_did_to_it_meanwhile(
    anchor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovered: bool
) -> None:
    path = tmp_path / "one.db"
    with closing(Store.open(path)) as store:
        release(store, "ann", 1, 4)
        begin, begins = Sqlite.transaction, 0

        def transaction(database: Sqlite, write: bool = True) -> Any:
            nonlocal begins
            begins += write and database.name == str(path)
            if begins == 2:  # what it has begun is durable, and not finished
                monkeypatch.setattr(Sqlite, "transaction", begin)
                if recovered:  # so that it has no anchor
                    recover(store, {"": 2})
                else:
                    Store.open(path, anchor=anchor).close()
            return begin(database, write)

        monkeypatch.setattr(Sqlite, "transaction", transaction)
        with closing(Store.open(path, anchor=anchor)) as other:
            if recovered:
                with pytest.raises(StoreError, match="does not know the store"):
                    release(other, "ann", 2, 4)
            else:
                assert not release(other, "ann", 2, 4)[1]


@pytest.mark.parametrize("how", ["none", "another", "its own"])
def test_a_copy_from_while_a_store_was_anchored_does_not_answer_when_it_is_restored(
    anchor: str, tmp_path: Path, begun: Callable[[], None], how: str
) -> None:
    path, copy = tmp_path / "one.db", tmp_path / "copy.db"
    with closing(Store.open(path)) as store:
        release(store, "ann", 1, 4)
    begun()
    shutil.copy(path, copy)
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "ann", 2, 4)
    used = {"none": None, "another": str(tmp_path / "other"), "its own": anchor}[how]
    refused = pytest.raises(StoreError, match=r"recover|cannot be used without it")
    with closing(restore(copy, tmp_path / "back.db", anchor=used)) as store, refused:
        release(store, "ann", 2, 4)


def test_a_restored_store_is_not_anchored_by_whoever_opens_it(anchor: str, tmp_path: Path) -> None:
    """Or it would need an anchor that only a recovery can give it."""
    with closing(Store.open(tmp_path / "one.db")) as store:
        release(store, "ann", 1, 4)
        backup(store, tmp_path / "copy.db")
    restore(tmp_path / "copy.db", tmp_path / "back.db").close()
    for used in (anchor, None):
        with (
            closing(Store.open(tmp_path / "back.db", anchor=used)) as store,
            pytest.raises(StoreError, match=r"not know .* dphmm store recover"),
        ):
            release(store, "ann", 2, 4)


def test_a_store_is_no_anchor_of_its_own(store_url: str, tmp_path: Path) -> None:
    """It would go back together with the store; on SQLite it could not even be finished."""
    place = store_url if "://" in store_url else f"sqlite:///{store_url}"
    Store.open(store_url).close()
    with pytest.raises(ArgumentError, match="anchor must be another database than the store"):
        Store.open(store_url, anchor=place)
    with closing(Store.open(store_url)) as store:  # it does not need one
        release(store, "ann", 1, 4)
    with closing(Store.open(store_url, anchor=tmp_path / "anchor")) as store:
        release(store, "ann", 2, 4)


def test_a_store_is_looked_into_although_its_anchor_cannot_be_read(tmp_path: Path) -> None:
    """So it is by a process of a service, which would be begun again and again."""
    path, anchor = tmp_path / "one.db", tmp_path / "anchor"
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "ann", 1, 4)
        anchor.write_bytes(b"no anchor")
        with closing(store.open_again()) as other:
            problems = find_problems(other)
            assert ["is damaged or no anchor" in one for one in problems] == [True]
            with pytest.raises(StoreError, match="is damaged or no anchor"):
                release(other, "ann", 2, 4)
    with pytest.raises(StoreError, match="is damaged or no anchor"):
        Store.open(path, anchor=anchor)


@pytest.mark.parametrize("slip", ["no folder", "the store"])
def test_a_recovery_to_what_can_be_no_anchor_changes_nothing(
    anchor: str, tmp_path: Path, slip: str
) -> None:
    path = tmp_path / "one.db"
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "ann", 1, 4)
        other = f"sqlite:///{path}" if slip == "the store" else str(tmp_path / "no" / "anchor")
        refused = pytest.raises((ArgumentError, StoreError), match=r"^(the )?anchor ")
        with closing(Store.open(path, create=False, anchor=other)) as wrong, refused:
            recover(wrong, {"": 2})
        release(store, "ann", 2, 4)


def test_an_anchor_that_somebody_stopped_has_locked_is_waited_for_no_longer_than_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.books.anchors.BUSY_SECONDS", 0.1)
    with closing(Store.open(tmp_path / "one.db", anchor=tmp_path / "anchor")) as store:
        release(store, "ann", 1, 4)
        with open(tmp_path / "anchor", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for ask in (lambda: release(store, "ann", 2, 4), lambda: store.answers(ANN)):
                with pytest.raises(StoreError, match=r"anchor .* is locked by another program; no"):
                    ask()
        assert release(store, "ann", 2, 4)[1]  # it was committed, and is said now
        assert store.is_current()


def test_an_anchor_is_not_kept_locked_by_a_process_that_was_forked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.books.anchors.BUSY_SECONDS", 0.1)
    children = []

    def fork(*_: object) -> None:
        child = os.fork()
        if not child:
            signal.pause()
        children.append(child)

    with closing(Store.open(tmp_path / "one.db", anchor=tmp_path / "anchor")) as store:
        anchor, witness = FileAnchor(tmp_path / "anchor"), store.witness
        try:
            anchor.lift(witness.store, witness.epoch, {0: Root(0, "")}, fork)
            release(store, "ann", 1, 4)
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


ACTS: dict[str, Callable[[Store], object]] = {
    "erase": lambda store: store.erase("ann"),
    "budget": lambda store: store.begin("ann", budget=9),
    "lower": lambda store: lower_budgets(store, to=5),
    "rotate": lambda store: rotate_key(store, KeyedRandomness(b"2" * 32)),
    "key": lambda store: create_key(store, "bank", ["release"]),
    "act": lambda store: record_act(store, "", "bank", "erase"),
}


@pytest.mark.parametrize("further", [1, 3])
@pytest.mark.parametrize("what", ACTS)
def test_what_is_reported_as_done_is_in_the_store_that_goes_on(
    servers: tuple[Store, Store], tmp_path: Path, what: str, further: int
) -> None:
    """Others take the commit's place with one that changes no answer either, or go on from it."""
    one, two = servers

    def act() -> None:
        put_back(tmp_path / "old.db", tmp_path / "one.db")
        for _ in range(further):
            record_act(two, "", "bank", "scenario")

    before_anchoring(one, act)
    with pytest.raises(StoreError, match=r"is behind its anchor|not the one of its anchor"):
        ACTS[what](one)
    before_anchoring(two, lambda: None)
    ACTS[what](two)  # the store that goes on can do it


def test_an_answer_that_came_back_by_chance_is_not_taken_for_what_was_anchored(
    anchor: str, tmp_path: Path
) -> None:
    """With a key others draw the same again; until that is anchored it may be lost once more."""
    path, old = tmp_path / "one.db", tmp_path / "old.db"
    key = KeyedRandomness(b"1" * 32)
    with ExitStack() as stack:
        one, two, three = (
            stack.enter_context(closing(Store.open(path, anchor=anchor))) for _ in range(3)
        )
        release(one, "ann", 1, 4, WIDE, key)
        put_back(path, old)

        def act() -> None:
            put_back(old, path)
            release(two, "ben", 1, 4, WIDE, key)
            release(two, "ben", 2, 4, WIDE, key)
            before_anchoring(three, die)
            with pytest.raises(KeyboardInterrupt):
                release(three, "ann", 2, 4, WIDE, key)

        before_anchoring(one, act)
        with pytest.raises(StoreError, match="is behind its anchor"):
            release(one, "ann", 2, 4, WIDE, key)


def test_nobody_is_told_what_so_many_others_have_gone_on_from_that_it_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.books.sealing.PASSED", 3)
    path, anchor = tmp_path / "one.db", str(tmp_path / "anchor")
    with (
        closing(Store.open(path, anchor=anchor)) as one,
        closing(Store.open(path, anchor=anchor)) as two,
    ):
        release(one, "ann", 1, 4)

        def act(more: int) -> None:
            for _ in range(more):
                record_act(two, "", "bank", "scenario")

        before_anchoring(one, lambda: act(3))
        answer, _ = release(one, "ann", 2, 4)
        before_anchoring(one, lambda: act(4))
        with pytest.raises(StoreError, match=r"too far meanwhile to tell .*; ask again"):
            release(one, "ann", 3, 4)
        assert release(one, "ann", 3, 4)[1]  # it was kept
        assert release(two, "ann", 2, 4)[0].lattice.tolist() == answer.lattice.tolist()


def test_a_store_whose_server_was_killed_before_the_anchor_is_whole(
    anchor: str, tmp_path: Path
) -> None:
    """However often; it goes on, and so does a copy that is made of it and put back."""
    path = tmp_path / "one.db"
    for slot in range(1, 4):
        with closing(Store.open(path, anchor=anchor)) as store:
            before_anchoring(store, die)
            with pytest.raises(KeyboardInterrupt):
                release(store, "ann", slot, 4)
    with closing(Store.open(path, anchor=anchor)) as store:
        backup(store, tmp_path / "backup.db")
    with closing(restore(tmp_path / "backup.db", tmp_path / "two.db", anchor=anchor)) as store:
        assert release(store, "ann", 3, 4)[1]
        assert not release(store, "ann", 4, 4)[1]


@pytest.mark.parametrize("behind", [1, 2, 5])
def test_an_old_copy_of_the_anchor_is_refused_by_whoever_comes_to_it(
    tmp_path: Path, behind: int
) -> None:
    path, anchor = tmp_path / "one.db", tmp_path / "anchor"
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "ann", 1, 4)
        shutil.copy(anchor, tmp_path / "old")
        for slot in range(2, 2 + behind):
            release(store, "ann", slot, 4)
    shutil.copy(tmp_path / "old", anchor)
    asks: list[Callable[[Store], object]] = [
        Store.check,
        lambda store: store.answers(ANN),
        lambda store: release(store, "ann", 1, 4),
        lambda store: release(store, "ann", 9, 4),
    ]
    for ask in asks:
        with closing(Store.open(path, anchor=anchor)) as store:
            if behind > 1:
                with pytest.raises(StoreError, match="two commits behind or more; nothing is said"):
                    ask(store)
            else:
                ask(store)
    if behind > 1:
        with closing(Store.open(path, anchor=anchor)) as store:
            recover(store, {"": 10})
            assert not release(store, "ann", 10, 4)[1]


def test_two_copies_that_are_asked_at_once_say_one_answer_a_moment(tmp_path: Path) -> None:
    """As fast as they can, many times anew; whichever is behind is silent from then on."""
    said: dict[tuple[int, str], set[tuple[int, ...]]] = {}
    for trial in range(15):
        folder = tmp_path / str(trial)
        folder.mkdir()
        anchor = folder / "anchor"
        Store.open(folder / "one.db", anchor=anchor).close()
        shutil.copy(folder / "one.db", folder / "two.db")
        stores = [Store.open(folder / name, anchor=anchor) for name in ("one.db", "two.db")]
        begin = threading.Barrier(2)

        def ask(store: Store, trial: int = trial, begin: threading.Barrier = begin) -> None:
            begin.wait()
            with suppress(StoreError):
                for number in range(3):
                    answer, _ = release(store, f"p{number}", 1, 4)
                    moment = (trial, f"p{number}")
                    said.setdefault(moment, set()).add(tuple(answer.lattice.tolist()))

        threads = [threading.Thread(target=ask, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in stores:
            store.close()
    assert said
    assert all(len(answers) == 1 for answers in said.values()), said


class Server:
    """A process of one copy that is asked for one moment, and stops at each of its steps.

    It reads the anchor, commits, and lets the anchor know. What was asked is said after the last.
    """

    def __init__(self, path: Path, anchor: str, person: str) -> None:
        self.store = Store.open(path, anchor=anchor)
        self.person = person
        self.steps: list[Callable[[], None]] = [self._look, self._commit, self._settle]
        self.said: tuple[int, ...] | None = None

    def go_on(self) -> None:
        """One step; whoever was refused has none left."""
        step = self.steps.pop(0) if self.steps else None
        try:
            if step is not None:
                step()
        except StoreError:
            self.steps = []

    def _look(self) -> None:
        looked = self.store.witness.look()
        self.store.witness.look = lambda: looked  # type: ignore[method-assign]

    def _commit(self) -> None:
        self.store._settle = self._wait  # type: ignore[method-assign]
        answer, _ = release(self.store, self.person, 1, 4)
        self._answer = tuple(answer.lattice.tolist())

    def _wait(self, *roots: Any) -> None:
        self._roots = roots

    def _settle(self) -> None:
        Store._settle(self.store, *self._roots)
        self.said = self._answer


def said_by_two_copies(
    folder: Path, anchor: str, askings: Sequence[tuple[str, str]], order: Sequence[int]
) -> dict[str, set[tuple[int, ...]]]:
    """What copies say, each process of which is at its next step when the order names it."""
    with ExitStack() as stack:
        servers = [Server(folder / f"{copy}.db", anchor, person) for copy, person in askings]
        for server in servers:
            stack.enter_context(closing(server.store))
        for number in order:
            servers[number].go_on()
    said: dict[str, set[tuple[int, ...]]] = {}
    for server in servers:
        if server.said is not None:
            said.setdefault(server.person, set()).add(server.said)
    return said


def two_copies(folder: Path, anchor: str) -> None:
    folder.mkdir()
    Store.open(folder / "one.db", anchor=anchor).close()
    shutil.copy(folder / "one.db", folder / "two.db")


ASKINGS = (("one", "ann"), ("one", "ben"), ("one", "cid"), ("two", "ann"), ("two", "ben"))


def test_three_commits_in_flight_do_not_pass_over_the_other_copy(
    tmp_path: Path, anchor: str
) -> None:
    """The other copy speaks of the first root after it; the third one must not go on from that."""
    two_copies(tmp_path / "copies", anchor)
    looks, commits = [0, 1, 2, 3], [0, 1, 2]
    order = [*looks, *commits, 3, 3, *reversed(commits)]
    said = said_by_two_copies(tmp_path / "copies", anchor, ASKINGS[:4], order)
    assert all(len(answers) == 1 for answers in said.values()), said


ORDERS = [pytest.param(150), pytest.param(4000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", ORDERS)
def test_processes_of_two_copies_say_one_answer_a_moment_in_any_order(
    tmp_path: Path, count: int
) -> None:
    rng = random.Random(12)
    steps = [number for number in range(len(ASKINGS)) for _ in range(3)]
    silent = 0
    for trial in range(count):
        rng.shuffle(steps)
        if trial % 2:  # all have read the anchor before anybody commits
            steps = [*range(len(ASKINGS)), *_without_first(steps)]
        folder = tmp_path / str(trial)
        two_copies(folder, str(tmp_path / f"anchor{trial}"))
        said = said_by_two_copies(folder, str(tmp_path / f"anchor{trial}"), ASKINGS, steps)
        assert all(len(answers) == 1 for answers in said.values()), steps
        silent += not said
        shutil.rmtree(folder)
    assert silent == 0  # one of the copies goes on, always


def _without_first(steps: list[int]) -> list[int]:
    rest = list(steps)
    for number in set(steps):
        rest.remove(number)
    return rest
