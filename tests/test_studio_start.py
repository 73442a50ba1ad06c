"""The page without a scenario: files of a folder, what was opened lately, examples, the tour."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.errors import ArgumentError
from dphmm.studio.server import run_in_background
from dphmm.studio.start import Start, recent_file
from tests.scenarios import paper_scenario


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a scenario, one in a folder in it, and files that are none."""
    paper_scenario().save(tmp_path / "town.toml")
    (tmp_path / "deep").mkdir()
    paper_scenario().save(tmp_path / "deep" / "other.toml")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "broken.toml").write_text("states = [")
    (tmp_path / "tracks.csv").write_text("person,time,lat,lon\n")
    return tmp_path


# Which files


def test_scenarios_are_told_from_other_files(folder: Path) -> None:
    listed = Start(folder).describe()
    assert [(one["where"], one["name"]) for one in listed["scenarios"]] == [
        ("deep", "other.toml"),
        ("", "town.toml"),
    ]
    assert listed["folder"] == str(folder.resolve())
    assert listed["recent"] == []


def test_nothing_but_what_is_listed_can_be_opened(folder: Path, tmp_path_factory: Any) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    paper_scenario().save(elsewhere / "secret.toml")
    outside = Start(elsewhere).describe()["scenarios"][0]["file"]
    start = Start(folder)
    assert start.find(start.describe()["scenarios"][1]["file"]).name == "town.toml"
    for file in (outside, str(elsewhere / "secret.toml"), "../secret.toml", "", None):
        with pytest.raises(ArgumentError, match="file must be one of the list"):
            start.find(file)


def test_what_was_opened_lately_is_kept_for_this_user_alone(folder: Path, tmp_path: Path) -> None:
    memory = tmp_path / "state" / "studio.json"
    for name in ("town.toml", "deep/other.toml", "town.toml"):
        Start(None, memory).remember(folder / name)
    listed = Start(None, memory).describe()
    assert [one["name"] for one in listed["recent"]] == ["town.toml", "other.toml"]
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600
    (folder / "town.toml").unlink()
    assert [one["name"] for one in Start(None, memory).describe()["recent"]] == ["other.toml"]


@pytest.mark.parametrize("content", ["", "{", "[1, null]", '["/etc/passwd", "/nowhere.toml"]'])
def test_a_damaged_memory_is_no_memory(tmp_path: Path, content: str) -> None:
    memory = tmp_path / "studio.json"
    memory.write_text(content)
    assert Start(None, memory).describe()["recent"] == []


def test_a_home_that_cannot_be_written_to_stops_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    Start(None, tmp_path / "file" / "studio.json").remember(folder / "town.toml")


def test_the_memory_is_where_the_system_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert recent_file() == Path("/somewhere/dphmm/studio.json")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert recent_file().parts[-4:] == (".local", "state", "dphmm", "studio.json")


def test_a_dropped_file_is_found_by_its_content(folder: Path) -> None:
    start = Start(folder)
    text = (folder / "town.toml").read_text()
    assert start.match("town.toml", text)["name"] == "town.toml"
    for name, content in (("town.toml", text + "\n"), ("mine.toml", text)):
        with pytest.raises(ArgumentError, match="dphmm studio FOLDER"):
            start.match(name, content)


# The page


def go(browser: Any, address: str, **options: Any) -> Any:
    from tests.studio_page import Studio

    studio = Studio(browser, address, **options)
    studio.page.goto(address)
    studio.page.wait_for_selector("html[data-start]", state="attached")
    return studio


@pytest.mark.browser
@pytest.mark.parametrize(
    ("scheme", "size"), [("light", (1440, 900)), ("dark", (720, 450)), ("light", (400, 800))]
)
def test_the_start_page_is_for_everybody(
    browser: Any, address: str, scheme: str, size: tuple[int, int]
) -> None:
    viewport = {"width": size[0], "height": size[1]}
    studio = go(browser, address, viewport=viewport, color_scheme=scheme)
    assert studio.axe() == []
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert studio.page.evaluate(wide)
    assert studio.page.locator("#start-title").bounding_box()["y"] < size[1] / 2
    studio.context.close()


@pytest.mark.browser
def test_a_listed_file_opens_and_home_leads_back_to_it(browser: Any, folder: Path) -> None:
    from playwright.sync_api import expect

    memory = folder / "memory.json"
    with run_in_background(folder, memory) as address:
        studio = go(browser, address)
        page = studio.page
        page.get_by_role("button", name="town.toml").click()
        page.wait_for_selector("html[data-drawn]", state="attached")
        assert page.locator("#world option:checked").inner_text() == "paper"
        page.locator("#world").select_option("clinic")
        studio.expect("#possible-note", re.compile("of 8"))
        page.locator("#world").select_option("own")
        studio.expect("#possible-note", re.compile("of 6"))
        page.locator("#home").click()
        expect(page.locator("#start")).to_be_visible()
        expect(page.locator("#studio")).to_be_hidden()
        assert studio.problems == []
        studio.context.close()
    assert json.loads(memory.read_text()) == [str((folder / "town.toml").resolve())]


@pytest.mark.browser
def test_dropped_files_open_or_say_what_to_do(browser: Any, folder: Path, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    with run_in_background(folder) as address:
        studio = go(browser, address)
        page = studio.page
        page.locator("#start-pick").set_input_files(folder / "tracks.csv")
        expect(page.locator("#start-said pre")).to_have_text(
            re.compile(r"dphmm import tracks.csv --around .* -o tracks\s[\s\S]*dphmm studio tracks")
        )
        strange = tmp_path / "strange.toml"
        strange.write_text("states = 'x'\n")
        page.locator("#start-pick").set_input_files(strange)
        expect(page.locator("#start-said .warning")).to_contain_text("strange.toml must be in")
        studio.problems.clear()  # the browser itself reports a refused request
        page.locator("#start-pick").set_input_files(folder / "town.toml")
        page.wait_for_selector("html[data-drawn]", state="attached")
        assert page.locator("#world option:checked").inner_text() == "paper"
        assert not any("tracks" in url for url in studio.requests)
        studio.context.close()


@pytest.mark.browser
def test_the_tour_walks_through_every_station_and_back_home(browser: Any, address: str) -> None:
    from playwright.sync_api import expect

    studio = go(browser, address)
    page = studio.page
    page.locator("#start-tour").click()
    page.wait_for_selector("html[data-drawn]", state="attached", timeout=60_000)
    seen = []
    for _ in range(9):
        expect(page.locator(".tour-target")).to_have_count(1)
        seen.append(page.locator("#studio").get_attribute("data-tab"))
        page.locator("#tour-next").click()
    assert seen == ["policy"] * 4 + ["budget", "noise", "walk", "compare", "save"]
    expect(page.locator("#start")).to_be_visible()
    assert studio.problems == []
    studio.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["paper", "clinic"])
def test_a_plain_name_after_the_hash_opens_that_example(
    browser: Any, address: str, name: str
) -> None:
    from tests.studio_page import Studio

    studio = Studio(browser, address).open(f"#{name}")
    assert studio.page.locator("#world").input_value() == name
    studio.context.close()
