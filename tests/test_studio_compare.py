"""A beside B: two versions of a scenario, their numbers and their links."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.errors import ArgumentError
from dphmm.studio import comparing, examples
from dphmm.studio.comparing import compare
from dphmm.studio.effects import Situation
from dphmm.studio.requests import Between, Draft, read_request

A, B = {"policy.distance": "0.6"}, {"policy.distance": "0.4", "policy.category": "category"}


def edges_of(opened: Any, changes: dict[str, Any], step: int) -> set[tuple[int, int]]:
    side = Situation.of(opened.scenario_of(Draft(changes=changes)), step)
    policy = side.scenario.plan.at(side.possible).policy
    return {(min(a, b), max(a, b)) for a, b in policy.edges.tolist()}


# Oracle


def test_links_of_one_version_only_are_those_of_the_released_policies() -> None:
    opened = examples.plain_grid(6, 6)
    one, other = (edges_of(opened, changes, 2) for changes in (A, B))
    found = compare(opened, Between(step=2, runs=[Draft(changes=A), Draft(changes=B)]))
    assert found["only_a"]["count"] == len(one - other)
    assert found["only_b"]["count"] == len(other - one)
    assert found["both"] == len(one & other)
    drawn = np.array(found["only_a"]["drawn"]).reshape(-1, 2).tolist()
    assert {(a, b) for a, b in drawn} <= one - other
    assert len(drawn) <= comparing.SHOWN


def test_links_that_repair_adds_count_as_released() -> None:
    opened = examples.paper()
    start = {"start": "s1"}
    runs = [Draft(changes={**start, "repair": "min_error"}), Draft(changes=start)]
    found = compare(opened, Between(step=2, runs=runs))
    assert (found["only_a"]["count"], found["only_b"]["count"]) == (1, 0)


def test_too_many_links_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "COUNTED_EDGES", 3)
    found = compare(examples.paper(), Between(runs=[Draft(), Draft()]))
    assert found == {"only_a": None, "only_b": None, "both": None}


@pytest.mark.parametrize("runs", [[], [{}], [{}, {}, {}]])
def test_two_versions_are_compared_and_no_other_number(runs: list[Any]) -> None:
    with pytest.raises(ArgumentError, match="runs must"):
        read_request(Between, {"runs": runs}, 6)


# The page


@pytest.mark.browser
def test_two_named_versions_stand_side_by_side_and_move_together(studio: Any) -> None:
    from playwright.sync_api import expect

    page = studio.page
    studio.tab("compare")
    page.locator("#version-name").fill("Cheap")
    page.locator("#keep-version").click()
    studio.tab("budget")
    studio.write("#set-epsilon", "2")
    studio.tab("policy")
    page.locator("#layer-complete").check()
    studio.tab("compare")
    table = page.locator("#compare-table")
    expect(table.locator('[data-row="links"] td')).to_have_text(["10", "4", re.compile(r"\+6")])
    expect(table.locator('[data-row="error"] td').nth(1)).to_have_text("4.9")
    expect(table.locator('[data-row="hindsight"] td').nth(1)).not_to_have_text("…")
    expect(page.locator("#links-apart")).to_have_text("6 only in A, 0 only in B, 4 in both.")
    assert page.locator("#settings-apart tbody tr").all_inner_texts() == [
        "price ε\t2\t1",
        "rule: everybody\ton\t–",
    ]
    expect(page.locator("#map-b .state-label")).to_have_count(6)
    places = "(q) => [...document.querySelectorAll(q)].map((e) => e.getAttribute('x'))"
    page.locator("#zoom-in").click()
    page.wait_for_timeout(400)
    assert page.evaluate(places, "#map .state-label") == page.evaluate(
        places, "#map-b .state-label"
    )
    before = page.evaluate(places, "#map .state-label")
    page.locator("#map-b").hover()
    page.mouse.wheel(0, -200)  # whichever of them is moved
    page.wait_for_timeout(400)
    assert page.evaluate(places, "#map .state-label") != before
    assert page.evaluate(places, "#map .state-label") == page.evaluate(
        places, "#map-b .state-label"
    )
    page.get_by_role("button", name="Edit Cheap as A").click()
    expect(table.locator('[data-row="links"] td')).to_have_text(["4", "4", "same"])
    assert "same settings" in page.locator("#compare-results").inner_text()
    studio.click("Undo")
    expect(table.locator('[data-row="links"] td').first).to_have_text("10")


@pytest.mark.browser
def test_versions_are_in_the_link_and_can_be_removed(studio: Any) -> None:
    from playwright.sync_api import expect

    page = studio.page
    studio.tab("compare")
    for name in ("One", "Two", "One"):
        page.locator("#version-name").fill(name)
        page.locator("#version-name").press("Enter")
    listed = page.locator("#versions .layer-name")
    assert listed.all_inner_texts() == ["As opened", "Two", "One"]
    page.wait_for_timeout(700)  # until the address has the view
    page.reload()
    page.wait_for_selector("html[data-drawn]", state="attached")
    assert listed.all_inner_texts() == ["As opened", "Two", "One"]
    page.get_by_role("button", name="Remove One").click()
    expect(listed).to_have_text(["As opened", "Two"])
    assert page.locator("#version-0").is_checked()


@pytest.mark.browser
def test_on_a_telephone_both_maps_and_the_numbers_are_there(browser: Any, address: str) -> None:
    from playwright.sync_api import expect

    from tests.studio_page import Studio

    studio = Studio(browser, address, viewport={"width": 400, "height": 800}).open()
    studio.tab("compare")
    for field in ("#map", "#map-b", "#compare-table"):
        expect(studio.page.locator(field)).to_be_visible()
        box = studio.page.locator(field).bounding_box()
        assert box["y"] + 40 < 800, field
        assert box["x"] + box["width"] <= 400, field
    assert studio.axe() == []
    studio.context.close()
