"""What the studio can show: the paper's example, a synthetic city, plain grids and chains.

Each is opened as if it came from a file.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.scenario import Policy, Scenario, Settings, States
from dphmm.scenario.learning import moves_within
from dphmm.studio.drawing import Drawing
from dphmm.studio.opened import Opened
from dphmm.studio.requests import MAX_STATES, Open
from dphmm.tables.datasets.city import synthetic_city
from dphmm.tables.datasets.running_example import running_example
from dphmm.tables.geo import Grid, LocalPlane

__all__ = ["open_example"]

AROUND = 1.5
"""The reach of a move in cells: the eight around, and not the next but one."""


def open_example(request: Open) -> Opened:
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


def paper() -> Opened:
    """The running example: six states, temperature and noise level, three categories."""
    example = running_example()
    values = example.query.values
    shapes = {"cafeteria": "octagon", "school": "circle", "grocery": "square"}
    states = States(
        example.labels,
        {"temperature": values[:, 0], "noise level": values[:, 1]},
        {"category": tuple(shapes[kind] for kind in example.kinds)},
    )
    drawing = Drawing(
        title="The paper's running example",
        about="Six states, each drawn at its answer: a temperature and a noise level.",
        axes=tuple(states.numbers),
        places=values,
    )
    return _opened(states, example.model, drawing, repair="none")


def city(size: int) -> Opened:
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


def plain_grid(rows: int, columns: int) -> Opened:
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


def clinic() -> Opened:
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
    return _opened(states, MarkovModel(transition), drawing)


def _opened(states: States, model: MarkovModel, drawing: Drawing, **chosen: Any) -> Opened:
    """An example as if it came from a file."""
    settings = Settings(
        "studio",
        Fraction(1),
        columns=tuple(states.numbers) if not states.place_columns else (),
        **{"policy": Policy(category="category"), "unit": drawing.unit, **chosen},
    )
    source = f"{drawing.title}, made up by the studio"
    text = settings.to_toml()
    made = Scenario.from_settings(Settings.parse(text, "scenario.toml"), states, model, source)
    return Opened(made, drawing, text)


def _on_grid(
    title: str,
    about: str,
    model: MarkovModel,
    grid: Grid,
    categories: tuple[str, ...],
    plane: LocalPlane | None,
) -> Opened:
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
    far = Policy(distance=Fraction(str(2 * grid.cell_km)))
    return _opened(states, model, drawing, policy=far, step=Fraction("0.01"), unit="km")
