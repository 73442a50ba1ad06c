"""A report's own sentences, each in a small world of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dphmm import (
    Ledger,
    MarkovModel,
    PolicyGraph,
    Query,
    Scenario,
)
from dphmm.cost.words import describe_people
from dphmm.report import scenario_page
from tests.promise_answers import CONDITION
from tests.promise_routes import reported


def test_a_report_says_at_which_times_nothing_was_given_away() -> None:
    """Between two answers everybody crosses the bridge, and every reader knows it."""
    moves = np.zeros((7, 7))
    moves[:3, 3] = 1
    moves[3, 4:] = moves[4:, :3] = 1 / 3
    policy = PolicyGraph(7, [(0, 1), (1, 2), (4, 5), (5, 6)])
    line = Query([0, 1, 2, 5, 8, 9, 10])
    scenario = Scenario(line, MarkovModel(moves), policy, epsilon="0.1", start="3")
    facts = reported(scenario, {1: 4, 2: 0, 4: 5, 5: 2})
    between = scenario.model.smooth(facts.track.stream.observations(), start=scenario.start)[2]
    assert between.probabilities[3] == 1
    page = scenario_page(scenario, [facts])
    assert "These answers gave away no state of ann at the times in this file:" in page
    assert "for likelier than all others together at any of them" in page
    assert "of none of the 2 people at the times in this file" in describe_people(2, 0, "states")


def test_a_report_of_stated_zeros_says_for_whom_its_worst_pair_is() -> None:
    """Whoever is where the model says that nobody is loses more, and is not told otherwise."""
    scenario = Scenario(
        Query([0, 1, 50]), MarkovModel([[0.5, 0.5, 0]] * 2 + [[0, 0, 1.0]]),
        PolicyGraph(3, [(0, 1)]), epsilon=1, start="0",
    )  # fmt: skip
    page = scenario_page(scenario, [reported(scenario, {1: 0})])
    pair = page.split("odds of the worst pair ")[1].split("</li>")[0]
    assert pair == f"by at most ×2.72 (epsilon 1), by these answers alone, {CONDITION}."
    hidden = page.split("each possible state was hidden among ")[1].split(":")[0]
    assert hidden == f"2 to 2 states, itself included, {CONDITION}"
    assert "worst pair ε, one answer" in page


def test_a_report_does_not_say_that_a_lone_state_was_hidden() -> None:
    ring = MarkovModel(np.eye(3)[[1, 2, 0]])
    scenario = Scenario(Query([0, 1, 50]), ring, PolicyGraph.complete(3), epsilon=1, start="0")
    page = scenario_page(scenario, [reported(scenario, {1: 1})])
    assert "was hidden among" not in page


def test_a_report_with_a_book_does_not_draw_one_question_for_all_of_them() -> None:
    model, policy = MarkovModel(np.eye(2), anywhere=0.1), PolicyGraph.complete(2)
    scenario = Scenario(Query([0, 1]), model, policy, epsilon=1, limit=10)
    facts = reported(scenario, {1: 0, 2: 0})
    for besides, alone in ((0, False), (3, True)):
        book = Ledger(10, spent=2 + besides)
        page = scenario_page(scenario, [replace(facts, track=replace(facts.track, budget=book))])
        assert ("What was spent by these answers alone;" in page) == alone
