"""What anybody can work out about a track: its price, and how uncertain each position stays."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.cost import PrivacyStatement
from dphmm.geometry.exact import as_text
from dphmm.scenario.released import Track

__all__ = ["TrackFacts", "cannot_learn", "mean_distance"]


def mean_distance(values: FloatArray, belief: Belief, point: FloatArray) -> float:
    """How far the state is from a point, on average over a belief."""
    return float(belief.probabilities @ np.sqrt(((values - point) ** 2).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class TrackFacts:
    """The public side of one person's releases."""

    track: Track

    @cached_property
    def answers(self) -> FloatArray:
        """What was said, one row a release."""
        return np.array([release.answer for release in self.track.releases])

    @cached_property
    def estimates(self) -> FloatArray:
        """The estimate at each release, from what was said until then."""
        return np.array([release.estimate for release in self.track.releases])

    @cached_property
    def smoothed(self) -> FloatArray:
        """The estimate at each release, from everything said."""
        values = self.track.stream.query.values
        return np.array([self._seen[step].mean(values) for step in self._steps])

    @cached_property
    def expected_errors(self) -> FloatArray:
        """The expected distance of answer, estimate and smoothed estimate, one row a release.

        By the model: what a reader without the truth can say. The first is the root of the
        mean squared error of the noise.
        """
        values = self.track.stream.query.values
        stream = self.track.stream
        filtered = stream.model.filter(self._observations, start=stream.start, time=stream.began)
        return np.array(
            [
                (
                    float(step.mechanism(release.epsilon).mean_squared_error) ** 0.5,
                    mean_distance(values, filtered[place], release.estimate),
                    mean_distance(values, self._seen[place], self.smoothed[number]),
                )
                for number, (place, release, step) in enumerate(
                    zip(self._steps, self.track.releases, self.track.protected, strict=True)
                )
            ]
        )

    @cached_property
    def statement(self) -> PrivacyStatement:
        """What the releases cost, with the odds that they really moved."""
        return self.track.stream.statement()

    @property
    def _steps(self) -> list[int]:
        began = self.track.stream.began
        return [release.time - began - 1 for release in self.track.releases]

    @cached_property
    def _observations(self) -> list[FloatArray | None]:
        return self.track.stream.observations()

    @cached_property
    def _seen(self) -> list[Belief]:
        return self.track.stream.smooth()


def cannot_learn(epsilon: Fraction, what: str) -> str:
    """The promise of one answer about two linked states, with an example in numbers.

    >>> cannot_learn(Fraction(1), "places")
    'From one answer nobody can tell two linked places apart with confidence: odds of 1 to 1 \
become at most 2.7 to 1 (epsilon 1), whatever else is known about the person.'
    """
    price = float(epsilon)
    odds = f"{exp(price):.2g}" if price < 12 else f"e^{price:g}"
    return (
        f"From one answer nobody can tell two linked {what} apart with confidence: odds of "
        f"1 to 1 become at most {odds} to 1 (epsilon {as_text(epsilon)}), whatever else is known "
        f"about the person."
    )
