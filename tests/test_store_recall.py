"""What a store remembers of its own commits serves for what is committed, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from dphmm import ArgumentError, BudgetError, StoreError
from dphmm.books import Store
from dphmm.books.keeping import lower_budgets
from dphmm.errors import NotFoundError
from dphmm.release import engine
from dphmm.release.moment import Line
from tests.crash import world
from tests.crash.world import PAPER, ask, release, same, terms


@pytest.fixture
def other(store: Store, store_url: str) -> Iterator[Store]:
    """Another server's view of the same store; both remember somebody."""
    release(store, "ann", 1, 2)
    assert store.recall(Line("", "ann", "state")) is not None
    second = Store.open(store_url)
    yield second
    second.close()


@contextmanager
def counting_reads(store: Store) -> Iterator[list[bool]]:
    """The transactions of a store, whether each writes."""
    begun, seen = store.database.transaction, []

    def transaction(write: bool = True):
        seen.append(write)
        return begun(write)

    store.database.transaction = transaction
    try:
        yield seen
    finally:
        store.database.transaction = begun


def test_one_row_after_another_is_one_transaction_each(store):
    release(store, "ann", 1, 2)
    release(store, "ann", 1, 2, terms(query="beside"))
    with counting_reads(store) as seen:
        for time in range(2, 5):
            release(store, "ann", time, 2)
            release(store, "ann", time, 2, terms(query="beside"))
    assert seen == 6 * [True]
    assert store.ledger("ann").spent == 8


def test_what_another_server_answered_is_repeated_and_not_answered_again(store, other):
    elsewhere, _ = release(other, "ann", 2, 4)
    again, repeated = release(store, "ann", 2, 5)
    assert repeated
    assert same(elsewhere, again)
    release(other, "ann", 4, 4)
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "ann", 3, 4)
    release(store, "ann", 5, 4)
    assert store.ledger("ann").spent == 4


def test_servers_that_take_turns_never_answer_from_what_only_they_remember(store, other):
    said = {}
    for time in range(2, 12):
        one, two = (store, other) if time % 2 else (other, store)
        said[time], repeated = release(one, "ann", time, 3)
        assert not repeated
        again, repeated = release(two, "ann", time, 1)
        assert repeated
        assert same(said[time], again)
    assert store.ledger("ann").spent == 11


def test_a_law_that_was_adopted_elsewhere_is_not_refused_from_memory(store, other):
    changed = terms(plan=world.PLAN.replace(repair=None))
    standing = store.places([Line("", "ann", "state")])[0].standing
    with pytest.raises(ArgumentError, match="dphmm ledger adopt"):
        release(store, "ann", 2, 3, changed)
    other.adopt(replace(standing, law=changed.law))
    release(store, "ann", 2, 3, changed)
    with pytest.raises(ArgumentError, match="dphmm ledger adopt"):
        release(store, "ann", 3, 3)


def test_a_budget_that_was_set_elsewhere_counts_at_once(store, other):
    other.begin("ann", budget=2)
    release(store, "ann", 2, 3)
    with pytest.raises(BudgetError):
        release(store, "ann", 3, 3)


def test_a_budget_that_was_lowered_elsewhere_counts_at_once(store, other):
    lower_budgets(other, to=1)
    with pytest.raises(BudgetError):
        release(store, "ann", 2, 3)


def test_somebody_who_was_erased_elsewhere_is_not_known_from_memory(store, other):
    other.erase("ann")
    with pytest.raises(NotFoundError):
        release(store, "ann", 2, 3, create=False)
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "ann", 1, 3)
    release(store, "ann", 2, 3)
    assert store.ledger("ann").spent == 2


def test_what_is_judged_is_looked_up(store, other):
    release(other, "ann", 2, 4)
    assert engine.judge(store, ask("ann", 2, 3)).verdicts.tolist() == [1]
    assert engine.judge(store, ask("ann", 3, 3)).verdicts.tolist() == [0]


def test_a_way_that_only_memory_finds_long_is_walked(store, other):
    """The other server has gone most of it meanwhile."""
    release(other, "ann", 900, 4)
    steps = 2 * (PAPER.model.n_states + 400)
    (answered,) = engine.release(store, [ask("ann", 901, 3)], most=steps)
    assert answered.release(0).time == 901
    (answered,) = engine.release(store, [ask("ann", 1800, 3)], most=steps)
    with pytest.raises(engine.LongWayError):
        answered.release(0)


def test_a_store_with_an_anchor_answers_nothing_from_memory(tmp_path):
    store = Store.open(tmp_path / "a.db", anchor=tmp_path / "anchor")
    release(store, "ann", 1, 2)
    assert store.recall(Line("", "ann", "state")) is None
    release(store, "ann", 2, 2)
    store.close()


def test_a_store_that_was_anchored_elsewhere_is_refused_from_memory_too(tmp_path):
    store = Store.open(tmp_path / "a.db")
    release(store, "ann", 1, 2)
    Store.open(tmp_path / "a.db", anchor=tmp_path / "anchor").close()
    with pytest.raises(StoreError, match="recovered or anchored meanwhile"):
        release(store, "ann", 2, 2)
    store.close()
