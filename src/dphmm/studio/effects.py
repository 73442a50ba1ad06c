"""What a policy does: its hull, its error, who hides whom, and what a repair would cost.

Everything here is computed by the library on exact numbers; the page only draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isinf, sqrt
from typing import Any

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.chain.belief import Belief
from dphmm.errors import ArgumentError, TooLargeError
from dphmm.geometry.hull import SensitivityHull
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.staircase import best_gamma, largest_loss
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import degree_of_protection, exposed
from dphmm.policy.repair import RepairMethod, added_edges
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.report.figures import outline
from dphmm.scenario import Scenario
from dphmm.studio.examples import categories_of
from dphmm.studio.requests import DrawnPolicy, Effects, Moment

__all__ = ["Situation", "exact_number", "make_policy", "pairs_of"]

DRAWN_EDGES = 6_000
"""More edges than this are counted and not drawn: they would cover the map."""

COUNTED_EDGES = 4_000_000
"""Overlapping cliques with more pairs than this are counted pair by pair, as a bound."""

MAX_REPAIR = 4_000_000
"""Exposed states times possible states: beyond, comparing three repairs takes many seconds."""

SHOWN_CANDIDATES = 24
METHODS: tuple[RepairMethod, ...] = ("nearest", "min_area", "min_error")


@dataclass(frozen=True, eq=False)
class Situation:
    """A policy of a scenario at a moment: what is possible now, and what is believed."""

    scenario: Scenario
    policy: PolicyGraph
    """The policy on the possible states, not repaired."""
    belief: Belief
    epsilon: Fraction
    staircase: bool = False
    """Whether the noise rounds norms up; Laplace's is told by its ball beside the hull."""

    @classmethod
    def of(cls, scenario: Scenario, request: Effects) -> Situation:
        """The situation that a request describes."""
        belief = _belief(scenario, request.moment)
        policy = make_policy(scenario, request.policy).restricted_to(belief.possible)
        rounded = request.mechanism == "staircase"
        return cls(scenario, policy, belief, request.epsilon, rounded)

    @property
    def possible(self) -> Mask:
        """The states that are possible now."""
        return self.belief.possible

    @cached_property
    def hull(self) -> SensitivityHull:
        """The policy's sensitivity hull."""
        return sensitivity_hull(self.scenario.query, self.policy)

    @cached_property
    def exposed(self) -> IntArray:
        """The possible states that no other hides."""
        return exposed(self.scenario.query, self.policy, self.possible, self.hull)

    def effects(self) -> dict[str, Any]:
        """The whole effect, for the page."""
        query, possible = self.scenario.query, self.possible
        degree = degree_of_protection(query, self.policy, possible, self.hull)
        furthest = self.hull.largest_lattice_norm(query.points[possible])
        return {
            "possible": None if possible.all() else np.flatnonzero(possible).tolist(),
            "n_possible": int(possible.sum()),
            # Five digits are what a colour can show.
            "prior": [float(f"{p:.5g}") for p in self.belief.probabilities.tolist()],
            "edges": _edges(self.policy),
            "hull": _hull(self.hull, self.epsilon),
            "worst": exact_number(largest_loss(furthest, self.epsilon, self.staircase)),
            "degree": degree.tolist(),
            "exposed": np.flatnonzero(degree == 1).tolist(),
        }

    def repairs(self, state: int | None) -> dict[str, Any]:
        """What each method would add and cost, and every partner for one exposed state."""
        nothing: dict[str, Any] = {"state": None, "candidates": [], "n_candidates": 0}
        nothing["released_error"] = self._released_error()
        if int(self.possible.sum()) < 2:
            return {**nothing, "methods": []}
        if len(self.exposed) * int(self.possible.sum()) > MAX_REPAIR:
            raise TooLargeError(
                f"too many states are exposed to compare repairs here, got {len(self.exposed)} "
                f"of {int(self.possible.sum())}; link some of them first"
            )
        methods = [self._repair(method) for method in METHODS]
        if state is None and len(self.exposed):
            state = int(self.exposed[0])
        if state is None or not self.possible[state]:
            return {**nothing, "methods": methods}
        picked: dict[int, list[str]] = {}
        for repair in methods:
            for a, b in repair["edges"]:
                if state in (a, b):
                    picked.setdefault(b if a == state else a, []).append(repair["method"])
        return {
            **nothing,
            "state": state,
            "methods": methods,
            "candidates": self._candidates(state, picked),
            "n_candidates": int(self.possible.sum()) - 1,
        }

    def _released_error(self) -> float | None:
        """The root of the mean squared error of answers as they are released, on the lattice."""
        if not self.hull.rank:
            return None
        gamma = best_gamma(self.hull.rank, self.epsilon) if self.staircase else None
        noise = Mechanism(self.scenario.query, self.hull, self.epsilon, gamma)
        return sqrt(noise.mean_squared_error)

    def _repair(self, method: RepairMethod) -> dict[str, Any]:
        edges = added_edges(self.scenario.query, self.policy, self.possible, method).tolist()
        return {"method": method, "edges": edges, **self._cost(edges)}

    def _candidates(self, state: int, picked: dict[int, list[str]]) -> list[dict[str, Any]]:
        """The nearest partners of a state, and those that a method picked."""
        points = self.scenario.query.points
        others = np.flatnonzero(self.possible)
        others = others[others != state]
        apart = (points[others] - points[state]).astype(np.float64)
        order = np.argsort((apart**2).sum(axis=1), kind="stable")[:SHOWN_CANDIDATES]
        return [
            {
                "state": partner,
                "picked_by": picked.get(partner, []),
                **self._cost([sorted((state, partner))]),
            }
            for partner in sorted({*others[order].tolist(), *picked})
        ]

    def _cost(self, edges: list[list[int]]) -> dict[str, Any]:
        """The hull that some more edges would give."""
        hull = sensitivity_hull(self.scenario.query, self.policy.with_edges(edges))
        return {
            "area": exact_number(hull.volume),
            "error": exact_number(hull.mean_squared_error(self.epsilon)),
            "outline": outline(hull).tolist(),
        }


def _belief(scenario: Scenario, moment: Moment) -> Belief:
    """What is known: nothing, a set of states, or a start and a number of steps."""
    n_states = len(scenario.states)
    if moment.states is not None:
        probabilities = np.zeros(n_states)
        probabilities[moment.states] = 1 / len(moment.states)
        belief = Belief.from_probabilities(probabilities)
    elif moment.start is not None:
        belief = Belief.certain(moment.start, n_states)
    else:
        belief = Belief.uniform(n_states)
    model = scenario.model
    belief = model.known(belief)
    for time in range(1, moment.steps + 1):
        belief = model.predict(belief, time)
    return model.place_belief(belief)


def make_policy(scenario: Scenario, drawn: DrawnPolicy) -> PolicyGraph:
    """A base policy with the edges and cliques that were drawn, less those taken away."""
    policy = _base(scenario, drawn)
    if drawn.cliques:
        policy = policy | PolicyGraph(len(scenario.states), cliques=drawn.cliques)
    if drawn.links:
        policy = policy.with_edges(drawn.links)
    if drawn.unlinks:
        if _count_pairs(policy) > COUNTED_EDGES:
            raise ArgumentError(
                f"unlinks must be taken from a policy of at most {COUNTED_EDGES} edges"
            )
        policy = policy.without_edges(drawn.unlinks)
    return policy


def _base(scenario: Scenario, drawn: DrawnPolicy) -> PolicyGraph:
    n_states, query = len(scenario.states), scenario.query
    if drawn.base == "complete":
        return PolicyGraph.complete(n_states)
    if drawn.base == "categories":
        return PolicyGraph.by_category(drawn.categories or categories_of(scenario))
    if drawn.base == "distance":
        # Beyond this the graph is complete, and a million pairs need not be listed to say so.
        farthest = sum(int(side) ** 2 for side in np.ptp(query.points, axis=0)) * query.step**2
        if drawn.radius**2 >= farthest:
            return PolicyGraph.complete(n_states)
        return PolicyGraph.within_distance(query, drawn.radius)
    if drawn.base == "one_step":
        return PolicyGraph.one_step(scenario.model.on_places.at(1))
    return PolicyGraph(n_states)


def pairs_of(policy: PolicyGraph) -> list[list[int]]:
    """Every edge of a policy that is small enough to be saved as edges."""
    if _count_pairs(policy) > COUNTED_EDGES:
        raise ArgumentError(f"policy must have at most {COUNTED_EDGES} edges to be saved")
    pairs: list[list[int]] = policy.edges.tolist()
    return pairs


def _count_pairs(policy: PolicyGraph) -> int:
    """At most so many edges; a pair in two cliques counts twice."""
    sizes = np.diff(policy.offsets)
    return len(policy.links) + int((sizes * (sizes - 1) // 2).sum())


def _edges(policy: PolicyGraph) -> dict[str, Any]:
    """How many edges there are, and the edges themselves if they are few."""
    bound = _count_pairs(policy)
    disjoint = not len(policy.links) and len(np.unique(policy.members)) == len(policy.members)
    plain = not len(policy.members)
    if plain or disjoint or bound > COUNTED_EDGES:
        count, known = bound, plain or disjoint
    else:
        count, known = len(policy.edges), True
    shown = count <= DRAWN_EDGES
    return {
        "count": count,
        "exact": known,
        "drawn": policy.edges.ravel().tolist() if shown else None,
    }


def _hull(hull: SensitivityHull, epsilon: Fraction) -> dict[str, Any]:
    """The hull and the l1 ball around it, with their sizes and errors."""
    ball = hull.l1_ball() if hull.rank else hull
    return {
        "rank": hull.rank,
        "dimension": hull.dimension,
        "corners": len(hull.body.corners),
        "outline": outline(hull).tolist(),
        "ball": outline(ball).tolist(),
        "area": exact_number(hull.volume),
        "ball_area": exact_number(ball.volume),
        "error": exact_number(hull.mean_squared_error(epsilon)),
        "ball_error": exact_number(ball.mean_squared_error(epsilon)),
        "sensitivity": exact_number(hull.l1_sensitivity if hull.rank else Fraction(0)),
    }


def exact_number(number: Fraction | float) -> dict[str, Any]:
    """A number as the page shows it: its exact form in a text, and a float to draw with."""
    if isinstance(number, float):
        return {"exact": "infinite" if isinf(number) else repr(number), "value": None}
    return {"exact": str(number), "value": float(number)}
