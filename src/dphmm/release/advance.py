"""The posterior after an answer, in one pass over the states.

Predicting and conditioning are one sparse product, one norm and one exponential a state.
Where the numbers allow it they are done together by `kernels.release`; everywhere else, and
as the twin that tests compare with, they are `Belief.predict` and `Belief.condition`.
"""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray, ObjectArray
from dphmm.chain.belief import Belief, Predicted
from dphmm.chain.estimates import Estimate, estimate_of
from dphmm.chain.stochastic import SAFE_PROBABILITY
from dphmm.geometry.exact import Exact
from dphmm.geometry.lattice import largest
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.plan import Protected
from dphmm.release.said import log_likelihood

__all__ = ["believe", "conditioned", "conditioned_plainly"]


def believe(
    prior: Belief,
    step: Protected,
    price: Fraction,
    lattice: ObjectArray,
    delta: Exact = 0,
    estimate: Estimate = "mean",
) -> tuple[Belief, FloatArray]:
    """The belief after an answer of a step, and the value that stands for it."""
    values = step.query.values
    if step.is_lone:
        return prior, estimate_of(prior, values, estimate)
    if delta:
        posterior = prior.condition(log_likelihood(step, price, lattice, delta))
        return posterior, estimate_of(posterior, values, estimate)
    return conditioned(prior, step.mechanism(price), lattice, estimate)


def conditioned(
    prior: Belief, mechanism: Mechanism, lattice: ObjectArray, estimate: Estimate = "mean"
) -> tuple[Belief, FloatArray]:
    """The belief after an answer, and the value that stands for it, in the units of the query."""
    posterior, mean = _with_mean(prior, mechanism, lattice)
    return posterior, mean if estimate == "mean" else posterior.median(mechanism.query.values)


def _with_mean(
    prior: Belief, mechanism: Mechanism, lattice: ObjectArray
) -> tuple[Belief, FloatArray]:
    if not isinstance(prior, Predicted) or largest(lattice) > mechanism.furthest:
        return conditioned_plainly(prior, mechanism, lattice)
    if prior.source.is_plain:
        done = _in_floats(prior, mechanism, lattice)
        if done is not None:
            return done
    return _in_wide_numbers(prior, mechanism, lattice)


def conditioned_plainly(
    prior: Belief, mechanism: Mechanism, lattice: ObjectArray
) -> tuple[Belief, FloatArray]:
    """The same by the two verbs."""
    posterior = prior.condition(mechanism.lattice_log_likelihood(lattice))
    return posterior, posterior.mean(mechanism.query.values)


def _in_floats(
    prior: Predicted, mechanism: Mechanism, lattice: ObjectArray
) -> tuple[Belief, FloatArray] | None:
    incoming = prior.model.incoming
    after, logs = np.empty(prior.n_states), _scratch(prior.n_states)
    kernels.release.weigh(
        incoming.indptr,
        incoming.indices,
        incoming.data,
        prior.model.jumps,
        prior.source.probabilities,
        *(mechanism.facets or ()),
        lattice.astype(np.float64),
        float(mechanism.epsilon),
        after,
        logs,
    )
    np.exp(logs, out=logs)
    mean = np.empty(mechanism.query.dimension)
    least = kernels.release.settle(after, logs, prior.possible, mechanism.query.values, mean)
    if not least >= SAFE_PROBABILITY:
        return None
    return Belief(prior.possible, after, None), mean


def _in_wide_numbers(
    prior: Predicted, mechanism: Mechanism, lattice: ObjectArray
) -> tuple[Belief, FloatArray]:
    incoming = prior.model.incoming
    after, logs = np.empty((2, prior.n_states)), _scratch(prior.n_states)
    probabilities = np.empty(prior.n_states)
    kernels.release.weigh_wide(
        incoming.indptr,
        incoming.indices,
        incoming.data,
        prior.model.jumps,
        prior.source.widen(),
        *(mechanism.facets or ()),
        lattice.astype(np.float64),
        float(mechanism.epsilon),
        after,
        logs,
    )
    np.exp(logs, out=logs)
    least = kernels.release.settle_wide(after, logs, probabilities)
    wide = after if least < SAFE_PROBABILITY else None
    return Belief(prior.possible, probabilities, wide), probabilities @ mechanism.query.values


def _scratch(n_states: int) -> FloatArray:
    """A vector that this thread uses again: a fresh one costs more than filling it."""
    held: FloatArray | None = getattr(_thread, "scratch", None)
    if held is None or len(held) != n_states:
        held = _thread.scratch = np.empty(n_states)
    return held


_thread = threading.local()
