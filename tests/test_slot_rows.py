"""Several rows of one person in one slot: the earliest counts, by every route, in every order."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import (
    ArgumentError,
    Clock,
    DataError,
    Journal,
    KeyedRandomness,
    MarkovModel,
    MemoryBook,
    Policy,
    Scenario,
    States,
    Store,
)
from dphmm.cli.common import read_tracks
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
    ("ann", "2024-05-01T08:01:00.5Z", "work"),  # the earliest
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


@pytest.mark.parametrize("person", [7.0, Decimal("7.0")])
def test_a_person_is_no_number_with_a_point(person: float | Decimal) -> None:
    """By a table that has lost a row, 7 becomes 7.0: somebody else, with a budget of their own."""
    import pandas

    trips = pandas.DataFrame({"person": [person], "time": ["2024-05-01T08:00Z"], "state": ["home"]})
    with pytest.raises(DataError, match="trips:1: person must be a text or a whole number, got a"):
        CITY.release(trips)
    whole = CITY.release(trips.assign(person=[7]), randomness=KEY)
    assert whole.equals(CITY.release(trips.assign(person=["7"]), randomness=KEY))


@pytest.mark.parametrize("skipped", ["2024-03-31T02:00:00", "2024-03-31 02:59:59.999999"])
def test_a_time_that_local_clocks_skip_is_a_bad_row(skipped: str) -> None:
    rows = [("ann", "2024-03-31T01:59:59", "home"), ("ann", skipped, "work")]
    with pytest.raises(DataError, match="trips:2: time must be one that clocks show, got one that"):
        CITY.release(table_of(rows))
    with pytest.raises(ArgumentError, match="time must be one that clocks show"):
        CITY.settings.clock.slot_of(skipped)
    later = [*rows[:1], ("ann", "2024-03-31T03:00:00", "work"), ("ann", "2024-10-27T02:30", "home")]
    assert len(CITY.release(table_of(later))) == 3
    utc = skipped + "Z"
    assert Clock("5 min").slot_of(utc) == CITY.settings.clock.slot_of(utc)


def test_a_name_has_one_spelling() -> None:
    one, parts = (unicodedata.normalize(form, "José") for form in ("NFC", "NFD"))
    rows = [(one, "2024-05-01T08:00Z", "home"), (parts, "2024-05-01T08:00Z", "home")]
    assert len(CITY.release(table_of(rows[:1]))) == 1
    message = "must be in Unicode's form NFC, got letters that are written in parts"
    with pytest.raises(DataError, match=f"trips:2: person {message}"):
        CITY.release(table_of(rows))
    with pytest.raises(ArgumentError, match=f"person {message}"):
        CITY.stream(parts, book=MemoryBook())
    with pytest.raises(ArgumentError, match=f"name {message}"):
        CITY.replace(query=parts).query  # noqa: B018


def test_truth_and_learning_take_the_row_that_was_answered(tmp_path: Path) -> None:
    clock = CITY.settings.clock
    for number, rows in enumerate((ROWS, ROWS[::-1])):
        trips = tmp_path / f"{number}.csv"
        table_of(rows).write_csv(trips)
        assert {who: at for (who, _), at in read_truth(trips, CITY).states.items()} == {
            "ann": 1, "bob": 2,
        }  # fmt: skip
        tracks = read_tracks(str(trips), PLACES, clock, {})
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
