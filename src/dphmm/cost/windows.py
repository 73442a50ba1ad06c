"""What paths lose that differ for a few steps only, wherever in a history those are.

A history with gaps has almost as many patterns of answers as windows, and a window needs a table
over pairs of states. But an answer more, a state or an end more that is free, never costs less:
so only windows that no other one covers need a table, and on a day with one stretch without gaps
that is a handful. Where it would still take too long, all of them are covered by one that has at
every step what any of them has there, which is an upper bound and is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TypeAlias

import numpy as np

from dphmm._types import Mask
from dphmm.chain.markov import MarkovModel
from dphmm.chain.stochastic import pattern
from dphmm.cost.bracket import Bracket
from dphmm.cost.charges import Charge, Loss
from dphmm.cost.history import History
from dphmm.cost.pair_tables import PairTables
from dphmm.cost.sequences import free_losses, sequence_epsilon, worst_losses
from dphmm.cost.words import WORST_PAIRS
from dphmm.errors import expect
from dphmm.geometry.exact import whole

__all__ = ["event_epsilon", "window_bracket", "window_epsilon"]

JOINED = "as if every step had all the answers and moves that any step had"
"""Where an upper bound comes from that one table gives for many windows."""

REMEMBERED = 1024
"""How many windows a model keeps the values of, for other people's histories."""


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
    return window_bracket(history, width).upper


def window_bracket(history: History, width: int, work: float = inf) -> Bracket:
    """The same, or bounds of it where tables would take more than so much work.

    Args:
        history: What was released, or will be, step by step.
        width: How many consecutive steps may differ, at least 1.
        work: How many entries of tables may be looked at, about 2**31 a second.
    """
    expect(history, History, "history")
    whole(width, "width", 1)
    if width < len(history) and not history.is_free:
        return _of_tables(history, width, work)
    alone = free_losses(history) if history.is_free else None
    if alone is None:
        exactly = sequence_epsilon(history)
    else:
        exactly = _largest_sum(alone, min(width, len(history)))
    return Bracket(exactly, exactly)


def _of_tables(history: History, width: int, work: float) -> Bracket:
    tables = PairTables(history)
    windows = _uncovered(history, width)
    ends = [one for one in windows if one.first == 0 or one.after == len(history)]
    inner = [one for one in windows if one not in ends]
    each = max(1, tables.work(width))
    lower: Loss = Fraction(0)
    if each * len(windows) <= work:
        lower = max(one.value(tables) for one in windows)
        return Bracket(lower, lower)
    summed, known = _largest_sum(worst_losses(history), width), "nothing"
    if each * (len(ends) + 1) <= work and inner and not any(m.anywhere for m in history.models):
        lower, known = max((one.value(tables) for one in ends), default=lower), "some windows"
        joined = _join(history, inner)
        upper = max(lower, PairTables(joined).between(1, len(joined) - 1))
        # Where answers are far apart, one for every step is more than any window has.
        if upper <= summed:
            return Bracket(lower, upper, known, JOINED)
    return Bracket(lower, summed, known, WORST_PAIRS)


def _largest_sum(losses: Sequence[Loss], width: int) -> Loss:
    starts = range(len(losses) - width + 1)
    return max(sum(losses[first : first + width], Fraction(0)) for first in starts)


_Laws: TypeAlias = frozenset[tuple[object, int, Fraction]]


@dataclass(frozen=True, eq=False)
class _Window:
    """Some consecutive steps of a history; it covers another if it allows and costs all of it."""

    history: History
    first: int
    after: int

    @cached_property
    def models(self) -> tuple[MarkovModel, ...]:
        """What leads from step to step within it."""
        return self.history.models[self.first + 1 : self.after]

    @cached_property
    def masks(self) -> tuple[bytes, ...]:
        """What was possible at its steps."""
        return tuple(_packed(mask) for mask in self.history.possible[self.first : self.after])

    @cached_property
    def laws(self) -> tuple[_Laws, ...]:
        """The answers of its steps, each by what its losses depend on."""
        return tuple(map(_laws, self.history.charges[self.first : self.after]))

    @cached_property
    def begin(self) -> tuple[MarkovModel, bytes] | None:
        """Where two paths are still together, and how they leave; None if they never were."""
        if not self.first:
            return None
        return self.history.models[self.first], _packed(self.history.reached[self.first - 1])

    @cached_property
    def end(self) -> tuple[MarkovModel, bytes] | None:
        """How and where two paths meet again; None if they need not."""
        if self.after == len(self.history):
            return None
        return self.history.models[self.after], _packed(self.history.possible[self.after])

    @cached_property
    def key(self) -> tuple[object, ...]:
        """All that its value depends on."""
        return self.begin, self.end, self.models, self.masks, self.laws

    def covers(self, other: _Window) -> bool:
        """Whether every two paths that differ in the other do in this, and lose as much."""
        return (
            self.models == other.models
            and _frees(self.begin, other.begin)
            and _frees(self.end, other.end)
            and all(a == b or _holds(a, b) for a, b in zip(self.masks, other.masks, strict=True))
            and all(map(_costs, self.laws, other.laws))
        )

    def value(self, tables: PairTables) -> Loss:
        """The largest loss of paths that differ in it only; found once for a model."""
        known: dict[object, Loss] = self.history.models[0].__dict__.setdefault("_windows", {})
        unit = tables.unit if tables.unit.slack else None
        key = (*self.key, self.history.has_dead_ends, unit)
        found = known.get(key)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            found = known[key] = tables.between(self.first, self.after)
        return found


def _uncovered(history: History, width: int) -> list[_Window]:
    """Windows of a width such that each of a history is covered by one of them."""
    starts = range(len(history) - width + 1)
    windows = [_Window(history, first, first + width) for first in starts]
    different = list({one.key: one for one in windows}.values())
    price = [sum((one.epsilon for one in step), Fraction(0)) for step in history.charges]

    def promise(one: _Window) -> tuple[bool, bool, Fraction]:
        spent = sum(price[one.first : one.after], Fraction(0))
        return one.begin is None, one.end is None, spent

    kept: list[_Window] = []
    for one in sorted(different, key=promise, reverse=True):
        if not any(other.covers(one) for other in kept):
            kept.append(one)
    return kept


def _join(history: History, windows: Sequence[_Window]) -> History:
    """A history whose one inner window covers all of these."""
    steps = {step for one in windows for step in range(one.first, one.after)}
    around = {step for one in windows for step in (one.first - 1, one.after)}
    models = list(dict.fromkeys(history.models[step] for step in sorted(steps | around)))
    moves = pattern(models[0].transition)
    for other in models[1:]:
        moves = moves + pattern(other.transition)
    model = (
        models[0]
        if len(models) == 1
        else MarkovModel.from_counts(moves.astype(np.float64), zeros="facts")
    )
    possible: Mask = np.any([history.possible[step] for step in sorted(steps | around)], axis=0)
    charges = _dearest(history.charges[step] for step in sorted(steps))
    width = windows[0].after - windows[0].first
    return History(
        model,
        [[], *[charges] * width, []],
        start=possible,
        possible=[possible] * (width + 2),
    )


def _dearest(steps: Iterable[Sequence[Charge]]) -> list[Charge]:
    """As many charges of each query, body and noise as any step has, at the largest price."""
    found: dict[object, Charge] = {}
    for charges in steps:
        for charge, (law, number, price) in zip(*_numbered(charges), strict=True):
            if (law, number) not in found or price > found[law, number].epsilon:
                found[law, number] = charge
    return list(found.values())


def _law(charge: Charge) -> tuple[object, Fraction]:
    return (charge.query.digest, charge.hull, charge.gamma), charge.epsilon


def _numbered(charges: Sequence[Charge]) -> tuple[list[Charge], list[tuple[object, int, Fraction]]]:
    """The charges of a step, the dearest first, and what tells each from equal ones."""
    ordered = sorted(charges, key=lambda charge: charge.epsilon, reverse=True)
    count: dict[object, int] = {}
    named = []
    for law, price in map(_law, ordered):
        count[law] = count.get(law, 0) + 1
        named.append((law, count[law], price))
    return ordered, named


def _laws(charges: Sequence[Charge]) -> _Laws:
    return frozenset(_numbered(charges)[1])


def _costs(laws: _Laws, others: _Laws) -> bool:
    """Whether a step has all the answers of another, at no lower prices."""
    if others <= laws:
        return True
    prices = {(law, number): price for law, number, price in laws}
    return all(price <= prices.get((law, number), -1) for law, number, price in others)


def _packed(mask: Mask) -> bytes:
    return np.packbits(mask).tobytes()


def _holds(mask: bytes, other: bytes) -> bool:
    """Whether a set holds all states of another."""
    here, there = np.frombuffer(mask, np.uint8), np.frombuffer(other, np.uint8)
    return not (there & ~here).any()


def _frees(end: tuple[MarkovModel, bytes] | None, other: tuple[MarkovModel, bytes] | None) -> bool:
    """Whether paths can be apart beyond one end of a window that could beyond another."""
    if end is None or other is None:
        return end is None
    return end[0] is other[0] and _holds(end[1], other[1])
