"""How much of the truth regions of beliefs hold, of people a model was not learned from. Private.

A region says how much mass it has. Whether it holds the truth as often is one number a step, and
the steps of one walk are nearly the same one: people stay. So it takes hundreds of walks to know
it to a point, where `judge` reads a few dozen. Here many are read at once, and nothing but regions
and errors now is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import log
from operator import add
from typing import NamedTuple

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import SeededRandomness
from dphmm.scenario.judging import (
    REGIONS,
    SEED,
    People,
    Watch,
    deal_folds,
    region_of,
    sample_walks,
)
from dphmm.scenario.scenario import Scenario

__all__ = ["Coverage", "Walk", "answer_walks", "choose_confidence", "cover"]

TOGETHER = 40
"""So many walks are read at once: wide enough for one product, small enough for any memory."""

STEPS = 6000
"""So many steps of people held out choose a confidence."""

USUAL_FACTOR = 3.0
"""A confidence that suits other people is within this factor of the usual one, two times in
three: a guess that matters only where there are few walks."""


class Walk(NamedTuple):
    """Somebody's states without a gap, and what each answer says of every place."""

    person: int
    states: IntArray
    logs: FloatArray


@dataclass(frozen=True, eq=False)
class Coverage:
    """What regions held, person by person. Private.

    Args:
        sums: For each person the steps, for each region how often it held the truth minus the
            mass it stated, and the distances that beliefs expect and estimates have.
    """

    sums: FloatArray

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(np.concatenate([self.sums, other.sums]))

    @property
    def people(self) -> int:
        """How many people there are."""
        return len(self.sums)

    @property
    def steps(self) -> int:
        """How many steps of theirs were read."""
        return int(self.sums[:, 0].sum())

    @property
    def misses(self) -> FloatArray:
        """For each region the share of the truth it held, minus the mass it stated."""
        regions = self.sums[:, 1 : 1 + len(REGIONS)]
        return np.asarray(regions.sum(axis=0) / self.sums[:, 0].sum())

    @property
    def errors(self) -> FloatArray:
        """The standard errors of that over people, each of whom is one draw."""
        regions, steps = self.sums[:, 1 : 1 + len(REGIONS)], self.sums[:, :1]
        apart = regions - self.misses * steps
        return np.asarray(np.sqrt((apart**2).sum(axis=0)) / steps.sum())

    @property
    def expected(self) -> float:
        """The mean distance that the beliefs expect, as a share of the real one."""
        expected, real = self.sums[:, -2:].sum(axis=0)
        return float(expected / max(real, 1e-12))

    @property
    def distance(self) -> float:
        """The mean distance of the belief's mean to the truth."""
        return float(self.sums[:, -1].sum() / self.steps)


def answer_walks(
    scenario: Scenario, people: People, steps: int, rng: np.random.Generator
) -> list[Walk]:
    """Walks of some people with simulated answers, as a chain that may go anywhere gets them.

    Args:
        scenario: The policy and epsilon; its model is not used.
        people: Whose.
        steps: About how many in all.
        rng: What draws walks and noise.
    """
    everywhere = np.ones(scenario.query.n_states, dtype=bool)
    noise = scenario.plan.at(everywhere).mechanism(scenario.settings.epsilon)
    randomness = SeededRandomness(rng)
    chosen = sample_walks(people, steps, rng, most=steps)
    return [Walk(person, where, _said(noise, where, randomness)) for person, _, where in chosen]


def _said(noise: Mechanism, states: IntArray, randomness: SeededRandomness) -> FloatArray:
    lattices = [noise.sample_lattice(int(state), randomness) for state in states]
    return np.array([noise.lattice_log_likelihood(one) for one in lattices])


def cover(model: MarkovModel, walks: Sequence[Walk], places: FloatArray) -> Coverage:
    """What regions of a chain's beliefs hold on walks that begin unknown.

    Args:
        model: The same moves at every step.
        walks: What was answered.
        places: The coordinates of the places.
    """
    found: dict[int, FloatArray] = {}
    none = np.zeros(len(REGIONS) + 3)
    # The longest first: whoever has come to an end falls off the right.
    falling = sorted(walks, key=lambda walk: -len(walk.states))
    for first in range(0, len(falling), TOGETHER):
        some = falling[first : first + TOGETHER]
        for step, beliefs in enumerate(_beliefs(model, some)):
            means = beliefs @ places
            for walk, belief, mean in zip(some, beliefs, means, strict=False):
                row = _row(belief, int(walk.states[step]), mean, places)
                found[walk.person] = found.get(walk.person, none) + row
    return Coverage(np.array(list(found.values())))


def _beliefs(model: MarkovModel, walks: Sequence[Walk]) -> Iterable[FloatArray]:
    """For each step the beliefs about the places of those who still walk, a row each."""
    incoming = sparse.csr_array(model.outgoing.T)
    beliefs = np.tile(model.known(Belief.uniform(model.n_places)).probabilities, (len(walks), 1)).T
    states = np.arange(model.n_states)
    entries = np.ones(model.n_states), (model.current, states)
    at = sparse.csr_array(entries, shape=(model.n_places, model.n_states))
    for step in range(len(walks[0].states)):
        walks = [walk for walk in walks if len(walk.states) > step]
        logs = np.stack([walk.logs[step] for walk in walks], axis=1)
        beliefs = incoming @ beliefs[:, : len(walks)] + model.jumps[:, None]
        beliefs *= model.lift(np.exp(logs - logs.max(axis=0)))
        beliefs /= beliefs.sum(axis=0)
        yield np.asarray((at @ beliefs).T)


def _row(belief: FloatArray, state: int, mean: FloatArray, places: FloatArray) -> FloatArray:
    regions = [region_of(belief, mass, state) for mass in REGIONS]
    apart = np.sqrt(((places - mean) ** 2).sum(axis=1))
    held = [float(inside) - stated for stated, inside in regions]
    return np.array([1.0, *held, float(belief @ apart), float(apart[state])])


def choose_confidence(
    learn: Callable[[People, float], MarkovModel],
    people: People,
    scenario: Scenario,
    *,
    among: Sequence[float],
    usual: float,
    steps: int = STEPS,
    watch: Watch = iter,
) -> float:
    """The confidence under which regions hold people who are left out in turn.

    A miss of every region is a draw with the standard error it has over people; before any is
    seen, the confidence is near the usual one. The likeliest of some is taken, so few people
    change little and many decide. It looks at raw moves: as public as raw counts are.

    Args:
        learn: The chain of some people at a confidence.
        people: Everybody it may look at.
        scenario: The policy and epsilon that answers are simulated under.
        among: What is tried.
        usual: What is likely before anything is seen.
        steps: About how many are read, for each that is tried.
        watch: Sees every part of the work come by.
    """
    parts = []
    folds = list(deal_folds(people))
    for fold, (others, held) in enumerate(folds):
        rng = np.random.default_rng([SEED, len(folds), fold])
        parts.append((others, answer_walks(scenario, held, -(-steps // len(folds)), rng)))

    def score(confidence: float) -> float:
        covers = [
            cover(learn(others, confidence), walks, scenario.query.values)
            for others, walks in parts
            if walks
        ]
        if not covers:
            raise ArgumentError("people must have neighbouring steps, got no move")
        found = reduce(add, covers)
        # Few people may be alike by chance; one more of whom nothing is known is none of that.
        unsure = np.hypot(found.errors, 0.5 / found.people)
        missed = float(((found.misses / unsure) ** 2).sum())
        return missed + (log(confidence / usual) / log(USUAL_FACTOR)) ** 2

    scores = [score(confidence) for confidence in watch(among)]
    return among[int(np.argmin(scores))]
