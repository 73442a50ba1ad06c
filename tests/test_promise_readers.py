"""What is said of readers: of a small chance, and of somebody with other knowledge."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp

import numpy as np

from dphmm import (
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Scenario,
    Schedule,
    Stream,
    guarantee_against,
    sensitivity_hull,
)
from tests.promise_answers import seeded


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


def test_times_that_follow_the_belief_leave_the_sum_alone_in_a_report_too() -> None:
    """A book's answers do not say when they were chosen; the scenario does."""
    policy, when = PolicyGraph.complete(2), Schedule(error="0.01")
    scenario = Scenario(
        Query([0, 1]), MarkovModel(np.full((2, 2), 0.5)), policy, epsilon="0.1", when=when
    )
    stream = scenario.terms.stream(scenario.terms.begin("", "ann", 1))
    for _ in range(20):
        stream.release(0)
    assert stream.statement().tells.linked_delta is None  # type: ignore[union-attr]
