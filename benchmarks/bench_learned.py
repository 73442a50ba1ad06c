"""What a learned model costs: the same moves, and a small probability of going anywhere.

Both are measured in turn, by processor time, so that a busy machine tells on both alike.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np

from benchmarks import Figure
from benchmarks.worlds import distance_policy, fastest, lazy_grid
from dphmm import Batch, Belief, MarkovModel, Plan, Query, Stream

ANYWHERE = 0.01
ROUNDS = 40
RELEASES = 50
PEOPLE = 500


def steady(model: MarkovModel, query: Query) -> Callable[[], object]:
    """Some releases of a stream that has been going on for long."""
    plan = Plan(distance_policy(query), query)
    stream = Stream(model, plan, epsilon=1, start=Belief.uniform(model.n_states))

    def step() -> None:
        for _ in range(RELEASES):
            stream.release(0)

    return step


def together(model: MarkovModel, query: Query) -> Callable[[], object]:
    """One step of a batch that has been going on for long."""
    plan, people = Plan(distance_policy(query), query), [f"p{one}" for one in range(PEOPLE)]
    start = Belief.uniform(model.n_states)
    batch = Batch(model, plan, epsilon=1, people=people, start=start, threads=1)
    states = np.zeros(PEOPLE, dtype=np.int64)
    return lambda: batch.release(states)


def run() -> list[Figure]:
    figures = []
    for n_states in (1_369, 10_000):
        stated, query = lazy_grid(n_states)
        learned = MarkovModel(stated.transition, anywhere=ANYWHERE)
        kinds = [("steady release", steady, RELEASES, "ratio <= 1.15")]
        if n_states == 1_369:
            kinds.append(("batch", together, PEOPLE, "ratio <= 1.2"))
        for name, make, count, target in kinds:
            facts, guesses = fastest(
                make(stated, query), make(learned, query), repeats=ROUNDS, clock=process_time
            )
            title = f"{name}, learned model, N = {n_states:,}"
            value, ratio = 1e6 * guesses / count, guesses / facts
            figures.append(Figure(title, value, "us", "stated zeros", ratio, target))
    return figures
