"""`dphmm release`: rows in, the ledger first, answers out."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import DataError, KeyedRandomness
from dphmm.books.journal import Journal
from dphmm.cli.release import TOGETHER
from dphmm.scenario import Scenario, write_whole
from dphmm.tables import files
from tests.scenarios import (
    FEWER,
    LABELS,
    MARK,
    is_one_line,
    paper_scenario,
    run,
    scenarios,
    trips,
    written,
)

TRIPS = trips(("ann", 1, 2), ("bob", 1, 3), ("ann", 2, 4), ("ann", 4, 5), ("bob", 2, 5))


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "trips.csv").write_text(TRIPS)
    return written(tmp_path)


# Paper


def test_a_release_has_an_answer_and_an_estimate_for_every_row(scenario: Path) -> None:
    result = run("release", scenario, scenario.parent / "trips.csv")
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert list(rows[0]) == [
        "person",
        "time",
        "x",
        "y",
        "estimate_x",
        "estimate_y",
        "epsilon",
        "law",
    ]
    assert [(row["person"], row["time"]) for row in rows] == [
        *(("ann", "1"), ("bob", "1"), ("ann", "2"), ("ann", "4"), ("bob", "2")),
    ]
    assert {row["epsilon"] for row in rows} == {"1"}


def test_no_row_is_lost_between_the_blocks_that_are_written(tmp_path: Path) -> None:
    scenario, rows = written(tmp_path), [("ann", time, 1) for time in range(1, TOGETHER + 3)]
    (tmp_path / "trips.csv").write_text(trips(*rows))
    result = run("release", scenario, tmp_path / "trips.csv")
    assert result.exit_code == 0, result.stderr
    assert [row["time"] for row in table(result.stdout)] == [str(time) for _, time, _ in rows]


def test_the_answers_are_those_of_a_stream_with_the_same_key(scenario: Path) -> None:
    key = scenario.parent / "key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    result = run("release", scenario, scenario.parent / "trips.csv", "--key-file", key)
    randomness = KeyedRandomness(bytes(range(32)))
    stream = Scenario.load(scenario).stream("ann", time=0, randomness=randomness)
    expected = [stream.release(1), stream.release(3)]
    stream.skip()
    expected.append(stream.release(4))
    answers = [row for row in table(result.stdout) if row["person"] == "ann"]
    for row, release in zip(answers, expected, strict=True):
        assert [float(row["x"]), float(row["y"])] == release.answer.tolist()
        written = [float(row["estimate_x"]), float(row["estimate_y"])]
        assert written == release.estimate.round(3).tolist(), "a thousandth of the lattice's step"


def test_json_lines_come_in_and_go_out(scenario: Path) -> None:
    lines = [{"person": "ann", "time": 3, "state": LABELS[1]}, {"person": "ann", "time": 4,
             "state": LABELS[3]}]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    result = run("release", scenario, "-", "--json", stdin=text)
    assert result.exit_code == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["time"] for answer in answers] == [3, 4]
    assert set(answers[0]) == {
        "person",
        "time",
        "x",
        "y",
        "estimate_x",
        "estimate_y",
        "epsilon",
        "law",
    }


def test_coordinates_however_far_are_the_nearest_state(scenario: Path) -> None:
    # States s5 and s3 are possible at steps 1 and 2; the same key gives the same answers.
    key = scenario.parent / "key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    near = "person,time,x,y\nann,1,1e200,1e200\nann,2,3,-0.4\n"
    first = run("release", scenario, "-", "--key-file", key, "--ledger",
                scenario.parent / "a", stdin=near)  # fmt: skip
    second = run("release", scenario, "-", "--key-file", key, "--ledger",
                 scenario.parent / "b", stdin=trips(("ann", 1, 5), ("ann", 2, 3)))  # fmt: skip
    assert first.exit_code == 0, first.stderr
    assert first.stdout == second.stdout


def test_parquet_is_read(scenario: Path) -> None:
    polars = pytest.importorskip("polars")
    path = scenario.parent / "trips.parquet"
    polars.DataFrame(
        {"person": ["a", "a"], "time": [1, 2], "state": list(LABELS[1:3])}
    ).write_parquet(path)
    result = run("release", scenario, path)
    assert result.exit_code == 0, result.stderr
    assert len(table(result.stdout)) == 2


def test_columns_may_have_other_names(scenario: Path) -> None:
    text = TRIPS.replace("person,time,state", "rider,when,cell")
    names = ("--column", "person=rider", "--column", "time=when", "--column", "state=cell")
    assert run("release", scenario, "-", *names, stdin=text).exit_code == 0
    alone = "time,state\n9,zq2\n"
    assert run("release", scenario, "-", "--person", "carl", stdin=alone).exit_code == 0


def test_a_later_run_continues_the_stream_and_the_budget(tmp_path: Path) -> None:
    path = written(tmp_path, limit=Fraction(3))
    ledger = tmp_path / "people.jsonl"
    first = trips(("ann", 1, 2), ("ann", 2, 4))
    assert run("release", path, "-", "--ledger", ledger, stdin=first).exit_code == 0
    more = trips(("ann", 3, 5))
    assert run("release", path, "-", "--ledger", ledger, stdin=more).exit_code == 0
    refused = run("release", path, "-", "--ledger", ledger, stdin=trips(("ann", 4, 5)))
    assert refused.exit_code == 1
    assert "3 spent and 0 remaining" in refused.stderr
    with Journal(ledger) as journal:
        assert [record.time for record in journal.records("", "ann")] == [1, 2, 3]
        assert sum(record.epsilon for record in journal.records("", "ann")) == 3


def test_an_answer_in_the_ledger_stands_whatever_the_row_says_now(scenario: Path) -> None:
    first = run("release", scenario, "-", stdin=trips(("ann", 1, 2), ("ann", 2, 4)))
    second = run("release", scenario, "-", stdin=trips(("ann", 1, 3), ("ann", 2, 3)))
    assert first.stdout == second.stdout
    assert "2 rows got the answer that their step had already" in second.stderr


def test_another_name_has_the_same_answers_and_the_same_budget(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        scenario = paper_scenario(limit=Fraction(3))
        object.__setattr__(scenario.settings, "name", name)
        scenario.save(tmp_path / name / "scenario.toml")
    ledger = ("--ledger", tmp_path / "people.jsonl")
    rows = trips(("ann", 1, 2), ("ann", 2, 4))
    assert run("release", tmp_path / "one/scenario.toml", "-", *ledger, stdin=rows).exit_code == 0
    second = run("release", tmp_path / "two/scenario.toml", "-", *ledger, stdin=rows)
    assert second.exit_code == 0, "a name is not a reason for a second answer"
    more = trips(("ann", 3, 5), ("ann", 4, 5))
    third = run("release", tmp_path / "two/scenario.toml", "-", *ledger, stdin=more)
    assert third.exit_code == 1
    assert len(table(third.stdout)) == 1


def test_a_changed_policy_must_be_adopted(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert run("release", path, "-", stdin=trips(("ann", 1, 2))).exit_code == 0
    path.write_text(path.read_text().replace('category = "category"', "complete = true"))
    result = run("release", path, "-", stdin=trips(("ann", 2, 4)))
    assert result.exit_code == 2
    assert "dphmm ledger adopt" in result.stderr


# Laws


@FEWER
@given(
    scenario=scenarios(),
    people=st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    data=st.data(),
)
def test_any_scenario_releases_every_row_once(
    scenario: Scenario, people: list[str], data: st.DataObject
) -> None:
    n_states, tick = len(scenario.states), scenario.settings.clock.step
    assert isinstance(tick, int)
    time = dict.fromkeys(people, 0)
    rows = []
    for person in people:
        time[person] += tick * data.draw(st.integers(1, 3))
        rows.append((person, time[person], data.draw(st.integers(1, n_states))))
    with TemporaryDirectory() as folder:
        path, text = Path(folder) / "any.toml", trips(*rows)
        scenario.save(path)
        result = run("release", path, "-", stdin=text)
        assert result.exit_code == 0, result.stderr
        answers = table(result.stdout)
        slots = [(person, when // tick * tick) for person, when, _ in rows]
        assert [(row["person"], int(row["time"])) for row in answers] == slots
        steps = np.array([[float(r["x"]), float(r["y"])] for r in answers]) / float(
            scenario.settings.step
        )
        np.testing.assert_array_equal(steps, np.rint(steps))
        again = run("release", path, "-", stdin=text)
        assert again.stdout == result.stdout
        content = (Path(folder) / "any.ledger.jsonl").read_text()
        ledger = re.sub(r'"standing": "[^"]*"', "", content)  # chance letters
        assert MARK not in ledger + result.output + again.output
        with Journal(Path(folder) / "any.ledger.jsonl") as journal:
            for person in set(people):
                said = journal.records("", person)
                assert len(said) == people.count(person)
                assert all(record.epsilon == scenario.settings.epsilon for record in said)


# Two runs at once


def test_a_second_run_with_the_same_output_is_refused_and_spends_nothing(scenario: Path) -> None:
    folder, out = scenario.parent, scenario.parent / "out.csv"
    words = ["release", scenario, "-", "--ledger", folder / "a", "-o", out]
    with subprocess.Popen(
        [sys.executable, "-m", "dphmm", *map(str, words)], stdin=subprocess.PIPE, text=True
    ) as first:
        assert first.stdin is not None
        while not (folder / ".out.csv.part").exists():
            assert first.poll() is None
            time.sleep(0.01)
        again = run("release", scenario, folder / "trips.csv", "--ledger", folder / "b", "-o", out)
        assert again.exit_code == 2
        assert is_one_line(again.stderr)
        assert "out.csv: output must be free, got one in use by a run" in again.stderr
        first.communicate(TRIPS)
    assert first.returncode == 0
    with Journal(folder / "b") as journal:
        assert not journal.people
    assert len(table(out.read_text())) == 5
    assert run("release", scenario, folder / "trips.csv", "-o", out).exit_code == 0
    assert not list(folder.glob(".*part"))


def test_files_that_many_write_at_once_are_whole(tmp_path: Path) -> None:
    path, contents = tmp_path / "file", [bytes([65 + n]) * 50_000 for n in range(6)]
    written: list[bytes] = []

    def write(content: bytes) -> None:
        for _ in range(40):
            with suppress(DataError):
                write_whole(path, content)
                written.append(path.read_bytes())

    workers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert written
    assert set(written) <= set(contents)
    assert list(tmp_path.iterdir()) == [path]


def test_what_another_run_has_just_finished_is_not_written_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, partial, honest = tmp_path / "file", tmp_path / ".file.part", files.hold

    def hold_late(file: BinaryIO, what: str) -> None:
        monkeypatch.undo()
        partial.write_text("theirs")
        partial.rename(path)  # between being opened and being locked
        honest(file, what)

    monkeypatch.setattr(files, "hold", hold_late)
    with files.whole_file(path) as out:
        assert path.read_text() == "theirs"
        out.write(b"ours")
    assert path.read_text() == "ours"


# Oracle


def test_a_file_and_a_pipe_give_the_same_answers(scenario: Path) -> None:
    key = scenario.parent / "key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    options = ("--key-file", key, "--ledger")
    out = scenario.parent / "out.csv"
    file = run("release", scenario, scenario.parent / "trips.csv", *options,
               scenario.parent / "a", "-o", out)  # fmt: skip
    pipe = run("release", scenario, "-", *options, scenario.parent / "b", stdin=TRIPS)
    assert file.exit_code == pipe.exit_code == 0
    assert out.read_text() == pipe.stdout
    assert not list(scenario.parent.glob(".*part"))


def test_a_file_says_what_it_holds_and_its_name_says_its_kind(tmp_path: Path) -> None:
    path, out = written(tmp_path), tmp_path / "out.csv"
    rows = trips(("ann", 1, 2), ("ann", 2, 4), ("bob", 1, 3))
    assert run("release", path, "-", "-o", out, stdin=rows).stdout == (
        f"{out}: 3 rows of 2 people; may leave\n"
    )
    assert run("release", path, "-", "-o", out, "--quiet", stdin=rows).stdout == ""
    lines = tmp_path / "out.jsonl"
    assert run("release", path, "-", "-o", lines, stdin=rows).exit_code == 0
    assert [json.loads(line)["person"] for line in lines.read_text().splitlines()] == [
        "ann", "ann", "bob",
    ]  # fmt: skip
    ledger = tmp_path / "new.jsonl"
    for name in ("out.parquet", "out.geojson", "out.csv.gz"):
        refused = run("release", path, "-", "-o", tmp_path / name, "--ledger", ledger, stdin=rows)
        assert (refused.exit_code, is_one_line(refused.stderr)) == (2, True)
        assert f"{name}: output must be CSV, or JSON lines with --json" in refused.stderr
        assert not (tmp_path / name).exists()
        assert not ledger.exists(), "nothing was spent"
