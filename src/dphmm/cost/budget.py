"""What a limit still allows, slot by slot: exact, for one person or for many at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from math import gcd, inf
from typing import TypeAlias

import numpy as np

from dphmm._types import IntArray, Mask, ObjectArray
from dphmm.cost.limit import FOREVER, Limit, Window
from dphmm.cost.totals import Totals
from dphmm.errors import ArgumentError, BudgetError

__all__ = ["Budget", "Budgets", "Span", "is_anywhere"]

Span: TypeAlias = tuple[int, int, Fraction]
"""The earliest and the latest instant at which a price may have been paid, and the price."""


def is_anywhere(span: Span) -> bool:
    """Whether nobody can tell when a price was paid: one clock has dates, the other numbers."""
    first, last, price = span
    return bool(price) and first == -FOREVER and last == FOREVER


NO_LIMIT = Limit()


class Budget:
    """What was spent on one person, and what a limit still allows at a slot.

    Args:
        limit: What may be spent, its windows in steps; None for no limit.
        spent: What was spent in all.
        spans: What of it the windows may still hold, in instants; a price that may have been
            paid at several counts in every window that holds one of them. If one may have been
            paid at any, nobody can tell when it was from any other's side either: then all
            prices count in every window.
        size: How many instants a slot is long. A price is paid when its slot begins, and a
            window may begin at any instant, so that slots of several clocks can be counted.

    >>> budget = Budget(Limit.read("2 per 3 steps"))
    >>> for slot in (1, 2):
    ...     budget.add(slot, Fraction(1))
    >>> budget.left(3), budget.opens(3, Fraction(1)), budget.opens(3, Fraction(3))
    (Fraction(0, 1), 4, None)
    """

    def __init__(
        self,
        limit: Limit | None = None,
        spent: Fraction = Fraction(0),
        spans: Iterable[Span] = (),
        size: int = 1,
    ) -> None:
        self.limit = NO_LIMIT if limit is None else limit
        spans = [span for span in spans if span[2]]
        # Counted in the largest unit that all instants are multiples of: a slot, of one clock.
        unit = size
        if spans:
            ends = {end for span in spans for end in span[:2] if abs(end) < FOREVER}
            unit = gcd(size, *ends)
        self._size = size // unit
        self._is_anywhere = bool(spans) and any(map(is_anywhere, spans))
        self._totals = Totals([spent])
        # The instants at which prices come into windows and at which they leave, each in order.
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._first_units: list[int] = []
        self._last_units: list[int] = []
        self._denominator = 1
        self._is_plain = True
        for first, last, price in spans:
            first, last = (at if abs(at) == FOREVER else at // unit for at in (first, last))
            self._put(first, last, price)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The limit's windows, which must be in steps before anything can be asked of them."""
        return self.limit.in_steps().windows

    @property
    def spent(self) -> Fraction:
        """The sum of everything."""
        return Fraction(self._totals.of(0))

    def add(self, slot: int, price: Fraction) -> None:
        """Spend at a slot."""
        self._totals.add(0, price)
        self._put(slot * self._size, slot * self._size, price)

    def add_all(self, slots: Sequence[int], price: Fraction) -> None:
        """Spend the same at each of some slots, which are in order."""
        instants = [slot * self._size for slot in slots] if self._size > 1 else slots
        if self._lasts and instants[0] < max(self._firsts[-1], self._lasts[-1]):
            for slot in slots:
                self.add(slot, price)
            return
        self._totals.add(0, len(slots) * price)
        units = [self._scale(price)] * len(slots)
        for known, prices in (
            (self._firsts, self._first_units),
            (self._lasts, self._last_units),
        ):
            known.extend(instants)
            prices.extend(units)

    def _put(self, first: int, last: int, price: Fraction) -> None:
        if not self.limit.windows or not price:
            return
        if self._is_anywhere:
            first, last = -FOREVER, FOREVER
        units = self._scale(price)
        for instants, prices, instant in (
            (self._firsts, self._first_units, first),
            (self._lasts, self._last_units, last),
        ):
            place = bisect_right(instants, instant)
            instants.insert(place, instant)
            prices.insert(place, units)
        self._is_plain = self._is_plain and first == last

    def _scale(self, price: Fraction) -> int:
        """A price in the units of the totals, and all others too if those have become finer."""
        units = self._totals.scale(price)
        finer = self._totals.denominator // self._denominator
        if finer > 1:
            self._first_units = [finer * unit for unit in self._first_units]
            self._last_units = [finer * unit for unit in self._last_units]
            self._denominator *= finer
        return units

    @property
    def holds(self) -> bool:
        """Whether everything that was spent is within the limit."""
        total = self.limit.total
        within = total is None or self.spent <= total
        return within and all(self.most(w.width) <= w.amount for w in self.windows)

    def most(self, width: int) -> Fraction:
        """The most that any `width` consecutive slots hold, or any time as long as they."""
        if not self._firsts:
            return Fraction(0)
        sums = self._sums(self._long(width), np.array(self._firsts), 0)
        return Fraction(int(sums.max()), self._denominator)

    def left(self, slot: int) -> Fraction | float:
        """What may still be spent at a slot; infinite without a limit."""
        total = self.limit.total
        left = [] if total is None else [total - self.spent]
        left += [window.amount - self._held(window, slot) for window in self.windows]
        return min(left, default=inf)

    def _long(self, width: int) -> int:
        """How many instants so many slots are long."""
        return min(width * self._size, FOREVER // 2)

    def opens(self, slot: int, price: Fraction) -> int | None:
        """The first slot from a slot on at which a price is allowed; None if there is none."""
        total = self.limit.total
        if total is not None and not self._totals.allow(price, total)[0]:
            return None
        found: int | None = slot
        while True:
            before = found
            for window in self.windows:
                found = None if found is None else self._opens(window, found, price)
            if found in (None, before):
                return found

    def fault(
        self, slot: int, price: Fraction, time_of: Callable[[int], int | str] | None = None
    ) -> BudgetError:
        """Why a price is refused at a slot, and from when on it is not; `time_of` names a slot."""
        total, opens = self.limit.total, self.opens(slot, price)
        if total is not None and self.spent + price > total:
            return BudgetError(spent=self.spent, requested=price, remaining=total - self.spent)
        # Of several full windows the one that holds up longest.
        waits = [(self._opens(window, slot, price), window) for window in self.windows]
        _, full = max(waits, key=lambda wait: FOREVER if wait[0] is None else wait[0])
        held, when = self._held(full, slot), None
        if opens is not None and time_of is not None:
            with suppress(ArgumentError):  # a slot so late that it has no date
                when = time_of(opens)
        return BudgetError(
            spent=held,
            requested=price,
            remaining=full.amount - held,
            window=str(full),
            opens=opens,
            when=when,
        )

    def _held(self, window: Window, slot: int) -> Fraction:
        """The most that a window holds which contains a slot's begin."""
        instant, width = slot * self._size, self._long(window.width)
        ends, sums = self._ends(width, instant)
        most = sums[ends < instant + width].max()
        return Fraction(int(most), self._denominator)

    def _opens(self, window: Window, slot: int, price: Fraction) -> int | None:
        """The first slot from a slot on where every such window that contains it has room."""
        room = self._scale(window.amount - price)
        instant, width = slot * self._size, self._long(window.width)
        ends, sums = self._ends(width, instant)
        for place in np.flatnonzero(sums > room).tolist():
            # Windows that end from here until the next end are full: an instant that none of
            # them contains is at least their width before, or after them.
            if ends[place] >= instant + width:
                break
            if place + 1 == len(ends) or ends[place + 1] >= FOREVER:
                return None
            # The first slot that begins there or later.
            instant = -(-int(ends[place + 1]) // self._size) * self._size
        return instant // self._size

    def _ends(self, width: int, instant: int) -> tuple[IntArray, ObjectArray]:
        """Where windows end, from an instant on, whose sum is not the one before's; the sums.

        A sum changes where a window's end comes to a price and where its beginning leaves one.
        """
        # What left before is in none of them; with spans the two lists differ, and all count.
        past = bisect_right(self._lasts, instant - width) if self._is_plain else 0
        firsts, lasts = self._firsts[past:], self._lasts[past:]
        ends = {instant, *firsts, *(last + width for last in lasts)}
        later = np.array(sorted(end for end in ends if end >= instant), dtype=np.int64)
        return later, self._sums(width, later, past)

    def _sums(self, width: int, ends: IntArray, past: int) -> ObjectArray:
        """What windows with these ends hold, in units."""
        gained = np.cumsum(np.array([0, *self._first_units[past:]], dtype=object))
        lost = np.cumsum(np.array([0, *self._last_units[past:]], dtype=object))
        come = np.searchsorted(self._firsts[past:], ends, side="right")
        gone = np.searchsorted(self._lasts[past:], ends - width, side="right")
        return gained[come] - lost[gone]


class Budgets:
    """The budgets of some people who move together, a step at a time.

    Args:
        limit: What may be spent on each, its windows in steps; None for no limit.
        times: The slot at which each of them is.
        spent: What was spent on each in all; nothing by default.
        recent: For each, the slots and prices that windows still hold.
    """

    def __init__(
        self,
        limit: Limit | None,
        times: IntArray,
        spent: Sequence[Fraction] | None = None,
        recent: Sequence[Iterable[tuple[int, Fraction]]] = (),
    ) -> None:
        nothing = [Fraction(0)] * len(times)
        self.limit = Limit() if limit is None else limit
        self.spent = Totals(nothing if spent is None else spent)
        self._times, self._steps = times.tolist(), 0
        before = [
            (slot - self._times[person], np.array([person]), price)
            for person, pairs in enumerate(recent if self.limit.windows else ())
            for slot, price in pairs
        ]
        before.sort(key=lambda entry: entry[0])
        self._windows: list[tuple[Window, Totals, deque[tuple[int, IntArray, Fraction]]]] = []
        """Beside each window what the next step's holds, and what will leave it when."""
        for window in self.limit.windows:
            held = Totals(nothing)
            for _, people, price in before:
                held.add(people, price)
            self._windows.append((window, held, deque(before)))
        self._leave()

    def allow(self, price: Fraction) -> Mask:
        """On whom a price may be spent at the next step."""
        mask = np.ones(len(self._times), dtype=bool)
        if self.limit.total is not None:
            mask &= self.spent.allow(price, self.limit.total)
        for window, held, _ in self._windows:
            mask &= held.allow(price, window.amount)
        return mask

    def move(self) -> None:
        """Go on to the next step."""
        self._steps += 1
        self._leave()

    def _leave(self) -> None:
        for window, held, entries in self._windows:
            while entries and entries[0][0] <= self._steps + 1 - window.width:
                _, people, price = entries.popleft()
                held.add(people, -price)

    def charge(self, people: IntArray, price: Fraction) -> None:
        """Spend on some people at the present step."""
        self.spent.add(people, price)
        for _, held, entries in self._windows if price else ():
            held.add(people, price)
            entries.append((self._steps, people, price))
        self._leave()

    def recent(self) -> list[list[tuple[int, Fraction]]]:
        """For each person the slots and prices that the next step's longest window holds."""
        found: list[list[tuple[int, Fraction]]] = [[] for _ in self._times]
        for step, people, price in self._windows[-1][2] if self._windows else ():
            for person in people.tolist():
                found[person].append((self._times[person] + step, price))
        return found

    def of(self, person: int) -> Budget:
        """One person's budget, for the next step and later ones."""
        spans = [(slot, slot, price) for slot, price in self.recent()[person]]
        return Budget(self.limit, Fraction(self.spent.of(person)), spans)
