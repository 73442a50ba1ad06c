"""The report for everybody: axe finds nothing in any state of the page, public and private."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

from dphmm import Schedule
from dphmm.report import Truth, scenario_page
from tests.scenarios import paper_scenario, run, trips
from tests.test_report_browser import day, town

pytestmark = pytest.mark.browser

OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


def _point(page: Any) -> None:
    picture = page.locator("section.person:not([hidden]) svg").first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 + 8, box["y"] + box["height"] / 2 + 8)
    page.locator(".tip").wait_for(state="visible")


STATES: dict[str, Callable[[Any], object]] = {
    "as opened": lambda page: None,
    "everything open": lambda page: page.evaluate(OPEN),
    "a moment": lambda page: page.locator("#time").fill("9"),
    "what was believed then": lambda page: page.get_by_role("radio", name="at the time").check(),
    "some steps later": lambda page: page.get_by_role("radio", name="steps later").check(),
    "the whole time again": lambda page: page.get_by_role("button", name="Whole time").click(),
    "a place at the pointer": _point,
    "playing": lambda page: page.locator("#play").click(),
}
"""What somebody does one after the other."""

OTHERS = {"another person": lambda page: page.locator("#person").select_option("2")}
"""Also where there are several people."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three people, the same with the truth, and one alone."""
    scenario, folder = town(), tmp_path_factory.mktemp("axe")
    people = [day(scenario, name, number) for number, name in enumerate(("ann", "bob", "cyd"))]
    truth = Truth({(one.track.person, slot): 0 for one in people for slot in one.track.slots})
    made = {
        "public": scenario_page(scenario, people),
        "private": scenario_page(scenario, people, truth=truth),
        "alone": scenario_page(scenario, people[:1]),
    }
    for name, page in made.items():
        (folder / f"{name}.html").write_text(page)
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture
def find(browser: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens a page, and one that says what axe finds on it."""
    contexts = []

    def open_page(path: Path, scheme: str) -> Any:
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.goto(path.as_uri())
        source = resources.files("axe_playwright_python") / "axe.min.js"
        page.evaluate(source.read_text(encoding="utf-8"))
        return page

    yield open_page
    for context in contexts:
        context.close()


def found_on(page: Any) -> list[str]:
    """What axe finds; contrast over pictures is what it cannot decide, and other tests compute."""
    found = page.evaluate("axe.run({ resultTypes: ['violations', 'incomplete'] })")
    unsure = [rule for rule in found["incomplete"] if rule["id"] != "color-contrast"]
    return [
        f"{rule['id']}: {node['html'][:120]}"
        for rule in found["violations"] + unsure
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["public", "private", "alone"])
def test_axe_finds_nothing_in_any_state(
    find: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    page = find(pages[name], scheme)
    found = {}
    for state, go in {**STATES, **({} if name == "alone" else OTHERS)}.items():
        go(page)
        page.wait_for_timeout(100)
        found[state] = found_on(page)
    assert found == {state: [] for state in found}


def test_axe_would_find_a_slider_without_a_name(find: Any, pages: dict[str, Path]) -> None:
    page = find(pages["public"], "light")
    page.locator("#time").evaluate("(e) => e.closest('label').replaceWith(e)")
    assert any(one.startswith("label") for one in found_on(page))


def test_a_file_from_before_the_first_answer_has_a_page_and_no_warning(
    find: Any, tmp_path: Path
) -> None:
    toml = tmp_path / "paper.toml"
    paper_scenario(when=Schedule(every=5)).save(toml)
    (tmp_path / "trips.csv").write_text(trips(*(("ann", time, 3) for time in range(1, 7))))
    out, page = tmp_path / "released.csv", tmp_path / "report.html"
    assert run("release", toml, tmp_path / "trips.csv", "-o", out).exit_code == 0
    head, *lines = out.read_text().splitlines(keepends=True)
    out.write_text(head + "".join(lines[:3]))  # the ledger knows of the answer that came later
    # As people run it: in the tests a warning would be an error.
    command = [sys.executable, "-m", "dphmm", "report", str(toml), str(out), "-o", str(page)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == f"{page}: 1 person, 1 answer\n"
    assert "1 answer about 1 person" in page.read_text()
    assert found_on(find(page, "light")) == []
