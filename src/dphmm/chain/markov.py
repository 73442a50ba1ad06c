"""Markov models: sparse transitions, learned by counting or by EM.

The stored pattern of the matrix *is* the set of possible moves. What is believed about where
the chain is lives in `Belief`; `Chain` is what plain, time-varying and second-order models
have in common.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.chain import inference
from dphmm.chain.belief import Belief, Start
from dphmm.chain.inference import Observations
from dphmm.chain.stochastic import (
    SUM_TOLERANCE,
    check_matrix,
    check_sequences,
    check_smoothing,
    count_moves,
    freeze,
    normalise_rows,
    pattern,
    probabilities_from_counts,
    row_sums,
)
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import whole
from dphmm.geometry.states import possible_mask

__all__ = ["Belief", "Chain", "Learned", "MarkovModel", "Observations", "Start"]


class Chain(ABC):
    """What every model of a chain can do once it says which transitions hold at which time.

    `start` is what is known at time 0; the first observation is at time 1, after one
    transition (Algorithm 2). Observations are arrays of shape (steps, n_states) of
    log-likelihoods, or any iterable of rows in which None is a step without an observation.
    """

    @property
    @abstractmethod
    def n_states(self) -> int:
        """How many states there are."""

    @abstractmethod
    def at(self, time: int) -> MarkovModel:
        """The model that governs the step into `time`.

        Args:
            time: The time that the step leads into.
        """

    @property
    @abstractmethod
    def digest(self) -> bytes:
        """A fingerprint of every probability, to the last bit, the same on every machine."""

    def filter(self, observations: Observations, *, start: Start, time: int = 0) -> list[Belief]:
        """The belief after each step, given the observations up to it.

        One step at a time, this is `belief.predict(chain.at(t)).condition(row)`.

        Args:
            observations: The log-likelihoods of every state, one row a step; None for a step
                without an observation.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`; the first observation belongs to the next.
        """
        return inference.filter_beliefs(self, *self._known(observations, start, time))[0]

    def smooth(self, observations: Observations, *, start: Start, time: int = 0) -> list[Belief]:
        """The belief at each step, given all observations, earlier and later.

        Args:
            observations: The log-likelihoods of every state, one row a step; None for a step
                without an observation.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`; the first observation belongs to the next.
        """
        return inference.smooth_beliefs(self, *self._known(observations, start, time))

    def decode(
        self, observations: Observations, *, start: Start, time: int = 0
    ) -> tuple[float, IntArray]:
        """The most likely path: its log-probability with the observations, and its states.

        The state at `start` is summed over, not chosen; ties go to the lowest state.

        Args:
            observations: The log-likelihoods of every state, one row a step; None for a step
                without an observation.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`; the first observation belongs to the next.
        """
        return inference.decode_path(self, *self._known(observations, start, time))

    def score(self, observations: Observations, *, start: Start, time: int = 0) -> float:
        """The log-probability of the observations.

        Args:
            observations: The log-likelihoods of every state, one row a step; None for a step
                without an observation.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`; the first observation belongs to the next.
        """
        return inference.filter_beliefs(self, *self._known(observations, start, time))[1]

    def sample(
        self, length: int, *, rng: np.random.Generator, start: Start, time: int = 0
    ) -> IntArray:
        """The states of one random walk, the first of them one step after `start`.

        Args:
            length: How many steps to walk.
            rng: The numpy generator to draw from; a walk is an experiment, not a release.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`.
        """
        whole(length, "length")
        whole(time, "time", None)
        expect(rng, np.random.Generator, "rng")
        return inference.sample_path(self, length, Belief.known(start, self.n_states), rng, time)

    def _known(
        self, observations: Observations, start: Start, time: int
    ) -> tuple[list[FloatArray | None], Belief, int]:
        rows = inference.check_rows(observations, self.n_states)
        return rows, Belief.known(start, self.n_states), whole(time, "time", None)


class Learned(NamedTuple):
    """What EM gives: the model, and what each iteration reached, which never falls."""

    model: MarkovModel
    """The model that was reached."""
    history: FloatArray
    """What is maximised, for every model on the way."""


class MarkovModel(Chain):
    """A first-order chain: `transition[i, j]` is the probability of moving from i to j.

    The matrix is kept sparse, so 100,000 states cost what their moves cost. The stored
    pattern is the set of possible moves: zeros are dropped, and a probability too small for
    a normal float is still possible.

    Args:
        transition: A square matrix, sparse or not, whose rows sum to one up to 1e-6; they are
            divided by their sums.

    >>> model = MarkovModel([[0.5, 0.5], [0.0, 1.0]])
    >>> model
    MarkovModel(2 states, 3 moves)
    >>> model.transition.toarray()
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, transition: ArrayLike | sparse.sparray | sparse.spmatrix) -> None:
        matrix = check_matrix(transition, "transition")
        if matrix.shape[0] == 0:
            raise ArgumentError("transition must have at least one state")
        sums = row_sums(matrix)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > SUM_TOLERANCE:
            raise ArgumentError(
                f"transition must have rows that sum to one, "
                f"got {float(sums[worst])!r} in row {worst}"
            )
        self._transition = freeze(normalise_rows(matrix))

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of every probability, to the last bit, the same on every machine."""
        moves = self._transition
        whole = hashlib.sha256(f"chain {self.n_states} ".encode())
        for indices in (moves.indptr, moves.indices):
            whole.update(indices.astype("<i8").tobytes())
        whole.update(moves.data.astype("<f8").tobytes())
        return whole.digest()

    def __repr__(self) -> str:
        return f"MarkovModel({self.n_states} states, {self.transition.nnz} moves)"

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return int(self._transition.shape[0])

    @property
    def transition(self) -> sparse.csr_array:
        """The transition probabilities, read-only."""
        return self._transition

    def at(self, time: int) -> MarkovModel:
        """The model itself: the same moves hold at every time.

        Args:
            time: Any time.
        """
        return self

    def successors(self, possible: ArrayLike) -> Mask:
        """The states that one possible move leads to from the possible ones.

        Args:
            possible: A mask over the states, or the numbers of the possible ones. None may be
                possible, and then none follows.

        >>> MarkovModel([[0.0, 1.0], [1e-320, 1.0]]).successors(np.array([False, True]))
        array([ True,  True])
        """
        mask = possible_mask(possible, self.n_states, empty=True)
        if mask.all():
            return self._reachable
        reached: Mask = self._incoming_pattern @ mask
        return reached

    def stationary(self) -> Belief:
        """The belief that one more step does not change, p M = p.

        There is one if the chain ends in one closed class of states; the others are then
        impossible in the long run.

        >>> MarkovModel([[0.5, 0.5], [0.25, 0.75]]).stationary().probabilities.round(12)
        array([0.33333333, 0.66666667])
        """
        closed = inference.closed_classes(self)
        if len(closed) != 1:
            raise ArgumentError(
                f"transition must end in one closed class of states for a stationary "
                f"distribution, got {len(closed)}"
            )
        logs = np.full(self.n_states, -np.inf)
        logs[closed[0]] = inference.stationary_logs(self, closed[0])
        return Belief.from_log_probabilities(logs)

    @classmethod
    def fit(
        cls,
        sequences: Iterable[ArrayLike],
        *,
        n_states: int,
        smoothing: float = 0.0,
        support: Any = None,
    ) -> MarkovModel:
        """The model learned by counting the moves in sequences of states.

        Moves neither seen nor allowed stay impossible, so nothing becomes dense. A state with no
        move seen or allowed stays put.

        Args:
            sequences: Sequences of state numbers; a message names the place of a wrong state, never
                the state.
            n_states: How many states there are.
            smoothing: This many moves are added to every move that was seen or that `support`
                allows.
            support: A square matrix, sparse or not, whose entries above zero mark moves that are
                possible though nobody made them; needs smoothing above zero.

        >>> MarkovModel.fit([[0, 1, 0, 0]], n_states=3).transition.toarray()
        array([[0.5, 0.5, 0. ],
               [1. , 0. , 0. ],
               [0. , 0. , 1. ]])
        """
        checked = check_sequences(sequences, n_states)
        none = np.zeros(0, dtype=np.int64)
        sources = np.concatenate([none, *(sequence[:-1] for sequence in checked)])
        targets = np.concatenate([none, *(sequence[1:] for sequence in checked)])
        counts = count_moves(sources, targets, n_states)
        return cls(probabilities_from_counts(counts, smoothing, support))

    @classmethod
    def from_counts(
        cls, counts: Any, *, smoothing: float = 0.0, support: Any = None
    ) -> MarkovModel:
        """The model learned from a matrix of counts, as `fit` does from sequences.

        Args:
            counts: A square matrix, sparse or not: how often each state moved to each.
            smoothing: This many moves are added to every move that was seen or that `support`
                allows.
            support: A square matrix, sparse or not, whose entries above zero mark moves that are
                possible though nobody made them; needs smoothing above zero.

        >>> MarkovModel.from_counts([[3, 1], [0, 0]]).transition.toarray()
        array([[0.75, 0.25],
               [0.  , 1.  ]])
        """
        return cls(probabilities_from_counts(check_matrix(counts, "counts"), smoothing, support))

    def fit_em(
        self,
        sequences: Iterable[Observations],
        *,
        start: Start | Sequence[Belief],
        n_iter: int = 20,
        tolerance: float = 1e-6,
        smoothing: float = 0.0,
    ) -> Learned:
        """The model that EM (Baum-Welch) reaches from this one, and the score at every step.

        Each sequence holds log-likelihoods as for `filter`, so the states themselves are never
        needed: released answers will do. The possible moves stay those of this model. With
        smoothing, what never falls is the score plus smoothing times the sum of the logs of the
        probabilities.

        Args:
            sequences: Observations, as for `filter`, one sequence each.
            start: What is known before each sequence; a list of beliefs has one for each.
            n_iter: How many steps at most.
            tolerance: Stop once a step gains less than this.
            smoothing: This many moves are added to every possible one.

        >>> model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
        >>> seen = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
        >>> learned = model.fit_em([seen], start=0)
        >>> bool(learned.history[-1] > learned.history[0])
        True
        """
        expect(sequences, Iterable, "sequences")
        data = [
            inference.check_rows(rows, self.n_states, f"sequences[{number}]")
            for number, rows in enumerate(sequences)
        ]
        each: list[Any] = [start] * len(data)
        if isinstance(start, list | tuple) and any(isinstance(item, Belief) for item in start):
            each = list(start)
        if len(each) != len(data):
            raise ArgumentError(f"start must have {len(data)} beliefs, got {len(each)}")
        starts = [Belief.known(item, self.n_states) for item in each]
        whole(n_iter, "n_iter")
        if not isinstance(tolerance, int | float | np.number):
            raise ArgumentError(f"tolerance must be a number, got {tolerance!r}")
        added = check_smoothing(smoothing)
        model, history = inference.learn(self, data, starts, n_iter, tolerance, added)
        return Learned(model, history)

    def _with(self, probabilities: FloatArray) -> MarkovModel:
        """The model with the same possible moves and other probabilities."""
        indices, indptr = self._transition.indices, self._transition.indptr
        shape = self._transition.shape
        return MarkovModel(sparse.csr_array((probabilities, indices, indptr), shape=shape))

    @cached_property
    def _moves(self) -> sparse.csr_array:
        return pattern(self._transition)

    @cached_property
    def incoming(self) -> sparse.csr_array:
        """The transposed matrix: row j holds the moves into j."""
        return freeze(sparse.csr_array(self._transition.T))

    @cached_property
    def _incoming_pattern(self) -> sparse.csr_array:
        return pattern(self.incoming)

    @cached_property
    def _reachable(self) -> Mask:
        reached: Mask = np.diff(self.incoming.indptr) > 0
        reached.setflags(write=False)
        return reached
