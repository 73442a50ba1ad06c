"""`dphmm release --lag`: rows that leave when their estimate is final."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import KeyedRandomness, MarkovModel, MemoryBook
from dphmm.books.changing import adopt_terms
from dphmm.release import engine
from dphmm.scenario import Row, Scenario
from dphmm.scenario.releasing import answer_rows, ask_rows
from dphmm.scenario.waiting import LateRows, Leaving
from tests.scenarios import paper_scenario, run, trips, written

KEY = bytes(range(32))
KEYED = KeyedRandomness(KEY)
WALK = [("ann", 1, 2), ("bob", 1, 3), ("ann", 2, 4), ("ann", 5, 5), ("bob", 2, 5), ("ann", 6, 6)]
CLOSE = 0.0005
"""Tables have three decimals."""


def rows_of(*walk: tuple[str, int, int]) -> list[Row]:
    return [Row(2, person, str(slot), slot, state - 1) for person, slot, state in walk]


def told(late: LateRows, scenario: Scenario, book: MemoryBook, rows: list[Row]) -> list[Leaving]:
    ask = ask_rows(scenario, rows)
    late.begin(ask)
    (answered,) = engine.release(book, [ask], KEYED)
    answers = answered.answers
    assert not answered.faults
    return list(late.add(answers, answer_rows(scenario, answers)))


def expected(scenario: Scenario, person: str, lag: int, walk: list[Any]) -> dict[int, list[float]]:
    """The same estimates by a stream of one's own."""
    stream = scenario.stream(person, time=0, randomness=KEYED)
    for name, slot, state in walk:
        if name == person:
            stream.skip(slot - stream.time - 1)
            stream.release(state - 1)
    live = stream.estimates(lag=lag)
    return {one.time: one.value.tolist() for one in (*live.ready(), *live.finish())}


# Laws


@pytest.mark.parametrize("lag", [0, 1, 3, 50])
def test_a_row_leaves_when_so_many_more_steps_were_made(lag: int) -> None:
    scenario, book = paper_scenario(), MemoryBook()
    late = LateRows(scenario, book, "", lag)
    latest: dict[str, int] = {}
    gone: list[int] = []
    for row in rows_of(*WALK):
        latest[row.person] = row.slot
        left = [one.number for one in told(late, scenario, book, [row])]
        gone += left
        final = [
            number
            for number, (person, slot, _) in enumerate(WALK)
            if latest.get(person, 0) - slot >= lag
        ]
        assert sorted(gone) == final
    gone += [one.number for one in late.finish()]
    assert sorted(gone) == list(range(len(WALK)))
    assert list(late.finish()) == []


@pytest.mark.parametrize("lag", [0, 2, 50])
@pytest.mark.parametrize("estimate", ["mean", "median"])
def test_the_estimates_are_those_of_a_stream(lag: int, estimate: str) -> None:
    scenario, book = paper_scenario(estimate=estimate), MemoryBook()
    late = LateRows(scenario, book, "", lag)
    left = told(late, scenario, book, rows_of(*WALK)) + list(late.finish())
    for number, cells in left:
        person, slot, _ = WALK[number]
        assert (cells[0], cells[1]) == (person, slot)
        exact = expected(scenario, person, lag, WALK)[slot]
        np.testing.assert_allclose(cells[4:6], exact, atol=CLOSE)


def test_another_run_goes_on_where_people_stand() -> None:
    scenario, book = paper_scenario(), MemoryBook()
    whole = LateRows(scenario, MemoryBook(), "", 2)
    told(whole, scenario, whole._book, rows_of(*WALK))
    first, second = LateRows(scenario, book, "", 2), LateRows(scenario, book, "", 2)
    told(first, scenario, book, rows_of(*WALK[:3]))
    rest = told(second, scenario, book, rows_of(*WALK[3:])) + list(second.finish())
    for number, cells in rest:
        person, slot, _ = WALK[3 + number]
        exact = expected(scenario, person, 2, WALK)[slot]
        np.testing.assert_allclose(cells[4:6], exact, atol=CLOSE)
    # A run that is run again repeats its answers, and so its estimates.
    again = LateRows(scenario, book, "", 2)
    everything = told(again, scenario, book, rows_of(*WALK)) + list(again.finish())
    # Also where it begins in the middle of what was answered.
    middle = LateRows(scenario, book, "", 2)
    everything += [
        Leaving(2 + number, cells)
        for number, cells in (
            *told(middle, scenario, book, rows_of(*WALK[2:])),
            *middle.finish(),
        )
    ]
    assert len(everything) == 2 * len(WALK) - 2
    for number, cells in everything:
        person, slot, _ = WALK[number]
        exact = expected(scenario, person, 2, WALK)[slot]
        np.testing.assert_allclose(cells[4:6], exact, atol=CLOSE)


def test_a_second_row_of_a_step_leaves_with_the_first() -> None:
    scenario, book = paper_scenario(), MemoryBook()
    late = LateRows(scenario, book, "", 1)
    assert told(late, scenario, book, rows_of(("ann", 1, 2), ("ann", 1, 2))) == []
    left = told(late, scenario, book, rows_of(("ann", 2, 4)))
    assert [one.number for one in left] == [0, 1]
    assert left[0].cells == left[1].cells
    # A row of a step that is final already has nothing to wait for.
    (late_comer,) = told(late, scenario, book, rows_of(("ann", 1, 2)))
    assert late_comer.cells[:4] == left[0].cells[:4]


def test_what_another_law_said_leaves_as_the_book_has_it() -> None:
    scenario, book = paper_scenario(), MemoryBook()
    (answered,) = engine.release(book, [ask_rows(scenario, rows_of(*WALK[:3]))], KEYED)
    said = [cells[4:6] for cells in answer_rows(scenario, answered.answers)]
    other = Scenario.from_settings(
        scenario.settings, scenario.states, MarkovModel(np.full((6, 6), 1 / 6))
    )
    assert len(list(adopt_terms(book, other.terms, same_states=True))) == 2
    left = told(LateRows(other, book, "", 3), other, book, rows_of(*WALK[:3]))
    assert [one.cells[4:6] for one in sorted(left)] == said


# Commands


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_file_keeps_its_order_and_its_answers(tmp_path: Path) -> None:
    path, key = written(tmp_path), tmp_path / "key"
    (tmp_path / "trips.csv").write_text(trips(*WALK))
    key.write_bytes(KEY)
    key.chmod(0o600)
    options = ("release", path, tmp_path / "trips.csv", "--key-file", key, "--ledger")
    now = run(*options, tmp_path / "a.jsonl")
    late = run(*options, tmp_path / "b.jsonl", "--lag", 2)
    assert late.exit_code == 0, late.output
    names = ("person", "time", "x", "y", "epsilon")
    plain, waited = table(now.stdout), table(late.stdout)
    assert [[row[n] for n in names] for row in plain] == [[row[n] for n in names] for row in waited]
    scenario = Scenario.load(path)
    for row, (person, slot, _) in zip(waited, WALK, strict=True):
        exact = expected(scenario, person, 2, WALK)[slot]
        found = [float(row["estimate_x"]), float(row["estimate_y"])]
        np.testing.assert_allclose(found, exact, atol=CLOSE)
    piped = run(*options[:2], "--key-file", key, "--ledger", tmp_path / "c.jsonl", "--lag", 2,
                stdin=trips(*WALK))  # fmt: skip
    assert sorted(map(str, table(piped.stdout))) == sorted(map(str, waited))
    stored = run(*options[:-1], "--store", tmp_path / "store.db", "--lag", 2)
    assert stored.exit_code == 0, stored.output
    assert table(stored.stdout) == waited
    assert run(*options, tmp_path / "d.jsonl", "--lag", 2, "--engine", "spark").exit_code == 2
