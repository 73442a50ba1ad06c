"""What an operator does with a store while servers answer: no moment twice, no budget refilled."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from dphmm import ArgumentError, KeyedRandomness
from dphmm.books import Store, find_problems
from dphmm.books import keeping as keeping_module
from dphmm.books import store as store_module
from dphmm.books.changing import adopt_terms, rotate_key
from dphmm.books.keeping import expire, lower_budgets, recover
from dphmm.errors import MovedError
from dphmm.release.moment import Line
from tests.crash.world import PLAN, release, terms

ANNA = Line("", "anna", "state")
FIRST, SECOND = KeyedRandomness(b"1" * 32), KeyedRandomness(b"2" * 32)
WAITED = 1.0
"""Seconds after which somebody is taken to wait for the transaction that is under way."""


@pytest.fixture
def servers(store_url):
    """Two stores of one database, which is sound in the end."""
    with closing(Store.open(store_url)) as store, closing(Store.open(store_url)) as other:
        yield store, other
        assert find_problems(store) == []


def between(monkeypatch, module, name, act, at=1):
    """Let somebody else act after the n-th call of a function, while whoever called it goes on."""
    called, wanted, threads = getattr(module, name), [at], []

    def call(*arguments, **options):
        result = called(*arguments, **options)
        wanted[0] -= 1
        if not wanted[0]:
            threads.append(threading.Thread(target=act))
            threads[0].start()
            threads[0].join(WAITED)
        return result

    monkeypatch.setattr(module, name, call)
    return lambda: threads[0].join()


def come_back_and_leave(store, told):
    def act():
        told.append(release(store, "anna", 5, 4)[0].lattice.tolist())
        store.erase("anna")

    return act


@pytest.mark.parametrize("operate", ["lower", "expire"])
def test_whoever_comes_back_and_leaves_meanwhile_leaves_a_tombstone(servers, monkeypatch, operate):
    store, other = servers
    store.begin("anna", budget=10)
    release(store, "anna", 1, 4)
    store.erase("anna")
    told = []
    wait = between(monkeypatch, keeping_module, "_stones", come_back_and_leave(other, told))
    if operate == "lower":
        lower_budgets(store, to=5)
    else:
        expire(store, tombstones={"": 0})
    wait()
    with pytest.raises(ArgumentError, match="time must come after"):
        told.append(release(store, "anna", 5, 2)[0].lattice.tolist())
    assert len(told) == 1
    release(store, "anna", 6, 2)
    assert store.ledger("anna").spent == 3
    assert operate == "expire" or str(store.ledger("anna").limit) == "5"


def test_whoever_comes_back_twice_at_once_goes_on_from_one_tombstone(servers, monkeypatch):
    store, other = servers
    told = []
    act = come_back_and_leave(other, told)
    wait = between(monkeypatch, store, "_unknown", act, at=2)  # when it looks, and when it commits
    with suppress(ArgumentError):
        told.append(release(store, "anna", 5, 2)[0].lattice.tolist())
    wait()
    assert told
    assert all(answer == told[0] for answer in told)
    release(store, "anna", 6, 2)
    assert store.ledger("anna").spent == 2


def test_a_tombstone_is_not_closed_over_somebody_who_comes_back(servers, monkeypatch):
    store, other = servers
    release(store, "anna", 1, 4)
    store.erase("anna")
    wait = between(monkeypatch, keeping_module, "_stones", lambda: suppressed(other.begin, "anna"))
    expire(store, tombstones={"": 9})
    wait()
    with pytest.raises(ArgumentError):
        release(store, "anna", 1, 2)


def suppressed(act, *arguments):
    with suppress(ArgumentError):
        act(*arguments)


def test_whoever_is_asked_about_meanwhile_is_not_old(servers, monkeypatch):
    store, other = servers
    for time in (1, 2):
        release(store, "anna", time, 4)
    erase = store.erase

    def ask_first(*arguments, **options):
        release(other, "anna", 9, 4)
        return erase(*arguments, **options)

    monkeypatch.setattr(store, "erase", ask_first)
    assert expire(store, people={"": 5}) == (0, 0)
    assert store.people() == ["anna"]
    monkeypatch.undo()
    assert expire(store, people={"": 10}) == (1, 0)


def test_what_was_believed_of_somebody_erased_is_not_adopted(servers):
    store, other = servers
    release(store, "anna", 1, 4)
    (place,) = store.places([ANNA])
    other.erase("anna")
    with pytest.raises(MovedError):
        store.adopt(replace(place.standing, law=b"another"))
    assert store.people() == []


def test_an_answer_that_is_erased_while_it_is_asked_for_again_is_late(servers, monkeypatch):
    store, other = servers
    release(store, "anna", 1, 4)
    find = store.find

    def erase_first(*arguments):
        other.erase("anna")
        return find(*arguments)

    monkeypatch.setattr(store, "find", erase_first)
    with pytest.raises(ArgumentError, match="time must come after"):
        release(store, "anna", 1, 4)


def test_a_law_is_adopted_beside_a_server_that_answers(servers, monkeypatch):
    store, other = servers
    release(store, "anna", 1, 4)
    adopt, changed = store.adopt, terms(plan=PLAN.replace(repair="nearest"))

    def answer_first(standing):
        monkeypatch.undo()
        release(other, "anna", 2, 4)
        adopt(standing)

    monkeypatch.setattr(store, "adopt", answer_first)
    assert list(adopt_terms(store, changed, same_states=True)) == [ANNA]
    release(other, "anna", 3, 4, changed)
    assert store.ledger("anna").spent == 3


def test_a_key_is_rotated_after_the_last_answer_of_a_server_that_runs(servers, monkeypatch):
    store, other = servers
    release(store, "anna", 1, 4, randomness=FIRST)
    release(other, "anna", 2, 4, randomness=FIRST)
    told = []

    def answer():
        with suppress(ArgumentError):  # it has another key by then
            told.append(release(other, "anna", 50, 4, randomness=FIRST))

    wait = between(monkeypatch, store_module, "find_latest", answer)
    key = rotate_key(store, SECOND)
    wait()
    assert not told or key.first == 51


def test_a_key_is_rotated_while_a_backup_reads(servers):
    """Who only reads is not waited for, so nobody waits behind who waits."""
    store, other = servers
    for slot in range(1, 12):  # so often that statements are prepared
        release(store, "anna", slot, 4, randomness=FIRST)
    with other.database.transaction(write=False) as reading:
        before = reading.rows("SELECT value FROM facts WHERE name = 'key'")
        assert rotate_key(store, SECOND).first == 12
        assert reading.rows("SELECT value FROM facts WHERE name = 'key'") == before
    assert release(other, "anna", 12, 4, randomness=SECOND)[0].time == 12


def test_whoever_has_begun_to_write_is_waited_for(servers):
    """With statements that were prepared, too: a lock that only their first run took is none."""
    store, other = servers
    for slot in range(1, 12):
        release(other, "anna", slot, 4, randomness=FIRST)
    key = []
    rotating = threading.Thread(target=lambda: key.append(rotate_key(store, SECOND)))
    with other.writing():
        rotating.start()
        rotating.join(WAITED)
        assert not key
    rotating.join()
    assert key[0].first == 12


def test_a_recovery_begins_after_whoever_has_begun_to_write(servers):
    """What they say until then is in the roots that the anchor begins with."""
    store, other = servers
    release(other, "anna", 1, 4)
    recovering = threading.Thread(target=recover, args=(store, {"": 5}))
    with other.writing():
        epoch = store.witness.epoch
        recovering.start()
        recovering.join(WAITED)
        assert store.witness.epoch == epoch
    recovering.join()
    assert store.witness.epoch != epoch
