"""Trips read one row at a time: CSV, JSON lines or Parquet; person, time and where they were.

A row that cannot be used stops the reading with its file, line and column. No message holds
the value of a field that says where somebody was.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dphmm.errors import ArgumentError, DataError, check_name, require
from dphmm.tables.clock import Clock, Slots
from dphmm.tables.columns import NOT_WHOLE, match_columns
from dphmm.tables.files import as_path
from dphmm.tables.frames import as_polars, is_table, not_trips
from dphmm.tables.states import States

__all__ = [
    "TOGETHER",
    "Row",
    "find_columns",
    "open_lines",
    "read_records",
    "read_trips",
    "tracks_of",
]

Record: TypeAlias = tuple[int, Mapping[str, Any]]

TOGETHER = 10_000
"""Rows of a file whose coordinates are looked up together."""

Place: TypeAlias = int | list[float]
"""Where a row says somebody was: a state, or coordinates in the order of `place_columns`."""


@dataclass(frozen=True)
class Row:
    """One line of trips; `repr` leaves out where the person was."""

    line: int
    person: str
    time: str
    """As written in the file."""
    slot: int
    """The step of the clock that the time falls in."""
    state: int = field(repr=False)
    moment: int = field(default=0, repr=False)
    """The time as a number, with which rows of one slot are put in order."""

    @property
    def order(self) -> tuple[int, int, int]:
        """The order of rows, of which a slot's first counts, however they stand in a file."""
        return self.slot, self.moment, self.state


def read_trips(
    source: Any,
    states: States,
    clock: Clock,
    *,
    columns: Mapping[str, str] | None = None,
    person: str | None = None,
    file: str | None = None,
    together: int = 1,
) -> Iterator[Row]:
    """The rows of a file, a table or of lines, one at a time, in the order that they have.

    `columns` says what a column is called if not by its usual name; `person` is whose rows
    they are if no column says so. Coordinates are looked up for so many rows `together`;
    with one, a row comes back before the next is read.
    """
    name = file or (Path(source).name if isinstance(source, (str, Path)) else "trips")
    slots = Slots(clock, name)
    found: dict[str, str] | None = None
    waiting: list[tuple[int, str, str, int, int]] = []
    places: list[Place] = []
    count = 0
    for line, record in read_records(source, name):
        if found is None:
            found = find_columns(name, line, record, states, columns, person)
            continue
        if not count:
            _refuse_letters(f"{name}:{line}", _letters_beside(record, found))
        whose = person if "person" not in found else record.get(found["person"])
        if isinstance(whose, (float, Decimal)):
            raise DataError(f"{name}:{line}: {NOT_WHOLE}")
        who = _text(whose)
        if not who:
            raise DataError(f"{name}:{line}: person must be given, got an empty field")
        try:
            check_name(who, "person")
        except ArgumentError as fault:
            raise DataError(f"{name}:{line}: {fault}") from None
        time = record.get(found["time"])
        moment = slots.moment(time, line)
        waiting.append((line, who, str(time).strip(), moment // slots.size, moment))
        places.append(_place(name, line, record, found, states))
        count += 1
        if len(waiting) >= together:
            yield from _located(waiting, places, states)
            waiting, places = [], []
    yield from _located(waiting, places, states)
    if not count:
        raise DataError(f"{name}: file must hold at least one row, got none")


def tracks_of(rows: Iterable[Row]) -> list[tuple[list[int], list[int]]]:
    """For each person the slots in order, and where they were in them."""
    tracks: dict[str, list[Row]] = {}
    for row in rows:
        tracks.setdefault(row.person, []).append(row)
    ordered = (sorted(some, key=lambda row: row.order) for some in tracks.values())
    return [([row.slot for row in some], [row.state for row in some]) for some in ordered]


def _located(
    waiting: list[tuple[int, str, str, int, int]], places: list[Place], states: States
) -> Iterator[Row]:
    """The waiting rows with the state of each: its label's, or the nearest to its coordinates."""
    if places and not isinstance(places[0], int):
        places = states.nearest(places).tolist()
    for facts, state in zip(waiting, places, strict=True):
        assert isinstance(state, int)
        yield Row(*facts[:4], state, facts[4])


def open_lines(path: str | Path) -> Iterator[str]:
    """The lines of a text file; what cannot be read is an error that names the file."""
    name = Path(path).name
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as lines:
            yield from lines
    except OSError as fault:
        raise DataError(f"{name}: file must be readable, got: {fault.strerror}") from None


def read_records(source: Any, name: str) -> Iterator[Record]:
    """The line and the fields of every row; the first record is the header, without values.

    The source is a path, lines of text, or a Polars, pandas or Arrow table.
    """
    if is_table(source):
        yield from _table_records(as_polars(source))
        return
    if isinstance(source, (str, Path)):
        source = as_path(source, "trips")
        if source.suffix.lower() == ".parquet":
            yield from _parquet(source, name)
            return
        source = open_lines(source)
    if not isinstance(source, Iterable) or isinstance(source, (np.ndarray, Mapping)):
        raise not_trips(source)
    lines = _decoded(source, name)
    first, number = "", 0
    for first in lines:
        if not isinstance(first, str):
            raise not_trips(source)
        number += 1
        if first.strip("\ufeff \t\r\n"):
            break
    else:
        return
    first = first.lstrip("\ufeff")
    if first.lstrip().startswith("{"):
        yield from _json(first, lines, number, name)
    else:
        yield from _csv(first, lines, number, name)


def _csv(first: str, lines: Iterator[str], number: int, name: str) -> Iterator[Record]:
    separator = max(",;\t", key=first.count)
    reader = csv.reader(_chained(first, lines), delimiter=separator, strict=True)
    try:
        header = [cell.strip() for cell in next(reader)]
        if len(set(header)) != len(header):
            raise DataError(f"{name}:{number}: header must name each column once")
        yield number, dict.fromkeys(header)
        for row in reader:
            line = number - 1 + reader.line_num
            if not row:
                continue
            if len(row) != len(header):
                raise DataError(
                    f"{name}:{line}: row must have {len(header)} fields, got {len(row)}"
                )
            yield line, dict(zip(header, row, strict=True))
    except csv.Error:
        line = number - 1 + reader.line_num
        raise DataError(f"{name}:{line}: row must be CSV, got other text") from None


def _json(first: str, lines: Iterator[str], number: int, name: str) -> Iterator[Record]:
    for line, text in enumerate(_chained(first, lines), start=number):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise DataError(f"{name}:{line}: row must be a JSON object, got other text")
        if line == number:
            yield number, dict.fromkeys(record)
        yield line, record


def _decoded(lines: Iterable[str], name: str) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError:
        raise DataError(f"{name}: file must be UTF-8 text, got other bytes") from None


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _parquet(path: Path, name: str) -> Iterator[Record]:
    polars = require("polars", "cli")
    try:
        table = polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError, ValueError):
        raise DataError(f"{name}: file must be a readable Parquet file, got another") from None
    yield from _table_records(table)


def _table_records(table: Any) -> Iterator[Record]:
    yield 1, dict.fromkeys(table.columns)
    for number, record in enumerate(table.iter_rows(named=True), start=1):
        yield number, {key: _plain(value) for key, value in record.items()}


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def find_columns(
    name: str,
    line: int,
    header: Mapping[str, Any],
    states: States,
    columns: Mapping[str, str] | None,
    person: str | None,
) -> dict[str, str]:
    """Which column of the file is which, by our names."""
    if person is not None:
        check_name(person, "person")
    ours = ("person", "time", "state", *states.place_columns)
    found = match_columns(f"{name}:{line}", header, ours, columns)
    places = states.place_columns
    located = "state" in found or (places and all(place in found for place in places))
    wanted = ["time"] if person else ["person", "time"]
    if "state" not in found and "latitude" in found:
        halves = match_columns(f"{name}:{line}", header, ("north_south", "east_west"), None)
        _refuse_letters(f"{name}:{line}", list(halves.values()))
    missing = [column for column in wanted if column not in found]
    if not located:
        missing.append(" or ".join(["state", *([" and ".join(places)] if places else [])]))
    if missing:
        raise DataError(f"{name}:{line}: header must have the column {', '.join(missing)}")
    return found


def _letters_beside(record: Mapping[str, Any], found: Mapping[str, str]) -> list[str]:
    """The columns just behind degrees that say of which half of the Earth these are."""
    letters = {} if "state" in found else {"latitude": "NS", "longitude": "EW"}
    return [
        beside
        for degrees, beside in pairwise(record)
        for ours, two in letters.items()
        if found.get(ours) == degrees and beside not in found.values()
        if _text(record.get(beside)).upper() in tuple(two)
    ]


def _refuse_letters(place: str, columns: Sequence[str]) -> None:
    """Refuse degrees without a sign: read so, a place in the south would be one in the north."""
    if columns:
        raise DataError(
            f"{place}: header must have degrees with a sign, got letters of a half of the Earth "
            f"beside them ({', '.join(columns)}); bring the trips to the map first, by dphmm "
            f"import --map"
        )


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _place(
    name: str, line: int, record: Mapping[str, Any], found: Mapping[str, str], states: States
) -> Place:
    if "state" in found:
        state = states._numbers_of.get(_text(record.get(found["state"])))
        if state is None:
            raise DataError(f"{name}:{line}: state must be {states.label_wanted}")
        return state
    place = []
    for column in states.place_columns:
        try:
            place.append(float(_text(record.get(found[column]))))
        except ValueError:
            place.append(float("nan"))
        if not isfinite(place[-1]):
            raise DataError(f"{name}:{line}: {column} must be a finite number")
    return place
