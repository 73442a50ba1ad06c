"""What is printed of a file alone, of the steps that were looked at, and of a limit's gaps."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars
import pytest

from dphmm import (
    Clock,
    MarkovModel,
    MemoryBook,
    Policy,
    PolicyGraph,
    Query,
    Scenario,
    Schedule,
    TimeVaryingModel,
)
from dphmm.cost.words import CONDITION
from dphmm.errors import BudgetError
from dphmm.release import engine
from dphmm.release.engine import Ask
from dphmm.release.moment import Line
from dphmm.report import TrackFacts, scenario_page
from dphmm.report.page import FIRST_ANSWERS
from dphmm.scenario.released import read_releases
from tests.promise_answers import seeded
from tests.scenarios import run


def spreading(anywhere: float = 0.0) -> Scenario:
    """From 0 to 1 or 2, which repair must link; a step later 3 and 4 hide them, far apart."""
    moves = np.zeros((5, 5))
    for state, others in enumerate(([1, 2], [1, 3], [2, 4], [3, 1], [4, 2])):
        moves[state, others] = 0.5
    model = MarkovModel(moves, anywhere=anywhere) if anywhere else MarkovModel(moves)
    places = np.array([[50, 0, 100, 1, 101], [0] * 5]).T
    return Scenario(
        places, model, PolicyGraph(5, [(1, 3), (2, 4)]), epsilon=1, start="0", name="town",
        full_rank=False,
    )  # fmt: skip


def rows(times: list[int], state: str = "0") -> polars.DataFrame:
    count = len(times)
    return polars.DataFrame({"person": ["ann"] * count, "time": times, "state": [state] * count})


def test_a_report_of_a_file_alone_says_that_earlier_answers_would_change_its_numbers(
    tmp_path: Path,
) -> None:
    """The second line of a file alone is read as a first one, whose noise is far larger."""
    scenario, book, file = spreading(), MemoryBook(), tmp_path / "later.csv"
    scenario.release(rows([1, 2], "1"), book=book, randomness=seeded())[1:].write_csv(file)
    whole = read_releases(file, scenario, book=book)
    alone = read_releases(file, scenario)
    # 1 and 2, 3 and 2: all keep to the model from its start, and are told far apart by the second.
    assert whole[0].stream.statement().worst_pair == 101
    assert alone[0].stream.statement().worst_pair == 1
    for tracks, is_said in ((whole, False), (alone, True)):
        page = scenario_page(scenario, [TrackFacts(track) for track in tracks])
        assert (page.count(FIRST_ANSWERS) == 2) == is_said
        assert (FIRST_ANSWERS in page) == is_said


def test_a_report_of_a_file_alone_needs_no_such_words_where_nothing_is_impossible(
    tmp_path: Path,
) -> None:
    scenario, book, file = spreading(anywhere=0.1), MemoryBook(), tmp_path / "later.csv"
    scenario.release(rows([1, 2], "1"), book=book, randomness=seeded())[1:].write_csv(file)
    (whole,) = read_releases(file, scenario, book=book)
    (alone,) = read_releases(file, scenario)
    assert whole.stream.said[-1].step.body.digest == alone.stream.said[-1].step.body.digest
    assert FIRST_ANSWERS not in scenario_page(scenario, [TrackFacts(alone)])


def test_design_speaks_of_the_steps_that_it_has_looked_at(tmp_path: Path) -> None:
    """Within 1 everybody hides at the first step; at the second somebody may be at 3, alone."""
    moves = np.zeros((4, 4))
    moves[0, [1, 2]] = moves[2, [2, 3]] = 0.5
    moves[1, 1] = moves[3, 3] = 1
    places = np.array([[50, 0, 1, 1000], [0] * 4]).T
    policy = Policy(distance=Fraction(1))
    scenario = Scenario(
        places, MarkovModel(moves), policy, epsilon=1, start="0", repair=None, full_rank=False
    )
    scenario.save(tmp_path / "town.toml")
    asked = ("design", tmp_path / "town.toml", "--find", "radius", "--protection", 2, "--steps", 1)
    told = run(*asked)
    assert told.stdout.startswith('policy.distance = "1"')
    assert [step.exposed for step in scenario.check(steps=2).steps] == [(), ("3",)]
    condition = f"in the first step without a release, {CONDITION}"
    assert told.stdout.rstrip().endswith(condition)
    assert json.loads(run(*asked, "--json").stdout)["gives"]["condition"] == condition


def test_what_check_plans_for_a_start_at_slot_0_says_so_to_programs_too(tmp_path: Path) -> None:
    """Into odd slots nobody moves, into even ones anybody may: who begins later loses more."""
    anybody, nobody = np.full((2, 2), 0.5), np.eye(2)
    model = TimeVaryingModel([MarkovModel(anybody), MarkovModel(nobody)])
    scenario = Scenario([[0, 0], [1, 0]], model, PolicyGraph.complete(2), epsilon=1, start="0")
    scenario.save(tmp_path / "town.toml")
    planned = json.loads(run("check", tmp_path / "town.toml", "--steps", 1, "--json").stdout)[
        "costs"
    ]
    stream = scenario.stream("ann", time=1)
    stream.release(1)
    assert Fraction(planned["sequence"]) < stream.statement().sequence == 1
    told = "if the start is known at slot 0"
    assert planned["condition"] == f"{told}, {CONDITION}"
    assert planned["if"] == f"If each of 1 steps is answered, {told}"


def test_what_check_plans_counts_silent_steps_before_a_first_answer(
    tmp_path: Path,
) -> None:
    """At the first step repair hides 1 and 2, who are heard first at the second, far apart."""
    scenario = spreading().replace(when=Schedule(every=2))
    scenario.save(tmp_path / "town.toml")
    asked = ("check", tmp_path / "town.toml", "--steps", 2)
    planned = json.loads(run(*asked, "--json").stdout)["costs"]
    stream = scenario.stream("ann", time=0)
    releases = [stream.release(1) for _ in range(2)]
    assert [release.silent for release in releases] == [True, False]
    assert Fraction(planned["sequence"]) == stream.statement().sequence == 101
    words = "as [when] says, wherever they begin (at most 1 of them)"
    assert planned["if"].endswith(words)
    assert f"{words}:" in run(*asked).stdout
    # Whoever's start is known at slot 1 is heard at once, and loses no more than 1.
    early = scenario.replace(clock=Clock(1, origin=1)).check(2)
    assert early.planned == "If 2 steps are answered as [when] says (1 of them)"
    assert early.costs is not None
    assert early.costs.sequence == 1


def test_a_limit_that_runs_out_shows_in_files_where_no_row_was() -> None:
    """As docs/scenario.md says: a file is refused as a whole, a service refuses the row alone."""
    moves = MarkovModel(np.full((2, 2), 0.5), anywhere=0.1)
    scenario = Scenario(
        Query([0, 1]), moves, PolicyGraph.complete(2), epsilon=1, limit="2 per 3 steps",
        when=Schedule(gaps="answer"),
    )  # fmt: skip
    left = [scenario.release(rows(times))["time"].to_list() for times in ([1, 4], [1, 2, 4])]
    assert left == [[1, 2, 4], [1, 2, 4]]
    with pytest.raises(BudgetError):
        scenario.release(rows([1, 2, 3, 4]))
    alone = []
    for times in ([1, 4], [1, 2, 4], [1, 2, 3, 4]):
        book = MemoryBook()
        for time in times:
            ask = Ask(scenario.terms, ["ann"], np.array([time]), np.array([0]))
            engine.release(book, [ask], seeded())
        held = list(book.answers(Line("", "ann", scenario.terms.query)))
        alone.append([(one.time, one.epsilon) for one in held])
    assert alone == [[(1, Fraction(1)), (2, Fraction(1)), (4, Fraction(1))]] * 3


def test_a_check_in_a_notebook_says_which_answers_its_costs_are_about() -> None:
    scenario = spreading()
    shown = scenario.check(steps=3)._repr_html_()
    assert "If each of 3 steps is answered:" in shown
    assert shown.index("If each of 3 steps") < shown.index("Two states that the policy links")
