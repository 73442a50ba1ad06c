"""Simulations: the possible set growing over time, and a made-up person who is released.

Nobody's data is here. The person is drawn from the model with a seed, and the noise from a
seeded generator, so that the same request gives the same picture; such releases are marked
as not private, and the page says so.
"""

from __future__ import annotations

from math import hypot, sqrt
from typing import Any

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.errors import BudgetError
from dphmm.geometry.exact import as_text
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.protection import degree_of_protection, exposed
from dphmm.release.said import Release
from dphmm.release.stream import Stream
from dphmm.scenario import Scenario
from dphmm.scenario.checking import possible_steps
from dphmm.studio.effects import exact_number, make_policy
from dphmm.studio.examples import Drawing, Shown
from dphmm.studio.files import start_of
from dphmm.studio.requests import Run, Timeline, Walk

__all__ = ["timeline", "walk"]

SHOWN_STATES = 600
"""A posterior is sent as its likeliest states; what is left out is too faint to see."""


def timeline(scenario: Scenario, request: Timeline) -> dict[str, Any]:
    """For each step from a start: how many states are possible, and how many exposed."""
    bare = Run(policy=request.policy, repair="none")
    drawn = _with(scenario, bare, start_of(scenario, request.moment))
    steps = []
    for time, possible, _ in possible_steps(drawn, request.horizon, first=0):
        step = drawn.plan.at(possible)
        alone = exposed(drawn.query, step.policy, possible, step.body)
        steps.append({"time": time, "possible": int(possible.sum()), "exposed": len(alone)})
    # A step that lasts stands for all that follow.
    steps += [{**steps[-1], "time": time} for time in range(len(steps), request.horizon + 1)]
    return {"steps": steps}


def walk(shown: Shown, request: Walk) -> dict[str, Any]:
    """A simulated person's walk, released in each of the ways asked for."""
    scenario, drawing = shown
    rng = np.random.default_rng([request.seed, 0])
    path = scenario.model.sample(request.length, rng=rng, start=request.start)
    start = scenario.labels[request.start]
    return {
        "simulated": True,
        "path": path.tolist(),
        "places": scenario.query.values[path].tolist(),
        "runs": [
            _release(_with(scenario, run, start), drawing, path, request.seed)
            for run in request.runs
        ],
    }


def _with(scenario: Scenario, run: Run, start: str | dict[str, float]) -> Scenario:
    """The scenario with a request's policy, price, noise and start."""
    return Scenario(
        scenario.states,
        scenario.model,
        make_policy(scenario, run.policy),
        epsilon=run.epsilon,
        limit=run.limit,
        start=start,
        columns=scenario.columns,
        step=scenario.settings.step,
        mechanism=run.mechanism,
        repair=None if run.repair == "none" else run.repair,
        estimate=scenario.settings.estimate,
    )


def _release(scenario: Scenario, drawing: Drawing, path: IntArray, seed: int) -> dict[str, Any]:
    # The same noise generator for every run, so that a comparison differs by its rules only.
    randomness = SeededRandomness(np.random.default_rng([seed, 1]))
    stream = scenario.stream("somebody", randomness=randomness)
    steps: list[dict[str, Any]] = []
    refused = None
    for state in path.tolist():
        try:
            release = stream.release(state)
        except BudgetError as error:
            refused = str(error)
            break
        steps.append(_step(stream, release, state))
    query, limit = scenario.query, scenario.settings.limit
    smoothed = stream.smoothed() if steps else np.zeros((0, query.dimension))
    truth = query.values[path[: len(steps)]]
    answers = np.array([step["answer"] for step in steps]).reshape(-1, query.dimension)
    estimates = np.array([step["estimate"] for step in steps]).reshape(answers.shape)
    return {
        "epsilon": as_text(scenario.settings.epsilon),
        "limit": None if limit is None or limit.total is None else exact_number(limit.total),
        "spent": exact_number(stream.ledger.spent),
        "refused": refused,
        "steps": steps,
        "smoothed": smoothed.round(6).tolist(),
        "degrees": drawing.degrees(answers),
        "smoothed_degrees": drawing.degrees(smoothed),
        "mean_error": {
            "answer": _root_mean_square(answers, truth),
            "estimate": _root_mean_square(estimates, truth),
            "smoothed": _root_mean_square(smoothed, truth),
        },
    }


def _step(stream: Stream, release: Release, state: int) -> dict[str, Any]:
    truth = stream.query.values[state]
    model = stream.model
    possible = model.place_mask(stream.prior.possible)
    chances = model.place_belief(stream.posterior).probabilities
    degree = degree_of_protection(stream.query, stream.policy, possible, stream.hull)
    shown = np.argsort(-chances, kind="stable")[:SHOWN_STATES]
    shown = shown[chances[shown] > 1e-5]
    return {
        "time": release.time,
        "answer": release.answer.round(6).tolist(),
        "estimate": release.estimate.round(6).tolist(),
        "error": _distance(release.answer, truth),
        "estimate_error": _distance(release.estimate, truth),
        "degree": int(degree[state]),
        "least_degree": int(degree[possible].min()),
        "spent": float(stream.ledger.spent),
        "posterior": {
            "states": shown.tolist(),
            "probabilities": [float(f"{p:.4g}") for p in chances[shown]],
        },
        "private": release.private,
    }


def _distance(answer: FloatArray, truth: FloatArray) -> float:
    return round(hypot(*(answer - truth).tolist()), 6)


def _root_mean_square(answers: FloatArray, truth: FloatArray) -> float | None:
    if not len(truth):
        return None
    return round(sqrt(float(((answers - truth) ** 2).sum(axis=1).mean())), 6)
