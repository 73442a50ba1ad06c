"""Whole runs beside the paper's algorithms as printed, and hmmlearn's forward pass."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks import Figure
from benchmarks.as_printed import AsPrinted, smallest_area
from benchmarks.worlds import KILOMETRE, centre, fastest, lazy_grid
from dphmm import (
    Belief,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Stream,
    added_edges,
    sensitivity_hull,
)

STEPS = 100
MEASURED = (1, 10, 25, 50, 100)
"""Steps at which the printed algorithms are timed; between them the time is interpolated."""


def printed_run(model: MarkovModel, query: Query, policy: PolicyGraph, path: list[int]) -> float:
    """Seconds of a hundred steps of Algorithm 2 as printed."""
    printed = AsPrinted(model.transition.toarray(), policy.edges, query.values)
    belief = Belief.certain(centre(query), model.n_states)
    times = []
    for step in range(1, STEPS + 1):
        if step in MEASURED:
            start = perf_counter()
            printed.step(belief.probabilities, path[step - 1], 1.0)
            times.append(perf_counter() - start)
        belief = belief.predict(model)
    return float(np.interp(np.arange(1, STEPS + 1), MEASURED, times).sum())


def our_run(model: MarkovModel, query: Query, policy: PolicyGraph, path: list[int]) -> float:
    def walk() -> None:
        stream = Stream(model, Plan(policy, query), epsilon=1, start=centre(query))
        for state in path:
            stream.release(state)

    return fastest(walk, repeats=3)[0]


def whole_runs() -> list[Figure]:
    model, query = lazy_grid(2_500)
    path = model.sample(STEPS, rng=np.random.default_rng(0), start=centre(query)).tolist()
    figures = []
    for name, policy, target in (
        ("complete", PolicyGraph.complete(query.n_states), "ratio >= 300"),
        ("1 km", PolicyGraph.within_distance(query, KILOMETRE), "ratio >= 50"),
    ):
        ours = our_run(model, query, policy, path)
        printed = printed_run(model, query, policy, path)
        title = f"{STEPS} steps at N = 2,500, {name}: as printed"
        figures.append(Figure(title, printed, "s", "ours", printed / ours, target))
    return figures


def repair_at_scale() -> list[Figure]:
    """8,000 linked cells and 2,000 lone ones, scattered so that many are exposed at first."""
    rng = np.random.default_rng(0)
    cells = np.array(list(np.ndindex(100, 80))) * 10
    lone = np.unique(rng.integers(-40_000, 40_000, (2_100, 2)), axis=0)[:2_000] * 7 + 3
    query = Query(np.concatenate([cells, lone]))
    grid = PolicyGraph.within_distance(Query(cells), 14).links
    policy = PolicyGraph(query.n_states, grid)
    figures = []
    for method in ("nearest", "min_area", "min_error"):
        added_edges(query, policy.restricted_to(np.arange(query.n_states) < 8_010), None, method)
        start = perf_counter()
        edges = added_edges(query, policy, method=method)
        ours = perf_counter() - start
        title = f"{method} repair, N = 10,000, 2,000 exposed ({len(edges)} edges added)"
        if method == "nearest":
            figures.append(Figure(title, ours, "s"))
            continue
        corners = sensitivity_hull(query, policy).vertices
        state = int(edges[0, 0])
        others = query.values[np.arange(query.n_states) != state] - query.values[state]
        start = perf_counter()
        smallest_area(corners, others[:1_000])
        printed = (perf_counter() - start) * len(others) / 1_000 * len(edges)
        ratio = printed / ours
        figures.append(Figure(title, ours, "s", "times faster than printed", ratio, "ratio >= 100"))
    return figures


def filtering() -> list[Figure]:
    from hmmlearn import _hmmc

    model, _ = lazy_grid(2_500)
    rng = np.random.default_rng(0)
    likelihoods = -10 * rng.random((STEPS, model.n_states))
    start = Belief.uniform(model.n_states)

    def ours() -> None:
        belief = start
        for seen in likelihoods:
            belief = belief.predict(model).condition(seen)

    dense = model.transition.toarray()
    (seconds,) = fastest(ours, repeats=5)
    began = perf_counter()
    _hmmc.forward_log(start.probabilities, dense, likelihoods)
    hmmlearn = perf_counter() - began
    title = f"hmmlearn's forward pass, N = 2,500, {STEPS} steps"
    return [Figure(title, hmmlearn, "s", "our filter", hmmlearn / seconds, "ratio >= 500")]


def run() -> list[Figure]:
    return whole_runs() + repair_at_scale() + filtering()
