"""The store in trouble: damage, full disks, locks, lost servers; nothing is lost or said twice."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial

import numpy as np
import pytest

from dphmm import ArgumentError, PolicyGraph, Query, Scenario, StoreError
from dphmm.books import Store, find_problems, inspect
from dphmm.books.changing import adopt_terms
from dphmm.books.database import Postgres, Sqlite, connect
from dphmm.books.schema import VERSION
from dphmm.noise.randomness import SeededRandomness
from dphmm.release import engine
from dphmm.release.moment import Line
from tests import paper
from tests.crash import world
from tests.crash.postgres import running_server
from tests.crash.world import ask, release, same, terms
from tests.older_store import make_older
from tests.stopping import stop_at


def release_once(path):
    store = Store.open(str(path))
    try:
        release(store, "person1", 1, 4)
    finally:
        store.close()


def release_for_many(store):
    for person in range(100):
        release(store, f"person{person}", 1, 4)


DAMAGE = {
    "UPDATE people SET spent = '0'": "the answers cost 1, written as spent is 0",
    "UPDATE people SET budget = '1/2'": "which is over the budget of 1/2",
    "DELETE FROM answers": "without a gap",
    "UPDATE answers SET epsilon = '1/2'": "the answers cost 1/2, written as spent is 1",
    "UPDATE answers SET number = 2": "without a gap",
    "UPDATE answers SET time = 2": "is at 1, before its last answer",
    "UPDATE standings SET time = 0": "before its last answer",
    "UPDATE standings SET query = 'other'": "is another line's",
    "UPDATE standings SET content = law": "cannot be read",
    "DELETE FROM standings": "there are answers but no standing",
}


@pytest.mark.parametrize(("damage", "problem"), DAMAGE.items())
def test_verify_sees_every_kind_of_damage(store_url, damage, problem):
    store = Store.open(store_url)
    release(store, "anna", 1, 4)
    assert find_problems(store) == []
    if store.database.dialect == "postgresql":
        damage = damage.replace("content = law", "content = convert_to(law, 'UTF8')")
    else:
        damage = damage.replace("content = law", "content = CAST(law AS BLOB)")
    with store.database.transaction() as transaction:
        transaction.rows(damage)
    assert any(problem in found for found in find_problems(store))
    store.close()


def test_an_error_in_the_middle_of_a_release_leaves_nothing(store_url, monkeypatch):
    store = Store.open(store_url)
    release(store, "anna", 1, 4)
    monkeypatch.setattr("dphmm.books.writing.Standing.to_bytes", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        release(store, "anna", 2, 4)
    monkeypatch.undo()
    assert store.places([Line("", "anna", "state")])[0].latest == 1
    assert find_problems(store) == []
    assert not release(store, "anna", 2, 4)[1]
    store.close()


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_store_is_refused_and_not_changed(tmp_path, version):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    connection.execute(f"INSERT INTO facts VALUES ('version', '{version}'), ('secret', '00ff')")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="made by an earlier dphmm, whose times were relative"):
        Store.open(str(path))


def test_a_new_store_knows_its_version(store):
    facts = inspect(store)
    assert (facts["version"], facts["people"]) == (VERSION, 0)


def test_an_older_store_goes_on_from_where_its_lines_stand(tmp_path):
    """Version 3 did not write down from where a line had adopted its law."""
    query = Query(paper.VALUES)
    first, second = (
        Scenario(query, world.MODEL, policy, epsilon=1, start=0)
        for policy in (world.POLICY, PolicyGraph.complete(6))
    )
    store = Store.open(tmp_path / "old.db")
    first.stream("ann", book=store, time=0).release(1)
    assert len(list(adopt_terms(store, second.terms, same_states=True))) == 1
    second.stream("ann", book=store).release(3)
    with store.database.transaction() as transaction:
        make_older(transaction, 3)
    store.close()
    store = Store.open(tmp_path / "old.db")
    ann = second.stream("ann", book=store)
    assert (ann.time, ann.said) == (2, [])
    ann.release(3)
    assert [one.time for one in second.stream("ann", book=store).said] == [3]
    store.close()


def test_a_store_of_the_future_is_refused(tmp_path):
    store = Store.open(str(tmp_path / "new.db"))
    with store.database.transaction() as transaction:
        transaction.rows("UPDATE facts SET value = '99' WHERE name = 'version'")
    store.close()
    with pytest.raises(StoreError, match=f"has version 99, this dphmm knows up to {VERSION}"):
        Store.open(str(tmp_path / "new.db"))


def test_a_file_that_is_no_store_is_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be looked at as one " * 20)
    with pytest.raises(StoreError, match="is not a store; choose another file"):
        Store.open(str(text))
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE something (x)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="another program's database"):
        Store.open(str(tmp_path / "other.db"))
    with pytest.raises(StoreError, match="must stand in a folder that exists"):
        Store.open(str(tmp_path / "nowhere" / "store.db"))
    with pytest.raises(StoreError, match="does not exist; a release makes it"):
        Store.open(str(tmp_path / "none.db"), create=False)
    with pytest.raises(ArgumentError, match="url must be a path"):
        Store.open("mysql://host/name")


@pytest.mark.parametrize(
    "url", ["", ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "file::memory:"]
)
def test_a_store_that_is_no_file_is_refused(url):
    """An unset variable in a script would let every run answer every moment again."""
    with pytest.raises(ArgumentError, match="url must be the path of a file, got none"):
        Store.open(url)


def test_a_folder_or_a_pipe_is_no_store_and_keeps_its_rights(tmp_path):
    """`--store .` took the right to enter the folder from everybody, its owner included."""
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir(mode=0o755)
    os.mkfifo(pipe, 0o644)
    for path in (folder, pipe):
        before = path.stat().st_mode
        with pytest.raises(StoreError, match="must be a file, got something else"):
            Store.open(path)
        assert path.stat().st_mode == before


@pytest.mark.parametrize("url", ["a\0b", "\ud800", "sqlite:///\ud800"])
def test_a_store_whose_name_no_file_can_have_is_refused(url):
    with pytest.raises(ArgumentError, match="url must name a file, got str"):
        Store.open(url)


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "store.db"
    store = Store.open(str(path))
    for person in range(40):
        release(store, f"person{person}", 1, 4)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged; restore it from a backup"):
        release_once(path)


def test_a_locked_store_says_so(tmp_path):
    path = str(tmp_path / "store.db")
    store = Store.open(path)
    store.database = Sqlite(path, busy_seconds=0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="is locked by another program; try again"):
        release(store, "anna", 1, 4)
    holder.execute("ROLLBACK")
    holder.close()
    assert not release(store, "anna", 1, 4)[1]
    store.close()


def test_a_full_disk_loses_nothing(tmp_path):
    store = Store.open(str(tmp_path / "store.db"))
    release(store, "anna", 1, 4)
    connection = store.database._connection()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="has no room left on its disk"):
        release_for_many(store)
    assert find_problems(store) == []
    assert release(store, "anna", 1, 4)[1]
    store.close()


def test_a_read_only_store_says_so(tmp_path):
    path = str(tmp_path / "store.db")
    store = Store.open(path)
    store.database._connection().execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="cannot be written; check the rights"):
        release(store, "anna", 1, 4)
    store.close()


def test_what_is_said_after_a_stop_in_a_transaction_is_no_part_of_it(store_url):
    """A transaction in another one is a savepoint, and gone with it."""
    with closing(Store.open(store_url)) as store, closing(Store.open(store_url)) as other:
        release(store, "anna", 1, 4)
        store.database._connection().execute("BEGIN")
        release(store, "anna", 2, 4)
        assert other.ledger("anna").spent == 2


def test_a_store_that_is_stopped_anywhere_says_nothing_that_it_does_not_hold(store_url):
    """Ctrl-C or the handler of a signal: the next answer is durable, and waits for nobody."""
    parts, line = ("books/database.py", "books/watching.py", "psycopg/transaction.py"), 0
    with closing(Store.open(store_url)) as store, closing(Store.open(store_url)) as other:
        release(store, "anna", 1, 4)
        while True:
            line += 1
            found = stop_at(line, partial(release, store, "anna", 2 * line, 4), parts)
            release(other, "berta", line, 4)  # no lock is left
            first, _ = release(store, "anna", 2 * line, 3)
            again, repeated = release(other, "anna", 2 * line, 3)
            assert repeated, line
            assert same(first, again), line
            if not found:
                break
        assert line > 10
        assert find_problems(store) == []


@pytest.mark.postgres
def test_a_server_that_stops_and_starts_again_is_found_again():
    with running_server() as server:
        store = Store.open(server.new_database())
        first, _ = release(store, "anna", 1, 4)
        server.stop("immediate")
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be reached; start the server"):
                release(store, "anna", 2, 4)
        server.start()
        assert same(release(store, "anna", 1, 4)[0], first)
        assert not release(store, "anna", 2, 4)[1]
        assert find_problems(store) == []
        store.close()


@pytest.mark.postgres
def test_an_error_never_shows_the_password_of_the_address():
    database = connect("postgresql://user:hush@127.0.0.1:1/name")
    assert isinstance(database, Postgres)
    with pytest.raises(StoreError) as refused, database.transaction():
        pass
    assert "hush" not in str(refused.value)
    assert "127.0.0.1:1/name" in str(refused.value)


def test_the_memory_of_standings_is_bounded(store_url, monkeypatch):
    monkeypatch.setattr("dphmm.books.reading.REMEMBERED_STATES", 3 * world.QUERY.n_states)
    store = Store.open(store_url)
    for time in (1, 2):
        for person in range(8):
            assert not release(store, f"person{person}", time, 4)[1]
        assert len(store._kept) == 3
    assert find_problems(store) == []
    store.close()


def test_the_store_marks_what_an_experiment_drew(store):
    release(store, "anna", 1, 4, randomness=SeededRandomness(np.random.default_rng(1)))
    again, repeated = release(store, "anna", 1, 4)
    assert repeated
    assert not again.private


def test_asks_together_are_answered_as_if_alone(store):
    given = terms(limit=2)
    asks = [
        ask("bert", 1, 4, given),
        ask("anna", 1, 4, given),
        ask("anna", 1, 2, given),
        ask("anna", 2, 5, given),
        ask("anna", 3, 5, given),
        ask("carl", 0, 4, given),
        ask("dora", 1, 4, given, create=False),
        ask("bert", 2, 3, given),
    ]
    answered = engine.release(store, asks)
    kinds = [type(one.faults[0]).__name__ if one.faults else bool(one.repeated) for one in answered]
    assert kinds == [
        False,
        False,
        True,
        False,
        "BudgetError",
        "ArgumentError",
        "NotFoundError",
        False,
    ]
    assert same(answered[1].release(0), answered[2].release(0))
    assert store.people() == ["anna", "bert"]
    assert store.ledger("bert").spent == 2
    assert engine.release(store, []) == []


def test_asks_together_are_lost_together_when_the_store_fails(store_url, monkeypatch):
    store = Store.open(store_url)

    def fail(*_):
        raise StoreError("the store failed")

    monkeypatch.setattr("dphmm.books.writing.Standing.to_bytes", fail)
    asks = [ask(f"person{number}", 1, 4) for number in range(4)]
    with pytest.raises(StoreError, match="the store failed"):
        engine.release(store, asks)
    assert store.people() == []
    monkeypatch.undo()
    assert [one.repeated for one in engine.release(store, asks)] == 4 * [0]
    assert find_problems(store) == []
    store.close()


def test_another_secret_of_the_tombstones_is_refused(tmp_path):
    """Under another one nobody erased is found again: their slots and budgets would be new."""
    path = str(tmp_path / "a.db")
    Store.open(path, secret=b"one").close()
    for wrong in (b"two", None):
        with pytest.raises(StoreError, match="names erased people by another secret"):
            Store.open(path, secret=wrong)
    Store.open(path, secret=b"one").close()
