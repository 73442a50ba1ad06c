"""What somebody with a chain of other people reads from answers: use for one, attack for another.

The same estimates are shown twice: as a share of the raw answer's error, which is what a wanted
reader gains, and as how near they come to the truth, which is what an unwanted one learns. Chains
are momentum chains of the people of the other folds, as the library makes them: of counts, or
private for everybody whom they are learned from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.memory import MemoryModel
from dphmm.evaluate.calibration import tracks_of
from dphmm.evaluate.intervals import RULE, People, by_person
from dphmm.evaluate.late import learn_chain
from dphmm.evaluate.metrics import distances
from dphmm.evaluate.parts import Part, Study
from dphmm.evaluate.protocol import protocol, seeds
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.study import FOLDS, Fold
from dphmm.evaluate.together import law_likelihoods, medians, read_together
from dphmm.evaluate.workloads import Workload
from dphmm.noise.distance import mean_noise
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.scenario.private import learn_private
from dphmm.tables.datasets import Trip

__all__ = ["Reading", "private_study", "reading_study"]

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
    private: str = ""
    """The epsilon of a chain that is private for the people of the other folds."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        price = self.epsilon.replace("/", "over") + (
            f"_private_{self.private}" * bool(self.private)
        )
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
        model, start = self.chain(workload, training)
        policy = PolicyGraph.within_distance(query, workload.radius)
        everywhere = np.ones(query.n_states, dtype=bool)
        usual = Plan(policy, query).at(everywhere).mechanism(Fraction(1))
        plan = Plan(policy, query, mechanism=self.mechanism)
        # A chain that may go anywhere rules nobody out, so every answer has this noise.
        law = plan.at(everywhere).mechanism(Fraction(self.epsilon))
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
        for row, trip in enumerate(runs):
            told: list[FloatArray | None] = [None] * self.steps
            told[:: self.every] = [
                law_likelihoods(law, said) for said in self.answers(law, trip.states, row)
            ]
            beliefs = read_together(told, model, start, len(self.seeds))
            truth = query.values[trip.states]
            for kind, places in zip(KINDS, beliefs, strict=True):
                found[kind][:, row] = distances(medians(places, query.values), truth[:, None]).T
        return found

    def chain(self, workload: Workload, training: list[Trip]) -> tuple[MemoryModel, Belief]:
        """What the answers are read by, and what is believed before the first of them."""
        if not self.private:
            return learn_chain(workload, [trip.states for trip in training], None)
        noise = np.random.default_rng([NOISE, self.seeds[0], self.fold])
        model = learn_private(
            tracks_of(training), workload.grid.centers, epsilon=self.private,
            randomness=SeededRandomness(noise),
        ).model.at(1)  # fmt: skip
        assert isinstance(model, MemoryModel), "people of GeoLife do not go far in a minute"
        # Nobody asked where people begin, so nothing is known of it.
        return model, model.known(Belief.uniform(model.n_places))

    def answers(self, law: Mechanism, states: IntArray, row: int) -> IntArray:
        """What is said on the lattice, every few steps from the first on: (times, seeds, 2)."""
        spoken, query = states[:: self.every], law.query
        said = []
        for seed in self.seeds:
            noise = SeededRandomness(np.random.default_rng([NOISE, seed, self.fold, row]))
            drawn = law.sample_lattice_many(0, len(spoken), noise).astype(np.int64)
            said.append(drawn - query.points[0] + query.points[spoken])
        return np.stack(said, axis=1)


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
            goals = chosen["goals"].get(setting["epsilon"])
            told = dict(_values(people, goals if setting["mechanism"] == "staircase" else None))
            values |= {f"{key}.{name}": value for name, value in told.items()}
            words = _words(setting)
            rows["utility"].append((words, _promise(setting, steps), *_utility(told)))
            rows["attack"].append((words, *_attack(told)))
        far = next(iter(parts))
        values["without"] = values.pop(f"{far}.without")
        return values, {
            "utility": Table(
                ("setting", "promise for paths linked at every time",
                 *(f"share of the raw error, {word}" for word in KINDS.values()),
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


def private_study(*, quick: bool = False) -> Study:
    """Estimates of people of GeoLife by chains that are private for the people of other folds.

    Args:
        quick: Whether to take one fold, one draw and short runs.
    """
    chosen = protocol()["private"]
    draws, together = 1 if quick else chosen["draws"], chosen["seeds"]
    parts = {
        epsilon: [
            [
                Reading(fold, tuple(range(together * draw, together * (draw + 1))), "knorm", "1", 1,
                        20 if quick else protocol()["late"]["steps"], 1, epsilon)
                for fold in range(1 if quick else FOLDS)
            ]
            for draw in range(draws)
        ]
        for epsilon in chosen["epsilons"]
    }  # fmt: skip

    def summarise(
        workloads: Mapping[str, Workload], found: Mapping[Part, dict[str, FloatArray]]
    ) -> tuple[dict[str, Value], dict[str, Table]]:
        values: dict[str, Value] = {}
        rows = []
        for epsilon, tasks in parts.items():
            each = [_people([found["geolife", task] for task in draw], together) for draw in tasks]
            # The same people in every draw of the chains.
            columns = {
                name: np.mean([people.columns[name] for people in each], axis=0)
                for name in each[0].columns
            }
            people = People(columns, seeds=draws * together)
            told = dict(_values(people, chosen["goals"][epsilon]))
            values |= {f"{epsilon}.{name}": value for name, value in told.items()}
            rows.append((f"ε = {epsilon}", *_utility(told)))
        head = ("private for each person learned from",
                *(f"share of the raw error, {word}" for word in KINDS.values()),
                *(f"worst person, {word}" for word in KINDS.values()),
                *(f"goal, {word}" for word in KINDS.values()))  # fmt: skip
        return values, {"utility": Table(head, tuple(rows))}

    return Study(
        name="private.geolife",
        about="Estimates by private chains of other people, GeoLife a minute a step, answers at "
        "ε = 1 and r = 1 km",
        module=__name__,
        parts=tuple(
            ("geolife", task) for every in parts.values() for tasks in every for task in tasks
        ),
        summarise=summarise,
        settings={**chosen, "rule": RULE},
        seeds=tuple(range(draws * together)),
    )


def _key(setting: Mapping[str, Any]) -> str:
    return f"{setting['mechanism']}.{setting['epsilon']}every{setting['every']}"


def _words(setting: Mapping[str, Any]) -> str:
    often = "every step" if setting["every"] == 1 else f"every {setting['every']} steps"
    noise = {"knorm": "K-norm"}.get(setting["mechanism"], setting["mechanism"])
    return f"ε = {setting['epsilon']} {often}, {noise}"


def _promise(setting: Mapping[str, Any], steps: int) -> str:
    """What an instant, a window and a run cost: no window of `every` steps holds two answers."""
    price, every = Fraction(setting["epsilon"]), setting["every"]
    window = "step" if every == 1 else f"{every} steps"
    whole = price * len(range(0, steps, every))
    return f"{price} at an instant, {price} in any {window}, {whole} in {steps} steps"


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
            yield name, people.mean(name, ".0%", share=True)
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
