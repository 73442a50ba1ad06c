"""How often the intervals over people hold the truth, where the truth is known.

People are drawn from lognormal laws, as skewed as distances are, and every kind of figure that the
tables have is made of them: a mean, the difference of two means, a ratio of means, a median. What
is measured is the share of many such samples whose interval holds the figure of the law itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.intervals import interval_of, median_of
from dphmm.evaluate.parts import Part, Study
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.workloads import Workload

__all__ = ["FIGURES", "Holding", "holding_study"]

SEED = 164
SHARE = 0.7
"""Of the other column's mean, so that a difference is small beside what it is made of."""
DRAWS = 5
"""Of each person, for a median."""


@dataclass(frozen=True)
class Holding:
    """How often intervals of one kind of figure hold the truth, of so many people."""

    figure: str
    people: int
    spread: str
    """The standard deviation of a person's logarithm."""
    samples: int

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"holding_{self.figure.replace(' ', '_')}_{self.people}_{self.spread}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """The share of samples whose interval holds the truth; it needs no people of a workload."""
        rng = np.random.default_rng([SEED, self.people, round(100 * float(self.spread))])
        found, low, high, truth = FIGURES[self.figure](
            float(self.spread), (self.samples, self.people), rng
        )
        return {
            "holds": ((low <= truth) & (truth <= high)).mean()[None],
            "figure": found.mean()[None],
        }


Ends = tuple[FloatArray, FloatArray, FloatArray, float]
"""A figure of every sample, both ends of its interval, and the truth."""


def _mean(spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Ends:
    people = rng.lognormal(0, spread, shape)
    return _ends(people, np.ones(shape), np.exp(spread**2 / 2))


def _difference(spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Ends:
    one, other = rng.lognormal(0, spread, (2, *shape))
    return _ends(one - SHARE * other, np.ones(shape), (1 - SHARE) * np.exp(spread**2 / 2))


def _ratio(spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Ends:
    """Of what was real to what was expected, of the same people; half as much is their own."""
    expected = rng.lognormal(0, spread, shape)
    real = expected * rng.lognormal(0, spread / 2, shape)
    return _ends(real, expected, np.exp(spread**2 / 8))


def _weighted(spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Ends:
    """A mean by weights that have nothing to do with what is weighed."""
    people, weights = rng.lognormal(0, spread, shape), rng.lognormal(0, spread, shape)
    return _ends(people * weights, weights, np.exp(spread**2 / 2))


def _median(spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Ends:
    own = rng.normal(0, spread, shape)
    rows = np.exp(own + rng.normal(0, spread / 2, (DRAWS, *shape)))
    found = np.array([median_of(rows[:, one]) for one in range(shape[0])])
    return found[:, 0], found[:, 1], found[:, 2], 1.0


def _ends(over: FloatArray, under: FloatArray, truth: float) -> Ends:
    """A ratio of means and its interval; of ones, a mean."""
    above, below = over.sum(axis=1), under.sum(axis=1)
    without = (above[:, None] - over) / (below[:, None] - under)
    low, high = interval_of(above / below, without, protocol()["intervals"]["level"])
    return above / below, low, high, float(truth)


FIGURES: Mapping[str, Callable[[float, tuple[int, int], np.random.Generator], Ends]] = {
    "mean": _mean,
    "difference of means": _difference,
    "ratio of means": _ratio,
    "weighted mean": _weighted,
    "median": _median,
}
"""Every kind of figure, from the spread, the shape (samples, people) and a generator."""


def holding_study(*, quick: bool = False) -> Study:
    """Shares of intervals that hold the truth, by kind of figure, skewness and number of people.

    Args:
        quick: Whether to take few samples.
    """
    chosen = protocol()["holding"]
    samples = 100 if quick else chosen["samples"]
    tasks = {
        (figure, spread, people): Holding(figure, people, spread, samples)
        for figure in FIGURES
        for spread in chosen["spreads"]
        for people in chosen["people"]
    }

    def summarise(
        workloads: Mapping[str, Workload], found: Mapping[Part, dict[str, FloatArray]]
    ) -> tuple[dict[str, Value], dict[str, Table]]:
        values = {
            f"{figure}.{spread}.{people}": Value(float(found["city", task]["holds"][0]), ".1%")
            for (figure, spread, people), task in tasks.items()
        }
        rows = tuple(
            (figure, _words(spread), *(values[f"{figure}.{spread}.{people}"].text()
                                       for people in chosen["people"]))
            for figure in FIGURES
            for spread in chosen["spreads"]
        )  # fmt: skip
        head = ("figure", "standard deviation / mean",
                *(f"{people} people" for people in chosen["people"]))  # fmt: skip
        return values, {"holding": Table(head, rows)}

    return Study(
        name="intervals",
        about=f"The share of {samples:,} made-up samples whose 95% interval holds the truth",
        module=__name__,
        parts=tuple(("city", task) for task in tasks.values()),
        summarise=summarise,
        settings=dict(chosen),
        seeds=(SEED,),
    )


def _words(spread: str) -> str:
    return f"{np.sqrt(np.expm1(float(spread) ** 2)):.2f}"
