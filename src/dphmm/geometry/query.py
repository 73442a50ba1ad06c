"""The measurement query f: one answer in R^d for every state, on a public integer lattice.

Rounding happens once, here, before anything private is known. From then on differences,
hulls, norms and noise are integer arithmetic, and no floating-point detail of an answer can
tell two states apart.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import FloatArray, IntArray
from dphmm.errors import ArgumentError, CollapsedAnswersWarning, check_name
from dphmm.geometry.exact import Exact, as_epsilon, as_text
from dphmm.geometry.states import as_array, as_floats, possible_mask, state_numbers

__all__ = ["Query"]

MAX_DIMENSION = 6
"""Exact hulls and noise are built and tested up to this dimension."""

QUERY_NAME = "state"
"""What a query is called unless it is given a name."""

LATTICE_LIMIT = 2**62
"""Lattice coordinates stay below this, so that any difference of two fits 64 bits."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Query:
    """The answer of every state, as given (`values`) and on the lattice (`points`).

    Each answer is rounded to the nearest point of the lattice.

    Args:
        values: One answer a state: a vector, or a number.
        step: The lattice's spacing, in the units of the answers.
        name: What ledgers call the question. Two answers to questions of one name at one time
            are never given, whatever their values, so give another question another name.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> query
    Query(n_states=6, dimension=2, step=1)
    >>> Query([0.25, 0.5, 1.0], step="0.25").points.ravel().tolist()
    [1, 2, 4]
    """

    values: FloatArray
    step: Fraction
    name: str
    points: IntArray = field(compare=False)

    def __init__(self, values: ArrayLike, step: Exact = 1, name: str = QUERY_NAME) -> None:
        answers = as_array(values, "values")
        if answers.ndim == 1:
            answers = answers[:, None]
        if answers.ndim != 2 or 0 in answers.shape:
            raise ArgumentError(
                f"values must hold one answer per state, got an array of shape {answers.shape}"
            )
        if answers.shape[1] > MAX_DIMENSION:
            raise ArgumentError(
                f"values must have at most {MAX_DIMENSION} dimensions, got {answers.shape[1]}; "
                f"split the query and let the releases compose"
            )
        spacing = as_epsilon(step, "step")
        object.__setattr__(self, "step", spacing)
        object.__setattr__(self, "name", check_name(name, "name"))
        object.__setattr__(self, "points", _frozen(_on_lattice(answers, spacing)))
        object.__setattr__(self, "values", _frozen(answers.astype(np.float64)))
        self._warn_if_collapsed()

    @property
    def n_states(self) -> int:
        """How many states have an answer."""
        return len(self.points)

    @property
    def dimension(self) -> int:
        """The d of R^d."""
        return self.points.shape[1]

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the lattice and every point on it, the same on every machine."""
        head = f"query {self.step} {self.n_states} {self.dimension} ".encode()
        return hashlib.sha256(head + self.points.astype("<i8").tobytes()).digest()

    @cached_property
    def _spacing(self) -> float:
        return float(self.step)

    @cached_property
    def columns(self) -> FloatArray:
        """The points as floats, one row a dimension, for loops over all states."""
        return _frozen(self.points.T.astype(np.float64))

    @cached_property
    def reach(self) -> int:
        """The largest lattice coordinate, up to its sign."""
        return max(abs(int(self.points.max())), abs(int(self.points.min())))

    def in_units(self, lattice: ArrayLike) -> FloatArray:
        """Lattice vectors in the units of the answers.

        Args:
            lattice: Integers that count steps, one vector or many.
        """
        return as_floats(lattice, "lattice") * self._spacing

    def on_lattice(self, answers: ArrayLike) -> IntArray:
        """Answers in the units of the query as the lattice vectors that they stand for.

        Undoes `in_units`; what is on no lattice point is refused, never rounded.

        Args:
            answers: One answer, or many, in the units of the query.

        >>> query = Query([0.5, 1.5], step="0.5")
        >>> query.on_lattice([[0.5], [-2.0]]).tolist()
        [[1], [-4]]
        """
        given, floats = as_array(answers, "answers"), as_floats(answers, "answers")
        if given.ndim not in (1, 2) or given.shape[-1] != self.dimension:
            raise ArgumentError(
                f"answers must have {self.dimension} entries each, got shape {given.shape}"
            )
        steps = _in_steps(floats, self.step)
        # Further out floats skip lattice points, and a neighbour would pass for the answer.
        whole = np.where(np.abs(steps) < 2.0**53, steps, 0).astype(np.int64)
        decimal = whole * float(self.step.numerator) / float(self.step.denominator)
        wrong = floats[(self.in_units(whole) != floats) & (decimal != floats)]
        if wrong.size:
            raise ArgumentError(
                f"answers must lie on the query's lattice of step {as_text(self.step)}, "
                f"got {float(wrong[0])!r}"
            )
        return whole

    def nearest_states(self, states: ArrayLike, possible: ArrayLike) -> IntArray:
        """For each state the possible one with the nearest point; ties go to the lowest.

        Args:
            states: State numbers; they may be true states, and no message shows them.
            possible: A mask over the states, or the numbers of the possible ones.
        """
        among = possible_mask(possible, self.n_states)
        wanted = np.atleast_1d(state_numbers(states, self.n_states, "states", private=True))
        if wanted.ndim != 1:
            raise ArgumentError(f"states must be numbers in one row, got shape {wanted.shape}")
        points = self.points[wanted]
        if self.reach < 2**29:
            candidates = self._in_order[among[self._in_order]]
            return kernels.distance.nearest_among(points, self.points[candidates], candidates)
        candidates = np.flatnonzero(among)
        wide = self.points[candidates].astype(object)
        closest = [np.argmin(((wide - point) ** 2).sum(axis=1)) for point in points.astype(object)]
        return candidates[np.array(closest, dtype=np.int64)]

    @cached_property
    def _in_order(self) -> IntArray:
        """The states by the first coordinate of their points."""
        return np.argsort(self.points[:, 0], kind="stable")

    def __repr__(self) -> str:
        return (
            f"Query(n_states={self.n_states}, dimension={self.dimension}, "
            f"step={as_text(self.step)})"
        )

    def _warn_if_collapsed(self) -> None:
        if np.array_equal(self.in_units(self.points), self.values):
            return
        lost = len(np.unique(self.values, axis=0)) - len(np.unique(self.points, axis=0))
        if lost > 0:
            warnings.warn(
                f"step {self.step} rounds {lost} different answers onto a point already taken; "
                f"states that share a point are released alike",
                CollapsedAnswersWarning,
                stacklevel=3,
            )


def _on_lattice(answers: np.ndarray[Any, Any], step: Fraction) -> IntArray:
    if np.issubdtype(answers.dtype, np.integer) and step == 1:
        scaled = answers
    else:
        floats = as_floats(answers, "values")
        bad = np.flatnonzero(~np.isfinite(floats).all(axis=1))
        if len(bad):
            raise ArgumentError(
                f"values must be finite, got a non-finite answer for state {bad[0]} "
                f"({len(bad)} in all)"
            )
        scaled = _in_steps(floats, step)
    # Compared without abs(): -2**63 has no absolute value in 64 bits; 2**62 is exact as a float.
    if scaled.max() >= LATTICE_LIMIT or scaled.min() <= -LATTICE_LIMIT:
        raise ArgumentError(
            f"step must keep answers below 2**62 lattice steps, got {step}; use a larger step"
        )
    return scaled.astype(np.int64)


def _in_steps(answers: FloatArray, step: Fraction) -> FloatArray:
    try:
        up, down = float(step.denominator), float(step.numerator)
    except OverflowError:
        raise ArgumentError("step must be a quotient of numbers below 1e308") from None
    with np.errstate(over="ignore"):
        steps: FloatArray = np.rint(answers * up / down)
    return steps


def _frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
