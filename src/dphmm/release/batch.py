"""Many people's streams under one plan, moved together on all cores.

A `Batch` gives the answers, possible sets and standings that single streams with the same key
would give, to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.chain.belief import Belief, Start
from dphmm.chain.estimates import Estimate, check_estimate
from dphmm.chain.markov import Chain
from dphmm.cost.budget import Budgets
from dphmm.cost.ledger import Entry, Ledger
from dphmm.cost.limit import Limit
from dphmm.cost.sharing import Single, one_at_a_time
from dphmm.cost.totals import Totals
from dphmm.cost.words import release_statement
from dphmm.errors import ArgumentError, check_name, expect, expect_each
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.states import as_array
from dphmm.noise.mechanism import Mechanism, lattice_vector
from dphmm.noise.randomness import Randomness, SecureRandomness
from dphmm.policy.plan import Plan, Protected
from dphmm.release.answers import BatchRelease, Charge
from dphmm.release.belief_table import SILENT, BeliefTable, read_beliefs, read_times
from dphmm.release.moment import (
    Line,
    check_client,
    check_parts,
    laws_of,
    moments_bytes,
    person_bytes,
)
from dphmm.release.schedule import (
    NEVER,
    Schedule,
    expected_error,
    fills_gaps,
    price_of,
    speaking_people,
)
from dphmm.release.standing import Standing, shared_by

__all__ = ["Batch"]


class Batch(Single):
    """Private answers for many people, step by step.

    Several threads may share a batch: each release moves everybody to a step of its own.

    Args:
        model: How states follow each other.
        plan: Who must look like whom, what is asked, which noise answers.
        epsilon: The price of a release, unless `release` is given another.
        people: Their names, all different.
        start: What everybody knows about everybody, or an array with one state a person, or a
            list with one `Belief` a person.
        time: The slot of the clock at which that is known: one for all, or one for each.
        client: Whose people they are, in a service.
        limit: The most that may be spent on each, as for a `Ledger`; None for no limit.
        schedule: When to speak; at every step by default.
        randomness: See `Stream`.
        law: See `Stream`.
        threads: How many threads to use; by default one for each core.
        estimate: See `Stream`.

    >>> from dphmm import MarkovModel, PolicyGraph, Query
    >>> model = MarkovModel([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    >>> plan = Plan(PolicyGraph.complete(3), Query([[0, 0], [3, 0], [0, 4]]))
    >>> batch = Batch(model, plan, epsilon=1, people=["ann", "bob"], start=[0, 1])
    >>> batch.release([2, 0]).lattice.shape
    (2, 2)
    >>> batch.ledger(1)
    Ledger(1 entries, 1 spent, no limit)
    """

    def __init__(
        self,
        model: Chain,
        plan: Plan,
        *,
        epsilon: Exact,
        people: Sequence[str],
        start: Start | IntArray | list[Belief],
        time: int | Sequence[int] | IntArray | None = None,
        client: str = "",
        limit: Exact | Limit | None = None,
        schedule: Schedule | None = None,
        randomness: Randomness | None = None,
        law: bytes | None = None,
        threads: int | None = None,
        estimate: Estimate = "mean",
    ) -> None:
        check_parts(model, plan, randomness, time, schedule, law)
        if plan.delta:
            raise ArgumentError("plan must have delta 0 in a batch: use a Stream for each person")
        if not isinstance(people, (list, tuple)):
            raise ArgumentError(f"people must be a list of names, got {type(people).__name__}")
        if len({check_name(person, "each of people") for person in people}) != len(people):
            raise ArgumentError("people must have different names, got one twice")
        self.model = model
        self.plan = plan
        self.query = plan.query
        self.schedule = self._rule = schedule
        self.epsilon = price_of(schedule, as_epsilon(epsilon))
        self.limit = None if limit is None else Limit.read(limit).in_steps()
        self.people = tuple(people)
        self.client = check_client(client)
        self.began = read_times(time, len(people))
        self.times = self.began.copy()
        """The slot of everybody's latest step."""
        if model.varies and len(people) and np.ptp(self.times):
            raise ArgumentError("time must be one for all where the model changes with time")
        self._names = [person_bytes(client, person) for person in people]
        self._randomness: Randomness = SecureRandomness() if randomness is None else randomness
        self._constrained = Totals([Fraction(0)] * len(people))
        self._budgets = Budgets(self.limit, self.times)
        self._charges: list[tuple[int, Charge]] = []
        self._steps = 0
        self._spoke = np.full(len(people), NEVER)
        self._clock = ""
        self._plane: str | None = None
        self._share("batch")
        self.estimate = check_estimate(estimate)
        beliefs = read_beliefs(start, len(people), model)
        threads = os.cpu_count() or 1 if threads is None else whole(threads, "threads", 1)
        self._table = BeliefTable(beliefs, plan.query, threads, self.estimate)
        self._laws, self._law_of = [law or b""], np.zeros(len(people), dtype=np.int64)
        if law is None and beliefs:
            self._laws, self._law_of = laws_of(model, plan, beliefs, schedule)

    @classmethod
    def resume(
        cls, standings: Sequence[Standing], model: Chain, plan: Plan, **options: Any
    ) -> Batch:
        """A batch of people who go on where they stand, each at their own slot.

        Args:
            standings: Where they stand; all of one client and one law.
            model: See `Batch`.
            plan: See `Batch`.
            options: The other arguments of `Batch`.
        """
        standings = expect_each(standings, Standing, "standings")
        expect(options.get("law"), bytes, "law")
        client, clock, plane = shared_by(standings, options["law"])
        batch = cls(
            model,
            plan,
            people=[standing.line.person for standing in standings],
            start=[standing.belief for standing in standings],
            time=[standing.time for standing in standings],
            client=client,
            **options,
        )
        batch.began = np.array([standing.began for standing in standings], dtype=np.int64)
        spent = [standing.spent for standing in standings]
        recent = [standing.recent for standing in standings]
        batch._budgets = Budgets(batch.limit, batch.times, spent, recent)
        batch._constrained = Totals([standing.constrained for standing in standings])
        spoke = [NEVER if one.spoke is None else one.spoke for one in standings]
        batch._spoke = np.array(spoke, dtype=np.int64)
        batch._clock, batch._plane = clock, plane
        return batch

    @property
    def memory(self) -> int:
        """Bytes that the beliefs and the threads' scratch take."""
        return self._table.memory

    @one_at_a_time
    def belief(self, person: int) -> Belief:
        """What is believed about one person now.

        Args:
            person: Their number.
        """
        return self._table.belief(self._number(person))

    def _estimates_of(self, people: IntArray) -> FloatArray:
        """The values that stand for what is believed about some people now, a row each."""
        values, beliefs = self.query.values, map(self.belief, people.tolist())
        found = [self.model.estimate(belief, values, self.estimate) for belief in beliefs]
        return np.array(found).reshape(-1, self.query.dimension)

    def _number(self, person: int, argument: str = "person") -> int:
        self._table.check_whole()
        if whole(person, argument) >= len(self.people):
            raise ArgumentError(f"{argument} must be among {len(self.people)} people, by number")
        return int(person)

    @one_at_a_time
    def standings(self, people: ArrayLike | None = None) -> list[Standing]:
        """Where people stand, as single streams would.

        Args:
            people: Their numbers; everybody by default.
        """
        given = np.arange(len(self.people)) if people is None else as_array(people, "people")
        wanted = [self._number(person, "people") for person in np.atleast_1d(given).tolist()]
        now = np.zeros(len(self.people), dtype=bool)
        for step, charge in reversed(self._charges):
            if step < self._steps:
                break
            now[charge.people] = True
        found = [self._standing(person, bool(now[person])) for person in wanted]
        if not self._budgets.limit.width:
            return found
        recent, width = self._budgets.recent(), self._budgets.limit.width
        pairs = zip(wanted, found, strict=True)
        return [standing.remember(recent[person], width) for person, standing in pairs]

    def _standing(self, person: int, answered: bool) -> Standing:
        return Standing(
            line=Line(self.client, self.people[person], self.query.name),
            law=self._laws[self._law_of[person]],
            began=int(self.began[person]),
            time=int(self.times[person]),
            belief=self._table.belief(person),
            spent=Fraction(self._budgets.spent.of(person)),
            constrained=self._constrained.of(person),
            answered=(self.query.name,) if answered else (),
            spoke=self._last_answer(person),
            clock=self._clock,
            plane=self._plane,
        )

    @one_at_a_time
    def ledger(self, person: int) -> Ledger:
        """One person's ledger, as a single stream would have written it.

        Args:
            person: Their number.
        """
        offset = int(self.times[self._number(person)]) - self._steps
        entries = [
            Entry(offset + step, self.query.name, charge.epsilon, charge.constrained)
            for step, charge in self._charges
            if (charge.people == person).any()
        ]
        said = sum((entry.epsilon for entry in entries), start=Fraction(0))
        before = self._budgets.spent.of(person) - said
        recent = [pair for pair in self._budgets.recent()[person] if pair[0] <= offset]
        return Ledger(self.limit, entries, spent=before, recent=recent)

    @one_at_a_time
    def affordable(self, epsilon: Exact | None = None) -> Mask:
        """Which people's limits allow a release.

        Args:
            epsilon: Its price, if not the batch's own.
        """
        return self._budgets.allow(self.epsilon if epsilon is None else as_epsilon(epsilon))

    @one_at_a_time
    def release(
        self, true_states: ArrayLike, epsilon: Exact | None = None, active: ArrayLike | None = None
    ) -> BatchRelease:
        """Move everybody one step and answer the active ones; the others skip the step.

        Args:
            true_states: The number of everybody's state; of those who skip, any number. Secret.
            epsilon: The price, if not the batch's own.
            active: A mask of the people to answer; all by default. Those for whom the schedule
                is silent are moved like the others, and nothing is said.
        """
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        states = as_array(true_states, "true_states")
        times = self.times + 1
        answered, silent = self._answered(states, active, price, times)
        first = int(times[0]) if len(times) else 0
        zeros, filled = self.model.has_zeros_into(first), fills_gaps(self._rule)
        models = self.model.moves_into(first)
        lattice: ObjectArray = np.zeros((len(self.people), self.query.dimension), dtype=np.int64)
        noise_of = np.full(len(self.people), SILENT)
        noises: list[Mechanism] = []
        charges: list[Charge] = []
        alone: list[tuple[IntArray, Protected]] = []
        for possible, members in self._table.next_sets(models):
            speaking = members[answered[members]]
            if not len(speaking):
                continue
            step = self.plan.at(possible)
            cost = step.price(price)
            sentence = release_statement(step, price, stated_zeros=zeros, filled=filled)
            charges.append(Charge(speaking, cost, step.constrained(cost), sentence))
            if step.is_lone:
                said = step.known_answer
                alone.append((speaking, step))
            else:
                noise = step.mechanism(price)
                said = self._draw(noise, step, states, speaking, times)
                if noise not in noises:
                    noises.append(noise)
                noise_of[speaking] = noises.index(noise)
            lattice = lattice.astype(np.promote_types(lattice.dtype, said.dtype), copy=False)
            lattice[speaking] = said
        rows = np.flatnonzero(answered)
        with self._lock, self._table.stepping():  # again: a source of words may have forked
            estimate = self._table.move(models, noises, noise_of, lattice)
            for speaking, step in alone:
                estimate[speaking] = step.known_value
            self._step()
            for charge in charges:
                self._charges.append((self._steps, charge))
                self._budgets.charge(charge.people, charge.epsilon)
                self._constrained.add(charge.people, charge.constrained)
            self._spoke[rows] = times[rows]
        return BatchRelease(
            people=rows,
            times=times[rows],
            answer=self.query.in_units(lattice[rows]),
            lattice=lattice[rows],
            estimate=estimate[rows],
            epsilon=price,
            private=self._randomness.private,
            charges=tuple(charges),
            silent=silent,
            silent_estimate=self._estimates_of(silent),
        )

    @one_at_a_time
    def skip(self) -> None:
        """Move everybody one step without a word."""
        with self._table.stepping():
            first = int(self.times[0]) + 1 if len(self.times) else 0
            self._table.skip(self.model.moves_into(first))
            self._step()

    def _step(self) -> None:
        self.times = self.times + 1
        self._steps += 1
        self._budgets.move()

    def __repr__(self) -> str:
        return f"Batch({len(self.people)} people, {self._steps} steps)"

    def _answered(
        self, states: ObjectArray, active: ArrayLike | None, price: Fraction, times: IntArray
    ) -> tuple[Mask, IntArray]:
        """Who is to be answered, and who gets silence; everything that could fail does so here."""
        people = len(self.people)
        answered = np.ones(people, dtype=bool) if active is None else as_array(active, "active")
        if answered.shape != (people,) or answered.dtype != np.bool_:
            raise ArgumentError(f"active must be a boolean mask over {people} people")
        if states.shape != (people,) or not np.issubdtype(states.dtype, np.integer):
            raise ArgumentError(f"true_states must hold one state for each of {people} people")
        known = (states >= 0) & (states < self.query.n_states)
        if not known[answered].all():
            raise ArgumentError(f"true_states must be among the {self.query.n_states} states")
        asked = answered
        if self.schedule is not None:

            def error(person: int) -> float:
                prior = self.model.predict(self._table.belief(person), int(times[person]))
                return expected_error(self.model, prior, self.query.values)

            answered = speaking_people(self.schedule, asked, times, self._spoke, error)
        over = np.flatnonzero(answered & ~self.affordable(price))
        if len(over):
            raise self._budgets.of(int(over[0])).fault(int(self.times[over[0]]) + 1, price)
        return answered, np.flatnonzero(asked & ~answered)

    def _last_answer(self, person: int) -> int | None:
        return None if self._spoke[person] == NEVER else int(self._spoke[person])

    def _draw(
        self,
        mechanism: Mechanism,
        step: Protected,
        states: IntArray,
        people: IntArray,
        times: IntArray,
    ) -> ObjectArray:
        """The answers of some people: the one place that a true state meets noise."""
        used = states[people].astype(np.int64)
        outside = ~step.possible[used]
        used[outside] = self.query.nearest_states(used[outside], step.possible)
        names = [b""] * len(people)
        if self._randomness.keyed:  # other noise reads no moment
            chosen = [self._names[person] for person in people.tolist()]
            names = moments_bytes(chosen, times[people], self.query.name)
        laws, law_of = [(law, *mechanism.law) for law in self._laws], self._law_of[people]
        draw = mechanism.sampler.draw_under
        noise = draw(laws, law_of, mechanism.epsilon, self._randomness, names, used)
        # Below 2**62 each, or Python integers: the sum never wraps.
        return lattice_vector(self.query.points[used].astype(noise.dtype) + noise)
