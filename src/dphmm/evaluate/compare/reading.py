"""One reader for all mechanisms: the belief so far, some steps later and in hindsight.

The same sums as `Chain.filter` and `Chain.smooth`, for many people at once and in single
precision, which comparisons can afford.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import numpy as np

from dphmm import kernels
from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.chain import Chain
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.evaluate.compare.contender import Told

__all__ = ["Beliefs", "filter_rows", "likelihoods", "log_scores", "looks", "read"]


LEAST = np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What a reader believes of each person at some steps: (steps, k, n) each."""

    filtered: FloatArray = field(repr=False)
    """From what was told so far."""
    lagged: FloatArray | None = field(repr=False)
    """From what was told until some steps later; None if not asked for."""
    hindsight: FloatArray = field(repr=False)
    """From all that was told."""


def looks(steps: int) -> list[int]:
    """Some of the steps, evenly: no schedule that divides them is always met at the same point.

    Beliefs are judged there and not at every step, which takes most of the time.

    >>> looks(100)[:4], looks(288)[:4]
    ([1, 4, 7, 10], [2, 7, 12, 17])
    """
    apart = next(width for width in (3, 5, 7, 11, 1) if gcd(width, steps) == 1)
    return list(range(apart // 2, steps, apart))


def likelihoods(told: Told) -> list[FloatArray | None]:
    """For each step how likely every place makes what was told, up to a constant: (n, k)."""
    rows: list[FloatArray | None] = []
    for step in range(told.steps):
        logs = told.log_likelihood(step)
        if logs is None:
            rows.append(None)
            continue
        likely = np.exp(logs - logs.max(axis=1, keepdims=True)).T.astype(np.float32)
        # What is possible stays so, and no number is so small that processors are slow with it.
        rows.append(np.where((likely > 0) & (likely < LEAST), LEAST, likely))
    return rows


def read(
    rows: list[FloatArray | None],
    chain: Chain,
    start: Belief,
    people: int,
    lag: int | None = None,
    at: Sequence[int] | None = None,
) -> Beliefs:
    """The beliefs of somebody with a chain and a start, about people told of by `rows`.

    Args:
        rows: As `likelihoods` gives them.
        chain: How the reader thinks that people move; its states are places.
        start: What they believe before the first step.
        people: How many people the rows are about.
        lag: How many later steps count for `lagged`.
        at: The steps, in order, that beliefs are wanted of; every step by default.
    """
    steps = len(rows)
    wanted = list(range(steps)) if at is None else list(at)
    filtered = filter_rows(rows, chain, start, people, wanted)
    hindsight = np.empty_like(filtered)
    lagged = None if lag is None else np.empty_like(filtered)
    later = _nothing(chain, people)
    for step in range(steps - 1, -1, -1):
        if step < steps - 1:
            later = _back(chain.at(step + 2), rows[step + 1], later)
        if wanted and step == wanted[-1]:
            place = len(wanted) - 1
            hindsight[place] = _joined(filtered[place], later)
            if lagged is not None and lag is not None:
                soon = _look_back(rows, chain, people, step, lag)
                lagged[place] = filtered[place] if soon is None else _joined(filtered[place], soon)
            wanted.pop()
    return Beliefs(filtered, lagged, hindsight)


def filter_rows(
    rows: list[FloatArray | None],
    chain: Chain,
    start: Belief,
    people: int,
    at: Sequence[int] | None = None,
) -> FloatArray:
    """The beliefs from what was told so far alone: (steps, k, n)."""
    return _forward(rows, chain, start, people, range(len(rows)) if at is None else at)[0]


def log_scores(
    rows: list[FloatArray | None], chain: Chain, start: Belief, people: int
) -> FloatArray:
    """How likely a chain makes what was told of each person: logarithms up to one constant."""
    return _forward(rows, chain, start, people, ())[1]


def _forward(
    rows: list[FloatArray | None], chain: Chain, start: Belief, people: int, at: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    if chain.memory is not None:
        raise ArgumentError("chain must have places as its states, got one with a memory")
    filtered: Any = np.empty((len(at), people, chain.n_states), dtype=np.float32)
    place = {step: number for number, step in enumerate(at)}
    score = np.zeros(people)
    belief: Any = np.repeat(start.probabilities[:, None], people, axis=1).astype(np.float32)
    for step, row in enumerate(rows):
        model = chain.at(step + 1)
        belief = _moved(model.incoming, model.jumps, belief.sum(axis=0), belief)
        if row is not None:
            belief *= row
        total = belief.sum(axis=0)
        if row is not None:
            if not (total > 0).all():
                raise ArgumentError(f"chain must allow what was told at step {step}")
            score += np.log(total)
        belief /= total
        if step in place:
            filtered[place[step]] = belief.T
    return filtered, score


def _moved(matrix: Any, shares: FloatArray, totals: FloatArray, before: FloatArray) -> FloatArray:
    """A sparse matrix times many columns, plus a share of each column's total: (n, k)."""
    after = np.empty_like(before)
    kernels.many.move_many(
        matrix.indptr, matrix.indices, matrix.data, shares, totals, before, after
    )
    return after


def _nothing(chain: Chain, people: int) -> FloatArray:
    """How likely it is that nothing more is told: certain."""
    return np.ones((chain.n_states, people), dtype=np.float32)


def _back(model: MarkovModel, row: FloatArray | None, later: FloatArray) -> FloatArray:
    """How likely all that is told from a step on is, seen from one step earlier."""
    here = later if row is None else later * row
    everywhere = np.ones(len(here))
    jump = model.jumps.astype(np.float32) @ here
    before = _moved(model.outgoing, everywhere, jump, here)
    before /= before.max(axis=0)
    return before


def _look_back(
    rows: list[FloatArray | None], chain: Chain, people: int, step: int, lag: int
) -> FloatArray | None:
    """How likely what is told in the next few steps is, seen from a step; None if nothing is."""
    until = [n for n in range(step + 1, min(step + lag + 1, len(rows))) if rows[n] is not None]
    if not until:
        return None
    later = _nothing(chain, people)
    for after in range(until[-1], step, -1):
        later = _back(chain.at(after + 1), rows[after], later)
    return later


def _joined(belief: FloatArray, later: FloatArray) -> FloatArray:
    both = belief * later.T
    return np.asarray(both / both.sum(axis=1, keepdims=True))
