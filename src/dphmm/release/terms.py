"""What everybody's releases have in common: model, plan, start, price and limit, all public."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from dphmm.chain.belief import Belief
from dphmm.chain.estimates import Estimate
from dphmm.chain.markov import Chain
from dphmm.cost.limit import Limit
from dphmm.noise.randomness import Randomness
from dphmm.policy.plan import Plan
from dphmm.release.batch import Batch
from dphmm.release.law_parts import law_by_parts
from dphmm.release.moment import Line, law_of
from dphmm.release.said import Record
from dphmm.release.schedule import Schedule, fills_gaps
from dphmm.release.standing import Standing
from dphmm.release.stream import Stream

__all__ = ["Terms", "follow"]

Resumed = TypeVar("Resumed", bound=Stream)


@dataclass(frozen=True, eq=False)
class Terms:
    """The public side of releasing: what a scenario tells the engine.

    Args:
        model: How states follow each other.
        plan: Who must look like whom, what is asked, which noise answers.
        start: What is known before the first step.
        epsilon: The price of a release.
        limit: The most that may be spent on a person, its windows in steps; None for no limit.
        origin: The slot at which the start is known; None for the slot before the first row.
        clock: How time is cut into steps, as a text for the law.
        schedule: When to speak; at every step by default.
        threads: How many threads move a batch; by default one for each core.
        estimate: What stands for a belief; it shapes no answer, so it is no part of the law.
        time_of: What a slot is called in messages.
        plane: The map's centre, from which metres become degrees; empty for a map without.
    """

    model: Chain
    plan: Plan
    start: Belief
    epsilon: Fraction
    limit: Limit | None = None
    origin: int | None = None
    clock: str = ""
    schedule: Schedule | None = None
    threads: int | None = None
    estimate: Estimate = "mean"
    time_of: Callable[[int], int | str] = int
    plane: str = ""

    @property
    def query(self) -> str:
        """The name of the question."""
        return self.plan.query.name

    @cached_property
    def law(self) -> bytes:
        """The fingerprint of everything that shapes answers, epsilon apart."""
        return law_of(self.model, self.plan, self.start, self.clock, self.schedule)

    @cached_property
    def law_parts(self) -> str:
        """The same part by part, for tables of answers."""
        return law_by_parts(self.model, self.plan, self.start, self.clock, self.schedule)

    @property
    def fills_gaps(self) -> bool:
        """Whether steps without a row are answered too."""
        return fills_gaps(self.schedule)

    def begin(self, client: str, person: str, first: int) -> Standing:
        """Where somebody new stands before a first row in a slot."""
        began = first - 1 if self.origin is None else self.origin
        return self.stand(Line(client, person, self.query), began)

    def stand(self, line: Line, began: int) -> Standing:
        """Where a line stands at the slot at which its start is known."""
        return Standing(
            line, self.law, began, began, self.start, clock=self.clock, plane=self.plane
        )

    def stream(self, standing: Standing, *, randomness: Randomness | None = None) -> Stream:
        """One person's stream from where they stand; what it is asked it says, at every step.

        It is for one thread and counts nothing: a book does. `resume` gives one that counts.
        """
        return self._pattern._like(standing, randomness)

    @cached_property
    def _pattern(self) -> Stream:
        """A stream of nobody, of which everybody's are copies: its parts are checked once."""
        return self.resume(Stream, self.stand(Line("", "", self.query), 0), None)

    def resume(
        self, kind: type[Resumed], standing: Standing, randomness: Randomness | None
    ) -> Resumed:
        """The same as a kind of stream."""
        stream = kind.resume(
            standing,
            self.model,
            self.plan,
            epsilon=self.epsilon,
            start=self.start,
            randomness=randomness,
            law=self.law,
            estimate=self.estimate,
        )
        stream._rule = self.schedule
        return stream

    def __getstate__(self) -> dict[str, Any]:
        """All but the pattern, which has a lock."""
        return {name: value for name, value in vars(self).items() if name != "_pattern"}

    def follow(self, standing: Standing, said: Sequence[Record]) -> Standing:
        """Where a person stands after what was said since."""
        stream = self.stream(standing)
        follow(stream, said)
        pairs = ((record.time, record.epsilon) for record in said)
        width = 0 if self.limit is None else self.limit.width
        return stream.standing.remember([*standing.recent, *pairs], width)

    def batch(self, standings: list[Standing], *, randomness: Randomness | None = None) -> Batch:
        """Many people's streams from where they stand."""
        batch = Batch.resume(
            standings,
            self.model,
            self.plan,
            epsilon=self.epsilon,
            randomness=randomness,
            law=self.law,
            threads=self.threads,
            estimate=self.estimate,
        )
        batch._rule = self.schedule
        return batch


def follow(stream: Stream, said: Sequence[Record]) -> None:
    """Lead a stream to where a book's answers lead: nothing is drawn or written down."""
    for record in said:
        stream.skip(record.time - stream.time - 1)
        stream.repeat(record.lattice, record.epsilon)
