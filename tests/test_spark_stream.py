"""Streams on Spark: the local answers, late rows never, and the same after a restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dphmm import Schedule
from dphmm.release.standing import Standing
from dphmm.scenario import Clock, Row
from dphmm.scenario.releasing import ask_rows
from dphmm.spark import bulk, read_stream, release_stream
from dphmm.spark import session as new_session
from dphmm.spark.streaming import answer
from tests.spark_worlds import (
    KEY,
    KEYED,
    as_batch,
    city,
    everything,
    local_run,
    same_answers,
    write_key,
)

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]

FIRST = 775533119900
CLOCK = Clock(step=1000)
OWN = re.compile(rb"7755331199[0-9]{2}737")
"""The time of a row and not of its step, so that a search for it finds rows and only rows."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("stream")
    (folder / "events").mkdir()
    options = {
        "spark.local.dir": str(folder / "local"),
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.shuffle.compress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{folder / 'events'}",
    }
    made = new_session("local[2]", options=options)
    made.sparkContext.setLogLevel("OFF")
    made.left = folder
    yield made
    made.stop()


def rows_of(person: str, *slots: int) -> list[Row]:
    return [Row(0, person, f"{FIRST + s}737", FIRST + s, (7 * s + len(person)) % 9) for s in slots]


# Laws


def test_what_limit_or_clock_forbid_is_counted_and_the_rest_goes_on() -> None:
    scenario = city(3, limit=Fraction(3))

    def tell(held: Any, *slots: int) -> tuple[Any, list[int], list[int]]:
        held, said, left = answer(KEYED, held, ask_rows(scenario, rows_of("ann", *slots)))
        return held, [t - FIRST for some in said for t in some.times], (left - FIRST).tolist()

    held, said, left = tell(None, 1, 2, 200_000, 200_001)
    assert (said, left) == ([1, 2], [200_000, 200_001])
    held, said, left = tell(held, 1, 2, 3, 4, 5)
    assert (said, left) == ([3], [1, 2, 4, 5])
    assert held[2:] == (1, 1, 4)
    assert Standing.from_bytes(held[1]).spent == 3
    held, said, left = tell(held, 6)
    assert (said, left) == ([], [6])


# Oracle


def test_a_stream_says_what_the_local_engine_says_and_goes_on_from_its_checkpoint(
    spark: Any, tmp_path: Path
) -> None:
    labels = [f"zqplace{number}" for number in range(9)]
    # Silent at every second step: such rows have an estimate and no answer, and are not dropped.
    scenario = city(3, labels=labels, clock=CLOCK, when=Schedule(every=2))
    key_file = write_key(tmp_path / "key")
    files = [
        rows_of("ann", 2, 1) + rows_of("bob", 3) + rows_of("carla", 1),
        rows_of("ann", 2, 5) + rows_of("bob", 2, 3, 3, 4),
        rows_of("carla", 4, 6) + rows_of("ann", 3) + rows_of("dan", 1),
    ]
    inbox, out, checkpoint = (tmp_path / name for name in ("inbox", "out", "checkpoint"))

    def run() -> None:
        with everything.kept(spark.left / "local", spark.left / "kept"):
            query = release_stream(
                read_stream(spark, str(inbox), files=1), scenario, str(out),
                checkpoint=str(checkpoint), key_file=key_file, trigger={"availableNow": True},
            )  # fmt: skip
            query.awaitTermination()

    for number, rows in enumerate(files):
        everything.write(as_batch(rows, labels=labels), inbox / f"{number}.parquet")
        if number:  # the first two arrive together, the last one after a restart
            run()
    said = {
        (row["person"], row["slot"] - FIRST): row
        for row in bulk.ledger(spark, scenario, str(out)).collect()
    }
    expected = [
        *rows_of("ann", 1, 2, 5), *rows_of("bob", 3, 4), *rows_of("carla", 1, 4, 6),
        *rows_of("dan", 1),
    ]  # fmt: skip
    assert set(said) == {(row.person, row.slot - FIRST) for row in expected}
    assert {row["lattice"] == "[]" for row in said.values()} == {True, False}
    with local_run(scenario, expected) as journal:
        assert same_answers(scenario, list(said.values()), journal)
    dropped = sorted(
        (row["person"], row["slot"] - FIRST)
        for row in bulk._table(spark, scenario, str(out), "dropped").collect()
    )
    assert dropped == [("ann", 2), ("ann", 3), ("bob", 2), ("bob", 3), ("bob", 3)]
    left = {name: everything.inside(tmp_path / name) for name in ("out", "checkpoint")}
    left |= {name: everything.inside(spark.left / name) for name in ("kept", "events")}
    for name, content in left.items():
        assert content, "there is something to search"
        assert b"zqplace" not in content, name
        assert KEY not in content, name
        assert not OWN.search(content), name
    assert OWN.search(everything.inside(inbox)), "searches find"
