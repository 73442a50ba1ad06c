"""What the paper's figures show, without draws where none are needed. Private.

Under a policy graph the possible set of a step does not depend on what was released, as long as
the noise has full rank: so degrees of protection and expected errors of the distance and one-step
policies are exact, with no seed. The δ-location set follows the belief and so the answers: it is
drawn, with many seeds.

A true state outside the possible set has no degree of protection: it counts zero, not what its
stand-in has. The error is measured from the true state.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import process_time

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.experiments import make_policy, warm_up
from dphmm.evaluate.metrics import distances, hidden_among, protected_state
from dphmm.evaluate.workloads import Workload
from dphmm.geometry.exact import as_epsilon
from dphmm.noise.distance import mean_noise
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.plan import Plan
from dphmm.release.stream import Stream

__all__ = ["Course", "Drawn", "Timed"]

SEED = 160
SHIFTED = 400
"""Draws for the expected error of an answer about a stand-in, which has no formula."""


@dataclass(frozen=True)
class Course:
    """Degrees of protection and expected errors of every sequence, exactly."""

    policy: str
    epsilons: tuple[str, ...] = ("1",)
    radius: str = ""
    learned: str = "others"

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return "_".join(["course", self.policy, self.radius or "any", self.learned])

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Every measure, one row a sequence and one column a step. Private."""
        model = workload.model(self.learned)
        policy, _ = make_policy(workload, self.policy, self.radius, model)
        plan, query = Plan(policy, workload.query), workload.query
        shape = (len(workload.sequences), workload.steps)
        names = ["hidden", "possible", "stand_in", *(f"error_{e}" for e in self.epsilons)]
        results = {name: np.zeros(shape) for name in names}
        errors = _Errors(SeededRandomness(np.random.default_rng([SEED, 0])))
        for row, trip in enumerate(workload.sequences):
            stream = Stream(model, plan, epsilon=1, start=workload.start(model, trip.states[0]))
            for step, state in enumerate(trip.states[1:].tolist()):
                stream.skip()
                possible = stream.prior.possible
                now = plan.at(possible)
                about = protected_state(query, possible, state)
                results["possible"][row, step] = possible.sum()
                results["stand_in"][row, step] = about != state
                results["hidden"][row, step] = hidden_among(query, possible, now.hull, state)
                away = query.points[about] - query.points[state]
                for epsilon in self.epsilons:
                    mechanism = now.mechanism(as_epsilon(epsilon))
                    results[f"error_{epsilon}"][row, step] = errors.of(mechanism, away, about)
        return results


class _Errors:
    """Expected errors by mechanism and by how far the stand-in is, each found once."""

    def __init__(self, randomness: SeededRandomness) -> None:
        self._known: dict[tuple[object, ...], float] = {}
        self._randomness = randomness

    def of(self, mechanism: Mechanism, away: FloatArray, about: int) -> float:
        key = (mechanism.body.digest, mechanism.epsilon, *away.tolist())
        if key not in self._known:
            self._known[key] = self._found(mechanism, away, about)
        return self._known[key]

    def _found(self, mechanism: Mechanism, away: FloatArray, about: int) -> float:
        if not away.any():
            return mean_noise(mechanism)
        query = mechanism.query
        drawn = [mechanism.sample_lattice(about, self._randomness) for _ in range(SHIFTED)]
        noise = np.array(drawn) - query.points[about] + away
        return float(np.linalg.norm(noise, axis=1).mean() * float(query.step))


@dataclass(frozen=True)
class Drawn:
    """The δ-location set of every sequence, drawn with some seeds."""

    seeds: tuple[int, ...]
    epsilon: str = "1"
    learned: str = "others"
    limit: int | None = None
    """At most so many sequences."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"drawn_{self.epsilon}_{self.learned}_{self.limit}_{self.seeds[0]}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Every measure: seeds, sequences, steps. Private."""
        model = workload.model(self.learned)
        policy, delta = make_policy(workload, "location_set", "", model)
        plan, query = Plan(policy, workload.query, delta=delta), workload.query
        chosen = workload.sequences[: self.limit]
        shape = (len(self.seeds), len(chosen), workload.steps)
        results = {name: np.zeros(shape) for name in ("hidden", "possible", "stand_in", "error")}
        for place, seed in enumerate(self.seeds):
            for row, trip in enumerate(chosen):
                noise = np.random.default_rng([SEED, 1, seed, row])
                start = workload.start(model, trip.states[0])
                stream = Stream(
                    model, plan, epsilon=self.epsilon, start=start,
                    randomness=SeededRandomness(noise),
                )  # fmt: skip
                for step, state in enumerate(trip.states[1:].tolist()):
                    release = stream.release(state)
                    possible = plan.to_protect(stream.prior)
                    at = (place, row, step)
                    assert stream.hull is not None
                    results["possible"][at] = possible.sum()
                    results["stand_in"][at] = not possible[state]
                    results["hidden"][at] = hidden_among(query, possible, stream.hull, state)
                    results["error"][at] = distances(release.answer, query.values[state])
        return results


@dataclass(frozen=True)
class Timed:
    """Processor time of a step: its graph, repair and hull anew, and a whole release as shipped."""

    policy: str
    radius: str = ""
    limit: int = 6
    """So many sequences."""
    learned: str = "others"

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return "_".join(["timed", *(str(value) for value in asdict(self).values())])

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """Seconds, one row a sequence and one column a step."""
        model = workload.model(self.learned)
        policy, delta = make_policy(workload, self.policy, self.radius, model)
        plan = Plan(policy, workload.query, delta=delta)
        warm_up(workload, model, plan)
        chosen = workload.sequences[: self.limit]
        results = {name: np.zeros((len(chosen), workload.steps)) for name in ("anew", "shipped")}
        for row, trip in enumerate(chosen):
            stream = Stream(
                model, plan.replace(), epsilon=1, start=workload.start(model, trip.states[0]),
                randomness=SeededRandomness(np.random.default_rng([SEED, 2, row])),
            )  # fmt: skip
            for step, state in enumerate(trip.states[1:].tolist()):
                began = process_time()
                stream.release(state)
                results["shipped"][row, step] = process_time() - began
                possible = plan.to_protect(stream.prior)
                began = process_time()
                plan.replace().at(possible)
                results["anew"][row, step] = process_time() - began
        return results
