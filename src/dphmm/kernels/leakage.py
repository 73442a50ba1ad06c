"""How much a step of a chain passes on of what is told of the states before or after it.

Rows of a chain are mixtures: a sparse part that sums to one, and a density that all rows
share. `told[k, l]` bounds the logarithm of L_k / L_l, with L the probability of some answers
given a state; what comes back bounds the same of two rows' means of L.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dphmm._types import FloatArray, IntArray

LARGEST = 600.0
"""Losses are cut here, where nothing is hidden any more and floats still hold the power."""

ROUNDING = 1e-11


@njit(cache=True, error_model="numpy")
def passed_on(
    told: FloatArray,
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    density: FloatArray,
) -> FloatArray:
    """For rows (1 - jumps[i]) data[i] + jumps[i] density: the largest log of p L / q L, or more.

    The smallest of three bounds. Two couple the rows, in the order of their states or after
    what they have in common, so that near rows stay near. The third is Cao et al.'s: no two L
    differ by more than the largest told, and the set that one row likes better gets all of it.
    """
    n, most = len(indptr) - 1, min(told.max(), LARGEST)
    # The second row stays while the first one changes, so its states come first in memory.
    factors = np.exp(np.minimum(told.T, LARGEST))
    out = np.zeros((n, n))
    first, second, none = np.zeros(len(density)), np.zeros(len(density)), np.zeros(len(density))
    # Rows that share no state tell apart no more than a row and the smallest jump.
    alone = np.empty(n)
    for i in range(n):
        alone[i] = _by_set(i, jumps.min(), most, indptr, indices, data, jumps, density, none)
    for j in range(n):
        for b in range(indptr[j], indptr[j + 1]):
            second[indices[b]] = data[b]
        for i in range(n):
            if i == j:
                continue
            common = False
            for a in range(indptr[i], indptr[i + 1]):
                common |= second[indices[a]] > 0
            bound = alone[i]
            if common:
                bound = _by_set(i, jumps[j], most, indptr, indices, data, jumps, density, second)
            bound = _coupled(i, j, bound, factors, indptr, indices, data, jumps, none, none)
            if common:
                for a in range(indptr[i], indptr[i + 1]):
                    first[indices[a]] = data[a]
                bound = _coupled(i, j, bound, factors, indptr, indices, data, jumps, first, second)
                for a in range(indptr[i], indptr[i + 1]):
                    first[indices[a]] = 0.0
            out[i, j] = max(bound, 0.0)
        for b in range(indptr[j], indptr[j + 1]):
            second[indices[b]] = 0.0
    return out


@njit(cache=True, error_model="numpy")
def _coupled(
    i: int,
    j: int,
    limit: float,
    factors: FloatArray,
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> float:
    """The sparse masses are moved onto each other in order; no state's mean grows by more.

    What both `first` and `second` have at a state stays there. The limit comes back if it is
    passed, or if a row has no sparse part.
    """
    a, last_a, b, last_b = indptr[i], indptr[i + 1] - 1, indptr[j], indptr[j + 1] - 1
    if a > last_a or b > last_b:
        return limit
    share = (1 - jumps[i]) / (1 - jumps[j])
    most = np.exp(limit) / share
    have = data[a] - min(first[indices[a]], second[indices[a]])
    worst = 0.0
    while b <= last_b:
        grown = min(first[indices[b]], second[indices[b]])
        want = data[b] - grown
        while want > 0:
            while have <= 0 and a < last_a:
                a += 1
                have = data[a] - min(first[indices[a]], second[indices[a]])
            # Rows sum to one up to rounding: whatever is left over stands at the last state.
            moved = min(have, want) if a < last_a else want
            grown += moved * factors[indices[b], indices[a]]
            want -= moved
            have -= moved
        worst = max(worst, grown / data[b])
        if worst > most:
            return limit
        b += 1
    worst *= share
    if jumps[i] > 0:
        worst = max(worst, jumps[i] / jumps[j])
    return min(np.log(worst) + ROUNDING, limit)


@njit(cache=True, error_model="numpy")
def _by_set(
    i: int,
    jump: float,
    most: float,
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    density: FloatArray,
    second: FloatArray,
) -> float:
    """log max over sets of (q (e^most - 1) + 1) / (d (e^most - 1) + 1), q and d their masses.

    The second row is (1 - jump) second + jump density. Where the first one only jumps to, the
    second's sparse part is not counted, which makes the bound larger.
    """
    gain = np.expm1(most)
    outside = 1.0
    for a in range(indptr[i], indptr[i + 1]):
        outside -= density[indices[a]]
    outside = max(outside, 0.0)
    ratio = 1.0
    while True:
        q, d = 0.0, 0.0
        if jumps[i] > ratio * jump:
            q, d = jumps[i] * outside, jump * outside
        for a in range(indptr[i], indptr[i + 1]):
            k = indices[a]
            mass = (1 - jumps[i]) * data[a] + jumps[i] * density[k]
            other = (1 - jump) * second[k] + jump * density[k]
            if mass > ratio * other:
                q += mass
                d += other
        better = (q * gain + 1) / (d * gain + 1)
        if better <= ratio * (1 + 1e-12):
            return np.log(max(ratio, better)) + ROUNDING
        ratio = better
