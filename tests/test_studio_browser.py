"""The studio as a person uses it, in a real browser; nothing leaves the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from tests import paper
from tests.studio_page import Studio, expose_s3

sync_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

pytestmark = pytest.mark.browser

TABLET = {"width": 820, "height": 1180}
PNG = b"\x89PNG\r\n\x1a\n"

# Two steps after s1, s3 alone is exposed (Example 5.3).
LABELS = ("s1", "s2", "s3", "s4", "s5", "s6")


# Paper


def test_a_newcomer_sees_the_running_example(studio: Studio) -> None:
    assert studio.page.locator(".state-label").all_text_contents() == list(LABELS)
    studio.expect("#headline", re.compile("An answer is typically off by 4.9; every possible"))
    assert "Nobody" in studio.text("#exposure")


def test_s3_is_exposed_two_steps_after_s1(studio: Studio) -> None:
    expose_s3(studio)
    assert "s3 is exposed" in studio.text("#exposure")
    assert "exposed (1)" in studio.text("#legend")
    assert studio.text("#possible-note") == "4 places of 6 are possible."
    assert studio.text("#stat-area") == str(paper.AREA_BEFORE_REPAIR)
    assert "could point to an exposed place alone" in studio.text("#headline-card")


def test_the_three_repairs_read_as_in_the_paper_and_say_who_picks_them(studio: Studio) -> None:
    expose_s3(studio)
    rows = {
        row.get_attribute("data-state"): (
            int(row.locator("td").first.inner_text()),
            int(row.get_attribute("data-squared")),
        )
        for row in studio.page.locator("#candidates tbody tr").all()
    }
    assert rows == {
        LABELS[state]: (area, paper.REPAIRED_ERROR[state])
        for state, area in paper.REPAIRED_AREA.items()
    }
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
    studio.expect("#stat-area", str(paper.REPAIRED_AREA[state]))
    assert studio.text("#stat-squared") == str(paper.REPAIRED_ERROR[state])
    assert "Nobody" in studio.text("#exposure")
    studio.click("Undo")
    studio.expect("#stat-area", str(paper.AREA_BEFORE_REPAIR))
    studio.click("Redo")
    studio.expect("#stat-area", str(paper.REPAIRED_AREA[state]))


def test_a_repair_shows_before_and_after_side_by_side_and_what_it_cost(studio: Studio) -> None:
    expose_s3(studio)
    studio.page.locator('#methods tr[data-method="min_area"] button.small').click()
    studio.expect("#released-exposed", "0")
    studio.expect("#before-exposed", "1")
    studio.expect("#change", re.compile(r"▲ \+12% error since the last edit \(5.1 → 5.7\)"))
    studio.tab("noise")
    assert studio.page.locator("#set-repair").input_value() == "min_area"


def test_time_steps_forward_and_back_and_has_the_lines_of_check(studio: Studio) -> None:
    studio.tab("time")
    studio.page.locator("#start-kind").select_option("label")
    studio.expect("#possible-note", "3 places of 6 are possible.")
    studio.page.locator("#step-forward").click()
    studio.expect("#possible-note", "4 places of 6 are possible.")
    assert "{s3, s4, s5, s6}" in studio.text("#time-tell")
    row = studio.page.locator('#timeline-table tr.now[data-step="2"] td')
    sync_api.expect(row).to_have_text(["4", "1", "1", "1", "5.1"])
    studio.page.locator("#step-back").click()
    studio.expect("#possible-note", "3 places of 6 are possible.")


# Layers


def test_every_rule_is_switched_and_edited_by_itself(studio: Studio) -> None:
    page = studio.page
    page.locator("#layer-distance").check()
    for radius in (1, 2, 4):
        studio.write("#radius-text", str(radius))
        wanted = PolicyGraph.within_distance(Query(paper.VALUES), radius)
        wanted = wanted | PolicyGraph.by_category(paper.CATEGORIES)
        possible = [False, *[True] * 5]
        studio.expect("#before-links", str(len(wanted.restricted_to(possible).edges)))
    page.locator("#layer-category").uncheck()
    page.locator("#layer-distance").uncheck()
    studio.expect("#before-links", "0")
    page.locator("#layer-distance").check()
    assert page.locator("#radius-text").input_value() == "4"


def test_drawn_links_stay_whatever_rule_is_switched(studio: Studio) -> None:
    page = studio.page
    studio.tool("link")
    for a, b in (("s2", "s5"), ("s3", "s6")):
        page.mouse.click(*studio.place(a))
        page.mouse.click(*studio.place(b))
        studio.settle()
    studio.expect("#before-links", "6")
    for layer in ("complete", "one_step", "category"):
        page.locator(f"#layer-{layer}").click()
        studio.settle()
        page.locator(f"#layer-{layer}").click()
        studio.expect("#before-links", "6")
    page.locator("#layer-edges").uncheck()
    studio.expect("#before-links", "4")
    page.locator("#layer-edges").check()
    studio.expect("#before-links", "6")


def test_a_link_of_a_rule_is_not_taken_away_by_hand(studio: Studio) -> None:
    studio.tool("link")
    studio.page.mouse.click(*studio.place("s4"))
    studio.page.mouse.click(*studio.place("s5"))
    sync_api.expect(studio.page.locator("#map-status")).to_contain_text("linked by a rule")
    assert studio.page.locator("#undo").is_disabled()


def test_a_link_is_drawn_and_taken_away_with_the_keyboard(studio: Studio) -> None:
    page = studio.page
    page.locator("#layer-category").uncheck()
    studio.expect("#before-links", "0")
    studio.tool("link")
    page.locator("#map").focus()
    for key in ("ArrowRight", "Enter", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    studio.expect("#before-links", "1")
    assert "Linked" in studio.text("#map-status")
    page.keyboard.press("Control+z")
    studio.expect("#before-links", "0")
    page.keyboard.press("Control+y")
    studio.expect("#before-links", "1")


def test_the_history_is_a_list_to_go_back_and_forth_in(studio: Studio) -> None:
    page = studio.page
    page.locator("#layer-distance").check()
    studio.tab("budget")
    studio.write("#set-epsilon", "2")
    studio.write("#set-epsilon", "0.5")
    studio.settle()
    studio.click("History")
    listed = page.locator("#history li")
    assert listed.all_inner_texts() == ["As opened", "Distance on", "ε 2", "ε 0.5"]
    listed.nth(1).get_by_role("button").click()
    sync_api.expect(page.locator("#set-epsilon")).to_have_value("1")
    assert listed.nth(3).inner_text() == "ε 0.5 (undone)"
    listed.nth(2).get_by_role("button").click()
    sync_api.expect(page.locator("#set-epsilon")).to_have_value("2")


def test_looking_at_another_scenario_loses_nothing(studio: Studio) -> None:
    page = studio.page
    page.locator("#layer-complete").check()
    studio.expect("#before-links", "10")
    page.locator("#world").select_option("clinic")
    studio.expect("#possible-note", re.compile("of 8"))
    assert page.locator("#undo").is_disabled()
    page.locator("#world").select_option("paper")
    studio.expect("#before-links", "10")
    studio.click("Undo")
    studio.expect("#before-links", "4")


def test_a_resting_slider_is_said_once(studio: Studio) -> None:
    page = studio.page
    said = page.locator("#announced")
    sync_api.expect(said).to_have_text(re.compile("An answer"))
    page.evaluate(
        """() => { window.said = [];
          new MutationObserver(() => window.said.push(1)).observe(
            document.getElementById("announced"), { childList: true }); }"""
    )
    studio.tab("budget")
    for _ in range(6):
        page.locator("#epsilon").press("ArrowLeft")
    sync_api.expect(page.locator("#set-epsilon")).to_have_value("0.05")
    sync_api.expect(said).to_have_text(re.compile("off by [0-9]{2,}"))
    assert page.evaluate("window.said.length") <= 2  # of six moves, also on a slow machine


def test_numbers_of_an_earlier_setting_are_never_shown_as_if_they_were_of_this(
    studio: Studio,
) -> None:
    page = studio.page
    held = []
    page.route("**/api/effects", lambda route: held.append(route))
    studio.tab("budget")
    studio.write("#set-epsilon", "2")
    sync_api.expect(page.locator("html")).to_have_class(re.compile("waiting"))
    assert page.locator("#effects").get_attribute("aria-busy") == "true"
    held[0].continue_()
    sync_api.expect(page.locator("html")).not_to_have_class(re.compile("waiting"))


# Budget


def test_a_budget_and_its_schedule_are_set_and_fit_each_other(studio: Studio) -> None:
    page = studio.page
    studio.tab("budget")
    studio.write("#limit-window", "24 steps")
    studio.write("#limit-amount", "6")
    sync_api.expect(page.locator("#panel-budget")).to_contain_text("The budget does not last")
    studio.write("#set-when-every", "8")
    sync_api.expect(page.locator("#speaks")).to_contain_text("It speaks every 8 steps")
    page.locator("#fit-price").click()
    sync_api.expect(page.locator("#set-epsilon")).to_have_value("2")
    assert page.locator("#fit-price").count() == 0


def test_a_setting_that_makes_no_sense_is_taken_back_with_a_sentence(studio: Studio) -> None:
    studio.tab("budget")
    studio.write("#set-epsilon", "many")
    sync_api.expect(studio.page.locator("#problem")).to_contain_text("epsilon must")
    sync_api.expect(studio.page.locator("#set-epsilon")).to_have_value("1")
    studio.problems.clear()  # the browser itself reports a refused request


# Files


def test_a_file_is_opened_edited_saved_and_checked_alike(browser: Any, town: Path) -> None:
    from dphmm.studio.server import run_in_background

    before = town.read_text()
    with run_in_background(town) as address:
        studio = Studio(browser, address).open()
        page = studio.page
        assert page.locator("#layer-distance").is_checked()
        assert page.locator("#layer-category").is_checked()
        studio.tab("save")
        sync_api.expect(page.locator("#difference")).to_have_text("Nothing was changed.")
        assert page.locator("#save-file").is_disabled()
        studio.tab("budget")
        studio.write("#set-epsilon", "2")
        studio.tab("save")
        sync_api.expect(page.locator("#difference del")).to_have_count(2)
        page.locator("#save-file").click()
        sync_api.expect(page.locator("#save-said")).to_have_text("Saved town.toml.")
        assert town.read_text() == before.replace('epsilon = "1"', 'epsilon = "2"')
        studio.expect("#headline", re.compile("An answer is typically off"))
        shown = studio.text("#stat-error")
        command = [sys.executable, "-m", "dphmm", "check", str(town), "--json"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        step = json.loads(result.stdout)["steps"][-1]
        assert f"{step['error']:.4g}" == shown.strip()
        assert studio.problems == []
        studio.context.close()


def test_a_link_restores_the_view_and_no_other_scenario_takes_it(
    browser: Any, studio: Studio, town: Path
) -> None:
    from dphmm.studio.server import run_in_background

    page = studio.page
    expose_s3(studio)
    page.locator("#colour").select_option("degree")
    studio.tab("save")
    page.locator("#download-link").click()
    link = page.locator("#link")
    sync_api.expect(link).to_have_value(re.compile("#v2"))
    other = studio.context.new_page()
    studio.watch(other)
    other.goto(link.input_value())
    sync_api.expect(other.locator("#stat-area")).to_have_text(str(paper.AREA_BEFORE_REPAIR))
    assert other.locator("#colour").input_value() == "degree"
    assert not any("v2." in url for url in studio.requests)
    with run_in_background(town) as address:
        own = Studio(browser, address).open()
        own.settle()
        fragment = own.page.evaluate("location.hash")
        stale = Studio(browser, studio.address)
        stale.page.goto(stale.address + fragment)
        sync_api.expect(stale.page.locator("#problem")).to_contain_text("must be")
        for one in (own, stale):
            one.context.close()


def test_a_damaged_link_opens_the_start_page(browser: Any, address: str) -> None:
    opened = Studio(browser, address).open("#v2.nonsense")
    opened.expect("#before-links", "4")
    assert opened.problems == []
    opened.context.close()


# Walks and what is taken away


def test_a_walk_says_that_it_is_simulated_plays_and_compares(studio: Studio) -> None:
    page = studio.page
    studio.tab("walk")
    assert "These people are simulated" in page.locator("#panel-walk").inner_text()
    page.locator("#compare").check()
    studio.tab("budget")
    studio.write("#set-epsilon", "0.2")
    studio.tab("walk")
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .line.b")
    answers = page.locator('#walk-result tr[data-error="answer"] td').all_inner_texts()
    assert float(answers[0]) > float(answers[1])
    sync_api.expect(page.locator("#walk-bar output")).to_have_text("step 48 of 48")
    page.locator("#play").click()
    sync_api.expect(page.locator("#walk-bar output")).to_have_text("step 3 of 48")
    page.locator("#play").click()
    studio.click("Undo")
    sync_api.expect(page.locator("#run-walk")).to_have_text("Settings changed: run again")


def test_an_answer_does_not_take_away_what_somebody_is_writing(studio: Studio) -> None:
    page = studio.page
    held: list[Any] = []
    page.route("**/api/effects", lambda route: held.append(route), times=1)
    studio.tab("budget")
    studio.write("#set-epsilon", "0.2")
    studio.tab("walk")
    page.locator("#walk-people").fill("3")
    sync_api.expect(page.locator("html")).to_have_class(re.compile("waiting"))
    held[0].continue_()
    sync_api.expect(page.locator("html")).not_to_have_class(re.compile("waiting"))
    sync_api.expect(page.locator("#walk-people")).to_have_value("3")
    studio.write("#walk-people", "7")
    sync_api.expect(page.locator("#walk-people")).to_have_value("6")


def test_several_people_are_in_one_film_and_each_can_be_looked_at(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("city")
    studio.expect("#possible-note", re.compile("of 5"))
    studio.tab("walk")
    studio.write("#walk-people", "3")
    page.locator("#run-walk").click()
    page.wait_for_selector("#error-plot .line.a")
    sync_api.expect(page.locator(".track .who")).to_have_count(3)
    assert sorted(page.locator(".track .who").all_text_contents()) == ["1", "2", "3"]
    assert page.locator(".track-truth .who").text_content() == "1"
    assert "over 3 people" in page.locator("#walk-result caption").inner_text()
    pooled = page.locator('#walk-result tr[data-error="answer"] td').inner_text()
    page.locator("#walk-time").fill("20")
    page.locator('#walk-bar label:has([name="person"][value="2"])').click()
    sync_api.expect(page.locator(".track-truth .who")).to_have_text("3")
    sync_api.expect(page.locator("#walk-bar output")).to_have_text(re.compile("step 20 of 48"))
    assert page.locator('#walk-result tr[data-error="answer"] td').inner_text() == pooled
    assert studio.axe() == []
    studio.write("#walk-people", "1")
    sync_api.expect(page.locator("#run-walk")).to_have_text("Settings changed: run again")


def test_an_answer_off_the_map_is_pointed_at(studio: Studio) -> None:
    page = studio.page
    studio.tab("budget")
    studio.write("#set-epsilon", "0.05")
    studio.tab("walk")
    page.locator("#run-walk").click()
    page.wait_for_selector("#error-plot .line.a")
    box = page.locator("#map svg").bounding_box()
    arrows = page.locator(".track-answers .away")
    assert arrows.count() > 10, "at so low a price most answers are far away"
    for circle in page.locator(".track-answers circle").all():
        assert 0 <= float(circle.get_attribute("cx")) <= box["width"]
        assert 0 <= float(circle.get_attribute("cy")) <= box["height"]
    for arrow in arrows.all():
        place = re.match(r"translate\(([-0-9.e]+),([-0-9.e]+)\)", arrow.get_attribute("transform"))
        assert 10 <= float(place[1]) <= box["width"] - 10
        assert 10 <= float(place[2]) <= box["height"] - 10
    assert "answer off the map" in page.locator("#legend").inner_text()


def test_a_walk_without_a_map_shows_its_numbers(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("clinic")
    studio.expect("#possible-note", re.compile("of 8"))
    studio.tab("walk")
    page.locator("#run-walk").click()
    page.wait_for_selector("#error-plot .line.a")
    assert " min" in studio.text('#walk-result tr[data-error="smoothed"] td')


def test_releases_pictures_and_toml_can_be_taken_away(studio: Studio, tmp_path: Path) -> None:
    page = studio.page
    studio.tab("walk")
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .line")
    moment = studio.download("#download-moment").read_text()
    assert "likely after it" in moment
    assert "simulated, step" in moment
    tracks = ("true walk (simulated)", "answer", "estimate", "six steps later", "in hindsight")
    for name in tracks:  # as beside the map
        assert f">{name}</text>" in moment
        assert name in page.locator("#legend").inner_text()
    studio.tab("save")
    for button in ("#download-plots", "#download-svg", "#download-hull"):
        page.locator("#details").evaluate("(e) => { e.open = true; }")
        assert ElementTree.fromstring(studio.download(button).read_text()).tag.endswith("svg")
    picture = studio.download("#download-svg").read_text()
    fingerprint = re.search("fingerprint ([0-9a-f]{16})", picture)
    assert fingerprint is not None
    for text in ("The paper's running example", "An answer is typically off by", "must look alike"):
        assert text in picture
    assert "likely after it" not in picture  # what a walk told stays in its own tab
    shared = studio.download("#download-page").read_text()
    assert fingerprint[1] in shared
    assert all(text in shared for text in ("4.9", "policy", "as released", "<svg"))
    assert "<script" not in shared
    rows = studio.download("#download-csv").read_text().splitlines()
    assert rows[0].startswith('"run","time","epsilon","spent","temperature","noise level"')
    assert len(rows) == 49
    assert studio.download("#download-png").read_bytes().startswith(PNG)
    assert 'category = "category"' in studio.download("#download-toml").read_text()
    assert page.locator("#download-geojson").is_disabled()
    with ZipFile(studio.download("#download-scenario")) as archive:
        assert "scenario.toml" in archive.namelist()


def test_a_city_walk_is_exported_as_geojson(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("city")
    studio.write("#city-size", "12")
    studio.expect("#possible-note", re.compile("of 1[0-9][0-9] "))
    studio.tab("walk")
    page.locator("#run-walk").click()
    page.wait_for_selector("#ledger-plot .line")
    studio.tab("save")
    collection = json.loads(studio.download("#download-geojson").read_text())
    longitude, latitude = collection["features"][0]["geometry"]["coordinates"]
    assert len(collection["features"]) == 48
    assert abs(longitude - 11) < 1
    assert abs(latitude - 48) < 1
    assert all(feature["properties"]["simulated"] for feature in collection["features"])


# The map


def painted(studio: Studio, colour: str) -> int:
    """How many pixels of the map have a colour."""
    return int(
        studio.page.evaluate(
            """(colour) => {
              const canvas = document.querySelector("#map canvas");
              const { width, height } = canvas;
              const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
              const wanted = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
              let found = 0;
              for (let i = 0; i < data.length; i += 4)
                if (wanted.every((value, j) => Math.abs(data[i + j] - value) < 3)) found += 1;
              return found;
            }""",
            colour,
        )
    )


def test_every_exposed_place_is_hatched_however_many(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("grid")
    studio.write("#grid-rows", "40")
    studio.write("#grid-columns", "40")
    studio.expect("#possible-note", re.compile("1,600"))
    studio.tab("noise")
    page.locator("#set-repair").select_option("none")
    studio.tab("policy")
    page.locator("#layer-distance").uncheck()
    studio.expect("#released-exposed", "1,600")
    assert "exposed (1,600)" in studio.text("#legend")
    alarm = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--alarm')")
    # A hatched cell shows its diagonal: at least a dozen pixels of the pure colour.
    assert painted(studio, alarm.strip()) > 12 * 1_600
    page.locator("#stages label").first.click()
    assert "exposed (1,600)" in studio.text("#legend")


def test_many_links_are_thinned_with_a_word_and_drawn_ones_are_not(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("grid")
    studio.expect("#possible-note", re.compile("of 400"))
    page.locator("#layer-complete").check()
    sync_api.expect(page.locator("#legend")).to_contain_text("of 79,800 links drawn")
    black = painted(studio, "#1d2329")
    page.locator("#layer-complete").uncheck()
    studio.tab("noise")
    page.locator("#set-repair").select_option("none")
    studio.tab("policy")
    page.locator("#layer-distance").uncheck()
    studio.tool("link")
    page.locator("#map").focus()
    for key in ("ArrowRight", "Enter", *["ArrowRight"] * 9, "Enter"):
        page.keyboard.press(key)
    studio.expect("#before-links", "1")
    page.locator("#layer-complete").check()
    sync_api.expect(page.locator("#legend")).to_contain_text("links drawn")
    assert painted(studio, "#1d2329") > black + 50


# For everybody


def test_a_term_explains_itself_in_a_sentence(studio: Studio) -> None:
    studio.page.locator('#exposure-card [data-word="exposed"]').first.click()
    assert "no other possible state hides" in studio.page.locator("#word-popover").inner_text()
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


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const bend = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((v) => bend(v / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (e) => {
    for (let one = e; one; one = one.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(one).backgroundColor);
      if (a > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("main *, header *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest(":disabled, svg, option")) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(style.color)), light(ground(e))].sort((x, y) => y - x);
    const shown = e.outerHTML.slice(0, 80);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`contrast ${shown}`);
    if (parseFloat(style.fontSize) < 12 && e.tagName !== "SUP") found.push(`small ${shown}`);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_large_and_dark_enough_on_every_tab(
    browser: Any, address: str, scheme: str
) -> None:
    studio = Studio(browser, address, color_scheme=scheme).open()
    expose_s3(studio)
    studio.page.locator("#details").evaluate("(e) => { e.open = true; }")
    for tab in ("policy", "budget", "noise", "time", "save", "walk"):
        studio.tab(tab)
        if tab == "walk":
            studio.page.locator("#run-walk").click()
            studio.page.wait_for_selector("#ledger-plot .line")
        studio.settle()
        assert studio.page.evaluate(CONTRAST) == [], tab
    studio.context.close()


def test_every_control_has_a_name_and_every_word_a_sentence(studio: Studio) -> None:
    page = studio.page
    expose_s3(studio)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select")].filter((e) =>
          !e.textContent.trim() && !e.getAttribute("aria-label") && !e.labels?.length
        ).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    texts = "(q) => [...document.querySelectorAll(q)].map((e) => e.dataset.word ?? e.textContent)"
    explained = set(page.evaluate(texts, "#words dt"))
    assert set(page.evaluate(texts, "[data-word]")) - explained == set()
    twice = page.evaluate(
        """() => { const all = [...document.querySelectorAll("[id]")].map((e) => e.id);
          return all.filter((id, i) => all.indexOf(id) !== i); }"""
    )
    assert twice == []


def test_tabs_follow_the_arrow_keys(studio: Studio) -> None:
    studio.page.locator("#tab-policy").focus()
    studio.page.keyboard.press("ArrowRight")
    assert studio.page.locator("#panel-budget").is_visible()
    assert studio.page.locator("#panel-policy").is_hidden()


WIDTHS = [(1440, 900), (1280, 720), (1024, 768), (720, 450), (400, 800)]


@pytest.mark.parametrize(("width", "height"), WIDTHS)
def test_nothing_overflows_and_what_is_needed_is_above_the_fold(
    browser: Any, address: str, width: int, height: int
) -> None:
    studio = Studio(browser, address).open()
    page = studio.page
    page.locator("#world").select_option("city")
    studio.write("#city-size", "12")
    studio.expect("#possible-note", re.compile("of 1[0-9][0-9] "))
    page.set_viewport_size({"width": width, "height": height})
    narrow = width <= 1000
    needed = {
        "policy": ["#layer-distance", "#radius", "#headline-strip" if narrow else "#headline"],
        "budget": ["#limit-amount", "#set-epsilon"],
        "noise": ["#set-mechanism"],
        "time": ["#start-kind"],
        "save": ["#difference" if width > 1000 else "#panel-save h2"],
        "walk": ["#panel-walk h2"],
    }
    for tab, fields in needed.items():
        studio.tab(tab)
        studio.settle()
        wide = """() => [document.documentElement, ...document.querySelectorAll(
          ".topbar, .controls, .effects, .stage, .map-bar, .panel:not([hidden])")]
          .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className || e.tagName)"""
        assert page.evaluate(wide) == [], tab
        tall = "() => document.documentElement.scrollHeight - innerHeight"
        assert page.evaluate(tall) <= 0, tab
        for field in ("#undo", "#save-button", "#map", *fields):
            box = page.locator(field).bounding_box()
            assert box is not None, field
            assert box["x"] >= 0, field
            assert box["x"] + box["width"] <= width + 1, field
            assert box["y"] + min(box["height"], 40) <= height, field
        assert page.locator("#map").bounding_box()["height"] > 80
    studio.context.close()


def test_the_result_is_a_tab_on_a_small_screen(browser: Any, address: str) -> None:
    studio = Studio(browser, address, viewport={"width": 400, "height": 800}).open()
    assert studio.page.locator("#headline").is_hidden()
    studio.tab("result")
    assert studio.page.locator("#headline").is_visible()
    assert studio.page.locator("#sides").is_visible()
    studio.context.close()


def test_a_finger_links_two_places(browser: Any, address: str) -> None:
    opened = Studio(browser, address, viewport=TABLET, has_touch=True).open()
    opened.tool("link")
    opened.page.touchscreen.tap(*opened.place("s2"))
    opened.page.touchscreen.tap(*opened.place("s5"))
    opened.expect("#headline-strip", re.compile("An answer"))
    sync_api.expect(opened.page.locator('[data-layer="edges"]')).to_contain_text("1 link")
    assert opened.problems == []
    opened.context.close()


def test_five_thousand_cells_are_drawn_and_zoomed(studio: Studio) -> None:
    page = studio.page
    page.locator("#world").select_option("grid")
    studio.write("#grid-rows", "70")
    studio.write("#grid-columns", "72")
    studio.expect("#possible-note", re.compile("5,040"))
    length = page.locator(".scale-text").text_content()
    page.locator("#zoom-in").click()
    page.locator("#zoom-in").click()
    sync_api.expect(page.locator(".scale-text")).not_to_have_text(length)


def test_a_refusal_of_the_server_is_shown_in_its_own_words(studio: Studio) -> None:
    page = studio.page
    refused = json.dumps({"error": "radius must be smaller"})
    page.route("**/api/effects", lambda route: route.fulfill(status=400, body=refused), times=1)
    # Not `check`, which wants the box to stay ticked: the refusal may come before it looks.
    page.locator("#layer-complete").click()
    sync_api.expect(page.locator("#problem")).to_have_text("radius must be smaller")
    sync_api.expect(page.locator("#layer-complete")).not_to_be_checked()
    studio.problems.clear()  # the browser itself reports a refused request
