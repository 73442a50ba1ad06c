"""One stream, live: a release beside the arithmetic it cannot avoid.

The floor of a step is one SciPy sparse product (with the matrix stored the way the product
wants it) and one NumPy exponential over the states.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks import Figure
from benchmarks.worlds import centre, distance_policy, exponent, fastest, lazy_grid
from dphmm import Belief, MarkovModel, Plan, Query, Stream

STEPS = 100
WALKS = 12
SIZES = (100, 1_024, 10_000, 99_856)


def floor(model: MarkovModel) -> float:
    """Seconds of one product and one exponential."""
    incoming = model.transition.T.tocsr()
    belief = np.full(model.n_states, 1 / model.n_states)
    exponents = -10 * np.random.default_rng(0).random(model.n_states)
    (seconds,) = fastest(lambda: (incoming @ belief, np.exp(exponents)), inner=200)
    return seconds


def steady(model: MarkovModel, query: Query) -> float:
    """Seconds of one release after a hundred steps of a sampled walk."""
    rng = np.random.default_rng(1)
    path = model.sample(2 * STEPS, rng=rng, start=centre(query))
    plan = Plan(distance_policy(query), query)
    stream = Stream(model, plan, epsilon=1, start=Belief.uniform(model.n_states))
    for state in path[:STEPS]:
        stream.release(int(state))
    walk = iter(np.tile(path[STEPS:], 100).tolist())
    (seconds,) = fastest(lambda: stream.release(next(walk)), inner=100)
    return seconds


def from_a_known_start(model: MarkovModel, query: Query) -> float:
    """Seconds a step over a hundred steps, hulls and repair included, each walk in a fresh plan.

    A walk takes tens of milliseconds, which a busy machine interrupts; so the fastest time of
    every step is taken over the walks, and then their mean.
    """
    start = centre(query)
    path = model.sample(STEPS, rng=np.random.default_rng(2), start=start).tolist()
    policy = distance_policy(query)
    times = np.full((WALKS, STEPS), np.inf)
    for walk in times:
        began = perf_counter()
        stream = Stream(model, Plan(policy, query), epsilon=1, start=start)
        for step, state in enumerate(path):
            stream.release(state)
            walk[step], began = perf_counter() - began, perf_counter()
    return float(times[1:].min(axis=0).mean())


def run() -> list[Figure]:
    figures = []
    for n_states, target in ((1_369, "ratio <= 4"), (10_000, "ratio <= 3")):
        model, query = lazy_grid(n_states)
        ours, unavoidable = steady(model, query), floor(model)
        name = f"steady release, N = {n_states:,}"
        ratio = ours / unavoidable
        figures.append(Figure(name, 1e6 * ours, "us", "the floor", ratio, target))
    model, query = lazy_grid(1_369)
    ours, unavoidable = from_a_known_start(model, query), floor(model)
    figures.append(
        Figure(
            f"{STEPS} steps from a known start, N = 1,369, a step",
            1e6 * ours,
            "us",
            "the floor",
            ours / unavoidable,
            "ratio <= 12",
        )
    )
    worlds = [lazy_grid(n_states) for n_states in SIZES]
    times = [steady(*world) for world in worlds]
    for (model, _), seconds in zip(worlds, times, strict=True):
        figures.append(Figure(f"steady release, N = {model.n_states:,}", 1e6 * seconds, "us"))
    moves = [model.transition.nnz for model, _ in worlds]
    growth = exponent(moves[1:], times[1:])
    name = "growth of a steady release with the transitions, fitted exponent"
    return [*figures, Figure(name, growth, "", target="value <= 1.1")]
