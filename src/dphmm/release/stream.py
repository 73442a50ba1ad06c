"""One person's releases over time: the paper's Algorithm 2.

A `Stream` knows only public things: model, policy, query, epsilon, and what it has said.
The true state enters `release`, is handed to the noise in one line, and is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, Mask, ObjectArray
from dphmm.chain.belief import Belief, Start
from dphmm.chain.markov import Chain
from dphmm.cost.ledger import Entry, Ledger
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import Exact, as_epsilon
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import lattice_vector
from dphmm.noise.randomness import randomness_for
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan, Protected, location_set
from dphmm.policy.repair import RepairMethod
from dphmm.release.advance import conditioned

__all__ = ["Release", "Stream"]


@dataclass(frozen=True, eq=False)
class Release:
    """What was said at one time; every field may be shown to anybody."""

    time: int
    answer: FloatArray
    """The noisy answer, in the units of the query."""
    lattice: ObjectArray
    """The same on the integer lattice: what the guarantee is about."""
    estimate: FloatArray
    """The mean of the posterior, computed from public knowledge: usually much closer."""
    epsilon: Fraction
    statement: str
    """What this release does and does not hide, in a sentence."""
    private: bool = True
    """False when an experiment's generator drew the noise."""


@dataclass(frozen=True, eq=False)
class Said:
    """One answer as it left: with the public rules it is all that an adversary needs."""

    time: int
    query: Query
    epsilon: Fraction
    lattice: ObjectArray


class Stream:
    """Private answers about one person's state, one step at a time.

    `start` is what everybody knows before the first step; the first release comes after one
    transition. `epsilon` is the price of a release unless `release` is given another.

    >>> from dphmm import MarkovModel, PolicyGraph, Query
    >>> model = MarkovModel([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    >>> query = Query([[0, 0], [3, 0], [0, 4]])
    >>> stream = Stream(model, PolicyGraph.complete(3), query, epsilon=1, start=0)
    >>> release = stream.release(2)
    >>> release.time, release.epsilon, stream.possible.tolist()
    (1, Fraction(1, 1), [False, True, True])
    >>> stream.ledger
    Ledger(1 entries, 1 spent, no limit)
    """

    def __init__(
        self,
        model: Chain,
        policy: PolicyGraph,
        query: Query,
        *,
        epsilon: Exact,
        start: Start,
        mechanism: str = "knorm",
        shape: str = "hull",
        repair: RepairMethod | None = "min_error",
        full_rank: bool = True,
        partners: Mapping[int, int] | PolicyGraph | None = None,
        delta: float = 0,
        limit: Exact | None = None,
        ledger: Ledger | None = None,
        person: str = "",
        scenario: str = "",
        key: bytes | None = None,
        experiment_rng: np.random.Generator | None = None,
        plan: Plan | None = None,
    ) -> None:
        if model.n_states != query.n_states:
            raise ArgumentError(
                f"model must have the {query.n_states} states of the query, got {model.n_states}"
            )
        if plan is not None and plan.query is not query:
            raise ArgumentError("plan must be for the stream's own query, got another's")
        if not 0 <= delta < 1:
            raise ArgumentError(f"delta must be at least 0 and below 1, got {delta!r}")
        if limit is not None and ledger is not None:
            raise ArgumentError("limit must be the ledger's own when a ledger is given")
        self.model = model
        self.query = query
        self.epsilon = as_epsilon(epsilon)
        self.delta = delta
        self.person = person
        self._person = person.encode()
        self.scenario = scenario
        self.ledger = Ledger(limit) if ledger is None else ledger
        self.plan = plan or Plan(
            policy,
            query,
            mechanism=mechanism,
            shape=shape,
            repair=repair,
            full_rank=full_rank,
            partners=partners,
        )
        self.time = 0
        self.start = Belief.known(start, model.n_states)
        self.prior = self.posterior = self.start
        self._step: Protected | None = None
        self.said: list[Said] = []
        self._plans = {query.digest: self.plan}
        if key is not None and not person:
            raise ArgumentError("person must be named when a key is given, got an empty name")
        self._randomness = randomness_for(key, experiment_rng)

    @property
    def possible(self) -> Mask:
        """The states that are possible now, given everything said: C_t."""
        return self.posterior.possible

    @property
    def hull(self) -> SensitivityHull | None:
        """The body of the latest noise."""
        return None if self._step is None else self._step.body

    @property
    def policy(self) -> PolicyGraph:
        """The policy as restricted and repaired at the latest release."""
        return self.plan.policy if self._step is None else self._step.policy

    def release(self, true_state: int, epsilon: Exact | None = None) -> Release:
        """Move one step and answer the query about the state there (Algorithm 2).

        A state outside the possible set is answered as the possible one with the nearest
        answer, and nothing records that it was. Refused, before any noise is drawn, when
        the ledger's limit does not allow the price.
        """
        prior = self.posterior.predict(self.model.at(self.time + 1))
        return self._release(true_state, epsilon, self.time + 1, prior, self.plan)

    def release_also(self, true_state: int, query: Query, epsilon: Exact | None = None) -> Release:
        """Answer another query about the present step; the prices add up (Theorem 7.1)."""
        if self.time == 0:
            raise ArgumentError("release_also must follow a step, got none; call release first")
        plan = self._plan_for(query)
        return self._release(true_state, epsilon, self.time, self.posterior, plan)

    def repeat(self, lattice: ArrayLike, epsilon: Exact | None = None) -> Release:
        """Move one step and say again the answer that was given there; nothing is drawn.

        So a stream is brought to where its published answers lead, from a ledger's records
        or by a reader who has nothing else. An entry that the ledger holds is not paid twice.
        """
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        prior = self.posterior.predict(self.model.at(self.time + 1))
        step = self.plan.at(self._to_protect(prior))
        said = lattice_vector(lattice)
        return self._say(said, price, self.time + 1, prior, self.plan, step)

    def skip(self, steps: int = 1) -> None:
        """Move without a release: nothing is said, nothing is spent, the belief spreads."""
        if steps < 0:
            raise ArgumentError(f"steps must not be negative, got {steps!r}")
        for _ in range(steps):
            self.prior = self.posterior = self.posterior.predict(self.model.at(self.time + 1))
            self.time += 1

    def smoothed(self) -> FloatArray:
        """The estimate at every time so far, given everything said until now: one row a step."""
        beliefs = self.model.smooth(self.observations(), start=self.start)
        return np.array([belief.mean(self.query.values) for belief in beliefs])

    def observations(self) -> list[FloatArray | None]:
        """The log-likelihood of what was said at each time, for the model's own inference."""
        said = iter([*self.said, None])
        latest = next(said)
        belief, observations = self.start, []
        for time in range(1, self.time + 1):
            belief, seen = belief.predict(self.model.at(time)), None
            while latest is not None and latest.time == time:
                step = self._plan_for(latest.query).at(self._to_protect(belief))
                likelihood = self._log_likelihood(step, latest.epsilon, latest.lattice)
                belief = belief.condition(likelihood)
                seen = likelihood if seen is None else seen + likelihood
                latest = next(said)
            observations.append(seen)
        return observations

    def _release(
        self, true_state: int, epsilon: Exact | None, time: int, prior: Belief, plan: Plan
    ) -> Release:
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        self._refuse(true_state, price, time, plan)
        step = plan.at(self._to_protect(prior))
        context = (self._person, b"%d" % time, plan.mechanism.encode())
        noise = step.mechanism(price)
        lattice = noise.sample_lattice(true_state, self._randomness, context, step.possible)
        return self._say(lattice, price, time, prior, plan, step)

    def _say(
        self,
        lattice: ObjectArray,
        price: Fraction,
        time: int,
        prior: Belief,
        plan: Plan,
        step: Protected,
    ) -> Release:
        """Write an answer down and believe it: all of it is public."""
        posterior, estimate = self._conditioned(prior, step, price, lattice)
        if not self.ledger.has(time, plan.query.name, self.scenario):
            entry = Entry(time, plan.query.name, price, step.constrained(price), self.scenario)
            self.ledger.record(entry)
        self.said.append(Said(time, plan.query, price, lattice))
        self.time, self.prior, self.posterior, self._step = time, prior, posterior, step
        return Release(
            time=time,
            answer=plan.query.in_units(lattice),
            lattice=lattice,
            estimate=estimate,
            epsilon=price,
            statement=step.statement(price, self.delta),
            private=self._randomness.private,
        )

    def _conditioned(
        self, prior: Belief, step: Protected, price: Fraction, lattice: ObjectArray
    ) -> tuple[Belief, FloatArray]:
        if self.delta == 0:
            return conditioned(prior, step.mechanism(price), lattice)
        posterior = prior.condition(self._log_likelihood(step, price, lattice))
        return posterior, posterior.mean(step.query.values)

    def _log_likelihood(
        self, step: Protected, epsilon: Fraction, lattice: ObjectArray
    ) -> FloatArray:
        """The log-likelihood of an answer in every state, stand-ins included."""
        seen = step.mechanism(epsilon).lattice_log_likelihood(lattice)
        if self.delta:
            outside = np.flatnonzero(~step.possible)
            seen[outside] = seen[step.query.nearest_states(outside, step.possible)]
        return seen

    def _plan_for(self, query: Query) -> Plan:
        if query.digest not in self._plans:
            self._plans[query.digest] = self.plan.for_query(query)
        return self._plans[query.digest]

    def _to_protect(self, prior: Belief) -> Mask:
        """The possible set, or with delta the smaller set of the earlier work."""
        if self.delta == 0:
            return prior.possible
        return location_set(prior.probabilities, self.delta)

    def _refuse(self, true_state: int, price: Fraction, time: int, plan: Plan) -> None:
        """Everything that could fail does so here, before the noise is drawn."""
        whole = isinstance(true_state, (int, np.integer)) and not isinstance(true_state, bool)
        if not whole or not 0 <= true_state < self.query.n_states:
            raise ArgumentError(f"true_state must be one of the {self.query.n_states} states")
        if self.ledger.has(time, plan.query.name, self.scenario):
            raise ArgumentError(f"query must be new at time {time}, got one already answered")
        self.ledger.check(price)

    def __repr__(self) -> str:
        return f"Stream(person={self.person!r}, time={self.time}, {self.ledger!r})"
