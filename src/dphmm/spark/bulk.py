"""Everybody's answers at once: partitioned by person, ordered in time, released in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import DataError, require
from dphmm.scenario.scenario import Scenario
from dphmm.spark.people import (
    Rows,
    Standing,
    check,
    release_alone,
    release_together,
    renewed,
)
from dphmm.spark.records import ANSWERS, STATE, Tables, batched
from dphmm.spark.rules import Rules
from dphmm.spark.sessions import check_encrypted, plain_faults
from dphmm.spark.tables import located, read_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Summary", "ledger", "release", "released", "releases", "state"]

LONG = 20_000
"""Rows of one person that are held at a time; whoever has more is released as they come."""

WAITING = 100_000
"""Rows of several people that wait for each other."""

ROOM = 32 * 2**20
"""Bytes for the beliefs of a batch and as many for its scratch."""

FEWEST = 4
"""People worth a batch; fewer go one by one."""


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    people: int
    answers: int
    late: int
    repeated: int


def release(
    spark: SparkSession,
    scenario: Scenario,
    trips: str | DataFrame,
    out: str,
    *,
    key_file: str,
    previous: str | None = None,
    columns: Mapping[str, str] | None = None,
    person: str | None = None,
    partitions: int | None = None,
) -> Summary:
    """Answer every row of a table, and write answers, prices and the final state to a folder.

    `key_file` is a path on the workers, the same file on each. `previous` is the folder of
    the run before, which this one continues; its people are in the new state whether they
    moved or not. Rows that come late or twice are left out and counted. Nothing is in the
    folder unless all of it is: a run that failed is simply run again.
    """
    check_encrypted(spark)
    name = trips if isinstance(trips, str) else "table"
    table = read_table(spark, trips) if isinstance(trips, str) else trips
    rows = located(
        table, scenario.states, scenario.settings.clock, columns=columns, person=person, name=name
    )
    if previous is not None:
        rows = rows.unionByName(state(spark, scenario, previous), allowMissingColumns=True)
    functions = require("pyspark.sql.functions", "spark")
    types = require("pyspark.sql.pandas.types", "spark")
    rules = Rules.shared(spark, scenario, key_file)
    tables = Tables(scenario)
    count = partitions or 4 * spark.sparkContext.defaultParallelism
    first = functions.col("slot").asc_nulls_first()
    ordered = rows.repartition(count, "person").sortWithinPartitions(
        "person", first, "time", "state"
    )
    output = ordered.mapInArrow(
        partial(released, rules=rules, name=name), types.from_arrow_schema(tables.varying)
    )
    output = output.withColumns({k: functions.lit(v) for k, v in tables.constants.items()})
    with plain_faults():
        output.write.partitionBy("table").mode("errorifexists").parquet(out)
    return _summary(spark, scenario, out)


def _summary(spark: SparkSession, scenario: Scenario, out: str) -> Summary:
    functions = require("pyspark.sql.functions", "spark")
    counts = [functions.count("*"), functions.sum("late"), functions.sum("repeated")]
    people, late, repeated = state(spark, scenario, out).agg(*counts).first()
    if not people:
        raise DataError(f"{out}: table must hold at least one row, got none")
    return Summary(people, releases(spark, scenario, out).count(), late, repeated)


def releases(spark: SparkSession, scenario: Scenario, out: str) -> DataFrame:
    """The answers of a run, with the columns of `dphmm release`."""
    return _table(spark, scenario, out, ANSWERS).select(*Tables(scenario).releases)


def ledger(spark: SparkSession, scenario: Scenario, out: str) -> DataFrame:
    """What each answer cost, with the fields of the local engine's ledger."""
    return _table(spark, scenario, out, ANSWERS).select(*Tables(scenario).ledger)


def state(spark: SparkSession, scenario: Scenario, out: str) -> DataFrame:
    """Where everybody stands after a run."""
    return _table(spark, scenario, out, STATE).select(*Tables(scenario).state)


def _table(spark: SparkSession, scenario: Scenario, out: str, table: str) -> DataFrame:
    types = require("pyspark.sql.pandas.types", "spark")
    schema = types.from_arrow_schema(Tables(scenario).schema)
    # From the top, so that the log of a streaming query decides which files count.
    return spark.read.schema(schema).parquet(out).where(f"table = '{table}'")


def released(
    batches: Iterable[pa.RecordBatch], rules: Rules, name: str
) -> Iterator[pa.RecordBatch]:
    """The output of one partition, whose rows are in order of person and time."""
    yield from Partition(rules.scenario(), rules.key(), name).output(batches)


@dataclass(eq=False, repr=False)
class _Person:
    """Somebody whose rows are being read."""

    name: str
    standing: Standing | None = None
    parts: list[Rows] = field(default_factory=list)
    count: int = 0


class Partition:
    """The people of one partition: a window of them waits, then is released together."""

    def __init__(self, scenario: Scenario, key: bytes, name: str = "table") -> None:
        self._scenario = scenario
        self._key = key
        self._name = name
        self._tables = Tables(scenario)
        self._together = max(FEWEST, min(1024, ROOM // (8 * len(scenario.states))))
        self._window: list[_Person] = []
        self._waiting = 0

    def output(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answers and standings, in whatever order they are ready."""
        person: _Person | None = None
        for name, part in _runs(batches):
            if person is None or person.name != name:
                if person is not None:
                    yield from self._wait(person)
                person = _Person(name)
            self._read(person, part)
            if person.count > LONG:
                yield from self._long(person)
        if person is not None:
            yield from self._wait(person)
        yield from self._flush()

    def _read(self, person: _Person, part: _Part) -> None:
        for record in part.standings:
            if person.standing is not None:
                raise DataError(f"{self._name}: state must have one row for each person")
            person.standing = self._tables.standing_of(record)
        if len(part.rows):
            person.parts.append(part.rows)
            person.count += len(part.rows)

    def _long(self, person: _Person) -> Iterator[pa.RecordBatch]:
        """Release what somebody with very many rows has so far."""
        standing, rows = self._ready(person)
        standing, answers = release_alone(self._scenario, self._key, standing, rows)
        person.standing, person.parts, person.count = standing, [], 0
        yield self._tables.answers(answers)

    def _wait(self, person: _Person) -> Iterator[pa.RecordBatch]:
        self._window.append(person)
        self._waiting += person.count
        if len(self._window) >= 4 * self._together or self._waiting >= WAITING:
            yield from self._flush()

    def _flush(self) -> Iterator[pa.RecordBatch]:
        ready, idle = [], []
        for person in self._window:
            if not person.parts:
                assert person.standing is not None
                idle.append(person.standing)
                continue
            standing, rows = self._ready(person)
            if len(rows):
                ready.append((standing, rows))
            else:
                idle.append(standing)
        self._window, self._waiting = [], 0
        # People who end at about the same step waste little of each other's time.
        ready.sort(key=lambda pair: (pair[0].step, int(pair[1].slots[-1]) - pair[0].base))
        for group in self._groups(ready):
            if len(group) < FEWEST or self._scenario.settings.delta:
                each = [release_alone(self._scenario, self._key, *pair) for pair in group]
                for _, answers in each:
                    yield self._tables.answers(answers)
                moved = [standing for standing, _ in each]
            else:
                moved, answers = release_together(self._scenario, self._key, group)
                yield self._tables.answers(answers)
            yield from self._written(moved)
        yield from self._written(idle)

    def _groups(self, ready: list[tuple[Standing, Rows]]) -> Iterator[list[tuple[Standing, Rows]]]:
        """People who stand at the same step, as many as fit."""
        group: list[tuple[Standing, Rows]] = []
        for pair in ready:
            full = len(group) == self._together
            if group and (full or group[0][0].step != pair[0].step):
                yield group
                group = []
            group.append(pair)
        if group:
            yield group

    def _ready(self, person: _Person) -> tuple[Standing, Rows]:
        standing, rows = renewed(self._scenario, person.standing, Rows.joined(person.parts))
        check(self._scenario, standing, rows, self._name)
        return standing, rows

    def _written(self, standings: list[Standing]) -> Iterator[pa.RecordBatch]:
        for some in batched(standings, self._together):
            yield self._tables.standings(some)


@dataclass(frozen=True, eq=False, repr=False)
class _Part:
    """What one batch holds of one person."""

    standings: list[dict[str, Any]]
    rows: Rows


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, _Part]]:
    """The parts of each batch that belong to one person; standings come before rows."""
    pc: Any = require("pyarrow.compute", "spark")
    for batch in batches:
        if not batch.num_rows:
            continue
        encoded = pc.run_end_encode(batch["person"])
        times = batch["time"].to_numpy(zero_copy_only=False)
        slots, states = (
            pc.fill_null(batch[name], -1).to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("slot", "state")
        )
        no_slot = pc.is_null(batch["slot"]).to_numpy(zero_copy_only=False)
        standing = batch["slot"].null_count > 0
        first = 0
        for name, end in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
            middle = first + int(no_slot[first:end].sum()) if standing else first
            records = batch.slice(first, middle - first).to_pylist() if middle > first else []
            part = slice(middle, end)
            yield name, _Part(records, Rows(name, times[part], slots[part], states[part]))
            first = end
