"""The picture of a statement."""

from __future__ import annotations

from math import isinf
from textwrap import fill
from typing import TYPE_CHECKING, Any

from dphmm.cost.bracket import Bracket
from dphmm.cost.words import OWN_MOVES, show_number
from dphmm.geometry.plotting import ACCENT, MAIN, find_axes

if TYPE_CHECKING:
    from dphmm.cost.statement import PrivacyStatement

__all__ = ["plot_statement"]


def plot_statement(self: PrivacyStatement, axes: Any = None) -> Any:
    """Draw what the answers cost, as epsilon: a step, a moment, a window, the whole path.

    Costs by the model's own moves stand beside, where the statement has them. Without a limit
    a bar fills the picture and says so; what was not computed is missing. For whom it holds
    stands below.

    Args:
        axes: Where to draw; a new figure by default.
    """
    axes = find_axes(axes)
    rows = _rows(self)
    known = [cost for _, costs in rows for cost in costs if cost is not None and not isinf(cost)]
    widest = max([cost for cost in known if cost > 0], default=1.0)
    for place, (_, costs) in enumerate(rows):
        for beside, (cost, colour) in enumerate(zip(costs, (MAIN, ACCENT), strict=True)):
            if cost is None:
                continue
            endless, where = isinf(cost), place + 0.2 * (2 * beside - 1)
            axes.barh(where, 1.1 * widest if endless else cost, 0.36, color=colour)
            said = "no limit" if endless else show_number(cost)
            axes.annotate(
                said, (1.1 * widest if endless else cost, where), (4, 0), va="center",
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.3 * widest)
    only = self.condition.lstrip(",; ")
    if any(own is not None for _, (_, own) in rows):
        only = f"{only + '; ' if only else ''}the second bars: for {OWN_MOVES}"
    axes.set_xlabel("\n".join(["epsilon", *([fill(only, 80)] if only else [])]))
    return axes


def _rows(statement: PrivacyStatement) -> list[tuple[str, tuple[float | None, float | None]]]:
    """What each bar is called, and how long it and the one beside it are."""
    own = statement.own
    steps = "1 step" if statement.width == 1 else f"{statement.width} steps"
    names = {"event": "one moment", "window": steps, "sequence": "the whole path"}
    rows: list[tuple[str, tuple[float | None, float | None]]] = [
        ("linked states, one step", (_length(statement.linked), None)),
        ("any two states, one step", (_length(statement.worst_pair), None)),
    ]
    for field, name in names.items():
        beside = None if own is None else _length(getattr(own, field))
        rows.append((name, (_length(getattr(statement, field)), beside)))
    return rows


def _length(cost: Any) -> float | None:
    return None if cost is None else float(cost.upper if isinstance(cost, Bracket) else cost)
