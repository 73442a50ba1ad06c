"""Simulations: the possible set growing over time, and a made-up person who is released.

Nobody's data is here. The person is drawn from the model with a seed, and the noise from a
seeded generator, so that the same request gives the same picture; such releases are marked
as not private, and the page says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import hypot, sqrt
from typing import Any

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.cost.ledger import Ledger
from dphmm.errors import BudgetError, MissingExtraError
from dphmm.geometry.exact import as_text
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.policy.protection import degree_of_protection, exposed
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.release.said import Release
from dphmm.release.stream import Stream
from dphmm.studio.effects import exact_number, read_belief, read_epsilon, read_policy
from dphmm.studio.reading import Fields
from dphmm.studio.worlds import World

__all__ = ["Run", "read_limit", "read_repair", "read_runs", "timeline", "walk"]

MAX_HORIZON = 60
MAX_WALK = 200
MAX_RUNS = 2
SHOWN_STATES = 600
"""A posterior is sent as its likeliest states; what is left out is too faint to see."""


def timeline(world: World, fields: Fields) -> dict[str, Any]:
    """For each step from a start: how many states are possible, and how many exposed."""
    policy = read_policy(world, fields.inner("policy"))
    belief = read_belief(world, fields.inner("moment"))
    steps = []
    for time in range(fields.whole("horizon", 1, MAX_HORIZON, default=12) + 1):
        restricted = policy.restricted_to(belief.possible)
        hull = sensitivity_hull(world.query, restricted)
        alone = exposed(world.query, restricted, belief.possible, hull)
        steps.append(
            {
                "time": time,
                "possible": int(belief.possible.sum()),
                "exposed": len(alone),
                "rank": hull.rank,
                "area": exact_number(hull.volume),
            }
        )
        belief = belief.predict(world.model)
    return {"steps": steps}


@dataclass(frozen=True, eq=False)
class Run:
    """One way to release a walk."""

    policy: PolicyGraph
    epsilon: Fraction
    limit: Fraction | None
    mechanism: str
    repair: str | None


def read_runs(world: World, fields: Fields) -> list[Run]:
    """The one or two ways that a request compares."""
    return [
        Run(
            policy=read_policy(world, run.inner("policy")),
            epsilon=read_epsilon(run),
            limit=read_limit(run),
            mechanism=run.choice("mechanism", ("knorm", "laplace"), default="knorm"),
            repair=read_repair(run),
        )
        for run in fields.several("runs", MAX_RUNS)
    ]


def read_repair(fields: Fields) -> str | None:
    """The method of repair, or None for no repair."""
    choices = ("nearest", "min_area", "min_error", "none")
    chosen = fields.choice("repair", choices, default="min_error")
    return None if chosen == "none" else chosen


def read_limit(fields: Fields) -> Fraction | None:
    """The ledger's limit, or None for none."""
    if not fields.has("limit"):
        return None
    return fields.rational("limit", Fraction(1, 1000), Fraction(10**6), default="1")


def walk(world: World, fields: Fields) -> dict[str, Any]:
    """A simulated person's walk, released in each of the ways asked for."""
    seed = fields.whole("seed", 0, 2**32 - 1, default=1)
    length = fields.whole("length", 1, MAX_WALK, default=24)
    start = fields.state("start", world.n_states, default=0)
    runs = read_runs(world, fields)
    path = world.model.sample(length, rng=np.random.default_rng([seed, 0]), start=start)
    return {
        "simulated": True,
        "seed": seed,
        "start": start,
        "path": path.tolist(),
        "places": world.query.values[path].tolist(),
        "runs": [_released(world, run, path, start, seed) for run in runs],
    }


def _released(world: World, run: Run, path: IntArray, start: int, seed: int) -> dict[str, Any]:
    stream = Stream(
        world.model,
        Plan(run.policy, world.query, mechanism=run.mechanism, repair=run.repair),  # type: ignore[arg-type]
        epsilon=run.epsilon,
        start=Belief.certain(start, world.n_states),
        ledger=Ledger(run.limit),
        # The same noise generator for every run, so that a comparison differs by its rules only.
        randomness=SeededRandomness(np.random.default_rng([seed, 1])),
    )
    steps: list[dict[str, Any]] = []
    refused = None
    for state in path.tolist():
        try:
            release = stream.release(state)
        except BudgetError as error:
            refused = str(error)
            break
        steps.append(_step(world, stream, release, state))
    smoothed = stream.smoothed() if steps else np.zeros((0, world.query.dimension))
    truth = world.query.values[path[: len(steps)]]
    answers = np.array([step["answer"] for step in steps]).reshape(-1, world.query.dimension)
    estimates = np.array([step["estimate"] for step in steps]).reshape(answers.shape)
    return {
        "epsilon": as_text(run.epsilon),
        "limit": None if run.limit is None else exact_number(run.limit),
        "spent": exact_number(stream.ledger.spent),
        "refused": refused,
        "steps": steps,
        "smoothed": smoothed.round(6).tolist(),
        "degrees": _degrees(world, answers),
        "smoothed_degrees": _degrees(world, smoothed),
        "mean_error": {
            "answer": _root_mean_square(answers, truth),
            "estimate": _root_mean_square(estimates, truth),
            "smoothed": _root_mean_square(smoothed, truth),
        },
    }


def _step(world: World, stream: Stream, release: Release, state: int) -> dict[str, Any]:
    truth = world.query.values[state]
    possible = stream.prior.possible
    degree = degree_of_protection(world.query, stream.policy, possible, stream.hull)
    shown = np.argsort(-stream.posterior.probabilities, kind="stable")[:SHOWN_STATES]
    shown = shown[stream.posterior.probabilities[shown] > 1e-5]
    return {
        "time": release.time,
        "answer": release.answer.round(6).tolist(),
        "estimate": release.estimate.round(6).tolist(),
        "error": _distance(release.answer, truth),
        "estimate_error": _distance(release.estimate, truth),
        "degree": int(degree[state]),
        "least_degree": int(degree[possible].min()),
        "n_possible": int(possible.sum()),
        "spent": float(stream.ledger.spent),
        "posterior": {
            "states": shown.tolist(),
            "probabilities": [float(f"{p:.4g}") for p in stream.posterior.probabilities[shown]],
        },
        "statement": release.statement,
        "private": release.private,
    }


def _distance(answer: FloatArray, truth: FloatArray) -> float:
    return round(hypot(*(answer - truth).tolist()), 6)


def _root_mean_square(answers: FloatArray, truth: FloatArray) -> float | None:
    if not len(truth):
        return None
    return round(sqrt(float(((answers - truth) ** 2).sum(axis=1).mean())), 6)


def _degrees(world: World, answers: FloatArray) -> list[list[float]] | None:
    """Longitude and latitude of answers on a map, for export; None without a map."""
    if world.plane is None or not len(answers):
        return None
    try:
        latitude, longitude = world.plane.to_degrees(*(answers.T * world.metres))
    except MissingExtraError:
        return None
    degrees: list[list[float]] = np.stack([longitude, latitude], axis=1).round(7).tolist()
    return degrees
