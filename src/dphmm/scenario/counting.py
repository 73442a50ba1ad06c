"""What moves are counted between: places, pairs of places, or places with momentum.

Every engine counts in the same way: a walk without gaps becomes codes, moves between codes are
added up for each part of the day or week, and the sums become a chain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import IntArray
from dphmm.chain.anywhere import Zeros, chosen_anywhere
from dphmm.chain.calendar import Calendar
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.ground import TURNS, Ground, normalised
from dphmm.chain.habits import habits_of
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.momentum import PATIENCE, RARELY, TRUST, contexts_of, draw_momentum
from dphmm.chain.pairs import draw_pairs, pair_numbers
from dphmm.chain.stochastic import count_moves, probabilities_from_counts
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import exact
from dphmm.scenario.models import PUBLIC_SOURCE

__all__ = ["CHAINS", "CONFIDENCE", "CONFIDENCES", "Counted", "Counting", "Kind", "runs_of"]

Kind: TypeAlias = Literal["first", "second", "momentum"]
"""What a chain remembers: nothing, the place before, or a direction and the length of a stay."""

CHAINS = ("first", "second", "momentum")

WEIGHT = 10.0
"""How many moves from each place go as people go anywhere, in a chain that remembers nothing."""

PAIR_TRUST = 10.0
"""Moves from each pair of places that go as anybody does from the second of them."""

CONFIDENCE = {"first": 0.3, "momentum": 0.3}
"""With these, regions hold about as many people who were not learned from as they say, in GeoLife,
Gowalla and a made-up city (docs/learning.md). Public constants, so they cost nothing."""

CONFIDENCES = (1.0, 0.6, 0.3, 0.15, 0.07, 0.03)
"""What people held out may choose from."""

CONTEXTS = TURNS + PATIENCE

UNKNOWN = np.int64(-1)
"""Whence the first pair of a walk is reached."""


class Counted(NamedTuple):
    """How often codes followed each other, in each part."""

    parts: IntArray
    sources: IntArray
    targets: IntArray
    times: IntArray

    @classmethod
    def of(cls, parts: IntArray, sources: IntArray, targets: IntArray) -> Counted:
        """The sums of moves that are listed one by one."""
        moves = np.stack([parts, sources, targets])
        (parts, sources, targets), times = np.unique(moves, axis=1, return_counts=True)
        return cls(parts, sources, targets, times)

    @classmethod
    def joined(cls, some: Iterable[Counted]) -> Counted:
        """Several of them, one after the other; what is listed twice counts twice."""
        none = np.zeros(0, dtype=np.int64)
        columns = zip(cls(none, none, none, none), *some, strict=True)
        return cls(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, eq=False)
class Counting:
    """How moves are counted for one kind of chain.

    Args:
        n_states: How many places there are.
        chain: What the chain remembers.
        calendar: The parts of the day or week that get a model each; one for all by default.
        ground: Where the places lie, if they lie somewhere.
        confidence: How much each counted move counts against what people do anywhere. A chain
            of all counts is too sure of the people it was counted from: regions of its beliefs
            hold others less often than they say. None for a chain without memory is its counts
            alone.
    """

    n_states: int
    chain: Kind = "first"
    calendar: Calendar | None = None
    ground: Ground | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.chain not in CHAINS:
            raise ArgumentError(f"chain must be one of {', '.join(CHAINS)}, got {self.chain!r}")
        if self.chain == "momentum" and self.ground is None:
            raise ArgumentError("chain must not be 'momentum' for states without places")
        if self.confidence is not None:
            if not 0 < exact(self.confidence, "confidence") <= 1:
                raise ArgumentError(
                    f"confidence must be above 0 and at most 1, got {self.confidence!r}"
                )
            if self.ground is None:
                raise ArgumentError("confidence must not be given for states without places")

    @property
    def source(self) -> str:
        """Where a chain that is counted so comes from, in a sentence."""
        if self.confidence is None:
            return PUBLIC_SOURCE
        return f"{PUBLIC_SOURCE}; confidence {self.confidence:g} against what people do anywhere"

    def count(self, slots: ArrayLike, states: ArrayLike) -> Counted:
        """The moves of one person's rows, which may come in any order.

        Of several rows in one slot the first counts, and a gap is no move.

        Args:
            slots: When.
            states: Where.
        """
        listed: list[tuple[IntArray, IntArray, IntArray]] = []
        for when, where in runs_of(slots, states):
            into = when[1:]
            parts = np.zeros_like(into) if self.calendar is None else self.calendar.parts(into)
            listed.append((parts, *self._moves(where)))
        none = np.zeros(0, dtype=np.int64)
        columns = zip((none, none, none), *listed, strict=True)
        return Counted.of(*(np.concatenate(column) for column in columns))

    def _moves(self, states: IntArray) -> tuple[IntArray, IntArray]:
        """Whence and where to each step of a walk without gaps leads."""
        if self.chain == "second":
            pairs = pair_numbers(states[:-1], states[1:], self.n_states)
            return np.append(UNKNOWN, pairs[:-1])[: len(pairs)], pairs
        if self.chain == "momentum":
            assert self.ground is not None
            states = states * CONTEXTS + contexts_of(states, self.ground, PATIENCE)
        return states[:-1], states[1:]

    def learn(
        self,
        counted: Counted,
        *,
        smoothing: float = 0.0,
        support: sparse.csr_array | None = None,
        zeros: Zeros = "guesses",
        anywhere: float | None = None,
    ) -> Chain:
        """The chain of some sums; the options are those of `MarkovModel.fit`.

        Args:
            counted: How often codes followed each other.
            smoothing: For chains without memory only: the others are drawn to what is usual.
            support: The same.
            zeros: What a move means that nobody made.
            anywhere: The probability of going anywhere.
        """
        known = counted.sources != UNKNOWN
        seen = Counted(*(column[known] for column in counted))
        factor = 1.0 if self.confidence is None else float(self.confidence)
        times, moves = factor * seen.times.astype(np.float64), (seen.sources, seen.targets)
        model: MarkovModel
        remembers = self.chain != "first"
        if (remembers or self.confidence is not None) and (smoothing or support is not None):
            raise ArgumentError("smoothing must stand without a chain that remembers or confidence")
        if not remembers and self.confidence is not None:
            assert self.ground is not None
            share = chosen_anywhere(zeros, anywhere)
            counts = count_moves(*moves, self.n_states, times)
            model = MarkovModel(self.ground.draw(counts, WEIGHT), anywhere=share)
        elif not remembers:
            counts = count_moves(*moves, self.n_states, times)
            model = MarkovModel.from_counts(
                counts, smoothing=smoothing, support=support, zeros=zeros, anywhere=anywhere
            )
        elif self.chain == "momentum":
            assert self.ground is not None
            counts = count_moves(*moves, self.n_states * CONTEXTS, times)
            if self.confidence is None:
                model = draw_momentum(counts, ground=self.ground, zeros=zeros, anywhere=anywhere)
            else:
                usual = habits_of(counts, self.ground, zeros, anywhere)
                matrix = normalised(sparse.csr_array(counts + TRUST * usual.transition))
                model = usual._over(matrix, usual.anywhere)
        else:
            share = chosen_anywhere(zeros, anywhere, usual=RARELY)
            first = self._first(counted, factor)
            model = pairs = draw_pairs(first, *moves, times, trust=PAIR_TRUST, anywhere=share)
            numbers = pair_numbers(pairs.pairs[:, 0], pairs.pairs[:, 1], self.n_states)
            moves = np.searchsorted(numbers, moves[0]), np.searchsorted(numbers, moves[1])
        if self.calendar is None:
            return model
        parts = []
        for part in range(len(self.calendar)):
            here = seen.parts == part
            counts = count_moves(moves[0][here], moves[1][here], model.n_states, times[here])
            parts.append(counts)
        return TimeVaryingModel.drawn_to(model, parts, self.calendar)

    def _first(self, counted: Counted, factor: float) -> sparse.csr_array:
        """First-order moves that hold every counted pair, and staying."""
        size, pairs = self.n_states, counted.targets
        counts = count_moves(
            pairs % size, pairs // size, size, factor * counted.times.astype(np.float64)
        )
        if self.ground is not None:
            return self.ground.draw(counts, WEIGHT)
        stays = sparse.csr_array(sparse.eye_array(size))
        return probabilities_from_counts(sparse.csr_array(counts + stays))


def runs_of(slots: ArrayLike, states: ArrayLike) -> list[tuple[IntArray, IntArray]]:
    """Somebody's rows as walks without gaps; of several rows in one slot the first counts.

    >>> [where.tolist() for _, where in runs_of([6, 1, 2, 2, 7], [3, 0, 1, 9, 4])]
    [[0, 1], [3, 4]]
    """
    times, first = np.unique(np.asarray(slots, dtype=np.int64), return_index=True)
    visited = np.asarray(states, dtype=np.int64)[first]
    cuts = np.flatnonzero(np.diff(times) != 1) + 1
    return list(zip(np.split(times, cuts), np.split(visited, cuts), strict=True))
