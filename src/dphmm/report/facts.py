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
from dphmm.cost.statement import PrivacyStatement
from dphmm.cost.whereabouts import Whereabouts
from dphmm.noise.distance import mean_noise
from dphmm.policy.plan import Protected
from dphmm.release.schedule import mean_distance
from dphmm.release.stating import place_person
from dphmm.report.beliefs import pack
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
        return self._hindsight.points

    @property
    def lagged(self) -> FloatArray:
        """The estimate at each release, from what was said until `lag` steps later."""
        return self._waited.points

    @property
    def given_away(self) -> tuple[GivenAway, ...]:
        """The places that everything said gave away."""
        return self._hindsight.given_away

    @property
    def near(self) -> Whereabouts:
        """How near to the person everything said lets a reader come."""
        return self._hindsight.near

    @property
    def share(self) -> FloatArray:
        """The part of the time that a reader believes each state to have had, in hindsight."""
        return self._hindsight.share

    @property
    def packed(self) -> dict[str, str]:
        """What is believed at each release: at the time, late and in hindsight; see `pack`."""
        return {
            "now": self._at_once.packed,
            "late": self._waited.packed,
            "hindsight": self._hindsight.packed,
        }

    @cached_property
    def noises(self) -> FloatArray:
        """The mean distance of each answer to the truth, and its root mean square, by its noise."""
        rows = []
        for release, step in zip(self.track.releases, self.track.protected, strict=True):
            rows.append((nan, nan) if step is None else _noise(step, release.epsilon))
        return np.array(rows)

    @cached_property
    def expected_errors(self) -> FloatArray:
        """The expected distance of answer and estimates (now, late, in hindsight), a row a release.

        By the model: what a reader without the truth can say. Of an answer it is the mean
        distance of its noise.
        """
        believed = (self._at_once, self._waited, self._hindsight)
        return np.column_stack([self.noises[:, 0], *(one.errors for one in believed)])

    @property
    def mean_errors(self) -> FloatArray:
        """The mean of each: of the answers, and of all steps for the estimates."""
        # Where nothing was answered there is no error of an answer; `nanmean` would warn of it.
        errors = self.expected_errors
        known = [column[~np.isnan(column)] for column in errors.T]
        return np.array([column.mean() if len(column) else nan for column in known])

    @cached_property
    def statement(self) -> PrivacyStatement:
        """What the releases cost, with the odds that they really moved."""
        statement = self.track.stream.statement()
        # A file may not be all that was said.
        return statement if self.track.budget else replace(statement, besides=None)

    @property
    def is_all(self) -> bool:
        """Whether a book says that nothing else was spent on the person, under no other law."""
        counted = sum((said.epsilon for said in self.track.stream.said), Fraction(0))
        return self.track.budget is not None and self.track.budget.spent == counted

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

    def work_out(self, *, drawn: bool, statement: bool) -> None:
        """Compute what a page will show: of everybody what was given away, more if it is drawn."""
        _ = self.near, drawn and self.packed, statement and self.statement

    @property
    def _steps(self) -> list[int]:
        time, _ = self._from
        return [release.time - time - 1 for release in self.track.releases]

    @property
    def _from(self) -> tuple[int, Belief]:
        """What was known before the answers: the start or, of an adopted law, what was believed."""
        return self.track.stream._said_from

    @cached_property
    def _heard(self) -> list[FloatArray | None]:
        return self.track.stream.observations()

    @cached_property
    def _at_once(self) -> _Believed:
        """What is believed from what was said until then."""
        time, start = self._from
        filtered = self.track.stream.model.filter(self._heard, start=start, time=time)
        return self._believed([filtered[step] for step in self._steps], self.estimates)

    @cached_property
    def _waited(self) -> _Believed:
        """What is believed from what was said until some steps later."""
        time, start = self._from
        late = FixedLag(self.track.stream.model, lag=self.lag, start=start, time=time)
        settled = [one for row in self._heard for one in late.step(row)]
        beliefs = [one.belief for one in (*settled, *late.finish())]
        return self._believed([beliefs[step] for step in self._steps])

    @cached_property
    def _hindsight(self) -> _Hindsight:
        """What is believed from everything, and what that gave away."""
        stream, heard = self.track.stream, self._heard
        time, start = self._from
        seen = stream.model.smooth(heard, start=start, time=time)
        unseen = stream.model.filter([None] * len(heard), start=start, time=time)
        until = stream.said[-1].time - time  # statements are about the time until the last answer
        near = place_person(stream, seen[:until], unseen[:until], heard)
        after, before = ([beliefs[step] for step in self._steps] for beliefs in (seen, unseen))
        share = np.mean([one.probabilities for one in after], axis=0)
        known = self._believed(after)
        return _Hindsight(
            known.points, known.errors, known.packed, near, share, places_given_away(after, before)
        )

    def _believed(self, beliefs: list[Belief], points: FloatArray | None = None) -> _Believed:
        """What a page shows of the belief at each release; `points` if estimates are known."""
        stream, values = self.track.stream, self.track.stream.query.values
        if points is None:
            points = np.array([estimate_of(one, values, stream.estimate) for one in beliefs])
        apart = [mean_distance(values, one, p) for one, p in zip(beliefs, points, strict=True)]
        return _Believed(points, np.array(apart), pack(beliefs))


@dataclass(frozen=True, eq=False)
class _Believed:
    """Beliefs at every release as numbers alone: they themselves are large."""

    points: FloatArray
    errors: FloatArray
    packed: str


@dataclass(frozen=True, eq=False)
class _Hindsight(_Believed):
    near: Whereabouts
    share: FloatArray
    given_away: tuple[GivenAway, ...]


def _noise(step: Protected, epsilon: Fraction) -> tuple[float, float]:
    """The mean distance and the root mean square of an answer, once for all who share its rules."""
    if step.is_lone:
        return 0.0, 0.0  # nothing was drawn
    made: dict[Fraction, tuple[float, float]] = step.__dict__.setdefault("_noise_sizes", {})
    if epsilon not in made:
        mechanism = step.mechanism(epsilon)
        made[epsilon] = mean_noise(mechanism), float(mechanism.mean_squared_error) ** 0.5
    return made[epsilon]
