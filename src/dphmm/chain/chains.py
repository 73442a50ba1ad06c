"""Chains that are more than one matrix: transitions that change with time, and memory of two steps.

Both are used exactly like a `MarkovModel`: they say which model governs the step into each
time, and filter, smoother, path, score, sample and `Stream` do the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import IntArray
from dphmm.chain.anywhere import Zeros, check_anywhere, check_density, chosen_anywhere
from dphmm.chain.belief import Belief
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.stochastic import (
    check_sequences,
    count_moves,
    freeze,
    pattern,
    probabilities_from_counts,
)
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import whole
from dphmm.geometry.states import state_numbers

__all__ = ["Schedule", "SecondOrderModel", "TimeVaryingModel"]

Schedule: TypeAlias = "Callable[[int], int] | Sequence[int]"
"""Which model governs the step into a time: a function, or a list that repeats for ever."""


class TimeVaryingModel(Chain):
    """Several models, one of which governs the step into each time.

    Without a schedule the models take turns: with 24 of them and a step an hour, the step
    into time t is governed by model t modulo 24.

    Args:
        models: The models, over the same states.
        schedule: Which model governs the step into a time: a list of numbers that repeats for ever,
            or a function of the time. By default the models take turns.

    >>> day = MarkovModel([[0.0, 1.0], [0.0, 1.0]])
    >>> night = MarkovModel([[1.0, 0.0], [1.0, 0.0]])
    >>> chain = TimeVaryingModel([night, day])
    >>> chain.sample(4, rng=np.random.default_rng(0), start=0)
    array([1, 0, 1, 0])
    """

    def __init__(self, models: Sequence[MarkovModel], schedule: Schedule | None = None) -> None:
        expect(models, Iterable, "models")
        self.models = tuple(models)
        if not self.models:
            raise ArgumentError("models must be one MarkovModel or more, got none")
        for model in self.models:
            expect(model, MarkovModel, "models")
        sizes = sorted({model.n_states for model in self.models})
        if len(sizes) > 1:
            raise ArgumentError(f"models must have the same states, got {sizes} of them")
        self._schedule = _schedule(schedule, len(self.models))

    def __repr__(self) -> str:
        return f"TimeVaryingModel({self.n_states} states, {len(self.models)} models)"

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.models[0].n_states

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the models and of whose turn it is when."""
        if callable(self._schedule):
            raise ArgumentError("schedule must be a list to be fingerprinted, got a function")
        whole = hashlib.sha256(f"turns {list(self._schedule)} ".encode())
        for model in self.models:
            whole.update(model.digest)
        return whole.digest()

    @property
    def has_stated_zeros(self) -> bool:
        """Whether one of the models calls a move impossible because somebody said so."""
        return any(model.has_stated_zeros for model in self.models)

    def at(self, time: int) -> MarkovModel:
        """The model that governs the step into `time`.

        Args:
            time: The time that the step leads into.
        """
        whole(time, "time", None)
        return self.models[_slot(self._schedule, time, len(self.models))]

    @classmethod
    def fit(
        cls,
        sequences: Iterable[ArrayLike],
        *,
        n_states: int,
        n_models: int,
        schedule: Schedule | None = None,
        first_times: Sequence[int] | None = None,
        smoothing: float = 0.0,
        support: Any = None,
        zeros: Zeros = "guesses",
        anywhere: float | None = None,
        density: ArrayLike | None = None,
    ) -> TimeVaryingModel:
        """The models learned by counting each move for the time it leads into.

        Smoothing and states that are never left are as in `MarkovModel.fit`, for each model by
        itself.

        Args:
            sequences: Sequences of state numbers; a message names the place of a wrong state, never
                the state.
            n_states: How many states there are.
            n_models: How many models to learn.
            schedule: Which of them governs the step into a time, as for the class.
            first_times: The time at which each sequence begins; 0 by default.
            smoothing: This many moves are added to every move that was seen or that `support`
                allows.
            support: A square matrix, sparse or not, whose entries above zero mark moves that are
                possible though nobody made them; needs smoothing above zero.
            zeros: As for `MarkovModel.fit`, for every model.
            anywhere: As for `MarkovModel.fit`, for every model.
            density: As for `MarkovModel.fit`, for every model.

        >>> chain = TimeVaryingModel.fit([[0, 1, 0, 1]], n_states=2, n_models=2)
        >>> chain.at(1).transition.toarray()
        array([[0., 1.],
               [0., 1.]])
        """
        whole(n_models, "n_models", 1)
        share = chosen_anywhere(zeros, anywhere)
        checked = check_sequences(sequences, n_states)
        begins = [0] * len(checked)
        if first_times is not None:
            expect(first_times, Iterable, "first_times")
            begins = [whole(time, "first_times", None) for time in first_times]
        if len(begins) != len(checked):
            raise ArgumentError(f"first_times must have {len(checked)} times, got {len(begins)}")
        chosen = _schedule(schedule, n_models)
        parts: list[list[tuple[IntArray, IntArray]]] = [[] for _ in range(n_models)]
        for begin, states in zip(begins, checked, strict=True):
            times = range(begin + 1, begin + states.size)
            slots = np.array([_slot(chosen, time, n_models) for time in times], dtype=np.int64)
            for slot in np.unique(slots):
                steps = np.flatnonzero(slots == slot)
                parts[slot].append((states[steps], states[steps + 1]))
        none = np.zeros(0, dtype=np.int64)
        models = []
        for part in parts:
            sources = np.concatenate([none, *(source for source, _ in part)])
            targets = np.concatenate([none, *(target for _, target in part)])
            counts = count_moves(sources, targets, n_states)
            matrix = probabilities_from_counts(counts, smoothing, support)
            models.append(MarkovModel(matrix, anywhere=share, density=density))
        return cls(models, schedule)


def _schedule(schedule: Schedule | None, n_models: int) -> Schedule:
    if schedule is None:
        return tuple(range(n_models))
    if callable(schedule):
        return schedule
    expect(schedule, Iterable, "schedule")
    slots = tuple(whole(slot, "schedule") for slot in schedule)
    if not slots:
        raise ArgumentError("schedule must hold at least one number, got none")
    for time in range(len(slots)):
        _slot(slots, time, n_models)
    return slots


def _slot(schedule: Schedule, time: int, n_models: int) -> int:
    slot = schedule(time) if callable(schedule) else schedule[time % len(schedule)]
    if not 0 <= slot < n_models:
        raise ArgumentError(
            f"schedule must give a number from 0 to {n_models - 1}, got {slot!r} for time {time}"
        )
    return slot


class SecondOrderModel(MarkovModel):
    """A chain whose next step depends on its last two states, as a chain over pairs.

    A state of this model is a pair (previous, current), one for each pair seen. `current`
    gives each pair's second state, which lifts what is known about states to pairs:
    `Query(values[model.current])`, `PolicyGraph.by_category(labels[model.current])`.

    A step that goes anywhere leads to a place k and forgets whence it came: to the pair (k, k).
    So the term has rank one on pairs too, and every path of places is possible.

    Args:
        transition: The moves between pairs, as for `MarkovModel`.
        pairs: (n, 2) the pair (previous, current) of each state of this model, sorted.
        n_base_states: How many states the pairs are made of.
        anywhere: The probability that a step goes anywhere; needs every pair (k, k).
        density: Where it goes then: one probability a place; all alike by default.

    >>> model = SecondOrderModel.fit([[0, 1, 0, 0, 1, 0, 0]], n_states=2, zeros="facts")
    >>> model.pairs.tolist()
    [[0, 0], [0, 1], [1, 0]]
    >>> model.transition.toarray()
    array([[0., 1., 0.],
           [0., 0., 1.],
           [1., 0., 0.]])
    """

    def __init__(
        self,
        transition: Any,
        pairs: ArrayLike,
        n_base_states: int,
        *,
        anywhere: float = 0.0,
        density: ArrayLike | None = None,
    ) -> None:
        super().__init__(transition)
        self.n_base_states = whole(n_base_states, "n_base_states", 1)
        self.pairs: IntArray = state_numbers(pairs, n_base_states, "pairs")
        if self.pairs.shape != (self.n_states, 2):
            raise ArgumentError(
                f"pairs must have {self.n_states} rows of two states, got {self.pairs.shape}"
            )
        keys = self._keys(self.pairs[:, 0], self.pairs[:, 1])
        if (np.diff(keys) <= 0).any():
            raise ArgumentError("pairs must be sorted and different")
        sources = np.repeat(np.arange(self.n_states), np.diff(self.transition.indptr))
        if (self.pairs[sources, 1] != self.pairs[self.transition.indices, 0]).any():
            raise ArgumentError("transition must lead from (i, j) only to pairs (j, k)")
        self.pairs.setflags(write=False)
        places = check_density(density, self.n_base_states)
        if check_anywhere(anywhere):
            still = np.arange(self.n_base_states)
            found = np.isin(self._keys(still, still), keys)
            if not found.all():
                raise ArgumentError(
                    f"pairs must hold every (k, k) when anywhere is above 0, got none for "
                    f"{int(np.argmin(found))}"
                )
            on_pairs = np.zeros(self.n_states)
            on_pairs[np.searchsorted(keys, self._keys(still, still))] = places
            self._go_anywhere(check_anywhere(anywhere), on_pairs)

    def __repr__(self) -> str:
        return f"SecondOrderModel({self.n_base_states} states, {self.n_states} pairs)"

    @property
    def current(self) -> IntArray:
        """The current state of each pair."""
        return self.pairs[:, 1]

    @classmethod
    def fit(  # type: ignore[override]
        cls,
        sequences: Iterable[ArrayLike],
        *,
        n_states: int,
        smoothing: float = 0.0,
        zeros: Zeros = "guesses",
        anywhere: float | None = None,
        density: ArrayLike | None = None,
    ) -> SecondOrderModel:
        """The model learned by counting how pairs of states follow each other.

        A pair (i, j) that was never left stays put: it counts as moving to (j, j) once. Where
        zeros are guesses every place k has a pair (k, k); if it was never left, it moves as k
        was left from all its pairs together.

        Args:
            sequences: Sequences of state numbers; a message names the place of a wrong state, never
                the state.
            n_states: How many states the pairs are made of.
            smoothing: This many moves are added to every step from a pair (i, j) to a pair (j, k)
                that was seen anywhere.
            zeros: As for `MarkovModel.fit`.
            anywhere: As for `MarkovModel.fit`.
            density: As for `MarkovModel.fit`, one probability a place.
        """
        share = chosen_anywhere(zeros, anywhere)
        checked = [states for states in check_sequences(sequences, n_states) if states.size > 1]
        if not checked:
            raise ArgumentError("sequences must hold at least one sequence of two states")
        keyed = [states[:-1] * n_states + states[1:] for states in checked]
        sources = np.concatenate([keys[:-1] for keys in keyed])
        targets = np.concatenate([keys[1:] for keys in keyed])
        keys = np.unique(np.concatenate(keyed))
        if share:
            # Whoever has gone anywhere moves on as anybody does from there.
            still = np.setdiff1d(np.arange(n_states) * (n_states + 1), sources)
            moves = np.concatenate(keyed)
            moves = moves[np.isin((moves // n_states) * (n_states + 1), still)]
            sources = np.concatenate([sources, (moves // n_states) * (n_states + 1)])
            targets = np.concatenate([targets, moves])
            keys = np.union1d(keys, still)
        ends = np.setdiff1d(keys, sources)
        stay = (ends % n_states) * (n_states + 1)
        sources = np.concatenate([sources, ends])
        targets = np.concatenate([targets, stay])
        keys = np.unique(np.concatenate([keys, stay]))
        counts = count_moves(
            np.searchsorted(keys, sources), np.searchsorted(keys, targets), keys.size
        )
        pairs = np.stack([keys // n_states, keys % n_states], axis=1)
        support = _followers(pairs, n_states) if smoothing else None
        matrix = probabilities_from_counts(counts, smoothing, support)
        return cls(matrix, pairs, n_states, anywhere=share, density=density)

    def encode(self, sequence: ArrayLike) -> IntArray:
        """The pairs that a sequence of states goes through, one fewer than the states.

        A pair (i, j) that this model does not have is (j, j) if the model can go anywhere, and
        else an error that names its place.

        Args:
            sequence: State numbers.
        """
        states = check_sequences([sequence], self.n_base_states, "sequence")[0]
        wanted = self._keys(states[:-1], states[1:])
        known = self._keys(self.pairs[:, 0], self.pairs[:, 1])
        places = np.minimum(np.searchsorted(known, wanted), known.size - 1)
        wrong = known[places] != wanted
        if self.anywhere:
            still = np.searchsorted(known, self._keys(states[1:], states[1:]))
            return np.where(wrong, still, places).astype(np.int64)
        if wrong.any():
            raise ArgumentError(
                f"sequence must go through pairs that the model has; "
                f"the step after position {int(np.argmax(wrong))} does not"
            )
        return np.asarray(places, dtype=np.int64)

    def current_belief(self, belief: Belief) -> Belief:
        """The belief over states that a belief over pairs means: each state's pairs together.

        Args:
            belief: A belief over the pairs.
        """
        expect(belief, Belief, "belief")
        if belief.n_states != self.n_states:
            raise ArgumentError(f"belief must have {self.n_states} pairs, got {belief.n_states}")
        none = np.zeros(self.n_base_states)
        none.setflags(write=False)
        return belief._moved(self._merging, none, pattern(self._merging) @ belief.possible)

    @cached_property
    def _merging(self) -> sparse.csr_array:
        columns = np.arange(self.n_states)
        ones = np.ones(self.n_states)
        shape = (self.n_base_states, self.n_states)
        return freeze(sparse.csr_array((ones, (self.current, columns)), shape=shape))

    def _keys(self, previous: IntArray, current: IntArray) -> IntArray:
        return previous * self.n_base_states + current

    def _with(self, probabilities: Any) -> MarkovModel:
        indices, indptr = self._transition.indices, self._transition.indptr
        shape = self._transition.shape
        matrix = sparse.csr_array((probabilities, indices, indptr), shape=shape)
        return self._over(matrix, self.anywhere)

    @cached_property
    def own(self) -> MarkovModel:
        """The pairs' own moves alone; the model itself if its zeros are facts."""
        return self._over(self._transition, 0.0) if self.anywhere else self

    def _over(self, matrix: sparse.csr_array, anywhere: float) -> SecondOrderModel:
        """The model over the same pairs with other moves."""
        if not anywhere:
            return SecondOrderModel(matrix, self.pairs, self.n_base_states)
        density = np.bincount(self.current, self.density, minlength=self.n_base_states)
        return SecondOrderModel(
            matrix, self.pairs, self.n_base_states, anywhere=anywhere, density=density
        )


def _followers(pairs: IntArray, n_states: int) -> sparse.csr_array:
    """Which pairs can follow which: (i, j) is followed by every (j, k)."""
    order = np.arange(len(pairs))
    ones = np.ones(len(pairs))
    ends = sparse.csr_array((ones, (order, pairs[:, 1])), shape=(len(pairs), n_states))
    begins = sparse.csr_array((ones, (pairs[:, 0], order)), shape=(n_states, len(pairs)))
    return sparse.csr_array(ends @ begins)
