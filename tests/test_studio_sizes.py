"""A ruler on every tab: nothing sticks out, is cut off, overprinted or too small to read.

Scenarios of every kind at every size of window: cells, hexagons, polygons, points without
coordinates, a model that follows the hours.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("uvicorn")
pytest.importorskip("playwright")

from dphmm import MarkovModel, Scenario
from dphmm.chain.chains import TimeVaryingModel
from dphmm.scenario import Policy, Settings, States
from dphmm.studio.server import run_in_background
from tests.studio_page import Studio
from tests.test_studio_browser import CONTRAST, WIDTHS
from tests.test_studio_maps import hexagons, polygons

__all__ = ["hexagons", "polygons"]

pytestmark = pytest.mark.browser

TABS = ("policy", "budget", "noise", "time", "walk", "compare", "save", "result")

RULER = """() => {
  const found = new Set();
  const name = (e) => `${e.tagName.toLowerCase()}#${e.id}.${e.getAttribute("class") ?? ""} ` +
    (e.textContent ?? "").trim().slice(0, 40);
  const seen = (e) => e.checkVisibility({ visibilityProperty: true });
  const covers = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
    a.top < b.bottom - 2 && b.top < a.bottom - 2;
  if (document.documentElement.scrollHeight > innerHeight) found.add("the page scrolls");
  for (const e of document.querySelectorAll("body *")) {
    if (!seen(e) || e.closest("option, .hidden, .skip, #map svg, #map-b svg")) continue;
    const box = e.getBoundingClientRect();
    const style = getComputedStyle(e);
    // What is hidden from eyes alone is a pixel large.
    if (box.width <= 1 || !box.height) continue;
    if (box.right > innerWidth + 1 || box.left < -1) found.add(`beside the window: ${name(e)}`);
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const cut = e.scrollWidth > e.clientWidth + 1;
    if (own && !e.ownerSVGElement && cut && style.overflowX === "hidden" &&
        !e.matches(".about")) found.add(`cut off: ${name(e)}`);
    if (e.matches("input[type=text], input[type=number]") && cut)
      found.add(`cut off: ${name(e)} ${e.value}`);
    const svg = e.tagName === "text" ? e.ownerSVGElement : null;
    const wide = svg?.viewBox.baseVal.width;
    const scale = wide ? svg.getBoundingClientRect().width / wide : 1;
    if (own && parseFloat(style.fontSize) * scale < 11.9 && e.tagName !== "SUP")
      found.add(`small: ${name(e)} ${(parseFloat(style.fontSize) * scale).toFixed(1)} px`);
  }
  const inside = document.querySelector("#map").getBoundingClientRect();
  for (const e of document.querySelectorAll("#map .state-label")) {
    const box = e.getBoundingClientRect();
    if (box.left < inside.left || box.right > inside.right || box.bottom > inside.bottom)
      found.add(`outside the map: ${e.textContent}`);
  }
  const rows = Object.values(Object.groupBy([...document.querySelectorAll(".tabs button")]
    .filter(seen), (e) => Math.round(e.getBoundingClientRect().top)));
  if (rows.length > 1 && rows.at(-1).length < rows[0].length - 1) found.add("a tab is left alone");
  for (const column of document.querySelectorAll(".controls, .effects"))
    if (seen(column) && column.scrollWidth > column.clientWidth) found.add(`wide: ${name(column)}`);
  for (const svg of document.querySelectorAll("svg[id]")) {
    const texts = [...svg.querySelectorAll("text")].filter((e) => seen(e) && e.textContent.trim());
    const boxes = texts.map((e) => e.getBoundingClientRect());
    const frame = svg.getBoundingClientRect();
    boxes.forEach((box, i) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1)
        found.add(`outside its plot: ${svg.id} ${texts[i].textContent}`);
      boxes.slice(i + 1).forEach((other, j) => {
        const both = `${texts[i].textContent} ${texts[i + 1 + j].textContent}`;
        if (covers(box, other)) found.add(`overprinted: ${svg.id} ${both}`);
      });
    });
  }
  return [...found];
}"""


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    """A chain of two places whose moves differ by the hour."""
    moves = [MarkovModel(np.eye(2)), MarkovModel(np.full((2, 2), 0.5))]
    states = States.on_plane([[0, 0], [3, 4]], labels=("home", "work"))
    chosen = Settings("town", Fraction(1), start="home", policy=Policy(complete=True))
    Scenario.from_settings(chosen, states, TimeVaryingModel(moves)).save(tmp_path / "town.toml")
    return tmp_path / "town.toml"


@pytest.mark.parametrize("kind", ["city", "hexagons", "polygons", "clinic", "hours"])
def test_nothing_sticks_out_or_is_cut_off_overprinted_or_small(
    browser: Any, kind: str, request: pytest.FixtureRequest
) -> None:
    example = kind in ("city", "clinic")
    path = None if example else request.getfixturevalue(kind)
    found = {}
    with run_in_background(path) as address:
        studio = Studio(browser, address, viewport={"width": 1440, "height": 900})
        page = studio.page
        studio.open(f"#{kind}" if example else "")
        studio.tab("walk")
        page.locator("#run-walk").click()
        page.wait_for_selector("#ledger-plot .line")
        everything = "document.querySelectorAll('details').forEach((e) => { e.open = true; })"
        page.evaluate(everything)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            for tab in TABS:
                if page.locator(f"#tab-{tab}").is_hidden():
                    continue
                studio.tab(tab)
                studio.settle()
                page.wait_for_timeout(250)  # plots follow a window that has come to rest
                wrong = page.evaluate(RULER)
                if wrong:
                    found[width, tab] = wrong
        page.set_viewport_size({"width": 1440, "height": 900})
        for _ in range(2):
            page.locator("#theme").click()
            for tab in TABS[:-1]:
                studio.tab(tab)
                studio.settle()
                if wrong := page.evaluate(CONTRAST):
                    found[page.locator("html").get_attribute("data-theme"), tab] = wrong
        studio.context.close()
    assert found == {}


ROWS = """() => new Set([...document.querySelectorAll(".map-bar > *")]
  .map((e) => e.getBoundingClientRect()).map(({ top, bottom }) => Math.round((top + bottom) / 20)))
  .size"""
RIGHTS = """(id) => [...document.querySelectorAll(`${id} tr > :last-child`)].map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getBoundingClientRect().right;
})"""


def test_tools_take_one_row_and_headers_stand_above_their_numbers(studio: Studio) -> None:
    for width in (1440, 1366, 1300):
        studio.page.set_viewport_size({"width": width, "height": 768})
        assert studio.page.evaluate(ROWS) == 1, width
    rights = studio.page.evaluate(RIGHTS, "#sides")
    assert len(rights) == 5
    assert max(rights) - min(rights) < 1


def test_a_ruler_would_find_what_is_wrong(studio: Studio) -> None:
    studio.page.evaluate(
        """() => {
          document.querySelector("#headline").style.whiteSpace = "nowrap";
          document.querySelector("#headline").style.fontSize = "9px";
          document.querySelector("#possible-note").style.marginLeft = "900px";
        }"""
    )
    wrong = " ".join(studio.page.evaluate(RULER))
    assert "small: p#headline" in wrong
    assert "wide: section#effects-section" in wrong
