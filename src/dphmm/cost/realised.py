"""What these very answers told: how far they moved the odds of each state, from public things."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.errors import ArgumentError
from dphmm.geometry.states import as_floats

__all__ = ["Beliefs", "as_factor", "realised_factor", "realised_odds"]

Beliefs: TypeAlias = "ArrayLike | Sequence[Belief]"
"""The probabilities of the states, one row a time, or a belief each."""


def realised_odds(prior: ArrayLike, posterior: ArrayLike) -> FloatArray:
    """The factor by which the releases moved the odds of each state, posterior over prior.

    Both are probabilities over the states (the last axis) computed from public things alone:
    the model before any release, and the same given all of them (`model.smooth`). So this may
    be published, as long as nobody marks the true state in it. One for a state that was
    impossible or certain and still is; infinite for one that became certain.

    Args:
        prior: The probabilities of the states before any release, one row a time if there are
            several.
        posterior: The same, given all releases.

    >>> realised_odds([0.5, 0.5, 0.0], [0.8, 0.2, 0.0]).round(6).tolist()
    [4.0, 0.25, 1.0]
    """
    before, after = as_floats(prior, "prior"), as_floats(posterior, "posterior")
    if before.shape != after.shape or not before.ndim:
        raise ArgumentError(
            f"posterior must have the shape of prior, got {after.shape} and {before.shape}"
        )
    for name, given in (("prior", before), ("posterior", after)):
        if not ((given >= 0) & (given <= 1)).all():
            raise ArgumentError(f"{name} must hold probabilities, got a value outside 0..1")
    if ((before == 0) & (after > 0)).any():
        raise ArgumentError("posterior must be zero where the prior is, got more for a state")
    # In logs, because the odds of a state may be too small or too large for a float.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        odds = (np.log(given) - np.log1p(-given) for given in (after, before))
        return np.where(before == after, 1.0, np.exp(np.subtract(*odds)))


def realised_factor(prior: Beliefs, posterior: Beliefs) -> float:
    """The largest factor, up or down, by which the odds of a state moved at any time.

    Beliefs also know the probabilities that floats have lost.

    Args:
        prior: What was believed about each time before any release.
        posterior: The same, given all releases.
    """
    before, after = _beliefs(prior), _beliefs(posterior)
    if before is None or after is None:
        odds = realised_odds(prior, posterior)  # type: ignore[arg-type]
        with np.errstate(divide="ignore"):
            return as_factor(float(np.abs(np.log(odds)).max()))
    if [one.n_states for one in before] != [one.n_states for one in after]:
        raise ArgumentError("posterior must have the times and states of prior, got others")
    return as_factor(max(map(_moved, before, after), default=0.0))


def as_factor(loss: float) -> float:
    """e to a loss, infinite where floats end."""
    return exp(loss) if loss < 700 else inf


def _beliefs(given: Beliefs) -> list[Belief] | None:
    """The beliefs, if that is what was given."""
    rows = list(given) if isinstance(given, Sequence) else []
    return rows if rows and all(isinstance(row, Belief) for row in rows) else None


def _moved(before: Belief, after: Belief) -> float:
    """The log of the largest factor by which the odds of a state moved."""
    if (after.possible & ~before.possible).any():
        raise ArgumentError("posterior must be zero where the prior is, got more for a state")
    odds = (_log_odds(belief)[before.possible] for belief in (after, before))
    with np.errstate(invalid="ignore"):
        moved = np.abs(np.subtract(*odds))
    # What was certain still is, unless something became possible, which was refused.
    return float(moved[~np.isnan(moved)].max(initial=0.0))


def _log_odds(belief: Belief) -> FloatArray:
    logs, chances = belief.log_probabilities, belief.probabilities
    likeliest = int(np.argmax(chances))
    others = np.delete(logs, likeliest)
    with np.errstate(divide="ignore"):
        rest = np.log1p(-chances)
    # All but the likeliest are at most a half, so that only its rest may be lost in floats.
    rest[likeliest] = np.logaddexp.reduce(others) if len(others) else -inf
    return np.asarray(logs - rest)
