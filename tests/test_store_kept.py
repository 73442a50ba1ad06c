"""Nothing is forgotten: chains, roots, anchors, copies, recovery and retention of a store."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import stat
import threading
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dphmm import ArgumentError, BudgetError, StoreError
from dphmm.books import Store, find_problems, inspect
from dphmm.books.copying import backup, restore
from dphmm.books.database import Sqlite
from dphmm.books.keeping import expire, lower_budgets, recover
from dphmm.books.schema import MIGRATIONS, TABLES, VERSION, statements
from dphmm.books.sealing import MODULUS, Seals, total
from dphmm.errors import NotFoundError
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release.moment import Line
from dphmm.release.standing import Standing
from tests.crash.postgres import running_server
from tests.crash.world import release, same, terms

FIXTURE = Path(__file__).parent / "stores" / "version5.sql"
KEY = KeyedRandomness(b"k" * 32)


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.postgres)])
def anchor(request, tmp_path):
    """Where a store's roots may be kept, for one server and for several."""
    if request.param == "file":
        return str(tmp_path / "anchor")
    return request.getfixturevalue("postgres_server").new_database()


def freeze(path):
    """A copy of a file of SQLite with its log, as a disk's snapshot has it."""
    files = {name: Path(path + name) for name in ("", "-wal")}
    return {name: file.read_bytes() for name, file in files.items() if file.exists()}


def thaw(path, copy):
    for name in ("", "-wal", "-shm"):
        Path(path + name).unlink(missing_ok=True)
    for name, content in copy.items():
        Path(path + name).write_bytes(content)


# Laws: erasing never lifts a budget nor opens a slot


def test_an_erased_person_who_is_made_known_again_has_the_budget_that_was_left(store):
    """Finding 1: budget 2, two releases, DELETE, PUT without a body."""
    store.begin("anna", budget=2)
    for slot in (1, 2):
        release(store, "anna", slot, 4)
    store.erase("anna")
    store.begin("anna")
    for slot in (3, 4, 5):
        with pytest.raises(BudgetError):
            release(store, "anna", slot, 4)
    assert (store.ledger("anna").spent, str(store.ledger("anna").limit)) == (2, "2")


def test_a_tombstone_keeps_a_hash_prices_slots_and_the_head_and_nothing_else(store):
    store.begin("anna", budget=5)
    release(store, "anna", 4, 4)
    stone = store.erase("anna")
    held = rows_of(store)
    assert [held[table] for table in ("people", "answers", "standings")] == [[], [], []]
    hashed = store.hash_name("anna")
    kept = (hashed, "1", "5", '{"state": 4}', 3, '{"state": ""}', stone.head, 0)
    assert held["tombstones"] == [kept]


def test_whoever_comes_back_goes_on_with_the_chain(store):
    release(store, "anna", 1, 4)
    head = store.erase("anna").head
    release(store, "anna", 2, 4)
    assert find_problems(store) == []
    again = store.erase("anna").head
    assert len({bytes(32), head, again}) == 3


def test_a_closed_tombstone_opens_neither_slots_nor_budgets(store):
    store.begin("anna", budget=2)
    for slot in (1, 2):
        release(store, "anna", slot, 4)
    release(store, "bert", 7, 4)
    assert expire(store, people={"": 5}) == (1, 0)
    assert store.people() == ["bert"]
    assert expire(store, tombstones={"": 2}) == (0, 0)  # the last slot is not before 2
    assert expire(store, tombstones={"s": 10**12}) == (0, 0)  # its slots are no dates
    assert expire(store, tombstones={"": 3}) == (0, 1)
    with store.database.transaction(write=False) as transaction:
        (row,) = transaction.rows("SELECT spent, budget, times, clocks, closed FROM tombstones")
    assert tuple(row) == ("0", None, "{}", "{}", 1)
    for slot in (1, 2, 3, 10**6):
        with pytest.raises(ArgumentError, match="time must come after"):
            release(store, "anna", slot, 4)
    with pytest.raises(ArgumentError, match="nothing is answered for that name again"):
        store.begin("anna")
    assert expire(store, tombstones={"": 99}) == (0, 0)


def test_a_window_that_was_full_when_somebody_was_erased_is_full_when_they_come_back(store):
    given = terms(limit="2 per 4 steps")
    for slot in (1, 2):
        release(store, "anna", slot, 4, given)
    store.erase("anna")
    for slot in (3, 4, 5):
        with pytest.raises(BudgetError):
            release(store, "anna", slot, 4, given)
    release(store, "anna", 6, 4, given)


# Laws: verify finds what was planted


def a_full_store(url, **options):
    store = Store.open(url, **options)
    store.begin("anna", budget=5)
    for slot in (1, 2, 4):
        release(store, "anna", slot, 4)
    for person in ("bert", "carl"):
        release(store, person, 1, 2)
    store.erase("carl")
    assert find_problems(store) == []
    return store


PLANTED = {
    "UPDATE people SET spent = '9' WHERE name = 'anna'": "which is over the budget of 5",
    "UPDATE people SET budget = '50' WHERE name = 'anna'": "roots: ",
    "UPDATE people SET salt = head WHERE name = 'anna'": "the chain does not lead",
    "UPDATE answers SET lattice = '[7, 7]' WHERE time = 2": "the chain does not lead",
    "UPDATE answers SET statement = 'nothing' WHERE time = 2": "the chain does not lead",
    "UPDATE tombstones SET spent = '0'": "roots: ",
    "UPDATE tombstones SET budget = '1/2'": "which is over the budget of 0.5",
    "DELETE FROM tombstones": "roots: ",
    "UPDATE roots SET seals = (SELECT seals FROM roots WHERE number = 15) WHERE number = 0": (
        "roots: "
    ),
}


@pytest.mark.parametrize(("fault", "problem"), PLANTED.items())
def test_verify_finds_a_planted_fault(store_url, fault, problem):
    with closing(a_full_store(store_url)) as store:
        with store.database.transaction() as transaction:
            transaction.rows(fault)
        assert any(problem in found for found in find_problems(store))


def test_verify_finds_a_belief_that_was_zeroed_with_a_checksum_of_its_own(store_url):
    with closing(a_full_store(store_url)) as store:
        (place,) = store.places([Line("", "anna", "state")])
        zeroed = Standing.from_bytes(place.standing.to_bytes())
        zeroed.belief.probabilities.setflags(write=True)
        zeroed.belief.probabilities[:] = 0
        with store.database.transaction() as transaction:
            transaction.rows(
                "UPDATE standings SET content = ? WHERE person = 1", (zeroed.to_bytes(),)
            )
        assert any("not those that were written last" in one for one in find_problems(store))


def test_verify_finds_an_end_that_was_cut_so_that_everything_adds_up(store_url):
    """The end of one person as it was: answers, standing, prices, chain and all."""
    store = Store.open(store_url)
    columns = "spent, entries, commits, head, marks"
    release(store, "anna", 1, 4)
    with store.database.transaction(write=False) as transaction:
        person = transaction.row(f"SELECT {columns} FROM people")
        standing = transaction.row("SELECT time, content FROM standings")
    release(store, "anna", 2, 4)
    with store.database.transaction() as transaction:
        sets = ", ".join(f"{name} = ?" for name in columns.split(", "))
        transaction.rows(f"UPDATE people SET {sets}", person)
        transaction.rows("UPDATE standings SET time = ?, content = ?", standing)
        transaction.rows("DELETE FROM answers WHERE time = 2")
    (problem,) = find_problems(store)
    assert problem.startswith("roots: ")
    store.close()


# Laws: roots


def test_the_sum_of_the_roots_does_not_depend_on_who_took_which(store):
    changes = [random.Random(n).randrange(-MODULUS, MODULUS) for n in range(5)]
    for change in changes:
        with store.database.transaction() as transaction:
            before = total(transaction)
            Seals(transaction, change).write_root()
            assert (total(transaction) - before - change) % MODULUS == 0
    with store.database.transaction() as transaction:  # and as it was
        Seals(transaction, -sum(changes)).write_root()


@pytest.mark.postgres
def test_servers_that_commit_at_once_take_different_roots(postgres_server):
    store = Store.open(postgres_server.new_database())
    with store.database.transaction() as transaction:
        assert Seals(transaction).write_root()[0] == 0
        taken = []
        other = threading.Thread(target=lambda: taken.append(_take_root(store)))
        other.start()
        other.join(5)
        assert taken == [1]
    assert find_problems(store) == []
    store.close()


def _take_root(store):
    with store.database.transaction() as transaction:
        return Seals(transaction).write_root()[0]


# Laws: anchors


def test_an_old_copy_answers_nothing_until_it_is_recovered(tmp_path, anchor):
    old_copy_is_refused(tmp_path, anchor, runs=3)


@pytest.mark.slow
def test_a_hundred_old_copies_answer_nothing_until_they_are_recovered(tmp_path, anchor):
    old_copy_is_refused(tmp_path, anchor, runs=100)


def old_copy_is_refused(tmp_path, anchor, runs):
    """Releases, budgets, erasures, at a random one a copy; more of them, and the copy is back."""
    choose = random.Random(11)
    path, slot, refused = str(tmp_path / "store.db"), 0, 0
    for _ in range(runs):
        store = Store.open(path, anchor=anchor)
        for person in "abc":
            store.begin(person, budget=f"3 per 2 steps, {10**4} in all")
        copied = choose.randrange(4)
        for step in range(5):
            slot += 1
            said = {p: release(store, p, slot, choose.randrange(6))[0] for p in "abc"}
            if choose.random() < 0.3:
                store.erase(choose.choice("abc"))
                slot += 2  # all that was spent counts at the last slot, until no window holds it
            if step == copied:
                copy = freeze(path) if choose.random() < 0.5 else None
                if copy is None:
                    saved = tmp_path / "saved.db"
                    saved.unlink(missing_ok=True)
                    backup(store, saved)
                    copy = {"": saved.read_bytes()}
        store.close()
        thaw(path, copy)
        back = Store.open(path, anchor=anchor)
        for person in "abc":
            with pytest.raises(StoreError, match="is behind its anchor: it is an old copy"):
                release(back, person, slot, 4)
            refused += 1
        assert any(one.startswith("anchor: ") for one in find_problems(back))
        with pytest.raises(StoreError, match="behind"):
            back.begin("new")
        recover(back, {"": slot + 1})
        for person in "abc":
            with pytest.raises(ArgumentError, match="time must come after"):
                release(back, person, slot, 4)
        slot += 1
        assert not any(release(back, p, slot, 4)[1] for p in "abc")
        assert find_problems(back) == []
        assert len(said) == 3
        back.close()
    assert refused == 3 * runs


def known(store):
    """What the store's anchor knows of it."""
    return store.witness.anchor.read(store.witness.store)


def refused(path, slot, match, **options):
    """A release that is refused, as a server would ask for it."""
    with closing(Store.open(path, **options)) as store:
        assert any(one.startswith("anchor: ") for one in find_problems(store))
        with pytest.raises(StoreError, match=match):
            release(store, "anna", slot, 4)


def test_a_file_without_its_log_is_behind(tmp_path, anchor):
    path = str(tmp_path / "store.db")
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "anna", 1, 4)
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "anna", 2, 4)
        copy = freeze(path)
    assert len(copy["-wal"])
    thaw(path, {"": copy[""]})
    refused(path, 2, "is behind its anchor", anchor=anchor)


@pytest.mark.postgres
def test_a_store_on_postgresql_that_went_back_is_refused_while_servers_run(
    postgres_server, tmp_path
):
    """A fail-over to a standby that was behind: the server's connections are new, it is not."""
    url, anchor = postgres_server.new_database(), postgres_server.new_database()
    servers = [Store.open(url, anchor=anchor) for _ in range(2)]
    release(servers[0], "anna", 1, 4)
    saved = tmp_path / "saved.db"
    backup(servers[0], saved)
    release(servers[1], "anna", 2, 4)
    roll_back(url, saved)
    for server in servers:  # the first has not seen the second's commit, its anchor has
        with pytest.raises(StoreError, match="is behind its anchor"):
            release(server, "anna", 2, 5)
    recover(servers[0], {"": 3})
    with pytest.raises(StoreError, match="another epoch"):
        release(servers[1], "anna", 3, 4)
    assert not release(servers[0], "anna", 3, 4)[1]
    assert find_problems(servers[0]) == []
    for server in servers:
        server.close()


def roll_back(url, saved):
    """Put the rows of a copy into the tables that are there."""
    with (
        closing(Store.open(url)) as store,
        closing(Sqlite(str(saved))) as source,
        store.database.transaction() as write,
        source.transaction(write=False) as read,
    ):
        for table in reversed(TABLES):
            write.rows(f"DELETE FROM {table}")
        for table in TABLES:
            names = [r[0] for r in read.rows("SELECT name FROM pragma_table_info(?)", (table,))]
            own = " OVERRIDING SYSTEM VALUE" if store.database.dialect != "sqlite" else ""
            into = f"INSERT INTO {table} ({', '.join(names)}){own} VALUES "
            rows = read.rows(f"SELECT {', '.join(names)} FROM {table}")
            write.many(into + f"({', '.join('?' * len(names))})", rows)


def test_a_server_that_runs_sees_without_an_anchor_that_its_store_went_back(store_url, tmp_path):
    store = Store.open(store_url)
    release(store, "anna", 1, 4)
    backup(store, tmp_path / "saved.db")
    release(store, "anna", 2, 4)
    roll_back(store_url, tmp_path / "saved.db")
    with pytest.raises(StoreError, match="is behind what this server has seen of it"):
        release(store, "anna", 2, 5)
    assert store.ledger("anna").spent == 1
    store.close()


def test_a_commit_is_anchored_before_it_is_said_also_by_somebody_else(
    store_url, anchor, monkeypatch
):
    first = Store.open(store_url, anchor=anchor)
    second = Store.open(store_url, anchor=anchor)
    release(first, "anna", 1, 4)
    before = known(first)

    def fail(*_):
        raise StoreError("the anchor cannot be written")

    monkeypatch.setattr(first.witness.anchor, "lift", fail)
    with pytest.raises(StoreError, match="the anchor cannot be written"):
        release(first, "anna", 2, 4)
    assert known(first) == before
    with pytest.raises(StoreError, match="the anchor cannot be written"):
        release(first, "anna", 2, 4)  # it is committed, and not said again before it is anchored
    _, repeated = release(second, "anna", 2, 5)
    assert repeated
    after = known(first)
    assert sum(root.commits for root in after.roots.values()) > sum(
        root.commits for root in before.roots.values()
    )
    assert second.is_current()
    monkeypatch.undo()
    assert release(first, "anna", 2, 4)[1]
    first.close()
    second.close()


def test_another_process_opens_the_store_with_all_that_it_needs(store_url, anchor):
    with closing(Store.open(store_url, anchor=anchor, secret=b"s" * 32)) as store:
        first, _ = release(store, "anna", 1, 4)
        with closing(store.open_again()) as other:
            assert same(release(other, "anna", 1, 5)[0], first)
            release(other, "anna", 2, 4)
            other.erase("anna")
        with pytest.raises(ArgumentError, match="time must come after"):
            release(store, "anna", 2, 4)


def test_a_store_with_an_anchor_is_not_used_without_it(tmp_path, anchor):
    path = str(tmp_path / "store.db")
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "anna", 1, 4)
    with closing(Store.open(path)) as bare:
        with pytest.raises(StoreError, match="has an anchor and cannot be used without it"):
            release(bare, "anna", 2, 4)
        with pytest.raises(StoreError, match="has an anchor"):
            bare.erase("anna")
    refused(path, 2, "the anchor does not know the store", anchor=str(tmp_path / "other"))
    with closing(Store.open(tmp_path / "second.db", anchor=str(tmp_path / "second"))) as second:
        release(second, "anna", 1, 4)
    refused(path, 2, "is another store's", anchor=str(tmp_path / "second"), create=False)
    with closing(Store.open(path, anchor=anchor)) as store:
        assert not release(store, "anna", 2, 4)[1]


def test_a_store_does_not_need_an_anchor_that_could_never_be_written(tmp_path):
    path = str(tmp_path / "store.db")
    Store.open(path).close()
    for place in ("no-such-folder/anchor", "store.db/anchor"):
        with pytest.raises(StoreError, match="cannot be"):
            Store.open(path, anchor=str(tmp_path / place))
    with closing(Store.open(path)) as store:
        release(store, "anna", 1, 4)
    with closing(Store.open(path, anchor=str(tmp_path / "anchor"))) as store:
        release(store, "anna", 2, 4)


def test_a_copy_from_before_the_anchor_is_of_another_epoch(tmp_path, anchor):
    path = str(tmp_path / "store.db")
    with closing(Store.open(path)) as store:
        release(store, "anna", 1, 4)
    copy = freeze(path)
    with closing(Store.open(path, anchor=anchor)) as store:
        release(store, "anna", 2, 4)
    thaw(path, copy)
    with closing(Store.open(path)) as store:  # it went on for longer than what was lost
        for slot in range(2, 9):
            release(store, "anna", slot, 4)
    refused(path, 9, "of another epoch", anchor=anchor)


def test_a_store_that_was_given_up_does_not_come_back(tmp_path, anchor):
    path = str(tmp_path / "store.db")
    store = Store.open(path, anchor=anchor)
    release(store, "anna", 1, 4)
    old = freeze(path)
    for slot in range(2, 9):
        release(store, "anna", slot, 4)
    store.close()
    lost = freeze(path)
    thaw(path, old)
    with closing(Store.open(path, anchor=anchor)) as store:
        recover(store, {"": 10})
    thaw(path, lost)
    refused(path, 10, "of another epoch", anchor=anchor)


def test_a_torn_anchor_is_read_as_it_was_before(tmp_path):
    anchor = tmp_path / "anchor"
    path = str(tmp_path / "store.db")
    with closing(Store.open(path, anchor=anchor)) as store:
        for slot in (1, 2, 3):
            release(store, "anna", slot, 4)
        content = bytearray(anchor.read_bytes())
        whole = known(store)
        turns = [json.loads(content[at + 65 : at + 4096])["turn"] for at in (0, 4096)]
        torn = 4096 * turns.index(max(turns))
        content[torn + 100 : torn + 120] = bytes(20)
        anchor.write_bytes(content)
        before = known(store)
        assert before.count(0) == whole.count(0) - 1
        assert not release(store, "anna", 4, 4)[1]
        assert store.is_current()
    anchor.write_bytes(b"something else")
    with pytest.raises(StoreError, match="is damaged or no anchor"):
        Store.open(path, anchor=anchor)


def test_threads_and_an_anchor_do_not_refuse_each_other(store_url, anchor):
    stores = [Store.open(store_url, anchor=anchor) for _ in range(2)]
    faults = []

    def work(number):
        try:
            for slot in range(1, 9):
                release(stores[number % 2], f"p{number}", slot, 4)
                release(stores[(number + 1) % 2], f"p{number}", slot, 4)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert find_problems(stores[0]) == []
    assert stores[0].is_current()
    for store in stores:
        store.close()


# Laws: recovery and budgets


def test_recovery_needs_a_time_of_every_kind_that_the_store_has(store):
    with pytest.raises(ArgumentError, match="not_before must be a time"):
        recover(store, {})
    release(store, "anna", 5, 4)
    with pytest.raises(ArgumentError, match="not_before must be a number"):
        recover(store, {"s": 10**9})
    recover(store, {"": 7})
    recover(store, {"": 3})  # it never goes back
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "anna", 6, 4)
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "new", 6, 4)
    assert not release(store, "new", 7, 4)[1]


def test_budgets_are_lowered_and_never_below_what_was_spent(store):
    store.begin("anna", budget="2 per 3 steps, 9 in all")
    store.begin("bert", budget=3)
    store.begin("carl")
    store.begin("dora", budget=5)
    release(store, "dora", 1, 4)
    store.erase("dora")
    for slot in (1, 2):
        release(store, "bert", slot, 4)
    assert lower_budgets(store, by=2) == 3
    limits = {name: store.ledger(name).limit for name in store.people()}
    assert {name: str(limit) for name, limit in limits.items()} == {
        "anna": "2 per 3 steps, 7 in all",
        "bert": "2",
        "carl": "None",
    }
    with pytest.raises(BudgetError):
        release(store, "bert", 3, 4)
    assert lower_budgets(store, to="1/2", person="carl") == 1
    with pytest.raises(BudgetError):
        release(store, "carl", 3, 4)
    assert lower_budgets(store, to=8, person="anna") == 0
    store.begin("dora")
    assert store.ledger("dora").limit.total == 3
    with pytest.raises(NotFoundError):
        lower_budgets(store, to=1, person="nobody")
    with pytest.raises(ArgumentError, match="to must be given or by must"):
        lower_budgets(store)


# Laws: copies


def test_a_copy_is_the_same_on_either_database(store_url, tmp_path, request):
    with closing(a_full_store(store_url)) as store:
        release(store, "carl", 2, 4)
        backup(store, tmp_path / "copy.db")
        with pytest.raises(StoreError, match="must be a new file"):
            backup(store, tmp_path / "copy.db")
        held = rows_of(store)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == ["copy.db"]
    urls = [str(tmp_path / "again.db")]
    if "postgres" in store_url:
        urls.append(request.getfixturevalue("postgres_server").new_database())
    for url in urls:
        with closing(restore(tmp_path / "copy.db", url)) as back:
            assert rows_of(back) == held
            with pytest.raises(StoreError, match="was restored from a backup and does not know"):
                release(back, "anna", 5, 4)
            recover(back, {"": 6})
            assert not release(back, "anna", 6, 4)[1]
            assert not release(back, "new", 6, 4)[1]
            assert find_problems(back) == []
        with pytest.raises(StoreError, match="must be a new one"):
            restore(tmp_path / "copy.db", url)


def rows_of(store):
    with store.database.transaction(write=False) as transaction:
        return {
            table: [
                tuple(bytes(x) if isinstance(x, memoryview) else x for x in row)
                for row in transaction.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
            ]
            for table in TABLES[1:]
        }


def test_a_backup_that_its_anchor_knows_goes_on_at_once(tmp_path, anchor):
    path = str(tmp_path / "store.db")
    with closing(Store.open(path, anchor=anchor)) as store:
        first, _ = release(store, "anna", 1, 4)
        backup(store, tmp_path / "copy.db")
    thaw(path, {})
    with closing(restore(tmp_path / "copy.db", path, anchor=anchor)) as back:
        assert same(release(back, "anna", 1, 5)[0], first)
        assert not release(back, "anna", 2, 4)[1]


def test_a_damaged_backup_is_not_restored(tmp_path):
    with closing(a_full_store(str(tmp_path / "store.db"))) as store:
        backup(store, tmp_path / "copy.db")
    connection = sqlite3.connect(tmp_path / "copy.db")
    connection.execute("UPDATE answers SET lattice = '[7, 7]' WHERE time = 2")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="is damaged: /anna: the chain does not lead"):
        restore(tmp_path / "copy.db", tmp_path / "again.db")


# Laws: files


def test_files_are_closed_to_others(tmp_path):
    path = tmp_path / "store.db"
    old = os.umask(0)
    try:
        store = Store.open(path, anchor=tmp_path / "anchor")
        release(store, "anna", 1, 4)
    finally:
        os.umask(old)
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    store.close()
    path.chmod(0o644)
    Store.open(path, anchor=tmp_path / "anchor").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


NAME = "anna-of-the-hills"


def names_in(folder):
    return [path.name for path in folder.iterdir() if NAME.encode() in path.read_bytes()]


def test_a_reader_that_is_open_does_not_keep_the_name(tmp_path):
    path = str(tmp_path / "store.db")
    store = Store.open(path)
    release(store, NAME, 1, 4)
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM people").fetchall()
    threading.Timer(0.5, lambda: reader.execute("ROLLBACK")).start()
    store.erase(NAME)
    assert names_in(tmp_path) == []
    reader.close()
    store.close()


def test_a_reader_that_never_ends_is_named_and_the_log_is_emptied_after_it(tmp_path):
    path = str(tmp_path / "store.db")
    store = Store.open(path)
    release(store, NAME, 1, 4)
    store.close()
    store = Store.open(path)
    store.database = Sqlite(path, busy_seconds=0.05)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM people").fetchall()
    with pytest.raises(StoreError, match="is erased, but somebody else still reads"):
        store.erase(NAME)
    assert store.people() == []
    assert any(one.startswith("log: ") for one in find_problems(store))
    reader.execute("ROLLBACK")
    with closing(Store.open(path)) as other:
        assert find_problems(other) == []
    assert names_in(tmp_path) == []
    reader.close()
    store.close()


# Laws: versions


@pytest.fixture
def old_store(store_url):
    """A store as version 5 wrote it, on either database."""
    source = sqlite3.connect(":memory:")
    source.executescript(FIXTURE.read_text())
    with closing(Store.open(store_url)) as store, store.database.transaction() as transaction:
        for table in reversed(TABLES):
            transaction.rows(f"DROP TABLE {table}")
        for migration in MIGRATIONS[:5]:
            for statement in statements(migration, store.database.dialect):
                transaction.rows(statement)
        for table in TABLES:
            if table in ("roots", "acts"):
                continue
            cursor = source.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            own = " OVERRIDING SYSTEM VALUE" if store.database.dialect == "postgresql" else ""
            transaction.many(
                f"INSERT INTO {table} ({', '.join(names)}){own} "
                f"VALUES ({', '.join('?' * len(names))})",
                cursor.fetchall(),
            )
    source.close()
    return store_url


def test_a_store_of_version_5_goes_on_with_everything_that_it_had(old_store):
    source = sqlite3.connect(":memory:")
    source.executescript(FIXTURE.read_text())
    with closing(Store.open(old_store, create=False)) as store:
        assert inspect(store)["version"] == VERSION
        assert find_problems(store) == []
        with store.database.transaction(write=False) as transaction:
            for sql in (
                "SELECT person, number, query, time, lattice, epsilon FROM answers ORDER BY 1, 2",
                "SELECT id, client, name, budget, carried, spent, entries FROM people ORDER BY id",
                "SELECT person, spent, budget, times, version FROM tombstones ORDER BY 1",
                "SELECT digest, client, scopes, created, revoked FROM keys ORDER BY 1",
                "SELECT client, digest, content FROM scenarios",
            ):
                held = [tuple(row) for row in transaction.rows(sql)]
                assert held == source.execute(sql).fetchall(), sql
        assert store.ledger("anna").spent == Fraction(10, 3)
        assert release(store, "anna", 4, 1, randomness=KEY)[1]
        assert not release(store, "anna", 5, 4, randomness=KEY)[1]
        with pytest.raises(BudgetError):
            release(store, "anna", 6, 4, randomness=KEY)
        with pytest.raises(BudgetError):  # erased at 2 of 2
            release(store, "carl", 3, 4, randomness=KEY)
        with pytest.raises(ArgumentError, match="key must be the one"):
            release(store, "anna", 6, 4)
        stone = store.erase("dora")
        assert (stone.spent, stone.times) == (2, {"state": 2})
        assert find_problems(store) == []
    source.close()


def test_a_server_of_an_older_dphmm_cannot_go_on_with_a_store_that_was_migrated(old_store):
    with closing(Store.open(old_store)) as store:
        with pytest.raises(StoreError), store.database.transaction() as transaction:
            transaction.rows("UPDATE people SET spent = ?, entries = ?, version = ?", ("0", 0, 1))
        assert find_problems(store) == []


def test_a_store_that_was_migrated_under_a_running_server_is_left_alone(store_url):
    store = Store.open(store_url)
    release(store, "anna", 1, 4)
    with store.database.transaction() as transaction:
        transaction.rows("UPDATE facts SET value = '99' WHERE name = 'version'")
    with pytest.raises(StoreError, match="was brought to version 99 meanwhile"):
        release(store, "anna", 2, 4)
    with store.database.transaction(write=False) as transaction:
        assert len(transaction.rows("SELECT * FROM answers")) == 1
    store.close()


# Laws: PostgreSQL says nothing


@pytest.mark.postgres
def test_a_server_that_is_frozen_is_given_up(monkeypatch):
    monkeypatch.setattr("dphmm.books.database.SILENT_SECONDS", 1.0)
    monkeypatch.setattr("dphmm.books.database.BUSY_SECONDS", 2.0)
    with running_server() as server:
        store = Store.open(server.new_database())
        first, _ = release(store, "anna", 1, 4)
        server.freeze()
        begun = time.monotonic()
        for _ in range(2):  # the connection that was there, and a new one
            with pytest.raises(StoreError, match="cannot be reached"):
                release(store, "anna", 2, 4)
        assert time.monotonic() - begun < 30
        server.thaw()
        assert same(release(store, "anna", 1, 4)[0], first)
        release(store, "anna", 2, 4)
        assert find_problems(store) == []
        store.close()


@pytest.mark.postgres
def test_a_statement_that_takes_too_long_is_ended(postgres_server, monkeypatch):
    monkeypatch.setattr("dphmm.books.database.SILENT_SECONDS", 1.0)
    store = Store.open(postgres_server.new_database())
    with (
        pytest.raises(StoreError, match="takes too long"),
        store.database.transaction(write=False) as transaction,
    ):
        transaction.rows("SELECT pg_sleep(30)")
    release(store, "anna", 1, 4)
    store.close()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush@127.0.0.1:1/name",
        "postgresql://127.0.0.1:1/name?user=me&password=hush",
        "postgresql://127.0.0.1:1/name?sslpassword=hush",
        "postgresql://me:hush@127.0.0.1:1/name?hush=nonsense",
    ],
)
def test_no_message_has_the_password_of_an_address(url):
    with pytest.raises((StoreError, ArgumentError)) as refused:
        Store.open(url)
    shown = f"{refused.value!r}{refused.value.__cause__!r}"
    assert "hush" not in str(refused.value)
    assert "password" not in shown
