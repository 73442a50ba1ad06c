"""Second-order chains: pairs that only the chain sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import Plan, PolicyGraph, Query, SecondOrderModel, Stream
from dphmm.chain.belief import Belief
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError

REL = 1e-9


def at(model: SecondOrderModel, previous: int, current: int) -> Belief:
    return Belief.certain(int(model.encode([previous, current])[0]), model.n_states)


# Paper


def test_a_second_order_chain_knows_where_it_came_from():
    # Round and round 0 1 2 1: after 1 comes 2 or 0, whichever it did not come from.
    sequence = [0, 1, 2, 1] * 10
    model = SecondOrderModel.fit([sequence], n_states=3, zeros="facts")
    walk = model.sample(8, rng=np.random.default_rng(0), start=at(model, 0, 1))
    assert walk.tolist() == [2, 1, 0, 1, 2, 1, 0, 1]
    plain = MarkovModel.fit([sequence], n_states=3, zeros="facts")
    assert plain.transition.toarray()[1].tolist() == pytest.approx([9 / 19, 0, 10 / 19])


def test_a_stream_over_places_follows_a_shuttle():
    model = SecondOrderModel.fit([[0, 1, 2, 1] * 10], n_states=3)
    query = Query([0, 10, 20])
    stream = Stream(model, Plan(PolicyGraph.complete(3), query), epsilon=3, start=0)
    for state in (1, 2, 1, 0, 1):
        stream.release(state)
    after = model.place_belief(model.predict(at(model, 0, 1), 1))
    assert after.probabilities[2] > 0.98


# Laws


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(3, 40))
def test_pairs_only_follow_pairs_that_they_meet(seed, n, length):
    rng = np.random.default_rng(seed)
    sequences = [rng.integers(0, n, length), rng.integers(0, n, 2)]
    for smoothing in (0.0, 0.5):
        model = SecondOrderModel.fit(sequences, n_states=n, smoothing=smoothing)
        sources, targets = model.transition.nonzero()
        assert (model.pairs[sources, 1] == model.pairs[targets, 0]).all()
        assert (model.pairs[model.memory.fresh] == np.arange(n)[:, None]).all()
        for sequence in sequences:
            encoded = model.encode(sequence)
            assert (model.current[encoded] == sequence[1:]).all()
            steps = model.transition.toarray()[encoded[:-1], encoded[1:]]
            assert (steps > 0).all()


def test_a_pair_that_was_never_left_moves_to_its_stay():
    model = SecondOrderModel.fit([[0, 1]], n_states=2, zeros="facts")
    assert model.pairs.tolist() == [[0, 0], [0, 1], [1, 1]]
    # Nobody without a past is known to do anything but go from 0 to 1, and to stay there.
    assert model.transition.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_em_on_pairs_gives_pairs_back():
    model = SecondOrderModel.fit([[0, 1, 2, 1, 0, 1, 0, 1, 2]], n_states=3)
    rows = -np.random.default_rng(0).random((6, 3))
    learned = model.fit_em([rows], start=0, n_iter=2).model
    assert isinstance(learned, SecondOrderModel)
    assert (learned.pairs == model.pairs).all()
    assert learned.anywhere == model.anywhere


def test_a_place_that_was_never_seen_has_a_pair_that_can_be_reached() -> None:
    model = SecondOrderModel.fit([[0, 1, 0, 1]], n_states=3)
    assert model.pairs.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 2]]
    # Whoever has gone to 0 or 1 moves on as others do from there; nobody has left 2.
    assert model.transition.toarray().tolist() == [
        [0, 0, 1, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ]
    belief = model.predict(at(model, 0, 1), 1)
    assert model.place_belief(belief).possible.all()
    assert belief.possible.tolist() == [True, True, False, True, True]
    assert model.encode([0, 1, 2, 1]).tolist() == [2, 4, 3]


# Oracle


@given(st.integers(0, 2**32 - 1), st.integers(2, 3))
def test_pairs_with_a_term_filter_as_their_dense_matrix_does(seed, n):
    rng = np.random.default_rng(seed)
    model = SecondOrderModel.fit([rng.integers(0, n, 12)], n_states=n, anywhere=0.05)
    dense = 0.95 * model.transition.toarray() + model.jumps
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=REL)
    rows = -5 * rng.random((6, n))
    lifted = [row[model.current] for row in rows]
    stated, start = MarkovModel(dense), int(model.memory.fresh[0])
    assert model.score(rows, start=0) == pytest.approx(stated.score(lifted, start=start), rel=REL)
    ours, theirs = model.smooth(rows, start=0), stated.smooth(lifted, start=start)
    for one, other in zip(ours, theirs, strict=True):
        merged = np.bincount(model.current, other.probabilities, n)
        np.testing.assert_allclose(one.probabilities, merged, rtol=REL, atol=1e-15)
        assert one.possible.all()
    score, path = model.decode(rows, start=0)
    expected, states = stated.decode(lifted, start=start)
    assert score == pytest.approx(expected, rel=REL)
    assert path.tolist() == model.current[states].tolist()
    np.testing.assert_allclose(
        model.stationary().probabilities, stated.stationary().probabilities, rtol=1e-9, atol=1e-15
    )
    assert isinstance(model.own, SecondOrderModel)
    assert not model.own.anywhere


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SecondOrderModel.fit([[0]], n_states=2), r"at least one sequence of two states"),
        (
            lambda: SecondOrderModel.fit([[0, 0, 0]], n_states=2, zeros="facts").encode([0, 0, 1]),
            r"the step after position 1 does not$",
        ),
        (lambda: SecondOrderModel([[1.0]], [0, 0], 1), r"pairs must have rows of two states"),
        (
            lambda: SecondOrderModel([[1.0]], [[0, 0], [1, 1]], 2),
            r"current must name the place of each of 1 states, got 2",
        ),
        (lambda: SecondOrderModel([[1.0]], [[0, 2]], 2), r"pairs must name states 0..1"),
        (lambda: SecondOrderModel(np.eye(2), [[1, 1], [0, 0]], 2), r"sorted by their current"),
        (
            lambda: SecondOrderModel(np.eye(3)[[1, 0, 2]], [[0, 0], [1, 0], [1, 1]], 2),
            r"only to pairs \(j, k\)",
        ),
        (lambda: SecondOrderModel([[1.0]], [[0, 0]], 2), r"every \(k, k\), got none for 1$"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
