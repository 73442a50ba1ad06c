"""Pictures with matplotlib: where they are drawn, in which colours, and that of a hull."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import ArgumentError, require

if TYPE_CHECKING:
    from dphmm.geometry.hull import SensitivityHull

__all__ = ["ACCENT", "FAINT", "MAIN", "drawable", "find_axes", "plot_hull"]

MAIN, ACCENT, FAINT = "#2f7fb0", "#b9770e", "#8a8f98"
"""Readable on white and on black, and apart for the colour-blind."""


def find_axes(axes: Any) -> Any:
    """The axes to draw on: those given, or a new figure's."""
    if axes is None:
        _, axes = require("matplotlib.pyplot", "plot").subplots(layout="constrained")
    elif not hasattr(axes, "scatter"):
        raise ArgumentError(f"axes must be those of matplotlib, got {type(axes).__name__}")
    return axes


def drawable(dimension: int, argument: str) -> None:
    """Refuse what has no picture."""
    if dimension not in (1, 2):
        raise ArgumentError(
            f"{argument} must have one or two dimensions to be drawn, got {dimension}; "
            f"ask for fewer columns"
        )


def plot_hull(self: SensitivityHull, axes: Any = None) -> Any:
    """Draw the hull, an interval or a polygon around the origin, in the units of the query.

    Args:
        axes: Where to draw; a new figure by default.
    """
    drawable(self.dimension, "hull")
    axes = find_axes(axes)
    corners = np.asarray(self.vertices, dtype=np.float64)
    if self.dimension == 1:
        ends = np.abs(corners).max(initial=0.0)
        axes.plot([-ends, ends], [0, 0], color=MAIN, linewidth=4, solid_capstyle="butt")
        axes.set_yticks([])
    elif len(corners) > 2:
        axes.fill(*corners.T, facecolor=MAIN, edgecolor=MAIN, alpha=0.35)
    else:
        axes.plot(*corners.T, color=MAIN, linewidth=2)
    axes.plot(0, 0, "+", color=ACCENT)
    if self.dimension == 2:
        axes.set_aspect("equal", adjustable="datalim")
    axes.set_title("differences that the noise hides")
    return axes
