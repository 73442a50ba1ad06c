"""Outlines of states: polygons of longitude and latitude, in several parts and with holes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, Mask
from dphmm.errors import DataError
from dphmm.tables.geojson import feature, in_one_piece

__all__ = ["Outline", "closed_ring", "outline_of", "point_of"]


@dataclass(frozen=True, eq=False)
class Outline:
    """Parts of closed rings: the border of each part first, then those of its holes."""

    parts: list[list[FloatArray]] = field(repr=False)

    @cached_property
    def _rings(self) -> list[FloatArray]:
        return [ring for part in self.parts for ring in part]

    @cached_property
    def latitudes(self) -> tuple[float, float]:
        """The southernmost and the northernmost."""
        north = np.concatenate([ring[:, 1] for ring in self._rings])
        return float(north.min()), float(north.max())

    @cached_property
    def middle(self) -> FloatArray:
        """The centre of area of the largest part, holes apart: longitude and latitude."""
        ring = max((part[0] for part in self.parts), key=lambda each: abs(_area(each)))
        corners = ring - ring[0]
        cross = corners[:-1, 0] * corners[1:, 1] - corners[1:, 0] * corners[:-1, 1]
        if not cross.sum():
            return np.asarray(ring[:-1].mean(axis=0))
        weighted = ((corners[:-1] + corners[1:]) * cross[:, None]).sum(axis=0)
        return np.asarray(ring[0] + weighted / (3 * cross.sum()))

    def contains(self, points: FloatArray) -> Mask:
        """Whether rows of latitude and longitude lie inside: an odd number of rings lies east."""
        odd = np.zeros(len(points), dtype=bool)
        if not len(points):
            return odd
        base = self._rings[0][0, 0]
        # East of 180 degrees comes -180: everything is measured from the first corner.
        east = base + np.remainder(points[:, 1] - base + 180, 360) - 180
        north = points[:, 0]
        for ring in self._rings:
            for (x, y), (next_x, next_y) in pairwise(ring.tolist()):
                if y != next_y:
                    crosses = (y > north) != (next_y > north)
                    odd ^= crosses & (east < (next_x - x) * (north - y) / (next_y - y) + x)
        return odd

    def feature(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The outline as GeoJSON."""
        if len(self.parts) == 1:
            return feature("Polygon", self.parts[0], properties)
        return feature("MultiPolygon", self.parts, properties)


def closed_ring(ring: ArrayLike, *, hole: bool = False) -> FloatArray:
    """A ring in one piece across the antimeridian; counterclockwise, and a hole's clockwise."""
    corners = in_one_piece(ring)
    return corners[::-1] if (_area(corners) < 0) != hole else corners


def _area(ring: FloatArray) -> float:
    x, y = ring[:, 0] - ring[0, 0], ring[:, 1] - ring[0, 1]
    return float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2)


def outline_of(where: str, given: Mapping[str, Any]) -> Outline | None:
    """The outline of a feature that is a polygon or several; None of another."""
    geometry = given.get("geometry") or {}
    kind: Any = geometry.get("type")
    coordinates: Any = geometry.get("coordinates")
    if kind not in ("Polygon", "MultiPolygon"):
        return None
    try:
        parts = [
            [closed_ring([place[:2] for place in ring], hole=n > 0) for n, ring in enumerate(part)]
            for part in (coordinates if kind == "MultiPolygon" else [coordinates])
        ]
        rings = [ring for part in parts for ring in part]
        closed = [len(ring) >= 4 and (ring[0] == ring[-1]).all() for ring in rings]
        if (
            not rings
            or not all(parts)
            or not all(closed)
            or not np.isfinite(np.vstack(rings)).all()
        ):
            raise ValueError
    except (ValueError, TypeError, IndexError, KeyError):
        raise DataError(f"{where} must have closed rings of four or more places") from None
    return Outline(parts)


def point_of(where: str, given: Mapping[str, Any]) -> FloatArray:
    """The longitude and latitude of a feature that is a point."""
    geometry = given.get("geometry") or {}
    try:
        place = np.array(geometry["coordinates"][:2], dtype=np.float64)
        if geometry["type"] != "Point" or place.shape != (2,) or not np.isfinite(place).all():
            raise ValueError
    except (ValueError, TypeError, IndexError, KeyError):
        raise DataError(f"{where} must be a point or a polygon, got another") from None
    return place
