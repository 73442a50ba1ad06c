"""Tables over pairs of states: the best loss of two paths that end in each two, step by step."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import TypeAlias

import numpy as np

from dphmm import kernels
from dphmm._types import IntArray, Mask
from dphmm.cost.charges import Loss
from dphmm.cost.composition import Unit, check_size, pair_losses
from dphmm.cost.history import History

__all__ = ["PairTables"]

Moves: TypeAlias = tuple[IntArray, IntArray, Mask]

NARROW = 2**29
"""Sums below this are counted in 32 bits, where infinity is twice as much."""


class PairTables:
    """The losses of all pairs at each step of a history, in one unit.

    Args:
        history: What was released, step by step.
    """

    def __init__(self, history: History) -> None:
        self.size = max(int(mask.sum()) for mask in history.possible)
        check_size(self.size)
        self.history = history
        self.unit = Unit.of(history.answers())
        self.kinds = history.kinds()
        narrow = self.unit.most < NARROW
        self._type = np.dtype(np.int32 if narrow else np.int64)
        self._infinite = 2 * NARROW if narrow else kernels.pairs.INFINITE
        self._latest: tuple[object, IntArray] | None = None
        self._moves: dict[int, Moves] = {}

    def work(self, steps: int) -> int:
        """How many entries of tables are looked at in so many steps."""
        moves = max(model.transition.nnz for model in self.history.models)
        return (steps - 1) * self.size * (moves + self.size)

    def between(self, first: int, after: int) -> Loss:
        """The largest loss of paths that differ at most in the steps first..after-1."""
        values = self._split(first)
        best = 0
        for step in range(first, after):
            if step > first:
                values = self._advance(values, step)
            if self.history.charges[step] and kernels.pairs.add_losses(
                values, self._losses(step), self._infinite
            ):
                return inf
            # Losses only grow, so the last step decides, unless paths were cut off before it.
            if step + 1 < after and not self.history.has_dead_ends:
                continue
            if after == len(self.history):
                best = max(best, int(values.max()))
            else:
                moves = self.moves(step + 1)
                best = max(best, int(kernels.pairs.best_rejoined(values, *moves)))
        return self.unit.loss(best) if best else Fraction(0)

    def moves(self, step: int) -> Moves:
        """As of the history; steps of one kind are looked up once."""
        kind = self.kinds[step]
        if kind not in self._moves:
            self._moves[kind] = self.history.moves(step)
        return self._moves[kind]

    def _losses(self, step: int) -> IntArray:
        """The pair losses at a step; those of the step before are kept."""
        charges, states = self.history.charges[step], self.history.states(step)
        about = (tuple(map(id, charges)), states.tobytes())
        if self._latest is None or self._latest[0] != about:
            losses = pair_losses(charges, states, self.unit)
            self._latest = about, np.minimum(losses, self._infinite).astype(self._type, copy=False)
        return self._latest[1]

    def _split(self, first: int) -> IntArray:
        """Zero for the pairs of states that two paths which agreed so far can be in."""
        here = int(self.history.possible[first].sum())
        if first == 0:
            return np.zeros((here, here), dtype=self._type)
        before = self.history.possible[first - 1]
        together = self.history.reached[first - 1][before]
        values = np.full((here, here), kernels.pairs.UNREACHABLE, dtype=self._type)
        kernels.pairs.split(values, together, *self.moves(first))
        return values

    def _advance(self, values: IntArray, step: int) -> IntArray:
        moves = self.moves(step)
        # The table is symmetric, so that rows and columns may change places.
        once = kernels.pairs.transposed(kernels.pairs.best_rows(values, *moves))
        advanced: IntArray = kernels.pairs.best_rows(once, *moves)
        return advanced
