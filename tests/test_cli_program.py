"""What every command has: help, units, quiet, color, completion, progress, and how it stops."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click
import numpy as np
import pytest

from dphmm import MarkovModel, PolicyGraph
from dphmm.cli import common
from dphmm.cli.program import COMMANDS, program
from dphmm.errors import ArgumentError
from dphmm.scenario import Policy, Scenario, Settings
from dphmm.tables.files import whole_file, write_whole
from tests.scenarios import MARK, is_one_line, run, trips, written

GOOD = trips(("ann", 1, 2), ("ann", 2, 4), ("bob", 1, 3))


def every_command() -> Iterator[tuple[str, ...]]:
    def below(group: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, command in group.commands.items() if isinstance(group, click.Group) else ():
            yield from below(command, (*path, name))

    context = click.Context(program)
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None
        yield from below(command, (name,))


# Help


@pytest.mark.parametrize("path", list(every_command()), ids=" ".join)
def test_help_has_its_examples_on_lines_of_their_own(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert "\\b" not in result.stdout
    assert "\b" not in result.stdout
    lines = result.stdout.splitlines()
    first = lines.index("  Example:") + 1
    examples = lines[first : lines.index("", first)]
    assert examples
    for example in examples:
        assert re.match(r"    (dphmm |eval |curl |tail |  --)", example), example
    assert any(example.startswith(f"    dphmm {' '.join(path)}") for example in examples) or (
        path == ("completion",)
    )
    assert "--quiet" in result.stdout
    assert "--color" in result.stdout


def test_help_of_the_program_lists_every_command() -> None:
    shown = run("--help").stdout
    assert all(re.search(rf"^  {name} ", shown, re.M) for name in COMMANDS)


# Units


@pytest.fixture
def metres(tmp_path: Path) -> Path:
    return written(tmp_path, unit="m")


def test_lengths_are_printed_with_their_unit_and_few_digits(metres: Path) -> None:
    lines = run("check", metres).stdout.splitlines()
    shown = "\n".join(line for line in lines if re.search(r"\d m$", line))
    assert " m^2 " in shown
    assert not re.search(r"e\+\d", shown)
    assert not re.search(r"\d\.\d{4}", shown)
    found = run("design", metres, "--find", "epsilon", "--error", 2)
    assert re.search(r"an error of at most [0-9.]+ m and hides", found.stdout)
    check = Scenario.load(metres).check()
    assert re.search(r"error [0-9.]+ m, for people who move as the model says", repr(check))
    assert " m" in check._repr_html_()


def test_a_wanted_error_may_have_a_unit(metres: Path, tmp_path: Path) -> None:
    plain = run("design", metres, "--find", "epsilon", "--error", 2).stdout
    for wish in ("2m", "2 m", "0.002km", "0.002 km", "200cm"):
        assert run("design", metres, "--find", "epsilon", "--error", wish).stdout == plain
    (tmp_path / "bare").mkdir()
    bare = written(tmp_path / "bare")
    for path, wish in ((bare, "2m"), (metres, "2 parsec"), (metres, "far"), (metres, "0 km")):
        result = run("design", path, "--find", "epsilon", "--error", wish)
        assert result.exit_code == 2
        assert is_one_line(result.stderr)
        assert "error must be" in result.stderr


def test_lengths_of_a_scenario_may_have_units(tmp_path: Path) -> None:
    path = written(tmp_path, unit="m", policy=Policy(distance=Fraction(250)))
    text = path.read_text()
    assert 'unit = "m"' in text
    path.write_text(text.replace('distance = "250"', 'distance = "0.25 km"'))
    assert Settings.read(path).policy.distance == 250
    path.write_text(text.replace('step = "1"', 'step = "50 cm"'))
    assert Settings.read(path).step == Fraction(1, 2)
    for wrong in ('distance = "250 s"', 'distance = "m"'):
        path.write_text(text.replace('distance = "250"', wrong))
        result = run("check", path)
        assert result.exit_code == 2
        assert "policy.distance must be" in result.stderr
    assert (
        Scenario.load(written(tmp_path)).replace(unit="m").law
        == Scenario.load(written(tmp_path)).law
    ), "a unit is for people to read"


def test_a_scenario_from_python_has_a_unit_as_a_file_has(tmp_path: Path) -> None:
    parts = ([[0, 0], [3, 0], [0, 4]], MarkovModel(np.full((3, 3), 1 / 3)), PolicyGraph.complete(3))
    town = Scenario(*parts, epsilon=1, unit="km", step="500 m")
    assert (town.settings.unit, town.query.step) == ("km", Fraction(1, 2))
    town.save(tmp_path / "town.toml")
    assert Scenario.load(tmp_path / "town.toml").settings == town.settings
    assert " km)" in str(town.check())
    assert town.law == Scenario(*parts, epsilon=1, step="0.5").law
    with pytest.raises(ArgumentError, match=r"step must be a bare number; .* got '500 m'"):
        Scenario(*parts, epsilon=1, step="500 m")


# Quiet and color


def test_quiet_leaves_results_and_errors(tmp_path: Path) -> None:
    path, out = written(tmp_path), tmp_path / "new.npz"
    (tmp_path / "trips.csv").write_text(GOOD)
    learn = ("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv", "-o", out)
    assert run(*learn).stdout
    for quiet in ((*learn, "-q"), ("--quiet", *learn)):
        result = run(*quiet)
        assert (result.exit_code, result.output) == (0, "")
    assert "Nobody is exposed" in run("check", path, "--quiet").stdout
    assert run("release", path, tmp_path / "trips.csv", "--quiet").stdout.count("\n") == 4
    assert is_one_line(run("check", tmp_path / "nowhere.toml", "--quiet").stderr)


def test_color_is_for_terminals_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    assert "\x1b[" not in run("check", path).output
    assert "\x1b[32mNobody" in run("check", path, "--color", "always").stdout
    assert "\x1b[32mNobody" in run("--color", "always", "check", path).stdout
    assert "\x1b[31m" in run("check", "nowhere.toml", "--color", "always").stderr
    assert "\x1b[" not in run("check", "nowhere.toml").stderr, "it does not last"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("check", path).output
    assert "\x1b[" not in run("check", path, "--color", "never").output


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str) -> None:
    script = run("completion", shell).stdout
    assert f"_DPHMM_COMPLETE={shell}_complete" in script
    assert run("completion", "dos").exit_code == 2


def completed(*words: str) -> list[str]:
    environment = os.environ | {
        "_DPHMM_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("dphmm", *words)),
        "COMP_CWORD": str(len(words)),
    }
    result = subprocess.run(
        [sys.executable, "-c", "from dphmm.cli import main; main()"],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return result.stdout.split()


def test_commands_options_and_files_are_completed() -> None:
    assert completed("re") == ["plain,release", "plain,report", "plain,reproduce"]
    assert "plain,--scenario" in completed("learn", "--s")
    assert completed("check", "to") == ["file,to"]
    assert completed("learn", "a.csv", "--moves", "m") == ["file,m"]


# Progress


def test_progress_in_a_log_is_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    (tmp_path / "trips.csv").write_text(GOOD)
    assert run("release", path, tmp_path / "trips.csv").stderr == "", "it did not take long"
    monkeypatch.setattr(common, "OFTEN", 0.0)
    result = run("release", path, tmp_path / "trips.csv")
    assert "dphmm: checking: 1\n" in result.stderr
    assert MARK not in result.stderr
    assert "\r" not in result.stderr
    tried = run("design", path, "--find", "radius", "--protection", 2, "--steps", 2)
    assert "dphmm: radii tried: 1\n" in tried.stderr
    assert run("release", path, "-", stdin=trips(("eve", 1, 2))).stderr == "", "a pipe has no end"


# How a run stops


class Interrupted:
    """What is interrupted while Python names it within a class."""

    def __set_name__(self, owner: object, name: str) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("within", ["a call", "a class"])
@pytest.mark.parametrize(
    ("command", "said"),
    [("release", "dphmm: stopped; run again to continue\n"), ("check", "dphmm: stopped\n")],
)
def test_a_run_that_is_stopped_says_what_to_do(
    command: str, said: str, within: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)

    def stop(*arguments: object, **options: object) -> None:
        if within == "a class":  # as when a module is imported
            type("Made", (), {"one": Interrupted()})
        raise KeyboardInterrupt

    monkeypatch.setattr(Scenario, "load", stop)
    result = run(command, path)
    # The first line is that of the ^C which the terminal shows.
    assert (result.exit_code, result.stderr) == (130, f"\n{said}")


def test_a_signal_stops_a_pipe_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path)
    command = [sys.executable, "-m", "dphmm", "release", str(path), "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(trips(("ann", 1, 2)))
        process.stdin.flush()
        first = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130
        assert process.stderr.read() == "\ndphmm: stopped; run again to continue\n"
    again = run("release", path, "-", stdin=trips(("ann", 1, 2), ("ann", 2, 4)))
    assert again.exit_code == 0
    assert again.stdout.startswith("".join(first)), "there is never a second answer"


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    (tmp_path / "trips.csv").write_text(GOOD)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    out = tmp_path / "new.npz"
    result = run("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv", "-o", out)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert f"{out}: disk must have room" in result.stderr
    assert not list(tmp_path.glob("*new.npz*"))


# Private files


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_private_files_are_closed_from_their_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("open before")
    path.chmod(0o666)
    with whole_file(path, private=True) as file:
        file.write(b"x")
        assert mode_of(tmp_path / ".secret.csv.part") == 0o600
    assert mode_of(path) == 0o600
    (tmp_path / ".other.csv.part").write_text("left by somebody")
    (tmp_path / ".other.csv.part").chmod(0o666)
    write_whole(tmp_path / "other.csv", "x", private=True)
    assert mode_of(tmp_path / "other.csv") == 0o600
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "public.csv", "x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "public.csv") == 0o644


def test_a_report_with_the_truth_is_closed_to_others(tmp_path: Path) -> None:
    path, released = written(tmp_path), tmp_path / "released.csv"
    (tmp_path / "trips.csv").write_text(GOOD)
    assert run("release", path, tmp_path / "trips.csv", "-o", released).exit_code == 0
    report = ("report", path, released, "-o")
    assert run(*report, tmp_path / "open.html").exit_code == 0
    truth = ("--private-truth", tmp_path / "trips.csv")
    assert run(*report, tmp_path / "mine.html", *truth).exit_code == 0
    assert mode_of(tmp_path / "mine.html") == 0o600
    assert mode_of(tmp_path / "open.html") & 0o044
