"""A moment has one answer and one key, whatever the scenario has become."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphmm import ArgumentError, MarkovModel
from dphmm.books import Store
from dphmm.geometry.query import Query
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release.book import KeyInUse
from tests import paper
from tests.crash import world
from tests.crash.world import release, same, terms

KEY = KeyedRandomness(b"k" * 32)


MODEL = MarkovModel(np.roll(paper.TRANSITION, 1, axis=0))
OTHERS = {
    "policy": terms(plan=world.PLAN.replace(repair=None)),
    "model": terms(model=MODEL),
    "epsilon": terms(epsilon="1/2"),
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


def test_a_question_of_another_dimension_under_an_old_name_is_refused(store):
    release(store, "anna", 1, 2)
    flat = terms(plan=world.PLAN.replace(query=Query([1, 2, 3, 4, 5, 6])))
    with pytest.raises(ArgumentError, match="query must be the one that was answered"):
        release(store, "anna", 1, 2, flat)
    assert store.ledger("anna").spent == 1


def test_two_questions_at_one_slot_are_two_moments_of_one_budget(store):
    """Each has a line of its own, and what was said on both is erased and counted together."""
    first, _ = release(store, "ann", 1, 4, terms(origin=None))
    other = terms(query="beside", origin=None)
    beside, repeated = release(store, "ann", 1, 4, other)
    assert not repeated
    assert same(beside, release(store, "ann", 1, 2, other)[0])
    assert same(first, release(store, "ann", 1, 2, terms(origin=None))[0])
    assert store.ledger("ann").spent == 2
    store.erase("ann")
    for asked in (other, terms(origin=None)):
        with pytest.raises(ArgumentError, match="time must come after"):
            release(store, "ann", 1, 2, asked)


def test_a_store_goes_on_with_its_own_key_only(store, store_url):
    first, _ = release(store, "anna", 1, 4, randomness=KEY)
    other = KeyedRandomness(b"o" * 32)
    for wrong in (other, None):
        for time in (1, 2):
            with pytest.raises(ArgumentError, match="key must be the one"):
                release(store, "anna", time, 4, randomness=wrong)
    second = Store.open(store_url)
    with pytest.raises(ArgumentError, match="key must be the one"):
        release(second, "anna", 2, 4, randomness=other)
    # Rotated by another process while this one has the old key in memory.
    second.rotate(lambda *_: KeyInUse(other.fingerprint, 2, rotated=True))
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
