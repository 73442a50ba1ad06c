"""What is believed about where a chain is.

A `Belief` says which states are possible, exactly, and how probable each is. Filtering is
two verbs, `predict` and `condition`; whole sequences are those two folded over time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm import kernels
from dphmm._types import FloatArray, Mask
from dphmm.chain.estimates import check_values
from dphmm.chain.plotting import plot_belief
from dphmm.chain.stochastic import (
    LEVEL,
    SAFE_PROBABILITY,
    SUM_TOLERANCE,
    check_logs,
    check_vector,
    least_on,
    log_ratios,
    weigh_wide,
)
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import whole
from dphmm.geometry.states import state_number

if TYPE_CHECKING:
    from dphmm.chain.markov import MarkovModel

__all__ = ["Belief", "Start"]

Start: TypeAlias = "int | ArrayLike | Belief"
"""What is known before the first step: a state, a distribution or a belief."""


class Belief:
    """Which states are possible, and how probable each is, at one time.

    `possible` is a mask that moves through the transition graph; it is never recomputed from
    probabilities. A possible state may have a probability too small for a float, so
    `probabilities` may hold a zero on it; `log_probabilities` is finite exactly on the mask.

    Plain floats are kept alone while every possible state has at least `SAFE_PROBABILITY`;
    below that wide numbers (see `kernels.chain`) are kept beside them and are what counts.

    Args:
        possible: (n,) booleans: the possible states.
        probabilities: (n,) floats that sum to one, zero off the mask.
        wide: The same as wide numbers, or None if floats alone hold them. Nothing is checked: make
            a belief with `certain`, `uniform`, `known` or `from_probabilities`.

    >>> belief = Belief.certain(0, 3)
    >>> belief.possible
    array([ True, False, False])
    """

    __slots__ = ("_wide", "possible", "probabilities")

    possible: Mask
    probabilities: FloatArray
    _wide: FloatArray | None

    def __init__(self, possible: Mask, probabilities: FloatArray, wide: FloatArray | None) -> None:
        # Trusted: arrays that this module has just made. Users come through the constructors.
        for name, array in (
            ("possible", possible),
            ("probabilities", probabilities),
            ("_wide", wide),
        ):
            if array is not None:
                array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Belief does not change; {name} cannot be set")

    def arrays(self) -> tuple[Mask, FloatArray, FloatArray | None]:
        """What the belief is made of: `Belief(*arrays)` is the same to the last bit."""
        return self.possible, self.probabilities, self._wide

    def __reduce__(self) -> tuple[Any, ...]:
        return Belief, self.arrays()

    plot = plot_belief

    def __repr__(self) -> str:
        return f"Belief({self.n_states} states, {int(self.possible.sum())} possible)"

    @classmethod
    def certain(cls, state: int, n_states: int) -> Belief:
        """The belief that the chain is in one state.

        Args:
            state: The state's number; it may be a true state, and no message shows it.
            n_states: How many states there are.

        >>> Belief.certain(1, 3).probabilities
        array([0., 1., 0.])
        """
        probabilities = np.zeros(whole(n_states, "n_states", 1))
        probabilities[state_number(state, n_states)] = 1.0
        return cls(probabilities > 0, probabilities, None)

    @classmethod
    def uniform(cls, n_states: int) -> Belief:
        """The belief that every state is equally probable.

        Args:
            n_states: How many states there are.

        >>> Belief.uniform(4).probabilities
        array([0.25, 0.25, 0.25, 0.25])
        """
        whole(n_states, "n_states", 1)
        return cls(np.ones(n_states, dtype=bool), np.full(n_states, 1.0 / n_states), None)

    @classmethod
    def from_probabilities(cls, probabilities: ArrayLike) -> Belief:
        """The belief with these probabilities; the states above zero are the possible ones.

        Args:
            probabilities: One a state, with a sum of one up to 1e-6; they are divided by it.

        >>> Belief.from_probabilities([0.5, 0.0, 0.5]).possible
        array([ True, False,  True])
        """
        return _from_probabilities(probabilities, "probabilities")

    @classmethod
    def from_log_probabilities(cls, log_probabilities: ArrayLike) -> Belief:
        """The belief with these logs, up to a constant; the finite ones are the possible states.

        Args:
            log_probabilities: One a state; a constant added to all changes nothing.

        >>> Belief.from_log_probabilities([-1000.0, -np.inf, -1000.0]).probabilities
        array([0.5, 0. , 0.5])
        """
        given = check_vector(log_probabilities, "log_probabilities")
        possible = check_logs(given, given.size, "log_probabilities") > -np.inf
        if not possible.any():
            raise ArgumentError("log_probabilities must leave a state possible")
        return _from_logs(possible, given)

    @classmethod
    def known(cls, start: Start, n_states: int, argument: str = "start") -> Belief:
        """The belief that `start` means: a state, a distribution, or a belief as it is.

        Args:
            start: A state's number, a probability for each state, or a belief.
            n_states: How many states it must have.
            argument: What a message calls it.

        >>> Belief.known(2, 3).probabilities
        array([0., 0., 1.])
        >>> Belief.known([0.5, 0.5, 0.0], 3)
        Belief(3 states, 2 possible)
        """
        if isinstance(start, int | np.integer):
            whole(n_states, "n_states", 1)
            return cls.certain(state_number(start, n_states, argument), n_states)
        belief = start if isinstance(start, Belief) else _from_probabilities(start, argument)
        if belief.n_states != n_states:
            raise ArgumentError(f"{argument} must have {n_states} states, got {belief.n_states}")
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
        logs = np.full(self.n_states, -np.inf)
        if self._wide is None:
            return np.log(self.probabilities, out=logs, where=self.possible)
        scaled, levels = self._wide
        np.log(scaled, out=logs, where=self.possible)
        np.subtract(logs, levels * LEVEL, out=logs, where=self.possible)
        return logs

    def predict(self, model: MarkovModel) -> Belief:
        """The belief after one step of the model, p M (line 1 of Algorithm 2).

        A model with `anywhere` = a above zero gives (1 - a) p M + a u, u its density.

        No possible state is lost, however improbable: where the sparse product comes near
        underflow, it is taken in wide numbers, each state's at its own scale.

        Args:
            model: The model of this step; a time-varying one gives it with `.at(time)`.

        >>> from dphmm.chain.markov import MarkovModel
        >>> model = MarkovModel([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
        >>> Belief.certain(0, 3).predict(model).probabilities
        array([0.5, 0.5, 0. ])
        """
        if not hasattr(model, "successors"):
            raise ArgumentError(
                f"model must be a MarkovModel, got {type(model).__name__}; "
                f"a time-varying model gives one with .at(time)"
            )
        if model.n_states != self.n_states:
            raise ArgumentError(f"model must have {self.n_states} states, got {model.n_states}")
        return Predicted(self, model)

    def by_own_moves(self) -> FloatArray:
        """The probabilities that the latest step gives when nobody goes just anywhere.

        They differ from `probabilities` just after a model with `anywhere` predicted.
        """
        return self.probabilities

    def _moved(self, incoming: sparse.csr_array, jumps: FloatArray, possible: Mask) -> Belief:
        """The belief carried through a matrix whose rows are the new states, plus jumps."""
        if self._wide is None:
            after = np.empty(possible.size)
            least = kernels.release.predict(
                incoming.indptr, incoming.indices, incoming.data, jumps, self.probabilities,
                possible, after,
            )  # fmt: skip
            if least >= SAFE_PROBABILITY:
                return Belief(possible, after, None)
        result = np.empty((2, possible.size))
        kernels.chain.step(
            incoming.indptr, incoming.indices, incoming.data, jumps, self.widen(), result
        )
        return _normalised(possible, result)[0]

    @property
    def is_plain(self) -> bool:
        """Whether floats alone hold every possible probability."""
        return self._wide is None

    def widen(self) -> FloatArray:
        """The probabilities as wide numbers: a float and a level for every state."""
        if self._wide is not None:
            return self._wide
        small = self.probabilities < 2.0**-256
        wide = np.empty((2, self.n_states))
        np.multiply(self.probabilities, np.where(small, 2.0**512, 1.0), out=wide[0])
        wide[1] = np.where(self.possible, small, np.inf)
        # Numba would compile the kernel once more for arrays that can be written to.
        wide.setflags(write=False)
        return wide

    def condition(self, log_likelihood: ArrayLike) -> Belief:
        """The belief after an observation with this log-likelihood in every state (Bayes).

        Minus infinity removes a state from the possible ones; no finite value does. A
        constant added to all of them changes nothing.

        Args:
            log_likelihood: One a state: the log-probability of what was observed there.

        >>> belief = Belief.uniform(3).condition([0.0, -1e9, -np.inf])
        >>> belief.possible, belief.probabilities
        (array([ True,  True, False]), array([1., 0., 0.]))
        """
        return self._condition(log_likelihood, "log_likelihood")[0]

    def _condition(self, log_likelihood: ArrayLike, name: str) -> tuple[Belief, float]:
        """The conditioned belief and the log-probability of the observation."""
        given = check_logs(log_likelihood, self.n_states, name)
        top = float(given.max())
        possible = self.possible
        if given.min() == -np.inf:
            possible = possible & (given > -np.inf)
            if not possible.any():
                raise ArgumentError(
                    f"{name} must leave a state possible, got minus infinity for all of them"
                )
        if self._wide is None:
            weights = log_ratios(given, top)
            np.exp(weights, out=weights)
            weights *= self.probabilities
            if least_on(weights, possible) >= SAFE_PROBABILITY:
                total = float(weights.sum())
                weights /= total
                return Belief(possible, weights, None), top + float(np.log(total))
        if not possible.all():
            top = float(given[possible].max())
        scaled, levels = self.widen()
        wide = weigh_wide(scaled, levels, log_ratios(given, top), possible)
        belief, log_total = _normalised(possible, wide)
        return belief, top + log_total

    def mean(self, values: ArrayLike) -> FloatArray:
        """The mean of one value, or one vector, a state under this belief.

        Args:
            values: (n,) or (n, d): a number or a vector for each state.

        >>> Belief.uniform(2).mean([[0.0, 1.0], [1.0, 3.0]])
        array([0.5, 2. ])
        """
        return np.asarray(self.probabilities @ check_values(values, self.n_states))

    def median(self, values: ArrayLike) -> FloatArray:
        """The value with the least expected distance to one value, or one vector, a state.

        On a line it is the lowest value that half of the probability does not exceed.

        Args:
            values: (n,) or (n, d): a number or a vector for each state.

        >>> Belief.from_probabilities([0.6, 0.2, 0.2]).median([[0, 0], [9, 0], [0, 9]])
        array([0., 0.])
        """
        given = check_values(values, self.n_states)
        points = np.ascontiguousarray(given.reshape(self.n_states, -1))
        middle = np.empty(points.shape[1])
        kernels.estimate.median(points, self.probabilities, middle)
        return middle.reshape(given.shape[1:])


class Predicted(Belief):
    """A belief one step on, whose product is taken when somebody looks at it.

    What is possible is known at once. A release that goes on to condition the belief does
    both in one pass over the states (see `dphmm.release.advance`) and never asks for the product.
    """

    __slots__ = ("_taken", "model", "source")

    source: Belief
    model: MarkovModel
    _taken: Belief | None

    def __init__(self, source: Belief, model: MarkovModel) -> None:
        if isinstance(source, Predicted):
            source = source._product
        possible = model.successors(source.possible)
        for name, value in (("source", source), ("model", model), ("possible", possible)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_taken", None)

    @property
    def _product(self) -> Belief:
        if self._taken is None:
            moved = self.source._moved(self.model.incoming, self.model.jumps, self.possible)
            object.__setattr__(self, "_taken", moved)
        assert self._taken is not None
        return self._taken

    def by_own_moves(self) -> FloatArray:
        """The probabilities that the latest step gives when nobody goes just anywhere."""
        if self.model.own is self.model:
            return self.probabilities
        return self.source.predict(self.model.own).probabilities

    @property
    def probabilities(self) -> FloatArray:  # type: ignore[override]
        """The probability of every state."""
        return self._product.probabilities

    @property
    def _wide(self) -> FloatArray | None:  # type: ignore[override]
        return self._product._wide


def _from_probabilities(probabilities: ArrayLike, argument: str) -> Belief:
    given = check_vector(probabilities, argument)
    if np.isnan(given).any() or given.min() < 0 or given.max() == np.inf:
        raise ArgumentError(f"{argument} must be finite and not negative")
    total = float(given.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise ArgumentError(f"{argument} must sum to one, got a sum of {total!r}")
    possible = given > 0
    if least_on(given, possible) >= SAFE_PROBABILITY:
        return Belief(possible, given / total, None)
    with np.errstate(divide="ignore"):
        return _from_logs(possible, np.log(given))


def _from_logs(possible: Mask, logs: FloatArray) -> Belief:
    """The belief with these logs, up to a constant."""
    probabilities = np.exp(logs := log_ratios(logs, float(logs.max())))
    if least_on(probabilities, possible) >= SAFE_PROBABILITY:
        return Belief(possible, probabilities / float(probabilities.sum()), None)
    zeros = np.zeros(logs.size)
    return _normalised(possible, weigh_wide(zeros + 1, zeros, logs, possible))[0]


def _normalised(possible: Mask, wide: FloatArray) -> tuple[Belief, float]:
    """The belief with these wide numbers, and the log of what they were divided by."""
    probabilities = np.empty(possible.size)
    log_total, least = kernels.chain.normalise(wide, probabilities)
    return Belief(possible, probabilities, wide if least < SAFE_PROBABILITY else None), log_total
