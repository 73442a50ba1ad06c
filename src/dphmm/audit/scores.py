"""Numbers and classes of answers, of which searched events are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import lcm

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.audit.checks import Kind
from dphmm.audit.sampler import Answers, Checked

__all__ = ["Classes", "Score", "cones_around", "everything", "residues", "scores_of"]

MODULI = (2, 3, 4, 5)
CYCLE = lcm(*MODULI)
"""Residues are counted modulo this, which tells those of every modulus."""

MAX_COLUMNS = 12
"""Coordinates whose residues are counted."""

MAX_CONES = 200
"""Facets of a body whose cones are counted one by one."""

FAR = 1e12
"""Stands for the distance of what lies outside the span."""


@dataclass(frozen=True)
class Score:
    """A number for every answer, by which events are cut off."""

    kind: Kind
    what: str
    of: Callable[[Answers], FloatArray]


@dataclass(frozen=True)
class Classes:
    """A number 0, 1, ... for every answer, and the sets of numbers that events are made of."""

    kind: Kind
    of: Callable[[Answers], IntArray]
    sets: Mask
    """(sets, numbers)"""
    names: tuple[str, ...]


def everything(kind: Kind) -> Classes:
    """All answers as one class."""
    return Classes(
        kind, lambda some: np.zeros(len(some), dtype=np.int64), np.ones((1, 1), bool), ("",)
    )


def scores_of(claim: Checked, state: int, other: int) -> Iterator[Score]:
    """Projections and distances; the first three are also what residues and cones are cut by."""
    point, rest = claim.points[state], claim.points[other]
    away = (point - rest).astype(np.float64)
    name = f"the projection on {state} less {other}"
    yield Score("half-spaces", name, lambda some: (some - point) @ away)
    yield Score("tails", f"the distance from {other}", lambda some: distances(claim, some, rest))
    yield Score("tails", f"the distance from {state}", lambda some: distances(claim, some, point))
    kind: Kind = "half-spaces" if claim.body is None else "cones"

    def gain(some: Answers) -> FloatArray:
        nearer = _by_moment(claim, some, rest, True) - _by_moment(claim, some, point, True)
        return np.asarray(nearer.sum(axis=1))

    yield Score(kind, f"the distance from {other} less that from {state}", gain)
    for column in range(claim.points.shape[1] if claim.points.shape[1] > 1 else 0):
        what = f"coordinate {column}"
        yield Score("half-spaces", what, _Coordinate(column))
    if claim.moments > 1:
        yield Score("runs", "the longest run of equal answers", lambda some: _runs(claim, some))


@dataclass(frozen=True)
class _Coordinate:
    column: int

    def __call__(self, answers: Answers) -> FloatArray:
        return answers[:, self.column].astype(np.float64)


def distances(claim: Checked, answers: Answers, point: Answers) -> FloatArray:
    """How far answers are from a point, at the moment where they are furthest."""
    return np.asarray(_by_moment(claim, answers, point).max(axis=1))


def _by_moment(
    claim: Checked, answers: Answers, point: Answers, likelihoods: bool = False
) -> FloatArray:
    """(size, moments) distances: in the body's norm if there is one, else the largest entry.

    For `likelihoods` as the claimed law counts them, which a staircase rounds up.
    """
    noise = (answers - point).reshape(-1, claim.dimension)
    if claim.body is None:
        far = np.abs(noise).max(axis=1).astype(np.float64)
    else:
        far = claim.exponents(noise) if likelihoods else claim.norms(noise)
    return np.minimum(far, FAR).reshape(-1, claim.moments)


def _runs(claim: Checked, answers: Answers) -> FloatArray:
    moments = answers.reshape(len(answers), claim.moments, claim.dimension)
    same = (moments[:, 1:] == moments[:, :-1]).all(axis=2)
    longest = run = np.ones(len(answers))
    for step in range(same.shape[1]):
        run = np.where(same[:, step], run + 1, 1.0)
        longest = np.maximum(longest, run)
    return longest


def residues(claim: Checked) -> Iterator[Classes]:
    """Each coordinate and the sum of all, modulo small numbers."""
    sets = [(m, r, np.arange(CYCLE) % m == r) for m in MODULI for r in range(m)]
    masks = np.array([mask for _, _, mask in sets])
    width = claim.points.shape[1]
    columns: list[tuple[str, slice]] = [("the sum of all coordinates", slice(None))]
    if width > 1:
        columns += [(f"coordinate {c}", slice(c, c + 1)) for c in range(min(width, MAX_COLUMNS))]
    for name, part in columns:
        names = tuple(f"{name} is {r} modulo {m}" for m, r, _ in sets)
        yield Classes("residues", _Residue(part), masks, names)


@dataclass(frozen=True)
class _Residue:
    part: slice

    def __call__(self, answers: Answers) -> IntArray:
        # Of each first, so that the sum cannot overflow.
        residues = np.mod(answers[:, self.part], CYCLE).sum(axis=1)
        return np.asarray(np.mod(residues, CYCLE)).astype(np.int64)


def cones_around(claim: Checked, state: int) -> Iterator[Classes]:
    """The cones over the facets of the body, around a state; only for answers of one moment."""
    if claim.body is None or claim.moments > 1 or not claim.body.rank:
        return
    facets, point = claim.facets, claim.points[state]
    number = facets.shape[1]
    if number > MAX_CONES:
        return

    def of(some: Answers) -> IntArray:
        heights = (some - point) @ facets
        facet = np.argmax(np.abs(heights), axis=1)
        behind = heights[np.arange(len(some)), facet] < 0
        return np.asarray(2 * facet + behind)

    names = tuple(
        f"the cone over facet {n // 2}{'+-'[n % 2]} around {state}" for n in range(2 * number)
    )
    yield Classes("cones", of, np.eye(2 * number, dtype=bool), names)
