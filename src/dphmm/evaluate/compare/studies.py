"""The comparison's studies: a file of results for each set of people, and more for the city."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dphmm._types import FloatArray
from dphmm.evaluate.compare.cast import CITY_STEPS, SEED
from dphmm.evaluate.compare.contender import Budget
from dphmm.evaluate.compare.daily import Daily
from dphmm.evaluate.compare.field import CONTENDERS
from dphmm.evaluate.compare.guarantees import DELTA, Guaranteed
from dphmm.evaluate.compare.small_map import DRAWS, METRIC, ON_SMALL_MAP, OneAnswer, small_map
from dphmm.evaluate.compare.tables import (
    contender_rows,
    guarantee_rows,
    place_rows,
    small_rows,
)
from dphmm.evaluate.compare.tasks import Judged, Settled
from dphmm.evaluate.intervals import RULE
from dphmm.evaluate.parts import EXACT, Measurable, Part, Study
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.workloads import Workload

__all__ = ["city_comparisons", "data_comparisons"]

MODULE = "dphmm.evaluate.compare.studies"
DATA = {
    "geolife": "GeoLife",
    "gowalla": "Gowalla in Los Angeles",
    "gowalla-nyc": "Gowalla in New York",
}
STEPS = 100
CHOSEN = protocol()["compare"]
EPSILONS = (0.5, 1.0, 2.0, 4.0)
HOUR = 12
"""Steps of an hour in the made-up city."""
LABELS = {
    "step": "1 a step, every five minutes",
    "half-hour": "96 a day, 2 every half hour",
    "two-hours": "24 a day, 2 every two hours",
    "six-hours": "4 a day, 1 every six hours",
    "daytime": "4 a day, 1 at 9, 12, 15 and 18 hours",
    "noon": "4 a day, 4 at noon",
    "two-days": "4 a week, 1 every 42 hours",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "step": {"total": 288},
    "half-hour": {"total": 96, "every": 6},
    "two-hours": {"total": 24, "every": 24},
    "six-hours": {"total": 4, "every": 72},
    "daytime": {"total": 4, "at": tuple(HOUR * hour for hour in (9, 12, 15, 18))},
    "noon": {"total": 4, "at": (HOUR * 12,)},
    "two-days": {"total": 4, "every": 504, "days": 7},
}
"""Of staircase noise; the first speaks at every step."""
Summary = tuple[Mapping[str, Value], Mapping[str, Table]]
Keyed = Mapping[Part, dict[str, FloatArray]]


def data_comparisons(quick: bool) -> list[Study]:
    """Every mechanism on people of the data sets.

    Args:
        quick: Whether to take a few short runs, to see that everything works.
    """
    studies = []
    for workload, title in DATA.items():
        totals, rest = [12], {"steps": 12, "most": 6}
        if not quick:
            totals = CHOSEN["totals"][workload]
            rest = {"steps": STEPS, "most": CHOSEN["paths"][workload]}
        tasks = {
            total: {name: Judged(name, total, seeds=_seeds(quick), **rest) for name in CONTENDERS}
            for total in totals
        }
        about = f"{len(CONTENDERS)} mechanisms on {title}, chains and settings of other people"
        studies.append(_table_study(f"compare.{workload}", about, workload, tasks, rest["steps"]))
    return studies


def city_comparisons(quick: bool) -> list[Study]:
    """Every mechanism on the made-up people; home and work; the theory; one answer.

    Args:
        quick: Whether to take a few people and one day.
    """
    people: dict[str, Any] = {"people": 6} if quick else {}
    seeds = _seeds(quick)
    settings = ("two-hours", "six-hours") if quick else tuple(SETTINGS)
    placed = {label: Settled(label, **SETTINGS[label], **people, seeds=seeds) for label in settings}
    daily = [label for label in settings if "days" not in SETTINGS[label]]
    sure = {label: Guaranteed(label, **SETTINGS[label], **people) for label in daily}
    answers = {epsilon: OneAnswer(epsilon) for epsilon in (EPSILONS[1:2] if quick else EPSILONS)}
    return [
        *(_day_study(total, quick, people) for total in CHOSEN["daily"][: 1 if quick else None]),
        _study(
            "compare.places", "Home and work of 30 made-up people from staircase answers", placed,
            lambda found: place_rows(found, LABELS),
            {"day": CITY_STEPS, "draws": seeds, **{name: SETTINGS[name] for name in settings}},
            seeds=tuple(range(seeds)),
        ),
        _study(
            "compare.guarantees", "What the theory says of a day in the made-up city", sure,
            lambda found: guarantee_rows(found, LABELS),
            {"day": CITY_STEPS, "delta": DELTA, **{name: SETTINGS[name] for name in daily}},
            noise=EXACT,
        ),
        _study(
            "compare.one-answer", "One answer on 25 places, beside the optimum", answers,
            lambda found: small_rows(found, [*ON_SMALL_MAP, METRIC]),
            {"epsilons": list(answers), "places": small_map().size, "draws": DRAWS},
            noise=f"{DRAWS:,} draws for each place, the errors of raw answers and optima exact",
        ),
    ]  # fmt: skip


def _seeds(quick: bool) -> int:
    """How many draws of noise every mechanism gets for each path."""
    return 1 if quick else int(CHOSEN["seeds"])


def _day_study(total: int, quick: bool, people: dict[str, Any]) -> Study:
    """Every mechanism on a day of the made-up people, at one budget."""
    seeds = _seeds(quick)
    tasks = {total: {name: Daily(name, total, seeds=seeds, **people) for name in CONTENDERS}}
    about = f"{len(CONTENDERS)} mechanisms on a day of 30 made-up people at {total} a day"
    return _table_study(f"compare.city-{total}", about, "city", tasks, CITY_STEPS)


def _table_study(
    name: str, about: str, workload: str, tasks: Mapping[Any, Mapping[str, Any]], steps: int
) -> Study:
    """A study with a table for each budget."""
    (draws,) = {task.seeds for named in tasks.values() for task in named.values()}

    def summarise(workloads: Mapping[str, Workload], found: Keyed) -> Summary:
        values: dict[str, Value] = {}
        tables = {}
        for total, named in tasks.items():
            parts = {key: found[workload, task] for key, task in named.items()}
            more, tables[f"total-{total:g}"] = contender_rows(parts, Budget(total, steps), draws)
            values |= more
        return values, tables

    return Study(
        name=name, about=about, module=MODULE,
        parts=tuple((workload, task) for named in tasks.values() for task in named.values()),
        summarise=summarise,
        settings={"budgets": sorted(tasks), "steps": steps, "draws": draws, "rule": RULE},
        seeds=tuple(range(draws)),
    )  # fmt: skip


def _study(
    name: str,
    about: str,
    tasks: Mapping[Any, Measurable],
    rows: Callable[[dict[Any, Mapping[str, FloatArray]]], tuple[dict[str, Value], Table]],
    settings: Mapping[str, Any],
    seeds: tuple[int, ...] = (),
    noise: str = "",
) -> Study:
    """A study of the made-up city with one table."""

    def summarise(workloads: Mapping[str, Workload], found: Keyed) -> Summary:
        values, table = rows({key: found["city", task] for key, task in tasks.items()})
        return values, {"main": table}

    return Study(
        name=name, about=about, module=MODULE,
        parts=tuple(("city", task) for task in tasks.values()), summarise=summarise,
        settings={"people made up with seed": SEED, **settings}, seeds=seeds, noise=noise,
    )  # fmt: skip
