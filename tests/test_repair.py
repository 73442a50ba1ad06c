"""protect: the paper's Algorithms 1 and 3, smallest error, and the true optimum."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import atan2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError, ExposureError, TooLargeError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.policy.extending import best_extension
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.progress import listening
from dphmm.policy.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.policy.repair import BY_VOLUME, _best_of_all, _Repair, added_edges, protect
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry, paper

EXAMPLES = 40
MANY = 1000
GREEDY = ("nearest", "min_area", "min_error")
METHODS = (*GREEDY, "optimal", "optimal_volume")

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)


def planar_area_and_error(body):
    """Area and mean squared error at epsilon 1 of a body in the plane, by its corners."""
    corners = body.corners()
    if body.rank < 2:
        longest = max((x * x + y * y for x, y in corners), default=0)
        return 0, Fraction(2 * longest)
    ring = sorted(corners, key=lambda corner: atan2(corner[1], corner[0]))
    double_area = moment = 0
    for (px, py), (qx, qy) in zip(ring, ring[1:] + ring[:1], strict=True):
        cross = px * qy - py * qx
        double_area += cross
        moment += cross * (px * px + py * py + px * qx + py * qy + qx * qx + qy * qy)
    return Fraction(double_area, 2), Fraction(2 * moment, double_area)


def repaired_by_hand(points, edges, possible, score):
    """Algorithms 1 and 3 as printed, with the errata: another state, exposure looked at again.

    `score` is given the state, a candidate and the body with the candidate's edge.
    """
    states = np.flatnonzero(possible).tolist()
    edges, added = edges.tolist(), []
    while True:
        degrees = geometry.degrees(points, edges, possible)
        alone = [state for state in states if degrees[state] == 1]
        if not alone or len(states) == 1:
            return added
        state = alone[0]
        candidates = [other for other in states if other != state]
        best = min(
            candidates,
            key=lambda other: (
                score(state, other, geometry.body_of(points, [*edges, [state, other]], possible)),
                other,
            ),
        )
        edges.append([state, best])
        added.append([state, best])


def scores_for(points):
    rows = points.astype(object)
    return {
        "nearest": lambda state, other, body: ((rows[state] - rows[other]) ** 2).sum(),
        "min_area": lambda state, other, body: planar_area_and_error(body)[0],
        "min_error": lambda state, other, body: planar_area_and_error(body)[1],
    }


# Paper


@pytest.mark.parametrize(
    ("method", "partner"),
    [("nearest", 4), ("min_area", 3), ("min_error", 4), ("optimal", 4), ("optimal_volume", 3)],
)
@pytest.mark.parametrize("full_rank", [True, False])
def test_each_method_joins_s3_to_its_own_partner_in_example_6_1(method, partner, full_rank):
    possible = paper.POSSIBLE_EXPOSING_S3
    edges = added_edges(QUERY, POLICY, possible, method, full_rank)
    assert edges.tolist() == [[2, partner]]
    repaired = protect(QUERY, POLICY, possible, method, full_rank)
    hull = sensitivity_hull(QUERY, repaired)
    assert hull.volume == paper.REPAIRED_AREA[partner]
    assert hull.mean_squared_error(1) == paper.REPAIRED_ERROR[partner]
    assert repaired == POLICY.restricted_to(possible).with_edges([[2, partner]])


def test_the_smallest_area_of_example_6_1_is_the_largest_error():
    areas, errors = paper.REPAIRED_AREA, paper.REPAIRED_ERROR
    assert min(areas, key=areas.__getitem__) == max(errors, key=errors.__getitem__) == 3


def test_algorithm_3_can_end_with_four_times_the_smallest_area():
    query = Query([[2, 2], [2, 3], [3, 1], [6, 0], [6, 5]])
    policy = PolicyGraph(5, [[0, 1], [1, 2]])
    assert exposed(query, policy).tolist() == [3, 4]
    repaired = protect(query, policy, method="min_area", full_rank=False)
    assert sensitivity_hull(query, repaired).volume == 40
    assert repaired == policy.with_edges([[1, 3], [1, 4]])
    better = policy.with_edges([[3, 4]])
    assert is_protectable(query, better)
    assert sensitivity_hull(query, better).volume == 10


def test_areas_of_flat_hulls_mislead_algorithm_3():
    query = Query([[0, 0], [100, 0], [0, 1], [101, 0]])
    errors = {}
    for method in (*GREEDY, "optimal"):
        repaired = protect(query, PolicyGraph(4), method=method, full_rank=False)
        errors[method] = sensitivity_hull(query, repaired).mean_squared_error(1)
    assert added_edges(query, PolicyGraph(4), method="min_area")[0].tolist() == [0, 1]
    assert errors == {"nearest": 4, "min_area": 20002, "min_error": 4, "optimal": 4}


def test_looking_at_exposure_again_saves_needless_edges():
    # Joining s0 to s1 also hides s2; the nearest partner of s2 lies outside that hull.
    query = Query([[0, 0], [6, 0], [5, 5], [5, 9], [-1, 5]])
    edges = added_edges(query, PolicyGraph(5, [[3, 4]]), method="nearest", full_rank=False)
    by_hand = repaired_by_hand(
        query.points, np.array([[3, 4]]), np.ones(5, bool), scores_for(query.points)["nearest"]
    )
    assert edges.tolist() == by_hand
    before = exposed(query, PolicyGraph(5, [[3, 4]]))
    assert len(edges) < len(before)


def test_rows_linked_only_sideways_are_joined_unless_the_paper_is_followed():
    points = np.array(list(np.ndindex(3, 4)))
    edges = [(a, b) for a, b in combinations(range(12), 2) if points[a, 0] == points[b, 0]]
    query, policy = Query(points), PolicyGraph(12, edges)
    assert len(added_edges(query, policy, full_rank=False)) == 0
    assert sensitivity_hull(query, protect(query, policy, full_rank=False)).rank == 1
    joined = added_edges(query, policy)
    assert len(joined) == 1
    assert abs(points[joined[0, 0], 0] - points[joined[0, 1], 0]) == 1
    assert sensitivity_hull(query, protect(query, policy)).rank == 2


def test_a_lone_possible_state_is_left_as_it_is():
    lone = np.arange(6) == 2
    for method in METHODS:
        assert len(added_edges(QUERY, POLICY, lone, method)) == 0


# Laws


@given(geometry.cases(dimensions=(1, 2, 3)), st.sampled_from(METHODS), st.booleans())
def test_a_repaired_graph_exposes_nobody_and_tells_nobody_apart_for_certain(case, method, full):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    repaired = protect(query, policy, possible, method, full)
    if possible.sum() == 1:
        assert repaired == policy.restricted_to(possible)
        return
    assert exposed(query, repaired, possible).tolist() == []
    assert unprotected(query, repaired, possible).tolist() == []
    kept = {tuple(edge) for edge in policy.restricted_to(possible).edges.tolist()}
    assert kept <= {tuple(edge) for edge in repaired.edges.tolist()}
    assert possible[repaired.edges].all()
    if full:
        hull = sensitivity_hull(query, repaired)
        alive = points[possible]
        assert hull.lattice_norms(alive - alive[0]).max() < np.inf


@given(geometry.cases(), st.sampled_from(METHODS))
def test_a_protectable_graph_is_left_alone_in_the_papers_mode(case, method):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    repaired = protect(query, policy, possible, method, full_rank=False)
    assert protect(query, repaired, possible, method, full_rank=False) == repaired


@given(geometry.cases(dimensions=(2, 3)), st.sampled_from(GREEDY))
def test_a_repair_for_the_l1_ball_hides_everybody_in_that_ball(case, method):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    ball = SensitivityHull.l1_ball
    repaired = protect(query, policy, possible, method, full_rank=False, body=ball)
    if possible.sum() > 1:
        body = ball(sensitivity_hull(query, repaired))
        assert exposed(query, repaired, possible, body).tolist() == []


@given(geometry.cases(dimensions=(1, 2, 3)))
def test_the_optimum_costs_no_more_than_any_greedy_repair(case):
    points, edges, possible = case
    query, policy = Query(points), PolicyGraph(len(points), edges)

    def error(method):
        repaired = protect(query, policy, possible, method, full_rank=False)
        return sensitivity_hull(query, repaired).mean_squared_error(1)

    best = error("optimal")
    assert all(best <= error(method) for method in GREEDY)


@given(geometry.cases(dimensions=(1, 2, 3)), st.sampled_from(METHODS), st.booleans())
def test_a_repair_is_the_same_anywhere_on_the_lattice_and_at_any_step(case, method, full):
    points, edges, possible = case
    policy = PolicyGraph(len(points), edges)
    here = added_edges(Query(points), policy, possible, method, full).tolist()
    for query in (Query(points + 2**61), Query(points * 0.25, step="1/4")):
        assert added_edges(query, policy, possible, method, full).tolist() == here


def test_the_users_partner_is_used_if_the_state_is_exposed_and_both_are_possible():
    possible = np.array(paper.POSSIBLE_EXPOSING_S3)
    for method in METHODS:
        edges = added_edges(QUERY, POLICY, possible, method, partners={2: 5, 3: 4})
        assert edges.tolist() == [[2, 5]]
        fallback = added_edges(QUERY, POLICY, possible, method, partners={2: 0})
        assert fallback.tolist() == added_edges(QUERY, POLICY, possible, method).tolist()


def test_the_users_graph_is_taken_if_it_protects_everybody():
    possible = np.array(paper.POSSIBLE_EXPOSING_S3)
    wanted = PolicyGraph(6, [[2, 5], [3, 4], [0, 1]])
    edges = added_edges(QUERY, POLICY, possible, partners=wanted)
    assert edges.tolist() == [[2, 5]]


class EnoughError(Exception):
    """What a listener raises to end a repair."""


SCATTERED = Query(np.random.default_rng(4).integers(0, 50, (7, 2)))


@pytest.mark.parametrize("method", METHODS)
def test_a_repair_says_how_far_it_is_and_adds_the_same_edges(method):
    shares, lone = [], PolicyGraph(7, [])
    with listening(shares.append):
        heard = added_edges(SCATTERED, lone, method=method, body=SensitivityHull.l1_ball)
    unheard = added_edges(SCATTERED, lone, method=method, body=SensitivityHull.l1_ball)
    assert heard.tolist() == unheard.tolist()
    told = [share for share in shares if share is not None]
    assert told == sorted(told)
    assert all(0 <= share < 1 for share in told)
    assert len(told) > 1 if method in GREEDY else len(shares) > 1
    # Between two candidates it can be ended too, where each takes a hull.
    assert (len(shares) > len(told)) == (method != "nearest")


@pytest.mark.parametrize("method", METHODS)
def test_a_repair_is_ended_by_what_its_listener_raises(method):
    heard = []

    def refuse(share):
        heard.append(share)
        if len(heard) == 2:
            raise EnoughError

    with pytest.raises(EnoughError), listening(refuse):
        added_edges(SCATTERED, PolicyGraph(7, []), method=method, body=SensitivityHull.l1_ball)
    assert len(heard) == 2
    assert len(added_edges(SCATTERED, PolicyGraph(7, []), method=method))
    assert len(heard) == 2


# Oracle


def assert_greedy_as_by_hand(points, edges, possible, methods=GREEDY):
    query, policy = Query(points), PolicyGraph(len(points), edges)
    for method in methods:
        found = added_edges(query, policy, possible, method, full_rank=False)
        assert found.tolist() == (
            repaired_by_hand(points, edges, possible, scores_for(points)[method])
        ), method


def test_greedy_repairs_follow_the_printed_algorithms():
    rng = np.random.default_rng(1)
    for _ in range(2 * EXAMPLES):
        assert_greedy_as_by_hand(*geometry.random_case(rng, 2))


@pytest.mark.parametrize("dimension", [1, 3, 4])
def test_algorithm_1_is_followed_in_every_dimension(dimension):
    rng = np.random.default_rng(dimension)
    for _ in range(EXAMPLES // 2):
        assert_greedy_as_by_hand(*geometry.random_case(rng, dimension), methods=["nearest"])


@pytest.mark.slow
def test_greedy_repairs_follow_the_printed_algorithms_in_many_cases():
    rng = np.random.default_rng(101)
    for _ in range(2 * MANY):
        assert_greedy_as_by_hand(*geometry.random_case(rng, 2, states=8))


@pytest.mark.parametrize("size", [2**26, 2**31, 2**45, 2**62 - 60])
def test_greedy_repairs_of_huge_answers_follow_the_printed_algorithms(size):
    rng = np.random.default_rng(3)
    for _ in range(15):
        points, edges, possible = geometry.random_case(rng, 2)
        points = points + size * rng.choice([-1, 0, 1], points.shape)
        # Angles of huge thin hulls are too close for atan2, so only what needs no corners.
        assert_greedy_as_by_hand(points, edges, possible, methods=["nearest"])


def smallest_error(points, edges, possible):
    """Over every choice of one partner for each exposed state."""
    query, policy = Query(points), PolicyGraph(len(points), edges)
    states = np.flatnonzero(possible).tolist()
    degrees = geometry.degrees(points, edges, possible)
    alone = [state for state in states if degrees[state] == 1]
    if len(states) == 1:
        return sensitivity_hull(query, policy, possible).mean_squared_error(1)
    best = None
    for partners in product(*([j for j in states if j != i] for i in alone)):
        chosen = np.array([*edges.tolist(), *zip(alone, partners, strict=True)], dtype=int)
        chosen = chosen.reshape(-1, 2)
        if points.shape[1] == 2:
            error = planar_area_and_error(geometry.body_of(points, chosen, possible))[1]
        else:
            vectors = points[chosen[:, 0]] - points[chosen[:, 1]]
            alive = possible[chosen].all(axis=1)
            error = SensitivityHull.from_lattice(vectors[alive]).mean_squared_error(1)
        best = error if best is None else min(best, error)
    return best


def smallest_volume(points, edges, possible):
    """The same for section 6.1's optimum: the smallest hull, of the smallest rank."""
    states = np.flatnonzero(possible).tolist()
    degrees = geometry.degrees(points, edges, possible)
    alone = [state for state in states if degrees[state] == 1 and len(states) > 1]
    sizes = []
    for partners in product(*([j for j in states if j != i] for i in alone)):
        chosen = np.array([*edges.tolist(), *zip(alone, partners, strict=True)], dtype=int)
        chosen = chosen.reshape(-1, 2)
        vectors = (points[chosen[:, 0]] - points[chosen[:, 1]])[possible[chosen].all(axis=1)]
        hull = SensitivityHull.from_lattice(vectors.reshape(-1, points.shape[1]))
        sizes.append((hull.rank, hull.volume))
    return min(sizes)


def assert_optimal_as_enumerated(points, edges, possible):
    query, policy = Query(points), PolicyGraph(len(points), edges)
    repaired = protect(query, policy, possible, "optimal", full_rank=False)
    found = sensitivity_hull(query, repaired).mean_squared_error(1)
    assert found == smallest_error(points, edges, possible)
    repaired = protect(query, policy, possible, "optimal_volume", full_rank=False)
    hull = sensitivity_hull(query, repaired)
    assert (hull.rank, hull.volume) == smallest_volume(points, edges, possible)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_optimal_is_the_best_of_every_choice_of_partners(dimension):
    rng = np.random.default_rng(dimension)
    for _ in range(EXAMPLES // 2):
        assert_optimal_as_enumerated(*geometry.random_case(rng, dimension, states=5))


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_optimal_is_the_best_of_every_choice_of_partners_in_many_cases(dimension):
    rng = np.random.default_rng(100 + dimension)
    for _ in range(MANY if dimension < 3 else MANY // 5):
        assert_optimal_as_enumerated(*geometry.random_case(rng, dimension, states=5))


def assert_fast_choice_is_the_plain_one(rng, reach):
    vectors = rng.integers(-reach, reach + 1, (int(rng.integers(2, 8)), 2))
    if rng.random() < 0.3:
        vectors[:, 1] //= max(1, reach // 2)
    hull = SensitivityHull.from_lattice(vectors)
    if hull.rank < 2:
        return
    candidates = rng.integers(-2 * reach, 2 * reach + 1, (12, 2))
    candidates[-2:] = vectors[:1]
    repair = _Repair(Query(vectors), np.ones(len(vectors), bool), hull, None)
    for method in ("min_area", "min_error"):
        expected = _best_of_all(repair, candidates, method)
        assert best_extension(hull, candidates, by_volume=method in BY_VOLUME) == expected


@pytest.mark.parametrize("reach", [1, 3, 30, 10**6, 2**31, 2**45, 2**60])
def test_the_fast_choice_in_the_plane_is_the_plain_one(reach):
    rng = np.random.default_rng(reach)
    for _ in range(EXAMPLES):
        assert_fast_choice_is_the_plain_one(rng, reach)


@pytest.mark.slow
@pytest.mark.parametrize("reach", [1, 3, 30, 10**6, 2**24, 2**25, 2**31, 2**60])
def test_the_fast_choice_in_the_plane_is_the_plain_one_in_many_cases(reach):
    rng = np.random.default_rng(100 + reach)
    for _ in range(MANY):
        assert_fast_choice_is_the_plain_one(rng, reach)


def test_thin_hulls_with_long_corners_are_compared_exactly():
    # In floats these areas, a few units, drown in products of 2**62.
    end = 2**31 - 1
    hull = SensitivityHull.from_lattice(np.array([[end, end - 1], [end - 1, end - 2]]))
    candidates = np.array([[end - 3, end - 4], [end - 2, end - 4], [end + 2, end + 1]])
    query = Query(np.zeros((1, 2), dtype=int))
    repair = _Repair(query, np.ones(1, bool), hull, None)
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        for method in ("min_area", "min_error"):
            found = best_extension(hull, candidates[order], by_volume=method in BY_VOLUME)
            assert found == _best_of_all(repair, candidates[order], method)


def test_full_rank_links_the_nearest_pair_that_is_told_apart():
    rng = np.random.default_rng(4)
    for size in (1, 2**40):
        for _ in range(EXAMPLES):
            points = rng.integers(0, 6, (7, 2)) * size
            query = Query(points)
            edges = added_edges(query, PolicyGraph(7, cliques=[range(7)]), method="nearest")
            assert len(edges) == 0
            row = PolicyGraph(7, [[0, 1]])
            hull = sensitivity_hull(query, protect(query, row, method="nearest"))
            assert hull.rank == geometry.rank((points - points[0]).tolist())


# Bad input


def test_an_unknown_method_is_refused():
    message = "method must be nearest, min_area, min_error, optimal or optimal_volume, got 'best'"
    with pytest.raises(ArgumentError, match=message):
        protect(QUERY, POLICY, method="best")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("partners", [{2: 2}, {2: 6}, {2: -1}, {-1: 2}, {9: 2}])
def test_wrong_partners_are_refused(method, partners):
    with pytest.raises(ArgumentError, match=r"partners must join two different states 0\.\.5, got"):
        protect(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S3, method, partners=partners)


def test_a_graph_that_leaves_someone_exposed_is_refused():
    message = r"partners must protect every possible state, got 1 exposed \(the first is state 2\)"
    with pytest.raises(ExposureError, match=message):
        protect(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S3, partners=PolicyGraph(6, [[0, 1]]))


def test_a_search_that_would_not_end_is_refused():
    points = np.array([[i, i * i] for i in range(12)])
    message = "searches at most 1000000 choices of partners, got .* for 12 exposed states"
    with pytest.raises(TooLargeError, match=message):
        protect(Query(points), PolicyGraph(12), method="optimal")


@pytest.mark.parametrize("method", ["optimal", "optimal_volume"])
def test_a_search_with_more_choices_than_a_float_can_hold_is_refused(method):
    places = Query(np.stack(np.divmod(np.arange(400), 20), axis=1) * 100)
    with pytest.raises(TooLargeError, match="got more for 400 exposed states; use 'min_error'"):
        protect(places, PolicyGraph(400), method=method)


@pytest.mark.parametrize(
    ("policy", "possible", "message"),
    [
        (PolicyGraph(5), None, "policy must have the 6 states of the query, got 5"),
        (POLICY, [True] * 5, "possible must be a mask over 6 states or their numbers"),
        (POLICY, [False] * 6, "possible must contain at least one state, got none"),
    ],
)
def test_bad_arguments_say_what_they_must_be(policy, possible, message):
    with pytest.raises(ArgumentError, match=message):
        protect(QUERY, policy, possible)


def test_degrees_after_a_repair_are_at_least_two():
    repaired = protect(QUERY, POLICY, paper.POSSIBLE_EXPOSING_S3)
    degrees = degree_of_protection(QUERY, repaired, paper.POSSIBLE_EXPOSING_S3)
    assert degrees[2] == 2


def test_a_grid_on_which_all_are_exposed_is_repaired_as_one_by_one() -> None:
    """The slow, obvious way: ask every state after every link, and try every difference."""
    points = np.array([[x, y] for x in range(7) for y in range(6)])
    query = Query(points)
    nobody = PolicyGraph(len(points), [])
    for method in ("nearest", "min_area", "min_error"):
        hull, edges = sensitivity_hull(query, nobody), []
        for state in range(len(points)):
            if int(hull.lattice_contains(points - points[state]).sum()) > 1:
                continue
            scores = []
            for other in range(len(points)):
                if other == state:
                    continue
                vector = points[other] - points[state]
                corners = np.concatenate([hull.lattice_vertices, vector[None, :]])
                wider = SensitivityHull.from_lattice(corners, hull.step)
                score = {
                    "nearest": int((vector**2).sum()),
                    "min_area": wider.volume,
                    "min_error": wider.mean_squared_error(1),
                }[method]
                scores.append((score, other, wider))
            _, partner, hull = min(scores, key=lambda one: one[:2])
            edges.append((state, partner))
        found = added_edges(query, nobody, method=method, full_rank=False)
        assert found.tolist() == [list(edge) for edge in edges]


@pytest.mark.parametrize("by_volume", [False, True])
@pytest.mark.parametrize("rank", [3, 4])
def test_the_best_extension_is_that_of_hulls_built_with_every_difference(rank, by_volume):
    """Pyramids over what a difference sees, beside the hull itself; cubes bring ties."""
    rng, compared = np.random.default_rng(rank), 0
    for trial in range(8):
        size = (3, 40)[trial % 2]
        corners = rng.integers(-size, size + 1, (rank + 3, rank))
        hull = SensitivityHull.from_lattice(
            size * np.eye(rank, dtype=int) if trial < 2 else corners
        )
        if hull.rank < rank:
            continue
        vectors = rng.integers(-3 * size, 3 * size + 1, (15, rank))
        grown = [
            SensitivityHull.from_lattice(np.concatenate([hull.lattice_vertices, vector[None]]))
            for vector in vectors
        ]
        scores = [body.volume if by_volume else body.mean_squared_error(1) for body in grown]
        expected = min(range(len(vectors)), key=lambda i: (scores[i], i))
        assert best_extension(hull, vectors, by_volume=by_volume) == expected
        compared += 1
    assert compared > 4
