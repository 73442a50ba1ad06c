"""Which column of somebody's file is which, by its usual names or as they say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dphmm.errors import DataError, expect

__all__ = ["ALIASES", "NOT_WHOLE", "match_columns"]

_HALVES = ("ref", "dir", "direction", "hem", "hemi", "hemisphere", "ind", "indicator", "card",
           "cardinal", "letter", "ns", "ew", "n_s", "e_w", "n/s", "e/w")  # fmt: skip


def _letters(*names: str) -> tuple[str, ...]:
    """What a column is called that says which half of the Earth degrees are of."""
    return tuple(
        f"{name}{between}{half}" for name in names for between in "_-. " for half in _HALVES
    ) + tuple(f"{name}{half}" for name in names for half in _HALVES)


ALIASES = {
    "person": ("person", "person_id", "user", "user_id", "userid", "uid", "device", "device_id",
               "deviceid", "vehicle", "vehicle_id", "taxi", "taxi_id", "driver", "driver_id",
               "rider", "rider_id", "bike_id", "bikeid", "individual-local-identifier",
               "tag-local-identifier", "animal", "animal_id", "collar", "collar_id", "collarid",
               "mmsi", "vessel_id", "ship_id", "bus_id", "scooter_id", "participant_id",
               "subject_id", "tid", "imei", "id", "name"),
    "date": ("date", "day", "utc_date"),
    "time": ("time", "timestamp", "datetime", "date_time", "utc", "ts", "utc_time",
             "basedatetime", "base_date_time", "local_time", "recorded_at", "event_time",
             "gps_time", "tst",
             "started_at", "start_time", "starttime", "pickup_datetime", "tpep_pickup_datetime"),
    "latitude": ("latitude", "lat", "location-lat", "start_lat", "start_latitude",
                 "start_station_latitude", "pickup_latitude"),
    "longitude": ("longitude", "lon", "lng", "long", "location-long", "start_lng", "start_lon",
                  "start_longitude", "start_station_longitude", "pickup_longitude"),
    "north_south": ("north_south", "n/s", "ns", "n_s", "ns_indicator", "ns_hemisphere",
                    "hemisphere_ns", *_letters("lat", "latitude", "gpslatitude")),
    "east_west": ("east_west", "e/w", "ew", "e_w", "ew_indicator", "ew_hemisphere",
                  "hemisphere_ew", *_letters("lon", "lng", "long", "longitude", "gpslongitude")),
    "end_time": ("end_time", "ended_at", "stop_time", "stoptime", "dropoff_datetime",
                 "tpep_dropoff_datetime"),
    "end_latitude": ("end_latitude", "end_lat", "end_station_latitude", "dropoff_latitude"),
    "end_longitude": ("end_longitude", "end_lng", "end_lon", "end_station_longitude",
                      "dropoff_longitude"),
    "point": ("point", "geometry", "geom", "the_geom", "wkt"),
    "x": ("x",),
    "y": ("y",),
    "state": ("state", "label"),
}  # fmt: skip

UNIT = re.compile(r"\s*(\[[^\]]*\]|\([^)]*\))\s*$")
"""In what something is measured, behind its name."""
NOT_WHOLE = "person must be a text or a whole number, got a number with a point"
"""7 and 7.0 would be two people."""
_MARK = "# "
"""Before the first name of a header in some files."""


def match_columns(
    place: str,
    header: Iterable[str],
    wanted: Iterable[str],
    columns: Mapping[str, str | int] | None,
) -> dict[str, str]:
    """The columns that were found, by our names; `place` is where the header stands.

    A number that is no name counts the columns, from 1. A name within another, as objects of JSON
    have them, counts by its last part where nothing else does, a unit in brackets for nothing, and
    a space for what joins words.

    >>> match_columns("a.csv:1", ["User_ID", "lat"], ["person", "time", "latitude"], None)
    {'person': 'User_ID', 'latitude': 'lat'}
    >>> match_columns("b.csv:1", ["Collar", "Latitude [deg]"], ["latitude"], None)
    {'latitude': 'Latitude [deg]'}
    """
    expect({} if columns is None else columns, Mapping, "columns")
    names = list(header)
    plain = {_plain(name): name for name in reversed(names)}
    lowered = {name.replace(" ", "_"): theirs for name, theirs in plain.items()} | plain
    lowered |= {name.strip().lower(): name for name in reversed(names)}
    inner = {name.rpartition(".")[2]: theirs for name, theirs in lowered.items()} | lowered
    found: dict[str, str] = {}
    given: set[str] = set()
    for ours in sorted(wanted, key=lambda name: name not in (columns or {})):
        if columns and ours in columns:
            theirs = str(columns[ours])
            if theirs not in names and theirs.isdecimal() and 1 <= int(theirs) <= len(names):
                theirs = names[int(theirs) - 1]
            if theirs not in names:
                raise DataError(f"{place}: header must have the column {theirs!r}")
            if theirs in found.values():
                other = next(name for name, column in found.items() if column == theirs)
                raise DataError(f"{place}: {theirs!r} must be one thing, got {other} and {ours}")
            found[ours] = theirs
            given.add(theirs)
            continue
        # Who it was is never guessed so: the name of a place is nobody's.
        known = lowered if ours in ("person", "state") else inner
        alias = next((a for a in ALIASES.get(ours, (ours,)) if a in known), None)
        if alias is None or known[alias] in given:
            continue
        found[ours] = known[alias]
        same = [n for n, name in enumerate(names, 1) if _plain(name) == _plain(known[alias])]
        if len(same) > 1:
            raise DataError(
                f"{place}: header must have {known[alias]!r} once, got it {len(same)} times; say "
                f"which column it is, such as {ours}={same[0]}, by --column or columns="
            )
    return found


def _plain(name: str) -> str:
    """A name without its unit, in small letters."""
    return UNIT.sub("", name).strip(_MARK).lower()
