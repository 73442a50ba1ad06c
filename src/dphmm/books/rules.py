"""What the store needs to know of a scenario: its name, its query, how a stream begins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from dphmm.cost.ledger import Ledger
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import Exact
from dphmm.geometry.query import Query
from dphmm.release.stream import Release, Stream

__all__ = ["Account", "Answer", "Request", "Rules", "identity"]

LONGEST_NAME = 200


@dataclass(frozen=True, eq=False)
class Rules:
    """A scenario as the store sees it.

    `begin(person)` makes a fresh stream for a person, with `person=` and `scenario=` set to
    what it is given and to `scenario`. Streams of one scenario should share a `Plan`.
    """

    scenario: str
    query: Query
    begin: Callable[[str], Stream]
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """A plan is not safe to use from two threads at once."""

    @property
    def query_name(self) -> str:
        """What the ledger calls the query."""
        return self.query.digest.hex()[:16]

    def fresh(self, person: str) -> Stream:
        """A stream at its beginning."""
        stream = self.begin(person)
        if (stream.person, stream.scenario) != (person, self.scenario):
            raise ArgumentError("begin must make a stream for the person and scenario it is given")
        return stream


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """A question to the store; it holds a true state, so it is never printed."""

    rules: Rules
    person: str
    time: int
    true_state: int
    epsilon: Exact | None = None
    client: str = ""
    create: bool = True


@dataclass(frozen=True)
class Answer:
    """A release that the store has written down."""

    release: Release
    repeated: bool
    """Whether it was there already: nothing was drawn and nothing was spent."""


class Account(Ledger):
    """A ledger that goes on from a sum, so that a release need not read all earlier ones."""

    def __init__(self, limit: Exact | None, spent: Fraction) -> None:
        super().__init__(limit)
        self._spent = spent


def identity(client: str, person: str) -> str:
    """The name under which a stream draws its noise: no two people share one.

    >>> identity("clinic", "anna")
    'clinic/anna'
    """
    checked_name(person, "person")
    if client and (not client.isascii() or not client.replace("-", "").isalnum()):
        raise ArgumentError(f"client must be letters, digits and dashes, got {client!r}")
    return f"{client}/{person}"


def checked_name(name: str, argument: str) -> str:
    """The name, if it can be stored and printed."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ArgumentError(f"{argument} must be 1 to {LONGEST_NAME} printable characters")
    return name
