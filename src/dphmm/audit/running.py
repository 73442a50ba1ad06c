"""One audit: choose what to look at, draw, test, and say what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np

from dphmm._types import FloatArray
from dphmm.audit.checks import (
    Finding,
    check_lattice,
    check_law,
    check_points,
    check_ratio,
    check_repeats,
    law_miss,
    ratio_miss,
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
from dphmm.audit.sampler import Answers, Checked, Sampler, checked, drawn
from dphmm.errors import ArgumentError

__all__ = ["DRAWS", "FALSE_ALARM", "OFF", "Audit", "audit_sampler"]

DRAWS = 200_000
"""Draws a state, enough to see a tenth too much epsilon almost surely."""

FALSE_ALARM = 1e-4
"""The chance that any test of any audited mechanism accuses it wrongly."""

OFF = Fraction(11, 10)
"""The smallest fault that power is computed for: a tenth more epsilon than was claimed."""

PILOT = 20_000


@dataclass(frozen=True)
class Audit:
    """What an audit of one mechanism found."""

    name: str
    epsilon: Fraction
    draws: int
    findings: tuple[Finding, ...]

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

    def text(self) -> str:
        """The result in a line, and one for each violation."""
        if self.violations:
            lines = [f"{self.name}: VIOLATION of epsilon {float(self.epsilon):g}"]
            return "\n".join(
                [*lines, *(f"  {f.test}: {f.what}: {f.detail}" for f in self.violations)]
            )
        power = (
            "unknown" if self.miss is None else f"a tenth too much is missed with {self.miss:.1g}"
        )
        return (
            f"{self.name}: no violation of epsilon {float(self.epsilon):g} found at this power "
            f"({len(self.findings)} tests, {self.draws} draws a state; {power}; "
            f"false alarm {self.false_alarm:.1g})"
        )


def audit_sampler(
    make: Callable[[], Sampler],
    *,
    name: str = "mechanism",
    draws: int = DRAWS,
    false_alarm: float = FALSE_ALARM,
) -> Audit:
    """What black-box tests find against a sampler's claim.

    Edges, events and cells are fixed before the first draw.

    Args:
        make: Gives a fresh sampler every time, for example its class.
        name: What the result calls it.
        draws: How many answers to draw for each state.
        false_alarm: The chance that any test accuses it wrongly; those of all tests add up.

    >>> from dphmm.audit import running_example, sampler_of
    >>> result = audit_sampler(sampler_of(running_example()), draws=5000)
    >>> result.violations
    ()
    """
    if draws < PILOT // 20:
        raise ArgumentError(f"draws must be at least {PILOT // 20}, got {draws!r}")
    if not 0 < false_alarm < 1:
        raise ArgumentError(f"false_alarm must lie between 0 and 1, got {false_alarm!r}")
    sampler = make()
    claim = checked(sampler)
    edges = chosen_edges(claim)
    states = np.unique(edges).tolist()
    ratios, fines = ratio_events(claim, edges), fine_events(claim, edges)
    cells = None
    if claim.body is not None:
        cells = Cells.of(Cones(claim.body), float(claim.epsilon), draws)
    single = claim.body is None and claim.lattice and claim.log_probability is not None
    laws = len(states) if cells is not None or single else 0
    level = false_alarm / (len(ratios) + len(fines) + laws + 3)
    points = {state: _likely_points(claim, make(), state, draws) for state in states if single}

    answers = {state: drawn(claim, sampler, state, draws) for state in states}
    findings = [check_lattice(claim, answers)]
    finite = {state: _finite(some) for state, some in answers.items()}
    for event in ratios:
        miss = _ratio_miss(claim, event, draws, level)
        findings.append(check_ratio(claim, event, finite, level, miss=miss))
    findings += [check_ratio(claim, event, finite, level, test="fine bits") for event in fines]
    for state in states if cells is not None else []:
        assert cells is not None
        missed = law_miss(
            cells.probabilities, cells.under(float(claim.epsilon * OFF)), draws, level
        )
        findings.append(check_law(claim, cells, state, finite[state], level, missed))
    for state, (some, probabilities) in points.items():
        findings.append(check_points(state, finite[state], some, probabilities, level))
    findings += check_repeats(claim, make, (int(edges[0, 0]), int(edges[0, 1])), 3 * level)
    return Audit(name, claim.epsilon, draws, tuple(findings))


def _finite(answers: Answers) -> Answers:
    """Answers with zeros for what is not a number, which was already reported."""
    return np.nan_to_num(answers, posinf=0.0, neginf=0.0) if answers.dtype.kind == "f" else answers


def _ratio_miss(claim: Checked, event: Event, draws: int, level: float) -> float | None:
    """The chance that this event misses a tenth too much, if the claimed law is known."""
    if claim.body is None or event.share is None:
        return None
    norm = float(claim.body.lattice_norm(claim.points[event.state] - claim.points[event.other]))
    spent = float(claim.epsilon * OFF)
    cones = Cones(claim.body)
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
