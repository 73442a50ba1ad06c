"""What the commands share: options, progress, keys, and printing for people and programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from dphmm.chain.estimates import ESTIMATES, Estimate
from dphmm.errors import DataError, require
from dphmm.noise.randomness import KeyedRandomness, Randomness
from dphmm.scenario import Scenario
from dphmm.tables.keys import read_key

__all__ = [
    "check_apart",
    "column_option",
    "columns_from",
    "engine_option",
    "estimate_option",
    "json_option",
    "keyed",
    "load_with",
    "print_json",
    "progress",
    "read_key",
    "spark_session",
]

Item = TypeVar("Item")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

column_option: Decorator = click.option(
    "--column",
    "column_names",
    multiple=True,
    metavar="OURS=THEIRS",
    help="What a column is called, such as person=rider; may be repeated.",
)

estimate_option: Decorator = click.option(
    "--estimate",
    type=click.Choice(ESTIMATES),
    help="What stands for a belief; by default what the scenario says.",
)


def load_with(path: str, estimate: Estimate | None) -> Scenario:
    """The scenario of a file, with another estimate if one is asked for."""
    scenario = Scenario.load(path)
    return scenario if estimate is None else scenario.replace(estimate=estimate)


def engine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that move the work to Spark."""
    for option in (
        click.option("--master", metavar="URL", help="Spark's master, such as spark://host:7077."),
        click.option(
            "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True
        ),
    ):
        command = option(command)
    return command


@contextmanager
def spark_session(master: str | None) -> Iterator[Any]:
    """A session of `dphmm.spark` that is stopped at the end, and says only what went wrong."""
    from dphmm.spark import session

    spark = session(master or "local[*]")
    try:
        spark.sparkContext.setLogLevel("OFF")
        yield spark
    finally:
        spark.stop()


def check_apart(output: str | None, others: Iterable[str | Path]) -> None:
    """Refuse an output that would replace what the run reads."""
    paths = [Path(str(other).removeprefix("sqlite:///")).resolve() for other in others]
    if output is not None and Path(output).resolve() in paths:
        raise DataError(f"{output}: output must be a file of its own, got one that the run reads")


def keyed(key_file: str | None) -> Randomness | None:
    """The noise of a key file; None, for the operating system's, without one."""
    return None if key_file is None else KeyedRandomness(read_key(key_file))


def columns_from(names: Iterable[str]) -> dict[str, str]:
    """The columns that `--column` options name."""
    columns = {}
    for name in names:
        ours, equals, theirs = name.partition("=")
        if not equals or not theirs:
            raise click.UsageError(f"--column must be OURS=THEIRS, got {name!r}")
        if ours not in ("person", "time", "state", "x", "y", "latitude", "longitude"):
            raise click.UsageError(
                f"--column must name person, time, state, x, y, latitude or longitude, got {ours!r}"
            )
        columns[ours] = theirs
    return columns


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def progress(items: Iterable[Item], *, total: int | None = None, what: str = "") -> Iterator[Item]:
    """The items, with a bar on a terminal's standard error once they take two seconds."""
    if not sys.stderr.isatty():
        yield from items
        return
    tqdm = require("tqdm", "cli").tqdm
    yield from tqdm(items, total=total, desc=what, delay=2, leave=False, file=sys.stderr)


@contextmanager
def progress_bar(*, total: int, what: str = "") -> Iterator[Callable[[int], object]]:
    """The same for work that itself says how many more items are done."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    tqdm = require("tqdm", "cli").tqdm
    with tqdm(total=total, desc=what, delay=2, leave=False, file=sys.stderr) as bar:
        yield bar.update
