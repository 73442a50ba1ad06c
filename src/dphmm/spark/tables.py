"""Tables of trips that Spark reads, as rows of person, step of the clock, time and state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._types import IntArray
from dphmm.errors import DataError, require
from dphmm.tables.clock import Clock, Slots
from dphmm.tables.columns import NOT_WHOLE
from dphmm.tables.states import States
from dphmm.tables.trips import find_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["ROWS", "locate_rows", "read_stream", "read_table"]

ROWS = "person string, slot bigint, moment bigint, state int"
"""In an order that is that of `Row.order` within a slot."""

_FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".orc": "orc"}


def read_table(spark: SparkSession, source: str, kind: str | None = None) -> DataFrame:
    """A table by path (Parquet, CSV, JSON lines, ORC; a file, a folder or a pattern) or by name.

    What `kind` does not say, the ending of the path does; a folder is Parquet.
    """
    errors = require("pyspark.errors", "spark")
    try:
        if kind is None and not _is_path(source):
            return spark.table(source)
        return _reader(spark.read, _kind(source, kind)).load(source)
    except errors.AnalysisException as fault:
        first = str(fault).partition("\n")[0]
        raise DataError(f"{source}: table must be one that Spark reads, got: {first}") from None


def read_stream(
    spark: SparkSession, folder: str, kind: str | None = None, *, files: int | None = None
) -> DataFrame:
    """The files that arrive in a folder; the first of them is there already and says the columns.

    Spark keeps the names of the files in the checkpoint, not what is in them. `files` is how
    many of them a micro-batch takes at most.
    """
    form = _kind(folder, kind)
    schema = _reader(spark.read, form).load(folder).schema
    reader = _reader(spark.readStream.schema(schema), form)
    return (reader if files is None else reader.option("maxFilesPerTrigger", files)).load(folder)


def _kind(source: str, kind: str | None) -> str:
    return kind or _FORMATS.get(Path(source).suffix.lower(), "parquet")


def _reader(reader: Any, kind: str) -> Any:
    if kind == "csv":
        # Texts stay as written; a row that is no CSV becomes nulls, whose message has no values.
        options = {"header": "true", "escape": '"', "mode": "PERMISSIVE", "enforceSchema": "true"}
        return reader.format("csv").options(**options)
    return reader.format(kind)


def _is_path(source: str) -> bool:
    known = (*_FORMATS, ".parquet")
    return "/" in source or Path(source).exists() or source.lower().endswith(known)


def locate_rows(
    table: DataFrame,
    states: States,
    clock: Clock,
    *,
    columns: Mapping[str, str] | None = None,
    person: str | None = None,
    name: str = "table",
) -> DataFrame:
    """The rows of a table with the step of each time and the state of each place."""
    functions = require("pyspark.sql.functions", "spark")
    header = dict.fromkeys(table.columns)
    found = find_columns(name, 1, header, states, columns, person)
    named = person is not None and "person" not in found
    whose = functions.lit(person) if named else _of(table, found, "person")
    types = require("pyspark.sql.types", "spark")
    if not named and isinstance(table.schema[found["person"]].dataType, types.FractionalType):
        raise DataError(f"{name}: {NOT_WHOLE}")
    chosen = [
        whose.cast("string").alias("person"),
        _time(table, found["time"]).alias("time"),
    ]
    if "state" in found:
        chosen.append(_of(table, found, "state").cast("string").alias("state"))
        places: tuple[str, ...] = ()
    else:
        places = states.place_columns
        chosen += [_of(table, found, place).alias(place) for place in places]
    reading = Reading(states, clock, places, name)
    return table.select(*chosen).mapInArrow(partial(locate, reading=reading), ROWS)


def _of(table: DataFrame, found: Mapping[str, str], ours: str) -> Column:
    return table[f"`{found[ours]}`"]


def _time(table: DataFrame, column: str) -> Column:
    """Times as text; only conversions that cannot fail, since Spark's errors show the value."""
    functions = require("pyspark.sql.functions", "spark")
    types = require("pyspark.sql.types", "spark")
    value = table[f"`{column}`"]
    kind = table.schema[column].dataType
    if isinstance(kind, types.TimestampType):
        return functions.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
    if isinstance(kind, types.TimestampNTZType):
        return functions.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
    return value.cast("string")


@dataclass(frozen=True)
class Reading:
    """What a worker needs to read rows: all of it is public."""

    states: States
    clock: Clock
    places: tuple[str, ...]
    name: str


def locate(batches: Iterable[pa.RecordBatch], reading: Reading) -> Iterator[pa.RecordBatch]:
    """Some rows with their steps and states; a message about one has no values."""
    pa, pc = require("pyarrow", "spark"), require("pyarrow.compute", "spark")
    slots = Slots(reading.clock, reading.name)
    numbers = reading.states._numbers_of
    for batch in batches:
        if not batch.num_rows:
            continue
        if reading.places:
            state = _nearest(batch, reading)
        else:
            state = _each(batch["state"], lambda label: numbers.get(_text(label), -1))
            if state.min() < 0:
                raise DataError(f"{reading.name}: state must be {reading.states.label_wanted}")
        people = pc.utf8_trim_whitespace(batch["person"])
        if people.null_count or pc.any(pc.equal(people, "")).as_py():
            raise DataError(f"{reading.name}: person must be given, got an empty field")
        moments = _each(batch["time"], lambda time: slots.moment(time, 0))
        yield pa.RecordBatch.from_arrays(
            [
                people,
                pa.array(moments // slots.size),
                pa.array(moments),
                pa.array(state.astype(np.int32)),
            ],
            names=["person", "slot", "moment", "state"],
        )


def _text(value: str | None) -> str:
    return "" if value is None else value.strip()


def _each(column: pa.Array, function: Callable[[Any], int]) -> IntArray:
    """A function of every text, computed once for each different one."""
    encoded = column.dictionary_encode(null_encoding="encode")
    values = np.array([function(text) for text in encoded.dictionary.to_pylist()], dtype=np.int64)
    indices: IntArray = encoded.indices.to_numpy(zero_copy_only=False)
    return values[indices]


def _nearest(batch: pa.RecordBatch, reading: Reading) -> IntArray:
    pa = require("pyarrow", "spark")
    places = []
    for column in reading.places:
        try:
            values = batch[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            values = np.array([np.nan])
        if not np.isfinite(values).all():
            raise DataError(f"{reading.name}: {column} must be a finite number")
        places.append(values)
    return reading.states.nearest(np.stack(places, axis=-1))
