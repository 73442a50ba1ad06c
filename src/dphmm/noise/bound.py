"""What no noise can do: a lower bound on the error of every mechanism for a body.

The volume argument of Hardt and Talwar (2010) with its constants, on the lattice, and one by
widths, which says more in few dimensions. The proofs stand in docs/mathematics.md.
"""

from __future__ import annotations

from math import ceil, exp, expm1, factorial, gamma, gcd, pi, sqrt

import numpy as np

from dphmm.errors import expect
from dphmm.geometry.exact import Exact, as_epsilon
from dphmm.geometry.hull import SensitivityHull

__all__ = ["least_error"]

MOST_TERMS = 10**6
"""Of a sum that only grows: what is left out makes the bound smaller, never wrong."""


def least_error(hull: SensitivityHull, epsilon: Exact) -> float:
    """The root mean squared error that no mechanism for a hull goes below.

    It is about mechanisms that answer every point of the lattice, with a factor of at most
    e^(epsilon m) between any two whose difference lies in m K, and about their error on average
    over a large region, so also about their largest. K-norm, Laplace and staircase noise are
    among them, and err the same everywhere. One that knows that only a few states are possible
    may err less.

    Args:
        hull: The body K, whose corners are differences that must be hidden.
        epsilon: What an answer costs between two linked states.

    >>> hull = SensitivityHull.from_vertices([[10]])
    >>> round(least_error(hull, 1), 2), round(float(hull.mean_squared_error(1)) ** 0.5, 2)
    (13.57, 14.14)
    """
    expect(hull, SensitivityHull, "hull")
    share = float(as_epsilon(epsilon))
    if not hull.rank:
        return 0.0
    return sqrt(max(_by_widths(hull, share), _by_volume(hull, share))) * float(hull.step)


def _by_widths(hull: SensitivityHull, epsilon: float) -> float:
    """The sum, over directions at right angles, of the error along whole multiples of a corner.

    On a line whose neighbouring points must look alike no law beats the two-sided geometric.
    """
    corners = hull.lattice_vertices.astype(np.float64)
    rest, squares = corners.copy(), 0.0
    for _ in range(hull.rank):
        longest = rest[np.argmax((rest**2).sum(axis=1))]
        direction = longest / np.linalg.norm(longest)
        squares += float(((corners @ direction) ** 2).max())
        rest = rest - np.outer(rest @ direction, direction)
    return squares * 2 * exp(-epsilon) / expm1(-epsilon) ** 2


def _by_volume(hull: SensitivityHull, epsilon: float) -> float:
    """The second moment of a ball with the volume of so many cells that no point weighs more."""
    rank, basis = hull.rank, hull.basis.astype(np.float64)
    cell = sqrt(np.linalg.det(basis @ basis.T))
    ball = pi ** (rank / 2) / gamma(rank / 2 + 1)
    radius = (_cells(hull, epsilon) * cell / ball) ** (1 / rank)
    return float(rank / (rank + 2) * radius**2 - (basis**2).sum() / 12)


def _cells(hull: SensitivityHull, epsilon: float) -> float:
    """The sum over the lattice of e^(-epsilon m), m the least with the point in m K, or less."""
    rank, volume = hull.rank, sum(hull.determinants) / factorial(hull.rank)
    decay, rest = exp(-epsilon), -expm1(-epsilon)
    if rank == 1:
        # m K holds 2 a m + 1 points.
        return 1 + volume * decay / rest
    if rank == 2:
        # And A m^2 + b m / 2 + 1 in the plane (Pick), b of them on the boundary of K.
        ends = hull.body.corners[hull.body.simplices]
        edges = (ends[:, 0] - ends[:, 1]).tolist()
        boundary = sum(gcd(*edge) for edge in edges)
        return 1 + boundary / 2 * decay / rest + volume * decay * (1 + decay) / rest**2
    # Elsewhere at least the volume of (m - c) K, where half a cell lies in c K.
    shift = sum(float(norm) for norm in hull.lattice_norms(hull.basis)) / 2
    layers = np.arange(1, min(MOST_TERMS, ceil(50 * rank / epsilon)) + 1)
    reached = np.maximum(layers - shift, 0.0) ** rank
    return max(1.0, volume * rest * float((reached * np.exp(-epsilon * layers)).sum()))
