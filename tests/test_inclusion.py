"""Numbers on pages: from files by inclusion, and those without a file become fewer."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from benchmarks import Figure
from benchmarks.results import as_result
from dphmm import ArgumentError
from dphmm.evaluate import Result, Table, Value, read_results
from dphmm.report.inclusion import include, included, unsourced
from scripts import include_results

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 0
"""Lines of pages with measured numbers that no file holds. Lower it when there are fewer."""

VALUES = {"so_far": Value(0.318, ".1%", 0.301, 0.334), "verdict": Value("cannot tell")}
TABLES = {"main": Table(("a", "b"), (("1", "2"),))}
RESULTS = {
    "r": Result("r", "About", "dphmm.evaluate.metrics", VALUES, TABLES, code="c", version="1")
}


# Laws


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("result: r so_far", "31.8%"),
        ("result: r so_far interval", "31.8% (30.1% to 33.4%)"),
        ("result: r so_far .0%", "32%"),
        ("result: r so_far .0% interval", "32% (30% to 33%)"),
        ("result: r verdict", "cannot tell"),
        ("table: r main", "\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"),
        ("origin: r", "About (dphmm 1; code c; `docs/results/r.json`)"),
    ],
)
def test_a_marker_is_filled_from_the_file(marker: str, text: str) -> None:
    wanted = f"It is <!-- {marker} -->{text}<!-- end --> of that."
    assert include(f"It is <!-- {marker} -->99.9%<!-- end --> of that.", RESULTS) == wanted
    assert include(wanted, RESULTS) == wanted
    assert included(wanted) == [("r", "" if marker.startswith("origin") else marker.split()[2])]


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("result: s so_far", "result must be one of r, got 's'"),
        ("result: r later", "r: value must be one of so_far, verdict, got 'later'"),
        ("table: r other", "r: table must be one of main, got 'other'"),
        ("result: r", "marker must read like"),
        ("origin: r so_far", "marker must read like"),
        ("result: r so_far .1% .2%", "marker must read like"),
        ("result: r so_far ?", "form must be a format of a number"),
    ],
)
def test_a_marker_that_leads_nowhere_is_refused(marker: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        include(f"<!-- {marker} -->1<!-- end -->", RESULTS)


def test_a_planned_result_is_said_to_be_missing_and_no_other() -> None:
    page = "<!-- result: s so_far -->31.8%<!-- end -->\n<!-- table: s main -->\n1<!-- end -->"
    wanted = (
        "<!-- result: s so_far -->not measured yet<!-- end -->\n"
        "<!-- table: s main -->\n*not measured yet*\n<!-- end -->"
    )
    assert include(page, RESULTS, {"s"}) == include(wanted, RESULTS, {"s"}) == wanted
    with pytest.raises(ArgumentError, match="result must be one of r, got 's'"):
        include(page, RESULTS, {"t"})


def test_an_open_marker_is_refused() -> None:
    with pytest.raises(ArgumentError, match="page must close every marker"):
        include("<!-- result: r so_far -->31.8%", RESULTS)


def test_what_looks_measured_is_seen_and_what_is_sourced_or_an_example_is_not() -> None:
    seen = ["it takes 3.5 ms", "12% of it", "1,706 releases a second", "0.3 km", "4 times", "5 s"]
    seen += ["760 metres off", "1.5 kilometres", "it lost 1.2 points", "10.8 cells", "145 people"]
    for text in seen:
        assert [line.text for line in unsourced(text)] == [text]
    page = (
        "a\n```\n3 ms\n```\n`--tick 5 ms` <!-- result: r so_far -->31.8%<!-- end -->\nTheorem 6.3"
    )
    assert unsourced(page) == []
    assert unsourced(page + "\n\n7 ms")[0].line == 8


def test_a_bench_is_a_result_with_its_ratios_and_the_load_of_the_machine() -> None:
    figures = [
        Figure("steady release, N = 1,369", 62.12, "us", "the floor", 6.204, "ratio <= 8"),
        Figure("rows", 88123.4, "1/s"),
        Figure("rows", 1.0, "1/s"),
    ]
    made = as_result("stream", figures, 3.24)
    assert made.value("steady-release-n-1369").text() == "62.1 µs"
    assert made.value("steady-release-n-1369.ratio").text() == "6.2"
    assert made.value("rows").text() == "88,123 a second"
    assert made.table("figures").rows[0][2:] == ("6.2: the floor", "ratio <= 8")
    assert len(made.table("figures").rows) == 2
    assert "load 3.2 on" in made.origin()
    assert made.is_current
    assert made.name in include_results.planned()


# The pages


def test_every_page_shows_what_the_files_hold() -> None:
    assert include_results.differences(ROOT) == []
    assert include_results.main(["--check"]) == 0


def test_the_list_of_numbers_without_a_file_only_shrinks() -> None:
    listed = tomllib.loads((ROOT / include_results.WITHOUT).read_text(encoding="utf-8"))
    assert sum(entry.get("measured", 0) for entry in listed.values()) <= MOST_LINES
    for page, entry in listed.items():
        assert (ROOT / page).is_file()
        assert set(entry) <= {"settings", "measured"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("screenshots"))
    page = "<!-- result: paper held -->21<!-- end --> hold, in steps of 5 minutes with gaps.\n"
    (tmp_path / "README.md").write_text(page)
    assert include_results.differences(tmp_path) == []
    return tmp_path


def test_how_to_pages_are_looked_at_and_pages_made_from_the_code_are_not(copy: Path) -> None:
    (copy / include_results.MADE).mkdir(exist_ok=True)
    (copy / include_results.MADE / "commands.md").write_text("A step is 5 min unless you say so.\n")
    assert include_results.differences(copy) == []
    (copy / "docs" / "howto" / "more.md").write_text("It takes 5 min.\n")
    assert len(include_results.differences(copy)) == 1


def test_a_changed_number_on_a_page_is_found_and_repaired(copy: Path) -> None:
    page = copy / "README.md"
    before = page.read_text()
    page.write_text("\n" + before.replace("21", "22"))
    fault = "README.md:2: numbers must be those of docs/results; run make pages"
    assert include_results.differences(copy) == [fault]
    assert include_results.differences(copy, write=True) == []
    assert page.read_text() == "\n" + before


def test_a_changed_number_in_a_file_is_found(copy: Path) -> None:
    path = copy / "docs" / "results" / "paper.json"
    path.write_text(path.read_text().replace('"value": 21', '"value": 22'))
    assert read_results(path.parent)["paper"].value("held").value == 22
    assert len(include_results.differences(copy)) >= 1


def test_a_spoiled_file_of_results_is_one_line(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / "docs" / "results" / "paper.json").write_text("{")
    monkeypatch.setattr(include_results, "ROOT", copy)
    assert include_results.main(["--check"]) == 1
    assert capsys.readouterr().err.endswith("\n")
    (copy / "docs" / "results" / "paper.json").unlink()
    assert include_results.main(["--check"]) == 1
    # Its number is nobody's any more.
    assert "README.md:1: numbers must be those of docs/results" in capsys.readouterr().err
    include_results.differences(copy, write=True)
    assert "-->not measured yet<!-- end -->" in (copy / "README.md").read_text()


def test_a_new_number_without_a_file_is_found(copy: Path) -> None:
    page = copy / "docs" / "index.md"
    page.write_text(page.read_text() + "\nIt takes 3 ms.\n")
    (fault,) = include_results.differences(copy)
    assert (
        "docs/index.md: lines with numbers that no file of results holds must be at most 0" in fault
    )
    assert "It takes 3 ms." in fault


@pytest.mark.parametrize("kind", ["markdown", "outputs"])
def test_a_number_in_a_notebook_is_found(copy: Path, kind: str) -> None:
    path = copy / "docs" / "notebooks" / "geolife.ipynb"
    assert path.exists()
    notebook = json.loads(path.read_text())
    shown = {"output_type": "stream", "name": "stdout", "text": ["It takes 3 ms."]}
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["It takes 3 ms."]}
    if kind == "outputs":
        cell = {"cell_type": "code", "metadata": {}, "source": [], "outputs": [shown]}
    notebook["cells"].append(cell)
    path.write_text(json.dumps(notebook))
    (fault,) = include_results.differences(copy)
    assert "docs/notebooks/geolife.ipynb" in fault
    assert "It takes 3 ms." in fault


@pytest.mark.parametrize("number", ["12 percent", "3.4x", "3.4×", "20 milliseconds", "7 per cent"])
def test_a_measurement_is_known_in_words_too(number: str) -> None:
    assert unsourced(f"Ours is {number} better.")


def test_a_setting_that_no_page_has_any_more_is_found(copy: Path) -> None:
    listed = copy / include_results.WITHOUT
    listed.write_text(listed.read_text().replace("at least 2% closer", "at least 3% closer"))
    found = include_results.differences(copy)
    assert "no line of docs/commands.md has the setting 'at least 3% closer'" in found[0]
    assert "at least 2% closer" in found[1]


def test_results_of_other_code_are_named() -> None:
    results = {"r": RESULTS["r"]}
    assert include_results.older(results) == ["r"]
