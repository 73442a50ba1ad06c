"""The paper's experiments: one `Task` is one point of a curve, kept in a file once it is done.

A result holds errors and degrees of protection of true states, so it is private. Noise comes
from a seeded generator: these releases are experiments and must not be published.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import process_time

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.evaluate.metrics import distances, hidden_among, protected_state
from dphmm.evaluate.workloads import LEARNED, MOVES, Workload
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.policy.repair import RepairMethod
from dphmm.release.stream import Stream

__all__ = ["POLICIES", "Task", "make_policy", "measure", "tasks_of", "warm_up"]

POLICIES = ("distance", "one_step", "location_set")
"""G_util, G_trs, and the complete graph on the δ-location set of the earlier work."""

MEASURES = ("seconds", "hidden", "error", "filtered", "smoothed", "possible", "stand_in", "anew")
SEED = 80


@dataclass(frozen=True)
class Task:
    """One setting of the experiments; every sequence is released under it."""

    policy: str
    learned: str = "others"
    moves: str = "all"
    epsilon: str = "1"
    radius: str = ""
    repair: RepairMethod = "min_error"
    shape: str = "hull"
    anew: bool = False
    """Whether to time also the public half of each step without memory, as the paper did."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        fields = [str(value) for value in asdict(self).values() if value]
        return "_".join(fields)

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Every measure, one row a sequence and one column a step. Private."""
        return measure(workload, self)


def tasks_of(workload: Workload) -> list[Task]:
    """Every task of the paper's figures, each once; those that take longest come first."""
    tasks: list[Task] = []
    for learned in LEARNED:
        for policy in reversed(POLICIES):
            radius = workload.radius if policy == "distance" else ""
            anew = learned == "others"
            tasks += [Task(policy, learned, m, radius=radius, anew=anew) for m in MOVES]
            tasks += [
                Task(policy, learned, "all", epsilon, radius)
                for epsilon in workload.epsilons
                if epsilon != "1"
            ]
        tasks += [
            Task("distance", learned, "all", radius=radius)
            for radius in workload.radii
            if radius != workload.radius
        ]
    for policy, radius in (("distance", workload.radius), ("one_step", "")):
        tasks.append(Task(policy, radius=radius, repair="nearest"))
        tasks.append(Task(policy, radius=radius, shape="enlarged"))
    return tasks


def measure(workload: Workload, task: Task) -> dict[str, FloatArray]:
    """Every measure of a task, one row a sequence and one column a step. Private."""
    model = workload.model(task.learned, task.moves)
    policy, delta = make_policy(workload, task.policy, task.radius, model)
    plan = Plan(policy, workload.query, repair=task.repair, shape=task.shape, delta=delta)
    warm_up(workload, model, plan.replace(repair="min_error", shape="hull"))
    results = {
        name: np.full((len(workload.sequences), workload.steps), np.nan) for name in MEASURES
    }
    for number, trip in enumerate(workload.sequences):
        # Each person on their own where time is measured; elsewhere they share what is public.
        stream = Stream(
            model,
            plan.replace() if task.anew else plan,
            epsilon=task.epsilon,
            start=workload.start(model, int(trip.states[0])),
            randomness=SeededRandomness(np.random.default_rng([SEED, number])),
        )
        rows = {name: result[number] for name, result in results.items()}
        _measure_sequence(stream, trip.states[1:], rows, task.anew)
    return results


def _measure_sequence(
    stream: Stream, states: IntArray, rows: dict[str, FloatArray], anew: bool
) -> None:
    query, plan = stream.query, stream.plan
    truth = query.values[states]
    for step, state in enumerate(states):
        began = process_time()
        release = stream.release(int(state))
        rows["seconds"][step] = process_time() - began
        possible = plan.to_protect(stream.prior)
        assert stream.hull is not None
        meant = protected_state(query, possible, int(state))
        rows["hidden"][step] = hidden_among(query, possible, stream.hull, meant)
        rows["stand_in"][step] = meant != state
        rows["possible"][step] = possible.sum()
        rows["error"][step] = distances(release.answer, truth[step])
        rows["filtered"][step] = distances(release.estimate, truth[step])
        if anew:
            began = process_time()
            plan.replace().at(possible)
            rows["anew"][step] = process_time() - began
    if stream.epsilon == 1:
        rows["smoothed"][:] = distances(stream.smoothed(), truth)


def make_policy(
    workload: Workload, policy: str, radius: str, model: MarkovModel
) -> tuple[PolicyGraph, float]:
    """The graph of a policy's name, and the delta of its location set."""
    if policy == "distance":
        return PolicyGraph.within_distance(workload.query, radius), 0.0
    if policy == "one_step":
        return PolicyGraph.one_step(model), 0.0
    if policy == "location_set":
        return PolicyGraph.complete(workload.query.n_states), workload.delta
    raise ArgumentError(f"policy must be one of {', '.join(POLICIES)}, got {policy!r}")


def warm_up(workload: Workload, model: MarkovModel, plan: Plan) -> None:
    """Compile what is compiled on first use, so that no step's time includes it."""
    start = workload.start(model, int(workload.sequences[0].states[0]))
    randomness = SeededRandomness(np.random.default_rng(0))
    stream = Stream(model, plan, epsilon=1, start=start, randomness=randomness)
    for _ in range(3):
        stream.release(start)
