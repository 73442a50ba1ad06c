"""One pass over the states, beside the two verbs that it stands for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import Belief, MarkovModel, Mechanism, PolicyGraph, Query, sensitivity_hull
from dphmm.kernels.distance import nearest_among, nearest_elsewhere
from dphmm.kernels.edges import living
from dphmm.release.advance import conditioned, conditioned_plainly
from tests import paper

# A posterior is a product of a thousand-term sum, a norm and an exponential: 1e-12 is four
# orders above what those round.
CLOSE = 1e-12


def same(one: tuple[Belief, np.ndarray], other: tuple[Belief, np.ndarray]) -> None:
    (fused, mean), (plain, expected) = one, other
    np.testing.assert_array_equal(fused.possible, plain.possible)
    np.testing.assert_allclose(fused.probabilities, plain.probabilities, rtol=0, atol=CLOSE)
    on = fused.possible
    # Logs far below zero lose digits of their fraction, so they are compared relatively.
    np.testing.assert_allclose(
        fused.log_probabilities[on], plain.log_probabilities[on], rtol=1e-12, atol=1e-9
    )
    np.testing.assert_allclose(mean, expected, rtol=1e-10, atol=1e-9)


# Paper


@pytest.mark.parametrize("answer", [[4, 2], [0, 0], [-30, 17], [900, -900]])
def test_the_running_example_is_conditioned_alike(answer: list[int]) -> None:
    model, query = MarkovModel(paper.TRANSITION), Query(paper.VALUES)
    policy = PolicyGraph.by_category(paper.CATEGORIES)
    mechanism = Mechanism(query, sensitivity_hull(query, policy), Fraction(1))
    prior = Belief.certain(3, 6).predict(model)
    same(
        conditioned(prior, mechanism, np.array(answer)),
        conditioned_plainly(prior, mechanism, np.array(answer)),
    )


# Laws


@given(
    seed=st.integers(0, 2**32 - 1),
    dimension=st.integers(1, 3),
    epsilon=st.sampled_from(["1/100", "1", "30", "1000"]),
    steps=st.integers(1, 6),
)
def test_one_pass_and_two_verbs_agree_over_time(
    seed: int, dimension: int, epsilon: str, steps: int
) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 12))
    moves = rng.random((size, size)) * (rng.random((size, size)) < 0.5) + np.eye(size)
    model = MarkovModel(moves / moves.sum(axis=1, keepdims=True))
    query = Query(rng.integers(-20, 21, (size, dimension)))
    hull = sensitivity_hull(query, PolicyGraph.complete(size))
    mechanism = Mechanism(query, hull, Fraction(epsilon))
    fused = plain = Belief.certain(int(rng.integers(size)), size)
    for _ in range(steps):
        answer = query.points[rng.integers(size)] + rng.integers(-5, 6, dimension)
        if hull.rank < dimension:
            answer = query.points[np.flatnonzero(fused.predict(model).possible)[0]]
        one = conditioned(fused.predict(model), mechanism, answer)
        other = conditioned_plainly(plain.predict(model), mechanism, answer)
        same(one, other)
        fused, plain = one[0], other[0]


def test_a_belief_that_was_looked_at_is_conditioned_alike() -> None:
    model, query = MarkovModel(paper.TRANSITION), Query(paper.VALUES)
    mechanism = Mechanism(query, sensitivity_hull(query, PolicyGraph.complete(6)), Fraction(2))
    looked = Belief.uniform(6).predict(model)
    assert looked.probabilities.sum() == pytest.approx(1, rel=1e-12)
    fresh = Belief.uniform(6).predict(model)
    same(
        conditioned(looked, mechanism, np.array([2, 2])),
        conditioned(fresh, mechanism, np.array([2, 2])),
    )


# Oracle: the small kernels beside their plain twins


@given(st.integers(0, 2**32 - 1))
def test_nearest_points_are_those_of_all_distances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(-6, 7, (9, 2))
    groups = rng.integers(0, 3, 9)
    apart = ((points[:, None] - points[None, :]) ** 2).sum(axis=2).astype(float)
    apart[groups[:, None] == groups[None, :]] = np.inf
    expected = np.where(np.isinf(apart).all(axis=1), -1, apart.argmin(axis=1))
    assert nearest_elsewhere(points, groups).tolist() == expected.tolist()
    numbers = np.sort(rng.choice(20, 4, replace=False))
    among = points[:4]
    apart = ((points[:, None] - among[None, :]) ** 2).sum(axis=2)
    order = np.argsort(among[:, 0], kind="stable")
    found = nearest_among(points, among[order], numbers[order])
    assert found.tolist() == numbers[apart.argmin(axis=1)].tolist()


@given(st.integers(0, 2**32 - 1))
def test_living_edges_are_those_with_both_ends_possible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    links = rng.integers(0, 8, (12, 2))
    class_of = rng.integers(0, 5, 12)
    possible = rng.random(8) < 0.6
    alive = possible[links].all(axis=1)
    present, connected = living(links, class_of, 5, possible)
    assert np.flatnonzero(present).tolist() == sorted(set(class_of[alive].tolist()))
    assert np.flatnonzero(connected).tolist() == sorted(set(links[alive].ravel().tolist()))
