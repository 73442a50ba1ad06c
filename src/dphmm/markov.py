"""Markov models and what is believed about where they are.

`MarkovModel` holds the transition probabilities as a sparse matrix whose stored pattern *is*
the set of possible moves. `Belief` holds what is known at one time: which states are possible,
exactly, and how probable each is. Filtering is two verbs on a belief, `predict` and
`condition`; everything over whole sequences is those two folded over time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, Mask
from dphmm.errors import ArgumentError

__all__ = ["Belief", "Chain", "MarkovModel", "Observations", "Start"]

SUM_TOLERANCE = 1e-6
"""How far a row or a distribution may be from one before it is refused, not renormalised."""

SAFE_PROBABILITY = 1e-280
"""At or above this, what underflow loses is far below rounding error (see `Belief`)."""

LOWEST_LOG = -np.finfo(np.float64).max
"""Logs stop here, so that a possible state never reaches minus infinity by overflow."""

LEAST_PROBABILITY = float(np.nextafter(0.0, 1.0))
"""A move that was counted keeps at least this probability."""

Start: TypeAlias = "int | ArrayLike | Belief"
"""What is known before the first step: a state, a distribution or a belief."""

Observations: TypeAlias = "FloatArray | Iterable[ArrayLike | None]"
"""Log-likelihoods of every state, one row a step; None is a step without an observation."""


class Belief:
    """Which states are possible, and how probable each is, at one time.

    `possible` is a mask that moves through the transition graph; it is never recomputed from
    probabilities. A possible state may have a probability too small for a float, so
    `probabilities` may hold a zero on it; `log_probabilities` is finite exactly on the mask.

    Linear numbers are kept alone while every possible state has at least `SAFE_PROBABILITY`;
    below that the logs are kept beside them and are what counts.

    >>> belief = Belief.certain(0, 3)
    >>> belief.possible
    array([ True, False, False])
    """

    __slots__ = ("_logs", "possible", "probabilities")

    possible: Mask
    probabilities: FloatArray
    _logs: FloatArray | None

    def __init__(self, possible: Mask, probabilities: FloatArray, logs: FloatArray | None) -> None:
        # Trusted: arrays that this module has just made. Users come through the constructors.
        for name, array in (
            ("possible", possible),
            ("probabilities", probabilities),
            ("_logs", logs),
        ):
            if array is not None:
                array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Belief does not change; {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return Belief, (self.possible, self.probabilities, self._logs)

    def __repr__(self) -> str:
        return f"Belief({self.n_states} states, {int(self.possible.sum())} possible)"

    @classmethod
    def certain(cls, state: int, n_states: int) -> Belief:
        """The belief that the chain is in one state.

        >>> Belief.certain(1, 3).probabilities
        array([0., 1., 0.])
        """
        if isinstance(state, bool) or not isinstance(state, int | np.integer):
            raise ArgumentError(f"state must be an integer, got {type(state).__name__}")
        if not 0 <= state < n_states:
            raise ArgumentError(f"state must be one of 0 to {n_states - 1}")
        probabilities = np.zeros(n_states)
        probabilities[state] = 1.0
        return cls(probabilities > 0, probabilities, None)

    @classmethod
    def uniform(cls, n_states: int) -> Belief:
        """The belief that every state is equally probable.

        >>> Belief.uniform(4).probabilities
        array([0.25, 0.25, 0.25, 0.25])
        """
        if n_states < 1:
            raise ArgumentError(f"n_states must be at least 1, got {n_states!r}")
        return cls(np.ones(n_states, dtype=bool), np.full(n_states, 1.0 / n_states), None)

    @classmethod
    def from_probabilities(cls, probabilities: ArrayLike) -> Belief:
        """The belief with these probabilities; the states above zero are the possible ones.

        >>> Belief.from_probabilities([0.5, 0.0, 0.5]).possible
        array([ True, False,  True])
        """
        given = _vector(probabilities, "probabilities")
        if np.isnan(given).any() or given.min() < 0 or given.max() == np.inf:
            raise ArgumentError("probabilities must be finite and not negative")
        total = float(given.sum())
        if abs(total - 1) > SUM_TOLERANCE:
            raise ArgumentError(f"probabilities must sum to one, got a sum of {total!r}")
        possible = given > 0
        if _least(given, possible) >= SAFE_PROBABILITY:
            return cls(possible, given / total, None)
        with np.errstate(divide="ignore"):
            return _normalised(possible, np.log(given))[0]

    @classmethod
    def from_log_probabilities(cls, log_probabilities: ArrayLike) -> Belief:
        """The belief with these logs, up to a constant; the finite ones are the possible states.

        >>> Belief.from_log_probabilities([-1000.0, -np.inf, -1000.0]).probabilities
        array([0.5, 0. , 0.5])
        """
        given = _vector(log_probabilities, "log_probabilities")
        return _normalised(_above_minus_infinity(given, "log_probabilities"), given)[0]

    @classmethod
    def known(cls, start: Start, n_states: int) -> Belief:
        """The belief that `start` means: a state, a distribution, or a belief as it is.

        >>> Belief.known(2, 3).probabilities
        array([0., 0., 1.])
        >>> Belief.known([0.5, 0.5, 0.0], 3)
        Belief(3 states, 2 possible)
        """
        if isinstance(start, int | np.integer):
            return cls.certain(int(start) if not isinstance(start, bool) else start, n_states)
        belief = start if isinstance(start, Belief) else cls.from_probabilities(start)
        if belief.n_states != n_states:
            raise ArgumentError(f"start must have {n_states} states, got {belief.n_states}")
        return belief

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.possible.size

    @property
    def log_probabilities(self) -> FloatArray:
        """The logs of the probabilities: finite on the possible states, -inf elsewhere.

        >>> Belief.certain(1, 3).log_probabilities
        array([-inf,   0., -inf])
        """
        if self._logs is not None:
            return self._logs
        logs = np.full(self.n_states, -np.inf)
        return np.log(self.probabilities, out=logs, where=self.possible)

    def predict(self, model: MarkovModel) -> Belief:
        """The belief after one step of the model, p M (line 1 of Algorithm 2).

        No possible state is lost, however improbable: where the sparse product comes near
        underflow, that state's log-probability is summed over its predecessors by itself.

        >>> model = MarkovModel([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
        >>> Belief.certain(0, 3).predict(model).probabilities
        array([0.5, 0.5, 0. ])
        """
        if not isinstance(model, MarkovModel):
            raise ArgumentError(
                f"model must be a MarkovModel, got {type(model).__name__}; "
                f"a time-varying model gives one with .at(time)"
            )
        if model.n_states != self.n_states:
            raise ArgumentError(f"model must have {self.n_states} states, got {model.n_states}")
        possible = model.successors(self.possible)
        return self._moved(model._incoming, possible)

    def _moved(self, incoming: sparse.csr_array, possible: Mask) -> Belief:
        """The belief carried through a matrix whose rows are the new states."""
        probabilities: FloatArray = incoming @ self.probabilities
        total = float(probabilities.sum())
        if _least(probabilities, possible) >= SAFE_PROBABILITY:
            return Belief(possible, probabilities / total, None)
        return _normalised(possible, _log_product(incoming, self.log_probabilities, possible))[0]

    def condition(self, log_likelihood: ArrayLike) -> Belief:
        """The belief after an observation with this log-likelihood in every state (Bayes).

        Minus infinity removes a state from the possible ones; no finite value does. A
        constant added to all of them changes nothing.

        >>> belief = Belief.uniform(3).condition([0.0, -1e9, -np.inf])
        >>> belief.possible, belief.probabilities
        (array([ True,  True, False]), array([1., 0., 0.]))
        """
        return self._condition(log_likelihood, "log_likelihood")[0]

    def _condition(self, log_likelihood: ArrayLike, name: str) -> tuple[Belief, float]:
        """The conditioned belief and the log-probability of the observation."""
        given = _vector(log_likelihood, name)
        if given.size != self.n_states:
            raise ArgumentError(f"{name} must have {self.n_states} values, got {given.size}")
        top = float(given.max())
        if not top < np.inf:
            raise ArgumentError(f"{name} must hold neither NaN nor plus infinity")
        possible = self.possible
        if given.min() == -np.inf:
            possible = possible & (given > -np.inf)
            if not possible.any():
                raise ArgumentError(
                    f"{name} must leave a state possible, got minus infinity for all of them"
                )
        if self._logs is None:
            weights = np.subtract(given, top)
            np.exp(weights, out=weights)
            weights *= self.probabilities
            if _least(weights, possible) >= SAFE_PROBABILITY:
                total = float(weights.sum())
                weights /= total
                return Belief(possible, weights, None), top + float(np.log(total))
        with np.errstate(over="ignore"):
            return _normalised(possible, self.log_probabilities + given)

    def mean(self, values: ArrayLike) -> FloatArray:
        """The mean of one value, or one vector, a state under this belief.

        >>> Belief.uniform(2).mean([[0.0, 1.0], [1.0, 3.0]])
        array([0.5, 2. ])
        """
        array = np.asarray(values, dtype=np.float64)
        if array.ndim == 0 or array.shape[0] != self.n_states:
            raise ArgumentError(
                f"values must have one row for each of {self.n_states} states, "
                f"got shape {array.shape}"
            )
        return np.asarray(self.probabilities @ array)


class Chain(ABC):
    """What every model of a chain can do once it says which transitions hold at which time.

    `start` is what is known at time 0; the first observation is at time 1, after one
    transition (Algorithm 2). Observations are arrays of shape (steps, n_states) of
    log-likelihoods, or any iterable of rows in which None is a step without an observation.
    """

    @property
    @abstractmethod
    def n_states(self) -> int:
        """How many states there are."""

    @abstractmethod
    def at(self, time: int) -> MarkovModel:
        """The model that governs the step into `time`."""


class MarkovModel(Chain):
    """A first-order chain: `transition[i, j]` is the probability of moving from i to j.

    The matrix is kept sparse, so 100,000 states cost what their moves cost. The stored
    pattern is the set of possible moves: zeros are dropped, and a probability too small for
    a normal float is still possible.

    >>> model = MarkovModel([[0.5, 0.5], [0.0, 1.0]])
    >>> model
    MarkovModel(2 states, 3 moves)
    >>> model.transition.toarray()
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, transition: ArrayLike | sparse.sparray | sparse.spmatrix) -> None:
        matrix = _matrix(transition, "transition")
        if matrix.shape[0] == 0:
            raise ArgumentError("transition must have at least one state")
        sums = np.asarray(matrix.sum(axis=1), dtype=np.float64)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > SUM_TOLERANCE:
            raise ArgumentError(
                f"transition must have rows that sum to one, "
                f"got {float(sums[worst])!r} in row {worst}"
            )
        self._transition = _freeze(_normalise_rows(matrix, sums))

    def __repr__(self) -> str:
        return f"MarkovModel({self.n_states} states, {self.transition.nnz} moves)"

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return int(self._transition.shape[0])

    @property
    def transition(self) -> sparse.csr_array:
        """The transition probabilities, read-only."""
        return self._transition

    def at(self, time: int) -> MarkovModel:
        """The model itself: the same moves hold at every time."""
        return self

    def successors(self, possible: Mask) -> Mask:
        """The states that one possible move leads to from the possible ones.

        >>> MarkovModel([[0.0, 1.0], [1e-320, 1.0]]).successors(np.array([False, True]))
        array([ True,  True])
        """
        possible = np.asarray(possible, dtype=bool)
        if possible.shape != (self.n_states,):
            raise ArgumentError(
                f"possible must be a mask of {self.n_states} states, got shape {possible.shape}"
            )
        if possible.all():
            return self._reachable
        reached: Mask = self._incoming_pattern @ possible
        return reached

    @cached_property
    def _incoming(self) -> sparse.csr_array:
        """The transposed matrix: row j holds the moves into j."""
        return _freeze(sparse.csr_array(self._transition.T))

    @cached_property
    def _incoming_pattern(self) -> sparse.csr_array:
        return _pattern(self._incoming)

    @cached_property
    def _reachable(self) -> Mask:
        reached: Mask = np.diff(self._incoming.indptr) > 0
        reached.setflags(write=False)
        return reached


def _vector(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be an array of numbers") from error
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"{name} must be a vector with one value a state, got {array.shape}")
    return array


def _matrix(values: Any, name: str) -> sparse.csr_array:
    """A fresh square CSR matrix of finite numbers above zero."""
    try:
        # A tuple would mean something else to scipy than to numpy.
        given: Any = values if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
        matrix: Any = sparse.csr_array(given, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be a square matrix of numbers") from error
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"{name} must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix.data).all():
        raise ArgumentError(
            f"{name} must be finite, got {_first(matrix, ~np.isfinite(matrix.data))}"
        )
    if (matrix.data < 0).any():
        raise ArgumentError(f"{name} must not be negative, got {_first(matrix, matrix.data < 0)}")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return sparse.csr_array(matrix)


def _first(matrix: sparse.csr_array, wrong: Mask) -> str:
    place = int(np.argmax(wrong))
    row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
    return f"{float(matrix.data[place])!r} in row {row}, column {int(matrix.indices[place])}"


def _normalise_rows(matrix: sparse.csr_array, sums: FloatArray) -> sparse.csr_array:
    """The matrix with every row divided by its sum, unless that is one up to rounding.

    A row that was normalised before is left as it is, so doing this twice is doing it once.
    """
    lengths = np.diff(matrix.indptr)
    rounding = (lengths + 1) * np.finfo(np.float64).eps
    divisor = np.where(np.abs(sums - 1) <= rounding, 1.0, sums)
    data = matrix.data / np.repeat(divisor, lengths)
    matrix.data = np.maximum(data, LEAST_PROBABILITY)
    return matrix


def _freeze(matrix: sparse.csr_array) -> sparse.csr_array:
    matrix.sort_indices()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix


def _pattern(matrix: sparse.csr_array) -> sparse.csr_array:
    """The stored pattern as booleans, whose products are "or", not sums that may wrap."""
    ones = np.ones(matrix.nnz, dtype=bool)
    return sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def _least(values: FloatArray, possible: Mask) -> float:
    """The least value on the mask."""
    return float(values.min() if possible.all() else values[possible].min())


def _above_minus_infinity(logs: FloatArray, name: str) -> Mask:
    if not float(logs.max()) < np.inf:
        raise ArgumentError(f"{name} must hold neither NaN nor plus infinity")
    possible: Mask = logs > -np.inf
    if not possible.any():
        raise ArgumentError(f"{name} must leave a state possible")
    return possible


def _normalised(possible: Mask, logs: FloatArray) -> tuple[Belief, float]:
    """The belief with these logs on the possible states, and the log of what it was divided by."""
    logs = np.where(possible, np.maximum(logs, LOWEST_LOG), -np.inf)
    peak = float(logs.max())
    with np.errstate(over="ignore"):
        weights = np.exp(logs - peak)
        total = float(weights.sum())
        log_total = peak + float(np.log(total))
        weights /= total
        if _least(weights, possible) >= SAFE_PROBABILITY:
            return Belief(possible, weights, None), log_total
        logs = np.where(possible, np.maximum(logs - log_total, LOWEST_LOG), -np.inf)
    return Belief(possible, weights, logs), log_total


def _log_product(matrix: sparse.csr_array, logs: FloatArray, rows: Mask) -> FloatArray:
    """log(matrix @ exp(logs)) on the rows marked, each of which must have a finite term.

    One shift for all would underflow where rows differ by more than a float can hold. So the
    product is used where it is large enough, and the other rows are summed each with its own.
    """
    peak = float(logs.max())
    with np.errstate(over="ignore"):
        product = matrix @ np.exp(logs - peak)
    safe = product >= SAFE_PROBABILITY
    result = np.full(matrix.shape[0], -np.inf)
    np.log(product, out=result, where=safe & rows)
    result += peak
    rest = np.flatnonzero(rows & ~safe)
    if rest.size:
        part = matrix[rest]
        terms = np.log(part.data) + logs[part.indices]
        tops = np.maximum.reduceat(terms, part.indptr[:-1])
        np.exp(terms - np.repeat(tops, np.diff(part.indptr)), out=terms)
        result[rest] = tops + np.log(np.add.reduceat(terms, part.indptr[:-1]))
    return result
