"""Streams and batches under audit: what somebody is told along two linked paths.

Two paths whose states are equal or linked at every step lose at most the sum of the epsilons
of the steps where they differ. Each moment may be asked about more than once, and each day
begins a new batch: neither may cost anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.audit.sampler import Answers, Sampler
from dphmm.chain.belief import Start
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.randomness import KEY_BYTES, KeyedRandomness, Randomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream

__all__ = ["BatchSampler", "SequenceSampler", "StreamSampler", "paths_between", "running_sequence"]

DAY = 288
"""Slots of the clock from one day's first step to the next day's."""


def paths_between(pairs: IntArray) -> tuple[IntArray, IntArray]:
    """Paths through linked pairs of states, and which of them are linked.

    The first states, the second ones, and, if there are several steps, the first ones until
    the last step and there the second.

    Args:
        pairs: (steps, 2) the linked states at each step.

    >>> paths, edges = paths_between(np.array([[1, 2], [1, 2]]))
    >>> paths.tolist(), edges.tolist()
    ([[1, 1], [2, 2], [1, 2]], [[0, 1], [0, 2], [1, 2]])
    """
    first, second = pairs.T
    if len(pairs) == 1:
        return np.array([first, second]), np.array([[0, 1]])
    mixed = np.append(first[:-1], second[-1:])
    return np.array([first, second, mixed]), np.array([[0, 1], [0, 2], [1, 2]])


@dataclass(frozen=True, eq=False)
class SequenceSampler:
    """What several days of releases say along some paths.

    Args:
        model: How states follow each other.
        plan: Who must look like whom, what is asked, which noise answers.
        epsilon: The price of a release.
        start: What everybody knows when a day begins.
        paths: (n, steps) the true paths.
        edges: (m, 2) which paths are linked at every step.
        days: How many steps each day has.
        asks: How often everything is asked.
        body: The body of the noise, if it is the same at every step.
        gamma: That of staircase noise.
    """

    model: Chain
    plan: Plan
    epsilon: Fraction
    start: Start
    paths: IntArray
    edges: IntArray
    days: tuple[int, ...]
    asks: int = 1
    body: SensitivityHull | None = None
    gamma: Fraction | None = None
    lattice: bool = True

    @property
    def moments(self) -> int:
        """Answers in a row: every step, as often as it is asked."""
        return self.paths.shape[1] * self.asks

    @cached_property
    def claimed(self) -> list[Fraction]:
        """The sum of the epsilons of the steps where two paths differ, however often asked."""
        differ = (self.paths[self.edges[:, 0]] != self.paths[self.edges[:, 1]]).sum(axis=1)
        return [self.epsilon * int(steps) for steps in differ]

    @cached_property
    def points(self) -> IntArray:
        """The answers along each path without noise."""
        once = self.plan.query.points[self.paths].reshape(len(self.paths), -1)
        return np.tile(once, (1, self.asks))

    def begins(self, day: int) -> int:
        """The slot of the clock before a day's first step."""
        return day * DAY

    def sources(self) -> list[Randomness]:
        """Where the noise of each time of asking comes from: one key, so that it repeats."""
        return [KeyedRandomness(os.urandom(KEY_BYTES))] * self.asks

    def sample(self, state: int, size: int) -> Answers:
        """(size, moments x d) what is said to so many people who take a path."""
        said = []
        for source in self.sources():
            done = 0
            for day, steps in enumerate(self.days):
                path = self.paths[state, done : done + steps].tolist()
                said += self._day(path, size, self.begins(day), source)
                done += steps
        return np.concatenate(said, axis=1)

    def _day(self, path: list[int], size: int, time: int, source: Randomness) -> list[Answers]:
        raise NotImplementedError


class BatchSampler(SequenceSampler):
    """Releases by `Batch`, a person a row."""

    def _day(self, path: list[int], size: int, time: int, source: Randomness) -> list[Answers]:
        batch = Batch(
            self.model,
            self.plan,
            epsilon=self.epsilon,
            people=[str(number) for number in range(1, size + 1)],
            start=self.start,
            time=time,
            randomness=source,
            law=b"audit",
        )
        return [batch.release(np.full(size, state)).lattice for state in path]


class StreamSampler(SequenceSampler):
    """Releases by `Stream`, a stream a row: slow, and what a single person meets."""

    def _day(self, path: list[int], size: int, time: int, source: Randomness) -> list[Answers]:
        said = np.zeros((len(path), size, self.plan.query.dimension), dtype=np.int64)
        for number in range(size):
            stream = Stream(
                self.model,
                self.plan,
                epsilon=self.epsilon,
                start=self.start,
                time=time,
                person=str(number + 1),
                randomness=source,
                law=b"audit",
            )
            for step, state in enumerate(path):
                said[step, number] = stream.release(state).lattice
        return list(said)


def running_sequence(
    kind: Callable[..., Sampler] = BatchSampler, *, days: tuple[int, ...] = (2, 1), asks: int = 2
) -> Callable[[], Sampler]:
    """What makes samplers of the paper's running example over several steps, at epsilon 1.

    Everything is possible at every step, so the noise is always that of the whole hull.

    Args:
        kind: `BatchSampler`, `StreamSampler`, or one that is broken.
        days: How many steps each day has.
        asks: How often everything is asked.
    """
    query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    plan = Plan(PolicyGraph.by_category([0, 1, 1, 2, 2, 2]), query, repair=None)
    model = MarkovModel(_mixing(query.n_states))
    body = plan.at(np.ones(query.n_states, dtype=bool)).body
    paths, edges = paths_between(np.tile([[1, 2]], (sum(days), 1)))
    return lambda: kind(model, plan, Fraction(1), 0, paths, edges, days, asks, body)


def _mixing(states: int) -> FloatArray:
    """A chain that mostly stays and may go anywhere."""
    return 0.4 * np.eye(states) + np.full((states, states), 0.6 / states)
