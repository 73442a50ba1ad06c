"""A new map and its scenario: the options that `dphmm grid` and `dphmm import` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from dphmm.chain.ground import Ground
from dphmm.cli.common import note, say
from dphmm.cost.limit import Limit
from dphmm.errors import DataError
from dphmm.geometry.exact import as_epsilon, as_text
from dphmm.scenario.affording import day_of
from dphmm.scenario.settings import Policy, Settings
from dphmm.tables.clock import Clock
from dphmm.tables.files import check_new, csv_text, write_whole
from dphmm.tables.maps import Map
from dphmm.tables.units import lattice_step, length, measure

__all__ = ["STATES", "TOML", "NewMap", "map_options"]

TOML, STATES, MOVES = "scenario.toml", "cells.csv", "moves.csv"

_OPTIONS = (
    click.option("--around", metavar="LAT,LON", help="The middle of a map of cells."),
    click.option("--kilometres", default="10", show_default=True, help="The side of the map."),
    click.option("--cell", default="0.5", show_default=True, help="A square's side; 0.5 is km."),
    click.option("--h3", type=click.IntRange(0, 15), help="H3 cells of this resolution instead."),
    click.option("--places", metavar="FILE", help="Points or polygons: GeoJSON, or CSV."),
    click.option(
        "--roads", metavar="FILE", help="A network's edges: GeoJSON lines, or CSV with --places."
    ),
    click.option("--step", help="How long a time step is; '5 min' unless you say so."),
    click.option("--epsilon", default="1", show_default=True, help="The price of an answer."),
    click.option("--limit", help="The most for one person; by default what a day costs."),
    click.option("--radius", default="1 km", show_default=True, help="So far must look alike."),
    click.option("--replace", is_flag=True, help="Write over files that were changed."),
)


def map_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a new map."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class NewMap:
    """The files of a new map: all of them say what their maker said, and nothing of any track."""

    def __init__(self, folder: Path, zone: str | None = None, **options: Any) -> None:
        self.folder = folder
        self.town = _town(options)
        step = options["step"] or "5 min"
        self.clock = Clock(int(step) if step.isdecimal() else step, zone=zone)
        self.ground = Ground(self.town.states.values(self.town.states.place_columns))
        epsilon = as_epsilon(options["epsilon"])
        self.settings = Settings(
            name=folder.absolute().name,
            epsilon=epsilon,
            states=STATES,
            limit=_limit(options["limit"], epsilon, self.clock),
            step=min(Fraction(10), lattice_step(self.ground.spacing)),
            policy=Policy(distance=length(options["radius"], "m", "radius")),
            clock=self.clock,
            unit="m",
        )
        self.files = {
            folder / STATES: self.town.states.to_csv(),
            folder / TOML: self.settings.to_toml(),
        }
        if self.town.states.plane is not None:
            self.files[folder / "cells.geojson"] = self.town.to_geojson()
        if self.town.roads:
            self.files[folder / MOVES] = csv_text([("from", "to"), *self.town.roads])
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder}: output must be a folder, got a file of that name")
        if not options["replace"]:
            try:
                check_new(self.files)
            except DataError as fault:
                way_out = f"(--replace), or bring trips to this map with --map {folder}"
                raise DataError(f"{fault} {way_out}") from None

    def write(self) -> None:
        """Write the files that are not there yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, content in self.files.items():
            write_whole(path, content)

    def say(self) -> None:
        """What was made, for people."""
        settings, names = self.settings, ", ".join(path.name for path in self.files)
        alike = measure(float(settings.policy.distance or 0), "m")
        say(f"{self.folder}: {len(self.town.states)} states ({names}); public")
        say(
            f"{self.folder / TOML}: epsilon {as_text(settings.epsilon)} an answer, at most "
            f"{settings.limit} a person, {alike} around must look alike; change it as you like"
        )

    def warn(self) -> None:
        """What somebody may not want of the map."""
        settings = self.settings
        spread = float(np.hypot(*np.ptp(self.ground.places, axis=0)))
        near, far, radius = self.ground.spacing, measure(spread, "m"), settings.policy.distance or 0
        if spread <= radius:
            note(f"the states lie within {far}, so all look alike; --radius says how far")
        elif near > radius:
            apart = measure(near, "m")
            note(f"the states lie {apart} apart, so no two are linked; --radius says how far")


def given_options(options: Iterable[str]) -> list[str]:
    """Those of some options that somebody gave, not their defaults."""
    source = click.get_current_context().get_parameter_source
    return [name for name in options if source(name) is ParameterSource.COMMANDLINE]


def _town(options: dict[str, Any]) -> Map:
    around, places, roads, h3 = (options[name] for name in ("around", "places", "roads", "h3"))
    if roads is not None:
        _alone("--roads", "around", "h3", "kilometres", "cell")
        return Map.of_roads(roads, places)
    if places is not None:
        _alone("--places", "around", "h3", "kilometres", "cell")
        return Map.of_places(places)
    if around is None:
        raise click.UsageError(
            "--around must be given, or --places, --roads or --map: a map is public, so it lies "
            "where you say and not where the tracks are"
        )
    try:
        latitude, longitude = map(float, around.split(","))
    except ValueError:
        raise click.UsageError(f"--around must be LAT,LON, got {around!r}") from None
    size = float(length(options["kilometres"], "km", "kilometres"))
    if h3 is not None:
        _alone("--h3", "cell")
        return Map.hexagons(latitude, longitude, kilometres=size, resolution=h3)
    cell = float(length(options["cell"], "km", "cell"))
    return Map.squares(latitude, longitude, kilometres=size, cell=cell)


def _alone(option: str, *others: str) -> None:
    if given := given_options(others):
        raise click.UsageError(f"{option} must stand without --{given[0]}")


def _limit(given: str | None, epsilon: Fraction, clock: Clock) -> Limit:
    return Limit(day_of(epsilon, clock).amount) if given is None else Limit.read(given)
