"""Windows in time: an hour is any hour, and questions with several time steps share it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    BudgetError,
    Clock,
    KeyedRandomness,
    Ledger,
    Limit,
    MemoryBook,
    Store,
)
from dphmm.books import find_problems
from dphmm.books.changing import rotate_key
from dphmm.cost.limit import Window
from dphmm.release import engine
from dphmm.release.admission import Verdict
from dphmm.release.engine import Ask
from tests.scenarios import FEWER
from tests.window_books import (
    BOOKS,
    KEYED,
    ROWS,
    TOWN,
    Opened,
    ask,
    at,
    check_answered,
    dated,
    opened,
)
from tests.windows import Plain, Row, holds

# Clocks


def test_a_window_of_an_hour_is_any_twelve_slots_of_five_minutes() -> None:
    town, book = dated("5 min", "2 per 1 hour"), MemoryBook()
    asked = at(town, "10:00", "10:30", "10:55", "11:00", "11:25", "11:30")
    (answered,) = engine.release(book, [asked])
    assert answered.verdicts.tolist() == [0, 0, Verdict.OVER, 0, Verdict.OVER, 0]
    with pytest.raises(BudgetError, match="limit of 2 per 1 hour, got a request for 1 with 2 "
                       "spent and 0 remaining; ask for less or ask again for "
                       "2024-05-01T11:00:00Z or later"):  # fmt: skip
        answered.release(2)


def test_a_window_must_be_whole_steps() -> None:
    with pytest.raises(ArgumentError, match="windows of whole steps of 420 s, got '24 per 1 day'"):
        dated("7 min", "24 per 1 day")
    with pytest.raises(ArgumentError, match="count its windows in steps where steps have no dur"):
        TOWN.replace(limit="24 per 1 day")
    with pytest.raises(ArgumentError, match="limit must have windows"):
        dated("5 min", "24 per 1 day").replace(clock=Clock("7 min"))


STEPS = {"place": 2, "speed": 3, "mood": 1}
"""Questions, and how many seconds their steps are."""


def check_clocks(held: Opened, asks: list[tuple[str, list[Row]]], limit: Limit, own: bool) -> None:
    """Asks of questions with several time steps, each window of so many seconds looked at."""
    plain = Plain()
    seconds = replace(limit, windows=tuple(replace(w, timed=False) for w in limit.windows))
    if own:
        with held.book() as store:
            store.begin("ann", budget=limit)
    for query, rows in asks:
        town = TOWN.replace(clock=Clock(f"{STEPS[query]} s"), limit=None if own else limit)
        expected, _ = plain.judge(query, rows, seconds, size=STEPS[query])
        with held.book() as book:
            asked = ask(town, query, rows)
            assert engine.judge(book, asked).verdicts.tolist() == expected
            (answered,) = engine.release(book, [asked])
            check_answered(answered, expected, rows)
            if held.kind == "store":
                assert find_problems(book) == []
    assert holds(plain.paid, seconds)


TIMED = st.builds(
    lambda total, windows: Limit(total, tuple(windows)),
    st.sampled_from([None, None, Fraction(6)]),
    st.lists(
        st.builds(
            lambda amount, count: Window(amount, 6 * count, timed=True),
            st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(10, 3)]),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=2,
    ),
)
CLOCKED = st.lists(st.tuples(st.sampled_from(list(STEPS)), ROWS), min_size=1, max_size=6)


@FEWER
@pytest.mark.parametrize("kind", BOOKS[:2])
@given(asks=CLOCKED, limit=TIMED)
def test_questions_with_several_time_steps_share_the_windows_of_a_book(
    request: pytest.FixtureRequest, kind: str, asks: list[tuple[str, list[Row]]], limit: Limit
) -> None:
    with opened(request, kind) as held:
        check_clocks(held, asks, limit, own=False)


@FEWER
@given(asks=CLOCKED, limit=TIMED, own=st.booleans())
def test_questions_with_several_time_steps_share_the_windows_of_a_store(
    asks: list[tuple[str, list[Row]]], limit: Limit, own: bool
) -> None:
    with TemporaryDirectory() as folder:
        check_clocks(Opened("store", str(Path(folder) / "book")), asks, limit, own)


@pytest.mark.parametrize("kind", BOOKS[:3])
def test_no_order_of_two_clocks_passes_a_window(request: pytest.FixtureRequest, kind: str) -> None:
    fine, coarse = dated("5 min", "2 per 1 hour"), dated("10 min", "2 per 1 hour", "speed")
    with opened(request, kind) as held, held.book() as book:
        engine.release(book, [at(fine, "10:05", "11:00")])
        (answered,) = engine.release(book, [at(coarse, "10:30", "11:10")])
        assert answered.verdicts.tolist() == [Verdict.OVER, 0]
        assert "or ask again for 2024-05-01T11:10:00Z or later" in str(answered.faults[0])
        left = coarse.stream("ann", book=book).ledger
        slots = [coarse.settings.clock.slot_of(f"2024-05-01T{t}Z") for t in ("11:10", "12:00")]
        assert [left.remaining_at(slot) for slot in slots] == [0, 1]


def test_verify_and_the_ledger_count_the_windows_of_several_clocks(store_url: str) -> None:
    fine, coarse = dated("5 min", None), dated("10 min", None, "speed")
    slot = coarse.settings.clock.slot_of("2024-05-01T10:30Z")
    with closing(Store.open(store_url)) as store:
        store.begin("ann", budget="2 per 1 hour")
        engine.release(store, [at(fine, "10:05", "11:00"), at(coarse, "11:10")])
        assert store.ledger("ann").remaining == 0
        assert find_problems(store) == []
        with store.database.transaction() as transaction:
            transaction.rows("UPDATE answers SET time = ? WHERE query = 'speed'", (slot,))
        assert "/ann: spent is 3 in a window, which is over the budget of 2 per 1 hour" in (
            find_problems(store)
        )


def test_windows_in_steps_are_as_long_as_the_steps_of_the_question(store: Store) -> None:
    fine, coarse = dated("5 min", None), dated("10 min", None, "speed")
    store.begin("ann", budget="1 per 2 steps")
    (answered,) = engine.release(store, [at(coarse, "10:00", "10:20")])
    assert not answered.faults
    (answered,) = engine.release(store, [at(fine, "10:05", "10:10")])
    assert answered.verdicts.tolist() == [Verdict.OVER, 0]
    assert find_problems(store) == []


def test_dates_and_numbers_share_a_window_only_as_a_total() -> None:
    """Nobody can say when a numbered step was, so all of both counts in every window."""
    limit, book = Limit.read("2 per 10 steps"), MemoryBook()
    numbered = TOWN.replace(query="other", limit=limit)
    slots = [(1, Fraction(1)), (100, Fraction(1))]
    engine.release(book, [at(dated("5 min", None).replace(limit=limit), "10:00")])
    (answered,) = engine.release(book, [ask(numbered, "other", slots)])
    assert answered.verdicts.tolist() == [0, Verdict.OVER]
    (answered,) = engine.release(book, [ask(numbered, "other", slots[1:])])
    assert answered.verdicts.tolist() == [Verdict.OVER]


def test_a_ledger_with_a_window_counts_one_clock() -> None:
    ledger = Ledger("2 per 3 steps")
    dated("5 min", None).stream("ann", time=0, ledger=ledger)
    with pytest.raises(ArgumentError, match="ledger must count the slots of one time step"):
        dated("10 min", None, "speed").stream("ann", time=0, ledger=ledger)
    plain = Ledger(4)
    dated("5 min", None).stream("ann", time=0, ledger=plain)
    dated("10 min", None, "speed").stream("ann", time=0, ledger=plain)


@pytest.mark.parametrize("kind", BOOKS[:3])
def test_an_answer_under_another_clock_counts_where_its_slot_begins(
    request: pytest.FixtureRequest, kind: str
) -> None:
    hourly = dated("1 hour", "2 per 3 hours", "speed")
    often = dated("5 min", "2 per 1 hour")
    whole = TOWN.replace(query="other", limit=Limit.read("2 per 100 steps"))
    with opened(request, kind) as held, held.book() as book:
        (first,) = engine.release(book, [at(hourly, "10:20")])
        assert not first.faults
        # It counts at 10:00, so in no window of an hour with 11:00.
        asked = at(often, "10:50", "10:55", "11:00", "11:45", "11:50")
        (answered,) = engine.release(book, [asked])
        assert answered.verdicts.tolist() == [0, Verdict.OVER, 0, Verdict.OVER, 0]
        # Those of 11:00 and 11:50 fill every window of three hours with one of them.
        asked = at(hourly, "13:00", "14:00", "15:00")
        assert engine.judge(book, asked).verdicts.tolist() == [Verdict.OVER, 0, 0]
        # Whole numbers are no dates: nobody can say that they are apart.
        asked = Ask(whole.terms, ["ann"], np.array([10**6]), np.array([0]))
        judged = engine.judge(book, asked)
        assert judged.verdicts.tolist() == [Verdict.OVER]
        assert judged.faults[0].opens is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", BOOKS[:3])
def test_a_key_is_rotated_for_each_clock_from_its_own_next_slot_on(
    request: pytest.FixtureRequest, kind: str
) -> None:
    hourly, often = dated("1 hour", None, "speed"), dated("5 min", None)
    tens, numbered = dated("10 min", None, "other"), TOWN.replace(query="number")
    new = KeyedRandomness(bytes(32))
    late = [Verdict.LATE, 0]
    with opened(request, kind) as held:
        with held.book() as book:
            engine.release(book, [at(hourly, "10:00"), at(often, "10:25")], KEYED)
            key = rotate_key(book, new)
            slots = [one.settings.clock.slot_of("2024-05-01T10:00Z") for one in (hourly, often)]
            assert key.clocks == {"3600 s": slots[0] + 1, "300 s": slots[1] + 6}
        with held.book() as book:
            for people, asked in (
                ("ann", at(hourly, "10:00", "11:00")),
                ("ben", at(hourly, "10:30", "11:00")),
                ("ben", at(often, "10:25", "10:30")),
                ("ben", at(tens, "10:20", "10:30")),  # after the latest of those in seconds
            ):
                asked = replace(asked, people=[people] * 2)
                (answered,) = engine.release(book, [asked], new)
                assert answered.verdicts.tolist() == ([1, 0] if people == "ann" else late)
            (answered,) = engine.release(book, [ask(numbered, "number", [(1, Fraction(1))])], new)
            assert answered.verdicts.tolist() == [0]
