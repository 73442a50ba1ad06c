"""The drawings of a scenario: states, policy, hull, protection. All of them public."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.geometry.boundary import planar_hull
from dphmm.geometry.hull import SensitivityHull
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Protected
from dphmm.policy.protection import degree_of_protection
from dphmm.report.ground import Ground, fill
from dphmm.report.svg import Frame, drawing, tag
from dphmm.report.symbols import draw_symbol
from dphmm.scenario.building import category_of
from dphmm.scenario.scenario import Scenario

__all__ = ["Drawings", "count_links", "outline", "sample_links"]

Key: TypeAlias = list[tuple[str, str]]
"""The kind of a mark and what it means."""

LINKS_SHOWN = 300
CATEGORIES = 8
MARKED = 9.0
"""States that are drawn so wide have the symbol of their category."""
RAMP = 6
BASE = {
    "district": "district",
    "green": "park or forest",
    "water": "water",
    "stream": "river",
    "path": "small street or path",
    "street": "street",
}
"""What a legend calls the kinds of a base map."""


@dataclass(frozen=True, eq=False)
class Drawings:
    """The drawings of one scenario, on its ground."""

    ground: Ground

    @property
    def scenario(self) -> Scenario:
        """Whose drawings these are."""
        return self.ground.scenario

    @property
    def unit(self) -> str:
        """What a length is measured in, if it is known."""
        return self.ground.unit

    @property
    def places(self) -> FloatArray:
        """Where each state is drawn."""
        return self.ground.places

    @property
    def frame(self) -> Frame:
        """The map's frame."""
        return self.ground.frame

    @cached_property
    def shapes(self) -> list[str]:
        """The outline of each state on the map."""
        return self.ground.shapes(self.frame)

    @cached_property
    def categories(self) -> tuple[str, IntArray, tuple[str, ...]] | None:
        """The column that colours the map, the number of each state's value, and the values."""
        states = self.scenario.states
        column = self.scenario.settings.policy.category or next(iter(states.texts), None)
        if column is None:
            return None
        values = np.array([str(value) for value in category_of(states, column)])
        names, numbers, counts = np.unique(values, return_inverse=True, return_counts=True)
        # The most common first: it has the quietest colour.
        order = np.argsort(-counts, kind="stable")
        return column, np.argsort(order)[numbers].astype(np.int64), tuple(names[order].tolist())

    def map(self) -> str:
        """The states, coloured and marked by category, and the policy's links if they are few."""
        parts = [
            '<use href="#base"/>',
            self._cells(),
            self._links(),
            *self._labels(),
            self.frame.ruler(self.unit),
        ]
        return self._drawn(parts, "Map of the states")

    def map_caption(self) -> str:
        """What the map shows, and where its links are."""
        count, states = count_links(self.scenario.policy), len(self.scenario.states)
        if self._links_fit:
            return f"The {states:,} states, and the {count} pairs that must look alike."
        return (
            f"The {states:,} states. The {count} pairs that must look alike are too many to draw; "
            f"the next picture has those of one state."
        )

    @cached_property
    def _links_fit(self) -> bool:
        policy = self.scenario.policy
        inside = sum(len(clique) * (len(clique) - 1) // 2 for clique in policy.cliques)
        return len(policy.links) + inside <= LINKS_SHOWN

    def map_key(self) -> Key:
        """What the colours of the map mean."""
        entries = [("link", "linked by the policy")] if self._links_fit else []
        if self.categories is not None:
            _, _, names = self.categories
            alone = len(names) if len(names) <= CATEGORIES else CATEGORIES - 1
            entries += [(f"c{k}", name) for k, name in enumerate(names[:alone])]
            if alone < len(names):
                entries.append((f"c{alone}", f"other ({len(names) - alone})"))
        return entries

    def base_key(self) -> Key:
        """What the base map shows."""
        base = self.ground.base
        return [] if base is None else [(f"base-{kind}", BASE[kind]) for kind in base.kinds]

    def neighbourhood(self) -> tuple[str, int]:
        """One state and everything it must look like; and how many those are."""
        middle = np.median(self.places, axis=0)
        order = np.argsort(((self.places - middle) ** 2).sum(axis=1), kind="stable")
        linked = self.scenario.policy.connected
        state = int(next((s for s in order if linked[s]), order[0]))
        others = self.scenario.policy.neighbors(state)
        parts = [
            '<use href="#ground"/>',
            fill(self.shapes, others.tolist(), "near"),
            fill(self.shapes, [state], "self"),
            self.frame.ruler(self.unit),
        ]
        label = "One state and the states it must look like"
        return self._drawn(parts, label), len(others) - 1

    def hull(self, step: Protected) -> str:
        """The noise's body, the policy's hull and the l1 ball around it."""
        bodies = [(step.hull.l1_ball(), "ball"), (step.body, "body")]
        if step.body != step.hull:
            bodies.append((step.hull, "inner"))
        rings = [(outline(body), kind) for body, kind in bodies]
        everything = np.concatenate([ring for ring, _ in rings])
        reach = float(np.abs(everything).max()) or 1.0
        frame = Frame.around([[-reach, -reach], [reach, reach]], margin=26)
        axes = frame.segments(
            [[-1.05 * reach, 0], [0, -1.05 * reach]], [[1.05 * reach, 0], [0, 1.05 * reach]], "grid"
        )
        parts = [axes, *(frame.polygon(ring, kind) for ring, kind in rings)]
        parts.append(frame.dots(self._differences(), 1.8, "difference"))
        parts += [frame.dots([[0, 0]], 2.5, "origin"), frame.ruler(self.unit)]
        return drawing(parts, frame.height, "Sensitivity hull and l1 ball")

    def hull_key(self, step: Protected) -> Key:
        """What the shapes around the hull mean."""
        own = [] if step.body == step.hull else [("inner", "the policy's own hull")]
        return [
            ("body", "the noise's body"),
            ("ball", "l1 ball (Laplace noise)"),
            *own,
            ("difference", "differences of linked states"),
        ]

    def protection(self, step: Protected) -> str:
        """The map, coloured by how many states hide each."""
        degrees = self.degrees(step)
        bins = _bins(degrees)
        parts = [
            '<use href="#base"/>',
            fill(self.shapes, np.flatnonzero(degrees == 0).tolist(), "land"),
        ]
        for number in range(RAMP):
            chosen = (bins == number) & (degrees > 1)
            parts.append(fill(self.shapes, np.flatnonzero(chosen).tolist(), f"r{number}"))
        parts.append(fill(self.shapes, np.flatnonzero(degrees == 1).tolist(), "alone"))
        parts += [*self._labels(), self.frame.ruler(self.unit)]
        return self._drawn(parts, "Degree of protection of each state")

    def protection_key(self, step: Protected) -> Key:
        """What the colours of the protection map mean."""
        degrees = self.degrees(step)
        bins = _bins(degrees)
        entries = []
        if (degrees == 0).any():
            entries.append(("land", "not possible"))
        if (degrees == 1).any():
            entries.append(("alone", "exposed"))
        for number in range(RAMP):
            within = degrees[(bins == number) & (degrees > 1)]
            if len(within):
                low, high = int(within.min()), int(within.max())
                entries.append((f"r{number}", f"{low}" if low == high else f"{low} to {high}"))
        return entries

    def degrees(self, step: Protected) -> IntArray:
        """The degree of protection of every state under the noise that is used."""
        return degree_of_protection(self.scenario.query, step.policy, step.possible, step.body)

    def _drawn(self, parts: list[str], label: str) -> str:
        """A map of states."""
        return drawing(parts, self.frame.height, label)

    def _cells(self) -> str:
        if self.categories is None:
            return '<use href="#cells"/>'
        shown = np.minimum(self.categories[1], CATEGORIES - 1)
        groups = [(k, np.flatnonzero(shown == k)) for k in range(int(shown.max()) + 1)]
        cells = "".join(fill(self.shapes, states.tolist(), f"c{k}") for k, states in groups)
        size = self.ground.size(self.frame)
        if size < MARKED:
            return cells
        # A shape besides the colour, so that neither alone carries the meaning.
        centres = self.frame.place(self.places)
        return cells + "".join(
            tag("path", d="".join(draw_symbol(k, x, y, size / 7) for x, y in at), kind="symbol")
            for k, at in ((k, centres[states].tolist()) for k, states in groups)
        )

    def _links(self) -> str:
        if not self._links_fit:
            return ""
        links = sample_links(self.scenario.policy, LINKS_SHOWN)
        return self.frame.segments(self.places[links[:, 0]], self.places[links[:, 1]], "link")

    def _labels(self) -> list[str]:
        return self.ground.labels(self.frame)

    def _differences(self) -> FloatArray:
        links = sample_links(self.scenario.policy, 12 * LINKS_SHOWN)
        apart = self.scenario.query.values[links[:, 0]] - self.scenario.query.values[links[:, 1]]
        apart = (
            apart[:, :2] if apart.shape[1] > 1 else np.column_stack([apart, np.zeros(len(apart))])
        )
        return np.unique(np.concatenate([apart, -apart]).round(9), axis=0)[:600]


def sample_links(policy: PolicyGraph, most: int) -> IntArray:
    """At most so many edges, the same for everyone, without forming those of large cliques."""
    rng = np.random.default_rng(0)  # which edges are drawn matters to nobody
    rows = [policy.links]
    for clique in policy.cliques:
        if len(clique) ** 2 <= 4 * most:
            low, high = np.triu_indices(len(clique), k=1)
            rows.append(np.stack([clique[low], clique[high]], axis=1))
        else:
            pairs = rng.choice(clique, size=(most, 2))
            rows.append(pairs[pairs[:, 0] != pairs[:, 1]])
    links = np.concatenate(rows)
    if len(links) <= most:
        return links
    return links[np.sort(rng.choice(len(links), most, replace=False))]


def count_links(policy: PolicyGraph) -> str:
    """How many edges a policy has, in words; large cliques may share some."""
    inside = sum(len(clique) * (len(clique) - 1) // 2 for clique in policy.cliques)
    if inside > 1_000_000:
        return f"about {len(policy.links) + inside:,}"
    return f"{len(policy.edges):,}"


def outline(body: SensitivityHull) -> FloatArray:
    """The corners of a body in order, seen along its first two axes."""
    corners = body.lattice_vertices
    if not len(corners):
        return np.zeros((1, 2))
    if corners.shape[1] == 1:
        corners = np.column_stack([corners[:, 0], np.zeros_like(corners[:, 0])])
    ring = planar_hull(corners[:, :2])
    return np.asarray(ring, dtype=np.float64) * float(body.step)


def _bins(degrees: IntArray) -> IntArray:
    """A shade for each degree, by equal parts of the range above one."""
    above = degrees[degrees > 1]
    if not len(above):
        return np.zeros(len(degrees), dtype=np.int64)
    low, high = int(above.min()), int(above.max())
    if low == high:
        return np.full(len(degrees), RAMP // 2, dtype=np.int64)
    return np.clip((degrees - low) * RAMP // (high - low + 1), 0, RAMP - 1)
