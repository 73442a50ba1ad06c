"""Windows of histories with gaps: those that others cover need no table, and bounds hold."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from dphmm.chain.markov import MarkovModel
from dphmm.cost import windows
from dphmm.cost.charges import Charge, Loss
from dphmm.cost.history import History
from dphmm.cost.pair_tables import PairTables
from dphmm.cost.statement import privacy_statement
from dphmm.cost.windows import JOINED, WORST_PAIRS, window_bracket, window_epsilon
from dphmm.cost.words import show_factor
from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from tests.test_cost import UNIT, Alternating, lazy_walk, random_model

CASES = 150
STEPS = 14


def gappy(rng: np.random.Generator) -> History:
    """A longer history of few kinds of answers, with gaps, now and then with masks or two models.

    Some steps have two answers, some none.
    """
    n = int(rng.integers(2, 6))
    query = Query(rng.integers(-4, 5, size=(n, 2)))
    bodies = [SensitivityHull.from_vertices(v) for v in ([[1, 0], [0, 1]], [[2, 1], [0, 1]])]
    laws = [
        Charge(query, body, epsilon, gamma)
        for body in bodies[: rng.integers(1, 3)]
        for epsilon in (Fraction(1, 2), Fraction(1))
        for gamma in ((None,) if rng.random() < 0.7 else (None, Fraction(1, 3)))
    ]
    charges = [
        [laws[rng.integers(len(laws))] for _ in range(int(rng.choice([0, 1, 1, 1, 2])))]
        for _ in range(STEPS)
    ]
    first = random_model(rng, n)
    model = first if rng.random() < 0.6 else Alternating(first, random_model(rng, n))
    start = rng.random(n) < 0.5
    start[rng.integers(n)] = True
    possible = [rng.random(n) < 0.9 for _ in range(STEPS)] if rng.random() < 0.3 else None
    try:
        return History(model, charges, start=start, possible=possible)
    except ArgumentError:
        return gappy(rng)


def by_every_table(history: History, width: int) -> Loss:
    """A table for each window."""
    tables = PairTables(history)
    starts = range(len(history) - width + 1)
    return max(tables.between(first, first + width) for first in starts)


# Laws


def test_one_stretch_without_a_gap_covers_all_the_others() -> None:
    query, model = lazy_walk(4)
    rng = np.random.default_rng(1)
    hulls = [UNIT2 if step in range(20, 28) or rng.random() < 0.6 else None for step in range(300)]
    history = History.of(query, model, hulls, 1)
    # The windows at both ends are free there, so that one of another pattern may cost more.
    assert len(windows._uncovered(history, 6)) <= 3


def test_a_dearer_answer_covers_a_cheaper_one_and_another_body_covers_none() -> None:
    query = Query([[0], [1], [2]])
    wide, half = SensitivityHull.from_vertices([[2]]), Fraction(1, 2)
    dear, cheap, other = (Charge(query, *law) for law in ((UNIT, 1), (UNIT, half), (wide, half)))
    kinds = [windows._laws(charges) for charges in ([dear], [cheap], [other], [], [dear, cheap])]
    covered = [[windows._costs(a, b) for b in kinds] for a in kinds]
    assert covered == [
        [True, True, False, True, False],
        [False, True, False, True, False],
        [False, False, True, True, False],
        [False, False, False, True, False],
        [True, True, False, True, True],
    ]


def test_other_peoples_windows_are_looked_up_and_not_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query, model = lazy_walk(4)
    expected = window_epsilon(History.of(query, model, [UNIT2] * 30, 1), 6)
    monkeypatch.setattr(PairTables, "between", None)
    again = History.of(query, model, [UNIT2] * 10 + [None, UNIT2] * 5 + [UNIT2] * 20, 1)
    assert window_epsilon(again, 6) == expected


def test_a_statement_names_its_bound_where_tables_would_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query, model = lazy_walk(5)
    calm = MarkovModel(0.5 * model.transition.toarray() + 0.5 * np.eye(25))
    history = History.of(query, Alternating(model, calm), [UNIT2, UNIT2, None] * 9, 1)
    exactly = privacy_statement(history, width=4)
    assert not isinstance(exactly.window, windows.Bracket)
    each = PairTables(history).work(4)
    for work, named in ((3 * each, JOINED), (0, WORST_PAIRS)):
        monkeypatch.setattr("dphmm.cost.statement.WINDOW_WORK", work)
        bound = privacy_statement(history, width=4)
        assert isinstance(bound.window, windows.Bracket)
        assert bound.window.lower <= exactly.window <= bound.window.upper
        assert show_factor(bound.window.upper) in bound.text()
        assert f"counted {named}" in bound.text()
        assert bound.plain()["window"] == str(bound.window.upper)


# Oracle


def test_the_windows_that_no_other_covers_cost_as_much_as_all_of_them() -> None:
    rng = np.random.default_rng(7)
    fewer = finite = 0
    for _ in range(CASES):
        history = gappy(rng)
        if history.is_free:
            continue
        for width in (1, 3, 5):
            assert window_epsilon(history, width) == by_every_table(history, width)
            fewer += len(windows._uncovered(history, width)) <= (STEPS - width) // 2
            finite += window_epsilon(history, width) < inf
    assert fewer > CASES / 2
    assert finite > CASES / 2


def test_bounds_are_never_below_the_value_whatever_the_work() -> None:
    rng = np.random.default_rng(8)
    named = set()
    for _ in range(CASES):
        history = gappy(rng)
        exactly = window_epsilon(history, 4)
        each = 0 if history.is_free else PairTables(history).work(4)
        least: Loss = inf
        for work in (0, 3 * each, inf):
            bracket = window_bracket(history, 4, work)
            assert bracket.lower <= exactly <= bracket.upper
            assert bracket.upper <= least, "more work must never give a looser bound"
            least = bracket.upper
            if not bracket.is_tight:
                named.add(bracket.upper_from)
    assert WORST_PAIRS in named
    assert named <= {JOINED, WORST_PAIRS}


UNIT2 = SensitivityHull.from_vertices([[1, 0], [0, 1]])
