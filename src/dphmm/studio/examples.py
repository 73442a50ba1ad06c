"""What the studio can show: the paper's example, a synthetic city, plain grids and chains.

Each is a scenario; a `Drawing` beside it says how the page shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError, MissingExtraError
from dphmm.scenario import Policy, Scenario, States
from dphmm.scenario.building import category_of, unit_of
from dphmm.scenario.learning import moves_within
from dphmm.studio.requests import MAX_STATES, MAX_TEXT, Open
from dphmm.tables.datasets.city import synthetic_city
from dphmm.tables.geo import Grid, LocalPlane

__all__ = ["Drawing", "Shown", "categories_of", "category_column", "draw", "open_example"]

SHOWN_MOVES = 2_000
"""A model with more moves than this is too dense to draw as arrows."""

AROUND = 1.5
"""The reach of a move in cells: the eight around, and not the next but one."""

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
    plane: LocalPlane | None = None
    """Where on Earth the answers are, if they are places."""
    metres: float = 1.0
    """How many metres a unit of the answers has on the plane."""

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


class Shown(NamedTuple):
    """A scenario and its drawing."""

    scenario: Scenario
    drawing: Drawing

    def describe(self) -> dict[str, Any]:
        """What the page needs to draw the scenario."""
        scenario, drawing = self
        categories = [name[:MAX_TEXT] for name in categories_of(scenario)]
        names = list(dict.fromkeys(categories))
        number = {name: i for i, name in enumerate(names)}
        moves = scenario.model.on_places.at(1).transition.tocoo()
        few = moves.nnz <= SHOWN_MOVES
        places, query = drawing.places, scenario.query
        return {
            "title": drawing.title,
            "about": drawing.about,
            "n_states": len(scenario.states),
            "dimension": query.dimension,
            "unit": drawing.unit,
            "axes": list(drawing.axes),
            "labels": [label[:MAX_TEXT] for label in scenario.labels],
            "category_names": names,
            "categories": [number[name] for name in categories],
            "places": None if places is None else places.round(6).ravel().tolist(),
            "cell": drawing.cell,
            "answers_are_places": places is not None
            and query.dimension == 2
            and bool(np.allclose(places, query.values, atol=1e-9)),
            "moves": np.stack([moves.row, moves.col], axis=1).ravel().tolist() if few else None,
            "probabilities": moves.data.round(6).tolist() if few else None,
            "radius": self._radii(),
        }

    def _radii(self) -> dict[str, str]:
        """A sensible slider for the distance policy, as exact decimals."""
        query, cell = self.scenario.query, self.drawing.cell
        spread = float(np.ptp(query.values, axis=0).max())
        # A grid's slider ends at a few cells: beyond, the policy is nearly complete.
        most = max(spread if cell is None else min(spread, 6 * cell), float(query.step))
        step = max(10.0 ** np.floor(np.log10(most / 20)), float(query.step))
        return {"step": f"{step:.6g}", "most": f"{np.ceil(most / step) * step:.6g}"}


def category_column(scenario: Scenario) -> str | None:
    """The column whose values colour the states: the policy's own, or the first of texts."""
    return scenario.settings.policy.category or next(iter(scenario.states.texts), None)


def categories_of(scenario: Scenario) -> list[str]:
    """The value of that column in each state; without one all are alike."""
    column = category_column(scenario)
    if column is None:
        return ["state"] * len(scenario.states)
    return [str(value) for value in category_of(scenario.states, column)]


def draw(scenario: Scenario) -> Shown:
    """A scenario from disk with the drawing that its table of states suggests."""
    states, query = scenario.states, scenario.query
    if not isinstance(scenario.model, MarkovModel):
        raise ArgumentError("model must be a plain chain in the studio, got one of another kind")
    if len(states) > MAX_STATES:
        raise ArgumentError(
            f"scenario must have at most {MAX_STATES} states in the studio, got {len(states)}"
        )
    places = None
    if states.place_columns:
        places = states.values(states.place_columns)
    elif query.dimension == 2:
        places = query.values
    on_earth = states.plane is not None and scenario.columns == states.place_columns
    drawing = Drawing(
        title=scenario.name,
        about=f"{len(states)} states; model: {scenario.source}",
        unit=unit_of(scenario),
        axes=("east", "north") if on_earth else scenario.columns,
        places=places,
        cell=cell_of(places) if places is not None and len(states) >= FEW_STATES else None,
        plane=states.plane if on_earth else None,
    )
    return Shown(scenario, drawing)


def open_example(request: Open) -> Shown:
    """The example that a request names."""
    if request.name == "paper":
        return paper()
    if request.name == "clinic":
        return clinic()
    if request.name == "city":
        return city(request.size)
    if request.name == "grid":
        return plain_grid(request.rows, request.columns)
    raise ArgumentError("name must be that of an example, got 'own' without a scenario")


def paper() -> Shown:
    """The running example: six states, temperature and noise level, three categories."""
    transition = [
        [0.0, 0.5, 0.25, 0.0, 0.25, 0.0],
        [0.0, 0.0, 0.5, 0.5, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.5, 0.0],
        [0.0, 0.25, 0.0, 0.25, 0.25, 0.25],
        [0.0, 0.0, 0.0, 0.0, 0.5, 0.5],
        [0.0, 0.0, 0.0, 0.25, 0.25, 0.5],
    ]
    values = np.array([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]], dtype=np.float64)
    states = States(
        ("s1", "s2", "s3", "s4", "s5", "s6"),
        {"temperature": values[:, 0], "noise level": values[:, 1]},
        {"category": ("octagon", "circle", "circle", "square", "square", "square")},
    )
    drawing = Drawing(
        title="The paper's running example",
        about="Six states, each drawn at its answer: a temperature and a noise level.",
        axes=tuple(states.numbers),
        places=values,
    )
    return Shown(_scenario(states, MarkovModel(transition), drawing), drawing)


def city(size: int) -> Shown:
    """A synthetic city with a model learned from the journeys of eighty made-up people."""
    town = synthetic_city(
        people=80, days=5, rng=np.random.default_rng(7), step_minutes=2, size=size
    )
    journeys = [trip.states for trip in town.trips()]
    support = moves_within(town.grid.row_col, AROUND)
    model = MarkovModel.fit(journeys, n_states=town.grid.n_states, smoothing=0.2, support=support)
    return _on_grid(
        "A synthetic city",
        "Made-up people on their way, a river with bridges; a step is two minutes.",
        model,
        town.grid,
        town.categories,
        town.plane,
    )


def plain_grid(rows: int, columns: int) -> Shown:
    """A full grid on which a person stays or moves to any of the cells around."""
    if rows * columns > MAX_STATES:
        raise ArgumentError(
            f"rows times columns must be at most {MAX_STATES}, got {rows * columns}"
        )
    grid = Grid.rectangle(rows, columns, 0.2)
    moves = moves_within(grid.row_col, AROUND)
    scale = sparse.diags_array(1 / moves.sum(axis=1))
    row, column = grid.row_col.T
    block = (row // 5) * (columns // 5 + 1) + column // 5
    kinds = np.array(["north", "east", "south", "west"], dtype=object)[(block + row // 5) % 4]
    return _on_grid(
        f"A grid of {rows} by {columns} cells",
        "Nobody in particular: from every cell to itself and the cells around it.",
        MarkovModel(sparse.csr_array(scale @ moves)),
        grid,
        tuple(str(kind) for kind in kinds),
        None,
    )


def clinic() -> Shown:
    """A chain without coordinates: rooms of a clinic and the minutes spent in each."""
    rooms = (
        ("entrance", "public", 2),
        ("waiting room", "public", 15),
        ("pharmacy", "public", 5),
        ("triage", "care", 8),
        ("X-ray", "care", 12),
        ("surgery", "sensitive", 60),
        ("oncology", "sensitive", 45),
        ("psychiatry", "sensitive", 50),
    )
    transition: list[list[float]] = [
        [0, 0.7, 0.3, 0, 0, 0, 0, 0],
        [0, 0.4, 0, 0.6, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0.2, 0, 0, 0.3, 0.1, 0.2, 0.2],
        [0, 0.3, 0.3, 0, 0, 0.4, 0, 0],
        [0, 0, 0.5, 0, 0, 0.5, 0, 0],
        [0, 0, 0.4, 0, 0.2, 0, 0.4, 0],
        [0, 0, 0.5, 0, 0, 0, 0, 0.5],
    ]
    labels, kinds, minutes = zip(*rooms, strict=True)
    states = States(labels, {"minutes": np.array(minutes, dtype=np.float64)}, {"category": kinds})
    drawing = Drawing(
        title="Rooms of a clinic",
        about="No map, one number per room: how many minutes a visit there takes.",
        unit="min",
        axes=("minutes",),
    )
    return Shown(_scenario(states, MarkovModel(transition), drawing), drawing)


def _scenario(states: States, model: MarkovModel, drawing: Drawing, step: str = "1") -> Scenario:
    return Scenario(
        states,
        model,
        Policy(category="category"),
        epsilon=1,
        name="studio",
        columns=tuple(states.numbers),
        step=step,
        source=f"{drawing.title}, made up by the studio",
    )


def _on_grid(
    title: str,
    about: str,
    model: MarkovModel,
    grid: Grid,
    categories: tuple[str, ...],
    plane: LocalPlane | None,
) -> Shown:
    kilometres = np.round(grid.centers / 1000, 9)
    labels = (f"{row}:{column}" for row, column in grid.row_col.tolist())
    drawing = Drawing(
        title=title,
        about=about,
        unit="km",
        axes=("east", "north"),
        places=kilometres,
        cell=grid.cell_km,
        plane=plane,
        metres=1000.0,
    )
    states = States.on_plane(kilometres, categories, labels)
    return Shown(_scenario(states, model, drawing, step="0.01"), drawing)


def cell_of(places: FloatArray) -> float | None:
    """The side of the cells if the places are the centres of a square grid's cells.

    >>> cell_of(np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [3.5, 2.5]]))
    1.0
    >>> cell_of(np.array([[0.0, 0.0], [1.0, 0.3], [2.0, 1.0], [2.5, 2.0]])) is None
    True
    """
    gaps = [np.diff(np.unique(axis.round(6))) for axis in places.T]
    if len(places) < 4 or not all(len(gap) for gap in gaps):
        return None
    side = float(gaps[0].min())
    steps = np.rint((places - places.min(axis=0)) / side)
    regular = np.allclose(places - places.min(axis=0), steps * side, atol=1e-3 * side)
    square = np.isclose(gaps[1].min(), side) and len(np.unique(steps, axis=0)) == len(places)
    return round(side, 6) if regular and square else None
