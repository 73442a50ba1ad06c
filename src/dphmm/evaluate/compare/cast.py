"""Who is learned from, who a mechanism is set up on, and who it is judged by. Private.

The chain is of some people, settings are chosen on others, and the table is about a third group.
Ids that are one person stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.chain import Chain
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.ground import Ground, normalised
from dphmm.chain.markov import MarkovModel
from dphmm.errors import DataError
from dphmm.evaluate.compare.world import World
from dphmm.evaluate.metrics import visits
from dphmm.evaluate.readers import at_hours, hourly
from dphmm.evaluate.study import deal
from dphmm.evaluate.workloads import Workload, counted
from dphmm.geometry.query import Query
from dphmm.tables.datasets import Trip, cut_trips, same_person, synthetic_city
from dphmm.tables.datasets.city import City

__all__ = ["CITY_STEPS", "Cast", "cast_of", "made_up_cast", "made_up_city"]

JUDGED, TUNED = (0, 1), (2,)
"""The folds that a table is about, and the one that settings are chosen on."""
ANYWHERE = 0.002
WEIGHT = 10.0
OWN_TRUST = 2.0
"""Moves of other people that are added to each place's in a chain of somebody's own past."""

TEACHERS, SEED, STEP_MINUTES = 300, 1616, 5
CITY_STEPS = 24 * 60 // STEP_MINUTES
"""Steps of a day in the made-up city."""
BANDS = 48
"""Hours of a working day, then of a free one."""


@dataclass(frozen=True, eq=False)
class Cast:
    """The people of a comparison. Private: true places."""

    world: World
    tuned: IntArray = field(repr=False)
    """(k, steps) paths that settings are chosen on."""
    judged: IntArray = field(repr=False)
    """(k, steps) paths that results are about."""
    owners: IntArray = field(repr=False)
    """Whose each judged path is."""
    own: tuple[tuple[Chain, Belief], ...] = field(repr=False)
    """For each judged path a chain that knows the rest of its owner's life."""

    def mean(self, rows: FloatArray) -> FloatArray:
        """For each person the mean over their paths: (people,)."""
        totals = np.bincount(self.owners, weights=rows)
        return np.asarray(totals / np.bincount(self.owners))


def cast_of(workload: Workload, steps: int = 100, most: int = 40) -> Cast:
    """The people of a data set: at most `most` judged runs, two of a person.

    Args:
        workload: The city and its trips.
        steps: How long a run is.
        most: How many runs at most.
    """
    fold, person = deal(workload.trips), same_person(workload.trips)
    held = {*JUDGED, *TUNED}
    others = [trip.states for trip in workload.trips if fold[trip.person] not in held]
    chain, start = _learned(workload, others)
    world = World(workload.query, workload.radius, chain, start)
    runs = {
        part: _few_each(
            cut_trips([t for t in workload.trips if fold[t.person] in part], steps), person
        )
        for part in (JUDGED, TUNED)
    }
    judged, tuned = runs[JUDGED][:most], runs[TUNED][: max(2, most // 4)]
    if not judged or not tuned:
        raise DataError(f"trips must hold runs of {steps} states in every fold, got none in one")
    names = sorted({person[run.person] for run in judged})
    own = [_own_past(workload, run, person, chain, start) for run in judged]
    return Cast(
        world=world,
        tuned=np.array([run.states for run in tuned]),
        judged=np.array([run.states for run in judged]),
        owners=np.array([names.index(person[run.person]) for run in judged]),
        own=tuple(own),
    )


def _few_each(runs: Sequence[Trip], person: dict[str, str], few: int = 2) -> list[Trip]:
    """At most so many runs of a person, everybody's first before anybody's second."""
    rank: dict[str, int] = {}
    ranked = []
    for place, run in enumerate(runs):
        who = person[run.person]
        rank[who] = rank.get(who, 0) + 1
        if rank[who] <= few:
            ranked.append((rank[who], place, run))
    return [run for _, _, run in sorted(ranked, key=lambda row: row[:2])]


def _learned(workload: Workload, sequences: list[IntArray]) -> tuple[Chain, Belief]:
    """A chain over places: neighbours help where steps are regular, else how often each is met."""
    size = workload.query.n_states
    often = visits(sequences, size)
    if workload.regular:
        matrix = workload.ground.draw(counted(sequences, size), WEIGHT)
        model = MarkovModel(matrix, anywhere=ANYWHERE)
    else:
        model = MarkovModel.fit(sequences, n_states=size, anywhere="held-out", density=often)
    return model, Belief.from_probabilities(often)


def _own_past(
    workload: Workload, run: Trip, person: dict[str, str], chain: Chain, start: Belief
) -> tuple[Chain, Belief]:
    """A chain that also counted the person's own moves outside the time of the run."""
    first, last = run.times[0], run.times[-1]
    mine = [
        trip.states[keep]
        for trip in workload.trips
        if person[trip.person] == person[run.person]
        and (keep := (trip.times < first) | (trip.times > last)).any()
    ]
    if not mine:
        return chain, start
    size = workload.query.n_states
    model = chain.at(1)
    matrix = normalised(counted(mine, size) + OWN_TRUST * model.transition)
    weights = np.bincount(np.concatenate(mine), minlength=size) + OWN_TRUST * start.probabilities
    density = model.density if model.anywhere else None
    known = MarkovModel(matrix, anywhere=model.anywhere, density=density)
    return known, Belief.from_probabilities(weights / weights.sum())


# The made-up city


def made_up_city(judged: int = 30, tuned: int = 10, days: int = 14) -> City:
    """A city in which the first people are judged, the next tuned on, the rest learned from."""
    return synthetic_city(
        people=judged + tuned + TEACHERS,
        days=days,
        rng=np.random.default_rng(SEED),
        step_minutes=STEP_MINUTES,
    )


def made_up_cast(
    city: City, judged: int = 30, tuned: int = 10, days: int = 1, radius: str = "1"
) -> Cast:
    """Made-up people: others' first week is public, their own first week their past.

    Released are the first `days` of the second week, from its Monday on. A chain for each hour
    of working and of free days.

    Args:
        city: As `made_up_city` makes it, of 14 days.
        judged: How many are judged.
        tuned: On how many settings are chosen.
        days: How many days are released.
        radius: Places up to here apart, in kilometres, must look alike.
    """
    week = 7 * CITY_STEPS
    query = Query(city.grid.centers / 1000, step="0.01")
    ground = Ground(city.grid.centers)
    bands = bands_of(city.times)
    others = list(city.states[judged + tuned :, :week])
    models = hourly(others, [bands[:week]] * len(others), ground, weight=WEIGHT, trust=30.0)
    models = tuple(MarkovModel(model.transition, anywhere=ANYWHERE) for model in models)
    size, released = query.n_states, slice(week, week + days * CITY_STEPS)
    at_midnight = np.bincount(np.stack(others)[:, 0], minlength=size) + 0.05
    start = Belief.from_probabilities(at_midnight / at_midnight.sum())
    chain = at_hours(models, bands[released], start).chain
    own = [
        _own_week(row[:week], bands[:week], models, bands[released], size)
        for row in city.states[:judged]
    ]
    return Cast(
        world=World(query, radius, chain, start),
        tuned=np.asarray(city.states[judged : judged + tuned, released]),
        judged=np.asarray(city.states[:judged, released]),
        owners=np.arange(judged),
        own=tuple(own),
    )


def bands_of(times: IntArray) -> IntArray:
    """The hour of each minute since Monday 00:00, from 24 on for free days."""
    hour, day = times // 60 % 24, times // (24 * 60) % 7
    return np.asarray(hour + 24 * (day >= 5), dtype=np.int64)


def _own_week(
    states: IntArray,
    bands: IntArray,
    models: tuple[MarkovModel, ...],
    released: IntArray,
    size: int,
) -> tuple[Chain, Belief]:
    """A chain for each hour that counted one person's week, drawn to everybody's."""
    mine = []
    into = bands[1:]
    for band, model in enumerate(models):
        chosen = np.flatnonzero(into == band)
        entries = (np.ones(len(chosen)), (states[chosen], states[chosen + 1]))
        counts = sparse.csr_array(entries, shape=(size, size))
        matrix = normalised(sparse.csr_array(counts + OWN_TRUST * model.transition))
        mine.append(MarkovModel(matrix, anywhere=ANYWHERE))
    nights = states[::CITY_STEPS]
    weights = np.bincount(nights, minlength=size) + 0.5 / size
    start = Belief.from_probabilities(weights / weights.sum())
    reader = at_hours(tuple(mine), released, start)
    assert isinstance(reader.chain, TimeVaryingModel)
    return reader.chain, start
