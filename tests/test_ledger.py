"""The ledger: exact prices, exact sums, and a limit that is refused beforehand."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.cost.ledger import Entry, Ledger
from dphmm.cost.totals import Totals
from dphmm.errors import ArgumentError, BudgetError
from dphmm.geometry.exact import as_epsilon

PRICES = st.fractions(Fraction(1, 1000), 10, max_denominator=1000)
ENTRIES = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from("abc"), PRICES),
    unique_by=lambda entry: (entry[0], entry[1]),
)


def entries_of(rows):
    return [Entry(time, query, price, 2 * price) for time, query, price in rows]


# Paper


def test_queries_at_one_time_add_up():
    """Theorem 7.1."""
    ledger = Ledger()
    ledger.record(Entry(1, "place", Fraction(1, 3)))
    ledger.record(Entry(1, "speed", Fraction(1, 2)))
    ledger.record(Entry(2, "place", Fraction(1)))
    assert ledger.spent_at(1) == Fraction(5, 6)
    assert ledger.spent_at(2) == 1
    assert ledger.spent_at(3) == 0


def test_a_query_adds_up_over_time():
    """Theorem 7.2."""
    ledger = Ledger(entries=[Entry(t, "place", Fraction(1, 10)) for t in range(1, 11)])
    assert ledger.spent_by_query() == {"place": 1}
    assert ledger.spent == 1


def test_the_worst_pair_of_possible_states_is_counted_beside_it():
    """Theorem 6.3: one release that tells states apart makes the sum infinite."""
    ledger = Ledger(entries=[Entry(1, "place", Fraction(1), Fraction(3, 2))])
    assert ledger.constrained == Fraction(3, 2)
    ledger.record(Entry(2, "place", Fraction(1), inf))
    assert ledger.constrained == inf
    assert ledger.spent == 2


# Laws


@given(st.lists(st.tuples(st.integers(0, 3), PRICES), max_size=12), PRICES, PRICES)
def test_totals_are_the_sums_of_fractions(charges, price, limit):
    totals, sums = Totals([Fraction(0)] * 4), [Fraction(0)] * 4
    for person, charge in charges:
        totals.add([person], charge)
        sums[person] += charge
    assert [totals.of(person) for person in range(4)] == sums
    assert totals.allow(price, limit).tolist() == [spent + price <= limit for spent in sums]
    totals.add(2, inf)
    assert totals.of(2) == inf
    assert not totals.allow(price, Fraction(10**6))[2]


@given(ENTRIES)
def test_every_total_is_the_sum_of_its_entries(rows):
    entries = entries_of(rows)
    ledger = Ledger(entries=entries)
    assert ledger.entries == tuple(entries)
    assert ledger.spent == sum(entry.epsilon for entry in entries)
    assert ledger.spent == sum(ledger.spent_by_query().values())
    assert ledger.spent == sum(ledger.spent_at(time) for time in range(1, 6))
    assert ledger.constrained == 2 * ledger.spent
    assert ledger.remaining == inf
    for entry in entries:
        assert ledger.has(entry.time, entry.query)
    assert not ledger.has(9, "a")


@given(ENTRIES, PRICES)
def test_a_limit_is_never_passed_and_a_refusal_changes_nothing(rows, limit):
    ledger = Ledger(limit=limit)
    for entry in entries_of(rows):
        before = ledger.entries, ledger.spent
        if ledger.spent + entry.epsilon <= limit:
            ledger.check(entry.epsilon)
            ledger.record(entry)
        else:
            for refuse in (lambda e: ledger.check(e.epsilon), ledger.record):
                with pytest.raises(BudgetError) as caught:
                    refuse(entry)
                assert caught.value.spent == before[1]
                assert caught.value.requested == entry.epsilon
                assert caught.value.remaining == limit - before[1]
            assert (ledger.entries, ledger.spent) == before
        assert ledger.spent <= limit
        assert ledger.remaining == limit - ledger.spent


def test_a_limit_may_be_used_up_to_the_last_bit():
    ledger = Ledger(limit="0.3", entries=[Entry(t, "q", as_epsilon("0.1")) for t in (1, 2)])
    ledger.record(Entry(3, "q", as_epsilon("0.1")))
    assert ledger.remaining == 0
    with pytest.raises(
        BudgetError, match=r"got a request for 0\.001 with 0\.3 spent and 0 remaining"
    ):
        ledger.check("0.001")


def test_no_query_is_answered_twice_at_one_time():
    ledger = Ledger(entries=[Entry(3, "place", Fraction(1))])
    with pytest.raises(ArgumentError, match="second answer for time 3"):
        ledger.record(Entry(3, "place", Fraction(1)))
    ledger.record(Entry(3, "other", Fraction(1)))
    assert ledger.spent == 2


def test_a_repr_counts_and_sums():
    ledger = Ledger(limit=3, entries=[Entry(1, "place", Fraction(3, 2))])
    assert repr(ledger) == "Ledger(1 entries, 1.5 spent, limit 3)"
    assert repr(Ledger()) == "Ledger(0 entries, 0 spent, no limit)"


# Oracle: what a number means, by hand


@pytest.mark.parametrize(
    ("given_as", "used"),
    [
        (1, Fraction(1)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (Fraction(2, 7), Fraction(2, 7)),
        (Decimal("0.1"), Fraction(1, 10)),
        (0.5, Fraction(1, 2)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(2), Fraction(2)),
        (2.0**-16, Fraction(1, 65536)),
        (1e300, Fraction(10**300)),
    ],
)
def test_an_epsilon_is_what_was_written(given_as, used):
    assert as_epsilon(given_as) == used
    assert isinstance(as_epsilon(given_as), Fraction)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_float_is_the_shortest_decimal_that_means_it(number):
    assert as_epsilon(number) == as_epsilon(repr(number)) == as_epsilon(Decimal(repr(number)))
    assert float(as_epsilon(number)) == number


def test_floats_and_texts_of_a_limit_allow_the_same_number_of_releases():
    ledger = Ledger(limit=0.3)
    for time in range(3):
        ledger.record(Entry(time, "place", as_epsilon("0.1")))
    assert ledger.remaining == 0


@pytest.mark.parametrize(
    "bad", [0, -1, "0", "-1/2", 0.0, -0.5, float("nan"), inf, "nan", "inf", "one", None, True]
)
def test_an_epsilon_that_is_no_positive_number_is_refused(bad):
    with pytest.raises(ArgumentError, match="must be"):
        as_epsilon(bad)


@pytest.mark.parametrize("bad", [0, -1, "none"])
def test_a_limit_must_be_positive(bad):
    with pytest.raises(ArgumentError, match="must be"):
        Ledger(limit=bad)
