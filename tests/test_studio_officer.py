"""What an hour with a real scenario showed: a city of 1,444 cells in steps of five minutes."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("uvicorn")
pytest.importorskip("playwright")

from playwright.sync_api import expect

from dphmm import Limit, MarkovModel, Schedule
from dphmm.scenario import Clock, Policy, Scenario, Settings, States
from dphmm.scenario.checking import doubts
from dphmm.studio import effects
from dphmm.studio.server import run_in_background
from tests.scenarios import run
from tests.studio_page import Studio
from tests.test_studio_sizes import RULER

SHORT = (
    "The budget of 24 per 1 day does not last: of up to 288 answers in that time it pays for 24, "
    "and the others are refused."
)


def line_of(places: int, **changes: Any) -> Scenario:
    """Places in a row; nobody moves further than to the next, and all begin at the first."""
    near = np.abs(np.subtract.outer(np.arange(places), np.arange(places))) <= 1
    states = States.on_plane([[float(place), 0.0] for place in range(places)])
    start = states.labels[0]
    settings = {"policy": Policy(distance=Fraction(2)), "full_rank": False, "start": start}
    chosen = Settings("row", Fraction(1), **{**settings, **changes})
    return Scenario.from_settings(chosen, states, MarkovModel(near / near.sum(axis=1)[:, None]))


# A budget that does not last


def test_a_budget_that_ends_before_its_window_is_said_with_how_far_it_goes() -> None:
    day = {"limit": Limit.read("24 per 1 day"), "clock": Clock("5 min")}
    assert doubts(line_of(6, **day)) == (SHORT,)
    assert doubts(line_of(6, **day, when=Schedule(every=12))) == ()
    assert doubts(line_of(6, limit=Limit.read("24"))) == ()
    steps = line_of(6, limit=Limit.read("3 per 4 steps, 5 per 5 steps"))
    assert [one.split(" it pays")[0] for one in doubts(steps)] == [
        "The budget of 3 per 4 steps does not last: of up to 4 answers in that time"
    ]


def test_check_and_the_page_say_that_a_budget_does_not_last(tmp_path: Path) -> None:
    town = tmp_path / "town.toml"
    line_of(6, limit=Limit.read("24 per 1 day"), clock=Clock("5 min")).save(town)
    assert f"note: {SHORT}" in run("check", town).stdout
    assert SHORT in json.loads(run("check", town, "--json").stdout)["doubts"]


@pytest.mark.browser
def test_the_result_says_that_a_budget_does_not_last_and_what_estimates_count(
    browser: Any, tmp_path: Path
) -> None:
    town = tmp_path / "town.toml"
    line_of(6, limit=Limit.read("24 per 1 day"), clock=Clock("5 min")).save(town)
    with run_in_background(town) as address:
        studio = Studio(browser, address).open()
        page = studio.page
        expect(page.locator("#headline-card")).to_contain_text(SHORT)
        # Most of the simulated steps come after the budget is spent.
        expect(page.locator("#expected")).to_contain_text("also one at which nothing is said")
        studio.tab("budget")
        studio.write("#limit-amount", "288")
        expect(page.locator("#headline-card")).not_to_contain_text("does not last")
        expect(page.locator("#expected")).to_have_text(re.compile("^An estimate"))
        studio.context.close()


# Two versions share one legend


@pytest.mark.browser
def test_the_legend_of_two_maps_is_about_both(studio: Studio) -> None:
    page, legend = studio.page, studio.page.locator("#legend")
    page.locator("#world").select_option("grid")
    studio.expect("#possible-note", re.compile("^400 places"))
    studio.tab("noise")
    page.locator("#set-repair").select_option("none")
    studio.tab("compare")
    page.locator("#version-name").fill("Linked")
    page.locator("#keep-version").click()
    studio.tab("policy")
    studio.write("#radius-text", "0.1")
    studio.expect("#before-exposed", "400")
    studio.tab("compare")
    expect(legend).to_contain_text("exposed (A 400, B 0)")
    expect(legend).to_contain_text("links of one version only")  # which only B has
    row = page.locator('#compare-table [data-row="error"] td')
    expect(row).to_have_text(["0 m", re.compile("m$"), "−100%"])
    page.locator("#versions .on").get_by_role("button", name="Edit Linked as A").click()
    page.locator("#version-1").check()
    studio.tab("policy")
    studio.write("#radius-text", "2")
    studio.tab("compare")
    expect(legend).to_contain_text(re.compile(r"A .* B .*links drawn|links of one version only"))


@pytest.mark.browser
def test_links_that_are_not_counted_are_a_bound_beside_another_version_too(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "COUNTED_EDGES", 3)
    page = studio.page
    page.locator("#world").select_option("city")
    studio.expect("#possible-note", re.compile("^555 places"))
    page.locator("#layer-category").check()
    studio.expect("#released-links", re.compile("^≤ "))
    studio.tab("compare")
    cells = page.locator('#compare-table [data-row="links"] td')
    expect(cells).to_have_text([re.compile("^≤ "), re.compile("^≤ "), ""])


# Numbers that can be read


@pytest.mark.browser
def test_a_small_change_does_not_show_one_length_twice(studio: Studio) -> None:
    studio.page.locator("#world").select_option("grid")
    studio.expect("#possible-note", re.compile("^400 places"))
    studio.tab("budget")
    studio.write("#set-epsilon", "0.996")
    change = studio.page.locator("#change")
    expect(change).to_have_text(re.compile(r"error since the last edit \(still about .*m\)$"))
    studio.write("#set-epsilon", "0.5")
    expect(change).to_have_text(re.compile(r"m → .*m\)$"))


@pytest.mark.browser
def test_axes_have_room_for_thousands_of_places_and_for_sixty_steps(
    browser: Any, tmp_path: Path
) -> None:
    large, long = tmp_path / "large" / "town.toml", tmp_path / "long" / "town.toml"
    for path in (large, long):
        path.parent.mkdir()
    line_of(1200, policy=Policy(complete=True), start="uniform").save(large)
    line_of(61).save(long)
    for path, rows, clicks in ((large, 1, 0), (long, 60, 50)):
        with run_in_background(path) as address:
            studio = Studio(browser, address).open()
            studio.tab("time")
            studio.settle()
            for _ in range(clicks):
                studio.page.locator("#step-forward").click()
            studio.settle()
            expect(studio.page.locator("#timeline-table tbody tr")).to_have_count(rows)
            assert studio.page.evaluate(RULER) == []
            studio.context.close()
