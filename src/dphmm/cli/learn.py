"""`dphmm learn`: a model from trips, raw or private, or from earlier releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from dphmm.cli.common import column_option, columns_from, json_option, print_json, progress
from dphmm.errors import DataError
from dphmm.learning import (
    Moves,
    learn_from_releases,
    learn_private,
    learn_public,
    moves_within,
    support_from_edges,
)
from dphmm.scenario.clock import Clock, Slots
from dphmm.scenario.models import LearnedModel, write_model
from dphmm.scenario.scenario import Scenario, read_edges
from dphmm.scenario.states import States
from dphmm.scenario.trips import read_records, read_trips
from dphmm.stream import Stream

__all__ = ["command"]

TOGETHER = 10_000
"""Rows whose coordinates are looked up together."""


@click.command("learn")
@click.argument("trips")
@click.option("--states", "states_file", metavar="CSV", help="The states, one row each.")
@click.option("-o", "--output", required=True, metavar="FILE", help="The model, such as model.npz.")
@click.option("--time-step", default="1", show_default=True, help="A number, or like '5 min'.")
@click.option("--time-zone", help="The place of dates that name no zone.")
@click.option("--slots", default=1, type=click.IntRange(1), help="Models that take turns.")
@click.option("--smoothing", default=0.0, type=click.FloatRange(0), help="Added to every count.")
@click.option("--epsilon", help="Learn privately, at this price for everything of one person.")
@click.option("--max-moves", default=100, show_default=True, type=click.IntRange(1))
@click.option("--prior", default=0.5, show_default=True, help="Added to every noisy count.")
@click.option("--radius", type=click.FloatRange(0), help="Moves are possible within this distance.")
@click.option("--moves", metavar="CSV", help="The possible moves, two labels a row.")
@click.option("--from-releases", metavar="TOML", help="TRIPS are released under this scenario.")
@click.option("--iterations", default=20, show_default=True, type=click.IntRange(0))
@column_option
@json_option
def command(
    trips: str,
    states_file: str | None,
    output: str,
    time_step: str,
    time_zone: str | None,
    slots: int,
    smoothing: float,
    epsilon: str | None,
    max_moves: int,
    prior: float,
    radius: float | None,
    moves: str | None,
    from_releases: str | None,
    iterations: int,
    column_names: tuple[str, ...],
    as_json: bool,
) -> int:
    r"""Learn a model of how people move from TRIPS (CSV, JSON lines or Parquet).

    Raw counts are published with the model, and its zeros tell which moves nobody made: use
    them for public data or with their owners' consent. With --epsilon the counts are private
    for whole people; the possible moves then come from --radius or --moves, never from the
    data. With --from-releases TRIPS is the output of `dphmm release`, and nothing more is paid.

    \b
    Example:
      dphmm learn trips.csv --states cells.csv -o model.npz
      dphmm learn trips.csv --states cells.csv --epsilon 1 --radius 500 -o model.npz
      dphmm learn released.csv --from-releases town.toml -o better.npz
    """
    if from_releases is not None:
        if epsilon is not None or states_file is not None:
            raise click.UsageError("--from-releases must stand without --epsilon and --states")
        learned = _from_releases(trips, Scenario.load(from_releases), iterations)
    elif states_file is None:
        raise click.UsageError("--states must be given")
    else:
        states = States.read(states_file)
        clock = Clock(int(time_step) if time_step.isdigit() else time_step, zone=time_zone)
        support = _support(states, radius, moves)
        people = _people(trips, states, clock, columns_from(column_names))
        if epsilon is None:
            learned = learn_public(
                people, len(states), smoothing=smoothing, support=support, slots=slots
            )
        elif support is None:
            raise click.UsageError("--epsilon must go with --radius or --moves")
        else:
            learned = learn_private(
                people,
                len(states),
                epsilon=epsilon,
                max_moves=max_moves,
                support=support,
                prior=prior,
                slots=slots,
            )
    write_model(output, learned.model, learned.source)
    _report(learned, output, as_json)
    return 0


def _report(learned: LearnedModel, output: str, as_json: bool) -> None:
    moves = learned.model.at(1).transition.nnz
    if as_json:
        facts = {"model": output, "states": learned.model.n_states, "moves": int(moves)}
        print_json({**facts, "source": learned.source})
        return
    click.echo(f"{output}: {learned.model.n_states} states, {moves} possible moves")
    click.echo(f"source: {learned.source}")


def _people(trips: str, states: States, clock: Clock, columns: dict[str, str]) -> list[Moves]:
    """Everybody's moves; a person's trips are cut where a step is missing."""
    tracks: dict[str, tuple[list[int], list[int]]] = {}
    for row in progress(
        read_trips(trips, states, clock, columns=columns, together=TOGETHER), what="reading"
    ):
        slots, visited = tracks.setdefault(row.person, ([], []))
        slots.append(row.slot)
        visited.append(row.state)
    return [Moves.of_track(slots, visited) for slots, visited in tracks.values()]


def _support(states: States, radius: float | None, moves: str | None) -> Any:
    if radius is not None and moves is not None:
        raise click.UsageError("--radius must stand without --moves")
    if radius is not None:
        if not states.place_columns:
            raise click.UsageError("--radius must go with states that have places")
        return moves_within(states.values(states.place_columns), radius)
    if moves is not None:
        pairs = read_edges(moves, states)
        edges = [[states.state_of(a), states.state_of(b)] for a, b in pairs]
        return support_from_edges(edges, len(states))
    return None


def _from_releases(path: str, scenario: Scenario, iterations: int) -> LearnedModel:
    streams = [stream for stream in _streams(path, scenario) if stream.said]
    if not streams:
        raise DataError(f"{Path(path).name}: file must hold at least one release, got none")
    return learn_from_releases(streams, iterations=iterations)


def _streams(path: str, scenario: Scenario) -> Iterator[Stream]:
    """A stream for everybody in a file of releases, brought to their last one."""
    name = Path(path).name
    columns = ("person", "time", *scenario.columns, "epsilon")
    slots = Slots(scenario.settings.clock, name)
    streams: dict[str, tuple[int, Stream]] = {}
    for line, record in read_records(path, name):
        missing = [column for column in columns if column not in record]
        if missing:
            raise DataError(f"{name}:{line}: header must have the column {', '.join(missing)}")
        if record["person"] is None:
            continue
        person, slot = str(record["person"]), slots.of(record["time"], line)
        first = scenario.settings.clock.first_slot
        base = slot - 1 if first is None else first
        base, stream = streams.setdefault(person, (base, scenario.stream(person, ledger=None)))
        try:
            answer = np.array([float(record[column]) for column in scenario.columns])
            if slot <= base + stream.time:
                raise ValueError
            stream.skip(slot - base - stream.time - 1)
            stream.repeat(scenario.on_lattice(answer)[0], str(record["epsilon"]))
        except ValueError:
            raise DataError(
                f"{name}:{line}: row must be a release of {scenario.name!r} in order of time"
            ) from None
    for _, stream in streams.values():
        yield stream
