"""Water, streets and districts under a map: read offline, cut to a frame, made light enough.

A base map helps people to find their way; it is no part of any law, and no answer depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import DataError
from dphmm.tables.geojson import in_one_piece, read_features
from dphmm.tables.states import States
from dphmm.tables.tiles import read_tiles

__all__ = ["AREAS", "LINES", "BaseMap", "kind_of", "read_base"]

AREAS = ("district", "green", "water")
"""The kinds of areas, in the order in which they are drawn."""

LINES = ("stream", "path", "street")
"""The kinds of lines, in the same order."""

MOST_BYTES = 64_000_000
"""Of a file: some 300,000 streets."""

MOST_POINTS = 40_000
"""Of a base map when it is cut to its frame: about half a megabyte on a page."""

ACROSS = 1200
"""Points of a frame that can be told apart, along its longer side."""

_WATER = {"water", "river", "lake", "sea", "ocean", "bay", "riverbank", "basin", "reservoir"}
_GREEN = {
    *("park", "forest", "wood", "grass", "garden", "meadow", "green", "cemetery", "scrub"),
    *("recreation_ground", "village_green", "nature_reserve", "golf_course", "farmland"),
}
_PATHS = {"path", "footway", "cycleway", "steps", "track", "service", "pedestrian", "minor_road"}
_TOLD = ("kind", "class", "type", "category", "natural", "landuse", "leisure", "layer", "fclass")


@dataclass(frozen=True, eq=False)
class BaseMap:
    """Areas and lines on the plane of a scenario's places, within a box.

    Args:
        areas: For each kind the rings of all areas; holes are rings as well.
        lines: For each kind its lines.
    """

    areas: Mapping[str, Sequence[FloatArray]] = field(repr=False)
    lines: Mapping[str, Sequence[FloatArray]] = field(repr=False)

    @property
    def kinds(self) -> list[str]:
        """The kinds that there are, in the order of drawing."""
        return [kind for kind in (*AREAS, *LINES) if self.areas.get(kind) or self.lines.get(kind)]

    @property
    def points(self) -> int:
        """How many points it has."""
        return sum(
            len(one) for some in (self.areas, self.lines) for own in some.values() for one in own
        )

    def plain(self) -> dict[str, dict[str, list[list[float]]]]:
        """The same for JSON: x and y in turn."""
        return {
            name: {
                kind: [one.round(2).ravel().tolist() for one in own] for kind, own in some.items()
            }
            for name, some in (("areas", self.areas), ("lines", self.lines))
        }


def read_base(path: str | Path, states: States, low: FloatArray, high: FloatArray) -> BaseMap:
    """The base map of a GeoJSON or PMTiles file, cut to a box and simplified to what can be seen.

    Coordinates are longitudes and latitudes where states have such, else those of the states.

    Args:
        path: The file.
        states: Whose plane it is drawn on.
        low: The lowest x and y that are drawn.
        high: The highest.
    """
    name = Path(path).name
    try:
        size = Path(path).stat().st_size
    except OSError as fault:
        raise DataError(f"{name}: base map must be readable, got: {fault.strerror}") from None
    if Path(path).suffix.lower() == ".pmtiles":
        found = list(_tile_shapes(Path(path), states, low, high))
        return _fit(found, name, low, high)
    if size > MOST_BYTES:
        raise DataError(
            f"{name}: base map must be at most {MOST_BYTES // 10**6} MB, got {size // 10**6} MB; "
            f"cut it to the map first"
        )
    found = [
        (kind, closed, points)
        for one in read_features(path)
        for kind, closed, points in _shapes(one, states, name)
    ]
    return _fit(found, name, low, high)


def _fit(
    found: Sequence[tuple[str, bool, FloatArray]], name: str, low: FloatArray, high: FloatArray
) -> BaseMap:
    """A base map that is no finer than one can see, and coarser if it would be too large."""
    step = float((high - low).max()) / ACROSS
    for coarser in (1, 2, 4):
        base = _cut(found, low, high, coarser * step)
        if not base.points:
            raise DataError(
                f"{name}: base map must have lines or areas where the states are, got none there; "
                f"longitudes come first"
            )
        if base.points <= MOST_POINTS:
            return base
    raise DataError(
        f"{name}: base map must have at most {MOST_POINTS:,} points within the map, got "
        f"{base.points:,}; leave out small streets"
    )


def kind_of(properties: Mapping[str, Any], *, closed: bool) -> str:
    """What a feature is, by the names that OpenStreetMap and others give it.

    >>> kind_of({"natural": "water"}, closed=True), kind_of({"highway": "footway"}, closed=False)
    ('water', 'path')
    >>> kind_of({}, closed=True), kind_of({}, closed=False)
    ('district', 'street')
    """
    told = {str(properties.get(key) or "").lower() for key in _TOLD}
    street = str(properties.get("highway") or "").lower()
    if closed:
        if told & _WATER or properties.get("water") or properties.get("waterway"):
            return "water"
        return "green" if told & _GREEN else "district"
    if properties.get("waterway") or told & (_WATER | {"stream", "canal", "waterway"}):
        return "stream"
    return "path" if street in _PATHS or told & _PATHS else "street"


def _shapes(
    feature: Mapping[str, Any], states: States, name: str
) -> Iterable[tuple[str, bool, FloatArray]]:
    """The rings and lines of a feature on the plane; points are none."""
    geometry, facts = feature.get("geometry") or {}, feature.get("properties") or {}
    if not (isinstance(geometry, Mapping) and isinstance(facts, Mapping)):
        raise DataError(f"{name}: base map must have geometries and properties, got something else")
    kind: Any = geometry.get("type")
    places: Any = geometry.get("coordinates")
    closed = kind in ("Polygon", "MultiPolygon")
    if kind not in ("Polygon", "MultiPolygon", "LineString", "MultiLineString"):
        return
    try:
        rows = [places] if kind == "LineString" else places
        rows = [ring for part in places for ring in part] if kind == "MultiPolygon" else rows
        for row in rows:
            points = np.array([place[:2] for place in row], dtype=np.float64)
            if points.ndim != 2 or len(points) < 2 or not np.isfinite(points).all():
                raise ValueError
            yield kind_of(facts, closed=closed), closed, _on_plane(points, states)
    except (ValueError, TypeError, IndexError, KeyError):
        raise DataError(f"{name}: base map must have lists of places, got something else") from None


def _tile_shapes(
    path: Path, states: States, low: FloatArray, high: FloatArray
) -> Iterable[tuple[str, bool, FloatArray]]:
    """Water, parks and lines of the tiles of a box; other areas would show where tiles end."""
    if states.plane is None:
        raise DataError(
            f"{path.name}: base map must be GeoJSON where states have no latitude and longitude"
        )
    edges = np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])
    corners = states.in_degrees(states.place_columns, edges)
    south, west = corners.min(axis=0)
    north, east = corners.max(axis=0)
    for shape, parts in read_tiles(path, south, west, north, east):
        kind = kind_of({**shape.properties, "layer": shape.layer}, closed=shape.closed)
        if kind != "district":
            for part in parts:
                yield kind, shape.closed, _on_plane(part, states)


def _on_plane(points: FloatArray, states: States) -> FloatArray:
    if states.plane is None:
        return points
    return states.in_metres(states.place_columns, in_one_piece(points)[:, ::-1])


def _cut(
    found: Sequence[tuple[str, bool, FloatArray]], low: FloatArray, high: FloatArray, step: float
) -> BaseMap:
    areas: dict[str, list[FloatArray]] = {}
    lines: dict[str, list[FloatArray]] = {}
    for kind, closed, points in found:
        if (points.max(axis=0) < low).any() or (points.min(axis=0) > high).any():
            continue
        pieces = [_clip_ring(points, low, high)] if closed else _clip_line(points, low, high)
        for piece in pieces:
            seen = _simplify(piece, step, low)
            if len(seen) >= (3 if closed else 2):
                (areas if closed else lines).setdefault(kind, []).append(seen)
    return BaseMap(areas, lines)


def _clip_ring(ring: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The part of a ring within a box, one side after the other (Sutherland and Hodgman, 1974)."""
    corners = ring[:-1] if (ring[0] == ring[-1]).all() else ring
    for axis in (0, 1):
        for sign, bound in ((1.0, low[axis]), (-1.0, high[axis])):
            if not len(corners):
                return corners
            inside = sign * (corners[:, axis] - bound)
            after, then = np.roll(corners, -1, axis=0), np.roll(inside, -1)
            crosses = (inside >= 0) != (then >= 0)
            share = np.divide(inside, inside - then, out=np.zeros_like(inside), where=crosses)
            met = corners + share[:, None] * (after - corners)
            met[:, axis] = np.where(crosses, bound, met[:, axis])
            both = np.stack([met, after], axis=1).reshape(-1, 2)
            corners = both[np.stack([crosses, then >= 0], axis=1).ravel()]
    return corners


def _clip_line(line: FloatArray, low: FloatArray, high: FloatArray) -> list[FloatArray]:
    """The parts of a line within a box (Liang and Barsky, 1984)."""
    start, way = line[:-1], np.diff(line, axis=0)
    first, last = np.zeros(len(way)), np.ones(len(way))
    for axis in (0, 1):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at = [(bound - start[:, axis]) / way[:, axis] for bound in (low[axis], high[axis])]
        still = way[:, axis] == 0
        outside = still & ((start[:, axis] < low[axis]) | (start[:, axis] > high[axis]))
        first = np.where(still, first, np.maximum(first, np.minimum(*at)))
        last = np.where(outside, -1.0, np.where(still, last, np.minimum(last, np.maximum(*at))))
    seen = np.flatnonzero(first < last)
    pieces: list[list[FloatArray]] = []
    for number in seen.tolist():
        begin = start[number] + first[number] * way[number]
        if not pieces or first[number] > 0 or number - 1 not in seen:
            pieces.append([begin])
        pieces[-1].append(start[number] + last[number] * way[number])
    return [np.array(piece) for piece in pieces]


def _simplify(points: FloatArray, step: float, origin: FloatArray) -> FloatArray:
    """Points on a grid too fine to see, without those that repeat or lie on a straight line."""
    if not len(points):
        return points
    snapped = np.rint((points - origin) / step)
    moved = np.concatenate([[True], (np.diff(snapped, axis=0) != 0).any(axis=1)])
    kept, snapped = points[moved], snapped[moved]
    if len(kept) > 2:
        before, after = snapped[1:-1] - snapped[:-2], snapped[2:] - snapped[1:-1]
        bends = before[:, 0] * after[:, 1] != before[:, 1] * after[:, 0]
        kept = kept[np.concatenate([[True], bends, [True]])]
    return kept
