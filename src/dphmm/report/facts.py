"""What anybody can work out about a track: its price, and how uncertain each position stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import nan

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.estimates import estimate_of
from dphmm.chain.lagging import FixedLag
from dphmm.cost import PrivacyStatement
from dphmm.policy.plan import Protected
from dphmm.release.schedule import mean_distance
from dphmm.report.given import GivenAway, places_given_away
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

    @property
    def smoothed(self) -> FloatArray:
        """The estimate at each release, from everything said."""
        return self._hindsight[0]

    @property
    def lagged(self) -> FloatArray:
        """The estimate at each release, from what was said until `lag` steps later."""
        return self._waited[0]

    @property
    def given_away(self) -> tuple[GivenAway, ...]:
        """The places that everything said gave away."""
        return self._hindsight[2]

    @cached_property
    def expected_errors(self) -> FloatArray:
        """The expected distance of answer and estimates (now, late, in hindsight), a row a release.

        By the model: what a reader without the truth can say. The first is the root of the
        mean squared error of the noise.
        """
        stream, values = self.track.stream, self.track.stream.query.values
        filtered = stream.model.filter(self._heard, start=stream.start, time=stream.began)
        steps = zip(self._steps, self.track.releases, self.track.protected, strict=True)
        now = [
            (
                nan
                if step is None
                else float(step.mechanism(release.epsilon).mean_squared_error) ** 0.5,
                mean_distance(values, filtered[place], release.estimate),
            )
            for place, release, step in steps
        ]
        return np.column_stack([now, self._waited[1], self._hindsight[1]])

    @property
    def mean_errors(self) -> FloatArray:
        """The mean of each: of the answers, and of all steps for the estimates."""
        return np.asarray(np.nanmean(self.expected_errors, axis=0))

    @cached_property
    def statement(self) -> PrivacyStatement:
        """What the releases cost, with the odds that they really moved."""
        statement = self.track.stream.statement()
        # A file may not be all that was said.
        return statement if self.track.budget else replace(statement, besides=None)

    @property
    def left(self) -> Fraction | float | None:
        """What may still be spent, in all and in the windows of the latest answer.

        Only a book knows: a file may not be all that was said.
        """
        return None if self.track.budget is None else self.track.budget.remaining

    @property
    def worst_step(self) -> Fraction | float:
        """The most that one step cost between two possible states."""
        return max(said.step.constrained(said.epsilon) for said in self.track.stream.said)

    def work_out(self, *, errors: bool, statement: bool) -> None:
        """Compute what a page will show: what it shows of everybody, and more if that is asked."""
        _ = self.smoothed, errors and self.expected_errors, statement and self.statement

    @property
    def _steps(self) -> list[int]:
        began = self.track.stream.began
        return [release.time - began - 1 for release in self.track.releases]

    @cached_property
    def _heard(self) -> list[FloatArray | None]:
        return self.track.stream.observations()

    # What follows keeps numbers only: the beliefs of a long track are large.

    @cached_property
    def _waited(self) -> tuple[FloatArray, FloatArray]:
        """The estimates that wait, and their expected errors."""
        stream = self.track.stream
        late = FixedLag(stream.model, lag=self.lag, start=stream.start, time=stream.began)
        settled = [one for row in self._heard for one in late.step(row)]
        return self._estimated([one.belief for one in (*settled, *late.finish())])

    @cached_property
    def _hindsight(self) -> tuple[FloatArray, FloatArray, tuple[GivenAway, ...]]:
        """The estimates from everything, their expected errors, and what was given away."""
        stream = self.track.stream
        start, began, nothing = stream.start, stream.began, [None] * len(self._heard)
        seen = stream.model.smooth(self._heard, start=start, time=began)
        unseen = stream.model.filter(nothing, start=start, time=began)
        both = ([beliefs[step] for step in self._steps] for beliefs in (seen, unseen))
        return *self._estimated(seen), places_given_away(*both)

    def _estimated(self, beliefs: list[Belief]) -> tuple[FloatArray, FloatArray]:
        """The estimate of the belief at each release, and its expected error."""
        stream, values = self.track.stream, self.track.stream.query.values
        chosen = [beliefs[step] for step in self._steps]
        points = np.array([estimate_of(one, values, stream.estimate) for one in chosen])
        apart = [mean_distance(values, one, p) for one, p in zip(chosen, points, strict=True)]
        return points, np.array(apart)
