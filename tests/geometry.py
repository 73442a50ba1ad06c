"""Slow, obvious second ways to the geometry, in Python integers and fractions.

Nothing here comes from the rooms under test. Vectors are tuples of integers; the body is
always the hull of some generators and their negatives.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from math import inf

import numpy as np
from hypothesis import strategies as st
from scipy.spatial import Delaunay


def determinant(rows):
    """By Leibniz: a sum over all permutations."""
    total = 0
    for order in permutations(range(len(rows))):
        inversions = sum(a > b for a, b in combinations(order, 2))
        term = (-1) ** inversions
        for i, j in enumerate(order):
            term *= rows[i][j]
        total += term
    return total


def rank(vectors):
    """The largest size of a minor that is not zero."""
    rows = [tuple(map(int, v)) for v in vectors]
    dimension = len(rows[0]) if rows else 0
    for size in range(min(len(rows), dimension), 0, -1):
        for chosen in combinations(rows, size):
            for axes in combinations(range(dimension), size):
                if determinant([[row[axis] for axis in axes] for row in chosen]):
                    return size
    return 0


def axes_of_span(vectors):
    """Axes onto which the span projects one to one."""
    size = rank(vectors)
    dimension = len(vectors[0])
    for axes in combinations(range(dimension), size):
        if rank([[row[axis] for axis in axes] for row in vectors] or [()]) == size:
            return axes
    raise AssertionError("some minor of the rank's size is not zero")


def unique_generators(vectors):
    """One of v and -v, once, without zeros."""
    chosen = {max(v, tuple(-x for x in v)) for v in (tuple(map(int, v)) for v in vectors)}
    return sorted(v for v in chosen if any(v))


class Body:
    """conv(generators and their negatives), by enumeration."""

    def __init__(self, vectors, dimension):
        self.dimension = dimension
        self.generators = unique_generators(vectors)
        self.rank = rank(self.generators) if self.generators else 0
        self.axes = axes_of_span(self.generators) if self.generators else ()
        flat = [tuple(v[axis] for axis in self.axes) for v in self.generators]
        self.bases = []
        for rows in combinations(flat, self.rank):
            volume = determinant(rows)
            if volume:
                self.bases.append((rows, volume))

    def norm(self, vector):
        """The linear program min sum |c_i| with sum c_i g_i = v, at its best basic solution."""
        vector = tuple(map(int, vector))
        if not any(vector):
            return Fraction(0)
        if not self.generators or rank([*self._basis(), vector]) > self.rank:
            return inf
        target = tuple(vector[axis] for axis in self.axes)
        best = None
        for rows, volume in self.bases:
            # Cramer's rule, one coefficient for each generator of the basis.
            heights = [
                abs(determinant([*rows[:i], target, *rows[i + 1 :]])) for i in range(self.rank)
            ]
            value = Fraction(sum(heights), abs(volume))
            best = value if best is None else min(best, value)
        return best

    def contains(self, vector):
        return self.norm(vector) <= 1

    def corners(self):
        """The generators that the others do not span."""
        found = set()
        for generator in self.generators:
            others = [g for g in self.generators if g != generator]
            if Body(others, self.dimension).norm(generator) > 1:
                found |= {generator, tuple(-x for x in generator)}
        return found

    def facets(self):
        """{(normal, offset)} up to a factor and sign: planes of k corners that support all."""
        flat = [tuple(v[axis] for axis in self.axes) for v in self.generators]
        found = set()
        for rows in combinations(flat, self.rank):
            for signs in product((1, -1), repeat=self.rank - 1):
                corners = [rows[0]] + [
                    tuple(s * x for x in row) for s, row in zip(signs, rows[1:], strict=True)
                ]
                volume = determinant(corners)
                if not volume:
                    continue
                normal = [
                    determinant([[*c[:j], 1, *c[j + 1 :]] for c in corners])
                    for j in range(self.rank)
                ]
                if all(
                    abs(sum(a * x for a, x in zip(normal, g, strict=True))) <= abs(volume)
                    for g in flat
                ):
                    scaled = tuple(Fraction(a, volume) for a in normal)
                    found.add(max(scaled, tuple(-a for a in scaled)))
        return found

    def _basis(self):
        chosen = []
        for generator in self.generators:
            if rank([*chosen, generator]) > len(chosen):
                chosen.append(generator)
        return chosen


def body_of(points, edges, possible=None):
    """The sensitivity hull of Definition 5.1."""
    points = [tuple(map(int, p)) for p in np.asarray(points).tolist()]
    alive = range(len(points)) if possible is None else set(np.flatnonzero(possible).tolist())
    differences = [
        tuple(a - b for a, b in zip(points[i], points[j], strict=True))
        for i, j in np.asarray(edges).reshape(-1, 2).tolist()
        if i in alive and j in alive
    ]
    return Body(differences, len(points[0]))


def degrees(points, edges, possible):
    """DoP of every state, pair by pair."""
    body = body_of(points, edges, possible)
    rows = [tuple(map(int, p)) for p in np.asarray(points).tolist()]
    inside = {}

    def hides(i, j):
        vector = tuple(a - b for a, b in zip(rows[i], rows[j], strict=True))
        key = max(vector, tuple(-x for x in vector))
        if key not in inside:
            inside[key] = body.contains(key)
        return inside[key]

    states = np.flatnonzero(possible).tolist()
    return [sum(hides(i, j) for j in states) if i in states else 0 for i in range(len(rows))]


def volume_and_error(vectors):
    """Volume and E|z|^2 at epsilon 1 from a Delaunay triangulation, in floats."""
    corners = np.array([*vectors, *(tuple(-x for x in v) for v in vectors)], dtype=np.float64)
    _, sizes, directions = np.linalg.svd(corners, full_matrices=False)
    k = int((sizes > 1e-9 * sizes[0]).sum())
    flat = corners @ directions[:k].T
    if k == 1:
        cells = np.array([[[flat.min()], [flat.max()]]])
    else:
        cells = flat[Delaunay(flat).simplices]
    edges = cells[:, 1:] - cells[:, :1]
    volumes = np.abs(np.linalg.det(edges)) / np.prod(np.arange(1, k + 1))
    second = (cells**2).sum(axis=(1, 2)) + (cells.sum(axis=1) ** 2).sum(axis=1)
    moment = (volumes * second).sum() / volumes.sum() / ((k + 1) * (k + 2))
    volume = volumes.sum() if k == corners.shape[1] else 0.0
    return volume, (k + 1) * (k + 2) * moment


def random_case(rng, dimension, states=6, reach=5):
    """Points, edges and a possible mask; every third case is squeezed into a smaller span."""
    n = int(rng.integers(2, states + 1))
    points = rng.integers(-reach, reach + 1, (n, dimension))
    if rng.random() < 1 / 3:
        kept = int(rng.integers(0, dimension))
        points = points[:, :kept] @ rng.integers(-2, 3, (kept, dimension))
    pairs = np.array(list(combinations(range(n), 2)))
    edges = pairs[rng.random(len(pairs)) < rng.choice([0.15, 0.4, 0.8])][:7]
    possible = rng.random(n) < 0.85
    possible[rng.integers(n)] = True
    return points, edges, possible


@st.composite
def cases(draw, dimensions=(1, 2, 3, 4), states=6, reach=5):
    """The same, for Hypothesis."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_case(rng, draw(st.sampled_from(dimensions)), states, reach)
