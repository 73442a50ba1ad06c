"""`dphmm evaluate`: whether a model helps, on people it was not learned from (private)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click

from dphmm.chain.ground import Ground
from dphmm.chain.markov import Chain
from dphmm.cli.common import (
    column_option,
    columns_from,
    json_option,
    note,
    print_json,
    progress,
    say,
)
from dphmm.errors import DphmmError
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.scenario.files import load_scenario
from dphmm.scenario.judging import FEWEST, Judgement, People, cross_validate, evaluate_trips
from dphmm.scenario.models import LearnedModel, read_model
from dphmm.scenario.scenario import Scenario
from dphmm.tables.clock import Clock
from dphmm.tables.states import States
from dphmm.tables.units import lattice_step

__all__ = ["command", "facts_of", "judge_learning", "judging_scenario"]

PRIVATE = "private: for your eyes, from true positions; publishing it, or acting on it, tells"
WATCH = partial(progress, what="judging")
NEIGHBOURS = 3
"""How far a policy reaches where nobody gave one."""


@click.command("evaluate")
@click.argument("model_file", metavar="MODEL")
@click.argument("trips")
@click.option("--scenario", metavar="TOML", help="By default scenario.toml beside the model.")
@column_option
@json_option
def command(
    model_file: str,
    trips: str,
    scenario: str | None,
    column_names: tuple[str, ...],
    as_json: bool,
) -> int:
    r"""Judge MODEL on TRIPS of people it was not learned from: does it help, and how much.

    MODEL is a model file, or a scenario, whose model is taken. Its answers to some of the people
    are simulated under the scenario, at every step and at its epsilon: the distance of estimates
    now, ten steps later and in hindsight, as a share of the answers' own; whether regions hold
    the truth as often as they say; how likely moves are, beside models that know no data. All of
    it is private to whoever owns TRIPS. The exit code is 1 if the model is worse than none.

    \b
    Example:
      dphmm evaluate town/model.npz others/trips.csv
      dphmm evaluate model.npz trips.csv --scenario town/scenario.toml
    """
    if model_file.endswith(".toml"):
        if scenario is not None:
            raise click.UsageError("--scenario must stand without a scenario for MODEL")
        used = Scenario.load(model_file)
    else:
        file = scenario or str(Path(model_file).parent / "scenario.toml")
        if scenario is None and not Path(file).exists():
            raise click.UsageError("--scenario must be given, none lies beside MODEL")
        used = load_scenario(Scenario, file, read_model(model_file))
    found = evaluate_trips(used, trips, columns_from(column_names), WATCH)
    if as_json:
        print_json({"scenario": used.name, "private": facts_of(found)})
    else:
        say(PRIVATE)
        for line in found.lines():
            say(line)
    return int(found.is_sure and found.is_worse)


def facts_of(found: Judgement) -> dict[str, Any]:
    """What was found, for programs."""
    return {**asdict(found), "verdict": found.verdict, "worse": found.is_worse}


def _stand_in(states: States, model: Chain) -> Scenario:
    """A scenario to judge a model by where there is none: some neighbours look alike, epsilon 1."""
    places = states.values(states.place_columns)
    spacing = Ground(places).spacing
    query = Query(places, step=lattice_step(spacing))
    near = PolicyGraph.within_distance(
        query, Fraction(NEIGHBOURS * spacing).limit_denominator(1000)
    )
    return Scenario(query, model, near, epsilon=1, name="a stand-in")


def judge_learning(
    tracks: People,
    learn: Callable[[People], LearnedModel],
    inside: Callable[[LearnedModel], Scenario],
) -> Judgement | None:
    """How a way of learning does on people left out in turn; None where that tells nothing."""
    if len(tracks) < FEWEST:
        return None
    try:
        return cross_validate(lambda people: inside(learn(people)), tracks, WATCH)
    except DphmmError as fault:
        note(f"the model could not be judged: {fault}")
        return None


def judging_scenario(
    learned: LearnedModel, states: States, file: str | None, clock: Clock
) -> Scenario:
    """The scenario that a learned model is judged in: that of a file, or one that stands in."""
    if file is None:
        return _stand_in(states, learned.model)
    return load_scenario(Scenario, file, replace(learned, step=clock.law))
