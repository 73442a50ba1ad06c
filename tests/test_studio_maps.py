"""The studio's map of states that are no squares: hexagons and other polygons as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm import MarkovModel, Scenario
from dphmm.report.ground import Ground
from dphmm.scenario import Policy
from dphmm.studio.drawing import LIKELIEST
from dphmm.studio.examples import open_example
from dphmm.studio.requests import Open
from dphmm.studio.saving import open_file
from dphmm.studio.server import run_in_background
from dphmm.tables.maps import Map
from tests.studio_page import Studio

LAKE = [[11.52, 48.12], [11.53, 48.12], [11.53, 48.13], [11.52, 48.13], [11.52, 48.12]]


def square(west: float, south: float, side: float) -> list[list[float]]:
    east, north = west + side, south + side
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def districts() -> dict[str, Any]:
    """Two squares side by side and a third far away, the first with a hole."""
    rings = [
        [square(11.5, 48.1, 0.05), LAKE],
        [square(11.55, 48.1, 0.05)],
        [square(11.8, 48.3, 0.05)],
    ]
    features = [
        {
            "type": "Feature",
            "properties": {"label": name},
            "geometry": {"type": "Polygon", "coordinates": ring},
        }
        for name, ring in zip(("west", "east", "alone"), rings, strict=True)
    ]
    return {"type": "FeatureCollection", "features": features}


def write_scenario(folder: Path, town: Map, **settings: Any) -> Path:
    n_states = len(town.states)
    scenario = Scenario(
        town.states,
        MarkovModel(np.full((n_states, n_states), 1 / n_states)),
        Policy(distance=settings.pop("distance")),
        epsilon=1,
        unit="m",
    ).replace(states="states.csv", **settings)
    scenario.save(folder / "town.toml")
    (folder / "states.geojson").write_text(town.to_geojson())
    return folder / "town.toml"


@pytest.fixture
def polygons(tmp_path: Path) -> Path:
    (tmp_path / "given.geojson").write_text(json.dumps(districts()))
    town = Map.of_places(tmp_path / "given.geojson")
    return write_scenario(tmp_path, town, distance="5000", repair="none", full_rank=False)


@pytest.fixture
def hexagons(tmp_path: Path) -> Path:
    pytest.importorskip("h3")
    town = Map.hexagons(48.137, 11.575, kilometres=9, resolution=8)
    return write_scenario(tmp_path, town, distance="1200")


# Laws


def test_outlines_are_those_of_reports(polygons: Path) -> None:
    opened = open_file(polygons)
    outlines = opened.described["outlines"]
    rings = Ground.read(opened.scenario, polygons.parent).rings
    assert [len(own) for own in outlines] == [2, 1, 1]
    for flat, own in zip(outlines, rings, strict=True):
        for corners, ring in zip(flat, own, strict=True):
            np.testing.assert_allclose(np.reshape(corners, (-1, 2)), ring[:-1], atol=0.5)


def test_a_slider_ends_after_a_few_hexagons(hexagons: Path) -> None:
    radius = open_file(hexagons).described["radius"]
    assert 3_000 < float(radius["most"]) < 8_000


def test_squares_of_a_grid_stay_squares(tmp_path: Path) -> None:
    town = Map.squares(48.137, 11.575, kilometres=6, cell=1)
    about = open_file(write_scenario(tmp_path, town, distance="2000")).described
    assert about["outlines"] is None
    assert about["cell"] is not None


def test_scattered_places_are_points_with_a_slider_as_far_as_they_reach(tmp_path: Path) -> None:
    places = np.random.default_rng(3).integers(0, 4_000, (40, 2))
    anywhere = MarkovModel(np.full((40, 40), 1 / 40))
    Scenario(places, anywhere, Policy(distance=300), epsilon=1).save(tmp_path / "town.toml")
    about = open_file(tmp_path / "town.toml").described
    assert about["cell"] is None
    assert float(about["radius"]["most"]) > 3_000


def test_of_many_moves_the_likeliest_from_each_place_are_drawn(tmp_path: Path) -> None:
    chances = np.random.default_rng(5).permuted(np.tile(np.arange(1.0, 21), (20, 1)), axis=1)
    model = MarkovModel(chances / chances.sum(axis=1, keepdims=True))
    Scenario(np.arange(20.0), model, Policy(complete=True), epsilon=1).save(tmp_path / "town.toml")
    about = open_file(tmp_path / "town.toml").described
    arrows = np.reshape(about["moves"], (-1, 2))
    assert about["all_moves"] is False
    np.fill_diagonal(chances, 0)
    likeliest = np.argsort(-chances, axis=1)[:, :LIKELIEST]
    drawn = [sorted(arrows[arrows[:, 0] == state, 1].tolist()) for state in range(20)]
    assert drawn == np.sort(likeliest, axis=1).tolist()
    paper = open_example(Open(name="paper"))
    moves = np.argwhere(paper.scenario.model.transition.toarray() > 0).tolist()
    assert paper.described["all_moves"] is True
    drawn = np.reshape(paper.described["moves"], (-1, 2)).tolist()
    assert drawn == [[a, b] for a, b in moves if a != b]


# The page


@pytest.fixture
def drawn(browser: Any, polygons: Path) -> Iterator[Studio]:
    with run_in_background(polygons) as address:
        studio = Studio(browser, address).open()
        yield studio
        assert studio.problems == []
        studio.context.close()


PROBE = """async (given) => {
  const { Outlines } = await import("/static/js/outlines.js");
  const outlines = new Outlines(given.rings);
  const map = { x: (x) => x, y: (y) => -y, size: [1e6, 1e6] };
  const said = [];
  const context = { moveTo: (x, y) => said.push([x, -y]), lineTo: (x, y) => said.push([x, -y]) };
  outlines.hatch(context, map, 0, given.apart);
  return { at: given.points.map(([x, y]) => outlines.at(x, y)), bounds: outlines.bounds,
           span: outlines.span, hatched: said };
}"""


@pytest.mark.browser
def test_who_is_under_the_pointer_and_hatching_follow_borders_and_holes(studio: Studio) -> None:
    ring, hole, other = (
        [0, 0, 10, 0, 10, 10, 0, 10],
        [4, 4, 6, 4, 6, 6, 4, 6],
        [10, 0, 14, 0, 14, 4],
    )
    points = [[2, 2], [5, 5], [13, 1], [11, 3], [20, 20]]
    given = {"rings": [[ring, hole], [other]], "points": points, "apart": 1.7}
    found = studio.page.evaluate(PROBE, given)
    assert found["at"] == [0, None, 1, None, None]
    assert found["bounds"] == [0, 0, 14, 10]
    ends = np.reshape(found["hatched"], (-1, 2, 2))
    middles = ends.mean(axis=1)
    assert len(ends) > 8
    inside = np.all((middles > 0) & (middles < 10), axis=1)
    in_hole = np.all((middles > 4) & (middles < 6), axis=1)
    assert inside.all()
    assert not in_hole.any()


@pytest.mark.browser
def test_a_side_of_two_polygons_is_drawn_once(studio: Studio) -> None:
    code = """async (rings) => {
      const { Outlines } = await import("/static/js/outlines.js");
      return new Outlines(rings).sides;
    }"""
    west, east = [0, 0, 1, 0, 1, 1, 0, 1], [1, 0, 2, 0, 2, 1, 1, 1]
    sides = [
        sorted([(a, b), (c, d)]) for a, b, c, d in studio.page.evaluate(code, [[west], [east]])
    ]
    assert len(sides) == 7
    assert sides.count([(1, 0), (1, 1)]) == 1
    assert [(0, 0), (0, 1)] in sides
    assert [(2, 0), (2, 1)] in sides


@pytest.mark.browser
def test_polygons_are_drawn_named_and_hatched_as_they_are(drawn: Studio) -> None:
    drawn.tab("save")
    picture = drawn.download("#download-svg").read_text(encoding="utf-8")
    paths = re.findall(r'<path d="(M[^"]*z)" fill="#[^"]*"', picture)
    # The one in the west has a hole; the lonely one is there once more, as nobody hides it.
    assert sorted(path.count("z") for path in paths) == [1, 1, 1, 2]
    assert "exposed (1)" in drawn.page.locator("#legend").inner_text()
    names = drawn.page.locator(".state-label").all_text_contents()
    assert set(names) <= {"west", "east", "alone"}
    assert "alone" in names


PIXEL = """([x, y]) => {
  const canvas = document.querySelector("#map canvas");
  const density = canvas.width / canvas.clientWidth;
  return [...canvas.getContext("2d").getImageData(x * density, y * density, 1, 1).data];
}"""


@pytest.mark.browser
def test_a_hole_stays_free_and_what_two_polygons_share_is_filled(
    browser: Any, tmp_path: Path
) -> None:
    rings = [
        [square(11.5, 48.1, 0.05), square(11.51, 48.11, 0.01)],
        [square(11.53, 48.13, 0.05)],
    ]
    features = [
        {
            "type": "Feature",
            "properties": {"label": name},
            "geometry": {"type": "Polygon", "coordinates": ring},
        }
        for name, ring in zip(("one", "two"), rings, strict=True)
    ]
    given = tmp_path / "given.geojson"
    given.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    path = write_scenario(tmp_path, Map.of_places(given), distance="9000")
    with run_in_background(path) as address:
        studio = Studio(browser, address).open()
        studio.tool("look")
        # From west to east 0.08 degrees, from south to north as many: where a degree is drawn.
        corners = studio.page.evaluate(
            """async () => {
              const canvas = document.querySelector("#map canvas");
              const { width, height } = canvas;
              const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
              const found = [width, height, 0, 0];
              for (let i = 3; i < data.length; i += 4) {
                if (data[i] < 250) continue;
                const [x, y] = [((i - 3) / 4) % width, Math.floor((i - 3) / 4 / width)];
                found[0] = Math.min(found[0], x); found[1] = Math.min(found[1], y);
                found[2] = Math.max(found[2], x); found[3] = Math.max(found[3], y);
              }
              const density = width / canvas.clientWidth;
              return found.map((value) => value / density);
            }"""
        )
        left, top, right, bottom = corners

        def at(east: float, north: float) -> list[int]:
            x = left + (right - left) * (east - 11.5) / 0.08
            y = bottom - (bottom - top) * (north - 48.1) / 0.08
            return list(studio.page.evaluate(PIXEL, [x, y]))

        assert at(11.514, 48.117)[3] == 0, "a lake is no part of its district"
        one, shared, two = at(11.505, 48.14), at(11.535, 48.146), at(11.57, 48.17)
        assert one == shared == two
        assert shared[3] == 255
        studio.context.close()


COUNTED = """async () => {
  const counts = { styles: 0, paths: 0 };
  const style = globalThis.getComputedStyle;
  globalThis.getComputedStyle = (...given) => {
    counts.styles += 1;
    return style.apply(globalThis, given);
  };
  const begin = CanvasRenderingContext2D.prototype.beginPath;
  CanvasRenderingContext2D.prototype.beginPath = function counted() {
    counts.paths += 1;
    return begin.apply(this);
  };
  document.getElementById("zoom-in").click();
  await new Promise((resolve) => { setTimeout(resolve, 600); });
  const many = counts.paths;
  counts.paths = counts.styles = 0;
  document.getElementById("zoom-fit").click();
  await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
  return { ...counts, many };
}"""


@pytest.mark.browser
def test_a_drawing_of_hexagons_asks_for_no_style_and_begins_no_path_for_each_side(
    browser: Any, hexagons: Path
) -> None:
    with run_in_background(hexagons) as address:
        studio = Studio(browser, address).open()
        studio.settle()
        counts = studio.page.evaluate(COUNTED)
        cells = len(open_file(hexagons).scenario.states)
        assert 0 < counts["styles"] < 20 < cells
        assert cells <= counts["paths"] < 1.5 * cells
        studio.context.close()


@pytest.mark.browser
def test_every_hexagon_is_drawn_and_a_name_that_does_not_fit_is_left_out(
    browser: Any, hexagons: Path
) -> None:
    with run_in_background(hexagons) as address:
        studio = Studio(browser, address).open()
        studio.tab("save")
        picture = studio.download("#download-svg").read_text(encoding="utf-8")
        shapes = re.findall(r'<path d="(M[^"]*z)" fill="#[^"]*"', picture)
        count = len(open_file(hexagons).scenario.states)
        assert count > 20
        assert sum(shape.count("z") for shape in shapes) == count
        assert studio.page.locator(".state-label").count() == 0, "names are wider than cells"
        assert studio.axe() == []
        assert studio.problems == []
        studio.context.close()


@pytest.mark.browser
def test_errors_beyond_the_picture_are_arrows_and_no_points_of_the_curve(studio: Studio) -> None:
    page = studio.page
    page.locator('#curve-axes label:has([value="epsilon"])').click()
    page.wait_for_selector("#curve-plot .point.over")
    over = page.locator("#curve-plot .point.over")
    assert over.locator("circle.dot").count() == 0
    assert over.locator("path.dot").count() == over.count()
    # The line leaves the picture instead of running along its edge.
    ys = page.evaluate(
        """() => document.querySelector("#curve-plot .line.a").getAttribute("d")
          .slice(1).split("L").map((pair) => Number(pair.split(",")[1]))"""
    )
    assert min(ys) < -20
    assert sorted(ys) == ys, "errors fall with the price"


@pytest.mark.browser
def test_where_every_error_is_beyond_a_guess_the_curve_is_still_seen(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("city")
    studio.expect("#possible-note", re.compile("of 5"))
    page.locator("#layer-category").check()
    studio.expect("#headline", re.compile("typically"))
    page.wait_for_selector(".warning:has-text('no better than silence')")
    page.wait_for_selector("#curve-plot .point.now")
    assert page.locator("#curve-plot .point.now.over").count() == 0
    assert page.locator("#curve-plot .point:not(.over)").count() >= 1


@pytest.mark.browser
def test_what_a_walk_told_is_not_shown_as_the_policys_elsewhere(studio: Studio) -> None:
    page = studio.page
    studio.tab("walk")
    page.locator("#run-walk").click()
    page.wait_for_selector("#error-plot .line.a")
    assert page.locator("#colour").input_value() == "posterior"
    assert "simulated answers" in page.locator("#map-status").inner_text()
    for tab in ("compare", "save", "policy"):
        studio.tab(tab)
        assert page.locator("#colour").input_value() == "category"
        assert "likely after it" not in page.locator("#legend").inner_text()
        assert "simulated" not in page.locator("#map-status").inner_text()
    studio.tab("walk")
    assert page.locator("#colour").input_value() == "posterior"


@pytest.mark.browser
def test_a_film_has_a_map_worth_looking_at_on_a_telephone(browser: Any, address: str) -> None:
    studio = Studio(browser, address, viewport={"width": 400, "height": 800}).open("#city")
    studio.tab("walk")
    run = studio.page.locator("#run-walk")
    assert run.bounding_box()["y"] + run.bounding_box()["height"] <= 800
    run.click()
    studio.page.wait_for_selector("#walk-time")
    assert studio.page.locator("#map").bounding_box()["height"] >= 180
    play = studio.page.locator("#play").bounding_box()
    assert play["y"] + play["height"] <= 800
    studio.context.close()
