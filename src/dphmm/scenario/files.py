"""The files of a scenario, read and written together: TOML, states, model, edges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dphmm.chain.markov import Chain
from dphmm.errors import ArgumentError, DataError, ScenarioError
from dphmm.scenario.models import LearnedModel, read_model, write_model
from dphmm.scenario.settings import Settings
from dphmm.tables.clock import Clock
from dphmm.tables.files import as_path, csv_text, write_whole
from dphmm.tables.states import States

if TYPE_CHECKING:
    from dphmm.scenario.scenario import Scenario

__all__ = ["load_scenario", "save_scenario"]


def load_scenario(
    cls: type[Scenario], path: str | Path, learned: LearnedModel | None = None
) -> Scenario:
    """See `Scenario.load`; a policy or start that cannot be built is an error here.

    With `learned` that model is taken instead of the one that the file names.
    """
    settings = Settings.read(path)
    folder = Path(path).parent
    states = States.read(folder / settings.states)
    learned = learned or read_model(folder / settings.model)
    edges: tuple[tuple[str, str], ...] = ()
    if settings.policy.edges is not None:
        edges = states.read_edges(folder / settings.policy.edges)
    model = in_steps(learned, settings.clock, Path(path).name)
    scenario = cls.from_settings(settings, states, model, learned.source, edges)
    try:
        _ = scenario.plan, scenario.start
    except ScenarioError:
        raise
    except (ArgumentError, DataError) as fault:
        raise ScenarioError(f"{Path(path).name}: {fault}") from None
    return scenario


def in_steps(learned: LearnedModel, clock: Clock, file: str) -> Chain:
    """The chain in steps of a clock: several of its own steps, if those of the clock are longer."""
    if learned.step is None:
        return learned.model
    try:
        count = clock.steps_of(learned.step)
    except ArgumentError as fault:
        raise ScenarioError(f"{file}: time.{fault}; the model's are so long") from None
    return learned.model if count == 1 else learned.model.every(count)


def save_scenario(scenario: Scenario, path: str | Path) -> None:
    """See `Scenario.save`."""
    folder, settings = as_path(path).parent, scenario.settings
    scenario.states.write(folder / settings.states)
    step = settings.clock.law
    write_model(folder / settings.model, scenario.model, scenario.source, step)
    if settings.policy.edges is not None:
        write_whole(folder / settings.policy.edges, csv_text([("a", "b"), *scenario.edges]))
    write_whole(path, settings.to_toml())
