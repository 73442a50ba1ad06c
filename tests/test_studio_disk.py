"""What happens to a scenario's files while the studio has it open."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.errors import DataError
from dphmm.scenario import Scenario
from dphmm.studio import saving
from dphmm.studio.server import run_in_background
from tests.scenarios import LABELS
from tests.studio_page import Held, Studio, sync_api
from tests.test_studio_faithful import draft_of
from tests.test_studio_server import Client

expect = sync_api.expect


def vanish(path: Path) -> None:
    path.unlink()


def garble(path: Path) -> None:
    path.write_bytes(b"\xff\xfe not text")


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


GONE = [vanish, garble, become_a_folder]


# Saving


def test_a_file_that_changed_since_can_be_saved_under_another_name(town: Path) -> None:
    opened = saving.open_file(town)
    town.write_text(town.read_text() + "\n# a colleague was here\n")
    saved = saving.save(opened, draft_of(changes={"epsilon": "3"}, name="mine.toml"))
    assert (saved.file, saved.scenario.settings.epsilon) == ("mine.toml", 3)
    assert "a colleague" not in town.with_name("mine.toml").read_text()
    assert "a colleague" in town.read_text()


@pytest.mark.parametrize("happen", GONE)
def test_a_file_that_cannot_be_read_any_more_is_said_to_be_so(
    town: Path, happen: Callable[[Path], None]
) -> None:
    with run_in_background(town) as address:
        client = Client(address)
        world = client.ask("/api/open", name="own")["world"]
        happen(town)
        asked = {"world": world, "changes": {"epsilon": "3"}}
        status, answer = client.post("/api/save", asked)
        assert (status, answer["error"][:10]) == (400, "town.toml:")
        assert str(town.parent) not in answer["error"]
        # What was done is not lost with it.
        assert client.ask("/api/save", **asked, name="mine.toml")["file"] == "mine.toml"
    assert Scenario.load(town.with_name("mine.toml")).settings.epsilon == 3


def test_links_that_a_colleague_wrote_meanwhile_are_not_written_over(town: Path) -> None:
    opened = saving.save(saving.open_file(town), draft_of(edges=[[0, 5]]))
    theirs = town.with_name("edges.csv")
    theirs.write_text(f"{theirs.read_text()}{LABELS[1]},{LABELS[2]}\n")
    with pytest.raises(DataError, match=r"edges\.csv: file must be as it was opened"):
        saving.save(opened, draft_of(edges=[[0, 5], [0, 1]]))
    assert f"{LABELS[1]},{LABELS[2]}" in theirs.read_text()
    saved = saving.save(opened, draft_of(edges=[[0, 5], [0, 1]], name="mine.toml"))
    assert saved.edges == [[0, 1], [0, 5]]


def test_opening_again_is_opening_what_is_there_now(town: Path) -> None:
    with run_in_background(town) as address:
        client = Client(address)
        before = client.ask("/api/open", name="own")
        town.write_text(re.sub(r"^epsilon = .*$", "epsilon = 7", town.read_text(), flags=re.M))
        after = client.ask("/api/open", name="own")
        assert (before["settings"]["epsilon"], after["settings"]["epsilon"]) == ("1", "7")
        assert client.ask("/api/open", name="own")["world"] == after["world"]
        asked = {"world": after["world"], "changes": {"epsilon": "8"}}
        assert client.ask("/api/save", **asked)["settings"]["epsilon"] == "8"


@pytest.mark.parametrize("happen", GONE)
def test_opening_again_what_cannot_be_read_any_more_is_refused(
    town: Path, happen: Callable[[Path], None]
) -> None:
    with run_in_background(town) as address:
        client = Client(address)
        world = client.ask("/api/open", name="own")["world"]
        happen(town)
        status, answer = client.post("/api/open", {"name": "own"})
        assert status == 400
        assert "town.toml" in answer["error"]
        # Who has it open still sees it.
        assert client.ask("/api/effects", world=world, step=1)["time"] == 1


# The page


@pytest.mark.browser
@pytest.mark.parametrize("button", ["#save-file", "#save-as"])
def test_pressing_save_twice_saves_once(own: Studio, button: str) -> None:
    own.tab("budget")
    own.write("#set-epsilon", "2")
    own.tab("save")
    own.page.locator("#save-name").fill("mine.toml")
    expect(own.page.locator("#save-file")).to_be_enabled()
    held = Held(own.page, "/api/save")
    own.page.locator(button).dblclick()
    held.until(1)
    own.page.wait_for_timeout(300)
    held.let_go()
    expect(own.page.locator("#save-said")).to_have_text(re.compile("^Saved (town|mine).toml.$"))
    own.settle()
    expect(own.page.locator("#save-said")).to_have_text(re.compile("^Saved (town|mine).toml.$"))
    assert len(held.waiting) == 1


@pytest.mark.browser
def test_what_changed_on_the_disk_is_there_after_a_reload(own: Studio, town: Path) -> None:
    own.tab("budget")
    own.write("#set-epsilon", "2")
    town.write_text(re.sub(r"^epsilon = .*$", "epsilon = 7", town.read_text(), flags=re.M))
    own.tab("save")
    own.page.locator("#save-file").click()
    expect(own.page.locator("#save-said")).to_contain_text("must be as it was opened")
    own.page.reload()
    expect(own.page.locator("#problem")).to_contain_text("link must be one to this scenario")
    expect(own.page.locator("#set-epsilon")).to_have_value("7")


@pytest.mark.browser
@pytest.mark.parametrize("happen", GONE)
def test_a_reload_of_what_cannot_be_read_says_so_and_offers_others(
    own: Studio, town: Path, happen: Callable[[Path], None]
) -> None:
    happen(town)
    own.page.reload()
    expect(own.page.locator("#start")).to_be_visible()
    expect(own.page.locator("#problem")).to_contain_text("town.toml")
