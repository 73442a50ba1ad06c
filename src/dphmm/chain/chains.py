"""Chains whose transitions change with time: they say which model governs the step into each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import IntArray
from dphmm.chain.anywhere import Zeros, chosen_anywhere
from dphmm.chain.calendar import Calendar
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.memory import Memory
from dphmm.chain.stochastic import (
    check_matrix,
    check_sequences,
    count_moves,
    normalise_rows,
    probabilities_from_counts,
)
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import exact, whole

__all__ = ["Schedule", "TimeVaryingModel"]

TRUST = 30.0
"""Moves of all times that are added to each state's of a part, unless told otherwise."""

Schedule: TypeAlias = "Callable[[int], int] | Sequence[int]"
"""Which model governs the step into a time: a function, or a list that repeats for ever."""


class TimeVaryingModel(Chain):
    """Several models, one of which governs the step into each time.

    Without a schedule the models take turns: with 24 of them and a step an hour, the step
    into time t is governed by model t modulo 24.

    Args:
        models: The models, over the same states.
        schedule: Which model governs the step into a time: a list of numbers that repeats for ever,
            a `Calendar`, or another function of the time. By default the models take turns.

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
        if any(model.memory != self.models[0].memory for model in self.models):
            raise ArgumentError("models must remember alike, got states at different places")
        self._schedule = _schedule(schedule, len(self.models))

    def __repr__(self) -> str:
        return f"TimeVaryingModel({self.n_states} states, {len(self.models)} models)"

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.models[0].n_states

    @property
    def memory(self) -> Memory | None:
        """At which place each state is; None where states are places."""
        return self.models[0].memory

    @property
    def varies(self) -> bool:
        """Whether the moves change with time."""
        return len(self.models) > 1

    @cached_property
    def on_places(self) -> TimeVaryingModel:
        """The models without their memory."""
        if self.memory is None:
            return self
        return TimeVaryingModel([model.on_places.at(0) for model in self.models], self._schedule)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the models and of whose turn it is when."""
        schedule = self.schedule
        named = schedule if isinstance(schedule, Calendar) else list(schedule)
        whole = hashlib.sha256(f"turns {named} ".encode())
        for model in self.models:
            whole.update(model.digest)
        return whole.digest()

    @property
    def schedule(self) -> Calendar | tuple[int, ...]:
        """Whose turn it is when, if that can be written down: a list that repeats, or a calendar.

        A chain whose schedule is another function has no fingerprint and no file.
        """
        schedule = self._schedule
        if isinstance(schedule, Calendar):
            return schedule
        if callable(schedule):
            raise ArgumentError("schedule must be a list to be fingerprinted, got a function")
        return tuple(schedule)

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
    def drawn_to(
        cls,
        model: MarkovModel,
        counts: Sequence[sparse.csr_array],
        schedule: Schedule | None = None,
        *,
        trust: float = TRUST,
    ) -> TimeVaryingModel:
        """A model for each part of the counts, drawn to the one of them all.

        Few moves are seen in an hour of the day, and what is not seen then goes as at any time.

        Args:
            model: The model of all times; every counted move is one of its own.
            counts: For each part how often each state moved to each.
            schedule: Which part governs the step into a time, as for the class.
            trust: How many moves from each state go as they do at any time.
        """
        expect(model, MarkovModel, "model")
        if not exact(trust, "trust") > 0:
            raise ArgumentError(f"trust must be above 0, got {trust!r}")
        general = float(trust) * model.transition
        expect(counts, Iterable, "counts")
        parts = [check_matrix(part, "counts") for part in counts]
        if not parts or any(part.shape != general.shape for part in parts):
            raise ArgumentError(f"counts must be matrices of {general.shape}, got others or none")
        matrices = [normalise_rows(sparse.csr_array(part + general)) for part in parts]
        return cls([model._over(matrix, model.anywhere) for matrix in matrices], schedule)

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
