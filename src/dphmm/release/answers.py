"""Answers in columns, a row each: how many of them leave a batch and travel to a book."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import lattice_vector
from dphmm.release.moment import Line
from dphmm.release.said import Record, Release, silence
from dphmm.release.schedule import SILENCE

__all__ = ["Answers", "BatchRelease", "Charge"]


@dataclass(frozen=True, eq=False)
class Charge:
    """What some people's ledgers got at one step.

    Args:
        people: Their numbers.
        epsilon: The price.
        constrained: The same for the worst pair of possible states (Theorem 6.3).
        statement: What their answers do and do not hide, in a sentence.
    """

    people: IntArray
    epsilon: Fraction
    constrained: Fraction | float
    statement: str


@dataclass(frozen=True, eq=False)
class BatchRelease:
    """What was said to some people at one step; every field may be shown to anybody.

    Args:
        people: The numbers of the people who were answered.
        times: The slot of the clock that each answer is about.
        answer: The noisy answers, in the units of the query, a row each.
        lattice: The same on the integer lattice: what the guarantee is about.
        estimate: The mean or the median of each posterior.
        epsilon: The price of each.
        private: False when an experiment's generator drew the noise.
        charges: What it cost whom.
        silent: The numbers of the people for whom the schedule was silent; nothing was said.
        silent_estimate: The mean or the median of what is believed about each of those.
    """

    people: IntArray
    times: IntArray
    answer: FloatArray
    lattice: ObjectArray
    estimate: FloatArray
    epsilon: Fraction
    private: bool
    charges: tuple[Charge, ...] = ()
    silent: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    silent_estimate: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


class Answers:
    """Answers about one query, to be filled; everything in it may be shown to anybody.

    Args:
        query: What they answer.
        law: The law that they follow.
        people: Whose line each row is.
        times: The slot of each row.
        private: False when an experiment's generator drew the noise.
    """

    def __init__(
        self,
        query: Query,
        law: bytes,
        people: list[Line],
        times: IntArray,
        private: bool = True,
    ) -> None:
        rows = len(times)
        self.query = query
        self.law = law
        self.lines = people
        self.times = times
        self.private = private
        self.lattice: ObjectArray = np.zeros((rows, query.dimension), dtype=np.int64)
        self.estimate: FloatArray = np.empty((rows, query.dimension))
        self.estimate.fill(np.nan)
        self.silent: Mask = np.zeros(rows, dtype=bool)
        """Where nothing was said: there is an estimate and no answer."""
        self.epsilons: list[Fraction | None] = [None] * rows
        """None where there is no answer."""
        self.constrained: list[Fraction | float] = [Fraction(0)] * rows
        self.statements: list[str] = [""] * rows

        self._spacings: dict[int, Fraction] = {}
        """Of old answers that were given when the lattice had another spacing."""
        self.earlier: set[int] = set()
        """Rows with old answers that another law shaped."""
        self._released: Release | None = None
        """The answer of a table of one, as its stream gave it."""

    def __len__(self) -> int:
        return len(self.times)

    def fill(
        self,
        rows: IntArray,
        lattice: ObjectArray,
        estimate: FloatArray,
        epsilon: Fraction,
        constrained: Fraction | float,
        statement: str,
    ) -> None:
        """Write answers of one price and one statement into some rows."""
        if lattice.dtype == object and self.lattice.dtype != object:
            self.lattice = self.lattice.astype(object)
        self.lattice[rows] = lattice
        self.silent[rows] = False
        self._price(rows, estimate, epsilon, constrained, statement)

    def fill_row(self, row: int, release: Release, constrained: Fraction | float) -> None:
        """Write what a stream has said, and what it costs the worst pair, into a row."""
        lattice = release.lattice
        if lattice.dtype == object and self.lattice.dtype != object:
            self.lattice = self.lattice.astype(object)
        self.lattice[row], self.estimate[row] = lattice, release.estimate
        self.epsilons[row], self.constrained[row] = release.epsilon, constrained
        self.statements[row] = release.statement
        self._released = release if len(self) == 1 else None

    def pass_over(self, rows: IntArray, estimate: FloatArray) -> None:
        """Write into some rows that nothing was said there."""
        self.silent[rows] = True
        self._price(rows, estimate, Fraction(0), Fraction(0), SILENCE)

    def _price(
        self,
        rows: IntArray,
        estimate: FloatArray,
        epsilon: Fraction,
        constrained: Fraction | float,
        statement: str,
    ) -> None:
        self._released = None
        self.estimate[rows] = estimate
        for row in rows.tolist():
            self.epsilons[row] = epsilon
            self.constrained[row] = constrained
            self.statements[row] = statement

    def copy(self, rows: IntArray, other: Answers, sources: IntArray) -> None:
        """Take answers over from rows of another table, or from other rows of this one."""
        if other.lattice.dtype == object and self.lattice.dtype != object:
            self.lattice = self.lattice.astype(object)
        self._released = None
        self.lattice[rows] = other.lattice[sources]
        self.silent[rows] = other.silent[sources]
        self.estimate[rows] = other.estimate[sources]
        for row, source in zip(rows.tolist(), sources.tolist(), strict=True):
            self.epsilons[row] = other.epsilons[source]
            self.constrained[row] = other.constrained[source]
            self.statements[row] = other.statements[source]
            if source in other.earlier:
                self.earlier.add(row)

    def in_units(self) -> FloatArray:
        """The answers in the units of the query, each as it was when it was given.

        Where nothing was said there is no number.
        """
        answers = self.query.in_units(self.lattice)
        answers[self.silent] = np.nan
        for row, spacing in self._spacings.items():
            answers[row] = self.lattice[row].astype(np.float64) * float(spacing)
        return answers

    def put(self, row: int, record: Record) -> None:
        """Write what a book holds into a row."""
        if record.spacing != self.query.step:
            self._spacings[row] = record.spacing
        if record.law != self.law.hex():
            self.earlier.add(row)
        self.private = self.private and record.private
        if record.silent:
            self.pass_over(np.array([row]), np.array(record.estimate))
            return
        self.fill(
            np.array([row]),
            lattice_vector(record.lattice),
            np.array(record.estimate),
            record.epsilon,
            record.constrained,
            record.statement,
        )

    def release(self, row: int) -> Release:
        """One answer as a stream would have given it."""
        if self._released is not None:
            return self._released
        epsilon, spacing = self.epsilons[row], self._spacings.get(row, self.query.step)
        assert epsilon is not None
        if self.silent[row]:
            return silence(int(self.times[row]), self.estimate[row], self.private)
        return Release(
            time=int(self.times[row]),
            answer=self.lattice[row].astype(np.float64) * float(spacing),
            lattice=self.lattice[row],
            estimate=self.estimate[row],
            epsilon=epsilon,
            statement=self.statements[row],
            private=self.private,
        )

    def records(self) -> Iterator[Record]:
        """The answers one by one, as books of rows keep them."""
        law = self.law.hex()
        points, means = self.lattice.tolist(), self.estimate.tolist()
        for row, epsilon in enumerate(self.epsilons):
            if epsilon is not None:
                yield Record(
                    self.lines[row],
                    int(self.times[row]),
                    law,
                    epsilon,
                    self.constrained[row],
                    () if self.silent[row] else tuple(points[row]),
                    tuple(means[row]),
                    self.statements[row],
                    self.private,
                    self.query.step,
                )
