"""The numbers that somebody sees on the page are those that `dphmm check` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.scenario import Scenario
from dphmm.scenario.headline import headline
from dphmm.studio.server import run_in_background
from dphmm.tables.units import roughly
from tests.scenarios import run
from tests.studio_page import Studio
from tests.test_studio_faithful import files, on_disk

pytestmark = pytest.mark.browser

STEPS = 10
"""How far the page looks when a scenario is opened."""

TABLES = """() => ({
  headline: document.getElementById("headline").innerText,
  sides: ["before", "released"].map((side) => ["exposed", "least", "error"]
    .map((name) => document.getElementById(`${side}-${name}`).innerText)),
  rows: [...document.querySelectorAll("#timeline-table tbody tr")]
    .map((row) => [...row.cells].map((cell) => cell.innerText)),
})"""


class Reader:
    """A page that opens one file after the other, and what is seen on it."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.folder, self.numbers = folder, count()
        self.server = run_in_background(folder)
        self.studio = Studio(browser, self.server.__enter__())

    def read(self, scenario: Scenario, text: str) -> tuple[Path, dict[str, Any]]:
        folder = self.folder / f"town{next(self.numbers):04}"
        folder.mkdir()
        path = on_disk(str(folder), scenario, text)
        page = self.studio.page
        page.goto("about:blank")
        page.goto(self.studio.address)
        page.locator(".start-card", has_text=folder.name).click()
        page.wait_for_selector("html[data-drawn]", state="attached")
        self.studio.tab("time")
        page.wait_for_selector('#panel-time .scroll[aria-busy="false"] #timeline-table')
        page.wait_for_selector('#effects[aria-busy="false"]')
        return path, page.evaluate(TABLES)


@pytest.fixture(scope="module")
def reader(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    made = Reader(browser, tmp_path_factory.mktemp("towns"))
    yield made
    made.studio.context.close()
    made.server.__exit__(None, None, None)


@settings(
    max_examples=settings.default.max_examples // 5,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(files())
def test_what_is_seen_is_what_check_prints(reader: Reader, file: tuple[Scenario, str]) -> None:
    path, seen = reader.read(*file)
    told = json.loads(run("check", path, "--json", "--steps", STEPS).output)["steps"]
    scenario = Scenario.load(path)
    unit = scenario.settings.unit
    assert seen["rows"] == [
        [
            f"{step['time']}{'…' if step['lasts'] else ''}",
            str(step["possible"]),
            *(str(len(step[name])) for name in ("exposed_before", "exposed")),
            str(step["least_protection"]),
            roughly(step["mean_error"], unit),
        ]
        for step in told
    ]
    checked = [one.check(STEPS).steps[-1] for one in (
        scenario.replace(repair=None, full_rank=False), scenario
    )]  # fmt: skip
    assert seen["sides"] == [
        [str(len(step.exposed)), str(step.least_protection), roughly(step.mean_error, unit)]
        for step in checked
    ]
    assert seen["headline"] == f"{headline(scenario, checked[1])}."
    # A curve that a scenario cannot have is refused, and the browser tells of that.
    refused = [one for one in reader.studio.problems if "400 (Bad Request)" in one]
    assert reader.studio.problems == refused
