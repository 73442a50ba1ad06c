"""How near to somebody a reader of the answers comes, in words that need no mathematics.

All of it is worked out from public things: the model, and the beliefs that follow from what was
said. It is what somebody can tell who knows nothing else; whoever knows more may tell more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray
from dphmm.cost.words import EARLIER, show_share
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.states import as_floats

__all__ = ["Surroundings", "Whereabouts", "whereabouts"]

SHARE = 0.5
"""The part of a belief that must lie within a radius."""

PERIODS = (("at night", 0), ("in the morning", 6), ("in the afternoon", 12), ("in the evening", 18))
"""The parts of a day, each with the hour at which it begins."""

CENTRES = 3
"""The likeliest states that are tried as the middle of a circle, beside two means."""

FEW = 64
"""The likeliest states that are sorted first: most beliefs have half of their weight there."""

BINS = 1024
"""How finely distances are told apart before some of them are sorted."""

MOST = 2**18
"""States times steps that are looked at for a radius; of more steps evenly spaced ones are."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a scenario knows about its states that a stream does not; all of it public."""

    places: FloatArray | None
    """(n, d) where every state is, None if states are no places."""
    unit: str = ""
    """What distances between places are measured in."""
    hour_of: Callable[[int], float | None] | None = None
    """The hour of the day of a slot, None where the clock has none."""
    zone: str = ""
    """What to write behind hours: nothing at the place's own clock."""


@dataclass(frozen=True)
class Whereabouts:
    """How near somebody comes who knows only the published model and the answers."""

    radii: tuple[tuple[str, float], ...]
    """For each part of the day the radius around the best guess that holds half of the belief."""
    before: float
    """The same at all times, for somebody who has not seen an answer."""
    home: float | None
    """The same for the one place of all nights, by somebody who takes it that there is one."""
    guess: float
    """How probable the likeliest state is, on average."""
    guess_before: float
    """The same without an answer."""
    unit: str = ""
    """The unit of the radii."""
    zone: str = ""
    """What to write behind hours."""
    has_places: bool = True
    """Whether states are places at all."""
    heard: bool = False
    """Whether they know what was said before, too; `before` and `guess_before` are then with it."""

    def text(self, person: str = "") -> str:
        """A sentence for everybody, with its condition.

        Args:
            person: Whom it is about; by default the one who reads it.
        """
        expect(person, str, "person")
        you, your = (person, f"{person}'s") if person else ("you", "your")
        model = f"the published model{f', {EARLIER}' if self.heard else ''}"
        if not self.has_places:
            return (
                f"Somebody who knows only {model} and these answers names {your} state "
                f"rightly with probability {show_share(self.guess)} on average, by the model's "
                f"reckoning; without the answers {show_share(self.guess_before)}. Whoever knows "
                f"more can do better."
            )
        near = ", ".join(f"{self._length(radius)} {when}".strip() for when, radius in self.radii)
        hours = f" (hours in {self.zone})" if self.zone and self.radii[0][0] else ""
        home = ""
        if self.home is not None:
            to = f"to ±{self._length(self.home)}" if self.home else "exactly"
            nights = "they spend their nights" if person else "you spend your nights"
            home = f", and, taking it that {nights} at one place, that place {to}"
        return (
            f"Somebody who knows only {model} and these answers can place {you} within "
            f"{near}{hours}{home}; without the answers within {self._length(self.before)}. Half "
            f"of the model's probability lies so near; whoever knows more can do better."
        )

    def _length(self, radius: float) -> str:
        """A length in two digits, no more than it is; kilometres of long ones in metres."""
        if not radius:
            return "one place of the map"
        if self.unit == "m" and radius >= 1000:
            return f"{_rounded(radius / 1000):g} km"
        return f"{_rounded(radius):g} {self.unit or 'units'}"


def whereabouts(
    beliefs: ArrayLike,
    prior: ArrayLike,
    places: ArrayLike | None,
    *,
    hours: Sequence[float | None] | None = None,
    heard: Sequence[FloatArray | None] = (),
    unit: str = "",
    zone: str = "",
) -> Whereabouts:
    """How near to somebody a reader comes, from beliefs about each step; all of it is public.

    A radius is the smallest, around the best guess of each step, that holds half of the belief
    on average over the steps of a part of the day.

    Args:
        beliefs: (T, n) the probabilities of the states at each step, given all answers.
        prior: The same without any answer.
        places: (n, d) where every state is; None if states are no places.
        hours: The hour of the day of each step, from 0 to 24; None if there is none.
        heard: For each step the log-likelihood of its answers in every state, None without one.
            With these and hours, home is looked for: the one place of all nights.
        unit: What places are measured in.
        zone: What to write behind hours; nothing at the place's own clock.

    >>> line = [[0.0], [100.0], [200.0], [5000.0]]
    >>> told = whereabouts([[0.3, 0.4, 0.3, 0.0]], [[0.25] * 4], line, unit="m")
    >>> told.radii, told.before
    ((('', 50.0),), 50.0)
    """
    after, before = as_floats(beliefs, "beliefs"), as_floats(prior, "prior")
    if after.ndim != 2 or not after.size:
        raise ArgumentError(f"beliefs must have a row for each step, got shape {after.shape}")
    for name, text in (("unit", unit), ("zone", zone)):
        expect(text, str, name)
    if hours is not None:
        _check_steps(hours, (), "hours")
    _check_steps(heard, after.shape[1:], "heard")
    if after.shape != before.shape:
        raise ArgumentError(
            f"beliefs must have the shape of prior, got {after.shape} and {before.shape}"
        )
    guesses = float(after.max(axis=1).mean()), float(before.max(axis=1).mean())
    if places is None:
        return Whereabouts((), 0.0, None, *guesses, unit, zone, has_places=False)
    points = as_floats(places, "places")
    if points.ndim != 2 or len(points) != after.shape[1]:
        raise ArgumentError(
            f"places must have a row for each of {after.shape[1]} states, got shape {points.shape}"
        )
    parts = _parts(hours, len(after))
    radii = tuple((when, _radius(after[steps], points)) for when, steps in parts)
    nights = dict(parts).get(PERIODS[0][0])
    home = None if nights is None else _home(before, heard, nights)
    held = None if home is None else _radius(home[None, :], points)
    return Whereabouts(radii, _radius(before, points), held, *guesses, unit, zone)


def _check_steps(entries: Sequence[ArrayLike | None], shape: tuple[int, ...], name: str) -> None:
    """Refuse what is no sequence of such arrays, or of None."""
    plain = isinstance(entries, Sequence) and not isinstance(entries, (str, bytes))
    if not plain or any(one is not None and as_floats(one, name).shape != shape for one in entries):
        raise ArgumentError(f"{name} must have an entry of shape {shape} for each step, or None")


def _parts(hours: Sequence[float | None] | None, count: int) -> list[tuple[str, IntArray]]:
    """The parts of the day that there are, each with its steps; one without a name otherwise."""
    if hours is None or None in hours:
        return [("", np.arange(count))]
    begins = [begin for _, begin in PERIODS]
    part = np.searchsorted(begins, np.array(hours, dtype=float) % 24, side="right") - 1
    found = [(when, np.flatnonzero(part == number)) for number, (when, _) in enumerate(PERIODS)]
    return [(when, steps) for when, steps in found if len(steps)]


def _radius(beliefs: FloatArray, points: FloatArray) -> float:
    """The radius around each belief's best guess that holds half of them on average."""
    looked = beliefs[:: -(-beliefs.size // MOST)]
    sizes = (points**2).sum(axis=1)
    distances = np.empty(looked.shape)
    for row, belief in zip(distances, looked, strict=True):
        apart = points - _best_guess(belief, points, sizes)
        np.sqrt((apart**2).sum(axis=1), out=row)
    return _quantile(distances.ravel(), looked.ravel())


def _best_guess(belief: FloatArray, points: FloatArray, sizes: FloatArray) -> FloatArray:
    """The middle of the smallest circle with half of a belief, of the few that are tried."""
    order, half = _sort_likeliest(belief)
    means = [belief @ points, points[order[:half]].mean(axis=0)]
    centres = np.concatenate([means, points[order[:CENTRES]]])
    # Squares will do to choose by, and a product of matrices is quick.
    squares = sizes - 2 * centres @ points.T + (centres**2).sum(axis=1)[:, None]
    share = SHARE * float(belief.sum()) * (1 - 1e-12)
    best, reach = 0, _quantile(squares[0], belief)
    for number, row in enumerate(squares[1:], 1):
        # Most centres are out of the question as soon as one is known.
        if float(belief[row < reach].sum()) >= share:
            best, reach = number, _quantile(row, belief)
    return np.asarray(centres[best])


def _sort_likeliest(belief: FloatArray) -> tuple[IntArray, int]:
    """The likeliest states, the best first and of equals the lowest; how many hold half."""
    count = FEW
    while True:
        least = np.partition(belief, -count)[-count] if count < len(belief) else 0.0
        found = np.flatnonzero(belief >= least)
        order = found[np.argsort(-belief[found], kind="stable")]
        place = int(np.searchsorted(np.cumsum(belief[order]), SHARE))
        if place < len(order) or len(order) == len(belief):
            return order, place + 1
        count *= 8


def _quantile(distances: FloatArray, weights: FloatArray) -> float:
    """The smallest distance within which half of the weight lies."""
    low, high = float(distances.min()), float(distances.max())
    if low == high:
        return low
    # Only those that are about so far are sorted.
    bins = ((distances - low) / (high - low) * BINS).astype(np.intp)
    share = SHARE * float(weights.sum()) * (1 - 1e-12)
    reached = np.cumsum(np.bincount(bins, weights))
    bin_of_it = min(int(np.searchsorted(reached, share)), len(reached) - 1)
    inside = np.flatnonzero(bins == bin_of_it)
    order = inside[np.argsort(distances[inside], kind="stable")]
    before = float(reached[bin_of_it - 1]) if bin_of_it else 0.0
    place = int(np.searchsorted(before + np.cumsum(weights[order]), share))
    return float(distances[order[min(place, len(order) - 1)]])


def _home(
    prior: FloatArray, heard: Sequence[FloatArray | None], nights: IntArray
) -> FloatArray | None:
    """The belief about the one place of all nights, if there is one and nights had answers."""
    logs = [heard[step] for step in nights.tolist() if step < len(heard)]
    told = [row for row in logs if row is not None]
    if not told:
        return None
    with np.errstate(divide="ignore"):
        total = np.log(prior[nights].mean(axis=0)) + np.sum(told, axis=0)
    if not np.isfinite(total).any():
        return None
    weights = np.exp(total - total.max())
    return weights / float(weights.sum())


def _rounded(value: float) -> float:
    """Two digits, rounded down: what is said never makes somebody safer than they are."""
    unit = 10.0 ** (floor(log10(value)) - 1)
    return float(np.floor(value / unit + 1e-9) * unit)
