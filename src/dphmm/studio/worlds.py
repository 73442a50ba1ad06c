"""What the studio can show: the paper's example, a synthetic city, plain grids and chains.

A `World` is a scenario without its policy and budget, which the page is there to change:
model, query, names, categories and, if it has one, a place on a map for every state.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.geometry.query import Query
from dphmm.studio.reading import MAX_STATES, Fields
from dphmm.tables.datasets.city import synthetic_city
from dphmm.tables.geo import Grid, LocalPlane

__all__ = ["Shelf", "World", "built_in"]

REMEMBERED = 8
"""How many worlds the server keeps; the page sends one again when it was forgotten."""

SHOWN_MOVES = 2_000
"""A model with more moves than this is too dense to draw as arrows."""


@dataclass(frozen=True, eq=False)
class World:
    """Everything public about a scenario that the page draws on."""

    title: str
    about: str
    model: MarkovModel
    query: Query
    labels: tuple[str, ...]
    categories: tuple[str, ...]
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

    def __post_init__(self) -> None:
        if self.model.n_states > MAX_STATES:
            raise ArgumentError(
                f"scenario must have at most {MAX_STATES} states in the studio, "
                f"got {self.model.n_states}"
            )

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.model.n_states

    def description(self) -> dict[str, Any]:
        """What the page needs to draw the world."""
        names = sorted(set(self.categories), key=self.categories.index)
        number = {name: i for i, name in enumerate(names)}
        moves = self.model.transition.tocoo()
        shown = moves.nnz <= SHOWN_MOVES
        return {
            "title": self.title,
            "about": self.about,
            "n_states": self.n_states,
            "dimension": self.query.dimension,
            "unit": self.unit,
            "axes": list(self.axes),
            "labels": list(self.labels),
            "category_names": names,
            "categories": [number[name] for name in self.categories],
            "places": None if self.places is None else self.places.round(6).ravel().tolist(),
            "cell": self.cell,
            "answers_are_places": self._answers_are_places(),
            "geographic": self.plane is not None,
            "moves": np.stack([moves.row, moves.col], axis=1).ravel().tolist() if shown else None,
            "probabilities": moves.data.round(6).tolist() if shown else None,
            "radius": self._radii(),
        }

    def _answers_are_places(self) -> bool:
        if self.places is None or self.query.dimension != 2:
            return False
        return bool(np.allclose(self.places, self.query.values, atol=1e-9))

    def _radii(self) -> dict[str, str]:
        """A sensible slider for the distance policy, as exact decimals."""
        spread = float(np.ptp(self.query.values, axis=0).max())
        # A grid's slider ends at a few cells: beyond, the policy is nearly complete.
        most = spread if self.cell is None else min(spread, 6 * self.cell)
        most = max(most, float(self.query.step))
        step = 10.0 ** np.floor(np.log10(most / 20))
        step = max(step, float(self.query.step))
        return {"step": f"{step:.6g}", "most": f"{np.ceil(most / step) * step:.6g}"}


def built_in(fields: Fields) -> World:
    """The world that a request names."""
    name = fields.choice("name", ("paper", "city", "grid", "clinic"))
    if name == "paper":
        return paper()
    if name == "clinic":
        return clinic()
    if name == "city":
        return city(fields.whole("size", 12, 40, default=24))
    rows = fields.whole("rows", 1, 1_000, default=20)
    columns = fields.whole("columns", 1, 1_000, default=20)
    if rows * columns > MAX_STATES:
        raise ArgumentError(
            f"rows times columns must be at most {MAX_STATES}, got {rows * columns}"
        )
    return plain_grid(rows, columns)


def paper() -> World:
    """The running example: six states, temperature and noise level, three categories."""
    transition = [
        [0.0, 0.5, 0.25, 0.0, 0.25, 0.0],
        [0.0, 0.0, 0.5, 0.5, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.5, 0.0],
        [0.0, 0.25, 0.0, 0.25, 0.25, 0.25],
        [0.0, 0.0, 0.0, 0.0, 0.5, 0.5],
        [0.0, 0.0, 0.0, 0.25, 0.25, 0.5],
    ]
    values = np.array([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    return World(
        title="The paper's running example",
        about="Six states, each drawn at its answer: a temperature and a noise level.",
        model=MarkovModel(transition),
        query=Query(values),
        labels=("s1", "s2", "s3", "s4", "s5", "s6"),
        categories=("octagon", "circle", "circle", "square", "square", "square"),
        axes=("temperature", "noise level"),
        places=values.astype(np.float64),
    )


def city(size: int) -> World:
    """A synthetic city with a model learned from the journeys of eighty made-up people."""
    town = synthetic_city(
        people=80, days=5, rng=np.random.default_rng(7), step_minutes=2, size=size
    )
    journeys = [trip.states for trip in town.trips()]
    support = _beside(town.grid)
    model = MarkovModel.fit(journeys, n_states=town.grid.n_states, smoothing=0.2, support=support)
    return _on_grid(
        "A synthetic city",
        "Made-up people on their way, a river with bridges; a step is two minutes.",
        model,
        town.grid,
        town.categories,
        town.plane,
    )


def plain_grid(rows: int, columns: int) -> World:
    """A full grid on which a person stays or moves to any of the cells around."""
    grid = Grid.rectangle(rows, columns, 0.2)
    moves = _beside(grid)
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


def clinic() -> World:
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
    return World(
        title="Rooms of a clinic",
        about="No map, one number per room: how many minutes a visit there takes.",
        model=MarkovModel(transition),
        query=Query([minutes for _, _, minutes in rooms]),
        labels=tuple(name for name, _, _ in rooms),
        categories=tuple(kind for _, kind, _ in rooms),
        unit="min",
        axes=("minutes",),
    )


def _on_grid(
    title: str,
    about: str,
    model: MarkovModel,
    grid: Grid,
    categories: tuple[str, ...],
    plane: LocalPlane | None,
) -> World:
    kilometres = grid.centers / 1000
    return World(
        title=title,
        about=about,
        model=model,
        query=Query(kilometres, step="0.01"),
        labels=tuple(f"{row}:{column}" for row, column in grid.row_col.tolist()),
        categories=categories,
        unit="km",
        axes=("east", "north"),
        places=np.round(kilometres, 9),
        cell=grid.cell_km,
        plane=plane,
        metres=1000.0,
    )


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
    steps = (places - places.min(axis=0)) / side
    regular = np.allclose(steps, np.rint(steps), atol=1e-3) and np.isclose(gaps[1].min(), side)
    return (
        round(side, 6)
        if regular and len(np.unique(np.rint(steps), axis=0)) == len(places)
        else None
    )


def _beside(grid: Grid) -> sparse.csr_array:
    """Ones from every cell to itself and the cells around it."""
    state = {(row, column): i for i, (row, column) in enumerate(grid.row_col.tolist())}
    pairs = [
        (here, state[row + up, column + right])
        for (row, column), here in state.items()
        for up in (-1, 0, 1)
        for right in (-1, 0, 1)
        if (row + up, column + right) in state
    ]
    rows, columns = np.array(pairs).T
    shape = (grid.n_states, grid.n_states)
    return sparse.csr_array((np.ones(len(pairs)), (rows, columns)), shape=shape)


class Shelf:
    """The worlds that were asked for lately, by a name that only their content decides."""

    def __init__(self) -> None:
        self._worlds: OrderedDict[str, World] = OrderedDict()
        self._lock = Lock()

    def put(self, content: Any, make: Callable[[], World]) -> str:
        """The name of the world that `content` describes, made unless it is there."""
        written = json.dumps(content, sort_keys=True).encode()
        name = hashlib.sha256(written).hexdigest()[:16]
        with self._lock:
            if name not in self._worlds:
                self._worlds[name] = make()
            self._worlds.move_to_end(name)
            while len(self._worlds) > REMEMBERED:
                self._worlds.popitem(last=False)
        return name

    def get(self, name: str) -> World | None:
        """The world of that name, or None when it was never made or is forgotten."""
        with self._lock:
            return self._worlds.get(name)
