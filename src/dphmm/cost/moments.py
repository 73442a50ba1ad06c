"""The steps of a history as what passes from one moment to the next, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from dphmm import kernels
from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.cost.composition import Unit, pair_losses
from dphmm.cost.history import History
from dphmm.errors import ArgumentError

__all__ = ["Moments", "Rows"]

LEAST = 1e-300
"""A possible state counts at least this probability, even where floats have lost it."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Probabilities of states given another: (1 - jumps) times a sparse part, and a density."""

    indptr: IntArray
    indices: IntArray
    data: FloatArray
    jumps: FloatArray
    density: FloatArray

    @classmethod
    def of(cls, weights: sparse.csr_array, jumps: FloatArray, density: FloatArray) -> Rows:
        """The rows with these weights, each a sparse row and its share of the density."""
        sums = np.asarray(weights.sum(axis=1)).ravel()
        lengths = np.diff(weights.indptr)
        return cls(
            weights.indptr.astype(np.int64),
            weights.indices.astype(np.int64),
            weights.data / np.repeat(sums, lengths),
            jumps / (sums + jumps),
            density,
        )

    def pass_on(self, told: FloatArray) -> FloatArray:
        """What is told of each two rows' states, given what is told of the states they lead to."""
        parts = self.indptr, self.indices, self.data, self.jumps, self.density
        passed: FloatArray = kernels.leakage.passed_on(told, *parts)
        return passed

    def dense(self) -> FloatArray:
        """All of it as one matrix."""
        shape = len(self.jumps), len(self.density)
        moves = sparse.csr_array((self.data, self.indices, self.indptr), shape=shape)
        parts = np.asarray(moves.toarray(), dtype=np.float64)
        mixed: FloatArray = (1 - self.jumps[:, None]) * parts + self.jumps[:, None] * self.density
        return mixed


class Moments:
    """What leads from one moment of a history to the next, and what each one's answers tell."""

    def __init__(self, history: History, start: Belief) -> None:
        self.history = history
        belief, self.beliefs = start, []
        for model, possible in zip(history.models, history.possible, strict=True):
            belief = belief.predict(model)
            if (belief.possible & ~possible).any():
                raise ArgumentError(
                    "history must hold every state possible that the start leads to, got fewer"
                )
            self.beliefs.append(belief)
        self.states = [np.flatnonzero(belief.possible) for belief in self.beliefs]
        self._known: dict[object, FloatArray] = {}

    def __len__(self) -> int:
        return len(self.history)

    @cached_property
    def widest(self) -> int:
        """The largest number of possible states."""
        return max(len(states) for states in self.states)

    def told(self, step: int) -> FloatArray:
        """What a step's own answers tell of each two states: the largest loss, or a bit more."""
        charges, states = self.history.charges[step], self.states[step]
        key = tuple(map(id, charges)), states.tobytes()
        if key not in self._known:
            unit = Unit.of((charge, states) for charge in charges)
            counts = pair_losses(charges, states, unit)
            losses = (counts + unit.slack) / float(unit.denominator) * (1 + 1e-14)
            np.fill_diagonal(losses, 0.0)
            self._known[key] = np.where(counts >= kernels.pairs.INFINITE, np.inf, losses)
        return self._known[key]

    def onwards(self, step: int) -> Rows:
        """The probabilities of the next step's states given this step's."""
        model, after = self.history.models[step + 1], self.states[step + 1]
        weights = sparse.csr_array(model.outgoing[self.states[step]][:, after])
        jumps = np.full(len(self.states[step]), model.anywhere)
        return Rows.of(weights, jumps, model.density[after])

    def back(self, step: int) -> Rows:
        """The probabilities of the step before's states given this step's."""
        model, before, after = self.history.models[step], self.states[step - 1], self.states[step]
        prior = np.maximum(self.beliefs[step - 1].probabilities[before], LEAST)
        weights = sparse.csr_array(model.incoming[after][:, before] * prior)
        return Rows.of(weights, model.jumps[after], prior / prior.sum())
