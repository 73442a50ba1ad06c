"""A learned zero is a guess: the small probability of going anywhere that learned models keep.

A model that was counted calls every move impossible that nobody happened to make. A third of
the moves of other people are among those, so a learned model M is used as

    M' = (1 - a) M + a 1 u^T,

with u uniform unless a density is given: a sparse matrix and a term of rank one, which costs
a sum. A zero that somebody states is a fact; see `zeros`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray
from dphmm.chain.stochastic import SUM_TOLERANCE, check_vector
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import exact

__all__ = ["ANYWHERE", "Zeros", "check_anywhere", "check_density", "chosen_anywhere"]

ANYWHERE = 0.01
"""The share of steps that a learned model lets go anywhere, unless told otherwise.

A constant for everybody, so it costs no privacy. Between 0.001 and 0.03 estimates change by
less than a tenth (docs/models.md has the figures); below, a filter follows somebody who leaves
the known moves too late, and above, it forgets the chain too soon.
"""

Zeros: TypeAlias = Literal["guesses", "facts"]
"""What a move means that nobody made: improbable, or impossible."""


def check_anywhere(anywhere: float) -> float:
    """The probability of going anywhere as a float from 0 to below 1."""
    used = exact(anywhere, "anywhere")
    if not 0 <= used < 1:
        raise ArgumentError(f"anywhere must be at least 0 and below 1, got {anywhere!r}")
    return float(used)


def chosen_anywhere(zeros: Zeros, anywhere: float | None, usual: float = ANYWHERE) -> float:
    """The probability of going anywhere of a learned model.

    >>> chosen_anywhere("guesses", None), chosen_anywhere("facts", None)
    (0.01, 0.0)
    """
    if zeros not in ("guesses", "facts"):
        raise ArgumentError(f"zeros must be 'guesses' or 'facts', got {zeros!r}")
    if anywhere is None:
        return usual if zeros == "guesses" else 0.0
    used = check_anywhere(anywhere)
    if zeros == "facts" and used:
        raise ArgumentError(f"anywhere must be 0 when zeros are facts, got {anywhere!r}")
    if zeros == "guesses" and not used:
        raise ArgumentError("anywhere must be above 0 when zeros are guesses; say zeros='facts'")
    return used


def check_density(density: ArrayLike | None, n_states: int) -> FloatArray:
    """The density as floats that sum to one and rule no state out; uniform by default."""
    if density is None:
        return np.full(n_states, 1.0 / n_states)
    given = check_vector(density, "density")
    if given.size != n_states:
        raise ArgumentError(f"density must have {n_states} values, got {given.size}")
    total = float(given.sum())
    if not given.min() > 0 or not abs(total - 1) <= SUM_TOLERANCE:
        raise ArgumentError("density must be above zero in every state and sum to one")
    # What was normalised before is left as it is, so that files hold it to the last bit.
    near = abs(total - 1) <= n_states * np.finfo(np.float64).eps
    return given.copy() if near else given / total
