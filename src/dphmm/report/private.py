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
from dphmm.tables.trips import read_trips

__all__ = ["PrivateErrors", "Truth", "distances", "private_errors", "read_truth"]


@dataclass(frozen=True, eq=False)
class Truth:
    """Where people really were, for the owner's own evaluation; `repr` says nothing of it."""

    states: Mapping[tuple[str, int], int] = field(repr=False)
    """The state of a person in a slot of the clock."""

    def of(self, facts: TrackFacts) -> list[int] | None:
        """A person's state at each release, or None if one is missing."""
        track = facts.track
        found = [self.states.get((track.person, slot)) for slot in track.slots]
        return [state for state in found if state is not None] if None not in found else None


@dataclass(frozen=True)
class PrivateErrors:
    """The mean distance to the truth of one or more people, in the units of the query."""

    releases: int
    raw: float
    estimate: float
    lagged: float
    smoothed: float


def read_truth(path: str | Path, scenario: Scenario) -> Truth:
    """The true trips of a file, as `dphmm release` was given them."""
    rows = read_trips(path, scenario.states, scenario.settings.clock, together=10_000)
    return Truth({(row.person, row.slot): row.state for row in rows})


def private_errors(people: Sequence[TrackFacts], truth: Truth) -> PrivateErrors:
    """The mean errors over every release of some people; all of them must be in the truth."""
    total, counts = np.zeros(4), np.zeros(4, dtype=np.int64)
    for facts in people:
        states = truth.of(facts)
        if states is None:
            raise DataError("trips must hold every released person and time, got fewer")
        real = facts.track.stream.query.values[states]
        kinds = (facts.answers, facts.estimates, facts.lagged, facts.smoothed)
        # Estimates are there at every step, answers where something was said.
        total += [np.nansum(distances(kind, real)) for kind in kinds]
        counts += [facts.said, *[len(states)] * 3]
    return PrivateErrors(int(counts[0]), *(total / counts).tolist())


def distances(answers: FloatArray, real: FloatArray) -> FloatArray:
    """How far each answer is from where somebody was."""
    return np.asarray(np.sqrt(((answers - real) ** 2).sum(axis=1)))
