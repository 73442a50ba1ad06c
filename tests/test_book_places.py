"""A book whose file is taken away while it is open says nothing that nobody would find."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dphmm import DataError, DphmmError, Journal, Store, StoreError
from dphmm.books import store as store_module
from dphmm.release.moment import Line
from tests.crash.world import release, same
from tests.stopping import stop_at

BOOKS: dict[str, Callable[[Path], Any]] = {"journal": Journal, "store": Store.open}
ANN = Line("", "ann", "state")


@pytest.fixture(params=BOOKS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, Path, Any]]:
    path = tmp_path / "here" / "book"
    path.parent.mkdir()
    book = BOOKS[request.param](path)
    release(book, "ann", 1, 4)
    yield book, path, BOOKS[request.param]
    with suppress(DphmmError):
        book.close()


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("there"))


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def recreate(path: Path) -> None:
    path.unlink()
    path.touch()


TAKEN = {
    "deleted": Path.unlink,
    "moved": lambda path: path.rename(path.with_name("elsewhere")),
    "replaced by a copy": replace,
    "replaced by nothing": recreate,
    "in a folder that was moved": move_folder,
}


@pytest.mark.parametrize("how", TAKEN)
def test_nothing_is_said_into_a_file_that_nobody_finds(
    opened: tuple[Any, Path, Any], how: str
) -> None:
    book, path, _ = opened
    TAKEN[how](path)
    for person in ("ann", "ben"):
        with pytest.raises((DataError, StoreError), match=r"book.* moved, deleted or replaced"):
            release(book, person, 2, 4)
    assert not path.exists() or path.stat().st_size < 10**6  # and none was made in its place
    with pytest.raises((DataError, StoreError), match="moved, deleted or replaced"):
        release(book, "ann", 3, 4)


def test_a_file_that_is_taken_away_during_a_commit_is_noticed_before_anything_is_said(
    opened: tuple[Any, Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    book, path, make = opened
    moved = path.with_name("elsewhere")
    place, name = (os, "fsync") if make is Journal else (store_module, "write")
    real = getattr(place, name)

    def late(*given: Any) -> Any:
        path.rename(moved)
        return real(*given)

    monkeypatch.setattr(place, name, late)
    with pytest.raises((DataError, StoreError), match="moved, deleted or replaced"):
        release(book, "ann", 2, 4)
    assert not path.exists()
    assert moved.exists()


def test_a_file_that_is_put_back_goes_on(opened: tuple[Any, Path, Any]) -> None:
    book, path, make = opened
    path.rename(path.with_name("elsewhere"))
    with pytest.raises((DataError, StoreError)):
        release(book, "ann", 2, 4)
    path.with_name("elsewhere").rename(path)
    told, _ = release(book, "ann", 2, 4)
    book.close()
    again = make(path)
    assert same(release(again, "ann", 2, 3)[0], told)
    again.close()


@pytest.mark.parametrize("kind", BOOKS)
def test_a_book_is_where_it_was_opened_wherever_the_process_goes(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book = BOOKS[kind](Path("book"))
    told = [release(book, "ann", 1, 4)[0]]
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    thread = threading.Thread(target=lambda: told.append(release(book, "ann", 1, 3)[0]))
    thread.start()
    thread.join()
    release(book, "ann", 2, 3)
    book.close()
    assert same(*told)
    assert not list((tmp_path / "other").iterdir())


def test_a_store_goes_on_after_a_stop_whose_traceback_somebody_keeps(tmp_path: Path) -> None:
    """A notebook keeps the last one, and with it whatever was open in it."""
    store, kept = Store.open(tmp_path / "answers.db"), []
    release(store, "ann", 1, 4)
    place, slot = 0, 1
    while True:
        place, slot = place + 1, slot + 1

        def ask(slot: int = slot) -> None:
            try:
                release(store, "ann", slot, 4)
            except KeyboardInterrupt as stop:
                kept.append(stop)

        found = stop_at(place, ask, ("contextlib.py", "books/database.py"))
        told, _ = release(store, "ann", slot, 3)
        assert same(release(store, "ann", slot, 2)[0], told)
        if not found:
            break
    assert len(kept) > 20
    said = []
    other = threading.Thread(target=lambda: said.append(release(store, "ann", slot + 1, 3)))
    other.start()
    other.join()
    assert said
    assert len(store.answers(ANN)) == slot + 1
    store.close()
