"""Corners, simplices and facets, against every subset of the generators."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.geometry.boundary import boundary, planar_hull
from dphmm.kernels import planar
from tests import geometry

EXAMPLES = 60
MANY = 1000


@st.composite
def full_rank_vectors(draw, ranks=(1, 2, 3, 4)):
    """Vectors that span their space, often with repeats and flat subsets."""
    rank = draw(st.sampled_from(ranks))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_vectors(rng, rank)


def random_vectors(rng, rank):
    reach = int(rng.choice([1, 2, 5]))
    while True:
        vectors = rng.integers(-reach, reach + 1, (int(rng.integers(rank, rank + 5)), rank))
        if geometry.rank(vectors.tolist()) == rank:
            return vectors


def facets_of(body):
    """Facets scaled to a.y = 1, one of each opposite pair."""
    found = set()
    for normal, offset in zip(body.normals.tolist(), body.offsets.tolist(), strict=True):
        scaled = tuple(Fraction(a, offset) for a in normal)
        found.add(max(scaled, tuple(-a for a in scaled)))
    return found


def assert_same_as_enumeration(vectors):
    rank = vectors.shape[1]
    expected = geometry.Body(vectors.tolist(), rank)
    body = boundary(vectors)
    assert {tuple(corner) for corner in body.corners.tolist()} == expected.corners()
    assert facets_of(body) == expected.facets()
    assert len(body.normals) == len(expected.facets())
    assert (body.offsets > 0).all()


# Laws


@given(full_rank_vectors())
def test_the_boundary_depends_on_the_body_alone(vectors):
    body = boundary(vectors)
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(vectors) * rng.choice([-1, 1], (len(vectors), 1))
    for other in (
        boundary(np.concatenate([shuffled, vectors, 0 * vectors])),
        boundary(body.corners),
        boundary(shuffled.astype(object)),
    ):
        assert np.array_equal(other.corners, body.corners)
        assert np.array_equal(other.simplices, body.simplices)
        assert np.array_equal(other.normals, body.normals)
        assert np.array_equal(other.offsets, body.offsets)


@given(full_rank_vectors(ranks=(2, 3, 4)))
def test_simplices_are_solid_and_every_ridge_is_shared_by_two(vectors):
    body = boundary(vectors)
    ridges: dict[tuple[int, ...], int] = {}
    for simplex in body.simplices.tolist():
        assert geometry.determinant(body.corners[simplex].tolist()) != 0
        heights = body.normals @ body.corners[simplex].T
        assert (np.abs(heights) == body.offsets[:, None]).all(axis=1).any()
        for i in range(len(simplex)):
            ridge = tuple(sorted(simplex[:i] + simplex[i + 1 :]))
            ridges[ridge] = ridges.get(ridge, 0) + 1
    assert set(ridges.values()) == {2}


@given(full_rank_vectors(ranks=(2,)))
def test_corners_in_the_plane_turn_left_from_the_smallest(vectors):
    ring = boundary(vectors).corners
    following, after = np.roll(ring, -1, axis=0), np.roll(ring, -2, axis=0)
    first, second = following - ring, after - following
    assert (first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0] > 0).all()
    assert tuple(ring[0]) == min(map(tuple, ring.tolist()))


def test_a_body_of_rank_zero_is_the_origin():
    body = boundary(np.empty((3, 0), dtype=np.int64))
    assert body.corners.shape == (1, 0)
    assert len(body.normals) == len(body.simplices) == 0


# Oracle


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_corners_and_facets_are_those_of_enumeration(rank):
    rng = np.random.default_rng(rank)
    for _ in range(EXAMPLES if rank < 4 else EXAMPLES // 4):
        assert_same_as_enumeration(random_vectors(rng, rank))


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_corners_and_facets_are_those_of_enumeration_in_many_cases(rank):
    rng = np.random.default_rng(100 + rank)
    for _ in range(MANY if rank < 4 else 10 ** (6 - rank)):
        assert_same_as_enumeration(random_vectors(rng, rank))


@pytest.mark.parametrize("size", [2**29, 2**31, 2**40, 2**62])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_huge_corners_and_facets_are_those_of_enumeration(rank, size):
    rng = np.random.default_rng(size % 97 + rank)
    for _ in range(10):
        vectors = rng.integers(size - 3, size + 4, (rank + 2, rank))
        vectors *= rng.choice([-1, 1], vectors.shape)
        if geometry.rank(vectors.tolist()) == rank:
            assert_same_as_enumeration(vectors)


def test_the_widest_polygon_that_64_bits_hold_is_exact():
    end = 2**63 - 2
    assert_same_as_enumeration(np.array([[end, end], [end, -end], [end, 1], [3, end]]))


@pytest.mark.parametrize("spread", [1, 3, 50, 2**30])
@pytest.mark.parametrize("count", [1, 2, 7, 65, 500])
def test_the_compiled_planar_hull_agrees_with_python_integers(count, spread):
    rng = np.random.default_rng(count + spread)
    for _ in range(20):
        points = rng.integers(-spread, spread, (count, 2))
        points = points + rng.integers(-(2**61), 2**61, 2)
        wide = planar_hull(points.astype(object))
        assert np.array_equal(planar_hull(points), wide)


@pytest.mark.parametrize("spread", [1, 3, 50, 2**29])
def test_the_difference_body_of_a_polygon_is_the_hull_of_all_differences(spread):
    rng = np.random.default_rng(spread)
    for _ in range(100):
        points = rng.integers(-spread, spread, (int(rng.integers(1, 12)), 2))
        differences = (points[:, None] - points[None, :]).reshape(-1, 2)
        body = planar.difference_body(planar.convex_hull(points))
        expected = planar_hull(differences.astype(object))
        assert np.array_equal(planar_hull(body.astype(object)), expected)
