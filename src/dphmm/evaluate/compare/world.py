"""What everybody knows in a comparison: places, who must look alike, how people move."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.chain import Chain
from dphmm.errors import ArgumentError
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph

__all__ = ["World"]


@dataclass(frozen=True, eq=False)
class World:
    """A map, a policy and a chain of other people: the public side of every mechanism."""

    query: Query
    """Where the places lie, in kilometres."""
    radius: str
    """Places up to here apart must look alike."""
    chain: Chain = field(repr=False)
    """How people move, learned from others."""
    start: Belief = field(repr=False)
    """What is believed of somebody unknown before the first step."""

    def __post_init__(self) -> None:
        if self.query.dimension != 2:
            raise ArgumentError(f"query must have two coordinates, got {self.query.dimension}")
        if self.chain.n_states != self.query.n_states:
            raise ArgumentError(
                f"chain must have the {self.query.n_states} states of the query, "
                f"got {self.chain.n_states}"
            )

    @cached_property
    def policy(self) -> PolicyGraph:
        """Who must look like whom: places up to `radius` apart."""
        return PolicyGraph.within_distance(self.query, self.radius)

    @cached_property
    def places(self) -> FloatArray:
        """Where answers about each place lie, on the lattice of the query."""
        return np.asarray(self.query.in_units(self.query.points), dtype=np.float64)

    @cached_property
    def prior(self) -> FloatArray:
        """How likely somebody unknown is at each place, without zeros."""
        weights = np.maximum(self.start.probabilities, 1e-9)
        return np.asarray(weights / weights.sum())

    @cached_property
    def apart(self) -> FloatArray:
        """The distance of every two places, in single precision: (n, n)."""
        gaps = self.places[:, None] - self.places[None, :]
        return np.asarray(np.sqrt((gaps**2).sum(axis=2)), dtype=np.float32)

    @cached_property
    def span(self) -> float:
        """The largest distance of two linked places, at most the radius.

        Mechanisms whose loss grows with distance are told this one and not the radius: on a
        grid it is shorter, and they need less noise for the same promise.
        """
        links = self.policy.links
        if not len(links):
            raise ArgumentError(f"radius must link places, got {self.radius!r}, which links none")
        gaps = self.places[links[:, 0]] - self.places[links[:, 1]]
        return float(np.sqrt((gaps**2).sum(axis=1)).max())

    def nearest_to_all(self, probabilities: FloatArray) -> FloatArray:
        """For each row of probabilities the place with the least expected distance: (k, 2).

        The best guess of somebody who believes the row and is judged by distance.
        """
        return self.places[self.best_guesses(probabilities)]

    def best_guesses(
        self, probabilities: FloatArray
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """The number of that place for each row."""
        rows = np.asarray(probabilities, dtype=np.float32)
        return np.asarray((rows @ self.apart).argmin(axis=1), dtype=np.int64)
