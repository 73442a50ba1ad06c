"""A disk that is full for once: one line is said, nothing is lost, and no moment is said twice."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dphmm import Store, StoreError
from dphmm.books import find_problems
from tests.crash.world import release, same
from tests.scenarios import is_one_line, run, trips, written
from tests.service_worlds import World


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk; skips where nobody may make one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=16m", "none", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("nobody may make a disk here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on a disk; gives the file to remove."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as out, suppress(OSError):
        while True:
            out.write(bytes(512))
    return filler


def test_a_service_on_a_full_disk_answers_with_one_line_and_goes_on(disk: Path) -> None:
    world = World(disk)
    try:
        said = {time: world.release(time, 4).json() for time in range(1, 6)}
        filler = fill(disk)
        refused = []
        for time in range(6, 200):
            answer = world.release(time, 4)
            if answer.status_code == 200:  # the log had pages of its own
                said[time] = answer.json()
                continue
            refused.append(time)
            assert answer.status_code in (503, 507), answer.text
            assert "nothing was lost" in answer.json()["problem"]
            assert "\n" not in answer.json()["problem"]
            if len(refused) == 5:
                break
        assert refused, "the disk was never full"
        spent = world.ask("GET", "/v1/people/anna/ledger").json()["spent"]
        assert spent == str(len(said))  # nothing was paid for what was refused
        for time in (1, 5):
            again = world.release(time, 2)
            if again.status_code == 200:
                assert again.json()["answer"] == said[time]["answer"]
        filler.unlink()
        for time, answer in said.items():
            assert world.release(time, 2).json()["answer"] == answer["answer"]
        later = {time: world.release(time, 4) for time in refused}
        assert {answer.status_code for answer in later.values()} == {200}
        assert find_problems(world.store) == []
        spent = world.ask("GET", "/v1/people/anna/ledger").json()["spent"]
        assert spent == str(len(said) + len(refused))
    finally:
        world.close()


def test_an_anchor_on_a_full_disk_lets_nothing_be_said(disk: Path, tmp_path: Path) -> None:
    with closing(Store.open(tmp_path / "store.db", anchor=disk / "anchor")) as store:
        block = (disk / "anchor").read_bytes()[4096:]
        with (disk / "anchor").open("wb") as file:  # as on a disk that copies what is written
            file.seek(4096)
            file.write(block)
        filler = fill(disk)
        for state in (4, 2):
            with pytest.raises(StoreError, match="nothing is said until it can"):
                release(store, "anna", 1, state)
        filler.unlink()
        first, _ = release(store, "anna", 1, 1)
        assert same(first, release(store, "anna", 1, 3)[0])
        assert store.ledger("anna").spent == 1
        assert store.is_current()


def test_an_anchor_has_its_room_from_the_first(disk: Path, tmp_path: Path) -> None:
    with closing(Store.open(tmp_path / "store.db", anchor=disk / "anchor")) as store:
        fill(disk)
        for slot in range(1, 4):
            release(store, "anna", slot, 4)
        assert store.is_current()


def test_a_store_does_not_need_an_anchor_for_which_there_was_no_room(
    disk: Path, tmp_path: Path
) -> None:
    Store.open(tmp_path / "store.db").close()
    fill(disk)
    with pytest.raises(StoreError, match="nothing is said until it can"):
        Store.open(tmp_path / "store.db", anchor=disk / "anchor")
    with closing(Store.open(tmp_path / "store.db")) as store:
        release(store, "anna", 1, 4)


def test_a_run_on_a_full_disk_says_one_line_and_loses_nothing(disk: Path, tmp_path: Path) -> None:
    scenario, rows = written(tmp_path), tmp_path / "trips.csv"
    moments = [(f"p{person}", time) for person in range(40) for time in range(1, 30)]
    rows.write_text(trips(*((person, time, 4) for person, time in moments)))
    ledger, output = disk / "ledger.jsonl", tmp_path / "out.csv"
    filler = fill(disk)
    with filler.open("r+b") as file:
        file.truncate(filler.stat().st_size - 65536)  # some room, not enough
    ended = run("release", scenario, rows, "-o", output, "--ledger", ledger)
    assert ended.exit_code == 2
    assert not output.exists()
    assert is_one_line(ended.stderr)
    assert "No space left" in ended.stderr
    assert "ledger.jsonl" in ended.stderr
    held = dict(answers_in(ledger))
    filler.unlink()
    assert run("release", scenario, rows, "-o", output, "--ledger", ledger).exit_code == 0
    answers = answers_in(ledger)
    assert len(answers) == len(moments) == len(dict(answers))
    assert held.items() <= dict(answers).items()


def answers_in(ledger: Path) -> list[tuple[tuple[str, int], str]]:
    """Moments and answers, line by line."""
    lines = map(json.loads, ledger.read_text().splitlines() if ledger.exists() else ())
    return [
        ((line["person"], line["slot"]), str(line["answer"]))
        for line in lines
        if line.get("kind") == "answer"
    ]
