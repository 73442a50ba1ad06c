"""Simulations: made-up people who are released as the scenario says.

Nobody's data is here. People are drawn from the model with a seed, and the noise from a seeded
generator, so that the same request gives the same picture; such releases are marked as not
private, and the page says so.
"""

from __future__ import annotations

from math import hypot
from typing import Any

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.estimates import estimate_of
from dphmm.chain.lagging import FixedLag
from dphmm.errors import BudgetError
from dphmm.geometry.exact import as_text
from dphmm.noise.randomness import SeededRandomness
from dphmm.release.stream import Stream
from dphmm.report.moments import Moments
from dphmm.scenario import Scenario
from dphmm.studio.drawing import Drawing
from dphmm.studio.effects import exact_number
from dphmm.studio.opened import Opened
from dphmm.studio.progress import begin, step
from dphmm.studio.requests import Draft, Walk

__all__ = ["expect_errors", "walk"]

SHOWN_STATES = 600
"""A posterior is sent as its likeliest states; what is left out is too faint to see."""

LAG = 6
"""Steps that a lagged estimate waits for."""

PEOPLE, STEPS = 6, 96
"""How many people the expected errors are tried on, and for how long."""


def walk(opened: Opened, request: Walk) -> dict[str, Any]:
    """Simulated people's walks, released in each of the ways asked for; one of them whole."""
    runs = [opened.scenario_of(draft) for draft in request.runs]
    person = min(request.person, request.people - 1)
    begin(request.people * len(runs) * request.length)
    films = [
        _film(runs, opened.drawing, request, number, brief=number != person)
        for number in range(request.people)
    ]
    return {
        "simulated": True,
        "person": person,
        **_times(runs[0], request.length),
        **films[person],
        "others": [film for film in films if film is not films[person]],
        "mean_error": [_pool([film["runs"][i] for film in films]) for i in range(len(runs))],
    }


def _film(
    runs: list[Scenario], drawing: Drawing, request: Walk, number: int, brief: bool
) -> dict[str, Any]:
    """One person's walk, and what is said of it in each of the ways."""
    seed = (request.seed + number) % 2**32
    path = _path(runs[0], seed, request.length)
    return {
        "number": number,
        "path": path.tolist(),
        "places": runs[0].query.values[path].tolist(),
        "runs": [_release(run, drawing, path, seed, brief) for run in runs],
    }


def _pool(found: list[dict[str, Any]]) -> dict[str, float | None]:
    """The mean distances over several people: of all answers, and of all steps."""
    pooled: dict[str, float | None] = {}
    for kind in found[0]["mean_error"]:
        known = [one for one in found if one["mean_error"][kind] is not None]
        weights = [one["answers"] if kind == "answer" else len(one["steps"]) for one in known]
        errors = [one["mean_error"][kind] for one in known]
        pooled[kind] = float(np.average(errors, weights=weights)) if known else None
    return pooled


def expect_errors(opened: Opened, draft: Draft) -> dict[str, Any]:
    """The mean distances of answers and estimates, over a few simulated people."""
    scenario = opened.scenario_of(draft)
    begin(PEOPLE * STEPS)
    found = []
    for seed in range(PEOPLE):
        path = _path(scenario, seed, STEPS)
        found.append(_release(scenario, opened.drawing, path, seed, brief=True))
    errors = {}
    for kind in found[0]["mean_error"]:
        known = [one["mean_error"][kind] for one in found if one["mean_error"][kind] is not None]
        errors[kind] = float(np.mean(known)) if known else None
    silent = any(one["answers"] < STEPS for one in found)
    return {"people": PEOPLE, "steps": STEPS, "silent": silent, "mean_error": errors}


def _path(scenario: Scenario, seed: int, length: int) -> IntArray:
    rng = np.random.default_rng([seed, 0])
    origin = scenario.settings.clock.first_slot or 0
    path: IntArray = scenario.model.sample(length, rng=rng, start=scenario.start, time=origin)
    return path


def _times(scenario: Scenario, length: int) -> dict[str, Any]:
    """When each step is by the clock of the place, if the scenario says when the first is."""
    first = scenario.settings.clock.first_slot
    if first is None:
        return {"times": None, "zone": ""}
    moments = Moments(scenario.settings.clock, range(first + 1, first + length + 1))
    return {"times": moments.labels, "zone": moments.zone}


def _release(
    scenario: Scenario, drawing: Drawing, path: IntArray, seed: int, brief: bool = False
) -> dict[str, Any]:
    # The same noise generator for every run, so that a comparison differs by its rules only.
    randomness = SeededRandomness(np.random.default_rng([seed, 1]))
    origin = scenario.settings.clock.first_slot or 0
    stream = scenario.stream("somebody", time=origin, randomness=randomness)
    steps = [_step(stream, state, brief) for state in path.tolist()]
    query, limit = scenario.query, scenario.settings.limit
    smoothed, truth = stream.smoothed(), query.values[path]
    lagged = _lagged(stream)
    answered = [i for i, one in enumerate(steps) if one["answer"] is not None]
    answers = np.array([steps[i]["answer"] for i in answered]).reshape(-1, query.dimension)
    estimates = np.array([one["estimate"] for one in steps])
    return {
        "epsilon": as_text(scenario.settings.epsilon),
        "limit": None
        if limit is None
        else {"words": limit.words, "total": limit.total and exact_number(limit.total)},
        "spent": exact_number(stream.ledger.spent),
        "answers": len(answered),
        "refused": sum(one["refused"] for one in steps),
        "steps": steps,
        "lagged": lagged.round(6).tolist(),
        "smoothed": smoothed.round(6).tolist(),
        "degrees": None if brief else drawing.degrees(answers),
        "mean_error": {
            "answer": _mean_distance(answers, truth[answered]),
            "estimate": _mean_distance(estimates, truth),
            "lagged": _mean_distance(lagged, truth),
            "smoothed": _mean_distance(smoothed, truth),
        },
    }


def _step(stream: Stream, state: int, brief: bool) -> dict[str, Any]:
    """One step of a stream: an answer, a silence of the schedule, or a refusal of the ledger."""
    step()
    answer, refused, private = None, False, False
    try:
        release = stream.release(state)
    except BudgetError:
        refused = True
        stream.skip()
    else:
        answer = None if release.silent else release.answer
        private = release.private
    model, values = stream.model, stream.query.values
    belief = model.place_belief(stream.posterior)
    estimate = estimate_of(belief, values, stream.estimate)
    facts = {
        "time": stream.time,
        "answer": None if answer is None else answer.round(6).tolist(),
        "estimate": estimate.round(6).tolist(),
        "error": None if answer is None else _distance(answer, values[state]),
        "estimate_error": _distance(estimate, values[state]),
        "spent": float(stream.ledger.spent),
        "refused": refused,
        "private": private,
    }
    if brief:
        return facts
    chances = belief.probabilities
    shown = np.argsort(-chances, kind="stable")[:SHOWN_STATES]
    shown = shown[chances[shown] > 1e-5]
    facts["posterior"] = {
        "states": shown.tolist(),
        "probabilities": [float(f"{p:.4g}") for p in chances[shown]],
    }
    return facts


def _lagged(stream: Stream) -> FloatArray:
    """The estimate of each step from what was said until a few steps later."""
    late = FixedLag(stream.model, lag=LAG, start=stream.start, time=stream.began)
    settled = [one for row in stream.observations() for one in late.step(row)]
    beliefs = [one.belief for one in (*settled, *late.finish())]
    values = stream.query.values
    return np.array([estimate_of(one, values, stream.estimate) for one in beliefs])


def _distance(answer: FloatArray, truth: FloatArray) -> float:
    return round(hypot(*(answer - truth).tolist()), 6)


def _mean_distance(points: FloatArray, truth: FloatArray) -> float | None:
    if not len(truth):
        return None
    return round(float(np.linalg.norm(points - truth, axis=1).mean()), 6)
