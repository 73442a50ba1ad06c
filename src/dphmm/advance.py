"""The posterior after an answer, in one pass over the states.

Predicting and conditioning are one sparse product, one norm and one exponential a state.
Where the numbers allow it they are done together by `kernels.release`; everywhere else, and
as the twin that tests compare with, they are `Belief.predict` and `Belief.condition`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray, ObjectArray
from dphmm.belief import Belief, Predicted
from dphmm.plan import Protected
from dphmm.stochastic import SAFE_PROBABILITY

__all__ = ["conditioned", "conditioned_plainly"]


def conditioned(
    prior: Belief, step: Protected, epsilon: Fraction, lattice: ObjectArray
) -> tuple[Belief, FloatArray]:
    """The belief after an answer, and its mean in the units of the query."""
    if isinstance(prior, Predicted) and step.reaches(lattice):
        if prior.source.is_plain:
            done = _in_floats(prior, step, epsilon, lattice)
            if done is not None:
                return done
        return _in_wide_numbers(prior, step, epsilon, lattice)
    return conditioned_plainly(prior, step, epsilon, lattice)


def conditioned_plainly(
    prior: Belief, step: Protected, epsilon: Fraction, lattice: ObjectArray
) -> tuple[Belief, FloatArray]:
    """The same by the two verbs."""
    posterior = prior.condition(step.mechanism(epsilon).log_likelihood(lattice))
    return posterior, posterior.mean(step.query.values)


def _in_floats(
    prior: Predicted, step: Protected, epsilon: Fraction, lattice: ObjectArray
) -> tuple[Belief, FloatArray] | None:
    incoming = prior.model.incoming
    after, logs = np.empty((2, 1, prior.n_states))
    kernels.release.weigh(
        incoming.indptr,
        incoming.indices,
        incoming.data,
        prior.source.probabilities[None],
        *step.facets_for(lattice[None]),
        float(epsilon),
        after,
        logs,
    )
    np.exp(logs, out=logs)
    (least,) = kernels.release.settle(after, logs, prior.possible)
    if not least >= SAFE_PROBABILITY:
        return None
    return Belief(prior.possible, after[0], None), after[0] @ step.query.values


def _in_wide_numbers(
    prior: Predicted, step: Protected, epsilon: Fraction, lattice: ObjectArray
) -> tuple[Belief, FloatArray]:
    incoming = prior.model.incoming
    after = np.empty((2, prior.n_states))
    logs, probabilities = np.empty((2, prior.n_states))
    kernels.release.weigh_wide(
        incoming.indptr,
        incoming.indices,
        incoming.data,
        prior.source.widened(),
        *step.facets_for(lattice),
        float(epsilon),
        after,
        logs,
    )
    np.exp(logs, out=logs)
    least = kernels.release.settle_wide(after, logs, probabilities)
    wide = after if least < SAFE_PROBABILITY else None
    return Belief(prior.possible, probabilities, wide), probabilities @ step.query.values
