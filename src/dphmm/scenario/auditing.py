"""A scenario's noise as the subject of an audit."""

from __future__ import annotations

import numpy as np

from dphmm.audit import DRAWS, Audit, Subject, audit_sampler, sampler_of
from dphmm.errors import ScenarioError
from dphmm.scenario.checking import possible_steps
from dphmm.scenario.scenario import Scenario

__all__ = ["audit_scenario", "subject_of"]

STEPS = 10
"""How far a scenario is followed; the noise of the last possible set is audited."""

MANY_STATES = 400
"""Of more possible states only some are linked for the audit, evenly chosen."""


def subject_of(scenario: Scenario) -> Subject:
    """The noise of the last of the first possible sets, with the edges that it hides."""
    *_, (_, possible, _) = possible_steps(scenario, STEPS)
    step = scenario.plan.at(possible)
    there = np.flatnonzero(possible)
    some = np.zeros_like(possible)
    some[there[:: -(-len(there) // MANY_STATES)]] = True
    edges = step.policy.restricted_to(some).edges
    if not len(edges):
        raise ScenarioError("policy must link two possible states for an audit, got none")
    return Subject(step.mechanism(scenario.settings.epsilon), edges)


def audit_scenario(scenario: Scenario, draws: int | None) -> Audit:
    """See `Scenario.audit`."""
    sampler = sampler_of(subject_of(scenario))
    return audit_sampler(sampler, name=scenario.name, draws=DRAWS if draws is None else draws)
