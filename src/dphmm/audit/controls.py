"""Ten broken mechanisms that an audit must catch before it may speak about a real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, prod
from typing import Any

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.audit.broken import (
    PRINTED,
    REACH,
    ArcLength,
    CutOff,
    Floats,
    FreeSecondAnswer,
    Parity,
    Printing,
    RepeatingDays,
    Replayed,
    Uncounted,
)
from dphmm.audit.certify import certify_miss
from dphmm.audit.checks import (
    LEAST_MISS,
    Finding,
    Test,
    law_miss,
    lower,
    ratio_miss,
    write_chance,
)
from dphmm.audit.events import Cells, Cones, fine_events
from dphmm.audit.running import DRAWS, FALSE_ALARM, LEAST_DRAWS, OFF, PILOT, Audit, audit_sampler
from dphmm.audit.sampler import MechanismSampler, Sampler, checked
from dphmm.audit.sequences import BatchSampler, running_sequence
from dphmm.geometry.hull import SensitivityHull
from dphmm.noise.mechanism import Mechanism, body_for
from dphmm.noise.staircase import best_gamma
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.tables import datasets

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
    """The paper's running example at epsilon 1: `knorm`, `staircase`, `laplace` or `enlarged`.

    Six states in the plane, in three categories. On a square, choosing a side by its length
    or by its cone is the same, and a wrong sampler would pass; here it is not. The whole hull
    is too round to gain from enlarging, so `enlarged` is claimed for {s4, s5, s6} alone.
    """
    example = datasets.running_example()
    query, policy = example.query, example.policy
    if mechanism == "enlarged":
        policy = policy.restricted_to(np.arange(query.n_states) >= 3)
    make = body_for("knorm", "enlarged") if mechanism == "enlarged" else body_for(mechanism)
    hull = sensitivity_hull(query, policy)
    body = hull if make is None else make(hull)
    gamma = best_gamma(body.rank, 1) if mechanism == "staircase" else None
    return Subject(Mechanism(query, body, Fraction(1), gamma), policy.edges)


def sampler_of(subject: Subject) -> Callable[[], Sampler]:
    """What makes fresh samplers of one of our own mechanisms."""
    return lambda: MechanismSampler(replace(subject.mechanism), subject.edges, subject.claimed)


Maker = Callable[[], Sampler]


def _off(subject: Subject) -> Maker:
    mechanism = replace(subject.mechanism, epsilon=subject.claimed * OFF)
    return lambda: MechanismSampler(mechanism, subject.edges, subject.claimed)


def _seeded(subject: Subject) -> Maker:
    return lambda: MechanismSampler(
        subject.mechanism,
        subject.edges,
        subject.claimed,
        Replayed(np.random.default_rng(0)),
    )


def _uncounted(subject: Subject) -> Maker:
    steps = replace(subject.mechanism, gamma=best_gamma(subject.mechanism.body.rank, 1))
    return _broken(Uncounted)(replace(subject, mechanism=steps))


def _broken(kind: type[MechanismSampler]) -> Callable[[Subject], Maker]:
    return lambda subject: lambda: kind(subject.mechanism, subject.edges, subject.claimed)


def _sequence(kind: type[BatchSampler], **options: Any) -> Callable[[Subject], Maker]:
    return lambda subject: running_sequence(kind, **options)


CONTROLS: dict[str, tuple[Test, Callable[[Subject], Maker]]] = {
    "spends a tenth more": ("ratio", _off),
    "sides by arc length": ("law", _broken(ArcLength)),
    "steps without their sizes": ("ratio", _uncounted),
    "floating point": ("fine bits", _broken(Floats)),
    "seeded": ("repeats", _seeded),
    "prints the state, 1%": ("atoms", _broken(Printing)),
    "parity names the state": ("residues", _broken(Parity)),
    "tail cut off": ("tails", _broken(CutOff)),
    "noise repeats between days": ("runs", _sequence(RepeatingDays, days=(1, 1), asks=1)),
    "second answer is free": ("cones", _sequence(FreeSecondAnswer, days=(1,), asks=2)),
}
"""What is wrong with each control, and the test that must see it."""

SEQUENCES = ("noise repeats between days", "second answer is free")

SEQUENCE_SHARE = 8
"""Streams take longer: a row of theirs is drawn for so many of single answers."""


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
        power = f"missed with {write_chance(self.miss)}" if self.miss else "never missed"
        return f"{self.name}: caught ({self.test}: {self.seen.detail}; {power})"


def controls(*, draws: int = DRAWS, false_alarm: float = FALSE_ALARM) -> list[Control]:
    """The controls on one edge of the running example, each audited like any other mechanism."""
    subject = running_example()
    subject = replace(subject, edges=subject.edges[:1])
    found = []
    for name, (test, make) in CONTROLS.items():
        size = max(LEAST_DRAWS, draws // SEQUENCE_SHARE) if name in SEQUENCES else draws
        result = audit_sampler(make(subject), name=name, draws=size, false_alarm=false_alarm)
        levels = [finding.level for finding in result.findings if finding.test == test]
        miss = _miss(name, subject, result, size, levels[0]) if levels else 1.0
        found.append(Control(name, test, result, miss))
    return found


def _miss(name: str, subject: Subject, result: Audit, draws: int, level: float) -> float:
    """The chance to miss a control, from its own law."""
    epsilon = float(subject.claimed)
    mechanism = subject.mechanism
    cones = Cones(mechanism.body)
    if name == "spends a tenth more":
        return min(f.miss for f in result.findings if f.test == "ratio" and f.miss is not None)
    if name == "sides by arc length":
        cells = Cells.of(cones, epsilon, draws)
        assert cells is not None
        # A rejected draw chooses its side anew: masses are lengths times acceptance rates.
        volumes = np.array([cone.volume for cone in cones.fan.cones], dtype=np.float64)
        sampler = ArcLength(mechanism, subject.edges, subject.claimed)
        shares = sampler.lengths * cones.fan.masses(epsilon) / volumes
        return law_miss(
            cells.probabilities, cells.under(epsilon, shares / shares.sum()), draws, level
        )
    if name == "steps without their sizes":
        return ratio_miss(*_uncounted_shares(subject), draws, level, epsilon)
    if name == "floating point":
        return _fine_miss(subject, draws, level)
    if name == "seeded":
        # The same seed gives the same answers, always.
        return 0.0
    share, other = _shares(name, subject)
    return certify_miss(share, other, draws // 2, level, epsilon)


def _shares(name: str, subject: Subject) -> tuple[float, float]:
    """The probabilities of an event that shows what is wrong, for the two states of the edge.

    The search may find a better one. That it finds a worse one is much less likely than that
    this one is not certified: both halves have the same number of draws, and here it need not
    be significant but only the best.
    """
    mechanism = subject.mechanism
    epsilon = float(subject.claimed)
    point = exp(-mechanism.log_normalizer)
    state, other = (mechanism.query.points[s] for s in subject.edges[0])
    if name == "prints the state, 1%":
        rest = (1 - PRINTED) * point
        norm = float(mechanism.body.lattice_norm(state - other))
        return PRINTED + rest, rest * exp(-epsilon * norm)
    if name == "parity names the state":
        return 1.0, 0.0
    if name == "tail cut off":
        # Beyond the reach of one state and not of the other.
        noise = _window(mechanism.body, ceil(REACH / epsilon))
        norms = mechanism.body.lattice_norms(noise) * epsilon
        beyond = mechanism.body.lattice_norms(noise + state - other) * epsilon > REACH
        held = np.exp(-norms) * (norms <= REACH)
        # The thresholds that are tried may miss the reach by a few shares of the answers.
        return float(held[beyond].sum() / held.sum()) / 2, 0.0
    if name == "second answer is free":
        cones = Cones(mechanism.body)
        share = float(cones.fan.masses(epsilon)[cones.facing(state - other)].sum())
        return share**2, share**2 * exp(-2 * epsilon)
    # Two independent answers are equal no more often than one is the likeliest.
    return 1.0, point


def _uncounted_shares(subject: Subject) -> tuple[float, float]:
    """The probabilities of the cones behind a state if layers are chosen without their sizes."""
    sampler = _uncounted(subject)()
    assert isinstance(sampler, Uncounted)
    gamma = sampler.layers.gamma
    sizes = [prod(sampler.layers.sides(k)) for k in range(2 * REACH)]
    # A point of layer L is given by that layer and by all beyond it.
    parts = [exp(-float(subject.claimed) * k) / size for k, size in enumerate(sizes)]
    weights = np.append(np.cumsum(parts[::-1])[::-1], 0.0)
    state, other = (sampler.points[s] for s in subject.edges[0])
    noise = _window(sampler.body, 2 * REACH)

    def chances(vectors: IntArray) -> FloatArray:
        layers = sampler.body.lattice_layers(vectors, gamma)
        return np.asarray(weights[np.minimum(layers, len(parts)).astype(int)])

    cones = Cones(sampler.body)
    held = np.zeros(len(noise), dtype=bool)
    for inside, _ in cones.layers(noise, cones.facing(state - other)):
        held |= inside
    total = chances(noise).sum()
    shares = chances(noise[held]), chances(noise[held] + state - other)
    return float(shares[0].sum() / total), float(shares[1].sum() / total)


def _window(body: SensitivityHull, radius: int) -> IntArray:
    """Every vector within so many hulls, and some beyond."""
    near = np.abs(body.lattice_vertices).max(axis=0) * radius
    box = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in near)), axis=-1)
    return box.reshape(-1, len(near))


def _fine_miss(subject: Subject, draws: int, level: float) -> float:
    """From a pilot: how often floats show fine bits is not known in closed form."""
    sampler = Floats(subject.mechanism, subject.edges, subject.claimed)
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
