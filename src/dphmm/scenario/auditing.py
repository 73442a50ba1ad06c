"""A scenario's noise and a short stream of it as the subjects of an audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dphmm.audit import (
    DRAWS,
    FALSE_ALARM,
    LEAST_DRAWS,
    SEQUENCE_SHARE,
    Audit,
    BatchSampler,
    Sampler,
    Subject,
    audit_sampler,
    sampler_of,
)
from dphmm.audit.sequences import paths_between
from dphmm.errors import ScenarioError
from dphmm.geometry.exact import whole
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.stepping import possible_steps

__all__ = ["audit_scenario", "short_stream", "subject_of"]

STEPS = 10
"""How far a scenario is followed; the noise of the last possible set is audited."""

STREAM_STEPS = 2
"""Steps of the short stream that is audited beside it."""

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


def short_stream(scenario: Scenario) -> Callable[[], Sampler] | None:
    """What makes batches of the scenario's first steps, asked twice; None if there are none.

    At each step the two paths are in linked states, those with the largest loss. Where the
    possible set depends on answers (delta) or a step links nobody, nothing can be claimed
    beforehand.
    """
    if scenario.plan.delta:
        return None
    pairs, noises = [], []
    steps = list(possible_steps(scenario, STREAM_STEPS))
    # A set that lasts is not repeated by `possible_steps`.
    steps += steps[-1:] * (STREAM_STEPS - len(steps))
    for _, possible, _ in steps:
        step = scenario.plan.at(possible)
        edges = step.policy.restricted_to(possible).edges
        if not len(edges):
            return None
        points = scenario.query.points
        norms = step.body.lattice_norms(points[edges[:, 0]] - points[edges[:, 1]])
        pairs.append(edges[int(np.argmax(norms))])
        noises.append(step.mechanism(scenario.settings.epsilon))
    paths, linked = paths_between(np.array(pairs))
    alike = all(noise.body == noises[0].body for noise in noises)
    return lambda: BatchSampler(
        scenario.model,
        scenario.plan,
        scenario.settings.epsilon,
        scenario.start,
        paths,
        linked,
        (STREAM_STEPS,),
        2,
        noises[0].body if alike else None,
        noises[0].gamma if alike else None,
    )


def audit_scenario(scenario: Scenario, draws: int | None) -> Audit:
    """See `Scenario.audit`."""
    size = DRAWS if draws is None else whole(draws, "draws")
    stream = short_stream(scenario)
    subjects = [(sampler_of(subject_of(scenario)), size, "")]
    if stream is not None:
        subjects.append((stream, max(LEAST_DRAWS, size // SEQUENCE_SHARE), "along a stream, "))
    share = FALSE_ALARM / len(subjects)
    results = [
        audit_sampler(make, name=scenario.name, draws=rows, false_alarm=share)
        for make, rows, _ in subjects
    ]
    findings = [
        replace(found, what=where + found.what)
        for (_, _, where), result in zip(subjects, results, strict=True)
        for found in result.findings
    ]
    # The fewest draws: a stream has fewer than an answer, and what is said holds for both.
    fewest, noise = min(result.draws for result in results), results[0]
    return replace(noise, draws=fewest, findings=tuple(findings))
