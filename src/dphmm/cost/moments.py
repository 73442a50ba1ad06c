"""The steps of a history as what passes from one moment to the next, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from dphmm import kernels
from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.stochastic import LEVEL
from dphmm.cost.composition import Unit, pair_losses
from dphmm.cost.history import History
from dphmm.errors import ArgumentError

__all__ = ["Moments", "Rows", "follow_work"]

OVERHEAD = 2000
"""Entries that are looked at in the time that a step takes without any."""


def follow_work(history: History, step: int) -> int:
    """How many entries are looked at to follow all pairs of rows through one step."""
    size = int(history.possible[step].sum())
    return size * history.models[step].transition.nnz + OVERHEAD


@dataclass(frozen=True, eq=False)
class Rows:
    """Probabilities of states given another: e^own times a sparse part, e^jumps a density.

    What floats would lose is rounded up to `kernels.leakage.LEAST`, and never lost.
    """

    indptr: IntArray
    indices: IntArray
    data: FloatArray
    own: FloatArray
    jumps: FloatArray
    density: FloatArray

    @classmethod
    def of(
        cls, moves: sparse.csr_array, prior: FloatArray, jumps: FloatArray, density: FloatArray
    ) -> Rows:
        """The rows with weights moves times prior, each with its share of the density.

        Args:
            moves: A row's moves from, or to, each state.
            prior: The wide probabilities of those states.
            jumps: What each row has of the density, before it is made to sum to one.
            density: Over the same states.
        """
        indptr, indices = moves.indptr.astype(np.int64), moves.indices.astype(np.int64)
        lengths, scaled, levels = np.diff(indptr), prior[0][indices], prior[1][indices]
        filled = lengths > 0
        begins, sums = indptr[:-1][filled], np.full(len(lengths), -np.inf)
        # Levels are compared first, so that no log is so large that it would lose digits.
        base = np.minimum.reduceat(levels, begins)
        terms = np.log(moves.data) + np.log(scaled)
        terms -= (levels - np.repeat(base, lengths[filled])) * LEVEL
        tops = np.maximum.reduceat(terms, begins)
        weights = np.exp(terms - np.repeat(tops, lengths[filled]))
        totals = np.add.reduceat(weights, begins)
        sums[filled] = np.log(totals) + tops - base * LEVEL
        data = np.maximum(weights / np.repeat(totals, lengths[filled]), kernels.leakage.LEAST)
        with np.errstate(divide="ignore"):
            leaps = np.log(jumps)
        together = np.logaddexp(sums, leaps)
        return cls(indptr, indices, data, sums - together, leaps - together, density)

    def pass_on(self, told: FloatArray) -> FloatArray:
        """What is told of each two rows' states, given what is told of the states they lead to."""
        parts = self.indptr, self.indices, self.data, self.own, self.jumps, self.density
        passed: FloatArray = kernels.leakage.passed_on(told, *parts)
        return passed

    def dense(self) -> FloatArray:
        """All of it as one matrix."""
        shape = len(self.jumps), len(self.density)
        moves = sparse.csr_array((self.data, self.indices, self.indptr), shape=shape)
        parts = np.asarray(moves.toarray(), dtype=np.float64)
        own, jumps = np.exp(self.own), np.exp(self.jumps)
        mixed: FloatArray = own[:, None] * parts + jumps[:, None] * self.density
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
        moves = sparse.csr_array(model.outgoing[self.states[step]][:, after])
        alike = np.stack([np.ones(len(after)), np.zeros(len(after))])
        jumps = np.full(len(self.states[step]), model.anywhere)
        return Rows.of(moves, alike, jumps, model.density[after])

    def back(self, step: int) -> Rows:
        """The probabilities of the step before's states given this step's."""
        model, before, after = self.history.models[step], self.states[step - 1], self.states[step]
        moves = sparse.csr_array(model.incoming[after][:, before])
        belief = self.beliefs[step - 1]
        density = belief.probabilities[before]
        return Rows.of(moves, belief.widen()[:, before], model.jumps[after], density)
