"""How to spend a budget: the interval, the price and the noise whose estimates are closest.

A stay that is told at every step costs as many prices as it has steps, while its estimate
sharpens like their root; people who move far between two answers are lost in between. Where the
best interval lies depends on how people move, so it is looked for on people: walks of the
public model, or tracks that may be looked at, such as those that the model was learned from.
Noise and people are an experiment here; nothing is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray
from dphmm.cost.limit import Limit, Window
from dphmm.errors import ArgumentError, expect_one_of
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.states import state_numbers
from dphmm.noise.randomness import SeededRandomness
from dphmm.release.stream import Stream
from dphmm.scenario.scenario import Scenario

__all__ = ["BudgetDesign", "Choice", "find_budget", "find_schedule"]

MECHANISMS = ("knorm", "staircase")
MEASURES = ("now", "hindsight")
FINER = 4 / 3
"""Intervals that are compared differ by at least this factor."""

LONGEST = 576
"""Steps of a walk: two days of five minutes."""

CLOSE = Fraction(1, 8)
"""How close, in parts of itself, a budget is found."""


@dataclass(frozen=True)
class Choice:
    """One way to spend a budget, and how far its estimates are off.

    Args:
        every: An answer every so many steps.
        epsilon: The price of each.
        mechanism: The noise.
        now: The mean distance of the estimate so far, in the units of the query.
        hindsight: The same of the estimate given all answers.
    """

    every: int
    epsilon: Fraction
    mechanism: str
    now: float
    hindsight: float


@dataclass(frozen=True)
class BudgetDesign:
    """The ways to spend a budget that were compared.

    Args:
        budget: What may be spent within any so many steps.
        choices: The ways, the most frequent answers first.
        measure: Which error decided: "now" or "hindsight".
        people: How many people they were compared on.
        from_model: Whether those were walks of the model.
    """

    budget: Window
    choices: tuple[Choice, ...]
    measure: str
    people: int
    from_model: bool

    @property
    def best(self) -> Choice:
        """The way whose estimates are closest."""
        return min(self.choices, key=lambda choice: float(getattr(choice, self.measure)))

    @property
    def error(self) -> float:
        """The error of the best way."""
        return float(getattr(self.best, self.measure))

    def adopt(self, scenario: Scenario) -> Scenario:
        """The scenario with the best way written into it.

        Args:
            scenario: The one that was designed for.
        """
        best = self.best
        return scenario.replace(
            epsilon=best.epsilon,
            mechanism=best.mechanism,
            limit=Limit(None, (self.budget,)),
            schedule=Schedule(every=best.every),
        )


def find_schedule(
    scenario: Scenario,
    budget: Exact | Limit,
    *,
    tracks: Sequence[ArrayLike] | None = None,
    people: int = 24,
    mechanisms: Sequence[str] = MECHANISMS,
    measure: str = "hindsight",
    seed: int = 0,
    done: Callable[[Choice], object] = lambda choice: None,
) -> BudgetDesign:
    """The ways to spend a budget, from every step to once, and how far each is off.

    Args:
        scenario: What is released; its own price, noise, limit and schedule do not matter.
        budget: What may be spent, with a window: "24 per 1 day".
        tracks: States of people, a step each, who may be looked at; walks of the model by
            default. What is found is then a function of them too, so they must be public.
        people: How many people to compare on.
        mechanisms: The kinds of noise to compare.
        measure: Which error decides: that of estimates "now", or in "hindsight".
        seed: That of the walks and of the noise.
        done: Hears of each way that was tried.
    """
    window = _window(scenario, budget)
    expect_one_of(measure, MEASURES, "measure")
    walks = _walks(scenario, tracks, whole(people, "people", 1), window.width, seed)
    choices = []
    for every in intervals(window.width):
        for mechanism in mechanisms:
            choice = _choose(scenario, window, walks, every, mechanism, seed)
            choices.append(choice)
            done(choice)
    return BudgetDesign(window, tuple(choices), measure, len(walks), tracks is None)


def find_budget(
    scenario: Scenario,
    error: Exact,
    budget: Exact | Limit,
    **options: object,
) -> BudgetDesign | None:
    """The smallest budget, up to an eighth, whose best way keeps an error; None if none does.

    Args:
        scenario: See `find_schedule`.
        error: The largest mean distance of an estimate, in the units of the query.
        budget: The largest budget to think of, with its window: "288 per 1 day".
        options: The other arguments of `find_schedule`.
    """
    wanted = float(as_epsilon(error, "error"))
    most = _window(scenario, budget)
    found = find_schedule(scenario, Limit(None, (most,)), **options)  # type: ignore[arg-type]
    if found.error > wanted:
        return None
    low, high = Fraction(0), most.amount
    while high - low > CLOSE * high and high > most.amount / 1000:
        middle = (low + high) / 2 if low else high / 2
        tried = Limit(None, (Window(middle, most.width, name=most.length),))
        design = find_schedule(scenario, tried, **options)  # type: ignore[arg-type]
        if design.error <= wanted:
            found, high = design, middle
        else:
            low = middle
    return found


def intervals(width: int) -> Iterator[int]:
    """Steps between answers that divide a window, each a third longer than the last or more."""
    last = 0.0
    for every in range(1, width + 1):
        if width % every == 0 and every >= FINER * last:
            yield every
            last = every


def _window(scenario: Scenario, budget: Exact | Limit) -> Window:
    limit = Limit.read(budget, "budget").in_steps(scenario.settings.clock.law, "budget")
    if limit.total is not None or len(limit.windows) != 1:
        raise ArgumentError(f"budget must have one window, like '24 per 1 day', got {str(limit)!r}")
    return limit.windows[0]


def _walks(
    scenario: Scenario, tracks: Sequence[ArrayLike] | None, people: int, width: int, seed: int
) -> list[IntArray]:
    """The states of some people, not longer than a window, or than two days of five minutes."""
    length = min(width, LONGEST)
    if tracks is not None:
        n_states = scenario.query.n_states
        given = [state_numbers(track, n_states, "tracks", private=True) for track in tracks]
        chosen = np.random.default_rng(seed).permutation(len(given))[:people]
        if not len(chosen):
            raise ArgumentError("tracks must hold at least one track, got none")
        return [given[person][:length] for person in chosen.tolist()]
    # The small probability of going anywhere is caution, not a way that people move.
    own, rng = scenario.model.own, np.random.default_rng(seed)
    return [own.sample_places(length, rng=rng, start=scenario.start) for _ in range(people)]


def _choose(
    scenario: Scenario,
    window: Window,
    walks: Sequence[IntArray],
    every: int,
    mechanism: str,
    seed: int,
) -> Choice:
    epsilon = window.amount / -(-window.width // every)
    plan, values = scenario.plan.replace(mechanism=mechanism), scenario.query.values
    now, hindsight = [], []
    for person, walk in enumerate(walks):
        stream = Stream(
            scenario.model,
            plan,
            epsilon=epsilon,
            start=scenario.start,
            time=0,
            schedule=Schedule(every=every, phase=every // 2),
            estimate=scenario.settings.estimate,
            randomness=SeededRandomness(np.random.default_rng([seed, person])),
        )
        estimates = [stream.release(int(state)).estimate for state in walk]
        now.append(_distance(estimates, values[walk]))
        hindsight.append(_distance(stream.smoothed(), values[walk]))
    return Choice(every, epsilon, mechanism, float(np.mean(now)), float(np.mean(hindsight)))


def _distance(estimates: ArrayLike, truth: FloatArray) -> float:
    return float(np.linalg.norm(np.asarray(estimates) - truth, axis=1).mean())
