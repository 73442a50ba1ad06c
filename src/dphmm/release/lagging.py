"""Estimates that wait: final some steps later, when more has been said.

They follow from what was said and from public rules, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from numpy.typing import ArrayLike

from dphmm._types import FloatArray
from dphmm.chain.belief import Start
from dphmm.chain.estimates import Estimate, check_estimate, estimate_of
from dphmm.chain.lagging import FixedLag, Settled
from dphmm.chain.markov import Chain
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.states import as_array
from dphmm.noise.mechanism import lattice_vector
from dphmm.policy.plan import Plan
from dphmm.release.said import Said, log_likelihood

if TYPE_CHECKING:
    from dphmm.release.stream import Stream

__all__ = ["Estimated", "Estimates"]


class Estimated(NamedTuple):
    """The final estimate of one step; it may be shown to anybody."""

    time: int
    """The slot of the clock."""
    value: FloatArray
    """Where, in the units of the query."""


class Estimates:
    """Estimates of every step, silent ones included, each final once `lag` more steps were made.

    `stream.estimates(lag=10)` follows a stream; made by hand it follows answers that were
    published, in memory that does not grow with time.

    Args:
        model: How states follow each other.
        plan: Who must look like whom, what is asked, which noise answers.
        start: What is known before the first step.
        time: The slot at which that is known.
        lag: How many later steps count.
        estimate: What stands for a belief: its "mean", or its geometric "median".
    """

    def __init__(
        self,
        model: Chain,
        plan: Plan,
        *,
        start: Start,
        time: int = 0,
        lag: int,
        estimate: Estimate = "mean",
    ) -> None:
        expect(model, Chain, "model")
        expect(plan, Plan, "plan")
        self.estimate = check_estimate(estimate)
        self._late = FixedLag(model, lag=lag, start=start, time=time)
        self._model, self._plan = model, plan
        self._stream: Stream | None = None
        self._heard = 0

    def __repr__(self) -> str:
        return f"Estimates(lag={self._late.lag}, time={self._late.time}, {self.estimate})"

    @property
    def time(self) -> int:
        """The slot of the latest step."""
        return self._late.time

    @classmethod
    def _follow(cls, stream: Stream, lag: int, estimate: Estimate | None) -> Estimates:
        """See `Stream.estimates`."""
        time, start = stream._said_from
        kind = stream.estimate if estimate is None else estimate
        estimates = cls(stream.model, stream.plan, start=start, time=time, lag=lag, estimate=kind)
        estimates._stream = stream
        return estimates

    def ready(self) -> list[Estimated]:
        """What has become final since this was last asked, by what the stream has said."""
        if self._stream is None:
            raise ArgumentError(
                "ready must be asked of a stream's estimates, got others; tell them"
            )
        final: list[Settled] = []
        for said in self._stream.said[self._heard :]:
            final += self._hear(said)
            self._heard += 1
        final += self._wait(self._stream.time)
        return self._estimated(final)

    def tell(self, time: int, lattice: ArrayLike, epsilon: Exact) -> list[Estimated]:
        """Follow an answer that was given at a later slot; gives what is final now.

        Args:
            time: Its slot; the steps until then were silent.
            lattice: The answer on the query's lattice; empty for a step that was silent.
            epsilon: The price that it had.
        """
        if not as_array(lattice, "lattice").size:
            return self.wait(time)
        late, plan = self._late, self._plan
        if whole(time, "time", None) <= late.time:
            raise ArgumentError(f"time must be after {late.time}, got {time!r}")
        final = self._wait(time - 1)
        prior = self._model.predict(late.belief, time)
        step = plan.at(plan.to_protect(prior, self._model.memory))
        # Where only one state is possible the price was nothing, which is no epsilon.
        price = Fraction(0) if step.is_lone else as_epsilon(epsilon)
        said = lattice_vector(lattice)
        if said.shape != (plan.query.dimension,):
            raise ArgumentError(
                f"lattice must have {plan.query.dimension} coordinates, got shape {said.shape}"
            )
        final += self._hear(Said(time, plan.query, price, said, step))
        return self._estimated(final)

    def wait(self, time: int) -> list[Estimated]:
        """Go on to a slot without an answer; gives what is final now.

        Args:
            time: The slot.
        """
        return self._estimated(self._wait(whole(time, "time", None)))

    def finish(self) -> list[Estimated]:
        """The estimates that still wait, given all there is."""
        first = [] if self._stream is None else self.ready()
        return [*first, *self._estimated(self._late.finish())]

    def _hear(self, said: Said) -> list[Settled]:
        final = self._wait(said.time - 1)
        row = None
        if not said.step.is_lone:
            row = log_likelihood(said.step, said.epsilon, said.lattice, self._plan.delta)
        if said.time == self._late.time:
            if row is not None:
                self._late.also(row)
            return final
        return final + self._late.step(row)

    def _wait(self, time: int) -> list[Settled]:
        final: list[Settled] = []
        while self._late.time < time:
            final += self._late.step()
        return final

    def _estimated(self, final: Iterable[Settled]) -> list[Estimated]:
        values = self._plan.query.values
        return [
            Estimated(one.time, estimate_of(one.belief, values, self.estimate)) for one in final
        ]
