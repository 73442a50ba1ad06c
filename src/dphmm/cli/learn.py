"""`dphmm learn`: a model from trips, raw or private, or from earlier releases."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from dphmm.chain.anywhere import HELD_OUT, Share, Zeros
from dphmm.chain.calendar import PARTS
from dphmm.cli.common import (
    column_option,
    columns_from,
    engine_option,
    is_quiet,
    json_option,
    note,
    print_json,
    progress,
    read_tracks,
    say,
    spark_session,
)
from dphmm.cli.evaluate import PRIVATE, facts_of, judge_learning, judging_scenario
from dphmm.cli.released import read_released
from dphmm.cli.ways import (
    COUNTS,
    calibrated,
    counting_of,
    learn_as,
    levels_of,
    number_or,
    support_of,
)
from dphmm.cost.words import CONDITION
from dphmm.errors import DataError
from dphmm.scenario.counting import CHAINS, CONFIDENCE, Kind
from dphmm.scenario.files import check_own
from dphmm.scenario.judging import FEWEST, Judgement, People
from dphmm.scenario.learning import (
    Moves,
    learn_from_releases,
)
from dphmm.scenario.models import LearnedModel, write_model
from dphmm.scenario.private import Levels
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Settings
from dphmm.tables.clock import Clock
from dphmm.tables.states import States

__all__ = ["command"]

FAR = "; most moves are none of its own: take a shorter --time-step, larger cells or a --radius"


OWN = "name another with -o, or this one, which changes both"

FIT = "regions miss what they state; --confidence held-out lets those left out choose"


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
@click.option(
    "--confidence",
    callback=lambda context, option, given: number_or(given, HELD_OUT, COUNTS),
    help="How much a raw count counts against what people do anywhere: a number up to 1, held-out, "
    "or counts for the counts alone; by default what held other people best.",
)
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
    callback=lambda context, option, given: number_or(given, HELD_OUT),
    help="The probability of going anywhere, or held-out; by default 0.01, with --epsilon the "
    "noisy share of moves beyond reach.",
)
@click.option("--force", is_flag=True, help="Write the model even if it is worse than none.")
@click.option("--from-releases", metavar="TOML", help="TRIPS are released under this scenario.")
@click.option(
    "--ledger",
    metavar="BOOK",
    help="With --from-releases: the ledger or store that they came from. Default: that of the "
    "scenario, beside it, if it holds them.",
)
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
    confidence: float | str | None,
    epsilon: str | None,
    prior: float,
    radius: str | None,
    moves: str | None,
    zeros: Zeros,
    anywhere: Share,
    force: bool,
    from_releases: str | None,
    ledger: str | None,
    iterations: int,
    column_names: tuple[str, ...],
    engine: str,
    master: str | None,
    as_json: bool,
) -> int:
    r"""Learn a model of how people move from TRIPS (CSV, JSON lines or Parquet).

    With --engine spark TRIPS is any table that Spark reads, by path or by name.

    Counts alone are too sure of whom they were counted from. Where states have places they count a
    part (--confidence) against what people do anywhere, so that beliefs about others hold.
    --chain momentum follows people best, if the states have places. --by hour learns the moves of
    each hour, of the place that --time-zone names, drawn to those of the whole day.

    The model is judged on people who are left out in turn: how far estimates would be off, beside
    the answers alone and a walk that knows no data. One that is worse is not written without
    --force. With --epsilon this is private, and so is what you make of it: see docs/learning.md.

    What nobody made may still happen: a learned model keeps a small probability of going
    anywhere, and its promise holds whatever people do (delta and answered gaps have conditions of
    their own). With --zeros facts it holds for people who move as the model says is possible from
    its start, and every sentence says so. --anywhere held-out takes
    the probability under which people's moves are likeliest by counts of others; it looks at raw
    moves, so it goes with raw counts only.

    Raw counts are published with the model, and its zeros tell which moves nobody made: use
    them for public data or with their owners' consent. With --epsilon the model is private for
    whole people. It is then made of few numbers, each of everybody: how far people move (within
    --radius, if it is given), how they stay and turn. With --moves every move of a file has a
    number of its own, which needs few states or very many people. With --from-releases TRIPS is
    the output of `dphmm release`, and nothing more is paid. A file that goes on from another one
    is taken up where the answers before it led, which the ledger knows; without the ledger people
    begin at their first row as somebody new does.

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
        if output is None:
            check_own(Path(scenario), [settings.model], OWN)
        states_file, output = str(folder / settings.states), output or str(folder / settings.model)
        time_step, time_zone = str(settings.clock.step), time_zone or settings.clock.zone
        unit = settings.unit or "m"
    if output is None:
        raise click.UsageError("--output must be given, or --scenario")
    if ledger is not None and from_releases is None:
        raise click.UsageError("--ledger must go with --from-releases")
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
        said = read_released(trips, released, from_releases, ledger)
        streams = [track.stream for track in said]
        learned = learn_from_releases(streams, iterations=iterations)
        clock = released.settings.clock
    elif states_file is None:
        raise click.UsageError("--states must be given, or --scenario")
    else:
        states = States.read(states_file)
        if len(states) < 2:
            raise DataError(f"{Path(states_file).name}: states must be at least two, got one")
        step = time_step or "1"
        clock = Clock(int(step) if step.isdigit() else step, zone=time_zone)
        if anywhere == HELD_OUT and (epsilon is not None or engine != "local"):
            raise click.UsageError("--anywhere held-out must go with raw counts, made locally")
        support = support_of(states, radius, moves, unit)
        columns = columns_from(column_names)
        both: dict[str, Any] = {"zeros": zeros, "anywhere": anywhere}
        levels: Levels | None = None
        if epsilon is not None:
            if by is not None or smoothing or confidence is not None:
                raise click.UsageError(
                    "--epsilon must stand without --by, --smoothing and --confidence"
                )
            levels = levels_of(states, support, radius, unit, chain, slots)
            options = {"levels": levels, "epsilon": epsilon, "prior": prior, **both}
        else:
            plain = bool(slots > 1 or anywhere == HELD_OUT or support is not None or smoothing)
            if confidence is None and not plain and zeros == "guesses" and states.place_columns:
                confidence = CONFIDENCE.get(chain or "first")
            counting = counting_of(states, clock, chain or "first", by, confidence)
            if counting is not None and (slots > 1 or anywhere == HELD_OUT):
                raise click.UsageError(
                    "--chain, --by and --confidence must stand without --slots and "
                    "--anywhere held-out"
                )
            if (chain not in (None, "first") or confidence not in (None, COUNTS)) and plain:
                raise click.UsageError(
                    "--chain must be first, and --confidence counts, to go with --smoothing, "
                    "--radius and --moves"
                )
            if confidence == HELD_OUT and engine != "local":
                raise click.UsageError("--confidence held-out must go with --engine local")
            options = {"support": support, "smoothing": smoothing, **both}
            options |= {"slots": slots} if counting is None else {"counting": counting}
        if engine == "spark":
            learned = _on_spark(master, trips, states, clock, columns, options)
        else:
            tracks = read_tracks(trips, states, clock, columns)
            lost = _lost(tracks, levels or support)
            # Whoever forces a private model has a model of every file that can be read: that
            # there is none would tell about the people in it.
            if not lost["moves"] + lost["beyond"] and not (force and epsilon is not None):
                raise DataError(
                    f"{Path(trips).name}: trips must hold neighbouring steps, got {lost['gaps']} "
                    f"gaps and no move; is {clock.step!r} the right time step?"
                )
            if lost["gaps"] > lost["moves"] + lost["beyond"]:
                whose = "" if epsilon is None else "private: "
                note(f"{whose}most steps come after a gap; is {clock.step!r} the right time step?")
            inside = partial(judging_scenario, states=states, file=scenario, clock=clock)
            if confidence == HELD_OUT:
                options["counting"] = calibrated(
                    tracks, options["counting"], inside, partial(progress, what="calibrating")
                )
            learn = partial(learn_as, options=options, n_states=len(states))
            learned = learn(tracks)
            if scenario is not None or states.place_columns:
                judged = judge_learning(tracks, learn, inside)
            if judged is not None and judged.is_sure and judged.is_worse and not force:
                for line in _told(lost, judged, epsilon is not None):
                    click.echo(line, err=True)
                hint = FAR if judged.only_anywhere > 0.5 else ""
                click.echo(
                    f"dphmm: {output} was not written; --force writes it anyway{hint}", err=True
                )
                return 1
            may_fit = "counting" in options and options["counting"].chain in CONFIDENCE
            missed = judged is not None and judged.is_sure and not judged.is_calibrated
            if missed and may_fit and confidence != HELD_OUT:
                note(FIT)
    write_model(output, learned.model, learned.source, clock.law)
    _report(learned, output, lost, judged, epsilon is not None, as_json)
    return 0


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
        for line in _told(lost, judged, private):
            click.echo(line, err=private)
    if first.anywhere:
        say(f"zeros are guesses: {first.anywhere:.3g} of all steps may go anywhere")
    else:
        say(f"zeros are facts: what is promised holds {CONDITION}")
    say(f"source: {learned.source}")


def _told(lost: dict[str, int], judged: Judgement | None, private: bool) -> list[str]:
    """From how much a model was learned, and how it does."""
    told = [
        f"from {lost['people']} people and {lost['moves']} moves of theirs; not counted: "
        f"{lost['gaps']} lost to gaps, {lost['beyond']} beyond the possible moves"
    ]
    if judged is not None:
        told += ["judged on people left out in turn:", *judged.lines()]
    elif lost["people"] < FEWEST:
        told.append(f"Nobody can tell whether it helps: fewer than {FEWEST} people are too few.")
    return [PRIVATE, *told] if private else told


def _lost(tracks: People, within: Any) -> dict[str, int]:
    """How many people and moves there are, and what does not count."""
    moves = Moves.joined(Moves.of_rows(slots, visited) for slots, visited in tracks)
    gaps = sum(len(set(slots)) - 1 for slots, _ in tracks) - len(moves)
    beyond = 0
    if isinstance(within, Levels):
        beyond = within.beyond(moves.sources, moves.targets)
    elif within is not None:
        beyond = int((np.asarray(within[moves.sources, moves.targets]) == 0).sum())
    counted = len(moves) - beyond
    return {"people": len(tracks), "moves": counted, "gaps": gaps, "beyond": beyond}


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
