"""The worst of several statements: of histories of which nobody knows which it will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dphmm.cost.bracket import Bracket
from dphmm.cost.charges import Loss
from dphmm.cost.statement import PathCosts, PrivacyStatement

__all__ = ["worst_statement"]


def worst_statement(statements: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """Each number of some statements at its largest; all else is that of the first.

    Args:
        statements: At least one, about as many steps of the same scenario.
    """
    owns = [one.own for one in statements if one.own is not None]
    return replace(
        statements[0],
        releases=max(one.releases for one in statements),
        linked=max(one.linked for one in statements),
        spent=max(one.spent for one in statements),
        worst_pair=max(one.worst_pair for one in statements),
        paper_sequence=max(one.paper_sequence for one in statements),
        own=_worst_costs(owns) if owns else None,
        **vars(_worst_costs([PathCosts(s.event, s.window, s.sequence) for s in statements])),
    )


def _worst_costs(costs: Sequence[PathCosts]) -> PathCosts:
    events, windows = [one.event for one in costs], [one.window for one in costs]
    return PathCosts(_known(events), _known(windows), _worst([one.sequence for one in costs]))


def _known(costs: Sequence[Loss | Bracket | None]) -> Loss | Bracket | None:
    """The worst cost, where all of them are known."""
    known = [cost for cost in costs if cost is not None]
    return _worst(known) if len(known) == len(costs) else None


def _worst(costs: Sequence[Loss | Bracket]) -> Loss | Bracket:
    """The largest cost, or a bracket around it."""
    ends = [one if isinstance(one, Bracket) else Bracket(one, one) for one in costs]
    high, low = max(ends, key=lambda one: one.upper), max(ends, key=lambda one: one.lower)
    return Bracket(low.lower, high.upper, low.lower_from, high.upper_from).found
