"""Memory of two steps: a chain over pairs (previous, current), used like a chain over places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.anywhere import Zeros, chosen_anywhere
from dphmm.chain.ground import normalised
from dphmm.chain.memory import MemoryModel
from dphmm.chain.stochastic import (
    check_sequences,
    check_smoothing,
    count_moves,
    entries_of,
    probabilities_from_counts,
)
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import whole
from dphmm.geometry.states import state_numbers

__all__ = ["SecondOrderModel", "draw_pairs", "pair_numbers"]


class SecondOrderModel(MemoryModel):
    """A chain whose next step depends on its last two places, as a chain over pairs.

    A state of this model is a pair (previous, current), and is at its second place. Somebody
    without a past is at the pair (k, k), which every place has; a step that goes anywhere leads
    there too, so every path of places is possible.

    Args:
        transition: The moves between pairs, as for `MarkovModel`.
        pairs: (n, 2) the pair (previous, current) of each state, in order of the current place,
            then of the previous one.
        n_places: How many places the pairs are made of.
        anywhere: The probability that a step goes anywhere.
        density: Where it goes then: one probability a place; all alike by default.

    >>> model = SecondOrderModel.fit([[0, 1, 0, 0, 1, 0, 0]], n_states=2, zeros="facts")
    >>> model.pairs.tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    >>> model.transition.toarray()
    array([[0., 0., 1., 0.],
           [1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 1., 0., 0.]])
    """

    def __init__(
        self,
        transition: Any,
        pairs: ArrayLike,
        n_places: int,
        *,
        anywhere: float = 0.0,
        density: ArrayLike | None = None,
    ) -> None:
        places = whole(n_places, "n_places", 1)
        self.pairs: IntArray = state_numbers(pairs, places, "pairs")
        if self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
            raise ArgumentError(f"pairs must have rows of two states, got {self.pairs.shape}")
        self._keys = pair_numbers(self.pairs[:, 0], self.pairs[:, 1], places)
        if (np.diff(self._keys) <= 0).any():
            raise ArgumentError("pairs must be sorted by their current place and different")
        still = np.arange(places) * (places + 1)
        found = np.isin(still, self._keys)
        if not found.all():
            raise ArgumentError(f"pairs must hold every (k, k), got none for {np.argmin(found)}")
        fresh = np.searchsorted(self._keys, still)
        super().__init__(transition, self.pairs[:, 1], fresh, anywhere=anywhere, density=density)
        sources = np.repeat(np.arange(self.n_states), np.diff(self.transition.indptr))
        if (self.pairs[sources, 1] != self.pairs[self.transition.indices, 0]).any():
            raise ArgumentError("transition must lead from (i, j) only to pairs (j, k)")
        self.pairs.setflags(write=False)

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

        A pair (i, j) that was never left moves to (j, j), and a pair (k, k) that was never left
        as k was left from all its pairs together.

        Args:
            sequences: Sequences of state numbers; a message names the place of a wrong state, never
                the state.
            n_states: How many places the pairs are made of.
            smoothing: This many moves are added to every step from a pair (i, j) to a pair (j, k)
                that was seen anywhere.
            zeros: As for `MarkovModel.fit`.
            anywhere: As for `MarkovModel.fit`.
            density: As for `MarkovModel.fit`, one probability a place.
        """
        share, smoothing = chosen_anywhere(zeros, anywhere), check_smoothing(smoothing)
        checked = [states for states in check_sequences(sequences, n_states) if states.size > 1]
        if not checked:
            raise ArgumentError("sequences must hold at least one sequence of two states")
        walked = [pair_numbers(s[:-1], s[1:], n_states) for s in checked]
        sources = np.concatenate([keys[:-1] for keys in walked])
        targets = np.concatenate([keys[1:] for keys in walked])
        # Whoever is at k without a past moves on as anybody does from there, or stays.
        still = np.arange(n_states) * (n_states + 1)
        moves = np.concatenate(walked)
        begins = (moves % n_states) * (n_states + 1)
        unknown = ~np.isin(begins, sources)
        sources = np.concatenate([sources, begins[unknown]])
        targets = np.concatenate([targets, moves[unknown]])
        keys = np.union1d(moves, still)
        ends = np.setdiff1d(keys, sources)
        sources = np.concatenate([sources, ends])
        targets = np.concatenate([targets, (ends // n_states) * (n_states + 1)])
        places = np.searchsorted(keys, sources), np.searchsorted(keys, targets)
        pairs = np.stack([keys % n_states, keys // n_states], axis=1)
        support = _followers(pairs, n_states) if smoothing else None
        matrix = probabilities_from_counts(count_moves(*places, keys.size), smoothing, support)
        return cls(matrix, pairs, n_states, anywhere=share, density=density)

    def encode(self, sequence: ArrayLike) -> IntArray:
        """The pairs that a sequence of places goes through, one fewer than the places.

        A pair (i, j) that this model does not have is (j, j) if the model can go anywhere, and
        else an error that names its place.

        Args:
            sequence: The numbers of places.
        """
        states = check_sequences([sequence], self.n_places, "sequence")[0]
        wanted = pair_numbers(states[:-1], states[1:], self.n_places)
        places = np.minimum(np.searchsorted(self._keys, wanted), self.n_states - 1)
        wrong = self._keys[places] != wanted
        if self.anywhere:
            return np.where(wrong, self.memory.fresh[states[1:]], places).astype(np.int64)
        if wrong.any():
            raise ArgumentError(
                f"sequence must go through pairs that the model has; "
                f"the step after position {int(np.argmax(wrong))} does not"
            )
        return np.asarray(places, dtype=np.int64)

    def _over(self, matrix: sparse.csr_array, anywhere: float) -> SecondOrderModel:
        density = self.place_density if anywhere else None
        return SecondOrderModel(
            matrix, self.pairs, self.n_places, anywhere=anywhere, density=density
        )


def draw_pairs(
    first: sparse.csr_array,
    sources: IntArray,
    targets: IntArray,
    times: FloatArray,
    *,
    trust: float,
    anywhere: float = 0.0,
    density: ArrayLike | None = None,
) -> SecondOrderModel:
    """The model of counted pairs, drawn to a first-order chain by `trust` moves a pair.

    Args:
        first: The moves of the first-order chain, those that were counted and staying among
            them; its moves are the pairs.
        sources: The pairs that were left, as `pair_numbers` has them.
        targets: The pairs that they led to.
        times: How often each was.
        trust: How many moves from each pair go as anybody does from its current place.
        anywhere: The probability that a step goes anywhere.
        density: Where it goes then.
    """
    size = first.shape[0]
    before, after = entries_of(first)
    keys = pair_numbers(before, after, size)
    order = np.argsort(keys)
    # The number of the pair that each stored move of the first-order chain is.
    number = np.argsort(order)
    previous, current = before[order], after[order]
    width = np.diff(first.indptr)[current]
    offsets = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
    entries = np.repeat(first.indptr[:-1][current], width) + offsets
    rows = np.repeat(np.arange(len(keys)), width)
    shape = (len(keys), len(keys))
    general = sparse.csr_array((first.data[entries], (rows, number[entries])), shape=shape)
    known = keys[order]
    places = np.searchsorted(known, sources), np.searchsorted(known, targets)
    counts = count_moves(*places, len(keys), times)
    pairs = np.stack([previous, current], axis=1)
    matrix = normalised(counts + trust * general)
    return SecondOrderModel(matrix, pairs, size, anywhere=anywhere, density=density)


def pair_numbers(previous: IntArray, current: IntArray, n_places: int) -> IntArray:
    """A number for each pair, in order of the current place, then of the previous one."""
    return np.asarray(current * n_places + previous)


def _followers(pairs: IntArray, n_states: int) -> sparse.csr_array:
    """Which pairs can follow which: (i, j) is followed by every (j, k)."""
    order = np.arange(len(pairs))
    ones = np.ones(len(pairs))
    ends = sparse.csr_array((ones, (order, pairs[:, 1])), shape=(len(pairs), n_states))
    begins = sparse.csr_array((ones, (pairs[:, 0], order)), shape=(n_states, len(pairs)))
    return sparse.csr_array(ends @ begins)
