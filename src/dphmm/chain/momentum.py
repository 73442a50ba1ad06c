"""Momentum: a chain over places with the direction of the last move, or the length of a stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.anywhere import Zeros, chosen_anywhere
from dphmm.chain.ground import RARE, TURNS, Ground, directions, kinds, normalised
from dphmm.chain.memory import MemoryModel
from dphmm.chain.stochastic import check_matrix, check_sequences, count_moves, entries_of
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import exact, whole

__all__ = ["PATIENCE", "TRUST", "WEIGHT", "MomentumModel", "contexts_of", "draw_momentum"]

WEIGHT = 100.0
TRUST = 30.0
PATIENCE = 12
"""What the weights are unless told otherwise: those that predict moves of people who were not
learned from best, in the mean over five folds of GeoLife. Public constants, so they cost no
privacy."""

RARELY = 0.001
"""The probability of going anywhere: less than for counted moves alone, since every move within
reach is one of the model's own."""

HABIT = 20.0
"""So many moves of any context are added to those that were seen in one."""


class MomentumModel(MemoryModel):
    """A chain whose states are places with a context: the last move's direction, or a stay.

    There are eight directions, and a stay is told apart by its length up to `patience` steps.
    Somebody without a past has just arrived: the first step of a stay.

    Args:
        transition: The moves between states; those of place 0 come first, in order of context.
        n_places: How many places there are.
        patience: The steps up to which stays are told apart.
        anywhere: The probability that a step goes anywhere.
        density: Where it goes then: one probability a place; all alike by default.

    >>> walks = [[0, 1, 2, 3, 3, 3, 2, 1, 0], [3, 2, 1, 0, 0, 0, 1, 2, 3]]
    >>> model = MomentumModel.fit(walks, places=[0, 1, 2, 3], patience=2)
    >>> model
    MomentumModel(4 places, 40 states, 140 moves, 0.001 anywhere)
    """

    def __init__(
        self,
        transition: Any,
        n_places: int,
        patience: int,
        *,
        anywhere: float = 0.0,
        density: ArrayLike | None = None,
    ) -> None:
        self.patience = whole(patience, "patience", 1)
        contexts = TURNS + self.patience
        places = np.arange(whole(n_places, "n_places", 1))
        states = check_matrix(transition, "transition").shape
        if states != (places.size * contexts,) * 2:
            raise ArgumentError(
                f"transition must have {contexts} states for each of {places.size} places, "
                f"got shape {states}"
            )
        super().__init__(
            transition,
            np.repeat(places, contexts),
            places * contexts + TURNS,
            anywhere=anywhere,
            density=density,
        )

    @classmethod
    def fit(  # type: ignore[override]
        cls,
        sequences: Iterable[ArrayLike],
        *,
        places: ArrayLike,
        weight: float = WEIGHT,
        trust: float = TRUST,
        patience: int = PATIENCE,
        zeros: Zeros = "guesses",
        anywhere: float | None = None,
        density: ArrayLike | None = None,
    ) -> MomentumModel:
        """The model learned from sequences of places.

        Args:
            sequences: Sequences of place numbers; a message names the position of a wrong one,
                never the place.
            places: (n,) or (n, 2) coordinates of the places.
            weight: How many moves from each place go as people go anywhere.
            trust: How many moves from each state go as anybody does from its place, turned to
                what people anywhere do in its context; the rest is counted.
            patience: The steps up to which stays are told apart.
            zeros: As for `MarkovModel.fit`.
            anywhere: The probability that a step goes anywhere; 0.001 by default.
            density: As for `MarkovModel.fit`, one probability a place.
        """
        ground, contexts = Ground(places), TURNS + whole(patience, "patience", 1)
        size = len(ground.places)
        walked = [
            states * contexts + contexts_of(states, ground, contexts - TURNS)
            for states in check_sequences(sequences, size)
        ]
        none = np.zeros(0, dtype=np.int64)
        sources = np.concatenate([none, *(states[:-1] for states in walked)])
        targets = np.concatenate([none, *(states[1:] for states in walked)])
        counts = count_moves(sources, targets, size * contexts)
        return draw_momentum(
            counts, ground=ground, weight=weight, trust=trust,
            zeros=zeros, anywhere=anywhere, density=density,
        )  # fmt: skip

    def _over(self, matrix: sparse.csr_array, anywhere: float) -> MomentumModel:
        density = self.place_density if anywhere else None
        return MomentumModel(
            matrix, self.n_places, self.patience, anywhere=anywhere, density=density
        )


def draw_momentum(
    counts: sparse.csr_array,
    *,
    ground: Ground,
    weight: float = WEIGHT,
    trust: float = TRUST,
    zeros: Zeros = "guesses",
    anywhere: float | None = None,
    density: ArrayLike | None = None,
) -> MomentumModel:
    """The model learned from counts of moves between places with their contexts.

    Args:
        counts: How often each state moved to each.
        ground: Where the places lie.
        weight: As for `MomentumModel.fit`.
        trust: As for `MomentumModel.fit`.
        zeros: As for `MarkovModel.fit`.
        anywhere: As for `MarkovModel.fit`.
        density: As for `MarkovModel.fit`, one probability a place.
    """
    for value, name in ((weight, "weight"), (trust, "trust")):
        if not exact(value, name) > 0:
            raise ArgumentError(f"{name} must be above 0, got {value!r}")
    contexts = counts.shape[0] // len(ground.places)
    share = chosen_anywhere(zeros, anywhere, usual=RARELY)
    matrix = normalised(counts + float(trust) * _general(counts, ground, float(weight)))
    return MomentumModel(
        matrix, len(ground.places), contexts - TURNS, anywhere=share, density=density
    )


def contexts_of(states: IntArray, ground: Ground, patience: int) -> IntArray:
    """The context at each position: a direction 0..7, or 8 and on for the steps of a stay.

    >>> ground = Ground([[0, 0], [1, 0], [1, 1]])
    >>> contexts_of(np.array([0, 0, 1, 1, 1, 1, 2]), ground, 2).tolist()
    [8, 9, 0, 8, 9, 9, 2]
    """
    if not len(states):
        return np.zeros(0, dtype=np.int64)
    direction = np.concatenate([[-1], directions(ground.steps(states[:-1], states[1:]))])
    position = np.arange(len(states))
    last_move = np.maximum.accumulate(np.where(direction >= 0, position, -1))
    stay = np.minimum(position - last_move - 1, patience - 1)
    return np.where(direction >= 0, direction, TURNS + stay).astype(np.int64)


def _general(counts: sparse.csr_array, ground: Ground, weight: float) -> sparse.csr_array:
    """Moves as anybody makes them from a place, turned to what people do in a context."""
    size = len(ground.places)
    contexts = counts.shape[0] // size
    sources, targets = entries_of(counts)
    plain = count_moves(sources // contexts, targets // contexts, size, counts.data)
    first = ground.draw(plain, weight)
    begins, ends = entries_of(first)
    turned = _turned(counts, ground, contexts)
    steps = ground.steps(begins, ends)
    kind, direction = kinds(steps), directions(steps)
    rows, columns, weights = [], [], []
    for context in range(contexts):
        longer = min(context + 1, contexts - 1) if context >= TURNS else TURNS
        rows.append(begins * contexts + context)
        columns.append(ends * contexts + np.where(direction < 0, longer, direction))
        weights.append(first.data * turned[context, kind])
    entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
    return normalised(sparse.csr_array(entries, shape=counts.shape))


def _turned(counts: sparse.csr_array, ground: Ground, contexts: int) -> FloatArray:
    """How much likelier each kind of move is in a context than in all of them together."""
    sources, targets = entries_of(counts)
    kind = kinds(ground.steps(sources // contexts, targets // contexts))
    habits = np.zeros((contexts, 2 * TURNS + 1))
    np.add.at(habits, (sources % contexts, kind), counts.data)
    usual = (habits.sum(axis=0) + RARE) / (habits + RARE).sum()
    share = (habits + HABIT * usual) / (habits.sum(axis=1, keepdims=True) + HABIT)
    return np.asarray(share / usual)
