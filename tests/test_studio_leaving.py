"""Leaving the page and coming back, other scenarios meanwhile, and work that nobody wants."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.studio import saving, shelf
from dphmm.studio.server import run_in_background
from tests.studio_page import Held, Studio, epsilon, sync_api
from tests.test_studio_live import END, HEAD, line

pytestmark = pytest.mark.browser
expect = sync_api.expect


def drawn(studio: Studio) -> None:
    studio.page.wait_for_selector("html[data-drawn]", state="attached")


# Reloading


def test_an_edit_just_before_a_reload_is_there_after_it(own: Studio) -> None:
    own.tab("budget")
    for price in ("2", "3"):
        own.write("#set-epsilon", price)
        own.page.reload()
        drawn(own)
        assert epsilon(own) == price
        assert own.page.locator("#panel-budget").is_visible()
    assert own.problems == []


def test_a_view_too_long_for_an_address_is_kept_for_a_reload(own: Studio) -> None:
    left = """async (edges) => {
      const { Address, takeLeft } = await import("/static/js/address.js");
      const view = { draft: { changes: {}, edges } };
      const long = new Address(() => ({ view, fingerprint: "print" }));
      await long.write();
      const address = location.href;
      long.leave();
      const found = takeLeft("reload");
      return [found.draft.edges.length, takeLeft("reload"), location.href === address];
    }"""
    edges = [[a * a % 9973, a * 7919 % 9973] for a in range(9000)]
    assert own.page.evaluate(left, edges) == [9000, None, True]


def test_another_link_is_not_taken_for_what_was_left(own: Studio) -> None:
    """Neither by typing it over the present one, nor by opening it anew."""
    own.tab("budget")
    own.write("#set-epsilon", "2")
    link = own.link_with("epsilon", "2")
    for leave in (f"location.href = '{link}'", None):
        own.page.goto(own.address)
        drawn(own)
        own.tab("budget")
        own.write("#set-epsilon", "5")
        if leave:
            own.page.evaluate(f"() => {{ {leave}; }}")
        else:
            own.page.goto(link)
        expect(own.page.locator("#set-epsilon")).to_have_value("2")


SLOWLY = """(seconds) => {
  const { text } = Response.prototype;
  Response.prototype.text = async function late() {
    await new Promise((resolve) => { setTimeout(resolve, 1000 * seconds); });
    return text.call(this);
  };
}"""


def test_another_link_is_not_written_over_by_the_last_edit(own: Studio) -> None:
    """The page writes its address half a second after an edit; reading a link may take longer."""
    own.tab("budget")
    own.write("#set-epsilon", "2")
    link = own.link_with("epsilon", "2")
    own.page.goto(own.address)
    drawn(own)
    own.tab("budget")
    own.page.evaluate(SLOWLY, 2)
    own.write("#set-epsilon", "5")
    own.page.evaluate(f"() => {{ location.href = '{link}'; }}")
    expect(own.page.locator("#set-epsilon")).to_have_value("2")


def test_an_address_that_is_no_link_is_left_for_the_next_edit(own: Studio) -> None:
    own.tab("budget")
    own.page.evaluate("() => { location.hash = 'nothing'; }")
    own.write("#set-epsilon", "2")
    own.link_with("epsilon", "2")


def test_who_types_the_bare_address_begins_anew(own: Studio) -> None:
    own.page.goto(own.address)
    drawn(own)
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.page.goto("about:blank")
    own.page.goto(own.address)
    drawn(own)
    assert epsilon(own) == "1"


def test_who_went_home_is_at_home_after_a_reload(own: Studio) -> None:
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.page.locator("#home").click()
    own.page.wait_for_timeout(900)
    own.page.reload()
    drawn(own)
    assert epsilon(own) == "1"


# Other scenarios meanwhile


def test_a_dropped_file_that_is_found_late_calls_nobody_back(browser: Any, town: Path) -> None:
    with run_in_background(town.parent) as address:
        studio = Studio(browser, address)
        studio.page.goto(address)
        held = Held(studio.page, "/api/drop")
        studio.page.locator("#start-pick").set_input_files(town)
        held.until(1)
        studio.page.locator("#start-clinic").click()
        drawn(studio)
        title = studio.page.title()
        held.let_go()
        studio.settle()
        assert studio.page.title() == title
        studio.context.close()


DROP = """(files) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) carried.items.add(new File([text], name));
  const target = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  return ["dragover", "drop"].map((kind) => {
    const options = { bubbles: true, cancelable: true, dataTransfer: carried };
    return !target.dispatchEvent(new DragEvent(kind, options));
  });
}"""


def test_a_file_dropped_on_the_map_is_taken_as_on_the_start_page(own: Studio, town: Path) -> None:
    """The browser would show the file instead of the page."""
    other = town.with_name("other.toml")
    other.write_text(re.sub('name = "[^"]*"', 'name = "other"', town.read_text()))
    states = town.with_name("states.csv")
    for files, said in (
        ([("tracks.geojson", "{}")], "tracks.geojson holds data"),
        ([("strange.toml", "x = 1")], "strange.toml must be in"),
    ):
        assert own.page.evaluate(DROP, files) == [True, True]
        expect(own.page.locator("#start-said")).to_contain_text(said)
        own.page.get_by_role("button", name="town.toml").click()
        expect(own.page.locator("#studio")).to_be_visible()
    # Of a whole folder the scenario is what counts.
    files = [(path.name, path.read_text()) for path in (states, other)]
    assert own.page.evaluate(DROP, files) == [True, True]
    expect(own.page).to_have_title(re.compile("^other"))


def test_a_command_is_safe_whatever_a_file_is_called(own: Studio) -> None:
    name = "-a $(touch x) 'b'.csv"
    code = """async (name) => (await import("/static/js/start.js")).commandFor(name)"""
    command = own.page.evaluate(code, name)
    assert command.startswith(r"""dphmm import './-a $(touch x) '\''b'\''.csv' --around""")
    assert own.page.evaluate(code, "tracks.csv").startswith("dphmm import tracks.csv --around")


def test_what_was_forgotten_and_is_another_now_is_not_computed_with(
    browser: Any, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server keeps a few scenarios; the page opens again what it forgot."""
    monkeypatch.setattr(shelf, "REMEMBERED", 1)
    with run_in_background(town.parent) as address:
        studio, other = Studio(browser, address), Studio(browser, address)
        studio.page.goto(address)
        studio.page.get_by_role("button", name="town.toml").click()
        drawn(studio)
        studio.settle()
        studio.tab("budget")
        other.open("#clinic")
        studio.write("#set-epsilon", "2")
        studio.expect("#released-exposed", "0")
        other.open("#paper")
        town.write_text(town.read_text().replace('distance = "1"', 'distance = "4"'))
        studio.write("#set-epsilon", "3")
        expect(studio.page.locator("#problem")).to_contain_text("changed since it was opened")
        expect(studio.page.locator("html")).to_have_class(re.compile("waiting"))
        studio.tab("save")
        expect(studio.page.locator("#difference")).to_contain_text("changed since it was opened")
        for one in (studio, other):
            one.context.close()


def test_what_is_released_of_one_scenario_is_not_on_the_map_of_another(
    browser: Any, town: Path
) -> None:
    ledger = town.with_name("ledger.jsonl")
    ledger.write_bytes(HEAD + END + line("ann", 1, saving.open_file(town).scenario.law) + END)
    with run_in_background(town, watch=ledger) as address:
        studio = Studio(browser, address).open()
        studio.tab("live")
        expect(studio.page.locator("#live-tell")).to_contain_text("1 answer about 1 person")
        studio.page.locator("#world").select_option("clinic")
        expect(studio.page.locator("#tab-live")).to_be_hidden()
        expect(studio.page.locator("#panel-policy")).to_be_visible()
        studio.page.locator("#world").select_option("own")
        expect(studio.page.locator("#tab-live")).to_be_visible()
        studio.context.close()


def test_a_film_of_another_version_b_is_not_shown_as_this_ones(own: Studio) -> None:
    own.tab("walk")
    own.page.locator("#compare").check()
    own.page.locator("#run-walk").click()
    own.page.wait_for_selector("#ledger-plot .line.b")
    expect(own.page.locator("#run-walk")).to_have_text("Run the walk")
    own.tab("budget")
    own.write("#set-epsilon", "4")
    own.tab("compare")
    own.page.locator("#keep-version").click()
    own.page.locator("#undo").click()
    own.tab("walk")
    expect(own.page.locator("#run-walk")).to_have_text("Settings changed: run again")
    expect(own.page.locator("#walk-result")).to_have_class(re.compile("stale"))
    expect(own.page.locator("#download-moment")).to_be_disabled()


def test_a_link_drawn_twice_before_the_first_answer_is_drawn_and_taken_away(
    studio: Studio,
) -> None:
    held = Held(studio.page, "/api/linked")
    studio.tool("link")
    for _ in range(2):
        for label in ("s1", "s6"):
            studio.page.mouse.click(*studio.place(label))
    held.until(2)
    held.let_go()
    expect(studio.page.locator("#map-status")).to_have_text("Unlinked s1–s6.")
    expect(studio.page.locator('[data-layer="edges"] .layer-about')).to_have_text("none yet")


def test_who_may_not_ask_any_more_keeps_their_edits(own: Studio) -> None:
    """A studio that was started anew knows nothing of this page."""
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.settle()
    sentence = {"error": "x-dphmm-studio must be this run's token; reload the page"}
    own.page.route("**/api/effects", lambda route: route.fulfill(status=403, json=sentence))
    own.write("#set-epsilon", "3")
    expect(own.page.locator("#problem")).to_contain_text("reload the page")
    assert epsilon(own) == "3"
    own.page.unroute("**/api/effects")


@pytest.mark.parametrize(
    "view", [{"step": -5}, {"step": 2.5}, {"zoom": "far"}, {"walk": {"time": "x"}}]
)
def test_a_link_made_by_hand_opens_all_the_same(own: Studio, view: dict[str, Any]) -> None:
    code = """async (view) => {
      const { fromFragment, toFragment } = await import("/static/js/state.js");
      const { fingerprint, world } = await fromFragment(location.hash);
      return toFragment({ world, ...view }, fingerprint);
    }"""
    own.tab("noise")
    expect(own.page).to_have_url(re.compile("#v2"))
    link = own.page.evaluate(code, view)
    own.page.goto("about:blank")
    own.page.goto(own.address + link)
    drawn(own)
    assert own.problems == []


def test_a_comparison_that_failed_is_asked_for_again(own: Studio) -> None:
    own.page.route("**/api/between", lambda route: route.abort())
    own.tab("compare")
    expect(own.page.locator("#map-status")).to_contain_text("does not answer")
    own.page.unroute("**/api/between")
    own.page.locator("#keep-version").click()
    expect(own.page.locator("#links-apart")).to_contain_text("in both")


def test_what_is_taken_away_has_the_numbers_of_its_scenario(own: Studio) -> None:
    """The page to share holds numbers that are seen, and the text of the scenario as edited."""
    saves: list[str] = []
    own.page.on("download", lambda one: saves.append(one.suggested_filename))
    held = Held(own.page, "/api/effects")
    own.tab("budget")
    own.write("#set-epsilon", "2")
    held.until(1)
    own.tab("save")
    for button in ("#download-page", "#download-svg", "#download-png", "#download-hull"):
        own.page.locator(button).click()
        expect(own.page.locator("#save-said")).to_contain_text("still being worked out")
        own.page.locator("#save-said").evaluate("(said) => { said.textContent = ''; }")
    assert saves == []
    held.let_go()
    expect(own.page.locator("html")).not_to_have_class(re.compile("waiting"))
    content = own.download("#download-page").read_text()
    assert re.search(r"^epsilon = (&quot;)?2(&quot;)?$", content, re.M)
    assert own.text("#released-error") in content


def test_the_map_of_another_version_is_not_shown_as_this_ones(own: Studio) -> None:
    own.tab("compare")
    own.page.wait_for_selector("#holder-b:not(.stale) #map-b")
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.settle()
    own.tab("compare")
    held = Held(own.page, "/api/effects")
    own.page.locator("#keep-version").click()
    held.until(1)
    expect(own.page.locator("#holder-b")).to_have_class(re.compile("stale"))
    held.let_go()
    expect(own.page.locator("#holder-b")).not_to_have_class(re.compile("stale"))


def test_nothing_is_undone_that_is_not_seen(own: Studio) -> None:
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.page.locator("#home").click()
    expect(own.page.locator("#start")).to_be_visible()
    own.page.keyboard.press("Control+z")
    own.page.get_by_role("button", name="town.toml").click()
    expect(own.page.locator("#studio")).to_be_visible()
    expect(own.page.locator("#set-epsilon")).to_have_value("2")


# Work that nobody wants


def test_an_edit_ends_the_repair_of_the_setting_before(own: Studio) -> None:
    """Otherwise the next repair waits until the last one is done, however long that takes."""
    ended: list[str] = []
    own.page.on("requestfailed", lambda request: ended.append(request.url))
    held = Held(own.page, "/api/released")

    def slowly(route: Any) -> None:
        found = route.fetch()
        content = found.json()
        content["released"] = None
        route.fulfill(response=found, json=content)

    own.page.route("**/api/effects", slowly)
    own.tab("budget")
    own.write("#set-epsilon", "2")
    held.until(1)
    own.write("#set-epsilon", "3")
    held.until(2)
    assert "released" in [url.rpartition("/")[2] for url in ended]
    held.is_held = False
    held.waiting[1].continue_()
    expect(own.page.locator("#headline")).to_contain_text("An answer")
    own.settle()
    assert own.page.locator("#problem").is_hidden()
    own.page.unroute("**/api/effects")
