"""Base maps: cut to their frame, drawn where the states are, and refused in one line."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import MarkovModel, PolicyGraph, Scenario
from dphmm.errors import DataError, ScenarioError
from dphmm.report.figures import Drawings
from dphmm.report.ground import Ground
from dphmm.report.tracks import TrackMap
from dphmm.scenario import Policy, Settings
from dphmm.tables import basemap
from dphmm.tables.basemap import kind_of, read_base
from dphmm.tables.maps import Map
from dphmm.tables.states import States
from tests.scenarios import is_one_line, paper_scenario, run, trips, written

NEAR = 0.051
"""Coordinates on a drawing are written with one decimal."""
LOW, HIGH = np.zeros(2), np.full(2, 10.0)


def feature(shape: str, places: Any, **properties: Any) -> dict[str, Any]:
    geometry = {"type": shape, "coordinates": places}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def write(path: Path, *features: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return path


def on_earth(town: Map, folder: Path, base: Path | None = None) -> Scenario:
    """A scenario on disk of a map's states, and its outlines beside them."""
    n_states = len(town.states)
    scenario = Scenario(
        town.states, MarkovModel(np.full((n_states, n_states), 1 / n_states)),
        PolicyGraph(n_states, [[0, 1]]), epsilon=1, unit="m",
    )  # fmt: skip
    base_name = None if base is None else base.name
    scenario = scenario.replace(states="states.csv", base=base_name)
    scenario.save(folder / "town.toml")
    (folder / "states.geojson").write_text(town.to_geojson())
    return Scenario.load(folder / "town.toml")


def corners(path: str) -> np.ndarray:
    """The points of the first ring of a path's data."""
    ring = path.split("z")[0].removeprefix("M")
    return np.array([[float(v) for v in place.split()] for place in ring.split("L")])


# Where things are


@pytest.mark.parametrize("kind", ["squares", "hexagons"])
def test_a_known_corner_of_the_base_lands_on_the_corner_of_its_cell(
    kind: str, tmp_path: Path
) -> None:
    if kind == "hexagons":
        pytest.importorskip("h3")
        town = Map.hexagons(48.137, 11.575, kilometres=3, resolution=8)
    else:
        town = Map.squares(48.137, 11.575, kilometres=3, cell=0.5)
    outline = town.outlines[7]
    base = write(
        tmp_path / "base.geojson",
        outline.feature({"kind": "water"}),
        feature("LineString", outline.parts[0][0].tolist(), highway="primary"),
    )
    scenario = on_earth(town, tmp_path, base)
    ground = Ground.read(scenario, tmp_path)
    cell = corners(ground.shapes(ground.frame)[7])
    paths = dict(re.findall(r'd="([^"]*)" class="base-(\w+)"', ground.draw_base()))
    drawn = {kind: corners(data) for data, kind in paths.items()}
    assert set(drawn) == {"water", "street"}
    for place in cell:
        for kind_drawn in drawn.values():
            apart = np.abs(kind_drawn - place).max(axis=1).min()
            # A base map is simplified to a 1200th of its frame: less than half a unit.
            assert apart <= NEAR


def test_states_without_degrees_have_a_base_in_their_own_coordinates(tmp_path: Path) -> None:
    toml = written(tmp_path, base="base.geojson")
    write(tmp_path / "base.geojson", feature("LineString", [[0, 0], [2, 1]], kind="street"))
    scenario = Scenario.load(toml)
    ground = Ground.read(scenario, tmp_path)
    assert ground.base is not None
    (line,) = ground.base.lines["street"]
    np.testing.assert_array_equal(line, [[0, 0], [2, 1]])
    (data,) = re.findall(r'd="M([^"]*)" class="base-street"', ground.draw_base())
    drawn = np.array([[float(v) for v in place.split()] for place in data.split("L")])
    np.testing.assert_allclose(drawn, ground.frame.place([[0, 0], [2, 1]]), atol=NEAR)


@pytest.mark.parametrize("shape", ["square", "hexagon", "polygon", "point"])
def test_cells_points_hexagons_and_polygons_are_drawn_around_their_places(
    shape: str, tmp_path: Path
) -> None:
    if shape == "point":
        ground = Ground(paper_scenario())
    elif shape == "square":
        places = [[x, y] for x in range(6) for y in range(6)]
        ground = Ground(Scenario(places, MarkovModel(np.eye(36)), Policy(complete=True), epsilon=1))
    else:
        if shape == "hexagon":
            pytest.importorskip("h3")
            town = Map.hexagons(48.137, 11.575, kilometres=2, resolution=9)
        else:
            town = Map.squares(-33.9, 151.2, kilometres=2, cell=0.5)
        ground = Ground.read(on_earth(town, tmp_path), tmp_path)
        assert ground.outlines
    shapes = ground.shapes(ground.frame)
    centres = ground.frame.place(ground.places)
    assert len(shapes) == len(centres)
    for data, (x, y) in zip(shapes, centres, strict=True):
        if shape in ("hexagon", "polygon"):
            ring = corners(data)
            assert len(ring) == (6 if shape == "hexagon" else 4)
            np.testing.assert_allclose(ring.mean(axis=0), [x, y], atol=1.0)
        else:
            left, top = (float(v) for v in re.match(r"M([\d.-]+) ([\d.-]+)", data).groups())
            assert left < x
            assert top <= y + NEAR
    page = Drawings(ground).map() + TrackMap(ground).shared
    assert 'id="cells"' in page


# Cutting


@given(st.lists(st.tuples(st.floats(-20, 30), st.floats(-20, 30)), min_size=3, max_size=9))
def test_what_is_cut_lies_within_its_box_and_keeps_what_is_inside(
    places: list[tuple[float, float]],
) -> None:
    ring = np.array(places)
    cut = basemap._clip_ring(ring, LOW, HIGH)
    for piece in (cut, *basemap._clip_line(ring, LOW, HIGH)):
        if len(piece):
            assert (piece >= LOW - 1e-9).all()
            assert (piece <= HIGH + 1e-9).all()
    inside = [place for place in places if 0 < place[0] < 10 and 0 < place[1] < 10]
    for place in inside:
        assert np.abs(cut - np.array(place)).sum(axis=1).min() < 1e-9


def test_a_ring_around_the_box_becomes_the_box_and_a_line_through_it_two_points() -> None:
    around = np.array([[-5.0, -5], [20, -5], [20, 20], [-5, 20]])
    assert sorted(map(tuple, basemap._clip_ring(around, LOW, HIGH).tolist())) == [
        (0, 0), (0, 10), (10, 0), (10, 10),
    ]  # fmt: skip
    (piece,) = basemap._clip_line(np.array([[-5.0, 5], [20, 5]]), LOW, HIGH)
    np.testing.assert_allclose(piece, [[0, 5], [10, 5]], atol=1e-12)
    twice = basemap._clip_line(np.array([[-1.0, 2], [3, 2], [3, 12], [5, 12], [5, 8]]), LOW, HIGH)
    assert [len(piece) for piece in twice] == [3, 2]


def test_points_that_nobody_can_tell_apart_are_left_out() -> None:
    straight = np.stack([np.linspace(0, 10, 500), np.zeros(500)], axis=1)
    assert len(basemap._simplify(straight, 0.01, LOW)) == 2
    wavy = np.stack([np.linspace(0, 10, 500), np.sin(np.linspace(0, 30, 500))], axis=1)
    seen = basemap._simplify(wavy, 0.05, LOW)
    assert 50 < len(seen) < 500


@pytest.mark.parametrize(
    ("properties", "closed", "kind"),
    [
        ({"natural": "water"}, True, "water"),
        ({"waterway": "river"}, False, "stream"),
        ({"leisure": "park"}, True, "green"),
        ({"landuse": "residential"}, True, "district"),
        ({"highway": "motorway"}, False, "street"),
        ({"highway": "footway"}, False, "path"),
        ({"kind": None, "class": 7}, False, "street"),
    ],
)
def test_features_are_told_apart_by_their_usual_names(
    properties: dict[str, Any], closed: bool, kind: str
) -> None:
    assert kind_of(properties, closed=closed) == kind


# The scenario's key


def test_the_key_is_read_written_and_no_part_of_the_law(tmp_path: Path) -> None:
    toml = written(tmp_path, base="streets.geojson")
    assert '[map]\nbase = "streets.geojson"' in toml.read_text()
    settings = Settings.read(toml)
    assert settings.base == "streets.geojson"
    with_base, without = Scenario.load(toml), paper_scenario()
    assert with_base.law == without.law
    assert with_base.terms.law_parts == without.terms.law_parts
    with pytest.raises(ScenarioError, match=r"t\.toml:3: map\.bass is not a key.*base"):
        Settings.parse('epsilon = 1\n[map]\nbass = "x"', "t.toml")
    with pytest.raises(ScenarioError, match=r"map\.base must be text, got 7"):
        Settings.parse("epsilon = 1\n[map]\nbase = 7", "t.toml")


# Bad input


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "base map must be readable"),
        ("", "file must be GeoJSON"),
        ("{}", "file must be GeoJSON"),
        (json.dumps(feature("Polygon", [[[0, "x"]]])), "must have lists of places"),
        (json.dumps(feature("LineString", 7)), "must have lists of places"),
        (json.dumps({"type": "Feature", "geometry": [1]}), "must have geometries and properties"),
        (json.dumps(feature("LineString", [[900, 900], [901, 901]])), "got none there"),
        (json.dumps(feature("LineString", [[0, float("nan")], [1, 1]])), "lists of places"),
    ],
)
def test_a_base_that_cannot_be_drawn_gets_one_line(
    tmp_path: Path, content: str | None, says: str
) -> None:
    toml = written(tmp_path, base="base.geojson")
    if content is not None:
        (tmp_path / "base.geojson").write_text(content)
    (tmp_path / "trips.csv").write_text(trips(("ann", 1, 3)))
    out = tmp_path / "released.csv"
    assert run("release", toml, tmp_path / "trips.csv", "-o", out).exit_code == 0
    result = run("report", toml, out, "-o", tmp_path / "report.html")
    assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
    assert says in result.stderr
    assert "base.geojson" in result.stderr


def test_a_base_that_is_too_large_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    lines = [feature("LineString", rng.uniform(0, 10, (300, 2)).tolist()) for _ in range(4)]
    path = write(tmp_path / "base.geojson", *lines)
    states = States.at([[0.0, 0.0], [10.0, 10.0]])
    assert read_base(path, states, LOW, HIGH).points > 1000
    monkeypatch.setattr(basemap, "MOST_POINTS", 500)
    with pytest.raises(DataError, match="at most 500 points within the map, got 1,"):
        read_base(path, states, LOW, HIGH)
    monkeypatch.setattr(basemap, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match="at most 0 MB, got 0 MB; cut it"):
        read_base(path, states, LOW, HIGH)


# On pages


def test_report_and_studio_draw_the_base_in_the_same_colours_and_places(tmp_path: Path) -> None:
    from dphmm.studio.saving import open_file

    toml = written(tmp_path, base="base.geojson")
    road = [[0, 0], [2, 1], [3, 3]]
    lake = [[[0, 0], [1, 0], [1, 1], [0, 0]]]
    write(
        tmp_path / "base.geojson",
        feature("LineString", road, highway="primary"),
        feature("Polygon", lake, natural="water"),
    )
    told = open_file(toml).described
    assert told["base"]["lines"] == {"street": [[0, 0, 2, 1, 3, 3]]}
    assert list(told["base"]["areas"]) == ["water"]
    scripts = Path(basemap.__file__).parents[1] / "studio" / "static" / "js" / "basemap.js"
    css = Path(basemap.__file__).parents[1] / "report" / "templates" / "page.css"
    themes = re.findall(r"= \{ water: .*\}", scripts.read_text())
    for number, theme in enumerate(themes):
        for kind in ("water", "green", "street"):
            (colour,) = re.findall(rf'{kind}: "(#\w+)"', theme)
            assert re.findall(rf"--{kind}: (#\w+)", css.read_text())[number] == colour
    assert len(themes) == 2


def test_a_page_has_the_base_once_under_every_map(tmp_path: Path) -> None:
    toml = written(tmp_path, base="base.geojson")
    write(tmp_path / "base.geojson", feature("LineString", [[0, 0], [2, 1]], kind="street"))
    (tmp_path / "trips.csv").write_text(trips(("ann", 1, 3), ("bob", 1, 3)))
    out, page = tmp_path / "released.csv", tmp_path / "report.html"
    assert run("release", toml, tmp_path / "trips.csv", "-o", out).exit_code == 0
    result = run("report", toml, out, "-o", page)
    assert result.exit_code == 0, result.stderr
    text = page.read_text()
    assert text.count('<path d="M') > 1
    assert len(re.findall(r'<path d="[^"]*" class="base-street"', text)) == 1
    assert text.count('<use href="#base"/>') == 2  # states, protection
    assert text.count('<use href="#ground"/>') == 3  # two people, one state and its neighbours
    assert "under the states" in text


def test_an_archive_of_the_studio_holds_the_base_map(tmp_path: Path) -> None:
    from dphmm.studio.requests import Draft
    from dphmm.studio.saving import open_file, to_zip

    toml = written(tmp_path, base="base.geojson")
    base = write(tmp_path / "base.geojson", feature("LineString", [[0, 0], [2, 1]]))
    with ZipFile(BytesIO(to_zip(open_file(toml), Draft()))) as archive:
        assert archive.read("base.geojson") == base.read_bytes()


def test_a_studio_without_its_base_map_says_so_in_one_line(tmp_path: Path) -> None:
    from dphmm.studio.saving import open_file

    toml = written(tmp_path, base="nowhere.geojson")
    with pytest.raises(DataError, match=r"nowhere\.geojson: base map must be readable"):
        open_file(toml)
