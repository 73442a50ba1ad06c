"""Maps: states and their outlines, made around a place or read from a file; all of it public.

A place belongs to the state in whose outline it lies, or else to the nearest state, and is then
outside the map. States without outlines are points; outside is what lies farther from them than
they lie from each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.errors import ArgumentError, DataError, require
from dphmm.tables.columns import match_columns
from dphmm.tables.files import read_text
from dphmm.tables.geo import Grid, LocalPlane
from dphmm.tables.geojson import collection, feature, read_features
from dphmm.tables.outlines import Outline, closed_ring, outline_of, point_of
from dphmm.tables.states import States

__all__ = ["MOST_STATES", "Map"]

MOST_STATES = 100_000
_NAMES = ("label", "state", "name", "id")
_ROAD = ("from", "to")
_NODE_DIGITS = 6
"""Ends of roads that agree so far, to 10 cm, are one crossing."""


@dataclass(frozen=True, eq=False)
class Map:
    """States, where they have one their outlines, and the roads between them if that is known.

    Args:
        states: The states; their places are the middles of their outlines.
        outlines: One for each state, or none at all.
        roads: Pairs of labels that a road joins.
    """

    states: States
    outlines: tuple[Outline, ...] = field(default=(), repr=False)
    roads: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def squares(
        cls, latitude: float, longitude: float, *, kilometres: float = 10, cell: float = 0.5
    ) -> Map:
        """Square cells of a square around a place, both sides in kilometres.

        >>> Map.squares(48.137, 11.575, kilometres=2, cell=0.5)
        Map(states=States(16 states, columns latitude, longitude))
        """
        _check_size(kilometres, cell)
        side = round(kilometres / cell)
        if side < 2:
            raise ArgumentError(
                f"cell must be at most about half of {kilometres:g} km, or all is one place, "
                f"got {cell:g} km"
            )
        _check_count(side**2, "kilometres and cell")
        plane, grid = LocalPlane(latitude, longitude), Grid.rectangle(side, side, cell)
        labels = tuple(f"{row}-{column}" for row, column in grid.row_col.tolist())
        half = cell * 500
        turn = np.array(
            [[-half, -half], [half, -half], [half, half], [-half, half], [-half, -half]]
        )
        corners = grid.centers[:, None] + turn
        north, east = plane.to_degrees(corners[..., 0], corners[..., 1])
        rings = np.stack([east, north], axis=-1)
        places = plane.to_degrees(grid.centers[:, 0], grid.centers[:, 1])
        return cls(
            _on_earth(labels, *places), tuple(Outline([[closed_ring(ring)]]) for ring in rings)
        )

    @classmethod
    def hexagons(
        cls, latitude: float, longitude: float, *, kilometres: float = 10, resolution: int = 8
    ) -> Map:
        """The H3 cells of a resolution (0 to 15) whose middles lie in a square around a place."""
        h3: Any = require("h3", "h3")
        if isinstance(resolution, bool) or resolution not in range(16):
            raise ArgumentError(f"resolution must be a whole number in 0..15, got {resolution!r}")
        _check_size(kilometres, 1)
        size = h3.average_hexagon_area(resolution, unit="km^2")
        _check_count(round(kilometres**2 / size), "kilometres and resolution")
        half = kilometres * 500
        x, y = half * np.array([-1, 1, 1, -1]), half * np.array([-1, -1, 1, 1])
        corners = LocalPlane(latitude, longitude).to_degrees(x, y)
        square = h3.LatLngPoly(list(zip(*(axis.tolist() for axis in corners), strict=True)))
        cells = sorted(h3.h3shape_to_cells(square, resolution))
        if not cells:
            raise ArgumentError(
                "resolution must have cells of the size of the map, got larger ones"
            )
        places = np.array([h3.cell_to_latlng(cell) for cell in cells])
        rings = [np.array(h3.cell_to_boundary(cell))[:, ::-1] for cell in cells]
        outlines = tuple(
            Outline([[closed_ring(np.concatenate([ring, ring[:1]]))]]) for ring in rings
        )
        return cls(_on_earth(tuple(cells), places[:, 0], places[:, 1]), outlines)

    @classmethod
    def of_places(cls, path: str | Path) -> Map:
        """The states of a CSV table, or the points or polygons of a GeoJSON file.

        A feature's label is its property `label`, `state`, `name` or `id`, or else its number;
        other properties that all features have are columns of the states. A table may call
        latitudes and longitudes as tracks may, and names its states by the first column of texts
        that are all different where it has no column for that.
        """
        if Path(path).suffix.lower() not in (".geojson", ".json"):
            return cls(_with_places(States.read(path), read_text(path).partition("\n")[0]))
        name, features = Path(path).name, read_features(path)
        wheres = [f"{name}: feature {number}" for number in range(1, len(features) + 1)]
        outlines = [outline_of(w, one) for w, one in zip(wheres, features, strict=True)]
        shaped = [outline for outline in outlines if outline is not None]
        if shaped and len(shaped) < len(features):
            raise DataError(f"{name}: features must be all points or all polygons, got both")
        if shaped:
            places = np.array([outline.middle for outline in shaped])
        else:
            places = np.array([point_of(w, one) for w, one in zip(wheres, features, strict=True)])
        states = _on_earth(_labels(name, features), places[:, 1], places[:, 0])
        columns = _columns(features)
        numbers = {n: np.array(c, float) for n, c in columns.items() if _all_numbers(c)}
        texts = {n: tuple(map(str, c)) for n, c in columns.items() if n not in numbers}
        states = States(states.labels, {**numbers, **states.numbers}, texts, name)
        return cls(states, tuple(shaped))

    @classmethod
    def of_roads(cls, path: str | Path, nodes: str | Path | None = None) -> Map:
        """The crossings of a road network given as edges.

        The edges are the lines of a GeoJSON file, whose ends are the crossings; or, where `nodes`
        is a table of states, a CSV file of two labels a row.
        """
        name = Path(path).name
        if nodes is not None:
            states = States.read(nodes)
            return cls(states, (), states.read_edges(path))
        lines = [line for one in read_features(path) for line in _lines(one)]
        if not lines:
            raise DataError(f"{name}: features must be lines, got none")
        try:
            ends = np.array([[line[0][:2], line[-1][:2]] for line in lines], dtype=np.float64)
        except (ValueError, TypeError, IndexError, KeyError):
            raise DataError(f"{name}: coordinates must be pairs of numbers, got others") from None
        places, number = np.unique(
            ends.reshape(-1, 2).round(_NODE_DIGITS), axis=0, return_inverse=True
        )
        labels = tuple(f"n{n}" for n in range(len(places)))
        pairs = sorted({(min(p), max(p)) for p in number.reshape(-1, 2).tolist() if p[0] != p[1]})
        states = _on_earth(labels, places[:, 1], places[:, 0])
        return cls(states, (), tuple((labels[a], labels[b]) for a, b in pairs))

    @classmethod
    def read(cls, path: str | Path) -> Map:
        """The map of a table of states, with the outlines and roads of the GeoJSON beside it."""
        states, beside = States.read(path), Path(path).with_suffix(".geojson")
        if not beside.exists():
            return cls(states)
        outlines, roads = {}, []
        for number, one in enumerate(read_features(beside), 1):
            facts = one.get("properties") or {}
            if all(end in facts for end in _ROAD):
                roads.append((str(facts["from"]), str(facts["to"])))
            elif outline := outline_of(f"{beside.name}: feature {number}", one):
                outlines[str(facts.get("label"))] = outline
        if outlines and not all(label in outlines for label in states.labels):
            raise DataError(f"{beside.name}: features must have all labels of {Path(path).name}")
        known = set(states.labels)
        return cls(
            states,
            tuple(outlines[label] for label in states.labels) if outlines else (),
            tuple(road for road in roads if known.issuperset(road)),
        )

    def to_geojson(self) -> str:
        """The states as polygons or points with their columns, and the roads as lines."""
        states = self.states
        if states.plane is None:
            raise ArgumentError("states must have latitude and longitude for GeoJSON")
        places = np.stack([states.numbers["longitude"], states.numbers["latitude"]], axis=-1)
        number_of = {label: number for number, label in enumerate(states.labels)}
        features = []
        for number, label in enumerate(states.labels):
            facts: dict[str, Any] = {"label": label}
            facts |= {name: float(column[number]) for name, column in states.numbers.items()}
            facts |= {name: column[number] for name, column in states.texts.items()}
            if self.outlines:
                features.append(self.outlines[number].feature(facts))
            else:
                features.append(feature("Point", places[number], facts))
        for ends in self.roads:
            line = places[[number_of[end] for end in ends]]
            features.append(feature("LineString", line, dict(zip(_ROAD, ends, strict=True))))
        return collection(features)

    @cached_property
    def reach(self) -> float:
        """How far from a state a place may be that is not outside, if states are points."""
        points = self.states.values(self.states.place_columns)
        if self.roads:
            ends = np.array([[self.states.state_of(end) for end in road] for road in self.roads])
            return float(np.hypot(*(points[ends[:, 0]] - points[ends[:, 1]]).T).max())
        apart = np.unique(points, axis=0)
        if len(apart) < 2:
            return np.inf
        return float(np.asarray(KDTree(apart).query(apart, k=2)[0])[:, 1].max())

    def locate(self, places: ArrayLike) -> tuple[IntArray, Mask, FloatArray]:
        """The state of each place, whether it lies outside, and how far from the state it is.

        Args:
            places: A row a place, in the order of the states' place columns.
        """
        points = np.asarray(places, dtype=np.float64).reshape(-1, 2)
        states = self.states.nearest(points)
        columns = self.states.place_columns
        between = self.states.in_metres(columns, points) - self.states.values(columns)[states]
        distance = np.hypot(*between.T)
        if not self.outlines:
            return states, distance > self.reach, distance
        outside = np.ones(len(points), dtype=bool)
        for state, rows in _groups(states):
            outside[rows] = ~self.outlines[state].contains(points[rows])
        rows = np.flatnonzero(outside)
        rows = rows[np.argsort(points[rows, 0])]
        for state, outline in enumerate(self.outlines):
            begin, end = np.searchsorted(points[rows, 0], outline.latitudes, "left")
            some = rows[begin : end + 1]
            some = some[outside[some]]
            found = some[outline.contains(points[some])]
            states[found], outside[found] = state, False
        return states, outside, distance


def _groups(states: IntArray) -> Iterable[tuple[int, IntArray]]:
    """The rows of each state that has some."""
    order = np.argsort(states, kind="stable")
    present, first = np.unique(states[order], return_index=True)
    return zip(present.tolist(), np.split(order, first[1:]), strict=True)


def _check_size(kilometres: float, cell: float) -> None:
    for name, length in (("kilometres", kilometres), ("cell", cell)):
        if not 0.001 <= length <= 10_000:
            raise ArgumentError(f"{name} must be a length in 1 m..10000 km, got {length:g} km")


def _check_count(count: int, what: str) -> None:
    if count > MOST_STATES:
        raise ArgumentError(f"{what} must make at most {MOST_STATES} states, got {count}")


def _with_places(states: States, header: str) -> States:
    """The states of a table whose columns have usual names; `header` is its first line."""
    usual = match_columns(states.source, states.numbers, ("latitude", "longitude"), None)
    ours = {theirs: name for name, theirs in usual.items()}
    numbers = {ours.get(name, name): column for name, column in states.numbers.items()}
    texts, labels = dict(states.texts), states.labels
    named = {cell.strip(' "') for cell in re.split(r"[,;\t]", header.strip())}
    unlike = [name for name, column in texts.items() if len({*column, ""}) == 1 + len(column)]
    if unlike and not named & set(_NAMES):
        labels = texts.pop(unlike[0])
    found = States(labels, numbers, texts, states.source)
    if not found.place_columns:
        raise DataError(
            f"{states.source}: columns must be latitude and longitude, or x and y, to say where "
            f"places are, got {', '.join((*states.numbers, *states.texts)) or 'labels alone'}"
        )
    return found


def _on_earth(labels: tuple[str, ...], latitude: FloatArray, longitude: FloatArray) -> States:
    return States(labels, {"latitude": latitude.round(7), "longitude": longitude.round(7)})


def _lines(one: Mapping[str, Any]) -> list[Any]:
    geometry = one.get("geometry") or {}
    if geometry.get("type") == "LineString":
        return [geometry.get("coordinates")]
    return geometry.get("coordinates") or [] if geometry.get("type") == "MultiLineString" else []


def _labels(name: str, features: list[dict[str, Any]]) -> tuple[str, ...]:
    labels: dict[str, None] = {}
    for number, one in enumerate(features, 1):
        facts = one.get("properties") or {}
        given = [facts.get(key) for key in _NAMES] + [one.get("id")]
        label = str(next((value for value in given if value is not None), number - 1))
        if label in labels:
            raise DataError(f"{name}: feature {number} must have a new name, got {label!r}")
        labels[label] = None
    return tuple(labels)


def _columns(features: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The plain properties that every feature has, names apart."""
    every = [one.get("properties") or {} for one in features]
    shared = [key for key in every[0] if all(key in facts for facts in every)]
    return {
        key: [facts[key] for facts in every]
        for key in shared
        if key not in (*_NAMES, "latitude", "longitude")
        and all(isinstance(facts[key], (str, int, float)) for facts in every)
    }


def _all_numbers(column: list[Any]) -> bool:
    return all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)
        for value in column
    )
