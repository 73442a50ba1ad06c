"""The radius or epsilon that meets a wanted error or degree of protection.

Everything compared is exact but for the error, which is a lattice sum in floats. A search
halves an interval, so what it finds meets the wish and the next value beyond it does not; for
a radius, where neither error nor repair need be monotone, another value might do as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf, sqrt

import numpy as np

from dphmm.errors import ArgumentError, expect, expect_function
from dphmm.geometry.exact import Exact, as_text, exact, whole
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import degree_of_protection
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.stepping import possible_steps

__all__ = ["Design", "find_epsilon", "find_radius", "find_smallest", "wanted_error"]

FINEST_EPSILON = Fraction(1, 1000)
LARGEST_EPSILON = 1000


@dataclass(frozen=True)
class Design:
    """A value that meets the wish, and what it gives over the steps looked at.

    Args:
        value: The epsilon or the radius.
        error: The largest root mean squared error of an answer.
        protection: The smallest degree of protection of a possible state.
    """

    value: Fraction
    error: float
    protection: int


def find_epsilon(scenario: Scenario, error: Exact, steps: int = 10) -> Design | None:
    """The smallest epsilon, in thousandths, whose error is at most the wanted; None if none is.

    The error of a staircase may rise where its gamma steps down: there it is one that keeps the
    error while a thousandth less does not.

    Args:
        scenario: What is released; its own epsilon does not matter.
        error: The largest root mean squared error of an answer, in the units of the query.
        steps: How many steps to look at, without any release.

    >>> from dphmm import MarkovModel
    >>> from dphmm.scenario import Policy, Scenario, Settings, States
    >>> states = States.on_plane([[0, 0], [3, 0], [0, 4]])
    >>> settings = Settings("a", Fraction(1), policy=Policy(complete=True))
    >>> scenario = Scenario.from_settings(settings, states, MarkovModel([[0.2, 0.4, 0.4]] * 3))
    >>> found = find_epsilon(scenario, 5)
    >>> found.value, found.error <= 5, found.protection
    (Fraction(...), True, 3)
    """
    expect(scenario, Scenario, "scenario")
    wanted, steps = wanted_error(error), whole(steps, "steps", 1)
    met = [
        (scenario.plan.at(possible), possible) for _, possible, _ in possible_steps(scenario, steps)
    ]

    def worst(epsilon: Fraction) -> float:
        return max(sqrt(step.mechanism(epsilon).mean_squared_error) for step, _ in met)

    least = min(
        int(degree_of_protection(scenario.query, step.policy, mask, step.body)[mask].min())
        for step, mask in met
    )
    top = int(LARGEST_EPSILON / FINEST_EPSILON)
    count = find_smallest(lambda k: worst(k * FINEST_EPSILON) <= wanted, 1, top)
    if count is None:
        return None
    value = count * FINEST_EPSILON
    return Design(value, worst(value), least)


def find_radius(
    scenario: Scenario,
    *,
    error: Exact | None = None,
    protection: int | None = None,
    steps: int = 10,
    done: Callable[[int], object] | None = None,
) -> Design | None:
    """The radius within which states must look alike, in steps of the lattice; None if none does.

    For a wanted protection the smallest that reaches it; for an error the largest that keeps
    it; for both the smallest that protects, if it keeps the error. It is added to the other
    parts of the scenario's policy and takes the place of its own radius.

    Args:
        scenario: What is released.
        error: The largest root mean squared error of an answer, in the units of the query.
        protection: The smallest degree of protection of a possible state.
        steps: How many steps to look at, without any release.
        done: Hears how many more radii were tried.
    """
    if error is None and protection is None:
        raise ArgumentError("error or protection must be given, got neither")
    expect(scenario, Scenario, "scenario")
    if done is not None:
        expect_function(done, "done")
    steps = whole(steps, "steps", 1)
    if protection is not None:
        whole(protection, "protection")
    query, settings = scenario.query, scenario.settings
    others = scenario.replace(policy=replace(settings.policy, distance=None)).policy
    masks = [possible for _, possible, _ in possible_steps(scenario, steps)]
    found: dict[int, Design] = {}

    def at(count: int) -> Design:
        if count not in found:
            radius = count * query.step
            policy = others | PolicyGraph.within_distance(query, radius)
            plan = scenario.plan.replace(policy=policy)
            worst, least = 0.0, len(scenario.states)
            for mask in masks:
                step = plan.at(mask)
                degrees = degree_of_protection(query, step.policy, mask, step.body)[mask]
                worst = max(worst, sqrt(step.mechanism(settings.epsilon).mean_squared_error))
                least = min(least, int(degrees.min()))
            found[count] = Design(radius, worst, least)
            if done is not None:
                done(1)
        return found[count]

    spread = [float(x) for x in query.points.max(axis=0).astype(object) - query.points.min(axis=0)]
    top = ceil(float(np.hypot.reduce(spread)) * (1 + 1e-9)) if spread else 0
    kept = inf if error is None else wanted_error(error)
    if protection is None:
        count = _largest(lambda k: at(k).error <= kept, 0, top)
    else:
        count = find_smallest(lambda k: at(k).protection >= protection, 0, top)
    if count is None or at(count).error > kept:
        return None
    return at(count)


def wanted_error(error: Exact) -> float:
    """The largest error that somebody wants, which must be above zero."""
    wanted = exact(error, "error")
    if wanted <= 0:
        raise ArgumentError(f"error must be positive, got {as_text(wanted)}")
    return float(wanted)


def find_smallest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """A number that holds and is `low`, or whose predecessor does not."""
    if holds(low):
        return low
    if not holds(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _largest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """A number that holds and is `high`, or whose successor does not."""
    mirrored = find_smallest(lambda k: holds(-k), -high, -low)
    return None if mirrored is None else -mirrored
