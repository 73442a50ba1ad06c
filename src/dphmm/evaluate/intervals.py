"""How sure a figure is: how much it hangs on each person, and verdicts that follow from it.

Rows are people. Each is left out in turn, so the steps of one person, and the draws of noise
behind them, stay together. By how much the figure moves then is what a person adds to it, and
Student's t of these, corrected for their skewness (Hall 1992), gives the interval without a draw.
How often such intervals hold the truth is measured by `holding`. (Drawing people again, as was done
before, held it too seldom where there are few.)

A verdict is about a margin that is positive where a claim is true: "held" if its whole interval is
above zero, "did not hold" if its whole interval is below, and "cannot tell" otherwise, as where
there are fewer people than the protocol asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from dphmm._types import FloatArray
from dphmm.errors import ArgumentError
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import Value

__all__ = [
    "CANNOT_TELL",
    "DID_NOT_HOLD",
    "HELD",
    "RULE",
    "People",
    "Statistic",
    "interval_of",
    "median_of",
    "verdict_of",
]

HELD, DID_NOT_HOLD, CANNOT_TELL = "held", "did not hold", "cannot tell"
RULE = (
    "held if the whole 95% interval of the margin (Student's t over people, wider where they are "
    "skewed) is above zero, did not hold if it is below, else, and of fewer than 5 people, cannot "
    "tell"
)

FARTHEST = 2.0
"""The correction is flat where it turns, so of very skewed people its inverse runs away: at 20
people, one of whom is far below the rest, to ten standard errors. This costs less than a point of
holding the truth (docs/evaluation.md has what is left)."""

TINY = 1e-6
"""Of less skewness than this the correction is nothing, and its formula inexact."""

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


def interval_of(
    figure: FloatArray, without: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Both ends of the interval of a figure, from what it is without each of the people.

    Student's t of what each person adds, and Hall's cubic correction of it for their skewness; each
    end is the farther of the two, but at most twice as far as Student's. Of one person nothing is
    known: both ends are the figure.

    Args:
        figure: The figure; several, if `without` has more than one axis.
        without: The figure without each person, who are the last axis.
        level: How often an interval should hold the truth.

    >>> low, high = interval_of(np.array(2.0), np.array([2.5, 2.0, 1.5]), 0.95)
    >>> float(low.round(3)), float(high.round(3))
    (-0.484, 4.484)
    """
    number = without.shape[-1]
    if number == 1:
        return figure, figure
    adds = (number - 1) * (without.mean(axis=-1, keepdims=True) - without)
    spread = np.sqrt((adds**2).mean(axis=-1))
    even = adds / np.where(spread > 0, spread, 1)[..., None]
    skewness = (even**3).mean(axis=-1) / number**0.5
    reach = float(stdtrit(number - 1, (1 + level) / 2))
    error = spread / (number - 1) ** 0.5
    farthest = FARTHEST * reach
    low = figure - error * np.clip(_corrected(reach, skewness), reach, farthest)
    high = figure - error * np.clip(_corrected(-reach, skewness), -farthest, -reach)
    return low, high


def _corrected(reach: float, skewness: FloatArray) -> FloatArray:
    """Where Hall's transformation x + s x^2 / 3 + s^2 x^3 / 27 + s / 6 is so much."""
    some = np.where(np.abs(skewness) > TINY, skewness, 1)
    there = 3 / some * (np.cbrt(1 + some * (reach - some / 6)) - 1)
    return np.where(np.abs(skewness) > TINY, there, reach)


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
        figure = np.asarray(statistic(self._means(np.ones((1, self.number)))))
        if self.number == 1:
            return float(figure[0]), float(figure[0]), float(figure[0])
        without = np.asarray(statistic(self._means(1 - np.eye(self.number))))
        low, high = interval_of(figure[0], without, protocol()["intervals"]["level"])
        return float(figure[0]), float(low), float(high)

    def mean(
        self, name: str, form: str, *, unit: str = "", note: str = "", share: bool = False
    ) -> Value:
        """The mean of a column and its interval.

        Args:
            name: Of the column.
            form: How the mean is printed.
            unit: What is written behind it.
            note: What a reader must know.
            share: Whether it is how often something happens, and so at most one.
        """
        value, low, high = self.interval(lambda means: means[name])
        if self.columns[name].min() >= 0:
            low = max(low, 0.0)
        if share:
            high = min(high, 1.0)
        rest = {"unit": unit, "note": note, "people": self.number, "seeds": self.seeds}
        return Value(value, form, low, high, **rest)  # type: ignore[arg-type]

    def verdict(self, statistic: Statistic, note: str) -> Value:
        """What the margin of a claim says of it, its interval, and by which rule."""
        value, low, high = self.interval(statistic)
        enough = self.number >= protocol()["verdicts"]["least_people"]
        shown = f"{note}: {value:.3g} ({low:.3g} to {high:.3g})"
        rest = {"people": self.number, "seeds": self.seeds, "note": shown}
        verdict = verdict_of(low, high) if enough else CANNOT_TELL
        return Value(verdict, low=low, high=high, **rest)  # type: ignore[arg-type]

    def _means(self, counts: FloatArray) -> dict[str, FloatArray]:
        weights = counts * (1 if self.weights is None else self.weights)
        total = weights.sum(axis=1)
        return {name: weights @ column / total for name, column in self.columns.items()}


def median_of(rows: FloatArray) -> tuple[float, float, float]:
    """The median of (draws, people) figures, and both ends of its interval.

    The interval of the share of each person's figures that are at most the median, read back on
    the figures (Woodruff 1952).

    >>> median_of(np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]]))
    (5.0, 1.0, 9.0)
    """
    middle = float(np.median(rows))
    below = People({"below": (rows <= middle).mean(axis=0)})
    share, low, high = below.interval(lambda means: means["below"])
    levels = np.clip([0.5 + low - share, 0.5 + high - share], 0, 1)
    first = float(np.quantile(rows, levels[0], method="lower"))
    last = float(np.quantile(rows, levels[1], method="higher"))
    return middle, min(first, middle), max(last, middle)


def by_person(rows: FloatArray, people: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """The mean of each person's rows, and how many rows each has.

    >>> by_person(np.array([1.0, 2.0, 5.0]), ["a", "b", "a"])
    (array([3., 2.]), array([2., 1.]))
    """
    names = sorted(set(people))
    place = np.array([names.index(person) for person in people])
    counts = np.bincount(place).astype(np.float64)
    return np.bincount(place, weights=rows) / counts, counts
