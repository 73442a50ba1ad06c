"""The picture of a check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphmm.geometry.plotting import ACCENT, MAIN, find_axes

if TYPE_CHECKING:
    from dphmm.scenario.checking import Check

__all__ = ["plot_check"]


def plot_check(self: Check, axes: Any = None) -> Any:
    """Draw among how many states each step hides a person, and how far answers are off.

    Steps at which somebody stays exposed are marked by a cross at 1.

    Args:
        axes: Where to draw; a new figure by default.
    """
    axes = find_axes(axes)
    times = [step.time for step in self.steps]
    least = [step.least_protection for step in self.steps]
    most = [step.most_protection for step in self.steps]
    axes.vlines(times, least, most, color=MAIN, linewidth=5, alpha=0.6)
    axes.plot(times, least, "o", color=MAIN)
    bare = [step.time for step in self.steps if step.exposed]
    axes.plot(bare, [1] * len(bare), "x", color="#c0392b", markersize=10)
    axes.set_ylim(bottom=0)
    axes.set_xticks(times if len(times) <= 20 else times[:: len(times) // 10])
    axes.set_xlabel("step")
    axes.set_ylabel("hidden among, least to most", color=MAIN)
    beside = axes.twinx()
    beside.plot(times, [step.mean_error for step in self.steps], "s--", color=ACCENT)
    beside.set_ylim(bottom=0)
    unit = f" ({self.unit})" if self.unit else ""
    beside.set_ylabel(f"mean error of an answer{unit}", color=ACCENT)
    return axes
