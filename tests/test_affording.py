"""What trips take, and whether a limit allows that: beside a ledger that hears every step."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import Clock, Ledger, Schedule
from dphmm.cost.ledger import Entry
from dphmm.errors import BudgetError
from dphmm.scenario.affording import day_of, need_of
from dphmm.scenario.settings import Settings


def settings_of(limit: str | None, when: Schedule | None = None) -> Settings:
    return Settings(name="town", epsilon=Fraction(1, 2), states="s.csv", limit=limit, when=when,
                    clock=Clock("6 hours"))  # fmt: skip


def arrays(people: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    who = [number for number, slots in enumerate(people) for _ in slots]
    return np.array(who, dtype=np.int64), np.array([s for one in people for s in one], np.int64)


# Oracle


def refused(limit: str, slots: list[int]) -> bool:
    """Whether a ledger refuses an answer at one of the slots."""
    ledger = Ledger(limit)
    try:
        for slot in dict.fromkeys(slots):
            ledger.record(Entry(slot, "place", Fraction(1, 2), Fraction(1, 2)))
    except BudgetError:
        return True
    return False


@given(
    st.lists(st.lists(st.integers(-20, 40), min_size=1).map(sorted), min_size=1, max_size=5),
    st.sampled_from(["3", "1 per 1 step", "2 per 5 steps", "1.3 per 3 steps, 6 in all"]),
)
def test_trips_are_too_dear_exactly_where_a_ledger_refuses_them(
    people: list[list[int]], limit: str
) -> None:
    people = [sorted(set(slots)) for slots in people]
    need = need_of(settings_of(limit), *arrays(people))
    expected = sum(refused(limit, slots) for slots in people)
    assert (0 if need is None else need.refused) == expected
    if need is not None:
        assert need.cost == max(map(len, people)) * Fraction(1, 2)
        assert need.people == len(people)
        assert need_of(settings_of(str(need.day)), *arrays(people)) is None


# Laws


def test_only_steps_at_which_something_is_said_cost_something() -> None:
    slots = arrays([list(range(40)), [3]])
    need = need_of(settings_of("4", Schedule(every=2)), *slots)
    assert need is not None
    assert (need.cost, need.refused, need.people) == (10, 1, 1), "nothing is said about the second"
    assert need_of(settings_of("10", Schedule(every=2)), *slots) is None
    assert need_of(settings_of("4", Schedule(every=2, apart=3)), *slots) is None, "nobody can tell"
    assert need_of(settings_of(None), *slots) is None


def test_gaps_that_are_answered_cost_too() -> None:
    slots = arrays([[0, 39], [5]])
    need = need_of(settings_of("4", Schedule(gaps="answer")), *slots)
    assert need is not None
    assert (need.cost, need.refused, need.people) == (20, 1, 2)


@pytest.mark.parametrize(
    ("clock", "when", "told"),
    [
        (Clock("5 min"), None, "144 per 1 day"),
        (Clock("5 min"), Schedule(every="2 h", epsilon=2, step="5 min"), "24 per 1 day"),
        (Clock("7 hours"), None, "1.5 per 3 steps"),
        (Clock("2 days"), None, "0.5 per 1 step"),
        (Clock(), None, "50 per 100 steps"),
    ],
)
def test_a_day_is_the_price_of_its_answers(clock: Clock, when: Schedule | None, told: str) -> None:
    assert str(day_of(Fraction(1, 2), clock, when)) == told
