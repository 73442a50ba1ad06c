"""The running example that is shipped, and the page that computes the paper's examples again."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dphmm import MarkovModel, PolicyGraph, Query, datasets
from dphmm.cli.program import program
from dphmm.errors import ArgumentError
from dphmm.evaluate.worked import work_out
from dphmm.report import worked
from tests import paper

# Paper


def test_the_shipped_example_is_the_papers() -> None:
    example = datasets.running_example()
    assert example.model.transition.toarray().tolist() == [list(row) for row in paper.TRANSITION]
    assert example.query.points.tolist() == [list(row) for row in paper.VALUES]
    assert example.policy == PolicyGraph.by_category(paper.CATEGORIES)
    assert example.policies["category"] is example.policy
    assert example.named(np.array(paper.POSSIBLE_EXPOSING_S5)) == ("s2", "s3", "s5")


def test_every_number_that_the_paper_prints_holds_but_three_that_say_why() -> None:
    rows = work_out()
    assert {one.what for one in rows if one.holds is False} == {
        "whom the smallest error joins s3 to",
        "the price against somebody who also rules out s4 and s5, in ε",
        "the most that somebody gains who also thinks of s3, a factor",
    }
    assert all(one.note for one in rows if one.holds is False)
    assert sum(one.holds is True for one in rows) == 21
    ours = {one.what: one.ours for one in rows}
    assert ours["the area of K with s3 joined to s4, s5, s6"] == tuple(paper.REPAIRED_AREA.values())
    assert ours["the mean squared error of each at ε = 1"] == tuple(paper.REPAIRED_ERROR.values())


# Laws


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"query": Query((*paper.VALUES[:5], (1, 3)))}, "f(s1) to f(s6)"),
        ({"policy": PolicyGraph.complete(6)}, "the columns of Δf"),
        ({"model": MarkovModel(np.full((6, 6), 1 / 6))}, "possible one step after s1"),
    ],
)
def test_a_changed_example_no_longer_holds(change: dict, lost: str) -> None:
    rows = work_out(replace(datasets.running_example(), **change))
    assert lost in {one.what for one in rows if one.holds is False}


def test_the_command_writes_a_public_page_and_the_same_table_twice(tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        found = CliRunner().invoke(
            program, ["reproduce", "paper", "-o", str(tmp_path / name), "--json"]
        )
        assert found.exit_code == 0, found.output
        page = (tmp_path / name / "page.html").read_text()
        written.append((page, (tmp_path / name / "worked.csv").read_text()))
    assert written[0] == written[1]
    page, table = written[0]
    rows = list(csv.DictReader(table.splitlines()))
    assert rows == json.loads(found.output)["worked"]
    assert {row["verdict"] for row in rows} == {"held", "did not hold", "drawn only"}
    assert not re.search("https?:", page)
    for number in range(3, 10):
        assert f"<h2>Figure {number}. " in page
    # A repair's picture says its area and error, which the table has too.
    for area, error in ((14, 54), (16, 47), (20, 50)):
        assert f"area {area}, error {error}." in page


def test_the_table_and_the_page_have_the_same_numbers() -> None:
    head, *rows = worked.table()
    assert head == ["where", "what", "paper", "ours", "verdict", "note"]
    page = worked.page()
    for row in rows:
        assert f"<td>{row[2]}</td><td>{row[3]}</td>" in page


# Bad input


def test_a_state_that_the_example_does_not_have_is_named() -> None:
    with pytest.raises(ArgumentError, match="label must be one of s1 to s6, got 's7'"):
        datasets.running_example().number("s7")
