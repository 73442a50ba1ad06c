"""Text files of any condition read as located lines, and the report of what was found.

A line is either kept or counted as bad with its file and number: nothing is dropped in
silence, and no message or report holds a value of a row, which may be where somebody was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from dphmm.errors import require
from dphmm.tables.datasets.streams import DAMAGE, Source, text_chunks

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BadRow", "LoadReport", "Loaded", "Progress"]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""

_CHUNK = 1 << 25

_OFFICE = {
    byte: letter
    for byte in range(0x80, 0xA0)
    if (letter := bytes([byte]).decode("cp1252", "replace")) != "\ufffd"
}
"""Where Windows-1252 is not Latin-1."""


@dataclass(frozen=True)
class BadRow:
    """Where a row stands that cannot be used, and why; never what it says."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}"


@dataclass(frozen=True)
class LoadReport:
    """What was read: every row is kept or bad, every file whole or damaged.

    `problems` counts all bad rows by kind, `first_bad` lists the first of them in order of
    file and line, `damaged` the files that ended before their end, each with the line after
    which nothing could be read. `taken` says what columns were taken for, in how many files, and
    `doubts` what to look at again.
    """

    files: int
    rows_read: int
    rows_kept: int
    problems: dict[str, int] = field(default_factory=dict)
    first_bad: tuple[BadRow, ...] = ()
    damaged: tuple[BadRow, ...] = ()
    taken: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)

    @property
    def rows_bad(self) -> int:
        """How many rows were not kept."""
        return self.rows_read - self.rows_kept

    def __add__(self, other: LoadReport) -> LoadReport:
        return LoadReport(
            self.files + other.files,
            self.rows_read + other.rows_read,
            self.rows_kept + other.rows_kept,
            dict(Counter(self.problems) + Counter(other.problems)),
            self.first_bad + other.first_bad,
            self.damaged + other.damaged,
            dict(Counter(self.taken) + Counter(other.taken)),
            dict(Counter(self.doubts) + Counter(other.doubts)),
        )

    def __str__(self) -> str:
        lines = [
            f"{self.rows_kept} of {self.rows_read} rows kept from {self.files} files, "
            f"{self.rows_bad} bad rows, {len(self.damaged)} damaged files"
        ]
        lines += [f"  {count} rows: {problem}" for problem, count in self.problems.items()]
        lines += [f"  {place}" for place in (*self.damaged, *self.first_bad)]
        if self.rows_bad > len(self.first_bad):
            lines.append(f"  and {self.rows_bad - len(self.first_bad)} more bad rows")
        return "\n".join(lines)


class Loaded(NamedTuple):
    """A table of tracks, in order of person and time, and the report of how it was read."""

    table: pl.DataFrame
    report: LoadReport


def read_lines(
    sources: Iterable[Source],
    parse: Callable[[pl.DataFrame], pl.DataFrame],
    *,
    listed: int,
    progress: Progress | None,
) -> tuple[list[pl.DataFrame], LoadReport]:
    """The good rows of all sources, in pieces, and the report.

    `parse` gets a frame of `line`, `number` (from 1) and `source`, without blank lines. It
    returns the rows (headers left out) with a `problem` that is null where the row is good,
    and keeps `number` and `source`.
    """
    polars = require("polars", "geo")
    sources = list(sources)
    names = [source.name for source in sources]
    people = polars.Series("person", [s.person for s in sources], dtype=polars.String)
    total = sum(source.size for source in sources)
    damaged: list[BadRow] = []
    frames: list[pl.DataFrame] = []
    report = LoadReport(len(sources), 0, 0)
    done = 0
    for batch in _batches(sources, damaged):
        rows = parse(_lines_of(batch, polars))
        good = rows.filter(polars.col("problem").is_null())
        bad = rows.filter(polars.col("problem").is_not_null()).select("source", "number", "problem")
        wanted = max(0, listed - len(report.first_bad))
        report += LoadReport(
            0,
            len(rows),
            len(good),
            dict(bad["problem"].value_counts().sort("problem").iter_rows()),
            tuple(BadRow(names[s], n, p) for s, n, p in bad.head(wanted).iter_rows()),
        )
        if "person" not in good.columns:
            good = good.with_columns(people[good["source"]])
        frames.append(good.drop("problem", "number", "source"))
        done += sum(piece.progress for piece in batch)
        if progress is not None:
            progress(min(done, total), total)
    return frames, report + LoadReport(0, 0, 0, damaged=tuple(damaged))


class _Piece(NamedTuple):
    source: int
    first_line: int
    data: bytes
    progress: int


def _batches(sources: list[Source], damaged: list[BadRow]) -> Iterator[list[_Piece]]:
    """Pieces of about 32 MB together, so that many small files are parsed at once."""
    batch: list[_Piece] = []
    size = 0
    for index, source in enumerate(sources):
        for piece in _pieces(index, source, damaged):
            batch.append(piece)
            size += len(piece.data)
            if size >= _CHUNK:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _pieces(index: int, source: Source, damaged: list[BadRow]) -> Iterator[_Piece]:
    """The whole lines of a source, some at a time; a fault ends it where it happens."""
    line = 1
    rest = b""
    unreported = 0
    problem = None
    chunks = text_chunks(source)
    while True:
        try:
            chunk, taken = next(chunks, (b"", -1))
        except DAMAGE as fault:
            problem = f"file must be readable to its end, got {type(fault).__name__}"
            break
        if taken < 0:
            break
        data = rest + chunk
        unreported += taken
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if cut:
            yield _Piece(index, line, data[:cut], unreported)
            line += data.count(b"\n", 0, cut)
            unreported = 0
    if rest:
        # A NUL makes a cut line unreadable: half a number must not pass for a number.
        yield _Piece(index, line, rest + (b"\0\n" if problem else b"\n"), unreported)
    if problem:
        damaged.append(BadRow(source.name, line, problem))


def _lines_of(batch: list[_Piece], polars: Any) -> pl.DataFrame:
    counts = [piece.data.count(b"\n") for piece in batch]
    text = _decoded(b"".join(piece.data for piece in batch))
    lines = polars.Series("line", [text[:-1]]).str.split("\n").explode()
    start = np.cumsum(counts) - counts
    first = np.array([piece.first_line for piece in batch]) - start
    frame: pl.DataFrame = polars.DataFrame(
        {
            "line": lines.str.strip_chars(" \t\r"),
            "number": np.arange(len(lines)) + np.repeat(first, counts),
            "source": np.repeat(np.array([p.source for p in batch], dtype=np.uint32), counts),
        }
    ).filter(polars.col("line") != "")
    return frame


def _decoded(data: bytes) -> str:
    """Lines as text; a line that is no UTF-8 is in the code page of office programs.

    No two bytes become the same character, as they would by replacement: names that differ by one
    letter are different people.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "\n".join(map(_decoded_line, data.split(b"\n")))


def _decoded_line(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1").translate(_OFFICE)


def table_of(frames: list[pl.DataFrame], columns: dict[str, Any]) -> pl.DataFrame:
    """One table of the named columns and types, in order of person and time."""
    polars = require("polars", "geo")
    types: Any = columns
    empty = polars.DataFrame(schema=columns)
    parts = [frame.select(list(columns)).cast(types) for frame in frames]
    table: pl.DataFrame = polars.concat([empty, *parts], rechunk=True)
    return table.sort("person", "time", maintain_order=True)


def first_problem(checks: list[tuple[Any, str]]) -> Any:
    """An expression: the first problem whose condition does not hold (null counts as not)."""
    polars = require("polars", "geo")
    expression = polars.lit(None, dtype=polars.String)
    for holds, problem in reversed(checks):
        expression = (
            polars.when(holds.fill_null(False)).then(expression).otherwise(polars.lit(problem))
        )
    return expression.alias("problem")


def on_earth(latitude: Any, longitude: Any) -> list[tuple[Any, str]]:
    """The checks that two columns are coordinates."""
    return [
        (latitude.is_between(-90, 90), "latitude must be a number in -90..90"),
        (longitude.is_between(-180, 180), "longitude must be a number in -180..180"),
        ((latitude != 0) | (longitude != 0), "latitude and longitude must not both be 0: no fix"),
    ]
