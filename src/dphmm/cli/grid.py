"""`dphmm grid`: a square map around a place, and GPS files as trips on it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from dphmm.cli.common import json_option, print_json
from dphmm.errors import DataError
from dphmm.geometry.exact import as_epsilon
from dphmm.scenario.settings import Policy, Settings
from dphmm.tables import datasets
from dphmm.tables.clock import Clock
from dphmm.tables.files import write_whole
from dphmm.tables.geo import Grid, LocalPlane
from dphmm.tables.states import States

__all__ = ["command"]


@click.command("grid")
@click.argument("tracks", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--around", required=True, metavar="LAT,LON", help="The middle of the map.")
@click.option("--kilometres", default=10.0, show_default=True, type=click.FloatRange(0.1, 500))
@click.option("--cell", default=0.5, show_default=True, help="The side of a cell in kilometres.")
@click.option("--minutes", default=5, show_default=True, type=click.IntRange(1, 1440))
@click.option("--epsilon", default="1", show_default=True, help="The price of an answer.")
@click.option("--radius", default=1000, show_default=True, help="Metres that must look alike.")
@click.option("--time-zone", help="The place of times that name no zone.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="A folder.")
@json_option
def command(
    tracks: tuple[Path, ...],
    around: str,
    kilometres: float,
    cell: float,
    minutes: int,
    epsilon: str,
    radius: int,
    time_zone: str | None,
    output: Path,
    as_json: bool,
) -> int:
    r"""Make a map of square cells, a scenario, and trips from TRACKS (GPX, CSV, Parquet, folders).

    Every cell of the map is a state, whether anybody was there or not, and where the map lies
    is what you say: so cells.csv and scenario.toml tell nothing about the tracks. trips.csv is
    the tracks themselves, one row a step: private.

    \b
    Example:
      dphmm grid walks/ --around 48.137,11.575 -o munich
      dphmm learn munich/trips.csv --states munich/cells.csv --time-step "5 min" \
        --epsilon 1 --radius 1500 -o munich/model.npz
      dphmm release munich/scenario.toml munich/trips.csv -o munich/released.csv
    """
    plane = _plane(around)
    side = max(1, round(kilometres / cell))
    grid = Grid.rectangle(side, side, cell)
    latitude, longitude = plane.to_degrees(grid.centers[:, 0], grid.centers[:, 1])
    labels = tuple(f"{row}-{column}" for row, column in grid.row_col.tolist())
    states = States(labels, {"latitude": latitude.round(7), "longitude": longitude.round(7)})
    settings = Settings(
        name=output.name,
        epsilon=as_epsilon(epsilon),
        states="cells.csv",
        step=as_epsilon(10),
        policy=Policy(distance=as_epsilon(radius)),
        clock=Clock(f"{minutes} min"),
    )
    table, report = datasets.load_tracks(tracks, time_zone=time_zone)
    if "latitude" not in table.columns or not len(table):
        raise DataError("tracks must hold times with latitudes and longitudes, got none")
    if table.schema["time"].is_integer():
        raise DataError("tracks must have dates as times, got whole numbers")
    steps = datasets.resample(table, timedelta(minutes=minutes))
    output.mkdir(parents=True, exist_ok=True)
    trips = output / "trips.csv"
    states.write(output / "cells.csv")
    write_whole(output / "scenario.toml", settings.to_toml())
    write_whole(trips, steps.write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ"))
    trips.chmod(0o600)
    facts = {"cells": len(states), "steps": len(steps), "bad_rows": report.rows_bad}
    if as_json:
        print_json({"folder": str(output), **facts})
        return 0
    click.echo(f"{output}/cells.csv: {len(states)} cells of {cell:g} km")
    click.echo(f"{output}/scenario.toml: needs model.npz; make it with dphmm learn")
    click.echo(f"{trips}: {len(steps)} steps of {minutes} min; private")
    click.echo(str(report))
    return 0


def _plane(around: str) -> LocalPlane:
    try:
        latitude, longitude = map(float, around.split(","))
    except ValueError:
        raise click.UsageError(f"--around must be LAT,LON, got {around!r}") from None
    return LocalPlane(latitude, longitude)
