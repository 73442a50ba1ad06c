"""How the cost grows: states, edges, dimension, people, steps; with a plot in bench/scaling.svg."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import Figure
from benchmarks.bench_batch import person_steps
from benchmarks.bench_stream import steady
from benchmarks.worlds import CELL, centre, exponent, fastest, lazy_grid
from dphmm import Belief, MarkovModel, Plan, PolicyGraph, Query, Stream

PLOT = Path(__file__).parent.parent / "bench" / "scaling.svg"
Curve = tuple[list[int], list[float]]


def by_states() -> Curve:
    worlds = [lazy_grid(n_states) for n_states in (100, 1_024, 10_000, 99_856)]
    return [model.n_states for model, _ in worlds], [steady(*world) for world in worlds]


def by_edges() -> Curve:
    """A possible set that was never met, under wider and wider distance policies."""
    model, query = lazy_grid(2_500)
    possible = Belief.certain(centre(query), query.n_states)
    for _ in range(12):
        possible = possible.predict(model)
    edges, times = [], []
    for radius in (1, 2, 4, 8, 16):
        policy = PolicyGraph.within_distance(query, radius * CELL)
        plan = Plan(policy, query)
        plan.at(possible.possible)

        def afresh(plan: Plan = plan) -> None:
            plan._cache.latest = None
            plan._cache.met.clear()
            plan.at(possible.possible)

        edges.append(len(policy.links))
        times.append(fastest(afresh, inner=5)[0])
    return edges, times


def by_dimension() -> Curve:
    """A steady release of 1,000 states whose answers lie in more and more dimensions."""
    rng = np.random.default_rng(0)
    moves = np.eye(1_000) + np.eye(1_000, k=1) + np.eye(1_000, k=-1)
    model = MarkovModel(moves / moves.sum(axis=1, keepdims=True))
    dimensions, times = [1, 2, 3, 4], []
    for dimension in dimensions:
        query = Query(rng.integers(-20, 21, (1_000, dimension)))
        pairs = [(state, state + 1) for state in range(0, 1_000, 25)]
        plan = Plan(PolicyGraph(1_000, pairs), query, repair=None)
        stream = Stream(model, plan, epsilon=1, start=Belief.uniform(1_000))
        stream.release(500)
        times.append(fastest(lambda stream=stream: stream.release(500), inner=50)[0])
    return dimensions, times


def by_people() -> Curve:
    people = [250, 1_000, 4_000]
    return people, [person_steps(count, 10) for count in people]


def by_steps() -> Curve:
    steps = [10, 40, 160]
    return steps, [person_steps(500, count) for count in steps]


def plot(curves: dict[str, Curve]) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(curves), figsize=(3 * len(curves), 3), layout="tight")
    for panel, (name, (sizes, times)) in zip(panels, curves.items(), strict=True):
        panel.loglog(sizes, 1000 * np.array(times), marker="o", color="#0b6e6e")
        panel.set_xlabel(name)
        panel.set_ylabel("ms")
        panel.set_title(f"exponent {exponent(sizes, times):.2f}", fontsize=9)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT)
    pyplot.close(figure)


def run() -> list[Figure]:
    person_steps(300, 2)
    curves = {
        "states": by_states(),
        "edges": by_edges(),
        "dimension": by_dimension(),
        "people": by_people(),
        "steps": by_steps(),
    }
    plot(curves)
    what = {
        "states": "a steady release",
        "edges": "a possible set never met",
        "dimension": "a steady release",
        "people": "ten steps of a batch",
        "steps": "a batch of 500 people",
    }
    return [
        Figure(f"{what[name]}, growth with {name}, fitted exponent", exponent(*curve), "")
        for name, curve in curves.items()
    ]
