"""What the commands share: options, progress, keys, and printing for people and programs."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from dphmm.errors import DataError, require
from dphmm.randomness import KEY_BYTES

__all__ = ["column_option", "columns_from", "json_option", "print_json", "progress", "read_key"]

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


def read_key(path: str | Path) -> bytes:
    """The secret key of a file that only its owner can read."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(KEY_BYTES + 1)
    except OSError as fault:
        raise DataError(f"{path}: key must be readable, got: {fault.strerror}") from None
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: key must be a file, got something else")
    if mode & 0o077:
        raise DataError(f"{path}: key must be closed to others; run: chmod 600 {path}")
    if len(key) != KEY_BYTES:
        size = f"{len(key)}" if len(key) < KEY_BYTES else "more"
        raise DataError(
            f"{path}: key must be {KEY_BYTES} bytes, got {size}; "
            f"make one with: (umask 077; head -c {KEY_BYTES} /dev/urandom > {path})"
        )
    return key
