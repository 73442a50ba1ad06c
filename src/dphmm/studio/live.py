"""What is being released now, read from a ledger file: spending, limits, answers on the map.

Everything in a ledger is public: answers as they left, and their prices. Nothing is written, and
nothing is locked, so whoever releases does not notice.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any

from dphmm.books.tailing import Tail
from dphmm.release.said import Record
from dphmm.scenario import Scenario
from dphmm.studio.drawing import Drawing

__all__ = ["Live"]

MOST_PEOPLE = 50
"""People who are listed, those nearest to a limit first."""

MOST_ANSWERS = 400
"""Answers that are drawn, the latest."""

BARS = 48
"""Stretches of time in which spending is counted."""

NEAR = 0.8
"""From this part of a limit on, somebody is near to it."""


class Live:
    """The answers of a ledger so far, and what they come to under a scenario's limit.

    Args:
        path: The ledger file.
        scenario: Whose clock, limit and places count.
        drawing: Whether answers can be drawn, and where.
    """

    def __init__(self, path: Path, scenario: Scenario, drawing: Drawing) -> None:
        self._tail, self._scenario = Tail(path), scenario
        self._drawn = drawing.places is not None and scenario.query.dimension == 2
        self._said: dict[tuple[str, str], list[Record]] = defaultdict(list)
        self._latest: list[Record] = []
        self._lock = Lock()

    def describe(self) -> dict[str, Any]:
        """What the page shows; reads what was written since the last time."""
        with self._lock:
            for record in self._tail.more():
                if not record.silent:
                    self._said[record.line.client, record.line.person].append(record)
                    self._latest.append(record)
            self._latest = sorted(self._latest, key=lambda one: one.time)[-MOST_ANSWERS:]
            said = {whose: list(records) for whose, records in self._said.items()}
            latest = list(self._latest)
        now = max((record.time for record in latest), default=0)
        people = [self._person(whose, records, now) for whose, records in said.items()]
        people.sort(key=lambda one: (-one["share"], one["person"]))
        records = [record for some in said.values() for record in some]
        return {
            "file": self._tail.path.name,
            "answers": len(records),
            "n_people": len(people),
            "near": sum(one["share"] >= NEAR for one in people),
            "limit": None if self._scenario.settings.limit is None else self._words,
            "now": self._time(now) if latest else None,
            "people": people[:MOST_PEOPLE],
            "spending": self._spending(records, now),
            "drawn": [self._answer(one) for one in latest if self._is_drawn(one)],
            "other_laws": sum(record.law != self._scenario.law for record in records),
        }

    @property
    def _words(self) -> str:
        limit = self._scenario.settings.limit
        return "" if limit is None else limit.words

    def _person(self, whose: tuple[str, str], records: list[Record], now: int) -> dict[str, Any]:
        """What was spent on somebody, and which part of the limit that is at its fullest."""
        spent = sum((record.epsilon for record in records), Fraction(0))
        client, person = whose
        return {
            "person": f"{client}/{person}" if client else person,
            "answers": len(records),
            "spent": float(spent),
            "share": self._share(records, spent, now),
            "last": self._time(max(record.time for record in records)),
        }

    def _share(self, records: list[Record], spent: Fraction, now: int) -> float:
        limit = self._scenario.settings.limit
        if limit is None:
            return 0.0
        shares = [] if limit.total is None else [spent / limit.total]
        for window in limit.in_steps(self._scenario.settings.clock.law).windows:
            recent = (one.epsilon for one in records if one.time > now - window.width)
            shares.append(sum(recent, Fraction(0)) / window.amount)
        return float(max(shares))

    def _spending(self, records: list[Record], now: int) -> list[dict[str, Any]]:
        """What was spent on everybody, in equal stretches of time."""
        if not records:
            return []
        first = min(record.time for record in records)
        wide = max(1, -(-(now - first + 1) // BARS))
        sums: dict[int, Fraction] = defaultdict(Fraction)
        for record in records:
            sums[(record.time - first) // wide] += record.epsilon
        return [
            {"time": self._time(first + place * wide), "spent": float(sums[place])}
            for place in range((now - first) // wide + 1)
        ]

    def _is_drawn(self, record: Record) -> bool:
        return self._drawn and record.law == self._scenario.law

    def _answer(self, record: Record) -> dict[str, Any]:
        place = [float(number * record.spacing) for number in record.lattice]
        return {"person": record.line.person, "time": self._time(record.time), "place": place}

    def _time(self, slot: int) -> str | int:
        return self._scenario.settings.clock.time_of(slot)
