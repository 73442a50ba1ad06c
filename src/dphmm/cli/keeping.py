"""`dphmm store` for operators: copies, recovery, lower budgets, retention."""

from __future__ import annotations

from contextlib import closing

import click

from dphmm.books.copying import backup, restore
from dphmm.books.keeping import expire, lower_budgets, recover
from dphmm.books.schema import VERSION
from dphmm.cli.stores import Opening, read_address, read_instants, store_options
from dphmm.errors import StoreError

__all__ = ["COMMANDS"]


@click.command("migrate")
@click.argument("store")
@store_options
def migrate_command(store: str, opening: Opening) -> int:
    r"""Bring a store to the version of this dphmm, which opening it does anyway.

    Stop the servers first: those of an older dphmm cannot go on with it.

    \b
    Example:
      dphmm store migrate streams.db
    """
    with closing(opening.store(store)):
        click.echo(f"the store has version {VERSION}")
    return 0


@click.command("backup")
@click.argument("store")
@click.argument("file")
@store_options
def backup_command(store: str, file: str, opening: Opening) -> int:
    r"""Copy a store, which may be in use, as it is at one moment, into a new file.

    The file is a store itself, on SQLite, with the names of people: keep it as closed as that.

    \b
    Example:
      dphmm store backup streams.db monday.db
    """
    with closing(opening.store(store)) as held:
        backup(held, file)
    click.echo(f"{file} is a copy")
    return 0


@click.command("restore")
@click.argument("file")
@click.argument("store")
@store_options
def restore_command(file: str, store: str, opening: Opening) -> int:
    r"""Put a backup back as a new store, on either database; exit code 1 if it may not answer yet.

    It answers if its anchor knows the same commits. Otherwise what was said since is missing, and
    nothing is said until `dphmm store recover`.

    \b
    Example:
      dphmm store restore monday.db streams.db --anchor /mnt/other/anchor
    """
    with closing(restore(file, read_address(store), **opening.parts())) as held:
        try:
            held.check()
        except StoreError as fault:
            click.echo(str(fault))
            return 1
    click.echo("the store is as it was")
    return 0


@click.command("recover")
@click.argument("store")
@click.option(
    "--not-before",
    "times",
    multiple=True,
    required=True,
    metavar="TIME",
    help="Nothing before is answered any more; a date, a number, or one of each.",
)
@store_options
def recover_command(store: str, times: tuple[str, ...], opening: Opening) -> int:
    r"""Let a store that is behind its anchor answer again, from a time on.

    TIME must lie after everything that was ever said. With --anchor that anchor is the store's
    from now on, without the store has none. What was spent and is not known of any more can be
    counted with `dphmm store budget`. Stop the servers first.

    \b
    Example:
      dphmm store recover streams.db --not-before 2026-11-17T00:00:00Z --anchor /mnt/other/anchor
    """
    with closing(opening.store(store)) as held:
        recover(held, read_instants(times, "not-before"))
    click.echo(f"nothing before {' and '.join(times)} is answered any more")
    return 0


@click.command("budget")
@click.argument("store")
@click.option("--lower", "to", metavar="EPSILON", help="The most that may be spent in all.")
@click.option("--lower-by", "by", metavar="EPSILON", help="How much less than now.")
@click.option("--client", help="Only this client's people.")
@click.option("--person", help="Only this person.")
@store_options
def budget_command(
    store: str,
    to: str | None,
    by: str | None,
    client: str | None,
    person: str | None,
    opening: Opening,
) -> int:
    r"""Lower what may be spent on people in all, never below what was spent.

    \b
    Example:
      dphmm store budget streams.db --lower-by 3
      dphmm store budget streams.db --lower 10 --person ann
    """
    if (to is None) == (by is None):
        raise click.UsageError("one of --lower and --lower-by must be given")
    with closing(opening.store(store)) as held:
        count = lower_budgets(held, to=to, by=by, client=client, person=person)
    click.echo(f"{count} budgets are lower")
    return 0


@click.command("expire")
@click.argument("store")
@click.option(
    "--people",
    multiple=True,
    metavar="TIME",
    help="Erase people whose last step lies before; a date, a number, or one of each.",
)
@click.option(
    "--tombstones",
    multiple=True,
    metavar="TIME",
    help="Of people who were erased, and whose last step lies before, keep only the name's hash.",
)
@store_options
def expire_command(
    store: str, people: tuple[str, ...], tombstones: tuple[str, ...], opening: Opening
) -> int:
    r"""Keep people and tombstones no longer than they are needed.

    For the name of a tombstone that has expired nothing is ever answered again, so that neither
    its slots nor its budget are open once more.

    \b
    Example:
      dphmm store expire streams.db --people 2026-01-01T00:00:00Z --tombstones 2024-01-01T00:00:00Z
    """
    if not people and not tombstones:
        raise click.UsageError("--people or --tombstones must be given")
    with closing(opening.store(store)) as held:
        erased, closed = expire(
            held,
            people=read_instants(people, "people"),
            tombstones=read_instants(tombstones, "tombstones"),
        )
    click.echo(f"{erased} people are erased, {closed} tombstones are closed")
    return 0


COMMANDS = (
    *(migrate_command, backup_command, restore_command),
    *(recover_command, budget_command, expire_command),
)
