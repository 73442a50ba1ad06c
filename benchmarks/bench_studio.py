"""The studio in a real browser: how soon the first view is there, how fast a slider redraws.

Times are taken inside the page by its own clock. "First view" runs from the last byte of the
server's answer about the world to the end of the first drawing; "redraw" from a slider's
input event, through the server and back, to the end of the drawing that shows it.
"""

from __future__ import annotations

import shutil
from typing import Any

from benchmarks import Figure

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
CITY_SIZE = 38  # 1,409 cells
MOVES = 15

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


def run() -> list[Figure]:
    from playwright.sync_api import sync_playwright

    from dphmm.studio.server import run_in_background

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        print("   no Chromium, so the studio was not measured; run: make system-packages")
        return []
    city = {
        "world": {"name": "city", "size": CITY_SIZE},
        "draft": {"changes": {"policy.distance": "0.8"}, "edges": None},
    }
    grid = {
        "world": {"name": "grid", "rows": 70, "columns": 72},
        "draft": {"changes": {"policy.distance": "0.3"}, "edges": None},
    }
    with run_in_background() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        page = browser.new_context(viewport={"width": 1360, "height": 820}).new_page()
        page.set_default_timeout(60_000)
        opened(page, address, city)  # compiles the kernels and makes the city
        firsts = [opened(page, address, city) for _ in range(5)]
        radii = [f"{0.4 + 0.1 * (move % 5):.1f}" for move in range(MOVES)]
        moves = [page.evaluate(REDRAW, radius) for radius in radii]
        opened(page, address, grid)
        radii = [f"{0.2 + 0.2 * (move % 5):.1f}" for move in range(MOVES)]
        many = [page.evaluate(REDRAW, radius) for radius in radii]
        frames = page.evaluate(PAN)
        browser.close()
    return [
        Figure(
            "studio: first view of 1,409 cells after the world's answer",
            median([first["ready"] - first["opened"] for first in firsts]),
            "ms",
            target="value < 1000",
        ),
        Figure(
            "studio: first view of 1,409 cells after the page's answer",
            median([first["ready"] - first["page"] for first in firsts]),
            "ms",
            target="value < 1000",
        ),
        Figure(
            f"studio: slider move to redraw, 1,409 cells, median of {MOVES}",
            median(moves),
            "ms",
            target="value < 100",
        ),
        Figure("studio: slider move to redraw, 1,409 cells, slowest", max(moves), "ms"),
        Figure(
            f"studio: slider move to redraw, 5,040 cells, up to 1 km, median of {MOVES}",
            median(many),
            "ms",
            target="value < 150",
        ),
        Figure(
            "studio: frame while zooming 5,040 cells, median",
            median(frames),
            "ms",
            target="value <= 33",
        ),
    ]
