"""Who is evaluated and who is locked, which ids are one person, and their trips on a map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from dphmm.errors import require
from dphmm.evaluate.protocol import locked_people, protocol
from dphmm.tables import datasets
from dphmm.tables.datasets import Trip
from dphmm.tables.geo import Grid, LocalPlane

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Divided",
    "divide",
    "find_twins",
    "find_twins_of_geolife",
    "join_copies",
    "make_grid",
    "make_trips",
]


@dataclass(frozen=True, eq=False)
class Divided:
    """The rows of open people, of locked ones if they may be read, and who is whose twin."""

    rows: pl.DataFrame
    locked: pl.DataFrame | None
    person: Mapping[str, str]


def divide(table: pl.DataFrame, person: Mapping[str, str], final: bool) -> Divided:
    """Take the locked people out, before map and chains are made."""
    polars = require("polars", "geo")
    hidden = locked_people(set(person.values()))
    ids = [name for name, one in person.items() if one in hidden]
    away = polars.col("person").is_in(ids)
    return Divided(table.filter(~away), table.filter(away) if final else None, person)


@lru_cache(maxsize=1)
def find_twins_of_geolife(path: Path) -> dict[str, str]:
    """For every id of GeoLife the first that is the same person, by the fixes of each minute.

    Everybody's fixes are compared here, also those of locked people: only who is whom is kept.
    """
    table, _ = datasets.load_geolife(path)
    person = find_twins(table, timedelta(minutes=1), protocol()["geolife"]["cell_km"])
    return join_copies(table, person, protocol()["people"]["copied"])


def join_copies(table: pl.DataFrame, person: Mapping[str, str], least: int) -> dict[str, str]:
    """People of whom so many fixes are the same to the second and in every digit, as one person.

    Two people who travel together share cells, never fixes: such a track was handed in twice, by
    however short a part of it one can tell.

    Args:
        table: The fixes as they were logged.
        person: For every id the first of those that are known to be one person.
        least: How many shared fixes make a copy.
    """
    polars = require("polars", "geo")
    place = polars.struct("latitude", "longitude").rank("dense").cast(polars.Int64)
    fixes = table.select("person", polars.col("time").dt.epoch("us"), place.alias("place"))
    trips = [
        Trip(person[str(name)], rows["time"].to_numpy(), rows["place"].to_numpy())
        for (name,), rows in fixes.sort("person", "time").group_by("person", maintain_order=True)
    ]
    again = datasets.same_person(trips, least)
    return {name: again[one] for name, one in person.items()}


def find_twins(table: pl.DataFrame, step: timedelta, cell: float) -> dict[str, str]:
    """For every id the first that is the same person, by cells of so many kilometres."""
    grid, plane = make_grid(datasets.resample(table, step), cell)
    return datasets.same_person(make_trips(table, step, timedelta(days=36500), grid, plane, {}, 1))


def make_grid(table: pl.DataFrame, cell: float) -> tuple[Grid, LocalPlane]:
    """The cells that somebody visited, and the plane they lie in."""
    plane = LocalPlane.around(table["latitude"].to_numpy(), table["longitude"].to_numpy())
    return Grid.from_points(*plane.to_plane(table["latitude"], table["longitude"]), cell), plane


def make_trips(
    table: pl.DataFrame, step: timedelta, gap: timedelta, grid: Grid, plane: LocalPlane,
    person: Mapping[str, str], least: int = 2,
) -> list[Trip]:  # fmt: skip
    """The trips of people; ids that are one person bear the first one's name."""
    states = datasets.to_states(datasets.resample(table, step), grid, plane)
    trips = datasets.split_trips(states, max_gap=gap, min_length=least)
    return [replace(trip, person=person.get(trip.person, trip.person)) for trip in trips]
