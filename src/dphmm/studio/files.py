"""Scenarios on disk and views on the page: the same things, both ways.

A scenario is saved as the files that `dphmm check` and the other commands read. What was
drawn by hand becomes a file of edges; edges taken away from a base make the whole policy one.
"""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from dphmm.cost.limit import Limit
from dphmm.geometry.exact import as_text
from dphmm.scenario import Policy, Scenario, States
from dphmm.studio.effects import make_policy, pairs_of
from dphmm.studio.examples import category_column
from dphmm.studio.requests import Moment, Save

__all__ = ["make_scenario", "opening_view", "start_of", "to_zip"]

NAME = "scenario.toml"
EDGES = "edges.csv"
PAINTED = "painted"
"""The column of categories that were painted on states that had none."""


def make_scenario(scenario: Scenario, request: Save) -> Scenario:
    """The scenario with what a request draws: rules stay rules, the rest becomes edges."""
    drawn = request.policy
    whole = bool(drawn.unlinks) or drawn.base == "none"
    rest = drawn if whole else drawn.model_copy(update={"base": "none"})
    pairs = pairs_of(make_policy(scenario, rest))
    edges = tuple((scenario.labels[a], scenario.labels[b]) for a, b in pairs)
    base = "none" if whole else drawn.base
    column, states = _paint(scenario, drawn.categories)
    settings = replace(
        scenario.settings,
        epsilon=request.epsilon,
        limit=None if request.limit is None else Limit(request.limit),
        start=start_of(scenario, request.moment),
        columns=scenario.columns,
        policy=Policy(
            complete=base == "complete",
            category=column if base == "categories" else None,
            distance=drawn.radius if base == "distance" else None,
            one_step=base == "one_step",
            edges=EDGES if edges else None,
        ),
        mechanism=request.mechanism,
        gamma=scenario.settings.gamma if request.mechanism == "staircase" else None,
        repair=None if request.repair == "none" else request.repair,
    )
    return Scenario.from_settings(settings, states, scenario.model, scenario.source, edges)


def _paint(scenario: Scenario, painted: list[str] | None) -> tuple[str, States]:
    """The column of the categories, and the states with those that were painted."""
    states, column = scenario.states, category_column(scenario)
    if column is None or (painted is not None and column not in states.texts):
        column, painted = PAINTED, painted or ["state"] * len(states)
    if painted is None:
        return column, states
    return column, replace(states, texts={**states.texts, column: tuple(painted)})


def start_of(scenario: Scenario, moment: Moment) -> str | dict[str, float]:
    """What is known before the first step, in a scenario's words."""
    if moment.states is not None:
        return {scenario.labels[state]: 1 / len(moment.states) for state in moment.states}
    return "uniform" if moment.start is None else scenario.labels[moment.start]


def to_zip(scenario: Scenario) -> bytes:
    """The scenario's files in one archive."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, ZipFile(out, "w", ZIP_DEFLATED) as archive:
        scenario.save(Path(folder) / NAME)
        for path in sorted(Path(folder).iterdir()):
            archive.write(path, path.name)
    return out.getvalue()


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
        states = ((scenario.state_of(a), scenario.state_of(b)) for a, b in scenario.edges)
        policy["links"] = [list(pair) for pair in sorted({(min(p), max(p)) for p in states})]
    view: dict[str, Any] = {"policy": policy, "epsilon": as_text(scenario.settings.epsilon)}
    mechanism = scenario.settings.mechanism
    view["walk"] = {"mechanism": "knorm" if mechanism == "isotropic" else mechanism}
    possible = np.flatnonzero(scenario.start.possible)
    if len(possible) == 1:
        view["moment"] = {"start": int(possible[0]), "steps": 0}
    elif len(possible) < len(scenario.states):
        view["moment"] = {"states": possible.tolist()}
    return view
