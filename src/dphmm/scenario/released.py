"""Releases read back from a file, each person's stream brought to where they lead.

What `dphmm release` wrote is enough to know all that anybody can know: estimates, smoothed
estimates and prices follow from the answers and the scenario.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dphmm.cost.ledger import Ledger
from dphmm.errors import DataError, UnknownLawWarning
from dphmm.policy.plan import Protected
from dphmm.release.admission import Verdict, check_fit, refusal
from dphmm.release.book import Book
from dphmm.release.law_parts import differing_parts
from dphmm.release.moment import Line
from dphmm.release.said import Record, Release
from dphmm.release.stream import Stream
from dphmm.release.terms import follow
from dphmm.scenario.building import build_surroundings
from dphmm.scenario.releasing import ledger_at
from dphmm.scenario.scenario import Scenario
from dphmm.tables.clock import Slots
from dphmm.tables.trips import Record as Row
from dphmm.tables.trips import read_records

__all__ = ["Track", "read_releases", "released_rows"]

TOGETHER = 4096
"""Rows whose places are looked up together."""


@dataclass(frozen=True, eq=False)
class Track:
    """What was said about one person; all of it is public."""

    person: str
    stream: Stream
    budget: Ledger | None = None
    """What the book says of all that this person has spent; None without a book."""
    times: list[str] = field(default_factory=list, repr=False)
    """As written in the file, one a release."""
    slots: list[int] = field(default_factory=list, repr=False)
    """The step of the clock that each time falls in."""
    releases: list[Release] = field(default_factory=list, repr=False)
    protected: list[Protected | None] = field(default_factory=list, repr=False)
    """The public rules of each release: possible set, policy, noise; None at a silent step."""

    @property
    def spent(self) -> Fraction:
        """The sum of every epsilon: of the book's or, without one, of the file's."""
        return self.stream.standing.spent if self.budget is None else self.budget.spent


def released_rows(
    path: str | Path,
    scenario: Scenario,
    columns: Sequence[str],
    watch: Callable[[Iterator[Row]], Iterable[Row]] = iter,
) -> Iterator[Row]:
    """The rows of a file of releases, which must have some columns; see `read_releases`.

    What another law shaped is refused. A file of an older version says nothing of laws: it is
    taken with a warning.
    """
    name, law = Path(path).name, scenario.terms.law_parts
    marked: bool | None = None
    for line, record in watch(read_records(path, name)):
        missing = [column for column in columns if column not in record]
        if missing:
            raise DataError(f"{name}:{line}: header must have the column {', '.join(missing)}")
        if marked is None:
            marked = "law" in record
            if not marked:
                warnings.warn(
                    f"{name} has no column law, so nothing shows that it follows {scenario.name!r}",
                    UnknownLawWarning,
                    stacklevel=2,
                )
        if record["person"] is None:
            continue
        if marked and record.get("law") != law:
            differ = differing_parts(law, str(record.get("law") or ""))
            raise DataError(
                f"{name}:{line}: row must follow the law of {scenario.name!r}, "
                f"got another {', another '.join(differ)}"
            )
        yield line, record


def read_releases(
    path: str | Path,
    scenario: Scenario,
    watch: Callable[[Iterator[Row]], Iterable[Row]] = iter,
    book: Book | None = None,
) -> list[Track]:
    """Everybody's track in a file that `dphmm release` wrote, in order of first appearance.

    Somebody about whom nothing was said has none. `watch` passes the rows on, and may show how
    far the reading is. A file may begin where earlier ones ended: with the book that it came
    from, streams also follow what that book holds besides. What it does not hold is refused.
    """
    name = Path(path).name
    columns = ("person", "time", *scenario.columns, "epsilon")
    slots = Slots(scenario.settings.clock, name)
    first = scenario.settings.clock.first_slot
    tracks: dict[str, Track] = {}
    said: dict[tuple[str, int], tuple[int, ...]] = {}
    besides: dict[str, deque[Record]] = {}
    for line, record, lattice in _with_lattice(
        scenario, released_rows(path, scenario, columns, watch), name
    ):
        person, slot = str(record["person"]).strip(), slots.of(record["time"], line)
        if person not in tracks:
            if book is None:
                # The file tells what was spent; a limit is for those who spend.
                stream = scenario.stream(person, time=slot - 1 if first is None else first)
                tracks[person] = Track(person, stream)
            else:
                tracks[person], besides[person] = _track_in(book, scenario, person, slot)
        track = tracks[person]
        if said.get((person, slot)) == tuple(lattice):
            continue  # a second row of the same step, which has the same answer
        if book is not None:
            rest = besides[person]
            _catch_up(track, rest, slot)
            held = rest.popleft() if rest and rest[0].time == slot else None
            if held is None or tuple(held.lattice) != tuple(lattice):
                raise DataError(f"{name}:{line}: row must be in the book, got another answer")
        try:
            if slot <= track.stream.time:
                raise ValueError
            price = str(record["epsilon"]) if len(lattice) else None
            track.stream.skip(slot - track.stream.time - 1)
            release = track.stream.repeat(lattice, price)
        except (ValueError, TypeError, OverflowError):
            raise _no_release(name, line, scenario) from None
        said[person, slot] = tuple(lattice)
        track.times.append(str(record["time"]).strip())
        track.slots.append(slot)
        track.releases.append(release)
        track.protected.append(None if release.silent else track.stream.said[-1].step)
    for person, rest in besides.items():
        track = tracks[person]
        _catch_up(track, rest, None)
        assert track.budget is not None
        track.stream.ledger = track.budget
    answered = [track for track in tracks.values() if track.stream.said]
    if not answered:
        raise DataError(f"{name}: file must hold at least one release, got none")
    return answered


def _track_in(
    book: Book, scenario: Scenario, person: str, slot: int
) -> tuple[Track, deque[Record]]:
    """A person's track from where the book begins, and what was said since then."""
    terms = scenario.terms
    line = Line("", person, terms.query)
    (place,) = book.places([line])
    standing = place.standing or terms.begin("", person, slot)
    check_fit(place, terms.clock, terms.plane)
    if standing.law != terms.law:
        raise refusal(Verdict.CHANGED)
    began = standing.began
    begun = terms.stand(line, began)
    stream = terms.resume(Stream, book.adopted(line) or begun, None)
    stream._locate, stream._around = scenario.state_of, build_surroundings(scenario)
    budget = ledger_at(place, terms, standing.time)
    return Track(person, stream, budget), deque(book.answers(line, after=stream.time))


def _catch_up(track: Track, besides: deque[Record], slot: int | None) -> None:
    """Follow what the book holds before a slot, or all that is left of it."""
    while besides and (slot is None or besides[0].time < slot):
        follow(track.stream, [besides.popleft()])


def _with_lattice(
    scenario: Scenario, rows: Iterator[Row], name: str
) -> Iterator[tuple[int, Mapping[str, Any], np.ndarray[Any, Any]]]:
    """The rows, each with the lattice point of its answer: none where every cell is empty."""
    nothing = np.zeros(0, dtype=np.int64)
    while some := list(islice(rows, TOGETHER)):
        places = np.zeros((len(some), len(scenario.columns)))
        silent = []
        for number, (line, record) in enumerate(some):
            cells = [record[column] for column in scenario.columns]
            silent.append(all(cell is None or str(cell).strip() == "" for cell in cells))
            try:
                if not silent[-1]:
                    places[number] = [float(cell) for cell in cells]
            except (ValueError, TypeError):
                places[number] = np.nan
            if not np.isfinite(places[number]).all():
                raise _no_release(name, line, scenario)
        # Looked up together: the way from the globe to the plane is long.
        for (line, record), quiet, point in zip(
            some, silent, scenario.on_lattice(places), strict=True
        ):
            yield line, record, nothing if quiet else point


def _no_release(name: str, line: int, scenario: Scenario) -> DataError:
    return DataError(f"{name}:{line}: row must be a release of {scenario.name!r} in order of time")
