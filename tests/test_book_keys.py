"""Whose key a book's answers come from, where it is bound, rotated and asked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dphmm import ArgumentError, Journal, KeyedRandomness, MemoryBook, Store
from dphmm.books.changing import rotate_key
from dphmm.release.book import KeyInUse, fingerprint_of
from dphmm.release.moment import Line
from tests.crash.world import release

FIRST, SECOND = KeyedRandomness(b"1" * 32), KeyedRandomness(b"2" * 32)
ANN = Line("", "ann", "state")

BOOKS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: MemoryBook(),
    "journal": lambda folder: Journal(folder / "ledger.jsonl"),
    "store": lambda folder: Store.open(folder / "answers.db"),
}


@pytest.fixture(params=BOOKS)
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made = BOOKS[request.param](tmp_path)
    yield made
    if request.param != "memory":
        made.close()


def test_a_rotation_before_the_first_answer_is_committed_is_seen(
    book: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who read an empty book has seen no key, and draws with the one before the rotation."""
    commit = book.commit

    def late(*parts: Any) -> None:
        monkeypatch.setattr(book, "commit", commit)
        release(book, "ben", 1, 4, randomness=FIRST)
        rotate_key(book, SECOND)
        commit(*parts)

    monkeypatch.setattr(book, "commit", late)
    with pytest.raises(ArgumentError, match="key must be the one that this ledger's answers"):
        release(book, "ann", 9, 4, randomness=FIRST)
    assert not book.find(ANN, [9])
    assert release(book, "ann", 9, 4, randomness=SECOND)[0].time == 9


def test_of_two_keys_that_are_bound_at_once_the_first_stays(book: Any) -> None:
    for one in (FIRST, SECOND):
        book.use_key(KeyInUse(fingerprint_of(one), 1))
    assert book.key().fingerprint == FIRST.fingerprint
    release(book, "ann", 1, 4, randomness=FIRST)
    with pytest.raises(ArgumentError, match="key must be the one"):
        release(book, "ann", 2, 4, randomness=SECOND)


def test_a_key_without_an_answer_can_be_rotated(book: Any) -> None:
    """A run that was killed between the two has written its key down and said nothing."""
    with pytest.raises(ArgumentError, match="book must hold an answer to have a key"):
        rotate_key(book, SECOND)
    book.use_key(KeyInUse(FIRST.fingerprint, 5))
    assert rotate_key(book, SECOND) == KeyInUse(SECOND.fingerprint, 5)
    assert release(book, "ann", 1, 4, randomness=SECOND)[0].time == 1
    assert rotate_key(book, FIRST).clocks == {"": 2}
