"""Plain tracks: text with or without a header, JSON, GeoJSON, GPX, PLT, Parquet, and tables."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dphmm.errors import DataError, require
from dphmm.tables.datasets.geolife import parse_plt
from dphmm.tables.datasets.gpx import TRACK, read_gpx
from dphmm.tables.datasets.reading import (
    BadRow,
    Loaded,
    LoadReport,
    Progress,
    read_lines,
    table_of,
)
from dphmm.tables.datasets.records import JsonLines, check_people, records_of, text_columns
from dphmm.tables.datasets.rows import Meaning, UnknownColumnsError, Wishes
from dphmm.tables.datasets.sources import Owner, find_sources, unread
from dphmm.tables.datasets.streams import DAMAGE, Source
from dphmm.tables.datasets.text import TextFile
from dphmm.tables.frames import as_polars, is_table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["load_tracks"]

_PLT_YEARS = (1980, 2100)
_PLT_TAKEN = "latitude = column 1, longitude = column 2, date = column 6, time = column 7"

_Part: TypeAlias = "tuple[list[pl.DataFrame], LoadReport]"


def load_tracks(
    path: Any,
    *,
    columns: Mapping[str, str | int] | None = None,
    time: str | None = None,
    time_zone: str | None = None,
    person: str | None = None,
    owner: Owner | None = None,
    listed: int = 100,
    progress: Progress | None = None,
) -> Loaded:
    """The tracks of files, folders, patterns or archives, or of a table.

    Files are text with separators (with a header or without), JSON lines, JSON, GeoJSON, GPX,
    PLT or Parquet, also gzipped or in a zip; a table is one of Polars, pandas, GeoPandas or
    Arrow. Columns are found by their usual names, in any case (`lat`, `user_id`, `timestamp`),
    by their values where there is no header, or as `columns={"person": "rider", "time": 4}`
    says. Places are latitude and longitude, x and y in metres, or a state; all files alike.
    `time` says how times are written ("unix", "unix-ms", "unix-us", "unix-ns", "iso" or a form
    like "%d/%m/%Y %H:%M") where that is not plain; numbers that are no seconds since 1970
    stay numbers. Rows that no column gives to anybody belong to `person`, or else to their file,
    or its folder (`owner`). A file that looks like several people's is refused, unless `owner`
    is given.
    """
    wishes = Wishes(columns, time, time_zone, person, owner is not None)
    if is_table(path):
        table = as_polars(path)
        meaning = Meaning.of("table", table.columns, wishes, person or "somebody")
        good, report = meaning.judge_all(table, listed)
        return _joined([([good], report)])
    paths = [path] if isinstance(path, (str, Path)) else [*path]
    sources = find_sources(paths, "file" if owner is None else owner, person)
    reader = _Reader(wishes, listed, progress, sum(source.size for _, source in sources))
    parts = reader.read(sources)
    doubts = {f"not read, since {e} is no kind that is read": n for e, n in unread(paths).items()}
    return _joined([*parts, ([], LoadReport(0, 0, 0, doubts=doubts))])


class _Reader:
    """All files of one call: what they share is their number of listed faults and progress."""

    def __init__(self, wishes: Wishes, listed: int, progress: Progress | None, total: int) -> None:
        self._wishes = wishes
        self._listed = listed
        self._progress, self._done, self._total = progress, 0, total
        self._guesses: dict[tuple[str, int], dict[str, str]] = {}

    def read(self, sources: list[tuple[str, Source]]) -> list[_Part]:
        """The good rows and the report of every file; all PLT files are one part."""
        readers: dict[str, Callable[[Source], _Part]] = {
            "text": self._text,
            "lines": self._json_lines,
            "json": self._json,
            "gpx": self._gpx,
            "parquet": self._parquet,
        }
        points = [source for kind, source in sources if kind == "plt"]
        parts = [self._counted(self._plt(points), points)] if points else []
        unknown: list[UnknownColumnsError] = []
        for kind, source in sources:
            if kind == "plt":
                continue
            try:
                part = readers[kind](source)
            except UnknownColumnsError as fault:
                unknown.append(fault)
                part = _damaged(source, str(fault).partition(": ")[2], 1)
            parts.append(self._counted(part, [source]))
        if len(unknown) == len(sources):
            raise unknown[0]
        return parts

    def _counted(self, part: _Part, sources: list[Source]) -> _Part:
        self._listed = max(0, self._listed - len(part[1].first_bad))
        self._done += sum(source.size for source in sources)
        if self._progress is not None:
            self._progress(self._done, self._total)
        return part

    def _read_lines(self, sources: list[Source], parse: Callable[[Any], Any]) -> _Part:
        progress, before = self._progress, self._done
        return read_lines(
            sources,
            parse,
            listed=self._listed,
            progress=progress and (lambda done, _: progress(before + done, self._total)),
        )

    def _plt(self, sources: list[Source]) -> _Part:
        frames, report = self._read_lines(sources, partial(parse_plt, years=_PLT_YEARS))
        return frames, report + LoadReport(0, 0, 0, taken={_PLT_TAKEN: len(sources)})

    def _text(self, source: Source) -> _Part:
        file = TextFile(source.name, source.person or "", self._wishes, self._guesses)
        return self._of_lines(source, file)

    def _json_lines(self, source: Source) -> _Part:
        return self._of_lines(source, JsonLines(source.name, source.person or "", self._wishes))

    def _of_lines(self, source: Source, file: TextFile | JsonLines) -> _Part:
        frames, report = self._read_lines([source], file)
        if file.meaning is None:
            empty = () if report.damaged else (BadRow(source.name, 1, "file must not be empty"),)
            return [], report + LoadReport(0, 0, 0, damaged=empty)
        order = file.meaning.order
        return [frame.select(order) for frame in frames], report + file.meaning.report()

    def _json(self, source: Source) -> _Part:
        try:
            records = records_of(json.loads(_content(source)))
        except (ValueError, RecursionError):
            return self._json_lines(source)
        except DAMAGE as fault:
            return _damaged(source, f"file must be readable to its end, got {_kind(fault)}")
        keys = dict.fromkeys(key for record in records[:100] for key in record)
        if not records:
            return _damaged(source, "file must hold points with their times, got none")
        meaning = Meaning.of(source.name, list(keys), self._wishes, source.person or "")
        check_people(source.name, records, meaning)
        polars = require("polars", "geo")
        every = {theirs: theirs for theirs in meaning.fields.values()}
        good, report = meaning.judge_all(
            polars.DataFrame(text_columns(records, every)), self._listed
        )
        return [good], report

    def _gpx(self, source: Source) -> _Part:
        texts, lines, damaged = read_gpx(source)
        columns = self._wishes.columns or {}
        by_track = TRACK in texts.columns and columns.get("person") == TRACK
        wishes = replace(self._wishes, columns={"person": TRACK} if by_track else None)
        meaning = Meaning.of(source.name, texts.columns, wishes, source.person or "")
        good, report = meaning.judge_all(texts, self._listed, lines)
        return [good], report + LoadReport(0, 0, 0, damaged=damaged)

    def _parquet(self, source: Source) -> _Part:
        polars = require("polars", "geo")
        try:
            raw = polars.read_parquet(io.BytesIO(_content(source)))
        except (polars.exceptions.PolarsError, ValueError, *DAMAGE) as fault:
            return _damaged(source, f"file must be a readable Parquet file, got {_kind(fault)}")
        meaning = Meaning.of(source.name, raw.columns, self._wishes, source.person or "")
        good, report = meaning.judge_all(raw, self._listed)
        return [good], report


def _content(source: Source) -> bytes:
    return b"".join(chunk for chunk, _ in source.chunks())


def _kind(fault: BaseException) -> str:
    return type(fault).__name__


def _damaged(source: Source, problem: str, line: int = 0) -> _Part:
    return [], LoadReport(1, 0, 0, damaged=(BadRow(source.name, line, problem),))


def _joined(parts: list[_Part]) -> Loaded:
    polars = require("polars", "geo")
    frames = [frame for part, _ in parts for frame in part]
    full = [frame for frame in frames if len(frame)]
    kinds = {tuple(sorted(frame.schema.items())) for frame in full}
    if len(kinds) > 1:
        raise DataError("path must hold files with the same kind of time and place, got several")
    dates = polars.Datetime("us", "UTC")
    schema = {"person": polars.String, "time": dates}
    schema |= dict.fromkeys(("latitude", "longitude"), polars.Float64)
    if full or frames:
        found = (full or frames)[0].schema
        places = [name for name in found if name not in schema or name in ("latitude", "longitude")]
        schema = {name: found[name] for name in ("person", "time", *places)}
    report = sum((report for _, report in parts), start=LoadReport(0, 0, 0))
    return Loaded(table_of(full, schema), report)
