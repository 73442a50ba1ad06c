"""The curves of the studio: every point is what check and design say of such a file."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.errors import ArgumentError
from dphmm.scenario import Scenario
from dphmm.scenario.budgeting import find_schedule
from dphmm.studio import saving
from dphmm.studio.opened import Opened
from dphmm.studio.requests import Draft, Tradeoff
from dphmm.studio.tradeoff import PEOPLE, tradeoff
from tests.scenarios import paper_scenario

WEEK = "12 per 24 steps"


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    path = tmp_path / "town.toml"
    paper_scenario(limit=WEEK).save(path)
    return saving.open_file(path)


def curve(opened: Opened, axis: str, **draft: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the page gets: the values first, then the points, as many at once as are allowed."""
    about = tradeoff(opened, Tradeoff(axis=axis, step=2, **draft))
    points: list[dict[str, Any]] = []
    while len(points) < len(about["values"]):
        some = about["values"][len(points) : len(points) + about["at_once"]]
        points += tradeoff(opened, Tradeoff(axis=axis, step=2, values=some, **draft))["points"]
    return about, points


# Oracle


@pytest.mark.parametrize("axis", ["radius", "epsilon", "budget"])
def test_every_point_is_what_check_says_of_the_file_with_its_changes(
    opened: Opened, axis: str, tmp_path: Path
) -> None:
    about, points = curve(opened, axis, changes={"repair": "min_error"})
    assert [point["value"] for point in points] == about["values"]
    for point in points:
        changes = {"repair": "min_error", **point["changes"]}
        path = tmp_path / "changed.toml"
        path.write_text(opened.text_of(Draft(changes=changes)))
        step = Scenario.load(path).check(2).steps[1]
        assert point["error"] == pytest.approx(step.mean_error, rel=1e-12)
        assert point["silent"] == step.silent_error
        assert point["least"] == step.least_protection
        assert point["exposed"] == len(step.exposed)
        assert point["useless"] == step.is_useless


def test_an_interval_is_what_design_finds_for_the_same_budget(opened: Opened) -> None:
    scenario = opened.scenario
    options: dict[str, Any] = {
        "people": PEOPLE,
        "mechanisms": [scenario.settings.mechanism],
        "estimate": scenario.settings.estimate,
    }
    ways = {way.every: way for way in find_schedule(scenario, WEEK, **options).ways}
    _, points = curve(opened, "interval")
    compared = 0
    for point in points:
        way = ways.get(int(point["value"]))
        if way is None:  # design stops where longer intervals are hopeless
            continue
        compared += 1
        assert (point["error"], point["now"]) == (way.hindsight, way.now)
        assert Fraction(point["changes"]["epsilon"]) == way.epsilon
    assert compared >= 3


# Laws


def test_the_present_value_is_on_its_curve(opened: Opened) -> None:
    changes = {"policy.distance": "1.7", "epsilon": "0.77", "limit": "11 per 24 steps"}
    for axis, now in {"radius": "1.7", "epsilon": "0.77", "budget": "11"}.items():
        about = tradeoff(opened, Tradeoff(axis=axis, changes=changes))
        assert about["now"] == now
        assert now in about["values"]
    about = tradeoff(opened, Tradeoff(axis="interval", changes={"when.every": 5}))
    assert "5" in about["values"]


def test_errors_fall_with_the_price_and_with_the_budget(opened: Opened) -> None:
    for axis in ("epsilon", "budget"):
        errors = [point["error"] for point in curve(opened, axis)[1]]
        assert errors == sorted(errors, reverse=True)


def test_a_chosen_budget_is_spent_evenly(opened: Opened) -> None:
    _, points = curve(opened, "budget", changes={"when.every": 4})
    chosen = next(point for point in points if point["value"] == "12")
    assert chosen["changes"] == {"epsilon": "2", "limit": "12 per 24 steps"}


# Refusals


@pytest.mark.parametrize(
    ("axis", "changes", "sentence"),
    [
        ("budget", {"limit": None}, "limit must be a budget within one window"),
        ("interval", {"limit": "12"}, "limit must be a budget within one window"),
        ("budget", {"limit": "12 per 24 steps, 100 in all"}, "one window"),
        ("interval", {"when.apart": 3}, "when must be an interval alone"),
    ],
)
def test_a_curve_that_makes_no_sense_says_why(
    opened: Opened, axis: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        tradeoff(opened, Tradeoff(axis=axis, changes=changes))


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_values_are_positive_numbers(opened: Opened, value: str) -> None:
    with pytest.raises(ArgumentError, match="values must be"):
        tradeoff(opened, Tradeoff(axis="epsilon", values=[value]))


@pytest.mark.parametrize("value", ["1.5", "25"])
def test_intervals_are_steps_of_the_window(opened: Opened, value: str) -> None:
    with pytest.raises(ArgumentError, match="values must be steps within the window"):
        tradeoff(opened, Tradeoff(axis="interval", values=[value]))


def test_a_radius_at_which_repair_would_take_too_long_has_no_error(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.studio.tradeoff.MAX_REPAIR", 0)
    changes = {"repair": "min_error", "policy.category": None}
    request = Tradeoff(axis="radius", values=["0.1"], changes=changes)
    (point,) = tradeoff(opened, request)["points"]
    assert point["error"] is None
    assert point["exposed"] > 0


# The page


@pytest.mark.browser
def test_a_point_of_the_curve_is_chosen_by_click_or_by_key(studio: Any) -> None:
    from playwright.sync_api import expect

    page = studio.page
    studio.tab("budget")
    page.locator("#curve-axes label").nth(1).click()
    point = page.locator('#curve-plot [data-value="2"]')
    expect(point).to_have_attribute("aria-label", re.compile("Price ε 2: an answer is off by"))
    expect(page.locator("#curve-plot .point.now")).to_have_attribute("data-value", "1")
    point.click()
    expect(page.locator("#set-epsilon")).to_have_value("2")
    expect(page.locator("#curve-plot .point.now")).to_have_attribute("data-value", "2")
    wanted = re.search("off by ([0-9.]+)", str(point.get_attribute("aria-label")))
    assert wanted is not None
    studio.expect("#released-error", wanted[1])
    studio.expect("#change", re.compile("▼ −"))
    # One stop of Tab; arrows walk, Enter chooses.
    assert page.locator('#curve-plot [tabindex="0"]').count() == 1
    page.locator("#curve-plot .point.now").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#set-epsilon")).to_have_value("1.5")
    assert page.locator("#undo").get_attribute("title").startswith("Undo: Price ε 1.5")


@pytest.mark.browser
def test_a_budget_has_curves_of_its_own_and_a_schedule_by_one_press(studio: Any) -> None:
    from playwright.sync_api import expect

    page = studio.page
    studio.tab("budget")
    page.locator("#curve-axes label").nth(2).click()
    expect(page.locator("#curve-tell")).to_have_text(re.compile("a budget within one window"))
    studio.problems.clear()  # the browser itself reports a refused request
    studio.write("#limit-window", "24 steps")
    studio.write("#limit-amount", "12")
    expect(page.locator("#curve-plot .point").nth(4)).to_be_attached()
    expect(page.locator("#curve-plot .point[data-value='1']")).to_have_attribute(
        "aria-label", re.compile("1 step: estimates off by .* in hindsight.*4 simulated people")
    )
    page.locator("#often").get_by_role("button", name="4 steps", exact=True).click()
    expect(page.locator("#set-when-every")).to_have_value("4")
    page.locator("#fit-price").click()
    expect(page.locator("#set-epsilon")).to_have_value("2")
    expect(page.locator("#curve-plot .point.now")).to_have_attribute("data-value", "4")
