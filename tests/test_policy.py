"""PolicyGraph: which states must look alike."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import isqrt

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from tests import paper


@st.composite
def policies(draw, max_states=8):
    """Links and overlapping cliques together."""
    n = draw(st.integers(1, max_states))
    pairs = list(combinations(range(n), 2))
    links = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    cliques = draw(st.lists(st.lists(st.integers(0, n - 1), unique=True), max_size=3))
    return PolicyGraph(n, links, cliques=cliques)


def edge_set(policy):
    return {tuple(edge) for edge in policy.edges.tolist()}


# Paper


def test_the_categories_of_figure_1_link_their_own_states():
    policy = PolicyGraph.by_category(paper.CATEGORIES)
    assert edge_set(policy) == {(1, 2), (3, 4), (3, 5), (4, 5)}
    assert policy.neighbors(0).tolist() == [0]
    assert policy.neighbors(4).tolist() == [3, 4, 5]


def test_the_constraint_of_figure_1_takes_the_edges_of_s5_away():
    policy = PolicyGraph.by_category(paper.CATEGORIES)
    assert edge_set(policy.restricted_to(paper.POSSIBLE_EXPOSING_S5)) == {(1, 2)}


def test_the_one_step_policy_links_states_reached_from_some_state():
    # The paper writes "for all i"; states that one row reaches together are meant.
    policy = PolicyGraph.one_step(MarkovModel(paper.TRANSITION))
    expected = set()
    for row in paper.TRANSITION:
        expected |= set(combinations([j for j, p in enumerate(row) if p > 0], 2))
    assert edge_set(policy) == expected


def test_the_complete_policy_links_everybody_in_linear_space():
    assert edge_set(PolicyGraph.complete(5)) == set(combinations(range(5), 2))
    policy = PolicyGraph.complete(100_000)
    assert len(policy.members) == 100_000
    assert len(policy.links) == 0


# Laws


@given(policies(), policies())
def test_policies_have_one_fingerprint_exactly_if_they_have_the_same_edges(one, other):
    as_links = PolicyGraph(one.n_states, one.edges)
    as_pairs = PolicyGraph(one.n_states, cliques=one.edges[::-1])
    assert one.digest == as_links.digest == as_pairs.digest == (one | as_pairs).digest
    assert (one.digest == other.digest) == (one == other)


@given(policies())
def test_a_state_is_its_own_neighbour_and_links_are_mutual(policy):
    for state in range(policy.n_states):
        around = policy.neighbors(state)
        assert state in around
        assert sorted(set(around.tolist())) == around.tolist()
        for other in range(policy.n_states):
            linked = (min(state, other), max(state, other)) in edge_set(policy)
            assert policy.has_edge(state, other) == linked
            assert (other in around) == (linked or other == state)
    assert policy.connected.tolist() == [
        len(policy.neighbors(state)) > 1 for state in range(policy.n_states)
    ]


@given(policies(), st.integers(0, 255))
def test_a_restriction_keeps_exactly_the_edges_between_possible_states(policy, bits):
    mask = np.array([bits >> i & 1 for i in range(policy.n_states)], dtype=bool)
    mask[bits % policy.n_states] = True
    kept = {(a, b) for a, b in edge_set(policy) if mask[a] and mask[b]}
    restricted = policy.restricted_to(mask)
    assert edge_set(restricted) == kept
    assert restricted.n_states == policy.n_states
    assert not restricted.connected[~mask].any()


@given(policies(), policies())
def test_a_union_has_the_edges_of_both(a, b):
    if a.n_states != b.n_states:
        with pytest.raises(ArgumentError, match="policies must have the same states, got"):
            _ = a | b
    else:
        assert edge_set(a | b) == edge_set(a) | edge_set(b)
        assert a | b == b | a
        assert a | a == a


@given(policies())
def test_edges_go_in_and_come_out_with_networkx_and_as_lists(policy):
    assert PolicyGraph.from_networkx(policy.to_networkx()) == policy
    assert PolicyGraph(policy.n_states, policy.edges) == policy
    assert PolicyGraph(policy.n_states, policy.edges[:, ::-1]) == policy
    assert policy.to_networkx().number_of_nodes() == policy.n_states


@given(policies(), policies())
def test_edges_added_and_taken_away_leave_the_rest(policy, other):
    if policy.n_states == other.n_states:
        grown = policy.with_edges(other.edges)
        assert edge_set(grown) == edge_set(policy) | edge_set(other)
        assert edge_set(grown.without_edges(other.edges)) == edge_set(policy) - edge_set(other)


def test_a_networkx_loop_is_dropped_and_other_names_are_refused():
    graph = networkx.Graph([(0, 1), (1, 1)])
    assert edge_set(PolicyGraph.from_networkx(graph)) == {(0, 1)}
    with pytest.raises(ArgumentError, match=r"graph must have the nodes 0\.\.1, got other names"):
        PolicyGraph.from_networkx(networkx.Graph([("a", "b")]))


def test_arrays_cannot_be_changed_and_a_policy_is_not_hashable():
    policy = PolicyGraph(3, [[0, 1]], cliques=[[0, 1, 2]])
    for array in (policy.links, policy.members, policy.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(TypeError):
        hash(policy)
    assert policy != "a policy"


# Oracle


@pytest.mark.parametrize("offset", [0, 2**40, 2**61])
@pytest.mark.parametrize("reach", [6, 2**27, 2**30])
@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_within_distance_is_exact_at_the_boundary(dimension, reach, offset):
    rng = np.random.default_rng(dimension)
    points = rng.integers(-reach, reach + 1, (12, dimension)) + offset
    rows = points.astype(object)
    for a, b in [(0, 1), (2, 3), (4, 5)]:
        square = int(((rows[a] - rows[b]) ** 2).sum())
        for radius in (isqrt(square), isqrt(square) + 1):
            expected = {
                (i, j)
                for i, j in combinations(range(12), 2)
                if int(((rows[i] - rows[j]) ** 2).sum()) <= radius**2
            }
            assert edge_set(PolicyGraph.within_distance(Query(points), radius)) == expected


def test_within_distance_counts_a_distance_equal_to_the_radius():
    query = Query([[0, 0], [3, 4], [6, 8]])
    assert edge_set(PolicyGraph.within_distance(query, 5)) == {(0, 1), (1, 2)}
    assert edge_set(PolicyGraph.within_distance(query, Fraction(4999, 1000))) == set()
    assert edge_set(PolicyGraph.within_distance(query, 10**200)) == {(0, 1), (0, 2), (1, 2)}
    tenths = Query([0.1, 0.2, 0.4], step="0.1")
    assert edge_set(PolicyGraph.within_distance(tenths, "0.1")) == {(0, 1)}
    assert edge_set(PolicyGraph.within_distance(tenths, 0.3)) == {(0, 1), (0, 2), (1, 2)}


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PolicyGraph(0), "n_states must be at least 1, got 0"),
        (lambda: PolicyGraph(3, [[0, 3]]), r"edges must name states 0\.\.2, got 3"),
        (lambda: PolicyGraph(3, [[-1, 0]]), r"edges must name states 0\.\.2, got -1"),
        (lambda: PolicyGraph(3, [[1, 1]]), r"edges must join two different states, got \(1, 1\)"),
        (
            lambda: PolicyGraph(3, [[0, 1], [1, 2], [2, 1]]),
            r"edges must be given once, got \(1, 2\) more than once",
        ),
        (lambda: PolicyGraph(3, [0, 1]), r"edges must be pairs of states, got shape \(2,\)"),
        (lambda: PolicyGraph(3, [[0.0, 1.0]]), "edges must hold state numbers, got dtype float64"),
        (lambda: PolicyGraph(3, cliques=[[0, 5]]), r"cliques must name states 0\.\.2, got 5"),
        (lambda: PolicyGraph(3, cliques=[[0, 0]]), "cliques must name each state once"),
        (lambda: PolicyGraph(3).neighbors(3), r"state must be one of the 3 states"),
        (lambda: PolicyGraph(3).with_edges([[0, 9]]), r"edges must name states 0\.\.2, got 9"),
        (lambda: PolicyGraph.within_distance(Query([1, 2]), -1), "radius must not be negative"),
        (
            lambda: PolicyGraph(3).restricted_to([True, False]),
            r"possible must be a mask over 3 states or their numbers, got bool of shape \(2,\)",
        ),
        (
            lambda: PolicyGraph(3).restricted_to([0, 1, 1]),
            "possible must name each state once, got one twice; a mask holds booleans",
        ),
        (
            lambda: PolicyGraph(3).restricted_to([False] * 3),
            "possible must contain at least one state, got none",
        ),
    ],
)
def test_bad_arguments_say_what_they_must_be(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
