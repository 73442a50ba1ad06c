"""The studio for everybody: axe finds nothing, by keyboard alone it works from start to save."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.studio_page import Studio, expose_s3

sync_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("uvicorn")
pytest.importorskip("axe_playwright_python")

pytestmark = pytest.mark.browser


def run_walk(studio: Studio) -> None:
    studio.tab("walk")
    studio.page.locator("#run-walk").click()
    studio.page.wait_for_selector("#ledger-plot .line")


def open_everything(studio: Studio) -> None:
    studio.page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")


PAGES: dict[str, Callable[[Studio], object]] = {
    "rules": open_everything,
    "budget": lambda studio: studio.tab("budget"),
    "noise": lambda studio: studio.tab("noise"),
    "time": lambda studio: studio.tab("time"),
    "compare": lambda studio: studio.tab("compare"),
    "save": lambda studio: studio.tab("save"),
    "walk": run_walk,
    "words": lambda studio: studio.click("Words"),
}
"""Every page and tab, and how one gets there from the running example with s3 exposed."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(browser: Any, address: str, scheme: str) -> None:
    studio = Studio(browser, address, color_scheme=scheme).open()
    expose_s3(studio)
    found = {}
    for name, go in PAGES.items():
        go(studio)
        studio.settle()
        found[name] = studio.axe()
    studio.context.close()
    assert found == {name: [] for name in PAGES}


def test_axe_finds_nothing_on_a_telephone(browser: Any, address: str) -> None:
    studio = Studio(browser, address, viewport={"width": 400, "height": 800}).open()
    found = {}
    for tab in ("policy", "budget", "result"):
        studio.tab(tab)
        found[tab] = studio.axe()
    studio.context.close()
    assert found == {name: [] for name in found}


def test_axe_would_find_a_button_without_a_name(studio: Studio) -> None:
    nameless = "(e) => { e.removeAttribute('aria-label'); e.textContent = ''; }"
    studio.page.locator("#zoom-in").evaluate(nameless)
    assert any(one.startswith("button-name") for one in studio.axe())


def walk_to(page: Any, field: str, back: bool = False) -> None:
    """Press Tab until a field has the focus, as somebody without a mouse would."""
    for _ in range(80):
        if page.evaluate("(field) => document.activeElement?.matches(field)", field):
            return
        page.keyboard.press("Shift+Tab" if back else "Tab")
    raise AssertionError(f"{field} cannot be reached by Tab")


def test_from_start_to_save_by_keyboard_alone(browser: Any, town: Path) -> None:
    from dphmm.studio.server import run_in_background

    with run_in_background(town.parent) as own:
        studio = Studio(browser, own)
        page = studio.page
        page.goto(own)
        page.wait_for_selector("html[data-start]", state="attached")
        walk_to(page, ".start-card:not([id])")
        assert "town.toml" in page.evaluate("document.activeElement.textContent")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-drawn]", state="attached")
        walk_to(page, "#tab-policy")
        walk_to(page, "#radius")
        page.keyboard.press("ArrowRight")
        walk_to(page, "#tab-policy", back=True)
        page.keyboard.press("ArrowRight")
        walk_to(page, "#set-epsilon")
        page.keyboard.press("Control+a")
        page.keyboard.type("3")
        page.keyboard.press("Enter")
        walk_to(page, "#save-button", back=True)
        page.keyboard.press("Enter")
        walk_to(page, "#save-file")
        studio.settle()
        page.keyboard.press("Enter")
        sync_api.expect(page.locator("#save-said")).to_have_text("Saved town.toml.")
        saved = town.read_text()
        studio.context.close()
    assert 'epsilon = "3"' in saved
    assert "# agreed in May" in saved
    assert 'distance = "1"' not in saved


def test_radios_are_one_stop_and_arrows_walk_between_them(studio: Studio) -> None:
    page = studio.page
    walk_to(page, "#tools input")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.value") == "link"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "stage"
    for row in ("#stages", ".tabs"):
        reached = page.evaluate(
            "(row) => [...document.querySelectorAll(`${row} [role=tab]`)]"
            ".filter((e) => e.tabIndex === 0).length",
            row,
        )
        assert reached <= 1


SIZES = [(1440, 900), (1280, 720), (1024, 768), (720, 450), (400, 800)]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_who_is_exposed_and_how_to_repair_it_is_above_the_fold(
    browser: Any, address: str, width: int, height: int
) -> None:
    studio = Studio(browser, address, viewport={"width": width, "height": height}).open()
    page = studio.page
    studio.click("Start at s1, step twice")
    if width <= 1000:
        studio.tab("result")
    page.wait_for_selector("#candidates")
    headline = "#headline-strip" if width <= 1000 else "#headline"
    for field in (headline, "#exposure strong", "#methods button.small >> nth=0"):
        box = page.locator(field).first.bounding_box()
        assert box is not None, field
        assert box["y"] + box["height"] <= height, field
        assert box["x"] + box["width"] <= width, field
    studio.context.close()
