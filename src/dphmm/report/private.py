"""How far releases were from the truth. Private: computed from true states by their owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import DataError
from dphmm.report.facts import TrackFacts
from dphmm.scenario.scenario import Scenario
from dphmm.tables.columns import match_columns
from dphmm.tables.trips import TOGETHER, read_records, read_trips

__all__ = ["PrivateErrors", "Truth", "distances", "private_errors", "read_truth"]


@dataclass(frozen=True, eq=False)
class Truth:
    """Where people really were, for the owner's own evaluation; `repr` says nothing of it."""

    states: Mapping[tuple[str, int], int] = field(repr=False)
    """The state of a person in a slot of the clock."""
    fixes: Mapping[tuple[str, int], FloatArray] = field(default_factory=dict, repr=False)
    """The true coordinates, where they are known, in the units of the query."""

    def of(self, facts: TrackFacts) -> list[int] | None:
        """A person's state at each release, or None if one is missing."""
        track = facts.track
        found = [self.states.get((track.person, slot)) for slot in track.slots]
        return [state for state in found if state is not None] if None not in found else None

    def places(self, facts: TrackFacts, states: list[int]) -> tuple[FloatArray, int]:
        """Where a person really was at each release, and how many of these are true coordinates.

        Where those are not known it is the place of the state.
        """
        track, values = facts.track, facts.track.stream.query.values
        known = [self.fixes.get((track.person, slot)) for slot in track.slots]
        pairs = zip(known, values[states], strict=True)
        places = [cell if fix is None else fix for fix, cell in pairs]
        return np.array(places), sum(fix is not None for fix in known)


@dataclass(frozen=True)
class PrivateErrors:
    """The mean distance to the truth of one or more people, in the units of the query.

    To the true coordinates where the trips have them, else to the place of the state.
    """

    releases: int
    raw: float
    estimate: float
    lagged: float
    smoothed: float
    map: float
    """From the true coordinates to the place of their state: what the map itself costs."""
    fixes: int
    """How many steps have true coordinates."""
    steps: int
    """How many steps there are, silent ones included."""
    expected: tuple[float, float, float, float]
    """What the noise expects of raw answers, and the model of each kind of estimate.

    It is about the places of states: what the map costs is not in it.
    """

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """Each measured error with the expected one: of answers, estimates, late and smoothed."""
        measured = (self.raw, self.estimate, self.lagged, self.smoothed)
        return list(zip(measured, self.expected, strict=True))


def read_truth(path: str | Path, scenario: Scenario) -> Truth:
    """The true trips of a file, as `dphmm release` was given them."""
    states: dict[tuple[str, int], int] = {}
    lines: dict[int, tuple[str, int]] = {}
    rows = read_trips(path, scenario.states, scenario.settings.clock, together=TOGETHER)
    for row in sorted(rows, key=lambda row: row.order):
        moment = row.person, row.slot
        if moment not in states:  # the earliest row of a step is the one that was answered
            states[moment], lines[row.line] = row.state, moment
    return Truth(states, _fixes(path, scenario, lines))


def _fixes(
    path: str | Path, scenario: Scenario, lines: Mapping[int, tuple[str, int]]
) -> dict[tuple[str, int], FloatArray]:
    """The true coordinates of some lines, if answers are places and the file has coordinates."""
    columns, name = scenario.states.place_columns, Path(path).name
    found: dict[str, str] | None = None
    moments, places = [], []
    if scenario.columns != columns:
        return {}
    for line, record in read_records(path, name):
        if found is None:
            found = match_columns(f"{name}:{line}", record, columns, None)
            if len(found) < len(columns):
                return {}
        if line not in lines:
            continue
        try:
            place = [float(record[found[column]]) for column in columns]
        except (TypeError, ValueError):
            continue
        if np.isfinite(place).all():
            moments.append(lines[line])
            places.append(place)
    if not places:
        return {}
    return dict(zip(moments, scenario.states.in_metres(columns, places), strict=True))


def private_errors(people: Sequence[TrackFacts], truth: Truth) -> PrivateErrors:
    """The mean errors over every release of some people; all of them must be in the truth."""
    total, expected, apart = np.zeros(4), np.zeros(4), 0.0
    answers = steps = fixes = 0
    for facts in people:
        states = truth.of(facts)
        if states is None:
            raise DataError("trips must hold every released person and time, got fewer")
        real, known = truth.places(facts, states)
        kinds = (facts.answers, facts.estimates, facts.lagged, facts.smoothed)
        # Estimates are there at every step, answers where something was said.
        total += [np.nansum(distances(kind, real)) for kind in kinds]
        expected += np.nansum(facts.expected_errors, axis=0)
        apart += float(distances(facts.track.stream.query.values[states], real).sum())
        answers, steps, fixes = answers + facts.said, steps + len(states), fixes + known
    counts = np.array([answers, steps, steps, steps])
    raw, estimate, lagged, smoothed = (total / counts).tolist()
    return PrivateErrors(
        releases=answers,
        raw=raw,
        estimate=estimate,
        lagged=lagged,
        smoothed=smoothed,
        map=apart / max(1, fixes),
        fixes=fixes,
        steps=steps,
        expected=tuple((expected / counts).tolist()),
    )


def distances(answers: FloatArray, real: FloatArray) -> FloatArray:
    """How far each answer is from where somebody was."""
    return np.asarray(np.sqrt(((answers - real) ** 2).sum(axis=1)))
