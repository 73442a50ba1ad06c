"""What plain, time-varying and second-order models have in common: inference over sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain import inference
from dphmm.chain.belief import Belief, Start
from dphmm.chain.inference import Observations
from dphmm.errors import expect
from dphmm.geometry.exact import whole

if TYPE_CHECKING:
    from dphmm.chain.markov import MarkovModel

__all__ = ["Chain"]


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

    @property
    def has_stated_zeros(self) -> bool:
        """Whether some move is impossible because somebody said so.

        Then what is promised holds for people who move as the model says is possible.
        """
        return True

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
