"""`dphmm export`: GeoJSON of a map, a policy, answers or estimates."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from dphmm.cli.common import check_apart, json_option, print_json, progress, say
from dphmm.scenario.exporting import policy_features, release_features
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Settings
from dphmm.tables.files import write_whole
from dphmm.tables.geojson import collection
from dphmm.tables.maps import Map

__all__ = ["command"]


@click.command("export")
@click.argument("what", type=click.Choice(["map", "policy", "answers", "estimates"]))
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.argument("releases", required=False)
@click.option("-o", "--output", required=True, metavar="FILE", help="Such as policy.geojson.")
@json_option
def command(what: str, scenario_file: str, releases: str | None, output: str, as_json: bool) -> int:
    r"""Write WHAT as GeoJSON, which QGIS, kepler.gl and others open. All of it is public.

    A map has a polygon (or point) for every state, with all of its columns; a policy a line for
    every two states that must look alike; answers and estimates a point for every row of
    RELEASES, the output of `dphmm release`. For states with latitude and longitude.

    \b
    Example:
      dphmm export map town/scenario.toml -o map.geojson
      dphmm export policy town/scenario.toml -o policy.geojson
      dphmm export estimates town/scenario.toml released.csv -o estimates.geojson
    """
    check_apart(output, [scenario_file, *([releases] if releases else [])])
    about_releases = what in ("answers", "estimates")
    if about_releases != (releases is not None):
        raise click.UsageError("answers and estimates must go with RELEASES, and only they")
    if what == "map":
        text = Map.read(
            Path(scenario_file).parent / Settings.read(scenario_file).states
        ).to_geojson()
    elif what == "policy":
        text = collection(policy_features(Scenario.load(scenario_file)))
    else:
        text = collection(
            release_features(
                Scenario.load(scenario_file),
                str(releases),
                estimates=what == "estimates",
                watch=partial(progress, what="reading"),
            )
        )
    write_whole(output, text)
    count = text.count('"Feature"')
    if as_json:
        print_json({"output": output, "features": count})
    else:
        say(f"{output}: {count} features")
    return 0
