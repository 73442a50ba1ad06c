"""Better estimates at the same epsilon: readers compared on people they were not learned from.

People are dealt into folds, ids of one person together. Each fold's sequences are released under
the distance policy with a chain of the other folds, and the same answers are read by every reader.
The readers' weights are chosen within the other folds: by how well a chain of some of their people
predicts the moves of the rest. So nothing about the evaluated people is used, not even to tune.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.ground import TURNS
from dphmm.chain.momentum import contexts_of
from dphmm.chain.pairs import SecondOrderModel, pair_numbers
from dphmm.evaluate.metrics import distances
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.readers import (
    ESTIMATES,
    Reader,
    at_hours,
    first_order,
    hourly,
    log_score,
    momentum,
    second_order,
)
from dphmm.evaluate.workloads import Workload
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.stream import Stream
from dphmm.tables.datasets import Trip, cut_trips, same_person

__all__ = ["READERS", "Fold", "folds_of", "ratios"]

READERS = ("first_order", "hourly", "second_order", "momentum")
FOLDS: int = protocol()["people"]["folds"]
DEAL: int = protocol()["people"]["deal"]
NOISE = 81
WEIGHTS = (0.3, 1.0, 3.0, 10.0)
TRUSTS = (3.0, 10.0, 30.0)
PATIENCES = (6, 12)


@dataclass(frozen=True)
class Fold:
    """The sequences of one fifth of the people, released and read."""

    number: int
    steps: int
    limit: int | None = None
    """At most so many sequences, for a quick look."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"readers_{self.number}_of_{FOLDS}_steps_{self.steps}_limit_{self.limit}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Errors of answers and of every reader's estimates, and the weights chosen. Private."""
        training, runs = self.parts(workload)
        if not runs:
            return {"raw": np.zeros((0, self.steps))}
        chosen = choose(workload, training, deal(workload.trips), (self.number + 1) % FOLDS)
        return {**_read_runs(workload, training, runs, chosen, self.number), **_as_arrays(chosen)}

    def parts(self, workload: Workload) -> tuple[list[Trip], list[Trip]]:
        """The trips to learn from, and the runs of other people to release and read."""
        tested = workload.trips if workload.tested is None else workload.tested
        fold = deal(tested)
        held_out = [trip for trip in tested if fold[trip.person] == self.number]
        away = {trip.person for trip in held_out}
        training = [trip for trip in workload.trips if trip.person not in away]
        return training, cut_trips(held_out, self.steps)[: self.limit]


@dataclass(frozen=True)
class Chosen:
    """The weights of the readers, and how well each predicts the moves of other people."""

    weight: float
    hourly_trust: float
    pair_trust: float
    trust: float
    patience: int


def folds_of(workload: Workload, *, quick: bool = False) -> list[Fold]:
    """The tasks of the study: runs of 100 steps, or a few short ones; none for irregular steps."""
    if not workload.regular:
        return []
    if quick:
        return [Fold(0, 20, 2)]
    return [Fold(number, 100) for number in range(FOLDS)]


def deal(trips: list[Trip]) -> dict[str, int]:
    """Which fold each id belongs to; ids that are one person belong to one."""
    person = same_person(trips)
    people = sorted(set(person.values()))
    order = np.random.default_rng(DEAL).permutation(len(people))
    fold = {people[place]: position % FOLDS for position, place in enumerate(order)}
    return {name: fold[one] for name, one in person.items()}


def choose(workload: Workload, training: list[Trip], fold: dict[str, int], last: int) -> Chosen:
    """The weights that predict the moves of one training fold best from the others."""
    ground = workload.ground
    learn = [trip.states for trip in training if fold[trip.person] != last]
    check = [trip.states for trip in training if fold[trip.person] == last]
    sources = np.concatenate([states[:-1] for states in check])
    targets = np.concatenate([states[1:] for states in check])

    def first_score(weight: float) -> float:
        chain = first_order(learn, ground, weight=weight).chain.at(1)
        return log_score(chain.transition, sources, targets)

    weight = max(WEIGHTS, key=first_score)

    def momentum_score(setting: tuple[float, int]) -> float:
        trust, patience = setting
        options = {"weight": weight, "trust": trust, "patience": patience}
        model = momentum(learn, ground, **options).chain.at(1)  # type: ignore[arg-type]
        seen = [contexts_of(states, ground, patience) for states in check]
        contexts = TURNS + patience
        before = sources * contexts + np.concatenate([context[:-1] for context in seen])
        after = targets * contexts + np.concatenate([context[1:] for context in seen])
        return log_score(model.transition, before, after)

    def pair_score(trust: float) -> float:
        return _pair_score(second_order(learn, ground, weight=weight, trust=trust), check)

    trust, patience = max(product(TRUSTS, PATIENCES), key=momentum_score)
    bands = [workload.bands(t.times) for t in training if fold[t.person] != last]
    check_bands = [workload.bands(t.times) for t in training if fold[t.person] == last]
    into = np.concatenate([rows[1:] for rows in check_bands])

    def hourly_score(among: float) -> float:
        total = 0.0
        for band, model in enumerate(hourly(learn, bands, ground, weight=weight, trust=among)):
            moves = np.flatnonzero(into == band)
            if len(moves):
                score = log_score(model.transition, sources[moves], targets[moves])
                total += len(moves) * score
        return total

    return Chosen(
        weight=weight,
        hourly_trust=max(TRUSTS, key=hourly_score),
        pair_trust=max(TRUSTS, key=pair_score),
        trust=trust,
        patience=patience,
    )


def _pair_score(reader: Reader, check: list[IntArray]) -> float:
    """As `log_score`, where a pair of states that the chain has not counts as very rare."""
    model = reader.chain
    assert isinstance(model, SecondOrderModel)
    keys = pair_numbers(model.pairs[:, 0], model.pairs[:, 1], model.n_places)
    walked = [pair_numbers(states[:-1], states[1:], model.n_places) for states in check]
    before = np.concatenate([pairs[:-1] for pairs in walked])
    after = np.concatenate([pairs[1:] for pairs in walked])
    places = [
        np.minimum(np.searchsorted(keys, wanted), len(keys) - 1) for wanted in (before, after)
    ]
    known = (keys[places[0]] == before) & (keys[places[1]] == after)
    found = log_score(model.transition, places[0][known], places[1][known])
    return float(known.mean() * found + (1 - known.mean()) * np.log(1e-8))


def _read_runs(
    workload: Workload, training: list[Trip], runs: list[Trip], chosen: Chosen, number: int
) -> dict[str, FloatArray]:
    ground, query = workload.ground, workload.query
    learn = [trip.states for trip in training]
    bands = [workload.bands(trip.times) for trip in training]
    plain = first_order(learn, ground, weight=chosen.weight)
    readers = {
        "first_order": plain,
        "second_order": second_order(learn, ground, weight=chosen.weight, trust=chosen.pair_trust),
        "momentum": momentum(
            learn, ground, weight=chosen.weight, trust=chosen.trust, patience=chosen.patience
        ),
    }
    hours = hourly(learn, bands, ground, weight=chosen.weight, trust=chosen.hourly_trust)
    policy = PolicyGraph.within_distance(query, workload.radius)
    plan = Plan(policy, query)
    names = [f"{reader}_{kind}" for reader in READERS for kind in ESTIMATES]
    errors = {name: np.empty((len(runs), len(runs[0]))) for name in ("raw", *names)}
    for place, trip in enumerate(runs):
        randomness = SeededRandomness(np.random.default_rng([NOISE, number, place]))
        stream = Stream(plain.chain, plan, epsilon=1, start=plain.start, randomness=randomness)
        truth = query.values[trip.states]
        answers = np.array([stream.release(int(state)).answer for state in trip.states])
        errors["raw"][place] = distances(answers, truth)
        by_hour = at_hours(hours, workload.bands(trip.times), plain.start)
        observations = stream.observations()
        for name, reader in {**readers, "hourly": by_hour}.items():
            for kind, estimates in reader.read(observations, query.values).items():
                errors[f"{name}_{kind}"][place] = distances(estimates, truth)
    return errors


def _as_arrays(chosen: Chosen) -> dict[str, FloatArray]:
    values = {f"chosen_{name}": value for name, value in vars(chosen).items()}
    return {name: np.array(float(value)) for name, value in values.items()}


def ratios(folds: list[dict[str, FloatArray]]) -> dict[str, tuple[float, float]]:
    """For each estimate its mean error as a share of the raw answers', and the folds' spread.

    The spread is the standard deviation of the folds' own shares.
    """
    folds = [fold for fold in folds if len(fold["raw"])]
    whole = np.concatenate([fold["raw"] for fold in folds]).mean()
    found = {}
    for name in (f"{reader}_{kind}" for reader in READERS for kind in ESTIMATES):
        mean = np.concatenate([fold[name] for fold in folds]).mean()
        each = [fold[name].mean() / fold["raw"].mean() for fold in folds]
        found[name] = (float(mean / whole), float(np.std(each)))
    return found
