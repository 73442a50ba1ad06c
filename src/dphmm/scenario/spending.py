"""One way to spend a budget, tried on people: how far its estimates are off, and an adversary.

People are walks of the public model, or tracks that may be looked at, and their noise is an
experiment's. Nothing is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.estimates import Estimate, estimate_of
from dphmm.cost.limit import Window
from dphmm.errors import ArgumentError
from dphmm.geometry.states import as_array, state_numbers
from dphmm.noise.randomness import SeededRandomness
from dphmm.release.schedule import Schedule
from dphmm.release.stream import Stream
from dphmm.scenario.scenario import Scenario

__all__ = ["Person", "Spending", "intervals", "read_person", "schedule_of", "spend", "walk_people"]

BAND = 4 / 3
"""Of intervals that differ by less than this factor one is tried."""

SHORTEST, LONGEST = 96, 576
"""For how many steps people are followed: walks for a window, within these."""


@dataclass(frozen=True)
class Spending:
    """One way to spend a budget, and how far its estimates are off on some people.

    Args:
        every: An answer every so many steps.
        epsilon: The price of each.
        mechanism: The noise.
        estimate: What stands for a belief.
        now: The mean distance of the estimate so far, in the units of the query.
        hindsight: The same of the estimate given all answers.
        spread: The standard error over people of the one in hindsight.
        adversary: How far off somebody is who knows that a person stays at one place, and reads
            all answers of a window.
    """

    every: int
    epsilon: Fraction
    mechanism: str
    estimate: Estimate
    now: float
    hindsight: float
    spread: float
    adversary: float


class Person(NamedTuple):
    """Somebody who may be looked at: slots in order, and a state for each."""

    slots: IntArray
    states: IntArray


def intervals(width: int) -> Iterator[int]:
    """The numbers of steps between answers to try: of each band the one that wastes least.

    Any `width` consecutive steps hold up to ceil(width / every) answers, and that many are paid
    for; of intervals with the same number of answers the shortest is the best.

    >>> list(intervals(288))
    [1, 2, 3, 6, 8, 12, 16, 24, 32, 36, 48, 72, 96, 144, 288]
    """
    first = 1
    while first <= min(width, LONGEST):
        beyond = int(first * BAND) + 1
        every = min(range(first, min(beyond, width + 1)), key=lambda one: one * -(-width // one))
        if every == 1 or -(-width // every) < -(-width // (every - 1)):
            yield every
        first = beyond


def schedule_of(every: int) -> Schedule:
    """An answer in the middle of each interval, so that no end of a day is far from one."""
    return Schedule(every=every, phase=every // 2)


def read_person(slots: ArrayLike, states: ArrayLike, n_states: int) -> Person:
    """Somebody's rows in order of time; of several in a slot the first counts."""
    when, where = as_array(slots, "tracks"), state_numbers(states, n_states, "tracks", private=True)
    if when.ndim != 1 or when.shape != where.shape or (when.size and when.dtype.kind not in "iu"):
        raise ArgumentError("tracks must be pairs of slots and states, as many of each")
    ordered, first = np.unique(when.astype(np.int64), return_index=True)
    # Who was away for long is followed from their first row on for as long as others.
    near = ordered - ordered[:1] < LONGEST
    return Person(ordered[near], where[first][near])


def walk_people(scenario: Scenario, width: int, count: int, seed: int) -> list[Person]:
    """Walks of the model; each begins a window after the last, so that all days are met."""
    rng = np.random.default_rng(seed)
    length = min(max(width, SHORTEST), LONGEST)
    first = scenario.settings.clock.first_slot or 0
    walks = []
    for time in range(first, first + count * width, width):
        states = scenario.model.sample(length, rng=rng, start=scenario.start, time=time)
        walks.append(Person(time + 1 + np.arange(length), states))
    return walks


def spend(
    scenario: Scenario,
    window: Window,
    every: int,
    mechanism: str,
    estimate: Estimate,
    people: Sequence[Person],
    seed: int,
    done: Callable[[int], object],
) -> Spending:
    """One way, tried on everybody, and on somebody who stays where each of them was first."""
    epsilon = window.amount / -(-window.width // every)
    plan = scenario.plan.replace(mechanism=mechanism, gamma=None)
    errors = []
    for number, person in enumerate(people):
        options: dict[str, Any] = {
            "epsilon": epsilon,
            "start": scenario.start,
            "time": int(person.slots[0]) - 1,
            "schedule": schedule_of(every),
            "estimate": estimate,
            "randomness": SeededRandomness(np.random.default_rng([seed, number])),
        }
        moves, stays = (Stream(scenario.model, plan, **options) for _ in range(2))
        truth = scenario.query.values[person.states]
        last = [None, *person.states.tolist()] if scenario.terms.fills_gaps else [None]
        now = np.array([_release(moves, *row) for row in zip_longest(*person, last[:-1])])
        seen = moves.smoothed()[person.slots - moves.began - 1]
        home = _home(stays, int(person.states[0]), window.width)
        errors.append([_distance(now, truth), _distance(seen, truth), _distance(home, truth[:1])])
        done(1)
    now_error, hindsight, adversary = np.mean(errors, axis=0).tolist()
    spread = float(np.std(errors, axis=0)[1]) / sqrt(len(errors))
    return Spending(every, epsilon, mechanism, estimate, now_error, hindsight, spread, adversary)


def _release(stream: Stream, slot: int, state: int, last: int | None) -> FloatArray:
    """The estimate of a row; steps before it without one are skipped, or have the last state."""
    missing = int(slot) - stream.time - 1
    if last is None:
        stream.skip(missing)
    for _ in range(0 if last is None else missing):
        stream.release(last)
    return stream.release(int(state)).estimate


def _home(stream: Stream, state: int, width: int) -> FloatArray:
    """Where somebody is by all answers of a window, for a reader who knows that they stay."""
    schedule = stream.schedule
    assert schedule is not None
    end = stream.time + min(width, LONGEST)
    while stream.time < end:
        if schedule.speaks(stream.time + 1):
            stream.release(state)
        else:
            stream.skip()
    told = [row for row in stream.observations() if row is not None]
    belief = Belief.uniform(stream.query.n_states)
    if told:
        belief = belief.condition(np.sum(told, axis=0))
    return estimate_of(belief, stream.query.values, stream.estimate)[None, :]


def _distance(estimates: FloatArray, truth: FloatArray) -> float:
    return float(np.linalg.norm(estimates - truth, axis=1).mean())
