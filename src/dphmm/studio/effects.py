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

from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.chain.belief import Belief
from dphmm.errors import ArgumentError, TooLargeError
from dphmm.geometry.hull import SensitivityHull
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import degree_of_protection, exposed
from dphmm.policy.repair import RepairMethod, added_edges
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.studio.reading import Fields
from dphmm.studio.worlds import World

__all__ = ["Situation", "count_pairs", "read_epsilon", "read_policy", "read_situation"]

DRAWN_EDGES = 6_000
"""More edges than this are counted and not drawn: they would cover the map."""

COUNTED_EDGES = 4_000_000
"""Overlapping cliques with more pairs than this are counted pair by pair, as a bound."""

MAX_REPAIR = 4_000_000
"""Exposed states times possible states: beyond, comparing three repairs takes many seconds."""

SHOWN_CANDIDATES = 24
MAX_STEPS = 500
METHODS: tuple[RepairMethod, ...] = ("nearest", "min_area", "min_error")
BASES = ("none", "complete", "categories", "distance", "one_step")


@dataclass(frozen=True, eq=False)
class Situation:
    """A policy in a world at a moment: what is possible now, and what is believed."""

    world: World
    policy: PolicyGraph
    """The policy on the possible states, not repaired."""
    belief: Belief
    epsilon: Fraction

    @property
    def possible(self) -> Mask:
        """The states that are possible now."""
        return self.belief.possible

    @cached_property
    def hull(self) -> SensitivityHull:
        """The policy's sensitivity hull."""
        return sensitivity_hull(self.world.query, self.policy)

    @cached_property
    def exposed(self) -> IntArray:
        """The possible states that no other hides."""
        return exposed(self.world.query, self.policy, self.possible, self.hull)

    def effects(self) -> dict[str, Any]:
        """The whole effect, for the page."""
        query, possible = self.world.query, self.possible
        degree = degree_of_protection(query, self.policy, possible, self.hull)
        return {
            "possible": None if possible.all() else np.flatnonzero(possible).tolist(),
            "n_possible": int(possible.sum()),
            "prior": rounded(self.belief.probabilities),
            "edges": drawn_edges(self.policy),
            "hull": drawn_hull(self.hull, self.epsilon),
            "worst": exact_number(
                self.hull.largest_lattice_norm(query.points[possible]) * self.epsilon
            ),
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
        return sqrt(Mechanism(self.world.query, self.hull, self.epsilon).mean_squared_error)

    def _repair(self, method: RepairMethod) -> dict[str, Any]:
        query = self.world.query
        edges = added_edges(query, self.policy, self.possible, method)
        hull = sensitivity_hull(query, self.policy.with_edges(edges))
        return {
            "method": method,
            "edges": edges.tolist(),
            "area": exact_number(hull.volume),
            "error": exact_number(hull.mean_squared_error(self.epsilon)),
            "outline": outline(hull),
        }

    def _candidates(self, state: int, picked: dict[int, list[str]]) -> list[dict[str, Any]]:
        query = self.world.query
        others = np.flatnonzero(self.possible)
        others = others[others != state]
        apart = (query.points[others] - query.points[state]).astype(np.float64)
        order = np.argsort((apart**2).sum(axis=1), kind="stable")[:SHOWN_CANDIDATES]
        shown = sorted({*others[order].tolist(), *picked})
        rows = []
        for partner in shown:
            edge = [[min(state, partner), max(state, partner)]]
            hull = sensitivity_hull(query, self.policy.with_edges(edge))
            away = (query.points[partner] - query.points[state]).astype(object)
            rows.append(
                {
                    "state": partner,
                    "distance": float(np.sqrt(float((away**2).sum()))) * float(query.step),
                    "area": exact_number(hull.volume),
                    "error": exact_number(hull.mean_squared_error(self.epsilon)),
                    "outline": outline(hull),
                    "picked_by": picked.get(partner, []),
                }
            )
        return rows


def read_situation(world: World, fields: Fields) -> Situation:
    """The situation that a request describes."""
    belief = read_belief(world, fields.inner("moment"))
    policy = read_policy(world, fields.inner("policy")).restricted_to(belief.possible)
    return Situation(world, policy, belief, read_epsilon(fields))


def read_epsilon(fields: Fields) -> Fraction:
    """The price of a release: between a thousandth and a thousand."""
    return fields.rational("epsilon", Fraction(1, 1000), Fraction(1000), default="1")


def read_belief(world: World, fields: Fields) -> Belief:
    """What is known: nothing, a set of states, or a start and a number of steps."""
    n_states = world.n_states
    if fields.has("states"):
        states = fields.states("states", n_states)
        if not states:
            raise ArgumentError("states must name at least one possible state, got none")
        probabilities = np.zeros(n_states)
        probabilities[states] = 1 / len(states)
        belief = Belief.from_probabilities(probabilities)
    elif fields.has("start"):
        belief = Belief.certain(fields.state("start", n_states), n_states)
    else:
        belief = Belief.uniform(n_states)
    for _ in range(fields.whole("steps", 0, MAX_STEPS, default=0)):
        belief = belief.predict(world.model)
    return belief


def read_policy(world: World, fields: Fields) -> PolicyGraph:
    """A base policy with the edges and cliques that were drawn, less those taken away."""
    n_states = world.n_states
    policy = _base(world, fields)
    cliques = fields.cliques("cliques", n_states)
    if cliques:
        policy = policy | PolicyGraph(n_states, cliques=cliques)
    links = fields.pairs("links", n_states)
    if links:
        policy = policy.with_edges(links)
    unlinked = fields.pairs("unlinks", n_states)
    if unlinked:
        if count_pairs(policy) > COUNTED_EDGES:
            raise ArgumentError(
                f"unlinks must be taken from a policy of at most {COUNTED_EDGES} edges"
            )
        policy = policy.without_edges(unlinked)
    return policy


def _base(world: World, fields: Fields) -> PolicyGraph:
    base = fields.choice("base", BASES, default="none")
    if base == "complete":
        return PolicyGraph.complete(world.n_states)
    if base == "categories":
        painted = fields.labels("categories", world.n_states)
        return PolicyGraph.by_category(world.categories if painted is None else painted)
    if base == "distance":
        radius = fields.rational("radius", Fraction(0), Fraction(10**9), default="0")
        return _within(world, radius)
    if base == "one_step":
        return PolicyGraph.one_step(world.model)
    return PolicyGraph(world.n_states)


def _within(world: World, radius: Fraction) -> PolicyGraph:
    # Beyond this the graph is complete, and a million pairs need not be listed to say so.
    if radius**2 >= sum(Fraction(int(s)) ** 2 for s in np.ptp(world.query.points, axis=0)) * (
        world.query.step**2
    ):
        return PolicyGraph.complete(world.n_states)
    return PolicyGraph.within_distance(world.query, radius)


def count_pairs(policy: PolicyGraph) -> int:
    """At most so many edges; a pair in two cliques counts twice."""
    sizes = np.diff(policy.offsets)
    return len(policy.links) + int((sizes * (sizes - 1) // 2).sum())


def drawn_edges(policy: PolicyGraph) -> dict[str, Any]:
    """How many edges there are, and the edges themselves if they are few."""
    bound = count_pairs(policy)
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


def drawn_hull(hull: SensitivityHull, epsilon: Fraction) -> dict[str, Any]:
    """The hull and the l1 ball around it, with their sizes and errors."""
    ball = hull.l1_ball() if hull.rank else hull
    return {
        "rank": hull.rank,
        "dimension": hull.dimension,
        "corners": len(hull.body.corners),
        "outline": outline(hull),
        "ball": outline(ball),
        "area": exact_number(hull.volume),
        "ball_area": exact_number(ball.volume),
        "error": exact_number(hull.mean_squared_error(epsilon)),
        "ball_error": exact_number(ball.mean_squared_error(epsilon)),
        "sensitivity": exact_number(hull.l1_sensitivity if hull.rank else Fraction(0)),
    }


def outline(hull: SensitivityHull) -> list[list[float]]:
    """The corners in the plane, in order around the origin; a shadow if there are more axes."""
    corners: ObjectArray = hull.vertices
    if not len(corners):
        return []
    if hull.dimension == 1:
        return [[float(x), 0.0] for x in sorted(corners[:, 0])]
    flat = np.asarray(corners[:, :2], dtype=np.float64)
    if hull.dimension > 2:
        flat = _shadow(flat)
    order = np.argsort(np.arctan2(flat[:, 1], flat[:, 0]), kind="stable")
    return [[float(x), float(y)] for x, y in flat[order]]


def _shadow(points: FloatArray) -> FloatArray:
    """The corners of the convex hull of points in the plane (for the eye only)."""
    hull = SensitivityHull.from_vertices(points.round(6).tolist(), step="0.000001")
    return hull.vertices


def exact_number(number: Fraction | float) -> dict[str, Any]:
    """A number as the page shows it: its exact form in a text, and a float to draw with."""
    if isinstance(number, float):
        return {"exact": "infinite" if isinf(number) else repr(number), "value": None}
    return {"exact": str(number), "value": float(number)}


def rounded(probabilities: FloatArray) -> list[float]:
    """Probabilities with five digits, which is what a colour can show."""
    return [float(f"{p:.5g}") for p in probabilities.tolist()]
