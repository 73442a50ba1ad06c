"""The picture of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphmm.geometry.plotting import ACCENT, FAINT, MAIN, drawable, find_axes

if TYPE_CHECKING:
    from dphmm.release.said import Release

__all__ = ["plot_release"]


def plot_release(self: Release, axes: Any = None) -> Any:
    """Draw the answer and the estimate: over time if they are numbers, else where they are.

    Draw one after the other on the same axes for a picture of many.

    Args:
        axes: Where to draw; a new figure by default.
    """
    drawable(len(self.estimate), "release")
    axes = find_axes(axes)
    known = {text.get_label() for text in axes.lines}
    answer, estimate = self.answer.tolist(), self.estimate.tolist()
    if len(estimate) == 1:
        answer, estimate = [self.time, *answer], [self.time, *estimate]
        axes.set_xlabel("time")
    else:
        axes.set_aspect("equal", adjustable="datalim")
    if not self.silent:
        axes.plot(*zip(answer, estimate, strict=True), color=FAINT, linewidth=0.8, label="_")
        axes.plot(*answer, "x", color=ACCENT, label="_" if "answer" in known else "answer")
    axes.plot(*estimate, "o", color=MAIN, label="_" if "estimate" in known else "estimate")
    axes.legend(frameon=False)
    return axes
