"""A larger body with a smaller error: K' = conv(K and +-w).

A body that contains K keeps the guarantee of every edge. When K is long and thin, points
beside its middle are closer to the origin than K's average point, and adding them lowers
the mean squared error. The search moves w over the lattice by halving steps and compares
exact fractions, so that everyone computes the same body.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np

from dphmm import kernels
from dphmm.errors import expect
from dphmm.geometry.hull import SensitivityHull

__all__ = ["enlarge"]

Corner: TypeAlias = tuple[int, ...]

LADDER = 24
"""How many lengths are tried along each direction before the search on the lattice."""

WORTHWHILE = Fraction(1, 1000)
"""A further pair of corners must lower the error by this share."""


def enlarge(hull: SensitivityHull) -> SensitivityHull:
    """A body that contains the hull and has no larger mean squared error.

    Args:
        hull: The hull that the body must contain.

    >>> thin = SensitivityHull.from_vertices([[100, 5], [100, -5]])
    >>> float(enlarge(thin).mean_squared_error(1) / thin.mean_squared_error(1)) < 0.70
    True
    >>> square = SensitivityHull.from_vertices([[1, 1], [1, -1]])
    >>> enlarge(square) == square
    True
    """
    expect(hull, SensitivityHull, "hull")
    body = hull
    for _ in range(hull.rank - 1):
        better = _with_one_pair(body)
        if better.mean_squared_error(1) > body.mean_squared_error(1) * (1 - WORTHWHILE):
            break
        body = better
    return body


def _with_one_pair(hull: SensitivityHull) -> SensitivityHull:
    error = _error_with(hull)
    best = min(_starts(hull), key=lambda corner: (error(corner), corner))
    step = max(1, max(map(abs, best)) // 4)
    while True:
        around = [
            tuple(entry + step * sign * (i == axis) for i, entry in enumerate(best))
            for axis in range(hull.rank)
            for sign in (1, -1)
        ]
        nearby = min(around, key=lambda corner: (error(corner), corner))
        if error(nearby) < error(best):
            best = nearby
        elif step > 1:
            step //= 2
        else:
            return _joined(hull, best)


def _starts(hull: SensitivityHull) -> list[Corner]:
    """Lengths along every axis of the span and, in the plane, across the longest corner."""
    corners = [[int(entry) for entry in corner] for corner in hull.body.corners]
    longest = max(corners, key=lambda corner: (sum(entry**2 for entry in corner), corner))
    reach = max(map(abs, longest))
    directions = [[reach * (i == axis) for i in range(hull.rank)] for axis in range(hull.rank)]
    if hull.rank == 2:
        directions.append([-longest[1], longest[0]])
    return [
        tuple(entry * 4**rung // 5**rung for entry in direction)
        for direction in directions
        for rung in range(LADDER)
    ]


def _error_with(hull: SensitivityHull) -> Callable[[Corner], Fraction]:
    """The mean squared error of K with one more pair of corners, as a function of the corner."""
    if hull.rank != 2 or hull.dimension != 2:
        return cache(lambda corner: _joined(hull, corner).mean_squared_error(1))
    moments = kernels.planar.extended_moments.py_func
    ring = hull.body.corners.astype(object)

    def error(corner: Corner) -> Fraction:
        area, moment = moments(ring, np.array([corner], dtype=object))[0]
        return Fraction(moment, area)

    return cache(error)


def _joined(hull: SensitivityHull, corner: Corner) -> SensitivityHull:
    vector = np.array([corner], dtype=object) @ hull.basis.astype(object)
    if hull.lattice_contains(vector)[0]:
        return hull
    vectors = np.concatenate([hull.lattice_vertices.astype(object), vector])
    return SensitivityHull.from_lattice(vectors, hull.step)
