"""The store: every moment has one answer, every answer is in the ledger."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphmm import ArgumentError, BudgetError, StoreError, Stream
from dphmm.books import Request, Rules, Store, exported, inspected, problems
from dphmm.books.database import Postgres, Sqlite, connect
from dphmm.books.schema import FIRST, VERSION, statements
from dphmm.errors import NotFoundError
from tests.crash import world
from tests.crash.postgres import running_server

BACKENDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(scope="module")
def server():
    with running_server() as server:
        yield server


@pytest.fixture(params=BACKENDS)
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("server").new_database()


@pytest.fixture
def store(url):
    store = Store.open(url)
    yield store
    assert problems(store) == []
    store.close()


def release_once(path):
    store = Store.open(str(path))
    try:
        store.release(world.rules(), "person1", 1, 4)
    finally:
        store.close()


def release_for_many(store):
    for person in range(100):
        store.release(world.rules(), f"person{person}", 1, 4)


def same(first, second):
    return (
        first.time == second.time
        and first.lattice.tolist() == second.lattice.tolist()
        and first.answer.tolist() == second.answer.tolist()
        and first.estimate.tolist() == second.estimate.tolist()
        and first.epsilon == second.epsilon
        and first.statement == second.statement
        and first.private == second.private
    )


# Paper


def test_a_stream_goes_on_from_the_store_as_it_would_have_in_memory(url):
    key = b"k" * 32
    rules = world.rules(key=key)
    straight = rules.begin("/anna")
    for time, state in ((1, 4), (2, 5), (3, 5), (6, 3)):
        store = Store.open(url)  # a new process every time, as far as the store can tell
        kept = store.release(rules, "anna", time, state).release
        store.close()
        straight.skip(time - straight.time - 1)
        assert same(kept, straight.release(state))
    store = Store.open(url)
    assert store.stream(rules, "anna").smoothed() == pytest.approx(straight.smoothed(), abs=1e-12)
    assert store.ledger("anna").entries == straight.ledger.entries
    store.close()


# Laws


def test_asking_again_gives_the_stored_answer_whatever_state_is_sent(store):
    rules = world.rules()
    first = store.release(rules, "anna", 1, 2)
    assert not first.repeated
    for state in (2, 4, 0, 5, 99):
        again = store.release(rules, "anna", 1, state, epsilon=3)
        assert again.repeated
        assert same(first.release, again.release)
    assert store.ledger("anna").spent == 1


def test_a_time_in_the_past_that_was_not_answered_is_refused(store):
    rules = world.rules()
    store.release(rules, "anna", 5, 4)
    with pytest.raises(ArgumentError, match=r"time must be 6 to .* got 3"):
        store.release(rules, "anna", 3, 4)
    with pytest.raises(ArgumentError, match="time must be 6 to"):
        store.release(rules, "anna", 10**9, 4)
    assert store.time(rules, "anna") == 5


@pytest.mark.parametrize("time", [0, -1, True, 1.0, "1", 2**60])
def test_a_time_must_be_a_whole_number(store, time):
    with pytest.raises(ArgumentError, match="time must"):
        store.release(world.rules(), "anna", time, 4)


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 300, "a\0b"])
def test_a_name_must_be_printable(store, name):
    with pytest.raises(ArgumentError, match="person must be 1 to 200 printable"):
        store.release(world.rules(), name, 1, 4)
    with pytest.raises(ArgumentError, match="client must be letters, digits and dashes"):
        store.release(world.rules(), "anna", 1, 4, client="a/b")


def test_a_budget_spans_scenarios_and_a_refusal_changes_nothing(store):
    here, there = world.rules("here"), world.rules("there", epsilon="3/4")
    store.begin(here, "anna", budget=2)
    store.release(here, "anna", 1, 4)
    store.release(there, "anna", 1, 4)
    with pytest.raises(BudgetError) as refused:
        store.release(there, "anna", 2, 4)
    assert (refused.value.spent, refused.value.remaining) == (Fraction(7, 4), Fraction(1, 4))
    assert store.time(there, "anna") == 1
    store.release(there, "anna", 2, 4, epsilon="1/4")
    assert store.ledger("anna").remaining == 0


def test_the_lower_of_the_persons_and_the_scenarios_limit_counts(store):
    rules = world.rules(limit=1)
    store.begin(rules, "anna", budget=5)
    store.release(rules, "anna", 1, 4)
    with pytest.raises(BudgetError):
        store.release(rules, "anna", 2, 4)


def test_a_budget_is_set_once(store):
    rules = world.rules()
    store.begin(rules, "anna", budget=5)
    store.begin(rules, "anna", budget=5)
    with pytest.raises(ArgumentError, match="budget must stay"):
        store.begin(rules, "anna", budget=6)


def test_a_wrong_state_is_refused_without_a_trace_of_it(store):
    rules = world.rules()
    with pytest.raises(ArgumentError) as refused:
        store.release(rules, "anna", 1, 77)
    assert "77" not in str(refused.value)
    assert store.people() == []


def test_what_is_stored_is_a_function_of_the_answers_alone(url, tmp_path, monkeypatch):
    """Different true states that happen to draw the same answers leave the same rows."""
    monkeypatch.setattr("dphmm.noise.mechanism.Mechanism.sample", lambda *_: np.array([2, 1]))
    tables = ("scenarios", "people", "streams", "releases", "ledger", "tombstones", "keys")
    held = []
    for place, states in ((url, (2, 4, 4)), (str(tmp_path / "second.db"), (1, 3, 5))):
        store = Store.open(place)
        for time, state in enumerate(states, start=1):
            store.release(world.rules(), "anna", time, state)
            store.release(world.rules(), "anna", time, 0)
        with store.database.transaction(write=False) as transaction:
            held.append([transaction.rows(f"SELECT * FROM {table}") for table in tables])
        store.close()
    assert repr(held[0]).replace("(", "[") == repr(held[1]).replace("(", "[")


def test_erasing_deletes_releases_and_keeps_the_moment_and_the_price(store, url):
    rules = world.rules(limit=3)
    first = store.release(rules, "anna-of-the-hills", 4, 4)
    store.release(rules, "bert", 1, 4)
    buried = store.erase("anna-of-the-hills")
    assert buried.scenarios == {"paper": (4, Fraction(1))}
    assert store.people() == ["bert"]
    assert "anna-of-the-hills" not in "".join(exported(store))
    if isinstance(store.database, Sqlite):
        import pathlib

        held = b"".join(path.read_bytes() for path in pathlib.Path(url).parent.iterdir())
        assert b"anna-of-the-hills" not in held
        assert b"bert" in held
    with pytest.raises(NotFoundError):
        store.ledger("anna-of-the-hills")
    with pytest.raises(ArgumentError, match="time must be 5 to"):
        store.release(rules, "anna-of-the-hills", 4, 4)
    store.release(rules, "anna-of-the-hills", 5, 4)
    assert store.ledger("anna-of-the-hills").spent == first.release.epsilon + 1
    assert store.erase("anna-of-the-hills").scenarios == {"paper": (5, Fraction(2))}
    store.release(rules, "anna-of-the-hills", 6, 4)
    with pytest.raises(BudgetError):
        store.release(rules, "anna-of-the-hills", 7, 4)


def test_tombstones_cannot_be_guessed_without_the_secret(tmp_path):
    names = []
    for number in range(2):
        store = Store.open(str(tmp_path / f"{number}.db"))
        store.release(world.rules(), "anna", 1, 4)
        store.erase("anna")
        with store.database.transaction(write=False) as transaction:
            names += transaction.rows("SELECT person FROM tombstones")
        store.close()
    assert names[0] != names[1]


def test_clients_do_not_share_people(store):
    rules = world.rules()
    store.release(rules, "anna", 1, 4, client="red")
    with pytest.raises(NotFoundError):
        store.releases(rules, "anna", client="blue")
    with pytest.raises(NotFoundError):
        store.release(rules, "anna", 1, 4, client="blue", create=False)
    assert not store.release(rules, "anna", 1, 4, client="blue").repeated
    assert store.people(client="red") == store.people(client="blue") == ["anna"]


def test_scenarios_are_kept_by_client(store):
    assert store.add_scenario("abc", "text", client="red")
    assert not store.add_scenario("abc", "other", client="red")
    assert store.scenario("abc", client="red") == "text"
    with pytest.raises(NotFoundError):
        store.scenario("abc", client="blue")
    assert store.scenarios(client="red") == ["abc"]


def test_threads_that_ask_for_the_same_moment_get_the_same_answer(store):
    rules = world.rules()
    answers = []

    def ask(state):
        for time in range(1, 11):
            try:
                answers.append(store.release(rules, "anna", time, state))
            except ArgumentError:  # another thread was faster by more than one step
                continue

    threads = [threading.Thread(target=ask, args=(state,)) for state in (2, 4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_time = {}
    for answer in answers:
        by_time.setdefault(answer.release.time, []).append(answer)
    assert sorted(by_time) == list(range(1, 11))
    for found in by_time.values():
        assert sum(not answer.repeated for answer in found) == 1
        assert len({tuple(answer.release.lattice.tolist()) for answer in found}) == 1
    assert store.ledger("anna").spent == 10


def test_two_servers_cannot_release_for_one_person_at_once(url):
    """Two stores, as two processes have them; each believes its own memory at first."""
    stores, rules = [Store.open(url), Store.open(url)], world.rules()
    for time in range(1, 9):
        first = stores[time % 2].release(rules, "anna", time, 4)
        again = stores[(time + 1) % 2].release(rules, "anna", time, 5)
        assert again.repeated
        assert same(first.release, again.release)
    assert problems(stores[0]) == []
    for store in stores:
        store.close()


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["release", "erase", "reopen", "begin"]),
        st.sampled_from(["anna", "bert"]),
        st.integers(1, 6),
        st.integers(0, 5),
    ),
    max_size=12,
)


# Oracle


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_any_sequence_of_requests_agrees_with_a_dictionary(moves, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("moves") / "store.db")
    rules, store = world.rules(limit=4), Store.open(path)
    said, latest, spent = {}, {}, {}
    for move, person, time, state in moves:
        if move == "reopen":
            store.close()
            store = Store.open(path)
        elif move == "begin":
            assert store.begin(rules, person) == latest.get(person, 0)
        elif move == "erase":
            with contextlib.suppress(NotFoundError):
                store.erase(person)
            said = {moment: kept for moment, kept in said.items() if moment[0] != person}
        else:
            try:
                answer = store.release(rules, person, time, state)
            except BudgetError:
                assert spent[person] == 4
            except ArgumentError:
                assert time <= latest[person]
                assert (person, time) not in said
            else:
                assert answer.repeated == ((person, time) in said)
                if answer.repeated:
                    assert same(said[person, time], answer.release)
                else:
                    assert time > latest.get(person, 0)
                    said[person, time] = answer.release
                    latest[person] = time
                    spent[person] = spent.get(person, 0) + 1
        assert problems(store) == []
    store.close()


# Faults


DAMAGE = {
    "UPDATE people SET spent = '0'": "sums to 1, written as spent is 0",
    "DELETE FROM ledger": "is not in the ledger",
    "DELETE FROM releases": "has no release",
    "UPDATE ledger SET epsilon = '1/2'": "is not in the ledger",
    "UPDATE ledger SET number = 2": "without a gap",
    "UPDATE streams SET time = 0": "stands at 0, before time 1",
    "DELETE FROM streams": "have no stream",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_sees_every_kind_of_damage(url, damage):
    store = Store.open(url)
    store.release(world.rules(), "anna", 1, 4)
    assert problems(store) == []
    with store.database.transaction() as transaction:
        transaction.rows(damage)
    assert any(DAMAGE[damage] in problem for problem in problems(store))
    store.close()


def test_an_error_in_the_middle_of_a_release_leaves_nothing(url, monkeypatch):
    store, rules = Store.open(url), world.rules()
    store.release(rules, "anna", 1, 4)
    monkeypatch.setattr("dphmm.books.store.write_entry", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.release(rules, "anna", 2, 4)
    monkeypatch.undo()
    assert store.time(rules, "anna") == 1
    assert problems(store) == []
    assert not store.release(rules, "anna", 2, 4).repeated
    store.close()


def test_a_stream_of_another_person_or_scenario_is_refused(store):
    def begin(person):
        return world.rules().begin("somebody")

    with pytest.raises(ArgumentError, match="begin must make a stream for the person"):
        store.release(Rules("paper", world.QUERY, begin), "anna", 1, 4)


def test_an_old_store_is_migrated_and_keeps_what_it_holds(tmp_path):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    for statement in statements(FIRST, "sqlite"):
        connection.execute(statement)
    connection.execute("INSERT INTO facts VALUES ('version', '1'), ('secret', '00ff')")
    connection.execute("INSERT INTO people VALUES (1, '', 'anna', NULL, '0', '0', 0)")
    connection.commit()
    connection.close()
    store = Store.open(str(path))
    assert store.people() == ["anna"]
    assert inspected(store)["version"] == VERSION == 2
    assert inspected(store)["keys"] == 0
    store.release(world.rules(), "anna", 1, 4)
    assert problems(store) == []
    store.close()


def test_a_store_of_the_future_is_refused(tmp_path):
    store = Store.open(str(tmp_path / "new.db"))
    with store.database.transaction() as transaction:
        transaction.rows("UPDATE facts SET value = '99' WHERE name = 'version'")
    store.close()
    with pytest.raises(StoreError, match="has version 99, this dphmm knows up to 2"):
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


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "store.db"
    store = Store.open(str(path))
    for person in range(40):
        store.release(world.rules(), f"person{person}", 1, 4)
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
        store.release(world.rules(), "anna", 1, 4)
    holder.execute("ROLLBACK")
    holder.close()
    assert not store.release(world.rules(), "anna", 1, 4).repeated
    store.close()


def test_a_full_disk_loses_nothing(tmp_path):
    store, rules = Store.open(str(tmp_path / "store.db")), world.rules()
    store.release(rules, "anna", 1, 4)
    connection = store.database._connection()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="has no room left on its disk"):
        release_for_many(store)
    assert problems(store) == []
    assert store.release(rules, "anna", 1, 4).repeated
    store.close()


def test_a_read_only_store_says_so(tmp_path):
    path = str(tmp_path / "store.db")
    store = Store.open(path)
    store.database._connection().execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="cannot be written; check the rights"):
        store.release(world.rules(), "anna", 1, 4)
    store.close()


@pytest.mark.postgres
def test_a_server_that_stops_and_starts_again_is_found_again():
    with running_server() as server:
        store, rules = Store.open(server.new_database()), world.rules()
        first = store.release(rules, "anna", 1, 4)
        server.stop("immediate")
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be reached; start the server"):
                store.release(rules, "anna", 2, 4)
        server.start()
        assert same(store.release(rules, "anna", 1, 4).release, first.release)
        assert not store.release(rules, "anna", 2, 4).repeated
        assert problems(store) == []
        store.close()


@pytest.mark.postgres
def test_an_error_never_shows_the_password_of_the_address():
    database = connect("postgresql://user:hush@127.0.0.1:1/name")
    assert isinstance(database, Postgres)
    with pytest.raises(StoreError) as refused, database.transaction():
        pass
    assert "hush" not in str(refused.value)
    assert "127.0.0.1:1/name" in str(refused.value)


def test_the_memory_of_streams_is_bounded(store, monkeypatch):
    monkeypatch.setattr("dphmm.books.store.REMEMBERED_STATES", 3 * world.QUERY.n_states)
    for person in range(8):
        store.release(world.rules(), f"person{person}", 1, 4)
    assert len(store._streams) == 3
    for person in range(8):
        assert not store.release(world.rules(), f"person{person}", 2, 5).repeated


def test_the_store_marks_what_an_experiment_drew(store):
    def begin(person):
        return Stream(
            world.MODEL,
            world.POLICY,
            world.QUERY,
            epsilon=1,
            start=0,
            person=person,
            scenario="experiment",
            experiment_rng=np.random.default_rng(1),
        )

    rules = Rules("experiment", world.QUERY, begin)
    store.release(rules, "anna", 1, 4)
    assert not store.release(rules, "anna", 1, 4).release.private


def test_requests_together_are_answered_as_if_alone(store):
    rules = world.rules(limit=2)
    requests = [
        Request(rules, "bert", 1, 4),
        Request(rules, "anna", 1, 4),
        Request(rules, "anna", 1, 2),
        Request(rules, "anna", 2, 5),
        Request(rules, "anna", 3, 5),
        Request(rules, "carl", 1, 99),
        Request(rules, "carl", 0, 4),
        Request(rules, "dora", 1, 4, create=False),
        Request(rules, "bert", 2, 3),
    ]
    answers = store.release_all(requests)
    assert "4" not in repr(requests[0]).split(" at ")[0]
    kinds = [type(a).__name__ if isinstance(a, Exception) else a.repeated for a in answers]
    assert kinds == [
        False,
        False,
        True,
        False,
        "BudgetError",
        "ArgumentError",
        "ArgumentError",
        "NotFoundError",
        False,
    ]
    assert same(answers[1].release, answers[2].release)
    assert store.people() == ["anna", "bert"]
    assert store.ledger("bert").spent == 2
    assert store.release_all([]) == []


def test_requests_together_are_lost_together_when_the_store_fails(url, monkeypatch):
    store, rules = Store.open(url), world.rules()

    def fail(*_):
        raise StoreError("the store failed")

    written = store._write_stream
    calls = []

    def third_fails(*arguments):
        calls.append(arguments)
        return fail() if len(calls) == 3 else written(*arguments)

    monkeypatch.setattr(store, "_write_stream", third_fails)
    requests = [Request(rules, f"person{number}", 1, 4) for number in range(4)]
    with pytest.raises(StoreError, match="the store failed"):
        store.release_all(requests)
    assert store.people() == []
    monkeypatch.undo()
    assert [answer.repeated for answer in store.release_all(requests)] == 4 * [False]
    assert problems(store) == []
    store.close()
