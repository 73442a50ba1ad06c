"""What it took to measure everything: processor time of every part, and how long a run was."""

from __future__ import annotations

from collections.abc import Sequence

from dphmm.evaluate.fingerprint import libraries
from dphmm.evaluate.parts import Study
from dphmm.evaluate.results import Result, Table, Value, machine
from dphmm.evaluate.runs import Done

__all__ = ["effort"]


def effort(studies: Sequence[Study], done: Sequence[Done], minutes: float, workers: int) -> Result:
    """The result `evidence`: minutes of every study, and of the run if it was one.

    Args:
        studies: What was measured, in order; a part of several counts for the first.
        done: Every part of theirs, with the processor time that it took.
        minutes: How long the run was by the clock.
        workers: How many processes measured.
    """
    seconds = {one.part: one.seconds for one in done}
    left, rows = dict(seconds), []
    for study in studies:
        mine = [left.pop(part) for part in study.parts if part in left]
        rows.append((study.name, str(len(mine)), f"{sum(mine) / 60:.1f}"))
    again = sum(one.was for one in done)
    values = {
        "parts": Value(len(done)),
        "processor_minutes": Value(sum(seconds.values()) / 60, ".0f", unit="minutes"),
        "minutes": Value(f"not measured: {again} parts were kept from an earlier run"),
        "workers": Value(workers),
    }
    if not again:
        values["minutes"] = Value(minutes, ".0f", unit="minutes")
    head = ("study", "parts", "minutes of processor time")
    return Result(
        name="evidence",
        about="What measuring everything took",
        module=__name__,
        values=values,
        tables={"studies": Table(head, tuple(rows))},
        settings={"workers": workers},
        libraries=libraries(),
        machine=machine(),
    )
