"""`dphmm learn`: a model from trips, raw or private, or from earlier releases."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from dphmm.chain.anywhere import HELD_OUT, Share, Zeros
from dphmm.chain.calendar import PARTS, Calendar
from dphmm.chain.ground import Ground
from dphmm.cli.common import (
    column_option,
    columns_from,
    engine_option,
    is_quiet,
    json_option,
    print_json,
    progress,
    say,
    spark_session,
)
from dphmm.cli.evaluate import PRIVATE, facts_of, judge_learning
from dphmm.cost.words import CONDITION
from dphmm.errors import DataError
from dphmm.scenario.counting import CHAINS, Counting, Kind
from dphmm.scenario.judging import Judgement, People
from dphmm.scenario.learning import (
    Moves,
    learn_from_releases,
    learn_public,
    learn_walks,
    moves_within,
    support_from_edges,
)
from dphmm.scenario.models import LearnedModel, write_model
from dphmm.scenario.private import Levels, learn_private
from dphmm.scenario.released import read_releases
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Settings
from dphmm.tables.clock import Clock
from dphmm.tables.states import States
from dphmm.tables.trips import Row, read_trips
from dphmm.tables.units import length

__all__ = ["command"]

TOGETHER = 10_000
"""Rows whose coordinates are looked up together."""


@click.command("learn")
@click.argument("trips")
@click.option("--scenario", metavar="TOML", help="Take states, time step and output from here.")
@click.option("--states", "states_file", metavar="CSV", help="The states, one row each.")
@click.option("-o", "--output", metavar="FILE", help="The model, such as model.npz.")
@click.option("--time-step", help="A number, or like '5 min'; 1 unless you say so.")
@click.option("--time-zone", help="The place of dates that name no zone.")
@click.option("--slots", default=1, type=click.IntRange(1), help="Models that take turns.")
@click.option(
    "--chain",
    type=click.Choice(CHAINS),
    help="What a step depends on: the place (first), two places, or a direction and how long a "
    "stay was; momentum with --epsilon where states have places, else first.",
)
@click.option("--by", type=click.Choice(list(PARTS)), help="A model for each hour, or weekday.")
@click.option("--smoothing", default=0.0, type=click.FloatRange(0), help="Added to every count.")
@click.option("--epsilon", help="Learn privately, at this price for everything of one person.")
@click.option("--prior", default=0.5, show_default=True, help="Added to every noisy number.")
@click.option("--radius", help="How far moves go, such as 500 or 0.5km.")
@click.option("--moves", metavar="CSV", help="The possible moves, two labels a row.")
@click.option(
    "--zeros",
    default="guesses",
    show_default=True,
    type=click.Choice(["guesses", "facts"]),
    help="Whether moves that nobody made are improbable or impossible.",
)
@click.option(
    "--anywhere",
    callback=lambda context, option, given: _share(given),
    help="The probability of going anywhere, 0.01 by default, or held-out.",
)
@click.option("--force", is_flag=True, help="Write the model even if it is worse than none.")
@click.option("--from-releases", metavar="TOML", help="TRIPS are released under this scenario.")
@click.option("--iterations", default=20, show_default=True, type=click.IntRange(0))
@column_option
@engine_option
@json_option
def command(
    trips: str,
    scenario: str | None,
    states_file: str | None,
    output: str | None,
    time_step: str | None,
    time_zone: str | None,
    slots: int,
    chain: Kind | None,
    by: str | None,
    smoothing: float,
    epsilon: str | None,
    prior: float,
    radius: str | None,
    moves: str | None,
    zeros: Zeros,
    anywhere: Share,
    force: bool,
    from_releases: str | None,
    iterations: int,
    column_names: tuple[str, ...],
    engine: str,
    master: str | None,
    as_json: bool,
) -> int:
    r"""Learn a model of how people move from TRIPS (CSV, JSON lines or Parquet).

    With --engine spark TRIPS is any table that Spark reads, by path or by name.

    --chain momentum follows people best, if the states have places. --by hour learns the moves of
    each hour, of the place that --time-zone names, drawn to those of the whole day.

    The model is judged on people who are left out in turn: how far estimates would be off, beside
    the answers alone and a walk that knows no data. One that is worse is not written without
    --force. With --epsilon this is private, and so is what you make of it: see docs/learning.md.

    What nobody made may still happen: a learned model keeps a small probability of going
    anywhere, and its promise holds whatever people do. With --zeros facts it holds for people
    who move as the model says is possible, and every sentence says so. --anywhere held-out takes
    the probability under which people's moves are likeliest by counts of others; it looks at raw
    moves, so it goes with raw counts only.

    Raw counts are published with the model, and its zeros tell which moves nobody made: use
    them for public data or with their owners' consent. With --epsilon the model is private for
    whole people. It is then made of few numbers, each of everybody: how far people move (within
    --radius, if it is given), how they stay and turn. With --moves every move of a file has a
    number of its own, which needs few states or very many people. With --from-releases TRIPS is
    the output of `dphmm release`, and nothing more is paid.

    \b
    Example:
      dphmm learn town/trips.csv --scenario town/scenario.toml
      dphmm learn trips.csv --states cells.csv --time-step "5 min" -o model.npz
      dphmm learn town/trips.csv --scenario town/scenario.toml --chain momentum
      dphmm learn trips.csv --states cells.csv --epsilon 1 -o model.npz
      dphmm learn released.csv --from-releases town.toml -o better.npz
      dphmm learn trips.parquet --states cells.csv -o model.npz --engine spark --master local[4]
    """
    unit, lost, judged = "m", None, None
    if scenario is not None:
        if states_file is not None or time_step is not None or from_releases is not None:
            raise click.UsageError(
                "--scenario must stand without --states, --time-step and --from-releases"
            )
        settings, folder = Settings.read(scenario), Path(scenario).parent
        states_file, output = str(folder / settings.states), output or str(folder / settings.model)
        time_step, time_zone = str(settings.clock.step), time_zone or settings.clock.zone
        unit = settings.unit or "m"
    if output is None:
        raise click.UsageError("--output must be given, or --scenario")
    if from_releases is not None:
        if engine != "local":
            raise click.UsageError("--from-releases must go with --engine local")
        if epsilon is not None or states_file is not None:
            raise click.UsageError("--from-releases must stand without --epsilon and --states")
        if zeros != "guesses" or anywhere is not None:
            raise click.UsageError("--from-releases must stand without --zeros and --anywhere")
        if chain is not None or by is not None:
            raise click.UsageError("--from-releases must stand without --chain and --by")
        released = Scenario.load(from_releases)
        learned, clock = _from_releases(trips, released, iterations), released.settings.clock
    elif states_file is None:
        raise click.UsageError("--states must be given, or --scenario")
    else:
        states = States.read(states_file)
        step = time_step or "1"
        clock = Clock(int(step) if step.isdigit() else step, zone=time_zone)
        if anywhere == HELD_OUT and (epsilon is not None or engine != "local"):
            raise click.UsageError("--anywhere held-out must go with raw counts, made locally")
        support = _support(states, radius, moves, unit)
        columns = columns_from(column_names)
        both: dict[str, Any] = {"zeros": zeros, "anywhere": anywhere}
        levels: Levels | None = None
        if epsilon is not None:
            if by is not None or smoothing:
                raise click.UsageError("--epsilon must stand without --by and --smoothing")
            levels = _levels(states, support, radius, unit, chain, slots)
            options = {"levels": levels, "epsilon": epsilon, "prior": prior, **both}
        else:
            counting = _counting(states, clock, chain or "first", by)
            if counting is not None and (slots > 1 or anywhere == HELD_OUT):
                raise click.UsageError(
                    "--chain and --by must stand without --slots and --anywhere held-out"
                )
            if chain not in (None, "first") and (support is not None or smoothing):
                raise click.UsageError(
                    "--chain must be first to go with --smoothing, --radius and --moves"
                )
            options = {"support": support, "smoothing": smoothing, **both}
            options |= {"slots": slots} if counting is None else {"counting": counting}
        if engine == "spark":
            learned = _on_spark(master, trips, states, clock, columns, options)
        else:
            tracks = _tracks(trips, states, clock, columns)
            lost = _lost(tracks, clock, levels or support, Path(trips).name)
            learn = partial(_learn, options=options, n_states=len(states))
            learned = learn(tracks)
            judged = judge_learning(tracks, learn, states, scenario, clock)
            if judged is not None and judged.is_sure and judged.is_worse and not force:
                for line in judged.lines():
                    click.echo(line, err=True)
                click.echo(f"dphmm: {output} was not written; --force writes it anyway", err=True)
                return 1
    write_model(output, learned.model, learned.source, clock.law)
    _report(learned, output, lost, judged, epsilon is not None, as_json)
    return 0


def _share(given: str | None) -> Share:
    """How often people go anywhere, as it was typed."""
    if given is None or given == HELD_OUT:
        return HELD_OUT if given else None
    try:
        return float(given)
    except ValueError:
        raise click.BadParameter(f"must be a number or {HELD_OUT}, got {given!r}") from None


def _report(
    learned: LearnedModel,
    output: str,
    lost: dict[str, int] | None,
    judged: Judgement | None,
    private: bool,
    as_json: bool,
) -> None:
    """What was learned, and from how much; the latter is private if the model is to be."""
    first = learned.model.moves_into(1)[-1]
    if as_json:
        facts = {"model": output, "states": first.n_places, "moves": int(first.transition.nnz)}
        facts |= {"zeros": first.zeros, "anywhere": first.anywhere, "source": learned.source}
        if lost is not None:
            found = {} if judged is None else {"judged": facts_of(judged)}
            facts["private" if private else "from"] = {**lost, **found}
        print_json(facts)
        return
    say(f"{output}: {first.n_places} states, {first.transition.nnz} possible moves")
    if lost is not None and not is_quiet():
        told = [
            f"from {lost['people']} people and {lost['moves']} moves of theirs; not counted: "
            f"{lost['gaps']} lost to gaps, {lost['beyond']} beyond the possible moves"
        ]
        told += [] if judged is None else ["judged on people left out in turn:", *judged.lines()]
        for line in [PRIVATE, *told] if private else told:
            click.echo(line, err=private)
    if first.anywhere:
        say(f"zeros are guesses: {first.anywhere:g} of all steps may go anywhere")
    else:
        say(f"zeros are facts: what is promised holds {CONDITION}")
    say(f"source: {learned.source}")


def _tracks(
    trips: str, states: States, clock: Clock, columns: dict[str, str]
) -> list[tuple[list[int], list[int]]]:
    """Everybody's slots, and where they were in them."""
    tracks: dict[str, list[Row]] = {}
    for row in progress(
        read_trips(trips, states, clock, columns=columns, together=TOGETHER), what="reading"
    ):
        tracks.setdefault(row.person, []).append(row)
    ordered = (sorted(rows, key=lambda row: row.order) for rows in tracks.values())
    return [([row.slot for row in rows], [row.state for row in rows]) for rows in ordered]


def _lost(tracks: People, clock: Clock, within: Any, name: str) -> dict[str, int]:
    """How many people and moves there are, and what does not count."""
    moves = Moves.joined(Moves.of_rows(slots, visited) for slots, visited in tracks)
    gaps = sum(len(set(slots)) - 1 for slots, _ in tracks) - len(moves)
    if not len(moves):
        raise DataError(
            f"{name}: trips must hold neighbouring steps, got {gaps} gaps and no move; "
            f"is {clock.step!r} the right time step?"
        )
    if gaps > len(moves):
        click.echo(
            f"dphmm: note: most steps come after a gap; is {clock.step!r} the right time step?",
            err=True,
        )
    beyond = 0
    if isinstance(within, Levels):
        beyond = within.beyond(moves.sources, moves.targets)
    elif within is not None:
        beyond = int((np.asarray(within[moves.sources, moves.targets]) == 0).sum())
    counted = len(moves) - beyond
    return {"people": len(tracks), "moves": counted, "gaps": gaps, "beyond": beyond}


def _learn(tracks: People, options: dict[str, Any], n_states: int) -> LearnedModel:
    """The model of some people, as it was asked for."""
    if "levels" in options:
        return learn_private(tracks, **options)
    if "counting" in options:
        return learn_walks(tracks, **options)
    return learn_public([Moves.of_rows(*track) for track in tracks], n_states, **options)


def _counting(states: States, clock: Clock, chain: Kind, by: str | None) -> Counting | None:
    """How moves are counted, if not plainly."""
    if chain == "first" and by is None:
        return None
    if by is not None and not clock.has_dates:
        raise click.UsageError("--by must go with a --time-step like '5 min'")
    if chain == "momentum" and not states.place_columns:
        raise click.UsageError("--chain momentum must go with states that have places")
    ground = Ground(states.values(states.place_columns)) if states.place_columns else None
    calendar = None if by is None else Calendar(by, clock.seconds, clock.zone)
    return Counting(len(states), chain, calendar, ground)


def _levels(
    states: States, support: Any, radius: str | None, unit: str, chain: Kind | None, slots: int
) -> Levels:
    """What is asked of people in private: habits, or every move that somebody listed."""
    if support is not None and radius is None:
        if chain not in (None, "first"):
            raise click.UsageError("--chain must be first to go with --moves")
        return Levels.of_moves(support, slots)
    if not states.place_columns:
        raise click.UsageError("--epsilon must go with --moves for states without places")
    if chain == "second" or slots > 1:
        raise click.UsageError("--epsilon must stand without --chain second and --slots")
    reach = None if radius is None else float(length(radius, unit, "radius"))
    ground = Ground(states.values(states.place_columns))
    return Levels.of_habits(ground, reach, turns=chain != "first")


def _on_spark(
    master: str | None,
    trips: str,
    states: States,
    clock: Clock,
    columns: dict[str, str],
    options: dict[str, Any],
) -> LearnedModel:
    from dphmm import spark as engine

    learn = engine.learn_private if "levels" in options else engine.learn_public
    with spark_session(master) as session:
        table = engine.read_table(session, trips)
        return learn(table, states, clock, columns=columns, name=trips, **options)


def _support(states: States, radius: str | None, moves: str | None, unit: str) -> Any:
    if radius is not None and moves is not None:
        raise click.UsageError("--radius must stand without --moves")
    if radius is not None:
        if not states.place_columns:
            raise click.UsageError("--radius must go with states that have places")
        reach = float(length(radius, unit, "radius"))
        return moves_within(states.values(states.place_columns), reach)
    if moves is not None:
        pairs = states.read_edges(moves)
        edges = [[states.state_of(a), states.state_of(b)] for a, b in pairs]
        return support_from_edges(edges, len(states))
    return None


def _from_releases(path: str, scenario: Scenario, iterations: int) -> LearnedModel:
    streams = [track.stream for track in read_releases(path, scenario)]
    return learn_from_releases(streams, iterations=iterations)
