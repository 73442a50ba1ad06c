"""The picture of a belief."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm.chain.estimates import check_values
from dphmm.errors import ArgumentError, expect_each
from dphmm.geometry.plotting import ACCENT, FAINT, MAIN, drawable, find_axes
from dphmm.geometry.query import Query

if TYPE_CHECKING:
    from dphmm.chain.belief import Belief

__all__ = ["plot_belief"]

MOST_LABELS = 40


def plot_belief(
    self: Belief,
    values: ArrayLike | Query | None = None,
    *,
    labels: Sequence[str] | None = None,
    axes: Any = None,
) -> Any:
    """Draw how probable each state is: bars, or points where the states are.

    What is impossible is a grey cross. The mean is marked where there are values.

    Args:
        values: Where each state is, one or two numbers each, or the query that says it; without,
            the states stand side by side.
        labels: What the states are called, if they stand side by side.
        axes: Where to draw; a new figure by default.
    """
    if values is None:
        return _side_by_side(self, labels, find_axes(axes))
    given = values.values if isinstance(values, Query) else values
    places = check_values(given, self.n_states).reshape(self.n_states, -1)
    drawable(places.shape[1], "values")
    axes, chances, never = find_axes(axes), self.probabilities, ~self.possible
    if places.shape[1] == 1:
        line = places[:, 0]
        axes.vlines(line[self.possible], 0, chances[self.possible], color=MAIN, linewidth=3)
        axes.plot(line[never], np.zeros(never.sum()), "x", color=FAINT, markersize=4)
        axes.axvline(self.mean(line), color=ACCENT, linestyle="--", label="mean")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("probability")
    else:
        axes.plot(*places[never].T, "x", color=FAINT, markersize=4)
        sizes = 20 + 380 * chances / chances.max()
        shown = axes.scatter(*places.T, s=np.where(never, 0, sizes), c=chances, cmap="Blues")
        shown.set_edgecolor(MAIN)
        axes.plot(*self.mean(places), "+", color=ACCENT, markersize=12, label="mean")
        axes.set_aspect("equal", adjustable="datalim")
        axes.figure.colorbar(shown, ax=axes, label="probability")
    axes.legend(frameon=False)
    return axes


def _side_by_side(belief: Belief, labels: Sequence[str] | None, axes: Any) -> Any:
    states = np.arange(belief.n_states)
    if labels is not None:
        labels = expect_each(labels, object, "labels")
        if len(labels) != belief.n_states:
            raise ArgumentError(f"labels must be {belief.n_states}, got {len(labels)}")
    axes.bar(states, belief.probabilities, color=MAIN)
    never = states[~belief.possible]
    axes.plot(never, np.zeros(len(never)), "x", color=FAINT, markersize=5, clip_on=False)
    if labels is not None and len(labels) <= MOST_LABELS:
        turned = max(len(str(label)) for label in labels) * len(labels) > 60
        axes.set_xticks(states, labels, rotation=45 * turned, ha="right" if turned else "center")
    else:
        axes.set_xlabel("state")
    axes.set_ylabel("probability")
    return axes
