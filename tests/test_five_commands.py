"""The five commands of the README on a made-up city of taxis, from a folder to a report."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cabs import write_cabs
from tests.scenarios import run

README = Path(__file__).parent.parent / "README.md"


def commands() -> list[list[str]]:
    """The five commands as the README has them, without the name of the program."""
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## From a folder of GPS files") :]
    block = re.search(r"```\n(.*?)```", section, re.S)
    assert block is not None
    found = [line.split()[1:] for line in block.group(1).splitlines()]
    assert [words[0] for words in found] == ["import", "import", "learn", "release", "report"]
    return found


def rows(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["person"], row["time"]) for row in csv.DictReader(file)]


def check_outputs(folder: Path, people: int) -> None:
    released = rows(folder / "town/released.csv")
    assert released == rows(folder / "town/people.csv"), "an answer for every step"
    assert len({person for person, _ in released}) == people
    page = (folder / "town/report.html").read_text(encoding="utf-8")
    assert page.count('<section class="person"') == people
    assert "Where you were during 10 steps" in page
    assert "not computed" not in page


def test_twenty_thousand_fixes_go_from_a_folder_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert write_cabs(tmp_path / "cabs/train", 8, 20_000, seed=1) == 20_000
    write_cabs(tmp_path / "cabs/people", 3, 900, seed=2)
    monkeypatch.chdir(tmp_path)
    for words in commands():
        # Cells of 2 km: 169 states, because the short form is about the way and not the size.
        result = run(*words, *(("--cell", "2 km") if "--around" in words else ()))
        assert result.exit_code == 0, (words, result.output)
    check_outputs(tmp_path, 3)


@pytest.mark.slow
def test_half_a_million_fixes_go_from_a_folder_to_a_report(tmp_path: Path) -> None:
    assert write_cabs(tmp_path / "cabs/train", 80, 500_000, seed=1) == 500_000
    write_cabs(tmp_path / "cabs/people", 20, 26_000, seed=2)
    for words in commands():
        subprocess.run([sys.executable, "-m", "dphmm", "--quiet", *words], cwd=tmp_path, check=True)
    check_outputs(tmp_path, 20)
