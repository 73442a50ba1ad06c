"""What has been said and what it cost: one ledger a person, across queries and scenarios.

The sum of epsilon over everything released bounds what it can tell about two states that
were linked at every one of those moments (Theorems 7.1 and 7.2). The constrained epsilon
beside each entry is the same for the worst pair of possible states (Theorem 6.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm

import numpy as np

from dphmm._types import IntArray, ObjectArray
from dphmm.errors import ArgumentError, BudgetError
from dphmm.geometry.exact import Exact, as_epsilon

__all__ = ["Entry", "Ledger", "Spent"]


@dataclass(frozen=True)
class Entry:
    """One thing that was said."""

    time: int
    query: str
    epsilon: Fraction
    constrained: Fraction | float = inf
    """What it costs the worst pair of possible states; infinite if some are told apart."""
    scenario: str = ""


class Ledger:
    """Everything that was said about one person, and an optional limit on the sum of epsilon.

    >>> ledger = Ledger(limit=2)
    >>> ledger.record(Entry(1, "place", Fraction(3, 2)))
    >>> ledger.spent, ledger.remaining
    (Fraction(3, 2), Fraction(1, 2))
    >>> ledger.check(1)
    Traceback (most recent call last):
    dphmm.errors.BudgetError: epsilon must stay within the limit, got a request for 1 with \
1.5 spent and 0.5 remaining; ask for less or raise the limit
    """

    def __init__(self, limit: Exact | None = None, entries: Iterable[Entry] = ()) -> None:
        self.limit = None if limit is None else as_epsilon(limit)
        self._entries: list[Entry] = []
        self._said: set[tuple[str, str, int]] = set()
        self._spent = Fraction(0)
        for entry in entries:
            self._append(entry)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that was said, in order."""
        return tuple(self._entries)

    @property
    def spent(self) -> Fraction:
        """The sum of every epsilon (Theorems 7.1 and 7.2 for linked states)."""
        return self._spent

    @property
    def remaining(self) -> Fraction | float:
        """What may still be spent; infinite without a limit."""
        return inf if self.limit is None else self.limit - self._spent

    @property
    def constrained(self) -> Fraction | float:
        """The sum over every release for the worst pair of possible states."""
        return sum((entry.constrained for entry in self._entries), start=Fraction(0))

    def spent_at(self, time: int) -> Fraction:
        """The sum over the queries answered at one time (Theorem 7.1)."""
        return sum((e.epsilon for e in self._entries if e.time == time), start=Fraction(0))

    def spent_by_query(self) -> dict[str, Fraction]:
        """The sum over time for each query (Theorem 7.2)."""
        totals: dict[str, Fraction] = {}
        for entry in self._entries:
            totals[entry.query] = totals.get(entry.query, Fraction(0)) + entry.epsilon
        return totals

    def check(self, epsilon: Exact) -> None:
        """Raise `BudgetError` if this much more would pass the limit; nothing is written."""
        requested = as_epsilon(epsilon)
        if self.limit is not None and self._spent + requested > self.limit:
            raise BudgetError(
                spent=self._spent, requested=requested, remaining=self.limit - self._spent
            )

    def record(self, entry: Entry) -> None:
        """Write down one release; refuses a second one for the same query and time."""
        self.check(entry.epsilon)
        self._append(entry)

    def has(self, time: int, query: str, scenario: str = "") -> bool:
        """Whether this query was answered at this time."""
        return (scenario, query, time) in self._said

    def _append(self, entry: Entry) -> None:
        moment = (entry.scenario, entry.query, entry.time)
        if moment in self._said:
            raise ArgumentError(
                f"time must be new for each query, got a second answer for time {entry.time}"
            )
        self._said.add(moment)
        self._entries.append(entry)
        self._spent += entry.epsilon

    def __repr__(self) -> str:
        limit = "no limit" if self.limit is None else f"limit {float(self.limit):g}"
        return f"Ledger({len(self._entries)} entries, {float(self._spent):g} spent, {limit})"


class Spent:
    """What each person has spent, as whole multiples of one common fraction."""

    def __init__(self, people: int) -> None:
        self._units = np.zeros(people, dtype=object)
        self._denominator = 1

    def add(self, people: IntArray, price: Fraction) -> None:
        """Charge some people."""
        units = self.scaled(price)
        self._units[people] += units

    def after(self, price: Fraction) -> ObjectArray:
        """What everybody would have spent after one more release, in units."""
        units = self.scaled(price)
        return self._units + units

    def scaled(self, price: Fraction) -> int:
        """A price in units, after making the unit small enough for it."""
        wanted = lcm(self._denominator, price.denominator)
        if wanted != self._denominator:
            self._units *= wanted // self._denominator
            self._denominator = wanted
        return int(price * self._denominator)
