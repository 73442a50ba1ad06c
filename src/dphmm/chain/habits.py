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
NOISY_FLOOR = 0.2
"""Added to every number, in people or in scales of its noise, whatever is more, so that no move
within reach is impossible: a ring that noise has emptied may well have people."""

MOST_ANYWHERE = 0.5

CONTEXTS = TURNS + PATIENCE

FEW = 4
"""Farther rings begin where they have so many times as many places as those before."""

SHARPNESS = 1.3
"""With this, regions hold people of GeoLife, Gowalla and a made-up city who were not learned from
as often as they say (docs/learning.md), by noisy numbers and by counts. A public constant, so it
costs nothing."""

BEFORE = 2.0
"""A context is likely as all of them together, as if so many people had been seen in it."""

LOGITS = np.linspace(-12, 12, 241)
NUMBERS = 200
"""Shares and numbers of people over which what is likely is added up."""


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
        noise: The scale of the Laplace noise on each number; 0 for counts.
    """

    rings: Rings
    sharpness: float = 1.0
    trust: float = 1.0
    noise: float = 0.0

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
            # the usual noise of those besides is not taken for people.
            besides = self.noise * (len(far) - near - 1)
            fewer = np.append(far[:near], far[near:].sum() - besides)
            return short.draw(fewer, turned, zeros=zeros, anywhere=anywhere)
        share = settled + max(FLOOR, NOISY_FLOOR * self.noise)
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
        stays, turns = self._contexts(turned, share[0])
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
        settled = settle(turned)
        if self.noise:
            # Few stays end, so their number is less than its noise. Settled and shared out it
            # would be anything from none to many; its mean over what is likely is steadier.
            first = np.array([likely_share(p, usual, self.noise) for p in _pairs(turned)])
            known = np.stack([first, 1 - first], axis=1)
        else:
            known = _pairs(settled) + self.trust * np.array([usual, 1 - usual])
        stay = np.array([self._sharp(pair)[0] for pair in known])
        age = np.searchsorted(AGES, np.arange(PATIENCE) + 1, side="right")
        stays = np.concatenate([np.full(TURNS, stay[0]), stay[age]])
        turns = self._sharp((settled[1:MOVING] + self.trust * SIDES / TURNS) / SIDES)
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
    return Habits(rings, SHARPNESS).draw(far, turned, zeros=zeros, anywhere=anywhere)


def _pairs(turned: FloatArray) -> FloatArray:
    """How many stay and how many go: after a move, and after a stay of each age."""
    after = [turned[0], turned[1:MOVING].sum()]
    return np.vstack([after, turned[MOVING:].reshape(-1, 2)])


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


def likely_share(pair: FloatArray, usual: float, noise: float) -> float:
    """The mean share of the first of two noisy numbers, over all that it may be.

    Before they are seen any number of people is as likely as another, and shares are those of a
    beta distribution of `BEFORE` people about the usual one, cut off near none and all.

    >>> [round(likely_share(np.array([56.0, ends]), 0.97, 2.0), 3) for ends in (-4, 0, 4, 12)]
    [0.995, 0.995, 0.967, 0.844]

    Args:
        pair: Both numbers, each with Laplace noise.
        usual: The share among all people.
        noise: The scale of the noise.
    """
    usual = float(np.clip(usual, RARELY, 1 - RARELY))
    first = 1 / (1 + np.exp(-LOGITS))
    before = BEFORE * (usual * np.log(first) + (1 - usual) * np.log1p(-first))
    most = max(float(pair.sum()), 0.0) + 10 * noise
    people = np.linspace(0, most, NUMBERS + 1)[1:, None]
    apart = np.abs(pair[0] - people * first) + np.abs(pair[1] - people * (1 - first))
    logs = before - apart / noise
    likely = np.exp(logs - logs.max()).sum(axis=0)
    return float(likely @ first / likely.sum())
