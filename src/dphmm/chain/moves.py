"""A chain's own moves and its jumps, as the arrays that others read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, Mask
from dphmm.chain.chain import Chain
from dphmm.chain.stochastic import LEAST_PROBABILITY, freeze, pattern
from dphmm.geometry.states import possible_mask

__all__ = ["Moves"]


class Moves(Chain):
    """A first-order chain by its matrix and the share of steps that go anywhere."""

    _transition: sparse.csr_array
    _anywhere: float
    _density: FloatArray

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

    @cached_property
    def has_stated_zeros(self) -> bool:
        """Whether some move is impossible: because somebody said so, or in a chain over pairs."""
        return not self._reaches_all and self._transition.nnz < self.n_states**2

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

    def successors(self, possible: ArrayLike) -> Mask:
        """The states that one possible move leads to from the possible ones.

        All of them, if the model can go anywhere.

        Args:
            possible: A mask over the states, or the numbers of the possible ones. None may be
                possible, and then none follows.

        >>> from dphmm import MarkovModel
        >>> MarkovModel([[0.0, 1.0], [1e-320, 1.0]]).successors(np.array([False, True]))
        array([ True,  True])
        """
        if possible is self._reachable and self._returns:
            return self._reachable
        mask = possible_mask(possible, self.n_states, empty=True)
        if mask.all() or (self._reaches_all and mask.any()):
            return self._reachable
        reached: Mask = self._incoming_pattern @ mask
        return reached | self.landing if self.anywhere and mask.any() else reached

    def _scaled(self, matrix: sparse.csr_array) -> sparse.csr_array:
        if not self.anywhere:
            return matrix
        kept = np.maximum(matrix.data * (1 - self.anywhere), LEAST_PROBABILITY)
        return freeze(sparse.csr_array((kept, matrix.indices, matrix.indptr), shape=matrix.shape))

    @cached_property
    def _moves(self) -> sparse.csr_array:
        return pattern(self._transition)

    @cached_property
    def incoming(self) -> sparse.csr_array:
        """The transposed `outgoing`: row j holds the moves into j."""
        return freeze(sparse.csr_array(self.outgoing.T))

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """`incoming` and `jumps` as the kernels of a release read them."""
        return self.incoming.indptr, self.incoming.indices, self.incoming.data, self.jumps

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

    @cached_property
    def _returns(self) -> bool:
        """Whether every state can be reached, so that what can be reached stays the same."""
        return bool(self._reachable.all())
