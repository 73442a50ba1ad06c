"""The studio as a person uses it, in a real browser; nothing leaves the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from tests import paper

sync_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

pytestmark = pytest.mark.browser

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LAPTOP = {"width": 1360, "height": 820}
TABLET = {"width": 820, "height": 1180}
PNG = b"\x89PNG\r\n\x1a\n"

# Two steps after s1, s3 alone is exposed (Example 5.3).
LABELS = ("s1", "s2", "s3", "s4", "s5", "s6")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from dphmm.studio.server import run_in_background

    with run_in_background() as found:
        yield found


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(chromium), args=list(ARGUMENTS))
        yield started
        started.close()


class Studio:
    """A page with what a person does on it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        settings = {"viewport": LAPTOP, "accept_downloads": True, **options}
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.address = address
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.watch(self.page)

    def watch(self, page: Any) -> None:
        page.set_default_timeout(20_000)
        page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, fragment: str = "") -> Studio:
        self.page.goto(self.address + fragment)
        self.page.wait_for_selector("html[data-drawn]", state="attached")
        return self

    def settle(self) -> None:
        """Wait until the page has drawn the answer to the latest change."""
        self.page.wait_for_load_state("networkidle")

    def click(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()

    def tool(self, name: str) -> None:
        self.page.locator(f'#tools [data-tool="{name}"]').click()

    def place(self, label: str) -> tuple[float, float]:
        """Where a state of the example is on the screen: its name stands 35 pixels below."""
        text = self.page.locator(".state-label", has_text=re.compile(f"^{label}$"))
        box = self.page.locator("#map svg").bounding_box()
        return (
            box["x"] + float(text.get_attribute("x")),
            box["y"] + float(text.get_attribute("y")) - 35,
        )

    def stat(self, name: str) -> str:
        return self.page.locator(f"#stat-{name}").inner_text()

    def expect_stat(self, name: str, value: str) -> None:
        sync_api.expect(self.page.locator(f"#stat-{name}")).to_have_text(value)

    def row(self, label: str) -> list[str]:
        """A partner's row: its name, area, error and who picks it."""
        cells = self.page.locator(f'#candidates tr[data-state="{label}"]').locator("th, td")
        return [text.strip() for text in cells.all_inner_texts()[:4]]

    def download(self, button: str) -> Path:
        with self.page.expect_download() as waiting:
            self.page.locator(button).click()
        path = Path(waiting.value.path())
        return path


@pytest.fixture
def studio(browser: Any, address: str) -> Iterator[Studio]:
    opened = Studio(browser, address).open()
    yield opened
    opened.settle()
    opened.context.close()
    assert opened.problems == []
    inside = (opened.address, "data:", "blob:")
    assert [url for url in opened.requests if not url.startswith(inside)] == []


def expose_s3(studio: Studio) -> None:
    studio.click("Start at s1, step twice")
    studio.page.wait_for_selector("#candidates")


# Paper


def test_a_newcomer_sees_the_running_example(studio: Studio) -> None:
    assert studio.page.locator(".state-label").all_text_contents() == list(LABELS)
    assert studio.stat("area") == str(paper.AREA)
    assert "Nobody" in studio.page.locator("#exposure").inner_text()


def test_s3_is_exposed_two_steps_after_s1(studio: Studio) -> None:
    expose_s3(studio)
    assert "s3 is exposed" in studio.page.locator("#exposure").inner_text()
    assert studio.page.locator(".exposed-mark").count() == 1
    assert studio.page.locator(".exposed-mark").get_attribute("data-state") == "2"
    assert studio.stat("possible") == "4"
    assert studio.stat("area") == str(paper.AREA_BEFORE_REPAIR)


def test_the_three_repairs_read_as_in_the_paper_and_say_who_picks_them(studio: Studio) -> None:
    expose_s3(studio)
    assert studio.row("s4") == ["s4", "14", "54", "least area"]
    assert studio.row("s5")[:3] == ["s5", "16", "47"]
    assert studio.row("s5")[3].split() == ["nearest", "least", "error"]
    assert studio.row("s6") == ["s6", "20", "50", ""]
    picked = {
        row.get_attribute("data-method"): row.locator("td").first.inner_text()
        for row in studio.page.locator("#methods tbody tr").all()
    }
    assert picked == {"nearest": "s3–s5", "min_area": "s3–s4", "min_error": "s3–s5"}


@pytest.mark.parametrize("state", sorted(paper.REPAIRED_AREA))
def test_linking_s3_repairs_it_at_the_price_of_the_paper(studio: Studio, state: int) -> None:
    expose_s3(studio)
    row = studio.page.locator(f'#candidates tr[data-state="{LABELS[state]}"]')
    row.get_by_role("button", name="Link").click()
    studio.expect_stat("area", str(paper.REPAIRED_AREA[state]))
    assert studio.stat("error") == str(paper.REPAIRED_ERROR[state])
    assert "Nobody" in studio.page.locator("#exposure").inner_text()
    studio.click("Undo")
    studio.expect_stat("area", str(paper.AREA_BEFORE_REPAIR))


def test_a_method_repairs_with_one_click(studio: Studio) -> None:
    expose_s3(studio)
    studio.page.locator('#methods tr[data-method="min_area"] button.small').click()
    studio.expect_stat("area", "14")


def test_time_steps_forward_and_back(studio: Studio) -> None:
    studio.click("Time", "tab")
    start = studio.page.locator("#start-state")
    start.fill("s1")
    start.press("Enter")
    studio.expect_stat("possible", "1")
    assert "nothing can hide it" in studio.page.locator("#exposure").inner_text()
    for possible in ("3", "4"):
        studio.page.locator("#step-forward").click()
        studio.expect_stat("possible", possible)
    assert "{s3, s4, s5, s6}" in studio.page.locator("#time-tell").inner_text()
    assert studio.page.locator("#timeline-plot .step").count() >= 12
    studio.page.locator("#step-back").click()
    studio.expect_stat("possible", "3")


# Drawing


def checked(archive: Path, folder: Path) -> Any:
    """What `dphmm check` says about a saved scenario."""
    with ZipFile(archive) as files:
        files.extractall(folder)
    command = [sys.executable, "-m", "dphmm", "check", str(folder / "scenario.toml"), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode in (0, 1), result.stderr
    return json.loads(result.stdout)["steps"]


def test_a_policy_drawn_by_hand_is_saved_and_checks_alike(studio: Studio, tmp_path: Path) -> None:
    page = studio.page
    page.locator('[data-base="none"]').click()
    studio.expect_stat("edges", "0")
    studio.tool("link")
    for count, (a, b) in enumerate((("s1", "s2"), ("s3", "s5")), start=1):
        page.mouse.click(*studio.place(a))
        page.mouse.click(*studio.place(b))
        studio.expect_stat("edges", str(count))
    studio.tool("lasso")
    around = [studio.place(label) for label in ("s4", "s6", "s5", "s2")]
    middle = [sum(axis) / len(around) for axis in zip(*around, strict=True)]
    wide = [(x + 0.12 * (x - middle[0]), y + 0.12 * (y - middle[1])) for x, y in around]
    page.mouse.move(*wide[0])
    page.mouse.down()
    for corner in (*wide[1:], wide[0]):
        page.mouse.move(*corner, steps=4)
    page.mouse.up()
    studio.expect_stat("edges", "8")
    studio.click("Time", "tab")
    page.locator("#start-state").fill("s1")
    page.locator("#start-state").press("Enter")
    for possible in ("3", "4"):
        page.locator("#step-forward").click()
        studio.expect_stat("possible", possible)
    studio.settle()
    area, rank = studio.stat("area"), studio.stat("rank")
    assert "Nobody" in page.locator("#exposure").inner_text()
    studio.click("Take away", "tab")
    step = checked(studio.download("#download-scenario"), tmp_path)[1]
    assert step["exposed_before"] == []
    assert (f"{step['volume']:g}", str(step["rank"])) == (area, rank)
    # Repairs come a moment later than effects; on a busy machine the page may still wait for them.
    shown = sync_api.expect(page.locator("#released-error output"))
    shown.to_have_attribute("data-value", repr(step["error"]), timeout=20_000)


def test_a_link_is_drawn_and_taken_away_with_the_keyboard(studio: Studio) -> None:
    page = studio.page
    page.locator('[data-base="none"]').click()
    studio.expect_stat("edges", "0")
    studio.tool("link")
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    studio.expect_stat("edges", "1")
    assert "Linked" in page.locator("#map-status").inner_text()
    page.keyboard.press("Control+z")
    studio.expect_stat("edges", "0")


def test_painting_moves_a_state_into_another_category(studio: Studio) -> None:
    studio.tool("paint")
    studio.page.get_by_role("radio", name="circle").click()
    studio.page.mouse.click(*studio.place("s1"))
    studio.expect_stat("edges", "6")
    assert "painted" in studio.page.locator(".drawn").inner_text()


def test_possible_states_can_be_chosen_by_hand(studio: Studio) -> None:
    studio.tool("possible")
    for label, left in (("s1", "5"), ("s2", "4")):
        studio.page.mouse.click(*studio.place(label))
        studio.expect_stat("possible", left)
    assert "s3 is exposed" in studio.page.locator("#exposure").inner_text()


def test_the_distance_slider_and_epsilon_change_the_numbers_at_once(studio: Studio) -> None:
    page = studio.page
    page.locator('[data-base="distance"]').click()
    for radius in (1, 2, 4):
        page.locator("#radius").fill(str(radius))
        wanted = PolicyGraph.within_distance(Query(paper.VALUES), radius)
        studio.expect_stat("edges", str(len(wanted.edges)))
    before = float(studio.stat("error").replace(",", ""))
    page.locator("#epsilon").press("ArrowLeft")
    sync_api.expect(page.locator("#stat-error")).not_to_have_text(f"{before:g}")
    assert float(studio.stat("error").replace(",", "")) > before


# Walks and what is taken away


def test_a_walk_says_that_it_is_simulated_and_fills_the_ledger(studio: Studio) -> None:
    page = studio.page
    studio.click("Walk", "tab")
    assert "This person is simulated" in page.locator("#panel-walk").inner_text()
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .limit-text")
    assert "spent 20 of 20" in page.locator("#walk-result").inner_text()
    assert page.locator("#error-plot .line").count() == 2
    assert page.locator(".mini-map").count() == 2
    page.locator("#walk-time").fill("3")
    sync_api.expect(page.locator("#walk-bar output")).to_have_text("3 of 20")


def test_a_walk_without_a_map_shows_its_numbers_as_lines(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("clinic")
    sync_api.expect(page.locator("#stat-possible")).to_have_text("8")
    studio.click("Walk", "tab")
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .limit-text")
    assert page.locator(".minis svg .line.truth").count() == 2


def test_a_change_that_the_server_refuses_is_taken_back(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("grid")
    page.locator("#grid-rows").fill("60")
    page.locator("#grid-rows").press("Tab")
    page.locator("#grid-columns").fill("60")
    page.locator("#grid-columns").press("Tab")
    sync_api.expect(page.locator("#stat-possible")).to_have_text("3,600")
    page.locator('[data-base="complete"]').click()
    studio.expect_stat("edges", "6,478,200")
    studio.tool("link")
    page.locator("#map").focus()
    for key in ("ArrowRight", "Enter", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    sync_api.expect(page.locator("#problem")).to_contain_text("unlinks must be taken")
    studio.expect_stat("edges", "6,478,200")
    studio.problems.clear()  # the browser itself reports a refused request


def test_two_policies_are_compared_on_the_same_walk(studio: Studio) -> None:
    page = studio.page
    studio.click("Walk", "tab")
    page.locator("#compare").check()
    page.locator("#other-policy").select_option("complete")
    page.locator("#other-epsilon").fill("0.5")
    page.locator("#other-epsilon").press("Tab")
    page.locator("#run-walk").click()
    page.wait_for_selector("#walk-result .run-b")
    assert page.locator(".mini-map").count() == 4
    assert page.locator("#error-plot .line").count() == 4
    assert "ε = 0.5" in page.locator("#walk-result .run-b").inner_text()
    errors = [
        page.locator(f'#walk-result .run-{run} tr[data-error="answer"] td').inner_text()
        for run in "ab"
    ]
    assert float(errors[0]) < float(errors[1])


def test_releases_pictures_and_toml_can_be_taken_away(studio: Studio) -> None:
    page = studio.page
    studio.click("Walk", "tab")
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .limit-text")
    studio.click("Take away", "tab")
    assert ElementTree.fromstring(studio.download("#download-plots").read_text()).tag.endswith(
        "svg"
    )
    assert studio.download("#download-plots-png").read_bytes().startswith(PNG)
    rows = studio.download("#download-csv").read_text().splitlines()
    assert rows[0].startswith('"run","time","epsilon","spent","temperature","noise level"')
    assert len(rows) == 21
    drawing = ElementTree.fromstring(studio.download("#download-svg").read_text())
    assert drawing.tag.endswith("svg")
    assert studio.download("#download-png").read_bytes().startswith(PNG)
    assert ElementTree.fromstring(studio.download("#download-hull").read_text()).tag.endswith("svg")
    assert 'category = "category"' in studio.download("#download-toml").read_text()
    assert page.locator("#download-geojson").is_disabled()


def test_a_city_walk_is_exported_as_geojson(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("city")
    page.locator("#city-size").fill("12")
    page.locator("#city-size").press("Tab")
    sync_api.expect(page.locator("#stat-possible + .stat-note")).to_contain_text("of 1")
    studio.settle()
    studio.click("Walk", "tab")
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .limit-text")
    studio.click("Take away", "tab")
    collection = json.loads(studio.download("#download-geojson").read_text())
    longitude, latitude = collection["features"][0]["geometry"]["coordinates"]
    assert len(collection["features"]) == 20
    assert abs(longitude - 11) < 1
    assert abs(latitude - 48) < 1
    assert all(feature["properties"]["simulated"] for feature in collection["features"])


def test_a_link_restores_the_view(studio: Studio) -> None:
    page = studio.page
    expose_s3(studio)
    page.locator("#colour").select_option("degree")
    studio.click("Take away", "tab")
    page.locator("#download-link").click()
    link = page.locator("#link")
    sync_api.expect(link).to_have_value(re.compile("#v1"))
    other = studio.context.new_page()
    studio.watch(other)
    other.goto(link.input_value())
    sync_api.expect(other.locator("#stat-area")).to_have_text(str(paper.AREA_BEFORE_REPAIR))
    assert other.locator("#colour").input_value() == "degree"
    assert other.get_by_role("tab", name="Take away").get_attribute("aria-selected") == "true"
    assert not any("v1." in url for url in studio.requests)


def test_a_damaged_link_opens_the_example(browser: Any, address: str) -> None:
    opened = Studio(browser, address).open("#v1.nonsense")
    assert opened.stat("area") == str(paper.AREA)
    assert opened.problems == []
    opened.context.close()


# For everybody


def test_a_term_explains_itself_in_a_sentence(studio: Studio) -> None:
    studio.page.locator('[data-word="hull"]').first.click()
    note = studio.page.locator("#word-popover")
    assert "sensitivity hull" in note.inner_text()
    studio.page.keyboard.press("Escape")
    studio.click("Words")
    assert studio.page.locator("#words dt").count() > 20
    studio.click("Close")


def test_dark_and_light_can_be_switched(studio: Studio) -> None:
    page = studio.page
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.locator("#theme").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.evaluate(colour) != before


def test_every_control_has_a_name_and_every_word_a_sentence(studio: Studio) -> None:
    page = studio.page
    expose_s3(studio)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select")].filter((e) =>
          !e.textContent.trim() && !e.getAttribute("aria-label") && !e.labels?.length
        ).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    explained = set(page.locator("#words dt").all_inner_texts()) or set(
        page.evaluate("() => [...document.querySelectorAll('#words dt')].map((e) => e.textContent)")
    )
    used = set(
        page.evaluate(
            "() => [...document.querySelectorAll('[data-word]')].map((e) => e.dataset.word)"
        )
    )
    missing = used - {*explained}
    assert missing == set()


def test_tabs_follow_the_arrow_keys(studio: Studio) -> None:
    studio.page.locator("#tab-policy").focus()
    studio.page.keyboard.press("ArrowRight")
    assert studio.page.locator("#panel-time").is_visible()
    assert studio.page.locator("#panel-policy").is_hidden()


def test_the_page_fits_a_tablet(browser: Any, address: str) -> None:
    opened = Studio(browser, address, viewport=TABLET, has_touch=True).open()
    page = opened.page
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    opened.tool("link")
    page.touchscreen.tap(*opened.place("s1"))
    page.touchscreen.tap(*opened.place("s2"))
    opened.expect_stat("edges", "5")
    assert opened.problems == []
    opened.context.close()


def test_five_thousand_cells_are_drawn_and_zoomed(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("grid")
    sync_api.expect(page.locator("#stat-possible")).to_have_text("400")
    page.locator("#grid-rows").fill("70")
    page.locator("#grid-rows").press("Tab")
    page.locator("#grid-columns").fill("72")
    page.locator("#grid-columns").press("Tab")
    sync_api.expect(page.locator("#stat-possible")).to_have_text("5,040")
    length = page.locator(".scale-text").text_content()
    page.locator("#zoom-in").click()
    page.locator("#zoom-in").click()
    sync_api.expect(page.locator(".scale-text")).not_to_have_text(length)


def test_a_refusal_of_the_server_is_shown_in_its_own_words(studio: Studio) -> None:
    page = studio.page
    refused = json.dumps({"error": "radius must be smaller"})
    page.route("**/api/effects", lambda route: route.fulfill(status=400, body=refused), times=1)
    page.locator('[data-base="complete"]').click()
    sync_api.expect(page.locator("#problem")).to_have_text("radius must be smaller")
    studio.settle()
    sync_api.expect(page.locator('[data-base="categories"]')).to_have_attribute(
        "aria-checked", "true"
    )
    studio.problems.clear()  # the browser itself reports a refused request
