"""SensitivityHull: norms, corners, volume and error, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry, paper

EXAMPLES = 40
MANY = 1000
FLOAT_REL = 1e-9  # the triangulation of the second way is in floats

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)


def hull_of(points, edges, possible=None):
    return sensitivity_hull(Query(points), PolicyGraph(len(points), edges), possible)


def corner_set(hull):
    return {tuple(map(int, corner)) for corner in hull.lattice_vertices}


def loss(body, a, b):
    """ln of the likelihood ratio of f(a) as an answer, for state a against b, in epsilons."""
    return body.lattice_norm(QUERY.points[a] - QUERY.points[b])


# Paper


def test_the_hull_of_example_5_1_has_its_corners_area_and_l1_sensitivity():
    hull = sensitivity_hull(QUERY, POLICY)
    assert corner_set(hull) == {(4, 1), (-1, 1), (-3, 0), (-4, -1), (1, -1), (3, 0)}
    assert corner_set(hull) == geometry.Body(paper.DIFFERENCES, 2).corners()
    assert hull.volume == paper.AREA
    assert hull.l1_sensitivity == paper.L1_SENSITIVITY
    differences = QUERY.points[POLICY.edges[:, 0]] - QUERY.points[POLICY.edges[:, 1]]
    both_ways = {tuple(v) for v in np.concatenate([differences, -differences]).tolist()}
    assert both_ways == set(paper.DIFFERENCES)


def test_laplace_tells_s5_apart_in_example_5_2():
    hull = sensitivity_hull(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S5)
    assert hull.l1_sensitivity == 2
    laplace = hull.l1_ball()
    assert loss(laplace, 4, 1) == loss(laplace, 4, 2) == Fraction(paper.LAPLACE_LOSS)
    assert loss(laplace, 1, 2) == 1


def test_k_norm_noise_exposes_s5_completely_in_example_5_2():
    hull = sensitivity_hull(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S5)
    assert hull.rank == 1
    assert corner_set(hull) == {(-1, 1), (1, -1)}
    assert loss(hull, 4, 1) == loss(hull, 4, 2) == inf
    assert loss(hull, 1, 2) == 1
    assert hull.volume == 0


def test_s5_lies_exactly_on_the_boundary_around_s2():
    hull = sensitivity_hull(QUERY, POLICY, paper.POSSIBLE_HIDING_S2)
    assert loss(hull, 4, 1) == 1
    assert loss(hull, 3, 1) == Fraction(2, 3)
    assert loss(hull, 5, 1) == Fraction(5, 3)


def test_repairs_of_example_6_1_have_the_areas_and_errors_of_the_notes():
    graph = POLICY.restricted_to(paper.POSSIBLE_EXPOSING_S3)
    before = sensitivity_hull(QUERY, graph)
    assert before.volume == paper.AREA_BEFORE_REPAIR
    assert before.mean_squared_error(1) == Fraction(paper.ERROR_BEFORE_REPAIR)
    for partner, area in paper.REPAIRED_AREA.items():
        hull = sensitivity_hull(QUERY, graph.with_edges([[2, partner]]))
        assert hull.volume == area
        assert hull.mean_squared_error(1) == paper.REPAIRED_ERROR[partner]
        assert hull.mean_squared_error("1/2") == 4 * paper.REPAIRED_ERROR[partner]


@given(st.integers(0, 2**32 - 1))
def test_in_the_plane_laplace_is_never_better_than_k_norm_noise(seed):
    """Corollary 5.1 holds in the plane; the proof is in the notes on the paper."""
    rng = np.random.default_rng(seed)
    corners = rng.integers(-40, 41, (int(rng.integers(1, 7)), 2))
    hull = SensitivityHull.from_lattice(corners[corners.any(axis=1)])
    assert hull.mean_squared_error(1) <= hull.l1_ball().mean_squared_error(1) or hull.rank < 2


def test_laplace_can_be_better_than_k_norm_noise_in_three_dimensions():
    thin = SensitivityHull.from_vertices([[100, y, z] for y in (-1, 1) for z in (-1, 1)])
    # Per axis, Laplace noise with the l1 sensitivity has variance 2 S^2.
    laplace = 3 * 2 * thin.l1_sensitivity**2
    assert thin.mean_squared_error(1) == Fraction(66680, 1)
    assert laplace == Fraction(62424, 1)
    assert laplace < thin.mean_squared_error(1)


def test_noise_from_the_l1_ball_has_the_error_of_laplace_noise():
    # Variance 2 S^2 on each axis; the paper's footnote says 1, for a standard Laplace.
    ball = sensitivity_hull(QUERY, POLICY).l1_ball()
    assert ball.mean_squared_error(1) == Fraction(2 * 2 * paper.L1_SENSITIVITY**2)
    assert corner_set(ball) == {(5, 0), (-5, 0), (0, 5), (0, -5)}


# Laws


@given(geometry.cases(), st.integers(-5, 5), st.fractions(-3, 3, max_denominator=7))
def test_a_norm_is_symmetric_homogeneous_and_obeys_the_triangle_inequality(case, shift, factor):
    points, edges, _ = case
    hull = hull_of(points, edges)
    u = points[0] - points[-1]
    v = np.roll(points[-1], 1) + shift * u
    assert hull.norm(u) == hull.norm(-u)
    assert hull.norm(u + v) <= hull.norm(u) + hull.norm(v)
    assert hull.norm(0 * u) == 0
    if factor and hull.norm(u) < inf:
        assert hull.norm([factor * int(x) for x in u]) == abs(factor) * hull.norm(u)


@given(geometry.cases())
def test_every_edge_lies_in_its_own_hull_and_a_new_one_never_shrinks_it(case):
    points, edges, possible = case
    hull = hull_of(points, edges)
    grown = hull_of(points, [[0, 1], *[e for e in edges.tolist() if e != [0, 1]]])
    for a, b in combinations(range(len(points)), 2):
        vector = points[a] - points[b]
        if [a, b] in edges.tolist():
            assert hull.contains(vector)
        assert grown.norm(vector) <= hull.norm(vector)
        assert hull_of(points, edges, possible).norm(vector) >= hull.norm(vector)
    assert grown.volume >= hull.volume
    assert grown.l1_sensitivity >= hull.l1_sensitivity
    assert grown.rank >= hull.rank


@given(geometry.cases(), st.randoms(use_true_random=False))
def test_a_hull_does_not_depend_on_the_way_to_it(case, random):
    points, edges, _ = case
    hull = hull_of(points, edges)
    rows = edges.tolist()
    random.shuffle(rows)
    flipped = [edge[::-1] if random.random() < 0.5 else edge for edge in rows]
    again = hull_of(points, flipped)
    by_corners = SensitivityHull.from_lattice(hull.lattice_vertices)
    elsewhere = hull_of(points + 2**40, flipped)
    for other in (again, by_corners, elsewhere):
        assert other == hull
        assert other.digest == hull.digest
        assert hash(other) == hash(hull)
        assert (other.transform == hull.transform).all()
        assert np.array_equal(other.body.corners, hull.body.corners)
        assert np.array_equal(other.body.simplices, hull.body.simplices)


@given(geometry.cases(states=9))
def test_a_policy_given_as_edges_or_as_cliques_has_the_same_hull(case):
    points, edges, possible = case
    n = len(points)
    clique = np.arange(n)[n // 3 :]
    pairs = list(combinations(clique.tolist(), 2))
    extra = [edge for edge in edges.tolist() if tuple(edge) not in pairs]
    as_edges = PolicyGraph(n, [*pairs, *extra])
    as_cliques = PolicyGraph(n, edges, cliques=[clique])
    query = Query(points)
    assert sensitivity_hull(query, as_edges) == sensitivity_hull(query, as_cliques)
    assert sensitivity_hull(query, as_edges, possible) == sensitivity_hull(
        query, as_cliques, possible
    )


@given(geometry.cases(), st.sampled_from(["1", "1/4", "10", "0.1"]))
def test_vectors_and_lengths_are_in_the_units_of_the_query(case, step):
    points, edges, _ = case
    unit = hull_of(points, edges)
    scale = Fraction(step)
    values = [[float(int(x) * scale) for x in point] for point in points]
    scaled = sensitivity_hull(Query(values, step), PolicyGraph(len(points), edges))
    vector = points[0] - points[1]
    assert scaled.norm([int(x) * scale for x in vector]) == unit.norm(vector)
    assert scaled.volume == unit.volume * scale**unit.dimension
    assert scaled.l1_sensitivity == unit.l1_sensitivity * scale
    assert scaled.mean_squared_error(2) == unit.mean_squared_error(2) * scale**2
    assert (scaled == unit) == (scale == 1)


@given(geometry.cases())
def test_every_convex_body_costs_at_least_what_its_longest_vector_costs(case):
    # The bound by which the search for partners stops early: E|z|^2 >= 2 |w|^2.
    hull = hull_of(*case[:2])
    longest = int((hull.lattice_vertices.astype(object) ** 2).sum(axis=1).max())
    assert hull.mean_squared_error(1) >= 2 * longest


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_a_policy_without_edges_or_with_equal_answers_has_rank_zero(dimension):
    points = np.arange(4 * dimension).reshape(4, dimension)
    equal = np.ones((4, dimension), dtype=int)
    for hull in (
        hull_of(points, []),
        hull_of(equal, [[0, 1]]),
        sensitivity_hull(Query(equal), PolicyGraph.complete(4)),
        sensitivity_hull(Query(points), PolicyGraph.complete(4), [True, False, False, False]),
    ):
        assert hull.rank == 0
        assert hull.volume == hull.l1_sensitivity == hull.mean_squared_error(1) == 0
        assert hull.norm([0] * dimension) == 0
        assert hull.norm([1] * dimension) == inf
        assert corner_set(hull) == {(0,) * dimension}
        assert hull.lattice_norms(np.eye(dimension, dtype=int)).tolist() == [inf] * dimension
        assert hull.lattice_contains(np.zeros((2, dimension), dtype=int)).all()
        assert hull.l1_ball().rank == 0


@pytest.mark.parametrize("dimension", [2, 3, 4, 5, 6])
def test_cubes_and_cross_polytopes_come_out_of_their_corners(dimension):
    corners = np.array(list(np.ndindex(*(2,) * dimension))) * 2 - 1
    cube = SensitivityHull.from_vertices(corners)
    assert len(cube.body.normals) == dimension
    assert cube.volume == 2**dimension
    assert cube.norm([3] + [1] * (dimension - 1)) == 3
    cross = SensitivityHull.from_vertices(np.eye(dimension, dtype=int))
    assert len(cross.body.normals) == 2 ** (dimension - 1)
    assert cross.norm([3] + [1] * (dimension - 1)) == 2 + dimension


# Oracle


def assert_same_as_enumeration(points, edges, possible):
    hull = hull_of(points, edges, possible)
    body = geometry.body_of(points, edges, possible)
    assert hull.rank == body.rank
    vectors = [a - b for a, b in combinations(points, 2)]
    vectors += [points[0] + 1, 2 * points[-1], np.eye(points.shape[1], dtype=int)[0]]
    expected = [body.norm(vector) for vector in vectors]
    assert [hull.norm(vector) for vector in vectors] == expected
    assert hull.lattice_contains(np.array(vectors)).tolist() == [norm <= 1 for norm in expected]
    np.testing.assert_allclose(
        hull.lattice_norms(np.array(vectors)), [float(norm) for norm in expected], rtol=4e-16
    )
    if body.rank:
        volume, error = geometry.volume_and_error(body.generators)
        assert float(hull.volume) == pytest.approx(volume, rel=FLOAT_REL)
        assert float(hull.mean_squared_error(1)) == pytest.approx(error, rel=FLOAT_REL)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_norms_volume_and_error_are_those_of_enumeration(dimension):
    rng = np.random.default_rng(dimension)
    for _ in range(EXAMPLES):
        assert_same_as_enumeration(*geometry.random_case(rng, dimension))


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_norms_volume_and_error_are_those_of_enumeration_in_many_cases(dimension):
    rng = np.random.default_rng(100 + dimension)
    for _ in range(MANY):
        assert_same_as_enumeration(*geometry.random_case(rng, dimension))


@pytest.mark.parametrize("size", [2**29, 2**31, 2**45, 2**62 - 60])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_huge_hulls_are_those_of_python_integers(dimension, size):
    rng = np.random.default_rng(dimension)
    for _ in range(10):
        points, edges, _ = geometry.random_case(rng, dimension, states=5)
        points = points + size * rng.choice([-1, 0, 1], points.shape)
        hull = hull_of(points, edges)
        body = geometry.body_of(points, edges)
        vectors = [
            [int(a) - int(b) for a, b in zip(x, y, strict=True)] for x, y in combinations(points, 2)
        ]
        expected = [body.norm(vector) for vector in vectors]
        assert [hull.norm(vector) for vector in vectors] == expected
        held = hull.lattice_contains(np.array(vectors, dtype=object))
        assert held.tolist() == [norm <= 1 for norm in expected]
        clique = sensitivity_hull(Query(points), PolicyGraph.complete(len(points)))
        assert clique == SensitivityHull.from_lattice(np.array(vectors, dtype=object))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_the_hull_of_a_large_clique_is_that_of_all_its_differences(dimension):
    rng = np.random.default_rng(dimension)
    count = 40 if dimension < 4 else 14
    for reach in (2, 30):
        points = rng.integers(-reach, reach + 1, (count, dimension))
        low, high = np.triu_indices(count, k=1)
        expected = SensitivityHull.from_lattice(points[low] - points[high])
        hull = sensitivity_hull(Query(points), PolicyGraph.complete(count))
        assert hull == expected
        assert (hull.lattice_contains(points[low] - points[high])).all()


@pytest.mark.parametrize("dimension", [3, 4])
def test_a_wrong_proposal_of_corners_is_corrected_in_integers(dimension, monkeypatch):
    rng = np.random.default_rng(dimension)
    monkeypatch.setattr("dphmm.policy.sensitivity._proposed_corners", lambda points: points[:2])
    for kept in (dimension, dimension - 1):
        points = rng.integers(-5, 6, (9, kept)) @ rng.integers(-2, 3, (kept, dimension))
        low, high = np.triu_indices(9, k=1)
        expected = SensitivityHull.from_lattice(points[low] - points[high])
        query = Query(points)
        assert sensitivity_hull(query, PolicyGraph.complete(9)) == expected
        assert sensitivity_hull(query, PolicyGraph(9, np.stack([low, high], axis=1))) == expected


@pytest.mark.parametrize("offset", [2**31, 2**61, 2**62 - 5])
def test_the_running_example_is_the_same_anywhere_on_the_lattice(offset):
    for sign in (1, -1):
        far = Query(np.array(paper.VALUES) + sign * offset)
        assert sensitivity_hull(far, POLICY) == sensitivity_hull(QUERY, POLICY)


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: sensitivity_hull(QUERY, PolicyGraph(5)),
            "policy must have the 6 states of the query, got 5",
        ),
        (
            lambda: sensitivity_hull(QUERY, POLICY, [True]),
            r"possible must be a mask over 6 states or their numbers, got bool of shape \(1,\)",
        ),
        (
            lambda: sensitivity_hull(QUERY, POLICY, [False] * 6),
            "possible must contain at least one state, got none",
        ),
        (
            lambda: sensitivity_hull(QUERY, POLICY).norm([1, 2, 3]),
            "vector must have 2 entries, got 3",
        ),
        (
            lambda: sensitivity_hull(QUERY, POLICY).norm([1, float("nan")]),
            "vector must be finite and rational, got nan",
        ),
        (
            lambda: sensitivity_hull(QUERY, POLICY).mean_squared_error(0),
            "epsilon must be positive, got 0",
        ),
        (
            lambda: SensitivityHull.from_vertices([[1, 0], [0.5, 1]]),
            r"on its lattice of step 1, got \[0.5, 1\]; from_lattice takes whole steps",
        ),
    ],
)
def test_bad_arguments_say_what_they_must_be(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_repr_counts_and_shows_no_answer():
    assert repr(sensitivity_hull(QUERY, POLICY)) == (
        "SensitivityHull(dimension=2, rank=2, corners=6, step=1)"
    )
    assert sensitivity_hull(QUERY, POLICY) != "a hull"
