"""Figures as a file of results, from which pages take the numbers of the run that measured them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from benchmarks import Figure
from dphmm.evaluate.fingerprint import libraries
from dphmm.evaluate.results import Result, Table, Value, machine

__all__ = ["as_result", "key_of"]

UNITS = {"us": "µs", "1/s": "a second"}


def key_of(name: str) -> str:
    """What a figure is called in its file.

    >>> key_of("steady release, N = 1,369")
    'steady-release-n-1369'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace(",", "")).strip("-")


def as_result(benchmark: str, figures: Sequence[Figure], load: float) -> Result:
    """The result `bench.NAME`: a value for each figure, its ratio beside it, and a table.

    A figure that is measured twice is kept as it was first.

    Args:
        benchmark: The name after bench_.
        figures: What was measured.
        load: How busy the machine was, as the operating system counts it.
    """
    values: dict[str, Value] = {}
    rows = []
    for figure in figures:
        key = key_of(figure.name)
        if key in values:
            continue
        unit = UNITS.get(figure.unit, figure.unit)
        values[key] = Value(figure.value, form_of(figure.value), unit=unit)
        beside = ""
        if figure.ratio is not None:
            values[f"{key}.ratio"] = Value(figure.ratio, form_of(figure.ratio))
            beside = f"{values[f'{key}.ratio'].text()}: {figure.against}"
        rows.append((figure.name, values[key].text(), beside, figure.target))
    return Result(
        name=f"bench.{benchmark}",
        about=f"`make bench BENCH={benchmark}`",
        module="dphmm",
        values=values,
        tables={"figures": Table(("what", "measured", "ratio to", "wanted"), tuple(rows))},
        libraries=libraries(),
        machine={**machine(), "load": f"load {load:.1f} on {os.cpu_count()} processors"},
    )


def form_of(value: float) -> str:
    """Three digits; thousands without a fraction."""
    return ",.0f" if abs(value) >= 100 else ".3g"
