"""What the options of `dphmm learn` ask for: which moves, and which way of counting them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from dphmm.chain.anywhere import HELD_OUT
from dphmm.chain.calendar import Calendar
from dphmm.chain.ground import Ground
from dphmm.scenario.counting import CONFIDENCE, CONFIDENCES, Counting, Kind
from dphmm.scenario.coverage import choose_confidence
from dphmm.scenario.judging import FEWEST, People, Watch
from dphmm.scenario.learning import (
    Moves,
    learn_public,
    learn_walks,
    moves_within,
    support_from_edges,
)
from dphmm.scenario.models import LearnedModel
from dphmm.scenario.private import Levels, learn_private
from dphmm.scenario.scenario import Scenario
from dphmm.tables.clock import Clock
from dphmm.tables.states import States
from dphmm.tables.units import length

__all__ = [
    "COUNTS",
    "calibrated",
    "counting_of",
    "learn_as",
    "levels_of",
    "number_or",
    "support_of",
]

COUNTS = "counts"


def number_or(given: str | None, *words: str) -> Any:
    """A number as it was typed, or one of some words."""
    if given is None or given in words:
        return given
    try:
        return float(given)
    except ValueError:
        named = " or ".join(words)
        raise click.BadParameter(f"must be a number or {named}, got {given!r}") from None


def learn_as(tracks: People, options: dict[str, Any], n_states: int) -> LearnedModel:
    """The model of some people, as it was asked for."""
    if "levels" in options:
        return learn_private(tracks, **options)
    if "counting" in options:
        return learn_walks(tracks, **options)
    return learn_public([Moves.of_rows(*track) for track in tracks], n_states, **options)


def calibrated(
    tracks: People, counting: Counting, inside: Callable[[LearnedModel], Scenario], watch: Watch
) -> Counting:
    """The same way of counting at the confidence under which regions hold people left out."""
    if len(tracks) < FEWEST or counting.chain == "second":
        raise click.UsageError(
            f"--confidence must be a number for fewer than {FEWEST} people, and for pairs"
        )
    # What is usual at any time is tempered, and hours are drawn to it.
    plain, usual = replace(counting, calendar=None), CONFIDENCE[counting.chain]

    def learn(people: People, confidence: float) -> LearnedModel:
        return learn_walks(people, replace(plain, confidence=confidence))

    found = choose_confidence(
        lambda people, confidence: learn(people, confidence).model.at(1), tracks,
        inside(learn(tracks, usual)), among=CONFIDENCES, usual=usual, watch=watch,
    )  # fmt: skip
    return replace(counting, confidence=found)


def counting_of(
    states: States, clock: Clock, chain: Kind, by: str | None, confidence: float | str | None
) -> Counting | None:
    """How moves are counted, if not plainly."""
    if chain == "first" and by is None and confidence in (None, COUNTS):
        return None
    if confidence not in (None, COUNTS) and not states.place_columns:
        raise click.UsageError("--confidence must go with states that have places")
    if by is not None and not clock.has_dates:
        raise click.UsageError("--by must go with a --time-step like '5 min'")
    if chain == "momentum" and not states.place_columns:
        raise click.UsageError("--chain momentum must go with states that have places")
    ground = Ground(states.values(states.place_columns)) if states.place_columns else None
    calendar = None if by is None else Calendar(by, clock.seconds, clock.zone)
    factor = 1.0 if confidence == HELD_OUT else None if confidence == COUNTS else confidence
    return Counting(len(states), chain, calendar, ground, factor)  # type: ignore[arg-type]


def levels_of(
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


def support_of(states: States, radius: str | None, moves: str | None, unit: str) -> Any:
    """The moves that are possible, if somebody says which."""
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
