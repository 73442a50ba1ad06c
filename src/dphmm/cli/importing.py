"""`dphmm import`: tracks of any kind as trips on a new map, or on one that is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from dphmm.cli.common import (
    column_option,
    columns_from,
    is_quiet,
    json_option,
    note,
    print_json,
    progress_bar,
    say,
)
from dphmm.cli.mapping import TOML, NewMap, given_options, map_options
from dphmm.errors import DataError
from dphmm.geometry.exact import as_text
from dphmm.scenario.affording import need_of
from dphmm.scenario.settings import Settings
from dphmm.tables import datasets
from dphmm.tables.columns import ALIASES
from dphmm.tables.files import check_new, write_whole
from dphmm.tables.maps import Map

__all__ = ["command"]

LISTED = 5
"""Bad rows named by their place; all are counted."""
SHOWN = 3
TRIPS = "trips.csv"


@click.command("import")
@click.argument("tracks", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path),
              help="A folder for the new map; with --map the file of trips.")  # fmt: skip
@click.option("--map", "old", metavar="FOLDER", type=click.Path(path_type=Path),
              help="Bring the trips to this map, or the map of this scenario.")  # fmt: skip
@column_option
@click.option("--time", metavar="FORM",
              help="unix, unix-ms, unix-us, unix-ns, iso, or like '%d/%m/%Y %H:%M'.")  # fmt: skip
@click.option("--zone", help="The place of times that name no zone, such as Europe/Berlin.")
@click.option("--person", help="Whose rows they are, if no column says so.")
@click.option("--owner", type=click.Choice(["file", "folder"]),
              help="What tells people apart where no column does; by default the file, unless a "
              "file looks like several people's.")  # fmt: skip
@click.option("--outside", type=click.Choice(["keep", "drop"]), default="keep", show_default=True,
              help="What lies outside the map goes to the nearest state, or nowhere.")  # fmt: skip
@click.option("--gaps", type=click.Choice(["refuse", "allow"]), default="refuse",
              show_default=True, help="What to do if most steps come after a gap.")  # fmt: skip
@map_options
@json_option
def command(
    tracks: tuple[str, ...],
    output: Path,
    old: Path | None,
    column_names: tuple[str, ...],
    time: str | None,
    zone: str | None,
    person: str | None,
    owner: Any,
    outside: Any,
    gaps: Any,
    as_json: bool,
    **options: Any,
) -> int:
    r"""Bring TRACKS to a map: files, folders, "patterns" and zip archives, also gzipped.

    They are CSV, TSV or other text (with a header or without), JSON lines, JSON, GeoJSON, GPX,
    PLT or Parquet. What their columns mean is found from their names, or from their values; say
    it with --column, by name or by number, where it is not. What was taken for what is printed,
    on a terminal with the first rows.

    A new map lies where you say (--around, --places, --roads), so that map and scenario tell
    nothing about the tracks. With --map other people's trips come to a map that is there, in the
    same way. The trips are the tracks themselves, one row a step: private, closed to others.

    A step outside the map goes to the nearest state. Leave such steps out (--outside drop) of
    what a model is learned from; in trips to release a missing step tells that somebody was away.

    \b
    Example:
      dphmm import cabs/ --around 37.77,-122.42 --kilometres 26 -o town
      dphmm import others.zip --map town -o town/people.csv
      dphmm import log.txt --column latitude=1 --column longitude=2 --column time=4 \
        --time unix --around 37.77,-122.42 -o town
      dphmm import "walks/*.gpx" --owner folder --places districts.geojson -o town
    """
    new = None
    if old is None:
        new = NewMap(output, zone, **options)
        town, settings, toml, trips = new.town, new.settings, output / TOML, output / TRIPS
    else:
        town, settings, toml = _old_map(old, options)
        trips = output
        if trips.is_dir():
            raise DataError(f"{trips}: output must be a file of trips with --map, got a folder")
    clock = settings.clock
    table, report = _load(
        tracks,
        columns=columns_from(column_names, tuple(ALIASES)),
        time=time,
        time_zone=zone or clock.zone,
        person=person,
        owner=owner,
    )
    if not as_json:
        _say_taken(table, report)
    for doubt, files in report.doubts.items():
        note(f"{files} files: {doubt}")
    if report.rows_bad and not report.rows_kept:
        raise DataError(
            f"tracks must hold good rows, got {report.rows_bad} bad ones, {_mostly(report)}; "
            f"--time says how times are written, such as '%d/%m/%Y %H:%M', and --column which "
            f"column is which"
        )
    placed = datasets.place_trips(table, town, clock, outside=outside, gaps=gaps)
    text = placed.table.write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ")
    if not options["replace"]:
        try:
            check_new({trips: text})
        except DataError as fault:
            raise DataError(f"{fault} (--replace)") from None
    if new is not None:
        new.write()
        new.warn()
    write_whole(trips, text, private=True)
    _note_limit(placed, settings, f"{toml}" if new is None else f"{toml} (or --limit)")
    if (report.rows_bad or report.damaged) and (as_json or is_quiet()):
        note(
            f"{report.rows_bad} of {report.rows_read} rows were not kept and "
            f"{len(report.damaged)} files are damaged: {_mostly(report)}"
        )
    if placed.split:
        note(f"{placed.split} moments {datasets.placing.SPLIT}")
    if placed.again and outside == "keep":
        note(f"{placed.again} fixes {datasets.placing.AGAIN}")
    if as_json:
        facts = {name: value for name, value in vars(placed).items() if name != "table"}
        facts |= {"steps": len(placed.table), "bad_rows": report.rows_bad, "taken": report.taken}
        facts["damaged_files"] = len(report.damaged)
        print_json({"trips": str(trips), "cells": len(town.states), **facts})
        return 0
    say(str(placed))
    if new is not None:
        new.say()
    say(f"{trips}: {len(placed.table)} steps of {clock.step}; private")
    if new is not None:
        say(f"next: dphmm learn {trips} --scenario {output / TOML}")
    return 0


def _mostly(report: datasets.LoadReport) -> str:
    """The fault that most rows have, or the first damaged file."""
    if not report.problems:
        return str(report.damaged[0])
    return f"mostly: {max(report.problems, key=lambda name: report.problems[name])}"


def _old_map(old: Path, options: dict[str, Any]) -> tuple[Map, Settings, Path]:
    if given := given_options(name for name in options if name != "replace"):
        raise click.UsageError(f"--map must stand without --{given[0]}: the map has its own")
    toml = old / TOML if old.is_dir() else old
    settings = Settings.read(toml)
    return Map.read(toml.parent / settings.states), settings, toml


def _note_limit(placed: datasets.Placed, settings: Settings, where: str) -> None:
    """Say now what a release would refuse, and how to allow it; nothing allows it by itself."""
    steps, clock = placed.table, settings.clock
    people = steps["person"].rle_id().to_numpy().astype(np.int64)
    times = steps["time"].dt.epoch("us") if clock.has_dates else steps["time"]
    size = clock.seconds * 1_000_000 if clock.has_dates else int(clock.step)
    need = need_of(settings, people, times.to_numpy().astype(np.int64) // size)
    if need is not None:
        note(
            f"these trips can be learned from, but not released: {need}; "
            f'limit = "{need.day}" in {where} allows every day as much, and all days together '
            f"then tell up to {as_text(need.cost)}"
        )


def _load(tracks: tuple[str, ...], **options: Any) -> datasets.Loaded:
    with progress_bar(total=100, what="reading") as update:
        done = 0

        def show(now: int, total: int) -> None:
            nonlocal done
            share = 100 * now // max(total, 1)
            update(share - done)
            done = share

        return datasets.load_tracks(tracks, listed=LISTED, progress=show, **options)


def _say_taken(table: Any, report: datasets.LoadReport) -> None:
    for taken, files in report.taken.items():
        say(f"{files} files: {taken}")
    if sys.stderr.isatty() and not is_quiet():
        # Where somebody was: on the screen of whoever owns the tracks, and in no log.
        for row in table.head(SHOWN).iter_rows():
            click.echo("  " + "  ".join(str(cell) for cell in row), err=True)
    say(str(report))
