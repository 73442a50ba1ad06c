"""Two copies of a store under one anchor: whatever is said, it is one answer a moment."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from dphmm import Store, StoreError
from dphmm.books.sealing import Root, Seals
from tests.crash.world import release

ANCHORS = {"file": "{}/anchor", "database": "sqlite:///{}/anchor.db"}


@pytest.fixture(params=ANCHORS)
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """A store and what `cp` makes of it, each opened by a server of its own."""
    anchor = ANCHORS[request.param].format(tmp_path)
    with closing(Store.open(tmp_path / "one.db", anchor=anchor)) as store:
        release(store, "ann", 1, 4)
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    with (
        closing(Store.open(tmp_path / "one.db", anchor=anchor)) as one,
        closing(Store.open(tmp_path / "two.db", anchor=anchor)) as two,
    ):
        yield one, two


def before_anchoring(store: Store, act: Any) -> None:
    """Have something happen between the next commit of a store and its anchor."""
    settle = store.witness.settle

    def late(roots: Any) -> Any:
        store.witness.settle = settle  # type: ignore[method-assign]
        act()
        return settle(roots)

    store.witness.settle = late  # type: ignore[method-assign]


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("further", [0, 1, 5])
def test_a_copy_that_was_quicker_to_the_anchor_leaves_the_other_silent(
    copies: tuple[Store, Store], further: int, looked: bool
) -> None:
    one, two = copies

    def act() -> None:
        for slot in range(2, 3 + further):
            release(two, "ann", slot, 4)
        if looked:  # another thread of the first server sees how far the anchor is
            with suppress(StoreError):
                release(one, "ben", 2, 4)

    before_anchoring(one, act)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"is behind its anchor|not the one of its anchor"):
            release(one, "ann", 2, 4)
    release(two, "ann", 9, 4)  # whoever was anchored goes on


class LastRoot(Seals):
    """The second copy takes other roots than the first, as where many commit at once."""

    def write_root(self) -> tuple[int, Root, Root]:
        (_, _, path), *_ = self.transaction.rows("PRAGMA database_list")
        last = " ORDER BY number DESC " if str(path).endswith("two.db") else " ORDER BY number "
        transaction = self.transaction
        self.transaction = Asking(transaction, last)  # type: ignore[assignment]
        try:
            return super().write_root()
        finally:
            self.transaction = transaction


class Asking:
    """A transaction that asks for roots in another order."""

    def __init__(self, transaction: Any, order: str) -> None:
        self._transaction, self._order = transaction, order

    def row(self, sql: str, values: Any = ()) -> Any:
        return self._transaction.row(sql.replace(" ORDER BY number ", self._order), values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)


def test_copies_that_take_different_roots_are_told_apart_too(
    copies: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = copies
    monkeypatch.setattr("dphmm.books.store.Seals", LastRoot)
    before_anchoring(one, lambda: release(two, "ann", 2, 4))
    with pytest.raises(StoreError, match="behind its anchor"):
        release(one, "ann", 2, 4)


def test_two_copies_that_are_asked_at_once_say_one_answer_a_moment(tmp_path: Path) -> None:
    """As fast as they can, many times anew; whichever is behind is silent from then on."""
    said: dict[tuple[int, str], set[tuple[int, ...]]] = {}
    for trial in range(15):
        folder = tmp_path / str(trial)
        folder.mkdir()
        anchor = folder / "anchor"
        Store.open(folder / "one.db", anchor=anchor).close()
        shutil.copy(folder / "one.db", folder / "two.db")
        stores = [Store.open(folder / name, anchor=anchor) for name in ("one.db", "two.db")]
        begin = threading.Barrier(2)

        def ask(store: Store, trial: int = trial, begin: threading.Barrier = begin) -> None:
            begin.wait()
            with suppress(StoreError):
                for number in range(3):
                    answer, _ = release(store, f"p{number}", 1, 4)
                    moment = (trial, f"p{number}")
                    said.setdefault(moment, set()).add(tuple(answer.lattice.tolist()))

        threads = [threading.Thread(target=ask, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in stores:
            store.close()
    assert said
    assert all(len(answers) == 1 for answers in said.values()), said
