"""One value for a belief: its mean, or its geometric median.

The mean makes the expected square of the distance small, the median the expected distance:
where a belief has two hills, the mean lies between them and the median on the higher one.
Both follow from public things, so a choice between them costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from numpy.typing import ArrayLike

from dphmm._types import FloatArray
from dphmm.errors import ArgumentError, expect_one_of
from dphmm.geometry.states import as_floats

if TYPE_CHECKING:
    from dphmm.chain.belief import Belief

__all__ = ["ESTIMATES", "Estimate", "check_estimate", "check_values", "estimate_of"]

Estimate: TypeAlias = Literal["mean", "median"]
"""What stands for a belief."""

ESTIMATES = ("mean", "median")


def check_estimate(estimate: Estimate) -> Estimate:
    """The choice, if it is one."""
    expect_one_of(estimate, ESTIMATES, "estimate")
    return estimate


def check_values(values: ArrayLike, n_states: int) -> FloatArray:
    """The values as floats: a number or a vector for each state."""
    array = as_floats(values, "values")
    if array.ndim == 0 or array.shape[0] != n_states:
        raise ArgumentError(
            f"values must have one row for each of {n_states} states, got shape {array.shape}"
        )
    return array


def estimate_of(belief: Belief, values: FloatArray, estimate: Estimate) -> FloatArray:
    """The value that stands for a belief."""
    return belief.median(values) if estimate == "median" else belief.mean(values)
