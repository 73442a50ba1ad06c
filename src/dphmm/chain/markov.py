"""Markov models: sparse transitions, learned by counting or by EM.

The stored pattern of the matrix is the set of the model's own moves. A zero that somebody
states is a fact; a model that was learned keeps a small probability of going anywhere beside
the matrix (see `dphmm.chain.anywhere`). What is believed about where the chain is lives in
`Belief`; `Chain` is what plain, time-varying and second-order models have in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, Mask
from dphmm.chain import inference
from dphmm.chain.anywhere import (
    Share,
    Zeros,
    check_anywhere,
    check_density,
    chosen_anywhere,
    held_out_anywhere,
)
from dphmm.chain.belief import Belief, Start
from dphmm.chain.chain import Chain
from dphmm.chain.friends import Exchanged
from dphmm.chain.inference import Observations
from dphmm.chain.stochastic import (
    LEAST_PROBABILITY,
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


class Learned(NamedTuple):
    """What EM gives: the model, and what each iteration reached, which never falls."""

    model: MarkovModel
    """The model that was reached."""
    history: FloatArray
    """What is maximised, for every model on the way."""


class MarkovModel(Exchanged, Chain):
    """A first-order chain: `transition[i, j]` is the probability of moving from i to j.

    The matrix is kept sparse, so 100,000 states cost what their moves cost. The stored
    pattern is the set of the model's own moves: zeros are dropped, and a probability too small
    for a normal float is still possible. A matrix that is given is stated: its zeros are facts,
    unless `anywhere` is above zero. Then each step follows the matrix M with probability
    1 - anywhere and leads to a state drawn from the density u otherwise,
    M' = (1 - anywhere) M + anywhere 1 u^T, and no move is impossible.

    Args:
        transition: A square matrix, sparse or not, whose rows sum to one up to 1e-6; they are
            divided by their sums.
        anywhere: The probability that a step goes anywhere, whatever the matrix says.
        density: Where it goes then: one probability a state, all above zero; all alike by
            default.

    >>> model = MarkovModel([[0.5, 0.5], [0.0, 1.0]])
    >>> model
    MarkovModel(2 states, 3 moves)
    >>> model.transition.toarray()
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(
        self,
        transition: ArrayLike | sparse.sparray | sparse.spmatrix,
        *,
        anywhere: float = 0.0,
        density: ArrayLike | None = None,
    ) -> None:
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
        share = check_anywhere(anywhere)
        if density is not None and not share:
            raise ArgumentError("anywhere must be above 0 when a density is given, got 0")
        self._go_anywhere(share, check_density(density, self.n_states))

    def _go_anywhere(self, anywhere: float, density: FloatArray) -> None:
        self._anywhere = anywhere
        density.setflags(write=False)
        self._density = density

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of every probability, to the last bit, the same on every machine."""
        moves = self._transition
        whole = hashlib.sha256(f"chain {self.n_states} ".encode())
        for indices in (moves.indptr, moves.indices):
            whole.update(indices.astype("<i8").tobytes())
        whole.update(moves.data.astype("<f8").tobytes())
        if self.anywhere:
            whole.update(b"anywhere")
            whole.update(self.jumps.astype("<f8").tobytes())
        return whole.digest()

    def __repr__(self) -> str:
        anywhere = f", {self.anywhere:g} anywhere" if self.anywhere else ""
        return f"MarkovModel({self.n_states} states, {self.transition.nnz} moves{anywhere})"

    @cached_property
    def n_states(self) -> int:
        """How many states there are."""
        return int(self._transition.shape[0])

    @property
    def transition(self) -> sparse.csr_array:
        """The probabilities of the model's own moves, read-only: M, rows that sum to one."""
        return self._transition

    @property
    def anywhere(self) -> float:
        """The probability that a step goes anywhere; 0 when zeros are facts."""
        return self._anywhere

    @property
    def density(self) -> FloatArray:
        """Where a step that goes anywhere leads."""
        return self._density

    @property
    def zeros(self) -> str:
        """`guesses` if every state can be reached at every step, else `facts`."""
        return "guesses" if self.anywhere else "facts"

    @cached_property
    def has_stated_zeros(self) -> bool:
        """Whether some move is impossible: because somebody said so, or in a chain over pairs."""
        return not self._reaches_all and self._transition.nnz < self.n_states**2

    @cached_property
    def own(self) -> MarkovModel:
        """The model's own moves alone; the model itself if its zeros are facts."""
        return self._over(self._transition, 0.0) if self.anywhere else self

    @cached_property
    def jumps(self) -> FloatArray:
        """The probability of going to each state from anywhere, beside the own moves."""
        jumps = self.anywhere * self._density
        if self.anywhere:
            # A product too small for a float must not make a fact of a guess.
            jumps = np.maximum(jumps, LEAST_PROBABILITY * (self._density > 0))
        jumps.setflags(write=False)
        return jumps

    @cached_property
    def outgoing(self) -> sparse.csr_array:
        """The own moves with the probability that is left for them: (1 - anywhere) M."""
        return self._scaled(self._transition)

    def at(self, time: int) -> MarkovModel:
        """The model itself: the same moves hold at every time.

        Args:
            time: Any time.
        """
        return self

    def successors(self, possible: ArrayLike) -> Mask:
        """The states that one possible move leads to from the possible ones.

        All of them, if the model can go anywhere.

        Args:
            possible: A mask over the states, or the numbers of the possible ones. None may be
                possible, and then none follows.

        >>> MarkovModel([[0.0, 1.0], [1e-320, 1.0]]).successors(np.array([False, True]))
        array([ True,  True])
        """
        mask = possible_mask(possible, self.n_states, empty=True)
        if mask.all() or (self._reaches_all and mask.any()):
            return self._reachable
        reached: Mask = self._incoming_pattern @ mask
        return reached | self.landing if self.anywhere and mask.any() else reached

    def stationary(self) -> Belief:
        """The belief that one more step does not change, p M = p.

        There is one if the chain ends in one closed class of states; the others are then
        impossible in the long run. A chain that can go anywhere always has one.

        >>> MarkovModel([[0.5, 0.5], [0.25, 0.75]]).stationary().probabilities.round(12)
        array([0.33333333, 0.66666667])
        """
        if self.anywhere:
            return Belief.from_log_probabilities(inference.stationary_logs_anywhere(self))
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
        zeros: Zeros = "guesses",
        anywhere: Share = None,
        density: ArrayLike | None = None,
    ) -> MarkovModel:
        """The model learned by counting the moves in sequences of states.

        Nothing becomes dense: moves neither seen nor allowed are left to `anywhere`, or are
        impossible if somebody says that zeros are facts. A state with no move seen or allowed
        stays put, or goes anywhere.

        Args:
            sequences: Sequences of state numbers; a message names the place of a wrong state, never
                the state.
            n_states: How many states there are.
            smoothing: This many moves are added to every move that was seen or that `support`
                allows.
            support: A square matrix, sparse or not, whose entries above zero mark moves that are
                possible though nobody made them; needs smoothing above zero.
            zeros: "guesses" keeps a small probability of going anywhere; "facts" says that nobody
                ever makes a move that was neither seen nor allowed.
            anywhere: That probability; 0.01 by default, a public constant. "held-out" chooses what
                makes the moves of each fifth of the sequences likeliest by counts of the others.
            density: Where it leads; see the class.

        >>> MarkovModel.fit([[0, 1, 0, 0]], n_states=3).transition.toarray()
        array([[0.5, 0.5, 0. ],
               [1. , 0. , 0. ],
               [0. , 0. , 1. ]])
        """
        moves = [(one[:-1], one[1:]) for one in check_sequences(sequences, n_states)]
        none = [np.zeros(0, dtype=np.int64)]
        here, there = (np.concatenate(none + [one[side] for one in moves]) for side in (0, 1))
        counts = count_moves(here, there, n_states)
        people = partial(held_out_anywhere, [moves], n_states, smoothing, support, density)
        return cls(
            probabilities_from_counts(counts, smoothing, support),
            anywhere=chosen_anywhere(zeros, anywhere, people),
            density=density,
        )

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        smoothing: float = 0.0,
        support: Any = None,
        zeros: Zeros = "guesses",
        anywhere: float | None = None,
        density: ArrayLike | None = None,
    ) -> MarkovModel:
        """The model learned from a matrix of counts, as `fit` does from sequences.

        Args:
            counts: A square matrix, sparse or not: how often each state moved to each.
            smoothing: This many moves are added to every move that was seen or that `support`
                allows.
            support: A square matrix, sparse or not, whose entries above zero mark moves that are
                possible though nobody made them; needs smoothing above zero.
            zeros: As for `fit`.
            anywhere: As for `fit`.
            density: As for `fit`.

        >>> MarkovModel.from_counts([[3, 1], [0, 0]]).transition.toarray()
        array([[0.75, 0.25],
               [0.  , 1.  ]])
        """
        matrix = check_matrix(counts, "counts")
        return MarkovModel(
            probabilities_from_counts(matrix, smoothing, support),
            anywhere=chosen_anywhere(zeros, anywhere),
            density=density,
        )

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
        needed: released answers will do. The own moves stay those of this model, and so does
        the probability of going anywhere. With smoothing, what never falls is the score plus
        smoothing times the sum of the logs of the probabilities.

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
        data = [self._rows(rows, f"sequences[{n}]") for n, rows in enumerate(sequences)]
        each: list[Any] = [start] * len(data)
        if isinstance(start, list | tuple) and any(isinstance(item, Belief) for item in start):
            each = list(start)
        if len(each) != len(data):
            raise ArgumentError(f"start must have {len(data)} beliefs, got {len(each)}")
        starts = [self.known(item) for item in each]
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
        matrix = sparse.csr_array((probabilities, indices, indptr), shape=shape)
        return self._over(matrix, self.anywhere)

    def _over(self, matrix: sparse.csr_array, anywhere: float) -> MarkovModel:
        """The model over the same states with other moves."""
        return MarkovModel(matrix, anywhere=anywhere, density=self.density if anywhere else None)

    def _scaled(self, matrix: sparse.csr_array) -> sparse.csr_array:
        if not self.anywhere:
            return matrix
        kept = np.maximum(matrix.data * (1 - self.anywhere), LEAST_PROBABILITY)
        shape = matrix.shape
        return freeze(sparse.csr_array((kept, matrix.indices, matrix.indptr), shape=shape))

    @cached_property
    def _moves(self) -> sparse.csr_array:
        return pattern(self._transition)

    @cached_property
    def incoming(self) -> sparse.csr_array:
        """The transposed `outgoing`: row j holds the moves into j."""
        return freeze(sparse.csr_array(self.outgoing.T))

    @cached_property
    def _incoming_pattern(self) -> sparse.csr_array:
        return pattern(self.incoming)

    @cached_property
    def _reachable(self) -> Mask:
        reached: Mask = (np.diff(self.incoming.indptr) > 0) | self.landing
        reached.setflags(write=False)
        return reached

    @cached_property
    def landing(self) -> Mask:
        """The states that can be reached from anywhere."""
        return self.jumps > 0

    @cached_property
    def _reaches_all(self) -> bool:
        return bool(self.landing.all())
