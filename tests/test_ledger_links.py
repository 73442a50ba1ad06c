"""Copied and linked ledgers by the commands: one file gives one answer a moment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import polars
import pytest

from dphmm import DataError
from dphmm.books.journal import Journal
from tests.crash.world import release
from tests.scenarios import is_one_line, run, trips, written

MOVED = "must stay where it is while it is open"

LINKS = {"hard": os.link, "soft": os.symlink}


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A folder with a scenario, two days of trips, and the first of them released."""
    written(tmp_path)
    for day, times in (("one", (1, 2, 3)), ("two", (4, 5, 6))):
        (tmp_path / f"{day}.csv").write_text(trips(*(("ann", time, 4) for time in times)))
    answers(tmp_path, "one", "ledger")
    return tmp_path


def answers(folder: Path, day: str, ledger: str) -> list[tuple[object, ...]]:
    out = folder / "out.csv"
    ran = run("release", folder / "paper.toml", folder / f"{day}.csv", "-o", out,
              "--ledger", folder / ledger)  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    return polars.read_csv(out).rows()


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_is_the_same_ledger(town: Path, kind: str) -> None:
    LINKS[kind](town / "ledger", town / "link")
    first = answers(town, "one", "ledger")
    assert answers(town, "one", "link") == first
    second = answers(town, "two", "link")
    assert answers(town, "two", "ledger") == second
    assert "spent 6" in run("ledger", "show", town / "ledger").stdout


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_is_refused_while_a_run_has_the_file(town: Path, kind: str) -> None:
    LINKS[kind](town / "ledger", town / "link")
    with Journal(town / "ledger"):
        ran = run("release", town / "paper.toml", town / "two.csv", "--ledger", town / "link")
    assert ran.exit_code == 2
    assert is_one_line(ran.stderr)
    assert "must be free, got one in use by a run" in ran.stderr
    assert ran.stdout == ""
    assert "spent 3" in run("ledger", "show", town / "ledger").stdout


def test_a_link_that_leads_elsewhere_meanwhile_lets_nothing_be_said(town: Path) -> None:
    shutil.copy(town / "ledger", town / "copy")
    os.symlink(town / "ledger", town / "link")
    book = Journal(town / "link")
    release(book, "ben", 1, 4)
    (town / "link").unlink()
    os.symlink(town / "copy", town / "link")
    with pytest.raises(DataError, match=MOVED):
        release(book, "ben", 2, 4)
    with pytest.raises(DataError, match=MOVED):
        book.close()


def test_a_copy_keeps_every_answer_that_the_file_had(town: Path) -> None:
    """What it is asked beyond them no file can know; the pages say so."""
    shutil.copy(town / "ledger", town / "copy")
    assert answers(town, "one", "copy") == answers(town, "one", "ledger")
    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()
    assert "A copy is another one, and nothing in it can tell" in " ".join(page.split())


def test_a_file_put_in_the_place_of_an_open_ledger_lets_nothing_be_said(town: Path) -> None:
    shutil.copy(town / "ledger", town / "copy")
    book = Journal(town / "ledger")
    os.replace(town / "copy", town / "ledger")
    with pytest.raises(DataError, match=MOVED):
        release(book, "ben", 1, 4)
    with pytest.raises(DataError, match=MOVED):
        book.close()
