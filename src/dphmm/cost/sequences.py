"""What a sequence of releases costs: paths told apart by all of it, one event, a window.

For hulls that do not depend on the answers the largest loss between two paths is exactly the
sum of the losses at each time, attained when every answer falls on one of the two paths. So
the tight values are longest paths over pairs of states,

    V_t(j, k) = epsilon_t ||f(j) - f(k)||_{K_t}
                + max over moves j' -> j and k' -> k of V_{t-1}(j', k'),

and the double maximum splits into two single ones: O(T N E) instead of O(T E^2). Where the
chain can go anywhere the moves restrict nothing, and the values are sums of each step's worst
pair, without a table of pairs.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np

from dphmm import kernels
from dphmm._types import IntArray
from dphmm.cost.charges import Loss
from dphmm.cost.composition import (
    TIGHT_STATES,
    Unit,
    check_size,
    compose,
    pair_losses,
    total_worst,
)
from dphmm.cost.history import History
from dphmm.errors import expect
from dphmm.geometry.exact import whole

__all__ = [
    "TIGHT_STATES",
    "event_epsilon",
    "paper_sequence_epsilon",
    "sequence_epsilon",
    "window_epsilon",
]


def paper_sequence_epsilon(history: History) -> Loss:
    """The sum over time of each release's worst pair, exactly (Theorem 7.2).

    An upper bound: the worst pairs of two times need not lie on two paths that the chain can
    take. Infinite exactly when `sequence_epsilon` is.

    Args:
        history: What was released, or will be, step by step.
    """
    return sum(worst_losses(history), Fraction(0))


def worst_losses(history: History) -> list[Loss]:
    """The worst pair's loss at every step."""
    expect(history, History, "history")
    kinds = history.kinds()
    known = {
        kind: total_worst(history.charges[step], history.states(step))
        for kind, step in {kind: step for step, kind in enumerate(kinds)}.items()
    }
    return [known[kind] for kind in kinds]


def sequence_epsilon(history: History) -> Loss:
    """The largest loss between two paths that the chain allows: Theorem 7.2, tight.

    Infinite as soon as one release can tell two possible states apart with certainty. Up to
    TIGHT_STATES possible states; `sequence_bracket` goes beyond. With a model that can go
    anywhere every path is allowed, and any number of states will do.

    Args:
        history: What was released, or will be, step by step.

    >>> from dphmm.geometry.hull import SensitivityHull
    >>> from dphmm.chain.markov import MarkovModel
    >>> from dphmm.geometry.query import Query
    >>> ring = MarkovModel([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> body = SensitivityHull.from_vertices([[1]])
    >>> history = History.of(Query([0, 0, 10]), ring, [body] * 6, 1)
    >>> sequence_epsilon(history), paper_sequence_epsilon(history)
    (Fraction(40, 1), Fraction(60, 1))
    """
    if inf in worst_losses(history):
        return inf
    if history.is_free:
        return sum(_free_losses(history), Fraction(0))
    return _Losses(history).between(0, len(history))


def event_epsilon(history: History) -> Loss:
    """The largest loss between two paths that differ at one time only.

    Args:
        history: What was released, or will be, step by step.
    """
    return window_epsilon(history, 1)


def window_epsilon(history: History, width: int) -> Loss:
    """The largest loss between two paths that differ within `width` consecutive steps only.

    Before the window the paths agree, and after it they agree again; a window that touches
    the last step need not be rejoined. An infinite loss counts as soon as it occurs, rejoined
    or not: that release by itself tells the two apart. Zero if no two such paths exist.

    Args:
        history: What was released, or will be, step by step.
        width: How many consecutive steps may differ, at least 1.

    >>> from dphmm.geometry.hull import SensitivityHull
    >>> from dphmm.chain.markov import MarkovModel
    >>> from dphmm.geometry.query import Query
    >>> walk = MarkovModel([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
    >>> body = SensitivityHull.from_vertices([[1]])
    >>> history = History.of(Query([0, 1, 2]), walk, [body] * 9, 1, start=1)
    >>> [window_epsilon(history, width) for width in (1, 2, 9)] == [2, 4, 18]
    True
    """
    expect(history, History, "history")
    whole(width, "width", 1)
    if width >= len(history):
        return sequence_epsilon(history)
    if history.is_free:
        alone = _free_losses(history)
        windows = range(len(history) - width + 1)
        return max(sum(alone[first : first + width], Fraction(0)) for first in windows)
    losses = _Losses(history)
    kinds = history.kinds()
    known: dict[object, Loss] = {}
    for first in range(len(history) - width + 1):
        after = first + width
        # Windows over equal steps cost the same; the first and the last have free ends.
        together = history.reached[first - 1].tobytes() if first else b""
        key = (together, tuple(kinds[first : after + 1]))
        if key not in known:
            known[key] = losses.between(first, after)
    return max(known.values())


def is_within_reach(history: History) -> bool:
    """Whether the tight values of a history are computed."""
    if history.is_free and all(len(answers) <= 1 for answers in history.charges):
        return True
    return max(int(mask.sum()) for mask in history.possible) <= TIGHT_STATES


def _free_losses(history: History) -> list[Loss]:
    """The worst pair's loss at every step, over all its answers together."""
    kinds = history.kinds()
    known: dict[int, Loss] = {}
    for step, kind in enumerate(kinds):
        if kind not in known:
            charges, possible = history.charges[step], history.possible[step]
            worst = compose(charges, possible).tight if charges else Fraction(0)
            # Floats, rounded up, are added up exactly.
            known[kind] = worst if worst == inf else Fraction(worst)
    return [known[kind] for kind in kinds]


class _Losses:
    """The losses of all pairs at each step of a history, in one unit."""

    def __init__(self, history: History) -> None:
        check_size(max(int(mask.sum()) for mask in history.possible))
        self.history = history
        self.unit = Unit.of(history.answers())
        self.kinds = history.kinds()
        self.latest: tuple[int, IntArray] | None = None

    def at(self, step: int) -> IntArray:
        """The pair losses at a step; steps of one kind in a row are computed once."""
        kind = self.kinds[step]
        if self.latest is None or self.latest[0] != kind:
            charges, states = self.history.charges[step], self.history.states(step)
            self.latest = kind, pair_losses(charges, states, self.unit)
        return self.latest[1]

    def between(self, first: int, after: int) -> Loss:
        """The largest loss of paths that differ at most in the steps first..after-1."""
        values = self._split(first)
        best = 0
        for step in range(first, after):
            if step > first:
                values = self._advance(values, step)
            if kernels.pairs.add_losses(values, self.at(step)):
                return inf
            # Losses only grow, so the last step decides, unless paths were cut off before it.
            if step + 1 < after and not self.history.has_dead_ends:
                continue
            if after == len(self.history):
                best = max(best, int(values.max()))
            else:
                moves = self.history.moves(step + 1)
                best = max(best, int(kernels.pairs.best_rejoined(values, *moves)))
        return self.unit.loss(best) if best else Fraction(0)

    def _split(self, first: int) -> IntArray:
        """Zero for the pairs of states that two paths which agreed so far can be in."""
        if first == 0:
            size = int(self.history.possible[0].sum())
            return np.zeros((size, size), dtype=np.int64)
        before = self.history.possible[first - 1]
        values = np.full((before.sum(), before.sum()), kernels.pairs.UNREACHABLE, dtype=np.int64)
        together = np.flatnonzero(self.history.reached[first - 1][before])
        values[together, together] = 0
        return self._advance(values, first)

    def _advance(self, values: IntArray, step: int) -> IntArray:
        moves = self.history.moves(step)
        once = kernels.pairs.best_rows(values, *moves)
        advanced: IntArray = kernels.pairs.best_rows(np.ascontiguousarray(once.T), *moves)
        return advanced
