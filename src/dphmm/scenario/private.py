"""Learning that is private for whole people: few numbers, each from everybody, with exact noise.

A *level* sorts the moves of a person into public bins. Each person has one unit for a level,
dealt over the bins by their own moves alone and rounded down to whole grains. Neighbours are data
with and without one person, so the sums over people differ by at most one unit in all, and
discrete Laplace noise of scale 1/epsilon on every bin makes a level epsilon-private. Levels add
up. All that follows sees noisy numbers only; nobody counts the people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.anywhere import Zeros
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.ground import Ground
from dphmm.chain.habits import SHARPNESS, Habits, Rings, Turns
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError, expect_each
from dphmm.geometry.exact import Exact, as_epsilon, as_text, exact
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import Randomness
from dphmm.scenario.counting import Counted, runs_of
from dphmm.scenario.models import LearnedModel

__all__ = ["GRAINS", "Cells", "Level", "Levels", "learn_private"]

GRAINS = 10**6
"""A person's unit of a level is dealt in so many parts."""

FIRST = Fraction(1, 2)
"""What the lengths of moves get of epsilon; staying and turning, with more bins, get the rest."""


class Level(Protocol):
    """Public bins that the moves of one person fall into."""

    @property
    def name(self) -> str:
        """What is told apart, in words."""

    @property
    def size(self) -> int:
        """How many bins there are."""

    def bins(self, slots: IntArray, states: IntArray) -> IntArray:
        """The bins of a walk without gaps."""


@dataclass(frozen=True)
class Walked:
    """A level that looks at places only."""

    of: Rings | Turns

    @property
    def name(self) -> str:
        """What is told apart, in words."""
        return self.of.name

    @property
    def size(self) -> int:
        """How many bins there are."""
        return self.of.size

    def bins(self, slots: IntArray, states: IntArray) -> IntArray:
        """The bins of a walk without gaps."""
        return self.of.bins(states)


class Cells:
    """A bin for every move of a support that was chosen without the data, in every turn.

    Args:
        support: A square matrix whose entries are the moves.
        slots: How many models take turns.
    """

    name = "every move"

    def __init__(self, support: sparse.csr_array, slots: int = 1) -> None:
        self.support = sparse.csr_array(support)
        if self.support.shape[0] != self.support.shape[1]:
            raise ArgumentError(f"support must be square, got {self.support.shape}")
        if slots < 1:
            raise ArgumentError(f"slots must be at least 1, got {slots!r}")
        self.support.sort_indices()
        self.slots = slots
        rows = np.repeat(np.arange(self.support.shape[0]), np.diff(self.support.indptr))
        self._moves = rows * self.support.shape[0] + self.support.indices

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self._moves) * self.slots

    def bins(self, slots: IntArray, states: IntArray) -> IntArray:
        """The bins of a walk without gaps; a move outside the support has none."""
        wanted = states[:-1] * self.support.shape[0] + states[1:]
        found = np.searchsorted(self._moves, wanted)
        inside = np.append(self._moves, -1)[found] == wanted
        return (found + len(self._moves) * (slots[1:] % self.slots))[inside]


@dataclass(frozen=True, eq=False)
class Levels:
    """What is asked of people, and how the answers become a chain.

    Args:
        levels: The levels, first to last.
        shares: What each gets of epsilon; they add up to one.
        rings: How far people move, if the chain is one of habits.
    """

    levels: tuple[Level, ...]
    shares: tuple[Fraction, ...]
    rings: Rings | None = None

    def __post_init__(self) -> None:
        if sum(self.shares) != 1 or len(self.shares) != len(self.levels):
            raise ArgumentError(f"shares must add up to 1, one a level, got {self.shares!r}")

    @classmethod
    def of_habits(cls, ground: Ground, reach: float | None = None, turns: bool = True) -> Levels:
        """How far people move and, with `turns`, how they stay and turn: places must lie somewhere.

        Args:
            ground: Where the places lie.
            reach: How far moves go; see `Rings`.
            turns: Whether the chain remembers the last move.
        """
        rings = Rings(ground, reach, farther=True)
        if not turns:
            return cls((Walked(rings),), (Fraction(1),), rings)
        return cls((Walked(rings), Walked(Turns(ground))), (FIRST, 1 - FIRST), rings)

    @classmethod
    def of_moves(cls, support: sparse.csr_array, slots: int = 1) -> Levels:
        """Every move of a support: for few states, or for very many people.

        Args:
            support: The moves, chosen without the data.
            slots: How many models take turns.
        """
        return cls((Cells(support, slots),), (Fraction(1),))

    def beyond(self, sources: IntArray, targets: IntArray) -> int:
        """How many moves lie beyond reach, or are none of the support. Private.

        Args:
            sources: Whence each goes.
            targets: Where to.
        """
        if self.rings is not None:
            kinds = self.rings.kinds(self.rings.ground.steps(sources, targets))
            return int((kinds == self.rings.size - 1).sum())
        support = self.levels[0].support  # type: ignore[attr-defined]
        return int((np.asarray(support[sources, targets]) == 0).sum())

    def count(self, slots: ArrayLike, states: ArrayLike) -> Counted:
        """The grains of one person: level, bin, nothing, how many. It sees this person only.

        Args:
            slots: When.
            states: Where.
        """
        runs, none = runs_of(slots, states), np.zeros(0, dtype=np.int64)
        parts = []
        for number, level in enumerate(self.levels):
            bins = np.concatenate([none, *(level.bins(*run) for run in runs)])
            found, times = np.unique(bins, return_counts=True)
            # Whole numbers, rounded down: their sum is at most GRAINS, whatever was divided.
            grains = times * GRAINS // max(1, int(times.sum()))
            parts.append(Counted(np.full_like(found, number), found, np.zeros_like(found), grains))
        return Counted.joined(parts)

    def learn(
        self,
        counted: Counted,
        *,
        epsilon: Exact,
        prior: float = 0.5,
        zeros: Zeros = "guesses",
        anywhere: float | None = None,
        randomness: Randomness | None = None,
    ) -> LearnedModel:
        """The chain of everybody's grains, after noise on every bin.

        Args:
            counted: What `count` gave for each person, added up or not.
            epsilon: For everything about one person, added or removed.
            prior: Added to the number of every move, where there is one for each.
            zeros: As for `MarkovModel.fit`.
            anywhere: The probability of going anywhere, chosen without the data.
            randomness: Where the noise comes from; the operating system by default.
        """
        used = as_epsilon(epsilon)
        if not exact(prior, "prior") > 0:
            raise ArgumentError(f"prior must be positive and finite, got {prior!r}")
        prices = [used * share for share in self.shares]
        numbers = []
        for place, (level, price) in enumerate(zip(self.levels, prices, strict=True)):
            here = counted.parts == place
            sums = np.zeros(level.size, dtype=np.int64)
            np.add.at(sums, counted.sources[here], counted.times[here])
            numbers.append(_noisy(sums, price, randomness, b"%d" % place))
        chances = {"zeros": zeros, "anywhere": anywhere}
        model: MarkovModel | TimeVaryingModel
        if self.rings is not None:
            noise = 1 / float(prices[-1])
            habits = Habits(self.rings, SHARPNESS, 3 * noise, noise)
            model = habits.draw(*numbers, **chances)  # type: ignore[arg-type]
        else:
            model = _counted(self.levels[0], numbers[0], prior, **chances)  # type: ignore[arg-type]
        spent = ", ".join(
            f"{as_text(price)} on {level.name} ({level.size} numbers)"
            for level, price in zip(self.levels, prices, strict=True)
        )
        return LearnedModel(
            model,
            f"private, epsilon={as_text(used)} for everything about one person, added or removed: "
            f"{spent}; discrete Laplace noise on every number",
        )


def learn_private(
    people: Iterable[tuple[ArrayLike, ArrayLike]],
    levels: Levels | ArrayLike,
    *,
    epsilon: Exact,
    prior: float = 0.5,
    zeros: Zeros = "guesses",
    anywhere: float | None = None,
    randomness: Randomness | None = None,
) -> LearnedModel:
    """The chain of some people, epsilon-differentially private for each as a whole.

    Args:
        people: For each the slots of the clock and the states in them, in any order.
        levels: The coordinates of the states, or what is asked of people.
        epsilon: For everything about one person, added or removed.
        prior: Added to the number of every move, where there is one for each.
        zeros: As for `MarkovModel.fit`.
        anywhere: The probability of going anywhere, chosen without the data; by default the
            noisy share of moves beyond reach.
        randomness: Where the noise comes from; the operating system by default.
    """
    if not isinstance(levels, Levels):
        levels = Levels.of_habits(Ground(levels, "levels"))
    tracks = expect_each(people, Sequence, "people")
    try:
        counted = Counted.joined([levels.count(slots, states) for slots, states in tracks])
    except (TypeError, ValueError, IndexError):
        raise ArgumentError("people must be pairs of slots and states, as many of each") from None
    return levels.learn(
        counted, epsilon=epsilon, prior=prior, zeros=zeros, anywhere=anywhere,
        randomness=randomness,
    )  # fmt: skip


def _noisy(
    grains: IntArray, epsilon: Fraction, randomness: Randomness | None, level: bytes
) -> FloatArray:
    """How many people fall into each bin, with exact discrete Laplace noise of scale 1/epsilon."""
    # One-dimensional K-norm noise: e^-epsilon for a whole unit, drawn with integers.
    noise = Mechanism(Query(grains), SensitivityHull.from_vertices([[GRAINS]]), epsilon)
    said = [noise.sample_lattice(n, randomness, (b"learn", level))[0] for n in range(len(grains))]
    return np.array([int(number) for number in said], dtype=np.float64) / GRAINS


def _counted(
    cells: Cells, people: FloatArray, prior: float, zeros: Zeros, anywhere: float | None
) -> MarkovModel | TimeVaryingModel:
    models = []
    for kept in np.split(np.maximum(people, 0.0) + prior, cells.slots):
        support = cells.support
        matrix = sparse.csr_array((kept, support.indices, support.indptr), shape=support.shape)
        models.append(MarkovModel.from_counts(matrix, zeros=zeros, anywhere=anywhere))
    return models[0] if len(models) == 1 else TimeVaryingModel(models)
