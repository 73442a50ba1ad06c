"""A table of answers says which law they follow, and what reads it refuses another, by name."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import MarkovModel, Schedule, UnknownLawWarning
from dphmm.release.law_parts import PARTS, differing_parts
from dphmm.scenario import Clock, Policy, Scenario, States
from dphmm.scenario.released import read_releases
from tests import paper
from tests.scenarios import LABELS, is_one_line, paper_scenario, run, trips, written
from tests.test_report import released

SHAPED = {
    "start": {"start": LABELS[1]},
    "query or its lattice": {"step": Fraction(1, 2)},
    "policy": {"policy": Policy(complete=True)},
    "mechanism, shape or gamma": {"mechanism": "staircase"},
    "repair, full_rank or delta": {"repair": "nearest"},
    "time step": {"clock": Clock(2)},
    "schedule": {"when": Schedule(every=2)},
}
"""For every part but the model a setting that changes it alone."""


def law_of(**changes: Any) -> str:
    return paper_scenario(**changes).terms.law_parts


# Laws


@pytest.mark.parametrize("part", SHAPED)
def test_each_part_is_told_by_its_name(part: str) -> None:
    assert differing_parts(law_of(), law_of(**SHAPED[part])) == [part]
    assert differing_parts(law_of(), law_of()) == []


def test_the_model_and_several_parts_are_told_by_their_names() -> None:
    ours = paper_scenario()
    mixed = 0.5 * np.array(paper.TRANSITION) + 0.5 * np.eye(6)
    other = Scenario.from_settings(ours.settings, ours.states, MarkovModel(mixed))
    assert differing_parts(ours.terms.law_parts, other.terms.law_parts) == ["model"]
    assert set(SHAPED) | {"model"} == set(PARTS)
    both = law_of(**SHAPED["policy"], **SHAPED["start"])
    assert differing_parts(law_of(), both) == ["start", "policy"]
    assert differing_parts(law_of(), "something") == ["law"]


def test_names_prices_limits_and_estimates_shape_no_answer() -> None:
    same = {"limit": Fraction(9), "epsilon": Fraction(2), "estimate": "median"}
    for name, value in same.items():
        assert law_of(**{name: value}) == law_of()


# Paper


def test_every_row_and_every_feature_carries_it(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    law = Scenario.load(toml).terms.law_parts
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert {row["law"] for row in rows} == {law}
    lines = run("release", toml, tmp_path / "trips.csv", "--json").stdout.splitlines()
    assert {json.loads(line)["law"] for line in lines} == {law}
    table = Scenario.load(toml).release(tmp_path / "trips.csv")
    assert set(table["law"]) == {law}
    table.write_parquet(tmp_path / "released.parquet")
    assert run("report", toml, tmp_path / "released.parquet", "-o", tmp_path / "r").exit_code == 0


@pytest.mark.parametrize("part", ["start", "policy", "mechanism, shape or gamma"])
def test_answers_under_another_law_of_the_same_name_are_refused(part: str, tmp_path: Path) -> None:
    _, out = released(tmp_path)
    changed = written(tmp_path, **SHAPED[part])
    says = f"released.csv:2: row must follow the law of 'paper', got another {part}\n"
    for command in (
        ("report", changed, out, "-o", tmp_path / "report.html"),
        ("learn", out, "--from-releases", changed, "-o", tmp_path / "m.npz"),
    ):
        result = run(*command)
        assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
        assert result.stderr.endswith(says)
        assert not Path(command[-1]).exists()


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("part", ["policy", "query or its lattice", "mechanism, shape or gamma"])
def test_no_kind_of_table_goes_into_a_map_or_a_page_under_another_law(
    kind: str, part: str, tmp_path: Path
) -> None:
    def on_earth(**changes: Any) -> tuple[Scenario, Path]:
        ours = paper_scenario(**changes)
        degrees = {"latitude": ours.states.numbers["y"], "longitude": ours.states.numbers["x"]}
        states = States(LABELS, degrees, ours.states.texts)
        town = Scenario.from_settings(ours.settings, states, ours.model)
        town.save(tmp_path / "paper.toml")
        return town, tmp_path / "paper.toml"

    (tmp_path / "trips.csv").write_text(trips(("ann", 1, 2), ("ann", 2, 4)))
    town, toml = on_earth()
    table, file = town.release(tmp_path / "trips.csv"), tmp_path / f"released.{kind}"
    {"csv": table.write_csv, "parquet": table.write_parquet, "jsonl": table.write_ndjson}[kind](
        file
    )
    out = tmp_path / "out.geojson"
    commands = [("export", what, toml, file, "-o", out) for what in ("answers", "estimates")]
    commands.append(("report", toml, file, "-o", out))
    for command in commands:
        assert run(*command).exit_code == 0
        out.unlink()
    on_earth(**SHAPED[part])
    for command in commands:
        result = run(*command)
        assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
        assert "row must follow the law of 'paper', got another " + part in result.stderr
        assert file.name in result.stderr
        assert not out.exists()


def test_a_file_of_an_older_version_is_taken_with_a_note(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    text = out.read_text().replace(f",{Scenario.load(toml).terms.law_parts}", "")
    out.write_text(text.replace(",law", ""))
    (tmp_path / "paper.ledger.jsonl").unlink()  # which would show the law
    result = run("report", toml, out, "-o", tmp_path / "report.html")
    assert result.exit_code == 0
    assert is_one_line(result.stderr)
    assert "released.csv has no column law" in result.stderr
    with pytest.warns(UnknownLawWarning, match="nothing shows that it follows 'paper'"):
        read_releases(out, Scenario.load(toml))


def test_a_repeated_answer_of_an_earlier_law_has_none_and_is_refused(tmp_path: Path) -> None:
    toml, _ = released(tmp_path, ("ann", 1, 3))
    toml.write_text(toml.read_text().replace('category = "category"', "complete = true"))
    ledger, out = tmp_path / "paper.ledger.jsonl", tmp_path / "again.csv"
    adopted = run("ledger", "adopt", ledger, toml, "--same-states")
    assert adopted.exit_code == 0, adopted.stderr
    (tmp_path / "trips.csv").write_text(trips(("ann", 1, 3), ("ann", 2, 4)))
    assert run("release", toml, tmp_path / "trips.csv", "-o", out).exit_code == 0
    laws = [row["law"] for row in csv.DictReader(io.StringIO(out.read_text()))]
    assert laws == ["", Scenario.load(toml).terms.law_parts]
    refused = run("report", toml, out, "-o", tmp_path / "report.html")
    assert refused.stderr.endswith(
        "again.csv:2: row must follow the law of 'paper', got another law\n"
    )
