"""Many beliefs moved at once, in single precision: a column each."""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.kernels.compiling import kernel


@kernel()
def move_many(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    shares: FloatArray,
    totals: FloatArray,
    before: FloatArray,
    after: FloatArray,
) -> None:
    """The product of a sparse matrix and many columns, plus a share of each column's total."""
    columns = before.shape[1]
    for state in range(len(after)):
        share = np.float32(shares[state])
        for column in range(columns):
            after[state, column] = share * totals[column]
        # Unsigned, so that numba does not look for negative numbers; two entries at a time, so that
        # sums are read and written half as often.
        entry, last = np.uint32(indptr[state]), np.uint32(indptr[state + 1])
        while entry + np.uint32(1) < last:
            weight, source = np.float32(data[entry]), np.uint32(indices[entry])
            entry += np.uint32(1)
            other, beside = np.float32(data[entry]), np.uint32(indices[entry])
            entry += np.uint32(1)
            for column in range(columns):
                after[state, column] += (
                    weight * before[source, column] + other * before[beside, column]
                )
        if entry < last:
            weight, source = np.float32(data[entry]), np.uint32(indices[entry])
            for column in range(columns):
                after[state, column] += weight * before[source, column]
