"""The paper's figures from our results, drawn with matplotlib. Private: true states."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import require
from dphmm.evaluate.claims import Curves
from dphmm.evaluate.experiments import POLICIES
from dphmm.evaluate.metrics import moving_average

__all__ = ["COLOURS", "LABELS", "performance", "readers", "runtime", "to_bytes"]

LABELS = {
    "distance": "distance policy (G_util)",
    "one_step": "one-step policy (G_trs)",
    "location_set": "δ-location set (DPLS)",
}
COLOURS = {"distance": "#0b6e75", "one_step": "#b9770e", "location_set": "#7d6bb0"}
MARKS = {"distance": "o", "one_step": "^", "location_set": "s"}


def performance(curves: Curves) -> Any:
    """DoP and error over time, and against epsilon and r where those were varied."""
    columns = 3 if curves.varied else 1
    figure, axes = _canvas(2, columns, (11.0, 5.6) if curves.varied else (7.0, 5.0))
    workload = curves.workload
    steps = np.arange(1.0, workload.steps + 1)
    window = min(workload.window, 2 * (workload.steps // 4) + 1)
    epsilons = np.array([float(epsilon) for epsilon in workload.epsilons])
    radii = np.array([float(radius) for radius in workload.radii])
    for row, (measure, what) in enumerate(
        (("hidden", "DoP of the true state"), ("error", "Error (km)"))
    ):
        time = axes[row][0]
        for policy in POLICIES:
            smooth = moving_average(curves.over_time(measure, policy), window)
            _line(time, steps, smooth, policy, mark=False)
        time.set_ylabel(what)
        time.set_xlabel("step")
        if curves.varied:
            _, price, reach = axes[row]
            for policy in POLICIES:
                _line(price, epsilons, curves.by_epsilon(measure, policy), policy)
            _line(reach, radii, curves.by_radius(measure), "distance")
            level = curves.mean(measure, "location_set")
            reach.axhline(level, color=COLOURS["location_set"], linestyle="--")
            price.set_xlabel("ε")
            reach.set_xlabel("r (km)")
        for axis in axes[row]:
            _logarithmic(axis)
            axis.grid(alpha=0.25)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper center", ncols=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    return figure


def runtime(curves: Curves) -> Any:
    """Milliseconds a step, computed anew as in the paper, and as shipped."""
    figure, axes = _canvas(1, 2, (11.0, 3.2))
    steps = np.arange(1.0, curves.workload.steps + 1)
    window = min(curves.workload.window, 2 * (curves.workload.steps // 4) + 1)
    titles = ("graph, repair and hull computed anew", "a whole release, possible sets remembered")
    for axis, measure, title in zip(axes[0], ("anew", "seconds"), titles, strict=True):
        for policy in POLICIES:
            taken = curves.result(curves.task(policy))[measure]
            # The median over people: an interruption is not the method's time.
            row = 1000 * np.median(taken, axis=0)
            _line(axis, steps, moving_average(row, window), policy, mark=False)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("step")
        axis.set_ylabel("milliseconds")
        _logarithmic(axis)
        axis.grid(alpha=0.25)
    axes[0][0].legend(frameon=False, fontsize=8, loc="upper right")
    figure.tight_layout()
    return figure


def readers(shares: dict[str, tuple[float, float]], names: tuple[str, ...]) -> Any:
    """The mean error of each reader's estimates as a share of the raw answers'."""
    figure, axes = _canvas(1, 1, (8.0, 3.2))
    axis = axes[0][0]
    kinds = (
        ("filtered", "#2f7fb0", "answers so far, mean"),
        ("filtered_median", "#8fc1de", "answers so far, median"),
        ("smoothed", "#0d3f63", "all answers, mean"),
        ("smoothed_median", "#5d86a3", "all answers, median"),
    )
    places = np.arange(len(names))
    for number, (kind, colour, label) in enumerate(kinds):
        means = [100 * shares[f"{name}_{kind}"][0] for name in names]
        spreads = [100 * shares[f"{name}_{kind}"][1] for name in names]
        axis.bar(
            places + 0.2 * (number - 1.5), means, 0.18, yerr=spreads, color=colour, label=label
        )
    axis.set_xticks(places, [name.replace("_", " ") for name in names])
    axis.set_ylabel("% of the raw answer's error")
    axis.set_ylim(top=1.25 * axis.get_ylim()[1])
    axis.grid(alpha=0.25, axis="y")
    axis.legend(frameon=False, fontsize=8, ncols=2)
    figure.tight_layout()
    return figure


def to_bytes(figure: Any, form: str) -> bytes:
    """The figure as a file's bytes, `svg` or `png`; the same figure gives the same bytes."""
    out = BytesIO()
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    require("matplotlib", "plot").rcParams["svg.hashsalt"] = "dphmm"
    figure.savefig(out, format=form, metadata=metadata, dpi=150)
    return out.getvalue()


def _canvas(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    # Without pyplot: no windows, no state, nothing to close.
    figure = require("matplotlib.figure", "plot").Figure(figsize=size)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _logarithmic(axis: Any) -> None:
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axis.tick_params(which="both", labelsize=8)


def _line(axis: Any, x: FloatArray, y: FloatArray, policy: str, mark: bool = True) -> None:
    axis.plot(
        x, y, color=COLOURS[policy], label=LABELS[policy], marker=MARKS[policy] if mark else ""
    )
