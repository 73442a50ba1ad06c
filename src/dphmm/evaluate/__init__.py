"""The paper's metrics, experiments and claims, and chains that read answers better. Private."""

from __future__ import annotations

from dphmm.evaluate.claims import Claim, Curves, claims_of
from dphmm.evaluate.experiments import POLICIES, Task, measure, tasks_of
from dphmm.evaluate.metrics import (
    distances,
    hidden_among,
    moving_average,
    protected_state,
)
from dphmm.evaluate.parts import Measurable, Study, measured
from dphmm.evaluate.readers import Reader, first_order, hourly, momentum, second_order
from dphmm.evaluate.results import Result, Table, Value, read_result, read_results
from dphmm.evaluate.runs import run, run_studies, run_study
from dphmm.evaluate.study import Fold, folds_of, ratios
from dphmm.evaluate.workloads import Workload, load_workload

__all__ = [
    "POLICIES",
    "Claim",
    "Curves",
    "Fold",
    "Measurable",
    "Reader",
    "Result",
    "Study",
    "Table",
    "Task",
    "Value",
    "Workload",
    "claims_of",
    "distances",
    "first_order",
    "folds_of",
    "hidden_among",
    "hourly",
    "load_workload",
    "measure",
    "measured",
    "momentum",
    "moving_average",
    "protected_state",
    "ratios",
    "read_result",
    "read_results",
    "run",
    "run_studies",
    "run_study",
    "second_order",
    "tasks_of",
]
