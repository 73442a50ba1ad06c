"""Measurements, each a module bench_*.py with a function run() -> list[Figure]."""

from __future__ import annotations

import operator
from dataclasses import dataclass

_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Figure:
    """One measured number, what it was compared with in the same run, and what we want.

    `target` is "" or three words such as "ratio < 3" or "value <= 0.5".
    """

    name: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    target: str = ""

    def __post_init__(self) -> None:
        if self.target:
            subject, comparison, bound = self.target.split()
            if subject not in ("ratio", "value") or comparison not in _COMPARISONS:
                raise ValueError(f"target must read like 'ratio < 3', got {self.target!r}")
            if subject == "ratio" and self.ratio is None:
                raise ValueError(f"ratio must be given for the target {self.target!r}")
            float(bound)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if not self.target:
            return None
        subject, comparison, bound = self.target.split()
        measured = self.value if subject == "value" else self.ratio
        assert measured is not None  # checked when the figure was made
        return bool(_COMPARISONS[comparison](measured, float(bound)))
