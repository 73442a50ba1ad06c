"""The drawings of a scenario: cells, policy, hull, protection, tracks. All of them public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.spatial import KDTree

from dphmm._types import FloatArray, IntArray
from dphmm.geometry.boundary import planar_hull
from dphmm.geometry.hull import SensitivityHull
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Protected
from dphmm.policy.protection import degree_of_protection
from dphmm.report.svg import Curve, Frame, curves, drawing, tag
from dphmm.scenario.scenario import Scenario

__all__ = ["Drawings", "Layer", "count_links", "outline", "sample_links"]

Key: TypeAlias = list[tuple[str, str]]
"""The kind of a mark and what it means."""

LINKS_SHOWN = 300
LABELLED = 40
"""Up to so many states have their labels written beside them."""
CATEGORIES = 8
RAMP = 6


@dataclass(frozen=True)
class Layer:
    """One person's positions on the map: a line or dots, and what it is called."""

    name: str
    kind: str
    points: FloatArray
    dotted: bool = False


@dataclass(frozen=True, eq=False)
class Drawings:
    """The drawings of one scenario; `unit` is what a length is measured in, if it is known."""

    scenario: Scenario
    unit: str = ""

    @cached_property
    def places(self) -> FloatArray:
        """Where each state is drawn: at its place, or at its answers."""
        columns = self.scenario.states.place_columns
        values = self.scenario.states.values(columns) if columns else self.scenario.query.values
        if values.shape[1] == 1:
            return np.column_stack([values[:, 0], np.zeros(len(values))])
        return np.asarray(values[:, :2], dtype=np.float64)

    @property
    def answers_are_places(self) -> bool:
        """Whether an answer can be drawn on the map."""
        columns = self.scenario.states.place_columns
        return self.scenario.query.dimension == 2 and columns in ((), self.scenario.columns)

    @cached_property
    def side(self) -> float:
        """The side of a cell: the usual distance to the nearest other state."""
        different = np.unique(self.places, axis=0)
        if len(different) < 2:
            return 1.0
        distances, _ = KDTree(different).query(different, k=2)
        apart = float(np.median(np.asarray(distances)[:, 1]))
        # A handful of scattered places are marks, not tiles.
        return min(apart, 0.08 * float(np.ptp(different, axis=0).max()))

    @cached_property
    def frame(self) -> Frame:
        """The map's frame."""
        margin = self.side / 2
        low, high = self.places.min(axis=0) - margin, self.places.max(axis=0) + margin
        return Frame.around([low, high], margin=16 if len(self.places) > LABELLED else 34)

    @cached_property
    def categories(self) -> tuple[str, IntArray, tuple[str, ...]] | None:
        """The column that colours the map, the number of each state's value, and the values."""
        texts = self.scenario.states.texts
        chosen = self.scenario.settings.policy.category
        column = chosen if chosen in texts else next(iter(texts), None)
        if column is None:
            return None
        names, numbers, counts = np.unique(
            np.array(texts[column]), return_inverse=True, return_counts=True
        )
        # The most common first: it has the quietest colour.
        order = np.argsort(-counts, kind="stable")
        return column, np.argsort(order)[numbers].astype(np.int64), tuple(names[order].tolist())

    def map(self) -> str:
        """The cells, coloured by category, and a thinned view of the policy."""
        parts = [self._cells(), self._links(), *self._labels(), self.frame.ruler(self.unit)]
        return drawing(parts, self.frame.height, "Map of the states and the policy's links")

    def map_caption(self) -> str:
        """What the map shows, and whether it shows every link."""
        count = count_links(self.scenario.policy)
        links = len(sample_links(self.scenario.policy, LINKS_SHOWN + 1))
        part = "the" if links <= LINKS_SHOWN else "some of the"
        return f"The states, and {part} {count} pairs that must look alike."

    def map_key(self) -> Key:
        """What the colours of the map mean."""
        entries = [("link", "linked by the policy")]
        if self.categories is not None:
            _, _, names = self.categories
            alone = len(names) if len(names) <= CATEGORIES else CATEGORIES - 1
            entries += [(f"c{k}", name) for k, name in enumerate(names[:alone])]
            if alone < len(names):
                entries.append((f"c{alone}", f"other ({len(names) - alone})"))
        return entries

    def neighbourhood(self) -> tuple[str, int]:
        """One state and everything it must look like; and how many those are."""
        middle = np.median(self.places, axis=0)
        order = np.argsort(((self.places - middle) ** 2).sum(axis=1), kind="stable")
        linked = self.scenario.policy.connected
        state = int(next((s for s in order if linked[s]), order[0]))
        others = self.scenario.policy.neighbors(state)
        parts = [
            self.frame.squares(self.places, 0.94 * self.side, "land"),
            self.frame.squares(self.places[others], 0.94 * self.side, "near"),
            self.frame.squares(self.places[[state]], 0.94 * self.side, "self"),
            self.frame.ruler(self.unit),
        ]
        label = "One state and the states it must look like"
        return drawing(parts, self.frame.height, label), len(others) - 1

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
        parts = [self.frame.squares(self.places[degrees == 0], 0.94 * self.side, "land")]
        for number in range(RAMP):
            chosen = (bins == number) & (degrees > 1)
            parts.append(self.frame.squares(self.places[chosen], 0.94 * self.side, f"r{number}"))
        parts.append(self.frame.squares(self.places[degrees == 1], 0.94 * self.side, "alone"))
        parts += [*self._labels(), self.frame.ruler(self.unit)]
        return drawing(parts, self.frame.height, "Degree of protection of each state")

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

    def tracks(self, layers: Sequence[Layer], times: Sequence[str], *, plain: bool = False) -> str:
        """Somebody's positions: on the map, or over time if answers are not places.

        A plain map is its outline, which is a hundredth of the size of its cells.
        """
        if not self.answers_are_places:
            return self.coordinates(layers, times)
        margin = 0.12 * np.ptp(self.places, axis=0).max()
        shown = np.concatenate([layer.points for layer in layers])
        least, most = np.nanquantile(shown, [0.05, 0.95], axis=0)
        low = np.minimum(self.places.min(axis=0) - margin, least)
        high = np.maximum(self.places.max(axis=0) + margin, most)
        frame = Frame.around([low, high])
        parts = [frame.squares(self.places, 0.94 * self.side, "land")]
        if plain:
            edge, corner = self.side / 2, self.places.max(axis=0) + self.side / 2
            (x, y), (right, top) = self.places.min(axis=0) - edge, corner
            parts = [frame.polygon([[x, y], [right, y], [right, top], [x, top]], "land")]
        for layer in layers:
            # An answer may lie far outside; it is drawn at the edge.
            points = np.clip(layer.points[~np.isnan(layer.points).any(axis=1)], low, high)
            if layer.dotted:
                parts.append(frame.dots(points, 2.4, f"dot {layer.kind}"))
            else:
                parts.append(frame.track(points, f"curve {layer.kind}"))
        parts.append(frame.ruler(self.unit))
        return drawing(parts, frame.height, "Released and estimated positions")

    def coordinates(self, layers: Sequence[Layer], times: Sequence[str]) -> str:
        """Somebody's answers over time, a chart for each column."""
        return "".join(
            curves(
                [Curve(layer.name, layer.kind, layer.points[:, k].tolist()) for layer in layers],
                times,
                column,
                self.unit,
                height=160.0,
                from_zero=False,
            )
            for k, column in enumerate(self.scenario.columns)
        )

    def _cells(self) -> str:
        if self.categories is None:
            return self.frame.squares(self.places, 0.94 * self.side, "land")
        shown = np.minimum(self.categories[1], CATEGORIES - 1)
        return "".join(
            self.frame.squares(self.places[shown == k], 0.94 * self.side, f"c{k}")
            for k in range(int(shown.max()) + 1)
        )

    def _links(self) -> str:
        links = sample_links(self.scenario.policy, LINKS_SHOWN)
        return self.frame.segments(self.places[links[:, 0]], self.places[links[:, 1]], "link")

    def _labels(self) -> list[str]:
        if len(self.places) > LABELLED:
            return []
        half = self.side * self.frame.scale / 2
        return [
            tag("text", label, x=float(x), y=float(y - half - 4), kind="small middle halo")
            for label, (x, y) in zip(
                self.scenario.labels, self.frame.place(self.places), strict=True
            )
        ]

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
