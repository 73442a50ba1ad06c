"""Plain tracks: CSV (also tab-separated, also gzipped), Parquet and GPX files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.chain.calendar import find_zone
from dphmm.errors import ArgumentError, DataError, require
from dphmm.tables.columns import ALIASES, match_columns
from dphmm.tables.datasets.gpx import read_gpx
from dphmm.tables.datasets.reading import (
    BadRow,
    Loaded,
    LoadReport,
    Progress,
    first_problem,
    on_earth,
    read_lines,
    table_of,
)
from dphmm.tables.datasets.streams import existing, file_source
from dphmm.tables.datasets.times import Zones

if TYPE_CHECKING:
    import polars as pl

__all__ = ["load_tracks"]

_PLACES = (("latitude", "longitude"), ("x", "y"), ("state",))
_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".gpx")


def load_tracks(
    path: str | Path | Iterable[str | Path],
    *,
    time_zone: str | None = None,
    columns: Mapping[str, str] | None = None,
    person: str | None = None,
    listed: int = 100,
    progress: Progress | None = None,
) -> Loaded:
    """The tracks of CSV, Parquet or GPX files, or of a folder of them.

    Columns are found by their usual names, in any case (`lat`, `user_id`, `timestamp`, ...),
    or as `columns={"person": "rider"}` says. Places are latitude and longitude, x and y in
    metres, or a state; all files alike. Times are ISO 8601 with a zone, or integers that stay
    integers. A file without a person belongs to `person`, or else to its own name.
    """
    find_zone(time_zone, "time_zone")
    for name in columns or {}:
        if name not in ALIASES:
            raise ArgumentError(f"columns must name some of {sorted(ALIASES)}, got {name!r}")
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(p) for p in path]
    files = [file for p in paths for file in _files(p)]
    if not files:
        raise DataError(f"path must hold tracks ({', '.join(_SUFFIXES)}), got none")
    total = sum(file.stat().st_size for file in files)
    frames: list[pl.DataFrame] = []
    report = LoadReport(0, 0, 0)
    done = 0
    for file in files:
        room = max(0, listed - len(report.first_bad))
        owner = person or _stem(file)
        if _suffix(file) == ".gpx":
            parts, part_report = read_gpx(file, owner, time_zone, room)
        elif _suffix(file) == ".parquet":
            parts, part_report = _read_parquet(file, owner, time_zone, columns, room)
        else:
            within = None if progress is None else _shifted(progress, done, total)
            parts, part_report = _read_csv(file, owner, time_zone, columns, room, within)
        frames += parts
        report += part_report
        done += file.stat().st_size
        if progress is not None:
            progress(done, total)
    return Loaded(_joined(frames), report)


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    """The progress within one file as progress within all."""
    return lambda done, _: progress(before + done, total)


def _files(path: Path) -> list[Path]:
    if existing(path).is_dir():
        return sorted(p for p in path.rglob("*") if p.is_file() and _suffix(p) in _SUFFIXES)
    if _suffix(path) not in _SUFFIXES:
        raise DataError(f"path must end in one of {', '.join(_SUFFIXES)}, got {str(path)!r}")
    return [path]


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _stem(path: Path) -> str:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def _joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    polars = require("polars", "geo")
    full = [frame for frame in frames if len(frame)]
    kinds = {tuple(frame.schema.items()) for frame in full}
    if len(kinds) > 1:
        raise DataError("path must hold files with the same kind of time and place, got several")
    schema = dict((full or frames)[0].schema) if frames else {}
    if not schema:
        schema = {
            "person": polars.String,
            "time": polars.Datetime("us", "UTC"),
            "latitude": polars.Float64,
            "longitude": polars.Float64,
        }
    return table_of(full, schema)


def _found(file: str, header: list[str], columns: Mapping[str, str] | None) -> dict[str, str]:
    """Which column of a file is which, by our names."""
    found = match_columns(f"{file}:1", header, ALIASES, columns)
    place = next((names for names in _PLACES if all(name in found for name in names)), None)
    if place is None or "time" not in found:
        raise DataError(
            f"{file}:1: header must have a time and latitude and longitude, x and y, or state; "
            f"give columns= if they have other names"
        )
    return {name: found[name] for name in ("person", "time", *place) if name in found}


def _checked(rows: pl.DataFrame, place: list[str]) -> pl.DataFrame:
    """The rows with their problem; `rows` has typed columns, null where they did not parse."""
    polars = require("polars", "geo")
    column = polars.col
    checks: list[tuple[Any, str]] = []
    if "whole" in rows.columns:
        checks.append((column("whole"), "row must have the fields of the header"))
    checks.append(
        (column("person").is_not_null() & (column("person") != ""), "person must be given")
    )
    checks.append(
        (column("time").is_not_null(), "time must be a time that exists once, or integer")
    )
    if place == ["latitude", "longitude"]:
        checks += on_earth(column("latitude"), column("longitude"))
    elif place == ["state"]:
        checks.append((column("state") >= 0, "state must be a whole number from 0"))
    else:
        checks += [(column(n).is_finite(), f"{n} must be a finite number") for n in place]
    return rows.with_columns(first_problem(checks))


def _typed(
    texts: pl.DataFrame, place: list[str], zones: Zones, integer_times: bool
) -> pl.DataFrame:
    polars = require("polars", "geo")
    kind = polars.Int64 if place == ["state"] else polars.Float64
    rows = texts.with_columns(
        polars.col(place).str.strip_chars().cast(kind, strict=False),
    )
    time = texts["time"].str.strip_chars()
    if integer_times:
        return rows.with_columns(time.cast(polars.Int64, strict=False))
    return rows.with_columns(zones.utc(time, texts["number"]))


def _read_csv(
    path: Path,
    owner: str,
    time_zone: str | None,
    columns: Mapping[str, str] | None,
    listed: int,
    progress: Progress | None,
) -> tuple[list[pl.DataFrame], LoadReport]:
    polars = require("polars", "geo")
    heading: list[str] = []
    separator = ","
    names: dict[str, str] = {}
    place: list[str] = []
    zones = Zones(path.name, time_zone)
    integer_times: bool | None = None

    def parse(lines: pl.DataFrame) -> pl.DataFrame:
        nonlocal heading, separator, names, place, integer_times
        if not heading:
            first = lines.row(0, named=True)["line"] if len(lines) else ""
            separator = max(",;\t", key=first.count)
            heading = _split(first, separator)
            names = _found(path.name, heading, columns)
            place = [name for name in names if name not in ("person", "time")]
            lines = lines.slice(1)
        fields = _fields(lines, separator, len(heading))
        texts = fields.select(
            "number",
            "source",
            "whole",
            *(polars.col(f"field_{heading.index(theirs)}").alias(o) for o, theirs in names.items()),
        )
        if "person" not in names:
            texts = texts.with_columns(person=polars.lit(owner))
        if integer_times is None and len(texts):
            usable = texts.filter("whole")["time"].str.contains(r"^\s*-?\d+\s*$")
            integer_times = bool(2 * (usable.sum() or 0) > len(usable))
        return _checked(_typed(texts, place, zones, bool(integer_times)), place)

    source = file_source(path)
    frames, report = read_lines([source], parse, listed=listed, progress=progress)
    if not heading and not report.damaged:
        report += LoadReport(0, 0, 0, damaged=(BadRow(path.name, 1, "file must not be empty"),))
    order = ["person", "time", *place]
    return [frame.select(order) for frame in frames if place], report


def _split(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _fields(lines: pl.DataFrame, separator: str, width: int) -> pl.DataFrame:
    """Columns field_0.. of every line, and whether it had as many as the header."""
    polars = require("polars", "geo")
    line = polars.col("line")
    separators = line.str.count_matches(separator, literal=True)
    odd = line.str.count_matches('"', literal=True) % 2 == 1
    intricate = (separators != width - 1) | line.str.contains('""', literal=True) | odd
    lines = _unquoted(lines, intricate, separator)
    return lines.select(
        "number",
        "source",
        ((separators == width - 1) & ~line.str.contains("\0", literal=True)).alias("whole"),
        line.str.split_exact(separator, width).alias("fields"),
    ).unnest("fields")


def _unquoted(lines: pl.DataFrame, intricate: pl.Expr, separator: str) -> pl.DataFrame:
    """The lines without quotation marks; a separator between two of them becomes a space."""
    polars = require("polars", "geo")
    line = polars.col("line")
    quoted = line.str.contains('"', literal=True)
    # Only marks around something difficult take the standard library's slower way.
    slow = lines.filter(quoted & intricate).select("number", "line")
    fields = [_split(text, separator) for text in slow["line"]]
    plain = [separator.join(part.replace(separator, " ") for part in row) for row in fields]
    repaired = slow.select("number", polars.Series("plain", plain, dtype=polars.String))
    return lines.join(repaired, on="number", how="left", maintain_order="left").with_columns(
        polars.coalesce("plain", line.str.replace_all('"', "", literal=True)).alias("line")
    )


def _read_parquet(
    path: Path,
    owner: str,
    time_zone: str | None,
    columns: Mapping[str, str] | None,
    listed: int,
) -> tuple[list[pl.DataFrame], LoadReport]:
    polars = require("polars", "geo")
    try:
        raw: pl.DataFrame = polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError, ValueError) as fault:
        problem = f"file must be a readable Parquet file, got {type(fault).__name__}"
        return [], LoadReport(1, 0, 0, damaged=(BadRow(path.name, 0, problem),))
    names = _found(path.name, raw.columns, columns)
    place = [name for name in names if name not in ("person", "time")]
    rows = raw.select(polars.col(theirs).alias(ours) for ours, theirs in names.items())
    rows = rows.with_row_index("number", 1)
    if "person" not in names:
        rows = rows.with_columns(person=polars.lit(owner))
    kind = rows.schema["time"]
    zones = Zones(path.name, time_zone)
    if kind == polars.String:
        rows = rows.with_columns(zones.utc(rows["time"].str.strip_chars(), rows["number"]))
    elif isinstance(kind, polars.Datetime) and kind.time_zone is not None:
        rows = rows.with_columns(polars.col("time").dt.convert_time_zone("UTC"))
    elif isinstance(kind, polars.Datetime):
        if time_zone is None:
            raise DataError(f"{path.name}: time must have a zone, got none; or give time_zone=")
        local = polars.col("time").dt.replace_time_zone(
            time_zone, ambiguous="null", non_existent="null"
        )
        rows = rows.with_columns(local.dt.convert_time_zone("UTC"))
    elif not kind.is_integer():
        raise DataError(f"{path.name}: time must be datetimes, text or integers, got {kind}")
    whole = polars.Int64 if place == ["state"] else polars.Float64
    final = polars.Int64 if kind.is_integer() else polars.Datetime("us", "UTC")
    rows = rows.with_columns(
        polars.col("person").cast(polars.String),
        polars.col("time").cast(final),
        polars.col(place).cast(whole, strict=False),
    )
    rows = _checked(rows, place)
    bad = rows.filter(polars.col("problem").is_not_null())
    good = rows.filter(polars.col("problem").is_null()).select("person", "time", *place)
    report = LoadReport(
        1,
        len(rows),
        len(good),
        dict(bad["problem"].value_counts().sort("problem").iter_rows()),
        tuple(
            BadRow(path.name, number, problem)
            for number, problem in bad.select("number", "problem").head(listed).iter_rows()
        ),
    )
    return [good], report
