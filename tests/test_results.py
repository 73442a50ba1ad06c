"""Results as files: what they depend on, what they hold, and when a kept part is used again."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dphmm import ArgumentError, DataError
from dphmm.cli.program import program
from dphmm.evaluate import (
    Result,
    Study,
    Table,
    Value,
    Workload,
    load_workload,
    measured,
    read_result,
    read_results,
    run,
    run_study,
)
from dphmm.evaluate.effort import effort
from dphmm.evaluate.evidence import studies
from dphmm.evaluate.fingerprint import LIBRARIES, code_digest, code_files, file_digest, libraries
from dphmm.evaluate.parts import kept
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.renewal import changes
from dphmm.evaluate.runs import Done, run_studies

MODULE = "dphmm.evaluate.metrics"


@dataclass(frozen=True)
class Small:
    """The mean state of a workload's sequences, in so many copies."""

    copies: int = 1

    @property
    def name(self) -> str:
        return "small"

    def measure(self, workload: Workload) -> dict[str, np.ndarray]:
        return {"mean": np.full(self.copies, workload.sequences[0].states.mean())}


@pytest.fixture(scope="module")
def city() -> Workload:
    return load_workload("city", None, quick=True)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of four modules: a sampler, who uses it, kernels by name, and somebody else."""
    source = tmp_path / "house"
    for name, code in {
        "__init__.py": "",
        "noise.py": '"""Noise."""\n\ndef draw():\n    """A number."""\n    return 4  # chosen\n',
        "study.py": "from house.noise import draw\nfrom house import kernels\n",
        "kernels/__init__.py": "def __getattr__(name):\n    return name\n",
        "kernels/fast.py": "STEP = 1\n",
        "other.py": "VALUE = 1\n",
    }.items():
        path = source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    return source


def changed(package: Path, name: str, old: str, new: str) -> str:
    path = package / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    code_digest.cache_clear()
    return code_digest("house.study", package)


# Laws of the fingerprint


def test_a_changed_sampler_gives_another_fingerprint(package: Path) -> None:
    before = code_digest("house.study", package)
    assert changed(package, "noise.py", "return 4", "return 5") != before
    before = code_digest("house.study", package)
    assert changed(package, "kernels/fast.py", "STEP = 1", "STEP = 2") != before


def test_words_and_strangers_do_not(package: Path) -> None:
    before = code_digest("house.study", package)
    assert (
        changed(package, "noise.py", '"""A number."""', '"""A number,\n\n    drawn."""') == before
    )
    assert changed(package, "noise.py", "# chosen", "# by lot") == before
    assert changed(package, "other.py", "VALUE = 1", "VALUE = 2") == before


def test_code_that_only_type_checkers_see_is_not_followed(package: Path) -> None:
    path = package / "study.py"
    path.write_text(
        f"from typing import TYPE_CHECKING\n{path.read_text()}if TYPE_CHECKING:\n    1\n"
    )
    names = {file.name for file in code_files("house.study", package)}
    assert names == {"study.py", "noise.py", "__init__.py", "fast.py"}
    later = path.read_text().replace("    1\n", "    from house.other import VALUE\n")
    path.write_text(later)
    assert {file.name for file in code_files("house.study", package)} == names


def test_the_evaluation_leads_to_the_sampler_and_to_every_kernel() -> None:
    files = code_files("dphmm.evaluate.late")
    names = {f"{file.parent.name}/{file.name}" for file in files}
    assert {"noise/mechanism.py", "release/stream.py", "kernels/sampler.py"} <= names
    assert "datasets/tracks.py" in names
    assert "datasets/geolife.py" not in names
    files = code_files("dphmm.evaluate.compare.daily")
    assert "datasets/city.py" in {f"{file.parent.name}/{file.name}" for file in files}


def test_what_makes_people_up_is_followed_and_what_reads_files_is_not(package: Path) -> None:
    for name, code in {
        "tables/__init__.py": "",
        "tables/datasets/__init__.py": (
            "from house.tables.datasets.city import build\n"
            "from house.tables.datasets.reader import load\n"
        ),
        "tables/datasets/city.py": "def build():\n    return 1\n",
        "tables/datasets/reader.py": "def load():\n    return 1\n",
    }.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(code)
    with (package / "study.py").open("a") as file:
        file.write("from house.tables import datasets\nfrom house.tables.datasets import build\n")
    before = code_digest("house.study", package)
    assert changed(package, "tables/datasets/reader.py", "return 1", "return 2") == before
    assert changed(package, "tables/datasets/city.py", "return 1", "return 2") != before


def test_a_workload_s_fingerprint_is_of_all_that_is_no_word() -> None:
    city = load_workload("city", None, quick=True)
    later = [replace(trip, times=trip.times + 60) for trip in city.trips]
    for changed in (
        {"radius": "2"}, {"regular": False}, {"utc_offset_hours": 1}, {"window": 5},
        {"twins": {"a": "b"}}, {"trips": later},
    ):  # fmt: skip
        assert replace(city, **changed).digest != city.digest, changed
    assert replace(city, title="Another").digest == city.digest


def test_a_changed_protocol_gives_every_workload_another_fingerprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    city = load_workload("city", None, quick=True)
    more = {**protocol(), "late": {**protocol()["late"], "steps": 99}}
    before = city.digest
    monkeypatch.setattr("dphmm.evaluate.workloads.protocol", lambda: more)
    assert replace(city).digest != before


def test_an_unknown_module_has_no_fingerprint() -> None:
    with pytest.raises(ArgumentError, match=r"module must be one of dphmm, got 'dphmm.nothing'"):
        code_digest("dphmm.nothing")
    with pytest.raises(ArgumentError, match="module must be one of dphmm, got 'numpy'"):
        code_digest("numpy")


def test_a_file_s_fingerprint_is_of_its_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    assert file_digest(one) != file_digest(other)
    other.write_bytes(b"1")
    assert file_digest(one) == file_digest(other)


def test_a_fingerprint_knows_the_libraries_that_are_installed() -> None:
    found = libraries()
    assert found["python"] == f"Python {sys.version_info.major}.{sys.version_info.minor}"
    assert found["numpy"] == f"numpy {np.__version__}"
    assert set(found) == {"python", *LIBRARIES}


def test_every_result_says_its_settings_and_its_noise() -> None:
    for study in [*studies(), *studies(quick=True), *studies(final=True)]:
        assert study.settings, study.name
        assert bool(study.seeds) != bool(study.noise), study.name


# Files


def result(**parts: object) -> Result:
    values = {"share": Value(0.318349, ".1%", 0.301, 0.334, people=46, seeds=20)}
    values["verdict"] = Value("held", note="the whole interval is below 35%")
    tables = {"main": Table(("who", "error"), (("distance", "1.64"), ("", "2")))}
    made = Result(
        "made.up", "A test", MODULE, values, tables, {"radius": "1"}, (0, 1), {"f/a": "1"}
    )
    return replace(made, **parts)


def test_a_result_reads_back_as_it_was_written(tmp_path: Path) -> None:
    one = result(machine={"system": "Linux"})
    path = one.write(tmp_path)
    assert path.name == "made.up.json"
    assert read_result(path) == one
    assert read_results(tmp_path) == {"made.up": one}
    before = path.read_bytes()
    read_result(path).write(tmp_path)
    assert path.read_bytes() == before


def test_a_result_knows_whether_the_code_is_still_the_same() -> None:
    assert result().code == code_digest(MODULE)
    assert result().is_current
    assert not result(code="0000").is_current


def test_a_result_says_where_it_comes_from() -> None:
    told = result(code="0123456789abcdef", version="1.2", machine={"processors": "2 processors"})
    assert told.origin() == (
        "A test (dphmm 1.2; code 01234567; data 1; 2 seeds of noise; 2 processors; "
        "`docs/results/made.up.json`)"
    )
    exact = replace(result(), seeds=(), noise="exact, no noise", libraries={"numpy": "numpy 2.0"})
    assert exact.origin().endswith("; exact, no noise; numpy 2.0; `docs/results/made.up.json`)")
    assert "; 1 seed of noise; " in replace(exact, seeds=(7,)).origin()


@given(st.floats(-1e6, 1e6), st.floats(0, 1e3))
def test_values_keep_six_digits(value: float, width: float) -> None:
    one = Value(value, ".3f", value - width, value + width)
    assert one.value == pytest.approx(value, rel=1e-5)
    assert Value(**vars(one)) == one


def test_values_print_themselves_and_their_intervals() -> None:
    share = result().value("share")
    assert share.text() == "31.8%"
    assert share.text(".0%") == "32%"
    assert share.text(interval=True) == "31.8% (30.1% to 33.4%)"
    assert Value(1.5, ".1f", 1, 2, unit="km").text(interval=True) == "1.5 km (1.0 to 2.0 km)"
    assert result().value("verdict").text(interval=True) == "held"


def test_values_that_cannot_be_are_refused() -> None:
    with pytest.raises(ArgumentError, match="value must be finite, got nan"):
        Value(float("nan"))
    with pytest.raises(ArgumentError, match=r"low and high must come together, got 1, None"):
        Value(1.0, low=1)
    with pytest.raises(ArgumentError, match="form must be a format of a number, got 'x!'"):
        Value(1.0, "x!")
    with pytest.raises(ArgumentError, match="interval must be one that the value has, got none"):
        Value(1.0).text(interval=True)
    with pytest.raises(ArgumentError, match="row must have 2 cells, got 1"):
        Table(("a", "b"), (("1",),))
    with pytest.raises(ArgumentError, match=r"cell must be one line of text without \|, got 'x\|'"):
        Table(("a",), (("x|",),))
    with pytest.raises(
        ArgumentError, match=r"made.up: value must be one of share, verdict, got 'b'"
    ):
        result().value("b")
    with pytest.raises(ArgumentError, match=r"made.up: table must be one of main, got 'b'"):
        result().table("b")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[:-9], "file must hold a result"),
        (lambda text: text.replace('"about"', '"abuot"'), "unknown: abuot"),
        (lambda text: text.replace('"form"', '"from"'), "unexpected keyword"),
        (lambda text: "[]", "file must hold a result"),
        (lambda text: text.replace("made.up", "other"), "file must be called other.json"),
    ],
)
def test_a_spoiled_file_is_one_line_that_names_it(tmp_path: Path, spoil, message: str) -> None:
    path = result().write(tmp_path)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(DataError, match=message) as caught:
        read_result(path)
    assert str(path) in str(caught.value)


# Parts


def test_a_kept_part_is_used_only_with_the_same_code_data_and_settings(
    city: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def was(workload: Workload, task: Small) -> bool:
        return next(was for _, was in run(tmp_path, workload, [task], workers=1))

    monkeypatch.setattr("dphmm.evaluate.parts.code_digest", lambda module: "one")
    assert not was(city, Small())
    assert was(city, Small())
    assert not was(city, Small(copies=2))  # under the same name
    assert not was(replace(city, delta=0.5), Small())
    monkeypatch.setattr("dphmm.evaluate.parts.code_digest", lambda module: "another")
    assert not was(city, Small())
    assert was(city, Small())
    newer = {**libraries(), "numpy": "numpy 99.0"}
    monkeypatch.setattr("dphmm.evaluate.fingerprint.libraries", lambda: newer)
    assert not was(city, Small())


def test_parts_are_private_files(
    city: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.evaluate.parts.code_digest", lambda module: module)
    list(run(tmp_path, city, [Small(3)], workers=1))
    path = kept(tmp_path, city, Small(3))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "test_results" in str(path)  # the digest is that of the task's own module
    assert measured(tmp_path, city, Small(3))["mean"].shape == (3,)


def test_a_study_ends_with_its_result(
    city: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.evaluate.parts.code_digest", lambda module: module)

    def summarise(workloads, found):
        return {"mean": Value(float(found["city", Small()]["mean"][0]))}, {}

    study = Study("s", "a", MODULE, (("city", Small()),), summarise, {"x": 1}, (5,), timed=True)
    part, end = list(run_study(tmp_path, study, lambda name: city, workers=1))
    assert isinstance(part, Done)
    assert (part.part, part.was) == (("city", Small()), False)
    assert isinstance(end, Result)
    assert end.value("mean").value == pytest.approx(city.sequences[0].states.mean(), rel=1e-5)
    assert end.data == {"city": city.digest}
    assert (end.seeds, end.settings) == ((5,), {"x": 1})
    assert end.libraries == libraries()
    assert "processors" in (end.machine or {})


@dataclass(frozen=True)
class Broken:
    """A task that cannot be measured."""

    name: str = "broken"

    def measure(self, workload: Workload) -> dict[str, np.ndarray]:
        raise ValueError("spoiled")


def test_a_part_of_two_studies_is_measured_once_and_a_broken_one_stops_nobody(
    city: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.evaluate.parts.code_digest", lambda module: module)
    shared, own = ("city", Small()), ("city", Small(2))
    names = {"one": (shared,), "spoiled": (("city", Broken()), shared), "two": (shared, own)}
    names["unknown"] = (("nowhere", Small()),)

    def load(name: str) -> Workload:
        if name == "nowhere":
            raise DataError("nowhere: file must exist")
        return city

    studies = [
        Study(name, "a", MODULE, parts, lambda workloads, found: ({}, {}))
        for name, parts in names.items()
    ]
    found: list[Done | Result] = []
    with pytest.raises(ValueError, match="spoiled"):
        found.extend(run_studies(tmp_path, studies[:3], load, workers=1))
    with pytest.raises(DataError, match="nowhere"):
        list(run_studies(tmp_path, studies[2:], load, workers=1))
    done = [item for item in found if isinstance(item, Done)]
    assert {one.part for one in done} == {shared, own}
    assert [item.name for item in found if isinstance(item, Result)] == ["one", "two"]
    # Once more: nothing is measured again, and what it cost is still known.
    kept_parts = list(run_studies(tmp_path, studies[:3:2], load))
    again = [one for one in kept_parts if isinstance(one, Done)]
    assert all(one.was for one in again)
    assert {one.part: one.seconds for one in again} == {one.part: one.seconds for one in done}


def test_what_everything_took_is_told_by_study_and_as_a_run_only_if_it_was_one() -> None:
    shared, own = ("city", Small()), ("city", Small(2))
    studies = [
        Study(name, "a", MODULE, parts, lambda workloads, found: ({}, {}))
        for name, parts in {"one": (shared,), "two": (shared, own)}.items()
    ]
    done = [Done(shared, False, 90.0), Done(own, False, 30.0)]
    whole = effort(studies, done, 3.2, 2)
    assert whole.table("studies").rows == (("one", "1", "1.5"), ("two", "1", "0.5"))
    assert whole.value("minutes").text() == "3 minutes"
    assert whole.value("processor_minutes").text() == "2 minutes"
    resumed = effort(studies, [replace(done[0], was=True), done[1]], 0.6, 2)
    assert resumed.value("minutes").text() == "not measured: 1 parts were kept from an earlier run"
    assert resumed.value("processor_minutes").text() == "2 minutes"


# Measured again


def test_exact_numbers_must_be_the_same_and_others_within_their_interval() -> None:
    before = result(
        values={
            "exact": Value(0.123, ".2f"),
            "share": Value(0.3, ".1%", 0.28, 0.33),
            "verdict.order": Value("held", low=0.1, high=0.2),
            "verdict.time.distance": Value("held", low=0.1, high=0.2),
            "5s.anew.distance": Value(1.5, ".1f", 1.4, 1.6, unit="ms"),
            "old": Value(1),
        }
    )
    same = replace(
        before,
        values={
            **before.values,
            "exact": Value(0.124, ".2f"),
            "share": Value(0.329, ".1%", 0.3, 0.35),
            "verdict.time.distance": Value("cannot tell", low=-0.1, high=0.2),
            "5s.anew.distance": Value(9.0, ".1f", 8.0, 9.6, unit="ms"),
        },
    )
    assert changes(before, before) == changes(before, same) == []
    other = {
        "exact": Value(0.13, ".2f"),
        "share": Value(0.34, ".1%", 0.33, 0.35),
        "verdict.order": Value("cannot tell", low=-0.1, high=0.2),
        "verdict.time.distance": Value("held", low=0.1, high=0.2),
        "5s.anew.distance": Value(1.5, ".1f", 1.4, 1.6, unit="ms"),
        "new": Value(1),
    }
    assert changes(before, replace(before, values=other)) == [
        "made.up exact: 0.12, measured again 0.13",
        "made.up new: is new",
        "made.up old: is gone",
        "made.up share: 30.0% (28.0% to 33.0%), measured again 34.0% (33.0% to 35.0%)",
        "made.up verdict.order: held, measured again cannot tell",
    ]


# The command


def test_evidence_says_which_files_it_does_not_confirm(tmp_path: Path) -> None:
    arguments = ["reproduce", "evidence", "--only", "paper", "-o", str(tmp_path)]
    assert CliRunner().invoke(program, arguments).exit_code == 0
    again = [*arguments, "--compare", str(tmp_path / "results")]
    assert CliRunner().invoke(program, again).exit_code == 0
    path = tmp_path / "results" / "paper.json"
    path.write_text(path.read_text().replace('"value": 21', '"value": 22'))
    outcome = CliRunner().invoke(program, again)
    assert outcome.exit_code == 1
    assert "paper held: 22, measured again 21" in outcome.output


def test_evidence_writes_a_file_for_every_study_asked_for(tmp_path: Path) -> None:
    arguments = ["reproduce", "evidence", "--only", "paper", "-o", str(tmp_path), "--json"]
    outcome = CliRunner().invoke(program, arguments)
    assert outcome.exit_code == 0, outcome.output
    written = [str(tmp_path / "results" / "paper.json")]
    assert json.loads(outcome.stdout) == {"results": written, "changed": []}
    assert read_results(tmp_path / "results")["paper"].value("held").value == 21


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evidence", "--only", "nothing"], "only must be"),
        (["evidence", "--quick", "--results", "x"], "--results must not come with --quick"),
        (["evidence", "--quick", "--compare", "."], "--compare must not come with --quick"),
        (["evidence", "--final"], "locked people are read by `make evidence FINAL=1` alone"),
        (["paper", "--only", "paper"], "--final must come with evidence, got paper"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    outcome = CliRunner().invoke(program, ["reproduce", *arguments, "-o", str(tmp_path / "out")])
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert not (tmp_path / "out").exists()


def test_studies_have_different_names_and_modules_that_exist() -> None:
    every = studies()
    assert len({study.name for study in every}) == len(every)
    for study in every:
        assert code_files(study.module)
