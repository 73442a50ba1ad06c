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
from dphmm.cli.keeping import COMMANDS
from dphmm.cli.stores import Opening, store_options
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text
from dphmm.tables.files import whole_file

__all__ = ["command"]

HOURS = click.IntRange(0, 8760)
"""Until a key closes; the service takes as many."""

client_option = click.option("--client", default="", help="Whose person it is, in a service.")


@click.group("store")
def command() -> None:
    r"""Look into a store, check it, copy it, export or erase people, make keys.

    STORE is a file, sqlite:///path or postgresql://..., or env:NAME or file:PATH, where that is
    written: an address with a password is no argument.

    \b
    Example:
      dphmm store verify streams.db
      dphmm store export streams.db --person ann > ann.jsonl
      dphmm store key create streams.db clinic --scope release
    """


for operating in COMMANDS:
    command.add_command(operating)


@command.command("inspect")
@click.argument("store")
@json_option
@store_options
def inspect_command(store: str, as_json: bool, opening: Opening) -> int:
    r"""Count what is in a store.

    \b
    Example:
      dphmm store inspect streams.db
    """
    with closing(opening.store(store)) as held:
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
@store_options
def verify_command(store: str, as_json: bool, opening: Opening) -> int:
    r"""Check that every ledger adds up, without gaps and duplicates; exit code 1 if not.

    \b
    Example:
      dphmm store verify streams.db
    """
    with closing(opening.store(store)) as held:
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
@store_options
def export_command(
    store: str, person: str | None, client: str, output: str | None, opening: Opening
) -> int:
    r"""Write what is kept about a person, or about everybody, as lines of JSON.

    \b
    Example:
      dphmm store export streams.db --person ann -o ann.jsonl
    """
    check_apart(output, [store])
    with ExitStack() as stack:
        held = stack.enter_context(closing(opening.store(store)))
        lines = progress(export(held, person, client=client), what="exporting")
        if output is None or output == "-":
            for line in lines:
                sys.stdout.write(line + "\n")
        else:
            file = stack.enter_context(whole_file(output, private=True))
            for line in lines:
                file.write(line.encode() + b"\n")
    return 0


@command.command("erase")
@click.argument("store")
@click.argument("person")
@client_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@store_options
def erase_command(
    store: str, person: str, client: str, yes: bool, as_json: bool, opening: Opening
) -> int:
    r"""Erase a person: releases and belief go, the price and the last time stay.

    What stays is under a keyed hash of the name. Whoever comes back under that name goes on
    with the budget that was left.

    \b
    Example:
      dphmm store erase streams.db ann --yes
    """
    with closing(opening.store(store)) as held:
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
@store_options
def create_command(
    store: str, client: str, scopes: tuple[str, ...], days: int | None, opening: Opening
) -> int:
    r"""Make a key and print it, the only time that it can be read.

    \b
    Example:
      dphmm store key create streams.db clinic --scope release --days 90
      dphmm store key create streams.db --scope operate
    """
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with closing(opening.store(store, create=True)) as held:
        click.echo(create_key(held, client, scopes or SCOPES, expires=expires))
    return 0


@key_command.command("list")
@click.argument("store")
@json_option
@store_options
def list_command(store: str, as_json: bool, opening: Opening) -> int:
    r"""List the keys: the start of their SHA-256, whose they are, what they open.

    \b
    Example:
      dphmm store key list streams.db
    """
    with closing(opening.store(store)) as held:
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
@store_options
def revoke_command(store: str, digest: str, opening: Opening) -> int:
    r"""Close a key for good; servers notice within seconds.

    \b
    Example:
      dphmm store key revoke streams.db 3fa9c1
    """
    if not digest:
        raise ArgumentError("digest must be the first letters of a key's SHA-256, got none")
    with closing(opening.store(store)) as held:
        key = revoke_key(held, digest)
    click.echo(f"revoked a key of {key.client}")
    return 0


@key_command.command("rotate")
@click.argument("store")
@click.argument("digest")
@click.option(
    "--hours", type=HOURS, default=24, show_default=True, help="Until the old one closes."
)
@store_options
def exchange_command(store: str, digest: str, hours: int, opening: Opening) -> int:
    r"""Make a key with another's client and scopes and print it; the old one closes later.

    \b
    Example:
      dphmm store key rotate streams.db 3fa9c1
    """
    with closing(opening.store(store)) as held:
        click.echo(replace_key(held, digest, timedelta(hours=hours)))
    return 0


@key_command.command("expire")
@click.argument("store")
@click.argument("digest")
@click.option("--hours", type=HOURS, default=24, show_default=True, help="From now on.")
@store_options
def expire_command(store: str, digest: str, hours: int, opening: Opening) -> int:
    r"""Let a key close after some hours, never later than it would.

    \b
    Example:
      dphmm store key expire streams.db 3fa9c1 --hours 1
    """
    with closing(opening.store(store)) as held:
        key = expire_key(held, digest, datetime.now(UTC) + timedelta(hours=hours))
    click.echo(f"a key of {key.client} closes in {hours} hours")
    return 0
