"""The policy and the start of a scenario, from the rules that its file states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dphmm.chain.belief import Belief
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.every import EveryModel
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.errors import ArgumentError, ScenarioError
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.scenario.settings import Policy
from dphmm.tables.states import States

__all__ = ["build_policy", "build_start", "category_of"]


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


def category_of(states: States, column: str) -> tuple[Any, ...]:
    """The values of a column that groups the states."""
    if column in states.texts:
        return states.texts[column]
    if column in states.numbers:
        return tuple(states.numbers[column].tolist())
    raise ScenarioError(f"policy.category must be a column of the states, got {column!r}")


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
