"""Best losses over pairs of states, and best paths, one step of a chain at a time.

Losses are integers in a unit that the caller chose so that no sum passes 2**61, or 2**29 where
tables are of 32 bits, which are twice as fast.
Predecessors come as in a sparse matrix: those of state j are indices[indptr[j]:indptr[j+1]],
and every state besides where `anywhere` marks j.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.kernels.compiling import kernel

UNREACHABLE = -1
INFINITE = 2**62

SQUARE = 32
"""The side of the squares in which a table is transposed."""


@kernel(nogil=True)
def losses(heights: IntArray, cosets: IntArray) -> IntArray:
    """max_h |heights[j, h] - heights[k, h]| for every pair; infinite across cosets."""
    n, facets = heights.shape
    columns = np.ascontiguousarray(heights.T)
    out = np.zeros((n, n), dtype=np.int64)
    for j in range(n):
        row = out[j]
        for h in range(facets):
            here, column = heights[j, h], columns[h]
            for k in range(n):
                row[k] = max(row[k], abs(here - column[k]))
        for k in range(n):
            if cosets[j] != cosets[k]:
                row[k] = INFINITE
    return out


@kernel(nogil=True)
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


@kernel(nogil=True)
def best_rows(values: IntArray, indptr: IntArray, indices: IntArray, anywhere: Mask) -> IntArray:
    """Row j is the entrywise maximum of the rows of j's predecessors."""
    n, width = len(indptr) - 1, values.shape[1]
    out = np.full((n, width), UNREACHABLE, dtype=values.dtype)
    best = np.full(width, UNREACHABLE, dtype=values.dtype)
    if _any(anywhere):
        for i in range(len(values)):
            for k in range(width):
                best[k] = max(best[k], values[i, k])
    for j in range(n):
        here = out[j]
        if anywhere[j]:
            for k in range(width):
                here[k] = best[k]
            continue
        for p in range(indptr[j], indptr[j + 1]):
            row = values[indices[p]]
            for k in range(width):
                here[k] = max(here[k], row[k])
    return out


@kernel(nogil=True)
def _any(mask: Mask) -> bool:
    found = False
    for i in range(len(mask)):
        found |= mask[i]
    return found


@kernel(nogil=True)
def split(
    values: IntArray, together: Mask, indptr: IntArray, indices: IntArray, anywhere: Mask
) -> None:
    """Mark the pairs of states that some state of `together` leads to, both of them."""
    n, before = len(indptr) - 1, len(together)
    if not _any(together):
        return
    counts = np.zeros(before + 1, dtype=np.int64)
    for p in range(len(indices)):
        counts[indices[p] + 1] += 1
    starts, filled = np.zeros(before + 1, np.int64), np.zeros(before + 1, np.int64)
    for i in range(before):
        starts[i + 1] = filled[i + 1] = starts[i] + counts[i + 1]
    after = np.empty(len(indices), dtype=np.int64)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            after[filled[indices[p]]] = j
            filled[indices[p]] += 1
    for i in range(before):
        if together[i]:
            for p in range(starts[i], starts[i + 1]):
                for q in range(starts[i], starts[i + 1]):
                    values[after[p], after[q]] = 0
    reached = np.zeros(n, dtype=np.bool_)
    for j in range(n):
        reached[j] = anywhere[j]
        for p in range(indptr[j], indptr[j + 1]):
            reached[j] |= together[indices[p]]
    for j in range(n):
        if anywhere[j]:
            for k in range(n):
                if reached[k]:
                    values[j, k] = 0
                    values[k, j] = 0


@kernel(nogil=True)
def transposed(values: IntArray) -> IntArray:
    """The rows as columns, moved in squares that fit into fast memory."""
    rows, columns = values.shape
    out = np.empty((columns, rows), dtype=values.dtype)
    for a in range(0, rows, SQUARE):
        for b in range(0, columns, SQUARE):
            for k in range(b, min(columns, b + SQUARE)):
                for j in range(a, min(rows, a + SQUARE)):
                    out[k, j] = values[j, k]
    return out


@kernel(nogil=True)
def add_losses(values: IntArray, losses: IntArray, infinite: int) -> bool:
    """Add the losses to the reachable pairs in place; whether one of them was infinite."""
    n, width = values.shape
    found = False
    for j in range(n):
        for k in range(width):
            if values[j, k] >= 0:
                found |= losses[j, k] >= infinite
                values[j, k] += losses[j, k]
    return found


@kernel(nogil=True)
def best_rejoined(values: IntArray, indptr: IntArray, indices: IntArray, anywhere: Mask) -> int:
    """The largest value of a pair whose two states share a successor; negative if none do."""
    best = UNREACHABLE
    for j in range(len(indptr) - 1):
        if anywhere[j]:
            return _largest(values)
        for p in range(indptr[j], indptr[j + 1]):
            row = values[indices[p]]
            for q in range(indptr[j], p):
                best = max(best, int(row[indices[q]]))
            best = max(best, int(row[indices[p]]))
    return best


@kernel(nogil=True)
def _largest(values: IntArray) -> int:
    best = int(values[0, 0])
    for j in range(values.shape[0]):
        for k in range(values.shape[1]):
            best = max(best, int(values[j, k]))
    return best


@kernel(nogil=True)
def best_predecessors(
    values: FloatArray, indptr: IntArray, indices: IntArray, anywhere: Mask
) -> tuple[FloatArray, IntArray]:
    """The largest value among each state's predecessors, and whose it is."""
    n = len(indptr) - 1
    best = np.full(n, -np.inf)
    chosen = np.zeros(n, dtype=np.int64)
    likeliest = 0
    for i in range(len(values)):
        if values[i] > values[likeliest]:
            likeliest = i
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
