"""What is public about a step: repaired graph, hull, body, cost and statement."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.cost.words import release_statement
from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.policy import plan as plan_module
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan, location_set
from dphmm.policy.protection import exposed
from dphmm.policy.repair import protect
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry, paper

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
EXPOSING_S3 = np.array(paper.POSSIBLE_EXPOSING_S3)
EXPOSING_S5 = np.array(paper.POSSIBLE_EXPOSING_S5)
ONLY_S5 = np.arange(6) == 4


# Paper


@pytest.mark.parametrize(
    ("repair", "partner"), [("nearest", 4), ("min_area", 3), ("min_error", 4), ("optimal", 4)]
)
def test_s3_gets_the_partner_of_its_method_in_example_5_3(repair, partner):
    step = Plan(POLICY, QUERY, repair=repair).at(EXPOSING_S3)
    assert step.policy.has_edge(2, partner)
    assert step.hull.volume == paper.REPAIRED_AREA[partner]
    assert step.hull.mean_squared_error(1) == paper.REPAIRED_ERROR[partner]
    assert step.body == step.hull


def test_without_repair_the_graph_is_only_restricted():
    step = Plan(POLICY, QUERY, repair=None).at(EXPOSING_S5)
    assert step.policy.edges.tolist() == [[1, 2]]
    assert step.hull.rank == 1
    assert step.worst_norm == inf
    assert step.constrained(Fraction(1)) == inf
    assert release_statement(step, Fraction(1)).endswith("told apart with certainty.")


def test_laplace_repairs_what_its_own_body_exposes():
    """Example 5.2: under the l1 ball of s2-s3 alone, s5 stays exposed; notes, erratum k."""
    plain = Plan(POLICY, QUERY, mechanism="laplace", repair=None).at(EXPOSING_S5)
    assert plain.body == plain.hull.l1_ball()
    assert exposed(QUERY, plain.policy, EXPOSING_S5, plain.body).tolist() == [4]
    repaired = Plan(POLICY, QUERY, mechanism="laplace").at(EXPOSING_S5)
    assert repaired.body == repaired.hull.l1_ball()
    assert exposed(QUERY, repaired.policy, EXPOSING_S5, repaired.body).tolist() == []


def test_laplace_leaves_alone_what_its_larger_body_already_hides():
    """The l1 ball holds more than the hull, so fewer states need a partner."""
    query = Query([[0, 0], [2, 0], [1, 1], [0, 2]])
    policy = PolicyGraph(4, [[0, 1]])
    by_hull = Plan(policy, query, full_rank=False).at(np.ones(4, dtype=bool))
    by_ball = Plan(policy, query, mechanism="laplace", full_rank=False).at(np.ones(4, dtype=bool))
    assert by_ball.policy.edges.tolist() == [[0, 1]]
    assert len(by_hull.policy.edges) > 1


def test_a_lone_state_is_said_to_be_beyond_protection():
    step = Plan(POLICY, QUERY).at(ONLY_S5)
    assert step.is_lone
    assert step.hull.rank == 0
    assert step.worst_norm == 0
    assert release_statement(step, Fraction(1)).startswith("Only one state is possible, so the")
    assert (step.price(Fraction(1)), step.known_answer.tolist()) == (0, QUERY.points[4].tolist())


def test_a_statement_says_what_a_location_set_leaves_out():
    step = Plan(POLICY, QUERY).at(EXPOSING_S3)
    assert release_statement(step, Fraction(1, 2)) == (
        "Odds between two linked states change by at most a factor exp(0.5)."
    )
    assert "outside the 0.9 location set" in release_statement(step, Fraction(1, 2), delta=0.1)


# Laws


@given(geometry.cases(dimensions=(1, 2, 3)), st.sampled_from(["knorm", "laplace", "isotropic"]))
def test_a_repaired_step_exposes_nobody_and_tells_nobody_apart(case, mechanism):
    points, edges, possible = case
    query = Query(points)
    step = Plan(PolicyGraph(len(points), edges), query, mechanism=mechanism).at(possible)
    if not step.is_lone:
        assert not len(exposed(query, step.policy, possible, step.body))
        assert step.worst_norm < inf
    for low, high in step.policy.edges:
        assert step.body.lattice_norm(query.points[low] - query.points[high]) <= 1


@given(geometry.cases(dimensions=(1, 2, 3)))
def test_an_enlarged_step_has_the_hull_of_the_plain_one_inside(case):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    plain = Plan(policy, query).at(possible)
    larger = Plan(policy, query, shape="enlarged").at(possible)
    assert larger.policy == plain.policy
    assert larger.hull == plain.hull
    assert larger.body.lattice_contains(plain.hull.lattice_vertices).all()
    assert larger.body.mean_squared_error(1) <= plain.body.mean_squared_error(1)


def test_a_possible_set_is_worked_out_once_until_too_many_were_met(monkeypatch):
    monkeypatch.setattr(plan_module, "REMEMBERED", 2)
    plan = Plan(POLICY, QUERY)
    first, second = plan.at(EXPOSING_S3), plan.at(EXPOSING_S5)
    assert plan.at(EXPOSING_S3.copy()) is first
    assert plan.at(EXPOSING_S5.copy()) is second
    plan.at(ONLY_S5)
    assert plan.at(EXPOSING_S3.copy()) is not first


def test_a_whole_graph_of_the_users_is_added_even_if_nobody_is_exposed():
    possible = np.ones(6, dtype=bool)
    linked = PolicyGraph.complete(6)
    wanted = PolicyGraph(6, [(0, 4)])
    step = Plan(PolicyGraph(6, [(0, 1), (2, 3), (4, 5)]), QUERY, partners=wanted).at(possible)
    assert step.policy.has_edge(0, 4)
    assert Plan(linked, QUERY, partners=wanted).at(possible).policy == linked


def test_another_query_keeps_the_rules():
    plan = Plan(POLICY, QUERY, mechanism="laplace", repair="nearest", full_rank=False)
    other = Query([[5 * i] for i in range(6)])
    again = plan.replace(query=other)
    assert (again.mechanism, again.repair, again.full_rank) == ("laplace", "nearest", False)
    assert again.at(EXPOSING_S3).query is other


def test_partners_of_the_users_choice_are_used():
    step = Plan(POLICY, QUERY, partners={2: 5}).at(EXPOSING_S3)
    assert step.policy.has_edge(2, 5)
    assert step.policy == protect(QUERY, POLICY, EXPOSING_S3, partners={2: 5})


def test_a_policy_of_other_states_is_refused():
    with pytest.raises(ArgumentError, match="policy must have the 6 states of the query, got 5"):
        Plan(PolicyGraph(5), QUERY)


# Oracle


@given(geometry.cases(dimensions=(1, 2, 3)))
def test_the_worst_pair_is_the_worst_of_all_pairs(case):
    points, edges, possible = case
    query = Query(points)
    step = Plan(PolicyGraph(len(points), edges), query, repair=None).at(possible)
    body = geometry.body_of(points, edges, possible)
    pairs = combinations(np.flatnonzero(possible), 2)
    norms = [body.norm(tuple(query.points[i] - query.points[j])) for i, j in pairs]
    assert step.worst_norm == max(norms, default=0)
    corners = {tuple(map(int, corner)) for corner in step.hull.lattice_vertices}
    spanned = SensitivityHull.from_lattice(np.array(list(corners)).reshape(-1, query.dimension))
    assert spanned == sensitivity_hull(query, PolicyGraph(len(points), edges), possible)


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=7).filter(any),
    st.sampled_from([0.001, 0.1, 0.25, 0.5, 0.9]),
)
def test_a_location_set_is_the_smallest_that_reaches_its_share(weights, delta):
    probabilities = np.array(weights) / sum(weights)
    chosen = location_set(probabilities, delta)
    # Weights are small integers, so sums are compared as fractions.
    total, wanted = sum(weights), 1 - Fraction(str(delta))
    share = Fraction(int(np.array(weights)[chosen].sum()), total)
    exact_tie = any(
        Fraction(sum(subset), total) == wanted
        for size in range(len(weights) + 1)
        for subset in combinations(weights, size)
    )
    if exact_tie:  # a float sum may fall on either side of an exact tie
        return
    assert share >= wanted
    for size in range(int(chosen.sum())):
        for subset in combinations(weights, size):
            assert Fraction(sum(subset), total) < wanted
    least = min(np.array(weights)[chosen])
    for state in np.flatnonzero(~chosen):
        assert weights[state] <= least
        if weights[state] == least:
            assert all(other < state for other in np.flatnonzero(chosen) if weights[other] == least)


def test_a_pickled_plan_knows_what_it_has_met() -> None:
    plan = Plan(POLICY, QUERY)
    step = plan.at([1, 2])
    again = pickle.loads(pickle.dumps(plan))
    assert again.digest == plan.digest
    assert again._cache.met.keys() == plan._cache.met.keys()
    assert again.at([1, 2]).hull == step.hull
    assert again.at([0, 1]).hull == plan.at([0, 1]).hull


def test_prices_are_read_as_everywhere_and_what_is_none_is_refused_in_a_sentence():
    step = Plan(PolicyGraph.complete(3), Query([0, 1, 3])).at([0, 1, 2])
    tenth = step.mechanism(Fraction(1, 10))
    for same in ("0.1", 0.1, "1/10"):
        assert step.mechanism(same) is tenth
        assert step.price(same) == Fraction(1, 10)
        assert step.constrained(same) == Fraction(1, 10)
        assert isinstance(step.constrained(same), Fraction)
    for ask in (step.mechanism, step.price, step.constrained):
        for wrong in ("x", None, True, float("nan"), [1], -1):
            with pytest.raises(ArgumentError, match=r"^epsilon must be "):
                ask(wrong)
