"""`dphmm serve`: the release service over a store."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dphmm.books import SCOPES, Store, create_key, list_keys
from dphmm.cli.common import KEY_HELP, keyed, note
from dphmm.cli.stores import Opening, store_options
from dphmm.errors import DataError, require
from dphmm.release.book import check_key
from dphmm.service import ServiceSettings
from dphmm.tables.files import whole_file

__all__ = ["command"]


@click.command("serve")
@click.argument("store")
@click.option(
    "--host", default="127.0.0.1", show_default=True, envvar="DPHMM_HOST", help="Where to listen."
)
@click.option(
    "--port", default=8000, show_default=True, envvar="DPHMM_PORT", type=click.IntRange(0, 65535)
)
@click.option(
    "--tick",
    type=float,
    metavar="MILLISECONDS",
    help="Answers leave a whole number of ticks, 50 by default, after their request; 0 is off.",
)
@click.option("--workers", type=int, help="Processes that answer requests; 1 by default.")
@click.option("--threads", type=int, help="Requests in the store at once; 4 by default.")
@click.option("--rate", type=float, help="Requests a second for a client; 1000 by default.")
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="An address or network whose X-Forwarded-For is believed; may be repeated.",
)
@click.option(
    "--settings", "file", metavar="FILE", envvar="DPHMM_SETTINGS", help="A TOML file of settings."
)
@click.option(
    "--set",
    "others",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other setting, see docs/service.md; may be repeated.",
)
@click.option(
    "--largest-epsilon",
    metavar="EPSILON",
    help="What a request may pay for one release, if more than its scenario's own epsilon.",
)
@click.option(
    "--key-file",
    metavar="FILE",
    envvar="DPHMM_NOISE_KEY_FILE",
    help=KEY_HELP,
)
@click.option("--init", metavar="FILE", help="Make a first key with all scopes and write it here.")
@store_options
def command(
    store: str,
    host: str,
    port: int,
    tick: float | None,
    workers: int | None,
    threads: int | None,
    rate: float | None,
    proxies: tuple[str, ...],
    file: str | None,
    others: tuple[str, ...],
    largest_epsilon: str | None,
    key_file: str | None,
    init: str | None,
    opening: Opening,
) -> None:
    r"""Serve releases over HTTP from STORE, a file or postgresql://..., until interrupted.

    The OpenAPI description is at /openapi.json. There is no TLS: put a proxy in front.

    \b
    Example:
      dphmm serve streams.db --init key.txt
      curl -H "Authorization: Bearer $(cat key.txt)" http://127.0.0.1:8000/v1/people
    """
    require("fastapi", "service")
    from dphmm.service.server import leave, serve

    randomness = keyed(key_file)
    given: dict[str, object] = dict(_named(one) for one in others)
    named: dict[str, object] = {"workers": workers, "threads": threads, "rate": rate}
    named |= {"largest_epsilon": largest_epsilon, "trusted_proxies": proxies or None}
    named["tick"] = None if tick is None else tick / 1000
    given |= {name: value for name, value in named.items() if value is not None}
    settings = ServiceSettings.read(given, os.environ, file)
    held = opening.store(store, create=True)
    held.check()
    check_key(held, randomness)
    if init is not None and not list_keys(held):
        write_first_key(Path(init), held)
        click.echo(f"the first key is in {init}", err=True)
    elif init is not None:
        note(f"the store has keys, so none was written to {init}")

    def ready(address: str) -> None:
        click.echo(f"serving {held.database.name} on {address}", err=True)

    try:
        serve(held, settings, host=host, port=port, randomness=randomness, ready=ready)
    except SystemExit as ended:  # its processes had to be ended
        leave(ended.code if isinstance(ended.code, int) else 1)
    leave(0)


def _named(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals:
        raise click.UsageError(f"--set must be NAME=VALUE, got {setting!r}")
    return name, value


def write_first_key(path: Path, store: Store) -> None:
    """A key in a file that only its owner can read; no key that nobody can read."""

    def keep(key: str) -> None:
        with whole_file(path, private=True) as file:
            file.write(key.encode() + b"\n")

    if path.exists():
        raise DataError(f"{path}: init must be a new file, got one that is there")
    try:
        create_key(store, "first", SCOPES, keep)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
