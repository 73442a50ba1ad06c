"""How the error moves with one setting: the radius, the price, the interval or the budget.

A point of a curve is a draft with that setting changed, and its numbers are those that `check`
and `design` compute for such a file, by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dphmm.cost.limit import Window
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text, exact
from dphmm.noise.distance import mean_noise
from dphmm.scenario import Scenario
from dphmm.scenario.budgeting import ROUND
from dphmm.scenario.speaking import binding_window, even_price
from dphmm.scenario.spending import intervals, schedule_of, spend, walk_people
from dphmm.studio.drawing import radii
from dphmm.studio.effects import MAX_REPAIR, Situation
from dphmm.studio.opened import Opened
from dphmm.studio.requests import Draft, Tradeoff

__all__ = ["tradeoff"]

PRICES = ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5", "7", "10", "20")
FEW = 9
"""Points of a curve whose every point is a policy or a simulation of its own."""

REACH = 5
"""Budgets up to so many times more or less than the present one."""

PEOPLE = 4
"""On how many simulated people an interval is tried."""


@dataclass(frozen=True)
class Axis:
    """One setting that a curve goes along."""

    values: Callable[[Scenario, Opened], list[Fraction]]
    """What is tried, or an `ArgumentError` that says why nothing can be."""
    now: Callable[[Scenario], Fraction | None]
    point: Callable[[Scenario, Opened, Tradeoff, Fraction], dict[str, Any]]
    at_once: int
    """How many points one request may ask for: more of those that take little time."""


def tradeoff(opened: Opened, request: Tradeoff) -> dict[str, Any]:
    """The values to try along an axis, or the points at some of them."""
    scenario, axis = opened.scenario_of(request), AXES[request.axis]
    if not request.values:
        now = axis.now(scenario)
        values = axis.values(scenario, opened)
        return {
            "axis": request.axis,
            "values": [as_text(value) for value in values],
            "now": None if now is None else as_text(now),
            "at_once": axis.at_once,
        }
    wanted = [exact(value, "values") for value in request.values[: axis.at_once]]
    if any(value <= 0 for value in wanted):
        raise ArgumentError("values must be positive, got one that is not")
    return {"points": [axis.point(scenario, opened, request, value) for value in wanted]}


def _radii(scenario: Scenario, opened: Opened) -> list[Fraction]:
    """Some values of the slider, the present one among them."""
    slider = {name: Fraction(text) for name, text in radii(scenario, opened.drawing).items()}
    tried = {max(1, round(slider["most"] * n / (FEW * slider["step"]))) for n in range(1, FEW + 1)}
    return sorted({count * slider["step"] for count in tried} | _known(_radius(scenario)))


def _radius(scenario: Scenario) -> Fraction | None:
    distance = scenario.settings.policy.distance
    return None if distance is None else Fraction(distance)


def _prices(scenario: Scenario, opened: Opened) -> list[Fraction]:
    return sorted({*map(Fraction, PRICES), scenario.settings.epsilon})


def _one_window(scenario: Scenario) -> Window:
    """The window of a budget that is nothing but one window, as it was written."""
    limit = scenario.settings.limit
    if limit is None or limit.total is not None or len(limit.windows) != 1:
        raise ArgumentError(
            "limit must be a budget within one window, like 24 per 1 day, to see this curve"
        )
    return limit.windows[0]


def _budgets(scenario: Scenario, opened: Opened) -> list[Fraction]:
    now = _one_window(scenario).amount
    tens = [Fraction(10) ** power for power in range(-4, 9)]
    rounds = [digit * ten for ten in tens for digit in ROUND]
    return sorted({one for one in rounds if now / REACH <= one <= REACH * now} | {now})


def _intervals(scenario: Scenario, opened: Opened) -> list[Fraction]:
    when = scenario.settings.schedule
    if when is not None and (when.hours or when.error is not None or when.apart != 1):
        raise ArgumentError(
            "when must be an interval alone, without hours, errors or distances between answers, "
            "to see this curve"
        )
    _one_window(scenario)
    window = binding_window(scenario.settings)
    assert window is not None
    tried = list(intervals(window.width))
    if len(tried) > FEW:
        kept = [round(n * (len(tried) - 1) / (FEW - 1)) for n in range(FEW)]
        tried = [tried[n] for n in kept]
    return sorted({*map(Fraction, tried)} | _known(_interval(scenario)))


def _interval(scenario: Scenario) -> Fraction:
    schedule = scenario.settings.schedule
    return Fraction(1 if schedule is None else int(schedule.every))


def _known(value: Fraction | None) -> set[Fraction]:
    return set() if value is None else {value}


def _changed(opened: Opened, request: Tradeoff, changes: dict[str, Any]) -> Situation:
    """The situation under the draft with more changes, as the page will have it if chosen."""
    draft = Draft.model_validate(
        {"changes": {**request.changes, **changes}, "edges": request.edges},
        context=len(opened.scenario.states),
    )
    return Situation.of(opened.scenario_of(draft), request.step)


def _point(value: Fraction, changes: dict[str, Any], situation: Situation) -> dict[str, Any]:
    """What `check` says of the step; nothing of the error where repair would take too long."""
    alone = int((situation.degree == 1).sum())
    point = {"value": as_text(value), "number": float(value), "changes": changes}
    if not situation.is_sound and alone * int(situation.possible.sum()) > MAX_REPAIR:
        return {**point, "error": None, "exposed": alone, "least": 1, "useless": False}
    step = situation.step
    return {
        **point,
        "error": step.mean_error,
        "silent": step.silent_error,
        "exposed": len(step.exposed),
        "least": step.least_protection,
        "useless": step.is_useless,
    }


def _at_radius(
    scenario: Scenario, opened: Opened, request: Tradeoff, value: Fraction
) -> dict[str, Any]:
    changes = {"policy.distance": as_text(value)}
    return _point(value, changes, _changed(opened, request, changes))


def _at_price(
    scenario: Scenario,
    opened: Opened,
    request: Tradeoff,
    value: Fraction,
    price: Fraction | None = None,
    more: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The same policy at another price: its noise is all that changes."""
    price = value if price is None else price
    changes = {"epsilon": as_text(price), **(more or {})}
    situation = Situation.of(scenario, request.step)
    point = _point(value, changes, situation)
    if point["error"] is None:
        return point
    error = mean_noise(scenario.plan.at(situation.possible).mechanism(price))
    return {**point, "error": error, "useless": error >= point["silent"]}


def _at_budget(
    scenario: Scenario, opened: Opened, request: Tradeoff, value: Fraction
) -> dict[str, Any]:
    """Another budget in the same window, spent evenly."""
    window = binding_window(scenario.settings)
    assert window is not None
    price = even_price(scenario.settings, replace(window, amount=value))
    limit = {"limit": f"{as_text(value)} per {_one_window(scenario).length}"}
    return _at_price(scenario, opened, request, value, price, limit)


def _at_interval(
    scenario: Scenario, opened: Opened, request: Tradeoff, value: Fraction
) -> dict[str, Any]:
    """The same budget in fewer or more answers, tried on simulated people as `design` does."""
    window = binding_window(scenario.settings)
    if window is None or value.denominator != 1 or value > window.width:
        raise ArgumentError(f"values must be steps within the window, got {as_text(value)}")
    every, settings = int(value), scenario.settings
    people = walk_people(scenario, window.width, PEOPLE, 0)
    way = spend(
        scenario, window, every, settings.mechanism, settings.estimate, people, 0, lambda _: None
    )
    when = {"when.every": every, "when.phase": schedule_of(every).phase}
    changes = {"epsilon": as_text(way.epsilon), **({"when": None} if every == 1 else when)}
    protected = scenario.plan.at(Situation.of(scenario, request.step).possible)
    return {
        "value": as_text(value),
        "number": float(value),
        "changes": changes,
        "error": way.hindsight,
        "now": way.now,
        "answer": mean_noise(protected.mechanism(way.epsilon)),
        "spread": way.spread,
        "people": PEOPLE,
    }


AXES = {
    "radius": Axis(_radii, _radius, _at_radius, 1),
    "epsilon": Axis(_prices, lambda scenario: scenario.settings.epsilon, _at_price, 32),
    "interval": Axis(_intervals, _interval, _at_interval, 1),
    "budget": Axis(_budgets, lambda scenario: _one_window(scenario).amount, _at_budget, 32),
}
