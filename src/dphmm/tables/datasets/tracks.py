"""Tracks: one table shape, its resampling, its states, and its trips.

A table of tracks is a polars frame with `person` (string), `time` (UTC datetime, or integer)
and where they were: `latitude` and `longitude`, `x` and `y` in metres, or `state`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._types import IntArray
from dphmm.errors import ArgumentError, DataError, require
from dphmm.geometry.exact import seconds
from dphmm.tables.frames import as_polars, like
from dphmm.tables.geo import Grid, LocalPlane

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Trip", "cut_trips", "resample", "split_trips", "to_states"]


@dataclass(frozen=True, eq=False)
class Trip:
    """One person's states at some times, in order; what a chain is learned from.

    Times are the table's integers, or whole seconds since 1970 where it has datetimes.
    """

    person: str
    times: IntArray = field(repr=False)
    states: IntArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def start(self) -> int:
        """The time of the first state."""
        return int(self.times[0])


def resample(table: Any, step: timedelta | int | str) -> Any:
    """The first row of every person in every step of the clock, its time that of the step.

    Steps without a row stay without one: nothing is made up. `step` is a timedelta or a text
    like "5 min" for datetimes, and an integer for integer times. The table, here and below, is
    one of Polars, pandas, GeoPandas or Arrow, and comes back as what it was.

    >>> import polars
    >>> table = polars.DataFrame({"person": ["a"] * 3, "time": [0, 3, 21], "state": [7, 8, 9]})
    >>> resample(table, 5).rows()
    [('a', 0, 7), ('a', 20, 9)]
    """
    polars = require("polars", "geo")
    tracks = _checked(table)
    time = polars.col("time")
    size = polars.lit(_length(tracks, step, "step"), dtype=polars.Int64)
    if _has_dates(tracks):
        micros = time.dt.epoch("us")
        # An integer becomes a date in the unit of its column, so it is first one in microseconds.
        exact = (micros - micros % size).cast(polars.Datetime("us", "UTC"))
        floored = exact.cast(tracks.schema["time"])
    else:
        floored = time - time % size
    steps = (
        tracks.sort("person", "time", maintain_order=True)
        .with_columns(floored.alias("time"))
        .unique(["person", "time"], keep="first", maintain_order=True)
    )
    return like(steps, table)


def to_states(table: Any, grid: Grid, plane: LocalPlane | None = None) -> Any:
    """The table with `state`, the nearest state of the grid, in place of the coordinates.

    A table of latitudes and longitudes needs the plane; one of x and y does not.
    """
    polars = require("polars", "geo")
    given, table = table, as_polars(table)
    if "x" in table.columns:
        x, y = table["x"].to_numpy(), table["y"].to_numpy()
    elif plane is None:
        raise ArgumentError("plane must be given for a table of latitudes and longitudes, got None")
    else:
        x, y = plane.to_plane(table["latitude"].to_numpy(), table["longitude"].to_numpy())
    states = polars.Series("state", grid.state_of(x, y))
    where = [name for name in ("latitude", "longitude", "x", "y") if name in table.columns]
    return like(table.drop(where).with_columns(states), given)


def split_trips(table: Any, *, max_gap: timedelta | int | str, min_length: int = 2) -> list[Trip]:
    """Every person's states, split where the time to the next row exceeds `max_gap`.

    So a gap of at most `max_gap` counts as one step, and longer ones end the trip. Trips of
    fewer than `min_length` states are left out. Rows at one time are an error: resample first.

    >>> import polars
    >>> table = polars.DataFrame({"person": ["a"] * 4, "time": [0, 1, 3, 9], "state": [5, 6, 7, 8]})
    >>> [trip.states.tolist() for trip in split_trips(table, max_gap=2)]
    [[5, 6, 7]]
    >>> [trip.states.tolist() for trip in split_trips(table, max_gap=1, min_length=1)]
    [[5, 6], [7], [8]]
    """
    table = _checked(table)
    if "state" not in table.columns:
        raise ArgumentError(f"table must have a column 'state', got {table.columns}")
    if min_length < 1:
        raise ArgumentError(f"min_length must be at least 1, got {min_length!r}")
    if len(table) == 0:
        return []
    table = table.sort("person", "time", maintain_order=True)
    gap = _length(table, max_gap, "max_gap")
    times = (table["time"].dt.epoch("us") if _has_dates(table) else table["time"]).to_numpy()
    times = times.astype(np.int64)
    people = table["person"]
    new_person = (people != people.shift(1)).fill_null(True).to_numpy()
    waits = np.diff(times, prepend=times[0] - 1)
    if np.any((waits <= 0) & ~new_person):
        raise DataError("table must have one row for a person at a time; resample it first")
    starts = np.flatnonzero(new_person | (waits > gap))
    ends = np.append(starts[1:], len(times))
    long = ends - starts >= min_length
    states = table["state"].to_numpy().astype(np.int64)
    seconds = times // 1_000_000 if _has_dates(table) else times
    names = people.gather(starts[long]).to_list()
    return [
        Trip(name, seconds[a:b], states[a:b])
        for name, a, b in zip(names, starts[long], ends[long], strict=True)
    ]


def cut_trips(trips: list[Trip], length: int) -> list[Trip]:
    """Trips of exactly `length` states, cut one after the other; what is left over is not used.

    >>> trip = Trip("a", np.arange(5), np.arange(5))
    >>> [part.states.tolist() for part in cut_trips([trip], 2)]
    [[0, 1], [2, 3]]
    """
    if length < 1:
        raise ArgumentError(f"length must be at least 1, got {length!r}")
    return [
        Trip(trip.person, trip.times[a : a + length], trip.states[a : a + length])
        for trip in trips
        for a in range(0, len(trip) - length + 1, length)
    ]


def _checked(given: Any) -> pl.DataFrame:
    """A table for Polars that has people and times."""
    table: pl.DataFrame = as_polars(given)
    missing = [name for name in ("person", "time") if name not in table.columns]
    if missing:
        raise ArgumentError(f"table must have the columns person and time, got {table.columns}")
    if not (_has_dates(table) or table.schema["time"].is_integer()):
        raise ArgumentError(
            f"time must be UTC datetimes or integers, got a column of {table.schema['time']}"
        )
    return table


def _has_dates(table: pl.DataFrame) -> bool:
    kind: Any = table.schema["time"]
    return bool(kind.is_temporal() and getattr(kind, "time_zone", None) == "UTC")


def _length(table: pl.DataFrame, given: timedelta | int | str, argument: str) -> int:
    """A length of time in the table's own integers, or in microseconds where it has dates."""
    if not _has_dates(table):
        if isinstance(given, (timedelta, str)) or given <= 0:
            raise ArgumentError(
                f"{argument} must be a positive integer for integer times, got {given!r}"
            )
        return int(given)
    if isinstance(given, str):
        given = timedelta(seconds=seconds(given, argument))
    if not isinstance(given, timedelta) or given <= timedelta(0):
        raise ArgumentError(
            f"{argument} must be a positive timedelta or like '5 min' for dates, got {given!r}"
        )
    return round(given.total_seconds() * 1_000_000)
