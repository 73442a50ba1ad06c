"""Limits: what they say, and what any window of slots may hold, against every window by hand."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import ArgumentError, BudgetError, Entry, Ledger, Limit
from dphmm.cost.budget import Budget, Budgets
from dphmm.cost.limit import FOREVER, Window, begin_of, slot_from
from tests.windows import PRICES, Paid, allows, holds, limits, sums

SLOTS = st.integers(-5, 15)


# What is written


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("24", Limit(Fraction(24))),
        (24, Limit(Fraction(24))),
        (0.1, Limit(Fraction(1, 10))),
        ("1/3 in all", Limit(Fraction(1, 3))),
        ("24 per 288 steps", Limit(None, (Window(Fraction(24), 288),))),
        ("24 per step", Limit(None, (Window(Fraction(24), 1),))),
        ("24 per 1 day", Limit(None, (Window(Fraction(24), 86400, timed=True),))),
        ("24 per day", Limit(None, (Window(Fraction(24), 86400, timed=True),))),
        ("24 per 90 min", Limit(None, (Window(Fraction(24), 5400, timed=True),))),
        (" 0.5 per 2h ,9 ", Limit(Fraction(9), (Window(Fraction(1, 2), 7200, timed=True),))),
        ("1 per 2 steps, 3 per 1 steps, 2 per 2 steps",
         Limit(None, (Window(Fraction(3), 1), Window(Fraction(1), 2)))),
    ],
)  # fmt: skip
def test_a_limit_is_what_was_written(written: object, meant: Limit) -> None:
    limit = Limit.read(written)  # type: ignore[arg-type]
    assert limit == meant
    assert Limit.read(str(limit)) == limit
    assert Limit.read(limit) is limit


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("", "limit must be like '24', '24 per 1 day'"),
        ("24 per", "limit must be like"),
        ("24 per 0 steps", "limit must be like"),
        ("24 per 1 fortnight", "limit must be like"),
        ("24 per 1.5 days", "limit must be like"),
        ("24, 25", "limit must be like"),
        ("24 in all, 25", "limit must be like"),
        ("24 per 1 day in all", "limit must be like"),
        ("24 per 1234567890 days", "limit must be like"),
        ("many per 1 day", "limit must be finite and rational, got 'many'"),
        ("0 per 1 day", "limit must be positive, got '0'"),
        (-1, "limit must be positive"),
        (None, "limit must be finite"),
        ("1e999999999", "limit must be finite and rational"),
    ],
)
def test_a_limit_that_says_nothing_is_refused(bad: object, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Limit.read(bad)  # type: ignore[arg-type]


def test_the_parts_of_a_limit_are_checked() -> None:
    with pytest.raises(ArgumentError, match="width must be at least 1, got 0"):
        Window(Fraction(1), 0)
    with pytest.raises(ArgumentError, match="amount must be positive"):
        Window(Fraction(0), 1)
    with pytest.raises(ArgumentError, match="total must be positive"):
        Limit(Fraction(-1))
    with pytest.raises(ArgumentError, match="budget must have a total or a window, got neither"):
        Limit.read(Limit(), "budget")
    with pytest.raises(ArgumentError, match="windows must be a Window, got str"):
        Limit(None, ("24 per 1 day",))  # type: ignore[arg-type]


def test_a_window_in_days_needs_a_clock_of_which_it_is_whole_steps() -> None:
    limit = Limit.read("24 per 1 day, 5 per 12 steps, 100 in all")
    steps = limit.in_steps("300 s")
    assert steps == Limit.read("5 per 12 steps, 24 per 288 steps, 100 in all")
    assert str(steps) == "5 per 12 steps, 24 per 1 day, 100 in all"
    for clock in ("", "5"):
        with pytest.raises(ArgumentError, match="must count its windows in steps where steps have"):
            limit.in_steps(clock)
    with pytest.raises(ArgumentError, match="limit must have windows of whole steps of 7 s"):
        limit.in_steps("7 s")
    with pytest.raises(ArgumentError, match="budget must have windows"):
        limit.in_steps("7 s", "budget")
    with pytest.raises(ArgumentError, match="must count its windows in steps"):
        Ledger(limit="24 per 1 day")
    assert limit.words == "5 in any 12 steps, 24 in any 1 day, 100 in all"


def test_two_windows_that_are_one_in_steps_become_the_lower() -> None:
    assert str(Limit.read("5 per 1 hour, 4 per 60 steps").in_steps("60 s")) == "4 per 60 steps"


# A budget, against every window by hand


@given(st.lists(st.tuples(SLOTS, PRICES), max_size=8), limits(), SLOTS, PRICES)
def test_a_budget_knows_what_every_window_holds(
    paid: Paid, limit: Limit, slot: int, price: Fraction
) -> None:
    budget = Budget(limit)
    for when, cost in paid:
        budget.add(when, cost)
    assert budget.spent == sum(cost for _, cost in paid)
    for window in limit.windows:
        assert budget.most(window.width) == max(sums(paid, window.width))
    rooms = [w.amount - max(sums(paid, w.width, slot)) for w in limit.windows]
    rooms += [] if limit.total is None else [limit.total - budget.spent]
    assert budget.left(slot) == min(rooms, default=inf)
    within = all(room >= 0 for room in rooms)
    assert budget.holds == holds(paid, limit)
    assert within or not budget.holds
    opens = budget.opens(slot, price)
    allowed = [later for later in range(slot, 40) if allows(paid, limit, later, price)]
    assert opens == (allowed[0] if allowed else None)
    if opens != slot:
        fault = budget.fault(slot, price)
        assert isinstance(fault, BudgetError)
        assert fault.opens == opens
        assert fault.requested == price > fault.remaining
        if fault.window is not None:
            assert Limit.read(fault.window).windows[0] in limit.windows


@given(
    st.lists(st.tuples(SLOTS, st.integers(0, 4), PRICES), max_size=6), st.integers(1, 9), SLOTS,
    PRICES,
)  # fmt: skip
def test_a_price_of_some_slots_counts_in_every_window_that_touches_one(
    paid: list[tuple[int, int, Fraction]], width: int, slot: int, price: Fraction
) -> None:
    limit = Limit(None, (Window(Fraction(2), width),))
    spans = [(first, first + more, cost) for first, more, cost in paid]
    budget = Budget(limit, sum((c for *_, c in paid), start=Fraction(0)), spans)

    def has_room(when: int) -> bool:
        held_by_all = (
            sum((c for a, b, c in spans if a < start + width and b >= start), start=Fraction(0))
            for start in range(when - width + 1, when + 1)
        )
        return all(held + price <= 2 for held in held_by_all)

    allowed = [later for later in range(slot, 45) if has_room(later)]
    assert budget.opens(slot, price) == (allowed[0] if allowed else None)


@given(
    st.lists(st.tuples(SLOTS, PRICES), max_size=8), limits(windows=1), st.sampled_from([2, 3, 6]),
    SLOTS, PRICES,
)  # fmt: skip
def test_a_budget_in_instants_knows_windows_that_begin_between_two_slots(
    paid: Paid, limit: Limit, size: int, slot: int, price: Fraction
) -> None:
    spent = sum((cost for _, cost in paid), start=Fraction(0))
    budget = Budget(limit, spent, [(at, at, cost) for at, cost in paid], size)
    longer = Limit(limit.total, tuple(Window(w.amount, size * w.width) for w in limit.windows))
    for window in limit.windows:
        assert budget.most(window.width) == max(sums(paid, size * window.width, None))
    slot //= size
    allowed = [later for later in range(slot, 60) if allows(paid, longer, size * later, price)]
    assert budget.opens(slot, price) == (allowed[0] if allowed else None)
    rooms = [w.amount - max(sums(paid, w.width, size * slot)) for w in longer.windows]
    rooms += [] if limit.total is None else [limit.total - spent]
    assert budget.left(slot) == min(rooms)
    budget.add_all([slot, slot + 1], price)
    added = [*paid, (size * slot, price), (size * slot + size, price)]
    assert budget.holds == holds(added, longer)


def test_a_price_of_any_slot_never_leaves() -> None:
    budget = Budget(Limit.read("2 per 3 steps"), Fraction(2), [(-FOREVER, FOREVER, Fraction(2))])
    assert budget.opens(10, Fraction(1)) is None
    assert budget.left(10**12) == 0
    budget = Budget(Limit.read("3 per 3 steps"), Fraction(1), [(-FOREVER, FOREVER, Fraction(1))])
    budget.add(1, Fraction(1))
    assert budget.left(100) == 1  # nor does any other, of which nobody knows how far away it is


@given(
    st.integers(-100, 100), st.sampled_from(["60 s", "300 s", "90 s"]),
    st.sampled_from(["60 s", "300 s", "90 s", "1 s"]),
)  # fmt: skip
def test_a_slot_is_the_first_from_its_begin_on(slot: int, clock: str, other: str) -> None:
    begin, same = begin_of(slot, clock, other)
    assert begin == same == slot * int(clock.split()[0])
    assert slot_from(begin, clock, other) == slot == slot_from(begin + 1, clock, other) - 1


def test_slots_without_a_common_unit_may_begin_whenever() -> None:
    assert begin_of(5, "300 s", "") == (-FOREVER, FOREVER)
    assert slot_from(5, "300 s", "") == -FOREVER
    assert begin_of(5, "3", "") == (15, 15)


@given(
    st.lists(st.tuples(st.integers(0, 2), PRICES), max_size=10), limits(),
    st.lists(st.tuples(st.integers(-8, 0), PRICES), max_size=3), PRICES,
)  # fmt: skip
def test_people_who_move_together_have_the_budgets_of_single_ones(
    charges: list[tuple[int, Fraction]], limit: Limit, before: Paid, price: Fraction
) -> None:
    """Person 0 is charged at every step, person 1 at every other; both begin with a past."""
    import numpy as np

    spent = sum((cost for _, cost in before), start=Fraction(0))
    times = np.array([0, 100])
    many = Budgets(limit, times, [spent] * 2, [before, [(100 + s, c) for s, c in before]])
    paid = [[*before], [(100 + slot, cost) for slot, cost in before]]
    for step, (who, cost) in enumerate(charges, start=1):
        many.move()
        people = np.array([[0], [1], [0, 1]][who])
        many.charge(people, cost)
        for person in people.tolist():
            paid[person].append((int(times[person]) + step, cost))
        expected = [
            allows(paid[person], limit, int(times[person]) + step + 1, price) for person in (0, 1)
        ]
        assert many.allow(price).tolist() == expected
        for person in (0, 1):
            slot = int(times[person]) + step + 1
            assert (many.of(person).opens(slot, price) == slot) == expected[person]


# A ledger


@given(
    st.lists(st.tuples(SLOTS, st.sampled_from("ab"), PRICES), max_size=12,
             unique_by=lambda row: row[:2]), limits(), st.integers(0, 4),
)  # fmt: skip
def test_no_window_of_a_ledger_is_ever_passed_and_nothing_allowed_is_refused(
    rows: list[tuple[int, str, Fraction]], limit: Limit, known: int
) -> None:
    """In whatever order the entries come; some were there before the ledger was."""
    entries = [Entry(time, query, price) for time, query, price in rows]
    ledger = Ledger(limit, entries[:known])
    paid = [(entry.time, entry.epsilon) for entry in entries[:known]]
    for entry in entries[known:]:
        allowed = allows(paid, limit, entry.time, entry.epsilon)
        assert (ledger.remaining_at(entry.time) >= entry.epsilon) == allowed
        before = ledger.entries, ledger.spent
        if allowed:
            ledger.check(entry.epsilon, entry.time)
            ledger.record(entry)
            paid.append((entry.time, entry.epsilon))
        else:
            with pytest.raises(BudgetError):
                ledger.check(entry.epsilon, entry.time)
            with pytest.raises(BudgetError):
                ledger.record(entry)
            assert (ledger.entries, ledger.spent) == before
    assert ledger.spent == sum(cost for _, cost in paid)


def test_a_refusal_says_when_the_window_opens() -> None:
    ledger = Ledger("2 per 3 steps, 5 in all")
    for time in (10, 11):
        ledger.record(Entry(time, "place", Fraction(1)))
    with pytest.raises(
        BudgetError,
        match="limit of 2 per 3 steps, got a request for 1 with 2 "
        "spent and 0 remaining; ask for less or ask again at slot 13 or",
    ) as caught:
        ledger.check(1, 12)  # fmt: skip
    assert (caught.value.opens, caught.value.window) == (13, "2 per 3 steps")
    assert (ledger.remaining, ledger.remaining_at(13), ledger.remaining_at(14)) == (0, 1, 2)
    with pytest.raises(BudgetError, match="raise the limit") as caught:
        ledger.check(3, 13)
    assert caught.value.opens is None
    for time in (13, 14, 16):
        ledger.record(Entry(time, "place", Fraction(1)))
    with pytest.raises(BudgetError, match="5 spent and 0 remaining; ask for less or raise"):
        ledger.check(1, 100)


def test_a_release_before_later_ones_is_held_against_their_windows_too() -> None:
    """Another question may be ahead: a window is not only what ends at the new slot."""
    ledger = Ledger("2 per 3 steps", [Entry(t, "other", Fraction(1)) for t in (11, 12)])
    with pytest.raises(BudgetError) as caught:
        ledger.check(1, 10)
    assert caught.value.opens == 14
    ledger.check(1, 9)


def test_a_ledger_with_a_window_must_be_told_the_time() -> None:
    with pytest.raises(ArgumentError, match="time must be given where the limit has a window"):
        Ledger("2 per 3 steps").check(1)
    Ledger(2).check(1)


def test_a_ledger_goes_on_from_what_was_spent_recently() -> None:
    ledger = Ledger("2 per 3 steps", spent=40, recent=[(9, Fraction(3, 2))])
    assert (ledger.spent, ledger.remaining_at(11), ledger.remaining_at(12)) == (
        40,
        Fraction(1, 2),
        2,
    )


def test_an_answer_that_costs_nothing_is_recorded_under_a_full_limit() -> None:
    ledger = Ledger("1 per 3 steps", [Entry(1, "place", Fraction(1))])
    ledger.record(Entry(2, "place", Fraction(0)))
    assert len(ledger.entries) == 2


def test_a_repr_names_the_windows() -> None:
    assert repr(Ledger("24 per 288 steps")) == "Ledger(0 entries, 0 spent, limit 24 per 288 steps)"
