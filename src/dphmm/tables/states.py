"""The states of a scenario: a table with one row a state, its labels and its places."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from dphmm._types import FloatArray, IntArray
from dphmm.errors import ArgumentError, DataError, check_text, expect, expect_each
from dphmm.geometry.states import as_floats
from dphmm.tables.files import as_path, csv_text, read_text, write_whole
from dphmm.tables.geo import LocalPlane

__all__ = ["States"]

_LABELS = ("label", "state", "name", "id")
_ON_EARTH = ("latitude", "longitude")
_AXES = ("x", "y", "z", "u", "v", "w")
_FARTHEST = 1e6
"""Coordinates are cut at so many times the spread of the states, where distances still differ."""


@dataclass(frozen=True, eq=False, repr=False)
class States:
    """What is known of every state: its label, its numbers, its texts; all of it public.

    The number columns are coordinates (x and y, latitude and longitude, or anything else a
    query may ask for); the text columns are categories.

    Args:
        labels: What each state is called, all different.
        numbers: Columns of numbers, by name.
        texts: Columns of texts, by name.
        source: What messages call the table, usually the name of its file.

    >>> states = States(("cafe", "school"), {"x": np.array([0.0, 3.0]), "y": np.array([0.0, 4.0])})
    >>> states.state_of("school"), states.nearest([[2.9, 1e6]]).tolist()
    (1, [1])
    """

    labels: tuple[str, ...]
    numbers: Mapping[str, FloatArray]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = "states"

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(expect_each(self.labels, str, "labels")))
        for label in self.labels:
            check_text(label, "each of labels")
        for argument in ("numbers", "texts"):
            expect(getattr(self, argument), Mapping, argument)
            for name, column in getattr(self, argument).items():
                expect(column, Sized, check_text(name, f"each name of {argument}"))
        if not self.labels:
            raise ArgumentError("labels must name at least one state, got none")
        if len(set(self.labels)) != len(self.labels):
            raise ArgumentError("labels must name each state once, got a repeated label")
        for name, column in (*self.numbers.items(), *self.texts.items()):
            if len(column) != len(self.labels):
                raise ArgumentError(
                    f"{name} must have one value for each of {len(self.labels)} states, "
                    f"got {len(column)}"
                )
        for name, column in self.numbers.items():
            if not np.isfinite(as_floats(column, name)).all():
                raise ArgumentError(f"{name} must be finite for every state, got another value")

    @classmethod
    def at(cls, values: ArrayLike) -> States:
        """States known by their coordinates alone: x, y, z and so on.

        Args:
            values: One row of coordinates a state.

        >>> States.at([[0, 0], [3, 4]]).place_columns, tuple(States.at([1, 2, 3]).numbers)
        (('x', 'y'), ('x',))
        """
        try:
            places = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            places = np.empty(0)
        places = places[:, None] if places.ndim == 1 else places
        if places.ndim != 2 or 0 in places.shape or places.shape[1] > len(_AXES):
            raise ArgumentError(
                f"states must be a table of states, a query, or one row of coordinates a state, "
                f"got {type(values).__name__}"
            )
        numbers = {name: column.copy() for name, column in zip(_AXES, places.T, strict=False)}
        return cls(tuple(map(str, range(len(places)))), numbers)

    @classmethod
    def on_plane(
        cls,
        centers: ArrayLike,
        categories: Iterable[str] | None = None,
        labels: Iterable[str] | None = None,
    ) -> States:
        """States at places x, y, such as the centres of a grid's cells.

        Args:
            centers: A row x, y a state.
            categories: The column `category`, if there is to be one.
            labels: What each state is called; its number by default.
        """
        places = _as_rows(centers, "centers", 2)
        names: Any = map(str, range(len(places))) if labels is None else labels
        texts = {}
        if categories is not None:
            texts = {"category": tuple(expect_each(categories, str, "categories"))}
        return cls(names, {"x": places[:, 0].copy(), "y": places[:, 1].copy()}, texts)

    @classmethod
    def read(cls, path: str | Path) -> States:
        """The states of a CSV file with a header; a column of numbers is one everywhere.

        Args:
            path: The file.
        """
        return cls._parse(read_text(path), as_path(path).name)

    @classmethod
    def _parse(cls, text: str, name: str) -> States:
        """The states of the text of a file of this name."""
        first = text.partition("\n")[0]
        reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count))
        try:
            rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
        except csv.Error:
            raise DataError(f"{name}:{reader.line_num}: row must be CSV, got other text") from None
        if len(rows) < 2:
            raise DataError(f"{name}: file must have a header and at least one state, got neither")
        header = [cell.strip() for cell in rows[0][1]]
        if len(set(header)) != len(header) or not all(header):
            raise DataError(f"{name}:1: header must name each column once")
        for line, row in rows[1:]:
            if len(row) != len(header):
                raise DataError(
                    f"{name}:{line}: row must have {len(header)} fields, got {len(row)}"
                )
        columns = {
            column: [row[place].strip() for _, row in rows[1:]]
            for place, column in enumerate(header)
        }
        lines = [line for line, _ in rows[1:]]
        label = next((column for column in _LABELS if column in columns), None)
        labels = columns.pop(label) if label else [str(n) for n in range(len(lines))]
        seen: set[str] = set()
        for line, text_label in zip(lines, labels, strict=True):
            if not text_label or text_label in seen:
                raise DataError(f"{name}:{line}: {label} must be a new name, got {text_label!r}")
            seen.add(text_label)
        numbers = {}
        for column, cells in list(columns.items()):
            values = _numbers(cells, lines, name, column)
            if values is not None:
                numbers[column] = values
                del columns[column]
        texts = {column: tuple(cells) for column, cells in columns.items()}
        return cls(tuple(labels), numbers, texts, name)

    def read_edges(self, path: str | Path) -> tuple[tuple[str, str], ...]:
        """The pairs of labels of a CSV file with a header of two columns.

        Args:
            path: The file.
        """
        name = as_path(path).name
        rows = list(csv.reader(io.StringIO(read_text(path))))
        edges = []
        for line, row in enumerate(rows[1:], start=2):
            if not row:
                continue
            pair = tuple(cell.strip() for cell in row)
            if len(pair) != 2 or not all(label in self._numbers_of for label in pair):
                raise DataError(f"{name}:{line}: row must be two labels of {self.source}")
            edges.append((pair[0], pair[1]))
        return tuple(edges)

    def write(self, path: str | Path) -> None:
        """The table as a CSV file that `read` reads back.

        Args:
            path: The file.
        """
        write_whole(path, self.to_csv())

    def to_csv(self) -> str:
        """The text of that file."""
        values = [[repr(float(value)) for value in column] for column in self.numbers.values()]
        rows = zip(self.labels, *values, *self.texts.values(), strict=True)
        return csv_text([("label", *self.numbers, *self.texts), *rows])

    def __repr__(self) -> str:
        columns = ", ".join((*self.numbers, *self.texts))
        return f"States({len(self.labels)} states, columns {columns})"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def place_columns(self) -> tuple[str, ...]:
        """The columns by which a place is found: x and y, or latitude and longitude, if any."""
        pairs = (("x", "y"), _ON_EARTH)
        return next((pair for pair in pairs if all(name in self.numbers for name in pair)), ())

    @cached_property
    def plane(self) -> LocalPlane | None:
        """The plane around the states, if their places are latitudes and longitudes."""
        if self.place_columns != _ON_EARTH:
            return None
        return LocalPlane.around(*(self.numbers[name] for name in _ON_EARTH))

    def _center(self, columns: Sequence[str]) -> str:
        """The centre from which metres are degrees; empty where columns are other numbers."""
        if self.plane is None or tuple(columns) != _ON_EARTH:
            return ""
        return f"{float(self.plane.latitude)!r} {float(self.plane.longitude)!r}"

    def values(self, columns: Sequence[str]) -> FloatArray:
        """One row a state of some columns; latitude and longitude are metres on the plane.

        Args:
            columns: The names of columns of numbers.
        """
        columns = expect_each(columns, str, "columns")
        unknown = [name for name in columns if name not in self.numbers]
        if unknown or not columns:
            got = repr(unknown[0]) if unknown else "none"
            raise ArgumentError(f"columns must be columns of numbers of the states, got {got}")
        if self.plane is not None and tuple(columns) == _ON_EARTH:
            return np.stack(self.plane.to_plane(*(self.numbers[n] for n in _ON_EARTH)), axis=-1)
        return np.stack([self.numbers[name] for name in columns], axis=-1)

    def in_degrees(self, columns: Sequence[str], values: ArrayLike) -> FloatArray:
        """Rows of `values` as people read them: metres on the plane become degrees.

        A row without numbers, as of a step at which nothing was said, stays one.

        Args:
            columns: What the rows are about; only places on Earth are changed.
            values: The rows.
        """
        rows = _as_rows(values, "values")
        if self.plane is None or tuple(columns) != _ON_EARTH:
            return rows
        degrees, said = np.full_like(rows, np.nan), ~np.isnan(rows).any(axis=1)
        degrees[said] = np.stack(self.plane.to_degrees(*rows[said].T), axis=-1).round(7)
        return degrees

    def in_metres(self, columns: Sequence[str], places: ArrayLike) -> FloatArray:
        """Rows as people read them as rows of `values`, the reverse of `in_degrees`.

        Args:
            columns: What the rows are about; only places on Earth are changed.
            places: The rows.
        """
        rows = _as_rows(places, "places")
        if self.plane is None or tuple(columns) != _ON_EARTH:
            return rows
        return np.stack(self.plane.to_plane(rows[:, 0], rows[:, 1]), axis=-1)

    @cached_property
    def _numbers_of(self) -> dict[str, int]:
        return {label: state for state, label in enumerate(self.labels)}

    def state_of(self, place: str | ArrayLike) -> int:
        """The state of a place; a message does not say which it was.

        Args:
            place: A label, or finite coordinates, which belong to the nearest state.
        """
        if not isinstance(place, str):
            found = self.nearest(place)
            if len(found) != 1:
                raise ArgumentError("place must be a label or the two coordinates of one place")
            return int(found[0])
        state = self._numbers_of.get(place)
        if state is None:
            raise DataError(f"state must be {self.label_wanted}")
        return state

    @cached_property
    def label_wanted(self) -> str:
        """What a state must be, in words for a message."""
        if any(label != str(number) for number, label in enumerate(self.labels)):
            return f"a label of {self.source}"
        return (
            f"a label of {self.source}, whose states are 0, 1, 2 and so on; a column "
            f"{', '.join(_LABELS[:-1])} or {_LABELS[-1]} names them otherwise"
        )

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.values(self.place_columns))

    def nearest(self, places: ArrayLike) -> IntArray:
        """For each place the nearest state; any finite place has one.

        Args:
            places: A row a place, in the order of `place_columns`.
        """
        if not self.place_columns:
            raise ArgumentError("states must have x and y or latitude and longitude for places")
        points = _as_rows(places, "places", 2)
        if not np.isfinite(points).all():
            raise DataError("places must be finite numbers")
        if self.plane is not None:
            points = np.stack(self.plane.to_plane(points[:, 0], points[:, 1]), axis=-1)
        least, most = self._tree.mins, self._tree.maxes
        reach = _FARTHEST * max(float((most - least).max()), 1.0)
        points = np.clip(points, least - reach, most + reach)
        return np.asarray(self._tree.query(points)[1], dtype=np.int64)


def _numbers(cells: list[str], lines: list[int], name: str, column: str) -> FloatArray | None:
    """The numbers of a column, or None for a column of texts."""
    values = [_number(cell) for cell in cells]
    if column not in ("x", "y", *_ON_EARTH) and None in values:
        return None
    for line, value in zip(lines, values, strict=True):
        if value is None or not np.isfinite(value):
            raise DataError(f"{name}:{line}: {column} must be a finite number")
    return np.array(values, dtype=np.float64)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _as_rows(values: ArrayLike, argument: str, size: int = 0) -> FloatArray:
    """Rows of so many numbers; no message shows them, since somebody may be there."""
    try:
        rows = np.asarray(values, dtype=np.float64)
        if rows.ndim <= 2:
            return rows.reshape(-1, size) if size else np.atleast_2d(rows)
    except (TypeError, ValueError, OverflowError):
        pass
    what = "two coordinates" if size == 2 else "numbers"
    raise ArgumentError(f"{argument} must be rows of {what}")
