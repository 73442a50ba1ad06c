"""What is printed by commands, pages and routes, held against what answers really tell.

`test_promise` holds releases, ledgers and statements to enumeration. Here are the sentences that
stand elsewhere: of `dphmm check`, of the studio, of a report, of a service and of a book.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb, exp
from pathlib import Path

import numpy as np

from dphmm import (
    Ledger,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Scenario,
    SeededRandomness,
    States,
    Stream,
    TimeVaryingModel,
    exposed,
    guarantee_against,
    sensitivity_hull,
)
from dphmm.cost.words import describe_people
from dphmm.report import TrackFacts, scenario_page
from dphmm.scenario.headline import headline
from dphmm.scenario.released import Track
from tests.scenarios import run

CONDITION = "for people who move as the model says is possible from its start"


def seeded(seed: int = 0) -> SeededRandomness:
    return SeededRandomness(np.random.default_rng(seed))


# One chance beside many answers


def test_what_is_said_beside_a_small_chance_is_said_of_conclusions_and_not_of_losses() -> None:
    """The chance that answers tell more than epsilon(delta) is larger than delta."""
    count, price = 60, Fraction(1, 10)
    plan = Plan(PolicyGraph.complete(2), Query([0, 1]))
    model = MarkovModel(np.full((2, 2), 0.5))
    stream = Stream(model, plan, epsilon=price, start=0, randomness=seeded())
    for _ in range(count):
        stream.release(0)
    statement = stream.statement()
    tells = statement.tells
    assert tells is not None
    assert tells.linked_delta is not None
    # Of neighbours on a line an answer tells +epsilon or -epsilon, the first e^epsilon as often.
    up = 1 / (1 + exp(-price))
    law = {
        (2 * k - count) * price: comb(count, k) * up**k * (1 - up) ** (count - k)
        for k in range(count + 1)
    }
    most = float(tells.linked_delta)
    more = {float(loss): chance for loss, chance in law.items() if loss > most}
    # Whatever set of answers stands for a conclusion, no other one gains as much as this.
    gained = sum(chance * (1 - exp(most - loss)) for loss, chance in more.items())
    assert gained <= tells.delta
    assert sum(more.values()) > 2 * tells.delta
    (line,) = (line for line in statement.text().splitlines() if "0.000001" in line)
    assert "but for a chance" not in line
    assert "any conclusion from all answers" in line
    assert "by 0.000001 besides" in line


# Before anything is released


def narrowed(**options: object) -> Scenario:
    """Two rows that are told apart for certain; who stands alone afterwards depends on which."""
    places = [[0, 0], [10, 0], [0, 1], [10, 1], [0, 0], [1, 0], [0, 0], [9, 0]]
    later, first = np.zeros((8, 8)), np.zeros((8, 8))
    later[:2, 4:6] = later[2:4, 6:8] = later[4:6, 4:6] = later[6:, 6:] = 0.5
    first[:, :4] = 0.25
    model = TimeVaryingModel([MarkovModel(later), MarkovModel(first)])
    policy = PolicyGraph(8, [(0, 1), (2, 3), (4, 7), (5, 6)])
    states = States.on_plane(places, labels=tuple("abcdefgh"))
    return Scenario(
        states, model, policy, epsilon=1, start=dict.fromkeys("abcd", 0.25),
        repair=None, full_rank=False, name="rows", **options,
    )  # fmt: skip


def test_check_claims_nothing_that_answers_may_change(tmp_path: Path) -> None:
    scenario = narrowed()
    stream = Stream(scenario.model, scenario.plan, epsilon=1, start=scenario.start)
    stream.release(0)
    stream.release(4)
    step = stream.said[-1].step
    assert exposed(scenario.query, step.policy, step.possible, hull=step.body).tolist() == [4, 5]
    found = scenario.check(2)
    assert not found.exposed
    assert found.costs is None  # the second body, and so its price, depends on the first answer
    scenario.save(tmp_path / "rows.toml")
    said = run("check", tmp_path / "rows.toml", "--steps", "2").stdout
    unless = "as long as no answer narrows down what is possible"
    assert f"Nobody is exposed in these steps, {unless}, {CONDITION}." in said
    assert "If each of 2 steps is answered" not in said
    assert "depends on the answers" in said


def test_check_says_what_a_flat_hull_costs_where_no_answer_changes_it(tmp_path: Path) -> None:
    rows = Query([[0, 0], [1, 0], [0, 1], [1, 1]])
    policy = PolicyGraph(4, [(0, 1), (2, 3)])
    model = MarkovModel(np.eye(4), anywhere=0.1)
    scenario = Scenario(rows, model, policy, epsilon=1, full_rank=False, repair=None)
    costs = scenario.check(3).costs
    assert costs is not None
    assert costs.worst_pair == costs.event == np.inf
    assert "shaped by earlier answers" not in costs.text()
    scenario.save(tmp_path / "rows.toml")
    said = run("check", tmp_path / "rows.toml", "--steps", "3").stdout
    assert "Nobody is exposed in these steps." in said


# The studio's headline


def test_a_lone_place_is_not_called_certain_where_delta_or_a_statement_made_it_so() -> None:
    likely = np.array([[0.9, 0.1], [0.9, 0.1]])
    line = Query([0, 1])
    left_out = Scenario(line, MarkovModel(likely), PolicyGraph.complete(2), epsilon=1, delta="0.2")
    said = headline(left_out, left_out.check(1).steps[0])
    assert said.startswith("Only one place is in the 0.8 location set")
    ring = Scenario(line, MarkovModel(np.eye(2)[::-1]), PolicyGraph.complete(2), epsilon=1, start=0)
    said = headline(ring, ring.check(1).steps[0])
    assert said.startswith(f"Only one place is possible {CONDITION}")
    for text in (said, headline(left_out, left_out.check(1).steps[0])):
        assert "everybody knows" not in text


# Somebody with other knowledge


def test_whoever_holds_other_states_possible_also_hears_those_that_stand_in_for_them() -> None:
    """2 is answered as 1, which is farther from 0 than 2 itself is."""
    query = Query([0, 10, 6])
    policy = PolicyGraph(3, [(0, 1)])
    ours, theirs = [True, True, False], [True, False, True]
    body = sensitivity_hull(query, policy, ours)
    seen = guarantee_against(query, policy, body, 1, possible=ours, known=theirs)
    assert query.nearest_states(np.array([2]), np.array(ours)).tolist() == [1]
    assert seen.case == "other"
    assert seen.epsilon == 1  # between what 0 and 2 are answered as, and not 6/10


# A report


def reported(
    scenario: Scenario, walk: dict[int, int], epsilon: Fraction | None = None
) -> TrackFacts:
    """What a report knows of somebody who was in some states at some times."""
    stream = scenario.stream("ann", time=min(walk) - 1, randomness=seeded())
    track = Track("ann", stream)
    for time, state in walk.items():
        stream.skip(time - stream.time - 1)
        track.releases.append(stream.release(state, epsilon))
        track.times.append(str(time))
        track.slots.append(time)
        track.protected.append(stream.said[-1].step)
    return TrackFacts(track)


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
