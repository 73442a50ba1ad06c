"""`dphmm release` killed at any moment and run again: the same answers, each in the ledger."""

from __future__ import annotations

import csv
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dphmm.books.journal import Journal
from tests.scenarios import run, trips, written

PEOPLE = ("ann", "bob")
STEPS = 40
ROWS = [(person, step, 5) for step in range(1, STEPS + 1) for person in PEOPLE]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path)
    (tmp_path / "trips.csv").write_text(trips(*ROWS))
    (tmp_path / "key").write_bytes(bytes(range(32)))
    (tmp_path / "key").chmod(0o600)
    return tmp_path


def command(folder: Path, *more: object) -> list[str]:
    words = ("release", folder / "paper.toml", *more, "--key-file", folder / "key")
    return [sys.executable, "-m", "dphmm", *map(str, words)]


def uninterrupted(folder: Path) -> str:
    result = run(*command(folder, folder / "trips.csv", "--ledger", folder / "other")[3:])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def killed_after(folder: Path, lines: int, delay: float) -> list[str]:
    """The lines that left a run reading a pipe, killed some moments after so many of them."""
    with subprocess.Popen(
        command(folder, "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(trips(*ROWS))
        process.stdin.flush()
        left = [process.stdout.readline() for _ in range(lines + 1)]
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        left += process.stdout.readlines()
    return left


def check_ledger_holds(folder: Path, left: list[str]) -> None:
    """Every whole line that left has its record, with the same answer."""
    whole = [line for line in left if line.endswith("\n")]
    with Journal(folder / "paper.ledger.jsonl") as journal:
        said = {
            (person, str(record.time)): record.lattice
            for client, person in journal.people
            for record in journal.records(client, person)
        }
    for person, moment, x, y, *_ in list(csv.reader(whole))[1:]:
        assert said[person, moment] == (float(x), float(y))


def kill_and_run_again(folder: Path, kills: int, seed: int) -> None:
    moments = random.Random(seed)
    whole = uninterrupted(folder)
    for _ in range(kills):
        left = killed_after(folder, moments.randrange(len(ROWS)), moments.uniform(0, 0.004))
        assert whole.startswith("".join(left))
        check_ledger_holds(folder, left)
    last = run(*command(folder, folder / "trips.csv")[3:])
    assert last.exit_code == 0, last.stderr
    assert last.stdout == whole
    with Journal(folder / "paper.ledger.jsonl") as journal:
        said = {person: len(journal.records("", person)) for _, person in journal.people}
        assert said == dict.fromkeys(PEOPLE, STEPS)


def test_a_killed_pipe_gives_the_same_answers_when_run_again(folder: Path) -> None:
    kill_and_run_again(folder, kills=5, seed=1)


@pytest.mark.slow
def test_a_pipe_killed_many_times_gives_the_same_answers(folder: Path) -> None:
    kill_and_run_again(folder, kills=60, seed=2)


def test_a_killed_run_leaves_a_whole_file_or_none(folder: Path) -> None:
    whole, out = uninterrupted(folder), folder / "out.csv"
    moments = random.Random(3)
    partial = folder / ".out.csv.part"
    for _ in range(3):
        for path in (partial, out):
            path.unlink(missing_ok=True)
        process = subprocess.Popen(
            command(folder, folder / "trips.csv", "-o", out), stderr=subprocess.DEVNULL
        )
        # Killed while it writes, or a little later: the partial file appears when it begins.
        while not partial.exists() and not out.exists() and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(moments.uniform(0, 0.02))
        process.kill()
        process.wait(timeout=120)
        assert not out.exists() or out.read_text() == whole
    assert run(*command(folder, folder / "trips.csv", "-o", out)[3:]).exit_code == 0
    assert out.read_text() == whole
    assert not list(folder.glob(".*part"))


def answers_in(content: bytes) -> list[bytes]:
    return sorted(line for line in content.splitlines() if b'"kind": "answer"' in line)


def test_a_line_cut_short_in_the_ledger_is_removed(folder: Path) -> None:
    whole = uninterrupted(folder)
    ledger = folder / "other"
    content = ledger.read_bytes()
    for cut in (1, 20, len(content) - content.index(b"\n") - 5, len(content) - 3):
        ledger.write_bytes(content[:-cut])
        again = run(*command(folder, folder / "trips.csv", "--ledger", ledger)[3:])
        assert again.exit_code == 0, again.stderr
        assert again.stdout == whole
        assert answers_in(ledger.read_bytes()) == answers_in(content)
