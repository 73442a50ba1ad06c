"""Time-varying chains, through the same interface as a plain model."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.markov import Belief, MarkovModel
from dphmm.errors import ArgumentError
from tests import paper

REL = 1e-9


def random_model(rng, n):
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.6) + np.eye(n)
    return MarkovModel(weights / weights.sum(axis=1, keepdims=True))


# Paper


def test_a_chain_of_one_model_is_that_model():
    model = MarkovModel(paper.TRANSITION)
    chain = TimeVaryingModel([model])
    rows = -np.random.default_rng(0).random((5, 6))
    for one, other in zip(model.smooth(rows, start=0), chain.smooth(rows, start=0), strict=True):
        assert (one.probabilities == other.probabilities).all()
    assert model.score(rows, start=0) == chain.score(rows, start=0)


# Laws


def test_the_schedule_repeats_and_the_first_step_leads_into_time_one():
    still, swap = MarkovModel(np.eye(2)), MarkovModel([[0, 1], [1, 0]])
    chain = TimeVaryingModel([still, swap], schedule=[0, 1, 1])
    walk = chain.sample(7, rng=np.random.default_rng(0), start=0)
    assert walk.tolist() == [1, 0, 0, 1, 0, 0, 1]
    assert [chain.at(t) is swap for t in (1, 2, 3)] == [True, True, False]
    late = chain.sample(2, rng=np.random.default_rng(0), start=0, time=2)
    assert late.tolist() == [0, 1]
    by_function = TimeVaryingModel([still, swap], schedule=lambda time: int(time % 3 > 0))
    again = by_function.sample(7, rng=np.random.default_rng(0), start=0)
    assert again.tolist() == walk.tolist()


def test_a_scheduled_chain_survives_pickling():
    chain = TimeVaryingModel([MarkovModel(np.eye(2))] * 2, schedule=[0, 1, 1])
    assert pickle.loads(pickle.dumps(chain)).score([None], start=0) == 0


# Oracle


@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(2, 5))
def test_a_time_varying_filter_and_smoother_agree_with_every_sequence(seed, n, steps):
    rng = np.random.default_rng(seed)
    chain = TimeVaryingModel([random_model(rng, n) for _ in range(3)])
    rows = -10 * rng.random((steps, n))
    paths = np.array(list(itertools.product(range(n), repeat=steps)))
    weights = np.ones(len(paths))
    before = np.zeros(len(paths), dtype=int)
    for step in range(steps):
        transition = chain.at(step + 1).transition.toarray()
        weights *= transition[before, paths[:, step]] * np.exp(rows[step, paths[:, step]])
        before = paths[:, step]
        filtered = np.bincount(paths[:, step], weights=weights, minlength=n)
        belief = chain.filter(rows, start=0)[step]
        np.testing.assert_allclose(belief.probabilities, filtered / filtered.sum(), rtol=REL)
    assert chain.score(rows, start=0) == pytest.approx(np.log(weights.sum()), rel=REL)
    score, path = chain.decode(rows, start=0)
    assert score == pytest.approx(np.log(weights.max()), rel=REL)
    assert weights[(paths == path).all(axis=1)][0] == pytest.approx(weights.max(), rel=REL)
    for step, belief in enumerate(chain.smooth(rows, start=0)):
        smoothed = np.bincount(paths[:, step], weights=weights, minlength=n)
        np.testing.assert_allclose(belief.probabilities, smoothed / smoothed.sum(), rtol=REL)


def test_counting_by_time_puts_each_move_where_it_leads():
    chain = TimeVaryingModel.fit(
        [[0, 1, 1, 0], [1, 1]], n_states=2, n_models=2, first_times=[0, 2], smoothing=0.0
    )
    assert chain.at(0).transition.toarray().tolist() == [[1, 0], [0, 1]]
    # Into odd times: 0 -> 1, 1 -> 0, and 1 -> 1 of the sequence that begins at time 2.
    assert chain.at(1).transition.toarray().tolist() == [[0, 1], [0.5, 0.5]]


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeVaryingModel([]), r"models must be one MarkovModel or more"),
        (
            lambda: TimeVaryingModel([MarkovModel(np.eye(2)), MarkovModel(np.eye(3))]),
            r"models must have the same states, got \[2, 3\]",
        ),
        (
            lambda: TimeVaryingModel([MarkovModel(np.eye(2))], [0, 1]),
            r"schedule must give a number from 0 to 0, got 1 for time 1",
        ),
        (lambda: TimeVaryingModel([MarkovModel(np.eye(2))], []), r"schedule must hold"),
        (
            lambda: TimeVaryingModel([MarkovModel(np.eye(2))], lambda time: 4).at(9),
            r"got 4 for time 9",
        ),
        (
            lambda: Belief.uniform(2).predict(TimeVaryingModel([MarkovModel(np.eye(2))])),
            r"must be a MarkovModel, got TimeVaryingModel",
        ),
        (lambda: TimeVaryingModel.fit([], n_states=2, n_models=0), r"n_models must be at least 1"),
        (
            lambda: TimeVaryingModel.fit([[0]], n_states=2, n_models=1, first_times=[]),
            r"first_times must have 1 times, got 0",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


# Going anywhere


def test_each_model_of_a_cycle_carries_its_own_term() -> None:
    chain = TimeVaryingModel([MarkovModel(np.eye(2), anywhere=0.1), MarkovModel(np.eye(2))])
    assert chain.at(2).successors([0]).all()
    assert not chain.at(1).successors([0]).all()
    fitted = TimeVaryingModel.fit([[0, 1, 0]], n_states=2, n_models=2)
    assert [model.zeros for model in fitted.models] == ["guesses"] * 2
