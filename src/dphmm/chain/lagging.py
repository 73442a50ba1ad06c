"""Fixed-lag smoothing: what is believed about each step, given what came until some steps later.

One pass over observations as they come. A belief is final `lag` steps later, and only the steps
since then are kept, so memory does not grow with time.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import FloatArray
from dphmm.chain import inference
from dphmm.chain.belief import Belief, Start
from dphmm.chain.chain import Chain
from dphmm.chain.stochastic import SAFE_PROBABILITY, add_logs, check_logs
from dphmm.errors import expect
from dphmm.geometry.exact import whole

__all__ = ["FixedLag", "Settled"]


class Settled(NamedTuple):
    """What is believed about the place at a time, once and for all."""

    time: int
    """The time."""
    belief: Belief
    """Over the places."""


class _Step(NamedTuple):
    """A step whose belief is not final yet."""

    time: int
    belief: Belief
    """Over the chain's states, given what came until then."""
    row: FloatArray | None
    """The log-likelihood of what came at this step, in every place."""
    factors: FloatArray
    """The same as likelihoods, up to a constant."""


class FixedLag:
    """A filter that looks back: each belief is given once, with what came `lag` steps later.

    With a lag of 0 it is the filter, and with one beyond the end the smoother.

    Args:
        chain: How states follow each other.
        lag: How many later steps count.
        start: What is known at `time`: a state, a distribution or a belief.
        time: The time of `start`; the first step leads into the next.

    >>> from dphmm import MarkovModel
    >>> late = FixedLag(MarkovModel([[0.9, 0.1], [0.1, 0.9]]), lag=1, start=0)
    >>> late.step([0.0, -1.0])
    []
    >>> [(time, belief.probabilities.round(3)) for time, belief in late.step([-9.0, 0.0])]
    [(1, array([0.731, 0.269]))]
    >>> [time for time, _ in late.finish()]
    [2]
    """

    def __init__(self, chain: Chain, *, lag: int, start: Start, time: int = 0) -> None:
        expect(chain, Chain, "chain")
        self.lag = whole(lag, "lag")
        self.time = whole(time, "time", None)
        self._chain = chain
        self.belief = chain.known(start)
        """Over the chain's states, given all that came."""
        self._window: deque[_Step] = deque()
        self._silent = np.ones(chain.n_places)
        self._places = chain.current

    def __repr__(self) -> str:
        return f"FixedLag(lag={self.lag}, time={self.time}, {len(self._window)} waiting)"

    def step(self, log_likelihood: ArrayLike | None = None) -> list[Settled]:
        """Move one step; gives the belief that is final now, if one is.

        Args:
            log_likelihood: Of what came at this step, in every place; None if nothing did.
        """
        row = log_likelihood
        if row is not None:
            row = check_logs(row, self._chain.n_places, "log_likelihood")
        belief = self._chain.predict(self.belief, self.time + 1)
        if row is not None:
            belief = belief.condition(self._chain.lift(row))
        self.time, self.belief = self.time + 1, belief
        self._window.append(_Step(self.time, belief, row, self._factors(row)))
        return [self._settle()] if len(self._window) > self.lag else []

    def also(self, log_likelihood: ArrayLike) -> None:
        """Hear more about the latest step; what is final stays as it was given.

        Args:
            log_likelihood: Of what else came there, in every place.
        """
        row = check_logs(log_likelihood, self._chain.n_places, "log_likelihood")
        self.belief = self.belief.condition(self._chain.lift(row))
        if self._window:
            last = self._window.pop()
            both = row if last.row is None else add_logs(last.row, row)
            self._window.append(_Step(last.time, self.belief, both, self._factors(both)))

    def finish(self) -> list[Settled]:
        """The beliefs that are still waiting, given all there is; nothing waits afterwards."""
        settled = []
        while self._window:
            settled.append(self._settle())
        return settled

    def _settle(self) -> Settled:
        """The first step that waits, given all that came since."""
        first = self._window[0]
        belief = first.belief
        if any(step.row is not None for step in list(self._window)[1:]):
            belief = belief.condition(self._later())
        self._window.popleft()
        return Settled(first.time, self._chain.place_belief(belief))

    def _later(self) -> FloatArray:
        """The log-likelihood, in every state of the first step, of what came since."""
        after = np.ones(self._chain.n_states)
        for step in reversed(list(self._window)[1:]):
            before = self._before(step, after)
            if before is None:
                return self._later_in_logs()
            after = before
        return np.log(after)

    def _before(self, step: _Step, after: FloatArray) -> FloatArray | None:
        """The likelihood of what came at a step and since, one step earlier; None if too small."""
        factors = step.factors
        for model in reversed(self._chain.moves_into(step.time)):
            before = np.empty(len(after))
            moves = model.outgoing
            least = kernels.release.look_back(
                moves.indptr, moves.indices, moves.data, model.jumps,
                self._places, factors, after, before,
            )  # fmt: skip
            if not least >= SAFE_PROBABILITY:
                return None
            after, factors = before, self._silent
        return after

    def _factors(self, row: FloatArray | None) -> FloatArray:
        if row is None:
            return self._silent
        with np.errstate(over="ignore"):
            return np.exp(row - float(row.max()))

    def _later_in_logs(self) -> FloatArray:
        """The same where plain numbers would lose a state: by the messages of the smoother."""
        chain, first, *rest = self._chain, *self._window
        rows: list[FloatArray | None] = [None]
        for step in rest:
            rows += [None] * (chain.steps - 1)
            rows.append(None if step.row is None else chain.lift(step.row))
        return inference.messages(chain.base, rows, first.time * chain.steps - 1)[0]
