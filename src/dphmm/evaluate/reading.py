"""What somebody with a chain of other people reads from answers: use for one, attack for another.

The same estimates are shown twice: as a share of the raw answer's error, which is what a wanted
reader gains, and as how near they come to the truth, which is what an unwanted one learns. Chains
are momentum chains of the people of the other folds, as the library makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.evaluate.intervals import RULE, People, by_person
from dphmm.evaluate.late import learn_chain
from dphmm.evaluate.metrics import distances
from dphmm.evaluate.parts import Part, Study
from dphmm.evaluate.protocol import protocol, seeds
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.study import FOLDS, Fold
from dphmm.evaluate.workloads import Workload
from dphmm.noise.distance import mean_noise
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.schedule import Schedule
from dphmm.release.stream import Stream

__all__ = ["Reading", "reading_study"]

NOISE = 161
KINDS = {"filtered": "answers so far", "smoothed": "all answers"}
NEAR_KM = (0.25, 1.0)


@dataclass(frozen=True)
class Reading:
    """Runs of one fold's people, released and read with some seeds."""

    fold: int
    seeds: tuple[int, ...]
    mechanism: str
    epsilon: str
    every: int
    steps: int
    runs: int
    """At most so many of a person."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        price = self.epsilon.replace("/", "over")
        return f"reading_{self.mechanism}_{price}_{self.every}_{self.fold}_{self.seeds[0]}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Distances to the truth by seed, run and step; the raw answer's; whose run. Private."""
        training, every = Fold(self.fold, self.steps).parts(workload)
        met: dict[str, int] = {}
        runs = []
        for trip in every:
            met[trip.person] = met.get(trip.person, 0) + 1
            if met[trip.person] <= self.runs:
                runs.append(trip)
        query = workload.query
        model, start = learn_chain(workload, [trip.states for trip in training], None)
        policy = PolicyGraph.within_distance(query, workload.radius)
        plan = Plan(policy, query, mechanism=self.mechanism)
        everywhere = np.ones(query.n_states, dtype=bool)
        usual = Plan(policy, query).at(everywhere).mechanism(Fraction(1))
        shape = (len(self.seeds), len(runs), self.steps)
        found = {name: np.empty(shape) for name in KINDS}
        names = sorted(met)
        found["person"] = np.array([names.index(trip.person) for trip in runs], dtype=np.float64)
        found["raw"] = np.array(mean_noise(usual))
        before = np.bincount(model.current, start.probabilities, query.n_states)
        guess = Belief.from_probabilities(before / before.sum()).median(query.values)
        found["without"] = np.array(
            [distances(guess, query.values[trip.states]) for trip in runs]
        ).reshape(shape[1:])
        for place, seed in enumerate(self.seeds):
            for row, trip in enumerate(runs):
                noise = np.random.default_rng([NOISE, seed, self.fold, row])
                stream = Stream(
                    model, plan, epsilon=Fraction(self.epsilon), start=start,
                    schedule=Schedule(every=self.every, phase=1),
                    randomness=SeededRandomness(noise), estimate="median",
                )  # fmt: skip
                truth = query.values[trip.states]
                now = np.array([stream.release(int(state)).estimate for state in trip.states])
                found["filtered"][place, row] = distances(now, truth)
                found["smoothed"][place, row] = distances(stream.smoothed(), truth)
        return found


def reading_study(*, quick: bool = False) -> Study:
    """What answers tell about people of GeoLife, for every setting of the protocol.

    Args:
        quick: Whether to take one fold and a few seeds.
    """
    chosen = protocol()["late"]
    every = seeds(quick)
    folds = range(1 if quick else FOLDS)
    steps = 20 if quick else chosen["steps"]
    parts = {
        _key(setting): [
            Reading(fold, every, steps=steps, runs=chosen["runs_a_person"], **setting)
            for fold in folds
        ]
        for setting in chosen["settings"]
    }

    def summarise(
        workloads: Mapping[str, Workload], found: Mapping[Part, dict[str, FloatArray]]
    ) -> tuple[dict[str, Value], dict[str, Table]]:
        values: dict[str, Value] = {}
        rows: dict[str, list[tuple[str, ...]]] = {"utility": [], "attack": []}
        for setting in chosen["settings"]:
            key = _key(setting)
            people = _people([found["geolife", task] for task in parts[key]], len(every))
            told = dict(_values(people, chosen["goals"].get(setting["epsilon"])))
            values |= {f"{key}.{name}": value for name, value in told.items()}
            words = f"ε = {setting['epsilon']} every {setting['every']}, {setting['mechanism']}"
            rows["utility"].append((words.replace("every 1,", "every step,"), *_utility(told)))
            rows["attack"].append((words.replace("every 1,", "every step,"), *_attack(told)))
        far = next(iter(parts))
        values["without"] = values.pop(f"{far}.without")
        return values, {
            "utility": Table(
                ("setting", *(f"share of the raw error, {word}" for word in KINDS.values()),
                 *(f"worst person, {word}" for word in KINDS.values()),
                 *(f"goal, {word}" for word in KINDS.values())),
                tuple(rows["utility"]),
            ),
            "attack": Table(
                ("setting", *(f"km from the truth, {word}" for word in KINDS.values()),
                 *(f"within {near:g} km, {word}" for near in NEAR_KM for word in KINDS.values())),
                tuple(rows["attack"]),
            ),
        }  # fmt: skip

    return Study(
        name="reading.geolife",
        about="Estimates by a momentum chain of other people, GeoLife a minute a step, r = 1 km",
        module=__name__,
        parts=tuple(("geolife", task) for tasks in parts.values() for task in tasks),
        summarise=summarise,
        settings={**chosen, "rule": RULE},
        seeds=every,
    )


def _key(setting: Mapping[str, Any]) -> str:
    return f"{setting['mechanism']}.{setting['epsilon']}every{setting['every']}"


def _people(results: list[dict[str, FloatArray]], number: int) -> People:
    """One row a person: mean distances, and how often an estimate is near."""
    names = [
        f"{fold}/{int(one)}" for fold, result in enumerate(results) for one in result["person"]
    ]
    columns: dict[str, FloatArray] = {}

    def join(name: str, rows: list[FloatArray]) -> None:
        columns[name] = by_person(np.concatenate(rows), names)[0]

    for kind in KINDS:
        join(kind, [result[kind].mean(axis=(0, 2)) for result in results])
        raws = [result[kind].mean(axis=(0, 2)) / float(result["raw"]) for result in results]
        join(f"share.{kind}", raws)
        for near in NEAR_KM:
            close = [(result[kind] <= near).mean(axis=(0, 2)) for result in results]
            join(f"near{near:g}.{kind}", close)
    join("without", [result["without"].mean(axis=1) for result in results])
    return People(columns, seeds=number)


def _values(people: People, goals: list[float] | None) -> Iterator[tuple[str, Value]]:
    for place, kind in enumerate(KINDS):
        yield f"share.{kind}", people.mean(f"share.{kind}", ".1%")
        yield f"worst.{kind}", Value(float(people.columns[f"share.{kind}"].max()), ".1%")
        yield f"km.{kind}", people.mean(kind, ".2f", unit="km")
        for near in NEAR_KM:
            name = f"near{near:g}.{kind}"
            yield name, people.mean(name, ".0%")
        if goals is not None:
            yield (
                f"goal.{kind}",
                people.verdict(
                    lambda means, k=kind, g=goals[place]: g - means[f"share.{k}"],  # type: ignore[misc]
                    f"below {goals[place]:.1%}",
                ),
            )
    yield "without", people.mean("without", ".2f", unit="km")


def _utility(told: Mapping[str, Value]) -> Iterator[str]:
    for kind in KINDS:
        yield told[f"share.{kind}"].text(interval=True)
    for kind in KINDS:
        yield told[f"worst.{kind}"].text()
    for kind in KINDS:
        goal = told.get(f"goal.{kind}")
        yield "" if goal is None else f"{goal.note.partition(':')[0]}: {goal.value}"


def _attack(told: Mapping[str, Value]) -> Iterator[str]:
    for kind in KINDS:
        yield told[f"km.{kind}"].text(interval=True)
    for near in NEAR_KM:
        for kind in KINDS:
            yield told[f"near{near:g}.{kind}"].text(interval=True)
