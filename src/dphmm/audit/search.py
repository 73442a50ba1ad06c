"""Events that are looked for where half of the draws show most.

An event is a class of answers (all, a residue, a cone of the body) cut off at a threshold of a
score (a distance, a projection), or a single answer. Everything is counted for a grid of
thresholds; the event of each kind that stands out most is kept. As the draws that certify it
are others, any number of events may be tried here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.audit.checks import Kind, bits
from dphmm.audit.events import Event
from dphmm.audit.sampler import Answers, Checked
from dphmm.audit.scores import (
    FAR,
    Classes,
    Score,
    cones_around,
    everything,
    residues,
    scores_of,
)

__all__ = ["search_events"]

GRID = np.concatenate([np.linspace(0.02, 0.98, 33), 1 - np.geomspace(0.01, 1e-4, 8)])
GRID = np.unique(np.concatenate([GRID, np.geomspace(1e-4, 0.01, 8)]))
"""The shares of answers below the thresholds that are tried."""

GRID_DRAWS = 20_000
"""Draws of each state from which thresholds are taken."""

MAX_DENSE = 1 << 20
"""Different values that are counted without being sorted."""

CUT_DRAWS = 60_000
"""Draws of each state by which thresholds are chosen: leaks into tails are seen sooner."""

MOST = 0.05
"""Power is that for events to which the claim allows at most this probability."""


@dataclass(frozen=True)
class Candidate:
    """An event, and by how many standard deviations it exceeds the claim."""

    kind: Kind
    event: Event
    excess: float
    likeliest: float
    """The other state's largest probability of an event tried with it; see `MOST`."""


def search_events(
    claim: Checked, edges: IntArray, answers: Mapping[int, Answers]
) -> dict[Kind, Candidate]:
    """The event of each kind that exceeds the claim most in these draws, over all edges.

    Args:
        claim: What is claimed.
        edges: The pairs to look at, each in both directions.
        answers: The draws to choose by, which must not be used to certify.
    """
    best: dict[Kind, Candidate] = {}
    ordered = [(int(a), int(b)) for pair in edges for a, b in (pair, pair[::-1])]
    few = {state: some[:CUT_DRAWS] for state, some in answers.items()}
    for found in (*_atoms(claim, ordered, answers), *_cut(claim, ordered, few)):
        held = best.setdefault(found.kind, found)
        winner = found if found.excess > held.excess else held
        likeliest = max(found.likeliest, held.likeliest)
        best[found.kind] = replace(winner, likeliest=likeliest)
    return best


def excesses(hits: FloatArray, hits_of_other: FloatArray, limit: float) -> FloatArray:
    """Standard deviations by which the first state's part of the hits exceeds the claim."""
    part = 1 / (1 + exp(-limit))
    total = hits + hits_of_other
    # One more hit in the spread keeps events of two or three hits from winning.
    # part (1 - part), also where a large limit makes part 1 in floats.
    spread = max(part * part * exp(-limit), np.finfo(np.float64).tiny)
    excess = (hits - part * total) / np.sqrt(spread * (total + 1))
    return np.where(hits > 0, excess, -FAR)


def _likeliest(shares: FloatArray, limit: float) -> float:
    return float(shares[shares <= MOST * exp(-limit)].max(initial=0.0))


# Single answers


def _atoms(
    claim: Checked, ordered: list[tuple[int, int]], answers: Mapping[int, Answers]
) -> Iterator[Candidate]:
    """Single answers, single coordinates, and differences between the answers of two moments."""
    states = sorted({state for pair in ordered for state in pair})
    for kind, name, pick in _parts(claim):
        atoms, counts = _counted([pick(answers[state]) for state in states])
        shares = counts / max(1, len(answers[states[0]]))
        for state, other in ordered:
            limit = float(claim.limit(state, other))
            mine, others = states.index(state), states.index(other)
            above = excesses(counts[mine], counts[others], limit)
            number = int(np.argmax(above))
            what = f"{name} is {_text(atoms(number))}, given {state} and {other}"
            event = Event(state, other, what, _Equal(pick, atoms(number)))
            likeliest = _likeliest(shares[others], limit)
            yield Candidate(kind, event, float(above[number]), likeliest)


def _parts(claim: Checked) -> Iterator[tuple[Kind, str, _Part]]:
    """The parts of a row whose single values are counted."""
    width, size = claim.points.shape[1], claim.dimension
    for moment in range(claim.moments):
        name = "the answer" if claim.moments == 1 else f"answer {moment}"
        yield "atoms", name, _Part(moment * size, size)
    for column in range(width if size > 1 else 0):
        yield "atoms", f"coordinate {column}", _Part(column, 1)
    for i, j in combinations(range(claim.moments), 2):
        yield "runs", f"answer {j} less answer {i}", _Part(j * size, size, i * size)


@dataclass(frozen=True)
class _Part:
    """Some columns of a row, or the difference between some and some others."""

    first: int
    size: int
    less: int | None = None

    def __call__(self, answers: Answers) -> Answers:
        part = answers[:, self.first : self.first + self.size]
        if self.less is None:
            return part
        return part - answers[:, self.less : self.less + self.size]


@dataclass(frozen=True, eq=False)
class _Equal:
    pick: Callable[[Answers], Answers]
    atom: Answers

    def __call__(self, answers: Answers) -> Mask:
        part = self.pick(answers)
        kind = np.result_type(part, self.atom)
        same = bits(part.astype(kind)) == bits(self.atom.astype(kind))
        return np.asarray(same.all(axis=1), dtype=bool)


def _counted(parts: list[Answers]) -> tuple[Callable[[int], Answers], FloatArray]:
    """Every value that occurs, by number, and how often it occurs in each part."""
    rows = np.concatenate(parts)
    codes = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        low, high = (column.min(), column.max()) if len(column) else (0, 0)
        if column.dtype.kind != "f" and int(high) - int(low) < MAX_DENSE:
            numbers, values = (column - low).astype(np.int64), int(high) - int(low) + 1
        else:
            found, numbers = np.unique(bits(column), return_inverse=True)
            numbers, values = numbers.ravel(), len(found)
        codes = codes * values + numbers
        if codes.max(initial=0) >= MAX_DENSE:
            # Made small again, so that the next product cannot overflow.
            codes = np.unique(codes, return_inverse=True)[1].ravel().astype(np.int64)
    size = int(codes.max(initial=0)) + 1
    ends = np.cumsum([len(part) for part in parts])[:-1]
    counts = np.array([np.bincount(some, minlength=size) for some in np.split(codes, ends)])
    return lambda number: rows[int(np.argmax(codes == number))], counts.astype(np.float64)


def _text(vector: Answers) -> str:
    return "(" + ", ".join(f"{entry:g}" for entry in vector) + ")"


# Classes cut off at thresholds


def _cut(
    claim: Checked, ordered: list[tuple[int, int]], answers: Mapping[int, Answers]
) -> Iterator[Candidate]:
    whole = all(_integral(answers[state]) for pair in ordered for state in pair)
    for state, other in ordered:
        both = np.concatenate([answers[state], answers[other]])
        mine = len(answers[state])
        scores = list(scores_of(claim, state, other))
        bins = [_binned(score, both, mine) for score in scores]
        classes = [everything(score.kind) for score in scores]
        jobs = list(zip(classes, scores, bins, strict=True))
        special = list(residues(claim)) if whole else []
        special += list(cones_around(claim, state))
        for some in special:
            jobs += [(some, scores[i], bins[i]) for i in range(3)]
        numbered: dict[int, IntArray] = {id(some): some.of(both) for some in special}
        limit = float(claim.limit(state, other))
        for some, score, (grid, places) in jobs:
            numbers = numbered.get(id(some))
            yield _best(some, numbers, score, grid, places, mine, (state, other), limit)


def _best(
    classes: Classes,
    numbers: IntArray | None,
    score: Score,
    grid: FloatArray,
    places: IntArray,
    mine: int,
    pair: tuple[int, int],
    limit: float,
) -> Candidate:
    """The class and threshold that exceed the claim most."""
    width, depth = classes.sets.shape[1], len(grid) + 1
    cell = places if numbers is None else numbers * depth + places
    counts = np.stack(
        [np.bincount(some, minlength=width * depth) for some in (cell[:mine], cell[mine:])]
    ).reshape(2, width, depth)
    sums = np.einsum("sw,kwd->ksd", classes.sets.astype(np.float64), counts)
    below = np.cumsum(sums, axis=2)
    above = below[:, :, -1:] - below
    # Below a threshold, above it, and without one: (state, side, set, threshold).
    sides = np.stack([below, above], axis=1)
    excess = excesses(sides[0], sides[1], limit)
    best = np.unravel_index(int(np.argmax(excess)), excess.shape)
    side, number, place = (int(index) for index in best)
    open_ended = side == 0 and place == depth - 1
    threshold = None if open_ended or not len(grid) else float(grid[min(place, depth - 2)])
    held = _Cut(classes, classes.sets[number], score, threshold, upper=side == 1)
    words = [classes.names[number]] if classes.names[number] else []
    if threshold is not None:
        words.append(f"{score.what} {'at least' if side == 1 else 'below'} {threshold:g}")
    what = f"{' and '.join(words) or 'any answer'}, given {pair[0]} and {pair[1]}"
    event = Event(pair[0], pair[1], what, held)
    likeliest = _likeliest(sides[1] / max(1, len(places) - mine), limit)
    return Candidate(classes.kind, event, float(excess[side, number, place]), likeliest)


@dataclass(frozen=True, eq=False)
class _Cut:
    """Answers of some classes whose score is on one side of a threshold."""

    classes: Classes
    members: Mask
    score: Score
    threshold: float | None
    upper: bool

    def __call__(self, answers: Answers) -> Mask:
        held = np.ones(len(answers), dtype=bool)
        if len(self.members) > 1:
            held = self.members[self.classes.of(answers)]
        if self.threshold is None:
            return held
        above = self.score.of(answers) >= self.threshold
        return held & (above if self.upper else ~above)


def _binned(score: Score, both: Answers, mine: int) -> tuple[FloatArray, IntArray]:
    """Thresholds for a score, and how many of them each answer reaches."""
    values = score.of(both)
    step = max(1, mine // GRID_DRAWS)
    grid = np.unique(np.quantile(values[::step], GRID, method="higher"))
    return grid, np.searchsorted(grid, values, side="right")


def _integral(answers: Answers) -> bool:
    return answers.dtype.kind != "f" or bool((answers == np.floor(answers)).all())
