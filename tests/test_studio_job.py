"""The whole job on the page, from an empty one to the same numbers on the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.studio_page import Studio

sync_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("uvicorn")

pytestmark = pytest.mark.browser


def dphmm(*arguments: object) -> str:
    command = [sys.executable, "-m", "dphmm", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def gridded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of GPS data that `dphmm import` has laid a grid over."""
    import numpy as np

    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    rows = ["person,time,latitude,longitude"]
    for person in range(8):
        place = rng.uniform(0, 0.02, size=2)
        for minute in range(0, 600, 5):
            place = np.clip(place + rng.normal(0, 0.0015, size=2), 0, 0.02)
            stamp = f"2024-05-02T{8 + minute // 60:02d}:{minute % 60:02d}:00Z"
            rows.append(f"p{person},{stamp},{48 + place[0]:.6f},{11 + place[1]:.6f}")
    (folder / "tracks.csv").write_text("\n".join(rows) + "\n")
    town, area = folder / "town", ("--around", "48.01,11.01", "--kilometres", "3")
    dphmm("import", folder / "tracks.csv", *area, "--cell", "300 m", "-o", town, "-q")
    dphmm("learn", town / "trips.csv", "--scenario", town / "scenario.toml", "--force", "-q")
    return town


def test_the_whole_job_from_an_empty_page(browser: Any, gridded: Path) -> None:
    from dphmm.studio.server import run_in_background

    expect = sync_api.expect
    with run_in_background(gridded) as address:
        studio = Studio(browser, address, viewport={"width": 1440, "height": 900})
        page = studio.page

        # An empty page, and the folder of gridded data.
        page.goto(address)
        expect(page.locator("#start")).to_be_visible()
        listed = page.locator("#start-files .start-card")
        name = listed.first.locator("strong").inner_text()
        listed.first.click()
        page.wait_for_selector("html[data-drawn]", state="attached")

        # A daily budget, answers every two hours, spent evenly.
        studio.tab("budget")
        studio.write("#limit-window", "1 day")
        studio.write("#limit-amount", "12")
        studio.write("#set-when-every", "2 h")
        fit = page.locator("#fit-price")
        expect(page.locator("#speaks")).to_contain_text("12 answers in any 24 hours")
        if fit.count():
            fit.click()
        expect(page.locator("#set-epsilon")).to_have_value("1")

        # Who is exposed when only the nearest look alike and nothing is repaired?
        studio.tab("noise")
        page.locator("#set-repair").select_option("none")
        studio.tab("policy")
        for layer in ("category", "one_step", "complete"):
            if page.locator(f"#layer-{layer}").is_enabled():
                page.locator(f"#layer-{layer}").uncheck()
        page.locator("#layer-distance").check()
        studio.write("#radius-text", "1")
        expect(page.locator("#exposure")).to_contain_text("are exposed")
        expect(page.locator("#legend")).to_contain_text("exposed (")
        studio.tab("compare")
        page.locator("#version-name").fill("Exposed")
        page.locator("#keep-version").click()

        # Repair, by a rule that reaches the neighbours and by the method of the file.
        studio.tab("noise")
        page.locator("#set-repair").select_option("min_error")
        studio.tab("policy")
        page.locator("#radius").focus()
        page.keyboard.press("End")
        studio.expect("#released-exposed", "0")
        expect(page.locator("#headline")).to_contain_text("hides among at least")

        # A beside B.
        studio.tab("compare")
        row = page.locator('#compare-table [data-row="exposed"] td')
        expect(row.first).to_have_text("0")
        expect(row.nth(1)).not_to_have_text(re.compile("^(0|…)$"))
        expect(page.locator("#links-apart")).to_contain_text("only in A")

        # A walk, played.
        studio.tab("walk")
        page.locator("#run-walk").click()
        page.wait_for_selector("#ledger-plot .line")
        page.locator("#play").click()
        expect(page.locator("#walk-bar output")).to_have_text(re.compile("step [2-9] of"))
        page.locator("#play").click()

        # Save, export, and read what the page says.
        studio.tab("save")
        expect(page.locator("#difference ins").first).to_be_visible()
        page.locator("#save-file").click()
        expect(page.locator("#save-said")).to_have_text(f"Saved {name}.")
        studio.expect("#released-exposed", "0")
        expect(page.locator("#headline")).to_contain_text("hides among at least")
        page.locator("#details").evaluate("(e) => { e.open = true; }")
        shared = studio.download("#download-page").read_text()
        said = {
            "error": studio.text("#stat-error").split()[0],
            "least": studio.text("#released-least"),
            "headline": studio.text("#headline"),
        }
        assert said["headline"] in shared
        assert studio.problems == []
        studio.context.close()

    # The same numbers on the command line.
    checked = json.loads(dphmm("check", gridded / name, "--json"))
    step = checked["steps"][-1]
    assert f"{step['error']:.4g}" == said["error"].replace(",", "")
    assert f"{step['least_protection']:,}" == said["least"]
    assert step["exposed"] == []
    saved = (gridded / name).read_text()
    assert 'limit = "12 per 1 day"' in saved
    assert 'every = "2 h"' in saved
