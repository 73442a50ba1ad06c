"""How close estimates come on people a chain was not learned from, and what waiting adds.

The library as it is used: a momentum chain of the other folds' people releases and reads. People
are dealt into folds with the ids of one person together. The chain's weights are chosen within the
other folds: by how well a chain of some of their people predicts the moves of the rest. So nothing
about the evaluated people is used, not even to tune.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.ground import TURNS, Ground
from dphmm.chain.momentum import TRUST, WEIGHT, MomentumModel, contexts_of
from dphmm.cost.ledger import Ledger
from dphmm.evaluate.metrics import distances
from dphmm.evaluate.study import FOLDS, Fold, deal
from dphmm.evaluate.workloads import Workload
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.schedule import Schedule
from dphmm.release.stream import Stream
from dphmm.tables.datasets import Trip

__all__ = ["KINDS", "Late", "Weights", "choose_weights", "late_shares", "learn_chain"]

KINDS = ("filtered", "lagged", "smoothed")
NOISE = 140

WEIGHTS = (10.0, 30.0, 100.0, 300.0)
TRUSTS = (10.0, 30.0, 100.0)
"""What a momentum chain's weight and trust are chosen from."""


class Weights(NamedTuple):
    """Those of `MomentumModel.fit`."""

    weight: float
    trust: float


CONSTANTS = Weights(WEIGHT, TRUST)


@dataclass(frozen=True)
class Late:
    """One fold's runs, released at a price every few steps, and estimated at every step."""

    fold: int
    seed: int = 0
    """Of the noise."""
    epsilon: str = "1"
    every: int = 1
    """A release every so many steps, from the first on; no window of as many holds two."""
    mechanism: str = "knorm"
    estimate: str = "median"
    anywhere: float | None = None
    """The probability of going anywhere, if not the library's."""
    lag: int | None = 10
    """Without one nothing is estimated late, which takes most of the time."""
    steps: int = 100
    limit: int | None = None
    """At most so many runs, for a quick look."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        parts = (self.fold, f"of_{FOLDS}", self.seed, self.epsilon.replace("/", "over"))
        rest = (self.every, self.mechanism, self.estimate, self.anywhere, self.lag)
        return "_".join(["late_chosen", *map(str, (*parts, *rest, self.steps, self.limit))])

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Errors of K-norm answers at epsilon 1, and of each kind of estimate. Private."""
        training, runs = Fold(self.fold, self.steps, self.limit).parts(workload)
        names = ("raw", "released", *KINDS)
        if not runs:
            return {name: np.zeros((0, self.steps)) for name in names}
        weights = choose_weights(workload, training, (self.fold + 1) % FOLDS)
        model, start = learn_chain(
            workload, [trip.states for trip in training], self.anywhere, weights
        )
        query = workload.query
        policy = PolicyGraph.within_distance(query, workload.radius)
        plan = Plan(policy, query, mechanism=self.mechanism)
        # Every state stays possible, so each answer has the same noise.
        everywhere = np.ones(query.n_states, dtype=bool)
        plain = Plan(policy, query).at(everywhere).mechanism(Fraction(1))
        errors: dict[str, list[FloatArray]] = {name: [] for name in names}
        for place, trip in enumerate(runs):
            noise = np.random.default_rng([NOISE, self.seed, self.fold, place])
            randomness = SeededRandomness(noise)
            said = [plain.sample_lattice(int(state), randomness) for state in trip.states]
            truth = query.values[trip.states]
            errors["raw"].append(distances(query.in_units(np.array(said)), truth))
            stream = Stream(
                model, plan, epsilon=Fraction(self.epsilon), start=start,
                schedule=Schedule(every=self.every, phase=1),
                ledger=Ledger(f"{self.epsilon} per {self.every} steps"),
                randomness=randomness, estimate=self.estimate,  # type: ignore[arg-type]
            )  # fmt: skip
            for name, found in self._estimates(stream, trip).items():
                errors[name].append(distances(found, truth))
        return {name: np.array(rows) for name, rows in errors.items()}

    def _estimates(self, stream: Stream, trip: Trip) -> dict[str, FloatArray]:
        """What was released (nothing in between), and the estimates of every step."""
        late = None if self.lag is None else stream.estimates(lag=self.lag)
        released = np.full((len(trip), stream.query.dimension), np.nan)
        filtered, lagged = np.empty_like(released), []
        for step, state in enumerate(trip.states):
            release = stream.release(int(state))
            filtered[step] = release.estimate
            if not release.silent:
                released[step] = release.answer
            lagged += [] if late is None else late.ready()
        lagged += [] if late is None else late.finish()
        found = {"released": released, "filtered": filtered, "smoothed": stream.smoothed()}
        found["lagged"] = np.array([one.value for one in lagged]) if lagged else released * np.nan
        return found


def choose_weights(workload: Workload, training: Sequence[Trip], last: int) -> Weights:
    """The weights with which the other training folds predict the moves of one best."""
    dealt, ground = deal(workload.trips), workload.ground
    learn = [trip.states for trip in training if dealt[trip.person] != last]
    check = [trip.states for trip in training if dealt[trip.person] == last]

    def score(weights: Weights) -> float:
        model = MomentumModel.fit(learn, places=ground.places, **weights._asdict())
        moves = _walked(model, check, ground)
        sources = np.concatenate([states[:-1] for states in moves])
        targets = np.concatenate([states[1:] for states in moves])
        own = np.asarray(model.outgoing[sources, targets]).ravel()
        return float(np.log(own + model.anywhere / len(ground.places)).mean())

    return max((Weights(*pair) for pair in product(WEIGHTS, TRUSTS)), key=score)


def _walked(model: MomentumModel, sequences: list[IntArray], ground: Ground) -> list[IntArray]:
    contexts = TURNS + model.patience
    return [states * contexts + contexts_of(states, ground, model.patience) for states in sequences]


def learn_chain(
    workload: Workload,
    sequences: list[IntArray],
    anywhere: float | None,
    weights: Weights = CONSTANTS,
) -> tuple[MomentumModel, Belief]:
    """The chain of some people, and how often they are in each of its states."""
    ground = workload.ground
    model = MomentumModel.fit(
        sequences, places=ground.places, anywhere=anywhere, **weights._asdict()
    )
    walked = _walked(model, sequences, ground)
    often = np.bincount(np.concatenate(walked), minlength=model.n_states) + 0.01
    return model, Belief.from_probabilities(often / often.sum())


def late_shares(results: Sequence[dict[str, FloatArray]]) -> dict[str, float]:
    """The mean error of each kind as a share of the K-norm answer's at epsilon 1."""
    whole = np.concatenate([result["raw"] for result in results]).mean()
    return {
        name: float(np.concatenate([result[name] for result in results]).mean() / whole)
        for name in KINDS
    }
