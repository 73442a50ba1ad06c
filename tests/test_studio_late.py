"""Answers that come late, in another order or not at all, and two windows at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.studio.server import run_in_background
from tests.studio_page import Held, Studio, epsilon, sync_api
from tests.test_studio_server import Client

pytestmark = pytest.mark.browser
expect = sync_api.expect


def link(studio: Studio, a: str, b: str) -> None:
    for label in (a, b):
        studio.page.mouse.click(*studio.place(label))


# Edits


def test_a_link_that_is_answered_late_takes_no_edit_back(studio: Studio) -> None:
    held = Held(studio.page, "/api/linked")
    studio.tool("link")
    link(studio, "s1", "s6")
    held.until(1)
    studio.tab("budget")
    studio.write("#set-epsilon", "3")
    held.let_go()
    expect(studio.page.locator("#map-status")).to_have_text("Linked s1–s6.")
    studio.settle()
    assert epsilon(studio) == "3"
    studio.page.locator("#undo").click()
    studio.expect("#released-links", re.compile(r"\d+"))
    assert epsilon(studio) == "3"


def test_two_links_drawn_before_the_first_answer_are_both_there(studio: Studio) -> None:
    held = Held(studio.page, "/api/linked")
    studio.tool("link")
    link(studio, "s1", "s6")
    link(studio, "s1", "s2")
    held.until(2)
    held.let_go()
    studio.settle()
    expect(studio.page.locator('[data-layer="edges"] .layer-about')).to_have_text("2 links")


def test_a_value_that_was_refused_leaves_its_field_also_with_the_cursor_in_it(
    studio: Studio,
) -> None:
    studio.tab("budget")
    field = studio.page.locator("#set-epsilon")
    before = epsilon(studio)
    field.fill("abc")
    field.press("Enter")
    expect(studio.page.locator("#problem")).to_contain_text("epsilon must")
    expect(field).to_have_value(before)
    expect(field).to_be_focused()
    studio.problems.clear()  # the browser tells of the 400


def test_without_an_answer_edits_stay_and_are_asked_about_again(studio: Studio) -> None:
    studio.tab("budget")
    for value in ("2", "3"):
        studio.write("#set-epsilon", value)
        studio.settle()
    studio.page.route("**/api/effects", lambda route: route.abort())
    studio.write("#set-epsilon", "4")
    problem = studio.page.locator("#problem")
    expect(problem).to_contain_text("does not answer")
    assert epsilon(studio) == "4"
    expect(studio.page.locator("html")).to_have_class(re.compile("waiting"))
    studio.page.unroute("**/api/effects")
    problem.get_by_role("button", name="Try again").click()
    expect(problem).to_be_hidden()
    expect(studio.page.locator("html")).not_to_have_class(re.compile("waiting"))
    assert epsilon(studio) == "4"
    studio.page.locator("#undo").click()
    assert epsilon(studio) == "3"
    studio.settle()
    studio.problems.clear()


# Films and scenarios


def test_a_film_that_comes_late_stays_out_of_another_scenario(studio: Studio) -> None:
    held = Held(studio.page, "/api/walk")
    studio.tab("walk")
    studio.page.locator("#run-walk").click()
    held.until(1)
    studio.tab("policy")
    studio.page.locator("#world").select_option("clinic")
    expect(studio.page).to_have_title(re.compile("^(?!The paper)"))
    held.let_go()
    studio.settle()
    assert studio.page.locator("#studio").get_attribute("data-tab") == "policy"
    assert studio.page.locator("#walk-bar").text_content() == ""
    expect(studio.page.locator("#run-walk")).to_be_enabled()


def test_who_went_to_another_tab_is_not_called_back_by_a_film(studio: Studio) -> None:
    held = Held(studio.page, "/api/walk")
    studio.tab("walk")
    studio.page.locator("#run-walk").click()
    held.until(1)
    studio.tab("noise")
    held.let_go()
    studio.settle()
    assert studio.page.locator("#studio").get_attribute("data-tab") == "noise"
    studio.tab("walk")
    expect(studio.page.locator("#walk-bar output")).to_have_text("step 48 of 48")


def test_of_two_people_the_one_who_was_asked_for_last_is_shown(studio: Studio) -> None:
    studio.tab("walk")
    studio.write("#walk-people", "3")
    studio.page.locator("#run-walk").click()
    studio.page.wait_for_selector('input[name="person"]', state="attached")
    held = Held(studio.page, "/api/walk")
    for number in (2, 3):
        studio.page.locator(f'#walk-bar label:has([name="person"]):nth-of-type({number})').click()
    held.until(2)
    held.is_held = False
    held.waiting[1].continue_()
    expect(studio.page.locator("#map-status")).to_contain_text("about person 3")
    held.waiting[0].continue_()
    studio.settle()
    expect(studio.page.locator("#map-status")).to_contain_text("about person 3")
    assert studio.page.locator('input[name="person"]').nth(2).is_checked()


# Goes to a moment of the new film as soon as that is there: a little later a film that still plays
# has found its end and stopped by itself.
AGAIN = """() => new Promise((resolve) => {
  const watcher = new MutationObserver(() => {
    watcher.disconnect();
    const slider = document.getElementById("walk-time");
    slider.value = 5;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    resolve(document.getElementById("play").textContent);
  });
  watcher.observe(document.getElementById("walk-bar"), { childList: true });
  document.getElementById("run-walk").click();
})"""


def test_a_film_that_plays_stops_when_another_is_made(studio: Studio) -> None:
    studio.tab("walk")
    studio.page.locator("#run-walk").click()
    studio.page.locator("#play").click()
    expect(studio.page.locator("#play")).to_have_text("❚❚ Pause")
    assert studio.page.evaluate(AGAIN) == "▶ Play"
    studio.page.wait_for_timeout(900)  # more than two ticks of a film
    expect(studio.page.locator("#walk-bar output")).to_have_text("step 5 of 48")


def test_the_scenario_that_was_chosen_last_is_shown(studio: Studio) -> None:
    held, first = Held(studio.page, "/api/open"), studio.page.title()
    for name in ("city", "clinic"):
        studio.page.locator("#world").select_option(name)
    held.until(2)
    held.is_held = False
    held.waiting[1].continue_()
    expect(studio.page).not_to_have_title(first)
    title = studio.page.title()
    held.waiting[0].continue_()
    studio.settle()
    assert studio.page.title() == title
    assert studio.page.locator("#world").input_value() == "clinic"


def test_a_scenario_that_cannot_be_opened_leaves_the_name_of_the_present_one(
    studio: Studio,
) -> None:
    studio.page.route("**/api/open", lambda route: route.abort())
    studio.page.locator("#world").select_option("city")
    expect(studio.page.locator("#problem")).to_contain_text("does not answer")
    assert studio.page.locator("#world").input_value() == "paper"
    studio.problems.clear()


def test_an_address_of_a_scenario_is_not_left_on_the_start_page(studio: Studio) -> None:
    studio.tab("noise")
    studio.page.locator("#home").click()
    studio.page.wait_for_timeout(900)  # the page writes its address half a second after an edit
    assert studio.page.evaluate("location.hash") == ""


# Old numbers


def test_steps_of_the_setting_before_are_not_shown_as_this_ones(studio: Studio) -> None:
    studio.tab("time")
    studio.page.wait_for_selector("#timeline-table")
    held = Held(studio.page, "/api/timeline")
    studio.tab("budget")
    studio.write("#set-epsilon", "5")
    studio.expect("#released-exposed", "0")
    studio.tab("time")
    held.until(1)
    rows = studio.page.locator("#panel-time .scroll")
    expect(rows).to_have_attribute("aria-busy", "true")
    expect(rows).to_have_class(re.compile("stale"))
    held.let_go()
    expect(rows).to_have_attribute("aria-busy", "false")
    expect(rows).not_to_have_class(re.compile("stale"))


def test_back_goes_back_from_the_step_that_is_shown(studio: Studio) -> None:
    said = studio.page.locator("#time-tell")
    studio.click("Start at s1, step twice")
    studio.tab("time")
    expect(said).to_contain_text("At step 2 ")
    held = Held(studio.page, "/api/effects")
    for _ in range(8):
        studio.page.locator("#step-forward").click()
    held.let_go()
    # What else the page works out meanwhile (the curve, simulated people) is no matter here.
    studio.expect("#time-tell", re.compile("and all that follow"))
    shown = int(re.search(r"\d+", said.text_content())[0])
    studio.page.locator("#step-back").click()
    expect(said).to_contain_text(f"At step {shown - 1} ")


SHORT_LISTS = """() => {
  const style = new CSSStyleSheet();
  style.replaceSync("#repairs .scroll { max-height: 50px; overflow: auto }");
  document.adoptedStyleSheets = [style];
}"""


def test_a_list_keeps_its_focus_and_its_place_when_an_answer_comes(studio: Studio) -> None:
    held = Held(studio.page, "/api/expected")
    studio.click("Start at s1, step twice")
    studio.page.wait_for_selector("#candidates")
    held.until(1)
    partners = studio.page.locator("#repairs .scroll")
    studio.page.evaluate(SHORT_LISTS)
    partners.evaluate("list => { list.focus(); list.scrollTop = 30; }")
    held.let_go()
    studio.page.wait_for_selector("#expected")
    expect(partners).to_be_focused()
    assert partners.evaluate("list => list.scrollTop") == 30


def test_a_price_that_is_a_fraction_is_a_number_on_the_budget(own: Studio) -> None:
    own.tab("budget")
    own.write("#set-epsilon", "1")
    own.write("#limit-amount", "4")
    own.write("#limit-window", "12 steps")
    own.settle()
    expect(own.page.locator("#fit-price")).to_have_text("Spend it evenly: ε 1/3")
    expect(own.page.locator("#panel-budget .warning")).to_contain_text("does not last")
    own.page.locator("#fit-price").click()
    own.settle()
    assert own.page.locator("#epsilon").input_value() == "3"  # the nearest of the slider, 0.3
    own.tab("policy")
    own.write("#radius-text", "1/2")
    own.settle()
    assert float(own.page.locator("#radius").input_value()) <= 1  # 2, its middle, was no number


# Saving


def test_nothing_is_saved_before_its_own_difference_was_seen(own: Studio) -> None:
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.tab("save")
    expect(own.page.locator("#difference ins")).to_contain_text(["epsilon"])
    held = Held(own.page, "/api/difference")
    own.page.locator("#undo").click()
    held.until(1)
    expect(own.page.locator("#save-file")).to_be_disabled()
    expect(own.page.locator("#difference ins")).to_have_count(0)
    held.waiting[0].abort()
    held.is_held = False
    expect(own.page.locator("#difference")).to_contain_text("does not answer")
    expect(own.page.locator("#save-file")).to_be_disabled()
    own.page.locator("#redo").click()
    expect(own.page.locator("#save-file")).to_be_enabled()


def test_what_is_edited_while_it_is_saved_is_an_edit_of_the_saved_file(
    own: Studio, town: Path
) -> None:
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.write("#limit-amount", "9")
    own.tab("save")
    expect(own.page.locator("#save-file")).to_be_enabled()
    held = Held(own.page, "/api/save")
    own.page.locator("#save-file").click()
    held.until(1)
    own.tab("budget")
    own.page.locator("#undo").click()  # the limit
    own.write("#set-epsilon", "5")
    held.let_go()
    expect(own.page.locator("#save-said")).to_have_text("Saved town.toml.")
    own.settle()
    assert re.search(r'^epsilon = "?2"?$', town.read_text(), re.M)
    assert epsilon(own) == "5"
    assert own.page.locator("#limit-amount").input_value() != "9"
    own.page.locator("#undo").click()
    own.settle()
    assert (epsilon(own), own.page.locator("#limit-amount").input_value()) == ("2", "9")


# Two windows


def test_a_file_opened_in_one_window_leaves_the_other_alone(browser: Any, town: Path) -> None:
    second = town.with_name("second.toml")
    second.write_text(re.sub('name = "[^"]*"', 'name = "second"', town.read_text()))
    with run_in_background(town) as address:
        one, two = Studio(browser, address).open(), Studio(browser, address).open()
        one.settle()
        title = one.page.title()
        one.tab("budget")
        one.write("#set-epsilon", "2")
        one.settle()
        one.link_with("epsilon", "2")
        two.page.locator("#home").click()
        two.page.get_by_role("button", name="second.toml").click()
        expect(two.page).to_have_title(re.compile("^second"))
        one.page.reload()
        one.page.wait_for_selector("html[data-drawn]", state="attached")
        assert (one.page.title(), epsilon(one)) == (title, "2")
        two.tab("budget")
        two.write("#set-epsilon", "7")
        two.tab("save")
        two.page.locator("#save-file").click()
        expect(two.page.locator("#save-said")).to_have_text("Saved second.toml.")
        two.settle()
        two.page.wait_for_timeout(900)
        for studio, name, price in ((two, "second", "7"), (one, title, "2")):
            studio.page.reload()
            studio.page.wait_for_selector("html[data-drawn]", state="attached")
            expect(studio.page).to_have_title(re.compile(f"^{re.escape(name)}"))
            assert epsilon(studio) == price
        for studio in (one, two):
            assert studio.problems == []
            studio.context.close()


def test_a_saved_file_is_named_by_what_opens_it_again(town: Path) -> None:
    with run_in_background(town) as address:
        client = Client(address)
        world = client.ask("/api/open", name="own")["world"]
        assert client.ask("/api/save", world=world, changes={"epsilon": "2"})["named"] == {
            "name": "own"
        }
        world = client.ask("/api/open", name="own")["world"]
        named = client.ask("/api/save", world=world, name="other.toml")["named"]
        assert client.ask("/api/open", **named)["file"] == "other.toml"
        assert client.ask("/api/open", name="own")["file"] == "town.toml"
