"""Which column of somebody's file is which, by its usual names or as they say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dphmm.errors import DataError, expect

__all__ = ["ALIASES", "match_columns"]

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
    plain = {UNIT.sub("", name).strip(_MARK).lower(): name for name in reversed(names)}
    lowered = {name.replace(" ", "_"): theirs for name, theirs in plain.items()} | plain
    lowered |= {name.strip().lower(): name for name in reversed(names)}
    inner = {name.rpartition(".")[2]: theirs for name, theirs in lowered.items()} | lowered
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
        # Who it was is never guessed so: the name of a place is nobody's.
        known = lowered if ours in ("person", "state") else inner
        alias = next((a for a in ALIASES.get(ours, (ours,)) if a in known), None)
        if alias is not None:
            found[ours] = known[alias]
    return found
