"""Time-varying and second-order chains, through the same interface as a plain model."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.chains import SecondOrderModel, TimeVaryingModel
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


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(3, 40))
def test_pairs_only_follow_pairs_that_they_meet(seed, n, length):
    rng = np.random.default_rng(seed)
    sequences = [rng.integers(0, n, length), rng.integers(0, n, 2)]
    for smoothing in (0.0, 0.5):
        model = SecondOrderModel.fit(sequences, n_states=n, smoothing=smoothing)
        sources, targets = model.transition.nonzero()
        assert (model.pairs[sources, 1] == model.pairs[targets, 0]).all()
        for sequence in sequences:
            encoded = model.encode(sequence)
            assert (model.current[encoded] == sequence[1:]).all()
            steps = model.transition.toarray()[encoded[:-1], encoded[1:]]
            assert (steps > 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_a_belief_over_pairs_sums_to_a_belief_over_states(seed, n):
    rng = np.random.default_rng(seed)
    model = SecondOrderModel.fit([rng.integers(0, n, 40)], n_states=n)
    belief = Belief.uniform(model.n_states).condition(-2000 * rng.random(model.n_states))
    merged = model.current_belief(belief)
    expected = np.bincount(model.current, weights=belief.probabilities, minlength=n)
    np.testing.assert_allclose(merged.probabilities, expected, rtol=REL, atol=1e-15)
    assert set(np.flatnonzero(merged.possible)) == set(model.current.tolist())
    assert (np.isfinite(merged.log_probabilities) == merged.possible).all()


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


def test_a_second_order_chain_knows_where_it_came_from():
    # Round and round 0 1 2 1: after 1 comes 2 or 0, whichever it did not come from.
    sequence = [0, 1, 2, 1] * 10
    model = SecondOrderModel.fit([sequence], n_states=3, zeros="facts")
    walk = model.sample(8, rng=np.random.default_rng(0), start=int(model.encode([0, 1])[0]))
    assert model.current[walk].tolist() == [2, 1, 0, 1, 2, 1, 0, 1]
    plain = MarkovModel.fit([sequence], n_states=3, zeros="facts")
    assert plain.transition.toarray()[1].tolist() == pytest.approx([9 / 19, 0, 10 / 19])


def test_a_pair_that_was_never_left_stays_at_its_current_state():
    model = SecondOrderModel.fit([[0, 1]], n_states=2, zeros="facts")
    assert model.pairs.tolist() == [[0, 1], [1, 1]]
    assert model.transition.toarray().tolist() == [[0, 1], [0, 1]]


def test_em_on_pairs_gives_pairs_back():
    model = SecondOrderModel.fit([[0, 1, 2, 1, 0, 1, 0, 1, 2]], n_states=3)
    rows = -np.random.default_rng(0).random((6, model.n_states))
    learned = model.fit_em([rows], start=0, n_iter=2).model
    assert isinstance(learned, SecondOrderModel)
    assert (learned.pairs == model.pairs).all()


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
        (lambda: SecondOrderModel.fit([[0]], n_states=2), r"at least one sequence of two states"),
        (
            lambda: SecondOrderModel.fit([[0, 0, 0]], n_states=2, zeros="facts").encode([0, 0, 1]),
            r"the step after position 1 does not$",
        ),
        (
            lambda: SecondOrderModel([[1.0]], [[0, 0], [0, 1]], 2),
            r"pairs must have 1 rows of two states",
        ),
        (lambda: SecondOrderModel([[1.0]], [[0, 2]], 2), r"pairs must name states 0..1"),
        (lambda: SecondOrderModel(np.eye(2), [[1, 1], [0, 0]], 2), r"sorted and different"),
        (lambda: SecondOrderModel([[1.0]], [[0, 1]], 2), r"only to pairs \(j, k\)"),
        (
            lambda: SecondOrderModel.fit([[0, 0]], n_states=1).current_belief(Belief.uniform(2)),
            r"belief must have 1 pairs, got 2",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


# Going anywhere


def test_a_place_that_was_never_seen_has_a_pair_that_can_be_reached() -> None:
    model = SecondOrderModel.fit([[0, 1, 0, 1]], n_states=3)
    assert model.pairs.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]
    # Whoever has gone to 0 or 1 moves on as others do from there; nobody has left 2.
    assert model.transition.toarray().tolist() == [
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1],
    ]
    belief = Belief.certain(1, 5).predict(model)
    assert model.current_belief(belief).possible.all()
    assert belief.possible.tolist() == [True, False, True, True, True]
    assert model.encode([0, 1, 2, 1]).tolist() == [1, 4, 3]


@given(st.integers(0, 2**32 - 1), st.integers(2, 3))
def test_pairs_with_a_term_filter_as_their_dense_matrix_does(seed, n):
    rng = np.random.default_rng(seed)
    model = SecondOrderModel.fit([rng.integers(0, n, 12)], n_states=n, anywhere=0.05)
    dense = 0.95 * model.transition.toarray() + model.jumps
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=REL)
    rows = -5 * rng.random((6, model.n_states))
    stated = MarkovModel(dense)
    assert model.score(rows, start=0) == pytest.approx(stated.score(rows, start=0), rel=REL)
    for one, other in zip(model.smooth(rows, start=0), stated.smooth(rows, start=0), strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=REL, atol=1e-15)
        assert (one.possible == other.possible).all()
    score, path = model.decode(rows, start=0)
    expected, states = stated.decode(rows, start=0)
    assert score == pytest.approx(expected, rel=REL)
    assert path.tolist() == states.tolist()
    np.testing.assert_allclose(
        model.stationary().probabilities, stated.stationary().probabilities, rtol=1e-9, atol=1e-15
    )
    assert isinstance(model.own, SecondOrderModel)
    assert not model.own.anywhere


def test_each_model_of_a_cycle_carries_its_own_term() -> None:
    chain = TimeVaryingModel([MarkovModel(np.eye(2), anywhere=0.1), MarkovModel(np.eye(2))])
    assert chain.at(2).successors([0]).all()
    assert not chain.at(1).successors([0]).all()
    fitted = TimeVaryingModel.fit([[0, 1, 0]], n_states=2, n_models=2)
    assert [model.zeros for model in fitted.models] == ["guesses"] * 2


def test_pairs_without_every_place_cannot_go_anywhere() -> None:
    with pytest.raises(ArgumentError, match=r"every \(k, k\) when anywhere .* got none for 1$"):
        SecondOrderModel([[1.0]], [[0, 0]], 2, anywhere=0.1)
