"""Take the pictures of studio and report that README and docs show, from the real pages.

python scripts/screenshots.py            into docs/screenshots/
python scripts/screenshots.py FOLDER     somewhere else
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from dphmm.demo import run_demo
from dphmm.studio.server import run_in_background

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "screenshots"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
LAPTOP = {"width": 1440, "height": 900}
PHONE = {"width": 400, "height": 800}


def start(page: Any) -> None:
    """The page without a scenario."""
    page.locator("#home").click()
    page.wait_for_selector("#start-tour")


def compare(page: Any) -> None:
    """Two versions of the city side by side, coloured by who hides whom."""
    open_city(page)
    page.get_by_role("tab", name="Compare").click()
    page.locator("#version-name").fill("Two cells")
    page.locator("#keep-version").click()
    page.get_by_role("tab", name="Rules").click()
    page.locator("#radius-text").fill("1.2")
    page.locator("#radius-text").press("Tab")
    page.get_by_role("tab", name="Compare").click()
    page.locator("#colour").select_option("degree")
    page.wait_for_selector('#compare-table [data-row="hindsight"]:not(:has-text("…"))')


def exposed(page: Any) -> None:
    """The running example two steps after s1, with s3 exposed and what repairs would cost."""
    page.get_by_role("button", name="Start at s1, step twice").click()
    page.wait_for_selector("#candidates")
    page.wait_for_selector("#expected")  # it moves what is below it
    page.locator('#candidates tr[data-state="s5"]').hover()


def open_city(page: Any) -> None:
    """The synthetic city, drawn."""
    page.locator("#world").select_option("city")
    page.wait_for_selector('#world-about:has-text("river")', state="attached")
    page.wait_for_load_state("networkidle")


def city(page: Any) -> None:
    """A city under two rules, coloured by who hides whom, and what the last edit cost."""
    open_city(page)
    page.locator("#layer-one_step").check()
    page.wait_for_selector("html:not(.waiting)", state="attached")
    page.wait_for_timeout(1000)
    page.locator("#radius-text").fill("1")
    page.locator("#radius-text").press("Tab")
    page.wait_for_load_state("networkidle")
    page.locator("#colour").select_option("degree")
    page.wait_for_selector("#expected")
    page.wait_for_selector("#curve-plot .point.now")
    page.wait_for_selector("#curve-tell:not(:has-text('points'))")


def walk(page: Any) -> None:
    """A simulated walk through the city, released in two ways."""
    open_city(page)
    page.get_by_role("tab", name="Budget").click()
    page.locator("#set-epsilon").fill("0.4")
    page.locator("#set-epsilon").press("Tab")
    page.get_by_role("tab", name="Try it").click()
    page.locator("#compare").check()
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .line.b", timeout=60_000)


def phone(page: Any) -> None:
    """The same page on a telephone."""
    open_city(page)


def take(page: Any, path: Path) -> None:
    """A picture without the ring around what was pressed last."""
    page.evaluate("() => document.activeElement?.blur()")
    page.screenshot(path=path)


def report_day(page: Any) -> None:
    """A person's whole day in the report."""
    page.evaluate("() => document.getElementById('days').scrollIntoView()")


def report_moment(page: Any) -> None:
    """One moment of it: what is believed, and the estimates."""
    page.locator("#time").fill("130")
    report_day(page)


REPORTS: dict[str, tuple[Callable[[Any], None], dict[str, Any]]] = {
    "report.png": (report_day, {"viewport": {"width": 1280, "height": 1180}}),
    "report-dark.png": (
        report_moment,
        {"viewport": {"width": 1280, "height": 1180}, "color_scheme": "dark"},
    ),
}


def take_reports(browser: Any, folder: Path) -> None:
    """Pictures of the demo's report; its noise is real, so no two are the same."""
    with tempfile.TemporaryDirectory() as made:
        run_demo(made, people=12, say=lambda _: None)
        for name, (prepare, options) in REPORTS.items():
            context = browser.new_context(**options)
            page = context.new_page()
            page.goto((Path(made) / "report.html").as_uri())
            prepare(page)
            page.wait_for_timeout(500)
            take(page, folder / name)
            context.close()


PICTURES: dict[str, tuple[Callable[[Any], None], dict[str, Any]]] = {
    "start.png": (start, {"viewport": LAPTOP}),
    "compare.png": (compare, {"viewport": LAPTOP}),
    "exposed.png": (exposed, {"viewport": LAPTOP}),
    "city-dark.png": (city, {"viewport": LAPTOP, "color_scheme": "dark"}),
    "walk.png": (walk, {"viewport": LAPTOP}),
    "phone.png": (phone, {"viewport": PHONE, "has_touch": True}),
}


def main(folder: Path) -> int:
    """Exit code 0, or 2 without a browser."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.stderr.write("there is no Chromium; run: make system-packages\n")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with run_in_background() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        for name, (prepare, options) in PICTURES.items():
            context = browser.new_context(**options)
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.goto(f"{address}#paper")
            page.wait_for_selector("html[data-drawn]", state="attached")
            prepare(page)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(1500)
            page.wait_for_load_state("networkidle")
            page.wait_for_selector("#work", state="hidden")
            take(page, folder / name)
            context.close()
        take_reports(browser, folder)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
