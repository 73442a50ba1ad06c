"""The report in Chromium: it moves, fits, can be read, printed and used without a mouse.

Finding 11 of the studio's issue, as far as it needs a browser: nothing overprints, several people,
answers outside the frame, text of at least 12 px.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import Limit, MarkovModel
from dphmm.noise.randomness import SeededRandomness
from dphmm.report import TrackFacts, scenario_page
from dphmm.scenario import Clock, Policy, Scenario, States
from dphmm.scenario.released import Track
from tests.scenarios import run

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
WIDTHS = (1440, 1280, 1024, 720, 400)
SMALLEST = 12.0
"""Pixels of the smallest text."""
STEPS = 40
"""Half-hourly steps: they pass midnight."""
EVERY = 4


def town(cells: int = 8) -> Scenario:
    """A square of cells with a category each, a clock of dates and a limit of two parts."""
    side = 250.0
    middles = (np.arange(cells) - (cells - 1) / 2) * side
    places = np.array([[x, y] for y in middles for x in middles])
    labels = tuple(f"r{row}c{column}" for row in range(cells) for column in range(cells))
    kinds = tuple(("home", "work", "park")[number % 3] for number in range(len(labels)))
    states = States(labels, {"x": places[:, 0], "y": places[:, 1]}, {"category": kinds})
    return Scenario(
        states,
        MarkovModel(_walk(places)),
        Policy(distance=Fraction(400)),
        epsilon=2,
        limit=Limit.read("60 per 1 day, 90 in all"),
        unit="m",
        step=10,
        clock=Clock("30 min", zone="Europe/Berlin"),
        start="uniform",
    )


def _walk(places: np.ndarray) -> np.ndarray:
    """Moves that are likelier the nearer they lead."""
    apart = np.hypot(*(places[:, None] - places[None, :]).transpose(2, 0, 1))
    weights = np.exp(-apart / 120)
    return weights / weights.sum(axis=1, keepdims=True)


def day(scenario: Scenario, person: str, seed: int, epsilon: object = None) -> TrackFacts:
    """A day of somebody who walks by the model, answered every few steps."""
    rng = np.random.default_rng(seed)
    first = scenario.settings.clock.slot_of("2024-04-30T14:00:00Z")
    path = scenario.model.sample(STEPS, rng=rng, start=scenario.start)
    stream = scenario.stream(person, time=first, randomness=SeededRandomness(rng))
    track = Track(person, stream)
    start = datetime(2024, 4, 30, 14, 30, tzinfo=UTC)
    for number, state in enumerate(path.tolist()):
        if number % EVERY:
            release = stream.repeat([])
        else:
            release = stream.release(state, epsilon)
        track.releases.append(release)
        track.protected.append(stream._step if number % EVERY == 0 else None)
        track.times.append(f"{start + timedelta(minutes=30 * number):%Y-%m-%dT%H:%M:%SZ}")
        track.slots.append(first + number + 1)
    return TrackFacts(track)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people; the answers about the last are so noisy that most lie outside the map."""
    scenario = town()
    people = [
        day(scenario, "ann", 1),
        day(scenario, "bob", 2),
        day(scenario, "cyd", 3, Fraction(1, 5)),
    ]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(scenario_page(scenario, people))
    return path


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(chromium), args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    """A function that opens the report; what goes wrong on a page, or is asked for, fails."""
    contexts, wrong, asked = [], [], []

    def open_page(**options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on(
            "console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
    assert set(asked) == {report.as_uri()}


def shown(page: Any) -> Any:
    return page.locator("section.person:not([hidden])")


OVERLAPS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll("main svg:not(.key):not(.shared)")) {
    if (!svg.getClientRects().length) continue;
    const texts = [...svg.querySelectorAll("text")].map((one) => [
      one.textContent, one.getBoundingClientRect()]);
    const frame = svg.getBoundingClientRect();
    texts.forEach(([text, a], n) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1) found.push(`${text} is cut off`);
      for (const [other, b] of texts.slice(n + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 2) found.push(`${text} on ${other}`);
      }
    });
  }
  return found;
}"""

SMALL = """(least) => [...document.querySelectorAll("main *, .tip")].filter((one) =>
  [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) &&
  one.getClientRects().length &&
  parseFloat(getComputedStyle(one).fontSize) *
    (one.ownerSVGElement ? one.getScreenCTM().a : 1) < least
).map((one) => one.textContent.trim().slice(0, 30))"""


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_overprints_or_is_too_small(opened: Any, width: int) -> None:
    page = opened(viewport={"width": width, "height": 900})
    for number in ("0", "2"):
        page.locator("#person").select_option(number)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVERLAPS) == []
        assert page.evaluate(SMALL, SMALLEST) == []


def test_the_slider_moves_map_belief_estimates_and_charts_together(opened: Any) -> None:
    page = opened()
    section = shown(page)
    assert section.locator("g.heat path").count() == 0
    assert section.locator("line.cursor.shown").count() == 0
    seen = []
    for step in (3, 20):
        page.locator("#time").fill(str(step))
        page.wait_for_function("() => document.querySelector('section:not([hidden]) g.heat path')")
        cursor = section.locator("line.cursor.shown")
        assert cursor.count() == 3  # two parts of the limit, and the errors
        assert section.locator("g.moment circle.mark").count() == 3
        heat = section.locator("g.heat path").evaluate_all("all => all.map(e => e.outerHTML)")
        marks = section.locator("g.moment circle").evaluate_all("all => all.map(e => e.outerHTML)")
        seen.append(
            (cursor.first.get_attribute("x1"), heat, marks, page.locator("#clock").inner_text())
        )
    for first, second in zip(*seen, strict=True):
        assert first != second
    assert seen[0][3] == "30 Apr 18:00 Europe/Berlin (30 Apr 2024 16:00 UTC)"
    before = section.locator("g.heat").inner_html()
    page.get_by_label("at the time").check()
    page.wait_for_function(
        "(before) => document.querySelector('section:not([hidden]) g.heat').innerHTML !== before",
        arg=before,
    )
    page.get_by_role("button", name="Whole time").click()
    assert section.locator("line.cursor.shown").count() == 0
    assert section.locator("g.heat path").count() == 0


def test_the_heat_is_the_belief(opened: Any) -> None:
    """Every shade on the map holds as many cells as the belief has in its class."""
    page = opened()
    page.locator("#time").fill("9")
    page.wait_for_function("() => document.querySelector('section:not([hidden]) g.heat path')")
    cells = (
        shown(page)
        .locator("g.heat path")
        .evaluate_all(
            "all => Object.fromEntries(all.map(e =>"
            " [e.getAttribute('class'), e.getAttribute('d').split('z').length - 1]))"
        )
    )
    from dphmm.report.beliefs import classify

    stream = day(town(), "ann", 1).track.stream
    belief = stream.model.smooth(stream.observations(), start=stream.start, time=stream.began)[9]
    classes = classify(belief.probabilities)
    expected = {f"h{k - 1}": int((classes == k).sum()) for k in range(1, 7) if (classes == k).any()}
    assert cells == expected


def test_everybody_can_be_picked_and_arrows_point_outside(opened: Any) -> None:
    page = opened()
    for number, name in enumerate(("ann", "bob", "cyd")):
        page.locator("#person").select_option(str(number))
        assert shown(page).get_attribute("aria-label") == name
        assert shown(page).count() == 1
    section = shown(page)
    arrows = section.locator(".arrow.answer").count()
    assert arrows > 0
    assert f"{arrows} of 10 answers lie outside the map" in section.inner_text()
    frame = section.locator("svg").first.bounding_box()
    for arrow in section.locator("svg .arrow.answer").all():
        box = arrow.bounding_box()
        assert frame["x"] - 1 <= box["x"] <= frame["x"] + frame["width"]


def test_it_plays_pauses_and_goes_by_keyboard_alone(opened: Any) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "person"
    page.keyboard.press("ArrowDown")
    assert shown(page).get_attribute("aria-label") == "bob"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#play").inner_text() == "Pause"
    page.wait_for_function("() => Number(document.getElementById('time').value) > 1")
    page.keyboard.press("Enter")
    assert page.locator("#play").inner_text() == "Play"
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.locator("#time").input_value() == "1"
    assert "30 Apr" in page.locator("#time").get_attribute("aria-valuetext")


def test_a_tooltip_names_the_place_at_the_cursor(opened: Any) -> None:
    page = opened()
    picture = shown(page).locator("svg").first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    x, y = box["x"] + box["width"] / 2 + 8, box["y"] + box["height"] / 2 + 8
    page.mouse.move(x, y)
    tip = page.locator(".tip")
    tip.wait_for(state="visible")
    assert re.fullmatch(r"r\dc\d", tip.inner_text())
    at = tip.bounding_box()
    assert abs(at["x"] - x) < 40
    assert abs(at["y"] - y) < 40
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")


def test_it_prints_on_few_pages_the_whole_time_and_no_controls(opened: Any, tmp_path: Path) -> None:
    page = opened()
    page.locator("#time").fill("9")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown(page).locator("line.cursor.shown").count() == 0
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) <= 8
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#time").input_value() == "9"


def test_without_scripts_everybody_is_there(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("section.person").count() == 3
    assert not page.locator("#controls").is_visible()
    for name in ("ann", "bob", "cyd"):
        assert page.locator(f'section[aria-label="{name}"]').is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 400])
def test_axe_finds_nothing(opened: Any, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = opened(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.locator("#time").fill("9")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_axe_finds_nothing_on_the_other_pages(browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    assert run("reproduce", "paper", "-o", tmp_path).exit_code == 0
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    context.close()
