"""The posterior after an answer, in one pass over the states.

Predicting and conditioning are one sparse product, one norm and one exponential a state.
Where the numbers allow it they are done together by `kernels.release`; everywhere else, and
as the twin that tests compare with, they are `Belief.predict` and `Belief.condition`.
"""

from __future__ import annotations

import threading

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray, ObjectArray
from dphmm.chain.belief import Belief, Predicted
from dphmm.chain.estimates import Estimate
from dphmm.chain.memory import Memory
from dphmm.chain.stochastic import SAFE_PROBABILITY
from dphmm.geometry.lattice import largest
from dphmm.noise.mechanism import Mechanism

__all__ = ["conditioned", "conditioned_plainly"]


def conditioned(
    prior: Belief,
    mechanism: Mechanism,
    lattice: ObjectArray,
    estimate: Estimate = "mean",
    memory: Memory | None = None,
) -> tuple[Belief, FloatArray]:
    """The belief after an answer, and the value that stands for it, in the units of the query."""
    posterior, mean = _with_mean(prior, mechanism, lattice, memory)
    if estimate == "mean":
        return posterior, mean
    values = mechanism.query.values
    if memory is None:
        return posterior, posterior.median(values)
    # As a batch does, without dividing the sums of places by theirs.
    found = np.empty((values.shape[1], 1))
    beliefs, only = posterior.probabilities[:, np.newaxis], np.zeros(1, dtype=np.int64)
    kernels.estimate.medians(beliefs, memory.current, values, only, found)
    return posterior, found[:, 0]


def _with_mean(
    prior: Belief, mechanism: Mechanism, lattice: ObjectArray, memory: Memory | None
) -> tuple[Belief, FloatArray]:
    if not isinstance(prior, Predicted) or largest(lattice) > mechanism.furthest:
        return conditioned_plainly(prior, mechanism, lattice, memory)
    if prior.source.is_plain:
        done = _in_floats(prior, mechanism, lattice)
        if done is not None:
            return done
    if memory is not None:
        return conditioned_plainly(prior, mechanism, lattice, memory)
    return _in_wide_numbers(prior, mechanism, lattice)


def conditioned_plainly(
    prior: Belief, mechanism: Mechanism, lattice: ObjectArray, memory: Memory | None = None
) -> tuple[Belief, FloatArray]:
    """The same by the two verbs."""
    seen, values = mechanism.lattice_log_likelihood(lattice), mechanism.query.values
    if memory is None:
        posterior = prior.condition(seen)
        return posterior, posterior.mean(values)
    posterior = prior.condition(seen[memory.current])
    return posterior, memory.merge(posterior).mean(values)


def _in_floats(
    prior: Predicted, mechanism: Mechanism, lattice: ObjectArray
) -> tuple[Belief, FloatArray] | None:
    model, query = prior.model, mechanism.query
    logs, height = _scratch(query.n_states)
    place, price = lattice.astype(np.float64), mechanism.rate
    kernels.release.exponents(*(mechanism.facets or ()), place, price, height, logs)
    np.exp(logs, out=logs)
    after, mean = np.empty(prior.n_states), np.empty(query.dimension)
    least = kernels.release.settle(
        *model.arrays, prior.source.probabilities, model.lift(logs), prior.possible,
        model.lift(query.values), after, mean,
    )  # fmt: skip
    if not least >= SAFE_PROBABILITY:
        return None
    return Belief(prior.possible, after, None), mean


def _in_wide_numbers(
    prior: Predicted, mechanism: Mechanism, lattice: ObjectArray
) -> tuple[Belief, FloatArray]:
    logs, height = _scratch(prior.n_states)
    after, probabilities = np.empty((2, prior.n_states)), np.empty(prior.n_states)
    place = lattice.astype(np.float64)
    kernels.release.exponents(*(mechanism.facets or ()), place, mechanism.rate, height, logs)
    kernels.release.weigh_wide(*prior.model.arrays, prior.source.widen(), logs, after)
    np.exp(logs, out=logs)
    least = kernels.release.settle_wide(after, logs, probabilities)
    wide = after if least < SAFE_PROBABILITY else None
    return Belief(prior.possible, probabilities, wide), probabilities @ mechanism.query.values


def _scratch(n_states: int) -> tuple[FloatArray, FloatArray]:
    """Two vectors that this thread uses again: fresh ones cost more than filling them."""
    held: tuple[FloatArray, FloatArray] | None = getattr(_thread, "scratch", None)
    if held is None or len(held[0]) != n_states:
        held = _thread.scratch = np.empty(n_states), np.empty(n_states)
    return held


_thread = threading.local()
