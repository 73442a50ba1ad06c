"""MarkovModel and Belief: what is possible and how probable it is."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp

from dphmm import kernels
from dphmm.chain.markov import Belief, MarkovModel
from dphmm.errors import ArgumentError
from tests import paper

REL = 1e-12


def states(mask):
    """The paper's names s1.. of the states on a mask."""
    return {int(i) + 1 for i in np.flatnonzero(mask)}


@st.composite
def chains(draw, max_states=6, tiny=False):
    """A random chain with impossible moves and, if asked, moves near the least float."""
    n = draw(st.integers(1, max_states))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    weights[np.arange(n), rng.integers(0, n, n)] = 1.0
    transition = weights / weights.sum(axis=1, keepdims=True)
    if tiny:
        scale = rng.choice([1.0, 1e-150, 1e-300, 1e-320], (n, n))
        scale[np.arange(n), transition.argmax(axis=1)] = 1.0
        transition = transition * scale
        transition /= transition.sum(axis=1, keepdims=True)
    return MarkovModel(transition), rng


# Paper


def test_the_running_example_reaches_the_possible_sets_of_the_paper():
    model = MarkovModel(paper.TRANSITION)
    first = Belief.certain(0, 6).predict(model)
    assert states(first.possible) == {2, 3, 5}
    assert first.probabilities.tolist() == [0, 0.5, 0.25, 0, 0.25, 0]
    second = first.predict(model)
    assert states(second.possible) == {3, 4, 5, 6}
    assert second.probabilities.tolist() == [0, 0, 0.375, 0.25, 0.25, 0.125]
    assert states(Belief.certain(3, 6).predict(model).possible) == {2, 4, 5, 6}
    assert states(Belief.certain(5, 6).predict(model).possible) == {4, 5, 6}


# Laws


@given(chains(tiny=True), st.integers(1, 30), st.sampled_from([1.0, 50.0, 1000.0, 1e6]))
def test_a_belief_sums_to_one_on_exactly_its_possible_states(chain, steps, spread):
    model, rng = chain
    pattern = model.transition.toarray() > 0
    belief = Belief.certain(0, model.n_states)
    possible = belief.possible
    for _ in range(steps):
        belief = belief.predict(model)
        possible = (pattern & possible[:, None]).any(axis=0)
        log_likelihood = -spread * rng.random(model.n_states)
        if possible.sum() > 1 and rng.random() < 0.3:
            removed = rng.choice(np.flatnonzero(possible))
            log_likelihood[removed] = -np.inf
            possible = possible & (np.arange(model.n_states) != removed)
        belief = belief.condition(log_likelihood)
        assert (belief.possible == possible).all()
        assert (np.isfinite(belief.log_probabilities) == possible).all()
        assert belief.probabilities.sum() == pytest.approx(1, rel=REL)
        assert (belief.probabilities[~possible] == 0).all()


@given(chains(), st.floats(-1e6, 1e6))
def test_a_constant_added_to_the_likelihood_changes_nothing(chain, constant):
    model, rng = chain
    log_likelihood = -rng.random(model.n_states)
    once = Belief.uniform(model.n_states).condition(log_likelihood)
    shifted = Belief.uniform(model.n_states).condition(log_likelihood + constant)
    # Adding 1e6 itself rounds the input to about 1e-10.
    np.testing.assert_allclose(shifted.probabilities, once.probabilities, rtol=1e-9)


@given(chains(tiny=True))
def test_making_a_model_from_its_own_transition_changes_no_bit(chain):
    model, _ = chain
    again = MarkovModel(model.transition)
    assert (again.transition.data == model.transition.data).all()
    assert (again.transition.indices == model.transition.indices).all()


@given(chains())
def test_successors_of_a_union_are_the_union_of_successors(chain):
    model, rng = chain
    one, other = rng.random((2, model.n_states)) < 0.5
    union = model.successors(one) | model.successors(other)
    assert (model.successors(one | other) == union).all()


def test_nothing_changes_after_it_is_made():
    model, belief = MarkovModel(paper.TRANSITION), Belief.uniform(6)
    for array in (model.transition.data, belief.possible, belief.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError, match="does not change"):
        belief.possible = belief.possible
    given = np.array([0.5, 0.5])
    Belief.from_probabilities(given)
    given[0] = 0.25


def test_a_belief_survives_pickling_to_the_last_bit():
    belief = Belief.uniform(3).condition([0.0, -10.0, -5000.0])
    again = pickle.loads(pickle.dumps(belief))
    assert (again.log_probabilities == belief.log_probabilities).all()
    assert (again.probabilities == belief.probabilities).all()
    assert (again.possible == belief.possible).all()


# Oracle


def log_step(logs, transition):
    """log(p M) with every sum taken by itself."""
    with np.errstate(divide="ignore"):
        return logsumexp(logs[:, None] + np.log(transition), axis=0)


@given(chains(tiny=True), st.sampled_from([1.0, 300.0, 5000.0]))
def test_the_filter_agrees_with_dense_logs_near_and_below_underflow(chain, spread):
    model, rng = chain
    if rng.random() < 0.5:
        model = MarkovModel(model.transition, anywhere=1e-9)
    dense = (1 - model.anywhere) * model.transition.toarray() + model.jumps
    belief = Belief.uniform(model.n_states)
    logs = belief.log_probabilities
    for _ in range(20):
        belief, logs = belief.predict(model), log_step(logs, dense)
        log_likelihood = -spread * rng.random(model.n_states)
        belief, logs = belief.condition(log_likelihood), logs + log_likelihood
        logs = logs - logsumexp(logs)
        np.testing.assert_allclose(belief.log_probabilities, logs, rtol=1e-9, atol=1e-9)


def exact(scaled, level):
    """A wide number as a fraction."""
    return 0 if level == np.inf else Fraction(float(scaled)) / 2 ** (512 * int(level))


@given(chains(tiny=True), st.integers(0, 6))
def test_wide_products_and_sums_agree_with_fractions(chain, depth):
    model, rng = chain
    n = model.n_states
    wide = np.stack([2.0 ** rng.integers(-256, 256, n), rng.integers(0, depth + 1, n) * 1.0])
    impossible = rng.random(n) < 0.2
    wide[:, impossible] = [[0.0], [np.inf]]
    incoming = model.incoming
    result, probabilities = np.empty((2, n)), np.empty(n)
    # Some states are jumped to, with a probability that may be at any level.
    jumps = np.where(rng.random(n) < 0.5, 2.0 ** -rng.integers(1, 1000, n), 0.0)
    kernels.chain.step(incoming.indptr, incoming.indices, incoming.data, jumps, wide, result)
    values = [exact(*number) for number in wide.T]
    dense = incoming.toarray()
    products = [
        sum(Fraction(m) * v for m, v in zip(row, values, strict=True)) + Fraction(jump)
        for row, jump in zip(dense, jumps, strict=True)
    ]
    for number, product in zip(result.T, products, strict=True):
        assert abs(exact(*number) - product) <= product * Fraction(REL)
        assert number[1] == np.inf or number[0] >= 2.0**-256
    if not sum(products):
        return
    kernels.chain.normalise(result, probabilities)
    for number, product in zip(result.T, products, strict=True):
        share = product / sum(products)
        assert abs(exact(*number) - share) <= share * Fraction(REL)
    assert probabilities.sum() == pytest.approx(1, rel=REL)


def test_a_sum_counts_every_term_whatever_level_it_was_written_at():
    # 2**-768 twice: once at level 0 and once at level 2.
    wide = np.array([[2.0**-768, 2.0**256], [0.0, 2.0]])
    probabilities = np.empty(2)
    kernels.chain.normalise(wide, probabilities)
    assert probabilities.tolist() == [0.5, 0.5]


def test_the_likelihood_of_an_impossible_state_does_not_matter():
    belief = Belief.from_probabilities([0.5, 0.5, 0.0])
    one, other = belief.condition([0.0, -5.0, 0.0]), belief.condition([0.0, -5.0, 1e300])
    np.testing.assert_allclose(other.probabilities, one.probabilities, rtol=REL)


def strip(length=40):
    """A walk along a strip that mostly stays where it is."""
    moves = sparse.diags_array([0.25, 0.5, 0.25], offsets=[-1, 0, 1], shape=(length, length))
    dense = moves.toarray()
    dense[0, 0] = dense[-1, -1] = 0.75
    return MarkovModel(dense)


def far_walk(steps):
    """Filter a strip at epsilon 8 with a far observation, beside dense logs; the worst gap."""
    model = strip()
    dense = model.transition.toarray()
    places = np.arange(model.n_states)
    rng = np.random.default_rng(0)
    belief = Belief.certain(0, model.n_states)
    logs, worst = belief.log_probabilities, 0.0
    for _ in range(steps):
        log_likelihood = -8.0 * np.abs(places - rng.integers(-200, 240))
        belief = belief.predict(model).condition(log_likelihood)
        logs = log_step(logs, dense) + log_likelihood
        logs = logs - logsumexp(logs)
        on = belief.possible
        assert (np.isfinite(logs) == on).all()
        worst = max(worst, float(np.abs(belief.log_probabilities[on] - logs[on]).max()))
    return worst


# Logs of about -1000 are spaced 1e-13 apart, and the walk forgets earlier rounding.
FAR_WALK_GAP = 1e-9


def test_beliefs_stay_right_over_many_steps_at_epsilon_8():
    assert far_walk(300) < FAR_WALK_GAP


@pytest.mark.slow
def test_beliefs_stay_right_over_ten_thousand_steps_at_epsilon_8():
    assert far_walk(10_000) < FAR_WALK_GAP


def test_a_huge_finite_likelihood_never_removes_a_state():
    belief = Belief.uniform(2).condition([-1.7e308, 0.0]).condition([-1.7e308, 1.7e308])
    assert belief.possible.all()
    assert np.isfinite(belief.log_probabilities).all()
    assert np.isfinite(belief.predict(MarkovModel(np.eye(2))).log_probabilities).all()


def test_the_mean_weighs_each_value_by_its_probability():
    belief = Belief.from_probabilities([0.25, 0.75])
    assert belief.mean([[0.0, 2.0], [4.0, 2.0]]).tolist() == [3.0, 2.0]


def test_a_hundred_thousand_states_need_only_their_moves():
    n = 100_000
    ring = sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    belief = Belief.certain(n - 1, n).predict(MarkovModel(ring))
    assert np.flatnonzero(belief.possible).tolist() == [0]


# Bad input


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        ([[0.5, 0.4], [0.0, 1.0]], r"rows that sum to one, got 0.9 in row 0"),
        ([[1.0, 0.0], [0.0, 0.0]], r"rows that sum to one, got 0.0 in row 1"),
        ([[1.5, -0.5], [0.0, 1.0]], r"not be negative, got -0.5 in row 0, column 1"),
        ([[np.nan, 1.0], [0.0, 1.0]], r"be finite, got nan in row 0, column 0"),
        ([[np.inf, 1.0], [0.0, 1.0]], r"be finite, got inf in row 0, column 0"),
        ([[0.5, 0.5]], r"a square matrix, got shape \(1, 2\)"),
        ([1.0], r"a square matrix"),
        ([["a"]], r"a square matrix of numbers"),
        (np.zeros((0, 0)), r"at least one state"),
    ],
)
def test_a_bad_transition_is_refused_with_its_place(transition, message):
    with pytest.raises(ArgumentError, match=r"transition must .*" + message):
        MarkovModel(transition)


def test_a_row_within_the_tolerance_is_renormalised():
    model = MarkovModel([[0.5 + 1e-8, 0.5], [0.0, 1.0]])
    assert model.transition.sum(axis=1).tolist() == pytest.approx([1, 1], rel=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Belief.certain(6, 6), r"state must be one of the 6 states, by number from 0$"),
        (lambda: Belief.certain(True, 6), r"state must be a state's number, got bool"),
        (lambda: Belief.known(-1, 6), r"start must be one of the 6 states, by number from 0$"),
        (lambda: Belief.uniform(0), r"n_states must be at least 1, got 0"),
        (lambda: Belief.from_probabilities([0.5, 0.4]), r"sum to one, got a sum of 0.9"),
        (lambda: Belief.from_probabilities([1.5, -0.5]), r"finite and not negative"),
        (lambda: Belief.from_probabilities([np.nan, 1]), r"finite and not negative"),
        (lambda: Belief.from_probabilities([[1.0]]), r"must be a vector"),
        (lambda: Belief.from_probabilities(["a"]), r"must hold numbers"),
        (lambda: Belief.from_log_probabilities([-np.inf]), r"must leave a state possible"),
        (lambda: Belief.from_log_probabilities([np.nan]), r"neither NaN nor plus infinity"),
        (lambda: Belief.known([0.5, 0.5], 3), r"start must have 3 states, got 2"),
        (lambda: Belief.uniform(2).condition([0.0]), r"log_likelihood must have 2 values, got 1"),
        (lambda: Belief.uniform(2).condition([0, np.nan]), r"neither NaN nor plus infinity"),
        (lambda: Belief.uniform(2).condition([0, np.inf]), r"neither NaN nor plus infinity"),
        (lambda: Belief.certain(0, 2).condition([-np.inf, 0]), r"must leave a state possible"),
        (lambda: Belief.uniform(3).predict(MarkovModel([[1.0]])), r"must have 3 states, got 1"),
        (lambda: Belief.uniform(3).predict(np.eye(3)), r"must be a MarkovModel, got ndarray"),
        (lambda: Belief.uniform(3).mean([1.0]), r"one row for each of 3 states, got shape \(1,\)"),
        (
            lambda: MarkovModel([[1.0]]).successors([True, False]),
            "a mask over 1 states or their numbers",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


# Learning by counting


@given(chains())
def test_counting_gives_the_share_of_each_move(chain):
    model, rng = chain
    walk = rng.integers(0, model.n_states, 30)
    counts = np.zeros((model.n_states, model.n_states))
    np.add.at(counts, (walk[:-1], walk[1:]), 1)
    unseen = counts.sum(axis=1) == 0
    counts[unseen, unseen] = 1
    learned = MarkovModel.fit([walk], n_states=model.n_states).transition.toarray()
    np.testing.assert_allclose(learned, counts / counts.sum(axis=1, keepdims=True), rtol=REL)


def test_a_state_that_was_never_left_stays_put():
    model = MarkovModel.fit([[0, 1], []], n_states=3)
    assert model.transition.toarray().tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_smoothing_reaches_the_moves_seen_and_the_support_only():
    support = sparse.csr_array(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]]))
    counts = np.array([[2, 1, 0], [0, 0, 0], [0, 0, 0]])
    plain = MarkovModel.from_counts(counts, smoothing=1).transition.toarray()
    assert plain.tolist() == [[0.6, 0.4, 0], [0, 1, 0], [0, 0, 1]]
    wide = MarkovModel.from_counts(counts, smoothing=1, support=support).transition.toarray()
    np.testing.assert_allclose(wide, [[3 / 6, 2 / 6, 1 / 6], [0, 0, 1], [0, 0, 1]], rtol=REL)


def test_a_count_too_small_to_divide_is_still_possible():
    model = MarkovModel.from_counts([[1e-320, 1e300], [0, 1]])
    assert model.transition.nnz == 3
    assert model.successors(np.array([True, False])).all()


@pytest.mark.parametrize(
    ("sequences", "arguments", "message"),
    [
        ([[0, 1], [1, 0, 7]], {}, r"sequence 1, position 2 does not$"),
        ([[0, -1]], {}, r"sequence 0, position 1 does not$"),
        ([[0.5, 1.0]], {}, r"must hold integers; sequence 0 has type float64"),
        ([0, 1, 2], {}, r"sequence 0 has 0 dimensions"),
        ([[0]], {"n_states": 0}, r"n_states must be at least 1, got 0"),
        ([[0]], {"smoothing": -1}, r"smoothing must not be negative, got -1"),
        ([[0]], {"smoothing": "1e350"}, r"smoothing must be 0 or of a size from 1e-300 to 1e300"),
        ([[0]], {"smoothing": np.nan}, r"smoothing must be finite and rational, got nan"),
        ([[0]], {"support": np.eye(3)}, r"smoothing must be positive when support is given"),
        ([[0]], {"support": np.eye(2), "smoothing": 1}, r"support must have shape \(3, 3\)"),
    ],
)
def test_bad_sequences_are_refused_without_naming_a_state(sequences, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        MarkovModel.fit(sequences, **({"n_states": 3} | arguments))


def test_counts_that_overflow_are_refused():
    with pytest.raises(ArgumentError, match="counts must have finite sums"):
        MarkovModel.from_counts([[1.7e308, 1.7e308], [0, 1]])


# The long run


@given(chains())
def test_a_step_does_not_change_the_stationary_belief(chain):
    model, _ = chain
    ring = np.roll(np.eye(model.n_states), 1, axis=1)
    model = MarkovModel((model.transition.toarray() + ring) / 2)
    belief = model.stationary()
    assert belief.possible.all()
    np.testing.assert_allclose(
        belief.predict(model).probabilities, belief.probabilities, rtol=1e-9, atol=1e-15
    )


def test_states_outside_the_closed_class_are_impossible_in_the_long_run():
    model = MarkovModel([[0.5, 0.5, 0], [0, 0, 1], [0, 1, 0]])
    assert model.stationary().probabilities.tolist() == [0, 0.5, 0.5]
    assert MarkovModel([[0.5, 0.5], [0, 1]]).stationary().probabilities.tolist() == [0, 1]


def test_states_that_are_almost_never_left_keep_their_share():
    # One minus a move of 2**-60 is one in floats, so 1 - q must not be computed that way.
    model = MarkovModel([[1.0, 2.0**-60], [2.0**-61, 1.0]])
    np.testing.assert_allclose(model.stationary().probabilities, [1 / 3, 2 / 3], rtol=REL)


@given(chains(tiny=True), st.sampled_from([1e-6, 0.01, 0.9]))
def test_a_chain_that_can_go_anywhere_has_one_stationary_belief(chain, anywhere):
    model, rng = chain
    density = rng.random(model.n_states) + 0.01
    model = MarkovModel(model.transition, anywhere=anywhere, density=density / density.sum())
    belief = model.stationary()
    assert belief.possible.all()
    after = belief.predict(model).log_probabilities
    # Elimination loses rounding over the least anywhere: 2e-16 / 1e-6, times a few states.
    np.testing.assert_allclose(after, belief.log_probabilities, rtol=0, atol=1e-8)


def test_two_closed_classes_have_no_one_stationary_belief():
    with pytest.raises(ArgumentError, match=r"one closed class of states .* got 2"):
        MarkovModel(np.eye(2)).stationary()
