"""Books under limits with windows, opened again between two asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from dphmm import (
    BudgetError,
    Clock,
    Journal,
    KeyedRandomness,
    Limit,
    MarkovModel,
    MemoryBook,
    PolicyGraph,
    Scenario,
    Store,
)
from dphmm.release.admission import Verdict
from dphmm.release.engine import Answered, Ask
from tests.windows import PRICES, SLOTS, Row

KEYED = KeyedRandomness(bytes(range(32)))
TOWN = Scenario(
    [0, 1], MarkovModel([[0.5, 0.5], [0.5, 0.5]]), PolicyGraph.complete(2), epsilon=1, name="town"
)
ROWS = st.lists(st.tuples(SLOTS, PRICES), min_size=1, max_size=5)
ASKS = st.lists(st.tuples(st.sampled_from(["place", "speed"]), ROWS), min_size=1, max_size=5)
BOOKS = ("memory", "journal", "store", "postgresql")


def ask(scenario: Scenario, query: str, rows: Sequence[Row], person: str = "ann") -> Ask:
    slots, prices = zip(*rows, strict=True)
    terms = scenario.replace(query=query).terms
    return Ask(terms, [person] * len(rows), np.array(slots), np.ones(len(rows), dtype=int), prices)


class Opened:
    """A book that is closed and opened again between two asks, as two runs would."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind, self.url = kind, url
        self._memory = MemoryBook()

    @contextmanager
    def book(self) -> Iterator[Any]:
        if self.kind == "memory":
            yield self._memory
        elif self.kind == "journal":
            with Journal(self.url) as journal:
                yield journal
        else:
            with closing(Store.open(self.url)) as store:
                yield store


@contextmanager
def opened(request: pytest.FixtureRequest, kind: str) -> Iterator[Opened]:
    with TemporaryDirectory() as folder:
        url = str(Path(folder) / "book")
        if kind == "postgresql":
            url = request.getfixturevalue("postgres_server").new_database()
        yield Opened(kind, url)


def check_answered(answered: Answered, expected: list[int], rows: Sequence[Row]) -> None:
    assert answered.verdicts.tolist() == expected
    for row, verdict in enumerate(expected):
        if verdict == Verdict.OVER:
            fault = answered.faults[row]
            assert isinstance(fault, BudgetError)
            assert fault.opens is None or fault.opens > rows[row][0]


def dated(step: str, limit: str | None, query: str = "place") -> Scenario:
    return TOWN.replace(clock=Clock(step), limit=limit and Limit.read(limit), query=query)


def at(scenario: Scenario, *times: str) -> Ask:
    slots = np.array([scenario.settings.clock.slot_of(f"2024-05-01T{time}Z") for time in times])
    return Ask(scenario.terms, ["ann"] * len(times), slots, np.zeros(len(times), dtype=int))
