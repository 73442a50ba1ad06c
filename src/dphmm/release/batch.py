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

from dphmm._types import IntArray, Mask, ObjectArray
from dphmm.chain.belief import Belief, Start
from dphmm.chain.estimates import Estimate, check_estimate
from dphmm.chain.markov import Chain
from dphmm.cost.ledger import Entry, Ledger, Totals
from dphmm.cost.statement import release_statement
from dphmm.errors import ArgumentError, BudgetError, expect
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.noise.mechanism import Mechanism, lattice_vector
from dphmm.noise.randomness import Randomness, SecureRandomness
from dphmm.policy.plan import Plan, Protected
from dphmm.release.answers import BatchRelease, Charge
from dphmm.release.belief_table import SILENT, BeliefTable, read_beliefs, read_times
from dphmm.release.moment import (
    Line,
    check_client,
    check_parts,
    law_of,
    person_bytes,
    time_bytes,
)
from dphmm.release.standing import Standing

__all__ = ["Batch", "BatchRelease"]


class Batch:
    """Private answers for many people, step by step.

    Args:
        model: How states follow each other.
        plan: Who must look like whom, what is asked, which noise answers.
        epsilon: The price of a release, unless `release` is given another.
        people: Their names, all different.
        start: What everybody knows about everybody, or an array with one state a person, or a
            list with one `Belief` a person.
        time: The slot of the clock at which that is known: one for all, or one for each.
        client: Whose people they are, in a service.
        limit: The most that may be spent on each; None for no limit.
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
        limit: Exact | None = None,
        randomness: Randomness | None = None,
        law: bytes | None = None,
        threads: int | None = None,
        estimate: Estimate = "mean",
    ) -> None:
        check_parts(model, plan, randomness, time)
        if plan.delta:
            raise ArgumentError("plan must have delta 0 in a batch: use a Stream for each person")
        named = isinstance(people, (list, tuple)) and all(isinstance(p, str) and p for p in people)
        if not named or len(set(people)) != len(people):
            raise ArgumentError("people must have different names, none of them empty")
        self.model = model
        self.plan = plan
        self.query = plan.query
        self.epsilon = as_epsilon(epsilon)
        self.limit = None if limit is None else as_epsilon(limit, "limit")
        self.people = tuple(people)
        self.client = check_client(client)
        self.began = read_times(time, len(people))
        self.times = self.began.copy()
        """The slot of everybody's latest step."""
        if model.varies and len(people) and np.ptp(self.times):
            raise ArgumentError("time must be one for all where the model changes with time")
        self._names = [person_bytes(client, person) for person in people]
        self._randomness: Randomness = SecureRandomness() if randomness is None else randomness
        self._spent, self._constrained = (Totals([Fraction(0)] * len(people)) for _ in range(2))
        self._charges: list[tuple[int, Charge]] = []
        self._steps = 0
        self._clock = ""
        beliefs = read_beliefs(start, len(people), model)
        self.estimate = check_estimate(estimate)
        threads = threads or os.cpu_count() or 1
        self._table = BeliefTable(beliefs, plan.query, threads, self.estimate)
        self._laws, self._law_of = self._find_laws(law, beliefs)

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
        for standing in standings:
            expect(standing, Standing, "standings")
        laws = {standing.law for standing in standings if standing.law}
        clients = {standing.line.client for standing in standings}
        clocks = {standing.clock for standing in standings}
        if max(len(laws), len(clients), len(clocks)) > 1:
            raise ArgumentError("standings must be of one client, law and clock, got several")
        if options.get("law") is None or laws - {options["law"]}:
            raise ArgumentError("law must be that of the standings, got another or none")
        batch = cls(
            model,
            plan,
            people=[standing.line.person for standing in standings],
            start=[standing.belief for standing in standings],
            time=[standing.time for standing in standings],
            client=clients.pop() if clients else "",
            **options,
        )
        batch.began = np.array([standing.began for standing in standings], dtype=np.int64)
        batch._spent = Totals([standing.spent for standing in standings])
        batch._constrained = Totals([standing.constrained for standing in standings])
        batch._clock = clocks.pop() if clocks else ""
        return batch

    @property
    def memory(self) -> int:
        """Bytes that the beliefs and the threads' scratch take."""
        return self._table.memory

    def belief(self, person: int) -> Belief:
        """What is believed about one person now.

        Args:
            person: Their number.
        """
        return self._table.belief(self._number(person))

    def _number(self, person: int) -> int:
        if whole(person, "person") >= len(self.people):
            raise ArgumentError(f"person must be one of {len(self.people)} people, by number")
        return int(person)

    def standings(self, people: ArrayLike | None = None) -> list[Standing]:
        """Where people stand, as single streams would.

        Args:
            people: Their numbers; everybody by default.
        """
        wanted = range(len(self.people)) if people is None else np.asarray(people).tolist()
        now = np.zeros(len(self.people), dtype=bool)
        for step, charge in reversed(self._charges):
            if step < self._steps:
                break
            now[charge.people] = True
        return [self._standing(person, bool(now[person])) for person in wanted]

    def _standing(self, person: int, answered: bool) -> Standing:
        return Standing(
            line=Line(self.client, self.people[person], self.query.name),
            law=self._laws[self._law_of[person]],
            began=int(self.began[person]),
            time=int(self.times[person]),
            belief=self._table.belief(person),
            spent=Fraction(self._spent.of(person)),
            constrained=self._constrained.of(person),
            answered=(self.query.name,) if answered else (),
            clock=self._clock,
        )

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
        return Ledger(self.limit, entries, spent=self._spent.of(person) - said)

    def affordable(self, epsilon: Exact | None = None) -> Mask:
        """Which people's limits allow a release.

        Args:
            epsilon: Its price, if not the batch's own.
        """
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        if self.limit is None:
            return np.ones(len(self.people), dtype=bool)
        return self._spent.allow(price, self.limit)

    def release(
        self, true_states: ArrayLike, epsilon: Exact | None = None, active: ArrayLike | None = None
    ) -> BatchRelease:
        """Move everybody one step and answer the active ones; the others skip the step.

        Args:
            true_states: The number of everybody's state; of those who skip, any number. Secret.
            epsilon: The price, if not the batch's own.
            active: A mask of the people to answer; all by default.
        """
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        states = np.asarray(true_states)
        answered = self._answered(states, active, price)
        times = self.times + 1
        first = int(times[0]) if len(times) else 0
        stated_zeros = self.model.has_zeros_into(first)
        *before, model = self.model.moves_into(first)
        for one in before:
            self._table.skip(one)
        lattice: ObjectArray = np.zeros((len(self.people), self.query.dimension), dtype=np.int64)
        noise_of = np.full(len(self.people), SILENT)
        noises: list[Mechanism] = []
        charges: list[Charge] = []
        alone: list[tuple[IntArray, Protected]] = []
        for possible, members in self._table.move_sets(model):
            step = self.plan.at(possible)
            speaking = members[answered[members]]
            if step.is_lone and len(speaking):
                lattice = lattice.astype(
                    np.promote_types(lattice.dtype, step.known_answer.dtype), copy=False
                )
                lattice[speaking] = step.known_answer
                nothing = Fraction(0)
                said_of = release_statement(step, price, stated_zeros=stated_zeros)
                charges.append(Charge(speaking, nothing, nothing, said_of))
                alone.append((speaking, step))
                continue
            said = self._draw(step.mechanism(price), step, states, speaking, times)
            lattice = lattice.astype(np.promote_types(lattice.dtype, said.dtype), copy=False)
            lattice[speaking] = said
            if len(speaking):
                cost = step.constrained(price)
                said_of = release_statement(step, price, stated_zeros=stated_zeros)
                charges.append(Charge(speaking, price, cost, said_of))
            if step.mechanism(price) not in noises:
                noises.append(step.mechanism(price))
            noise_of[speaking] = noises.index(step.mechanism(price))
        estimate = self._table.move(model, noises, noise_of, lattice)
        for speaking, step in alone:
            estimate[speaking] = step.known_value
        self.times = times
        self._steps += 1
        for charge in charges:
            self._charges.append((self._steps, charge))
            self._spent.add(charge.people, charge.epsilon)
            self._constrained.add(charge.people, charge.constrained)
        rows = np.flatnonzero(answered)
        return BatchRelease(
            people=rows,
            times=times[rows],
            answer=self.query.in_units(lattice[rows]),
            lattice=lattice[rows],
            estimate=estimate[rows],
            epsilon=price,
            private=self._randomness.private,
            charges=tuple(charges),
        )

    def skip(self) -> None:
        """Move everybody one step without a word."""
        for model in self.model.moves_into(int(self.times[0]) + 1 if len(self.times) else 0):
            self._table.skip(model)
        self.times = self.times + 1
        self._steps += 1

    def __repr__(self) -> str:
        return f"Batch({len(self.people)} people, {self._steps} steps)"

    def _answered(self, states: ObjectArray, active: ArrayLike | None, price: Fraction) -> Mask:
        """Who is to be answered; everything that could fail does so here."""
        people = len(self.people)
        answered = np.ones(people, dtype=bool) if active is None else np.asarray(active)
        if answered.shape != (people,) or answered.dtype != np.bool_:
            raise ArgumentError(f"active must be a boolean mask over {people} people")
        if states.shape != (people,) or not np.issubdtype(states.dtype, np.integer):
            raise ArgumentError(f"true_states must hold one state for each of {people} people")
        known = (states >= 0) & (states < self.query.n_states)
        if not known[answered].all():
            raise ArgumentError(f"true_states must be among the {self.query.n_states} states")
        if not self.affordable(price)[answered].all():
            first = int(np.flatnonzero(answered & ~self.affordable(price))[0])
            spent = Fraction(self._spent.of(first))
            remaining = (self.limit or Fraction(0)) - spent
            raise BudgetError(spent=spent, requested=price, remaining=remaining)
        return answered

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
        names, sampler = self._questions(people, times), mechanism.sampler
        if len(self._laws) == 1:
            shared = (self._laws[0], *mechanism.law)
            noise = sampler.draw_many(mechanism.epsilon, self._randomness, names, shared, used)
        else:
            noise = np.zeros((len(people), self.query.dimension), dtype=object)
            for number in np.unique(self._law_of[people]).tolist():
                some = np.flatnonzero(self._law_of[people] == number)
                some_names, shared = [names[i] for i in some], (self._laws[number], *mechanism.law)
                noise[some] = sampler.draw_many(
                    mechanism.epsilon, self._randomness, some_names, shared, used[some]
                )
        # Below 2**62 each, or Python integers: the sum never wraps.
        return lattice_vector(self.query.points[used].astype(noise.dtype) + noise)

    def _find_laws(self, law: bytes | None, beliefs: list[Belief]) -> tuple[list[bytes], IntArray]:
        """The different laws, one for each different start, and whose is whose."""
        if law is not None or not beliefs:
            return [law or b""], np.zeros(len(beliefs), dtype=np.int64)
        starts = {id(belief): belief for belief in beliefs}
        numbers = {name: number for number, name in enumerate(starts)}
        laws = [law_of(self.model, self.plan, belief) for belief in starts.values()]
        return laws, np.array([numbers[id(belief)] for belief in beliefs], dtype=np.int64)

    def _questions(self, people: IntArray, times: IntArray) -> list[bytes]:
        """Everybody's moment as keyed noise reads it; other noise reads nothing."""
        if not self._randomness.keyed:
            return [b""] * len(people)
        name, ends = self.query.name, {}
        for time in np.unique(times[people]).tolist():
            ends[time] = time_bytes(time, name)
        slots = times[people].tolist()
        return [
            self._names[person] + ends[time]
            for person, time in zip(people.tolist(), slots, strict=True)
        ]
