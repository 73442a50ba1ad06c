"""The files of a scenario, read and written together: TOML, states, model, edges."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dphmm.chain.markov import Chain
from dphmm.errors import ArgumentError, DataError, ScenarioError, TooLargeError
from dphmm.policy.graph import MOST_EDGES, PolicyGraph
from dphmm.scenario.building import category_of
from dphmm.scenario.models import LearnedModel, model_bytes, read_model
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
    _check_readable(scenario)
    tables: dict[str, str | bytes] = {
        settings.states: scenario.states.to_csv(),
        settings.model: model_bytes(scenario.model, scenario.source, settings.clock.law),
    }
    if settings.policy.edges is not None:
        tables[settings.policy.edges] = csv_text([("a", "b"), *scenario.edges])
    held = _tables_in(folder, settings)
    changed = {name: content for name, content in tables.items() if held.get(name) != content}
    check_own(as_path(path), changed, "save this one into another folder")
    for name, content in changed.items():
        write_whole(folder / name, content)
    write_whole(path, settings.to_toml())


def _tables_in(folder: Path, settings: Settings) -> dict[str, str | bytes]:
    """What is in the tables of a folder, as it would be written; what cannot be read is left out.

    A table that says the same in other words stays as it is.
    """
    held: dict[str, str | bytes] = {}
    with suppress(ArgumentError, DataError, ScenarioError):
        states = States.read(folder / settings.states)
        held[settings.states] = states.to_csv()
        if settings.policy.edges is not None:
            edges = states.read_edges(folder / settings.policy.edges)
            held[settings.policy.edges] = csv_text([("a", "b"), *edges])
    with suppress(ArgumentError, DataError, ScenarioError):
        learned = read_model(folder / settings.model)
        model = in_steps(learned, settings.clock, settings.model)
        held[settings.model] = model_bytes(model, learned.source, settings.clock.law)
    return held


def check_own(path: Path, names: Iterable[str], instead: str) -> None:
    """Refuse to write over tables that another scenario of the folder names.

    Args:
        path: The scenario that they are written for.
        names: The tables.
        instead: What may be done instead.
    """
    folder = path.parent
    there = {(folder / name).resolve() for name in names if (folder / name).is_file()}
    for beside in sorted(folder.glob("*.toml")) if there else ():
        if beside.resolve() == path.resolve():
            continue
        try:
            settings = Settings.read(beside)
        except (ScenarioError, DataError):
            continue  # the file of another program
        for named in (settings.states, settings.model, settings.policy.edges):
            if named is not None and (folder / named).resolve() in there:
                raise DataError(
                    f"{named}: file must be this scenario's own, got one that {beside.name} "
                    f"names; {instead}"
                )


def _check_readable(scenario: Scenario) -> None:
    """Refuse to write what would be read back as another law, so with other noise."""
    settings, states = scenario.settings, scenario.states
    if scenario._graph is not None and scenario._graph.most_edges > MOST_EDGES:
        raise TooLargeError(
            f"policy must have at most {MOST_EDGES} links to be written as pairs; give it as "
            f"rules, such as Policy(complete=True)"
        )
    try:
        again = States._parse(states.to_csv(), settings.states)
        same = again.labels == states.labels and _alike(scenario, again)
    except (ArgumentError, DataError, ScenarioError):
        same = False
    if not same:
        raise ScenarioError(
            f"states must be a table that {settings.states} gives back: names without spaces "
            f"around them, categories that stay different as a file has them"
        )


def _alike(scenario: Scenario, again: States) -> bool:
    """Whether the columns that the law is made from are the same in a table read back."""
    states, category = scenario.states, scenario.settings.policy.category
    if not np.array_equal(states.values(scenario.columns), again.values(scenario.columns)):
        return False
    if category is None:
        return True
    ours, theirs = (PolicyGraph.by_category(category_of(one, category)) for one in (states, again))
    return ours.digest == theirs.digest
