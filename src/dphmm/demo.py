"""The main job end to end on a synthetic city, in a folder of files to look at and to change.

The city and everybody in it are made up from a fixed seed, so its "true" trips are no secret.
The noise is the real thing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np

from dphmm.books.changing import open_book
from dphmm.books.journal import Journal
from dphmm.chain.calendar import Calendar
from dphmm.chain.estimates import estimate_of
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, DataError
from dphmm.release import engine
from dphmm.release.engine import Answered
from dphmm.release.schedule import Schedule
from dphmm.report import (
    Ground,
    PrivateErrors,
    TrackFacts,
    private_errors,
    read_truth,
    scenario_page,
)
from dphmm.report.private import Truth, distances
from dphmm.scenario import Clock, Policy, Scenario, Settings, States
from dphmm.scenario.checking import Step, check_steps
from dphmm.scenario.counting import Counting
from dphmm.scenario.learning import learn_walks, moves_within
from dphmm.scenario.released import read_releases
from dphmm.scenario.releasing import answer_columns, answer_rows, ask_rows
from dphmm.tables.datasets import synthetic_city
from dphmm.tables.datasets.city import City
from dphmm.tables.files import csv_text, write_whole
from dphmm.tables.geojson import collection, feature
from dphmm.tables.trips import Row, read_trips

__all__ = ["Demo", "demo_city", "demo_scenario", "run_demo"]

SEED = 20260
MOST_PEOPLE = 176
"""How many can be released; all of them live in the city, so it is the same for any number."""
TEACHERS = 1000
"""People whose Monday the model is learned from; nobody whose day is released is among them."""
HELD_OUT = 24
"""More people whose Monday is public, to try schedules on: the model has not seen them."""
DAYS = 2
STEP_MINUTES = 5
RADIUS = Fraction(1000)
BUDGET = "24 per 1 day"
EPSILON, EVERY, MECHANISM = Fraction(2), 24, "staircase"
"""How it is spent: near what `dphmm design --find schedule` recommends for this city."""
SMOOTHING = 0.02
ANYWHERE = 0.002
REACH = 500.0
"""Moves up to here, in metres, are possible although nobody made them."""
BASE = "streets.geojson"
"""The base map: public, and no answer depends on it."""
MONDAY = datetime(2024, 4, 29, tzinfo=UTC)
MONDAYS_STEPS = slice(0, 24 * 60 // STEP_MINUTES)
TUESDAYS_STEPS = slice(24 * 60 // STEP_MINUTES, 2 * 24 * 60 // STEP_MINUTES)


@dataclass(frozen=True)
class Demo:
    """Where the files are, and the figures."""

    folder: Path
    people: tuple[str, ...]
    """Whose day was released."""
    steps: int
    """How many steps of theirs have an estimate."""
    answers: int
    spent: Fraction
    """The most that was spent on one of them."""
    repeated: int
    """Steps that an earlier run had released; they were said again and cost nothing."""
    states: int
    links: int
    check: Step
    errors: PrivateErrors
    """Of all releases; the demo's trips are invented, so these may be shown."""
    unknown: float
    """The mean error of an estimate without any answer."""

    @property
    def ratio(self) -> float:
        """The mean error in hindsight as a part of that without any answer."""
        return self.errors.smoothed / self.unknown


def run_demo(
    folder: str | Path = "demo", *, people: int = 12, say: Callable[[str], None] = lambda line: None
) -> Demo:
    """Make the city, learn, draw a policy, check, release, evaluate, report; `say` hears progress.

    A second run in the same folder finds its ledger and repeats every answer.
    """
    if not 1 <= people <= MOST_PEOPLE:
        raise ArgumentError(f"people must be 1 to {MOST_PEOPLE}, got {people!r}")
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise DataError(f"{place}: folder must be a folder, got a file of that name")
    place.mkdir(parents=True, exist_ok=True)
    names = {
        name: place / file
        for name, file in (
            ("toml", "city.toml"),
            ("base", BASE),
            ("history", "history.csv"),
            ("public", "public.csv"),
            ("trips", "trips.csv"),
            ("released", "released.csv"),
            ("ledger", "city.ledger.jsonl"),
            ("report", "report.html"),
            ("private", "report-private.html"),
        )
    }
    say(f"A made-up city: 10 km across, {TEACHERS + MOST_PEOPLE + HELD_OUT} people who live there")
    city = demo_city()
    labels = _labels(city)
    _write_trips(names["history"], city, range(TEACHERS), MONDAYS_STEPS, labels)
    last = range(city.people - HELD_OUT, city.people)
    _write_trips(names["public"], city, last, MONDAYS_STEPS, labels)
    _write_trips(names["trips"], city, range(TEACHERS, TEACHERS + people), TUESDAYS_STEPS, labels)

    say(f"A model of how people move, learned from the Monday of {TEACHERS} who agreed")
    scenario = demo_scenario(city)
    scenario.save(names["toml"])
    write_whole(names["base"], draw_streets(city))
    scenario = Scenario.load(names["toml"])

    say("A policy: places up to 1 km apart must look alike; who would be exposed?")
    check = list(check_steps(scenario, 10))[-1]

    say(f"The Tuesday of {people} others for a total of 24: epsilon 2 every two hours")
    answered, rows = _release(scenario, names["trips"], names["ledger"])
    cells = answer_rows(scenario, answered.answers)
    write_whole(names["released"], csv_text([answer_columns(scenario), *cells]))

    say("What the answers are worth, and the report")
    with closing(open_book(str(names["ledger"]))) as book:
        tracks = read_releases(names["released"], scenario, book=book)
    known = [TrackFacts(track) for track in tracks]
    truth = read_truth(names["trips"], scenario)
    errors = private_errors(known, truth)
    ground = Ground.read(scenario, place)
    write_whole(names["report"], scenario_page(scenario, known, ground=ground))
    private = scenario_page(scenario, known, truth=truth, ground=ground)
    write_whole(names["private"], private, private=True)
    return Demo(
        folder=place,
        people=tuple(facts.track.person for facts in known),
        steps=len(rows),
        answers=sum(facts.said for facts in known),
        spent=max(facts.track.spent for facts in known),
        repeated=answered.repeated,
        states=len(scenario.states),
        links=len(scenario.policy.edges),
        check=check,
        errors=errors,
        unknown=_unknown(scenario, known, truth),
    )


def _unknown(scenario: Scenario, known: list[TrackFacts], truth: Truth) -> float:
    """How far estimates are from the truth on average if nothing is ever said."""
    track, values = known[0].track, scenario.query.values
    began = track.slots[0] - 1
    prior = scenario.model.filter([None] * len(track.slots), start=scenario.start, time=began)
    guesses = np.array([estimate_of(one, values, scenario.settings.estimate) for one in prior])
    return float(np.mean([distances(guesses, values[truth.of(facts)]) for facts in known]))


def demo_city() -> City:
    """The city and everybody in it."""
    return synthetic_city(
        people=TEACHERS + MOST_PEOPLE + HELD_OUT,
        days=DAYS,
        rng=np.random.default_rng(SEED),
        step_minutes=STEP_MINUTES,
    )


def demo_scenario(city: City) -> Scenario:
    """What is released, and how: learned from the Monday of those who agreed."""
    labels = _labels(city)
    monday = city.states[:TEACHERS, MONDAYS_STEPS]
    clock = Clock(f"{STEP_MINUTES} min")
    slots = clock.slot_of(MONDAY.isoformat()) + np.arange(monday.shape[1])
    learned = learn_walks(
        [(slots, states) for states in monday],
        Counting(city.grid.n_states, calendar=Calendar("hour", clock.seconds)),
        smoothing=SMOOTHING,
        support=moves_within(city.grid.centers, REACH),
        anywhere=ANYWHERE,
    )
    settings = Settings(
        "city",
        EPSILON,
        states="cells.csv",
        limit=Limit.read(BUDGET),
        step=Fraction(10),
        policy=Policy(distance=RADIUS),
        mechanism=MECHANISM,
        estimate="median",
        clock=clock,
        when=Schedule(every=EVERY, phase=EVERY // 2),
        unit="m",
        base=BASE,
    )
    states = States.on_plane(city.grid.centers, city.categories, labels)
    return Scenario.from_settings(settings, states, learned.model, learned.source)


def draw_streets(city: City) -> str:
    """The base map of the city as GeoJSON, in the metres of its cells: the river and fast roads."""
    cells, size = city.grid.row_col, city.grid.cell_km * 1000
    corner = city.grid.centers[0] - size * cells[0, ::-1]
    rows, columns = cells.max(axis=0) + 1
    held = np.zeros((rows, columns), dtype=bool)
    held[cells[:, 0], cells[:, 1]] = True
    wet = [(row, int(np.flatnonzero(~held[row])[0])) for row in range(rows) if not held[row].all()]
    middle = np.array([[column, row] for row, column in wet], dtype=float)
    middle[:, 0] = np.convolve(np.pad(middle[:, 0], 2, mode="edge"), np.full(5, 0.2), mode="valid")
    left, right = (np.add(middle, [side, 0]) for side in (-0.35, 0.35))
    band = np.concatenate([left, right[::-1], left[:1]])
    roads = []
    for axis in (0, 1):
        fast = np.bincount(cells[city.fast_road, axis], minlength=int(cells.max()) + 1)
        for number in np.flatnonzero(fast > rows // 2).tolist():
            ends = np.array([[0.0, number], [columns - 1.0, number]])
            roads.append(ends if axis == 0 else ends[:, ::-1])
    return collection(
        [
            feature("Polygon", [corner + size * band], {"kind": "water"}),
            *(feature("LineString", corner + size * road, {"kind": "street"}) for road in roads),
        ]
    )


def _release(scenario: Scenario, trips: Path, ledger: Path) -> tuple[Answered, list[Row]]:
    clock = scenario.settings.clock
    rows = list(read_trips(trips, scenario.states, clock))
    with Journal(ledger, clock.time_of) as journal:
        ask = ask_rows(scenario, rows)
        if engine.judge(journal, ask).faults:
            raise DataError(
                f"{ledger.parent}: folder must be new or an earlier demo's, got answers of another "
                f"city; remove it or choose another with -o"
            )
        (answered,) = engine.release(journal, [ask])
    return answered, rows


def _write_trips(
    path: Path, city: City, people: Iterable[int], steps: slice, labels: list[str]
) -> None:
    times = [
        (MONDAY + timedelta(minutes=int(minute))).strftime("%Y-%m-%dT%H:%MZ")
        for minute in city.times[steps]
    ]
    _write_csv(
        path,
        [
            ("person", "time", "state"),
            *(
                (f"p{person:03d}", time, labels[state])
                for person in people
                for time, state in zip(times, city.states[person, steps].tolist(), strict=True)
            ),
        ],
    )


def _write_csv(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    write_whole(path, out.getvalue(), private=True)


def _labels(city: City) -> list[str]:
    return [f"r{row:02d}c{column:02d}" for row, column in city.grid.row_col.tolist()]
