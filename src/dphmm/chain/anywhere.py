"""A learned zero is a guess: the small probability of going anywhere that learned models keep.

A model that was counted calls every move impossible that nobody happened to make. A third of
the moves of other people are among those, so a learned model M is used as

    M' = (1 - a) M + a 1 u^T,

with u uniform unless a density is given: a sparse matrix and a term of rank one, which costs
a sum. A zero that somebody states is a fact; see `zeros`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray
from dphmm.chain.stochastic import (
    SUM_TOLERANCE,
    check_vector,
    count_moves,
    probabilities_from_counts,
)
from dphmm.errors import ArgumentError, expect_one_of
from dphmm.geometry.exact import exact

__all__ = [
    "ANYWHERE",
    "HELD_OUT",
    "Share",
    "Zeros",
    "check_anywhere",
    "check_density",
    "chosen_anywhere",
    "held_out_anywhere",
]

ANYWHERE = 0.01
"""The share of steps that a learned model lets go anywhere, unless told otherwise.

A constant for everybody, so it costs no privacy. Between 0.001 and 0.03 estimates change by
less than a tenth (docs/models.md has the figures); below, a filter follows somebody who leaves
the known moves too late, and above, it forgets the chain too soon.
"""

Zeros: TypeAlias = Literal["guesses", "facts"]
"""What a move means that nobody made: improbable, or impossible."""

HELD_OUT: Final = "held-out"

Share: TypeAlias = float | Literal["held-out"] | None
"""How often a learned model goes anywhere: a number, the default, or what suits people held out."""

FOLDS = 5
"""Into so many parts people are dealt; each is held out once."""

BETWEEN = 1e-4, 0.5
"""What held-out people may choose from, so that no state is ever ruled out."""


def check_anywhere(anywhere: float) -> float:
    """The probability of going anywhere as a float from 0 to below 1."""
    used = exact(anywhere, "anywhere")
    if not 0 <= used < 1:
        raise ArgumentError(f"anywhere must be at least 0 and below 1, got {anywhere!r}")
    return float(used)


def chosen_anywhere(
    zeros: Zeros,
    anywhere: Share,
    people: Callable[[], float] | None = None,
    usual: float = ANYWHERE,
) -> float:
    """The probability of going anywhere of a learned model; `people` asks those held out.

    >>> chosen_anywhere("guesses", None), chosen_anywhere("facts", None)
    (0.01, 0.0)
    """
    expect_one_of(zeros, ("guesses", "facts"), "zeros")
    if anywhere is None:
        return usual if zeros == "guesses" else 0.0
    held_out = isinstance(anywhere, str) and anywhere == HELD_OUT
    if held_out and zeros == "guesses":
        if people is None:
            raise ArgumentError(
                f"anywhere must be a number where nobody's own moves may be looked at, "
                f"got {HELD_OUT!r}"
            )
        return people()
    used = 1.0 if held_out else check_anywhere(anywhere)  # type: ignore[arg-type]
    if zeros == "facts" and used:
        raise ArgumentError(f"anywhere must be 0 when zeros are facts, got {anywhere!r}")
    if zeros == "guesses" and not used:
        raise ArgumentError("anywhere must be above 0 when zeros are guesses; say zeros='facts'")
    return used


def held_out_anywhere(
    turns: Sequence[Sequence[tuple[IntArray, IntArray]]],
    n_states: int,
    smoothing: float,
    support: Any,
    density: ArrayLike | None = None,
) -> float:
    """The share under which people's moves are likeliest by models counted from others.

    `turns` has, for each of the models that take turns, everybody's moves (from, to). It looks at
    raw moves, so it is as public as raw counts are. The likelihood is concave in the share.
    """
    if len(turns[0]) < 2:
        raise ArgumentError(
            f"anywhere must be a number when fewer than two people are known, got {HELD_OUT!r}"
        )
    lands = check_density(density, n_states)
    moved, jumped = [np.zeros(0)], [np.zeros(0)]
    for people in turns:
        for fold in range(min(FOLDS, len(people))):
            counted = [part for number, part in enumerate(people) if number % FOLDS != fold]
            sources, targets = (np.concatenate(ends) for ends in zip(*counted, strict=True))
            counts = count_moves(sources, targets, n_states)
            matrix = probabilities_from_counts(counts, smoothing, support)
            for here, there in people[fold::FOLDS]:
                moved.append(np.asarray(matrix[here, there]).ravel())
                jumped.append(lands[there])
    own, gain = np.concatenate(moved), np.concatenate(jumped) - np.concatenate(moved)
    low, high = BETWEEN
    for _ in range(50):
        middle = (low + high) / 2
        rises = (gain / (own + middle * gain)).sum() > 0
        low, high = (middle, high) if rises else (low, middle)
    return float(f"{high:.3g}")


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
