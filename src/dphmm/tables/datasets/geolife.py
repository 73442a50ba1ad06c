"""GeoLife as it is published: a tree, or a zip of a tree, of PLT files (Zheng et al.)."""

from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from dphmm.errors import DataError, require
from dphmm.tables.datasets.reading import (
    Loaded,
    Progress,
    first_problem,
    on_earth,
    read_lines,
    table_of,
)
from dphmm.tables.datasets.sources import open_archive, person_of
from dphmm.tables.datasets.streams import Source, existing, file_source, member_source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["load_geolife"]

_NUMBER = r"[ \t]*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)[ \t]*"
_ROW = rf"^{_NUMBER},{_NUMBER},[^,]*,[^,]*,[^,\x00]*,(\d{{4}}-\d\d-\d\d,\d\d:\d\d:\d\d)$"
_HEADER_LINES = 6


def load_geolife(
    path: str | Path,
    *,
    years: tuple[int, int] = (2007, 2012),
    listed: int = 100,
    progress: Progress | None = None,
) -> Loaded:
    """The points of a GeoLife folder or zip: person, time (UTC), latitude, longitude.

    The person is the folder above `Trajectory`. Times in the files are GMT. A row outside the
    `years` of the study is a clock fault and bad; rows that go back in time within a file are
    kept, since the table is sorted. The first six lines are the header only where the first
    of them says so; a point among them is kept all the same.
    """
    polars = require("polars", "geo")
    path = existing(Path(path))
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() == ".plt")
        sources = [
            file_source(
                p, person_of(p.relative_to(path.parent).parts, "folder"), str(p.relative_to(path))
            )
            for p in files
        ]
        frames, report = _read(sources, years, listed, progress)
    elif zipfile.is_zipfile(path):
        with open_archive(path) as archive:
            sources = [
                member_source(path, info, person_of(PurePosixPath(info.filename).parts, "folder"))
                for info in sorted(archive.infolist(), key=lambda info: info.filename)
                if info.filename.lower().endswith(".plt")
            ]
        frames, report = _read(sources, years, listed, progress)
    elif path.suffix.lower() == ".plt":
        sources = [file_source(path, person_of(path.absolute().parts, "folder"))]
        frames, report = _read(sources, years, listed, progress)
    else:
        raise DataError(f"path must be a folder, a whole zip or a PLT file, got {str(path)!r}")
    if not sources:
        raise DataError(f"path must hold PLT files, got none in {str(path)!r}")
    columns = {
        "person": polars.String,
        "time": polars.Datetime("us", "UTC"),
        "latitude": polars.Float64,
        "longitude": polars.Float64,
    }
    return Loaded(table_of(frames, columns), report)


def _read(
    sources: list[Source], years: tuple[int, int], listed: int, progress: Progress | None
) -> Any:
    return read_lines(sources, partial(parse_plt, years=years), listed=listed, progress=progress)


def parse_plt(lines: pl.DataFrame, years: tuple[int, int]) -> pl.DataFrame:
    """The points of lines of PLT files, those outside the `years` bad."""
    polars = require("polars", "geo")
    column = polars.col
    field = column("line").str.extract_groups(_ROW).struct
    rows = lines.lazy().select(
        "number",
        "source",
        field.field("1").cast(polars.Float64, strict=False).alias("latitude"),
        field.field("2").cast(polars.Float64, strict=False).alias("longitude"),
        field.field("3")
        .str.to_datetime("%Y-%m-%d,%H:%M:%S", time_unit="us", strict=False)
        .dt.replace_time_zone("UTC")
        .alias("time"),
        field.field("3").is_not_null().alias("whole"),
        (
            (column("number") == 1) & column("line").str.to_lowercase().str.starts_with("geolife")
        ).alias("titled"),
    )
    rows = rows.with_columns(
        first_problem(
            [
                (column("whole"), "row must have the seven fields of a PLT file"),
                *on_earth(column("latitude"), column("longitude")),
                (column("time").is_not_null(), "time must be a date and a time of day"),
                (
                    column("time").dt.year().is_between(*years),
                    f"time must lie in {years[0]}..{years[1]}, or it is a clock fault",
                ),
            ]
        ),
        column("titled").any().over("source"),
    )
    heading = column("titled") & (column("number") <= _HEADER_LINES) & ~column("whole")
    frame: pl.DataFrame = rows.filter(~heading).drop("whole", "titled").collect()
    return frame
