"""What answers tell of one moment of a small chain, exactly: over all answers there can be.

A ratio of two sums over states is largest at an extreme point of the probabilities that
answers have given each state. So only the extreme points are carried from step to step, and
those of one answer are finitely many: far out along a corner of the body the probabilities of
all states fall by the same factor, and nothing new is told.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from dphmm._types import FloatArray, IntArray, ObjectArray
from dphmm.cost.charges import Charge
from dphmm.cost.moments import Moments
from dphmm.geometry.lattice import exact_product

__all__ = ["small_losses"]

SMALL_STATES, SMALL_STEPS = 6, 8
SMALL_LOSS = 12.0
"""Beyond, extreme points are lost among the rounding errors of the largest probabilities."""

MOST_POINTS = 20_000
"""Answers, or extreme points, that are looked at; a chain with more is not small."""


def small_losses(moments: Moments) -> list[FloatArray] | None:
    """For every step the largest loss of each two states, exactly; None if it is not small.

    Args:
        moments: The steps of a history.
    """
    steps = range(len(moments))
    if moments.widest > SMALL_STATES or len(moments) > SMALL_STEPS:
        return None
    if sum(moments.told(step).max() for step in steps) > SMALL_LOSS:
        return None
    answers = []
    for step in steps:
        points = _answers(moments, step)
        if points is None:
            return None
        answers.append(points)
    past = [np.ones((1, len(moments.states[0])))]
    future = [np.ones((1, len(moments.states[-1])))]
    for step in steps[1:]:
        past.append(_passed(past[-1], answers[step - 1], moments.back(step).dense()))
    for step in reversed(steps[:-1]):
        future.append(_passed(future[-1], answers[step + 1], moments.onwards(step).dense()))
    sides = zip(past, answers, reversed(future), strict=True)
    if any(len(points) > MOST_POINTS for points in (*past, *future)):
        return None
    return [sum(_largest(points) for points in parts) for parts in sides]  # type: ignore[misc]


def _largest(points: FloatArray) -> FloatArray:
    """The largest log of a ratio of each two columns."""
    logs = np.log(points)
    largest: FloatArray = (logs[:, :, None] - logs[:, None, :]).max(axis=0)
    return largest


def _passed(points: FloatArray, answers: FloatArray, rows: FloatArray) -> FloatArray:
    """The extreme probabilities one step on, after one more answer."""
    if len(points) * len(answers) > MOST_POINTS**2 // 4:
        return np.ones((MOST_POINTS + 1, len(rows)))
    both = (points[:, None, :] * answers[None, :, :]).reshape(-1, points.shape[1])
    return _extreme(both @ rows.T)


def _extreme(points: FloatArray) -> FloatArray:
    """The extreme points of the cone over some points, each divided by its sum."""
    scaled = points / points.sum(axis=1, keepdims=True)
    _, first = np.unique(scaled.round(13), axis=0, return_index=True)
    scaled = scaled[np.sort(first)]
    apart = scaled - scaled.mean(axis=0)
    _, sizes, axes = np.linalg.svd(apart, full_matrices=False)
    rank = int((sizes > 1e-11 * max(1.0, sizes.max(initial=0.0))).sum())
    places = apart @ axes[:rank].T
    if rank == 0:
        return scaled[:1]
    if rank == 1:
        return scaled[[int(places.argmin()), int(places.argmax())]]
    try:
        return scaled[ConvexHull(places).vertices]
    except QhullError:
        return scaled


def _answers(moments: Moments, step: int) -> FloatArray | None:
    """The extreme probabilities of a step's answers given each state, up to a factor."""
    states = moments.states[step]
    points = np.ones((1, len(states)))
    for charge in moments.history.charges[step]:
        found = _likelihoods(charge, states)
        if found is None or len(points) * len(found) > MOST_POINTS:
            return None
        points = _extreme((points[:, None, :] * found[None, :, :]).reshape(-1, len(states)))
    return points


def _likelihoods(charge: Charge, states: IntArray) -> FloatArray | None:
    hull = charge.hull
    inside = exact_product(charge.query.points[states], hull.transform)[:, : hull.rank]
    if hull.rank > 2:
        return None
    if hull.rank == 0:
        return np.ones((1, len(states)))
    extent = _extent(inside, hull.body.corners)
    if np.prod([2.0 * x + 1 for x in extent]) > MOST_POINTS:
        return None
    away = np.array(list(product(*(range(-x, x + 1) for x in extent))), dtype=object)
    answers = charge.query.points[states[0]] + exact_product(away, hull.basis)
    apart = answers[:, None, :] - charge.query.points[states][None, :, :]
    vectors = apart.reshape(-1, hull.dimension)
    gamma = charge.gamma
    norms = hull.lattice_norms(vectors) if gamma is None else hull.lattice_layers(vectors, gamma)
    logs = -float(charge.epsilon) * norms.reshape(len(answers), len(states))
    return _extreme(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _extent(points: ObjectArray, corners: ObjectArray) -> list[int]:
    """How far from the first point, on each axis, answers tell something new.

    The norms from all points are linear between the rays from each point through the corners.
    Every piece is spanned by crossings of such rays and by corners along which all norms grow
    alike, so an answer beyond the last crossing tells what one whole corners nearer tells.
    """
    crossings = [[Fraction(int(x)) for x in point] for point in points]
    if points.shape[1] == 2:
        lines = list(product(points.tolist(), corners.tolist()))
        for ((ax, ay), (gx, gy)), ((bx, by), (hx, hy)) in product(lines, repeat=2):
            slant = hx * gy - gx * hy
            if slant:
                along = Fraction(hx * (by - ay) - hy * (bx - ax), slant)
                crossings.append([ax + along * gx, ay + along * gy])
    rank = points.shape[1]
    return [
        ceil(max(abs(crossing[axis] - int(points[0][axis])) for crossing in crossings))
        + rank * int(np.abs(corners[:, axis]).max())
        for axis in range(rank)
    ]
