"""Long work of the studio: it says how far it is, and ends when nobody waits for it."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.chain.markov import MarkovModel
from dphmm.scenario import Policy, Scenario, States
from dphmm.studio import progress, simulate
from dphmm.studio.effects import Situation, timeline
from dphmm.studio.examples import open_example
from dphmm.studio.progress import Job, Jobs, StoppedError
from dphmm.studio.requests import Draft, Open, Walk
from dphmm.studio.server import run_in_background
from dphmm.studio.simulate import expect_errors, walk

WAIT = 8.0


def until_still(taken: list[int]) -> int:
    """How many steps were taken in the end; it must come."""
    deadline, before = time.monotonic() + WAIT, -1
    while before != taken[0] and time.monotonic() < deadline:
        before = taken[0]
        time.sleep(0.3)
    assert before == taken[0]
    return before


def test_work_that_nobody_waits_for_ends_at_its_next_step() -> None:
    job = Job()
    with job.running():
        progress.begin(3)
        progress.step()
        job.stop()
        with pytest.raises(StoppedError):
            progress.step()
    assert (job.done, job.parts) == (2, 3)
    with pytest.raises(StoppedError), job.running():
        raise AssertionError("it is not begun any more")


def test_steps_without_a_job_count_for_nobody() -> None:
    progress.begin(3)
    progress.step()


def test_a_job_is_found_under_its_name_and_another_is_not() -> None:
    jobs = Jobs()
    job = jobs.begin("mine")
    job.done, job.parts = 2, 5
    assert jobs.describe("mine") == {"done": 2, "parts": 5}
    assert jobs.describe("yours") == {"done": 0, "parts": 0}


@pytest.mark.parametrize("kind", ["walk", "expected", "timeline", "repairs"])
def test_long_work_counts_its_parts_to_the_end(kind: str) -> None:
    opened, job = open_example(Open(name="paper")), Job()
    draft = Draft(changes={"start": "s1"})
    with job.running():
        if kind == "walk":
            walk(opened, Walk(length=5, people=2, runs=[draft, Draft()]))
        elif kind == "expected":
            expect_errors(opened, draft)
        elif kind == "timeline":
            timeline(opened.scenario_of(Draft(changes={"start": "s1"})), 2)
        else:
            Situation.of(opened.scenario_of(draft), 2).repairs(None)
    assert job.parts > 1
    assert job.done == job.parts


def scattered(folder: Path) -> Path:
    """A file of sixty places with no rule between them, whose repair tries every pair."""
    states = States.on_plane(np.random.default_rng(4).integers(0, 5_000, (60, 2)))
    anywhere = MarkovModel(np.full((60, 60), 1 / 60))
    chosen = {"mechanism": "laplace", "repair": "min_area"}
    path = folder / "scattered.toml"
    Scenario(states, anywhere, Policy(distance=1), epsilon=1, **chosen).save(path)
    return path


def test_a_repair_that_nobody_waits_for_ends_within_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, jobs = Scenario.load(scattered(tmp_path)), Jobs()
    job, heard = jobs.begin("mine"), []
    hear = job.hear

    def tire(share: float | None) -> None:
        heard.append(jobs.describe("mine")["done"])
        if heard[-1] > 0.1:
            job.stop()
        hear(share)

    monkeypatch.setattr(job, "hear", tire)
    with pytest.raises(StoppedError), job.running():
        Situation.of(scenario, 1).released()
    assert 0.1 < heard[-1] < 1
    assert heard == sorted(heard)
    assert jobs.describe("mine")["parts"] == 1


# The page


@pytest.mark.browser
def test_a_repair_shows_its_share_and_ends_in_the_server_when_it_is_stopped(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect

    from tests.studio_page import Studio

    taken: dict[Job, list[int]] = {}
    slow, go_on = threading.Event(), Job.hear
    slow.set()

    def dawdle(job: Job, share: float | None) -> None:
        taken.setdefault(job, [0])[0] += 1
        if slow.is_set():
            time.sleep(0.02)
        go_on(job, share)

    monkeypatch.setattr(Job, "hear", dawdle)
    with run_in_background(scattered(tmp_path)) as address:
        studio = Studio(browser, address).open()
        line = studio.page.locator("#work .work-line", has_text="Repairing exposed places")
        expect(line).to_have_text(re.compile(r"Repairing exposed places:.* \d+%, \d+ s"))
        line.get_by_role("button", name="Stop").click()
        expect(studio.page.locator("#headline")).to_have_text(re.compile("was stopped"))
        deadline = time.monotonic() + WAIT
        while not (stopped := [job for job in taken if job.is_stopped]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        until_still(taken[stopped[0]])
        slow.clear()
        studio.context.close()


@pytest.mark.browser
def test_a_long_walk_shows_how_far_it_is_and_is_stopped(
    studio: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect

    taken, slow = [0], threading.Event()
    slow.set()

    def dawdle() -> None:
        taken[0] += 1
        if slow.is_set():
            time.sleep(0.05)
        progress.step()

    page = studio.page
    page.wait_for_selector("#expected")  # its people walk as slowly as anybody
    monkeypatch.setattr(simulate, "step", dawdle)
    studio.tab("walk")
    studio.write("#walk-length", "600")
    page.locator("#run-walk").click()
    line = page.locator("#work .work-line", has_text="Releasing simulated people")
    expect(line).to_have_text(re.compile(r"Releasing simulated people:.* \d+%, \d+ s"))
    assert studio.axe_now() == []
    line.get_by_role("button", name="Stop").click()
    expect(page.locator("#problem")).to_have_text("Releasing simulated people was stopped.")
    expect(page.locator("#work")).to_be_hidden()
    expect(page.locator("#run-walk")).to_be_enabled()
    # The server stopped as well, and nothing is in the way of the next walk.
    assert until_still(taken) < 600
    slow.clear()
    page.locator("#run-walk").click()
    page.wait_for_selector("#error-plot .line.a")
    studio.problems[:] = [one for one in studio.problems if "409" not in one]


@pytest.mark.browser
def test_what_is_quick_shows_no_work(studio: Any) -> None:
    studio.tab("walk")
    studio.page.locator("#run-walk").click()
    studio.page.wait_for_selector("#error-plot .line.a")
    assert studio.page.locator("#work").is_hidden()
