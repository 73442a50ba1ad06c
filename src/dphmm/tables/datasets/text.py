"""Lines of text as tracks: with separators, with or without a header.

A file without a header is known by a number or a time in its first line. Its columns are then
called 1, 2, 3 and so on, and what they mean is seen from their values where it can be.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from dphmm.errors import require
from dphmm.tables.columns import ALIASES, match_columns
from dphmm.tables.datasets.rows import Meaning, UnknownColumnsError, Wishes

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

_SAMPLE = 50
_PREAMBLE = 20
"""Lines in which a header is looked for."""
_MOST = 0.8
_DAY = r"(\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d\d?\.\d\d?\.\d{4})"
_CLOCK = r"\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|[+-]\d\d:?\d\d))?"
_KINDS = {
    "moment": rf"{_DAY}[T ]{_CLOCK}",
    "day": _DAY,
    "clock": _CLOCK,
    "unix": r"1?\d{9}(\.\d+)?|1\d{12}",
    "decimal": r"[-+]?\d{1,3}[.,]\d+( ?[NSEW])?",
    "whole": r"[-+]?\d+",
}
"""What a column may hold; the first form that most of its values have."""

_Guesses = dict[tuple[str, int], dict[str, str]]

STAND_IN = "\x1f"
"""Stands for a separator within quotation marks; a line that has one itself is none."""


class TextFile:
    """One file of separated fields, some of its lines at a time."""

    def __init__(self, file: str, owner: str, wishes: Wishes, guesses: _Guesses) -> None:
        self.file, self.owner, self.wishes, self.guesses = file, owner, wishes, guesses
        self.meaning: Meaning | None = None
        self._separator = ","

    def __call__(self, lines: pl.DataFrame) -> pl.DataFrame:
        """The lines' rows, judged; the header, if there is one, is no row."""
        polars = require("polars", "geo")
        if self.meaning is None:
            lines = self._begin(lines)
        assert self.meaning is not None
        heading = self.meaning.header
        fields = _fields(lines, self._separator, len(heading)).select(
            "number",
            "source",
            "whole",
            *(
                polars.col(f"field_{heading.index(theirs)}").alias(ours)
                for ours, theirs in self.meaning.fields.items()
            ),
        )
        return self.meaning.judge(fields)

    def _begin(self, lines: pl.DataFrame) -> pl.DataFrame:
        sample = lines["line"].head(_SAMPLE).to_list()
        first = sample[0] if sample else ""
        head = self._part(first)
        if first.startswith("#") or not any(_kind([cell]) for cell in head):
            return lines.slice(self._find_header(sample))
        numbered = [str(number) for number in range(1, len(head) + 1)]
        found = match_columns(f"{self.file}:1", numbered, ALIASES, self.wishes.columns)
        rows = [_split(line, self._separator) for line in sample]
        known = (self._separator, len(head))
        if known not in self.guesses:
            self.guesses[known] = _guess([row for row in rows if len(row) == len(head)])
        guessed = self.guesses[known].items()
        taken = set(found.values())
        found |= {ours: n for ours, n in guessed if ours not in found and n not in taken}
        try:
            self.meaning = Meaning(self.file, numbered, self.wishes, found, self.owner)
        except UnknownColumnsError:
            raise UnknownColumnsError(
                f"{self.file}:1: columns must be named in a file without a header, "
                f"such as latitude=1, longitude=2 and time=4; it has {len(head)}"
            ) from None
        return lines

    def _part(self, line: str) -> list[str]:
        """The names of a line, by the separator that it seems to have."""
        self._separator = max(";\t|,", key=line.count)
        if self._separator not in line and re.search(r"\S\s+\S", line):
            self._separator = " "
        return _split(line, self._separator)

    def _find_header(self, sample: list[str]) -> int:
        """How many lines end with the header: what a program says of itself stands before it."""
        unknown = None
        for count, line in enumerate(sample[:_PREAMBLE], 1):
            head = self._part(line)
            rows = [_split(row, self._separator) for row in sample[count:]]
            columns = _letters([row for row in rows if len(row) == len(head)])
            wishes = replace(self.wishes, columns=columns | {**(self.wishes.columns or {})})
            try:
                self.meaning = Meaning.of(self.file, _told_apart(head), wishes, self.owner)
            except UnknownColumnsError as fault:
                unknown = unknown or fault
            else:
                return count
        raise unknown or UnknownColumnsError(f"{self.file}:1: file must have a header")


def _told_apart(head: Sequence[str]) -> list[str]:
    """The names of a header; one that was there before has its number behind it, like a unit."""
    return [
        f"{name} (column {number})" if name in head[: number - 1] else name
        for number, name in enumerate(head, 1)
    ]


def _letters(rows: list[list[str]]) -> dict[str, str | int]:
    """The columns of N or S and of E or W beside degrees, if there are both."""
    found: dict[str, str | int] = {}
    for number, column in enumerate(zip(*rows, strict=True), 1):
        for ours, kind in (("north_south", "NSns"), ("east_west", "EWew")):
            if ours not in found and all(len(cell) == 1 and cell in kind for cell in column):
                found[ours] = number
    return found if len(found) == 2 else {}


def _kind(values: Sequence[str]) -> str:
    """What most of some values are, or nothing that we know."""
    for kind, form in _KINDS.items():
        if sum(re.fullmatch(form, value) is not None for value in values) > _MOST * len(values):
            return kind
    return ""


def _guess(rows: list[list[str]]) -> dict[str, str]:
    """The columns whose meaning is plain from their values, by our names.

    Of two columns of degrees the first is the latitude, unless it is no latitude somewhere. A
    first column that is neither time nor place says who it was.
    """
    if not rows:
        return {}
    columns = list(zip(*([cell.strip() for cell in row] for row in rows), strict=True))
    kinds = [_kind(column) for column in columns]
    found: dict[str, int] = {}
    moments = [n for n, kind in enumerate(kinds) if kind in ("moment", "unix")]
    if len(moments) == 1:
        found["time"] = moments[0]
    elif ("day", "clock") in pairwise(kinds):
        found["date"] = kinds.index("day")
        found["time"] = found["date"] + 1
    places = [n for n, kind in enumerate(kinds) if kind == "decimal"][:2]
    if len(places) == 2:
        order = places if _are_latitudes(columns[places[0]]) else places[::-1]
        if _are_latitudes(columns[order[0]]):
            found["latitude"], found["longitude"] = order
    if 0 not in found.values():
        found["person"] = 0
    letters = _letters(rows)
    return {ours: str(number + 1) for ours, number in found.items()} | {
        ours: str(number) for ours, number in letters.items()
    }


def _are_latitudes(values: Sequence[str]) -> bool:
    numbers = (
        float(value.rstrip(" NSEW").replace(",", "."))
        for value in values
        if re.fullmatch(_KINDS["decimal"], value)
    )
    return not {value[-1] for value in values if value} & {*"EW"} and all(
        abs(number) <= 90 for number in numbers
    )


def _split(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return []


def _fields(lines: pl.DataFrame, separator: str, width: int) -> pl.DataFrame:
    """Columns field_0.. of every line, and whether it had as many as the header."""
    polars = require("polars", "geo")
    line = polars.col("line")
    if separator == " ":
        lines = lines.with_columns(line.str.replace_all(r"\s+", " "))
    separators = line.str.count_matches(separator, literal=True)
    odd = line.str.count_matches('"', literal=True) % 2 == 1
    intricate = (separators != width - 1) | line.str.contains('""', literal=True) | odd
    lines = lines.with_columns(line.str.contains(f"[\0{STAND_IN}]").alias("broken"))
    lines = _unquoted(lines, intricate, separator)
    fields = lines.select(
        "number",
        "source",
        ((separators == width - 1) & ~polars.col("broken")).alias("whole"),
        line.str.split_exact(separator, width).alias("fields"),
    ).unnest("fields")
    if not lines["line"].str.contains(STAND_IN, literal=True).any():
        return fields
    names = [name for name in fields.columns if name.startswith("field_")]
    return fields.with_columns(polars.col(names).str.replace_all(STAND_IN, separator, literal=True))


def _unquoted(lines: pl.DataFrame, intricate: pl.Expr, separator: str) -> pl.DataFrame:
    """The lines without quotation marks; a separator between two of them has a stand-in."""
    polars = require("polars", "geo")
    line = polars.col("line")
    quoted = line.str.contains('"', literal=True)
    # Only marks around something difficult take the standard library's slower way.
    slow = lines.filter(quoted & intricate).select("number", "line")
    fields = [_split(text, separator) for text in slow["line"]]
    plain = [separator.join(part.replace(separator, STAND_IN) for part in row) for row in fields]
    repaired = slow.select("number", polars.Series("plain", plain, dtype=polars.String))
    return lines.join(repaired, on="number", how="left", maintain_order="left").with_columns(
        polars.coalesce("plain", line.str.replace_all('"', "", literal=True)).alias("line")
    )
