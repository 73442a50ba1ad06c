"""The demo: the main job end to end, in a folder of its own."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from dphmm.cli.demo import FILES
from dphmm.demo import ANYWHERE, BUDGET, REACH, SMOOTHING
from dphmm.scenario import Scenario, read_model
from tests.scenarios import is_one_line, run

METRES = 650
"""In hindsight estimates are on average at most so far off, for a total of 24."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A demo of three people and what it printed."""
    folder = tmp_path_factory.mktemp("some where") / "demo"
    result = run("demo", "-o", folder, "--people", 3)
    assert result.exit_code == 0, result.output
    return folder, result.stdout


def test_the_demo_writes_every_file_that_it_names(made: tuple[Path, str]) -> None:
    folder, printed = made
    assert sorted(path.name for path in folder.iterdir()) == sorted(name for name, _ in FILES)
    assert all(name in printed for name, _ in FILES)


def test_a_second_run_says_the_same_and_spends_nothing(
    made: tuple[Path, str],
) -> None:
    folder, _ = made
    before = {name: (folder / name).read_bytes() for name, _ in FILES if name != "model.npz"}
    facts = json.loads(run("demo", "-o", folder, "--people", 3, "--json").stdout)
    assert facts["repeated"] == facts["steps"] == 3 * 288
    assert (facts["answers"], facts["spent"]) == (3 * 12, "24")
    assert before == {name: (folder / name).read_bytes() for name in before}
    settings = Scenario.load(folder / "city.toml").settings
    assert (settings.epsilon, str(settings.limit), settings.mechanism) == (2, BUDGET, "staircase")
    assert 'mechanism = "staircase"' in (folder / "city.toml").read_text()
    error = facts["mean_error"]
    assert error["smoothed"] < error["estimate"] < error["unknown"]
    assert error["smoothed"] < error["unknown"] / 2
    assert facts["exposed"] == 0


def test_what_it_says_to_type_next_works(made: tuple[Path, str]) -> None:
    _, printed = made
    lines = printed.partition("What to type next\n")[2].splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("  ")]
    names = [words[words.index("dphmm") + 1 :] for words in commands]
    assert [words[0] for words in names] == ["check", "design", "report", "studio"]
    for words in names[:-1]:
        fewer = ("--people", 1) if words[0] == "design" else ()
        result = run(*words, *fewer)
        assert result.exit_code == 0, result.output


def test_the_demo_says_how_a_release_file_is_made_as_release_does(made: tuple[Path, str]) -> None:
    folder, _ = made
    again = folder.parent / "again.csv"
    result = run("release", folder / "city.toml", folder / "trips.csv", "-o", again)
    assert result.exit_code == 0
    assert again.read_bytes() == (folder / "released.csv").read_bytes()


def test_the_model_is_the_one_that_learn_learns(made: tuple[Path, str]) -> None:
    folder, _ = made
    again = folder.parent / "again.npz"
    result = run(
        "learn", folder / "history.csv", "--states", folder / "cells.csv", "-o", again,
        "--time-step", "5 min", "--by", "hour", "--smoothing", SMOOTHING, "--radius", REACH,
        "--anywhere", ANYWHERE,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    ours, theirs = (read_model(path).model for path in (folder / "model.npz", again))
    assert ours.digest == theirs.digest


def test_more_people_join_and_nobody_is_answered_twice(made: tuple[Path, str]) -> None:
    folder, _ = made
    larger = folder.parent / "larger"
    shutil.copytree(folder, larger)
    facts = json.loads(run("demo", "-o", larger, "--people", 4, "--json").stdout)
    assert (facts["steps"], facts["repeated"]) == (4 * 288, 3 * 288)


def test_the_ledger_of_another_city_gets_one_line(made: tuple[Path, str]) -> None:
    folder, _ = made
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    (other / "city.ledger.jsonl").unlink()
    toml = other / "city.toml"
    toml.write_text(toml.read_text().replace('distance = "1000"', 'distance = "900"'))
    early = (other / "trips.csv").read_text().splitlines()[:3]
    (other / "early.csv").write_text("\n".join(early) + "\n")
    assert run("release", toml, other / "early.csv", "-o", other / "early").exit_code == 0
    result = run("demo", "-o", other, "--people", 3)
    assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
    assert "choose another with -o" in result.stderr


@pytest.mark.slow
def test_a_day_for_24_is_known_to_650_metres_in_hindsight(tmp_path: Path) -> None:
    # The noise is real: the mean over three times as many people varies half as much.
    facts = json.loads(run("demo", "--people", "36", "-o", tmp_path / "demo", "--json").stdout)
    assert facts["spent"] == "24"
    assert facts["mean_error"]["smoothed"] <= METRES


def test_a_folder_that_is_a_file_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("mine")
    result = run("demo", "-o", tmp_path / "demo")
    assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
    assert (tmp_path / "demo").read_text() == "mine"
