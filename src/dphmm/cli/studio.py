"""`dphmm studio`: the page on which a policy is drawn, checked and tried out."""

from __future__ import annotations

import webbrowser

import click

__all__ = ["command"]


@click.command("studio")
@click.argument("scenario_file", metavar="[SCENARIO.TOML or FOLDER]", required=False)
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Where to listen on this machine; 0 takes a free port.",
)
@click.option(
    "--watch",
    metavar="PLACE",
    help="Also show what is being released: a ledger file, a store (its file or address; env:NAME "
    "and file:PATH hold one) or the address of a service, read as it grows.",
)
@click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="The key for a service, of scope read. Default: DPHMM_KEY, or the file DPHMM_KEY_FILE.",
)
@click.option(
    "--anchor",
    metavar="ANCHOR",
    help="The anchor of a store that has one, which says what has left. Default: DPHMM_ANCHOR.",
)
@click.option("--open/--no-open", "open_page", default=True, help="Open the page in a browser.")
def command(
    scenario_file: str | None,
    port: int,
    watch: str | None,
    key_file: str | None,
    anchor: str | None,
    open_page: bool,
) -> int:
    r"""Draw a policy, see who is exposed, and watch a simulated release.

    The page is served to this machine only and works offline. It opens on your scenario, or
    on a start page with the scenarios of a folder, examples and a tour.

    \b
    Example:
      dphmm studio
      dphmm studio town.toml
      dphmm studio town.toml --watch town.ledger.jsonl
      dphmm studio town.toml --watch https://releases.example --key-file read.key
    """
    from dphmm.cli.stores import read_address, read_anchor
    from dphmm.studio.server import serve

    def ready(address: str) -> None:
        click.echo(f"The studio is at {address} (Ctrl+C ends it).")
        if open_page:
            webbrowser.open(address)

    place = None if watch is None else read_address(watch)
    roots = None if watch is None else read_anchor(anchor)
    serve(port=port, ready=ready, path=scenario_file, watch=place, key_file=key_file, anchor=roots)
    return 0
