"""Best losses over pairs of states, and best paths, one step of a chain at a time.

Losses are 64-bit integers in a unit that the caller chose so that no sum passes 2**61.
Predecessors come as in a sparse matrix: those of state j are indices[indptr[j]:indptr[j+1]],
and every state besides where `anywhere` marks j.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dphmm._types import FloatArray, IntArray, Mask

UNREACHABLE = -(2**62)
INFINITE = 2**62


@njit(cache=True)
def losses(heights: IntArray, cosets: IntArray) -> IntArray:
    """max_h |heights[j, h] - heights[k, h]| for every pair; infinite across cosets."""
    n, facets = heights.shape
    out = np.zeros((n, n), dtype=np.int64)
    for j in range(n):
        for k in range(j):
            loss = np.int64(0)
            if cosets[j] != cosets[k]:
                loss = np.int64(INFINITE)
            else:
                for h in range(facets):
                    loss = max(loss, abs(heights[j, h] - heights[k, h]))
            out[j, k] = loss
            out[k, j] = loss
    return out


@njit(cache=True)
def layers(heights: IntArray, offsets: IntArray, cosets: IntArray) -> IntArray:
    """max_h ceil(|heights[j, h] - heights[k, h]| / offsets[h]); infinite across cosets."""
    n, facets = heights.shape
    out = np.zeros((n, n), dtype=np.int64)
    for j in range(n):
        for k in range(j):
            layer = np.int64(0)
            if cosets[j] != cosets[k]:
                layer = np.int64(INFINITE)
            else:
                for h in range(facets):
                    apart = abs(heights[j, h] - heights[k, h])
                    if apart > layer * offsets[h]:
                        layer = (apart + offsets[h] - 1) // offsets[h]
            out[j, k] = layer
            out[k, j] = layer
    return out


@njit(cache=True)
def best_rows(values: IntArray, indptr: IntArray, indices: IntArray, anywhere: Mask) -> IntArray:
    """Row j is the entrywise maximum of the rows of j's predecessors."""
    n, width = len(indptr) - 1, values.shape[1]
    out = np.full((n, width), UNREACHABLE, dtype=np.int64)
    best = np.full(width, UNREACHABLE, dtype=np.int64)
    if anywhere.any():
        for i in range(len(values)):
            for k in range(width):
                best[k] = max(best[k], values[i, k])
    for j in range(n):
        if anywhere[j]:
            out[j] = best
            continue
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            for k in range(width):
                out[j, k] = max(out[j, k], values[i, k])
    return out


@njit(cache=True)
def add_losses(values: IntArray, losses: IntArray) -> bool:
    """Add the losses to the reachable pairs in place; whether one of them was infinite."""
    n, width = values.shape
    infinite = False
    for j in range(n):
        for k in range(width):
            if values[j, k] >= 0:
                infinite |= losses[j, k] >= INFINITE
                values[j, k] += min(losses[j, k], np.int64(INFINITE - 1) - values[j, k])
    return infinite


@njit(cache=True)
def best_rejoined(values: IntArray, indptr: IntArray, indices: IntArray, anywhere: Mask) -> int:
    """The largest value of a pair whose two states share a successor; negative if none do."""
    best = np.int64(UNREACHABLE)
    if anywhere.any():
        return int(values.max())
    rows = best_rows(values, indptr, indices, anywhere)
    for j in range(len(indptr) - 1):
        for p in range(indptr[j], indptr[j + 1]):
            best = max(best, rows[j, indices[p]])
    return int(best)


@njit(cache=True)
def best_predecessors(
    values: FloatArray, indptr: IntArray, indices: IntArray, anywhere: Mask
) -> tuple[FloatArray, IntArray]:
    """The largest value among each state's predecessors, and whose it is."""
    n = len(indptr) - 1
    best = np.full(n, -np.inf)
    chosen = np.zeros(n, dtype=np.int64)
    likeliest = np.argmax(values)
    for j in range(n):
        if anywhere[j]:
            best[j] = values[likeliest]
            chosen[j] = likeliest
            continue
        for p in range(indptr[j], indptr[j + 1]):
            if values[indices[p]] > best[j]:
                best[j] = values[indices[p]]
                chosen[j] = indices[p]
    return best, chosen
