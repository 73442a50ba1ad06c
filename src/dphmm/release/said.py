"""What was said at one time, and what a history of it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

import numpy as np

from dphmm._types import FloatArray, Mask, ObjectArray
from dphmm.chain.belief import Belief
from dphmm.chain.estimates import Estimate, estimate_of
from dphmm.chain.markov import Chain
from dphmm.chain.memory import Memory
from dphmm.cost.charges import Charge
from dphmm.cost.history import History
from dphmm.cost.totals import add_costs, add_up
from dphmm.geometry.exact import Exact, as_text
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import lattice_vector
from dphmm.policy.plan import Protected
from dphmm.release.advance import conditioned
from dphmm.release.moment import Line
from dphmm.release.plotting import plot_release
from dphmm.release.schedule import SILENCE

__all__ = [
    "Record",
    "Release",
    "Said",
    "believed",
    "history_of",
    "likelihoods",
    "log_likelihood",
    "silence",
]


@dataclass(frozen=True, eq=False)
class Release:
    """What was said at one time; every field may be shown to anybody.

    Args:
        time: The slot of the clock that it is about.
        answer: The noisy answer, in the units of the query; empty at a silent step.
        lattice: The same on the integer lattice: what the guarantee is about.
        estimate: The mean or the median of the posterior, computed from public knowledge: usually
            much closer.
        epsilon: The price.
        statement: What this release does and does not hide, in a sentence.
        private: False when an experiment's generator drew the noise.
    """

    time: int
    answer: FloatArray
    lattice: ObjectArray
    estimate: FloatArray
    epsilon: Fraction
    statement: str
    private: bool = True

    @property
    def silent(self) -> bool:
        """Whether nothing was said: the step has an estimate and no answer."""
        return not len(self.lattice)

    plot = plot_release

    def _repr_html_(self) -> str:
        answer, estimate = (", ".join(f"{x:.6g}" for x in v) for v in (self.answer, self.estimate))
        return (
            f"time {self.time}: <b>{answer or 'nothing'}</b> (estimate {estimate}), epsilon "
            f"{as_text(self.epsilon)}<br>{escape(self.statement)}"
        )


def silence(time: int, estimate: FloatArray, private: bool = True) -> Release:
    """The release of a silent step."""
    nothing = np.zeros(0, dtype=np.int64)
    return Release(
        time, nothing.astype(np.float64), nothing, estimate, Fraction(0), SILENCE, private
    )


@dataclass(frozen=True, eq=False)
class Said:
    """One answer as it left: with the public rules it is all that an adversary needs."""

    time: int
    query: Query
    epsilon: Fraction
    lattice: ObjectArray
    step: Protected
    """What was possible then, and the noise that followed."""


def add_up_said(
    before: tuple[Fraction, Fraction | float], said: Sequence[Said]
) -> tuple[Fraction, Fraction | float]:
    """Every epsilon, and the same for the worst pair of possible states, with what was before."""
    spent, cost = before
    costs = (one.step.constrained(one.epsilon) for one in said)
    return add_up([spent, *(one.epsilon for one in said)]), add_costs([cost, *costs])


@dataclass(frozen=True)
class Record:
    """One answer as it left, and its price; every field may be shown to anybody.

    Args:
        line: Whose it is, and which question it answers.
        time: The slot of the clock.
        law: The law that it followed, in hexadecimal.
        epsilon: The price.
        constrained: The same for the worst pair of possible states.
        lattice: The answer on the query's lattice; empty for a silent step.
        estimate: The mean or the median of the posterior, as it was when the answer left.
        statement: What it does and does not hide.
        private: False when an experiment's generator drew the noise.
        spacing: The step of the lattice, in the units of the query.
    """

    line: Line
    time: int
    law: str
    epsilon: Fraction
    constrained: Fraction | float
    lattice: tuple[int, ...]
    estimate: tuple[float, ...]
    statement: str
    private: bool = True
    spacing: Fraction = Fraction(1)

    @property
    def silent(self) -> bool:
        """Whether nothing was said."""
        return not self.lattice

    def release(self) -> Release:
        """The record as a stream gave it, in the units that it had."""
        lattice = lattice_vector(self.lattice or np.zeros(0, dtype=np.int64))
        return Release(
            time=self.time,
            answer=lattice.astype(np.float64) * float(self.spacing),
            lattice=lattice,
            estimate=np.array(self.estimate),
            epsilon=self.epsilon,
            statement=self.statement,
            private=self.private,
        )


def log_likelihood(
    step: Protected, epsilon: Fraction, lattice: ObjectArray, delta: Exact
) -> FloatArray:
    """The log-likelihood of an answer in every state, with delta that of stand-ins."""
    seen = step.mechanism(epsilon).lattice_log_likelihood(lattice)
    if delta:
        outside = np.flatnonzero(~step.possible)
        seen[outside] = seen[step.query.nearest_states(outside, step.possible)]
    return seen


def likelihoods(
    said: Sequence[Said], first: int, last: int, delta: Exact
) -> list[FloatArray | None]:
    """The log-likelihood of what was said at each step after the first, until the last."""
    seen: list[FloatArray | None] = [None] * (last - first)
    for one in said:
        if one.step.is_lone:
            continue
        likelihood = log_likelihood(one.step, one.epsilon, one.lattice, delta)
        place = one.time - first - 1
        before = seen[place]
        seen[place] = likelihood if before is None else before + likelihood
    return seen


def believed(
    prior: Belief,
    step: Protected,
    price: Fraction,
    lattice: ObjectArray,
    delta: Exact = 0,
    estimate: Estimate = "mean",
    memory: Memory | None = None,
) -> tuple[Belief, FloatArray]:
    """The belief after an answer, and the value that stands for it."""
    if step.is_lone:
        return prior, step.known_value
    if not delta:
        return conditioned(prior, step.mechanism(price), lattice, estimate, memory)
    seen = log_likelihood(step, price, lattice, delta)
    posterior = prior.condition(seen if memory is None else seen[memory.current])
    places = posterior if memory is None else memory.merge(posterior)
    return posterior, estimate_of(places, step.query.values, estimate)


def history_of(said: Sequence[Said], model: Chain, start: Belief, time: int) -> History:
    """What was said after a time, for accounting: the charges of every step until the last."""
    steps = said[-1].time - time
    charges: list[list[Charge]] = [[] for _ in range(steps)]
    possible: list[Mask | None] = [None] * steps
    # Equal steps share one charge, so that what depends on it is computed once.
    made: dict[tuple[bytes, SensitivityHull, Fraction, Fraction | None], Charge] = {}
    for one in said:
        place, step = one.time - time - 1, one.step
        if step.is_lone:
            continue
        name = (step.query.digest, step.body, one.epsilon, step.mechanism(one.epsilon).gamma)
        if name not in made:
            made[name] = Charge(step.query, *name[1:])
        charges[place].append(made[name])
        if possible[place] is None:
            possible[place] = step.possible
    return History(model, charges, start=start, possible=possible, time=time)
