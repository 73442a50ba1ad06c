"""How people move in few numbers, each of everybody: how far, and which way after the last move.

A chain that is counted needs a number for every move, and most have nobody behind them. Here all
moves of one length share a number, and all turns of one angle: a handful of bins, whatever the
number of places. Bins and reach follow from where the places lie, never from what anybody did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import pi

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.anywhere import Zeros, chosen_anywhere
from dphmm.chain.ground import TURNS, Ground, directions, normalised
from dphmm.chain.markov import MarkovModel
from dphmm.chain.momentum import PATIENCE, RARELY, MomentumModel, contexts_of
from dphmm.chain.stochastic import entries_of

__all__ = ["SHARPNESS", "Habits", "Rings", "Turns", "habits_of", "settle"]

SQUARES = (0, 1, 2, 6, 20, 72, 272, 1056)
"""How far the moves of each ring go at most, in squares of whole neighbours."""

STORED = 1e6
"""A reach that nobody named is the farthest for which a chain has about so many moves."""

AGES = (1, 2, 4, 8, PATIENCE)
"""The steps of a stay from which its end is told apart."""

SIDES = np.array([1, 2, 2, 2, 1])
"""How many of the eight directions make a turn of 0, 45, 90, 135 and 180 degrees."""

MOVING = 1 + len(SIDES)
"""Bins of somebody who moved: stay, or turn."""

FLOOR = 0.05
"""Added to every number, in people, so that no move within reach is impossible."""

MOST_ANYWHERE = 0.5

CONTEXTS = TURNS + PATIENCE

FEW = 4
"""Farther rings begin where they have so many times as many places as those before."""

SHARPNESS = 1.6
COUNTED_SHARPNESS = 1.3
"""With these, regions hold people of GeoLife, Gowalla and a made-up city who were not learned from
as often as they say (docs/learning.md): of noisy numbers, and of counts, which need less because
no noise spreads them. Public constants, so they cost nothing."""


@dataclass(frozen=True, eq=False)
class Rings:
    """How far moves go: a stay, rings of neighbours, and what lies beyond reach.

    Args:
        ground: Where the places lie.
        reach: How far moves go, in the units of the places; by default as far as a chain of a
            million moves does.
        farther: Whether there are more rings, up to where a chain without memory would reach.
    """

    ground: Ground
    reach: float | None = None
    farther: bool = False
    name = "how far"

    @cached_property
    def squares(self) -> IntArray:
        """The largest square of each ring."""
        near = self._near
        farthest = self._farthest(1) if self.farther and self.reach is None else near[-1]
        if farthest <= FEW * near[-1]:
            return near
        between = [square for square in SQUARES if FEW * near[-1] <= square < farthest]
        return np.array([*near, *between, farthest])

    @cached_property
    def near(self) -> int:
        """How many of the rings a chain with memory reaches."""
        return len(self._near)

    @cached_property
    def _near(self) -> IntArray:
        farthest = self._farthest(CONTEXTS)
        return np.array([square for square in SQUARES if square < farthest] + [farthest])

    def _farthest(self, contexts: int) -> int:
        """The largest square of all, for a chain that has so many states a place."""
        if self.reach is None:
            many = STORED / (pi * contexts * len(self.ground.places))
            return int(np.clip(many, 2, SQUARES[-2]))
        # A square that is whole but for rounding is whole: which bins there are is public.
        return max(1, int((self.reach / self.ground.spacing) ** 2 * (1 + 1e-9)))

    @property
    def size(self) -> int:
        """How many bins there are; the last is beyond reach."""
        return len(self.squares) + 1

    def kinds(self, steps: IntArray) -> IntArray:
        """The bin of each step of whole neighbours.

        Args:
            steps: How far, along both axes.
        """
        return np.searchsorted(self.squares, (steps**2).sum(axis=1))

    def bins(self, states: IntArray) -> IntArray:
        """The bins that a walk without gaps falls into.

        Args:
            states: The places, one a step.
        """
        return self.kinds(self.ground.steps(states[:-1], states[1:]))


@dataclass(frozen=True, eq=False)
class Turns:
    """What follows a move (a stay, or a turn of some angle) and what ends a stay of some length.

    Args:
        ground: Where the places lie.
    """

    ground: Ground
    name = "staying and turning"
    size = MOVING + 2 * len(AGES)

    def bins(self, states: IntArray) -> IntArray:
        """The bins that a walk without gaps falls into; before its second step it has no past.

        Args:
            states: The places, one a step.
        """
        context = contexts_of(states, self.ground, PATIENCE)[1:-1]
        return self.kinds(context, directions(self.ground.steps(states[1:-1], states[2:])))

    def kinds(self, context: IntArray, direction: IntArray) -> IntArray:
        """The bin of each step in a direction, or none, after some context.

        Args:
            context: As `contexts_of` has it.
            direction: As `directions` has it.
        """
        after = np.where(direction < 0, 0, 1 + _turn(context, direction))
        age = np.searchsorted(AGES, context - TURNS + 1, side="right") - 1
        return np.where(context < TURNS, after, MOVING + 2 * age + (direction >= 0))


def _turn(before: IntArray | int, after: IntArray) -> IntArray:
    """The angle between two directions in eighths of a circle, to either side."""
    return np.asarray(np.abs((after - before + TURNS // 2) % TURNS - TURNS // 2))


@dataclass(frozen=True, eq=False)
class Habits:
    """A chain of few numbers.

    Args:
        rings: How moves are told apart by length.
        sharpness: Numbers of everybody describe nobody: people and places differ, and each is
            surer than all together. Shares are raised to this power.
        trust: So many people move in each context as in all of them; three times the noise of a
            number, where there is noise.
    """

    rings: Rings
    sharpness: float = 1.0
    trust: float = 1.0

    def draw(
        self,
        far: FloatArray,
        turned: FloatArray | None = None,
        *,
        zeros: Zeros = "guesses",
        anywhere: float | None = None,
    ) -> MarkovModel:
        """The chain of some numbers: a momentum chain if it is known how people turn.

        Args:
            far: How many people fall into each bin of the rings, noise and all.
            turned: How many fall into each bin of `Turns`; without it the chain is over places.
            zeros: As for `MarkovModel.fit`.
            anywhere: The probability of going anywhere; by default the share beyond reach.
        """
        settled = settle(far)
        if turned is not None and self.rings.near < len(self.rings.squares):
            # Decided by noisy numbers: whoever mostly goes beyond what a chain with memory can
            # hold is followed better by one that reaches them and remembers nothing.
            near = self.rings.near
            if settled[near:].sum() > MOST_ANYWHERE * settled.sum():
                return self.draw(far, zeros=zeros, anywhere=anywhere)
            short = replace(self, rings=replace(self.rings, farther=False))
            # Noise that is settled is above zero on average, and here are more rings than one:
            # the usual noise of those besides (a third of `trust`) is not taken for people.
            besides = self.trust / 3 * (len(far) - near - 1)
            fewer = np.append(far[:near], far[near:].sum() - besides)
            return short.draw(fewer, turned, zeros=zeros, anywhere=anywhere)
        share = settled + FLOOR
        beyond = float(np.clip(share[-1] / share.sum(), RARELY, MOST_ANYWHERE))
        options = {"anywhere": chosen_anywhere(zeros, anywhere, usual=beyond)}
        share = self._sharp(share[:-1])
        ground, size = self.rings.ground, len(self.rings.ground.places)
        sources, targets, steps = ground.within(int(self.rings.squares[-1]))
        ring = self.rings.kinds(steps)
        rings = self.rings.size
        # Each ring's share goes to the places in it, however many there are.
        sharing = np.bincount(sources * rings + ring)[sources * rings + ring]
        weights = share[ring] / sharing
        if turned is None:
            matrix = sparse.csr_array((weights, (sources, targets)), shape=(size, size))
            return MarkovModel(normalised(matrix), **options)
        stays, turns = self._contexts(settle(turned), share[0])
        direction, moves = directions(steps), (steps != 0).any(axis=1)
        contexts = CONTEXTS
        rows, columns, entries = [], [], []
        for context in range(contexts):
            turn = turns[_turn(context, direction)] if context < TURNS else 1.0
            leaving = np.where(moves, weights * turn, 0.0)
            total = np.bincount(sources, leaving, size)
            stay = np.where(total > 0, stays[context], 1.0)
            going = (1 - stay)[sources] * leaving / np.where(total > 0, total, 1.0)[sources]
            longer = min(context + 1, contexts - 1) if context >= TURNS else TURNS
            rows.append(sources * contexts + context)
            columns.append(targets * contexts + np.where(moves, direction, longer))
            entries.append(np.where(moves, going, stay[sources] / sharing))
        cells = (np.concatenate(rows), np.concatenate(columns))
        matrix = sparse.csr_array((np.concatenate(entries), cells), shape=(size * contexts,) * 2)
        return MomentumModel(normalised(matrix), size, PATIENCE, **options)

    def _contexts(self, turned: FloatArray, usual: float) -> tuple[FloatArray, FloatArray]:
        """How likely a stay is in each context, and how much likelier each turn is than another."""
        moving, resting = turned[:MOVING], turned[MOVING:].reshape(-1, 2)
        pairs = np.vstack([[moving[0], moving[1:].sum()], resting])
        known = pairs + self.trust * np.array([usual, 1 - usual])
        stay = np.array([self._sharp(pair)[0] for pair in known])
        age = np.searchsorted(AGES, np.arange(PATIENCE) + 1, side="right")
        stays = np.concatenate([np.full(TURNS, stay[0]), stay[age]])
        turns = self._sharp((moving[1:] + self.trust * SIDES / TURNS) / SIDES)
        return stays, turns

    def _sharp(self, share: FloatArray) -> FloatArray:
        powers = (share / share.sum()) ** self.sharpness
        return np.asarray(powers / powers.sum())


def habits_of(
    counts: sparse.csr_array, ground: Ground, zeros: Zeros, anywhere: float | None
) -> MarkovModel:
    """The chain of what people do anywhere, from counts between places with their contexts.

    Args:
        counts: How often each state of a momentum chain moved to each.
        ground: Where the places lie.
        zeros: As for `MarkovModel.fit`.
        anywhere: As for `Habits.draw`.
    """
    sources, targets = entries_of(counts)
    steps = ground.steps(sources // CONTEXTS, targets // CONTEXTS)
    rings, turns = Rings(ground), Turns(ground)
    far, turned = np.zeros(rings.size), np.zeros(turns.size)
    np.add.at(far, rings.kinds(steps), counts.data)
    np.add.at(turned, turns.kinds(sources % CONTEXTS, directions(steps)), counts.data)
    return Habits(rings, COUNTED_SHARPNESS).draw(far, turned, zeros=zeros, anywhere=anywhere)


def settle(numbers: Sequence[float] | FloatArray) -> FloatArray:
    """Noisy numbers of people as numbers that can be: none below zero, and the same in all.

    The nearest such numbers. Cutting at zero alone would count noise as people.

    >>> settle([8.0, 3.0, -1.0, -2.0])
    array([6.5, 1.5, 0. , 0. ])
    """
    given = np.asarray(numbers, dtype=np.float64)
    total = max(float(given.sum()), 0.0)
    falling = np.sort(given)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    kept = np.flatnonzero(falling > excess)
    return np.maximum(given - (excess[kept[-1]] if len(kept) else falling[0]), 0.0)
