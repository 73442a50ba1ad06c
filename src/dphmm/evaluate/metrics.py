"""The paper's metrics (section 8). All of them are private: they are computed from true states.

Nothing here runs where releases are made. The owner of some data uses it to judge a policy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query

__all__ = ["distances", "hidden_among", "moving_average", "protected_state"]


def distances(answers: ArrayLike, true_answers: ArrayLike) -> FloatArray:
    """The paper's Error of every answer, ||z - f(s*)||_2. Private.

    >>> distances([[3, 4], [1, 1]], [[0, 0], [1, 0]]).tolist()
    [5.0, 1.0]
    """
    apart = np.asarray(answers, dtype=np.float64) - np.asarray(true_answers, dtype=np.float64)
    return np.asarray(np.sqrt((apart**2).sum(axis=-1)))


def protected_state(query: Query, possible: Mask, true_state: int) -> int:
    """The state that an answer is about: the true one, or the possible one nearest to it. Private.

    >>> query = Query([[0, 0], [1, 0], [5, 0]])
    >>> protected_state(query, np.array([True, False, True]), 1)
    0
    """
    if possible[true_state]:
        return int(true_state)
    return int(query.nearest_states(np.array([true_state]), possible)[0])


def hidden_among(query: Query, possible: Mask, hull: SensitivityHull, state: int) -> int:
    """The degree of protection of one state, itself included (Definition 5.2).

    The same number as `degree_of_protection(query, policy, possible, hull)[state]`, without
    those of the other states. Private when the state is a true one.
    """
    if not possible[state]:
        return 0
    return int(hull.lattice_contains(query.points[possible] - query.points[state]).sum())


def moving_average(values: ArrayLike, width: int) -> FloatArray:
    """The mean of up to `width` neighbours along the last axis, as the paper's curves over time.

    At the ends there are fewer neighbours, so a constant stays a constant.

    >>> moving_average([0, 3, 6, 9], 3).tolist()
    [1.5, 3.0, 6.0, 7.5]
    """
    if width < 1 or width % 2 == 0:
        raise ArgumentError(f"width must be an odd number of steps, got {width!r}")
    series = np.asarray(values, dtype=np.float64)
    steps = np.arange(series.shape[-1])
    first = np.maximum(steps - width // 2, 0)
    last = np.minimum(steps + width // 2 + 1, series.shape[-1])
    sums = np.concatenate([np.zeros_like(series[..., :1]), np.cumsum(series, axis=-1)], axis=-1)
    return np.asarray((sums[..., last] - sums[..., first]) / (last - first))


def visits(sequences: list[IntArray], n_states: int) -> FloatArray:
    """How often each state is visited, as probabilities without zeros."""
    counts = np.bincount(np.concatenate(sequences), minlength=n_states) + 0.1
    return np.asarray(counts / counts.sum(), dtype=np.float64)
