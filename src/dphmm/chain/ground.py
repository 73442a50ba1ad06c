"""Moves between places that lie somewhere: which way they go, how far, and where else they could.

A model that was only counted knows nothing of moves that nobody made. People who are seen to
walk to the next cell somewhere can do so elsewhere: from every place, the moves within reach
are as likely as they are from all places together.
"""

from __future__ import annotations

from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial import cKDTree

from dphmm._types import FloatArray, IntArray
from dphmm.chain.stochastic import entries_of, normalise_rows
from dphmm.errors import ArgumentError
from dphmm.geometry.states import as_floats

__all__ = ["TURNS", "Ground", "directions", "kinds"]

TURNS = 8
"""Directions of a move, 45 degrees apart."""

REACH = 2
"""Neighbours, to every side, that a move nobody made may span."""

RARE = 0.5
"""Added to the count of every displacement, so that none within reach is impossible."""


class Ground:
    """Where places lie, measured in the usual distance between neighbours.

    Args:
        places: (n,) or (n, 2) coordinates of the places.
        argument: What a message calls them.
    """

    def __init__(self, places: ArrayLike, argument: str = "places") -> None:
        given = as_floats(places, argument)
        if given.ndim == 1:
            given = np.stack([given, np.zeros(len(given))], axis=1)
        if given.ndim != 2 or given.shape[1] != 2 or not len(given):
            raise ArgumentError(f"{argument} must have one or two coordinates, got {given.shape}")
        if not np.isfinite(given).all():
            raise ArgumentError(f"{argument} must be finite")
        self.places: FloatArray = given
        self._tree = cKDTree(given)

    def __repr__(self) -> str:
        return f"Ground({len(self.places)} places, {self.spacing:g} apart)"

    @cached_property
    def spacing(self) -> float:
        """The median distance of a place to its nearest neighbour."""
        if len(self.places) == 1:
            return 1.0
        apart = np.asarray(self._tree.query(self.places, k=2)[0])[:, 1]
        usual = float(np.median(apart))
        return usual if usual > 0 else 1.0

    def steps(self, sources: IntArray, targets: IntArray) -> IntArray:
        """How far moves go along both axes, in whole neighbours.

        Args:
            sources: Where each begins.
            targets: Where it ends.
        """
        apart = (self.places[targets] - self.places[sources]) / self.spacing
        return np.rint(apart).astype(np.int64)

    def within(self, square: int) -> tuple[IntArray, IntArray, IntArray]:
        """Every move up to a length, stays among them: from, to, and how far in whole neighbours.

        Args:
            square: The largest square of the length in whole neighbours.
        """
        # Rounding to whole neighbours may shorten a move by half of one along either axis.
        around = self._tree.query_pairs(
            (sqrt(square) + 1) * self.spacing, output_type="ndarray"
        ).astype(np.int64)
        itself = np.arange(len(self.places))
        sources = np.concatenate([around[:, 0], around[:, 1], itself])
        targets = np.concatenate([around[:, 1], around[:, 0], itself])
        steps = self.steps(sources, targets)
        kept = (steps**2).sum(axis=1) <= square
        return sources[kept], targets[kept], steps[kept]

    @cached_property
    def _near(self) -> tuple[IntArray, IntArray, IntArray]:
        """Every move within reach, and which displacement it is."""
        sources, targets, steps = self.within(2 * REACH**2)
        within = (np.abs(steps) <= REACH).all(axis=1)
        return sources[within], targets[within], _displacement(steps[within])

    def spread(self, counts: sparse.csr_array) -> sparse.csr_array:
        """From every place the moves within reach, as likely as from all places together.

        Args:
            counts: How often each move was made.
        """
        steps = self.steps(*entries_of(counts))
        near = (np.abs(steps) <= REACH).all(axis=1)
        size = (2 * REACH + 1) ** 2
        table = np.full(size, RARE)
        np.add.at(table, _displacement(steps[near]), counts.data[near])
        sources, targets, kind = self._near
        # Where places lie irregularly, several may be the same displacement away.
        sharing = np.bincount(sources * size + kind, minlength=len(self.places) * size)
        weights = table[kind] / sharing[sources * size + kind]
        return normalised(sparse.csr_array((weights, (sources, targets)), shape=counts.shape))

    def draw(self, counts: sparse.csr_array, weight: float) -> sparse.csr_array:
        """First-order moves: what was counted, and from each place `weight` moves as anywhere.

        Args:
            counts: How often each move was made.
            weight: How many moves from each place go as people go anywhere.
        """
        return normalised(sparse.csr_array(counts + weight * self.spread(counts)))


def normalised(matrix: sparse.csr_array) -> sparse.csr_array:
    """The matrix with rows that sum to one."""
    rows = sparse.csr_array(matrix)
    rows.sum_duplicates()
    return normalise_rows(rows)


def _displacement(steps: IntArray) -> IntArray:
    return np.asarray((steps + REACH) @ np.array([1, 2 * REACH + 1]))


def directions(steps: IntArray) -> IntArray:
    """Which of eight directions a step goes, or -1 for none."""
    turn = np.round(np.arctan2(steps[:, 1], steps[:, 0]) / (np.pi / 4)).astype(np.int64) % TURNS
    return np.where((steps == 0).all(axis=1), -1, turn)


def kinds(steps: IntArray) -> IntArray:
    """0 for a stay, 1..8 for a short move of each direction, 9..16 for a long one."""
    direction = directions(steps)
    long = np.abs(steps).max(axis=1, initial=0) > 1
    return np.where(direction < 0, 0, 1 + direction + TURNS * long)
