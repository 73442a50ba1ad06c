"""Four broken mechanisms that an audit must catch before it may speak about a real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dphmm._types import FloatArray, IntArray
from dphmm.audit.checks import LEAST_MISS, Finding, Test, law_miss, lower, ratio_miss
from dphmm.audit.events import Cells, Cones, fine_events
from dphmm.audit.running import DRAWS, FALSE_ALARM, OFF, PILOT, Audit, audit_sampler
from dphmm.audit.sampler import Answers, MechanismSampler, Sampler, checked
from dphmm.geometry.query import Query
from dphmm.noise.cones import Fan, fan_of
from dphmm.noise.mechanism import Mechanism, body_for
from dphmm.noise.randomness import FIRST_WORDS, WORD, SecureRandomness, SeededRandomness
from dphmm.noise.reference import reference_knorm
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull

__all__ = ["CONTROLS", "Control", "Subject", "controls", "running_example", "sampler_of"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A query, the edges of a policy, and noise that is claimed to hide them."""

    mechanism: Mechanism
    edges: IntArray

    @property
    def claimed(self) -> Fraction:
        """The epsilon that is claimed for every edge."""
        return self.mechanism.epsilon


def running_example(mechanism: str = "knorm") -> Subject:
    """The paper's running example at epsilon 1, under `knorm`, `laplace` or `enlarged` noise.

    Six states in the plane, in three categories. On a square, choosing a side by its length
    or by its cone is the same, and a wrong sampler would pass; here it is not. The whole hull
    is too round to gain from enlarging, so `enlarged` is claimed for {s4, s5, s6} alone.
    """
    query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    policy = PolicyGraph.by_category([0, 1, 1, 2, 2, 2])
    if mechanism == "enlarged":
        policy = policy.restricted_to(np.arange(query.n_states) >= 3)
    make = body_for("knorm", "enlarged") if mechanism == "enlarged" else body_for(mechanism)
    hull = sensitivity_hull(query, policy)
    body = hull if make is None else make(hull)
    return Subject(Mechanism(query, body, Fraction(1)), policy.edges)


def sampler_of(subject: Subject) -> Callable[[], Sampler]:
    """What makes fresh samplers of one of our own mechanisms."""
    return lambda: MechanismSampler(
        Mechanism(subject.mechanism.query, subject.mechanism.body, subject.mechanism.epsilon),
        subject.edges,
        subject.claimed,
    )


class ArcLength(MechanismSampler):
    """Chooses a side of the hull by its length instead of by its cone."""

    @property
    def lengths(self) -> FloatArray:
        """The length of each side, in the order of the cones."""
        corners = self.body.lattice_vertices.astype(np.float64)[self.body.body.simplices]
        return np.asarray(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1))

    def sample(self, state: int, size: int) -> Answers:
        """Lattice answers from a fan with lengths, in millionths, in place of volumes."""
        fan = Fan(self.body, fan_of(self.body).cones)
        fan.__dict__["_edges"] = np.cumsum(np.rint(1e6 * self.lengths)).astype(np.int64).tolist()
        names = [b""] * size
        states = np.full(size, state)
        source = SecureRandomness()
        return self.points[state] + fan.draw_many(self.claimed, source, names, (), states)


class Floats(MechanismSampler):
    """Draws with floating-point numbers, as the paper describes the mechanism."""

    def sample(self, state: int, size: int) -> Answers:
        """Float answers."""
        rng = np.random.default_rng()
        mechanism = self.mechanism
        return reference_knorm(
            mechanism.query, mechanism.body, mechanism.epsilon, state, rng=rng, size=size
        )


class Replayed(SeededRandomness):
    """A generator with a fixed seed, read in long pieces."""

    def many(
        self,
        people: Sequence[bytes],
        shared: tuple[bytes, ...],
        states: IntArray,
        size: int = FIRST_WORDS,
    ) -> NDArray[np.uint32]:
        """The generator's next words, from one call."""
        data = self._rng.bytes(WORD * size * len(states))
        return np.frombuffer(data, dtype="<u4").reshape(len(states), size)


def _off(subject: Subject) -> Sampler:
    mechanism = replace(subject.mechanism, epsilon=subject.claimed * OFF)
    return MechanismSampler(mechanism, subject.edges, subject.claimed)


def _arc_length(subject: Subject) -> Sampler:
    return ArcLength(subject.mechanism, subject.edges, subject.claimed)


def _floats(subject: Subject) -> Sampler:
    return Floats(subject.mechanism, subject.edges, subject.claimed)


def _seeded(subject: Subject) -> Sampler:
    source = Replayed(np.random.default_rng(0))
    return MechanismSampler(subject.mechanism, subject.edges, subject.claimed, source)


CONTROLS: dict[str, tuple[Test, Callable[[Subject], Sampler]]] = {
    "spends a tenth more": ("ratio", _off),
    "sides by arc length": ("law", _arc_length),
    "floating point": ("fine bits", _floats),
    "seeded": ("repeats", _seeded),
}
"""What is wrong with each control, and the test that must see it."""


@dataclass(frozen=True)
class Control:
    """A broken mechanism, and whether the test made for it saw what is wrong."""

    name: str
    test: Test
    result: Audit
    miss: float
    """The chance that the test misses it, at most, as computed."""

    @property
    def seen(self) -> Finding | None:
        """The first finding of its test that accuses it."""
        return next((f for f in self.result.violations if f.test == self.test), None)

    def text(self) -> str:
        """The result in a line."""
        if self.seen is None:
            return f"{self.name}: NOT CAUGHT by the test of {self.test}"
        power = f"missed with {self.miss:.1g}" if self.miss else "never missed"
        return f"{self.name}: caught ({self.test}: {self.seen.detail}; {power})"


def controls(*, draws: int = DRAWS, false_alarm: float = FALSE_ALARM) -> list[Control]:
    """The four controls on the running example, each audited like any other mechanism."""
    subject = running_example()
    found = []
    for name, (test, make) in CONTROLS.items():
        result = audit_sampler(
            partial(make, subject), name=name, draws=draws, false_alarm=false_alarm
        )
        levels = [finding.level for finding in result.findings if finding.test == test]
        miss = _miss(name, subject, result, draws, levels[0]) if levels else 1.0
        found.append(Control(name, test, result, miss))
    return found


def _miss(name: str, subject: Subject, result: Audit, draws: int, level: float) -> float:
    """The chance to miss a control, from its own law."""
    epsilon = float(subject.claimed)
    cones = Cones(subject.mechanism.body)
    if name == "spends a tenth more":
        return min(f.miss for f in result.findings if f.test == "ratio" and f.miss is not None)
    if name == "sides by arc length":
        cells = Cells.of(cones, epsilon, draws)
        assert cells is not None
        # A rejected draw chooses its side anew: masses are lengths times acceptance rates.
        volumes = np.array([cone.volume for cone in cones.fan.cones], dtype=np.float64)
        sampler = ArcLength(subject.mechanism, subject.edges, subject.claimed)
        shares = sampler.lengths * cones.fan.masses(epsilon) / volumes
        return law_miss(
            cells.probabilities, cells.under(epsilon, shares / shares.sum()), draws, level
        )
    if name == "floating point":
        return _fine_miss(subject, draws, level)
    # The same seed gives the same answers, always.
    return 0.0


def _fine_miss(subject: Subject, draws: int, level: float) -> float:
    """From a pilot: how often floats show fine bits is not known in closed form."""
    sampler = _floats(subject)
    claim = checked(sampler)
    misses = [1.0]
    for event in fine_events(claim, claim.edges):
        hits, hits_of_other = (
            int(event.holds(np.asarray(sampler.sample(state, PILOT))).sum())
            for state in (event.state, event.other)
        )
        if hits_of_other == 0:
            share = lower(hits, PILOT, LEAST_MISS)
            # No hit of the other state in the pilot: the event is impossible there by design.
            misses.append(ratio_miss(share, 0.0, draws, level, float(subject.claimed)))
    return min(misses)
