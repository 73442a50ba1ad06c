"""Maps: squares, H3 cells, places and roads; who lies where; and GeoJSON that others can read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import Clock, States
from dphmm.errors import ArgumentError, DataError
from dphmm.tables.datasets import Map, place_trips
from dphmm.tables.outlines import Outline, closed_ring
from dphmm.tables.units import length, measure

MUNICH = (48.137, 11.575)
PLACES = [MUNICH, (-17.0, 179.999), (0.0, 0.0), (69.6, 18.9)]
"""Also across the antimeridian, on the equator, and far north."""

NEAR = 1e-9
BLOCK = [[11.0, 48.0], [11.2, 48.0], [11.2, 48.1], [11.0, 48.1], [11.0, 48.0]]
YARD = [[11.05, 48.02], [11.05, 48.08], [11.15, 48.08], [11.15, 48.02], [11.05, 48.02]]


def collected(*features: tuple[str, Any, dict[str, Any]]) -> str:
    listed = [
        {
            "type": "Feature",
            "geometry": {"type": kind, "coordinates": places},
            "properties": properties,
        }
        for kind, places, properties in features
    ]
    return json.dumps({"type": "FeatureCollection", "features": listed})


def written(folder: Path, town: Map) -> Path:
    path = folder / "cells.csv"
    town.states.write(path)
    path.with_suffix(".geojson").write_text(town.to_geojson())
    return path


# Paper


def test_polygons_have_holes_parts_names_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "districts.geojson"
    east = [[[x + 1, y] for x, y in BLOCK]]
    far = [[[x + 2, y] for x, y in BLOCK]]
    path.write_text(
        collected(
            ("Polygon", [BLOCK, YARD], {"name": "old", "kind": "homes", "people": 12}),
            ("MultiPolygon", [east, far], {"name": "new", "kind": "shops", "people": 7.5}),
        )
    )
    town = Map.of_places(path)
    assert town.states.labels == ("old", "new")
    assert town.states.texts == {"kind": ("homes", "shops")}
    assert town.states.numbers["people"].tolist() == [12.0, 7.5]
    inside = [[48.01, 11.01], [48.05, 12.1], [48.05, 13.1]]
    states, outside, _ = town.locate([*inside, [48.05, 11.1], [48.05, 14.0]])
    assert states.tolist() == [0, 1, 1, 0, 1]
    assert outside.tolist() == [False] * 3 + [True, True], "the yard is a hole"
    again = Map.read(written(tmp_path, town))
    assert again.to_geojson() == town.to_geojson()


def test_crossings_are_the_ends_of_roads(tmp_path: Path) -> None:
    path = tmp_path / "roads.geojson"
    path.write_text(
        collected(
            ("LineString", [[11.0, 48.0], [11.005, 48.001], [11.01, 48.0]], {}),
            (
                "MultiLineString",
                [[[11.01, 48.0], [11.01, 48.01]], [[11.0, 48.0], [11.0, 48.0]]],
                {},
            ),
        )
    )
    town = Map.of_roads(path)
    assert town.states.labels == ("n0", "n1", "n2")
    assert town.roads == (("n0", "n1"), ("n1", "n2"))
    assert town.reach == pytest.approx(1112, abs=1), "the longest road, in metres"
    states, outside, _ = town.locate([[48.0, 11.0101], [48.1, 11.0]])
    assert states.tolist() == [1, 2]
    assert outside.tolist() == [False, True]
    assert Map.read(written(tmp_path, town)).roads == town.roads
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("label,x,y\na,0,0\nb,0,5\n")
    edges.write_text("from,to\na,b\n")
    assert Map.of_roads(edges, nodes).roads == (("a", "b"),)


# Laws


@pytest.mark.parametrize("place", PLACES)
def test_every_place_in_the_square_is_in_its_nearest_cell(place: tuple[float, float]) -> None:
    rng = np.random.default_rng(5)
    town = Map.squares(*place, kilometres=3, cell=0.25)
    assert len(town.states) == 144
    plane = town.states.plane
    assert plane is not None
    x, y = rng.uniform(-1490, 1490, (2, 500))
    points = np.stack(plane.to_degrees(x, y), axis=-1)
    states, outside, _ = town.locate(points)
    assert not outside.any()
    assert (states != town.states.nearest(points)).mean() < 0.01, "only on a border"
    away = np.stack(plane.to_degrees(x + np.sign(x) * 1600, y), axis=-1)
    states, outside, _ = town.locate(away)
    assert outside.all()
    np.testing.assert_array_equal(states, town.states.nearest(away))


@given(
    corners=st.lists(
        st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3, max_size=8, unique=True
    ),
    points=st.lists(st.tuples(st.floats(-1.1, 1.1), st.floats(-1.1, 1.1)), min_size=1),
    east=st.sampled_from([0.0, 179.9, -179.9]),
)
def test_turning_and_shifting_an_outline_changes_nothing(
    corners: list[tuple[float, float]], points: list[tuple[float, float]], east: float
) -> None:
    ring, places = np.array([*corners, corners[0]]), np.array(points)
    plain = Outline([[closed_ring(ring)]]).contains(places[:, ::-1])
    moved = np.add(ring, [east, 0])[::-1]
    # Longitudes beyond 180 degrees are given in the other turn.
    shifted = np.remainder(places[:, 0] + east + 180, 360) - 180
    found = Outline([[closed_ring(moved)]]).contains(np.stack([places[:, 1], shifted], axis=-1))
    far = from_edges(ring, places) > NEAR
    np.testing.assert_array_equal(plain[far], found[far])


def from_edges(ring: Any, places: Any) -> Any:
    """How far each place is from the nearest edge, where rounding may decide the side."""
    a, b = ring[:-1, None], ring[1:, None]
    along = ((places - a) * (b - a)).sum(-1) / np.maximum(((b - a) ** 2).sum(-1), 1e-300)
    nearest = a + np.clip(along, 0, 1)[..., None] * (b - a)
    return np.linalg.norm(places - nearest, axis=-1).min(axis=0)


@pytest.mark.parametrize("make", [
    lambda: Map.squares(*MUNICH, kilometres=2),
    lambda: Map.squares(*PLACES[1], kilometres=2),
    lambda: Map.hexagons(*MUNICH, kilometres=2, resolution=8),
])  # fmt: skip
def test_a_map_reads_back_and_may_lose_states(make: Callable[[], Map], tmp_path: Path) -> None:
    if "hexagons" in make.__code__.co_names:
        pytest.importorskip("h3")
    town = make()
    path = written(tmp_path, town)
    points = np.stack([town.states.numbers[n] for n in ("latitude", "longitude")], axis=-1)
    again = Map.read(path)
    np.testing.assert_array_equal(again.locate(points)[0], np.arange(len(points)))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert len(Map.read(path).states) == len(town.states) - 1
    path.write_text(path.read_text() + "nowhere,48.0,11.0\n")
    with pytest.raises(DataError, match=r"^cells.geojson: features must have all labels of cells"):
        Map.read(path)
    path.with_suffix(".geojson").unlink()
    assert Map.read(path).outlines == ()


# Refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Map.squares(*MUNICH, cell=0), "cell must be a length in 1 m..10000 km, got 0 km"),
        (lambda: Map.squares(*MUNICH, cell=float("nan")), "cell must be a length"),
        (lambda: Map.squares(*MUNICH, kilometres=-1), "kilometres must be a length"),
        (
            lambda: Map.squares(*MUNICH, kilometres=12.9, cell=340),
            "cell must be at most about half of 12.9 km, or all is one place, got 340 km",
        ),
        (
            lambda: Map.squares(*MUNICH, kilometres=500, cell=0.01),
            "kilometres and cell must make at most 100000 states, got 2500000000",
        ),
        (lambda: Map(States.on_plane([[0, 0]])).to_geojson(), "must have latitude and longitude"),
        (lambda: Map.squares(91, 0), "latitude must lie in -90..90, got 91"),
    ],
)
def test_maps_that_cannot_be_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_hexagons_that_cannot_be_are_refused() -> None:
    pytest.importorskip("h3")
    with pytest.raises(ArgumentError, match=r"resolution must be a whole number in 0\.\.15"):
        Map.hexagons(*MUNICH, resolution=16)
    with pytest.raises(ArgumentError, match="must make at most 100000 states, got"):
        Map.hexagons(*MUNICH, kilometres=500, resolution=15)
    with pytest.raises(ArgumentError, match="resolution must have cells of the size of the map"):
        Map.hexagons(*MUNICH, kilometres=0.1, resolution=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "places.geojson: file must be GeoJSON with features, got another"),
        ("[]", "must be GeoJSON with features"),
        (collected(("LineString", [[0, 0], [1, 1]], {})), "feature 1 must be a point or a polygon"),
        (collected(("Point", [0], {})), "feature 1 must be a point or a polygon"),
        (collected(("Polygon", [BLOCK[:-1]], {})), "feature 1 must have closed rings"),
        (collected(("Polygon", [], {})), "feature 1 must have closed rings"),
        (collected(("Polygon", [BLOCK], {}), ("Point", [1, 2], {})), "all points or all polygons"),
        (
            collected(("Point", [0, 0], {"name": "a"}), ("Point", [1, 2], {"name": "a"})),
            "feature 2 must have a new name, got 'a'",
        ),
    ],
)
def test_places_that_are_none_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "places.geojson"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        Map.of_places(path)


def test_tracks_that_do_not_fit_the_map_are_refused() -> None:
    import polars

    town = Map(States.on_plane([[0, 0], [10, 0]]))
    tracks = polars.DataFrame({"person": "a", "time": [0, 1, 5], "x": [0.0, 1.0, 9.0], "y": 0.0})
    placed = place_trips(tracks, town, Clock(1))
    assert placed.table["state"].to_list() == ["0", "0", "1"]
    assert (placed.moves, placed.gaps, placed.outside) == (1, 1, 0)
    assert "3 fixes, 0 outside the map (0.0%)" in str(placed)
    for other, message in (
        (tracks.drop("y"), "tracks must hold times with x and y"),
        (tracks.clear(), "tracks must hold times with x and y"),
        (tracks.with_columns(x=polars.lit(99.0)), "got 3 of 3 fixes outside"),
        (tracks.with_columns(time=polars.col("time") * 9), "got 2 of 2 after a gap, since half"),
        (
            tracks.with_columns(person=polars.Series(["1", "2", "3"])),
            "several steps of somebody, got 3 people with one each; say which column",
        ),
    ):
        with pytest.raises(DataError, match=message):
            place_trips(other, town, Clock(1))
    with pytest.raises(DataError, match="times for steps of '5 min', got whole numbers"):
        place_trips(tracks, town, Clock("5 min"))
    sparse = tracks.with_columns(time=polars.col("time") * 9)
    assert place_trips(sparse, town, Clock(1), gaps="allow").gaps == 2
    mixed = tracks.with_columns(polars.Series("x", [0.0, 99.0, 99.0]))
    left = place_trips(mixed, town, Clock(1), outside="drop")
    assert (len(left.table), left.outside, left.fixes) == (1, 2, 3)
    assert left.half_within == left.all_within == 89


# Oracle


def test_h3_cells_hold_what_h3_says() -> None:
    h3 = pytest.importorskip("h3")
    town = Map.hexagons(*MUNICH, kilometres=6, resolution=9)
    rng = np.random.default_rng(3)
    points = np.array(MUNICH) + rng.uniform(-0.02, 0.02, (2000, 2))
    states, outside, _ = town.locate(points)
    assert not outside.any()
    assert [town.states.labels[s] for s in states] == [
        h3.latlng_to_cell(*point, 9) for point in points.tolist()
    ]


@pytest.mark.parametrize("kind", ["squares", "hexagons", "districts", "roads"])
def test_the_geojson_of_a_map_is_valid_to_other_libraries(kind: str, tmp_path: Path) -> None:
    geojson, shapely = pytest.importorskip("geojson"), pytest.importorskip("shapely")
    if kind == "hexagons":
        pytest.importorskip("h3")
        town = Map.hexagons(*MUNICH, kilometres=2)
    elif kind == "squares":
        town = Map.squares(*MUNICH, kilometres=2)
    else:
        path = tmp_path / "in.geojson"
        if kind == "districts":
            path.write_text(collected(("Polygon", [BLOCK, YARD], {"kind": "homes"})))
            town = Map.of_places(path)
        else:
            path.write_text(collected(("LineString", [[11, 48], [11.1, 48.1]], {})))
            town = Map.of_roads(path)
    document = geojson.loads(town.to_geojson())
    assert document.is_valid, document.errors()
    assert len(document["features"]) == len(town.states) + len(town.roads)
    points = np.stack([town.states.numbers[n] for n in ("longitude", "latitude")], axis=-1)
    for one, label, point in zip(document["features"], town.states.labels, points, strict=False):
        shape = shapely.geometry.shape(one["geometry"])
        assert shape.is_valid
        assert one["properties"]["label"] == label
        if kind in ("squares", "hexagons"):
            assert shape.exterior.is_ccw
            assert shape.contains(shapely.Point(point))


@given(
    corners=st.lists(
        st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=7, unique=True
    ),
    points=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=9),
)
def test_what_an_outline_contains_is_what_shapely_says(
    corners: list[tuple[int, int]], points: list[tuple[int, int]]
) -> None:
    shapely = pytest.importorskip("shapely")
    hull = shapely.MultiPoint(corners).convex_hull
    if hull.geom_type != "Polygon":
        return
    outline = Outline([[closed_ring(np.array(hull.exterior.coords))]])
    off = np.add(points, [0.5, 0.25])
    found = outline.contains(off[:, ::-1])
    for point, inside in zip(off, found, strict=True):
        where = shapely.Point(point)
        if hull.boundary.distance(where) > 1e-9:
            assert inside == hull.contains(where)


# Lengths


def test_lengths_are_exact_and_have_units() -> None:
    assert length("250m", "m", "error") == length("0.25 km", "m", "error") == 250
    assert length("0.5", "km", "cell") == length("500 m", "km", "cell")
    assert length("1/3 km", "m", "error") * 3 == 1000
    assert length("5min", "min", "error") == 5
    for wrong, unit in (("250m", ""), ("5 parsec", "m"), ("250m", "min"), ("m", "m"), ("", "m")):
        with pytest.raises(ArgumentError, match="error must be"):
            length(wrong, unit, "error")
    assert [measure(v, "m") for v in (0, 0.12345, 99.96, 12345.6)] == [
        "0 m", "0.123 m", "100 m", "12,346 m"]  # fmt: skip
