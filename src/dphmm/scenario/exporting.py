"""A scenario's policy and its releases as features for maps elsewhere; all of it public."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dphmm.errors import ArgumentError, DataError, TooLargeError
from dphmm.scenario.released import released_rows
from dphmm.scenario.scenario import Scenario
from dphmm.tables.geojson import feature, in_one_piece
from dphmm.tables.trips import Record

__all__ = ["policy_features", "release_features"]

MOST_LINES = 1_000_000


def policy_features(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """A line for every two states that must look alike."""
    places, labels = _places(scenario), scenario.labels
    policy = scenario.policy
    if policy.most_edges > MOST_LINES:
        raise TooLargeError(f"policy must have at most {MOST_LINES} links, got {policy.most_edges}")
    edges = policy.edges
    metres = scenario.states.values(scenario.states.place_columns)
    apart = np.hypot(*(metres[edges[:, 0]] - metres[edges[:, 1]]).T)
    for (a, b), distance in zip(edges.tolist(), apart.round(1).tolist(), strict=True):
        ends = {"from": labels[a], "to": labels[b], "metres": distance}
        yield feature("LineString", in_one_piece(places[[a, b]]), ends)


def release_features(
    scenario: Scenario,
    path: str | Path,
    *,
    estimates: bool = False,
    watch: Callable[[Iterator[Record]], Iterable[Record]] = iter,
) -> Iterator[dict[str, Any]]:
    """A point for every answer of a file that `dphmm release` wrote, or for every estimate."""
    _places(scenario)
    if scenario.columns != scenario.states.place_columns:
        raise ArgumentError("query.columns must be the places of the states for GeoJSON")
    name, kind = Path(path).name, "estimate" if estimates else "answer"
    latitude, longitude = (f"{'estimate_' * estimates}{name}" for name in scenario.columns)
    columns = ("person", "time", "epsilon", latitude, longitude)
    for line, record in released_rows(path, scenario, columns, watch):
        if not estimates and all(record[one] in ("", None) for one in (latitude, longitude)):
            continue  # nothing was said at this step
        try:
            place = [float(record[longitude]), float(record[latitude])]
        except (TypeError, ValueError):
            raise DataError(f"{name}:{line}: {latitude} and {longitude} must be numbers") from None
        facts = {column: record[column] for column in (*columns[:3], "law") if column in record}
        yield feature("Point", place, {**facts, "kind": kind})


def _places(scenario: Scenario) -> np.ndarray[Any, Any]:
    numbers = scenario.states.numbers
    if scenario.states.plane is None:
        raise ArgumentError("states must have latitude and longitude for GeoJSON")
    return np.stack([numbers["longitude"], numbers["latitude"]], axis=-1)
