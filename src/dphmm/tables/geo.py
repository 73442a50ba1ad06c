"""Latitude and longitude on a local metric plane, and square grids on that plane.

The plane is an azimuthal equidistant projection of the WGS 84 ellipsoid around a centre. Three
properties decide the choice. A metre north and a metre east are the same length at the
centre, at any latitude (elsewhere they differ by about r^2 / 6R^2 at distance r: 1 in 100,000
at 50 km), so noise that is round on the plane is round on the ground. Distances from the
centre are exact. And the whole Earth has a finite image, so a stray coordinate on the far
side still has a nearest state; conformal projections send it to infinity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from dphmm._types import FloatArray, IntArray
from dphmm.errors import ArgumentError, DataError, require

__all__ = ["Grid", "LocalPlane", "cell_of"]

_FARTHEST = 1e9
"""Metres: beyond any image of the Earth, and small enough that its square is exact enough."""
_FAR_CELLS = 3
"""In a grid, also one with gaps, most cells have another within so many cells."""


@lru_cache(maxsize=64)
def _projection(latitude: float, longitude: float) -> Any:
    pyproj = require("pyproj", "geo")
    return pyproj.Proj(proj="aeqd", lat_0=latitude, lon_0=longitude, ellps="WGS84")


@dataclass(frozen=True)
class LocalPlane:
    """A plane in metres around a centre: x runs east, y runs north.

    Longitudes may be given in any turn (190 is -170), so a city across the antimeridian is
    one piece; they come back in -180..180. A latitude beyond a pole counts as the pole: a
    finite coordinate always has a place, and no error tells one from another.

    >>> plane = LocalPlane(39.9, 116.4)
    >>> x, y = plane.to_plane([39.9, 39.91], [116.4, 116.4])
    >>> y.round(1).tolist()
    [0.0, 1110.3]
    >>> latitude, longitude = plane.to_degrees(x, y)
    >>> latitude.round(6).tolist()
    [39.9, 39.91]
    """

    latitude: float
    longitude: float

    def __post_init__(self) -> None:
        if not -90 <= self.latitude <= 90:
            raise ArgumentError(f"latitude must lie in -90..90, got {self.latitude!r}")
        if not -360 <= self.longitude <= 360:
            raise ArgumentError(f"longitude must lie in -360..360, got {self.longitude!r}")

    @classmethod
    def around(cls, latitude: ArrayLike, longitude: ArrayLike) -> LocalPlane:
        """The plane around the middle of some points, also across the antimeridian.

        The middle is the mean direction from the Earth's centre, rounded to 0.001 degrees so
        that it reads well in a file; which centre within a city makes no visible difference.

        >>> LocalPlane.around([-17, -17], [179, -179])
        LocalPlane(latitude=-17.002, longitude=180.0)
        """
        phi, theta = (np.radians(a) for a in _pair(latitude, longitude, "latitude", "longitude"))
        if phi.size == 0:
            raise ArgumentError("latitude must hold at least one point, got none")
        east = float(np.mean(np.cos(phi) * np.cos(theta)))
        north = float(np.mean(np.cos(phi) * np.sin(theta)))
        up = float(np.mean(np.sin(phi)))
        return cls(
            round(float(np.degrees(np.arctan2(up, np.hypot(east, north)))), 3),
            round(float(np.degrees(np.arctan2(north, east))), 3),
        )

    def to_plane(self, latitude: ArrayLike, longitude: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Metres east and metres north of the centre."""
        phi, theta = _pair(latitude, longitude, "latitude", "longitude")
        theta = np.remainder(theta + 180, 360) - 180
        x, y = _projection(self.latitude, self.longitude)(theta, np.clip(phi, -90, 90))
        return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)

    def to_degrees(self, x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Latitude and longitude of points of the plane.

        A point farther out than the antipode (20,000 km) counts as lying on its rim.
        """
        east, north = (np.clip(a, -_FARTHEST, _FARTHEST) for a in _pair(x, y, "x", "y"))
        shrink = np.minimum(1.0, 2.0e7 / np.maximum(np.hypot(east, north), 1.0))
        longitude, latitude = _projection(self.latitude, self.longitude)(
            east * shrink, north * shrink, inverse=True
        )
        return np.asarray(latitude, dtype=np.float64), np.asarray(longitude, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Grid:
    """Square cells of a plane, of which the listed ones are states 0..n_states-1.

    Rows run north and columns run east, both from 0 at `origin`, the south-west corner in
    metres. States are in order of row, then column.

    >>> grid = Grid.from_points([10, 20, 800], [10, 20, 10], 0.34)
    >>> grid.row_col.tolist()
    [[0, 0], [0, 2]]
    >>> grid.centers.round(9).tolist()
    [[170.0, 170.0], [850.0, 170.0]]
    >>> grid.state_of([0, 700, 1e7], [0, 0, 0]).tolist()
    [0, 1, 1]
    """

    cell_km: float
    row_col: IntArray = field(repr=False)
    origin: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        _check_cell(self.cell_km)
        cells = np.array(self.row_col, dtype=np.int64)
        if cells.ndim != 2 or cells.shape[1] != 2 or len(cells) == 0:
            raise ArgumentError(
                f"row_col must have one (row, column) per state, got shape {cells.shape}"
            )
        if cells.min() < 0:
            raise ArgumentError(
                f"row_col must count from 0 at the origin, got a minimum of {int(cells.min())}"
            )
        if not np.array_equal(np.unique(cells, axis=0), cells):
            raise ArgumentError(
                "row_col must be sorted by row, then column, and hold no cell twice"
            )
        cells.setflags(write=False)
        object.__setattr__(self, "row_col", cells)

    @classmethod
    def from_points(cls, x: ArrayLike, y: ArrayLike, cell_km: float) -> Grid:
        """The grid whose states are the cells that some point lies in; x and y in metres.

        Cell borders are at whole multiples of the cell size from the centre of the plane, so
        grids from different points of one plane share their cells.
        """
        _check_cell(cell_km)
        east, north = _pair(x, y, "x", "y")
        if east.size == 0:
            raise ArgumentError("x must hold at least one point, got none")
        cell = cell_km * 1000
        origin = (float(_floor(east.min() / cell) * cell), float(_floor(north.min() / cell) * cell))
        row_col = _cells(east, north, cell_km, origin).reshape(-1, 2)
        # Rounding may put a point on the border of the first cell a hair outside of it.
        row, column = np.maximum(row_col, 0).T
        columns = int(column.max()) + 1
        visited = np.stack(np.divmod(np.unique(row * columns + column), columns), axis=-1)
        return cls(cell_km, visited, origin)

    @classmethod
    def rectangle(cls, rows: int, columns: int, cell_km: float) -> Grid:
        """The full grid of rows x columns, centred on the plane's centre.

        >>> Grid.rectangle(2, 3, 0.5).n_states
        6
        """
        _check_cell(cell_km)
        if min(rows, columns) < 1:
            raise ArgumentError(f"rows and columns must be positive, got {rows!r}, {columns!r}")
        row, column = np.divmod(np.arange(rows * columns), columns)
        corner = (-columns * cell_km * 500, -rows * cell_km * 500)
        return cls(cell_km, np.stack([row, column], axis=-1), corner)

    @property
    def n_states(self) -> int:
        """How many cells are states."""
        return len(self.row_col)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the smallest rectangle from the origin around all states."""
        rows, columns = self.row_col.max(axis=0) + 1
        return int(rows), int(columns)

    @cached_property
    def centers(self) -> FloatArray:
        """Metres (x, y) of the middle of every state's cell, ready for `Query(grid.centers)`."""
        centers: FloatArray = (
            np.asarray(self.origin) + (self.row_col[:, ::-1] + 0.5) * self.cell_km * 1000
        )
        centers.setflags(write=False)
        return centers

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.centers)

    @cached_property
    def _codes(self) -> IntArray:
        return self.row_col[:, 0] * self.shape[1] + self.row_col[:, 1]

    def state_of(self, x: ArrayLike, y: ArrayLike) -> IntArray:
        """The state whose cell's middle is nearest, for any finite coordinates in metres.

        A point inside a state's cell belongs to that cell; one outside all of them to the
        nearest. NaN and infinity are errors that name the row.
        """
        east, north = _pair(x, y, "x", "y")
        rows, columns = self.shape
        row, column = np.moveaxis(_cells(east, north, self.cell_km, self.origin), -1, 0)
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        code = np.where(inside, row * columns + column, -1)
        state = np.minimum(np.searchsorted(self._codes, code), self.n_states - 1)
        elsewhere = self._codes[state] != code
        if not elsewhere.any():
            return np.asarray(state, dtype=np.int64)
        points = np.stack([east[elsewhere], north[elsewhere]], axis=-1)
        nearest = np.array(state, dtype=np.int64)
        nearest[elsewhere] = self._tree.query(np.clip(points, -_FARTHEST, _FARTHEST))[1]
        return nearest


def cell_of(places: FloatArray) -> float | None:
    """The side of the cells if the places are the centres of a square grid's cells.

    Scattered places with whole coordinates lie on a grid too, but far apart: they are no cells.

    >>> cell_of(np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [3.5, 2.5]]))
    1.0
    >>> cell_of(np.array([[0.0, 0.0], [1.0, 0.3], [2.0, 1.0], [2.5, 2.0]])) is None
    True
    """
    if len(places) < 4:
        return None
    origin, spread = places.min(axis=0), np.ptp(places, axis=0)
    across, up = (_side(axis, width) for axis, width in zip(places.T, spread.tolist(), strict=True))
    if not across or not np.isclose(across, up, rtol=1e-4):
        return None
    side = max(across, up)
    steps = np.rint((places - origin) / side)
    regular = np.allclose(places - origin, steps * side, atol=1e-3 * side)
    if not regular or len(np.unique(steps, axis=0)) < len(places):
        return None
    nearest = np.asarray(KDTree(steps).query(steps, k=2)[0])[:, 1]
    return round(side, 6) if np.median(nearest) <= _FAR_CELLS else None


def _side(axis: FloatArray, spread: float) -> float:
    """How far apart a grid's lines are, 0 of one line; places of rounded degrees lie near them."""
    gaps = np.diff(np.unique(axis))
    gaps = gaps[gaps > 1e-4 * spread]
    return spread / round(spread / float(gaps.min())) if len(gaps) else 0.0


def _check_cell(cell_km: float) -> None:
    if not 0.001 <= cell_km <= 10_000:
        raise ArgumentError(f"cell_km must be kilometres in 0.001..10000, got {cell_km!r}")


def _cells(
    east: FloatArray, north: FloatArray, cell_km: float, origin: tuple[float, float]
) -> IntArray:
    """The (row, column) of the cell that each point lies in."""
    size = cell_km * 1000
    return np.stack([_floor((north - origin[1]) / size), _floor((east - origin[0]) / size)], -1)


def _floor(cells: FloatArray) -> IntArray:
    """Cell numbers; absurdly far ones are cut so that row x column fits 64 bits."""
    return np.floor(np.clip(cells, -(2.0**30), 2.0**30)).astype(np.int64)


def _pair(
    first: ArrayLike, second: ArrayLike, first_name: str, second_name: str
) -> tuple[FloatArray, FloatArray]:
    """Two finite float arrays of one shape, at least one-dimensional only if given so."""
    a = np.asarray(first, dtype=np.float64)
    b = np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise ArgumentError(
            f"{second_name} must have the shape of {first_name}, {a.shape}, got {b.shape}"
        )
    for name, values in ((first_name, a), (second_name, b)):
        finite = np.isfinite(values)
        if not finite.all():
            place = "" if values.ndim == 0 else f" in row {int(np.argmin(finite.ravel()))}"
            raise DataError(f"{name} must be a finite number, got none{place}")
    return a, b
