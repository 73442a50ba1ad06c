"""Scenarios on disk and worlds on the page: the same things, both ways.

A scenario is saved as the files that `dphmm check` and the other commands read. What was
drawn by hand becomes a file of edges; edges taken away from a base make the whole policy one.
"""

from __future__ import annotations

import io
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text
from dphmm.scenario import Policy, Scenario, Settings, States
from dphmm.studio.effects import COUNTED_EDGES, count_pairs, read_epsilon, read_policy
from dphmm.studio.reading import MAX_TEXT, Fields
from dphmm.studio.simulate import read_limit, read_repair
from dphmm.studio.worlds import World, cell_of

__all__ = ["opening_view", "packed", "scenario_of", "world_of"]

NAME = "scenario.toml"
EDGES = "edges.csv"
FEW_STATES = 30


def scenario_of(world: World, fields: Fields) -> Scenario:
    """The scenario that a request describes: the world with its policy and budget."""
    categories, policy, edges = _policy(world, fields.inner("policy"))
    columns = _columns(world)
    values = world.query.in_units(world.query.points)
    states = States(
        world.labels,
        {name: values[:, i].copy() for i, name in enumerate(columns)},
        {"category": categories},
    )
    settings = Settings(
        name="studio",
        epsilon=read_epsilon(fields),
        limit=read_limit(fields),
        start=_start(world, fields.inner("moment")),
        columns=columns,
        step=world.query.step,
        policy=policy,
        repair=read_repair(fields),
    )
    return Scenario.from_settings(
        settings, states, world.model, f"{world.title}, made up by the studio", edges
    )


def packed(scenario: Scenario) -> bytes:
    """The scenario's files in one archive."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, ZipFile(out, "w", ZIP_DEFLATED) as archive:
        scenario.save(Path(folder) / NAME)
        for path in sorted(Path(folder).iterdir()):
            archive.write(path, path.name)
    return out.getvalue()


def world_of(scenario: Scenario) -> World:
    """The world of a scenario from disk."""
    if not isinstance(scenario.model, MarkovModel):
        raise ArgumentError("model must be a plain chain in the studio, got one of another kind")
    states, query = scenario.states, scenario.query
    places = None
    if states.place_columns:
        places = states.values(states.place_columns)
    elif query.dimension == 2:
        places = query.values
    # A few states are better seen as points with names than as a handful of cells.
    cell = cell_of(places) if places is not None and len(states) >= FEW_STATES else None
    on_earth = states.plane is not None and scenario.columns == states.place_columns
    column = scenario.settings.policy.category or next(iter(states.texts), None)
    categories = ("state",) * len(states) if column is None else scenario.category(column)
    return World(
        title=scenario.name,
        about=f"{len(states)} states; model: {scenario.source}",
        model=scenario.model,
        query=query,
        labels=tuple(label[:MAX_TEXT] for label in scenario.labels),
        categories=tuple(str(name)[:MAX_TEXT] for name in categories),
        unit="m" if on_earth else "",
        axes=("east", "north") if on_earth else scenario.columns,
        places=places,
        cell=cell,
        plane=states.plane if on_earth else None,
    )


def opening_view(scenario: Scenario) -> dict[str, Any]:
    """What the page shows first for a scenario from disk."""
    chosen = scenario.settings.policy
    bases = {
        "complete": chosen.complete,
        "categories": chosen.category is not None,
        "distance": chosen.distance is not None,
        "one_step": chosen.one_step,
    }
    given = [name for name, used in bases.items() if used]
    policy: dict[str, Any] = {"base": given[0] if len(given) == 1 else "none"}
    if chosen.distance is not None:
        policy["radius"] = as_text(chosen.distance)
    if len(given) > 1:
        # A union of bases has no button of its own, so it is shown as what it consists of.
        policy["links"] = scenario.policy.edges.tolist()
    elif scenario.edges:
        pairs = {
            tuple(sorted((scenario.state_of(a), scenario.state_of(b)))) for a, b in scenario.edges
        }
        policy["links"] = [list(pair) for pair in sorted(pairs)]
    view: dict[str, Any] = {"policy": policy, "epsilon": as_text(scenario.settings.epsilon)}
    possible = np.flatnonzero(scenario.start.possible)
    if len(possible) == 1:
        view["moment"] = {"start": int(possible[0]), "steps": 0}
    elif len(possible) < len(scenario.states):
        view["moment"] = {"states": possible.tolist()}
    return view


def _policy(
    world: World, fields: Fields
) -> tuple[tuple[str, ...], Policy, tuple[tuple[str, str], ...]]:
    """Categories, the policy's settings, and the labels of the edges that they do not cover."""
    painted = fields.labels("categories", world.n_states)
    categories = world.categories if painted is None else tuple(painted)
    base = fields.text("base", default="none")
    drawn = fields.has("links") or fields.has("cliques") or fields.has("unlinks")
    whole = bool(fields.pairs("unlinks", world.n_states)) or base == "none"
    graph = read_policy(world, fields)
    if whole or drawn:
        wanted = fields if whole else fields.without("base")
        extra = graph if whole else read_policy(world, wanted)
        if count_pairs(extra) > COUNTED_EDGES:
            raise ArgumentError(f"policy must have at most {COUNTED_EDGES} edges to be saved")
        pairs = extra.edges.tolist()
    else:
        pairs = []
    edges = tuple((world.labels[a], world.labels[b]) for a, b in pairs)
    radius = fields.rational("radius", Fraction(0), Fraction(10**9), default="0")
    policy = Policy(
        complete=not whole and base == "complete",
        category="category" if not whole and base == "categories" else None,
        distance=radius if not whole and base == "distance" else None,
        one_step=not whole and base == "one_step",
        edges=EDGES if edges else None,
    )
    return categories, policy, edges


def _columns(world: World) -> tuple[str, ...]:
    if world.axes == ("east", "north"):
        return ("x", "y")
    names = world.axes or tuple(f"answer {i + 1}" for i in range(world.query.dimension))
    return tuple(names)


def _start(world: World, fields: Fields) -> str | dict[str, float]:
    if fields.has("start"):
        return world.labels[fields.state("start", world.n_states)]
    if fields.has("states"):
        states = fields.states("states", world.n_states)
        return {world.labels[state]: 1 / len(states) for state in states}
    return "uniform"
