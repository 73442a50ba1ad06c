"""Query units and lattice units: each has its own names, and neither passes for the other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.cost.adversary import guarantee_against
from dphmm.cost.charges import Charge, constrained_epsilon, worst_pair
from dphmm.cost.local_noise import LocalRelease
from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.reference import reference_knorm
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.policy.repair import added_edges, protect
from dphmm.policy.sensitivity import sensitivity_hull

COARSE = Query([[0, 0], [4, 0], [4, 8]], step=2)
LINKED = PolicyGraph(3, [(0, 1)])
REACH = 10**6
STEPS = [1, 2, 0.1, "0.25", Fraction(1, 3), 1000]
vectors = st.lists(st.tuples(*[st.integers(-REACH, REACH)] * 2), min_size=1, max_size=4)


def box(hull):
    """The example of docs/extending.md."""
    x, y = np.abs(hull.vertices).max(axis=0)
    return SensitivityHull.from_vertices([[x, y], [x, -y]], step=hull.step)


def mixed_box(hull):
    """What that example was before: lattice numbers where the units of the query belong."""
    x, y = np.abs(hull.lattice_vertices).max(axis=0)
    return SensitivityHull.from_vertices([[x, y], [x, -y]], step=hull.step)


# Laws


@given(vectors, st.sampled_from([1, 2, 0.1, "0.25", 1000]))
def test_a_hulls_vertices_make_the_hull_again(corners, step):
    hull = SensitivityHull.from_lattice(np.array(corners), step)
    assert SensitivityHull.from_vertices(hull.vertices, step) == hull


@given(vectors, st.sampled_from(STEPS))
def test_units_and_lattice_lead_to_each_other(points, step):
    query = Query([[0, 0], [0, 0]], step=step)
    assert query.on_lattice(query.in_units(points)).tolist() == np.array(points).tolist()
    assert query.on_lattice(query.in_units(points[0])).tolist() == list(points[0])


def test_a_decimal_of_a_lattice_point_is_that_point():
    assert Query([0, 1], step="0.1").on_lattice([[0.3], [3 * 0.1]]).tolist() == [[3], [3]]


@given(vectors, st.sampled_from([1, 2, 7]))
def test_a_norm_in_units_is_the_norm_of_the_steps(corners, step):
    hull = SensitivityHull.from_lattice(np.array(corners), step)
    for corner in corners:
        assert hull.norm(np.multiply(corner, step)) == hull.lattice_norm(np.array(corner))


@pytest.mark.parametrize("step", [1, 2])
def test_the_box_of_the_docs_keeps_every_edges_epsilon(step):
    query = Query(COARSE.values, step=step)
    graph = protect(query, LINKED, body=box)
    noise = Mechanism(query, box(sensitivity_hull(query, graph)), 1)
    logs = noise.lattice_log_probability(query.points[0])
    for low, high in graph.edges:
        assert abs(logs[low] - logs[high]) <= 1 + 1e-12  # two logarithms in floats


# Errors


@pytest.mark.parametrize("function", [protect, added_edges])
def test_a_body_of_mixed_units_is_refused(function):
    body = mixed_box(sensitivity_hull(COARSE, LINKED))
    assert body.norm([4, 0]) == 2  # the edge would cost twice the epsilon
    with pytest.raises(ArgumentError, match="body must contain the hull that it is made from"):
        function(COARSE, LINKED, body=mixed_box)
    with pytest.raises(ArgumentError, match="body must contain the hull that it is made from"):
        function(COARSE, PolicyGraph(3), body=mixed_box)


def test_lattice_numbers_off_the_units_are_refused():
    hull = SensitivityHull.from_lattice(np.array([[3, 1]]), step=2)
    message = r"in the units of the query and on its lattice of step 2, got \[-?3, -?1\]; from_lat"
    with pytest.raises(ArgumentError, match=message):
        SensitivityHull.from_vertices(hull.lattice_vertices, step=2)


@pytest.mark.parametrize("wrong", [[[4.0, 2.0]], [4, 2], [["4", "2"]], [[Fraction(4), 2]], None])
def test_units_are_refused_where_steps_are_counted(wrong):
    with pytest.raises(ArgumentError, match=r"vectors must be \(m, d\) integers that count steps"):
        SensitivityHull.from_lattice(wrong, step=2)


def test_answers_in_units_are_refused_where_steps_are_counted():
    noise = Mechanism(COARSE, sensitivity_hull(COARSE, LINKED), 1)
    answer = COARSE.in_units(noise.sample_lattice(0))
    for function in (noise.lattice_log_likelihood, noise.lattice_log_probability):
        with pytest.raises(ArgumentError, match="lattice must be integers that count steps"):
            function(answer)
    assert len(noise.lattice_log_likelihood(COARSE.on_lattice(answer))) == 3


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([3.0, 0.0], "answers must lie on the query's lattice of step 2, got 3.0"),
        ([[2, 2], [2, np.nan]], "answers must lie on the query's lattice of step 2, got nan"),
        ([2.0**60, 0], "answers must lie on the query's lattice of step 2, got 1.15"),
        ([1.0], r"answers must have 2 entries each, got shape \(1,\)"),
        (2.0, r"answers must have 2 entries each, got shape \(\)"),
        (["here", "there"], "answers must hold numbers"),
    ],
)
def test_answers_off_the_lattice_are_refused(answers, message):
    with pytest.raises(ArgumentError, match=message):
        COARSE.on_lattice(answers)


@pytest.mark.parametrize(
    "other",
    [
        SensitivityHull.from_vertices([[4, 0], [0, 6]], step=1),
        SensitivityHull.from_vertices([[4]], step=2),
    ],
)
@pytest.mark.parametrize(
    "take",
    [
        lambda hull: Mechanism(COARSE, hull, 1),
        lambda hull: Charge(COARSE, hull, 1),
        lambda hull: constrained_epsilon(COARSE, hull, 1),
        lambda hull: worst_pair(COARSE, hull, 1),
        lambda hull: degree_of_protection(COARSE, LINKED, hull=hull),
        lambda hull: exposed(COARSE, LINKED, hull=hull),
        lambda hull: is_protectable(COARSE, LINKED, hull=hull),
        lambda hull: unprotected(COARSE, LINKED, hull=hull),
        lambda hull: protect(COARSE, LINKED, body=lambda _: hull),
        lambda hull: added_edges(COARSE, LINKED, body=lambda _: hull),
        lambda hull: reference_knorm(COARSE, hull, 1, 0, rng=np.random.default_rng(0)),
        lambda hull: LocalRelease.shared(COARSE, hull, 1, [0, 1]),
        lambda hull: guarantee_against(COARSE, LINKED, hull, 1, possible=[0, 1], known=[2]),
    ],
)
def test_a_body_of_another_lattice_is_refused(take, other):
    with pytest.raises(ArgumentError, match=r"(hull|body) must live on the query's lattice"):
        take(other)
