"""One reader for all mechanisms: the belief so far, some steps later and in hindsight.

The same sums as `Chain.filter` and `Chain.smooth`, for many people at once and in single
precision, which comparisons can afford.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.chain import Chain
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.evaluate.compare.contender import Told

__all__ = ["LATE", "Beliefs", "likelihoods", "log_scores", "read"]


LATE = 4
"""Late beliefs are about every so manieth step: each takes as many products as it waits steps."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What a reader believes of each person at each step: (steps, k, n) each."""

    filtered: FloatArray = field(repr=False)
    """From what was told so far."""
    lagged: FloatArray | None = field(repr=False)
    """From what was told until some steps later, for every `LATE`-th step; None if not asked."""
    hindsight: FloatArray = field(repr=False)
    """From all that was told."""


def likelihoods(told: Told) -> list[FloatArray | None]:
    """For each step how likely every place makes what was told, up to a constant: (k, n)."""
    rows: list[FloatArray | None] = []
    for step in range(told.steps):
        logs = told.log_likelihood(step)
        if logs is None:
            rows.append(None)
            continue
        top = logs.max(axis=1, keepdims=True)
        rows.append(np.exp(logs - top).astype(np.float32))
    return rows


def read(
    rows: list[FloatArray | None], chain: Chain, start: Belief, people: int, lag: int | None = None
) -> Beliefs:
    """The beliefs of somebody with a chain and a start, about people told of by `rows`.

    Args:
        rows: As `likelihoods` gives them.
        chain: How the reader thinks that people move; its states are places.
        start: What they believe before the first step.
        people: How many people the rows are about.
        lag: How many later steps count for `lagged`.
    """
    filtered, _ = _forward(rows, chain, start, people)
    steps, hindsight = len(rows), np.empty_like(filtered)
    later = np.ones((chain.n_states, people))
    for step in range(steps - 1, -1, -1):
        if step < steps - 1:
            later = _back(chain.at(step + 2), rows[step + 1], later)
        hindsight[step] = _joined(filtered[step], later)
    lagged = None
    if lag is not None:
        lagged = np.empty_like(filtered[::LATE])
        for place, step in enumerate(range(0, steps, LATE)):
            later = np.ones((chain.n_states, people))
            until = [n for n in range(step + 1, min(step + lag + 1, steps)) if rows[n] is not None]
            for after in range(max(until, default=step), step, -1):
                later = _back(chain.at(after + 1), rows[after], later)
            lagged[place] = _joined(filtered[step], later)
    return Beliefs(filtered, lagged, hindsight)


def log_scores(
    rows: list[FloatArray | None], chain: Chain, start: Belief, people: int
) -> FloatArray:
    """How likely a chain makes what was told of each person: logarithms up to one constant."""
    return _forward(rows, chain, start, people)[1]


def _forward(
    rows: list[FloatArray | None], chain: Chain, start: Belief, people: int
) -> tuple[FloatArray, FloatArray]:
    if chain.memory is not None:
        raise ArgumentError("chain must have places as its states, got one with a memory")
    filtered: Any = np.empty((len(rows), people, chain.n_states), dtype=np.float32)
    score = np.zeros(people)
    belief = np.repeat(start.probabilities[:, None], people, axis=1)
    for step, row in enumerate(rows):
        model = chain.at(step + 1)
        belief = model.incoming @ belief + model.jumps[:, None] * belief.sum(axis=0)
        if row is not None:
            belief = belief * row.T
            total = belief.sum(axis=0)
            if not (total > 0).all():
                raise ArgumentError(f"chain must allow what was told at step {step}")
            score += np.log(total)
        belief = belief / belief.sum(axis=0)
        filtered[step] = belief.T
    return filtered, score


def _back(model: MarkovModel, row: FloatArray | None, later: FloatArray) -> FloatArray:
    """How likely all that is told from a step on is, seen from one step earlier."""
    here = later if row is None else later * row.T
    before = model.outgoing @ here + (model.jumps @ here)[None, :]
    return np.asarray(before / before.max(axis=0))


def _joined(belief: FloatArray, later: FloatArray) -> FloatArray:
    both = belief * later.T
    return np.asarray(both / both.sum(axis=1, keepdims=True))
