"""Who hides whom: degree of protection and exposure (paper, section 5.2).

A state is hidden by every possible state whose answer lies in its own answer plus K. All
comparisons are between integers; a state exactly on the boundary is protected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import IntArray, Mask, ObjectArray
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.lattice import SAFE, exact_product, largest, row_labels
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask
from dphmm.policy.graph import PolicyGraph, check_policy
from dphmm.policy.sensitivity import sensitivity_hull

__all__ = ["degree_of_protection", "exposed", "is_protectable", "unprotected"]


def degree_of_protection(
    query: Query,
    policy: PolicyGraph,
    possible: ArrayLike | None = None,
    hull: SensitivityHull | None = None,
) -> IntArray:
    """Count, for each possible state, the possible states that hide it (Definition 5.2).

    The state itself counts, so 1 means exposed. A state without an edge may still be hidden,
    if others fall inside its hull; impossible states count 0.

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.
        hull: The body that the noise really uses (an l1 ball, an enlarged hull), on the lattice of
            the query; by default the policy's own hull.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> policy = PolicyGraph.by_category(["cafe", "school", "school", "shop", "shop", "shop"])
    >>> degree_of_protection(query, policy, [False, True, False, True, True, True]).tolist()
    [0, 3, 0, 4, 4, 3]
    """
    mask = _checked(query, policy, possible)
    return _counts(query, policy, mask, hull, query.n_states)


def exposed(
    query: Query,
    policy: PolicyGraph,
    possible: ArrayLike | None = None,
    hull: SensitivityHull | None = None,
) -> IntArray:
    """The possible states that no other possible state hides, lowest first.

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.
        hull: The body that the noise really uses (an l1 ball, an enlarged hull), on the lattice of
            the query; by default the policy's own hull.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> policy = PolicyGraph.by_category(["cafe", "school", "school", "shop", "shop", "shop"])
    >>> exposed(query, policy, [False, False, True, True, True, True]).tolist()
    [2]
    """
    mask = _checked(query, policy, possible)
    return np.flatnonzero(_counts(query, policy, mask, hull, 2) == 1)


def is_protectable(
    query: Query,
    policy: PolicyGraph,
    possible: ArrayLike | None = None,
    hull: SensitivityHull | None = None,
) -> bool:
    """Whether every possible state is hidden by another (Definition 5.3).

    A lone possible state is not: whoever knows the model knows it already.

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.
        hull: The body that the noise really uses (an l1 ball, an enlarged hull), on the lattice of
            the query; by default the policy's own hull.
    """
    return not len(exposed(query, policy, possible, hull))


def unprotected(
    query: Query,
    policy: PolicyGraph,
    possible: ArrayLike | None = None,
    hull: SensitivityHull | None = None,
) -> IntArray:
    """The possible states for which Definition 4.4 fails under K-norm noise from `hull`.

    A state with possible neighbours must look like all of them; one without must look like
    some other possible state. (As printed the definition lets that state be itself, which
    would ask for nothing.) With the policy's own hull the first half always holds.

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.
        hull: The body that the noise really uses (an l1 ball, an enlarged hull), on the lattice of
            the query; by default the policy's own hull.
    """
    mask = _checked(query, policy, possible)
    body = _body(query, policy, mask, hull)
    graph = policy.restricted_to(mask)
    edges = graph.edges
    told_apart = edges[
        ~body.lattice_contains(query.points[edges[:, 0]] - query.points[edges[:, 1]])
    ]
    alone = exposed(query, graph, mask, body)
    return np.union1d(told_apart.ravel(), alone[~graph.connected[alone]])


def count_hidden(points: IntArray, hull: SensitivityHull, enough: int) -> IntArray:
    """For each point the number of points in it plus K, itself included, up to `enough`."""
    # Only differences count; from the first point they are short even for far-away answers.
    moved = exact_product(points - points[0], hull.transform)
    counts = np.zeros(len(points), dtype=np.int64)
    for members in _groups(row_labels(moved[:, hull.rank :])):
        counts[members] = _count_spanned(moved[members, : hull.rank], hull, enough)
    return counts


def _checked(query: Query, policy: PolicyGraph, possible: ArrayLike | None) -> Mask:
    check_policy(policy, query)
    return possible_mask(possible, query.n_states)


def _counts(
    query: Query, policy: PolicyGraph, mask: Mask, hull: SensitivityHull | None, enough: int
) -> IntArray:
    counts = np.zeros(query.n_states, dtype=np.int64)
    counts[mask] = count_hidden(query.points[mask], _body(query, policy, mask, hull), enough)
    return counts


def _body(
    query: Query, policy: PolicyGraph, mask: Mask, hull: SensitivityHull | None
) -> SensitivityHull:
    if hull is None:
        return sensitivity_hull(query, policy, mask)
    check_body(hull, query)
    return hull


def _groups(labels: IntArray) -> list[IntArray]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _count_spanned(points: ObjectArray, hull: SensitivityHull, enough: int) -> IntArray:
    """Counts among points that differ only within the span, in its coordinates."""
    if hull.rank == 0:
        return np.full(len(points), min(len(points), enough))
    body = hull.body
    extent = np.abs(body.corners).max(axis=0)
    limit = hull.rank * largest(body.normals) * largest(extent)
    if object in (points.dtype, body.normals.dtype, extent.dtype) or limit >= SAFE:
        facets = body.normals.astype(object).T
        heights = points.astype(object) @ facets
        within = [(abs(heights - row) <= body.offsets).all(axis=1).sum() for row in heights]
        return np.minimum(np.array(within, dtype=np.int64), enough)
    # In its narrowest direction the fewest are looked at; where that does not fit 64 bits, by the
    # first coordinate.
    narrow = int(np.argmin(body.offsets / np.linalg.norm(body.normals.astype(np.float64), axis=1)))
    normal, reach = body.normals[narrow], int(body.offsets[narrow])
    if 2 * hull.rank * largest(normal) * largest(points) >= SAFE:
        normal, reach = np.eye(hull.rank, dtype=np.int64)[0], int(extent[0])
    heights = points @ normal
    order = np.argsort(heights, kind="stable")
    counts = np.empty(len(points), dtype=np.int64)
    counts[order] = kernels.gauge.count_neighbors(
        np.ascontiguousarray(points[order]), heights[order], reach, extent,
        body.normals, body.offsets, enough,
    )  # fmt: skip
    return counts
