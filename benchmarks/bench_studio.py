"""The studio in a real browser: how soon the first view is there, how fast a slider redraws.

Times are taken inside the page by its own clock. "First view" runs from the last byte of the
server's answer about the world to the end of the first drawing; "redraw" from a slider's
input event, through the server and back, to the end of the drawing that shows it, at a radius
that nobody has asked for before. Squares, hexagons and irregular polygons take turns, so that
they are compared on one machine under one load.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree, Voronoi

from benchmarks import Figure
from dphmm import MarkovModel, Scenario
from dphmm.scenario import Policy
from dphmm.studio.server import run_in_background
from dphmm.tables.maps import Map

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
VIEWPORT = {"width": 1360, "height": 820}
CITY_SIZE = 38  # 1,409 cells
MOVES = 15
ROUNDS = 3
MUNICH = (48.137, 11.575)
# Squares of 300 m and H3 cells that are 330 m apart: 5,041 and 5,057, 10,000 and 9,984 of them.
SIDES = {5_000: (21.3, 22.7), 10_000: (30.0, 31.9)}
# What is asked for 5,000 cells; twice that of 10,000.
FIRST, SLIDE, FRAME = 1_000, 150, 33

FIRST_VIEW = """() => {
  const ready = performance.getEntriesByName("studio-ready")[0].startTime;
  const answers = performance.getEntriesByType("resource")
    .filter((entry) => entry.name.endsWith("/api/open"));
  const page = performance.getEntriesByType("navigation")[0];
  return { ready, opened: answers[0].responseEnd, page: page.responseEnd };
}"""

REDRAW = """(value) => new Promise((resolve) => {
  const slider = document.getElementById("radius");
  const watcher = new MutationObserver(() => {
    watcher.disconnect();
    resolve(performance.now() - start);
  });
  watcher.observe(document.documentElement, { attributeFilter: ["data-drawn"] });
  const start = performance.now();
  slider.step = 1;  // the page sets its own with every answer
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""

PAN = """() => new Promise((resolve) => {
  const times = [];
  const map = document.querySelector("#map svg");
  const box = map.getBoundingClientRect();
  let last = null;
  let turn = 0;
  const step = (now) => {
    if (last !== null) times.push(now - last);
    last = now;
    turn += 1;
    map.dispatchEvent(new WheelEvent("wheel", { deltaY: turn % 20 < 10 ? -40 : 40,
      clientX: box.x + box.width / 2, clientY: box.y + box.height / 2,
      bubbles: true, cancelable: true }));
    if (times.length < 60) requestAnimationFrame(step);
    else resolve(times);
  };
  requestAnimationFrame(step);
})"""


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


FRAGMENT = """async (view) => {
  const token = document.querySelector('meta[name="studio-token"]').content;
  const headers = { "content-type": "application/json", "x-dphmm-studio": token };
  const body = JSON.stringify(view.world);
  const world = await (await fetch("/api/open", { method: "POST", headers, body })).json();
  return (await import("/static/js/state.js")).toFragment(view, world.fingerprint);
}"""


def fragment(page: Any, view: dict[str, Any]) -> str:
    """The link of a view, made by the page's own code."""
    found: str = page.evaluate(FRAGMENT, view)
    return found


def opened(page: Any, address: str, view: dict[str, Any]) -> dict[str, float]:
    page.goto("about:blank")
    page.goto(f"{address}#paper")
    page.wait_for_selector("html[data-drawn]", state="attached")
    link = fragment(page, view)
    page.goto("about:blank")
    page.goto(address + link)
    page.wait_for_selector("html[data-drawn]", state="attached")
    page.wait_for_load_state("networkidle")
    times: dict[str, float] = page.evaluate(FIRST_VIEW)
    return times


@dataclass
class Times:
    """What one world took in the browser, in milliseconds."""

    cells: int
    firsts: list[float] = field(default_factory=list)
    moves: list[float] = field(default_factory=list)
    frames: list[float] = field(default_factory=list)


def write_town(folder: Path, town: Map) -> Path:
    """A scenario on a map: a person stays or moves to a cell beside."""
    folder.mkdir()
    places = town.states.values(town.states.place_columns)
    tree = KDTree(places)
    apart = float(np.median(np.asarray(tree.query(places, k=2)[0])[:, 1]))
    row, column = tree.query_pairs(1.5 * apart, output_type="ndarray").T
    n_states = len(town.states)
    beside = sparse.coo_array((np.ones(len(row)), (row, column)), shape=(n_states, n_states))
    moves = beside + beside.T + sparse.eye_array(n_states)
    model = MarkovModel(sparse.csr_array(sparse.diags_array(1 / moves.sum(axis=1)) @ moves))
    scenario = Scenario(town.states, model, Policy(distance="600"), epsilon=1, unit="m")
    scenario.replace(states="states.csv").save(folder / "town.toml")
    (folder / "states.geojson").write_text(town.to_geojson())
    return folder / "town.toml"


def polygons(squares: Map, folder: Path) -> Map:
    """As many irregular polygons: what is nearest to a place somewhere in each square."""
    town = json.loads(squares.to_geojson())
    corners = np.array([one["geometry"]["coordinates"][0][:4] for one in town["features"]])
    low, high = corners.min(axis=1), corners.max(axis=1)
    points = low + (high - low) * np.random.default_rng(5).uniform(0.05, 0.95, low.shape)
    # Beyond each side they are mirrored, which is where the outer polygons end.
    south_west, north_east = low.min(axis=0), high.max(axis=0)
    mirrored = [
        np.where(axis == np.arange(2), 2 * end - points, points)
        for axis in range(2)
        for end in (south_west, north_east)
    ]
    parts = Voronoi(np.concatenate([points, *mirrored]))
    for number, one in enumerate(town["features"]):
        ring = parts.vertices[parts.regions[parts.point_region[number]]].tolist()
        one["geometry"] = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        one["properties"] = {"label": f"p{number}"}
    path = folder / "polygons.geojson"
    path.write_text(json.dumps(town), encoding="utf-8")
    return Map.of_places(path)


def measure(page: Any, address: str, times: Times, turn: int) -> None:
    """Open a scenario's page, move its slider and zoom."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-drawn]", state="attached")
    page.wait_for_load_state("networkidle")
    first = page.evaluate(FIRST_VIEW)
    # From two cells that hide each other up to a kilometre.
    radii = [400 + 40 * move + turn for move in range(MOVES)]
    moves = [page.evaluate(REDRAW, str(radius)) for radius in radii]
    page.wait_for_load_state("networkidle")
    frames = page.evaluate(PAN)
    if turn:  # the first compiles the kernels
        times.firsts.append(first["ready"] - first["page"])
        times.moves += moves
        times.frames += frames


def compare(browser: Any, count: int) -> Iterator[Figure]:
    """Squares beside hexagons and irregular polygons, about as many of each."""
    kilometres, across = SIDES[count]
    squares = Map.squares(*MUNICH, kilometres=kilometres, cell=0.3)
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        towns = {
            "squares": squares,
            "hexagons": Map.hexagons(*MUNICH, kilometres=across, resolution=9),
            "polygons": polygons(squares, Path(made)),
        }
        times = {kind: Times(len(town.states)) for kind, town in towns.items()}
        pages = {}
        for kind, town in towns.items():
            address = stack.enter_context(run_in_background(write_town(Path(made) / kind, town)))
            pages[kind] = (browser.new_context(viewport=VIEWPORT).new_page(), address)
            pages[kind][0].set_default_timeout(120_000)
        for turn in range(ROUNDS + 1):
            for kind, (page, address) in pages.items():
                measure(page, address, times[kind], turn)
        for page, _ in pages.values():
            page.context.close()
    parts = (
        ("first view after the page's answer", "firsts", FIRST, "<"),
        (f"slider to redraw, up to 1 km, median of {MOVES * ROUNDS}", "moves", SLIDE, "<"),
        ("frame while zooming, median", "frames", FRAME, "<="),
    )
    for words, name, most, sign in parts:
        values = {kind: median(getattr(taken, name)) for kind, taken in times.items()}
        for kind, taken in times.items():
            other = kind != "squares"
            yield Figure(
                f"studio: {words}, {taken.cells:,} {kind}",
                values[kind],
                "ms",
                against="squares" if other else "",
                ratio=values[kind] / values["squares"] if other else None,
                target=f"value {sign} {most * count // 5_000}",
            )


def city_figures(browser: Any, address: str) -> Iterator[Figure]:
    """The synthetic city of the examples."""
    city = {
        "world": {"name": "city", "size": CITY_SIZE},
        "draft": {"changes": {"policy.distance": "0.8"}, "edges": None},
    }
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.set_default_timeout(60_000)
    opened(page, address, city)  # compiles the kernels and makes the city
    firsts = [opened(page, address, city) for _ in range(5)]
    radii = [f"{0.4 + 0.1 * (move % 5):.1f}" for move in range(MOVES)]
    moves = [page.evaluate(REDRAW, radius) for radius in radii]
    page.context.close()
    yield Figure(
        "studio: first view of 1,409 cells after the world's answer",
        median([first["ready"] - first["opened"] for first in firsts]),
        "ms",
        target="value < 1000",
    )
    yield Figure(
        "studio: first view of 1,409 cells after the page's answer",
        median([first["ready"] - first["page"] for first in firsts]),
        "ms",
        target="value < 1000",
    )
    yield Figure(
        f"studio: slider move to redraw, 1,409 cells, median of {MOVES}",
        median(moves),
        "ms",
        target="value < 100",
    )
    yield Figure("studio: slider move to redraw, 1,409 cells, slowest", max(moves), "ms")


def run() -> list[Figure]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        print("   no Chromium, so the studio was not measured; run: make system-packages")
        return []
    with run_in_background() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        figures = list(city_figures(browser, address))
        for count in SIDES:
            figures += compare(browser, count)
        browser.close()
    return figures
