"""What the studio's page promises besides its findings: one test for each that had none."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("uvicorn")
pytest.importorskip("playwright")

from playwright.sync_api import expect

from dphmm import MarkovModel, Scenario, States
from dphmm.noise.randomness import SeededRandomness
from dphmm.scenario import Clock, Policy
from dphmm.studio import effects
from dphmm.studio.examples import open_example
from dphmm.studio.requests import Draft, Open, Walk
from dphmm.studio.server import run_in_background
from dphmm.studio.simulate import walk
from tests.scenarios import paper_scenario
from tests.studio_page import Studio

WAIT = 20
MORNING = "2024-05-02T06:00:00Z"  # eight in Berlin


# Faithful


def test_a_film_is_what_a_stream_of_the_scenario_releases() -> None:
    opened = open_example(Open(name="paper"))
    draft = Draft(changes={"epsilon": "2", "mechanism": "staircase", "repair": "min_error"})
    film = walk(opened, Walk(seed=4, length=12, runs=[draft]))
    randomness = SeededRandomness(np.random.default_rng([4, 1]))
    stream = opened.scenario_of(draft).stream("somebody", time=0, randomness=randomness)
    released = [stream.release(state).answer.tolist() for state in film["path"]]
    assert [one["answer"] for one in film["runs"][0]["steps"]] == released


# The map


@pytest.mark.browser
def test_a_place_at_the_pointer_says_whom_it_looks_like(studio: Studio) -> None:
    page = studio.page
    expect(page.locator(".hull-here")).to_have_count(0)
    page.mouse.move(*studio.place("s2"))
    card = page.locator("#hover-card")
    expect(card).to_have_text(re.compile(r"^s2, .*: hidden by \d+ others?; .*% likely"))
    # What an answer of s2 could as well be of: every possible place in its hull.
    box = page.locator("#map svg").bounding_box()
    hull = page.locator(".hull-here").bounding_box()
    x, y = studio.place("s2")
    assert hull["x"] < x < hull["x"] + hull["width"]
    assert hull["y"] < y < hull["y"] + hull["height"]
    page.mouse.move(box["x"] + 3, box["y"] + box["height"] - 3)
    expect(card).to_be_hidden()


def many_kinds(folder: Path) -> Path:
    """Forty places on two streets, close to each other, of eleven kinds."""
    places = np.array([[i // 2 * 1.3, i % 2 * 9 + i * 0.2] for i in range(40)])
    kinds = tuple(f"kind {i % 11}" for i in range(40))
    names = tuple(f"a rather long name {i}" for i in range(40))
    states = States.on_plane(places, kinds, names)
    model = MarkovModel(np.full((40, 40), 1 / 40))
    scenario = Scenario(states, model, Policy(category="category"), epsilon=1)
    path = folder / "town.toml"
    scenario.replace(clock=Clock("1 h", zone="Europe/Berlin", origin=MORNING)).save(path)
    return path


COVERED = """() => {
  const boxes = [...document.querySelectorAll("#map .state-label")]
    .map((e) => e.getBoundingClientRect());
  const cover = (a, b) => a.left < b.right && b.left < a.right &&
    a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => cover(a, b))).length;
}"""


@pytest.mark.browser
def test_categories_beyond_the_palette_are_others_and_names_do_not_collide(
    browser: Any, tmp_path: Path
) -> None:
    with run_in_background(many_kinds(tmp_path)) as address:
        studio = Studio(browser, address).open()
        legend = studio.page.locator("#legend")
        assert legend.locator(".legend-symbol").count() == 8
        assert "other (4)" in legend.inner_text()
        studio.page.locator("#zoom-in").click()
        studio.page.locator("#zoom-in").click()
        studio.page.wait_for_timeout(500)
        assert studio.page.locator("#map .state-label").count() > 1
        assert studio.page.evaluate(COVERED) == 0
        studio.tab("save")
        assert "other (4)" in studio.download("#download-svg").read_text(encoding="utf-8")
        assert studio.problems == []
        studio.context.close()


# A film


@pytest.mark.browser
def test_a_film_has_the_clock_of_its_scenario(browser: Any, tmp_path: Path) -> None:
    with run_in_background(many_kinds(tmp_path)) as address:
        studio = Studio(browser, address).open()
        studio.tab("walk")
        studio.page.locator("#run-walk").click()
        studio.page.wait_for_selector("#ledger-plot .line")
        studio.page.locator("#walk-time").fill("3")
        clock = studio.page.locator("#walk-bar output")
        expect(clock).to_have_text("2 May 11:00, step 3 of 48")
        assert clock.get_attribute("title") == "Europe/Berlin"
        assert studio.problems == []
        studio.context.close()


# Long work


@pytest.mark.browser
def test_the_repair_of_873_exposed_places_shows_progress_and_can_be_stopped(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, hurry = studio.page, threading.Event()
    released = effects.Situation.released

    def dawdle(situation: effects.Situation) -> dict[str, Any]:
        if not situation.is_sound:
            hurry.wait(WAIT)  # on a slower machine, or with more to repair
        return released(situation)

    monkeypatch.setattr(effects.Situation, "released", dawdle)
    page.locator("#world").select_option("grid")
    studio.write("#grid-rows", "9")
    studio.write("#grid-columns", "97")
    studio.expect("#possible-note", re.compile("^873 places of 873"))
    studio.write("#radius-text", "0.1")
    studio.expect("#before-exposed", "873")
    line = page.locator("#work .work-line", has_text="Repairing exposed places")
    expect(line).to_have_text(re.compile(r"Repairing exposed places: .*[1-9]\d* s"))
    expect(page.locator("#headline")).to_have_text(re.compile("may take a while"))
    assert studio.axe_now() == []
    line.get_by_role("button", name="Stop").click()
    expect(page.locator("#headline")).to_have_text(re.compile("was stopped"))
    expect(line).to_have_count(0)
    studio.expect("#released-exposed", "…")  # and no number that nobody worked out
    hurry.set()
    studio.write("#radius-text", "0.15")
    studio.expect("#released-exposed", "0")
    expect(page.locator("#headline")).to_have_text(re.compile("hides among at least"))
    studio.problems[:] = [one for one in studio.problems if "409" not in one]


# Watching what is live


@contextmanager
def on_loopback(app: Any) -> Iterator[str]:
    """The address of a service, for a while."""
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + WAIT
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(timeout=WAIT)


@pytest.fixture
def elsewhere() -> Iterator[Any]:
    """Runs something in a thread of its own: the browser's has a loop of events already."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda work, *given: thread.submit(work, *given).result(WAIT)


def serve_somebody(folder: Path) -> tuple[Path, Any]:
    """A scenario at a service, with three answers about somebody of each of two clients."""
    from tests.service_worlds import World

    town, world = folder / "town.toml", World(folder)
    paper_scenario().save(town)
    for name in ("red", "blue"):
        client = world.client(name)
        held = client.add_scenario(town)
        client.begin(held, f"{name} ann", budget="4 per 10 steps")
        for slot in (1, 2, 3):
            client.release(held, f"{name} ann", slot, 2)
    return town, world


@pytest.mark.browser
def test_a_service_is_watched_on_the_page_with_a_key_that_may_only_read(
    browser: Any, elsewhere: Any, tmp_path: Path
) -> None:
    town, world = elsewhere(serve_somebody, tmp_path)
    key = tmp_path / "read.key"
    key.touch(0o600)
    key.write_text(world.keys["red", "read"])
    with (
        on_loopback(world.app) as service,
        run_in_background(town, watch=service, key_file=str(key)) as address,
    ):
        studio = Studio(browser, address).open()
        page = studio.page
        studio.tab("live")
        told = page.locator("#live-tell")
        expect(told).to_have_text(re.compile("3 answers about 1 person"))
        assert page.locator("#live-people tbody tr").all_inner_texts() == ["red ann\t3\t3\t75%"]
        assert page.locator(".track-answers circle, .track-answers .away").count() == 3
        assert "blue" not in page.content()

        def release() -> None:
            client = world.client("red")
            client.release(client.add_scenario(town), "red ann", 4, 4)

        elsewhere(release)
        expect(told).to_have_text(re.compile("4 answers about 1 person"))
        expect(page.locator("#live-tell strong")).to_have_text(re.compile("1 person spent 80%"))
        assert studio.axe() == []
        assert studio.problems == []
        studio.context.close()
    elsewhere(world.close)


@pytest.mark.browser
def test_a_store_is_watched_on_the_page(browser: Any, tmp_path: Path) -> None:
    from contextlib import closing

    from dphmm.books import Store
    from tests.test_studio_live import say

    town = tmp_path / "town.toml"
    paper_scenario(limit="4 per 10 steps").save(town)
    with closing(Store.open(str(tmp_path / "store.db"))) as store:
        say(town, store, "ann", (1, 2))
        with run_in_background(town, watch=tmp_path / "store.db") as address:
            studio = Studio(browser, address).open()
            studio.tab("live")
            told = studio.page.locator("#live-tell")
            expect(told).to_have_text(re.compile("2 answers about 1 person"))
            say(town, store, "bob", (3,))
            expect(told).to_have_text(re.compile("3 answers about 2 people"))
            assert studio.problems == []
            studio.context.close()


# The code


@pytest.mark.browser
def test_a_view_never_changes_and_a_change_makes_another(studio: Studio) -> None:
    frozen = """async () => {
      const { Store, firstView } = await import("/static/js/state.js");
      const store = new Store(firstView());
      const before = store.view;
      store.change({ step: 3 });
      return [Object.isFrozen(store.view), before.step, store.view.step, before !== store.view];
    }"""
    assert studio.page.evaluate(frozen) == [True, 10, 3, True]
