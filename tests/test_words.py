"""The words of prices and promises: numbers that people can read, and never less than they are."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import exp, inf

from hypothesis import given
from hypothesis import strategies as st

from dphmm.cost.history import History
from dphmm.cost.statement import privacy_statement
from dphmm.cost.words import (
    LARGEST_LOSS,
    describe_answer,
    describe_bracket,
    is_useful,
    show_factor,
    show_number,
    show_odds,
)
from tests.scenarios import paper_scenario

POWER = re.compile(r"e\^|\de[+-]?\d|\d{9}")
"""What nobody reads: powers of ten or of e, and very long numbers."""


def as_number(text: str) -> float:
    return float(text.replace(",", ""))


# Laws


@given(st.floats(1e-6, 1e7))
def test_a_number_is_plain_and_never_less_than_it_is(value: float) -> None:
    text = show_number(value)
    assert not POWER.search(text)
    assert value <= as_number(text) <= value * 1.002


@given(st.floats(1e-6, 1e6))
def test_a_factor_is_plain_and_no_factor_above_a_million_is_written(loss: float) -> None:
    text = show_factor(loss)
    assert not POWER.search(text)
    if loss > LARGEST_LOSS:
        assert text == f"without a useful limit (epsilon {show_number(loss)})"
    else:
        assert exp(loss) * (1 - 1e-12) <= as_number(show_odds(loss)) <= 1.02 * exp(loss)
        assert is_useful(exp(loss))


# Examples


def test_factors_that_were_written_as_powers() -> None:
    assert show_factor(7.5) == "by at most ×1,810 (epsilon 7.5)"
    assert show_factor(4176) == "without a useful limit (epsilon 4,176)"
    assert show_factor(inf).startswith("without limit (epsilon infinite")
    assert not is_useful(1.632e64)


def test_one_answer_at_a_high_price_promises_nothing() -> None:
    low = describe_answer(Fraction(2), "places", ", if it is so")
    assert "become at most 7.39 to 1 (epsilon 2)" in low
    assert low.endswith(", whatever else is known about the person, if it is so.")
    high = describe_answer(Fraction(30), "places", "")
    assert "no useful limit" in high
    assert "never settles" not in high
    # Odds of 148 to 1 are confidence: no sentence says that nobody has any.
    assert "confidence" not in describe_answer(Fraction(5), "places", "")


def test_a_bracket_says_where_it_comes_from_and_when_it_is_no_limit() -> None:
    assert describe_bracket(1.5, "a", Fraction(20000), "b") == (
        "the worst case lies between epsilon 1.5 (a) and 20,000 (b)"
    )
    assert describe_bracket(30, "a", 360, "b").startswith("no useful limit: the worst case")


def test_a_statement_has_no_powers_however_much_was_told() -> None:
    scenario = paper_scenario()
    stream = scenario.stream("ann")
    body = stream.plan.at(stream.possible).body
    history = History.of(scenario.query, scenario.model, [body] * 3, 9, start=scenario.start)
    statement = replace(privacy_statement(history), realised=1.632e64)
    assert "moved by more than a factor of a million." in statement.text()
    assert "the odds of some place" in statement.text()
    assert not POWER.search(statement.text())
    assert "of no place" in replace(statement, realised=12.0).text()


@given(st.floats(1e-6, 1e6), st.floats(0, 10))
def test_the_lower_end_of_a_bracket_is_never_more_than_it_is(lower: float, more: float) -> None:
    text = describe_bracket(lower, "a", lower + more, "b")
    found = re.search(r"between epsilon (\S+) \(a\) and (\S+) \(b\)", text)
    assert found
    assert lower * 0.998 <= as_number(found[1]) <= lower
    assert as_number(found[2]) >= lower + more
