"""The geometric median of probabilities over points: where the expected distance is least.

Weiszfeld's iteration from the mean, with a test that is exact where the median is one of the
points. Every sum is taken in the order of the points, so the same numbers give the same bits.
Squares are products: as plain Python NumPy's power is another function, and rounds otherwise.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.kernels.compiling import kernel

FAINT = 1e-9
"""A point with less than this share of the largest weight is left out."""

CLOSE = 1e-7
"""The iteration ends when it moves by less than this share of the points' extent."""

MOST = 100
"""Iterations at most."""


@kernel(lambda values, weights, middle: 100 * values.size, nogil=True)
def median(values: FloatArray, weights: FloatArray, middle: FloatArray) -> None:
    """Write the point with the least expected distance to the values."""
    places, shares = _likely(values, weights)
    count, axes = places.shape
    if axes == 1:
        middle[0] = _line_median(places, shares)
        return
    for axis in range(axes):
        middle[axis] = 0.0
    total = 0.0
    extent = 0.0
    for point in range(count):
        total += shares[point]
        for axis in range(axes):
            middle[axis] += shares[point] * places[point, axis]
            extent = max(extent, abs(places[point, axis] - places[0, axis]))
    for axis in range(axes):
        middle[axis] /= total
    moved = np.empty(axes)
    tested = -1
    for _ in range(MOST):
        nearest, length = _step(places, shares, middle, moved)
        if nearest != tested:
            if _is_median(places, shares, nearest):
                for axis in range(axes):
                    middle[axis] = places[nearest, axis]
                return
            tested = nearest
        for axis in range(axes):
            middle[axis] = moved[axis]
        if length <= CLOSE * extent:
            return


@kernel(nogil=True)
def _likely(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The points whose weight counts, and their weights."""
    most = weights[0]
    for state in range(len(weights)):
        most = max(most, weights[state])
    least = FAINT * most
    count = 0
    for state in range(len(weights)):
        count += weights[state] > least
    places, shares = np.empty((count, values.shape[1])), np.empty(count)
    count = 0
    for state in range(len(weights)):
        if weights[state] > least:
            for axis in range(values.shape[1]):
                places[count, axis] = values[state, axis]
            shares[count] = weights[state]
            count += 1
    return places, shares


@kernel(nogil=True)
def _line_median(places: FloatArray, shares: FloatArray) -> float:
    """The lowest number that half of the weight does not exceed."""
    order = _rising(places)
    total = 0.0
    for i in range(len(order)):
        total += shares[order[i]]
    reached = 0.0
    for i in range(len(order)):
        reached += shares[order[i]]
        if 2.0 * reached >= total:
            return places[order[i], 0]
    return places[order[len(order) - 1], 0]


@kernel(nogil=True)
def _rising(places: FloatArray) -> IntArray:
    """The points in the order of their first numbers, equal ones as they come.

    Merged by twos, fours and so on: NumPy's sort takes numba a second to compile.
    """
    n = len(places)
    order, spare = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(n, start + width), min(n, start + 2 * width)
            i, j = start, middle
            for k in range(start, end):
                first = j >= end
                if i < middle and j < end:
                    first = places[order[i], 0] <= places[order[j], 0]
                if first:
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    return order


@kernel(nogil=True)
def _step(
    places: FloatArray, shares: FloatArray, middle: FloatArray, moved: FloatArray
) -> tuple[int, float]:
    """One step of Weiszfeld; gives the point nearest to `middle`, and how far it goes.

    A point on which `middle` lies pulls nowhere; the test of the nearest point has seen that it
    does not hold, so leaving it out leads away from it.
    """
    axes = len(middle)
    nearest, least, pulls = 0, np.inf, 0.0
    for axis in range(axes):
        moved[axis] = 0.0
    for point in range(len(shares)):
        square = 0.0
        for axis in range(axes):
            apart = places[point, axis] - middle[axis]
            square += apart * apart
        if square < least:
            nearest, least = point, square
        if square > 0.0:
            pull = shares[point] / np.sqrt(square)
            pulls += pull
            for axis in range(axes):
                moved[axis] += pull * places[point, axis]
    length = 0.0
    for axis in range(axes):
        moved[axis] = moved[axis] / pulls if pulls > 0.0 else middle[axis]
        length = max(length, abs(moved[axis] - middle[axis]))
    return nearest, length


@kernel(nogil=True)
def _is_median(places: FloatArray, shares: FloatArray, chosen: int) -> bool:
    """Whether a point is the median: the others pull at it with no more than its own weight."""
    axes = places.shape[1]
    pull = np.zeros(axes)
    own = 0.0
    for point in range(len(shares)):
        square = 0.0
        for axis in range(axes):
            apart = places[point, axis] - places[chosen, axis]
            square += apart * apart
        if square == 0.0:
            own += shares[point]
        else:
            weight = shares[point] / np.sqrt(square)
            for axis in range(axes):
                pull[axis] += weight * (places[point, axis] - places[chosen, axis])
    square = 0.0
    for axis in range(axes):
        square += pull[axis] * pull[axis]
    return square <= own * own


@kernel(
    lambda beliefs, current, values, people, result: 100 * values.size * len(people), nogil=True
)
def medians(
    beliefs: FloatArray, current: IntArray, values: FloatArray, people: IntArray, result: FloatArray
) -> None:
    """The medians of some columns of a table of beliefs, written to columns of the result.

    `current` says at which of the values' places each row of the table is.
    """
    weights, middle = np.empty(len(values)), np.empty(values.shape[1])
    for i in range(len(people)):
        person = people[i]
        for state in range(len(weights)):
            weights[state] = 0.0
        for state in range(len(current)):
            weights[current[state]] += beliefs[state, person]
        median(values, weights, middle)
        for axis in range(len(middle)):
            result[axis, person] = middle[axis]
