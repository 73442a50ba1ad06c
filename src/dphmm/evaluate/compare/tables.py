"""From measured parts to the numbers and tables of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dphmm._types import FloatArray, Mask
from dphmm.evaluate.compare.contender import Budget
from dphmm.evaluate.compare.field import CONTENDERS, OURS, TITLES, grid_of
from dphmm.evaluate.compare.places import PLACES
from dphmm.evaluate.compare.tasks import ENDS, FIGURES
from dphmm.evaluate.intervals import People, median_of
from dphmm.evaluate.results import Table, Value

__all__ = ["MARGIN", "contender_rows", "guarantee_rows", "place_rows", "small_rows"]

Found = Mapping[str, FloatArray]
Rows = tuple[dict[str, Value], Table]

HEAD = (
    "mechanism", "settings", "a map shows, km", "best guess now, km", "10 steps later, km",
    "adversary in hindsight, km", "who knows the past, km", "mass within r", "dearest instant",
    "spent a step", "draws", "the staircase with a schedule is closer now",
)  # fmt: skip
MARGIN = "the mean error now of this mechanism minus that of the staircase with a schedule"
WHOSE_DAY = "whose day among all"
AFTER = ("nothing", "a day", "a week")
NEAR_KM = (0.25, 1.0)
NORMAL = 1.96
"""Standard errors to both sides that hold 95% of a normal law."""


def contender_rows(found: Mapping[str, Found], budget: Budget, seeds: int) -> Rows:
    """The values of every mechanism at one budget, and its table.

    Args:
        found: What was measured, by the mechanism's name.
        budget: What each could spend.
        seeds: How many draws of noise are behind each person's figure.
    """
    values: dict[str, Value] = {}
    rows = []
    for name in CONTENDERS:
        if name not in found:
            continue
        part, key = found[name], f"{name}.{budget.total:g}"
        people = People({one: part[one] for one in FIGURES}, seeds=seeds)
        for one in FIGURES:
            share = "within" in one
            values[f"{key}.{one}"] = people.mean(one, ".0%" if share else ".2f", share=share)
        for one in ("instant", "step"):
            values[f"{key}.{one}"] = Value(float(part[one]), ".2g")
        shown = {one: values[f"{key}.{one}"] for one in (*FIGURES, "instant", "step")}
        verdict = "is this one" if name == OURS else ""
        if not verdict:
            both = People({"mine": found[OURS]["filtered"], "theirs": part["filtered"]})
            values[f"{key}.verdict"] = both.verdict(lambda m: m["theirs"] - m["mine"], MARGIN)
            verdict = str(values[f"{key}.verdict"].value)
        rows.append(
            (
                TITLES[name], settings(name, budget, int(part["choice"])), shown["raw"].text(),
                shown["filtered"].text(interval=True), shown["lagged"].text(),
                shown["hindsight"].text(interval=True), shown["own"].text(),
                shown["within"].text(), shown["instant"].text(), shown["step"].text(),
                str(seeds), verdict, *_whose_day(values, key, part),
            )
        )  # fmt: skip
    head = (*HEAD, WHOSE_DAY) if any("rank" in part for part in found.values()) else HEAD
    return values, Table(head, tuple(rows))


def _whose_day(values: dict[str, Value], key: str, part: Found) -> tuple[str, ...]:
    """How often a day finds its owner: kept, and as a cell, where it was asked."""
    if "rank" not in part:
        return ()
    values[f"{key}.identified"] = _share(part["rank"] == 0)
    return (values[f"{key}.identified"].text(interval=True),)


def settings(name: str, budget: Budget, choice: int) -> str:
    """The setting that was chosen, in words."""
    knobs = grid_of(name, budget)[choice]
    words = {"every": "every {:g} steps", "window": "w = {:g}"}
    return ", ".join(words.get(key, f"{key} {{:g}}").format(value) for key, value in knobs.items())


def place_rows(found: Mapping[str, Found], labels: Mapping[str, str]) -> Rows:
    """Home and work after a day and a week, and whose day it was, for every setting.

    Args:
        found: What was measured, by the setting's label.
        labels: What a table calls each setting.
    """
    values: dict[str, Value] = {}
    rows = []
    for label, part in found.items():
        cells = [labels[label]]
        for place in PLACES:
            ends = range(1, part[place].shape[1])
            cells += [_found(values, f"{label}.{place}.{n}", part[place][:, n]) for n in ends]
            cells += ["not measured"] * (len(ENDS) - part[place].shape[1])
        values[f"{label}.identified"] = _share(part["rank"] == 0)
        values[f"{label}.filtered"] = People({"now": part["filtered"]}).mean("now", ".2f")
        values[f"{label}.hindsight"] = People({"late": part["hindsight"]}).mean("late", ".2f")
        cells += [values[f"{label}.{one}"].text() for one in ("identified", "filtered")]
        rows.append(tuple(cells))
    nothing = next(iter(found.values()))
    for place in PLACES:
        _found(values, f"nothing.{place}", nothing[place][:, 0])
    head = ["setting"]
    head += [f"{place} after {when}" for place in PLACES for when in AFTER[1:]]
    head += [WHOSE_DAY, "best guess now, km"]
    return values, Table(tuple(head), tuple(rows))


def _found(values: dict[str, Value], key: str, gaps: FloatArray) -> str:
    """The median distance of guesses and how often they are near: kept, and as a cell."""
    have = gaps[:, ~np.isnan(gaps).any(axis=0)]
    middle, low, high = (1000 * end for end in median_of(have))
    number = {"people": have.shape[1], "seeds": len(have)}
    values[f"{key}.median"] = Value(middle, ".0f", low, high, unit="m", **number)
    for near in NEAR_KM:
        # Distances are in single precision; 250 m is less than a cell, so it means the cell.
        values[f"{key}.{1000 * near:g}m"] = _share(have <= near + 1e-6)
    shares = [values[f"{key}.{1000 * near:g}m"].text() for near in NEAR_KM]
    return f"{values[f'{key}.median'].text(interval=True)}; {shares[0]}, {shares[1]}"


def _share(happened: Mask) -> Value:
    """How often something happened in (draws, people), and its interval over people."""
    people = People({"share": happened.mean(axis=0)}, seeds=len(happened))
    return people.mean("share", ".0%", share=True)


def guarantee_rows(found: Mapping[str, Found], labels: Mapping[str, str]) -> Rows:
    """What the theory says of each setting's day."""
    names = {
        "answers": "answers a day", "linked": "linked places, an answer",
        "linked_day": "linked paths, a day", "likely_day": "the same but once in a million",
        "worst": "any two places, an answer (Theorem 6.3)",
        "worst_day": "any two paths, a day (Theorem 7.2)",
        "moment_linked": "linked places at one moment (temporal leakage, at most)",
    }  # fmt: skip
    values, rows = {}, []
    for label, part in found.items():
        for name in names:
            values[f"{label}.{name}"] = Value(float(part[name]), ".4g")
        rows.append((labels[label], *(values[f"{label}.{name}"].text() for name in names)))
    return values, Table(("setting", *names.values()), tuple(rows))


def small_rows(found: Mapping[float, Found], names: Sequence[str]) -> Rows:
    """The error of one answer and of the best guess from it, for every epsilon."""
    titles = {**TITLES, "optimal": "optimum for this policy (LP)"}
    titles["optimal_metric"] = "optimum for geo-indistinguishability (LP)"
    values, rows = {}, []
    for name in names:
        cells = [titles[name]]
        for epsilon, part in found.items():
            raw, best, spread = (float(number) for number in part[name])
            key = f"{name}.{epsilon:g}"
            values[f"{key}.raw"] = Value(1000 * raw, ".0f", unit="m")
            low, high = 1000 * (best - NORMAL * spread), 1000 * (best + NORMAL * spread)
            values[f"{key}.best"] = (
                Value(1000 * best, ".0f", low, high, unit="m", note="95% over draws of noise")
                if spread
                else Value(1000 * best, ".0f", unit="m")
            )
            shown = values[f"{key}.best"].text(interval=spread > 0)
            cells.append(f"{values[f'{key}.raw'].text()}; {shown}")
        rows.append(tuple(cells))
    head = ("mechanism", *(f"ε = {epsilon:g}" for epsilon in found))
    return values, Table(head, tuple(rows))
