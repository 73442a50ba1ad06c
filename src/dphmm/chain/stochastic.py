"""Sparse matrices of probabilities: made from arrays or counts, and multiplied in logs.

The stored pattern of a matrix is the set of possible moves. Nothing here drops a stored
entry because it is small, and no product loses a term's possibility to underflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import exact, whole
from dphmm.geometry.states import as_array, as_floats

SUM_TOLERANCE = 1e-6
"""How far a row or a distribution may be from one before it is refused, not renormalised."""

SAFE_PROBABILITY = 1e-280
"""At or above this, what underflow loses is far below rounding error.

A sum of n products loses at most n times 2.2e-308, a part in 1e23 of this for n = 100,000.
"""

LEVEL = 512 * np.log(2.0)
"""One level of a wide number, in nats."""

LOWEST_FACTOR = -1e15
"""A log-likelihood ratio below this counts as this: possible, and beyond any comparison."""

LOWEST_LOG = -float(np.finfo(np.float64).max)
"""Logs stop here, so that a possible state never reaches minus infinity by overflow."""

LEAST_PROBABILITY = float(np.nextafter(0.0, 1.0))
"""A stored move keeps at least this probability."""


def check_vector(values: ArrayLike, name: str) -> FloatArray:
    """The values as a vector of floats, one a state."""
    array = as_floats(values, name)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"{name} must be a vector with one value a state, got {array.shape}")
    return array


def check_logs(values: ArrayLike, n_states: int, name: str) -> FloatArray:
    """The values as a vector of logs: minus infinity is allowed, NaN and plus infinity are not."""
    logs = check_vector(values, name)
    if logs.size != n_states:
        raise ArgumentError(f"{name} must have {n_states} values, got {logs.size}")
    if not float(logs.max()) < np.inf:
        raise ArgumentError(f"{name} must hold neither NaN nor plus infinity")
    return logs


def check_matrix(values: Any, name: str) -> sparse.csr_array:
    """A fresh square CSR matrix of finite numbers above zero."""
    try:
        # A tuple would mean something else to scipy than to numpy.
        given: Any = values if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
        matrix: Any = sparse.csr_array(given, dtype=np.float64, copy=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{name} must be a square matrix of numbers") from error
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"{name} must be a square matrix, got shape {matrix.shape}")
    for wrong, requirement in (
        (~np.isfinite(matrix.data), "be finite"),
        (matrix.data < 0, "not be negative"),
    ):
        if wrong.any():
            place = int(np.argmax(wrong))
            row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
            raise ArgumentError(
                f"{name} must {requirement}, got {float(matrix.data[place])!r} "
                f"in row {row}, column {int(matrix.indices[place])}"
            )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return sparse.csr_array(matrix)


def freeze(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same matrix, sorted and read-only, its numbers of columns as short as they can be."""
    matrix.sort_indices()
    if max(*matrix.shape, matrix.nnz) < 2**31:
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix


def row_of_entry(matrix: sparse.csr_array) -> IntArray:
    """The row of every stored entry."""
    rows: IntArray = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return rows


def entries_of(matrix: sparse.csr_array) -> tuple[IntArray, IntArray]:
    """The row and the column of every stored entry."""
    return row_of_entry(matrix), matrix.indices.astype(np.int64)


def row_sums(matrix: sparse.csr_array) -> FloatArray:
    """The sum of every row."""
    with np.errstate(over="ignore"):
        return np.asarray(matrix.sum(axis=1), dtype=np.float64)


def normalise_rows(matrix: sparse.csr_array) -> sparse.csr_array:
    """The matrix with every row divided by its sum, unless that is one up to rounding.

    A row that was normalised before is left as it is, so doing this twice is doing it once.
    """
    lengths = np.diff(matrix.indptr)
    sums = row_sums(matrix)
    rounding = (lengths + 1) * np.finfo(np.float64).eps
    divisor = np.where(np.abs(sums - 1) <= rounding, 1.0, sums)
    data = np.maximum(matrix.data / np.repeat(divisor, lengths), LEAST_PROBABILITY)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def pattern(matrix: sparse.csr_array) -> sparse.csr_array:
    """The stored pattern as booleans, whose products are "or", not sums that may wrap."""
    ones = np.ones(matrix.nnz, dtype=bool)
    return sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def check_sequences(
    sequences: Iterable[ArrayLike], n_states: int, argument: str = "sequences"
) -> list[IntArray]:
    """The sequences as integer arrays; a message names the place of a wrong state, not its value.

    >>> check_sequences([[0, 1], [1, 7]], 2)
    Traceback (most recent call last):
        ...
    dphmm.errors.ArgumentError: sequences must hold states from 0 to 1; sequence 1, position 1 ...
    """
    whole(n_states, "n_states", 1)
    expect(sequences, Iterable, argument)
    checked = []
    for number, sequence in enumerate(sequences):
        states = as_array(sequence, argument)
        if states.ndim != 1:
            raise ArgumentError(
                f"{argument} must hold one sequence of states each; sequence {number} "
                f"has {states.ndim} dimensions"
            )
        if states.size and states.dtype.kind not in "iu":
            raise ArgumentError(
                f"{argument} must hold integers; sequence {number} has type {states.dtype}"
            )
        wrong = (states < 0) | (states >= n_states) if states.size else np.zeros(0, dtype=bool)
        if wrong.any():
            raise ArgumentError(
                f"{argument} must hold states from 0 to {n_states - 1}; "
                f"sequence {number}, position {int(np.argmax(wrong))} does not"
            )
        checked.append(states.astype(np.int64))
    return checked


def count_moves(
    sources: IntArray, targets: IntArray, n_states: int, times: FloatArray | None = None
) -> sparse.csr_array:
    """How often each source went to each target; `times` says how often each row counts."""
    given = np.ones(sources.size) if times is None else times
    counts = sparse.coo_array((given, (sources, targets)), shape=(n_states, n_states))
    return sparse.csr_array(counts)


def check_smoothing(smoothing: float) -> float:
    """The smoothing as a float, if it is a number that counts can be raised by."""
    used = exact(smoothing, "smoothing")
    if used < 0:
        raise ArgumentError(f"smoothing must not be negative, got {smoothing!r}")
    return float(used)


def probabilities_from_counts(
    counts: sparse.csr_array, smoothing: float = 0.0, support: Any = None
) -> sparse.csr_array:
    """Row-normalised counts, with `smoothing` added to every counted or supported move.

    A row with no count and no support stays put: its state moves to itself.
    """
    smoothing = check_smoothing(smoothing)
    if support is not None:
        allowed = check_matrix(support, "support")
        if allowed.shape != counts.shape:
            raise ArgumentError(f"support must have shape {counts.shape}, got {allowed.shape}")
        if smoothing == 0:
            raise ArgumentError("smoothing must be positive when support is given, got 0")
        counts = _union(counts, allowed)
    counts = sparse.csr_array(
        (counts.data + smoothing, counts.indices, counts.indptr), shape=counts.shape
    )
    stay = (np.diff(counts.indptr) == 0).astype(np.float64)
    if stay.any():
        loops = sparse.csr_array(sparse.diags_array(stay))
        loops.eliminate_zeros()
        counts = sparse.csr_array(counts + loops)
    if not np.isfinite(row_sums(counts)).all():
        raise ArgumentError("counts must have finite sums")
    return normalise_rows(counts)


def _union(counts: sparse.csr_array, allowed: sparse.csr_array) -> sparse.csr_array:
    """The counts, with a stored zero on every move that is allowed but was not counted."""
    rows = np.concatenate([row_of_entry(counts), row_of_entry(allowed)])
    columns = np.concatenate([counts.indices, allowed.indices])
    data = np.concatenate([counts.data, np.zeros(allowed.nnz)])
    return sparse.csr_array(sparse.coo_array((data, (rows, columns)), shape=counts.shape))


def add_logs(one: FloatArray, other: FloatArray) -> FloatArray:
    """The sum of logs, which is minus infinity only where one of them is."""
    with np.errstate(over="ignore"):
        total = np.maximum(one + other, LOWEST_LOG)
    return np.where((one == -np.inf) | (other == -np.inf), -np.inf, total)


def log_product(matrix: sparse.csr_array, logs: FloatArray, rows: Mask) -> FloatArray:
    """log(matrix @ exp(logs)) on the rows marked, each of which must have a finite term.

    One shift for all would underflow where rows differ by more than a float can hold. So the
    product is used where it is large enough, and the other rows are summed each with its own.
    """
    peak = float(logs.max())
    with np.errstate(over="ignore"):
        product = matrix @ np.exp(logs - peak)
    safe = product >= SAFE_PROBABILITY
    result = np.full(matrix.shape[0], -np.inf)
    np.log(product, out=result, where=safe & rows)
    result += peak
    rest = np.flatnonzero(rows & ~safe)
    if rest.size:
        part = matrix[rest]
        terms = np.log(part.data) + logs[part.indices]
        tops = np.maximum.reduceat(terms, part.indptr[:-1])
        np.exp(terms - np.repeat(tops, np.diff(part.indptr)), out=terms)
        result[rest] = tops + np.log(np.add.reduceat(terms, part.indptr[:-1]))
    return result


def log_max_product(matrix: sparse.csr_array, logs: FloatArray, jumps: FloatArray) -> FloatArray:
    """The largest log(matrix[i, j] + jumps[i]) + logs[j] in every row i, minus infinity if none."""
    moves = matrix.data + np.repeat(jumps, np.diff(matrix.indptr))
    terms = np.log(moves) + logs[matrix.indices]
    filled = np.flatnonzero(np.diff(matrix.indptr))
    result = np.full(matrix.shape[0], -np.inf)
    result[filled] = np.maximum.reduceat(terms, matrix.indptr[filled])
    if jumps.any():
        with np.errstate(divide="ignore"):
            result = np.maximum(result, np.log(jumps) + logs.max())
    return result


def least_on(values: FloatArray, possible: Mask) -> float:
    """The least value on the mask."""
    return float(values.min() if possible.all() else values[possible].min())


def log_ratios(logs: FloatArray, top: float) -> FloatArray:
    """The logs minus their top, minus infinity where that overflows."""
    with np.errstate(over="ignore"):
        return logs - top


def weigh_wide(
    scaled: FloatArray, levels: FloatArray, log_factor: FloatArray, possible: Mask
) -> FloatArray:
    """Wide numbers times exp(log_factor), with zero off the mask."""
    log_factor = np.clip(log_factor, LOWEST_FACTOR, 0.0)
    steps = np.floor(log_factor / -LEVEL)
    factor = np.exp(log_factor + steps * LEVEL)
    factor *= scaled
    return np.stack([factor, np.where(possible, levels + steps, np.inf)])
