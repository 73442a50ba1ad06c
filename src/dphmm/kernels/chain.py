"""Probabilities beyond the range of floats: a float times a power of 2**-512.

A wide number is a pair (scaled, level) that stands for scaled * 2**(-512 level), with scaled
between 2**-256 and 2**256 and the level a whole number kept as a float. Zero, an impossible
state, has level infinity. Products and sums of wide numbers need no logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.kernels.compiling import kernel

UP = 2.0**512
DOWN = 2.0**-512
LOW = 2.0**-256
HIGH = 2.0**256


@kernel(lambda indptr, indices, *rest: 4 * (len(indptr) + len(indices)))
def step(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    wide: FloatArray,
    result: FloatArray,
) -> None:
    """The product of a sparse matrix and a wide vector that sums to one, plus what jumps there.

    Each row is summed at the level of its largest terms; what lies two levels below the sum is
    less than 2**-512 of it.
    """
    rows = np.empty(result.shape[1], np.int32)
    count = _add_rows(indptr, indices, data, wide, result, rows)
    # By themselves, so that the loop over all the others holds nothing but sums.
    _mend_rows(rows, count, indptr, indices, data, wide, result)
    for row in range(result.shape[1]):
        if jumps[row] > 0.0:
            base, total = with_jump(result[1, row], result[0, row], jumps[row])
            result[0, row] = total
            result[1, row] = base


@kernel()
def _add_rows(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    wide: FloatArray,
    result: FloatArray,
    rows: IntArray,
) -> int:
    """Sum every row as if its terms were at one level; the first of `rows` are those that are not.

    Gives how many these are; neighbours are mostly at one level.
    """
    scaled, levels = wide[0], wide[1]
    count = 0
    for row in range(result.shape[1]):
        base, deepest, total = np.inf, -np.inf, 0.0
        for entry in range(np.uint32(indptr[row]), np.uint32(indptr[row + 1])):
            # Unsigned, so that numba does not look for negative numbers.
            column = np.uint32(indices[entry])
            level = levels[column]
            base = min(base, level)
            deepest = max(deepest, level)
            total += data[entry] * scaled[column]
        result[0, row] = total
        result[1, row] = base
        if base != deepest or (total < LOW and base < np.inf):
            rows[count] = row
            count += 1
    return count


@kernel()
def _mend_rows(
    rows: IntArray,
    count: int,
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    wide: FloatArray,
    result: FloatArray,
) -> None:
    """Sum some rows whose terms are at several levels, or too small for theirs."""
    scaled, levels = wide[0], wide[1]
    for place in range(count):
        row = np.uint32(rows[place])
        base, total = result[1, row], 0.0
        # At the least level there is nothing above it, so a factor says all, without a branch.
        for entry in range(np.uint32(indptr[row]), np.uint32(indptr[row + 1])):
            column = np.uint32(indices[entry])
            below = levels[column] - base
            factor = 1.0 if below == 0.0 else DOWN if below == 1.0 else 0.0
            total += data[entry] * scaled[column] * factor
        if total < LOW:
            base, total = _add_deeper(
                base, indptr[row], indptr[row + 1], indices, data, scaled, levels
            )
        result[0, row] = total
        result[1, row] = base


@kernel()
def _add_deeper(
    base: float,
    first: int,
    last: int,
    indices: IntArray,
    data: FloatArray,
    scaled: FloatArray,
    levels: FloatArray,
) -> tuple[float, float]:
    """The level and the sum of one row whose terms are at several levels, `base` the least."""
    while base < np.inf:
        total = 0.0
        for entry in range(first, last):
            column = indices[entry]
            below = levels[column] - base
            if below == 0.0:
                total += data[entry] * scaled[column]
            elif below == 1.0:
                total += data[entry] * scaled[column] * DOWN
            elif below < 0.0:
                # Only after the sum at a higher level came out tiny, so no overflow.
                term = data[entry]
                for _ in range(int(-below)):
                    term *= UP
                total += term * scaled[column]
        if total >= LOW:
            return base, total
        base += 1.0
    return base, 0.0


@kernel()
def with_jump(base: float, total: float, jump: float) -> tuple[float, float]:
    """The level and the sum of a row, with a plain number added."""
    value, level = in_range(jump, 0.0)
    if level < base:
        if base == level + 1.0:
            value += total * DOWN
        return level, value
    if level == base:
        total += value
    elif level == base + 1.0:
        total += value * DOWN
    return base, total


@kernel()
def in_range(value: float, level: float) -> tuple[float, float]:
    """The same wide number with its float between 2**-256 and 2**256."""
    while value < LOW:
        value *= UP
        level += 1.0
    while value >= HIGH:
        value *= DOWN
        level -= 1.0
    return value, level


@kernel(lambda wide, probabilities: 8 * wide.size)
def normalise(wide: FloatArray, probabilities: FloatArray) -> tuple[float, float]:
    """Divide a wide vector by its sum, in place, and write what floats can hold of it.

    Gives the log of the sum, and the least number written for a possible state (zero if one
    is too small to write).
    """
    base = np.inf
    for state in range(wide.shape[1]):
        if wide[1, state] < np.inf:
            wide[0, state], wide[1, state] = in_range(wide[0, state], wide[1, state])
            base = min(base, wide[1, state])
    return divide(wide, base, add_up(wide, base), probabilities)


@kernel()
def add_up(wide: FloatArray, base: float) -> float:
    """The sum of wide numbers, as a float at their least level."""
    total = 0.0
    for state in range(wide.shape[1]):
        below = wide[1, state] - base
        if below == 0.0:
            total += wide[0, state]
        elif below == 1.0:
            total += wide[0, state] * DOWN
    return total


@kernel()
def divide(
    wide: FloatArray, base: float, total: float, probabilities: FloatArray
) -> tuple[float, float]:
    """`normalise` for wide numbers in range, with their least level and the sum at that level."""
    scaled, levels = wide[0], wide[1]
    # By itself, so that several quotients are taken at once.
    for state in range(scaled.size):
        scaled[state] /= total
    least = 1.0
    for state in range(scaled.size):
        value, level = scaled[state], levels[state] - base
        if value < LOW or value >= HIGH or level == np.inf:
            if level == np.inf:
                scaled[state] = 0.0
                probabilities[state] = 0.0
                continue
            value, level = in_range(value, level)
            scaled[state] = value
        levels[state] = level
        if level == 2.0:
            value *= DOWN
        value *= 1.0 if level == 0.0 else DOWN if level <= 2.0 else 0.0
        probabilities[state] = value
        least = min(least, value)
    return math.log(total) - base * 512.0 * math.log(2.0), least
