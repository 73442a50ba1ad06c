"""Integer linear algebra: spans, coordinates, determinants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.geometry.lattice import (
    adjugate,
    determinant,
    exact_product,
    largest,
    primitive,
    row_labels,
    span_transform,
)
from tests import geometry

BIG = 2**62 - 1


@st.composite
def vectors(draw, reach=6):
    """Some integer vectors, often of a smaller rank than their dimension."""
    dimension = draw(st.integers(1, 5))
    rank = draw(st.integers(0, dimension))
    n = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(-3, 4, (n, rank)) @ rng.integers(-reach, reach + 1, (rank, dimension))


def smith_is_one(rows):
    """Whether the lattice of some rows is all of Z^d in its span: its minors have gcd 1."""
    from itertools import combinations
    from math import gcd

    k, d = rows.shape
    minors = [
        geometry.determinant([[int(row[j]) for j in axes] for row in rows])
        for axes in combinations(range(d), k)
    ]
    return gcd(*minors) == 1


# Laws


@given(vectors())
def test_the_transform_is_unimodular_and_straightens_exactly_the_span(rows):
    rank, transform = span_transform(rows)
    assert rank == geometry.rank(rows.tolist())
    assert abs(geometry.determinant(transform.tolist())) == 1
    assert not (rows.astype(object) @ transform)[:, rank:].any()
    if rank < rows.shape[1]:
        for axis in np.eye(rows.shape[1], dtype=int):
            beyond = (axis.astype(object) @ transform)[rank:].any()
            assert beyond == (geometry.rank([*rows.tolist(), axis.tolist()]) > rank)


@given(vectors())
def test_coordinates_in_the_span_reach_every_lattice_point_of_it(rows):
    rank, transform = span_transform(rows)
    if rank:
        sign = determinant(transform.tolist())
        basis = sign * np.array(adjugate(transform.tolist()), dtype=object)[:rank]
        assert smith_is_one(basis)
        inside = (rows.astype(object) @ transform)[:, :rank]
        assert (inside @ basis == rows).all()


@given(vectors(), st.randoms(use_true_random=False))
def test_the_transform_depends_on_the_span_alone(rows, random):
    rank, transform = span_transform(rows)
    order = random.sample(range(len(rows)), len(rows))
    mixed = rows[order] * random.choice([-7, -1, 3])
    again = np.concatenate([mixed, mixed[:1] + 5 * mixed[-1:]])
    assert (span_transform(again)[1] == transform).all()
    assert (span_transform(again.astype(object))[1] == transform).all()
    assert span_transform(again)[0] == rank


@given(st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_an_adjugate_times_its_matrix_is_the_determinant(size, seed):
    matrix = np.random.default_rng(seed).integers(-9, 10, (size, size)).tolist()
    assert determinant(matrix) == geometry.determinant(matrix)
    if size:
        product = np.array(adjugate(matrix), dtype=object) @ np.array(matrix, dtype=object)
        assert (product == determinant(matrix) * np.eye(size, dtype=int)).all()


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=5).filter(any))
def test_a_primitive_vector_has_no_common_divisor(vector):
    from math import gcd

    assert gcd(*primitive(vector)) == 1
    ratio = max(abs(x) for x in vector) // max(abs(x) for x in primitive(vector))
    assert [ratio * x for x in primitive(vector)] == vector


# Oracle


@pytest.mark.parametrize("size", [1, 2**20, 2**31, BIG])
def test_products_never_wrap_around(size):
    rng = np.random.default_rng(1)
    a, b = rng.integers(-size, size + 1, (4, 3)), rng.integers(-size, size + 1, (3, 2))
    expected = [
        [sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) for column in b.T]
        for row in a
    ]
    assert exact_product(a, b).tolist() == expected


def test_spans_of_vectors_near_two_to_the_62_are_exact():
    rows = np.array([[BIG, BIG - 1, 1], [1 - BIG, 2 - BIG, -1]])
    rank, transform = span_transform(rows)
    assert rank == 2
    assert not (rows.astype(object) @ transform)[:, 2:].any()
    parallel = np.array([[BIG - 1, 0], [-2, 0]])
    assert span_transform(parallel)[0] == 1
    almost = np.array([[BIG, BIG - 1], [BIG - 1, BIG - 2]])
    assert span_transform(almost)[0] == 2


def test_the_largest_entry_of_the_most_negative_integer_is_not_negative():
    assert largest(np.array([-(2**63)])) == 2**63
    assert largest(np.empty((0, 2), dtype=np.int64)) == 0


def test_rows_have_equal_labels_exactly_if_they_are_equal():
    rows = np.random.default_rng(2).integers(0, 3, (40, 2))
    for array in (rows, rows.astype(object) + 2**70, rows[:, :0], rows[:, :0].astype(object)):
        labels = row_labels(array)
        same = (array[:, None] == array[None, :]).all(axis=2)
        assert ((labels[:, None] == labels[None, :]) == same).all()
