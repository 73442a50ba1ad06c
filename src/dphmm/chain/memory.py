"""Chains whose states are places with some memory: the last place, a direction, how long a stay.

Queries, policies and answers are about places; only the chain knows more. Going anywhere is
defined on places too: whoever goes to a place that way arrives there without a past.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, Mask
from dphmm.chain.anywhere import check_anywhere, check_density
from dphmm.chain.belief import Belief
from dphmm.chain.markov import MarkovModel
from dphmm.chain.stochastic import freeze, normalise_rows, pattern
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.states import as_array, possible_mask, state_numbers

__all__ = ["Memory", "MemoryModel"]

REMEMBERED = 64
"""Possible sets of which a model with memory keeps what they lead to."""


class Memory:
    """At which place each state of a chain with memory is.

    Args:
        current: The place of each state, in order: the states of place 0 first, then those of 1.
            Every place has a state.
        fresh: For each place the state of somebody who is there without a past.
    """

    def __init__(self, current: ArrayLike, fresh: ArrayLike) -> None:
        known = as_array(current, "current")
        self.fresh = state_numbers(fresh, max(1, known.size), "fresh")
        if self.fresh.ndim != 1 or not len(self.fresh):
            raise ArgumentError("fresh must name a state of each place, got another shape")
        self.n_places = len(self.fresh)
        self.current = state_numbers(known, self.n_places, "current")
        # In order and without a gap, so that a chain of as many states as places is over places.
        steps = np.diff(self.current, prepend=-1, append=self.n_places)
        if (
            self.current.ndim != 1
            or not len(self.current)
            or steps[0] != 1
            or steps[-1] != 1
            or (steps >> 1).any()
        ):
            raise ArgumentError("current must name every place in order, got another order")
        if (self.current[self.fresh] != np.arange(self.n_places)).any():
            raise ArgumentError("fresh must name a state of each place, got another")
        for array in (self.current, self.fresh):
            array.setflags(write=False)
        self._firsts = np.searchsorted(self.current, np.arange(self.n_places))
        self._all = np.ones(self.n_places, dtype=bool)
        self._all.setflags(write=False)

    def __repr__(self) -> str:
        return f"Memory({self.n_places} places, {len(self.current)} states)"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Memory)
            and np.array_equal(self.current, other.current)
            and np.array_equal(self.fresh, other.fresh)
        )

    def __hash__(self) -> int:
        return hash((len(self.current), self.n_places))

    def reached(self, possible: Mask) -> Mask:
        """The places of some states.

        Args:
            possible: A mask over the states.
        """
        found: Mask = np.logical_or.reduceat(possible, self._firsts)
        # One array for all, which a plan knows again at a glance.
        return self._all if found.all() else found

    def sum(self, probabilities: FloatArray) -> FloatArray:
        """The probability of each place.

        Args:
            probabilities: One a state.
        """
        return np.asarray(np.add.reduceat(probabilities, self._firsts))

    def merge(self, belief: Belief) -> Belief:
        """The belief over places that a belief over states means.

        Args:
            belief: Over the states.
        """
        expect(belief, Belief, "belief")
        if belief.n_states != len(self.current):
            raise ArgumentError(
                f"belief must have {len(self.current)} states, got {belief.n_states}"
            )
        merging = self.merging
        return belief._moved(merging, _nothing(self.n_places), pattern(merging) @ belief.possible)

    def enter(self, belief: Belief) -> Belief:
        """The belief over states of somebody without a past.

        Args:
            belief: Over the places.
        """
        shape = (len(self.current), self.n_places)
        ones = np.ones(self.n_places)
        entering = sparse.csr_array((ones, (self.fresh, np.arange(self.n_places))), shape=shape)
        possible = pattern(entering) @ belief.possible
        return belief._moved(entering, _nothing(len(self.current)), possible)

    @cached_property
    def merging(self) -> sparse.csr_array:
        """The matrix that sums the states of each place."""
        bounds = np.append(self._firsts, len(self.current))
        ones, columns = np.ones(len(self.current)), np.arange(len(self.current))
        shape = (self.n_places, len(self.current))
        return freeze(sparse.csr_array((ones, columns, bounds), shape=shape))


def _nothing(size: int) -> FloatArray:
    nothing = np.zeros(size)
    nothing.setflags(write=False)
    return nothing


class MemoryModel(MarkovModel):
    """A chain over places with some memory, used exactly like a chain over places.

    Observations, starts, beliefs and paths are about places. A start that names a place, and a
    step that goes anywhere, lead to the place's `fresh` state; a `Belief` over the chain's own
    states is a start too.

    Args:
        transition: The moves between states, as for `MarkovModel`.
        current: The place of each state: those of place 0 first, then those of place 1.
        fresh: For each place the state of somebody who is there without a past.
        anywhere: The probability that a step goes anywhere.
        density: Where it goes then: one probability a place; all alike by default.

    >>> model = MemoryModel([[0, 1, 0], [0, 0, 1], [1, 0, 0]], current=[0, 0, 1], fresh=[0, 2])
    >>> model
    MemoryModel(2 places, 3 states, 3 moves)
    >>> model.filter([None, None], start=0)[1].probabilities
    array([0., 1.])
    """

    def __init__(
        self,
        transition: Any,
        current: ArrayLike,
        fresh: ArrayLike,
        *,
        anywhere: float = 0.0,
        density: ArrayLike | None = None,
    ) -> None:
        super().__init__(transition)
        self._memory = Memory(current, fresh)
        if len(self._memory.current) != self.n_states:
            raise ArgumentError(
                f"current must name the place of each of {self.n_states} states, "
                f"got {len(self._memory.current)}"
            )
        share = check_anywhere(anywhere)
        if density is not None and not share:
            raise ArgumentError("anywhere must be above 0 when a density is given, got 0")
        landing = np.zeros(self.n_states)
        landing[self._memory.fresh] = check_density(density, self.n_places)
        self._go_anywhere(share, landing)
        self._led: dict[bytes, Mask] = {}

    def __repr__(self) -> str:
        anywhere = f", {self.anywhere:g} anywhere" if self.anywhere else ""
        return (
            f"{type(self).__name__}({self.n_places} places, {self.n_states} states, "
            f"{self.transition.nnz} moves{anywhere})"
        )

    @property
    def memory(self) -> Memory:
        """At which place each state is."""
        return self._memory

    @property
    def place_density(self) -> FloatArray:
        """Where a step that goes anywhere leads: one probability a place."""
        return self.density[self._memory.fresh]

    @cached_property
    def has_stated_zeros(self) -> bool:
        """Whether some place cannot follow some state because somebody said so."""
        if self.anywhere and self.place_density.all():
            return False
        onto = pattern(self._transition) @ pattern(self._memory.merging).T
        return sparse.csr_array(onto).nnz < self.n_states * self.n_places

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of every probability and of the place of every state."""
        whole = hashlib.sha256(b"memory " + super().digest)
        for numbers in (self._memory.current, self._memory.fresh):
            whole.update(numbers.astype("<i8").tobytes())
        return whole.digest()

    @cached_property
    def on_places(self) -> MarkovModel:
        """The same moves without the memory: each state of a place counts alike.

        What is possible between places is possible in it, and perhaps more paths are.
        """
        merging = self._memory.merging
        moves = normalise_rows(sparse.csr_array(merging @ self._transition @ merging.T))
        if not self.anywhere:
            return MarkovModel(moves)
        return MarkovModel(moves, anywhere=self.anywhere, density=self.place_density)

    def successors(self, possible: ArrayLike) -> Mask:
        """The states that one possible move leads to from the possible ones.

        Args:
            possible: A mask over the states, or the numbers of the possible ones.
        """
        mask = possible_mask(possible, self.n_states, empty=True)
        name = mask.tobytes()
        led = self._led.get(name)
        if led is None:
            led = super().successors(mask)
            led.setflags(write=False)
            if len(self._led) >= REMEMBERED:
                self._led = {}
            self._led[name] = led
        return led

    def _over(self, matrix: sparse.csr_array, anywhere: float) -> MemoryModel:
        """The model over the same states with other moves."""
        density = self.place_density if anywhere else None
        memory = self._memory
        return MemoryModel(matrix, memory.current, memory.fresh, anywhere=anywhere, density=density)
