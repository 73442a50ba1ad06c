"""What lies under everything on a map: the shapes of states, their places and the frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from dphmm._types import FloatArray
from dphmm.errors import DataError
from dphmm.report.svg import Frame, tag
from dphmm.scenario.scenario import Scenario
from dphmm.tables.basemap import BaseMap, read_base
from dphmm.tables.geo import cell_of
from dphmm.tables.maps import Map
from dphmm.tables.outlines import Outline

__all__ = ["LABELLED", "Ground", "fill", "read_outlines"]

LABELLED = 40
"""Up to so many states have their labels written beside them."""

FEW_STATES = 30
"""So few states are better seen as points with names than as a handful of cells."""

CHARACTER = 8.6
"""How wide a character of a label is, at most on average."""

MARGIN = 0.05
"""The part of a map that is drawn around it."""

GAP = 0.94
"""The part of its cell that a square fills."""


def read_outlines(scenario: Scenario, folder: Path) -> tuple[Outline, ...]:
    """The outlines of the GeoJSON beside the table of states; none without such a file."""
    if scenario.states.plane is not None:
        with suppress(DataError):  # no key names that file, so it may be about anything
            return Map.read(folder / scenario.settings.states).outlines
    return ()


@dataclass(frozen=True, eq=False)
class Ground:
    """The map of a scenario: outlines if it has them, else cells of a grid, else points."""

    scenario: Scenario
    unit: str = ""
    outlines: tuple[Outline, ...] = ()
    base_file: Path | None = None
    """The base map that is drawn under the states, if there is one."""

    @classmethod
    def read(cls, scenario: Scenario, folder: str | Path) -> Ground:
        """The ground of a scenario whose files are in a folder.

        Outlines are those of the GeoJSON beside the table of states, if it has them.
        """
        settings, outlines = scenario.settings, read_outlines(scenario, Path(folder))
        base = None if settings.base is None else Path(folder) / settings.base
        found = cls(scenario, outlines=outlines, base_file=base)
        _ = found.base  # a file that cannot be read is an error here
        return found

    @cached_property
    def base(self) -> BaseMap | None:
        """The base map within the frame."""
        if self.base_file is None:
            return None
        return read_base(self.base_file, self.scenario.states, *self.frame.bounds)

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
    def cell(self) -> float | None:
        """The side of a cell, if states are those of a grid."""
        return cell_of(self.places) if len(self.places) >= FEW_STATES else None

    @cached_property
    def radius(self) -> float:
        """Of a state that is drawn as a point: what leaves room to the nearest other one."""
        different = np.unique(self.places, axis=0)
        if len(different) < 2:
            return 0.5
        distances, _ = KDTree(different).query(different, k=2)
        apart = float(np.median(np.asarray(distances)[:, 1]))
        return min(0.42 * apart, 0.03 * float(np.ptp(different, axis=0).max()))

    @cached_property
    def rings(self) -> list[list[FloatArray]]:
        """The rings of each state's outline, on the plane."""
        rings = [[ring for part in one.parts for ring in part] for one in self.outlines]
        flat = [ring for own in rings for ring in own]
        columns = self.scenario.states.place_columns
        corners = np.concatenate(flat)[:, ::-1]  # places have their latitude first
        moved = self.scenario.states.in_metres(columns, corners)
        ends = np.cumsum([len(ring) for ring in flat])[:-1]
        pieces = iter(np.split(moved, ends))
        return [[next(pieces) for _ in own] for own in rings]

    @cached_property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest corner of everything that is drawn of the states."""
        if self.outlines:
            everything = np.concatenate([ring for rings in self.rings for ring in rings])
            return everything.min(axis=0), everything.max(axis=0)
        edge = self.cell / 2 if self.cell is not None else self.radius
        return self.places.min(axis=0) - edge, self.places.max(axis=0) + edge

    @cached_property
    def frame(self) -> Frame:
        """The frame of all maps: the states, and some room for answers outside and for names."""
        low, high = self.box
        room = MARGIN * float((high - low).max())
        margin = 16 if len(self.places) > LABELLED else 40
        return Frame.around([low - room, high + room], margin=margin)

    def draw_base(self) -> str:
        """The base map as paths; nothing without one."""
        if self.base is None:
            return ""
        parts = []
        for kind in self.base.kinds:
            rings, lines = self.base.areas.get(kind, ()), self.base.lines.get(kind, ())
            moves = "".join(f"M{_corners(self.frame.place(ring))}z" for ring in rings)
            moves += "".join(f"M{_corners(self.frame.place(line))}" for line in lines)
            parts.append(tag("path", d=moves, kind=f"base-{kind}"))
        return "".join(parts)

    def shapes(self, frame: Frame) -> list[str]:
        """The outline of each state in a frame, as the data of a path."""
        if self.outlines:
            return [
                "".join(f"M{_corners(frame.place(ring[:-1]))}z" for ring in rings)
                for rings in self.rings
            ]
        if self.cell is not None:
            size = GAP * self.cell * frame.scale
            corners = (frame.place(self.places) - size / 2).tolist()
            return [f"M{x:.1f} {y:.1f}h{size:.1f}v{size:.1f}h-{size:.1f}z" for x, y in corners]
        r = max(self.radius * frame.scale, 3.0)
        return [
            f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 "
            f"-{2 * r:.1f} 0z"
            for x, y in frame.place(self.places).tolist()
        ]

    def size(self, frame: Frame) -> float:
        """About how many units of a drawing a state is wide."""
        if self.cell is not None:
            return self.cell * frame.scale
        if self.outlines:
            low, high = self.box
            area = float(np.prod(high - low)) / len(self.outlines)
            return float(np.sqrt(area)) * frame.scale
        return max(2 * self.radius * frame.scale, 6.0)

    def labels(self, frame: Frame, names: Sequence[str] | None = None) -> list[str]:
        """The names of a few states, each where it collides with no other; else it is left out."""
        if len(self.places) > LABELLED:
            return []
        half = self.size(frame) / 2
        marks = frame.place(self.places).tolist()
        taken = [(x - half, y - half, x + half, y + half) for x, y in marks]
        found = []
        for name, (x, y) in zip(names or self.scenario.labels, marks, strict=True):
            width = CHARACTER * len(name)
            for left, base in (
                (x - width / 2, y - half - 4),
                (x - width / 2, y + half + 15),
                (x + half + 4, y + 4),
                (x - half - 4 - width, y + 4),
            ):
                box = (left, base - 13, left + width, base + 4)
                inside = left >= 0 and left + width <= frame.width and 12 <= base <= frame.height
                if inside and not any(_overlap(box, other) for other in taken):
                    taken.append(box)
                    found.append(tag("text", name, x=left, y=base, kind="small halo label"))
                    break
        return found


def fill(shapes: Sequence[str], states: Iterable[int], kind: str) -> str:
    """The shapes of some states as one path; nothing for none."""
    moves = "".join(shapes[state] for state in states)
    return tag("path", d=moves, kind=kind) if moves else ""


def _corners(points: FloatArray) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points.tolist())


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
