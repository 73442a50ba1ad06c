"""What these very answers told, also of places whose probability no float holds."""

from __future__ import annotations

from math import e, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Belief,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Stream,
    realised_odds,
)
from dphmm.cost.realised import realised_factor

LOGS = st.lists(st.sampled_from([0.0, -1.0, -40.0, -800.0, -5000.0]), min_size=3, max_size=3)


def rare(chance: float, count: int) -> MarkovModel:
    matrix = np.eye(count) * (1 - chance) + np.eye(count, k=1) * chance
    matrix[-1, -1] = 1.0
    return MarkovModel(matrix)


# Laws


def test_a_place_that_floats_have_lost_is_counted() -> None:
    """One answer at the far place's own value: its odds move by e, and once 1.001 was said."""
    count = 16
    query = Query([0] * (count - 1) + [1])
    plan = Plan(PolicyGraph.complete(count), query)
    stream = Stream(rare(1e-22, count), plan, epsilon=1, start=0)
    stream.skip(count - 2)
    stream.repeat([1])
    statement = stream.statement()
    assert statement.realised == pytest.approx(e, rel=1e-12)
    assert "moved by more than a factor of 2.719" in statement.text()


def test_probabilities_at_the_edge_of_floats_leave_a_statement_whole() -> None:
    """A street of cells, one in a hundred moves on: 165 steps on there are denormal numbers."""
    count = 165
    plan = Plan(PolicyGraph(count, [(0, 1)]), Query(list(range(count))))
    stream = Stream(rare(0.01, count), plan, epsilon=1, start=0)
    stream.skip(count - 5)
    for _ in range(5):
        stream.repeat([0])
    assert "nan" not in stream.statement().text()


def test_odds_of_denormal_probabilities_are_numbers() -> None:
    moved = realised_odds([5e-324, 1.0], [0.0, 1.0])
    assert moved.tolist() == [0.0, 1.0]
    assert realised_odds([5e-324, 0.5], [1e-300, 0.5])[0] == pytest.approx(2.02e23, rel=0.01)


def test_what_becomes_certain_or_impossible_moves_without_limit() -> None:
    even, sure = Belief.uniform(2), Belief.certain(0, 2)
    assert realised_factor([even], [sure]) == inf
    assert realised_factor([sure], [sure]) == 1.0
    assert realised_factor([even], [even]) == 1.0


def test_wrong_beliefs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="posterior must have the times and states of prior"):
        realised_factor([Belief.uniform(2)], [Belief.uniform(3)])
    with pytest.raises(ArgumentError, match="posterior must be zero where the prior is"):
        realised_factor([Belief.certain(0, 2)], [Belief.uniform(2)])


# Oracle


@given(LOGS, LOGS)
def test_beliefs_tell_what_logs_do(before, after) -> None:
    odds = []
    for logs in (np.array(before), np.array(after)):
        rest = [np.logaddexp.reduce(np.delete(logs, state)) for state in range(3)]
        odds.append(logs - rest)
    moved = float(np.abs(odds[0] - odds[1]).max())
    told = realised_factor(*([Belief.from_log_probabilities(one)] for one in (before, after)))
    assert told == (pytest.approx(np.exp(moved), rel=1e-9) if moved < 700 else inf)
