"""Chains for reading answers that were already given: the same releases, better estimates.

What is published does not change, so neither does the guarantee: reading is post-processing.
A `Reader` is a chain and what it knows beforehand. Those here state no probability of going
anywhere unless told so: moves that nobody made are possible within reach of every cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.ground import TURNS, Ground
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.momentum import MomentumModel, contexts_of
from dphmm.chain.pairs import draw_pairs, pair_numbers
from dphmm.evaluate.metrics import visits
from dphmm.evaluate.workloads import counted

__all__ = [
    "ESTIMATES",
    "Reader",
    "at_hours",
    "first_order",
    "hourly",
    "log_score",
    "momentum",
    "second_order",
]

ESTIMATES = ("filtered", "filtered_median", "smoothed", "smoothed_median")


@dataclass(frozen=True, eq=False)
class Reader:
    """A chain, and the belief over its states before the first step."""

    chain: Chain
    start: Belief

    def read(
        self, observations: Sequence[FloatArray | None], values: FloatArray
    ) -> dict[str, FloatArray]:
        """The estimates of each kind, one row a step: from answers so far, and from all."""
        estimates = {}
        for name, beliefs in (
            ("filtered", self.chain.filter(observations, start=self.start)),
            ("smoothed", self.chain.smooth(observations, start=self.start)),
        ):
            estimates[name] = np.array([belief.mean(values) for belief in beliefs])
            estimates[f"{name}_median"] = np.array([belief.median(values) for belief in beliefs])
        return estimates


def first_order(sequences: list[IntArray], ground: Ground, *, weight: float) -> Reader:
    """The chain of counted moves; `weight` moves from each state go as people go anywhere."""
    counts = counted(sequences, len(ground.places))
    start = Belief.from_probabilities(visits(sequences, len(ground.places)))
    return Reader(MarkovModel(ground.draw(counts, weight)), start)


def hourly(
    sequences: list[IntArray], bands: list[IntArray], ground: Ground, *, weight: float, trust: float
) -> tuple[MarkovModel, ...]:
    """A first-order chain for each band of the day, drawn to the one of all day by `trust` moves.

    `bands` says for each state of each sequence in which band it lies, as `at_hours` does for
    the steps to be read.
    """
    whole = first_order(sequences, ground, weight=weight).chain.at(1)
    sources = np.concatenate([states[:-1] for states in sequences])
    targets = np.concatenate([states[1:] for states in sequences])
    into = np.concatenate([rows[1:] for rows in bands])
    parts = []
    for band in range(int(into.max()) + 1):
        chosen = into == band
        entries = (np.ones(chosen.sum()), (sources[chosen], targets[chosen]))
        parts.append(sparse.csr_array(entries, shape=whole.transition.shape))
    return TimeVaryingModel.drawn_to(whole, parts, trust=trust).models


def at_hours(models: tuple[MarkovModel, ...], bands: IntArray, start: Belief) -> Reader:
    """The reader of steps that lie in these bands of the day."""
    latest = len(models) - 1
    slots = [min(int(band), latest) for band in bands]
    # The list repeats and begins at time 0, the start; the first step leads into time 1.
    return Reader(TimeVaryingModel(models, [slots[-1], *slots]), start)


def second_order(
    sequences: list[IntArray], ground: Ground, *, weight: float, trust: float
) -> Reader:
    """The chain of state pairs, drawn to the first-order chain by `trust` moves a pair."""
    size = len(ground.places)
    first = first_order(sequences, ground, weight=weight).chain.at(1).transition
    walked = [pair_numbers(states[:-1], states[1:], size) for states in sequences]
    before = np.concatenate([pairs[:-1] for pairs in walked])
    after = np.concatenate([pairs[1:] for pairs in walked])
    model = draw_pairs(first, before, after, np.ones(len(before)), trust=trust)
    visited = visits(sequences, size)
    chances = np.asarray(first[model.pairs[:, 0], model.pairs[:, 1]]).ravel()
    weights = chances * visited[model.pairs[:, 0]]
    return Reader(model, Belief.from_probabilities(weights / weights.sum()))


def momentum(
    sequences: list[IntArray],
    ground: Ground,
    *,
    weight: float,
    trust: float,
    patience: int,
    anywhere: float = 0.0,
) -> Reader:
    """The chain of states with a context: the last move's direction, or how long they stayed."""
    model = MomentumModel.fit(
        sequences, places=ground.places, weight=weight, trust=trust, patience=patience,
        zeros="guesses" if anywhere else "facts", anywhere=anywhere or None,
    )  # fmt: skip
    walked = [
        states * (TURNS + patience) + contexts_of(states, ground, patience) for states in sequences
    ]
    visited = np.bincount(
        np.concatenate([states[:-1] for states in walked]), minlength=model.n_states
    )
    weights = visited + 0.01
    return Reader(model, Belief.from_probabilities(weights / weights.sum()))


def log_score(matrix: sparse.csr_array, sources: IntArray, targets: IntArray) -> float:
    """The mean log-probability of moves; moves that the chain rules out count as very rare."""
    chances = np.asarray(matrix[sources, targets]).ravel()
    return float(np.log(np.maximum(chances, 1e-8)).mean())
