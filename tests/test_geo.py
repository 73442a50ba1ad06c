"""Laws of the plane and the grid, and geodesics as the oracle. The paper has no geography of
its own: it counts in cells of 0.34 and 0.89 km (section 8).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from dphmm.errors import ArgumentError, DataError
from dphmm.tables.geo import Grid, LocalPlane, cell_of

GEOD = Geod(ellps="WGS84")
LATITUDES = [0.0, 1.35, 23.4, 39.9, 51.5, 60.0, 70.0, -33.9, -70.0]
LONGITUDES = [116.4, 179.9, -180.0]
CENTIMETRE = 0.01

latitudes = st.floats(-70, 70)
longitudes = st.floats(-180, 180)
metres = st.floats(-30_000, 30_000)
finite = st.floats(allow_nan=False, allow_infinity=False)


# Paper


@pytest.mark.parametrize("cell_km", [0.34, 0.89])
def test_the_papers_cells_are_squares_on_the_ground(cell_km: float) -> None:
    plane = LocalPlane(39.92, 116.38)
    grid = Grid.rectangle(37, 38, cell_km)
    latitude, longitude = plane.to_degrees(*grid.centers.T)
    east_of, north_of = 1, 38
    _, _, east = GEOD.inv(longitude[0], latitude[0], longitude[east_of], latitude[east_of])
    _, _, north = GEOD.inv(longitude[0], latitude[0], longitude[north_of], latitude[north_of])
    assert east == pytest.approx(cell_km * 1000, abs=CENTIMETRE)
    assert north == pytest.approx(cell_km * 1000, abs=CENTIMETRE)


# Laws


@given(latitude=latitudes, longitude=longitudes, x=metres, y=metres)
def test_the_plane_and_back_is_where_one_was(
    latitude: float, longitude: float, x: float, y: float
) -> None:
    plane = LocalPlane(latitude, longitude)
    again_x, again_y = plane.to_plane(*plane.to_degrees(x, y))
    assert float(again_x) == pytest.approx(x, abs=1e-4)
    assert float(again_y) == pytest.approx(y, abs=1e-4)


@given(latitude=finite, longitude=finite)
def test_every_finite_coordinate_has_a_place(latitude: float, longitude: float) -> None:
    x, y = LocalPlane(39.9, 116.4).to_plane(latitude, longitude)
    assert np.isfinite([x, y]).all()
    assert 0 <= Grid.rectangle(3, 3, 0.34).state_of(x, y) < 9


@given(x=finite, y=finite)
def test_every_finite_point_has_a_state_and_finite_degrees(x: float, y: float) -> None:
    assert 0 <= Grid.rectangle(3, 3, 0.34).state_of(x, y) < 9
    assert np.isfinite(LocalPlane(70, -179).to_degrees(x, y)).all()


@given(
    points=st.lists(st.tuples(metres, metres), min_size=1, max_size=30),
    cell_km=st.sampled_from([0.05, 0.34, 0.89]),
)
def test_a_grid_has_the_visited_cells_and_no_other(
    points: list[tuple[float, float]], cell_km: float
) -> None:
    x, y = np.array(points).T
    grid = Grid.from_points(x, y, cell_km)
    states = grid.state_of(x, y)
    offset = np.abs(grid.centers[states] - np.array(points)).max(axis=1)
    assert (offset <= cell_km * 500 + 1e-6).all()
    assert set(states.tolist()) == set(range(grid.n_states))


@given(rows=st.integers(1, 12), columns=st.integers(1, 12))
def test_the_middle_of_a_cell_is_its_state(rows: int, columns: int) -> None:
    grid = Grid.rectangle(rows, columns, 0.34)
    assert grid.state_of(*grid.centers.T).tolist() == list(range(grid.n_states))
    assert grid.shape == (rows, columns)


def test_grids_of_one_plane_share_their_cells() -> None:
    first = Grid.from_points([10.0], [10.0], 0.34)
    second = Grid.from_points([-700.0, 20.0], [900.0, 30.0], 0.34)
    assert first.centers[0].tolist() in second.centers.round(9).tolist()


def test_scattered_places_with_whole_coordinates_are_no_cells_and_a_grid_with_gaps_is() -> None:
    rng = np.random.default_rng(3)
    assert cell_of(rng.integers(0, 4_000, (40, 2)).astype(float)) is None
    whole = np.argwhere(np.ones((30, 30))) * 250.0
    assert cell_of(whole) == 250
    assert cell_of(rng.permutation(whole)[:200]) == 250


def test_longitudes_of_another_turn_are_the_same_place() -> None:
    plane = LocalPlane(-17.0, 179.95)
    np.testing.assert_allclose(
        plane.to_plane([-17, -17], [-179.9, 180.1]),
        plane.to_plane([-17, -17], [180.1, -179.9]),
        rtol=0,
        atol=1e-6,
    )


def test_the_middle_of_points_across_the_antimeridian_lies_on_it() -> None:
    plane = LocalPlane.around([10.0, 10.0], [179.0, -179.0])
    assert abs(plane.longitude) == 180


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_missing_coordinate_is_named_by_its_row_only(value: float) -> None:
    grid = Grid.rectangle(2, 2, 0.34)
    with pytest.raises(DataError, match=r"^y must be a finite number, got none in row 2$"):
        grid.state_of([1.0, 2.0, 123.25], [0.0, 5.0, value])
    with pytest.raises(DataError, match=r"^latitude must be a finite number, got none$"):
        LocalPlane(0, 0).to_plane(value, 0.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LocalPlane(91, 0), "latitude must lie in -90..90, got 91"),
        (lambda: LocalPlane(0, float("nan")), "longitude must lie in -360..360, got nan"),
        (lambda: LocalPlane.around([], []), "latitude must hold at least one point"),
        (lambda: Grid.from_points([], [], 0.34), "x must hold at least one point"),
        (lambda: Grid.from_points([0], [0], 0), "cell_km must be kilometres"),
        (lambda: Grid.from_points([0], [0, 1], 1), r"y must have the shape of x, \(1,\), got"),
        (lambda: Grid.rectangle(0, 3, 1), "rows and columns must be positive, got 0, 3"),
        (lambda: Grid(1.0, np.zeros((0, 2), np.int64)), "row_col must have one"),
        (lambda: Grid(1.0, np.array([[0, -1]])), "row_col must count from 0"),
        (lambda: Grid(1.0, np.array([[0, 1], [0, 0]])), "row_col must be sorted"),
    ],
)
def test_bad_arguments_are_refused(make: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()  # type: ignore[operator]


# Oracle


@pytest.mark.parametrize("longitude", LONGITUDES)
@pytest.mark.parametrize("latitude", LATITUDES)
def test_a_step_has_one_length_in_every_direction(latitude: float, longitude: float) -> None:
    """What a published toolkit gets wrong: its north-south noise vanishes at the equator."""
    plane = LocalPlane(latitude, longitude)
    angle = np.radians(np.arange(0, 360, 15))
    for centre, tolerance in (((0.0, 0.0), 1e-7), ((30_000.0, 40_000.0), 2e-5)):
        there = plane.to_degrees(*(np.array([c]) for c in centre))
        ends = plane.to_degrees(centre[0] + 200 * np.cos(angle), centre[1] + 200 * np.sin(angle))
        _, _, length = GEOD.inv(
            np.repeat(there[1], angle.size), np.repeat(there[0], angle.size), ends[1], ends[0]
        )
        np.testing.assert_allclose(length, 200, rtol=tolerance)


@pytest.mark.parametrize("latitude", LATITUDES)
def test_round_noise_on_the_plane_is_round_on_the_ground(latitude: float) -> None:
    rng = np.random.default_rng(7)
    plane = LocalPlane(latitude, 179.99)
    radius, angle = rng.gamma(2, 200, 1000), rng.uniform(0, 2 * np.pi, 1000)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    ends_latitude, ends_longitude = plane.to_degrees(x, y)
    azimuth, _, length = GEOD.inv(
        np.full(1000, 179.99), np.full(1000, latitude), ends_longitude, ends_latitude
    )
    north = length * np.cos(np.radians(azimuth))
    east = length * np.sin(np.radians(azimuth))
    np.testing.assert_allclose(north, y, rtol=0, atol=CENTIMETRE)
    np.testing.assert_allclose(east, x, rtol=0, atol=CENTIMETRE)


@given(
    latitude=latitudes,
    longitude=longitudes,
    points=st.lists(st.tuples(metres, metres), min_size=2, max_size=2),
)
def test_distances_within_a_city_are_geodesics(
    latitude: float, longitude: float, points: list[tuple[float, float]]
) -> None:
    plane = LocalPlane(latitude, longitude)
    lat, lon = plane.to_degrees(*np.array(points).T)
    _, _, ground = GEOD.inv(lon[0], lat[0], lon[1], lat[1])
    assert float(np.hypot(*np.subtract(*points))) == pytest.approx(ground, rel=2e-5, abs=1e-3)


@given(
    visited=st.lists(st.tuples(metres, metres), min_size=1, max_size=20),
    asked=st.lists(st.tuples(st.floats(-1e5, 1e5), st.floats(-1e5, 1e5)), min_size=1),
)
def test_the_state_is_the_nearest_of_all(
    visited: list[tuple[float, float]], asked: list[tuple[float, float]]
) -> None:
    grid = Grid.from_points(*np.array(visited).T, 0.89)
    points = np.array(asked)
    distance = np.linalg.norm(points[:, None] - grid.centers[None], axis=-1)
    states = grid.state_of(*points.T)
    chosen = np.take_along_axis(distance, states[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, distance.min(axis=1), rtol=0, atol=1e-6)
