"""The policy and the start of a scenario, from the rules that its file states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.every import EveryModel
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.cost.whereabouts import Surroundings
from dphmm.errors import ArgumentError, ScenarioError, expect_each
from dphmm.geometry.exact import as_text
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.scenario.settings import Policy
from dphmm.tables.states import States

if TYPE_CHECKING:
    from dphmm.scenario.scenario import Scenario

__all__ = [
    "build_policy",
    "build_start",
    "build_surroundings",
    "category_of",
    "check_edges",
    "html_of",
    "lattice_of",
    "place_columns_of",
    "read_policy",
    "readable",
    "unit_of",
]

EDGES = "edges.csv"


def read_policy(policy: PolicyGraph | Policy) -> tuple[PolicyGraph | None, Policy]:
    """A policy as a graph, if it was given as one, and as rules."""
    if isinstance(policy, PolicyGraph):
        return policy, Policy(edges=EDGES)
    if not isinstance(policy, Policy):
        raise ScenarioError(
            f"policy must be a PolicyGraph or a Policy, got {type(policy).__name__}"
        )
    return None, policy


def build_policy(
    rules: Policy, states: States, query: Query, model: Chain, edges: Sequence[tuple[str, str]]
) -> PolicyGraph:
    """The union of every rule's edges."""
    n_states = len(states)
    graph = PolicyGraph(n_states)
    if rules.complete:
        graph = graph | PolicyGraph.complete(n_states)
    if rules.category is not None:
        graph = graph | PolicyGraph.by_category(category_of(states, rules.category))
    if rules.distance is not None:
        graph = graph | PolicyGraph.within_distance(query, rules.distance)
    if rules.one_step:
        moves = model.on_places
        turns = moves.models if isinstance(moves, TimeVaryingModel) else (moves.at(1),)
        for one in turns:
            graph = graph | PolicyGraph.one_step(one)
    if edges:
        linked = [[states.state_of(a), states.state_of(b)] for a, b in edges]
        graph = graph | PolicyGraph(n_states, linked)
    return graph


def check_edges(edges: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The pairs of labels that a policy links."""
    pairs = expect_each(edges, tuple, "edges")
    if any(len(pair) != 2 for pair in pairs):
        raise ArgumentError("edges must be pairs of labels, got a longer or shorter one")
    return tuple(pairs)


def category_of(states: States, column: str) -> tuple[Any, ...]:
    """The values of a column that groups the states."""
    if column in states.texts:
        return states.texts[column]
    if column in states.numbers:
        return tuple(states.numbers[column].tolist())
    raise ScenarioError(f"policy.category must be a column of the states, got {column!r}")


def place_columns_of(states: States) -> tuple[str, ...]:
    """The columns that say where states are; refused if there are none."""
    if not states.place_columns:
        known = ", ".join((*states.numbers, *states.texts)) or "labels only"
        raise ScenarioError(
            f"{states.source}: states must have x and y or latitude and longitude, or columns of "
            f'numbers to answer with, such as [query] columns = ["minutes"]; got {known}'
        )
    return states.place_columns


def build_start(start: str | Mapping[str, float], states: States, model: Chain) -> Belief:
    """What everybody knows before the first step, over the chain's states."""
    n_states = len(states)
    if isinstance(start, str):
        if start == "uniform":
            return model.known(Belief.uniform(n_states))
        if start == "stationary":
            if not isinstance(model, (MarkovModel, EveryModel)) or model.varies:
                raise ScenarioError(
                    "start must not be 'stationary' for a model that changes with time"
                )
            return model.stationary()
        if start not in states.labels:
            raise ScenarioError(f"start must be a label, 'uniform' or 'stationary', got {start!r}")
        return model.known(states.state_of(start))
    probabilities = np.zeros(n_states)
    for label, value in start.items():
        if label not in states.labels:
            raise ScenarioError(f"start must name labels of the states, got {label!r}")
        probabilities[states.state_of(label)] = value
    try:
        return model.known(Belief.from_probabilities(probabilities))
    except ArgumentError as fault:
        raise ScenarioError(f"start: {fault}") from None


def build_surroundings(scenario: Scenario) -> Surroundings:
    """Where states are, and the hours of slots: what statements tell in metres and nights."""
    clock, columns = scenario.settings.clock, scenario.states.place_columns
    on_earth = "m" if scenario.states.plane is not None else ""
    return Surroundings(
        scenario.states.values(columns) if columns else None,
        unit_of(scenario) if scenario.columns == columns else on_earth,
        clock.hour_of if clock.has_dates else None,
        "" if clock.zone else "UTC",
    )


def unit_of(scenario: Scenario) -> str:
    """What answers are measured in: as the file says, or metres on Earth, or unknown."""
    return scenario.settings.unit or ("m" if _on_earth(scenario) else "")


def readable(scenario: Scenario, answers: ArrayLike) -> FloatArray:
    """See `Scenario.in_places`: no digits beyond a thousandth of the lattice's step."""
    places = scenario.states.in_degrees(scenario.columns, answers)
    if _on_earth(scenario):
        return places
    return np.round(places, max(0, 3 - floor(log10(scenario.settings.step))))


def html_of(scenario: Scenario) -> str:
    """A scenario as notebooks show it."""
    settings = scenario.settings
    facts = {
        "policy": scenario.policy,
        "query": f"{', '.join(scenario.columns)}, in steps of {as_text(settings.step)}",
        "epsilon": as_text(settings.epsilon),
        "limit": settings.limit or "none",
        "speaks": settings.speaks,
        "model": f"{scenario.model}: {scenario.source}",
    }
    rows = "".join(f"<tr><th>{name}<td>{escape(str(fact))}" for name, fact in facts.items())
    return f"<b>{escape(scenario.name)}</b><table>{rows}</table>"


def lattice_of(scenario: Scenario, places: ArrayLike) -> np.ndarray[Any, Any]:
    """See `Scenario.on_lattice`."""
    metres = scenario.states.in_metres(scenario.columns, places)
    steps = np.rint(metres / float(scenario.settings.step))
    if not np.isfinite(steps).all():
        raise ArgumentError("places must be finite numbers")
    return np.array([[int(number) for number in row] for row in steps])


def _on_earth(scenario: Scenario) -> bool:
    states = scenario.states
    return states.plane is not None and scenario.columns == states.place_columns
