"""How close estimates come on people a chain was not learned from, and what waiting adds.

The library as it is used: a momentum chain of the other folds' people releases and reads. People
are dealt into folds with the ids of one person together. The weights are the library's constants,
which each fold's own people would have chosen too (see `study.choose`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.ground import TURNS
from dphmm.chain.momentum import MomentumModel, contexts_of
from dphmm.cost.ledger import Ledger
from dphmm.evaluate.metrics import distances
from dphmm.evaluate.study import FOLDS, Fold
from dphmm.evaluate.workloads import Workload
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.schedule import Schedule
from dphmm.release.stream import Stream
from dphmm.tables.datasets import Trip

__all__ = ["KINDS", "Late", "late_shares", "learn_chain"]

KINDS = ("filtered", "lagged", "smoothed")
NOISE = 140


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
        return "_".join(["late", *map(str, (*parts, *rest, self.steps, self.limit))])

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Errors of K-norm answers at epsilon 1, and of each kind of estimate. Private."""
        training, runs = Fold(self.fold, self.steps, self.limit).parts(workload)
        names = ("raw", "released", *KINDS)
        if not runs:
            return {name: np.zeros((0, self.steps)) for name in names}
        model, start = learn_chain(workload, [trip.states for trip in training], self.anywhere)
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


def learn_chain(
    workload: Workload, sequences: list[IntArray], anywhere: float | None
) -> tuple[MomentumModel, Belief]:
    """The chain of some people, and how often they are in each of its states."""
    ground = workload.ground
    model = MomentumModel.fit(sequences, places=ground.places, anywhere=anywhere)
    contexts = TURNS + model.patience
    walked = [
        states * contexts + contexts_of(states, ground, model.patience) for states in sequences
    ]
    weights = np.bincount(np.concatenate(walked), minlength=model.n_states) + 0.01
    return model, Belief.from_probabilities(weights / weights.sum())


def late_shares(results: Sequence[dict[str, FloatArray]]) -> dict[str, float]:
    """The mean error of each kind as a share of the K-norm answer's at epsilon 1."""
    whole = np.concatenate([result["raw"] for result in results]).mean()
    return {
        name: float(np.concatenate([result[name] for result in results]).mean() / whole)
        for name in KINDS
    }
