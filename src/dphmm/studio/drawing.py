"""How the page shows a scenario: places, cells, categories, a sensible slider."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import ArgumentError, MissingExtraError
from dphmm.report.ground import Ground, read_outlines
from dphmm.scenario import Scenario
from dphmm.scenario.building import category_of, unit_of
from dphmm.studio.requests import MAX_STATES, MAX_TEXT
from dphmm.tables.basemap import BaseMap, read_base
from dphmm.tables.geo import LocalPlane, cell_of

__all__ = ["Drawing", "describe", "draw", "radii"]

DRAWN_MOVES = 60
"""With more states than this the moves of a model are too dense to draw as arrows."""

MANY_MOVES = 6
LIKELIEST = 2
"""Where a state has more moves than `MANY_MOVES` on average, the likeliest ones of each are drawn:
all would cover the places."""

AROUND = 0.3
"""How far beyond its states a base map is drawn, as a part of their extent."""

FEW_STATES = 30
"""So few states are better seen as points with names than as a handful of cells."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """How the page shows a scenario."""

    title: str
    about: str
    unit: str = ""
    axes: tuple[str, ...] = ()
    places: FloatArray | None = None
    """Where each state is drawn; None leaves it to the page."""
    cell: float | None = None
    """The side of a square cell around each place, if the states are cells of a grid."""
    rings: list[list[FloatArray]] | None = None
    """The outline of each state, if they are hexagons or other polygons."""
    plane: LocalPlane | None = None
    """Where on Earth the answers are, if they are places."""
    metres: float = 1.0
    """How many metres a unit of the answers has on the plane."""
    base: BaseMap | None = None
    """What is drawn under the states."""

    def degrees(self, answers: FloatArray) -> list[list[float]] | None:
        """Longitude and latitude of answers on a map, for export; None without a map."""
        if self.plane is None or not len(answers):
            return None
        try:
            latitude, longitude = self.plane.to_degrees(*(answers.T * self.metres))
        except MissingExtraError:
            return None
        degrees: list[list[float]] = np.stack([longitude, latitude], axis=1).round(7).tolist()
        return degrees


def describe(scenario: Scenario, drawing: Drawing) -> dict[str, Any]:
    """What the page needs to draw the scenario."""
    column = _category_column(scenario)
    categories = (
        [str(value)[:MAX_TEXT] for value in category_of(scenario.states, column)]
        if column
        else ["place"] * len(scenario.states)
    )
    # The most common first, as in reports, so that a category has one colour everywhere.
    names = sorted(found := Counter(categories), key=lambda name: (-found[name], name))
    number = {name: i for i, name in enumerate(names)}
    places, query = drawing.places, scenario.query
    return {
        "title": drawing.title,
        "about": drawing.about,
        "n_states": len(scenario.states),
        "dimension": query.dimension,
        "unit": drawing.unit,
        "axes": list(drawing.axes),
        "labels": [label[:MAX_TEXT] for label in scenario.labels],
        "columns": [*scenario.states.texts, *scenario.states.numbers],
        "category_names": names,
        "categories": [number[name] for name in categories],
        "places": None if places is None else places.round(6).ravel().tolist(),
        "cell": drawing.cell,
        "outlines": None if drawing.rings is None else _flat(drawing.rings),
        "base": None if drawing.base is None else drawing.base.plain(),
        "answers_are_places": places is not None
        and query.dimension == 2
        and bool(np.allclose(places, query.values, atol=1e-9)),
        **_moves(scenario),
        "radius": radii(scenario, drawing),
        "has_dates": scenario.settings.clock.has_dates,
        "time_step": str(scenario.settings.clock.step),
    }


def _flat(rings: list[list[FloatArray]]) -> list[list[list[float]]]:
    """The rings of each state as x, y, x, y..., as finely as a screen can show."""
    corners = np.concatenate([ring for own in rings for ring in own])
    digits = max(0, 5 - int(np.floor(np.log10(max(float(np.ptp(corners, axis=0).max()), 1e-9)))))
    flat = corners.round(digits).ravel().tolist()
    ends = iter(np.cumsum([2 * len(ring) for own in rings for ring in own]).tolist())
    # The last corner is the first again.
    return [[flat[(end := next(ends)) - 2 * len(ring) : end - 2] for ring in own] for own in rings]


def _moves(scenario: Scenario) -> dict[str, Any]:
    """The moves of the model as arrows, and whether these are all."""
    count = len(scenario.states)
    if count > DRAWN_MOVES:
        return {"moves": None, "all_moves": False}
    moves = scenario.model.on_places.at(1).transition.tocoo()
    rows, columns, chances = (
        part[moves.row != moves.col] for part in (moves.row, moves.col, moves.data)
    )
    whole = len(rows) <= MANY_MOVES * count
    if not whole:
        order = np.lexsort((-chances, rows))
        rank = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
        kept = np.sort(order[rank < LIKELIEST])
        rows, columns = rows[kept], columns[kept]
    return {"moves": np.stack([rows, columns], axis=1).ravel().tolist(), "all_moves": whole}


def radii(scenario: Scenario, drawing: Drawing) -> dict[str, str]:
    """A sensible slider for the distance policy, as exact decimals."""
    query, cell = scenario.query, drawing.cell or _width(drawing.rings)
    spread = float(np.ptp(query.values, axis=0).max())
    # A grid's slider ends at a few cells: beyond, the policy is nearly complete.
    most = max(spread if cell is None else min(spread, 6 * cell), float(query.step))
    step = max(10.0 ** np.floor(np.log10(most / 20)), float(query.step))
    usual = max(1, round(0.4 * most / step)) * step
    chosen = {"step": step, "most": np.ceil(most / step) * step, "usual": usual}
    return {name: f"{value:.6g}" for name, value in chosen.items()}


def _width(rings: list[list[FloatArray]] | None) -> float | None:
    """About how wide states with outlines are."""
    if rings is None:
        return None
    return float(np.median([np.sqrt(np.prod(np.ptp(own[0], axis=0))) for own in rings]))


def _category_column(scenario: Scenario) -> str | None:
    """The column whose values colour the states: the policy's own, or the first of texts."""
    return scenario.settings.policy.category or next(iter(scenario.states.texts), None)


def draw(scenario: Scenario, folder: Path | None = None) -> Drawing:
    """The drawing that a scenario's table of states suggests, over its base map in a folder."""
    states, query = scenario.states, scenario.query
    if len(states) > MAX_STATES:
        raise ArgumentError(
            f"scenario must have at most {MAX_STATES} states in the studio, got {len(states)}"
        )
    places = None
    if states.place_columns:
        places = states.values(states.place_columns)
    elif query.dimension == 2:
        places = query.values
    cell = cell_of(places) if places is not None and len(states) >= FEW_STATES else None
    on_earth = states.plane is not None and scenario.columns == states.place_columns
    return Drawing(
        title=scenario.name,
        about=f"{len(states):,} states; model: {scenario.source}",
        unit=unit_of(scenario),
        axes=("east", "north") if on_earth else scenario.columns,
        places=places,
        cell=cell,
        rings=None if cell is not None or folder is None else _rings(scenario, folder),
        plane=states.plane if on_earth else None,
        base=None if folder is None or places is None else _base(scenario, folder, places),
    )


def _rings(scenario: Scenario, folder: Path) -> list[list[FloatArray]] | None:
    """The outlines of states, as reports have them."""
    outlines = read_outlines(scenario, folder)
    return Ground(scenario, outlines=outlines).rings if outlines else None


def _base(scenario: Scenario, folder: Path, places: FloatArray) -> BaseMap | None:
    """The scenario's base map, a little beyond its states."""
    if scenario.settings.base is None:
        return None
    low, high = places.min(axis=0), places.max(axis=0)
    room = AROUND * float((high - low).max())
    return read_base(folder / scenario.settings.base, scenario.states, low - room, high + room)
