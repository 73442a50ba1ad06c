"""GeoJSON (RFC 7946): tracks, places and roads in, and features out for maps elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray
from dphmm.errors import DataError
from dphmm.tables.files import read_text

__all__ = ["collection", "feature", "features_of", "read_features", "track_records"]

_TIMES = ("coordTimes", "times", "timestamps", "time")
_DIGITS = 7
"""Of a degree: a centimetre."""


def track_records(document: Any) -> list[dict[str, Any]]:
    """The points of a document, each with the properties of its feature.

    A line, or several points, have one time each in a list among the properties; several lines
    have a list of lists, or one. A feature of another kind, or of none, is a point nowhere, so
    that whoever counts rows counts it.

    >>> track_records({"type": "Feature", "geometry": None, "properties": {"time": 3}})
    []
    """
    records, known = [], False
    for each in features_of(document):
        properties = each.get("properties") or {}
        places = _places(each.get("geometry") or {})
        beside = properties.get("coordinateProperties")
        given = {**beside, **properties} if isinstance(beside, dict) else properties
        times = next((given[n] for n in _TIMES if isinstance(given.get(n), list)), None)
        plain = {key: value for key, value in properties.items() if key not in _TIMES or not times}
        plain.pop("coordinateProperties", None)
        if times and isinstance(times[0], list):
            times = [time for part in times for time in part]
        for number, place in enumerate(places or [None]):
            where = place if isinstance(place, list) and len(place) >= 2 else [None, None]
            record = {**plain, "longitude": where[0], "latitude": where[1]}
            if times is not None:
                record["time"] = times[number] if number < len(times) else None
            records.append(record)
        known |= bool(places)
    return records if known else []


def _places(geometry: Mapping[str, Any]) -> list[Any]:
    """The coordinates of points and lines, one after the other."""
    kind, places = geometry.get("type"), geometry.get("coordinates")
    if kind == "Point":
        return [places]
    if kind not in ("LineString", "MultiPoint", "MultiLineString") or not isinstance(places, list):
        return []
    if kind != "MultiLineString":
        return places
    return [place for line in places if isinstance(line, list) for place in line]


def features_of(document: Any) -> list[dict[str, Any]]:
    """The features of a document, whatever it begins with; none of one that is no GeoJSON."""
    if not isinstance(document, dict):
        return []
    if document.get("type") == "FeatureCollection":
        listed = document.get("features")
        return [each for each in listed if isinstance(each, dict)] if listed else []
    return [document] if document.get("type") == "Feature" else []


def read_features(path: str | Path) -> list[dict[str, Any]]:
    """The features of a file, at least one."""
    try:
        found = features_of(json.loads(read_text(path)))
    except (ValueError, RecursionError):
        found = []
    if not found:
        raise DataError(f"{Path(path).name}: file must be GeoJSON with features, got another")
    return found


def feature(kind: str, places: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    """A feature; places are rows of longitude and latitude, in rings and parts as its kind has."""
    geometry = {"type": kind, "coordinates": _listed(places)}
    return {"type": "Feature", "geometry": geometry, "properties": dict(properties)}


def in_one_piece(line: ArrayLike) -> FloatArray:
    """Rows of longitude and latitude that do not go around the Earth where they pass 180 degrees.

    >>> in_one_piece([[179.5, -17.0], [-179.5, -17.5]]).tolist()
    [[179.5, -17.0], [180.5, -17.5]]
    """
    corners = np.array(line, dtype=np.float64)
    base = corners[0, 0]
    corners[:, 0] = base + np.remainder(corners[:, 0] - base + 180, 360) - 180
    return corners


def _listed(places: Any) -> Any:
    if isinstance(places, list):
        return [_listed(each) for each in places]
    return np.round(places, _DIGITS).tolist()


def collection(features: Iterable[Mapping[str, Any]]) -> str:
    """The text of a file of features, one a line."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False, allow_nan=False) for each in features)
    return f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'
