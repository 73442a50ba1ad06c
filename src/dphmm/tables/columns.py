"""Which column of somebody's file is which, by its usual names or as they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dphmm.errors import DataError, expect

__all__ = ["ALIASES", "match_columns"]

ALIASES = {
    "person": ("person", "user", "user_id", "userid", "uid", "id", "name", "device"),
    "time": ("time", "timestamp", "datetime", "date_time", "utc"),
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng", "long"),
    "x": ("x",),
    "y": ("y",),
    "state": ("state", "label"),
}


def match_columns(
    place: str, header: Iterable[str], wanted: Iterable[str], columns: Mapping[str, str] | None
) -> dict[str, str]:
    """The columns that were found, by our names; `place` is where the header stands.

    >>> match_columns("a.csv:1", ["User_ID", "lat"], ["person", "time", "latitude"], None)
    {'person': 'User_ID', 'latitude': 'lat'}
    """
    expect(columns or {}, Mapping, "columns")
    names = list(header)
    lowered = {name.strip().lower(): name for name in reversed(names)}
    found = {}
    for ours in wanted:
        if columns and ours in columns:
            if columns[ours] not in names:
                raise DataError(f"{place}: header must have the column {columns[ours]!r}")
            found[ours] = columns[ours]
            continue
        theirs = next((lowered[a] for a in ALIASES.get(ours, (ours,)) if a in lowered), None)
        if theirs is not None:
            found[ours] = theirs
    return found
