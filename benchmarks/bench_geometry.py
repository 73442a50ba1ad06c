"""Exact hulls and degrees of protection, beside what one would write with SciPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter, thread_time

import numpy as np
from scipy.spatial import ConvexHull

from benchmarks import Figure
from dphmm import (
    PolicyGraph,
    Query,
    degree_of_protection,
    exposed,
    protect,
    sensitivity_hull,
)
from dphmm._types import IntArray

SIZES = (10_000, 100_000, 1_000_000)
SIDE = 50
RADIUS = 3
REPEATS = 9


def seconds(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """The fastest run of each after one that compiles, taking turns so that both share the load."""
    fastest = [float("inf"), float("inf")]
    ours(), theirs()
    for _ in range(REPEATS):
        for i, work in enumerate((ours, theirs)):
            start = perf_counter()
            work()
            fastest[i] = min(fastest[i], perf_counter() - start)
    return fastest[0], fastest[1]


def complete_hulls() -> list[Figure]:
    rng = np.random.default_rng(0)
    figures, ours = [], []
    for size in SIZES:
        query = Query(rng.integers(-(10**6), 10**6, (size, 2)))
        policy = PolicyGraph.complete(size)
        floats = query.points.astype(np.float64)
        exact, scipy = seconds(
            partial(sensitivity_hull, query, policy), partial(ConvexHull, floats)
        )
        ours.append(exact)
        figures.append(
            Figure(
                name=f"hull of the complete graph, {size:,} points",
                value=1000 * exact,
                unit="ms",
                against="scipy ConvexHull of the points",
                ratio=exact / scipy,
                target="ratio < 3",
            )
        )
    exponent = float(np.polyfit(np.log(SIZES), np.log(ours), 1)[0])
    figures.append(
        Figure("growth of the hull's time, fitted exponent", exponent, "", target="value < 1.2")
    )
    return figures


def degrees_of_all_pairs(points: IntArray, normals: IntArray, offsets: IntArray) -> IntArray:
    """DoP from the facets in NumPy alone: a pair is inside if every |a (x - y)| <= b.

    One facet at a time, because all facets of all pairs together would not fit the caches.
    """
    inside = np.ones((len(points), len(points)), dtype=bool)
    for height, offset in zip((points @ normals.T).T, offsets, strict=True):
        inside &= np.abs(height[:, None] - height[None, :]) <= offset
    return inside.sum(axis=1)


def grid_degrees() -> list[Figure]:
    query = Query(np.array(list(np.ndindex(SIDE, SIDE))))
    policy = PolicyGraph.within_distance(query, RADIUS)
    body = sensitivity_hull(query, policy).body
    expected = degrees_of_all_pairs(query.points, body.normals, body.offsets)
    if not np.array_equal(degree_of_protection(query, policy), expected):
        raise AssertionError("the two ways to the degrees of protection differ")
    ours, numpy = seconds(
        partial(degree_of_protection, query, policy),
        partial(degrees_of_all_pairs, query.points, body.normals, body.offsets),
    )
    return [
        Figure(
            name=f"DoP of all {SIDE**2:,} states, radius {RADIUS}, hull included",
            value=1000 * ours,
            unit="ms",
            against="of the all-pairs NumPy time",
            ratio=ours / numpy,
            target="ratio <= 0.1",
        )
    ]


def hull_in_four_dimensions() -> list[Figure]:
    points = np.random.default_rng(0).integers(-1000, 1001, (1_000, 4))
    query, policy = Query(points), PolicyGraph.complete(1_000)
    start = thread_time()
    sensitivity_hull(query, policy)
    took = thread_time() - start
    name = "hull of the complete graph, 1,000 random points in four dimensions"
    return [Figure(name, took, "s", target="value < 5")]


def in_space() -> list[Figure]:
    """Degrees of protection and repair of 10,000 random places in three dimensions."""
    query = Query(np.random.default_rng(0).integers(0, 1000, (10_000, 3)))
    policy = PolicyGraph.within_distance(query, 40)
    body = sensitivity_hull(query, policy).body
    start = thread_time()
    degrees = degree_of_protection(query, policy)
    ours = thread_time() - start
    # All pairs of 10,000 take NumPy minutes; a tenth of the rows says how many.
    start = thread_time()
    some = query.points[:1_000]
    inside = np.ones((len(some), len(query.points)), dtype=bool)
    for normal, offset in zip(body.normals, body.offsets, strict=True):
        height = query.points @ normal
        inside &= np.abs(height[:1_000, None] - height[None, :]) <= offset
    numpy = 10 * (thread_time() - start)
    if not np.array_equal(degrees[:1_000], inside.sum(axis=1)):
        raise AssertionError("the two ways to the degrees of protection differ")
    lonely = len(exposed(query, policy))
    start = thread_time()
    protect(query, policy)
    repaired = thread_time() - start
    return [
        Figure(
            "DoP of 10,000 random places in three dimensions, hull included",
            1000 * ours,
            "ms",
            "of the all-pairs NumPy time",
            ours / numpy,
            "ratio <= 0.1",
        ),
        Figure(f"their repair, {lonely} exposed, by error", repaired, "s", target="value <= 30"),
    ]


def run() -> list[Figure]:
    return complete_hulls() + grid_degrees() + hull_in_four_dimensions() + in_space()
