"""A learned zero is a guess: models that were learned can go anywhere, stated ones cannot."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm import ArgumentError, Belief, MarkovModel, Plan, PolicyGraph, Query
from dphmm.chain.anywhere import ANYWHERE


def test_a_matrix_that_is_given_states_its_zeros() -> None:
    model = MarkovModel([[0.5, 0.5], [0, 1]])
    assert (model.zeros, model.anywhere, model.own) == ("facts", 0, model)
    assert not model.jumps.any()
    assert model.successors([1]).tolist() == [False, True]


def test_a_model_that_was_learned_can_go_anywhere() -> None:
    for model in (
        MarkovModel.fit([[0, 1, 0]], n_states=3),
        MarkovModel.from_counts([[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
    ):
        assert (model.zeros, model.anywhere) == ("guesses", ANYWHERE)
        assert model.successors([0]).all()
        assert not model.successors([False] * 3).any()
        assert model.own.successors([0]).tolist() == [False, True, False]
        assert repr(model) == "MarkovModel(3 states, 3 moves, 0.01 anywhere)"


def test_whoever_says_facts_gets_facts() -> None:
    stated = MarkovModel.fit([[0, 1, 0]], n_states=3, zeros="facts")
    assert stated.zeros == "facts"
    assert stated.digest == MarkovModel(stated.transition).digest
    assert MarkovModel.from_counts([[1.0]], zeros="facts").zeros == "facts"


def test_the_fingerprint_tells_how_often_and_where_to() -> None:
    matrix = np.eye(2)
    digests = {
        MarkovModel(matrix).digest,
        MarkovModel(matrix, anywhere=0.1).digest,
        MarkovModel(matrix, anywhere=0.2).digest,
        MarkovModel(matrix, anywhere=0.2, density=[0.3, 0.7]).digest,
    }
    assert len(digests) == 4


def test_policies_and_location_sets_are_made_from_the_own_moves() -> None:
    ring = np.roll(np.eye(8), 1, axis=1)
    learned, stated = MarkovModel(ring, anywhere=0.3), MarkovModel(ring)
    assert PolicyGraph.one_step(learned).digest == PolicyGraph.one_step(stated).digest
    plan = Plan(PolicyGraph.complete(8), Query(np.arange(8)), delta=0.01)
    prior = Belief.certain(0, 8).predict(learned)
    assert np.flatnonzero(plan.to_protect(prior)).tolist() == [1]
    # Made from the whole belief, the set would hold nearly everything.
    assert plan.to_protect(Belief.from_probabilities(prior.probabilities)).sum() >= 7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MarkovModel([[1.0]], anywhere=1),
            "anywhere must be at least 0 and below 1, got 1",
        ),
        (lambda: MarkovModel([[1.0]], anywhere=-0.1), "anywhere must be at least 0"),
        (lambda: MarkovModel([[1.0]], density=[1.0]), "anywhere must be above 0 when a density"),
        (lambda: MarkovModel(np.eye(2), anywhere=0.1, density=[1.0]), "density must have 2 values"),
        (lambda: MarkovModel(np.eye(2), anywhere=0.1, density=[1, 0]), "above zero in every state"),
        (
            lambda: MarkovModel(np.eye(2), anywhere=0.1, density=[0.5, 0.6]),
            "density must be above zero in every state and sum to one",
        ),
        (lambda: MarkovModel.fit([], n_states=1, zeros="never"), "zeros must be 'guesses' or"),
        (
            lambda: MarkovModel.fit([], n_states=1, zeros="facts", anywhere=0.1),
            "anywhere must be 0 when zeros are facts, got 0.1",
        ),
        (lambda: MarkovModel.fit([], n_states=1, anywhere=0), "say zeros='facts'"),
    ],
)
def test_bad_arguments_are_refused(make: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()  # type: ignore[operator]
