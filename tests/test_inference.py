"""Filter, smoother, path, score, sample and EM against every state sequence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.markov import Belief, MarkovModel
from dphmm.errors import ArgumentError
from tests import paper

# Enumeration sums the same few hundred products in another order.
REL = 1e-9
# EM's score may fall by rounding once it has converged.
FALL = 1e-9


@st.composite
def cases(draw, max_states=4, max_steps=5):
    """A random chain, a start and observations, some impossible and some missing."""
    n = draw(st.integers(1, max_states))
    steps = draw(st.integers(1, max_steps))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    weights[np.arange(n), rng.integers(0, n, n)] = 1.0
    anywhere = draw(st.sampled_from([0.0, 0.0, 1e-3, 0.3]))
    density = rng.random(n) + 0.01
    model = MarkovModel(
        weights / weights.sum(axis=1, keepdims=True),
        anywhere=anywhere,
        density=density / density.sum() if anywhere and rng.random() < 0.5 else None,
    )
    start = rng.random(n) * (rng.random(n) < 0.7)
    start[rng.integers(n)] = 1.0
    start /= start.sum()
    spread = draw(st.sampled_from([1.0, 10.0, 200.0, 4000.0]))
    rows = []
    for state in model.sample(steps, rng=rng, start=start):
        row = -spread * rng.random(n)
        removed = rng.random(n) < 0.2
        removed[state] = False
        row[removed] = -np.inf
        rows.append(None if rng.random() < 0.25 else row)
    return model, start, rows


def dense(model):
    """The whole matrix: the own moves and the term of rank one beside them."""
    own, anywhere = model.transition.toarray(), model.anywhere
    return (1 - anywhere) * own + anywhere * np.ones((len(own), 1)) * model.density


def enumerate_paths(model, start, rows):
    """Every path of states at times 1.. with its log-probability together with the rows."""
    transition = dense(model)
    paths = np.array(list(itertools.product(range(model.n_states), repeat=len(rows))))
    with np.errstate(divide="ignore"):
        logs = np.log(start @ transition)[paths[:, 0]]
        for step in range(1, len(rows)):
            logs = logs + np.log(transition)[paths[:, step - 1], paths[:, step]]
    for step, row in enumerate(rows):
        if row is not None:
            logs = logs + row[paths[:, step]]
    return paths, logs


def marginal(paths, logs, step, n_states):
    """The distribution of the state at one step, and its possible states."""
    peak = logs.max()
    weights = np.bincount(paths[:, step], weights=np.exp(logs - peak), minlength=n_states)
    possible = np.bincount(paths[:, step], weights=logs > -np.inf, minlength=n_states) > 0
    return weights / weights.sum(), possible


# Paper


def test_the_first_observation_comes_after_one_transition():
    model = MarkovModel(paper.TRANSITION)
    flat = np.zeros((2, 6))
    first, second = model.filter(flat, start=0)
    assert np.flatnonzero(first.possible).tolist() == [1, 2, 4]
    assert np.flatnonzero(second.possible).tolist() == [2, 3, 4, 5]
    assert model.sample(1, rng=np.random.default_rng(0), start=0)[0] in (1, 2, 4)
    assert model.score(flat, start=0) == pytest.approx(0, abs=1e-15)


def test_a_later_observation_says_what_an_earlier_state_was():
    model = MarkovModel(paper.TRANSITION)
    only_s4 = np.where(np.arange(6) == 3, 0.0, -np.inf)
    first, second = model.smooth([None, only_s4], start=0)
    assert np.flatnonzero(first.possible).tolist() == [1]
    assert np.flatnonzero(second.possible).tolist() == [3]
    score, path = model.decode([None, only_s4], start=0)
    assert path.tolist() == [1, 3]
    assert score == pytest.approx(np.log(0.25), rel=1e-15)


# Laws


@given(cases(max_states=6, max_steps=12))
def test_the_last_smoothed_belief_is_the_last_filtered_one(case):
    model, start, rows = case
    last, smooth = model.filter(rows, start=start)[-1], model.smooth(rows, start=start)[-1]
    assert (last.possible == smooth.possible).all()
    np.testing.assert_allclose(smooth.probabilities, last.probabilities, rtol=REL, atol=1e-15)


@given(cases(max_states=6, max_steps=12))
def test_one_step_at_a_time_is_the_filter(case):
    model, start, rows = case
    belief = Belief.known(start, model.n_states)
    for time, (row, whole) in enumerate(zip(rows, model.filter(rows, start=start), strict=True), 1):
        belief = belief.predict(model.at(time))
        belief = belief if row is None else belief.condition(row)
        assert (belief.probabilities == whole.probabilities).all()


@given(st.lists(cases(max_states=3), min_size=1, max_size=1), st.sampled_from([0.0, 0.5]))
def test_em_never_falls_and_keeps_the_possible_moves(batch, smoothing):
    (model, start, rows) = batch[0]
    learned = model.fit_em(
        [rows, rows], start=start, n_iter=8, tolerance=-np.inf, smoothing=smoothing
    )
    assert len(learned.history) == 9
    assert (np.diff(learned.history) >= -FALL * np.abs(learned.history[1:]) - FALL).all()
    assert (learned.model.transition.indices == model.transition.indices).all()
    assert (learned.model.transition.indptr == model.transition.indptr).all()
    if not smoothing:
        final = 2 * learned.model.score(rows, start=start)
        assert learned.history[-1] == pytest.approx(final, rel=REL, abs=1e-12)


@given(cases(max_states=6))
def test_a_sampled_walk_takes_only_possible_moves(case):
    model, start, _ = case
    walk = model.sample(50, rng=np.random.default_rng(0), start=start)
    allowed = dense(model) > 0
    assert model.successors(np.asarray(start) > 0)[walk[0]]
    assert allowed[walk[:-1], walk[1:]].all()


# Oracle


@given(cases())
def test_filter_and_smoother_agree_with_every_sequence(case):
    model, start, rows = case
    smoothed = model.smooth(rows, start=start)
    paths, logs = enumerate_paths(model, start, rows)
    for step, (filtered, smooth) in enumerate(
        zip(model.filter(rows, start=start), smoothed, strict=True)
    ):
        for belief, known in (
            (smooth, (paths, logs)),
            (filtered, enumerate_paths(model, start, rows[: step + 1])),
        ):
            probabilities, possible = marginal(*known, step, model.n_states)
            assert (belief.possible == possible).all()
            np.testing.assert_allclose(belief.probabilities, probabilities, rtol=REL, atol=1e-15)


@given(cases())
def test_score_and_path_agree_with_every_sequence(case):
    model, start, rows = case
    paths, logs = enumerate_paths(model, start, rows)
    peak = logs.max()
    total = peak + np.log(np.exp(logs - peak).sum())
    assert model.score(rows, start=start) == pytest.approx(total, rel=REL, abs=1e-12)
    score, path = model.decode(rows, start=start)
    assert score == pytest.approx(peak, rel=REL, abs=1e-12)
    chosen = (paths == path).all(axis=1)
    assert logs[chosen][0] == pytest.approx(peak, rel=REL, abs=1e-12)


@given(cases(max_states=3, max_steps=4))
def test_one_em_step_agrees_with_counting_over_every_sequence(case):
    model, start, rows = case
    transition, n = dense(model), model.n_states
    paths = np.array(list(itertools.product(range(n), repeat=len(rows) + 1)))
    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(start))[paths[:, 0]]
        for step, row in enumerate(rows):
            logs = logs + np.log(transition)[paths[:, step], paths[:, step + 1]]
            logs = logs if row is None else logs + row[paths[:, step + 1]]
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    counts = np.zeros((n, n))
    for step in range(len(rows)):
        np.add.at(counts, (paths[:, step], paths[:, step + 1]), weights)
    # Of a move that was made, this share was the matrix's own and not a step to anywhere.
    own = (1 - model.anywhere) * model.transition.toarray()
    counts *= np.divide(own, transition, out=np.zeros_like(own), where=transition > 0)
    learned = model.fit_em([rows], start=start, n_iter=1, tolerance=-np.inf).model
    # Rows that are all but never visited are a ratio of two roundings.
    for state in np.flatnonzero(counts.sum(axis=1) > 1e-12):
        expected = counts[state] / counts[state].sum()
        np.testing.assert_allclose(
            learned.transition.toarray()[state], expected, rtol=1e-6, atol=1e-12
        )


def test_em_finds_the_moves_that_sharp_observations_show():
    states = [0, 1, 1, 2, 0, 1, 2, 0, 0, 1]
    sharp = np.where(np.arange(3) == np.array(states[1:])[:, None], 0.0, -500.0)
    start = MarkovModel(np.full((3, 3), 1 / 3))
    learned = start.fit_em([sharp], start=states[0], n_iter=50).model
    counted = MarkovModel.fit([states], n_states=3)
    np.testing.assert_allclose(
        learned.transition.toarray(), counted.transition.toarray(), atol=1e-12
    )


def test_em_takes_one_start_for_each_sequence():
    model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    row = np.array([[0.0, -500.0]])
    learned = model.fit_em(
        [row, row], start=[Belief.certain(0, 2), Belief.certain(1, 2)], n_iter=3
    ).model
    np.testing.assert_allclose(learned.transition.toarray(), [[1, 0], [1, 0]], atol=1e-12)


SAMPLES = 20_000
# Six standard errors of a proportion, sqrt(p (1 - p) / SAMPLES) <= 0.0036.
FREQUENCY_GAP = 0.022


def test_a_long_walk_visits_each_move_as_often_as_its_probability():
    model = MarkovModel([[0.7, 0.3], [0.2, 0.8]])
    walk = model.sample(SAMPLES, rng=np.random.default_rng(1), start=[0.5, 0.5])
    counted = MarkovModel.fit([walk], n_states=2).transition.toarray()
    assert np.abs(counted - model.transition.toarray()).max() < FREQUENCY_GAP


def test_a_long_walk_goes_anywhere_as_often_as_it_should():
    model = MarkovModel([[0, 1, 0], [1, 0, 0], [1, 0, 0]], anywhere=0.2, density=[0.2, 0.3, 0.5])
    walk = model.sample(SAMPLES, rng=np.random.default_rng(1), start=0)
    counted = MarkovModel.fit([walk], n_states=3).transition.toarray()
    assert np.abs(counted - dense(model)).max() < FREQUENCY_GAP * 2  # state 2 is rarer
    assert np.abs(counted - model.transition.toarray()).max() > FREQUENCY_GAP * 2


def test_the_most_likely_path_weighs_a_move_and_the_jump_together():
    # Into state 0: 0.45 by the jump, and 0.002 more from 0 or 0.09 more from 1. State 0 is 1.1
    # times likelier before, which 0.54 against 0.452 outweighs and 0.09 against 0.45 would not.
    model = MarkovModel([[0.02, 0.98], [0.9, 0.1]], anywhere=0.9)
    likelier = np.log(1.1 * 0.504 / 0.496)
    path = model.decode([[likelier, 0.0], [0.0, -100.0]], start=[0.5, 0.5])[1]
    assert path.tolist() == [1, 0]


def test_em_with_a_term_keeps_it_and_its_own_moves():
    model = MarkovModel([[0.5, 0.5], [0.0, 1.0]], anywhere=0.1, density=[0.25, 0.75])
    learned = model.fit_em([[[0.0, -1.0]] * 4], start=0, n_iter=3).model
    assert learned.anywhere == 0.1
    assert (learned.density == model.density).all()
    assert learned.transition.nnz == 3


def test_an_observation_far_from_the_belief_does_not_lose_the_smoother():
    length = 60
    dense = np.eye(length) * 0.5 + np.eye(length, k=1) * 0.5
    dense[-1, -1] = 1.0
    model = MarkovModel(dense)
    places = np.arange(length)
    rows = [-50.0 * np.abs(places - 59), -50.0 * places, -50.0 * np.abs(places - 59)]
    for belief in model.smooth(rows, start=Belief.uniform(length)):
        assert (np.isfinite(belief.log_probabilities) == belief.possible).all()
    # The far ends differ by thousands of nats, more than a float can hold.
    gap = belief.log_probabilities[belief.possible]
    assert gap.max() - gap.min() > 1000


def test_a_huge_later_observation_leaves_every_state_possible():
    rows = [[0.0, 0.0], [0.0, -1.7e308], [0.0, -1.7e308], [0.0, -1.7e308]]
    for belief in MarkovModel(np.eye(2)).smooth(rows, start=[0.5, 0.5]):
        assert belief.possible.all()
        assert np.isfinite(belief.log_probabilities).all()


def test_the_most_likely_path_never_enters_a_state_that_no_move_leads_to():
    model = MarkovModel([[0.5, 0, 0.5]] * 3)
    tempting = [[-9.0, 0.0, -8.0]] * 3
    assert model.decode(tempting, start=0)[1].tolist() == [2, 2, 2]


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.filter([[0.0, 0.0]], start=0), r"observations\[0\] must have 6 values"),
        (lambda m: m.filter(np.zeros(6), start=0), r"observations\[0\] must be a vector"),
        (lambda m: m.filter(3, start=0), r"observations must be a sequence, got int"),
        (
            lambda m: m.score([None, [np.nan] * 6], start=0),
            r"observations\[1\] must hold neither NaN",
        ),
        (
            lambda m: m.filter([None, [-np.inf] * 6], start=0),
            r"observations\[1\] must leave a state possible",
        ),
        (
            lambda m: m.decode([None, [-np.inf] * 6], start=0),
            r"observations\[1\] must leave a state possible",
        ),
        (
            lambda m: m.filter([None], start=6),
            r"start must be one of the 6 states, by number from 0$",
        ),
        (
            lambda m: m.sample(-1, rng=np.random.default_rng(0), start=0),
            r"length must be at least 0, got -1",
        ),
        (lambda m: m.sample(1, rng=0, start=0), r"rng must be a Generator, got int"),
        (
            lambda m: m.fit_em([[None]], start=[Belief.uniform(6)] * 2),
            r"start must have 1 beliefs, got 2",
        ),
        (lambda m: m.fit_em([[None]], start=0, n_iter=-1), r"n_iter must be at least 0"),
        (lambda m: m.fit_em([[None]], start=0, smoothing=-1), r"smoothing must not be negative"),
        (
            lambda m: m.fit_em([[None, [0.0]]], start=0),
            r"sequences\[0\]\[1\] must have 6 values, got 1",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(MarkovModel(paper.TRANSITION))


def test_no_observations_are_an_ordinary_input():
    model = MarkovModel(paper.TRANSITION)
    assert model.filter([], start=0) == model.smooth([], start=0) == []
    assert model.score([], start=0) == 0
    score, path = model.decode([], start=0)
    assert (score, path.size) == (0, 0)
