"""What is looked at, fixed before anything is drawn: events and cells.

K-norm noise has a likelihood ratio of exactly e^(epsilon ||v||) on the cones over the facets
that f(s) - f(s') = v passes through: nowhere is a violation easier to see. A staircase has it
there too if the norm is whole, and elsewhere where it carries an answer over a border more.
Half-open cones also cut the whole lattice into cells whose probabilities are known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, frexp, inf, log

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, Mask
from dphmm.audit.sampler import Answers, Checked
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import exact_product
from dphmm.noise.cones import MAX_SUMMED, Fan, fan_of

__all__ = ["Cells", "Cones", "Event", "chosen_edges", "fine_events", "ratio_events"]

MAX_EDGES = 8
"""Edges that are audited, each in both directions."""

MIN_EXPECTED = 400
"""Draws that every cell expects: the variance of chi-square is then right to 0.2%."""

MAX_CELLS = 20_000
"""Cells before those that expect too little are put together."""

FINEST = 53
"""Bits of a float's mantissa."""


@dataclass(frozen=True, eq=False)
class Event:
    """A set of answers that one state may give e^epsilon times as often as another, not more."""

    state: int
    other: int
    what: str
    holds: Callable[[Answers], Mask]
    share: float | None = None
    """Its claimed probability for `state`, if that is known."""


@dataclass(frozen=True, eq=False)
class Cones:
    """The half-open cones of a body, and where noise falls among them."""

    body: SensitivityHull
    gamma: Fraction | None = None
    """Of staircase noise."""

    @property
    def fan(self) -> Fan:
        """The checked fan of the body."""
        return fan_of(self.body, self.gamma)

    def layers(self, noise: Answers, numbers: Iterable[int]) -> Iterator[tuple[Mask, Answers]]:
        """For some cones the noise that each holds, and its coordinates there times the volume."""
        inside, spanned = self._inside(noise)
        for number in numbers:
            cone = self.fan.cones[number]
            layers = _times(inside, np.array(cone.adjugate, dtype=object))
            held = (layers >= np.array(cone.strict, dtype=np.int64)).all(axis=1)
            yield np.asarray(held & spanned, dtype=bool), layers

    def facing(self, vector: IntArray) -> list[int]:
        """The cones over the facets that a vector's direction passes through."""
        norm = self.body.lattice_norm(vector)
        (inside,) = exact_product(vector[None, :], self.body.transform[:, : self.body.rank])
        facing = []
        for number, cone in enumerate(self.fan.cones):
            layers = [
                sum(int(inside[i]) * cone.adjugate[i][j] for i in range(self.body.rank))
                for j in range(self.body.rank)
            ]
            # The sum of coordinates is the facet's linear function: it is the norm on this facet.
            if Fraction(sum(layers), cone.volume) == norm:
                facing.append(number)
        return facing

    def _inside(self, noise: Answers) -> tuple[Answers, Mask]:
        moved = _times(noise, self.body.transform)
        rest = moved[:, self.body.rank :]
        return moved[:, : self.body.rank], np.asarray(~(rest != 0).any(axis=1), dtype=bool)


def _times(rows: Answers, matrix: Answers) -> Answers:
    """A product that is exact for integers, and a float's best for floats."""
    if rows.dtype.kind == "f":
        return rows @ matrix.astype(np.float64)
    return exact_product(rows, matrix)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the lattice around a state, with exact probabilities: one is `rest`.

    A cell is a cone and, along each of its sides, a bin of half a layer; what lies beyond
    `depth` layers counts as the last.
    """

    cones: Cones
    epsilon: float
    bins: int
    depth: int
    kept: IntArray
    """The numbers of the cells that stand alone; all others are the rest."""
    probabilities: FloatArray
    """Of the kept cells and of the rest, which is last."""

    @classmethod
    def of(cls, cones: Cones, epsilon: float, draws: int) -> Cells | None:
        """Cells that expect enough of some draws; None if there are fewer than two."""
        if not cones.fan.cones:
            return None
        rank, number = cones.body.rank, len(cones.fan.cones)
        summed = sum(cone.volume for cone in cones.fan.cones) <= MAX_SUMMED
        bins = 2 if summed and number * 2**rank <= MAX_CELLS else 1
        deepest = max(0, floor(log(max(1.0, draws / MIN_EXPECTED)) / epsilon))
        room = floor((MAX_CELLS / number) ** (1 / rank) / bins) - 1
        depth = max(0, min(deepest, room))
        every = _cell_probabilities(cones.fan, epsilon, bins, depth)
        kept = np.flatnonzero(every * draws >= MIN_EXPECTED)
        rest = 1 - every[kept].sum()
        if rest * draws < MIN_EXPECTED and len(kept):
            kept = np.delete(kept, np.argmin(every[kept]))
        if not len(kept):
            return None
        return cls(cones, epsilon, bins, depth, kept, _with_rest(every, kept))

    def under(self, epsilon: float, shares: FloatArray | None = None) -> FloatArray:
        """The probabilities of the same cells under another epsilon or other cone shares."""
        every = _cell_probabilities(self.cones.fan, epsilon, self.bins, self.depth, shares)
        return _with_rest(every, self.kept)

    def counts(self, noise: Answers) -> IntArray:
        """How much of some noise fell into each kept cell, and into the rest."""
        side = self.bins * (self.depth + 1)
        size = side**self.cones.body.rank
        numbers = np.full(len(noise), -1, dtype=np.int64)
        every_cone = range(len(self.cones.fan.cones))
        for number, (held, layers) in enumerate(self.cones.layers(noise, every_cone)):
            cone = self.cones.fan.cones[number]
            place = np.zeros(int(held.sum()), dtype=np.int64)
            for j, strict in enumerate(cone.strict):
                layer = layers[held, j] - int(strict)
                whole = np.floor_divide(layer, cone.volume)
                part = np.floor_divide((layer - whole * cone.volume) * self.bins, cone.volume)
                capped = np.minimum(whole, self.depth).astype(np.int64)
                place = place * side + capped * self.bins + part.astype(np.int64)
            numbers[held] = number * size + place
        every = np.bincount(numbers[numbers >= 0], minlength=len(self.cones.fan.cones) * size)
        alone = every[self.kept]
        return np.append(alone, len(noise) - alone.sum())


def _with_rest(every: FloatArray, kept: IntArray) -> FloatArray:
    return np.append(every[kept], max(0.0, 1 - every[kept].sum()))


def _cell_probabilities(
    fan: Fan, epsilon: float, bins: int, depth: int, shares: FloatArray | None = None
) -> FloatArray:
    """The probability of every cell: its cone, its bins, and geometric layers along each side."""
    if shares is None:
        shares = fan.masses(epsilon)
    decay = exp(-epsilon)
    layers = np.array([(1 - decay) * decay**m for m in range(depth)] + [decay**depth])
    parts = []
    rank = fan.body.rank
    for number, share in enumerate(shares):
        within = _within_cell(fan, number, epsilon, bins).reshape((bins,) * rank)
        cells = within / within.sum() * share
        for axis in range(rank):
            # Each side's bins become layers times bins.
            cells = np.moveaxis(cells, axis, -1)
            cells = (layers[:, None] * cells[..., None, :]).reshape(*cells.shape[:-1], -1)
            cells = np.moveaxis(cells, -1, axis)
        parts.append(cells.ravel())
    return np.concatenate(parts)


def _within_cell(fan: Fan, number: int, epsilon: float, bins: int) -> FloatArray:
    if bins == 1:
        return np.ones(1)
    sums: FloatArray = kernels.cells.binned(*fan.cell(number), epsilon, bins)
    return sums


def chosen_edges(claim: Checked) -> IntArray:
    """The edges to audit: different differences first, those of the largest claimed loss first."""
    vectors = claim.points[claim.edges[:, 0]] - claim.points[claim.edges[:, 1]]
    norms = np.ones(len(vectors))
    if claim.body is not None and claim.moments == 1:
        norms = claim.body.lattice_norms(vectors)
    _, first = np.unique(vectors, axis=0, return_index=True)
    fresh = np.zeros(len(vectors), dtype=bool)
    fresh[first] = True
    order = np.lexsort((np.arange(len(vectors)), -norms, ~fresh))
    return claim.edges[np.sort(order[:MAX_EDGES])]


def ratio_events(claim: Checked, edges: IntArray) -> list[Event]:
    """For both directions of each edge the events where the claimed ratio is largest."""
    ordered = [(int(a), int(b)) for pair in edges for a, b in (pair, pair[::-1])]
    if claim.body is None or claim.moments > 1:
        return [event for a, b in ordered for event in _half_spaces(claim.points, a, b)]
    cones = Cones(claim.body, claim.gamma)
    return [_cone_event(claim, cones, a, b) for a, b in ordered]


def _cone_event(claim: Checked, cones: Cones, state: int, other: int) -> Event:
    """The cones behind a state as seen from another, where nothing else is likelier."""
    point = claim.points[state]
    away = point - claim.points[other]
    norm, facing = cones.body.lattice_norm(away), cones.facing(away)
    shares = cones.fan.masses(float(claim.epsilon)) if cones.fan.cones else np.ones(0)
    everywhere = claim.gamma is None or norm in (floor(norm), inf)

    def holds(answers: Answers) -> Mask:
        held = np.zeros(len(answers), dtype=bool)
        for inside, _ in cones.layers(answers - point, facing):
            held |= inside
        if not everywhere:
            noise = answers - point
            held &= claim.exponents(noise + away) - claim.exponents(noise) >= ceil(norm)
        return held

    what = f"answers in the cones behind {state}, given {state} and {other}"
    return Event(state, other, what, holds, float(shares[facing].sum()) if everywhere else None)


def _half_spaces(points: Answers, state: int, other: int) -> list[Event]:
    """The half-spaces behind a state as seen from another: straight, and along each axis."""
    away = (points[state] - points[other]).astype(np.float64)
    directions = [
        away,
        *(np.where(np.arange(len(away)) == axis, away, 0.0) for axis in range(len(away))),
    ]
    events, seen = [], set()
    for direction in directions:
        size = float(np.abs(direction).max(initial=0.0))
        name = tuple((direction / size).tolist()) if size else ()
        if not size or name in seen:
            continue
        seen.add(name)
        events.append(_half_space(points[state], direction, state, other))
    return events


def _half_space(point: Answers, direction: FloatArray, state: int, other: int) -> Event:
    def holds(answers: Answers) -> Mask:
        return np.asarray((answers - point) @ direction >= 0, dtype=bool)

    text = ", ".join(f"{entry:g}" for entry in direction)
    what = f"answers beyond {state} along ({text}), given {state} and {other}"
    return Event(state, other, what, holds)


def fine_events(claim: Checked, edges: IntArray) -> list[Event]:
    """Answers with bits that a float near one state has room for and near another has not.

    If the other answer x lies in [2^k, 2^(k+1)), a float of about -x added to it is a multiple
    of 2^(k-53); a state closer to zero has noise with finer bits there.
    """
    events = []
    for pair in edges:
        for state, other in (pair.tolist(), pair[::-1].tolist()):
            near, far = np.abs(claim.points[state]), np.abs(claim.points[other])
            for axis in np.flatnonzero(near < far).tolist():
                exponent = frexp(float(far[axis]))[1] - 1
                if near[axis] < 2.0**exponent:
                    events.append(_fine_event(state, other, axis, exponent))
    return events


def _fine_event(state: int, other: int, axis: int, exponent: int) -> Event:
    def holds(answers: Answers) -> Mask:
        entries = answers[:, axis].astype(np.float64)
        fine = np.ldexp(entries, FINEST - exponent) % 1 != 0
        return np.asarray((np.abs(entries) < 2.0 ** (exponent - 1)) & fine, dtype=bool)

    what = f"bits below 2^{exponent - FINEST} in coordinate {axis}, given {state} and {other}"
    return Event(state, other, what, holds)
