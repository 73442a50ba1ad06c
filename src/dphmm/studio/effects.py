"""What a scenario does at a step: who is exposed, before repair and as released, and the price.

Everything here is what `dphmm check` computes, by the same functions; the page only draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from math import isinf, sqrt
from typing import Any

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.cost.words import to_protect
from dphmm.geometry.exact import as_text
from dphmm.geometry.hull import SensitivityHull
from dphmm.noise.distance import mean_noise
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Noise, Plan, Protected
from dphmm.policy.protection import degree_of_protection
from dphmm.policy.repair import RepairMethod
from dphmm.release.hours import DAY
from dphmm.release.schedule import allowed_at
from dphmm.report.figures import outline, sample_links
from dphmm.scenario import Scenario
from dphmm.scenario.checking import Step, check_step, check_steps, doubts, guarantee, unrepaired
from dphmm.scenario.headline import headline, warnings
from dphmm.scenario.speaking import binding_window, even_price, how_often
from dphmm.scenario.stepping import Moment, moments
from dphmm.studio import progress

__all__ = ["Situation", "exact_number", "timeline"]

DRAWN_EDGES = 4_000
"""Of more edges than this so many are drawn: all would cover the map."""

COUNTED_EDGES = 4_000_000
"""Overlapping cliques with more pairs than this are counted pair by pair, as a bound."""

MAX_REPAIR = 30_000_000
"""Exposed states times possible states: beyond, comparing three repairs takes many seconds."""

SHOWN_CANDIDATES = 24
MOST_TICKS = 1440
"""Steps of a day that can be told apart on a strip."""
METHODS: tuple[RepairMethod, ...] = ("nearest", "min_area", "min_error")


@dataclass(frozen=True, eq=False)
class Situation:
    """A scenario at a step without releases."""

    scenario: Scenario
    moment: Moment

    @classmethod
    def of(cls, scenario: Scenario, step: int) -> Situation:
        """The situation at a step, or at the one before it from which on nothing changes."""
        *_, last = moments(scenario, step)
        return cls(scenario, last)

    @property
    def possible(self) -> Mask:
        """The states to protect."""
        return self.moment.possible

    @property
    def epsilon(self) -> Fraction:
        """The price of an answer."""
        return self.scenario.settings.epsilon

    @cached_property
    def bare(self) -> Plan:
        """The plan before repair."""
        return unrepaired(self.scenario)

    @cached_property
    def before(self) -> Protected:
        """What protects the states before repair."""
        return self.bare.at(self.possible)

    @cached_property
    def degree(self) -> IntArray:
        """How many states hide each, before repair."""
        before = self.before
        return degree_of_protection(self.scenario.query, before.policy, self.possible, before.body)

    @cached_property
    def noise_before(self) -> Noise:
        """The noise before repair: where that has nothing to do, the plan's own, summed once."""
        before = self.before.noise
        after = self.scenario.plan.at(self.possible).noise if self.is_sound else before
        same = np.array_equal(before.body.lattice_vertices, after.body.lattice_vertices)
        return after if same else before

    @property
    def is_sound(self) -> bool:
        """Whether repair has nothing to do."""
        plan, rank = self.scenario.plan, self.before.hull.rank
        whole = rank == self.scenario.query.dimension or not plan.full_rank
        return plan.repair is None or (whole and not (self.degree == 1).any())

    @cached_property
    def step(self) -> Step:
        """What `dphmm check` says of this step."""
        degree = None if len(self.scenario.plan.at(self.possible).added) else self.degree
        return check_step(self.scenario, self.bare, self.moment, degree)

    def effects(self) -> dict[str, Any]:
        """What is possible and linked, and who is exposed before repair; as released if quick."""
        model, often = self.scenario.model, how_often(self.scenario)
        prior = model.place_belief(self.moment.prior).probabilities
        return {
            "time": self.moment.time,
            "lasts": self.moment.lasts,
            "possible": None if self.possible.all() else np.flatnonzero(self.possible).tolist(),
            "n_possible": int(self.possible.sum()),
            "called": to_protect(self.scenario.settings.delta),
            # Five digits are what a colour can show.
            "prior": [float(f"{p:.5g}") for p in prior.tolist()],
            "edges": _edges(self.scenario.policy.restricted_to(self.possible)),
            "own": self._own_edges(),
            "guarantee": guarantee(self.scenario),
            "doubts": doubts(self.scenario),
            "speaks": None
            if often is None
            else asdict(often) | {"epsilon": as_text(often.epsilon), "words": str(often)},
            "lasting": _lasting_price(self.scenario),
            **_day(self.scenario),
            "before": self._protection(self.before, self.noise_before, self.degree),
            "released": self.released() if self.is_sound else None,
        }

    def released(self) -> dict[str, Any]:
        """What `dphmm check` says of this step, and what the page draws of it."""
        after = self.scenario.plan.at(self.possible)
        degree, step = None if len(after.added) else self.degree, self.step
        return {
            "step": step.plain(),
            "headline": headline(self.scenario, step),
            "warnings": warnings(self.scenario, step),
            "added": after.added.tolist(),
            **self._protection(after, after.noise, degree),
        }

    def repairs(self, state: int | None) -> dict[str, Any]:
        """What each method would add and cost, and every partner for one exposed state."""
        exposed = np.flatnonzero(self.degree == 1)
        nothing: dict[str, Any] = {"state": None, "candidates": [], "n_candidates": 0}
        if int(self.possible.sum()) < 2:
            return {**nothing, "methods": []}
        if len(exposed) * int(self.possible.sum()) > MAX_REPAIR:
            sentence = (
                f"{len(exposed):,} of {int(self.possible.sum()):,} places are exposed: too many to "
                f"compare repairs here; add a rule, or let repair link them."
            )
            return {**nothing, "methods": [], "error": sentence}
        progress.begin(len(METHODS))
        methods = [self._repair(method) for method in METHODS]
        if state is None and len(exposed):
            state = int(exposed[0])
        if state is None or not self.possible[state]:
            return {**nothing, "methods": methods}
        picked: dict[int, list[str]] = {}
        for repair in methods:
            for a, b in repair["edges"]:
                if state in (a, b):
                    picked.setdefault(b if a == state else a, []).append(repair["method"])
        return {
            "state": state,
            "methods": methods,
            "candidates": list(self._candidates(state, picked)),
            "n_candidates": int(self.possible.sum()) - 1,
        }

    def _protection(
        self, step: Protected, noise: Noise, degree: IntArray | None = None
    ) -> dict[str, Any]:
        """Who is exposed under a step's noise, and how far its answers are off."""
        if degree is None:
            query = self.scenario.query
            degree = degree_of_protection(query, step.policy, self.possible, step.body)
        return {
            "degree": degree.tolist(),
            "exposed": np.flatnonzero(degree == 1).tolist(),
            "least": int(degree[self.possible].min()),
            **self._cost(noise),
            "hull": _hull(step.hull, step.body),
        }

    def _cost(self, noise: Noise) -> dict[str, Any]:
        mechanism = noise.mechanism(self.epsilon)
        return {
            "rank": noise.body.rank,
            "area": exact_number(noise.body.volume),
            "mean_error": mean_noise(mechanism),
            "error": sqrt(mechanism.mean_squared_error),
            "squared_error": exact_number(noise.body.mean_squared_error(self.epsilon)),
        }

    def _repair(self, method: RepairMethod) -> dict[str, Any]:
        plan = self.scenario.plan
        if plan.repair != method:
            plan = plan.replace(repair=method)
        step = plan.at(self.possible)
        cost = self._cost(step.noise)
        progress.step()
        return {"method": method, "edges": step.added.tolist(), **cost, **_outline(step.hull)}

    def _candidates(self, state: int, picked: dict[int, list[str]]) -> Iterator[dict[str, Any]]:
        """The nearest partners of a state, and those that a method picked."""
        points, hull = self.scenario.query.points, self.before.hull
        others = np.flatnonzero(self.possible)
        others = others[others != state]
        apart = (points[others] - points[state]).astype(np.float64)
        order = np.argsort((apart**2).sum(axis=1), kind="stable")[:SHOWN_CANDIDATES]
        for partner in sorted({*others[order].tolist(), *picked}):
            corners = np.concatenate([hull.lattice_vertices, points[[state]] - points[[partner]]])
            wider = self.bare._with_body(SensitivityHull.from_lattice(corners, hull.step))
            yield {
                "state": partner,
                "picked_by": picked.get(partner, []),
                **self._cost(wider),
                **_outline(wider.hull),
            }

    def _own_edges(self) -> list[list[int]]:
        """The edges of the policy's own file between possible states."""
        number = {label: state for state, label in enumerate(self.scenario.labels)}
        pairs = ((number[a], number[b]) for a, b in self.scenario.edges)
        return [[a, b] for a, b in pairs if self.possible[a] and self.possible[b]]


def timeline(scenario: Scenario, horizon: int) -> dict[str, Any]:
    """What `dphmm check` says of each step, who is exposed as numbers."""
    counted = ("exposed_before", "exposed", "added")
    steps = []
    progress.begin(horizon)
    for step in check_steps(scenario, horizon):
        progress.step()
        facts = step.plain()
        steps.append(facts | {name: len(facts[name]) for name in counted})
    return {"steps": steps}


def _day(scenario: Scenario) -> dict[str, Any]:
    """The interval in steps and, under a clock, when on a day it may speak, as parts of the day."""
    schedule = scenario.settings.schedule
    size = None if schedule is None else schedule.size
    if schedule is None or size is None or DAY % size or DAY // size > MOST_TICKS:
        return {"every": 1 if schedule is None else int(schedule.every), "day": None}
    steps = DAY // size
    spoken = np.flatnonzero(allowed_at(schedule, np.arange(steps)))
    return {"every": int(schedule.every), "day": (spoken / steps).round(5).tolist()}


def _lasting_price(scenario: Scenario) -> str | None:
    """The price at which every answer of the schedule fits into every window of the limit."""
    window = binding_window(scenario.settings)
    return None if window is None else as_text(even_price(scenario.settings, window))


def _edges(policy: PolicyGraph) -> dict[str, Any]:
    """How many edges there are, and as many of them as can be drawn."""
    bound = policy.most_edges
    disjoint = not len(policy.links) and len(np.unique(policy.members)) == len(policy.members)
    plain = not len(policy.members)
    if plain or disjoint or bound > COUNTED_EDGES:
        count, known = bound, plain or disjoint
    else:
        count, known = len(policy.edges), True
    drawn = policy.edges if count <= DRAWN_EDGES else sample_links(policy, DRAWN_EDGES)
    return {"count": count, "exact": known, "drawn": drawn.ravel().tolist(), "n_drawn": len(drawn)}


def _hull(hull: SensitivityHull, body: SensitivityHull) -> dict[str, Any]:
    """The policy's hull, and the body that the noise uses if that is another."""
    return {
        "rank": hull.rank,
        "dimension": hull.dimension,
        "corners": len(hull.body.corners),
        **_outline(hull),
        "body": outline(body).tolist(),
        "sensitivity": exact_number(hull.l1_sensitivity if hull.rank else Fraction(0)),
    }


def _outline(hull: SensitivityHull) -> dict[str, Any]:
    return {"outline": outline(hull).tolist()}


def exact_number(number: Fraction | float) -> dict[str, Any]:
    """A number as the page shows it: its exact form in a text, and a float to draw with."""
    if isinstance(number, float):
        return {"exact": "infinite" if isinf(number) else repr(number), "value": None}
    return {"exact": str(number), "value": float(number)}
