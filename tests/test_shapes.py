"""Enlarged bodies: never smaller, never worse, the same for everyone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.shapes import enlarge
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry, paper

POINT = 0.01  # the notes print whole percents

HULL = sensitivity_hull(Query(paper.VALUES), PolicyGraph.by_category(paper.CATEGORIES))


def rectangle(long, short):
    return SensitivityHull.from_vertices([[long, short], [long, -short]])


def gain(hull):
    """The share of the mean squared error that the larger body saves."""
    return 1 - float(enlarge(hull).mean_squared_error(1) / hull.mean_squared_error(1))


def holds(larger, smaller):
    return bool(larger.lattice_contains(smaller.lattice_vertices).all())


# Paper: section 5 takes K itself; these are the gains of the notes, section 1


@pytest.mark.parametrize(
    ("short", "saved"), [(1000, 0.0), (500, 0.0), (300, 0.04), (200, 0.11), (100, 0.22), (50, 0.31)]
)
def test_rectangles_gain_what_the_notes_measured(short, saved):
    assert gain(rectangle(1000, short)) == pytest.approx(saved, abs=POINT)


def test_the_thinnest_rectangle_gains_more_than_two_fifths():
    assert gain(rectangle(1000, 10)) == pytest.approx(0.43, abs=POINT)


def test_hulls_of_the_paper_gain_a_little_or_nothing():
    assert 0 <= gain(HULL) < 0.1
    assert holds(enlarge(HULL), HULL)


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_square_stays_as_it_is(size):
    square = rectangle(size, size)
    assert enlarge(square) == square


@pytest.mark.parametrize("vertices", [[[7]], [[6, 4]], [[1, 2, 3]]])
def test_rank_one_stays_as_it_is(vertices):
    interval = SensitivityHull.from_vertices(vertices)
    assert enlarge(interval) == interval


def test_rank_zero_stays_as_it_is():
    nothing = sensitivity_hull(Query([[0, 0], [1, 1]]), PolicyGraph(2))
    assert enlarge(nothing) == nothing


def test_a_thin_bar_in_space_gains_more_than_half():
    """Thin bodies cost (d+1)(d+2)/3 = 6.67 in space against a limit of 2."""
    bar = SensitivityHull.from_vertices([[100, 1, 1], [100, 1, -1], [100, -1, 1], [100, -1, -1]])
    larger = enlarge(bar)
    assert holds(larger, bar)
    assert gain(bar) > 0.5


# Laws


@given(geometry.cases(reach=6))
def test_an_enlarged_body_contains_the_hull_and_is_no_worse(case):
    points, edges, possible = case
    query = Query(points)
    policy = PolicyGraph(len(points), edges).restricted_to(possible)
    hull = sensitivity_hull(query, policy)
    larger = enlarge(hull)
    assert larger.rank == hull.rank
    assert holds(larger, hull)
    assert larger.mean_squared_error(1) <= hull.mean_squared_error(1)
    for low, high in policy.edges:
        assert larger.lattice_norm(query.points[low] - query.points[high]) <= 1


@given(st.integers(5, 200), st.integers(1, 20), st.integers(-50, 50), st.randoms())
def test_everyone_computes_the_same_body(long, short, shear, random):
    vertices = [[long, short + shear], [long, shear - short], [1, 1]]
    first = enlarge(SensitivityHull.from_vertices(vertices))
    random.shuffle(vertices)
    again = enlarge(SensitivityHull.from_vertices([[-x, -y] for x, y in vertices]))
    assert again == first
    assert again.digest == first.digest


@pytest.mark.parametrize("size", [2**20, 2**35, 2**50])
def test_huge_bodies_gain_as_small_ones_do(size):
    assert gain(rectangle(10 * size, size)) == pytest.approx(0.22, abs=POINT)


def test_the_gain_holds_for_the_sums_over_the_lattice():
    thin = rectangle(60, 6)
    query = Query([[0, 0]])
    errors = [
        Mechanism(query, body, Fraction(1)).mean_squared_error for body in (thin, enlarge(thin))
    ]
    assert 1 - errors[1] / errors[0] == pytest.approx(0.22, abs=0.02)


# Oracle


def test_no_lattice_corner_is_much_better_than_the_one_found():
    """Every corner of a window, one by one."""
    thin = rectangle(20, 2)
    found = enlarge(thin).mean_squared_error(1)
    errors = []
    for x in range(21):
        for y in range(21):
            vectors = np.concatenate([thin.lattice_vertices, [[x, y]]])
            errors.append(SensitivityHull.from_lattice(vectors).mean_squared_error(1))
    assert found == min(errors)
