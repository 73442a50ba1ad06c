"""Many people's beliefs as columns of tables, moved together on all cores.

People stand in blocks, a column each, and threads that hold no lock move a block at a time.
Somebody whose belief leaves the range of plain floats, or whose hull is flat, is carried by
the same code as a single stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any, cast

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.chain.belief import Belief, Start
from dphmm.chain.estimates import Estimate
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.stochastic import SAFE_PROBABILITY
from dphmm.errors import ArgumentError
from dphmm.geometry.query import Query
from dphmm.geometry.states import as_array
from dphmm.noise.mechanism import Mechanism, lattice_vector
from dphmm.release.advance import conditioned

__all__ = ["BeliefTable", "read_beliefs", "read_times"]

BLOCK = 128
"""People that one thread moves at a time; its scratch is two such blocks."""

SAFE_MOVE = 1e-20
"""With moves no rarer than this a safe probability stays above zero through a product."""

SILENT = -1


class BeliefTable:
    """What is believed about each of many people.

    Args:
        beliefs: One for each person; the same object may stand for many.
        query: What their answers are about.
        threads: How many threads move them.
        estimate: What stands for a belief.
    """

    def __init__(
        self, beliefs: Sequence[Belief], query: Query, threads: int, estimate: Estimate = "mean"
    ) -> None:
        self._estimate = estimate
        self._query = query
        self._threads = threads
        self._people = len(beliefs)
        self._is_between = False
        """Whether a step was begun and not finished."""
        self._apart: dict[int, Belief] = {}
        numbers: dict[bytes, int] = {}
        named: dict[int, int] = {}
        self._sets: list[Mask] = []
        self._set_of = np.empty(len(beliefs), dtype=np.int64)
        for person, belief in enumerate(beliefs):
            number = named.get(id(belief))
            if number is None:
                name = belief.possible.tobytes()
                number = named[id(belief)] = numbers.setdefault(name, len(self._sets))
                if number == len(self._sets):
                    self._sets.append(belief.possible)
            self._set_of[person] = number
            if not belief.is_plain:
                self._apart[person] = belief
        self._blocks = [
            np.array([belief.probabilities for belief in beliefs[first : first + BLOCK]]).T.copy()
            for first in range(0, len(beliefs), BLOCK)
        ]

    @property
    def memory(self) -> int:
        """Bytes that the beliefs and the threads' scratch take."""
        states = len(self._blocks[0]) if self._blocks else 0
        scratch = self._threads * 2 * BLOCK * states * 8
        return sum(block.nbytes for block in self._blocks) + scratch

    def belief(self, person: int) -> Belief:
        """What is believed about one person now."""
        self.check_whole()
        if person in self._apart:
            return self._apart[person]
        return Belief(self._sets[self._set_of[person]], self._column(person).copy(), None)

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """A step of everybody, with its times and charges; nobody goes on from half of one."""
        self.check_whole()
        self._is_between = True
        yield
        self._is_between = False

    def check_whole(self) -> None:
        """Refuse to go on, or to tell anything, from the middle of a step."""
        if self._is_between:
            raise ArgumentError(
                "batch must be resumed from standings that were taken before, got one that was "
                "stopped in the middle of a step"
            )

    def skip(self, models: Sequence[MarkovModel]) -> None:
        """Move everybody without a word, by one model after the other."""
        nothing = np.zeros((self._people, self._query.dimension), dtype=np.int64)
        for model in models:
            self._move(model, [], np.full(self._people, SILENT), nothing)

    def next_sets(self, models: Sequence[MarkovModel]) -> list[tuple[Mask, IntArray]]:
        """Where the possible sets will be, as places, with the people concerned; nothing moves."""
        self.check_whole()
        sets, target = self._sets, np.arange(len(self._sets))
        for model in models:
            sets, found = _next_sets(model, sets)
            target = found[target]
        set_of = target[self._set_of]
        order = np.argsort(set_of, kind="stable")
        bounds = np.searchsorted(set_of[order], np.arange(len(sets) + 1))
        return [
            (models[-1].place_mask(possible), order[start:end])
            for possible, start, end in zip(sets, bounds[:-1], bounds[1:], strict=True)
        ]

    def move(
        self,
        models: Sequence[MarkovModel],
        noises: list[Mechanism],
        noise_of: IntArray,
        lattice: ObjectArray,
    ) -> FloatArray:
        """Move everybody by one model after the other, and condition on the answers at the last.

        Gives the estimates.
        """
        self.skip(models[:-1])
        return self._move(models[-1], noises, noise_of, lattice)

    def _move(
        self,
        model: MarkovModel,
        noises: list[Mechanism],
        noise_of: IntArray,
        lattice: ObjectArray,
    ) -> FloatArray:
        """Move every set and belief one step, and condition on the answers; gives the estimates."""
        sets, target = _next_sets(model, self._sets)
        self._sets_before, self._set_before = self._sets, self._set_of
        self._sets, self._set_of = sets, target[self._set_of]
        estimates = np.zeros((self._people, self._query.dimension))
        plainly = self._needs_care(model, noises, noise_of, lattice)

        def move_block(block: int) -> list[int]:
            return self._move_block(block, model, noises, noise_of, lattice, plainly, estimates)

        blocks = range(len(self._blocks))
        if self._threads == 1:
            left = [move_block(block) for block in blocks]
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                left = list(pool.map(move_block, blocks))
        for person in chain(np.flatnonzero(plainly).tolist(), *left):
            prior = self._before(person).predict(model)
            if noise_of[person] == SILENT:
                posterior = prior
                estimates[person] = model.estimate(prior, self._query.values, self._estimate)
            else:
                answer, noise = lattice_vector(lattice[person]), noises[noise_of[person]]
                found = conditioned(prior, noise, answer, self._estimate, model.memory)
                posterior, estimates[person] = found
            self._keep(person, posterior)
        return estimates

    def _needs_care(
        self,
        model: MarkovModel,
        noises: list[Mechanism],
        noise_of: IntArray,
        lattice: ObjectArray,
    ) -> Mask:
        """Who is moved as a single stream would be: rare moves, flat hulls, far answers."""
        care = np.zeros(self._people, dtype=bool)
        care[list(self._apart)] = True
        # What jumps to a state outweighs whatever its moves lose.
        if model.incoming.data.min() < SAFE_MOVE and model.jumps.min() < SAFE_MOVE:
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
        estimates: FloatArray,
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
            after, least, mean = _moved(model, before, noise, lattice[people], self._query.values)
            safe = columns[least[columns] >= SAFE_PROBABILITY]
            left += people[np.setdiff1d(columns, safe)].tolist()
            if self._estimate == "median":
                kernels.estimate.medians(after, model.current, self._query.values, safe, mean)
            estimates[people[safe]] = mean[:, safe].T
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


def _next_sets(model: MarkovModel, sets: Sequence[Mask]) -> tuple[list[Mask], IntArray]:
    """The different sets a step later, and which of them each one leads to."""
    numbers: dict[bytes, int] = {}
    moved: list[Mask] = []
    target = np.empty(len(sets), dtype=np.int64)
    for old, possible in enumerate(sets):
        after = model.successors(possible)
        name = after.tobytes()
        if name not in numbers:
            numbers[name] = len(moved)
            moved.append(after)
        target[old] = numbers[name]
    return moved, target


def _moved(
    model: MarkovModel,
    before: FloatArray,
    noise: Mechanism | None,
    lattice: ObjectArray,
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A block of beliefs after one step and one answer each, their least weights and means."""
    states, people = before.shape
    places = len(values)
    normals, offsets, free = np.zeros((0, lattice.shape[1])), np.zeros(0), np.zeros(0)
    epsilon, columns = 0.0, np.zeros((lattice.shape[1], places))
    if noise is not None and noise.facets is not None:
        columns, normals, offsets, free = noise.facets
        epsilon = float(noise.epsilon)
    incoming = model.incoming
    after, logs = np.empty((states, people)), np.empty((places, people))
    kernels.batch.weigh(
        incoming.indptr,
        incoming.indices,
        incoming.data,
        model.jumps,
        before,
        normals @ columns,
        normals @ lattice.T.astype(np.float64),
        offsets,
        free,
        epsilon,
        after,
        logs,
    )
    np.exp(logs, out=logs)
    means = np.empty((lattice.shape[1], people))
    least = kernels.batch.settle(after, model.lift(logs), model.lift(values), means)
    return after, least, means


def read_times(time: int | Sequence[int] | IntArray | None, people: int) -> IntArray:
    """The slot of everybody's start."""
    given = as_array(0 if time is None else time, "time")
    if not np.issubdtype(given.dtype, np.integer) or given.shape not in ((), (people,)):
        raise ArgumentError(f"time must be a slot of the clock, or one for each of {people} people")
    return np.array(np.broadcast_to(given, (people,)), dtype=np.int64)


def read_beliefs(start: Start | IntArray | list[Belief], people: int, model: Chain) -> list[Belief]:
    """One belief a person; those who start alike share one."""
    if isinstance(start, list) and all(isinstance(belief, Belief) for belief in start):
        if len(start) != people:
            raise ArgumentError(f"start must hold {people} beliefs, one a person, got {len(start)}")
        return [model.known(belief) for belief in cast("list[Belief]", start)]
    given: Any = start
    starts = as_array(given, "start") if not isinstance(start, (Belief, int)) else np.empty(0)
    if starts.shape == (people,) and np.issubdtype(starts.dtype, np.integer):
        made = {state: model.known(state) for state in np.unique(starts).tolist()}
        return [made[state] for state in starts.tolist()]
    return [model.known(cast("Start", start))] * people
