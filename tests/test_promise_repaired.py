"""Whom repair has linked is linked: in what is said of readers as in what is said of answers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise, product
from math import exp, inf, log

import numpy as np
import pytest

from dphmm import MarkovModel, Plan, PolicyGraph, Query, Stream
from dphmm.cost.words import EACH_QUESTION
from tests.promise_answers import seeded


def told_between(
    stream: Stream, matrix: list[list[Fraction]], pairs: set[tuple[int, int]]
) -> float:
    """How far the answers moved the odds between two states of a pair, path by path."""
    states, steps = range(len(matrix)), len(stream.said)
    chances = []
    for one in stream.said:
        seen = one.step.mechanism(one.epsilon).lattice_log_likelihood(one.lattice)
        chances.append([exp(loss) for loss in seen])
    worst = 0.0
    for moment in range(steps):
        before, after = [0.0] * len(matrix), [0.0] * len(matrix)
        for path in product(states, repeat=steps):
            likely = float(matrix[0][path[0]])  # from state 0
            for move in pairwise(path):
                likely *= float(matrix[move[0]][move[1]])
            before[path[moment]] += likely
            for time, state in enumerate(path):
                likely *= chances[time][state]
            after[path[moment]] += likely
        for a, b in pairs:
            if before[a] and before[b]:
                odds = (after[a] * before[b], after[b] * before[a])
                worst = max(worst, abs(log(odds[0] / odds[1])) if all(odds) else inf)
    return worst


def tenths(*rows: str) -> list[list[Fraction]]:
    return [[Fraction(int(cell), 10) for cell in row] for row in rows]


WORLDS = [
    # No edge at all: everybody's neighbour comes from repair.
    ([0, 1, 3], [], tenths("811", "181", "118")),
    # 2 and 3 are linked by repair alone, and answers tell far more of them than of 0 and 1.
    ([0, 1, 2, 30], [(0, 1)], tenths("7111", "1711", "1171", "1117")),
    # Stated zeros: another pair is repaired at every step.
    ([0, 4, 5, 9], [], tenths("5500", "0550", "0055", "5005")),
]


@pytest.mark.parametrize(("places", "edges", "matrix"), WORLDS)
def test_what_answers_tell_of_linked_states_counts_those_that_repair_has_linked(
    places: list[int], edges: list[tuple[int, int]], matrix: list[list[Fraction]]
) -> None:
    plan = Plan(PolicyGraph(len(places), edges), Query(places))
    model = MarkovModel(np.array(matrix, dtype=np.float64))
    stream = Stream(model, plan, epsilon=3, start=0, randomness=seeded())
    for _ in range(3):
        stream.release(len(places) - 1)
    linked = {
        (a, b)
        for one in stream.said
        for a, b in combinations(range(len(places)), 2)
        if one.step.policy.has_edge(a, b)
    }
    told = told_between(stream, matrix, linked)
    statement = stream.statement()
    assert statement.tells is not None
    assert told > 0.5
    assert told <= log(statement.tells.realised) * (1 + 1e-9)
    if statement.tells.leakage is not None:
        assert told <= (statement.tells.leakage.linked or 0)


def test_a_link_that_only_the_second_question_has_is_not_called_one_of_the_step() -> None:
    """0 and 2 are linked so that the second has full rank; the first tells them far apart."""
    plan = Plan(PolicyGraph(4, [(0, 1), (2, 3)]), Query([0, 1, 50, 51], name="first"))
    stream = Stream(MarkovModel(np.full((4, 4), 0.25)), plan, epsilon=1, start=0)
    stream.release(0)
    alone = stream.statement()
    stream.release_also(0, Query([[0, 0], [1, 0], [0, 1], [1, 1]], name="second"))
    assert [one.step.policy.has_edge(0, 2) for one in stream.said] == [False, True]
    statement = stream.statement()
    assert statement.linked == 2 < statement.worst_pair
    assert EACH_QUESTION in statement.text()
    assert EACH_QUESTION not in alone.text()
    assert statement.tells is not None
    assert log(statement.tells.realised) <= 2
