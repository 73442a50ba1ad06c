"""Section 8 of the paper: its figures and claims at each clock, with verdicts that can be wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dphmm._types import FloatArray
from dphmm.evaluate.course import Course, Drawn, Timed
from dphmm.evaluate.experiments import POLICIES
from dphmm.evaluate.intervals import RULE
from dphmm.evaluate.observed import WORDS, Observed, city_settings
from dphmm.evaluate.parts import Measurable, Part, Study
from dphmm.evaluate.protocol import protocol, seeds
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.workloads import Workload

__all__ = ["claims_study", "clock_study"]

GROUP = 5
"""Seeds of one part, so that a run that is stopped loses little."""

Found = Mapping[Part, dict[str, FloatArray]]
Outcome = tuple[dict[str, Value], dict[str, Table]]


def claims_study(name: str, *, quick: bool = False) -> Study:
    """Every claim of section 8 on one workload.

    Args:
        name: Of the workload.
        quick: Whether to take a few seeds only.
    """
    chosen = city_settings(name)
    tasks = _tasks(name, quick, tuple(chosen["epsilons"]))
    tasks += [
        Course("distance", ("1",), radius)
        for radius in chosen["radii"]
        if radius != chosen["radius"]
    ]
    tasks += [
        Drawn(group, epsilon, limit=chosen["location_set_sequences"])
        for epsilon in chosen["location_set_epsilons"]
        if epsilon != "1"
        for group in _groups(quick)
    ]

    def summarise(workloads: Mapping[str, Workload], found: Found) -> Outcome:
        seen = Observed(workloads[name], {task: found[name, task] for task in tasks}, quick)
        values, rows = dict(seen.values()), []
        for claim in seen.claims():
            verdict = claim.people.verdict(claim.margin, claim.rule)
            values[f"verdict.{claim.key}"] = verdict
            why = claim.rule if claim.rule.startswith("exact") else verdict.note
            rows.append((claim.text, str(verdict.value), claim.found, why))
        head = ("the paper says", "verdict", "here", "margin, above zero where it is true")
        return values, {"claims": Table(head, tuple(rows))}

    return Study(
        name=f"claims.{name}",
        about=f"Section 8 of the paper on {name}",
        module=__name__,
        parts=tuple((name, task) for task in tasks),
        summarise=summarise,
        settings={**chosen, **protocol()["verdicts"], "rule": RULE},
        seeds=seeds(quick),
        timed=True,
    )


def clock_study(*, quick: bool = False) -> Study:
    """The three policies from two seconds to ten minutes a step, on GeoLife as logged.

    Args:
        quick: Whether to take two clocks and a few seeds only.
    """
    clock = protocol()["clock"]
    every = clock["seconds"][1:4:2] if quick else clock["seconds"]
    names = {seconds: f"geolife-{seconds}s" for seconds in every}
    # At the paper's clock epsilon is varied, and that part is shared with the claims' study.
    parts = {
        seconds: _tasks(
            name,
            quick,
            tuple(city_settings(name)["epsilons"]) if seconds == _paper_clock() else ("1",),
        )
        for seconds, name in names.items()
    }

    def summarise(workloads: Mapping[str, Workload], found: Found) -> Outcome:
        values: dict[str, Value] = {}
        rows: dict[str, list[tuple[str, ...]]] = {"figures": [], "verdicts": [], "worst": []}
        for seconds, name in names.items():
            here = {task: found[name, task] for task in parts[seconds]}
            seen = Observed(workloads[name], here, quick)
            told = dict(seen.values())
            claims = list(seen.over_time())
            for claim in claims:
                told[f"verdict.{claim.key}"] = claim.people.verdict(claim.margin, claim.rule)
            values |= {f"{seconds}s.{key}": value for key, value in told.items()}
            first = (f"{seconds} s", str(seen.workload.steps))
            rows["figures"].append((*first, *_figures(told)))
            rows["worst"].append((first[0], *_worst(told)))
            verdicts = (_verdict(told[f"verdict.{claim.key}"]) for claim in claims)
            rows["verdicts"].append((first[0], *verdicts))
        three = [WORDS[policy] for policy in POLICIES]
        return values, {
            "figures": Table(
                ("a step", "steps", *(f"DoP, {word}" for word in three),
                 *(f"error in km, {word}" for word in three),
                 *(f"ms a step, {word}" for word in three)),
                tuple(rows["figures"]),
            ),
            "worst": Table(
                ("a step", *(f"least DoP of a person, {word}" for word in three),
                 *(f"steps without the truth, {word}" for word in three)),
                tuple(rows["worst"]),
            ),
            "verdicts": Table(
                ("a step", *(claim.text for claim in claims)), tuple(rows["verdicts"])
            ),
        }  # fmt: skip

    return Study(
        name="clock.geolife",
        about="The paper's three policies on GeoLife as logged, 2 seconds to 10 minutes a step",
        module=__name__,
        parts=tuple((names[seconds], task) for seconds, tasks in parts.items() for task in tasks),
        summarise=summarise,
        settings={**city_settings("geolife-5s"), **clock, "rule": RULE},
        seeds=seeds(quick),
        timed=True,
    )


def _paper_clock() -> int:
    return int(protocol()["geolife"]["paper_clock"])


def _groups(quick: bool) -> list[tuple[int, ...]]:
    every = seeds(quick)
    return [every[place : place + GROUP] for place in range(0, len(every), GROUP)]


def _tasks(name: str, quick: bool, epsilons: tuple[str, ...]) -> list[Measurable]:
    """What every study of a workload needs: its course, its draws and its times."""
    radius = city_settings(name)["radius"]
    return [
        *(Drawn(group) for group in _groups(quick)),
        Course("distance", epsilons, radius),
        Course("one_step", epsilons),
        Timed("distance", radius),
        Timed("one_step"),
        Timed("location_set"),
    ]


def _figures(told: Mapping[str, Value]) -> Iterator[str]:
    for kind, form in (("hidden", ".1f"), ("error", ".2f"), ("anew", ".1f")):
        for policy in POLICIES:
            value = told[f"{kind}.{policy}"]
            numbers = [format(x, form) for x in (value.value, value.low, value.high)]
            yield f"{numbers[0]} ({numbers[1]} to {numbers[2]})"


def _verdict(value: Value) -> str:
    return f"{value.value} ({value.low:.3g} to {value.high:.3g})"


def _worst(told: Mapping[str, Value]) -> Iterator[str]:
    for kind in ("worst.hidden", "stand_in"):
        for policy in POLICIES:
            yield told[f"{kind}.{policy}"].text()
