"""Every study whose results stand on a page, in the order in which they are made.

A study is one file under `docs/results`. A new one is a function here that returns a `Study`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dphmm._types import FloatArray
from dphmm.evaluate.anywhere import anywhere_study
from dphmm.evaluate.calibration import calibration_study
from dphmm.evaluate.compare.studies import city_comparisons, data_comparisons
from dphmm.evaluate.fingerprint import file_digest
from dphmm.evaluate.holding import holding_study
from dphmm.evaluate.parts import EXACT, Part, Study
from dphmm.evaluate.reading import private_study, reading_study
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.section8 import claims_study, clock_study
from dphmm.evaluate.theorems import theorems_study
from dphmm.evaluate.worked import work_out
from dphmm.evaluate.workloads import Workload
from dphmm.tables.datasets import running_example

__all__ = ["studies"]

CLAIMED = ("geolife-5s", "gowalla", "gowalla-nyc")
"""The workloads at the paper's own clock: GeoLife's fixes as logged, the next check-in."""


def studies(*, quick: bool = False, final: bool = False) -> list[Study]:
    """Every study.

    Args:
        quick: Whether to make smaller ones of the same kind, to see that everything works.
        final: Whether they are of the locked people; these have files of their own.
    """
    if final:
        return [replace(study, name=f"final.{study.name}") for study in _of_people(quick)]
    return [
        _worked_examples(),
        clock_study(quick=quick),
        theorems_study(quick=quick),
        anywhere_study(quick=quick),
        *_of_people(quick),
        private_study(quick=quick),
        calibration_study(quick=quick),
        *city_comparisons(quick),
        holding_study(quick=quick),
    ]


def _of_people(quick: bool) -> list[Study]:
    """The studies that are repeated with the locked people at the end."""
    return [
        *(claims_study(name, quick=quick) for name in CLAIMED),
        reading_study(quick=quick),
        *data_comparisons(quick),
    ]


def _worked_examples() -> Study:
    source = Path(running_example.__code__.co_filename)
    return Study(
        name="paper",
        about="The worked examples of the paper, computed again from its running example",
        module="dphmm.evaluate.worked",
        parts=(),
        summarise=_count_worked,
        settings={"example": "dphmm.datasets.running_example()", "tolerance": "none"},
        noise=EXACT,
        data={"running example": file_digest(source)},
    )


def _count_worked(
    workloads: Mapping[str, Workload], found: Mapping[Part, dict[str, FloatArray]]
) -> tuple[dict[str, Value], dict[str, Table]]:
    verdicts = [one.holds for one in work_out()]
    rule = "the same number, without a tolerance"
    return {
        "held": Value(verdicts.count(True), note=rule),
        "did_not_hold": Value(verdicts.count(False), note=rule),
        "only_drawn": Value(verdicts.count(None), note="the paper prints no number"),
    }, {}
