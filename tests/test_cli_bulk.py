"""Files of many people: moved together, with the output and the ledgers of single streams."""

from __future__ import annotations

import csv
import random
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from dphmm import MarkovModel
from dphmm.books.journal import Journal
from dphmm.release import drawing
from dphmm.release.admission import Place
from dphmm.release.moment import Line
from dphmm.scenario import Clock, Policy, Scenario, Settings, States
from tests.scenarios import FEWER, MARK, paper_scenario, run, scenarios, trips, written

PEOPLE = 24
Rows = list[tuple[str, int, int]]


def one_by_one() -> AbstractContextManager[object]:
    """Leave everybody to single streams."""
    return patch.object(drawing, "FEWEST_PEOPLE", 10**9)


def some_rows(
    seed: int, *, people: int = PEOPLE, states: int = 6, longest: int = 12, tick: int = 1
) -> Rows:
    """Rows of many people with gaps, in the order of time; everybody has at least three."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        count = int(rng.integers(3, longest))
        times = np.cumsum(rng.integers(1, 4, size=count)) + int(rng.integers(4))
        rows += [(f"person {person}", int(time) * tick, int(rng.integers(1, states + 1)))
                 for time in times]  # fmt: skip
    return sorted(rows, key=lambda row: row[1])


def release(folder: Path, text: str, ledger: str, *options: object) -> Result:
    """Release a file under the key of the folder."""
    (folder / "trips.csv").write_text(text)
    key = folder / "key"
    if not key.exists():
        key.write_bytes(bytes(range(32)))
        key.chmod(0o600)
    (scenario,) = folder.glob("*.toml")
    return run("release", scenario, folder / "trips.csv", "--key-file", key,
               "--ledger", folder / ledger, *options)  # fmt: skip


def said(ledger: Path) -> dict[str, list[object]]:
    with Journal(ledger) as journal:
        return {name: list(journal.records(client, name)) for client, name in journal.people}


def both_ways(folder: Path, text: str) -> tuple[Result, Result, int]:
    """Released together and one by one, and how many rows went together."""
    together = 0

    def counting(terms: object, group: list[drawing.Work], source: object) -> None:
        nonlocal together
        together += sum(len(work.times) for work in group)
        honest(terms, group, source)  # type: ignore[arg-type]

    honest = drawing._draw_together
    with (
        patch.object(drawing, "_draw_together", counting),
        patch.multiple(drawing, FEWEST_PEOPLE=1, FEWEST_ROWS=1),
    ):
        many = release(folder, text, "many.jsonl")
    with one_by_one():
        single = release(folder, text, "single.jsonl")
    return many, single, together


def assert_same(folder: Path, many: Result, single: Result) -> None:
    assert (many.exit_code, many.stderr) == (single.exit_code, single.stderr)
    assert many.stdout == single.stdout
    assert said(folder / "many.jsonl") == said(folder / "single.jsonl")


# Paper


def test_the_running_example_is_released_alike_for_many(tmp_path: Path) -> None:
    written(tmp_path)
    rows = some_rows(1)
    many, single, together = both_ways(tmp_path, trips(*rows))
    assert many.exit_code == 0, many.stderr
    assert together == len(rows)
    assert_same(tmp_path, many, single)
    lines = list(csv.reader(many.stdout.splitlines()))[1:]
    assert [(line[0], int(line[1])) for line in lines] == [row[:2] for row in rows]
    assert MARK not in many.output


def test_latitude_and_longitude_are_those_of_single_streams(tmp_path: Path) -> None:
    labels = tuple(f"{MARK}{number}" for number in range(1, 10))
    degrees = {
        "latitude": 52.5 + 0.004 * (np.arange(9) // 3),
        "longitude": 13.4 + 0.006 * (np.arange(9) % 3),
    }
    walk = MarkovModel(np.full((9, 9), 1 / 9))
    settings = Settings(
        "town", Fraction(1), policy=Policy(distance=Fraction(600)), start="uniform",
        step=Fraction(10),
    )  # fmt: skip
    Scenario.from_settings(settings, States(labels, degrees, {}), walk).save(tmp_path / "town.toml")
    rows = some_rows(2, states=9)
    many, single, together = both_ways(tmp_path, trips(*rows))
    assert many.exit_code == 0, many.stderr
    assert many.stdout.startswith("person,time,latitude,longitude,")
    assert together == len(rows)
    assert_same(tmp_path, many, single)


# Laws


@FEWER
@given(scenario=scenarios(), seed=st.integers(0, 2**32 - 1), origin=st.sampled_from([None, 0]))
def test_any_file_of_many_is_released_alike(
    scenario: Scenario, seed: int, origin: int | None
) -> None:
    tick = scenario.settings.clock.step
    assert isinstance(tick, int)
    object.__setattr__(scenario.settings, "clock", Clock(tick, origin))
    rows = some_rows(seed, states=len(scenario.states), longest=9, tick=tick)
    rows = [(person, moment + tick, state) for person, moment, state in rows]
    with TemporaryDirectory() as name:
        folder = Path(name)
        scenario.save(folder / "any.toml")
        many, single, together = both_ways(folder, trips(*rows))
        assert many.exit_code == 0, many.stderr
        assert (together > 0) == (scenario.settings.delta == 0)
        assert_same(folder, many, single)


def test_people_in_the_ledger_continue_among_the_new_ones(tmp_path: Path) -> None:
    written(tmp_path, limit=Fraction(60))
    rows = some_rows(3)
    known = {f"person {number}" for number in range(6)}
    before = [row for row in rows if row[0] in known][:20]
    assert release(tmp_path, trips(*before), "many.jsonl").exit_code == 0
    shutil.copy(tmp_path / "many.jsonl", tmp_path / "single.jsonl")
    many, single, together = both_ways(tmp_path, trips(*rows))
    assert many.exit_code == 0, many.stderr
    assert "20 rows got the answer that their step had already" in many.stderr
    assert together == len(rows) - 20
    assert_same(tmp_path, many, single)


def test_a_budget_that_does_not_suffice_for_one_costs_nobody_anything(tmp_path: Path) -> None:
    rows = some_rows(4)
    most = max(sum(row[0] == person for row in rows) for person, _, _ in rows)
    for limit in (most, most - 1):
        (tmp_path / str(limit)).mkdir()
        written(tmp_path / str(limit), limit=Fraction(limit))
        many, single, _ = both_ways(tmp_path / str(limit), trips(*rows))
        assert many.exit_code == (limit < most)
        assert_same(tmp_path / str(limit), many, single)
    assert not said(tmp_path / str(most - 1) / "many.jsonl")


def test_groups_leave_out_those_who_are_too_few_or_end_too_early() -> None:
    terms = paper_scenario().terms

    def lasts(*ends: int) -> list[list[int]]:
        works = [
            drawing.Work(
                terms=terms,
                line=Line("", str(number), "state"),
                place=Place(),
                times=np.array([1, 1, 1, end]),
                states=np.zeros(4, dtype=np.int64),
                prices=None,
                rows=np.arange(4),
                spoken=np.ones(4, dtype=bool),
            )
            for number, end in enumerate(ends)
        ]
        alone, groups = drawing._grouped(terms, works)
        assert len(alone) + sum(map(len, groups)) == len(works)
        return [[work.steps for work in group] for group in groups]

    assert lasts(*[9] * 15) == []
    assert lasts(*[9] * 16) == [[9] * 16]
    assert lasts(*[9] * 16, *[4] * 15) == [[9] * 16]
    assert lasts(*[5] * 8, *[9] * 8, *[4] * 16) == [[9] * 8 + [5] * 8, [4] * 16]
    with patch.object(drawing, "ROOM", 8 * 6 * 20):
        assert [len(group) for group in lasts(*[9] * 57)] == [20, 20, 17]


# Kills


@pytest.mark.parametrize("keyed", [True, False])
def test_a_killed_run_is_simply_run_again(tmp_path: Path, keyed: bool) -> None:
    scenario = written(tmp_path)
    rows = some_rows(5, people=100, longest=30)
    (tmp_path / "trips.csv").write_text(trips(*rows))
    (tmp_path / "key").write_bytes(bytes(32))
    (tmp_path / "key").chmod(0o600)
    ledger = tmp_path / "paper.ledger.jsonl"
    words = ["release", scenario, tmp_path / "trips.csv"]
    words += ["--key-file", tmp_path / "key"] if keyed else []
    moments = random.Random(6)
    for _ in range(2):
        ledger.unlink(missing_ok=True)
        with subprocess.Popen(
            [sys.executable, "-m", "dphmm", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            # Killed when the first answers are on disk, or a little later.
            while process.poll() is None and not (
                ledger.exists() and b'"answer"' in ledger.read_bytes()
            ):
                time.sleep(0.0005)
            time.sleep(moments.uniform(0, 0.01))
            process.kill()
            left = process.stdout.read()
        before = said(ledger)
        again = run(*words)
        assert again.exit_code == 0, again.stderr
        assert again.stdout.startswith(left)
        assert before
        after = said(ledger)
        assert all(after[person][: len(records)] == records for person, records in before.items())
        assert sum(map(len, after.values())) == len(rows)
        assert run(*words).stdout == again.stdout
    if keyed:
        with one_by_one():
            assert run(*words, "--ledger", tmp_path / "other").stdout == again.stdout
