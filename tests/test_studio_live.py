"""Watching a ledger: what was written whole is read, nothing is touched, numbers are the file's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.books.tailing import Tail
from dphmm.errors import ArgumentError, DataError
from dphmm.studio.live import Live
from dphmm.studio.saving import open_file
from dphmm.studio.server import run_in_background
from tests.scenarios import paper_scenario

HEAD, END = b'{"format": "dphmm ledger 2"}\n', b'{"kind": "end"}\n'


def line(person: str, slot: int, law: str, epsilon: str = "1", answer: object = (4, 2)) -> bytes:
    """An answer as a ledger has it."""
    facts = {
        "kind": "answer", "person": person, "query": "state", "slot": slot, "law": law,
        "epsilon": epsilon, "constrained": epsilon, "answer": answer, "estimate": [1.0, 1.0],
        "statement": "", "spacing": "1",
    }  # fmt: skip
    return json.dumps(facts).encode() + b"\n"


@pytest.fixture
def watched(tmp_path: Path) -> tuple[Path, Path, str]:
    """A scenario, its ledger with three answers of two people, and the law."""
    town = tmp_path / "town.toml"
    paper_scenario(limit="4 per 10 steps").save(town)
    law = open_file(town).scenario.law
    ledger = tmp_path / "town.ledger.jsonl"
    said = [line("ann", 1, law), line("ann", 2, law, "2.5"), line("bob", 2, law)]
    silent = line("bob", 3, law, "0", ())
    ledger.write_bytes(HEAD + END + b"".join(said) + silent + END)
    return town, ledger, law


# Reading


def test_only_what_was_written_whole_is_read_and_only_once(
    watched: tuple[Path, Path, str],
) -> None:
    _, ledger, law = watched
    tail = Tail(ledger)
    assert [(one.line.person, one.time) for one in tail.more()] == [
        ("ann", 1), ("ann", 2), ("bob", 2), ("bob", 3),
    ]  # fmt: skip
    with ledger.open("ab") as file:
        file.write(line("ann", 4, law))
    assert tail.more() == []
    with ledger.open("ab") as file:
        file.write(END)
    assert [one.time for one in tail.more()] == [4]
    assert tail.more() == []


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n")
    with pytest.raises(DataError, match="ledger must be one that this dphmm wrote"):
        Tail(other)
    with pytest.raises(DataError, match="ledger must be readable"):
        Tail(tmp_path / "none.jsonl")
    other.write_bytes(HEAD + b'{"kind": "answer"}\n' + END)
    with pytest.raises(DataError, match="ledger must hold records"):
        Tail(other).more()


def test_nothing_is_written_or_locked(watched: tuple[Path, Path, str]) -> None:
    from dphmm.books import Journal

    _, ledger, _ = watched
    before = ledger.read_bytes()
    tail = Tail(ledger)
    with Journal(ledger):
        tail.more()
    assert ledger.read_bytes() == before


# Numbers


def test_spending_and_limits_are_those_of_the_ledger(watched: tuple[Path, Path, str]) -> None:
    town, ledger, law = watched
    opened = open_file(town)
    live = Live(ledger, opened.scenario, opened.drawing)
    found = live.describe()
    assert (found["answers"], found["n_people"], found["near"]) == (3, 2, 1)
    ann, bob = found["people"]
    assert (ann["person"], ann["spent"], ann["share"]) == ("ann", 3.5, 3.5 / 4)
    assert (bob["person"], bob["answers"], bob["share"]) == ("bob", 1, 0.25)
    assert sum(bar["spent"] for bar in found["spending"]) == 4.5
    assert found["drawn"][0]["place"] == [4.0, 2.0]
    # What left the window counts no more, and what followed another law is not on the map.
    with ledger.open("ab") as file:
        file.write(line("bob", 12, law) + line("eve", 12, "other") + END)
    found = live.describe()
    shares = {one["person"]: one["share"] for one in found["people"]}
    assert shares == {"ann": 0.0, "bob": 0.25, "eve": 0.25}
    assert found["other_laws"] == 1
    assert len(found["drawn"]) == 4


def test_nothing_but_what_left_is_told(watched: tuple[Path, Path, str]) -> None:
    town, ledger, _ = watched
    opened = open_file(town)
    found = Live(ledger, opened.scenario, opened.drawing).describe()
    assert set(found["drawn"][0]) == {"person", "time", "place"}
    assert set(found["people"][0]) == {"person", "answers", "spent", "share", "last"}


def test_a_ledger_needs_its_scenario(watched: tuple[Path, Path, str]) -> None:
    with (
        pytest.raises(ArgumentError, match="watch must come with the scenario"),
        run_in_background(watch=watched[1]),
    ):
        pass


# The page


@pytest.mark.browser
def test_answers_appear_on_the_page_as_they_come(
    browser: Any, watched: tuple[Path, Path, str]
) -> None:
    from playwright.sync_api import expect

    from tests.studio_page import Studio

    town, ledger, law = watched
    with run_in_background(town, watch=ledger) as address:
        studio = Studio(browser, address).open()
        page = studio.page
        studio.tab("live")
        expect(page.locator("#live-tell")).to_have_text(re.compile("3 answers about 2 people"))
        expect(page.locator("#live-tell strong")).to_have_text(re.compile("1 person spent 80%"))
        assert page.locator("#live-people tbody tr").first.inner_text() == "ann\t2\t3.5\t88%"
        assert page.locator(".track-answers circle").count() == 3
        assert studio.axe() == []
        with ledger.open("ab") as file:
            file.write(line("bob", 5, law) + END)
        expect(page.locator("#live-tell")).to_have_text(re.compile("4 answers about 2 people"))
        expect(page.locator(".track-answers circle")).to_have_count(4)
        assert studio.problems == []
        studio.context.close()


@pytest.mark.browser
def test_without_a_ledger_there_is_no_such_tab(studio: Any) -> None:
    assert studio.page.locator("#tab-live").is_hidden()
