"""The steps of a scenario about which nothing has been said yet: what is possible at each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dphmm._types import Mask
from dphmm.chain.belief import Belief
from dphmm.chain.markov import Chain
from dphmm.scenario.scenario import Scenario

__all__ = ["Moment", "begins_at", "moments", "possible_steps", "whenever"]


class Moment(NamedTuple):
    """A step without releases: what is possible, and what is believed."""

    time: int
    possible: Mask
    """The places to protect."""
    lasts: bool
    own: Mask
    """Where the model's own moves lead."""
    prior: Belief


def moments(scenario: Scenario, steps: int) -> Iterator[Moment]:
    """The steps without releases, up to the one that lasts."""
    own, prior, begins = scenario.start.possible, scenario.start, begins_at(scenario)
    for time, possible, lasts in possible_steps(scenario, steps, with_own=True):
        own = _own_reach(scenario.model, own, begins + time)
        prior = scenario.model.predict(prior, begins + time)
        yield Moment(time, possible, lasts, own, prior)


def possible_steps(
    scenario: Scenario, steps: int, first: int = 1, with_own: bool = False
) -> Iterator[tuple[int, np.ndarray, bool]]:
    """The possible set at each step without releases, up to the one that lasts.

    Args:
        scenario: What is released.
        steps: The most steps to take.
        first: 0 for the start itself before them.
        with_own: Whether to wait until what the model's own moves lead to lasts too.
    """
    model, plan, belief = scenario.model, scenario.plan, scenario.start
    own, memory, begins = belief.possible, model.memory, begins_at(scenario)
    if first == 0:
        yield 0, plan.to_protect(belief, memory), False
    for time in range(1, steps + 1):
        before = belief.possible
        belief = model.predict(belief, begins + time)
        if plan.delta:
            yield time, plan.to_protect(belief, memory), False
            continue
        lasts = not model.varies and bool((belief.possible == before).all())
        if with_own:
            led, own = own, _own_reach(model, own, begins + time)
            lasts = lasts and bool((own == led).all())
        yield time, plan.to_protect(belief, memory), lasts
        if lasts:
            return


def begins_at(scenario: Scenario) -> int:
    """The slot at which the start is taken to be known; see `whenever`."""
    return scenario.settings.clock.first_slot or 0


def whenever(scenario: Scenario, *, anyway: bool = False) -> str:
    """When the start must be known for what is said of some steps, to follow a sentence.

    Nothing where the scenario fixes it, or where it makes no difference to what is possible.

    Args:
        scenario: What is released.
        anyway: Whether it makes another difference: to the model's own moves, to a schedule.
    """
    model, fixed = scenario.model, scenario.settings.clock.first_slot is not None
    differs = anyway or model.has_stated_zeros or bool(scenario.settings.delta)
    if fixed or not model.varies or not differs:
        return ""
    return f", if the start is known at slot {begins_at(scenario)}"


def _own_reach(model: Chain, possible: Mask, time: int) -> Mask:
    """Where the own moves of a step lead."""
    for one in model.moves_into(time):
        possible = one.own.successors(possible)
    return possible
