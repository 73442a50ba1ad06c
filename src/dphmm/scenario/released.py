"""Releases read back from a file, each person's stream brought to where they lead.

What `dphmm release` wrote is enough to know all that anybody can know: estimates, smoothed
estimates and prices follow from the answers and the scenario.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dphmm.errors import DataError, UnknownLawWarning
from dphmm.policy.plan import Protected
from dphmm.release.law_parts import differing_parts
from dphmm.release.said import Release
from dphmm.release.stream import Stream
from dphmm.scenario.scenario import Scenario
from dphmm.tables.clock import Slots
from dphmm.tables.trips import Record, read_records

__all__ = ["Track", "read_releases", "released_rows"]

TOGETHER = 4096
"""Rows whose places are looked up together."""


@dataclass(frozen=True, eq=False)
class Track:
    """What was said about one person; all of it is public."""

    person: str
    stream: Stream
    times: list[str] = field(default_factory=list, repr=False)
    """As written in the file, one a release."""
    slots: list[int] = field(default_factory=list, repr=False)
    """The step of the clock that each time falls in."""
    releases: list[Release] = field(default_factory=list, repr=False)
    protected: list[Protected | None] = field(default_factory=list, repr=False)
    """The public rules of each release: possible set, policy, noise; None at a silent step."""

    @property
    def spent(self) -> Fraction:
        """The sum of every epsilon."""
        return self.stream.standing.spent


def released_rows(
    path: str | Path,
    scenario: Scenario,
    columns: Sequence[str],
    watch: Callable[[Iterator[Record]], Iterable[Record]] = iter,
) -> Iterator[Record]:
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
    watch: Callable[[Iterator[Record]], Iterable[Record]] = iter,
) -> list[Track]:
    """Everybody's track in a file that `dphmm release` wrote, in order of first appearance.

    Somebody about whom nothing was said has none. `watch` passes the rows on, and may show how
    far the reading is.
    """
    name = Path(path).name
    columns = ("person", "time", *scenario.columns, "epsilon")
    slots = Slots(scenario.settings.clock, name)
    first = scenario.settings.clock.first_slot
    tracks: dict[str, Track] = {}
    said: dict[tuple[str, int], tuple[int, ...]] = {}
    for line, record, lattice in _with_lattice(
        scenario, released_rows(path, scenario, columns, watch), name
    ):
        person, slot = str(record["person"]).strip(), slots.of(record["time"], line)
        if person not in tracks:
            # The file tells what was spent; a limit is for those who spend.
            stream = scenario.stream(person, time=slot - 1 if first is None else first)
            tracks[person] = Track(person, stream)
        track = tracks[person]
        if said.get((person, slot)) == tuple(lattice):
            continue  # a second row of the same step, which has the same answer
        try:
            if slot <= track.stream.time:
                raise ValueError
            track.stream.skip(slot - track.stream.time - 1)
            price = str(record["epsilon"]) if len(lattice) else None
            release = track.stream.repeat(lattice, price)
        except (ValueError, TypeError, OverflowError):
            raise _no_release(name, line, scenario) from None
        said[person, slot] = tuple(lattice)
        track.times.append(str(record["time"]).strip())
        track.slots.append(slot)
        track.releases.append(release)
        track.protected.append(None if release.silent else track.stream.said[-1].step)
    answered = [track for track in tracks.values() if track.stream.said]
    if not answered:
        raise DataError(f"{name}: file must hold at least one release, got none")
    return answered


def _with_lattice(
    scenario: Scenario, rows: Iterator[Record], name: str
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
