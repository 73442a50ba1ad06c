"""Blowfish: Example 5.3, Theorem 5.3 and the equivalences of section 4.4."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.markov import Belief, MarkovModel
from dphmm.cost.blowfish import Blowfish, Secret, counting_query
from dphmm.cost.charges import constrained_epsilon
from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import is_protectable, unprotected
from dphmm.policy.repair import protect
from dphmm.policy.sensitivity import sensitivity_hull
from tests.paper import CATEGORIES, TRANSITION, VALUES

# Figure 4 is not at hand; these rows have the answers that the appendix gives for them.
SECRETS = (
    Secret("Ann", "cancer"),
    Secret("Ann", "flu"),
    Secret("Bob", "cancer"),
    Secret("Bob", "diabetes"),
    Secret("Cem", "cancer"),
    Secret("Cem", "diabetes"),
)
COUNTS = counting_query(
    SECRETS,
    [lambda secret: secret.value == "cancer", lambda secret: secret.value == "diabetes"],
)
EXAMPLE = Blowfish(SECRETS, COUNTS, edges=[(0, 1), (2, 3)])


# Paper


def test_example_5_3_has_the_hull_and_the_sensitivity_of_the_paper() -> None:
    assert EXAMPLE.hull() == SensitivityHull.from_vertices([[1, 0], [1, -1]])
    assert EXAMPLE.hull().l1_sensitivity == 2


def test_example_5_3_protects_the_existence_of_each_secret_by_its_own_epsilon() -> None:
    assert EXAMPLE.existence_epsilon(1) == [1, 0, 1, 2, 1, 2]
    assert EXAMPLE.existence_epsilon("0.5") == [Fraction(k, 2) for k in (1, 0, 1, 2, 1, 2)]
    assert EXAMPLE.overall_epsilon(1) == 2


def test_example_5_3_protects_s5_under_both_mechanisms_and_s6_under_laplace_only() -> None:
    assert None in EXAMPLE.protected_by(4)
    assert None in EXAMPLE.protected_by(4, mechanism="laplace")
    assert None not in EXAMPLE.protected_by(5)
    assert None in EXAMPLE.protected_by(5, mechanism="laplace")


def test_example_5_3_makes_s6_look_like_s4_though_the_policy_does_not_link_them() -> None:
    assert not EXAMPLE.policy.has_edge(3, 5)
    assert SECRETS[3] in EXAMPLE.protected_by(5)


def test_theorem_5_3_under_laplace_halves_what_knorm_leaves() -> None:
    halves = [Fraction(k, 2) for k in (1, 0, 1, 1, 1, 1)]
    assert EXAMPLE.existence_epsilon(1, mechanism="laplace") == halves
    assert EXAMPLE.overall_epsilon(1, mechanism="laplace") == Fraction(1, 2)


def test_under_a_staircase_existence_costs_whole_epsilons() -> None:
    smooth = EXAMPLE.existence_epsilon("1/2")
    steps = EXAMPLE.existence_epsilon("1/2", mechanism="staircase")
    assert steps == [Fraction(ceil(2 * loss), 2) for loss in smooth]
    assert EXAMPLE.overall_epsilon(1, mechanism="staircase") == 2
    assert EXAMPLE.overall_epsilon(1, mechanism="staircase", protect="bounded") == 2
    assert EXAMPLE.protected_by(5, mechanism="staircase") == EXAMPLE.protected_by(5)


def test_theorem_5_3_for_replacement_is_the_worst_pair_of_secrets() -> None:
    # (0, 1), from flu to diabetes, is the difference that K holds least well.
    assert EXAMPLE.overall_epsilon(1, protect="bounded") == 2
    assert EXAMPLE.overall_epsilon(1, protect="bounded", mechanism="laplace") == 1


def test_a_null_node_protects_existence_and_bounded_and_unbounded_interfere() -> None:
    table = Blowfish(SECRETS, COUNTS, edges=[(0, 1), (2, 3)], null_edges=[5])
    assert table.existence_epsilon(1) == [1, 0, 1, 1, 1, 1]
    assert table.hull("bounded") == EXAMPLE.hull()
    # Hiding only whether Cem has diabetes tells cancer for certain.
    assert table.hull("unbounded") == SensitivityHull.from_vertices([[0, 1]])
    assert table.existence_epsilon(1, neighbors="unbounded") == [inf, 0, inf, 1, inf, 1]
    assert table.overall_epsilon(1, neighbors="unbounded") == inf


def test_every_secret_linked_with_null_is_unbounded_differential_privacy() -> None:
    table = Blowfish(SECRETS, COUNTS, null_edges=range(6))
    assert table.overall_epsilon(1) == 1
    assert all(None in table.protected_by(secret) for secret in range(6))


def test_every_pair_of_secrets_linked_is_bounded_differential_privacy() -> None:
    table = Blowfish(SECRETS, COUNTS, edges=list(combinations(range(6), 2)))
    assert table.overall_epsilon(1, protect="bounded") == 1


# Section 4.4, on hulls and masks


def location_set(belief: Belief, delta: float) -> np.ndarray:
    """The fewest states that hold 1 - delta of the probability, likeliest first."""
    order = np.argsort(-belief.probabilities, kind="stable")
    needed = int(np.searchsorted(np.cumsum(belief.probabilities[order]), 1 - delta)) + 1
    return np.isin(np.arange(belief.n_states), order[:needed])


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05, 0.3]))
def test_a_delta_location_set_is_the_complete_graph_on_fewer_possible_states(
    seed: int, delta: float
) -> None:
    rng = np.random.default_rng(seed)
    query = Query(rng.integers(-5, 6, size=(6, 2)))
    belief = Belief.from_probabilities(rng.dirichlet(np.ones(6)))
    kept = location_set(belief, delta)
    members = np.flatnonzero(kept)
    hull = sensitivity_hull(query, PolicyGraph.complete(6), kept)
    pairs = [query.points[j] - query.points[k] for j, k in product(members, repeat=2)]
    assert hull == SensitivityHull.from_lattice(np.array(pairs))
    assert constrained_epsilon(query, hull, 1, kept) <= 1
    assert belief.probabilities[kept].sum() >= 1 - delta - 1e-12
    assert len(members) < 2 or is_protectable(query, PolicyGraph.complete(6), kept)


@pytest.mark.parametrize("start", range(6))
def test_a_dphmm_is_blowfish_on_the_repaired_graph_of_the_possible_states(start: int) -> None:
    query = Query(VALUES)
    possible = Belief.certain(start, 6).predict(MarkovModel(TRANSITION)).possible
    graph = protect(query, PolicyGraph.by_category(CATEGORIES), possible)
    states = [Secret("the one person", state) for state in range(6)]
    edges = graph.restricted_to(possible).edges
    table = Blowfish(states, query, edges=edges, possible=possible)
    hull = sensitivity_hull(query, graph, possible)
    assert table.hull() == hull
    assert len(unprotected(query, graph, possible, table.hull())) == 0
    assert all(hull.lattice_contains(query.points[edges[:, 0]] - query.points[edges[:, 1]]))
    assert table.overall_epsilon(1, protect="bounded") == constrained_epsilon(
        query, hull, 1, possible
    )


# Laws


@st.composite
def tables(draw: st.DrawFn) -> Blowfish:
    size = draw(st.integers(1, 5))
    answer = st.tuples(st.integers(-3, 3), st.integers(-3, 3))
    query = Query(draw(st.lists(answer, min_size=size, max_size=size)))
    edges = [edge for edge in combinations(range(size), 2) if draw(st.booleans())]
    null_edges = [secret for secret in range(size) if draw(st.booleans())]
    possible = np.array([draw(st.booleans()) for _ in range(size)])
    secrets = [Secret(person, "a value") for person in range(size)]
    return Blowfish(secrets, query, edges, null_edges=null_edges, possible=possible)


@given(tables())
def test_what_the_policy_links_is_protected_under_both_mechanisms(table: Blowfish) -> None:
    for a, b in table.graph().edges.tolist():
        for mechanism in ("knorm", "laplace"):
            other = None if b == table.null else table.secrets[b]
            assert other in table.protected_by(a, mechanism=mechanism)


@given(tables())
def test_laplace_never_loses_more_than_knorm(table: Blowfish) -> None:
    for protect_ in ("bounded", "unbounded"):
        laplace = table.overall_epsilon(1, mechanism="laplace", protect=protect_)
        assert laplace <= table.overall_epsilon(1, protect=protect_)


@given(tables())
def test_replacing_a_row_costs_at_most_removing_one_and_adding_the_other(table: Blowfish) -> None:
    assert table.overall_epsilon(1, protect="bounded") <= 2 * table.overall_epsilon(1)


# Oracle


@given(tables())
def test_existence_is_the_largest_loss_between_two_tables_that_differ_by_a_row(
    table: Blowfish,
) -> None:
    body = table.body()
    worst: list[Fraction | float] = [Fraction(0)] * table.null
    rows = np.flatnonzero(table.possible)
    for size in range(len(rows)):
        for others in combinations(rows, size):
            without = table.query.points[list(others)].sum(axis=0)
            for secret in set(rows) - set(others):
                grown = table.query.points[[*others, secret]].sum(axis=0)
                worst[secret] = max(worst[secret], body.norm(grown - without))
    assert table.existence_epsilon(1) == worst


# Errors


def test_wrong_arguments_are_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="query must answer for 6 secrets, got 2"):
        Blowfish(SECRETS, Query([0, 1]))
    with pytest.raises(ArgumentError, match=r"edges must name states 0\.\.5, got 6"):
        Blowfish(SECRETS, COUNTS, edges=[(0, 6)])
    with pytest.raises(
        ArgumentError, match="possible must be a mask over 6 states or their numbers"
    ):
        Blowfish(SECRETS, COUNTS, possible=[True])
    with pytest.raises(ArgumentError, match="neighbors must be"):
        EXAMPLE.hull("all")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mechanism must be"):
        EXAMPLE.body("gauss")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="protect must be"):
        EXAMPLE.overall_epsilon(1, protect="none")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="epsilon must be positive"):
        EXAMPLE.existence_epsilon(0)
    with pytest.raises(ArgumentError, match=r"secret must be one of 0\.\.5, got 6"):
        EXAMPLE.protected_by(6)
