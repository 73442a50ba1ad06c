"""Everybody's answers at once: partitioned by person, ordered in time, released in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dphmm.errors import DataError, require
from dphmm.scenario.scenario import Scenario
from dphmm.spark.folder import ANSWERS, STATE, Tables
from dphmm.spark.partition import Partition
from dphmm.spark.sessions import check_encrypted, exact_faults, plain_faults
from dphmm.spark.tables import locate_rows, read_table
from dphmm.spark.workers import Setup

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Summary", "ledger", "release", "releases", "state"]

CARRIED = ("person", "standing", "spent", "late", "repeated")
"""What a run takes over from the one before."""


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
    client: str = "",
    columns: Mapping[str, str] | None = None,
    person: str | None = None,
    partitions: int | None = None,
) -> Summary:
    """Answer every row of a table, and write answers, prices and the final state to a folder.

    `key_file` is a path on the workers, the same file on each. `previous` is the folder of
    the run before, which this one continues under the same key and client; its people are in
    the new state whether they moved or not. Rows that come late or twice are left out and
    counted. Nothing is in the folder unless all of it is: a run that failed is simply run again.
    """
    check_encrypted(spark)
    name = trips if isinstance(trips, str) else "table"
    table = read_table(spark, trips) if isinstance(trips, str) else trips
    rows = locate_rows(
        table, scenario.states, scenario.settings.clock, columns=columns, person=person, name=name
    )
    used = None
    if previous is not None:
        before = state(spark, scenario, previous)
        used = _find_key(before, previous, client)
        rows = rows.unionByName(before.select(*CARRIED), allowMissingColumns=True)
    functions = require("pyspark.sql.functions", "spark")
    types = require("pyspark.sql.pandas.types", "spark")
    setup = Setup.share(spark, scenario, key_file, client, used)
    tables = Tables(scenario, client)
    count = partitions or 4 * spark.sparkContext.defaultParallelism
    first = functions.col("slot").asc_nulls_first()
    ordered = rows.repartition(count, "person").sortWithinPartitions(
        "person", first, "moment", "state"
    )
    output = ordered.mapInArrow(
        partial(release_partition, setup=setup), types.from_arrow_schema(tables.varying)
    )
    output = output.withColumns({k: functions.lit(v) for k, v in tables.constants.items()})
    with plain_faults():
        output.write.partitionBy("table").mode("errorifexists").parquet(out)
    return _summarize(spark, scenario, out)


def _find_key(before: DataFrame, previous: str, client: str) -> str:
    """The fingerprint of the key of a run that is to be continued."""
    with plain_faults():
        used = before.select("key", "client").distinct().take(2)
    if len(used) != 1:
        raise DataError(f"{previous}: folder must hold the state of one run, got another")
    if used[0]["client"] != client:
        raise DataError(f"{previous}: client must be that of the run before, got another")
    fingerprint: str = used[0]["key"]
    return fingerprint


def _summarize(spark: SparkSession, scenario: Scenario, out: str) -> Summary:
    functions = require("pyspark.sql.functions", "spark")
    counts = [functions.count("*"), functions.sum("late"), functions.sum("repeated")]
    people, late, repeated = state(spark, scenario, out).agg(*counts).first()
    if not people:
        raise DataError(f"{out}: table must hold at least one row, got none")
    said = _table(spark, scenario, out, ANSWERS).where("lattice <> '[]'")
    return Summary(people, said.count(), late, repeated)


def releases(spark: SparkSession, scenario: Scenario, out: str) -> DataFrame:
    """The answers of a run, with the columns of `dphmm release`."""
    *columns, law = Tables(scenario).releases
    said = _table(spark, scenario, out, ANSWERS)
    return said.select(*columns, said["law_parts"].alias(law))


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


def release_partition(batches: Iterable[pa.RecordBatch], setup: Setup) -> Iterator[pa.RecordBatch]:
    """The output of one partition, whose rows are in order of person and time."""
    scenario = setup.scenario()
    with exact_faults():
        partition = Partition(scenario, setup.randomness(), setup.client, setup.used)
        yield from partition.answer(batches)
