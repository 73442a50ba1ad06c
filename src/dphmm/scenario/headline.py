"""What a step of a scenario comes to, in sentences for people who sign it."""

from __future__ import annotations

from dphmm.cost.words import describe_lone
from dphmm.scenario.building import unit_of
from dphmm.scenario.checking import Step, covered
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.stepping import whenever
from dphmm.tables.units import roughly

__all__ = ["headline", "warnings"]


def headline(scenario: Scenario, step: Step) -> str:
    """How far off an answer is, and how well everybody is hidden, as released."""
    if step.possible == 1:
        zeros, delta = scenario.model.has_stated_zeros, scenario.settings.delta
        filled = scenario.terms.fills_gaps
        only = describe_lone("place", stated_zeros=zeros, delta=delta, filled=filled)
        return f"{only}{whenever(scenario)}, so its answer is public and tells no more"
    error = roughly(step.mean_error, unit_of(scenario))
    if step.exposed:
        alone = len(step.exposed)
        hidden = f"{alone:,} of {step.possible:,} places {'hides' if alone == 1 else 'hide'} alone"
    else:
        least = f"{step.least_protection:,}"
        only = f"{whenever(scenario)}{covered(scenario)}"
        hidden = f"every possible place hides among at least {least}{only}"
    return f"An answer is typically off by {error}; {hidden}"


def warnings(scenario: Scenario, step: Step) -> tuple[str, ...]:
    """What somebody should know before they sign."""
    found, unit = [], unit_of(scenario)
    if step.exposed and step.possible > 1:
        found.append("An answer could point to an exposed place alone: link it, or turn repair on.")
    if step.is_useless:
        found.append(
            f"An answer is no better than silence: without any, a guess by the model is off by "
            f"{roughly(step.silent_error, unit)}, with it the answer by "
            f"{roughly(step.mean_error, unit)}."
        )
    return tuple(found)
