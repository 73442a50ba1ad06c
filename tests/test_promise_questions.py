"""Several questions about one moment, and what their ledger says."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import polars
import pytest

from dphmm import (
    Ledger,
    MarkovModel,
    MemoryBook,
    Plan,
    PolicyGraph,
    Query,
    Scenario,
    Stream,
)
from dphmm.cost.words import THESE_ANSWERS
from tests.promise_answers import Answer, seeded
from tests.promise_checks import check
from tests.promise_worlds import make_world
from tests.scenarios import run


@pytest.mark.parametrize(
    ("first", "second", "carried"),
    [
        ([0, 1, 2, 100, 101], [0, 100, 101, 1, 2], set()),
        ([0, 1, 2, 100, 101, 102], [0, 1, 200, 201, 300, 301], {(0, 1)}),
    ],
)
def test_several_questions_share_what_hides_a_state(
    first: list[int], second: list[int], carried: set[tuple[int, int]]
) -> None:
    n = len(first)
    plan = Plan(PolicyGraph(n, sorted(carried)), Query(first, name="place"))
    everywhere, matrix = np.ones(n, dtype=bool), np.full((n, n), 1 / n)
    world = make_world([matrix], [0.0], everywhere, carried, plan)
    for state in range(3):
        world.release(state)
        world.release_also(state, Query(second, name="other"))
    check(world)
    # Each asked and repaired by itself, some state loses about a hundred against everybody.
    alone = []
    for values in (first, second):
        own = Plan(PolicyGraph(n, sorted(carried)), Query(values, name="place"))
        world = make_world([matrix], [0.0], everywhere, carried, own)
        world.release(0)
        alone.append(world.answers[0])
    least = [min(sum(a.told(j, k) for a in alone) for k in range(n) if k != j) for j in range(n)]
    assert max(least) >= 99


def test_one_step_has_one_location_set_for_all_its_questions() -> None:
    n = 6
    plan = Plan(PolicyGraph.complete(n), Query(np.arange(n), name="place"), delta="0.3")
    chain = MarkovModel(np.full((n, n), 1 / n), anywhere=0.1)
    stream = Stream(chain, plan, epsilon=5, start=0)
    stream.release(0)
    stream.release_also(0, Query(np.arange(n)[::-1], name="other"))
    first, second = (said.step.possible.tolist() for said in stream.said)
    assert first == second


def test_a_ledger_says_when_what_was_spent_is_the_sum_over_several_questions(
    tmp_path: Path,
) -> None:
    model, policy = MarkovModel(np.full((2, 2), 0.5)), PolicyGraph.complete(2)
    rows, store = tmp_path / "trips.csv", tmp_path / "town.db"
    rows.write_text("person,time,state\nann,1,0\n")
    for number, name in enumerate(("first", "second"), start=1):
        toml = tmp_path / f"{name}.toml"
        Scenario(Query([0, 1]), model, policy, epsilon=number, query=name).save(toml)
        ran = run("release", toml, rows, "-o", tmp_path / f"{name}.csv", "--store", store)
        assert ran.exit_code == 0, ran.stderr
        said = [x for x in run("ledger", "show", store).stdout.splitlines() if x.startswith("ann")]
        assert len(said) == number
        assert all(("spent 3 on all questions" in x) == (number == 2) for x in said)


def test_a_ledger_that_does_not_list_everything_claims_nothing_for_the_worst_pair() -> None:
    assert Ledger(spent=3).constrained == inf
    assert Ledger().constrained == 0


def test_pages_say_that_two_scenarios_do_not_share_what_hides_a_state() -> None:
    """Nobody is exposed by either, and yet both tell state 0 from everybody else."""
    model, bare = MarkovModel(np.full((5, 5), 1 / 5)), PolicyGraph(5, [])
    book, told = MemoryBook(), []
    rows = polars.DataFrame([{"person": "ann", "time": 1, "state": "0"}])
    for name, values in (("first", [0, 1, 2, 100, 101]), ("second", [0, 100, 101, 1, 2])):
        scenario = Scenario(Query(values, name=name), model, bare, epsilon=1, query=name)
        assert not scenario.check(1).exposed
        scenario.release(rows, book=book, randomness=seeded())
        stream = scenario.stream("ann", book=book)
        (record,) = book.answers(stream.line)
        told.append(Answer.of(stream.said[0], record.release()))
    assert stream.ledger.spent == 2
    assert "2 spent, no limit" in repr(stream.ledger)  # where it said: limit, of nothing
    first, *lines = stream.statement().text().splitlines()
    assert first.endswith("epsilon 1 was spent on this person besides, which nothing here counts.")
    told_of = [line for line in lines if " at most " in line or "without a useful" in line]
    assert len(told_of) > 4
    assert all(line.endswith(f"{THESE_ANSWERS}.") for line in told_of)
    assert min(sum(answer.told(0, other) for answer in told) for other in range(1, 5)) >= 101
    docs = Path(__file__).parents[1] / "docs"
    page = " ".join((docs / "scenario.md").read_text().split())
    assert "prices add up for states that the policies of both link" in page
    assert "both answers together may all but tell it" in page
    assert "together tell more](scenario.md#the-law)" in (docs / "guarantee.md").read_text()
