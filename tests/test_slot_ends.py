"""The earliest and the latest slots that there are, the same by every route."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dphmm import ArgumentError, Journal, KeyedRandomness, MemoryBook, Store
from dphmm.release.admission import LATEST
from tests.crash.world import release, same, terms

KEY = KeyedRandomness(bytes(32))


@pytest.fixture
def books(tmp_path: Path) -> Iterator[list[Any]]:
    store = Store.open(tmp_path / "answers.db")
    with Journal(tmp_path / "ledger.jsonl") as journal, closing(store):
        yield [MemoryBook(), journal, store]


@pytest.mark.parametrize("slot", [-LATEST - 1, -(2**62) - 1, -(2**63), -(2**63) - 1, -(10**30)])
@pytest.mark.parametrize("origin", [None, -1])
def test_a_slot_too_far_before_zero_is_refused_by_every_book(
    slot: int, origin: int | None, books: list[Any]
) -> None:
    given = terms(origin=None if origin is None else slot + origin)
    for book in books:
        with pytest.raises(ArgumentError, match="time must be within 100000 steps"):
            release(book, "ann", slot, 4, given, randomness=KEY)
        assert not book.lines()
        assert release(book, "ann", 1, 4, randomness=KEY)[0].time == 1


@pytest.mark.parametrize("slot", [-LATEST, LATEST])
def test_the_last_slots_of_both_ends_have_one_answer_everywhere(
    slot: int, books: list[Any]
) -> None:
    given = terms(origin=None)
    told = []
    for book in books:
        told += [release(book, "ann", slot, state, given, randomness=KEY)[0] for state in (4, 3)]
        with pytest.raises(ArgumentError, match="time must"):
            release(book, "ann", LATEST + 1, 4, given, randomness=KEY)
    assert all(same(told[0], one) for one in told)
