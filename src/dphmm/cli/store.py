"""`dphmm store`: look into a store, take things out, check it, erase people, make keys."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta

import click

from dphmm.books import (
    OPERATE,
    SCOPES,
    Key,
    Store,
    create_key,
    expire_key,
    export,
    find_problems,
    inspect,
    list_keys,
    replace_key,
    revoke_key,
)
from dphmm.cli.common import check_apart, json_option, print_json, progress
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text
from dphmm.tables.files import whole_file

__all__ = ["command"]

client_option = click.option("--client", default="", help="Whose person it is, in a service.")


@click.group("store")
def command() -> None:
    r"""Look into a store, check it, export or erase people, make keys.

    STORE is a file, sqlite:///path or postgresql://...

    \b
    Example:
      dphmm store verify streams.db
      dphmm store export streams.db --person ann > ann.jsonl
      dphmm store key create streams.db clinic --scope release
    """


def opened(url: str) -> closing[Store]:
    """The store, which must be there, for a `with`."""
    return closing(Store.open(url, create=False))


@command.command("inspect")
@click.argument("store")
@json_option
def inspect_command(store: str, as_json: bool) -> int:
    r"""Count what is in a store.

    \b
    Example:
      dphmm store inspect streams.db
    """
    with opened(store) as held:
        facts = inspect(held)
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            click.echo(f"{name:<12} {value}")
    return 0


@command.command("verify")
@click.argument("store")
@json_option
def verify_command(store: str, as_json: bool) -> int:
    r"""Check that every ledger adds up, without gaps and duplicates; exit code 1 if not.

    \b
    Example:
      dphmm store verify streams.db
    """
    with opened(store) as held:
        found, facts = find_problems(held), inspect(held)
    if as_json:
        print_json({"sound": not found, "problems": found, **facts})
    elif found:
        click.echo("\n".join(found))
    else:
        click.echo(f"sound: {facts['people']} people, {facts['answers']} answers")
    return 1 if found else 0


@command.command("export")
@click.argument("store")
@click.option("--person", help="Only this person; everybody without it.")
@client_option
@click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
def export_command(store: str, person: str | None, client: str, output: str | None) -> int:
    r"""Write what is kept about a person, or about everybody, as lines of JSON.

    \b
    Example:
      dphmm store export streams.db --person ann -o ann.jsonl
    """
    check_apart(output, [store])
    with ExitStack() as stack:
        held = stack.enter_context(opened(store))
        lines = progress(export(held, person, client=client), what="exporting")
        if output is None or output == "-":
            for line in lines:
                sys.stdout.write(line + "\n")
        else:
            file = stack.enter_context(whole_file(output))
            for line in lines:
                file.write(line.encode() + b"\n")
    return 0


@command.command("erase")
@click.argument("store")
@click.argument("person")
@client_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def erase_command(store: str, person: str, client: str, yes: bool, as_json: bool) -> int:
    r"""Erase a person: releases and belief go, the price and the last time stay.

    What stays is under a keyed hash of the name. Whoever comes back under that name goes on
    with the budget that was left.

    \b
    Example:
      dphmm store erase streams.db ann --yes
    """
    with opened(store) as held:
        if not yes:
            click.confirm(f"Erase {person!r} from {held.database.name}?", abort=True, err=True)
        buried = held.erase(person, client=client)
    if as_json:
        print_json({"spent": str(buried.spent), "slots": dict(buried.times)})
    else:
        click.echo(f"erased; epsilon {as_text(buried.spent)} stays spent")
    return 0


@command.group("key")
def key_command() -> None:
    r"""Make, list and revoke the keys of a service.

    \b
    Example:
      dphmm store key create streams.db clinic --scope release --scope read
    """


@key_command.command("create")
@click.argument("store")
@click.argument("client", default="")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice((*SCOPES, OPERATE)),
    help=f"Default: all of them but {OPERATE}, which is for a key without a client.",
)
@click.option("--days", type=click.IntRange(1, 3650), help="Until it closes by itself.")
def create_command(store: str, client: str, scopes: tuple[str, ...], days: int | None) -> int:
    r"""Make a key and print it, the only time that it can be read.

    \b
    Example:
      dphmm store key create streams.db clinic --scope release --days 90
      dphmm store key create streams.db --scope operate
    """
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with closing(Store.open(store)) as held:
        click.echo(create_key(held, client, scopes or SCOPES, expires=expires))
    return 0


@key_command.command("list")
@click.argument("store")
@json_option
def list_command(store: str, as_json: bool) -> int:
    r"""List the keys: the start of their SHA-256, whose they are, what they open.

    \b
    Example:
      dphmm store key list streams.db
    """
    with opened(store) as held:
        keys = list_keys(held)
    rows = [
        {
            "digest": key.digest[:16],
            "client": key.client,
            "scopes": sorted(key.scopes),
            "created": key.created,
            "expires": key.expires,
            "revoked": key.revoked,
            "state": _state(key),
        }
        for key in keys
    ]
    if as_json:
        print_json(rows)
    for row in rows if not as_json else []:
        click.echo(f"{row['digest']}  {row['created']}  {row['client']:<20} {row['state']}")
    return 0


def _state(key: Key) -> str:
    if key.is_over:
        return "revoked" if key.revoked else "expired"
    return ",".join(sorted(key.scopes))


@key_command.command("revoke")
@click.argument("store")
@click.argument("digest")
def revoke_command(store: str, digest: str) -> int:
    r"""Close a key for good; servers notice within seconds.

    \b
    Example:
      dphmm store key revoke streams.db 3fa9c1
    """
    if not digest:
        raise ArgumentError("digest must be the first letters of a key's SHA-256, got none")
    with opened(store) as held:
        key = revoke_key(held, digest)
    click.echo(f"revoked a key of {key.client}")
    return 0


@key_command.command("rotate")
@click.argument("store")
@click.argument("digest")
@click.option("--hours", default=24, show_default=True, help="Until the old one closes.")
def exchange_command(store: str, digest: str, hours: int) -> int:
    r"""Make a key with another's client and scopes and print it; the old one closes later.

    \b
    Example:
      dphmm store key rotate streams.db 3fa9c1
    """
    with opened(store) as held:
        click.echo(replace_key(held, digest, timedelta(hours=hours)))
    return 0


@key_command.command("expire")
@click.argument("store")
@click.argument("digest")
@click.option("--hours", default=24, show_default=True, help="From now on.")
def expire_command(store: str, digest: str, hours: int) -> int:
    r"""Let a key close after some hours, never later than it would.

    \b
    Example:
      dphmm store key expire streams.db 3fa9c1 --hours 1
    """
    with opened(store) as held:
        key = expire_key(held, digest, datetime.now(UTC) + timedelta(hours=hours))
    click.echo(f"a key of {key.client} closes in {hours} hours")
    return 0
