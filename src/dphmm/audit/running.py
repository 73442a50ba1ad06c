"""One audit: choose what to look at, draw, test, and say what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray
from dphmm.audit.certify import check_searched
from dphmm.audit.checks import (
    Finding,
    check_lattice,
    check_law,
    check_neighbours,
    check_points,
    check_ratio,
    check_repeats,
    law_miss,
    ratio_miss,
    write_chance,
)
from dphmm.audit.events import (
    MIN_EXPECTED,
    Cells,
    Cones,
    Event,
    chosen_edges,
    fine_events,
    ratio_events,
)
from dphmm.audit.sampler import (
    Answers,
    Checked,
    GivenSampler,
    Sampler,
    checked,
    drawn,
    maker_of,
)
from dphmm.audit.search import search_events
from dphmm.errors import ArgumentError, expect_function
from dphmm.geometry.exact import Exact, whole

__all__ = ["DRAWS", "FALSE_ALARM", "OFF", "Audit", "audit_sampler"]

DRAWS = 300_000
"""Draws a state, enough to see a leak of one percent into the likeliest answer almost surely."""

FALSE_ALARM = 1e-4
"""The chance that any test of any audited mechanism accuses it wrongly."""

OFF = Fraction(11, 10)
"""The smallest fault that power is computed for: a tenth more epsilon than was claimed."""

PILOT = 20_000

LEAST_DRAWS = 1000


@dataclass(frozen=True)
class Audit:
    """What an audit of one mechanism found."""

    name: str
    epsilon: Fraction
    draws: int
    findings: tuple[Finding, ...]
    pairs: int = 0
    """How many linked pairs were looked at."""
    linked: int = 0
    """Of how many at least: nothing is said about the others."""

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that contradict the claim."""
        return tuple(finding for finding in self.findings if finding.violated)

    @property
    def false_alarm(self) -> float:
        """The chance that a mechanism that keeps its claim is accused, at most."""
        return sum(finding.level for finding in self.findings)

    @property
    def miss(self) -> float | None:
        """The chance to miss a tenth too much epsilon: that of the best test for it."""
        known = [finding.miss for finding in self.findings if finding.miss is not None]
        return min(known, default=None)

    @property
    def leaks(self) -> dict[str, float]:
        """For each kind of searched event the smallest leak that would have been seen anywhere."""
        known = [(found.leak, found.test) for found in self.findings if found.leak is not None]
        order = list(dict.fromkeys(test for _, test in known))
        return {test: max(leak for leak, kind in known if kind == test) for test in order}

    def text(self) -> str:
        """The result in a line, and one for each violation."""
        if self.violations:
            lines = [f"{self.name}: VIOLATION of epsilon {float(self.epsilon):g}"]
            return "\n".join(
                [*lines, *(f"  {f.test}: {f.what}: {f.detail}" for f in self.violations)]
            )
        said = [f"{len(self.findings)} tests", f"{self.draws} draws a state"]
        if self.pairs < self.linked:
            said.append(f"only {self.pairs} linked pairs were looked at")
        if self.miss is not None:
            said.append(f"a tenth too much is missed with {write_chance(self.miss)}")
        if self.leaks:
            # Rounded up: a smaller leak might not have been seen.
            leaks = ((test, ceil(leak * 10_000) / 10_000) for test, leak in self.leaks.items())
            seen = (f"{leak:.2%} in {test}" for test, leak in leaks)
            said.append(f"smallest leaks seen: {', '.join(seen)}")
        said.append(f"false alarm {write_chance(self.false_alarm)}")
        return (
            f"{self.name}: no violation of epsilon {float(self.epsilon):g} found at this power "
            f"({'; '.join(said)})"
        )


def _audit(make: Callable[[], Sampler], name: str, draws: int, false_alarm: float) -> Audit:
    """The audit of what makes fresh samplers."""
    whole(draws, "draws", LEAST_DRAWS)
    if not isinstance(false_alarm, (int, float)) or not 0 < false_alarm < 1:
        raise ArgumentError(f"false_alarm must lie between 0 and 1, got {false_alarm!r}")
    sampler = make()
    claim = checked(sampler)
    edges = chosen_edges(claim)
    states = np.unique(edges).tolist()
    ratios, fines = ratio_events(claim, edges), fine_events(claim, edges)
    cells = None
    single = claim.moments == 1
    if claim.body is not None and single:
        cells = Cells.of(Cones(claim.body, claim.gamma), float(claim.epsilon), draws)
    pointed = claim.body is None and claim.lattice and claim.log_probability is not None
    laws = len(states) if cells is not None or pointed else 0
    pairs = [pair for a, b in edges.tolist() for pair in ((a, b), (b, a))]
    level = false_alarm / 2 / (len(ratios) + len(fines) + laws + len(pairs) + 3)
    points = {state: _likely_points(claim, make(), state, draws) for state in states if pointed}

    answers = {state: drawn(claim, sampler, state, draws) for state in states}
    findings = [check_lattice(claim, answers)]
    finite = {state: _finite(some) for state, some in answers.items()}
    for event in ratios:
        miss = _ratio_miss(claim, event, draws, level)
        findings.append(check_ratio(claim, event, finite, level, miss=miss))
    findings += [check_ratio(claim, event, finite, level, test="fine bits") for event in fines]
    if cells is not None:
        spent = cells.under(float(claim.epsilon * OFF))
        missed = law_miss(cells.probabilities, spent, draws, level)
        findings += [
            check_law(claim, cells, state, finite[state], level, missed) for state in states
        ]
    for state, (some, probabilities) in points.items():
        findings.append(check_points(state, finite[state], some, probabilities, level))
    findings += check_repeats(claim, make, (int(edges[0, 0]), int(edges[0, 1])), 3 * level)
    findings += check_neighbours(claim, pairs, answers, level)
    findings += _searched(claim, edges, finite, draws, false_alarm / 2)
    return Audit(name, claim.epsilon, draws, tuple(findings), len(edges), len(claim.limits))


def _searched(
    claim: Checked, edges: IntArray, answers: dict[int, Answers], draws: int, false_alarm: float
) -> list[Finding]:
    """What half of the draws chose, held against the other half."""
    half = draws // 2
    chosen = search_events(claim, edges, {state: some[:half] for state, some in answers.items()})
    rest = {state: some[half:] for state, some in answers.items()}
    level = false_alarm / len(chosen)
    findings = []
    for kind, found in chosen.items():
        limit = float(claim.limit(found.event.state, found.event.other))
        findings.append(check_searched(kind, found.event, rest, level, limit, found.likeliest))
    return findings


def audit_sampler(
    sampler: Any,
    *,
    claimed: Exact | Sequence[Exact] | None = None,
    points: ArrayLike | None = None,
    edges: ArrayLike | None = None,
    moments: int = 1,
    lattice: bool = False,
    name: str = "mechanism",
    draws: int = DRAWS,
    false_alarm: float = FALSE_ALARM,
) -> Audit:
    """What black-box tests find against anybody's mechanism.

    Half of the false alarm goes to tests whose events are fixed before the first draw and which
    use every draw; the other half to events that the first half of the draws has chosen and the
    second half certifies.

    Args:
        sampler: A function `sample(state, size)` that returns (size, d) answers, with the next
            three arguments; or an object that has all four as attributes; or a class or function
            that makes such an object, which lets the audit compare fresh instances.
        claimed: The epsilon that is claimed for every edge, or a list with one an edge.
        points: (n_states, d) the answer of each state without noise.
        edges: (m, 2) the pairs of states that the claim is about.
        moments: How many answers a row holds, if states are paths of a stream.
        lattice: Whether every answer is claimed to be a vector of integers.
        name: What the result calls it.
        draws: How many answers to draw for each audited state.
        false_alarm: The chance that a mechanism that keeps its claim is accused, at most.

    >>> def coin(state, size):
    ...     lies = np.random.default_rng().random((size, 1)) < 0.25
    ...     return np.where(lies, 1 - state, state)
    >>> honest = audit_sampler(coin, claimed="1.1", points=[[0], [1]], edges=[[0, 1]], draws=20_000)
    >>> honest.violations
    ()
    >>> lying = audit_sampler(coin, claimed="0.5", points=[[0], [1]], edges=[[0, 1]], draws=20_000)
    >>> lying.text().splitlines()[0]
    'mechanism: VIOLATION of epsilon 0.5'
    """
    if claimed is None and points is None and edges is None:
        make = maker_of(sampler, type(sampler).__name__)
    elif claimed is None or points is None or edges is None:
        raise ArgumentError("claimed, points and edges must be given together")
    else:
        expect_function(sampler, "sampler")
        given = GivenSampler(sampler, claimed, points, edges, moments, lattice)
        make = lambda: given  # noqa: E731
    return _audit(make, name, draws, false_alarm)


def _finite(answers: Answers) -> Answers:
    """Answers with zeros for what is not a number, which was already reported."""
    return np.nan_to_num(answers, posinf=0.0, neginf=0.0) if answers.dtype.kind == "f" else answers


def _ratio_miss(claim: Checked, event: Event, draws: int, level: float) -> float | None:
    """The chance that this event misses a tenth too much, if the claimed law is known."""
    if claim.body is None or claim.moments > 1 or event.share is None:
        return None
    norm = float(claim.body.lattice_norm(claim.points[event.state] - claim.points[event.other]))
    spent = float(claim.epsilon * OFF)
    cones = Cones(claim.body, claim.gamma)
    facing = cones.facing(claim.points[event.state] - claim.points[event.other])
    share = float(cones.fan.masses(spent)[facing].sum())
    return ratio_miss(share, share * exp(-spent * norm), draws, level, float(claim.epsilon))


def _likely_points(
    claim: Checked, sampler: Sampler, state: int, draws: int
) -> tuple[Answers, FloatArray]:
    """Points that expect many draws, by their claimed probability, and the sum of all others."""
    assert claim.log_probability is not None
    points = np.unique(drawn(claim, sampler, state, PILOT), axis=0)
    rows = [np.asarray(claim.log_probability(point), dtype=np.float64) for point in points]
    claimed = np.array([exp(row[state]) for row in rows])
    enough = claimed * draws >= MIN_EXPECTED
    points, claimed = points[enough], claimed[enough]
    rest = 1 - claimed.sum()
    if rest * draws < MIN_EXPECTED and len(points):
        least = int(np.argmin(claimed))
        points, claimed = np.delete(points, least, axis=0), np.delete(claimed, least)
        rest = 1 - claimed.sum()
    if rest <= 0 or not len(points):
        raise ArgumentError("log_probability must be that of answers on a lattice that vary")
    return points, np.append(claimed, rest)
