"""Gowalla as SNAP publishes it: tab-separated check-ins (Cho, Myers, Leskovec, KDD 2011)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dphmm.errors import require
from dphmm.tables.datasets.reading import (
    Loaded,
    Progress,
    first_problem,
    on_earth,
    read_lines,
    table_of,
)
from dphmm.tables.datasets.streams import file_source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["load_gowalla"]

_NUMBER = r"([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)"
_ROW = (
    r"^(\d+)\t(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z\t"
    rf"{_NUMBER}\t{_NUMBER}\t[^\t\x00]+$"
)


def load_gowalla(
    path: str | Path, *, listed: int = 100, progress: Progress | None = None
) -> Loaded:
    """The check-ins of a plain or gzipped file: person, time (UTC), latitude, longitude.

    The file has the newest first; the table has every person's oldest first.
    """
    polars = require("polars", "geo")
    frames, report = read_lines([file_source(Path(path))], _parse, listed=listed, progress=progress)
    columns = {
        "person": polars.String,
        "time": polars.Datetime("us", "UTC"),
        "latitude": polars.Float64,
        "longitude": polars.Float64,
    }
    return Loaded(table_of(frames, columns), report)


def _parse(lines: pl.DataFrame) -> pl.DataFrame:
    polars = require("polars", "geo")
    column = polars.col
    field = column("line").str.extract_groups(_ROW).struct
    rows = lines.lazy().select(
        "number",
        "source",
        field.field("1").alias("person"),
        field.field("2")
        .str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
        .dt.replace_time_zone("UTC")
        .alias("time"),
        field.field("3").cast(polars.Float64, strict=False).alias("latitude"),
        field.field("4").cast(polars.Float64, strict=False).alias("longitude"),
    )
    frame: pl.DataFrame = rows.with_columns(
        first_problem(
            [
                (
                    column("person").is_not_null(),
                    "row must have user, time, latitude, longitude and place",
                ),
                *on_earth(column("latitude"), column("longitude")),
                (column("time").is_not_null(), "time must be a date and a time of day"),
            ]
        )
    ).collect()
    return frame
