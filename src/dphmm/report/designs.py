"""The page of `dphmm design`: how far estimates are off, by how often one speaks."""

from __future__ import annotations

from dphmm.geometry.exact import as_text
from dphmm.report.rendering import render
from dphmm.report.svg import Curve, curves
from dphmm.scenario.budgeting import BudgetDesign
from dphmm.scenario.building import unit_of
from dphmm.scenario.scenario import Scenario

__all__ = ["design_page"]

KINDS = ("smooth", "answer", "late", "truth")
"""The colours of the kinds of noise."""


def design_page(scenario: Scenario, found: BudgetDesign) -> str:
    """The page as HTML: the curve, the table and what is recommended.

    Args:
        scenario: The one that was designed for.
        found: The ways that were compared.
    """
    unit = unit_of(scenario)
    shown = [way for way in found.ways if way.estimate == found.ways[0].estimate]
    noises = list(dict.fromkeys(way.mechanism for way in shown))
    steps = list(dict.fromkeys(way.every for way in shown))
    lines = [
        Curve(noise, kind, [found.measured(way) for way in shown if way.mechanism == noise])
        for noise, kind in zip(noises, KINDS, strict=False)
    ]
    what = "mean distance of the estimate by steps between answers"
    by_budget = ""
    if found.tried:
        line = Curve("best", KINDS[0], [error for _, _, error in found.tried])
        labels = [as_text(amount) for amount, _, _ in found.tried]
        by_budget = curves([line], labels, "the same by budget, spent in the best way", unit)
    return render(
        "design.html",
        scenario=scenario,
        found=found,
        best=found.best,
        unit=unit,
        chart=curves(lines, [str(every) for every in steps], what, unit),
        by_budget=by_budget,
        key=[(line.kind, line.name) for line in lines],
    )
