"""States by number or by mask: one way to say which are possible, for every function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.markov import MarkovModel
from dphmm.cost.adversary import guarantee_against
from dphmm.cost.blowfish import Blowfish, Secret
from dphmm.cost.charges import Charge, constrained_epsilon, worst_pair
from dphmm.cost.composition import compose
from dphmm.cost.history import History
from dphmm.cost.local_noise import LocalRelease, local_hull
from dphmm.errors import ArgumentError
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask, state_numbers
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import KeyedRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.policy.repair import added_edges, protect
from dphmm.policy.sensitivity import sensitivity_hull
from tests import paper

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
MODEL = MarkovModel(paper.TRANSITION)
HULL = sensitivity_hull(QUERY, POLICY)
CHARGE = Charge(QUERY, HULL, 1)
SECRETS = [Secret(str(state), state) for state in range(6)]

TAKE_POSSIBLE = [
    lambda possible: degree_of_protection(QUERY, POLICY, possible).tolist(),
    lambda possible: exposed(QUERY, POLICY, possible).tolist(),
    lambda possible: is_protectable(QUERY, POLICY, possible),
    lambda possible: unprotected(QUERY, POLICY, possible).tolist(),
    lambda possible: protect(QUERY, POLICY, possible).edges.tolist(),
    lambda possible: added_edges(QUERY, POLICY, possible).tolist(),
    lambda possible: sensitivity_hull(QUERY, POLICY, possible).digest,
    lambda possible: POLICY.restricted_to(possible).edges.tolist(),
    lambda possible: MODEL.successors(possible).tolist(),
    lambda possible: QUERY.nearest_states([0, 1], possible).tolist(),
    lambda possible: (
        Mechanism(QUERY, HULL, CHARGE.epsilon)
        .sample_lattice(0, KeyedRandomness(bytes(32)), possible=possible)
        .tolist()
    ),
    lambda possible: constrained_epsilon(QUERY, HULL, 1, possible),
    lambda possible: worst_pair(QUERY, HULL, 1, possible),
    lambda possible: compose([CHARGE, CHARGE], possible),
    lambda possible: History(MODEL, [[CHARGE]], possible=[possible]).states(0).tolist(),
    lambda possible: local_hull(QUERY, POLICY, 3, possible).digest,
    lambda possible: sorted(LocalRelease.local(QUERY, POLICY, 1, possible).hulls),
    lambda possible: sorted(LocalRelease.shared(QUERY, HULL, 1, possible).hulls),
    lambda possible: Blowfish(SECRETS, QUERY, possible=possible).possible.tolist(),
    lambda possible: guarantee_against(
        QUERY, POLICY, HULL, 1, possible=possible, known=possible
    ).common.tolist(),
]


# Laws


@given(st.lists(st.booleans(), min_size=1, max_size=9).filter(any))
def test_numbers_in_any_order_mean_the_mask(mask):
    numbers = np.flatnonzero(mask)
    assert possible_mask(mask, len(mask)).tolist() == mask
    assert possible_mask(numbers[::-1], len(mask)).tolist() == mask
    assert possible_mask(numbers.astype(np.uint8), len(mask)).tolist() == mask


def test_nothing_said_means_that_all_are_possible():
    assert possible_mask(None, 3).all()


@pytest.mark.parametrize("function", TAKE_POSSIBLE)
def test_every_function_takes_a_mask_or_numbers(function):
    mask = np.array(paper.POSSIBLE_EXPOSING_S3)
    assert function(mask) == function(mask.tolist()) == function([5, 4, 3, 2])


def test_a_start_of_booleans_is_a_mask_and_no_distribution():
    charges = [[CHARGE]]
    for start in ([True, False, False, True, False, False], np.arange(6) % 3 == 0):
        history = History(MODEL, charges, start=start)
        assert history.states(0).tolist() == [1, 2, 3, 4, 5]


# Errors


@pytest.mark.parametrize("function", TAKE_POSSIBLE)
def test_a_mask_of_zeros_and_ones_is_refused_and_not_read_as_numbers(function):
    with pytest.raises(ArgumentError, match="possible must name each state once"):
        function([0, 0, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("possible", "message"),
    [
        ([True], r"possible must be a mask over 3 states or their numbers, got bool of shape \(1,"),
        ([0.0, 1.0], "possible must be a mask over 3 states or their numbers, got float64"),
        ([[0, 1]], r"possible must be a mask over 3 states or their numbers, got int64 of shape"),
        ("one", "possible must be a mask over 3 states or their numbers, got"),
        ([3], r"possible must name states 0\.\.2, got 3"),
        ([-1], r"possible must name states 0\.\.2, got -1"),
        ([], "possible must contain at least one state, got none"),
        ([False] * 3, "possible must contain at least one state, got none"),
    ],
)
def test_a_wrong_mask_says_what_it_must_be(possible, message):
    with pytest.raises(ArgumentError, match=message):
        possible_mask(possible, 3)


def test_an_empty_mask_may_be_allowed():
    assert not possible_mask([], 3, empty=True).any()


def test_true_states_are_not_shown():
    with pytest.raises(ArgumentError, match=r"^states must name states 0\.\.2$"):
        state_numbers([7], 3, "states", private=True)
    with pytest.raises(ArgumentError, match=r"^states must name states 0\.\.5$"):
        QUERY.nearest_states([7], [0])
