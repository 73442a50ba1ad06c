"""What answers at some steps would cost, before anybody is released."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from operator import le

from dphmm.cost.charges import Charge
from dphmm.cost.history import History
from dphmm.cost.sequences import worst_losses
from dphmm.cost.statement import PrivacyStatement, privacy_statement
from dphmm.cost.worst import worst_statement
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.speaking import spoken_steps
from dphmm.scenario.stepping import begins_at, possible_steps, whenever

__all__ = ["plan_costs"]


def plan_costs(scenario: Scenario, steps: int) -> tuple[str, PrivacyStatement | None]:
    """Which answers are counted, in words, and what they would cost at most; see `Check`.

    A schedule speaks at other steps for whoever starts in another slot: where no slot is fixed
    every one is looked at, and each cost is that of the worst.

    Args:
        scenario: What is released.
        steps: How many steps are asked about.
    """
    model, schedule = scenario.model, scenario.settings.schedule
    fixed = scenario.settings.clock.first_slot is not None or model.varies
    ways = spoken_steps(schedule, steps, begins_at(scenario) if fixed else None)
    costs = None if scenario.settings.delta or not ways else _costs_of(scenario, steps, ways)
    anyway = schedule is not None or (costs is not None and costs.own is not None)
    when = whenever(scenario, anyway=anyway)
    if scenario.settings.when is None:
        return f"If each of {steps} steps is answered{when}", costs
    asked, most = f"If {steps} steps are answered as [when] says", max(map(sum, ways or [()]))
    if schedule is not None and schedule.error is not None:
        asked += ", the expected error being above the bound at all of them"
    counted = f" ({most} of them)" if fixed else f", wherever they begin (at most {most} of them)"
    return f"{asked}{counted}{when}", costs


def _costs_of(
    scenario: Scenario, steps: int, ways: list[tuple[bool, ...]]
) -> PrivacyStatement | None:
    epsilon = scenario.settings.epsilon
    charges: list[list[Charge]] = []
    for _, possible, _ in possible_steps(scenario, steps, with_own=True):
        step = scenario.plan.at(possible)
        law = scenario.query, step.body, epsilon, step.mechanism(epsilon).gamma
        charges.append([] if step.is_lone else [Charge(*law)])
    lasting = len(charges) - 1
    charges += [charges[-1]] * (steps - len(charges))
    found = []
    for way in _widest(ways, lasting):
        spoken = [some if speaks else [] for some, speaks in zip(charges, way, strict=True)]
        history = History(scenario.model, spoken, start=scenario.start, time=begins_at(scenario))
        # What tells rows apart for certain changes what is possible later: bodies and prices too.
        if scenario.model.has_stated_zeros and inf in worst_losses(history)[:-1]:
            return None
        found.append(privacy_statement(history, width=max(1, steps // 2), adaptive=False))
    return replace(worst_statement(found), filled=scenario.terms.fills_gaps)


def _widest(ways: list[tuple[bool, ...]], lasting: int) -> list[tuple[bool, ...]]:
    """The ways to speak that cost most: none has all its answers in another, as early or earlier.

    Earlier is the same once nothing changes any more.

    Args:
        ways: At which steps there is an answer.
        lasting: The first step, from 0, since which nothing changes.
    """
    found: list[tuple[bool, ...]] = []
    for way in sorted(ways, key=lambda one: (one.index(True), -sum(one))):
        later = way[max(0, way.index(True) - lasting) :]
        if not any(all(map(le, later, other)) for other in found):
            found.append(way)
    return found
