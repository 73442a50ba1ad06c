"""Query: answers of every state, on a public lattice."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError, CollapsedAnswersWarning
from dphmm.geometry.exact import exact
from dphmm.geometry.query import LATTICE_LIMIT, Query
from tests import paper

finite = st.floats(-1e6, 1e6)


# Paper


def test_the_query_of_example_3_2_answers_in_the_plane():
    query = Query(paper.VALUES)
    assert query.n_states == 6
    assert query.dimension == 2
    assert query.step == 1
    assert query.points.tolist() == [list(value) for value in paper.VALUES]
    assert query.values.dtype == np.float64


# Laws


@given(st.lists(finite, min_size=1, max_size=8), st.sampled_from(["1", "0.25", "0.1", "7", "1/3"]))
def test_every_answer_moves_by_at_most_half_a_step(values, step):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedAnswersWarning)
        query = Query(values, step=step)
    moved = np.abs(query.in_units(query.points).ravel() - values)
    slack = 1e-9  # the two conversions between units round in floats
    assert (moved <= float(Fraction(step)) / 2 + slack).all()


@given(st.lists(st.integers(1 - LATTICE_LIMIT, LATTICE_LIMIT - 1), min_size=1, max_size=8))
def test_integers_on_a_unit_lattice_are_kept_exactly(values):
    assert Query(values).points.ravel().tolist() == values


@given(st.floats(-1e300, 1e300).filter(lambda number: number == 0 or abs(number) >= 1e-300))
def test_a_float_means_the_decimal_that_it_prints_as(number):
    assert exact(number) == Fraction(repr(number)) == exact(np.float64(number))


def test_every_way_to_write_a_tenth_is_a_tenth():
    for tenth in (0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)):
        assert exact(tenth) == Fraction(1, 10)
    assert exact(np.int32(3)) == exact(3) == 3


def test_the_digest_tells_lattices_apart():
    same = [Query([[1, 2], [3, 4]]), Query([[1.0, 2.0], [3.0, 4.0]])]
    other = [Query([[1, 2], [3, 5]]), Query([[2, 4], [6, 8]], step=2), Query([1, 2, 3, 4])]
    assert same[0].digest == same[1].digest
    assert len({query.digest for query in same + other}) == 4


def test_arrays_cannot_be_changed_and_the_callers_array_can():
    given_values = np.array([[1.0, 2.0]])
    query = Query(given_values)
    for array in (query.values, query.points):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 5
    given_values[0, 0] = 7
    assert query.values[0, 0] == 1.0
    integers = np.array([[1, 2]])
    frozen = Query(integers)
    integers[0, 0] = 7
    assert frozen.points[0, 0] == 1


def test_small_integer_types_are_kept():
    assert Query(np.array([200, 3], dtype=np.uint8)).points.ravel().tolist() == [200, 3]
    assert Query(np.array([-100, 3], dtype=np.int8)).points.ravel().tolist() == [-100, 3]


# Oracle


@pytest.mark.parametrize("reach", [3, 2**28, 2**40, 2**62 - 1])
def test_the_nearest_possible_state_is_exact_and_the_lowest_on_ties(reach):
    rng = np.random.default_rng(reach)
    points = rng.integers(-reach, reach + 1, (20, 2))
    possible = rng.random(20) < 0.4
    rows = points.astype(object)
    expected = [
        min(np.flatnonzero(possible).tolist(), key=lambda j: (((rows[i] - rows[j]) ** 2).sum(), j))
        for i in range(20)
    ]
    assert Query(points).nearest_states(np.arange(20), possible).tolist() == expected


# Bad input


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_non_finite_answer_is_refused_by_its_state(bad):
    with pytest.raises(ArgumentError, match=r"finite, got a non-finite answer for state 1 \(1 in"):
        Query([[0.0, 1.0], [2.0, bad]])


def test_a_step_that_collapses_answers_warns_with_the_count():
    with pytest.warns(CollapsedAnswersWarning, match="step 1 rounds 2 different answers onto"):
        Query([0.1, 0.2, 0.3, 5.0])


def test_equal_answers_that_share_a_point_do_not_warn():
    assert Query([0.4, 0.4, 3.0]).points.ravel().tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([2**62], 1),
        ([-(2**62)], 1),
        ([-(2**63)], 1),
        ([1.0], Fraction(1, 2**62)),
        ([1e300], "1e-20"),
    ],
)
def test_a_step_that_overflows_is_refused(values, step):
    with pytest.raises(ArgumentError, match=r"step must keep answers below 2\*\*62 lattice steps"):
        Query(values, step=step)
    with pytest.raises(ArgumentError, match="step must keep answers below"):
        Query(np.array(values, dtype=object) * 4, step=step)


def test_the_largest_lattice_points_are_accepted():
    assert Query([2**62 - 1, 1 - 2**62]).points.ravel().tolist() == [2**62 - 1, 1 - 2**62]


@pytest.mark.parametrize(
    ("values", "step", "message"),
    [
        ([], 1, "values must hold one answer per state, got an array of shape"),
        (5, 1, "values must hold one answer per state"),
        (np.zeros((2, 2, 2)), 1, "values must hold one answer per state"),
        (np.zeros((2, 7)), 1, "values must have at most 6 dimensions, got 7; split the query"),
        (["a", "b"], 1, "values must hold numbers"),
        ([1, 2], 0, "step must be positive, got 0"),
        ([1, 2], -1, "step must be positive, got -1"),
        ([1, 2], "nan", "step must be finite and rational, got 'nan'"),
        ([1, 2], float("inf"), "step must be finite and rational, got inf"),
        ([1, 2], None, "step must be finite and rational, got None"),
        (
            [1.5, 2],
            Fraction(10**400 + 1, 10**400),
            "step must be a quotient of numbers below 1e308",
        ),
    ],
)
def test_bad_arguments_say_what_they_must_be(values, step, message):
    with pytest.raises(ArgumentError, match=message):
        Query(values, step=step)
