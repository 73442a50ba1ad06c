"""Many people's streams under one scenario, moved together on all cores.

A `Batch` gives the answers, possible sets and ledgers that single streams with the same key
would give. People stand in blocks, a column of beliefs each, and threads that hold no lock
move a block at a time. A person whose belief leaves the range of plain floats, or whose hull
is flat, is carried by the same code as a single stream.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.chain.belief import Belief, Start
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.stochastic import SAFE_PROBABILITY
from dphmm.cost.ledger import Entry, Ledger, Spent
from dphmm.errors import ArgumentError, BudgetError
from dphmm.geometry.exact import Exact, as_epsilon
from dphmm.noise.cones import fan_of
from dphmm.noise.mechanism import Mechanism, lattice_vector
from dphmm.noise.randomness import Randomness, randomness_for
from dphmm.policy.plan import Plan, Protected
from dphmm.release.advance import conditioned

__all__ = ["Batch", "BatchRelease"]

BLOCK = 128
"""People that one thread moves at a time; its scratch is two such blocks."""

SAFE_MOVE = 1e-20
"""With moves no rarer than this a safe probability stays above zero through a product."""

SILENT = -1


@dataclass(frozen=True)
class Charge:
    """What some people's ledgers got at one step."""

    people: IntArray
    entry: Entry
    statement: str
    """What their answers do and do not hide, in a sentence."""


@dataclass(frozen=True, eq=False)
class BatchRelease:
    """What was said to some people at one time; every field may be shown to anybody."""

    time: int
    people: IntArray
    """The numbers of the people who were answered."""
    answer: FloatArray
    lattice: ObjectArray
    estimate: FloatArray
    epsilon: Fraction
    private: bool
    charges: tuple[Charge, ...] = ()
    """What it cost whom."""


class Batch:
    """Private answers for many people at the same times.

    `start` is what everybody knows about everybody, or an array with one state a person, or a
    list with one belief a person. People who were released before continue at their common
    `time` with the ledgers that they had `earlier`.

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
        time: int = 0,
        earlier: Sequence[Ledger] | None = None,
        limit: Exact | None = None,
        scenario: str = "",
        key: bytes | None = None,
        experiment_rng: np.random.Generator | None = None,
        threads: int | None = None,
    ) -> None:
        if len(set(people)) != len(people) or not all(people):
            raise ArgumentError("people must have different names, none of them empty")
        if model.n_states != plan.query.n_states:
            raise ArgumentError(
                f"model must have the {plan.query.n_states} states of the query, "
                f"got {model.n_states}"
            )
        self.model = model
        self.plan = plan
        self.query = plan.query
        self.epsilon = as_epsilon(epsilon)
        self.limit = None if limit is None else as_epsilon(limit)
        self.people = tuple(people)
        self.scenario = scenario
        self.threads = threads or os.cpu_count() or 1
        self.time = time
        self._names = [person.encode() for person in people]
        self._randomness: Randomness = randomness_for(key, experiment_rng)
        self._earlier = earlier
        self._spent = Spent(len(people))
        for person, ledger in enumerate(earlier or ()):
            self._spent.add(np.array([person]), ledger.spent)
        self._charges: list[Charge] = []
        self._begin(start)

    @property
    def memory(self) -> int:
        """Bytes that the beliefs and the threads' scratch take."""
        scratch = self.threads * 2 * BLOCK * self.query.n_states * 8
        return sum(block.nbytes for block in self._blocks) + scratch

    def belief(self, person: int) -> Belief:
        """What is believed about one person now."""
        if person in self._apart:
            return self._apart[person]
        return Belief(self._sets[self._set_of[person]], self._column(person).copy(), None)

    def ledger(self, person: int) -> Ledger:
        """One person's ledger, as a single stream would have written it."""
        entries = [charge.entry for charge in self._charges if (charge.people == person).any()]
        earlier = () if self._earlier is None else self._earlier[person].entries
        return Ledger(self.limit, (*earlier, *entries))

    def affordable(self, epsilon: Exact | None = None) -> Mask:
        """Which people's limits allow a release at this price."""
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        if self.limit is None:
            return np.ones(len(self.people), dtype=bool)
        return self._spent.after(price) <= self._spent.scaled(self.limit)

    def release(
        self, true_states: ArrayLike, epsilon: Exact | None = None, active: ArrayLike | None = None
    ) -> BatchRelease:
        """Move everybody one step and answer the active ones; the others skip the step."""
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        states = np.asarray(true_states)
        answered = self._answered(states, active, price)
        time = self.time + 1
        model = self.model.at(time)
        lattice: ObjectArray = np.zeros((len(self.people), self.query.dimension), dtype=np.int64)
        noise_of = np.full(len(self.people), SILENT)
        noises: list[Mechanism] = []
        charged = len(self._charges)
        for possible, members in self._moved_sets(model):
            step = self.plan.at(possible)
            speaking = members[answered[members]]
            said = self._draw(step.mechanism(price), step, states, speaking, time)
            lattice = lattice.astype(np.promote_types(lattice.dtype, said.dtype), copy=False)
            lattice[speaking] = said
            self._charge(step, price, speaking, time)
            if step.mechanism(price) not in noises:
                noises.append(step.mechanism(price))
            noise_of[speaking] = noises.index(step.mechanism(price))
        estimate = self._advance(model, noises, noise_of, lattice)
        self.time = time
        rows = np.flatnonzero(answered)
        return BatchRelease(
            time=time,
            people=rows,
            answer=self.query.in_units(lattice[rows]),
            lattice=lattice[rows],
            estimate=estimate[rows],
            epsilon=price,
            private=self._randomness.private,
            charges=tuple(self._charges[charged:]),
        )

    def skip(self) -> None:
        """Move everybody one step without a word."""
        model = self.model.at(self.time + 1)
        self._moved_sets(model)
        nothing = np.zeros((len(self.people), self.query.dimension), dtype=np.int64)
        self._advance(model, [], np.full(len(self.people), SILENT), nothing)
        self.time += 1

    def _begin(self, start: Start | IntArray | list[Belief]) -> None:
        people, n_states = len(self.people), self.query.n_states
        self._apart: dict[int, Belief] = {}
        if isinstance(start, list) and all(isinstance(belief, Belief) for belief in start):
            self._continue(start)
            return
        starts = np.asarray(start) if not isinstance(start, (Belief, int)) else np.empty(0)
        if starts.shape == (people,) and np.issubdtype(starts.dtype, np.integer):
            used, self._set_of = np.unique(starts, return_inverse=True)
            beliefs = [Belief.certain(int(state), n_states) for state in used]
        else:
            beliefs = [Belief.known(cast("Start", start), n_states)]
            self._set_of = np.zeros(people, dtype=np.int64)
        self._sets = [belief.possible for belief in beliefs]
        known = np.array([b.probabilities for b in beliefs]).T
        self._blocks = [
            np.ascontiguousarray(known[:, self._set_of[first : first + BLOCK]])
            for first in range(0, people, BLOCK)
        ]
        for number, belief in enumerate(beliefs):
            if not belief.is_plain:
                self._apart |= dict.fromkeys(np.flatnonzero(self._set_of == number), belief)

    def _continue(self, beliefs: list[Belief]) -> None:
        """Take up everybody where they stand."""
        if len(beliefs) != len(self.people):
            raise ArgumentError(
                f"start must hold {len(self.people)} beliefs, one a person, got {len(beliefs)}"
            )
        numbers: dict[bytes, int] = {}
        self._sets = []
        self._set_of = np.empty(len(beliefs), dtype=np.int64)
        for person, belief in enumerate(beliefs):
            name = belief.possible.tobytes()
            if name not in numbers:
                numbers[name] = len(self._sets)
                self._sets.append(belief.possible)
            self._set_of[person] = numbers[name]
            if not belief.is_plain:
                self._apart[person] = belief
        self._blocks = [
            np.array([belief.probabilities for belief in beliefs[first : first + BLOCK]]).T.copy()
            for first in range(0, len(beliefs), BLOCK)
        ]

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
            spent = self.ledger(first).spent
            remaining = (self.limit or Fraction(0)) - spent
            raise BudgetError(spent=spent, requested=price, remaining=remaining)
        return answered

    def _moved_sets(self, model: MarkovModel) -> list[tuple[Mask, IntArray]]:
        """The possible sets after one step, each with the people it is true of."""
        numbers: dict[bytes, int] = {}
        moved: list[Mask] = []
        target = np.empty(len(self._sets), dtype=np.int64)
        for old, possible in enumerate(self._sets):
            after = model.successors(possible)
            name = after.tobytes()
            if name not in numbers:
                numbers[name] = len(moved)
                moved.append(after)
            target[old] = numbers[name]
        self._sets_before, self._set_before = self._sets, self._set_of
        self._sets, self._set_of = moved, target[self._set_of]
        order = np.argsort(self._set_of, kind="stable")
        bounds = np.searchsorted(self._set_of[order], np.arange(len(moved) + 1))
        return [
            (possible, order[start:end])
            for possible, start, end in zip(moved, bounds[:-1], bounds[1:], strict=True)
        ]

    def _draw(
        self, mechanism: Mechanism, step: Protected, states: IntArray, people: IntArray, time: int
    ) -> ObjectArray:
        """The answers of some people: the one place that a true state meets noise."""
        context = (b"%d" % time, self.plan.mechanism.encode())
        used = states[people].astype(np.int64)
        outside = ~step.possible[used]
        used[outside] = self.query.nearest_states(used[outside], step.possible)
        names = [self._names[person] for person in people]
        noise = fan_of(mechanism.body).draw_many(
            mechanism.epsilon, self._randomness, names, (*context, *mechanism.law), used
        )
        # Below 2**62 each, or Python integers: the sum never wraps.
        return lattice_vector(self.query.points[used].astype(noise.dtype) + noise)

    def _charge(self, step: Protected, price: Fraction, people: IntArray, time: int) -> None:
        if len(people):
            entry = Entry(time, self.query.name, price, step.constrained(price), self.scenario)
            self._charges.append(Charge(people, entry, step.statement(price)))
            self._spent.add(people, price)

    def _advance(
        self,
        model: MarkovModel,
        noises: list[Mechanism],
        noise_of: IntArray,
        lattice: ObjectArray,
    ) -> FloatArray:
        """Move every belief and condition it on the person's answer; gives the means."""
        means = np.zeros((len(self.people), self.query.dimension))
        plainly = self._needs_care(model, noises, noise_of, lattice)

        def move(block: int) -> list[int]:
            return self._move_block(block, model, noises, noise_of, lattice, plainly, means)

        blocks = range(len(self._blocks))
        if self.threads == 1:
            left = [move(block) for block in blocks]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                left = list(pool.map(move, blocks))
        for person in chain(np.flatnonzero(plainly).tolist(), *left):
            prior = self._before(person).predict(model)
            posterior, mean = prior, means[person]
            if noise_of[person] != SILENT:
                answer = lattice_vector(lattice[person])
                posterior, mean = conditioned(prior, noises[noise_of[person]], answer)
            means[person] = mean
            self._keep(person, posterior)
        return means

    def _needs_care(
        self,
        model: MarkovModel,
        noises: list[Mechanism],
        noise_of: IntArray,
        lattice: ObjectArray,
    ) -> Mask:
        """Who is moved as a single stream would be: rare moves, flat hulls, far answers."""
        care = np.zeros(len(self.people), dtype=bool)
        care[list(self._apart)] = True
        if model.transition.data.min() < SAFE_MOVE:
            care[:] = True
        for number, noise in enumerate(noises):
            far = (np.abs(lattice) > noise.furthest).any(axis=1)
            care |= np.asarray(far, dtype=bool) & (noise_of == number)
        return care

    def _move_block(
        self,
        block: int,
        model: MarkovModel,
        noises: list[Mechanism],
        noise_of: IntArray,
        lattice: ObjectArray,
        plainly: Mask,
        means: FloatArray,
    ) -> list[int]:
        """Move the people of one block; gives those whose belief left the plain range."""
        before = self._blocks[block]
        first = block * BLOCK
        people = np.arange(first, first + before.shape[1])
        left: list[int] = []
        moved = before
        for number in np.unique(noise_of[people[~plainly[people]]]).tolist():
            columns = np.flatnonzero((noise_of[people] == number) & ~plainly[people])
            noise = None if number == SILENT else noises[number]
            after, least, mean = _moved(model, before, noise, lattice[people], self.query.values)
            safe = columns[least[columns] >= SAFE_PROBABILITY]
            left += people[np.setdiff1d(columns, safe)].tolist()
            means[people[safe]] = mean[:, safe].T
            if len(safe) == len(people):
                moved = after
            else:
                moved = before.copy() if moved is before else moved
                moved[:, safe] = after[:, safe]
        self._blocks[block] = moved
        return left

    def _column(self, person: int) -> FloatArray:
        return self._blocks[person // BLOCK][:, person % BLOCK]

    def _before(self, person: int) -> Belief:
        """The belief before this step, of a person whose column was left as it was."""
        if person in self._apart:
            return self._apart[person]
        possible = self._sets_before[self._set_before[person]]
        return Belief(possible, self._column(person).copy(), None)

    def _keep(self, person: int, posterior: Belief) -> None:
        """Put a belief back: into its column if plain floats hold it, beside the table if not."""
        self._apart.pop(person, None)
        self._column(person)[:] = posterior.probabilities
        if not posterior.is_plain:
            self._apart[person] = posterior
        if not np.array_equal(posterior.possible, self._sets[self._set_of[person]]):
            self._sets.append(posterior.possible)
            self._set_of[person] = len(self._sets) - 1


def _moved(
    model: MarkovModel,
    before: FloatArray,
    noise: Mechanism | None,
    lattice: ObjectArray,
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A block of beliefs after one step and one answer each, their least weights and means."""
    states, people = before.shape
    normals, scale = np.zeros((0, lattice.shape[1])), np.zeros(0)
    epsilon, columns = 0.0, np.zeros((lattice.shape[1], states))
    if noise is not None and noise.facets is not None:
        columns, normals, offsets = noise.facets
        scale, epsilon = 1.0 / offsets, float(noise.epsilon)
    incoming = model.incoming
    after, logs = np.empty((2, states, people))
    kernels.crowd.weigh(
        incoming.indptr,
        incoming.indices,
        incoming.data,
        before,
        normals @ columns,
        normals @ lattice.T.astype(np.float64),
        scale,
        epsilon,
        after,
        logs,
    )
    np.exp(logs, out=logs)
    means = np.empty((lattice.shape[1], people))
    least = kernels.crowd.settle(after, logs, values, means)
    return after, least, means
