"""How much a step of a chain passes on of what is told of the states before or after it.

Rows of a chain are mixtures: a sparse part that sums to one, and a density that all rows
share. `told[k, l]` bounds the logarithm of L_k / L_l, with L the probability of some answers
given a state; what comes back bounds the same of two rows' means of L.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.kernels.compiling import kernel

LARGEST = 600.0
"""Beyond this loss nothing is hidden any more, and the power is left to infinity."""

LEAST = 1e-300
"""A state of a row has at least this probability; one with no more may have less."""

ROUNDING = 1e-11

DUST = 2e-12
"""The part of a probability that rounding may leave over; bounds are rounded up by more."""


@kernel(nogil=True, error_model="numpy")
def passed_on(
    told: FloatArray,
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    own: FloatArray,
    jumps: FloatArray,
    density: FloatArray,
) -> FloatArray:
    """For rows e^own[i] data[i] + e^jumps[i] density: the largest log of p L / q L, or more.

    The smallest of four bounds. No two L differ by more than the largest told. Two couple the
    rows, in the order of their states or after what they have in common, so that near rows
    stay near. The last is Cao et al.'s: the set that one row likes better gets all of it.
    """
    n = len(indptr) - 1
    # The second row stays while the first one changes, so its states come first in memory.
    factors = np.empty((told.shape[1], told.shape[0]))
    most = -np.inf
    for k in range(told.shape[0]):
        for other in range(told.shape[1]):
            loss = told[k, other]
            factors[other, k] = np.inf if loss > LARGEST else np.exp(loss)
            # What is no number stays: it must not pass for a small loss.
            if loss > most or np.isnan(loss):
                most = loss
    out = np.zeros((n, n))
    first, second, none = np.zeros(len(density)), np.zeros(len(density)), np.zeros(len(density))
    shares, leaps = np.empty(len(own)), np.empty(len(jumps))
    least = np.inf
    for i in range(len(own)):
        shares[i], leaps[i] = np.exp(own[i]), np.exp(jumps[i])
        if leaps[i] < least or np.isnan(leaps[i]):
            least = leaps[i]
    # Rows that share no state tell apart no more than a row and the smallest jump.
    alone = np.empty(n)
    for i in range(n):
        alone[i] = _by_set(i, 0.0, least, most, indptr, indices, data, shares, leaps, density, none)
    for j in range(n):
        for b in range(indptr[j], indptr[j + 1]):
            if data[b] > LEAST:
                second[indices[b]] = data[b]
        for i in range(n):
            if i == j:
                continue
            common = False
            for a in range(indptr[i], indptr[i + 1]):
                common |= second[indices[a]] > 0
            bound = alone[i]
            if common:
                bound = _by_set(
                    i, shares[j], leaps[j], most, indptr, indices, data, shares, leaps, density,
                    second,
                )  # fmt: skip
            bound = _coupled(i, j, bound, factors, indptr, indices, data, own, jumps, none, none)
            if common:
                for a in range(indptr[i], indptr[i + 1]):
                    first[indices[a]] = data[a]
                bound = _coupled(
                    i, j, bound, factors, indptr, indices, data, own, jumps, first, second
                )
                for a in range(indptr[i], indptr[i + 1]):
                    first[indices[a]] = 0.0
            out[i, j] = max(bound, 0.0)
        for b in range(indptr[j], indptr[j + 1]):
            second[indices[b]] = 0.0
    return out


@kernel(nogil=True, error_model="numpy")
def _coupled(
    i: int,
    j: int,
    limit: float,
    factors: FloatArray,
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    own: FloatArray,
    jumps: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> float:
    """The sparse masses are moved onto each other in order; no state's mean grows by more.

    What both `first` and `second` have at a state stays there. The limit comes back if it is
    passed, or if a row has no sparse part. All of the first row must be moved, however little
    it is: a small probability times a large factor counts. The second need not be filled.
    """
    a, last_a, b, last_b = indptr[i], indptr[i + 1] - 1, indptr[j], indptr[j + 1] - 1
    if a > last_a or b > last_b:
        return limit
    # The second row counts without what may be less; its largest state is always more.
    while last_b > b and data[last_b] <= LEAST:
        last_b -= 1
    share = own[i] - own[j]
    most = np.exp(limit - share)
    have = data[a] - min(first[indices[a]], second[indices[a]])
    worst = 0.0
    while b <= last_b:
        if data[b] > LEAST:
            grown = min(first[indices[b]], second[indices[b]])
            want = data[b] - grown
            while want > DUST * data[b] or b == last_b:
                while not have > DUST * data[a] and a < last_a:
                    a += 1
                    have = data[a] - min(first[indices[a]], second[indices[a]])
                if not have > DUST * data[a]:
                    break
                moved = have if b == last_b else min(have, want)
                grown += moved * factors[indices[b], indices[a]]
                want -= moved
                have -= moved
            worst = max(worst, grown / data[b])
            if not worst <= most:
                return limit
        b += 1
    worst = np.log(worst) + share
    if jumps[i] > -np.inf:
        worst = max(worst, jumps[i] - jumps[j])
    return min(worst + ROUNDING, limit)


@kernel(nogil=True, error_model="numpy")
def _by_set(
    i: int,
    share: float,
    leap: float,
    most: float,
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    shares: FloatArray,
    leaps: FloatArray,
    density: FloatArray,
    second: FloatArray,
) -> float:
    """log max over sets of (q (e^most - 1) + 1) / (d (e^most - 1) + 1), q and d their masses.

    The second row is share second + leap density. Where the first one only jumps to, the
    second's sparse part is not counted, which makes the bound larger.
    """
    if not most <= LARGEST:
        return most
    gain = np.expm1(most)
    length = indptr[i + 1] - indptr[i]
    outside = 0.0
    if length < len(density):
        outside = 1.0
        for a in range(indptr[i], indptr[i + 1]):
            outside -= density[indices[a]]
        # More of it only makes the bound larger, and the difference was rounded.
        outside = max(outside, 0.0) + 1e-15 * len(density)
    ratio = 1.0
    # Every turn but the last takes another set, so that there are not many.
    for _ in range(length + 3):
        q, d = 0.0, 0.0
        if leaps[i] > ratio * leap:
            q, d = leaps[i] * outside, leap * outside
        for a in range(indptr[i], indptr[i + 1]):
            k = indices[a]
            mass = shares[i] * data[a] + leaps[i] * density[k]
            other = share * second[k] + leap * density[k]
            if mass > ratio * other:
                q += mass
                d += other
        better = (q * gain + 1) / (d * gain + 1)
        if better <= ratio * (1 + 1e-12):
            return min(np.log(max(ratio, better)) + ROUNDING, most)
        ratio = better
    return most
