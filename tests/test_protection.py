"""Degree of protection and exposure, against every pair of states."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given

from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import (
    count_hidden,
    degree_of_protection,
    exposed,
    is_protectable,
    unprotected,
)
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry, paper

EXAMPLES = 40
MANY = 1000

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)


# Paper


def test_s2_is_hidden_by_s4_and_by_s5_on_the_boundary():
    degrees = degree_of_protection(QUERY, POLICY, paper.POSSIBLE_HIDING_S2)
    assert degrees[1] == paper.DEGREE_OF_S2
    assert degrees.tolist() == [0, 3, 0, 4, 4, 3]
    assert is_protectable(QUERY, POLICY, paper.POSSIBLE_HIDING_S2)


def test_s5_is_exposed_in_example_5_2_and_s3_in_example_6_1():
    assert exposed(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S5).tolist() == [4]
    assert exposed(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S3).tolist() == [2]
    assert not is_protectable(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S3)


def test_s5_is_exposed_to_laplace_noise_in_example_5_2():
    hull = sensitivity_hull(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S5)
    assert exposed(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S5, hull.l1_ball()).tolist() == [4]


def test_exposure_depends_on_the_body_that_the_noise_uses():
    # The paper counts with K, but Laplace noise also hides what only its larger ball holds.
    query = Query([[0, 0], [2, 0], [1, 1]])
    policy = PolicyGraph(3, [[0, 1]])
    hull = sensitivity_hull(query, policy)
    assert exposed(query, policy).tolist() == [2]
    assert exposed(query, policy, hull=hull.l1_ball()).tolist() == []


def test_shrinking_the_possible_set_can_leave_a_protected_state_without_protection():
    # The appendix' Case I says otherwise: with {s2, s4, s5, s6} known to be {s2, s6}.
    hull = sensitivity_hull(QUERY, POLICY, paper.POSSIBLE_HIDING_S2)
    fewer = np.array([False, True, False, False, False, True])
    assert exposed(QUERY, POLICY, paper.POSSIBLE_HIDING_S2, hull).tolist() == []
    assert exposed(QUERY, POLICY, fewer, hull).tolist() == [1, 5]


def test_definition_4_4_asks_for_another_state():
    # As printed "some state in C" could be the state itself, and nothing would be asked.
    assert unprotected(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S3).tolist() == [2]
    assert unprotected(QUERY, POLICY, paper.POSSIBLE_HIDING_S2).tolist() == []


def test_definition_4_4_fails_for_both_ends_of_an_edge_outside_the_body():
    small = SensitivityHull.from_vertices([[1, 1], [1, -1]])
    failing = unprotected(QUERY, POLICY, hull=small).tolist()
    # s4-s5 is (4, 1) and s5-s6 is (3, 0), both too long; s2-s3 and s4-s6 are corners. s1 has
    # no edge and finds s2 at (1, 1).
    assert failing == [3, 4, 5]


# Laws


@given(geometry.cases())
def test_degrees_count_the_state_itself_and_ignore_the_impossible(case):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    degrees = degree_of_protection(query, policy, possible)
    assert (degrees[~possible] == 0).all()
    assert (degrees[possible] >= 1).all()
    assert (degrees <= possible.sum()).all()
    assert exposed(query, policy, possible).tolist() == np.flatnonzero(degrees == 1).tolist()
    assert is_protectable(query, policy, possible) == (not (degrees == 1).any())
    linked = policy.restricted_to(possible).connected
    assert (degrees[linked] > 1).all()


@given(geometry.cases())
def test_an_edge_never_lowers_a_degree_of_protection(case):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    more = policy.with_edges([[0, 1]])
    before = degree_of_protection(query, policy, possible)
    assert (degree_of_protection(query, more, possible) >= before).all()


@given(geometry.cases(states=8))
def test_a_policy_given_as_edges_or_as_cliques_protects_the_same(case):
    points, _, possible = case
    n = len(points)
    cliques = [np.arange(n // 2), np.arange(n // 3, n)]
    policy = PolicyGraph(n, cliques=cliques)
    same = PolicyGraph(n, policy.edges)
    query = Query(points)
    assert degree_of_protection(query, policy, possible).tolist() == (
        degree_of_protection(query, same, possible).tolist()
    )


def test_equal_answers_hide_each_other_and_a_lone_state_is_exposed():
    query = Query([[1, 1], [1, 1], [5, 5]])
    policy = PolicyGraph(3)
    assert degree_of_protection(query, policy).tolist() == [2, 2, 1]
    assert exposed(query, policy, [False, False, True]).tolist() == [2]
    assert not is_protectable(query, policy, [False, False, True])


@given(geometry.cases())
def test_with_its_own_hull_only_states_without_an_edge_fail_definition_4_4(case):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    assert unprotected(query, policy, possible).tolist() == (
        exposed(query, policy, possible).tolist()
    )


# Oracle


def assert_same_as_enumeration(points, edges, possible):
    query, policy = Query(points), PolicyGraph(len(points), edges)
    expected = geometry.degrees(points, edges, possible)
    assert degree_of_protection(query, policy, possible).tolist() == expected
    assert exposed(query, policy, possible).tolist() == [
        state for state, degree in enumerate(expected) if degree == 1
    ]


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_degrees_and_exposure_are_those_of_enumeration(dimension):
    rng = np.random.default_rng(dimension)
    for _ in range(EXAMPLES):
        assert_same_as_enumeration(*geometry.random_case(rng, dimension))


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_degrees_and_exposure_are_those_of_enumeration_in_many_cases(dimension):
    rng = np.random.default_rng(100 + dimension)
    for _ in range(MANY):
        assert_same_as_enumeration(*geometry.random_case(rng, dimension))


@pytest.mark.parametrize("size", [2**29, 2**31, 2**45, 2**62 - 60])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_degrees_of_huge_answers_are_those_of_python_integers(dimension, size):
    rng = np.random.default_rng(dimension)
    for _ in range(15):
        points, edges, possible = geometry.random_case(rng, dimension)
        points = points + size * rng.choice([-1, 0, 1], points.shape)
        assert_same_as_enumeration(points, edges, possible)


@pytest.mark.parametrize("offset", [2**31, 2**61, 2**62 - 5])
def test_the_running_example_is_protected_alike_anywhere_on_the_lattice(offset):
    for values in (np.array(paper.VALUES) + offset, np.array(paper.VALUES) - offset):
        far = Query(values)
        assert degree_of_protection(far, POLICY, paper.POSSIBLE_HIDING_S2)[1] == 3
        assert exposed(far, POLICY, paper.POSSIBLE_EXPOSING_S3).tolist() == [2]
        assert exposed(far, POLICY, paper.POSSIBLE_EXPOSING_S5).tolist() == [4]


def test_counting_in_a_window_agrees_with_every_pair_on_a_grid():
    side = 12
    points = np.array(list(np.ndindex(side, side)))
    query = Query(points)
    policy = PolicyGraph.within_distance(query, 3)
    hull = sensitivity_hull(query, policy)
    vectors = (points[:, None] - points[None, :]).reshape(-1, 2)
    expected = hull.lattice_contains(vectors).reshape(side**2, -1).sum(axis=1)
    assert degree_of_protection(query, policy).tolist() == expected.tolist()
    for enough in (1, 2, 5):
        assert count_hidden(points, hull, enough).tolist() == (
            np.minimum(expected, enough).tolist()
        )


def test_rows_linked_only_sideways_hide_only_their_own_row():
    points = np.array(list(np.ndindex(3, 4)))
    edges = [(a, b) for a, b in combinations(range(12), 2) if points[a, 0] == points[b, 0]]
    assert degree_of_protection(Query(points), PolicyGraph(12, edges)).tolist() == [4] * 12


# Bad input


@pytest.mark.parametrize("function", [degree_of_protection, exposed, is_protectable, unprotected])
@pytest.mark.parametrize(
    ("possible", "message"),
    [
        (
            [True] * 5,
            r"possible must be a mask over 6 states or their numbers, got bool of shape \(5,\)",
        ),
        ([1] * 6, "possible must name each state once, got one twice; a mask holds booleans"),
        ([False] * 6, "possible must contain at least one state, got none"),
    ],
)
def test_a_wrong_mask_is_refused(function, possible, message):
    with pytest.raises(ArgumentError, match=message):
        function(QUERY, POLICY, possible)


@pytest.mark.parametrize("function", [degree_of_protection, exposed, is_protectable, unprotected])
def test_a_hull_from_another_lattice_is_refused(function):
    for hull in (
        SensitivityHull.from_vertices([[1, 2, 3]]),
        SensitivityHull.from_vertices([[1, 2]], step="1/2"),
    ):
        with pytest.raises(ArgumentError, match="hull must live on the query's lattice"):
            function(QUERY, POLICY, hull=hull)


@pytest.mark.parametrize("function", [degree_of_protection, exposed, is_protectable, unprotected])
def test_a_policy_over_other_states_is_refused(function):
    with pytest.raises(ArgumentError, match="policy must have the 6 states of the query, got 5"):
        function(QUERY, PolicyGraph(5))
