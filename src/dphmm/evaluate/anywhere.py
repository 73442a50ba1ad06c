"""How probable it should be to go anywhere: chains of five people read the answers of others.

With so few people most moves of others were never counted. A chain that takes what it has not seen
for impossible stays stuck; one that may go anywhere too often learns nothing from its counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.markov import MarkovModel
from dphmm.evaluate.intervals import RULE, People
from dphmm.evaluate.metrics import distances
from dphmm.evaluate.parts import Part, Study
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.workloads import Workload
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.stream import Stream
from dphmm.tables.datasets import cut_trips

__all__ = ["FewPeople", "anywhere_study"]

NOISE = 131
FACTS = "facts"
HELD_OUT = "held-out"
NAMES = {"city": "made-up city", "geolife": "GeoLife"}
WORDS = {FACTS: "none: zeros are facts", HELD_OUT: "chosen by held-out moves"}


@dataclass(frozen=True)
class FewPeople:
    """Walks of others, released and read with a chain of a few people."""

    anywhere: str
    """The probability, or what is done instead."""
    draw: int
    """Which people the chain is of."""
    learned: int
    people: int
    """At most so many others, one walk each."""
    steps: int

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"anywhere_{self.anywhere}_{self.draw}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Kilometres from the truth by walk, of estimates and answers; whose walk. Private."""
        names = sorted({trip.person for trip in workload.trips})
        rng = np.random.default_rng([NOISE, self.draw])
        order = [names[place] for place in rng.permutation(len(names))]
        few = set(order[: self.learned])
        walks = [trip.states for trip in workload.trips if trip.person in few]
        model = self.chain(walks, workload.query.n_states)
        policy = PolicyGraph.within_distance(workload.query, workload.radius)
        plan = Plan(policy, workload.query)
        runs = cut_trips(workload.trips, self.steps)
        one_of = {runs[place].person: runs[place] for place in rng.permutation(len(runs))}
        others = [name for name in order[self.learned :] if name in one_of][: self.people]
        found: dict[str, list[float]] = {"person": [], "estimate": [], "answer": [], "equal": []}
        for person in others:
            noise = SeededRandomness(np.random.default_rng([NOISE, self.draw, names.index(person)]))
            unknown = Belief.uniform(workload.query.n_states)
            stream = Stream(model, plan, epsilon=1, start=unknown, randomness=noise)
            states = one_of[person].states
            said = [stream.release(int(state)) for state in states]
            truth = workload.query.values[states]
            answers = np.array([one.answer for one in said])
            found["person"].append(names.index(person))
            found["estimate"].append(distances([one.estimate for one in said], truth).mean())
            found["answer"].append(distances(answers, truth).mean())
            found["equal"].append(float((answers[1:] == answers[:-1]).all(axis=1).mean()))
        return {name: np.array(values, dtype=np.float64) for name, values in found.items()}

    def chain(self, walks: list[np.ndarray], n_states: int) -> MarkovModel:
        """The chain of some walks."""
        if self.anywhere == FACTS:
            return MarkovModel.fit(walks, n_states=n_states, zeros="facts")
        if self.anywhere == HELD_OUT:
            return MarkovModel.fit(walks, n_states=n_states, anywhere="held-out")
        return MarkovModel.fit(walks, n_states=n_states, anywhere=float(self.anywhere))


def anywhere_study(*, quick: bool = False) -> Study:
    """Errors of estimates by chains of few people, for every probability of the protocol.

    Args:
        quick: Whether to take one draw of people and short walks.
    """
    chosen = protocol()["anywhere"]
    draws = range(1 if quick else chosen["draws"])
    steps, people = (10, 4) if quick else (chosen["steps"], chosen["people"])
    parts: dict[tuple[str, str], list[FewPeople]] = {
        (name, value): [FewPeople(value, draw, chosen["learned"], people, steps) for draw in draws]
        for name in NAMES
        for value in chosen["values"]
    }

    def summarise(
        workloads: Mapping[str, Workload], found: Mapping[Part, dict[str, FloatArray]]
    ) -> tuple[dict[str, Value], dict[str, Table]]:
        values: dict[str, Value] = {}
        for (name, value), tasks in parts.items():
            everybody = _people([found[name, task] for task in tasks])
            for column in ("estimate", "answer"):
                values[f"{name}.{value}.{column}"] = everybody.mean(column, ".0f", unit="m")
            values[f"{name}.{value}.equal"] = everybody.mean("equal", ".1%", share=True)
        rows = tuple(
            (WORDS.get(value, value), *(values[f"{name}.{value}.estimate"].text(interval=True)
                                        for name in NAMES))
            for value in chosen["values"]
        )  # fmt: skip
        head = ("`anywhere`", *(f"{name}, metres" for name in NAMES.values()))
        return values, {"errors": Table(head, rows)}

    return Study(
        name="anywhere",
        about="Estimates of people by chains of five others, ε = 1 a step, distance policy",
        module=__name__,
        parts=tuple((name, task) for (name, _), tasks in parts.items() for task in tasks),
        summarise=summarise,
        settings={**chosen, "rule": RULE},
        seeds=tuple(draws),
    )


def _people(results: list[dict[str, FloatArray]]) -> People:
    """One row a person: the means over all draws in which they were among the others."""
    owners = np.concatenate([result["person"] for result in results])
    columns = {}
    for name, scale in (("estimate", 1000), ("answer", 1000), ("equal", 1)):
        rows = scale * np.concatenate([result[name] for result in results])
        columns[name] = np.array([rows[owners == one].mean() for one in np.unique(owners)])
    return People(columns, seeds=len(results))
