"""K-norm noise in floating point, as the paper describes it: for tests and plots only.

It is not private. The gaps between floats depend on the answer underneath, so the last bits
of a noisy answer tell states apart that the policy links (`docs/noise.md` has the attack).
No `Stream` takes it; releases come from `dphmm.noise.mechanism`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.query import Query
from dphmm.geometry.states import as_floats, state_number

__all__ = ["reference_knorm"]


def reference_knorm(
    query: Query | ArrayLike,
    body: SensitivityHull,
    epsilon: Exact,
    state: int,
    *,
    rng: np.random.Generator,
    size: int = 1,
    isotropic: bool = False,
) -> FloatArray:
    """Float answers with density proportional to exp(-epsilon ||z - f(s)||_K): (size, d).

    A cone over a boundary simplex v_1..v_k is taken with probability proportional to |det|;
    there z = sum a_j v_j with independent exponential weights a_j.

    Args:
        query: What is asked, or an array of answers, one row a state.
        body: The body that shapes the noise.
        epsilon: What an answer costs between two linked states.
        state: The state that is answered.
        rng: The numpy generator to draw from.
        size: How many answers.
        isotropic: Whether to move K to isotropic position, draw there and move the noise back, as
            the paper's planar isotropic mechanism does: another way to the same distribution.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> body = SensitivityHull.from_vertices([[1, -1], [4, 1]])
    >>> reference_knorm(query, body, 1, 1, rng=np.random.default_rng(0), size=3).shape
    (3, 2)
    """
    expect(rng, np.random.Generator, "rng")
    expect(body, SensitivityHull, "body")
    expect(isotropic, bool, "isotropic")
    price = as_epsilon(epsilon)
    answers = _answers(query)
    if isinstance(query, Query):
        check_body(body, query, "body")
    if answers.ndim != 2 or answers.shape[1] != body.dimension:
        raise ArgumentError(
            f"query must have answers of {body.dimension} dimensions, got shape {answers.shape}"
        )
    state_number(state, len(answers))
    inside = _noise(body, price, rng, whole(size, "size"), isotropic)
    return answers[state] + inside @ body.basis.astype(np.float64) * float(body.step)


def _answers(query: Query | ArrayLike) -> FloatArray:
    if isinstance(query, Query):
        return query.values
    return as_floats(query, "query")


def _noise(
    body: SensitivityHull, epsilon: Fraction, rng: np.random.Generator, size: int, isotropic: bool
) -> FloatArray:
    """Noise in the coordinates of the span."""
    if body.rank == 0:
        return np.zeros((size, 0))
    cones = body.body.corners.astype(np.float64)[body.body.simplices]
    there = _to_isotropic_position(cones) if isotropic else np.eye(body.rank)
    cones = cones @ there
    volumes = np.abs(np.linalg.det(cones))
    chosen = rng.choice(len(cones), size=size, p=volumes / volumes.sum())
    weights = rng.exponential(1 / float(epsilon), (size, body.rank))
    return np.einsum("sj,sji->si", weights, cones[chosen]) @ np.linalg.inv(there)


def _to_isotropic_position(cones: FloatArray) -> FloatArray:
    """T = C^(-1/2), with C the covariance of a uniform point of K."""
    rank = cones.shape[1]
    shares = np.abs(np.linalg.det(cones))
    sums = cones.sum(axis=1)
    moments = np.einsum("fji,fjl->fil", cones, cones) + sums[:, :, None] * sums[:, None, :]
    covariance = np.einsum("f,fil->il", shares / shares.sum(), moments)
    sizes, directions = np.linalg.eigh(covariance / ((rank + 1) * (rank + 2)))
    return np.asarray(directions / np.sqrt(sizes) @ directions.T)
