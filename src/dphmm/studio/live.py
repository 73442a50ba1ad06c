"""What is being released now: spending, limits, answers on the map.

Everything here is public: answers as they left, and their prices. Nothing is written, so whoever
releases does not notice.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from time import monotonic
from typing import Any

from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError
from dphmm.report.moments import Moments
from dphmm.scenario import Scenario
from dphmm.studio.drawing import Drawing
from dphmm.studio.watching import News, Source, Told, Whose

__all__ = ["Live"]

MOST_PEOPLE = 50
"""People who are listed, those nearest to a limit first."""

MOST_ANSWERS = 400
"""Answers that are drawn, the latest."""

BARS = 48
"""Stretches of time in which spending is counted."""

NEAR = 0.8
"""From this part of a limit on, somebody is near to it."""

OFTEN = {"ledger": 2.0, "store": 2.0, "service": 5.0}
"""Seconds between two looks: a service has other work to do."""


@dataclass
class _Spent:
    """What was said about one person so far."""

    own: Limit | None = None
    before: Fraction = Fraction(0)
    """What was spent before they were erased and came back."""
    sum: Fraction = Fraction(0)
    prices: list[tuple[int, Fraction]] = field(default_factory=list)
    """Slots and prices of answers to the scenario's question, in order."""
    others: list[Fraction] = field(default_factory=list)
    """Prices of answers to other questions, whose clocks may differ."""

    @property
    def count(self) -> int:
        return len(self.prices) + len(self.others)

    def within(self, width: int, now: int) -> Fraction:
        """What was spent on the question in so many slots until now."""
        first = bisect_right(self.prices, now - width, key=lambda one: one[0])
        return sum((price for _, price in self.prices[first:]), Fraction(0))


class Live:
    """The answers so far, and what they come to under a scenario's limit and people's own.

    Args:
        source: Where answers are read.
        scenario: Whose clock, limit and places count.
        drawing: Whether answers can be drawn, and where.
    """

    def __init__(self, source: Source, scenario: Scenario, drawing: Drawing) -> None:
        self._source, self._scenario = source, scenario
        self._drawn = drawing.places is not None and scenario.query.dimension == 2
        self._people: dict[Whose, _Spent] = defaultdict(_Spent)
        self._sums: dict[int, Fraction] = defaultdict(Fraction)
        """What was spent on everybody in each slot of the scenario's clock."""
        self._latest: list[Told] = []
        self._elsewhere = self._unread = 0
        self._looked = -OFTEN[source.kind]
        self._lock = Lock()

    def describe(self) -> dict[str, Any]:
        """What the page shows; reads what is new unless somebody else has just looked."""
        with self._lock:
            # Half of the usual time, so that one page always sees what is new.
            if monotonic() - self._looked >= OFTEN[self._source.kind] / 2:
                self._take(self._source.look())
                self._looked = monotonic()
            return self._plain()

    def close(self) -> None:
        """Let go of what is watched."""
        self._source.close()

    def _take(self, news: News) -> None:
        for whose in news.gone:
            self._forget(whose)
        for whose, (own, before) in news.people.items():
            self._people[whose].own, self._people[whose].before = own, before
        for one in news.told:
            self._add(one)
        self._latest.sort(key=lambda one: one.time)
        del self._latest[:-MOST_ANSWERS]
        self._unread = news.unread

    def _add(self, one: Told) -> None:
        spent = self._people[one.whose]
        spent.sum += one.epsilon
        if not one.own:
            spent.others.append(one.epsilon)
            return
        insort(spent.prices, (one.time, one.epsilon))
        self._sums[one.time] += one.epsilon
        if one.place is None:
            self._elsewhere += 1
        else:
            self._latest.append(one)

    def _forget(self, whose: Whose) -> None:
        """Of somebody who was erased nothing is shown any more."""
        spent = self._people.pop(whose, _Spent())
        for time, price in spent.prices:
            self._sums[time] -= price
        self._latest = [one for one in self._latest if one.whose != whose]

    def _plain(self) -> dict[str, Any]:
        now = max((time for time, price in self._sums.items() if price), default=None)
        people = [self._person(*one, now or 0) for one in self._people.items() if one[1].count]
        people.sort(key=lambda one: (-one["share"], one["person"]))
        limit = self._scenario.settings.limit
        return {
            "kind": self._source.kind,
            "file": self._source.name,
            "seconds": OFTEN[self._source.kind],
            "answers": sum(one["answers"] for one in people),
            "n_people": len(people),
            "unread": self._unread,
            "near": sum(one["share"] >= NEAR for one in people),
            "limited": sum(one.own is not None for one in self._people.values()),
            "limit": None if limit is None else limit.words,
            "now": None if now is None else self._time(now),
            "people": people[:MOST_PEOPLE],
            "spending": [] if now is None else self._spending(now),
            "drawn": [self._answer(one) for one in self._latest] if self._drawn else [],
            "other_laws": self._elsewhere,
            "returned": sum(one.before > 0 for one in self._people.values()),
            "other_questions": sum(len(one.others) for one in self._people.values()),
        }

    def _person(self, whose: Whose, spent: _Spent, now: int) -> dict[str, Any]:
        """What was spent on somebody, and which part of a limit that is at its fullest."""
        limits = (self._scenario.settings.limit, spent.own)
        shares = [(self._share(limit, spent, now), limit.words) for limit in limits if limit]
        share, words = max(shares, default=(0.0, None), key=lambda one: one[0])
        return {
            "person": _name(whose),
            "answers": spent.count,
            "spent": float(spent.before + spent.sum),
            "share": share,
            "limit": words,
            "last": self._time(spent.prices[-1][0]) if spent.prices else None,
        }

    def _share(self, limit: Limit, spent: _Spent, now: int) -> float:
        """The largest part of a limit that is used; windows count the scenario's question."""
        shares = [] if limit.total is None else [(spent.before + spent.sum) / limit.total]
        with suppress(ArgumentError):  # a person's own windows may be of another clock
            windows = limit.in_steps(self._scenario.settings.clock.law).windows
            shares += [spent.within(window.width, now) / window.amount for window in windows]
        return float(max(shares, default=Fraction(0)))

    def _spending(self, now: int) -> list[dict[str, Any]]:
        """What was spent on everybody, in equal stretches of time."""
        first = min(time for time, price in self._sums.items() if price)
        wide = max(1, -(-(now - first + 1) // BARS))
        sums: dict[int, Fraction] = defaultdict(Fraction)
        for time, price in self._sums.items():
            if price:
                sums[(time - first) // wide] += price
        return [
            {"time": self._time(first + place * wide), "spent": float(sums[place])}
            for place in range((now - first) // wide + 1)
        ]

    def _answer(self, one: Told) -> dict[str, Any]:
        return {
            "person": _name(one.whose),
            "time": self._time(one.time),
            "place": list(one.place or ()),
        }

    def _time(self, slot: int) -> str | int:
        return Moments(self._scenario.settings.clock, [slot]).dated[0]


def _name(whose: Whose) -> str:
    client, person = whose
    return f"{client}/{person}" if client else person
