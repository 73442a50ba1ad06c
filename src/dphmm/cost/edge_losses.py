"""How much one answer tells of two linked states: the law of the loss over its noise.

For two states whose answers differ by v the loss of an answer is epsilon (||x + v|| - ||x||), or
the same of a staircase's layers, with x the noise. A cone's lattice points are taken in blocks
with exact weights; within a cone the loss never grows along a generator, so the lowest corner
of a block bounds it, and the last block is endless without an error. What comes out is never
too small, at any epsilon: curves of several edges are joined by their pointwise maximum.
"""

from __future__ import annotations

from math import exp, expm1, gcd

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, ObjectArray
from dphmm.errors import ArgumentError
from dphmm.geometry.lattice import exact_product
from dphmm.noise.cones import MAX_SUMMED, Fan, fan_of
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.graph import PolicyGraph

__all__ = ["HALF", "edge_curve", "edge_differences", "pure_curve"]

HALF = 32
"""Entries of a table of losses between 0 and epsilon."""

BLOCKS = 2**18
"""Blocks of lattice points that are looked at for each edge."""

LAYERS = 32
"""Parts by which the norms within a block of a staircase are told apart."""

MOST_EDGES = 48
"""Differences that are looked at; more are gathered around so many of them."""

FAR = 40.0
"""Beyond so many nats the blocks are endless: e^-40 of the noise lies there."""


def pure_curve(epsilon: float, entries: FloatArray) -> FloatArray:
    """The curve that no mechanism of this epsilon passes: randomised response."""
    return np.clip((exp(epsilon) - np.exp(entries)) / (1 + exp(epsilon)), 0, None)


def edge_differences(mechanism: Mechanism, policy: PolicyGraph) -> ObjectArray:
    """The differences of a policy's edges on the lattice, the longest of every direction.

    One of v and -v, because the body is symmetric. Along a lattice line K-norm weights are
    log-concave and a staircase's layers are intervals, so a longer shift tells more at every
    epsilon than a shorter one in the same direction.

    Args:
        mechanism: The noise; every difference must lie in its body.
        policy: The edges.
    """
    points = mechanism.query.points
    differences = points[policy.edges[:, 0]] - points[policy.edges[:, 1]]
    if not mechanism.body.lattice_contains(differences).all():
        raise ArgumentError("policy must link only states that the body hides, got another edge")
    signs = np.ones(len(differences), dtype=np.int64)
    for column in differences.T[::-1]:
        signs = np.where(column != 0, np.sign(column).astype(np.int64), signs)
    longest: dict[tuple[int, ...], int] = {}
    for vector in np.unique(differences * signs[:, None], axis=0).tolist():
        length = gcd(*vector)
        if length:
            direction = tuple(x // length for x in vector)
            longest[direction] = max(length, longest.get(direction, 0))
    found = [[length * x for x in direction] for direction, length in longest.items()]
    return np.array(found, dtype=object).reshape(-1, points.shape[1])


def edge_curve(mechanism: Mechanism, differences: ObjectArray) -> FloatArray:
    """The largest hockey-stick divergence over the edges at -epsilon, ..., epsilon, or more.

    Entry i is no less than max over edges of sum (P(z | s) - e^a P(z | s'))_+ at
    a = epsilon (i - HALF) / HALF. Bodies with more than 2**25 cosets, and those that need too
    many blocks, get randomised response.

    Args:
        mechanism: The noise.
        differences: (m, d) those of linked states, in steps of the lattice.
    """
    epsilon, body = float(mechanism.epsilon), mechanism.body
    entries = epsilon * np.arange(-HALF, HALF + 1) / HALF
    curve = pure_curve(epsilon, entries)
    if not len(differences):
        return np.clip(-np.expm1(entries), 0, None)
    if sum(body.determinants) > MAX_SUMMED:
        return curve
    fan = fan_of(body, mechanism.gamma)
    layout = _layout(fan, epsilon)
    if layout is None:
        return curve
    blocks = _Blocks(mechanism, fan, *layout)
    inside = exact_product(differences, body.transform)[:, : body.rank]
    chosen, around = _gathered(blocks.heights(inside))
    found = np.zeros_like(curve)
    for height in chosen:
        found = np.maximum(found, _curve(blocks.losses(height, around), entries))
    return _convex(np.minimum(curve, found), np.exp(entries))


class _Blocks:
    """The lattice of some noise in blocks, with their weights."""

    def __init__(self, mechanism: Mechanism, fan: Fan, starts: IntArray, bins: int) -> None:
        body = mechanism.body
        self.epsilon = float(mechanism.epsilon)
        gamma = mechanism.gamma
        self.gamma = -1.0 if gamma is None else float(gamma)
        self.normals = body.body.normals
        self.offsets = body.body.offsets.astype(np.float64)
        self.grain = 0.0
        layers = 1 if gamma is None else LAYERS
        self.starts, cones = starts, fan.cones
        largest_cell = max(cone.volume for cone in cones)
        if gamma is not None:
            self.grain = 1 / float(gamma.denominator * largest_cell * self.offsets.max())
        widths = np.append(np.diff(self.starts), np.inf)
        decay = np.exp(-self.epsilon * self.starts)
        self.weights = decay * np.expm1(-self.epsilon * widths) / expm1(-self.epsilon)
        self.cones = []
        for number, cone in enumerate(cones):
            edges = _edges(cone.volume, bins, self.epsilon)
            masses = kernels.losses.cell_masses(*fan.cell(number), edges, layers, self.epsilon)
            generators = self.heights(np.array(cone.generators, dtype=object))
            cell = masses, edges, np.array(cone.strict), cone.volume
            self.cones.append((*cell, np.ascontiguousarray(generators.T)))
        cells = sum(float(masses.sum()) for masses, *_ in self.cones)
        total = cells * (1 / -expm1(-self.epsilon)) ** body.rank
        blocks = sum(np.count_nonzero(masses.any(axis=1)) for masses, *_ in self.cones)
        terms = largest_cell + len(cones) + blocks * layers * len(self.starts) ** body.rank
        # Sums of so many terms, none negative, are rounded by less than this part.
        rounding = 1 + 2.0**-51 * (terms + 1000)
        for masses, *_ in self.cones:
            masses *= rounding / total

    def heights(self, vectors: ObjectArray) -> FloatArray:
        """The heights of vectors of the span over the facets, over their offsets."""
        return exact_product(vectors, self.normals.T).astype(np.float64) / self.offsets

    def losses(self, height: FloatArray, around: float) -> FloatArray:
        """The masses of the losses of the edge with these heights, and of those around it."""
        table = np.zeros(2 * HALF + 1)
        for cone in self.cones:
            kernels.losses.tabulate(
                *cone,
                height,
                self.starts,
                self.weights,
                around,
                self.epsilon,
                self.gamma,
                self.grain,
                table,
            )
        return table


def _edges(volume: int, bins: int, epsilon: float) -> IntArray:
    """Where the blocks of a cell begin: all alike in the weight of their noise, or a point each."""
    if bins >= volume:
        return np.arange(volume + 1)
    shares = np.linspace(0, 1, bins + 1)
    places = -np.log1p(shares * expm1(-epsilon)) / epsilon
    return np.unique(np.append(np.floor(places[:-1] * volume), volume).astype(np.int64))


def _layout(fan: Fan, epsilon: float) -> tuple[IntArray, int] | None:
    """The ranges of multiples, and in how many blocks to cut an axis; None if all are too many."""
    rank, largest = fan.body.rank, max(cone.volume for cone in fan.cones)
    for growth in (16, 8, 4, 2, 1):
        starts = _ranges(FAR / epsilon, growth)
        blocks = len(fan.cones) * len(starts) ** rank
        room = (BLOCKS / blocks) ** (1 / rank)
        if room >= largest:
            break
    bins = max(2, int(room))
    return (starts, bins) if blocks * min(bins**rank, largest) <= 4 * BLOCKS else None


def _ranges(far: float, growth: int) -> IntArray:
    """The first multiple of every range, the last endless; each grows by 1/growth of its start."""
    starts = [0]
    while starts[-1] < far:
        starts.append(starts[-1] + max(1, starts[-1] // growth))
    return np.array(starts, dtype=np.int64)


def _gathered(heights: FloatArray) -> tuple[FloatArray, float]:
    """A few of the differences, and how far the others are from the nearest in norm."""
    if len(heights) <= MOST_EDGES:
        return heights, 0.0
    chosen = [int(np.abs(heights).max(axis=1).argmax())]
    apart = np.full(len(heights), np.inf)
    while len(chosen) < MOST_EDGES:
        one = heights[chosen[-1]]
        nearer = np.minimum(np.abs(heights - one).max(axis=1), np.abs(heights + one).max(axis=1))
        apart = np.minimum(apart, nearer)
        chosen.append(int(apart.argmax()))
    return heights[chosen], float(apart.max()) + 1e-12


def _curve(table: FloatArray, entries: FloatArray) -> FloatArray:
    """The divergence at every entry of a table of losses."""
    # No term is negative, so the sums lose no digits.
    above = np.minimum(entries[:, None] - entries, 0.0)
    told: FloatArray = -np.expm1(above) @ table
    return told


def _convex(curve: FloatArray, odds: FloatArray) -> FloatArray:
    """The largest curve below this one that is convex in the odds, as divergences are."""
    kept: list[int] = []
    for i in range(len(odds)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            rise = (curve[b] - curve[a]) * (odds[i] - odds[a])
            if rise < (curve[i] - curve[a]) * (odds[b] - odds[a]):
                break
            kept.pop()
        kept.append(i)
    return np.interp(odds, odds[kept], curve[kept])
