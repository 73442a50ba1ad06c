"""Several rows of one person in one slot: the earliest counts, by every route, in every order."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import (
    Clock,
    Journal,
    KeyedRandomness,
    MarkovModel,
    MemoryBook,
    Policy,
    Scenario,
    States,
    Store,
)
from dphmm.cli.learn import _tracks
from dphmm.report.private import read_truth
from dphmm.scenario import read_trips
from dphmm.scenario.releasing import ask_rows, hold_open

KEY = KeyedRandomness(bytes(range(32)))
PLACES = States.on_plane([[0, 0], [300, 0], [0, 400]], labels=["home", "work", "park"])
CITY = Scenario(
    PLACES, MarkovModel(np.full((3, 3), 1 / 3)), Policy(complete=True), epsilon=1,
    clock=Clock("5 min", zone="Europe/Paris"),
)  # fmt: skip
ROWS = [
    ("ann", "2024-05-01T10:04:00+02:00", "home"),
    ("ann", "2024-05-01T08:01:00.5Z", "work"),  # the earliest, though not as text
    ("ann", "2024-05-01T09:01:00.500000+01:00", "park"),  # as early, but later on the map
    ("bob", "2024-05-01T10:03:00+02:00", "park"),
]


def told(table: Any) -> dict[str, tuple[Any, ...]]:
    """What was said about everybody, once."""
    return {row[0]: tuple(row[2:]) for row in table.rows()}


def table_of(rows: Any) -> Any:
    import polars

    return polars.DataFrame(rows, schema=["person", "time", "state"], orient="row")


ALONE = told(CITY.release(table_of([ROWS[1], ROWS[3]]), randomness=KEY))


def test_the_order_of_a_table_decides_nothing() -> None:
    for rows in permutations(ROWS):
        assert told(CITY.release(table_of(rows), randomness=KEY)) == ALONE


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "arrow", "journal", "store"])
def test_no_kind_of_table_or_book_decides_anything(tmp_path: Path, kind: str) -> None:
    for number, rows in enumerate((ROWS, ROWS[::-1])):
        given, book = table_of(rows), MemoryBook()
        trips, table = tmp_path / f"{number}.{kind}", given
        if kind == "csv":
            given.write_csv(trips)
            table = trips
        elif kind == "parquet":
            given.write_parquet(trips)
            table = trips
        elif kind == "pandas":
            table = given.to_pandas()
        elif kind == "arrow":
            table = given.to_arrow()
        elif kind == "journal":
            book = Journal(trips)
        elif kind == "store":
            book = Store.open(str(trips))
        said = CITY.release(table, book=book, randomness=KEY)
        if kind in ("pandas", "arrow"):
            said = type(given)(said)
        assert told(said) == ALONE
        if kind in ("journal", "store"):
            book.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]])
def test_rows_that_spark_has_read_and_sorted_are_answered_alike(rows: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    from dphmm.spark import tables
    from dphmm.spark.partition import Partition

    batch = pa.RecordBatch.from_pylist(
        [dict(zip(("person", "time", "state"), row, strict=True)) for row in rows]
    )
    (read,) = tables.locate([batch], tables.Reading(PLACES, CITY.settings.clock, (), "trips"))
    names = [field.split()[0] for field in tables.ROWS.split(", ")]
    assert read.schema.names == names
    ordered = pa.Table.from_batches([read]).sort_by([(name, "ascending") for name in names])
    parts = Partition(CITY, KEY).answer(ordered.to_batches())
    said = [row for part in parts for row in part.to_pylist() if row["table"] == "answers"]
    columns = ("x", "y", "estimate_x", "estimate_y", "epsilon")
    assert {row["person"]: tuple(row[name] for name in columns) for row in said} == {
        person: cells[:-1] for person, cells in ALONE.items()
    }


def test_whole_numbers_are_in_their_own_order_not_that_of_texts() -> None:
    city = CITY.replace(clock=Clock(20))
    early = [("ann", 9, "home"), ("ann", 10, "work")]
    alone = told(city.release(table_of(early[:1]), randomness=KEY))
    assert told(city.release(table_of(early[::-1]), randomness=KEY)) == alone


def test_truth_and_learning_take_the_row_that_was_answered(tmp_path: Path) -> None:
    clock = CITY.settings.clock
    for number, rows in enumerate((ROWS, ROWS[::-1])):
        trips = tmp_path / f"{number}.csv"
        table_of(rows).write_csv(trips)
        assert {who: at for (who, _), at in read_truth(trips, CITY).states.items()} == {
            "ann": 1, "bob": 2,
        }  # fmt: skip
        tracks = _tracks(str(trips), PLACES, clock, {})
        assert sorted(visited for _, visited in tracks) == [[1, 2, 0], [2]]


def test_live_rows_count_in_the_order_of_arrival_unless_slots_are_held_open() -> None:
    lines = ["person,time,state\n", *(",".join(row) + "\n" for row in ROWS[:2])]
    later = "ann,2024-05-01T10:20:00+02:00,home\n"
    rows = list(read_trips([*lines, later], PLACES, CITY.settings.clock))
    groups = list(hold_open(rows, 0))
    assert [[row.time for row in some] for some in groups] == [[row.time] for row in rows]
    held, _ = hold_open(rows, 1)
    ask = ask_rows(CITY, held)
    assert ask.moments is not None
    assert ask.states[np.argmin(ask.moments)] == 1
