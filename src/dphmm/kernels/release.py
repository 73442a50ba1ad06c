"""One step of one belief: predict, weigh by the answer, normalise.

The exponential is left to NumPy, whose own loop is faster, so a step is `exponents`, np.exp and
`settle`. Sums are taken in the order of the states, and every operation is one that
`kernels.batch` does for the same person, so that both give the same bits. Integers come as
floats that hold them exactly: the caller guarantees that facets times differences stay below
2**53.

Loops are written out, here and in the other kernels: a slice, a minimum or a search of NumPy's
takes numba longer to compile, on everybody's first run, than all the rest of its function.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.kernels.chain import DOWN, HIGH, LOW, add_up, divide, in_range, step
from dphmm.kernels.compiling import kernel

LEVEL = 512 * np.log(2.0)


def _moves(indptr: IntArray, indices: IntArray, *rest: object) -> int:
    """The inner steps of a prediction."""
    return 2 * (len(indptr) + len(indices))


def _heights(points: FloatArray, normals: FloatArray, *rest: object) -> int:
    """The inner steps of the exponents of an answer."""
    return 2 * normals.size * points.shape[1] + 4 * points.shape[1]


def _settled(indptr: IntArray, indices: IntArray, *rest: object) -> int:
    """The inner steps of a prediction, and of weights that become probabilities."""
    return _moves(indptr, indices) + 8 * len(indptr)


def _states(after: FloatArray, *rest: object) -> int:
    """The inner steps of weights that become probabilities."""
    return 8 * after.size


@kernel(_heights)
def exponents(
    points: FloatArray,
    normals: FloatArray,
    offsets: FloatArray,
    free: FloatArray,
    answer: FloatArray,
    epsilon: float,
    height: FloatArray,
    result: FloatArray,
) -> None:
    """-epsilon (||z - f(s)||_K - the least such norm) for every state; points are columns.

    Where heights are `free`, as in a staircase, norms are rounded up. The quotient of two
    integers below 2**53 is rounded to a whole number only if it is one, so the ceiling is
    exact; a product with an inverse would not be. `height` is room for a number a state.
    """
    for s in range(len(result)):
        result[s] = 0.0
    for h in range(len(offsets)):
        for s in range(len(result)):
            height[s] = 0.0
        for axis in range(len(answer)):
            slope = normals[h, axis]
            place = answer[axis]
            for s in range(len(result)):
                height[s] += slope * (place - points[axis, s])
        if len(free):
            for s in range(len(result)):
                result[s] = max(result[s], (abs(height[s]) - free[h]) / offsets[h])
        else:
            inverse = 1.0 / offsets[h]
            for s in range(len(result)):
                result[s] = max(result[s], abs(height[s]) * inverse)
    if len(free):
        for s in range(len(result)):
            result[s] = np.ceil(result[s])
    least = _least(result)
    for s in range(len(result)):
        result[s] = -epsilon * (result[s] - least)


@kernel()
def _least(numbers: FloatArray) -> float:
    """The least of some numbers, by four that do not wait for each other."""
    one, two, three, four = np.inf, np.inf, np.inf, np.inf
    whole = len(numbers) // 4 * 4
    for i in range(0, whole, 4):
        one = min(one, numbers[i])
        two = min(two, numbers[i + 1])
        three = min(three, numbers[i + 2])
        four = min(four, numbers[i + 3])
    for i in range(whole, len(numbers)):
        one = min(one, numbers[i])
    return min(min(one, two), min(three, four))


@kernel()
def product(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    before: FloatArray,
    after: FloatArray,
) -> None:
    """The product of a sparse matrix and a vector that sums to one, plus what jumps there."""
    for state in range(len(after)):
        total = jumps[state]
        for entry in range(np.uint32(indptr[state]), np.uint32(indptr[state + 1])):
            # Unsigned, so that numba does not look for negative numbers.
            total += data[entry] * before[np.uint32(indices[entry])]
        after[state] = total


@kernel(_moves)
def predict(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    before: FloatArray,
    possible: Mask,
    after: FloatArray,
) -> float:
    """The normalised product; gives the least weight of a possible state."""
    product(indptr, indices, data, jumps, before, after)
    total = 0.0
    least = np.inf
    for state in range(len(after)):
        total += after[state]
        if possible[state] and after[state] < least:
            least = after[state]
    scale(after, total)
    return least


@kernel(_moves)
def look_back(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    current: IntArray,
    factors: FloatArray,
    after: FloatArray,
    before: FloatArray,
) -> float:
    """The likelihood of what comes after a move, for every state before it, the largest being 1.

    `after` is that of what comes later, `factors` of what came at the places of the states that
    the moves lead to. Gives the least.
    """
    states = len(after)
    weights = np.empty(states)
    # One number serves every state: where a jump leads does not depend on its start.
    jump = 0.0
    for state in range(states):
        weights[state] = after[state] * factors[current[state]]
        jump += jumps[state] * weights[state]
    peak, least = 0.0, np.inf
    for state in range(states):
        total = jump
        for entry in range(np.uint32(indptr[state]), np.uint32(indptr[state + 1])):
            total += data[entry] * weights[np.uint32(indices[entry])]
        before[state] = total
        peak = max(peak, total)
        least = min(least, total)
    scale(before, peak)
    return least / peak if peak > 0.0 else 0.0


@kernel()
def scale(after: FloatArray, total: float) -> None:
    """Divide weights by their sum; when all are too small, wide numbers must take over."""
    if total > 0.0:
        inverse = 1.0 / total
        for state in range(len(after)):
            after[state] *= inverse


@kernel(_settled)
def settle(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    before: FloatArray,
    factors: FloatArray,
    possible: Mask,
    values: FloatArray,
    after: FloatArray,
    mean: FloatArray,
) -> float:
    """Predict, multiply, normalise and take the mean; gives the least weight of a possible state.

    The sum of the weights is taken beside the products, which hide the time that it waits.
    """
    total = 0.0
    least = np.inf
    for state in range(len(after)):
        weight = jumps[state]
        for entry in range(np.uint32(indptr[state]), np.uint32(indptr[state + 1])):
            weight += data[entry] * before[np.uint32(indices[entry])]
        weight *= factors[state]
        after[state] = weight
        total += weight
        if possible[state] and weight < least:
            least = weight
    scale(after, total)
    # Two axes at a time, because each addition waits for the one before.
    for axis in range(0, len(mean), 2):
        other = min(axis + 1, len(mean) - 1)
        one, two = 0.0, 0.0
        for state in range(len(after)):
            one += after[state] * values[state, axis]
            two += after[state] * values[state, other]
        mean[axis] = one
        mean[other] = two
    return least


@kernel(_settled)
def weigh_wide(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    before: FloatArray,
    logs: FloatArray,
    after: FloatArray,
) -> None:
    """The prediction in wide numbers, whose levels take over the whole levels of exponents."""
    step(indptr, indices, data, jumps, before, after)
    for state in range(len(logs)):
        if logs[state] < -LEVEL:
            levels = np.floor(-logs[state] / LEVEL)
            after[1, state] += levels
            logs[state] += levels * LEVEL


@kernel(_states)
def settle_wide(after: FloatArray, factors: FloatArray, probabilities: FloatArray) -> float:
    """`settle` for one belief in wide numbers; gives the least probability written."""
    scaled, levels = after[0], after[1]
    base = np.inf
    # Nearly always the least level is 0, as it was before the answer; the sum is then taken on
    # the way, where it waits for nobody.
    total = 0.0
    for state in range(len(factors)):
        value, level = scaled[state] * factors[state], levels[state]
        if (value < LOW or value >= HIGH) and level < np.inf:
            value, level = in_range(value, level)
            levels[state] = level
        scaled[state] = value
        base = min(base, level)
        total += value * (1.0 if level == 0.0 else DOWN if level == 1.0 else 0.0)
    if base != 0.0:
        total = add_up(after, base)
    _, least = divide(after, base, total, probabilities)
    return least
