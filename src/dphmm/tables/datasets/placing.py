"""Tracks on a map: one row a step with its state, and what was lost on the way there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import DataError, expect_one_of, require
from dphmm.geometry.exact import seconds
from dphmm.tables.clock import Clock
from dphmm.tables.datasets.degrees import METRES
from dphmm.tables.datasets.tracks import resample
from dphmm.tables.frames import as_polars
from dphmm.tables.maps import Map
from dphmm.tables.units import measure

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Placed", "place_trips"]


FAR = 1000.0
"""Metres that nobody goes within a moment."""
SPLIT = "have one person in two places, more than 1 km apart: is it the right column of people?"
AGAIN = "outside the map are at one and the same point; if it stands for no fix, --outside drop"
OFTEN = 5
"""Fixes at the very same point outside the map, from which on somebody may have written it."""


@dataclass(frozen=True)
class Placed:
    """Trips on a map and how they got there: for their owner, as the trips are."""

    table: pl.DataFrame = field(repr=False)
    """A row for each step: person, time, state (a label), and the coordinates of its first fix."""
    fixes: int
    outside: int
    """Fixes in no state's outline."""
    half_within: float
    """Metres from the nearest state within which half of the fixes outside are."""
    all_within: float
    people: int
    moves: int
    """Steps that follow the one before."""
    gaps: int
    """Steps that follow after a gap: no move."""
    split: int = 0
    """Moments at which somebody is in two places, far apart."""
    again: int = 0
    """Fixes outside that are at the point where most of these are, to the last digit."""

    def __str__(self) -> str:
        half, most = measure(self.half_within, "m"), measure(self.all_within, "m")
        far = f"; half of them within {half} of a state, all within {most}" if self.outside else ""
        share = self.outside / self.fixes
        told = "under 0.1%" if 0 < share < 0.0005 else f"{share:.1%}"
        return (
            f"{self.fixes} fixes, {self.outside} outside the map ({told}{far})\n"
            f"{len(self.table)} steps of {self.people} people, {self.moves} moves, "
            f"{self.gaps} lost to gaps"
        )


def place_trips(
    tracks: Any,
    town: Map,
    clock: Clock,
    *,
    outside: Literal["keep", "drop"] = "keep",
    gaps: Literal["refuse", "allow"] = "refuse",
) -> Placed:
    """The tracks as trips on a map, in steps of a clock.

    A fix outside the map goes to the nearest state, or is left out. Leave it out of what a model
    is learned from; in trips that are released, a step that is left out tells that the person
    was away. Tracks that lie mostly outside are refused, and so are those with mostly gaps.
    """
    expect_one_of(outside, ("keep", "drop"), "outside")
    expect_one_of(gaps, ("refuse", "allow"), "gaps")
    polars = require("polars", "geo")
    table, places = as_polars(tracks), list(town.states.place_columns)
    if not places or any(name not in table.columns for name in places) or not len(table):
        wanted = " and ".join(places) or "x and y"
        got = f"x and y; {METRES}" if "x" in table.columns and "latitude" in places else "none"
        raise DataError(f"tracks must hold times with {wanted}, as the map has, got {got}")
    if clock.has_dates != table.schema["time"].is_temporal():
        got = "dates"
        if clock.has_dates:
            got = "whole numbers; say how they are written (--time unix, or like '%Y%m%d')"
        raise DataError(f"tracks must have times for steps of {clock.step!r}, got {got}")
    fixes = len(table)
    coordinates = table.select(places).to_numpy()
    states, away, distance = town.locate(coordinates)
    far = distance[away]
    if outside == "drop":
        table, states = table.filter(polars.Series(~away)), states[~away]
    if not len(table) or (outside == "keep" and 2 * len(far) > fixes):
        way_out = "take another map, or leave out what is outside (--outside drop)"
        if _seem_exchanged(coordinates, places, town):
            way_out = f"{places[0]} and {places[1]} seem exchanged: say which column is which, by "
            way_out += "--column or columns=, or make the map around the other place"
        raise DataError(
            f"tracks must lie on the map, got {len(far)} of {fixes} fixes outside; {way_out}"
        )
    labels = polars.Series(town.states.labels, dtype=polars.String).gather(states)
    steps = resample(table.with_columns(labels.alias("state")), clock.step)
    moves, lost = _moves(steps, clock)
    if gaps == "refuse" and not moves + lost and len(table) > 1:
        people = "1 person with one" if len(steps) == 1 else f"{len(steps)} people with one each"
        raise DataError(
            f"tracks must have several steps of somebody, got {people}; "
            f"say which column tells people apart, or allow gaps (--gaps allow)"
        )
    if gaps == "refuse" and lost > moves:
        raise DataError(
            f"tracks must have steps that follow each other, got {lost} of {lost + moves} after a "
            f"gap{_usual_wait(table)}; take a longer step than {clock.step!r}, or allow gaps "
            f"(--gaps allow)"
        )
    return Placed(
        table=steps.select("person", "time", "state", *places),
        fixes=fixes,
        outside=len(far),
        half_within=_quantile(far, 0.5),
        all_within=_quantile(far, 1.0),
        people=steps["person"].n_unique(),
        moves=moves,
        gaps=lost,
        split=_count_split(table, town),
        again=_count_again(coordinates[away]),
    )


def _seem_exchanged(coordinates: FloatArray, places: list[str], town: Map) -> bool:
    """Whether most fixes would lie on the map with their two coordinates exchanged."""
    if len(places) != 2:
        return False
    other = coordinates[:, ::-1]
    if "latitude" in places and np.abs(other[:, places.index("latitude")]).max() > 90:
        return False
    _, away, _ = town.locate(np.ascontiguousarray(other))
    return bool(2 * away.sum() <= len(away))


def _moves(steps: pl.DataFrame, clock: Clock) -> tuple[int, int]:
    """How many steps follow the one before, and how many come after a gap."""
    step = (
        timedelta(seconds=seconds(clock.step, "step"))
        if isinstance(clock.step, str)
        else clock.step
    )
    same = steps["person"] == steps["person"].shift(1)
    next_to = int((same & (steps["time"].diff() == step)).sum())
    return next_to, int(same.sum()) - next_to


def _usual_wait(table: pl.DataFrame) -> str:
    """What to say of how far apart fixes are."""
    same = table["person"] == table["person"].shift(1)
    usual: Any = table["time"].diff().filter(same).median()
    if isinstance(usual, timedelta):
        usual = f"{usual.total_seconds():,.0f} s"
    return "" if usual is None else f", since half of the fixes come {usual} after another or later"


def _count_split(table: pl.DataFrame, town: Map) -> int:
    """How many moments somebody has with two fixes farther apart than anybody goes at once."""
    polars = require("polars", "geo")
    columns = list(town.states.place_columns)
    twice = table.filter(polars.struct("person", "time").is_duplicated())
    metres = town.states.in_metres(columns, twice.select(columns).to_numpy())
    spread = (
        twice.select("person", "time")
        .with_columns(polars.Series("x", metres[:, 0]), polars.Series("y", metres[:, -1]))
        .group_by("person", "time")
        .agg((polars.col(name).max() - polars.col(name).min()).alias(name) for name in ("x", "y"))
    )
    return int((spread["x"].pow(2) + spread["y"].pow(2) > FAR**2).sum())


def _count_again(outside: FloatArray) -> int:
    """How many fixes are where most of them are, if they are there so often."""
    _, times = np.unique(outside, axis=0, return_counts=True)
    most = int(times.max(initial=0))
    return most if most >= OFTEN else 0


def _quantile(far: FloatArray, share: float) -> float:
    return float(np.quantile(far, share)) if len(far) else 0.0
