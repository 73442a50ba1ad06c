"""A store with an anchor on the studio's page: what has left, and nothing else."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.books import Store
from dphmm.books.sealing import Roots
from dphmm.errors import StoreError
from dphmm.release.moment import Line
from dphmm.studio.live import Live
from dphmm.studio.saving import Opened, open_file
from dphmm.studio.watching import watch
from tests.scenarios import paper_scenario
from tests.test_store_copies import put_back
from tests.test_studio_live import look_again, say

Stored: TypeAlias = tuple[Path, Path, str]
"""A scenario, a store, and its anchor."""


@pytest.fixture(params=["file", "database"])
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> Stored:
    town, path = tmp_path / "town.toml", tmp_path / "store.db"
    paper_scenario(limit="10 in all").save(town)
    place = f"{tmp_path}/anchor"
    anchor = place if request.param == "file" else f"sqlite:///{place}.db"
    Store.open(path, anchor=anchor).close()
    return town, path, anchor


def live_of(opened: Opened, path: Path, anchor: str) -> Live:
    assert opened.path is not None
    source = watch(str(path), opened.scenario, opened.path, anchor=anchor)
    return Live(source, opened.scenario, opened.drawing)


def is_killed(town: Path, store: Store, time: int, query: str) -> None:
    """Have an answer committed and not said."""
    settle = store.witness.settle

    def die(roots: Roots, changed: int | None = None) -> Roots:
        if changed is not None:
            raise KeyboardInterrupt
        return settle(roots, changed)

    store.witness.settle = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        say(town, store, "ann", (time,))
    store.witness.settle = settle  # type: ignore[method-assign]
    with store.database.transaction(write=False) as transaction:
        rows = transaction.rows("SELECT time FROM answers WHERE query = ?", (query,))
    assert time in [row[0] for row in rows]


def test_an_answer_is_shown_when_the_anchor_knows_of_it(stored: Stored) -> None:
    town, path, anchor = stored
    opened = open_file(town)
    with (
        closing(Store.open(path, anchor=anchor)) as store,
        closing(live_of(opened, path, anchor)) as live,
    ):
        say(town, store, "ann", (1,))
        assert live.describe()["answers"] == 1
        is_killed(town, store, 2, opened.scenario.terms.query)
        assert look_again(live)["answers"] == 1
        store.check()  # whoever comes next lets the anchor know
        assert look_again(live)["answers"] == 2


def test_an_answer_that_was_taken_back_was_never_shown(stored: Stored) -> None:
    town, path, anchor = stored
    opened = open_file(town)
    with closing(Store.open(path, anchor=anchor)) as store:
        say(town, store, "ann", (1,))
        put_back(path, path.with_name("old.db"))
        with closing(live_of(opened, path, anchor)) as live:
            assert live.describe()["answers"] == 1
            is_killed(town, store, 2, opened.scenario.terms.query)
            shown = [one["place"] for one in look_again(live)["drawn"]]
            put_back(path.with_name("old.db"), path)
    with closing(Store.open(path, anchor=anchor)) as store:
        say(town, store, "ann", (2,))
        said = store.answers(Line("", "ann", opened.scenario.terms.query))
    places = [record.release().answer.tolist() for record in said]
    assert shown == places[:1]
    with closing(live_of(opened, path, anchor)) as live:
        assert [one["place"] for one in live.describe()["drawn"]] == places


def test_a_store_that_may_not_answer_is_not_watched(stored: Stored) -> None:
    town, path, anchor = stored
    scenario, old = open_file(town).scenario, path.with_name("old.db")
    with (
        closing(watch(str(path), scenario, town)) as source,
        pytest.raises(StoreError, match="has an anchor and cannot be used without it; name it"),
    ):
        source.look()
    shutil.copy(path, old)
    with closing(Store.open(path, anchor=anchor)) as store:
        say(town, store, "ann", (1,))
    with (
        closing(watch(str(old), scenario, town, anchor=anchor)) as source,
        pytest.raises(StoreError, match="is behind its anchor"),
    ):
        source.look()
