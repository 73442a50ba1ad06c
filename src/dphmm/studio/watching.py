"""Where answers are watched from: a ledger file, a store, or a service with a key that reads.

None of them is written to. A service shows a key its own client's people and no others; of a
file or a database everything is seen that is in it, and there is no true state in any.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from dphmm.books.tailing import Tail
from dphmm.client import Client
from dphmm.client.operations import scenario_id
from dphmm.client.results import LedgerFacts
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, DataError, NotFoundError, ServiceError
from dphmm.release.said import Record
from dphmm.scenario import Scenario
from dphmm.studio.anchored import AnchoredTail

__all__ = ["LedgerSource", "News", "ServiceSource", "Source", "StoreSource", "Told", "watch"]

Whose: TypeAlias = tuple[str, str]
"""A client and a person."""

MOST_ROWS = 50_000
"""Answers of a store that one look reads; the page goes on with the next."""

LOOK_SECONDS = 1.0
"""How long one look asks a service about one person after the other."""

PATIENCE = 10.0
"""Seconds that a look waits for a service; the page says that there was no answer, and goes on."""


@dataclass(frozen=True)
class Told:
    """One answer as it left: whose, when, at which price, and where on the map if it has a place.

    Args:
        whose: A client and a person.
        time: The slot.
        epsilon: The price.
        own: Whether it answers the scenario's own question, whose clock is known.
        place: The answer in the units of the query; None under another law or question.
    """

    whose: Whose
    time: int
    epsilon: Fraction
    own: bool
    place: tuple[float, ...] | None


@dataclass(frozen=True)
class News:
    """What was found since the last look.

    Args:
        told: Answers, in no particular order.
        people: The own limit of people, and what was spent on them before they were erased.
        gone: Who is not there any more, and of whom nothing is to be shown.
        unread: About how many people there is more to read.
    """

    told: list[Told] = field(default_factory=list)
    people: dict[Whose, tuple[Limit | None, Fraction]] = field(default_factory=dict)
    gone: set[Whose] = field(default_factory=set)
    unread: int = 0


class LedgerSource:
    """A ledger file; see `Tail`."""

    kind = "ledger"

    def __init__(self, path: Path, scenario: Scenario) -> None:
        self._tail, self._scenario = Tail(path), scenario
        self.name = path.name

    def look(self) -> News:
        """What was written whole since the last time."""
        return News(_told(self._tail.more(), self._scenario))

    def close(self) -> None:
        """Nothing is open between two looks."""


class StoreSource:
    """A store on SQLite or PostgreSQL, with its anchor if it has one; see `AnchoredTail`."""

    kind = "store"

    def __init__(self, address: str, scenario: Scenario, anchor: str | None = None) -> None:
        self._tail, self._scenario = AnchoredTail(address, anchor), scenario
        self._numbers: dict[Whose, int] = {}
        self.name = self._tail.name

    def look(self) -> News:
        """What was said since the last time; somebody erased is gone."""
        found = self._tail.more(MOST_ROWS)
        people = {(one.client, one.name): one for one in found.people}
        known = self._numbers
        self._numbers = {whose: one.number for whose, one in people.items()}
        return News(
            told=_told(found.answers, self._scenario),
            people={whose: (one.limit, one.carried) for whose, one in people.items()},
            # Somebody erased who came back is another row, whose answers are all read anew.
            gone={whose for whose, number in known.items() if self._numbers.get(whose) != number},
            unread=found.unread,
        )

    def close(self) -> None:
        """Close all connections."""
        self._tail.close()


class ServiceSource:
    """A service, asked with a key of the scope `read`, one person after the other.

    Args:
        client: Where the service is, and the key.
        scenario: Whose question is watched.
        file: The scenario's file, from which the service's name of it follows.
    """

    kind = "service"

    def __init__(self, client: Client, scenario: Scenario, file: Path) -> None:
        self._client, self._scenario = client, scenario
        self._id = scenario_id(file)
        if self._id not in client.scenarios():
            client.close()
            raise ArgumentError(
                f"watch must be a service that has the scenario {file.name} as it is, got one "
                f"without it"
            )
        self._waiting: list[str] = []
        self._found = News()
        """What a look had found when the service went away."""
        self._entries: dict[str, int] = {}
        self._last: dict[str, int | str] = {}
        self.name = client.url

    def look(self) -> News:
        """Ask about some people, for about a second, and go on there the next time."""
        try:
            return self._look()
        except ServiceError as fault:
            if fault.status is not None:
                raise
            raise ServiceError(f"{self.name} does not answer") from None

    def _look(self) -> News:
        begun = monotonic()
        if not self._waiting:
            self._waiting = list(self._client.people())[::-1]
            gone = self._entries.keys() - set(self._waiting)
            self._found.gone.update(("", name) for name in gone)
        while self._waiting and monotonic() - begun < LOOK_SECONDS:
            self._ask(self._waiting[-1], self._found)
            self._waiting.pop()
        news, self._found = self._found, News()
        for _, name in news.gone:
            self._entries.pop(name, None)
            self._last.pop(name, None)
        unread = sum(name not in self._entries for name in self._waiting)
        return News(news.told, news.people, news.gone, unread)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _ask(self, name: str, news: News) -> None:
        try:
            ledger = self._client.ledger(name)
            known = self._entries.get(name, 0)
            if len(ledger.entries) < known:  # erased and begun again since
                news.gone.add(("", name))
                known = 0
            told = self._new(name, ledger, known)
        except NotFoundError:
            news.gone.add(("", name))
            return
        self._entries[name] = len(ledger.entries)
        news.told.extend(told)
        limit = None if ledger.budget is None else Limit.read(ledger.budget)
        said = sum((entry.epsilon for entry in ledger.entries), Fraction(0))
        news.people["", name] = (limit, ledger.spent - said)

    def _new(self, name: str, ledger: LedgerFacts, known: int) -> list[Told]:
        """The entries after so many, and the answers that belong to them."""
        query, step = self._scenario.terms.query, self._scenario.query.step
        new = ledger.entries[known:]
        places: dict[int, tuple[float, ...]] = {}
        if any(entry.query == query for entry in new):
            last = self._last.get(name) if known else None
            # Answers around another map centre are refused there; they have no place here either.
            with suppress(ArgumentError):
                for one in self._client.releases(self._id, name, after=last):
                    last = one.time
                    if one.lattice is not None:
                        places[one.slot] = tuple(float(number * step) for number in one.lattice)
            if last is not None:
                self._last[name] = last
        return [
            Told(
                whose=("", name),
                time=entry.slot,
                epsilon=entry.epsilon,
                own=entry.query == query,
                place=places.get(entry.slot) if entry.query == query else None,
            )
            for entry in new
        ]


Source: TypeAlias = LedgerSource | StoreSource | ServiceSource


def watch(
    place: str,
    scenario: Scenario,
    file: Path,
    key_file: str | None = None,
    anchor: str | None = None,
) -> Source:
    """What there is to watch at a place: the address of a service or a store, or a file."""
    if place.startswith(("http://", "https://")):
        client = Client(place, key_file=key_file, timeout=PATIENCE, retries=1)
        return ServiceSource(client, scenario, file)
    if key_file is not None:
        raise ArgumentError("key_file must come with the address of a service, got none")
    if "://" in place:
        return StoreSource(place, scenario, anchor)
    path = Path(place)
    try:
        with path.open("rb") as content:
            is_database = content.read(16).startswith(b"SQLite format 3")
    except OSError as fault:
        raise DataError(f"{place}: ledger must be readable, got: {fault.strerror}") from None
    return StoreSource(place, scenario, anchor) if is_database else LedgerSource(path, scenario)


def _told(records: Iterable[Record], scenario: Scenario) -> list[Told]:
    """What was really said of some records; a silent step is nothing."""
    law, query = scenario.law, scenario.terms.query
    return [
        Told(
            whose=(one.line.client, one.line.person),
            time=one.time,
            epsilon=one.epsilon,
            own=one.line.query == query,
            place=tuple(float(number * one.spacing) for number in one.lattice)
            if one.law == law and one.line.query == query
            else None,
        )
        for one in records
        if not one.silent
    ]
