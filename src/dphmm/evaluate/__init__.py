"""The paper's metrics, experiments and claims, and chains that read answers better. Private."""

from __future__ import annotations

from dphmm.evaluate.claims import Claim, Curves, claims_of
from dphmm.evaluate.experiments import POLICIES, Task, measure, run, tasks_of
from dphmm.evaluate.metrics import (
    distances,
    hidden_among,
    moving_average,
    protected_state,
)
from dphmm.evaluate.readers import Reader, first_order, hourly, momentum, second_order
from dphmm.evaluate.study import Fold, folds_of, ratios
from dphmm.evaluate.workloads import Workload, load_workload

__all__ = [
    "POLICIES",
    "Claim",
    "Curves",
    "Fold",
    "Reader",
    "Task",
    "Workload",
    "claims_of",
    "distances",
    "first_order",
    "folds_of",
    "hidden_among",
    "hourly",
    "load_workload",
    "measure",
    "momentum",
    "moving_average",
    "protected_state",
    "ratios",
    "run",
    "second_order",
    "tasks_of",
]
