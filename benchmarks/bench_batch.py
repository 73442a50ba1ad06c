"""Many people in bulk, beside the same product and exponential on the same shapes."""

from __future__ import annotations

import resource
from time import perf_counter

import numpy as np

from benchmarks import Figure
from benchmarks.worlds import centre, distance_policy, exponent, lazy_grid
from dphmm import Batch, Plan

STATES = 1_369
PEOPLE = 10_000
STEPS = 100
GIBIBYTE = 2**30


def person_steps(people: int, steps: int) -> float:
    """Seconds of a batch that releases for some people at some steps from one start."""
    model, query = lazy_grid(STATES)
    rng = np.random.default_rng(0)
    paths = [model.sample(steps, rng=rng, start=centre(query)) for _ in range(64)]
    states = np.array(paths).T[:, rng.integers(64, size=people)]
    names = [f"person {number}" for number in range(people)]
    batch = Batch(
        model, Plan(distance_policy(query), query), epsilon=1, people=names, start=centre(query)
    )
    start = perf_counter()
    for now in states:
        batch.release(now)
    return perf_counter() - start


def floor(people: int, steps: int) -> float:
    """Seconds of the same number of sparse products and exponentials, extrapolated from three."""
    model, _ = lazy_grid(STATES)
    incoming = model.transition.T.tocsr()
    beliefs = np.full((model.n_states, people), 1 / model.n_states)
    exponents = -10 * np.random.default_rng(0).random(beliefs.shape)
    start = perf_counter()
    for _ in range(3):
        incoming @ beliefs
        np.exp(exponents)
    return (perf_counter() - start) / 3 * steps


def run() -> list[Figure]:
    person_steps(300, 2)
    ours = person_steps(PEOPLE, STEPS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIBIBYTE
    unavoidable = floor(PEOPLE, STEPS)
    name = f"batch, {PEOPLE:,} people x {STEPS} steps x {STATES:,} states"
    figures = [
        Figure(name, ours, "s", "of the floor's speed", unavoidable / ours, "ratio >= 0.5"),
        Figure("its person-steps a second", PEOPLE * STEPS / ours, "1/s"),
        Figure("peak memory of the process", peak, "GiB", target="value <= 2"),
    ]
    groups = [500, 2_000, 8_000]
    growth = exponent(groups, [person_steps(people, 10) for people in groups])
    figures.append(Figure("growth with people, fitted exponent", growth, ""))
    lengths = [10, 40, 160]
    growth = exponent(lengths, [person_steps(1_000, steps) for steps in lengths])
    return [*figures, Figure("growth with steps, fitted exponent", growth, "")]
