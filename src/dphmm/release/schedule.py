"""When to speak: from the clock and from what everybody can believe, never from a true state.

At a silent step nothing is drawn, said or spent; the estimate follows from what was said
before. A decision that rests on floats is made here, once; books write it down, and whoever
asks again reads it there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.chain.belief import Belief
from dphmm.chain.markov import Chain
from dphmm.errors import ArgumentError, expect_function, expect_one_of
from dphmm.geometry.exact import Exact, as_epsilon, as_text, seconds, whole
from dphmm.release.hours import find_zone, most_within, slots_within, times_of_day

__all__ = [
    "SILENCE",
    "Schedule",
    "allowed_at",
    "expected_error",
    "fills_gaps",
    "holds",
    "mean_distance",
    "price_of",
    "speaking_people",
]

SILENCE = (
    "Nothing was said at this step: the estimate follows from earlier answers and the model alone."
)
"""The statement of a silent step."""

NEVER = -(2**62)
"""The slot of the last answer of somebody who had none, in an array of slots."""

GAPS = ("skip", "answer")
LONGEST_WINDOW = 10**7


@dataclass(frozen=True)
class Schedule:
    """When to speak and at what price; all conditions that are given must hold.

    Args:
        every: Speak at slots that are multiples of so many steps, or of a duration such as "2 h".
        phase: So many steps, or so long, after those multiples.
        hours: Speak at these times of day, such as "08:00", and in these ranges, such as
            "17:00-19:00", of the zone; slots that begin in a range are in it.
        error: Speak when the estimate's expected distance to the state, in the units of the
            query, would be above this.
        apart: Speak at the earliest so many steps, or so long, after the last answer.
        epsilon: The price of an answer, if not the stream's or the scenario's own.
        gaps: What happens to steps without a row between a person's rows: "skip", or "answer",
            from the last state, so that answers do not say which steps had a row; that a whole
            file was not refused by a limit may.
        step: How long a step is, for durations and hours; a scenario takes it from its clock.
        zone: The place of the hours; UTC by default. A scenario takes it from its clock.

    >>> Schedule(every="2 h", step="5 min").speaks(48)
    True
    >>> Schedule(every=24, apart=36).most_in(288)
    6
    """

    every: int | str = 1
    phase: int | str = 0
    hours: tuple[str, ...] = ()
    error: Exact | None = None
    apart: int | str = 1
    epsilon: Exact | None = None
    gaps: str = "skip"
    step: int | str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        if self.step is not None and not isinstance(self.step, str):
            whole(self.step, "step", 1)
        if self.size is None and self.hours and self.step is not None:
            raise ArgumentError("hours must go with a clock of dates, got one of whole numbers")
        for name, least in (("every", 1), ("phase", None), ("apart", 1)):
            object.__setattr__(self, name, self._steps(name, least))
        if not isinstance(self.hours, (list, tuple)):
            raise ArgumentError(f"hours must be a list of times, got {self.hours!r}")
        for hours in self.hours:
            times_of_day(hours)
        object.__setattr__(self, "hours", tuple(self.hours))
        find_zone(self.zone, "zone")
        for name in ("error", "epsilon"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, as_epsilon(given, name))
        expect_one_of(self.gaps, GAPS, "gaps")

    @property
    def size(self) -> int | None:
        """How many seconds a step is long; None if no clock of dates says so."""
        return seconds(self.step, "step") if isinstance(self.step, str) else None

    def _steps(self, name: str, least: int | None) -> int | str:
        """A number of steps; a duration stays one as long as no clock is known."""
        given = getattr(self, name)
        if not isinstance(given, str):
            return whole(given, name, least)
        length = seconds(given, name)
        if self.step is None:
            return given
        if self.size is None or length % self.size:
            raise ArgumentError(
                f"{name} must be a whole number of the clock's steps, got {given!r}"
            )
        return length // self.size

    def check_bound(self) -> None:
        """Refuse a schedule whose durations and hours have no clock yet."""
        for name in ("every", "phase", "apart"):
            if isinstance(getattr(self, name), str):
                raise ArgumentError(
                    f"{name} must be a number of steps where no clock is known, got "
                    f"{getattr(self, name)!r}; give the schedule a step"
                )
        if self.hours and self.size is None:
            raise ArgumentError("hours must go with a step such as '5 min', got none")

    @property
    def law(self) -> str:
        """What of it shapes a stream, as a text for the law; empty if it always speaks."""
        every = int(self.every)
        error = None if self.error is None else str(self.error)
        parts = [every, int(self.phase) % every, self.hours, error, int(self.apart), self.gaps]
        if parts == [1, 0, (), None, 1, "skip"]:
            return ""
        return json.dumps([*parts, [self.size, self.zone] if self.hours else None])

    @property
    def is_by_clock(self) -> bool:
        """Whether the clock alone decides, whatever was said before."""
        return self.apart == 1 and self.error is None

    def speaks(
        self, time: int, spoke: int | None = None, error: Callable[[], float] | None = None
    ) -> bool:
        """Whether it speaks at a slot.

        Args:
            time: The slot.
            spoke: The slot of the last answer; None before the first.
            error: Gives the expected distance of the estimate there, if nothing is said; without
                it a schedule that asks for it is silent.
        """
        self.check_bound()
        time = whole(time, "time", None)
        spoke = None if spoke is None else whole(spoke, "spoke", None)
        if error is not None:
            expect_function(error, "error")
        return bool(allowed_at(self, np.array([time]))[0]) and holds(self, time, spoke, error)

    def most_in(self, steps: int) -> int:
        """The most answers in any so many consecutive steps, in any year.

        With `error` there may be fewer, and where clocks change within steps longer than a day.

        Args:
            steps: The length of the window.
        """
        self.check_bound()
        steps = whole(steps, "steps", 1)
        if steps > LONGEST_WINDOW:
            raise ArgumentError(f"steps must be at most {LONGEST_WINDOW}, got {steps!r}")
        every = int(self.every)
        between = every * -(-int(self.apart) // every)
        most = -(-steps // between)
        if self.hours and self.size is not None:
            rhythm = every, int(self.phase)
            most = min(most, most_within(steps, self.hours, self.size, self.zone, *rhythm))
        return most

    def __str__(self) -> str:
        parts = []
        if self.every != 1:
            shift = f" from {_length(self.phase)} on" if self.phase else ""
            parts.append(f"every {_length(self.every)}{shift}")
        if self.hours:
            parts.append(f"at {', '.join(self.hours)} ({self.zone or 'UTC'})")
        if self.error is not None:
            bound = as_text(as_epsilon(self.error))
            parts.append(f"when the expected error is above {bound}")
        if self.apart != 1:
            parts.append(f"at least {_length(self.apart)} apart")
        return ", ".join(parts) or "every step"


def _length(steps: int | str) -> str:
    return steps if isinstance(steps, str) else f"{steps} steps"


def price_of(schedule: Schedule | None, epsilon: Fraction) -> Fraction:
    """The price of an answer: the schedule's own, or the one given."""
    if schedule is None or schedule.epsilon is None:
        return epsilon
    return as_epsilon(schedule.epsilon)


def fills_gaps(schedule: Schedule | None) -> bool:
    """Whether steps without a row are answered too."""
    return schedule is not None and schedule.gaps == "answer"


def allowed_at(schedule: Schedule, slots: IntArray) -> Mask:
    """At which slots the clock allows it to speak."""
    every = int(schedule.every)
    allowed = slots % every == int(schedule.phase) % every
    if schedule.hours and schedule.size is not None:
        found = np.flatnonzero(allowed)
        allowed[found] = slots_within(slots[found], schedule.hours, schedule.size, schedule.zone)
    return np.asarray(allowed, dtype=bool)


def holds(
    schedule: Schedule, time: int, spoke: int | None, error: Callable[[], float] | None
) -> bool:
    """Whether what was said before allows it to speak: the one place where this is decided."""
    if spoke is not None and time - spoke < int(schedule.apart):
        return False
    # A comparison of the very float with the very fraction: nothing is rounded.
    return schedule.error is None or (error is not None and error() > as_epsilon(schedule.error))


def mean_distance(values: FloatArray, belief: Belief, point: FloatArray) -> float:
    """How far the state is from a point, on average over a belief."""
    return float(belief.probabilities @ np.sqrt(((values - point) ** 2).sum(axis=1)))


def expected_error(model: Chain, belief: Belief, values: FloatArray) -> float:
    """How far the place is from the mean of what is believed, on average.

    Of the mean, whatever stands for a belief elsewhere: an estimate is no part of the law.
    """
    places = model.place_belief(belief)
    return mean_distance(values, places, places.mean(values))


def speaking_people(
    schedule: Schedule,
    asked: Mask,
    times: IntArray,
    spoke: IntArray,
    error: Callable[[int], float],
) -> Mask:
    """For whom of those who ask it speaks; `error` is the expected error about each of them."""
    speaking = asked & allowed_at(schedule, times)
    for person in np.flatnonzero(speaking).tolist():
        last = None if spoke[person] == NEVER else int(spoke[person])
        speaking[person] = holds(schedule, int(times[person]), last, partial(error, person))
    return speaking
