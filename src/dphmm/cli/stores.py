"""How commands open a store: its address, its anchor and its secret, none of which is shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click

from dphmm.books import Journal, Store
from dphmm.books.changing import open_book
from dphmm.errors import ArgumentError, DataError
from dphmm.service.settings import check_variables
from dphmm.tables.clock import Clock
from dphmm.tables.keys import read_key, read_private

__all__ = ["Opening", "read_address", "read_anchor", "read_instants", "store_options"]

SECRET = "DPHMM_SECRET"


@dataclass(frozen=True)
class Opening:
    """What a store is opened with, beside its address; see `store_options`."""

    anchor: str | None = None
    secret_file: str | None = None

    def store(self, place: str, *, create: bool = False) -> Store:
        """The store at an address."""
        return Store.open(read_address(place), create=create, **self.parts())

    def book(self, place: str) -> Journal | Store:
        """The ledger file or the store at a place."""
        return open_book(read_address(place), **self.parts())

    def parts(self) -> dict[str, Any]:
        """The secret and the anchor, as a store takes them."""
        check_variables(os.environ)
        return {"anchor": read_anchor(self.anchor), "secret": self._secret()}

    def _secret(self) -> bytes | None:
        if self.secret_file is not None:
            return read_key(self.secret_file)
        text = os.environ.get(SECRET)
        if text is None:
            return None
        try:
            secret = bytes.fromhex(text.strip())
        except ValueError:
            secret = b""
        if len(secret) != 32:
            raise DataError(f"{SECRET} must be 64 hexadecimal digits, got something else")
        return secret


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for whatever opens a store, which the command gets as `opening`."""

    @click.option(
        "--anchor",
        metavar="ANCHOR",
        help="Where the store's roots are kept: a file, or another database for several servers. "
        "Default: DPHMM_ANCHOR.",
    )
    @click.option(
        "--secret-file",
        metavar="FILE",
        help="32 secret bytes that name erased people. Default: DPHMM_SECRET, in hexadecimal, or "
        "the store's own.",
    )
    @wraps(command)
    def opening(*given: Any, anchor: str | None, secret_file: str | None, **named: Any) -> Any:
        return command(*given, opening=Opening(anchor, secret_file), **named)

    return opening


def read_anchor(anchor: str | None) -> str | None:
    """The anchor's place, from the environment by default, where nothing is none."""
    place = anchor or os.environ.get("DPHMM_ANCHOR")
    return read_address(place) if place else None


def read_address(place: str) -> str:
    """An address that is given, or that env:NAME or file:PATH has; no password in arguments."""
    kind, _, rest = place.partition(":")
    if kind == "env":
        address = os.environ.get(rest, "")
        if not address:
            raise ArgumentError(f"{rest} must be set to the address of a store, got nothing")
        return address
    if kind == "file":
        return read_private(rest, 4096).decode(errors="replace").strip()
    if "://" in place:
        try:
            parts = urlsplit(place)
        except ValueError:  # its own words might quote a password
            raise ArgumentError("the address must be a URL, got none") from None
        named = dict(parse_qsl(parts.query))
        if parts.password is not None or {"password", "sslpassword"} & named.keys():
            raise ArgumentError(
                "the address must have no password where everybody can read it, got one; use "
                "env:NAME, file:PATH or PostgreSQL's own password file"
            )
    return place


def read_instants(times: Iterable[str], argument: str) -> dict[str, int]:
    """Times as instants: seconds ("s") for dates, themselves ("") for numbers."""
    found: dict[str, int] = {}
    for time in times:
        is_number = time.lstrip("+-").isdigit()
        clock = Clock() if is_number else Clock("1 s", zone="UTC")
        unit = "" if is_number else "s"
        try:
            instant = clock.slot_of(time)
        except ArgumentError:
            raise ArgumentError(
                f"{argument} must be a whole number or a date like 2024-05-01T10:05:00Z, "
                f"got {time!r}"
            ) from None
        if unit in found:
            raise ArgumentError(f"{argument} must be one date and one number at most, got two")
        found[unit] = instant
    return found
