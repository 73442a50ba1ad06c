"""Bad input: one clear line that never holds a true state, the right code, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import Stream
from dphmm.books.journal import Journal
from dphmm.scenario import Clock
from tests.scenarios import MARK, is_one_line, paper_scenario, run, trips, written

SECRET = "7734.25"
"""A coordinate that is nowhere else."""

GOOD = trips(("ann", 1, 2))
TOML_LINES = [line for line in paper_scenario().settings.to_toml().splitlines() if " = " in line]

ROWS = {
    "an unknown state": (GOOD + f"ann,2,{MARK}99\n", "trips.csv:3: state must"),
    "a time that is none": (GOOD + f"ann,soon,{MARK}3\n", "trips.csv:3: time must be a whole"),
    "a date where numbers are": (GOOD + f"ann,2024-01-01T00:00Z,{MARK}3\n", "5 min"),
    "an empty person": (GOOD + f",2,{MARK}3\n", "trips.csv:3: person must be given"),
    "a missing field": (GOOD + f"{MARK}3\n", "trips.csv:3: row must have 3 fields"),
    "an extra field": (GOOD + f"ann,2,{MARK}3,{MARK}4\n", "trips.csv:3: row must have 3 fields"),
    "an open quotation": (GOOD + f'ann,2,"{MARK}3\n', "trips.csv:3: row must be CSV"),
    "an empty file": ("", "trips.csv: file must hold at least one row"),
    "a file of blank lines": ("\n \n", "trips.csv: file must hold at least one row"),
    "a header alone": ("person,time,state\n", "trips.csv: file must hold at least one row"),
    "no column for the state": (f"person,time,place\nann,1,{MARK}3\n", "state or x and y"),
    "no column for the time": (f"person,state\nann,{MARK}3\n", "trips.csv:1: header must"),
    "a column twice": (f"person,time,time,state\nann,1,1,{MARK}3\n", "each column once"),
    "no number": (f"person,time,x,y\nann,1,{MARK},0\n", "trips.csv:2: x must be a finite number"),
    "a coordinate that is not a number": (
        f"person,time,x,y\nann,1,{SECRET},nan\n",
        "trips.csv:2: y must be a finite number",
    ),
    "an infinite coordinate": (
        f"person,time,x,y\nann,1,inf,{SECRET}\n",
        "trips.csv:2: x must be a finite number",
    ),
    "a line that is not JSON": (
        '{"person": "ann", "time": 1, "state": "zq2"}\n{"state": "zq3"\n',
        "trips.csv:2: row must be a JSON object",
    ),
    "a gap without end": (GOOD + f"ann,99999999,{MARK}3\n", "trips.csv:3: time must be within"),
}


@pytest.mark.parametrize("fault", ROWS)
@pytest.mark.parametrize("source", ["file", "pipe"])
def test_a_bad_row_is_one_line_that_does_not_tell(fault: str, source: str, tmp_path: Path) -> None:
    text, message = ROWS[fault]
    scenario, out = written(tmp_path), tmp_path / "out.csv"
    (tmp_path / "trips.csv").write_text(text)
    trips_from = tmp_path / "trips.csv" if source == "file" else "-"
    result = run("release", scenario, trips_from, "-o", out, stdin=text)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    name = "trips.csv" if source == "file" else "standard input"
    assert message.replace("trips.csv", name) in result.stderr
    assert MARK not in result.stderr
    assert SECRET not in result.stderr
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))
    if source == "file":
        with Journal(tmp_path / "paper.ledger.jsonl") as journal:
            assert journal.people == (), "a file is checked to its end before anything is spent"


@pytest.mark.parametrize("fault", [fault for fault in ROWS if fault != "a gap without end"])
def test_learning_from_a_bad_row_is_the_same_line(fault: str, tmp_path: Path) -> None:
    text, message = ROWS[fault]
    written(tmp_path)
    (tmp_path / "trips.csv").write_text(text)
    model = tmp_path / "new.npz"
    result = run("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv", "-o", model)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    if fault != "a date where numbers are":
        assert message in result.stderr
    assert MARK not in result.stderr
    assert not model.exists()


DATES = {
    "two zones": ("2024-05-01T10:00Z", "2024-05-01T13:00+02:00", "one zone in the whole file"),
    "a zone and none": ("2024-05-01T10:00Z", "2024-05-01T13:00", "in all rows or in none"),
    "no zone": ("2024-05-01T10:00", "2024-05-01T13:00", "must have a zone"),
    "no date": ("2024-05-01T10:00Z", "2024-13-01T10:00Z", "must be a date"),
    "a number": ("2024-05-01T10:00Z", "17", "must be a date"),
    "a late one": ("2024-05-01T10:05:00Z", "2024-05-01T10:04:59Z", ":3: time must come after"),
}


@pytest.mark.parametrize("fault", DATES)
def test_dates_that_do_not_fit_are_located(fault: str, tmp_path: Path) -> None:
    first, second, message = DATES[fault]
    scenario = written(tmp_path, clock=Clock("5 min"))
    result = run("release", scenario, "-", stdin=trips(("ann", first, 2), ("ann", second, 4)))
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert message in result.stderr
    assert MARK not in result.stderr


TOML = {
    "a misspelt key": ('epsilon = "1"', 'epsillon = "1"', "paper.toml:4: epsillon is not a key"),
    "its suggestion": ('epsilon = "1"', 'epsillon = "1"', "did you mean 'epsilon'?"),
    "a misspelt key of a table": ('category = "category"', 'categry = "category"',
                                  "policy.categry is not a key"),
    "a key in the wrong table": ('category = "category"', "radius = 3", "policy.radius"),
    "its keys": ('category = "category"', 'column = "category"',
                 "policy.column is not a key of a scenario; [policy] has complete, category, "),
    "a key that some table has": ('epsilon = "1"', 'epsilon = 1\ncolumn = "category"',
                                  "did you mean 'columns' in [query]?"),
    "an epsilon of zero": ('epsilon = "1"', "epsilon = 0", "paper.toml:4: epsilon must be pos"),
    "an epsilon below zero": ('epsilon = "1"', "epsilon = -0.5", "epsilon must be positive"),
    "an epsilon that is no number": ('epsilon = "1"', 'epsilon = "much"', "paper.toml:4: epsilon"),
    "no epsilon": ('epsilon = "1"\n', "", "paper.toml: epsilon must be given"),
    "a limit of zero": ('epsilon = "1"', 'epsilon = 1\nlimit = 0', "paper.toml:5: limit must be"),
    "an unknown mechanism": ('"knorm"', '"k-norm"', "did you mean 'knorm'?"),
    "an unknown repair": ('"min_error"', '"minimum"', "repair must be one of"),
    "an unknown column": ('category = "category"', 'category = "colour"', "policy.category must"),
    "a start that is nowhere": (f'start = "{MARK}1"', 'start = "moon"', "start must be a label"),
    "a text for a flag": ("full_rank = true", 'full_rank = "yes"', "full_rank must be true or"),
    "a step of nothing": ('step = "1"', 'step = "0"', "step must be positive"),
    "a clock of nothing": ("step = 1\n", "step = 0\n", "time.step must be at least 1"),
    "an unknown clock": ("step = 1\n", 'step = "often"\n', "time.step must be a number or"),
    "a table that is none": ("[policy]", "[policies]", "policies is not a key"),
    "no TOML": ("[policy]", "[policy", "paper.toml: file must be TOML"),
    "no states": ('"states.csv"', '"nowhere.csv"', "nowhere.csv: file must be readable"),
    "no model": ('"model.npz"', '"states.csv"', "states.csv: file must be a model"),
}  # fmt: skip


@pytest.mark.parametrize("fault", TOML)
@pytest.mark.parametrize("command", ["check", "release"])
def test_a_bad_scenario_is_one_line_with_its_place(
    fault: str, command: str, tmp_path: Path
) -> None:
    old, new, message = TOML[fault]
    path = written(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    result = run(command, path, stdin=GOOD)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert message in result.stderr
    assert not result.stdout


CELLS = {
    "an empty file": ("", "must have a header and at least one state"),
    "a label twice": ("label,x,y\na,0,0\na,1,1\n", "states.csv:3: label must be a new name"),
    "no number": ("label,x,y\na,0,east\n", "states.csv:2: y must be a finite number"),
    "not a number": ("label,x,y\na,0,0\nb,nan,0\n", "states.csv:3: x must be a finite number"),
    "a missing field": ("label,x,y\na,0\n", "states.csv:2: row must have 3 fields"),
    "too few states": ("label,x,y\na,0,0\nb,0,1\n", "model must have the 2 states"),
}


@pytest.mark.parametrize("fault", CELLS)
def test_bad_states_are_located(fault: str, tmp_path: Path) -> None:
    text, message = CELLS[fault]
    path = written(tmp_path)
    (tmp_path / "states.csv").write_text(text)
    result = run("check", path)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert message in result.stderr


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "trips.csv").write_bytes(b"person,time,state\nann,1,\xff\xfe\n")
    result = run("release", path, tmp_path / "trips.csv")
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert "UTF-8" in result.stderr


@pytest.mark.parametrize(
    ("size", "mode", "message"),
    [(31, 0o600, "32 bytes, got 31"), (33, 0o600, "32 bytes, got more"), (0, 0o600, "got 0"),
     (32, 0o640, "chmod 600"), (32, 0o604, "chmod 600")],
)  # fmt: skip
def test_a_key_of_the_wrong_length_or_open_to_others_is_refused(
    size: int, mode: int, message: str, tmp_path: Path
) -> None:
    path, key = written(tmp_path), tmp_path / "key"
    key.write_bytes(bytes(size))
    key.chmod(mode)
    result = run("release", path, "-", "--key-file", key, stdin=GOOD)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert message in result.stderr
    assert not (tmp_path / "paper.ledger.jsonl").exists()


KINDS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers()),
    st.sampled_from(["ann", 1, 2, "2024-01-01T00:00Z", "zq2", "zq3", "1e999", "\ud800"]),
)  # fmt: skip


@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=60).map(lambda tail: GOOD.encode() + tail),
        st.text(',\n\r\t;" 1azq2', max_size=60).map(lambda tail: (GOOD + tail).encode()),
        st.lists(
            st.fixed_dictionaries({"person": KINDS, "time": KINDS, "state": KINDS}), max_size=4
        ).map(lambda rows: "".join(json.dumps(row) + "\n" for row in rows).encode()),
    )
)
def test_no_bytes_confuse_a_release(content: bytes) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = written(folder)
        (folder / "trips.csv").write_bytes(content)
        for source in ("-", folder / "trips.csv"):
            result = run("release", path, source, stdin=content)
            assert result.exit_code in (0, 2), result.stderr
            assert result.exit_code == 0 or is_one_line(result.stderr)
            assert MARK not in result.stderr


@given(
    st.sampled_from(sorted({line.partition(" = ")[0] for line in TOML_LINES})),
    st.sampled_from(
        ["0", "-1", "1e400", "nan", "inf", "1.5", "true", '""', '"nowhere"', "[]", '["x"]',
         "[1]", "{}", "{zq1 = 1}", "1979-05-27T07:32:00Z", '"1/0"', '"1e99999999"', "9" * 40]
    ),
)  # fmt: skip
def test_no_value_confuses_a_scenario(key: str, value: str) -> None:
    with TemporaryDirectory() as name:
        path = written(Path(name))
        lines = path.read_text().splitlines()
        place = next(n for n, line in enumerate(lines) if line.startswith(f"{key} = "))
        lines[place] = f"{key} = {value}"
        path.write_text("\n".join(lines))
        result = run("check", path, "--steps", 2)
        assert result.exit_code in (0, 1, 2), result.stderr
        assert result.exit_code < 2 or is_one_line(result.stderr)


def test_a_mistake_of_the_program_does_not_tell_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise IndexError(f"{MARK}5 is out of bounds")

    path = written(tmp_path)
    monkeypatch.setattr(Stream, "release", broken)
    result = run("release", path, "-", stdin=GOOD)
    assert result.exit_code == 3
    assert is_one_line(result.stderr)
    assert "IndexError in broken" in result.stderr
    assert MARK not in result.stderr


def test_a_file_that_would_pass_the_limit_spends_nothing(tmp_path: Path) -> None:
    path, out = written(tmp_path, limit=Fraction(3, 2)), tmp_path / "out.csv"
    (tmp_path / "trips.csv").write_text(trips(("ann", 1, 2), ("bob", 1, 2), ("ann", 2, 4)))
    result = run("release", path, tmp_path / "trips.csv", "-o", out)
    assert result.exit_code == 1
    assert is_one_line(result.stderr)
    assert "trips.csv:4: epsilon must stay within the limit" in result.stderr
    assert not out.exists()
    with Journal(tmp_path / "paper.ledger.jsonl") as journal:
        assert journal.people == ()


def test_a_time_before_what_was_said_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert run("release", path, "-", stdin=trips(("ann", 5, 2), ("ann", 7, 4))).exit_code == 0
    for time in (4, 6):
        result = run("release", path, "-", stdin=trips(("ann", time, 2)))
        assert result.exit_code == 2
        assert is_one_line(result.stderr)
        assert "after the answers already given" in result.stderr


@pytest.mark.parametrize(
    "content", ["hello\n", '{"format": "dphmm ledger 1"}\n{"person": 1}\n', "x"]
)
def test_a_file_that_is_no_ledger_is_not_touched(content: str, tmp_path: Path) -> None:
    path, ledger = written(tmp_path), tmp_path / "ledger"
    ledger.write_text(content)
    result = run("release", path, "-", "--ledger", ledger, stdin=GOOD)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert ledger.read_text() == content


def test_a_ledger_in_use_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with Journal(tmp_path / "paper.ledger.jsonl"):
        result = run("release", path, "-", stdin=GOOD)
    assert result.exit_code == 2
    assert "in use" in result.stderr


def test_an_output_that_is_also_an_input_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "trips.csv").write_text(GOOD)
    result = run("release", path, tmp_path / "trips.csv", "-o", tmp_path / "trips.csv")
    assert result.exit_code == 2
    assert (tmp_path / "trips.csv").read_text() == GOOD


def test_no_answer_leaves_when_the_ledger_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    assert run("release", path, "-", stdin=GOOD).exit_code == 0
    before = (tmp_path / "paper.ledger.jsonl").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = run("release", path, "-", stdin=trips(("ann", 1, 2), ("ann", 2, 4)))
    monkeypatch.undo()
    assert result.exit_code == 2
    assert "disk must have room" in result.stderr
    assert "paper.ledger.jsonl" in result.stderr
    assert len(result.stdout.splitlines()) == 2, "the header and the answer that was there"
    assert (tmp_path / "paper.ledger.jsonl").read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("way", ["-o", ">"])
def test_a_full_disk_is_one_line(way: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "trips.csv").write_text(GOOD)
    # Quiet: a machine that takes half a minute for this says how far it is in a line of its own.
    command = [sys.executable, "-m", "dphmm", "--quiet", "release"]
    command += [str(path), str(tmp_path / "trips.csv")]
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            command if way == ">" else [*command, "-o", "/dev/full"],
            stdout=full if way == ">" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            check=False,
        )
    assert result.returncode == 2
    assert is_one_line(result.stderr), result.stderr
    assert "disk must have room" in result.stderr
    assert not Path("/dev/full").is_file()


def test_a_reader_that_leaves_ends_the_run_quietly(tmp_path: Path) -> None:
    path = written(tmp_path)
    rows = trips(*(("ann", time, 5) for time in range(1, 2000)))
    (tmp_path / "trips.csv").write_text(rows)
    with subprocess.Popen(
        [sys.executable, "-m", "dphmm", "release", str(path), str(tmp_path / "trips.csv")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=120) == 0
    assert said == ""


@pytest.mark.parametrize(
    "arguments",
    [("nothing",), ("release",), ("check", "a.toml", "--stepps", "3"), ("check", "missing.toml"),
     ("learn", "a.csv", "-o", "b.npz"), ("release", "x.toml", "--column", "person")],
)  # fmt: skip
def test_a_command_line_that_makes_no_sense_is_one_line(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)


OTHERS = {
    "audit of a file that is no scenario": (("audit", "words"), "words: file must be TOML"),
    "audit of nothing": (("audit", "nowhere.toml"), "nowhere.toml: file must be readable"),
    "audit of an unknown mechanism": (("audit", "--mechanism", "knorn"), "must be module:object"),
    "audit of a module that is none": (("audit", "--mechanism", "no:thing"), "must be importable"),
    "audit of both": (("audit", "paper.toml", "--mechanism", "knorm"), "must not go with a scen"),
    "audit with too few draws": (("audit", "--draws", "10"), "10 is not in the range"),
    "a store that is text": (("store", "verify", "words"), "words is not a store"),
    "a store that is a folder": (("store", "inspect", "folder"), "folder must be a file"),
    "a store that is half a store": (("store", "verify", "half.db"), "half.db"),
    "a store that is not there": (("store", "export", "nowhere.db"), "does not exist"),
    "a store of another kind": (("store", "inspect", "mysql://x"), "got one with 'mysql'"),
    "a store nobody answers for": (
        ("store", "verify", "postgresql://nobody@127.0.0.1:1/x"), "cannot be reached"),
    "erasing from nothing": (("store", "erase", "nowhere.db", "ann", "--yes"), "does not exist"),
    "erasing nobody": (("store", "erase", "whole.db", "eve", "--yes"), "person must be one"),
    "a key without a name": (("store", "key", "create", "whole.db", ""), "client must be named"),
    "a key for nothing": (
        ("store", "key", "create", "whole.db", "a", "--scope", "all"), "'all' is not one of"),
    "revoking nothing": (("store", "key", "revoke", "whole.db", ""), "digest must be"),
    "an export over its store": (("store", "export", "whole.db", "-o", "whole.db"), "of its own"),
    "serving text": (("serve", "words"), "words is not a store"),
    "serving on a port that is none": (("serve", "whole.db", "--port", "-1"), "not in the range"),
    "serving on a host that is none": (
        ("serve", "whole.db", "--host", "no.invalid", "--port", "0"), "must be free to listen on"),
    "serving without a key": (("serve", "whole.db", "--key-file", "nowhere"), "must be readable"),
    "serving with a rate that is none": (("serve", "whole.db", "--rate", "nan"), "rate must be"),
    "serving with a tick below zero": (("serve", "whole.db", "--tick", "-5"), "tick must be 0"),
    "serving for a price that is none": (
        ("serve", "whole.db", "--largest-epsilon", "much"), "largest_epsilon must be"),
    "a first key where a file is": (("serve", "whole.db", "--init", "words"), "words"),
    "a first key in no folder": (("serve", "whole.db", "--init", "no/key"), "no/key"),
    "reproducing nothing": (("reproduce", "moon"), "'moon' is not one of"),
    "reproducing without data": (("reproduce", "geolife"), "data must be the folder"),
    "reproducing from nowhere": (("reproduce", "gowalla", "--data", "no"), "file must exist"),
    "reproducing into a file": (("reproduce", "city", "--quick", "-o", "words"), "words"),
    "reproducing by nobody": (("reproduce", "city", "--workers", "0"), "not in the range"),
}  # fmt: skip


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of good and bad files, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    Path("words").write_text("Dear reader\n")
    Path("folder").mkdir()
    assert run("release", "paper.toml", "-", "--store", "whole.db", stdin=GOOD).exit_code == 0
    content = Path("whole.db").read_bytes()
    Path("half.db").write_bytes(content[: len(content) // 2])
    return tmp_path


@pytest.mark.parametrize("fault", OTHERS)
def test_what_makes_no_sense_is_one_line_and_nothing_is_lost(fault: str, others: Path) -> None:
    arguments, message = OTHERS[fault]
    files = {path: path.read_bytes() for path in others.iterdir() if path.is_file()}
    kept = run("store", "export", "whole.db").stdout
    keys = run("store", "key", "list", "whole.db").stdout
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert is_one_line(result.stderr)
    assert message in result.stderr
    assert MARK not in result.stderr
    assert run("store", "export", "whole.db").stdout == kept
    assert run("store", "key", "list", "whole.db").stdout == keys
    left = {path: path.read_bytes() for path in others.iterdir() if path.is_file()}
    database = (others / "whole.db-wal", others / "whole.db-shm", others / "whole.db")
    for path in database:
        files.pop(path, None)
        left.pop(path, None)
    assert left == files


def test_a_port_that_is_taken_is_one_line(others: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "whole.db", "--port", port)
    assert result.exit_code == 2
    assert f"host and port must be free to listen on, got 127.0.0.1:{port}" in result.stderr


def test_without_click_one_sentence_names_the_extra() -> None:
    script = "import sys; sys.modules['click'] = None; from dphmm.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 2
    assert is_one_line(result.stderr)
    assert "dphmm[cli]" in result.stderr
