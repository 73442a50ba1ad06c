"""The store: every moment has one answer, every answer is in the ledger."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphmm import ArgumentError, BudgetError, MarkovModel, StoreError
from dphmm.books import Store, export, find_problems, inspect
from dphmm.books.database import Postgres, Sqlite, connect
from dphmm.books.scenarios import add_scenario, find_scenario, list_scenarios
from dphmm.books.schema import VERSION
from dphmm.errors import NotFoundError
from dphmm.geometry.query import Query
from dphmm.noise.randomness import KeyedRandomness, SeededRandomness
from dphmm.release import engine
from dphmm.release.book import KeyInUse
from dphmm.release.moment import Line
from tests import paper
from tests.crash import world
from tests.crash.postgres import running_server
from tests.crash.world import PAPER, ask, release, terms

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
    assert find_problems(store) == []
    store.close()


def release_once(path):
    store = Store.open(str(path))
    try:
        release(store, "person1", 1, 4)
    finally:
        store.close()


def release_for_many(store):
    for person in range(100):
        release(store, f"person{person}", 1, 4)


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


KEY = KeyedRandomness(b"k" * 32)


def test_a_stream_goes_on_from_the_store_as_it_would_have_in_memory(url):
    straight = PAPER.stream(PAPER.begin("", "anna", 1), randomness=KEY)
    for time, state in ((1, 4), (2, 5), (3, 5), (6, 3)):
        store = Store.open(url)  # a new process every time, as far as the store can tell
        kept, _ = release(store, "anna", time, state, randomness=KEY)
        store.close()
        straight.skip(time - straight.time - 1)
        assert same(kept, straight.release(state))
    store = Store.open(url)
    assert store.ledger("anna").entries == straight.ledger.entries
    (place,) = store.places([straight.line])
    assert place.standing.to_bytes() == straight.standing.to_bytes()
    store.close()


# Laws


def test_asking_again_gives_the_stored_answer_whatever_state_is_sent(store):
    first, repeated = release(store, "anna", 1, 2)
    assert not repeated
    for state in (2, 4, 0, 5):
        again, repeated = release(store, "anna", 1, state, epsilon=3)
        assert repeated
        assert same(first, again)
    assert store.ledger("anna").spent == 1


MODEL = MarkovModel(np.roll(paper.TRANSITION, 1, axis=0))
OTHERS = {
    "policy": terms(plan=world.PLAN.replace(repair=None)),
    "model": terms(model=MODEL),
    "epsilon": terms(epsilon="1/2"),
    "lattice": terms(plan=world.PLAN.replace(query=Query(paper.VALUES, step="1/2"))),
}


@pytest.mark.parametrize("changed", OTHERS)
def test_a_changed_scenario_gets_the_old_answer_and_never_a_new_one(store, changed):
    first, _ = release(store, "anna", 1, 2)
    again, repeated = release(store, "anna", 1, 5, OTHERS[changed])
    assert repeated
    assert again.lattice.tolist() == first.lattice.tolist()
    assert store.ledger("anna").spent == 1
    if changed == "epsilon":  # a price is no law: the next slot simply costs less
        release(store, "anna", 2, 5, OTHERS[changed])
        assert store.ledger("anna").spent == Fraction(3, 2)
        return
    with pytest.raises(ArgumentError, match="continue under the new one with: dphmm ledger adopt"):
        release(store, "anna", 2, 5, OTHERS[changed])
    assert store.ledger("anna").spent == 1
    release(store, "anna", 2, 5)


def test_a_question_of_another_shape_under_an_old_name_is_refused(store):
    release(store, "anna", 1, 2)
    flat = terms(plan=world.PLAN.replace(query=Query([1, 2, 3, 4, 5, 6])))
    with pytest.raises(ArgumentError, match="query must be the one that was answered"):
        release(store, "anna", 1, 2, flat)


def test_a_question_that_was_answered_beside_another_is_not_answered_again(store):
    """`release_also` writes an answer without a line of its own."""
    from tests.scenarios import paper_scenario

    town = paper_scenario()
    ann = town.stream("ann", book=store, time=0)
    ann.release(4)
    beside = ann.release_also(4, Query(paper.VALUES, name="beside"))
    given = terms(query="beside", origin=None)
    again, repeated = release(store, "ann", 1, 2, given)
    assert repeated
    assert again.lattice.tolist() == beside.lattice.tolist()
    store.erase("ann")
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "ann", 1, 2, given)


def test_a_time_in_the_past_that_was_not_answered_is_refused(store):
    release(store, "anna", 5, 4)
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "anna", 3, 4)
    with pytest.raises(ArgumentError, match="time must be within"):
        release(store, "anna", 10**9, 4)
    assert store.places([Line("", "anna", "state")])[0].latest == 5


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 300, "a\0b"])
def test_a_name_must_be_printable(store, name):
    with pytest.raises(ArgumentError, match="person must be 1 to 200 printable"):
        release(store, name, 1, 4)
    with pytest.raises(ArgumentError, match="client must be letters, digits and dashes"):
        release(store, "anna", 1, 4, client="a/b")


def test_a_budget_spans_questions_and_a_refusal_changes_nothing(store):
    here, there = terms("here"), terms("there", epsilon="3/4")
    store.begin("anna", budget=2)
    release(store, "anna", 1, 4, here)
    release(store, "anna", 1, 4, there)
    with pytest.raises(BudgetError) as refused:
        release(store, "anna", 2, 4, there)
    assert (refused.value.spent, refused.value.remaining) == (Fraction(7, 4), Fraction(1, 4))
    assert store.places([Line("", "anna", "there")])[0].latest == 1
    release(store, "anna", 2, 4, there, epsilon="1/4")
    assert store.ledger("anna").remaining == 0


def test_the_lower_of_the_persons_and_the_scenarios_limit_counts(store):
    store.begin("anna", budget=5)
    release(store, "anna", 1, 4, terms(limit=1))
    with pytest.raises(BudgetError):
        release(store, "anna", 2, 4, terms(limit=1))


def test_a_budget_is_set_once(store):
    store.begin("anna", budget=5)
    store.begin("anna", budget=5)
    with pytest.raises(ArgumentError, match="budget must stay"):
        store.begin("anna", budget=6)


def test_a_wrong_state_is_refused_without_a_trace_of_it(store):
    with pytest.raises(ArgumentError) as refused:
        release(store, "anna", 1, 77)
    assert "77" not in str(refused.value)
    assert store.people() == []


def test_what_is_stored_is_a_function_of_the_answers_alone(url, tmp_path, monkeypatch):
    """Different true states that happen to draw the same answers leave the same rows."""
    monkeypatch.setattr("dphmm.noise.mechanism.Mechanism.sample", lambda *_: np.array([2, 1]))
    tables = ("scenarios", "people", "standings", "answers", "adoptions", "tombstones", "keys")
    held = []
    for place, states in ((url, (2, 4, 4)), (str(tmp_path / "second.db"), (1, 3, 5))):
        store = Store.open(place)
        for time, state in enumerate(states, start=1):
            release(store, "anna", time, state)
            release(store, "anna", time, 0)
        with store.database.transaction(write=False) as transaction:
            held.append([transaction.rows(f"SELECT * FROM {table}") for table in tables])
        store.close()
    assert repr(held[0]).replace("(", "[") == repr(held[1]).replace("(", "[")


def test_erasing_deletes_answers_and_keeps_the_slot_and_the_price(store, url):
    given = terms(limit=3)
    first, _ = release(store, "anna-of-the-hills", 4, 4, given)
    release(store, "bert", 1, 4, given)
    stone = store.erase("anna-of-the-hills")
    assert (stone.spent, stone.times) == (1, {"state": 4})
    assert store.people() == ["bert"]
    assert "anna-of-the-hills" not in "".join(export(store))
    if isinstance(store.database, Sqlite):
        held = b"".join(path.read_bytes() for path in Path(url).parent.iterdir())
        assert b"anna-of-the-hills" not in held
        assert b"bert" in held
    with pytest.raises(NotFoundError):
        store.ledger("anna-of-the-hills")
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "anna-of-the-hills", 4, 4, given)
    release(store, "anna-of-the-hills", 5, 4, given)
    assert store.ledger("anna-of-the-hills").spent == first.epsilon + 1
    stone = store.erase("anna-of-the-hills")
    assert (stone.spent, stone.times) == (2, {"state": 5})
    release(store, "anna-of-the-hills", 6, 4, given)
    with pytest.raises(BudgetError):
        release(store, "anna-of-the-hills", 7, 4, given)


def test_erasing_keeps_the_budget(store):
    store.begin("anna", budget=2)
    release(store, "anna", 1, 4)
    for time in (2, 3):
        stone = store.erase("anna")
        assert stone.budget == 2
        store.begin("anna")
        if time == 2:
            release(store, "anna", time, 4)
    with pytest.raises(BudgetError):
        release(store, "anna", 3, 4)
    with pytest.raises(ArgumentError, match="budget must stay"):
        store.begin("anna", budget=9)


def test_nobody_who_read_a_person_before_they_were_erased_can_commit_afterwards(url):
    slow, quick = Store.open(url), Store.open(url)
    slow.begin("anna")
    commit = slow.commit

    def commit_late(*arguments):
        slow.commit = commit
        release(quick, "anna", 5, 2)
        quick.erase("anna")
        commit(*arguments)

    slow.commit = commit_late
    with pytest.raises(ArgumentError, match="time must come after"):
        release(slow, "anna", 5, 4)
    assert find_problems(slow) == []
    slow.close()
    quick.close()


def test_tombstones_cannot_be_guessed_without_the_secret(tmp_path):
    names = []
    for number in range(2):
        store = Store.open(str(tmp_path / f"{number}.db"))
        release(store, "anna", 1, 4)
        store.erase("anna")
        with store.database.transaction(write=False) as transaction:
            names += transaction.rows("SELECT person FROM tombstones")
        store.close()
    assert names[0] != names[1]


def test_a_store_goes_on_with_its_own_key_only(store, url):
    first, _ = release(store, "anna", 1, 4, randomness=KEY)
    other = KeyedRandomness(b"o" * 32)
    for wrong in (other, None):
        for time in (1, 2):
            with pytest.raises(ArgumentError, match="key must be the one"):
                release(store, "anna", time, 4, randomness=wrong)
    second = Store.open(url)
    with pytest.raises(ArgumentError, match="key must be the one"):
        release(second, "anna", 2, 4, randomness=other)
    # Rotated by another process while this one has the old key in memory.
    second.use_key(KeyInUse(other.fingerprint, 2, rotated=True))
    with pytest.raises(ArgumentError, match="key must be the one"):
        release(store, "anna", 2, 4, randomness=KEY)
    again, repeated = release(store, "anna", 1, 4, randomness=other)
    assert repeated
    assert same(first, again)
    release(store, "anna", 2, 4, randomness=other)
    second.close()


def test_a_store_without_a_key_is_not_continued_with_one(store):
    release(store, "anna", 1, 4)
    with pytest.raises(ArgumentError, match="key must be the one"):
        release(store, "anna", 2, 4, randomness=KEY)


def test_two_clients_never_share_their_noise(store):
    """One key, one law, the same names, slots and states: equal answers are a coincidence."""
    found = {
        client: [
            tuple(release(store, "anna", time, 4, randomness=KEY, client=client)[0].lattice)
            for time in range(1, 41)
        ]
        for client in ("", "red", "blue")
    }
    for one, two in (("", "red"), ("red", "blue")):
        equal = sum(a == b for a, b in zip(found[one], found[two], strict=True))
        assert equal < 10  # shared noise would give 40; the likeliest point has less than 1/10


def test_clients_do_not_share_people(store):
    release(store, "anna", 1, 4, client="red")
    with pytest.raises(NotFoundError):
        store.answers(Line("blue", "anna", "state"))
    with pytest.raises(NotFoundError):
        release(store, "anna", 1, 4, client="blue", create=False)
    assert not release(store, "anna", 1, 4, client="blue")[1]
    assert store.people(client="red") == store.people(client="blue") == ["anna"]


def test_scenarios_are_kept_by_client(store):
    assert add_scenario(store, "abc", "text", client="red")
    assert not add_scenario(store, "abc", "other", client="red")
    assert find_scenario(store, "abc", client="red") == "text"
    with pytest.raises(NotFoundError):
        find_scenario(store, "abc", client="blue")
    assert list_scenarios(store, client="red") == ["abc"]


def test_threads_that_ask_for_the_same_moment_get_the_same_answer(store):
    answers = []

    def ask_all(state):
        for time in range(1, 11):
            try:
                answers.append(release(store, "anna", time, state))
            except ArgumentError:  # another thread was faster by more than one step
                continue

    threads = [threading.Thread(target=ask_all, args=(state,)) for state in (2, 4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_time = {}
    for answer in answers:
        by_time.setdefault(answer[0].time, []).append(answer)
    assert sorted(by_time) == list(range(1, 11))
    for found in by_time.values():
        assert sum(not repeated for _, repeated in found) == 1
        assert len({tuple(answer.lattice.tolist()) for answer, _ in found}) == 1
    assert store.ledger("anna").spent == 10


def test_two_servers_cannot_release_for_one_person_at_once(url):
    """Two stores, as two processes have them; each believes its own memory at first."""
    stores = [Store.open(url), Store.open(url)]
    for time in range(1, 9):
        first, _ = release(stores[time % 2], "anna", time, 4)
        again, repeated = release(stores[(time + 1) % 2], "anna", time, 5)
        assert repeated
        assert same(first, again)
    assert find_problems(stores[0]) == []
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
    given, store = terms(limit=4), Store.open(path)
    said, latest, spent = {}, {}, {}
    for move, person, time, state in moves:
        if move == "reopen":
            store.close()
            store = Store.open(path)
        elif move == "begin":
            store.begin(person)
            assert store.places([Line("", person, "state")])[0].latest == latest.get(person)
        elif move == "erase":
            with contextlib.suppress(NotFoundError):
                store.erase(person)
            said = {moment: kept for moment, kept in said.items() if moment[0] != person}
        else:
            try:
                answer, repeated = release(store, person, time, state, given)
            except BudgetError:
                assert spent[person] == 4
            except ArgumentError:
                assert time <= latest[person]
                assert (person, time) not in said
            else:
                assert repeated == ((person, time) in said)
                if repeated:
                    assert same(said[person, time], answer)
                else:
                    assert time > latest.get(person, 0)
                    said[person, time] = answer
                    latest[person] = time
                    spent[person] = spent.get(person, 0) + 1
        assert find_problems(store) == []
    store.close()


# Faults


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
def test_verify_sees_every_kind_of_damage(url, damage, problem):
    store = Store.open(url)
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


def test_an_error_in_the_middle_of_a_release_leaves_nothing(url, monkeypatch):
    store = Store.open(url)
    release(store, "anna", 1, 4)
    monkeypatch.setattr("dphmm.books.rows.Standing.to_bytes", lambda *_: 1 / 0)
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


def test_a_store_of_the_future_is_refused(tmp_path):
    store = Store.open(str(tmp_path / "new.db"))
    with store.database.transaction() as transaction:
        transaction.rows("UPDATE facts SET value = '99' WHERE name = 'version'")
    store.close()
    with pytest.raises(StoreError, match="has version 99, this dphmm knows up to 3"):
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


def test_the_memory_of_standings_is_bounded(url, monkeypatch):
    monkeypatch.setattr("dphmm.books.store.REMEMBERED_STATES", 3 * world.QUERY.n_states)
    store = Store.open(url)
    for time in (1, 2):
        for person in range(8):
            assert not release(store, f"person{person}", time, 4)[1]
        assert len(store._standings) == 3
    assert find_problems(store) == []
    store.close()


def test_the_store_marks_what_an_experiment_drew(store):
    release(store, "anna", 1, 4, randomness=SeededRandomness(np.random.default_rng(1)))
    again, repeated = release(store, "anna", 1, 4)
    assert repeated
    assert not again.private


def test_a_release_takes_few_statements(store, monkeypatch):
    """One transaction that reads, one that writes; the key is not read in one of its own."""
    release(store, "anna", 1, 4)
    begun = []
    transaction = store.database.transaction
    monkeypatch.setattr(
        store.database,
        "transaction",
        lambda write=True: (begun.append(write), transaction(write))[1],
    )
    release(store, "anna", 2, 4)
    assert begun == [False, True]


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


def test_asks_together_are_lost_together_when_the_store_fails(url, monkeypatch):
    store = Store.open(url)

    def fail(*_):
        raise StoreError("the store failed")

    monkeypatch.setattr("dphmm.books.rows.Standing.to_bytes", fail)
    asks = [ask(f"person{number}", 1, 4) for number in range(4)]
    with pytest.raises(StoreError, match="the store failed"):
        engine.release(store, asks)
    assert store.people() == []
    monkeypatch.undo()
    assert [one.repeated for one in engine.release(store, asks)] == 4 * [0]
    assert find_problems(store) == []
    store.close()
