"""How far answers are from the truth, on average: the error that people can picture."""

from __future__ import annotations

from math import sqrt

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.geometry.hull import SensitivityHull
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.staircase import radial_sum

__all__ = ["mean_noise"]

POINTS = 4096
"""Points of a boundary simplex in three or more dimensions, whose mean length has no formula."""

FAR, SUMMED = 30, 100_000
"""Norms at which e^(-norm) is nothing, and how many points of a lattice are summed."""


def mean_noise(mechanism: Mechanism) -> float:
    """E|z - f(s)| in the units of the query.

    Summed over the lattice where that is coarse. Where it is fine, the continuous law gives what
    share of the root of the mean squared error this is, and the lattice gives that error.

    >>> from dphmm.geometry.query import Query
    >>> line = SensitivityHull.from_vertices([[1000]])
    >>> round(mean_noise(Mechanism(Query([[0], [1000]]), line, 1)))
    1000
    """
    body, rank = mechanism.body, mechanism.body.rank
    if rank == 0:
        return 0.0
    reach = np.abs(body.body.corners).max(axis=0).astype(np.float64)
    sides = np.ceil(reach * FAR / float(mechanism.epsilon))
    if np.prod(2 * sides + 1) <= SUMMED:
        return _sum_lattice(mechanism, sides.astype(np.int64))
    if mechanism.gamma is None:
        first, second = rank + 1.0, (rank + 1.0) * (rank + 2.0)
    else:
        price = float(mechanism.epsilon)
        mass, *higher = (radial_sum(rank + i, mechanism.gamma, price) for i in range(3))
        first, second = (moment / mass for moment in higher)
    # An epsilon of 1 leaves (k+1)(k+2) E|U|^2 of the exact formula, and that of U is wanted.
    square = float(body.mean_squared_error(1)) / ((rank + 1) * (rank + 2))
    share = first * _mean_length(body) / sqrt(second * square)
    return share * sqrt(mechanism.mean_squared_error)


def _sum_lattice(mechanism: Mechanism, sides: IntArray) -> float:
    """The mean over all points of the span's lattice that have a weight to speak of."""
    axes = np.meshgrid(*(np.arange(-side, side + 1) for side in sides), indexing="ij")
    noise = np.stack(axes, axis=-1).reshape(-1, len(sides)) @ mechanism.body.basis
    price, gamma, body = float(mechanism.epsilon), mechanism.gamma, mechanism.body
    norms = body.lattice_norms(noise) if gamma is None else body.lattice_layers(noise, gamma)
    lengths = np.linalg.norm(noise.astype(np.float64), axis=1)
    return float(np.average(lengths, weights=np.exp(-price * norms)) * body.step)


def _mean_length(body: SensitivityHull) -> float:
    """E|U| of U uniform on the body: k/(k+1) of the mean over its boundary, seen from inside."""
    corners = body.vertices[body.body.simplices]
    weights = np.array([float(share) for share in body.determinants])
    lengths = {1: _of_points, 2: _of_segments}.get(body.rank, _of_simplices)(corners)
    return float(weights @ lengths / weights.sum()) * body.rank / (body.rank + 1)


def _of_points(corners: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(corners[:, 0], axis=1))


def _of_segments(corners: FloatArray) -> FloatArray:
    """The mean of |p| along each segment, in closed form."""
    a, b = corners[:, 0], corners[:, 1]
    long = np.linalg.norm(b - a, axis=1)
    along = (b - a) / long[:, None]
    ends = np.stack([(a * along).sum(axis=1), (b * along).sum(axis=1)])
    away = np.sqrt(np.maximum((a**2).sum(axis=1) - ends[0] ** 2, 0))
    ratio = np.divide(ends, away, out=np.zeros_like(ends), where=away > 0)
    sums = (ends * np.hypot(ends, away) + away**2 * np.arcsinh(ratio)) / 2
    return np.asarray((sums[1] - sums[0]) / long)


def _of_simplices(corners: FloatArray) -> FloatArray:
    """The mean of |p| over each simplex, at points that are the same every time."""
    shares = np.random.default_rng(0).dirichlet(np.ones(corners.shape[1]), POINTS)
    return np.array([np.linalg.norm(shares @ corner, axis=1).mean() for corner in corners])
