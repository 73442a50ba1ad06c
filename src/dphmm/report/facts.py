"""What anybody can work out about a track: its price, and how uncertain each position stays."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import nan

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.estimates import estimate_of
from dphmm.chain.lagging import FixedLag
from dphmm.cost import PrivacyStatement
from dphmm.cost.ledger import Entry, Ledger
from dphmm.policy.plan import Protected
from dphmm.release.schedule import mean_distance
from dphmm.release.stating import WIDTH, state_costs
from dphmm.scenario.released import Track

__all__ = ["LAG", "TrackFacts"]

LAG = 10
"""Steps that estimates wait for in a report, unless told otherwise."""


@dataclass(frozen=True, eq=False)
class TrackFacts:
    """The public side of one person's releases."""

    track: Track
    lag: int = LAG
    """How many later steps the estimates know that wait."""

    @cached_property
    def answers(self) -> FloatArray:
        """What was said, one row a release; no numbers at a silent step."""
        nothing = np.full(self.track.stream.query.dimension, np.nan)
        return np.array([nothing if one.silent else one.answer for one in self.track.releases])

    @property
    def said(self) -> int:
        """How many answers there are."""
        return len(self.track.stream.said)

    @property
    def last(self) -> Protected:
        """The public rules of the last answer."""
        return self.track.stream.said[-1].step

    @cached_property
    def estimates(self) -> FloatArray:
        """The estimate at each release, from what was said until then."""
        return np.array([release.estimate for release in self.track.releases])

    @cached_property
    def smoothed(self) -> FloatArray:
        """The estimate at each release, from everything said."""
        stream = self.track.stream
        seen = [self._seen[step] for step in self._steps]
        return np.array([estimate_of(one, stream.query.values, stream.estimate) for one in seen])

    @cached_property
    def lagged(self) -> FloatArray:
        """The estimate at each release, from what was said until `lag` steps later."""
        stream = self.track.stream
        seen = [self._late[step] for step in self._steps]
        return np.array([estimate_of(one, stream.query.values, stream.estimate) for one in seen])

    @cached_property
    def expected_errors(self) -> FloatArray:
        """The expected distance of answer and estimates (now, late, in hindsight), a row a release.

        By the model: what a reader without the truth can say. The first is the root of the
        mean squared error of the noise.
        """
        stream, values = self.track.stream, self.track.stream.query.values
        filtered = stream.model.filter(stream.observations(), start=stream.start, time=stream.began)
        return np.array(
            [
                (
                    nan
                    if step is None
                    else float(step.mechanism(release.epsilon).mean_squared_error) ** 0.5,
                    mean_distance(values, filtered[place], release.estimate),
                    mean_distance(values, self._late[place], self.lagged[number]),
                    mean_distance(values, self._seen[place], self.smoothed[number]),
                )
                for number, (place, release, step) in enumerate(
                    zip(self._steps, self.track.releases, self.track.protected, strict=True)
                )
            ]
        )

    @property
    def mean_errors(self) -> FloatArray:
        """The mean of each: of the answers, and of all steps for the estimates."""
        return np.asarray(np.nanmean(self.expected_errors, axis=0))

    @cached_property
    def statement(self) -> PrivacyStatement:
        """What the releases cost, with the odds that they really moved."""
        return state_costs(self.track.stream, WIDTH, self._seen)

    @property
    def left(self) -> Fraction | float:
        """What may still be spent, in all and in the windows of the latest answer."""
        stream = self.track.stream
        entries = [Entry(said.time, said.query.name, said.epsilon) for said in stream.said]
        return Ledger(stream.ledger.limit, entries).remaining

    @property
    def worst_step(self) -> Fraction | float:
        """The most that one step cost between two possible states."""
        return max(said.step.constrained(said.epsilon) for said in self.track.stream.said)

    @property
    def _steps(self) -> list[int]:
        began = self.track.stream.began
        return [release.time - began - 1 for release in self.track.releases]

    @cached_property
    def _late(self) -> list[Belief]:
        stream = self.track.stream
        late = FixedLag(stream.model, lag=self.lag, start=stream.start, time=stream.began)
        settled = [one for row in stream.observations() for one in late.step(row)]
        return [one.belief for one in (*settled, *late.finish())]

    @cached_property
    def _seen(self) -> list[Belief]:
        return self.track.stream.smooth()
