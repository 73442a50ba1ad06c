"""How sure a figure is: people drawn again with replacement, and verdicts that follow from it.

Rows are people. What is resampled is people, so the steps of one person, and the draws of noise
behind them, stay together. A verdict is about a margin that is positive where a claim is true:
"held" if its whole interval is above zero, "did not hold" if its whole interval is below, and
"cannot tell" otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import ArgumentError
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import Value

__all__ = ["CANNOT_TELL", "DID_NOT_HOLD", "HELD", "RULE", "People", "Statistic", "verdict_of"]

HELD, DID_NOT_HOLD, CANNOT_TELL = "held", "did not hold", "cannot tell"
RULE = (
    "held if the whole 95% interval of the margin (people drawn again with replacement) is above "
    "zero, did not hold if it is below, else cannot tell"
)

Means = Mapping[str, FloatArray]
Statistic = Callable[[Means], FloatArray]
"""From means over people, one for every drawing of them, to a figure for every drawing."""


def verdict_of(low: float, high: float) -> str:
    """What an interval of a margin says.

    >>> [verdict_of(*ends) for ends in [(0.1, 2), (-2, -1), (-1, 3), (0, 1)]]
    ['held', 'did not hold', 'cannot tell', 'cannot tell']
    """
    if low > 0:
        return HELD
    return DID_NOT_HOLD if high < 0 else CANNOT_TELL


@dataclass(frozen=True, eq=False)
class People:
    """Figures of some people, one row each, and intervals of whatever is made of their means.

    Args:
        columns: By name, one figure for each person.
        weights: How much each counts, such as their number of steps; equally by default.
        seeds: How many draws of noise are behind each figure; None if it is exact.
    """

    columns: Mapping[str, FloatArray]
    weights: FloatArray | None = None
    seeds: int | None = None

    def __post_init__(self) -> None:
        sizes = {np.shape(column) for column in self.columns.values()}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1 or next(iter(sizes)) == (0,):
            raise ArgumentError(f"columns must have one figure for each person, got {sizes}")

    @property
    def number(self) -> int:
        """How many people there are."""
        return len(next(iter(self.columns.values())))

    def interval(self, statistic: Statistic) -> tuple[float, float, float]:
        """The figure itself, and both ends of its interval."""
        chosen = protocol()["intervals"]
        rng = np.random.default_rng(chosen["seed"])
        rows = rng.integers(0, self.number, (chosen["draws"], self.number))
        once = np.ones((1, self.number))
        found = np.asarray(statistic(self._means(once)))
        counts = np.apply_along_axis(np.bincount, 1, rows, minlength=self.number)
        again = np.asarray(statistic(self._means(counts.astype(np.float64))))
        tail = (1 - chosen["level"]) / 2
        low, high = np.quantile(again, [tail, 1 - tail])
        return float(found[0]), float(low), float(high)

    def mean(self, name: str, form: str, *, unit: str = "", note: str = "") -> Value:
        """The mean of a column and its interval."""
        value, low, high = self.interval(lambda means: means[name])
        rest = {"unit": unit, "note": note, "people": self.number, "seeds": self.seeds}
        return Value(value, form, low, high, **rest)  # type: ignore[arg-type]

    def verdict(self, statistic: Statistic, note: str) -> Value:
        """What the margin of a claim says of it, its interval, and by which rule."""
        value, low, high = self.interval(statistic)
        shown = f"{note}: {value:.3g} ({low:.3g} to {high:.3g})"
        rest = {"people": self.number, "seeds": self.seeds, "note": shown}
        return Value(verdict_of(low, high), low=low, high=high, **rest)  # type: ignore[arg-type]

    def _means(self, counts: FloatArray) -> dict[str, FloatArray]:
        weights = counts * (1 if self.weights is None else self.weights)
        total = weights.sum(axis=1)
        return {name: weights @ column / total for name, column in self.columns.items()}


def by_person(rows: FloatArray, people: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """The mean of each person's rows, and how many rows each has.

    >>> by_person(np.array([1.0, 2.0, 5.0]), ["a", "b", "a"])
    (array([3., 2.]), array([2., 1.]))
    """
    names = sorted(set(people))
    place = np.array([names.index(person) for person in people])
    counts = np.bincount(place).astype(np.float64)
    return np.bincount(place, weights=rows) / counts, counts
