"""What the commands share: options, progress, keys, and printing for people and programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import click

from dphmm.chain.estimates import ESTIMATES, Estimate
from dphmm.errors import DataError, require
from dphmm.noise.randomness import KeyedRandomness, Randomness
from dphmm.scenario import Scenario
from dphmm.tables.clock import Clock
from dphmm.tables.keys import read_key
from dphmm.tables.states import States
from dphmm.tables.trips import TOGETHER, read_trips, tracks_of

__all__ = [
    "KEY_HELP",
    "check_apart",
    "column_option",
    "columns_from",
    "engine_option",
    "estimate_option",
    "is_quiet",
    "json_option",
    "keyed",
    "ledger_beside",
    "load_with",
    "note",
    "print_json",
    "progress",
    "read_key",
    "read_tracks",
    "say",
    "spark_session",
]

KEY_HELP = "32 secret bytes, for repeatable noise; whoever has them can take it off."

Item = TypeVar("Item")
OFTEN = 30.0
"""Seconds between two lines about progress where nobody watches a bar."""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

column_option: Decorator = click.option(
    "--column",
    "column_names",
    multiple=True,
    metavar="OURS=THEIRS",
    help="The name or number of a column, such as person=rider or time=4; may be repeated.",
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


def is_quiet() -> bool:
    """Whether somebody asked for no more than results, notes and errors."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get("dphmm.quiet"))


def say(line: str) -> None:
    """A line for people about what was done; nothing when they want it quiet."""
    if not is_quiet():
        click.echo(line)


def note(line: str) -> None:
    """A line that somebody needs even when they want it quiet."""
    click.echo(f"{click.style('dphmm: note:', fg='yellow')} {line}", err=True)


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


def read_tracks(
    trips: str, states: States, clock: Clock, columns: dict[str, str]
) -> list[tuple[list[int], list[int]]]:
    """Everybody's slots, and where they were in them."""
    rows = read_trips(trips, states, clock, columns=columns, together=TOGETHER)
    return tracks_of(progress(rows, what="reading"))


PLAIN_COLUMNS = ("person", "time", "state", "x", "y", "latitude", "longitude")


def columns_from(names: Iterable[str], known: Sequence[str] = PLAIN_COLUMNS) -> dict[str, str]:
    """The columns that `--column` options name."""
    columns = {}
    for name in names:
        ours, equals, theirs = name.partition("=")
        if not equals or not theirs:
            raise click.UsageError(f"--column must be OURS=THEIRS, got {name!r}")
        if ours not in known:
            raise click.UsageError(
                f"--column must name {', '.join(known[:-1])} or {known[-1]}, got {ours!r}"
            )
        columns[ours] = theirs
    return columns


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def progress(items: Iterable[Item], *, total: int | None = None, what: str = "") -> Iterator[Item]:
    """The items, with a bar on a terminal's standard error once they take two seconds.

    Where standard error is no terminal there is a line every half minute instead.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress_bar(total=total, what=what) as update:
        for item in items:
            yield item
            update(1)


@contextmanager
def progress_bar(*, total: int | None, what: str = "") -> Iterator[Callable[[int], object]]:
    """The same for work that itself says how many more items are done."""
    if is_quiet():
        yield lambda count: None
    elif sys.stderr.isatty():
        tqdm = require("tqdm", "cli").tqdm
        with tqdm(total=total, desc=what, delay=2, leave=False, file=sys.stderr) as bar:
            yield bar.update
    else:
        yield _Lines(total, what).update


class _Lines:
    """Progress for a log: a line now and then."""

    def __init__(self, total: int | None, what: str) -> None:
        self._total, self._what = total, what
        self._done, self._said = 0, monotonic()

    def update(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        now = monotonic()
        if now - self._said >= OFTEN and self._done != self._total:
            self._said = now
            of = f" of {self._total}" if self._total else ""
            click.echo(f"dphmm: {self._what}: {self._done}{of}", err=True)


def ledger_beside(scenario_file: str) -> Path:
    """The ledger of a scenario, unless another is named."""
    path = Path(scenario_file)
    return path.with_name(f"{path.stem}.ledger.jsonl")
