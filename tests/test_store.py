"""The store: every moment has one answer, every answer is in the ledger."""

from __future__ import annotations

import contextlib
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphmm import ArgumentError, BudgetError
from dphmm.books import Store, export, find_problems
from dphmm.books.database import Sqlite
from dphmm.books.scenarios import add_scenario, find_scenario, list_scenarios
from dphmm.books.schema import TABLES
from dphmm.errors import NotFoundError
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release.moment import Line
from dphmm.release.stream import Stream
from tests.crash.world import PAPER, release, same, terms

# Paper


KEY = KeyedRandomness(b"k" * 32)


def test_a_stream_goes_on_from_the_store_as_it_would_have_in_memory(store_url):
    straight = PAPER.resume(Stream, PAPER.begin("", "anna", 1), KEY)
    for time, state in ((1, 4), (2, 5), (3, 5), (6, 3)):
        store = Store.open(store_url)  # a new process every time, as far as the store can tell
        kept, _ = release(store, "anna", time, state, randomness=KEY)
        store.close()
        straight.skip(time - straight.time - 1)
        assert same(kept, straight.release(state))
    store = Store.open(store_url)
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


def test_a_time_in_the_past_that_was_not_answered_is_refused(store):
    release(store, "anna", 5, 4)
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "anna", 3, 4)
    with pytest.raises(ArgumentError, match="time must be within"):
        release(store, "anna", 10**9, 4)
    assert store.places([Line("", "anna", "state")])[0].latest == 5


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 300, "a\0b", " ann", "ann "])
def test_a_name_must_be_printable_and_without_blanks_around_it(store, name):
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


def test_what_is_stored_is_a_function_of_the_answers_alone(store_url, tmp_path, monkeypatch):
    """Different true states that happen to draw the same answers leave the same rows."""
    monkeypatch.setattr(
        "dphmm.noise.mechanism.Mechanism.sample_lattice", lambda *_: np.array([2, 1])
    )
    monkeypatch.setattr("dphmm.books.store.token_bytes", bytes)  # the salts
    monkeypatch.setattr("dphmm.books.sealing.token_bytes", bytes)  # what tells commits apart
    held = []
    for place, states in ((store_url, (2, 4, 4)), (str(tmp_path / "second.db"), (1, 3, 5))):
        store = Store.open(place)
        for time, state in enumerate(states, start=1):
            release(store, "anna", time, state)
            release(store, "anna", time, 0)
        with store.database.transaction(write=False) as transaction:
            held.append(
                [transaction.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES[1:]]
            )
        store.close()
    assert repr(held[0]).replace("(", "[") == repr(held[1]).replace("(", "[")


def test_erasing_deletes_answers_and_keeps_the_slot_and_the_price(store, store_url):
    given = terms(limit=3)
    first, _ = release(store, "anna-of-the-hills", 4, 4, given)
    release(store, "bert", 1, 4, given)
    stone = store.erase("anna-of-the-hills")
    assert (stone.spent, stone.times) == (1, {"state": 4})
    assert store.people() == ["bert"]
    assert "anna-of-the-hills" not in "".join(export(store))
    if isinstance(store.database, Sqlite):
        held = b"".join(path.read_bytes() for path in Path(store_url).parent.iterdir())
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
        assert str(stone.budget) == "2"
        store.begin("anna")
        if time == 2:
            release(store, "anna", time, 4)
    with pytest.raises(BudgetError):
        release(store, "anna", 3, 4)
    with pytest.raises(ArgumentError, match="budget must stay"):
        store.begin("anna", budget=9)


def test_nobody_who_read_a_person_before_they_were_erased_can_commit_afterwards(store_url):
    slow, quick = Store.open(store_url), Store.open(store_url)
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


def test_two_servers_cannot_release_for_one_person_at_once(store_url):
    """Two stores, as two processes have them; each believes its own memory at first."""
    stores = [Store.open(store_url), Store.open(store_url)]
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
