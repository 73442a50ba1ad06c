"""The sensitivity hull of a policy: which differences it hides, and their convex hull.

Differences are never listed pair by pair where a clique says them all: its corners do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from dphmm import kernels
from dphmm._types import IntArray, ObjectArray
from dphmm.geometry.boundary import planar_hull
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import exact_product, largest, span_transform
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask
from dphmm.policy.graph import PolicyGraph, check_policy

__all__ = ["sensitivity_hull"]


def sensitivity_hull(
    query: Query, policy: PolicyGraph, possible: ArrayLike | None = None
) -> SensitivityHull:
    """K = Conv{f(j) - f(k) : j and k linked and possible} (Definition 5.1).

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> policy = PolicyGraph.by_category(["cafe", "school", "school", "shop", "shop", "shop"])
    >>> hull = sensitivity_hull(query, policy)
    >>> hull.volume, hull.l1_sensitivity
    (Fraction(11, 1), Fraction(5, 1))
    >>> sensitivity_hull(query, policy, [False, True, True, False, True, False]).rank
    1
    """
    check_policy(policy, query)
    if possible is not None:
        policy = policy.restricted_to(possible_mask(possible, query.n_states))
    links = query.points[policy.links[:, 0]] - query.points[policy.links[:, 1]]
    if query.dimension == 1:
        longest = largest(np.concatenate([links, _clique_lengths(query.points, policy)]))
        return SensitivityHull.from_lattice(np.array([[longest]]), query.step)
    if query.dimension == 2:
        vectors = np.concatenate([links, _clique_corners(query.points, policy)])
        corners = planar_hull(vectors) if len(vectors) else vectors
        return SensitivityHull.from_lattice(corners, query.step)
    return _cornered(_unique(links), [query.points[clique] for clique in policy.cliques], query)


def _unique(vectors: IntArray) -> IntArray:
    """Each vector once; a grid repeats a few differences many times."""
    if len(vectors) < 2:
        return vectors
    order = np.lexsort(vectors.T)
    ordered = vectors[order]
    fresh = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    return ordered[fresh]


def _clique_lengths(points: IntArray, policy: PolicyGraph) -> IntArray:
    if not len(policy.members):
        return np.empty((0, 1), dtype=np.int64)
    answers, starts = points[policy.members, 0], policy.offsets[:-1]
    lengths = np.maximum.reduceat(answers, starts) - np.minimum.reduceat(answers, starts)
    return lengths[:, None]


def _clique_corners(points: IntArray, policy: PolicyGraph) -> ObjectArray:
    """The corners of every clique's difference body, in the plane."""
    if not len(policy.members):
        return np.empty((0, 2), dtype=np.int64)
    if int(np.ptp(points.astype(np.float64), axis=0).max()) < 2**30:
        return kernels.planar.clique_differences(points, policy.members, policy.offsets)
    bodies = []
    for clique in policy.cliques:
        ring = planar_hull(points[clique]).astype(object)
        bodies.append((ring[:, None] - ring[None, :]).reshape(-1, 2))
    return np.concatenate(bodies)


def _cornered(links: IntArray, cliques: list[IntArray], query: Query) -> SensitivityHull:
    """The hull in three and more dimensions, where Qhull proposes and integers decide.

    Proposed corners give an exact hull; every difference is then held against its facets,
    a clique by the span of its projections, and what sticks out joins the corners.
    """
    proposed = [_proposed_corners(links)]
    for clique in cliques:
        corners = _proposed_corners(clique)
        low, high = np.triu_indices(len(corners), k=1)
        proposed.append(_proposed_corners(corners[low] - corners[high]))
    vectors = np.concatenate(proposed)
    while True:
        hull = SensitivityHull.from_lattice(vectors, query.step)
        outside = [_sticking_out(hull, links, np.zeros_like(links))]
        outside += [_sticking_out(hull, clique, clique) for clique in cliques]
        missing = np.concatenate(outside)
        if not len(missing):
            return hull
        vectors = np.concatenate([hull.lattice_vertices, missing])


def _proposed_corners(points: IntArray) -> IntArray:
    """Points that are probably the corners of their hull; all of them if there are few."""
    points = _unique(points)
    if len(points) <= 4 * points.shape[1]:
        return points
    rank, transform = span_transform(points - points[0])
    moved = exact_product(points - points[0], transform[:, :rank]).astype(np.float64)
    if rank < 2:
        return points[[np.argmin(moved[:, 0]), np.argmax(moved[:, 0])]]
    try:
        return points[np.sort(ConvexHull(moved).vertices)]
    except QhullError:
        return points


def _sticking_out(hull: SensitivityHull, heads: IntArray, tails: IntArray) -> ObjectArray:
    """The extreme differences head - tail that lie outside a hull, one for each side passed.

    For a clique heads and tails are the same points, and its extreme difference along a
    normal is its highest point minus its lowest: no pair is ever formed.
    """
    if not len(heads):
        return np.empty((0, hull.dimension), dtype=np.int64)
    facets = exact_product(hull.transform[:, : hull.rank], hull.body.normals.T)
    sides = np.concatenate([facets, hull.transform[:, hull.rank :]], axis=1)
    limits = [*hull.body.offsets.tolist(), *[0] * (hull.dimension - hull.rank)]
    heights = exact_product(heads, sides)
    pairwise = heads is tails
    found = []
    for height, limit in zip(heights.T, limits, strict=True):
        high, low = int(np.argmax(height)), int(np.argmin(height))
        if pairwise and int(height[high]) - int(height[low]) > limit:
            found.append(heads[high] - heads[low])
        if not pairwise:
            found += [heads[i] for i in (high, low) if abs(int(height[i])) > limit]
    return _unique(np.array(found, dtype=heads.dtype).reshape(-1, hull.dimension))
