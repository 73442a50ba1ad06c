"""What the paper says of its figures (section 8), and whether the means of one run agree.

For a quick look at one dataset. How sure a verdict is, and at which clock, is said by the studies
of `section8`, whose verdicts have intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.experiments import Task
from dphmm.evaluate.workloads import Workload

__all__ = ["Claim", "Curves", "claims_of"]

NEARLY = 0.1
"""A quantity that varies by less than this share of its mean counts as the same."""

SETTLED = 0.25
"""A runtime whose last two quarters differ by less than this share counts as settled."""

ABOUT = 2.0
"""Within this factor of the paper's figure counts as about the same."""


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper and what was found. Private: it is about true states."""

    text: str
    held: bool
    found: str
    why: str = ""
    """If it did not hold, what the numbers suggest."""


@dataclass(frozen=True, eq=False)
class Curves:
    """The results of one chain: whom it was learned from, and which moves."""

    workload: Workload
    learned: str
    moves: str
    result: Callable[[Task], dict[str, FloatArray]]

    @property
    def varied(self) -> bool:
        """Whether epsilon and the radius were varied with this chain."""
        return self.moves == "all"

    def task(self, policy: str, epsilon: str = "1", radius: str | None = None) -> Task:
        """The task of one point."""
        usual = self.workload.radius
        reach = (radius or usual) if policy == "distance" else ""
        plain = epsilon == "1" and reach in ("", usual)
        anew = plain and self.learned == "others"
        return Task(policy, self.learned, self.moves, epsilon, reach, anew=anew)

    def over_time(self, measure: str, policy: str) -> FloatArray:
        """The mean over sequences at each step, at epsilon 1 and the usual radius."""
        return np.asarray(self.result(self.task(policy))[measure].mean(axis=0))

    def mean(
        self, measure: str, policy: str, epsilon: str = "1", radius: str | None = None
    ) -> float:
        """The mean over sequences and steps."""
        return float(self.result(self.task(policy, epsilon, radius))[measure].mean())

    def by_epsilon(self, measure: str, policy: str) -> FloatArray:
        """The mean at each epsilon of the workload."""
        return np.array([self.mean(measure, policy, e) for e in self.workload.epsilons])

    def by_radius(self, measure: str) -> FloatArray:
        """The mean under the distance policy at each radius of the workload."""
        radii = self.workload.radii
        return np.array([self.mean(measure, "distance", radius=r) for r in radii])

    def longest_move(self) -> float:
        """The longest move of the chain in kilometres."""
        counts = self.workload.counts(self.learned, self.moves).tocoo()
        return float(self.workload.lengths(counts).max())


def claims_of(curves: Curves) -> list[Claim]:
    """Every claim of section 8, judged on one chain."""
    claims = _over_time(curves)
    if curves.varied:
        claims += [*_by_epsilon(curves), *_by_radius(curves)]
    return [*claims, *_runtime(curves)]


def _over_time(curves: Curves) -> list[Claim]:
    near, step, set_ = (
        curves.mean("hidden", policy) for policy in ("distance", "one_step", "location_set")
    )
    near_error, step_error, set_error = (
        curves.mean("error", policy) for policy in ("distance", "one_step", "location_set")
    )
    wanted, states = curves.workload.paper_hidden, curves.workload.query.n_states
    first, last = curves.over_time("possible", "location_set")[[0, -1]]
    grown = (
        f"The δ-location set grows here from {first:.0f} to {last:.0f} states in "
        f"{curves.workload.steps} steps: its noise is as wide as the set, so an answer tells "
        "little, the belief spreads and the set with it. Being hidden among a large set "
        "counts as a large DoP, and is paid for with the error."
    )
    hidden = f"mean DoP: one-step {step:.0f}, distance {near:.1f}, δ-location set {set_:.0f}"
    errors = (
        f"mean error in km: distance {near_error:.2f}, one-step {step_error:.2f}, "
        f"δ-location set {set_error:.2f}"
    )
    return [
        Claim(
            "The one-step policy gives the true state the largest DoP.",
            step > max(near, set_),
            hidden,
            grown,
        ),
        Claim(
            f"With the one-step policy the true state hides among about {wanted} states.",
            wanted / ABOUT <= step <= wanted * ABOUT,
            f"mean DoP {step:.0f} of {states} states (up to a factor {ABOUT:g} counts as about)",
            "How far people get in a step decides, and so does the clock: with GeoLife's fixes "
            "every 5 seconds it is about the paper's figure (docs/evaluation.md, with intervals).",
        ),
        Claim(
            "The one-step policy's error is higher than the distance policy's.",
            step_error > near_error,
            errors,
        ),
        Claim(
            "The distance policy's error is below the δ-location set's.",
            near_error < set_error,
            errors,
        ),
        Claim(
            "The distance policy's DoP is above the δ-location set's.",
            near > set_,
            hidden,
            grown,
        ),
        Claim(
            "The one-step policy sacrifices little utility against the δ-location set.",
            step_error < 1.5 * set_error,
            errors + " (up to one and a half times counts as little)",
            "Its hull is wider than the δ-location set itself.",
        ),
    ]


def _by_epsilon(curves: Curves) -> list[Claim]:
    claims = []
    for policy, words in (
        ("distance", "the distance policy"),
        ("one_step", "the one-step policy"),
        ("location_set", "the δ-location set"),
    ):
        hidden = curves.by_epsilon("hidden", policy)
        why = "Which states are in the δ-location set depends on the belief, and so on the answers."
        if policy != "location_set":
            why = "Where the hull is flat, answers rule states out, and do so at any epsilon."
        claims.append(
            Claim(
                f"DoP does not depend on ε under {words}.",
                bool(np.ptp(hidden) <= NEARLY * hidden.mean()),
                f"mean DoP at ε = {_listed(curves.workload.epsilons)}: {_numbers(hidden, '.1f')}",
                why,
            )
        )
    for policy, words in (
        ("distance", "the distance policy"),
        ("one_step", "the one-step policy"),
        ("location_set", "the δ-location set"),
    ):
        error = curves.by_epsilon("error", policy)
        claims.append(
            Claim(
                f"Error falls as ε grows under {words}.",
                bool((np.diff(error) < 0).all()),
                f"mean error in km at ε = {_listed(curves.workload.epsilons)}: {_numbers(error)}",
                "Answers for a state outside the chain's reach are about its stand-in, at any ε.",
            )
        )
    return claims


def _by_radius(curves: Curves) -> list[Claim]:
    radii = _listed(curves.workload.radii)
    hidden, error = curves.by_radius("hidden"), curves.by_radius("error")
    set_error = curves.mean("error", "location_set")
    below = error < set_error
    note = (
        "Repair adds edges to states that the radius leaves alone, and such an edge may be "
        "longer than the radius itself."
    )
    return [
        Claim(
            "DoP grows with r.",
            bool((np.diff(hidden) > 0).all()),
            f"mean DoP at r = {radii} km: {_numbers(hidden, '.1f')}",
            note,
        ),
        Claim(
            "Error grows with r.",
            bool((np.diff(error) > 0).all()),
            f"mean error in km at r = {radii} km: {_numbers(error)}",
            note,
        ),
        Claim(
            "Error stays below the δ-location set's for most r.",
            bool(below.mean() > 0.5),
            f"below {set_error:.2f} km for {below.sum()} of {len(below)} radii",
        ),
    ]


def _runtime(curves: Curves) -> list[Claim]:
    if curves.learned != "others":
        return []
    claims = []
    plain = {
        policy: curves.over_time("anew", policy)
        for policy in ("distance", "one_step", "location_set")
    }
    for policy, words in (("distance", "distance"), ("one_step", "one-step")):
        quarter = len(plain[policy]) // 4
        third = 1000 * float(np.median(plain[policy][-2 * quarter : -quarter]))
        fourth = 1000 * float(np.median(plain[policy][-quarter:]))
        claims.append(
            Claim(
                f"Runtime under the {words} policy settles as the chain does.",
                abs(fourth - third) <= SETTLED * third,
                f"graph, repair and hull of a step computed anew: {third:.1f} ms in the third "
                f"quarter of the steps, {fourth:.1f} ms in the fourth",
                "Both are a few milliseconds of processor time, which a busy machine blurs.",
            )
        )
    means = {policy: 1000 * float(np.median(row)) for policy, row in plain.items()}
    shipped = {
        policy: 1000 * float(np.median(curves.over_time("seconds", policy))) for policy in means
    }
    claims.append(
        Claim(
            "Both policies take a little longer than the δ-location set.",
            means["location_set"] < min(means["distance"], means["one_step"]),
            f"computed anew: distance {means['distance']:.1f} ms, one-step "
            f"{means['one_step']:.1f} ms, δ-location set {means['location_set']:.1f} ms; a whole "
            f"release as shipped, with possible sets remembered: {shipped['distance']:.1f}, "
            f"{shipped['one_step']:.1f} and {shipped['location_set']:.1f} ms",
            "Both are a few milliseconds of processor time, which a busy machine blurs.",
        )
    )
    return claims


def _numbers(values: FloatArray, form: str = ".2f") -> str:
    return ", ".join(format(value, form) for value in values)


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values)
