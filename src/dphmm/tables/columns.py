"""Which column of somebody's file is which, by its usual names or as they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dphmm.errors import DataError, expect

__all__ = ["ALIASES", "match_columns"]

ALIASES = {
    "person": ("person", "user", "user_id", "userid", "uid", "id", "name", "device"),
    "date": ("date", "day"),
    "time": ("time", "timestamp", "datetime", "date_time", "utc", "ts"),
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng", "long"),
    "x": ("x",),
    "y": ("y",),
    "state": ("state", "label"),
}


def match_columns(
    place: str,
    header: Iterable[str],
    wanted: Iterable[str],
    columns: Mapping[str, str | int] | None,
) -> dict[str, str]:
    """The columns that were found, by our names; `place` is where the header stands.

    A number that is no name counts the columns, from 1.

    >>> match_columns("a.csv:1", ["User_ID", "lat"], ["person", "time", "latitude"], None)
    {'person': 'User_ID', 'latitude': 'lat'}
    """
    expect({} if columns is None else columns, Mapping, "columns")
    names = list(header)
    lowered = {name.strip().lower(): name for name in reversed(names)}
    found = {}
    for ours in wanted:
        if columns and ours in columns:
            theirs = str(columns[ours])
            if theirs not in names and theirs.isdecimal() and 1 <= int(theirs) <= len(names):
                theirs = names[int(theirs) - 1]
            if theirs not in names:
                raise DataError(f"{place}: header must have the column {theirs!r}")
            found[ours] = theirs
            continue
        alias = next((a for a in ALIASES.get(ours, (ours,)) if a in lowered), None)
        if alias is not None:
            found[ours] = lowered[alias]
    return found
