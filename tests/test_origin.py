"""Another origin over the same book: slots are absolute, so it opens and repeats nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars
import pytest

from dphmm import DataError, KeyedRandomness, MarkovModel, MemoryBook, Store
from dphmm.books.journal import Journal
from dphmm.scenario import Clock, Scenario
from tests.scenarios import LABELS, paper_scenario

KEY = KeyedRandomness(bytes(range(32)))


def rows(*times: int) -> polars.DataFrame:
    return polars.DataFrame([{"person": "ann", "time": t, "state": LABELS[3]} for t in times])


def begun(origin: int | None) -> Scenario:
    return paper_scenario(clock=Clock(origin=origin))


@pytest.mark.parametrize("kind", ["memory", "journal", "store"])
@pytest.mark.parametrize("keyed", [False, True])
def test_another_origin_opens_no_answered_slot(tmp_path: Path, kind: str, keyed: bool) -> None:
    made = {"memory": MemoryBook, "journal": lambda: Journal(tmp_path / "book"),
            "store": lambda: Store.open(tmp_path / "book")}  # fmt: skip
    book, noise = made[kind](), KEY if keyed else None
    first = begun(0).release(rows(1, 2, 3, 4, 5), book=book, randomness=noise)
    for number, origin in enumerate((None, -7, 3, 5), start=6):
        other = begun(origin)
        assert other.law == begun(0).law
        again = other.release(rows(1, 2, 3, 4, 5), book=book, randomness=noise)
        assert again.equals(first)
        with pytest.raises(DataError):  # before the latest answer, whatever the origin
            other.release(rows(0), book=book, randomness=noise)
        assert other.release(rows(number), book=book, randomness=noise).height == 1
        assert other.stream("ann", book=book, randomness=noise).ledger.spent == number
    with pytest.raises(DataError, match="after the scenario's origin"):
        begun(20).release(rows(11, 12), book=book, randomness=noise)
    assert begun(0).stream("ann", book=book, randomness=noise).ledger.spent == 9
    if kind != "memory":
        book.close()


def free(origin: int | None) -> Scenario:
    """Every state is possible, whenever somebody begins."""
    held = paper_scenario(clock=Clock(origin=origin), start="uniform")
    return Scenario.from_settings(held.settings, held.states, MarkovModel(np.full((6, 6), 1 / 6)))


def said(origin: int | None, times: range) -> list[tuple[float, ...]]:
    table = free(origin).release(rows(*times), book=MemoryBook(), randomness=KEY)
    return table.select("x", "y").rows()


def test_keyed_words_are_of_the_slot_and_not_of_the_step_since_the_origin() -> None:
    later = [said(origin, range(101, 161)) for origin in (None, 0, 40, 100)]
    assert all(one == later[0] for one in later)
    earlier = said(0, range(1, 61))
    # Up to 60 steps after their origins both; fresh noise agrees about once in ten times.
    assert sum(a == b for a, b in zip(earlier, later[-1], strict=True)) < 25
