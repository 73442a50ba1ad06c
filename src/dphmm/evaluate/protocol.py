"""The protocol of the evaluation: folds, seeds and settings from one file, and who is locked.

A fifth of the people is locked, by a hash of their first id. They are in no map, no chain and no
figure, so nothing can be chosen by looking at them; `make evidence FINAL=1` reads them.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Collection
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from dphmm.errors import ArgumentError

__all__ = ["is_locked", "locked_people", "protocol", "read_final", "seeds"]

FILE = Path(__file__).with_name("protocol.toml")
FINAL = "DPHMM_FINAL"
"""Set by the Makefile when somebody asks for FINAL=1."""


@cache
def protocol() -> dict[str, Any]:
    """Everything that was fixed, section by section."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def seeds(quick: bool = False) -> tuple[int, ...]:
    """The seeds of noise."""
    return tuple(range(2 if quick else protocol()["noise"]["seeds"]))


def is_locked(person: str) -> bool:
    """Whether nobody looks at a person before the end.

    Args:
        person: The first of the ids that are this person.
    """
    people = protocol()["people"]
    share = Fraction(people["locked"])
    digest = hashlib.sha256(f"{people['salt']}\0{person}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * share.denominator < share.numerator << 64


def locked_people(people: Collection[str]) -> frozenset[str]:
    """Those of some people who are locked."""
    return frozenset(person for person in people if is_locked(person))


def read_final() -> None:
    """Refuse to read locked people unless that was asked for by `make evidence FINAL=1`."""
    if os.environ.get(FINAL) != "1":
        raise ArgumentError(
            "final must be False: locked people are read by `make evidence FINAL=1` alone"
        )
