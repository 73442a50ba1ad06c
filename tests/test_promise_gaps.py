"""Where steps without a row are answered, what is printed speaks of what was answered.

An answer at such a step is about the state of another one. Let x be a row's state and y that of
the step without one, which nobody was told. The answer z at y's time has the law of x, so of y it
tells the mixture of P(z | x) over the x that lead to y: between linked y that may be far more than
epsilon. And x itself may be impossible at y's time although whoever was there moved on as the model
says: then another state stands in for it, and linked x lose more too. Both are excluded by the
condition that people were where they were answered.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from html import unescape
from math import exp
from pathlib import Path

import numpy as np
import polars
import pytest

from dphmm import (
    Batch,
    MarkovModel,
    MemoryBook,
    Plan,
    PolicyGraph,
    Query,
    Release,
    Scenario,
    Schedule,
    Stream,
)
from dphmm.books import Store
from dphmm.cost.words import (
    CONDITION,
    FILLED,
    ITS_OWN_STEP,
)
from dphmm.report import scenario_page
from dphmm.scenario.headline import headline
from tests.promise_answers import ANSWERS, Answer, seeded
from tests.promise_routes import reported
from tests.scenarios import run

FILL = Schedule(gaps="answer")


def forbids_staying() -> Scenario:
    """From 5 everybody goes to one of 0 to 4, and then nobody is at 1 again."""
    moves = np.zeros((6, 6))
    moves[5, :5] = 1 / 5
    moves[:5, [0, 2, 3, 4]] = 1 / 4
    policy, line = PolicyGraph(6, [(0, 1), (0, 3), (2, 4)]), Query([*ANSWERS, 0])
    return Scenario(line, MarkovModel(moves), policy, epsilon=1, start="5", when=FILL, name="town")


@pytest.mark.parametrize("people", [1, 40])
def test_an_answer_of_a_stay_that_nobody_made_has_its_condition(people: int) -> None:
    """Somebody at 1 and then at 0 keeps to the model, and is answered as if at 1 twice."""
    scenario, book = forbids_staying(), MemoryBook()
    rows = [{"person": f"p{n}", "time": t, "state": s}
            for n in range(people) for t, s in ((1, "1"), (3, "0"))]  # fmt: skip
    scenario.release(polars.DataFrame(rows), book=book, randomness=seeded())
    stream = scenario.stream("p0", book=book)
    texts = [record.statement for record in book.answers(stream.line)]
    assert [one.time for one in stream.said] == [1, 2, 3]
    law = stream.said[1]
    answer = Answer.of(law, Release(2, law.lattice, law.lattice, law.lattice, law.epsilon, ""))
    # 1 and 0 are linked, and both lead to 0: two paths of the model's that differ at one row.
    assert answer.told(0, 1) == 110
    for text in texts:
        assert text.endswith(f"exp(1), {FILLED}, {CONDITION}.")


def test_of_the_state_at_a_step_without_a_row_more_may_be_told_than_epsilon() -> None:
    """0 leads to 1 and 3 to 2, nearly always: what tells 0 from 3 tells 1 from 2 a step later."""
    own = np.eye(5)[[1, 0, 3, 2, 4]]
    line, policy = Query([0, 10, 11, 60, 61]), PolicyGraph(5, [(0, 1), (1, 2), (3, 4)])
    model, plan = MarkovModel(own, anywhere=0.01), Plan(policy, line)
    stream = Stream(model, plan, epsilon=1, start=[0.2] * 5, randomness=seeded(), schedule=FILL)
    text = stream.release(0).statement
    told = np.exp(stream.said[0].step.mechanism(Fraction(1)).lattice_log_probability([0]))
    moves = 0.99 * own + 0.01 / 5
    likely = told @ moves / moves.sum(axis=0)
    assert told[1] / told[2] <= exp(1)
    assert likely[1] / likely[2] > exp(4)
    assert text == f"Odds between two linked states change by at most a factor exp(1), {FILLED}."
    options = {"epsilon": 1, "start": 0, "people": ["ann"], "randomness": seeded()}
    (charge,) = Batch(model, plan, schedule=FILL, **options).release([0]).charges  # type: ignore[arg-type]
    assert charge.statement == text


def test_a_lone_state_rests_on_what_was_answered_too() -> None:
    """An answer that tells rows apart for certain may have been of a stay that nobody made."""
    ring = Scenario(
        Query([0, 1]), MarkovModel(np.eye(2)[::-1]), PolicyGraph.complete(2), epsilon=1, start=0,
        when=FILL,
    )  # fmt: skip
    only = f"Only one %s is possible {FILLED}, {CONDITION}"
    assert ring.stream("ann", time=0).release("1").statement.startswith(only % "state")
    assert headline(ring, ring.check(1).steps[0]).startswith(only % "place")


def test_all_that_promises_something_of_an_answer_says_so(tmp_path: Path) -> None:
    scenario = forbids_staying()
    scenario.save(tmp_path / "town.toml")
    said = run("check", tmp_path / "town.toml", "--steps", "3").stdout.splitlines()
    rests = f", {FILLED}, {CONDITION}"
    assert f"exp(1){rests};" in said[1]
    assert said[-1] == f"Nobody is exposed in these steps{rests}."
    assert headline(scenario, scenario.check(3).steps[-1]).endswith(rests)
    page = scenario_page(scenario, [reported(scenario, {1: 1})])
    assert f"whatever else is known about the person{rests}." in page


def test_whoever_knows_that_answers_are_of_one_row_hears_more_than_is_said_to_be_told() -> None:
    """By the model every step is a new draw; five of the answers were of one row."""
    model, policy = MarkovModel(np.full((3, 3), 1 / 3)), PolicyGraph(3, [(0, 1), (1, 2)])
    scenario, book = Scenario(Query([0, 1, 2]), model, policy, epsilon=1, when=FILL), MemoryBook()
    rows = [{"person": "ann", "time": t, "state": "0"} for t in (1, 6)]
    scenario.release(polars.DataFrame(rows), book=book, randomness=seeded())
    stream = scenario.stream("ann", book=book)
    statement = stream.statement()
    heard = np.array(stream.observations()[:5])
    one = np.log(3) + heard.sum(axis=0) - np.logaddexp.reduce(heard.sum(axis=0))
    assert statement.realised is not None
    assert statement.tells is not None
    linked = max(abs(one[0] - one[1]), abs(one[1] - one[2]))
    assert exp(linked) > statement.tells.realised
    lines = statement.text().splitlines()
    for start in ("What these answers really told", "Of no moment from the first to the last"):
        (line,) = (line for line in lines if line.startswith(start))
        assert ITS_OWN_STEP in line
        assert ITS_OWN_STEP not in replace(statement, filled=False).text()


def test_a_row_that_stands_for_several_steps_is_not_told_that_it_loses_one(tmp_path: Path) -> None:
    """Two people who differ at one row lose what every step tells that was filled from it."""
    model, policy = MarkovModel(np.full((3, 3), 1 / 3)), PolicyGraph(3, [(0, 1), (1, 2)])
    when = Schedule(gaps="answer")
    scenario = Scenario(Query([0, 1, 2]), model, policy, epsilon=1, when=when)
    scenario.save(tmp_path / "town.toml")
    (tmp_path / "trips.csv").write_text("person,time,state\nann,1,0\nann,6,2\n")
    names = [tmp_path / name for name in ("town.toml", "trips.csv", "out.csv", "town.db")]
    toml, trips, out, store = names
    assert run("release", toml, trips, "-o", out, "--store", store).exit_code == 0
    with closing(Store.open(str(store))) as book:
        stream = scenario.stream("ann", book=book)
        statement = stream.statement()
    step = stream.said[0].step
    one = step.body.lattice_norms(np.array([[2]]))[0]
    # The row of time 1 was answered five times.
    assert 5 * one == 10 > statement.event
    page = tmp_path / "report.html"
    for ledger in ([], ["--ledger", store]):
        assert run("report", toml, out, *ledger, "-o", page).exit_code == 0
        lines = unescape(page.read_text()).splitlines()
        for start in ("Where you were at one moment", "Two paths that are", "Of one moment from"):
            (line,) = (line for line in lines if line.startswith(f"<li>{start}"))
            assert FILLED in line
    assert FILLED in run("check", toml, "--steps", "3").stdout
    assert not any(FILLED in line for line in replace(statement, filled=False).text().splitlines())
    assert "These hold whatever you did" not in statement.text()
