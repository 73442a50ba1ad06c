"""`dphmm grid`: a map around a place and a scenario for it, without anybody's tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dphmm.cli.common import json_option, print_json
from dphmm.cli.mapping import NewMap, map_options

__all__ = ["command"]


@click.command("grid")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="A folder.")
@map_options
@json_option
def command(output: Path, as_json: bool, **options: Any) -> int:
    r"""Make a map and a scenario for it, to which `dphmm import --map` brings trips.

    The map is of square cells, H3 cells, places from a file, or a road network. Everything in
    it is public, and it tells nothing about anybody: it lies where you say.

    \b
    Example:
      dphmm grid --around 48.137,11.575 --kilometres 10 --cell 500m -o munich
      dphmm grid --around 48.137,11.575 --h3 8 -o munich
      dphmm grid --places districts.geojson -o munich
      dphmm import walks/ --map munich -o munich/trips.csv
    """
    new = NewMap(output, **options)
    new.write()
    new.warn()
    if as_json:
        print_json({"folder": str(output), "cells": len(new.town.states)})
    else:
        new.say()
    return 0
