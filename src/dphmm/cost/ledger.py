"""What has been said and what it cost: one ledger a person, across queries and scenarios.

The sum of epsilon over everything released bounds what it can tell about two states that
were linked at every one of those moments (Theorems 7.1 and 7.2). The constrained epsilon
beside each entry is the same for the worst pair of possible states (Theorem 6.3).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.errors import ArgumentError, BudgetError, expect, expect_each
from dphmm.geometry.exact import Exact, as_epsilon, as_text, exact, whole

__all__ = ["Entry", "Ledger", "Totals"]


class Totals:
    """What each of some people has spent, exactly: whole multiples of one common fraction.

    The only place where prices are added up: a `Ledger` has one, for one person, and a
    `Batch` one for all of its people.

    Args:
        spent: What each person begins with.

    >>> totals = Totals([Fraction(0), Fraction(1, 2)])
    >>> totals.add([0, 1], Fraction(1, 3))
    >>> totals.of(1), totals.allow(Fraction(1, 2), Fraction(1)).tolist()
    (Fraction(5, 6), [True, False])
    """

    def __init__(self, spent: Sequence[Fraction | float]) -> None:
        self._units = np.zeros(len(spent), dtype=object)
        self._denominator = 1
        self._infinite = np.zeros(len(spent), dtype=bool)
        for person, already in enumerate(spent):
            if already:
                self.add(person, already)

    def add(self, people: IntArray | list[int] | int, price: Fraction | float) -> None:
        """Charge somebody or some people; an infinite price stays infinite."""
        if isinstance(price, Fraction):
            units = self._scale(price)
            self._units[people] += units
        elif price == inf:
            self._infinite[people] = True
        else:
            self.add(people, Fraction(price))

    def of(self, person: int) -> Fraction | float:
        """What a person has spent."""
        if self._infinite[person]:
            return inf
        return Fraction(int(self._units[person]), self._denominator)

    def allow(self, price: Fraction, limit: Fraction) -> Mask:
        """Whose sum stays within a limit after one more price."""
        self._scale(price)
        most = self._scale(limit)
        within = self._units + self._scale(price) <= most
        return np.asarray(within, dtype=bool) & ~self._infinite

    def _scale(self, price: Fraction) -> int:
        """A price in units, after making the unit small enough for it."""
        # In plain integers: this runs for every release, and fractions are slow.
        size = price.denominator
        if self._denominator % size:
            finer = lcm(self._denominator, size) // self._denominator
            self._units *= finer
            self._denominator *= finer
        return price.numerator * (self._denominator // size)


@dataclass(frozen=True)
class Entry:
    """One thing that was said.

    Args:
        time: The slot of the clock that it was about.
        query: The name of the question.
        epsilon: Its price.
        constrained: What it costs the worst pair of possible states; infinite if some are
            told apart (Theorem 6.3).
    """

    time: int
    query: str
    epsilon: Fraction
    constrained: Fraction | float = inf


class Ledger:
    """Everything that was said about one person, and an optional limit on the sum of epsilon.

    Args:
        limit: The most that may be spent in all; None for no limit.
        entries: What was said before, in order.
        spent: What was spent before those entries, if they are not all that was said.

    >>> ledger = Ledger(limit=2)
    >>> ledger.record(Entry(1, "place", Fraction(3, 2)))
    >>> ledger.spent, ledger.remaining
    (Fraction(3, 2), Fraction(1, 2))
    >>> ledger.check(1)
    Traceback (most recent call last):
    dphmm.errors.BudgetError: epsilon must stay within the limit, got a request for 1 with \
1.5 spent and 0.5 remaining; ask for less or raise the limit
    """

    def __init__(
        self, limit: Exact | None = None, entries: Iterable[Entry] = (), *, spent: Exact = 0
    ) -> None:
        self.limit = None if limit is None else as_epsilon(limit, "limit")
        self._entries: list[Entry] = []
        self._said: set[tuple[str, int]] = set()
        self._spent = Totals([exact(spent, "spent")])
        self._guard = threading.Lock()
        for entry in expect_each(entries, Entry, "entries"):
            self._append(entry)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that was said, in order."""
        return tuple(self._entries)

    @property
    def spent(self) -> Fraction:
        """The sum of every epsilon (Theorems 7.1 and 7.2 for linked states)."""
        return Fraction(self._spent.of(0))

    @property
    def remaining(self) -> Fraction | float:
        """What may still be spent; infinite without a limit."""
        return inf if self.limit is None else self.limit - self.spent

    @property
    def constrained(self) -> Fraction | float:
        """The sum over every release for the worst pair of possible states.

        Infinite if something was spent before the entries, since nothing says what on.
        """
        total = Totals([Fraction(0)])
        for entry in self._entries:
            total.add(0, entry.constrained)
        if self.spent > sum(entry.epsilon for entry in self._entries):
            return inf
        return total.of(0)

    def spent_at(self, time: int) -> Fraction:
        """The sum over the queries answered at one time (Theorem 7.1).

        Args:
            time: The slot of the clock.
        """
        return sum((e.epsilon for e in self._entries if e.time == time), start=Fraction(0))

    def spent_by_query(self) -> dict[str, Fraction]:
        """The sum over time for each query (Theorem 7.2)."""
        totals: dict[str, Fraction] = {}
        for entry in self._entries:
            totals[entry.query] = totals.get(entry.query, Fraction(0)) + entry.epsilon
        return totals

    def check(self, epsilon: Exact) -> None:
        """Raise `BudgetError` if this much more would pass the limit; nothing is written.

        Args:
            epsilon: The price of what is to be said.
        """
        if self.limit is None:
            return
        requested = as_epsilon(epsilon)
        if not self._spent.allow(requested, self.limit)[0]:
            raise BudgetError(
                spent=self.spent, requested=requested, remaining=self.limit - self.spent
            )

    def record(self, entry: Entry) -> None:
        """Write down one release; refuses one beyond the limit, and a second one for a moment.

        Args:
            entry: What is said.
        """
        expect(entry, Entry, "entry")
        with self._guard:
            self.check(entry.epsilon)
            self._append(entry)

    def has(self, time: int, query: str) -> bool:
        """Whether a query was answered at a time.

        Args:
            time: The slot of the clock.
            query: The name of the question.
        """
        expect(query, str, "query")
        return (query, whole(time, "time", None)) in self._said

    def _append(self, entry: Entry) -> None:
        expect(entry, Entry, "entry")
        moment = (entry.query, entry.time)
        if moment in self._said:
            raise ArgumentError(
                f"time must be new for each query, got a second answer for time {entry.time}"
            )
        self._said.add(moment)
        self._entries.append(entry)
        self._spent.add(0, entry.epsilon)

    def __repr__(self) -> str:
        limit = "no limit" if self.limit is None else f"limit {as_text(self.limit)}"
        return f"Ledger({len(self._entries)} entries, {as_text(self.spent)} spent, {limit})"

    def _repr_html_(self) -> str:
        limit = "no limit" if self.limit is None else f"limit {as_text(self.limit)}"
        return (
            f"<b>{len(self._entries)}</b> answers, epsilon <b>{as_text(self.spent)}</b> spent, "
            f"{limit}"
        )
