"""Steps that are several steps of a chain: the clock of releases ticks slower than the model's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief, Predicted
from dphmm.chain.chain import Chain
from dphmm.chain.markov import MarkovModel
from dphmm.chain.memory import Memory
from dphmm.chain.stochastic import LEAST_PROBABILITY, pattern
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import whole

__all__ = ["EveryModel"]


class EveryModel(Chain):
    """A chain looked at after every so many of its steps; `chain.every(steps)` makes it.

    The step into time t is the chain's steps into the times up to t times `steps`. They are
    taken one after the other, so nothing becomes dense.

    Args:
        base: The chain.
        steps: How many of its steps one step is.

    >>> walk = MarkovModel([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    >>> walk.every(2).filter([None], start=0)[0].probabilities
    array([0.25, 0.5 , 0.25])
    """

    def __init__(self, base: Chain, steps: int) -> None:
        expect(base, Chain, "base")
        self._base, self._steps = base.base, base.steps * whole(steps, "steps", 1)

    def __repr__(self) -> str:
        return f"EveryModel({self.base!r}, steps={self.steps})"

    @property
    def base(self) -> Chain:
        """The chain."""
        return self._base

    @property
    def steps(self) -> int:
        """How many of its steps one step is."""
        return self._steps

    @property
    def n_states(self) -> int:
        """How many states there are, memory included."""
        return self.base.n_states

    @property
    def memory(self) -> Memory | None:
        """At which place each state is; None where states are places."""
        return self.base.memory

    @property
    def varies(self) -> bool:
        """Whether the moves change with time."""
        return self.base.varies

    @property
    def has_stated_zeros(self) -> bool:
        """Whether some move is impossible because somebody said so."""
        return self.base.has_stated_zeros

    @cached_property
    def on_places(self) -> Chain:
        """The same steps of the chain over places."""
        return EveryModel(self.base.on_places, self.steps)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the chain and of how many of its steps one is."""
        return hashlib.sha256(f"every {self.steps} ".encode() + self.base.digest).digest()

    def moves_into(self, time: int) -> Sequence[MarkovModel]:
        """The chain's moves into the times up to `time` times `steps`.

        Args:
            time: The time that the step leads into.
        """
        last = whole(time, "time", None) * self.steps
        return tuple(self.base.at(one) for one in range(last - self.steps + 1, last + 1))

    def predict(self, belief: Belief, time: int) -> Belief:
        """What is believed one step later.

        Args:
            belief: Over the chain's states, as `known` gives it.
            time: The time that the step leads into.
        """
        moves = self.moves_into(time)
        after = belief
        for model in moves[:-1]:
            after = after.predict(model)
        return _Led(after, belief, moves)

    def at(self, time: int) -> MarkovModel:
        """The moves of a whole step as one model, with every place that it can lead to.

        Args:
            time: The time that the step leads into.
        """
        if self.memory is not None:
            raise ArgumentError("model must be over places to be one matrix; use `on_places`")
        return _product(tuple(self.moves_into(time)))

    def stationary(self) -> Belief:
        """The belief that one more step does not change."""
        if not isinstance(self.base, MarkovModel):
            raise ArgumentError("model must not change with time to have a stationary belief")
        return self.base.stationary()


class _Led(Predicted):
    """A belief several moves on, which remembers where they began."""

    __slots__ = ("began", "moves")

    began: Belief
    moves: Sequence[MarkovModel]

    def __init__(self, source: Belief, began: Belief, moves: Sequence[MarkovModel]) -> None:
        super().__init__(source, moves[-1])
        object.__setattr__(self, "began", began)
        object.__setattr__(self, "moves", moves)

    def by_own_moves(self) -> FloatArray:
        """The probabilities that all of the moves give when nobody goes just anywhere."""
        belief = self.began
        for model in self.moves:
            belief = belief.predict(model.own)
        return belief.probabilities


@lru_cache(16)
def _product(moves: tuple[MarkovModel, ...]) -> MarkovModel:
    """One model for some steps: the own moves multiplied, and where jumps have led since.

    (1 - a) M + a 1 u, followed by any step N, is (1 - a) M N + a 1 (u N), since rows sum to one.
    """
    first = moves[0]
    matrix, stays, landed = first.transition, 1 - first.anywhere, first.anywhere * first.density
    lands = first.landing
    for model in moves[1:]:
        landed = landed @ model.outgoing + landed.sum() * model.jumps + stays * model.jumps
        # What is possible stays so, also where a product is too small for a float.
        lands = model.successors(lands) | model.landing
        landed = np.maximum(landed, LEAST_PROBABILITY * lands)
        possible = sparse.csr_array(pattern(matrix) @ pattern(model.transition))
        least = LEAST_PROBABILITY * possible.astype(np.float64)
        matrix = sparse.csr_array((matrix @ model.transition).maximum(least))
        stays *= 1 - model.anywhere
    if lands.any() and not lands.all():
        # A stated step after a jump rules places out again: jumps become moves like others.
        both = np.maximum(stays * matrix.toarray(), LEAST_PROBABILITY * (matrix.toarray() > 0))
        return MarkovModel(both + landed)
    anywhere = float(landed.sum())
    return MarkovModel(matrix, anywhere=anywhere, density=landed / anywhere if anywhere else None)
