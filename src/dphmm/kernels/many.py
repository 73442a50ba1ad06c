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
        for entry in range(np.uint32(indptr[state]), np.uint32(indptr[state + 1])):
            weight = np.float32(data[entry])
            # Unsigned, so that numba does not look for negative numbers.
            source = np.uint32(indices[entry])
            for column in range(columns):
                after[state, column] += weight * before[source, column]
