"""What all models have in common: plain, time-varying, with memory, several steps at once.

Observations, starts, beliefs and paths are about places. For a plain model the places are its
states; a chain with memory has several states a place, which only the chain itself sees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.chain import inference
from dphmm.chain.belief import Belief, Start
from dphmm.chain.estimates import Estimate, check_estimate, estimate_of
from dphmm.chain.inference import Observations
from dphmm.errors import expect
from dphmm.geometry.exact import whole

if TYPE_CHECKING:
    from dphmm.chain.markov import MarkovModel
    from dphmm.chain.memory import Memory

__all__ = ["Chain"]


class Chain(ABC):
    """What every model of a chain can do once it says which transitions hold at which time.

    `start` is what is known at time 0; the first observation is at time 1, after one
    transition (Algorithm 2). Observations are arrays of shape (steps, n_places) of
    log-likelihoods, or any iterable of rows in which None is a step without an observation.
    """

    @property
    @abstractmethod
    def n_states(self) -> int:
        """How many states there are, memory included."""

    @property
    def memory(self) -> Memory | None:
        """At which place each state is; None where states are places."""
        return None

    @property
    def n_places(self) -> int:
        """How many places there are: the states that queries and policies are about."""
        return self.n_states if self.memory is None else self.memory.n_places

    @property
    def on_places(self) -> Chain:
        """A chain over the places in which all is possible that is possible in this one."""
        return self

    @property
    def varies(self) -> bool:
        """Whether the moves change with time."""
        return False

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

    @property
    def has_stated_zeros(self) -> bool:
        """Whether some move is impossible because somebody said so.

        Then what is promised holds for people who move as the model says is possible.
        """
        return True

    @property
    def base(self) -> Chain:
        """The chain whose steps these are: this one, unless it takes several at once."""
        return self

    @property
    def steps(self) -> int:
        """How many steps of the base one step is."""
        return 1

    @property
    def current(self) -> IntArray:
        """The place of each state."""
        return np.arange(self.n_states) if self.memory is None else self.memory.current

    def lift(self, values: FloatArray) -> FloatArray:
        """What each state has at its place.

        Args:
            values: One a place, or a row each.
        """
        return values if self.memory is None else values[self.memory.current]

    def moves_into(self, time: int) -> Sequence[MarkovModel]:
        """The moves of the step into `time`, one after the other; mostly there is one.

        Args:
            time: The time that the step leads into.
        """
        return (self.at(time),)

    def predict(self, belief: Belief, time: int) -> Belief:
        """What is believed one step later.

        Args:
            belief: Over the chain's states, as `known` gives it.
            time: The time that the step leads into.
        """
        expect(belief, Belief, "belief")
        for model in self.moves_into(time):
            belief = belief.predict(model)
        return belief

    def reach(self, possible: Mask, time: int) -> Mask:
        """The states that the step into `time` can lead to.

        Args:
            possible: A mask over the chain's states.
            time: The time that the step leads into.
        """
        for model in self.moves_into(time):
            possible = model.successors(possible)
        return possible

    def has_zeros_into(self, time: int) -> bool:
        """Whether the step into `time` cannot be some move because somebody said so.

        Args:
            time: The time that the step leads into.
        """
        return any(model.has_stated_zeros for model in self.moves_into(time))

    def every(self, steps: int) -> Chain:
        """The same chain looked at after every so many of its steps.

        Args:
            steps: How many steps of this chain one of the new one is.
        """
        from dphmm.chain.every import EveryModel

        return EveryModel(self, steps)

    def known(self, start: Start) -> Belief:
        """The belief over the chain's states that a start means.

        Args:
            start: A place, a probability for each place, or a belief over places or states.
        """
        memory = self.memory
        if memory is None or (isinstance(start, Belief) and start.n_states == self.n_states):
            return Belief.known(start, self.n_states)
        return memory.enter(Belief.known(start, memory.n_places))

    def place_belief(self, belief: Belief) -> Belief:
        """The belief over places that a belief over the chain's states means.

        Args:
            belief: Over the chain's states.
        """
        expect(belief, Belief, "belief")
        return belief if self.memory is None else self.memory.merge(belief)

    def estimate(self, belief: Belief, values: FloatArray, estimate: Estimate) -> FloatArray:
        """The value that stands for a belief.

        Args:
            belief: Over the chain's states.
            values: One a place, or a row each.
            estimate: "mean" or "median".
        """
        return estimate_of(self.place_belief(belief), values, check_estimate(estimate))

    def place_mask(self, possible: Mask) -> Mask:
        """The places of some of the chain's states.

        Args:
            possible: A mask over the chain's states.
        """
        return possible if self.memory is None else self.memory.reached(possible)

    def filter(self, observations: Observations, *, start: Start, time: int = 0) -> list[Belief]:
        """The belief after each step, given the observations up to it.

        One step of a plain model at a time, this is
        `belief.predict(chain.at(t)).condition(row)`.

        Args:
            observations: The log-likelihoods of every state, one row a step; None for a step
                without an observation.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`; the first observation belongs to the next.
        """
        known = self._known(observations, start, time)
        beliefs, _ = inference.filter_beliefs(self.base, *known)
        return [self.place_belief(one) for one in beliefs[self.steps - 1 :: self.steps]]

    def smooth(self, observations: Observations, *, start: Start, time: int = 0) -> list[Belief]:
        """The belief at each step, given all observations, earlier and later.

        Args:
            observations: The log-likelihoods of every state, one row a step; None for a step
                without an observation.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`; the first observation belongs to the next.
        """
        known = self._known(observations, start, time)
        beliefs = inference.smooth_beliefs(self.base, *known)
        return [self.place_belief(one) for one in beliefs[self.steps - 1 :: self.steps]]

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
        score, path = inference.decode_path(self.base, *self._known(observations, start, time))
        return score, self.current[path[self.steps - 1 :: self.steps]]

    def score(self, observations: Observations, *, start: Start, time: int = 0) -> float:
        """The log-probability of the observations.

        Args:
            observations: The log-likelihoods of every state, one row a step; None for a step
                without an observation.
            start: What is known at `time`, before the first step: a state, a distribution or a
                belief.
            time: The time of `start`; the first observation belongs to the next.
        """
        return inference.filter_beliefs(self.base, *self._known(observations, start, time))[1]

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
        expect(rng, np.random.Generator, "rng")
        length = whole(length, "length") * self.steps
        begin = whole(time, "time", None) * self.steps
        path = inference.sample_path(self.base, length, self.known(start), rng, begin)
        return self.current[path[self.steps - 1 :: self.steps]]

    def _known(
        self, observations: Observations, start: Start, time: int
    ) -> tuple[list[FloatArray | None], Belief, int]:
        rows: list[FloatArray | None] = []
        for row in self._rows(observations):
            rows += [None] * (self.steps - 1) + [row]
        return rows, self.known(start), whole(time, "time", None) * self.steps

    def _rows(
        self, observations: Observations, name: str = "observations"
    ) -> list[FloatArray | None]:
        rows = inference.check_rows(observations, self.n_places, name)
        return [None if row is None else self.lift(row) for row in rows]
