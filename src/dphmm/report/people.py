"""What a page says and draws of one person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dphmm.cost.words import describe_given
from dphmm.report.charts import budgets_of, draw_budget, draw_curves
from dphmm.report.facts import TrackFacts
from dphmm.report.given import GivenAway
from dphmm.report.moments import Moments
from dphmm.report.svg import Curve
from dphmm.report.tracks import KINDS, TrackMap

__all__ = ["PersonView", "group_rows"]

PLACES_LISTED = 10
ROWS_LISTED = 2000


@dataclass(frozen=True, eq=False)
class PersonView:
    """One person's part of the page."""

    facts: TrackFacts
    number: int
    """From 0, in the order of the page."""
    map: TrackMap
    what: str
    """What states are called, such as "places"."""

    @property
    def name(self) -> str:
        """Whom it is about."""
        return self.facts.track.person

    @cached_property
    def moments(self) -> Moments:
        """When each release was."""
        return Moments(self.map.ground.scenario.settings.clock, self.facts.track.slots)

    @cached_property
    def given(self) -> list[dict[str, Any]]:
        """For each place that was given away its name, when, and how surely."""
        labels = self.map.ground.scenario.labels
        return [
            {
                "place": labels[one.state],
                "when": self.moments.span(one.first, one.last),
                "facts": one,
            }
            for one in self.facts.given_away[:PLACES_LISTED]
        ]

    @property
    def marked(self) -> list[int]:
        """The states given away, each once, in the order of the list."""
        sure = [one["facts"].state for one in self.given if one["facts"].is_sure]
        return list(dict.fromkeys(sure))

    @property
    def gave_away(self) -> int:
        """How many places were given away."""
        return len({one.state for one in self.facts.given_away if one.is_sure})

    @property
    def sentence(self) -> str:
        """What the answers gave away."""
        labels = self.map.ground.scenario.labels
        first: dict[int, GivenAway] = {}
        for one in self.facts.given_away:
            first.setdefault(one.state, one)
        rows = [
            (labels[one.state], self.moments.span(one.first, one.last), one.sure, one.before)
            for one in first.values()
        ]
        is_sure = self.facts.given_away[0].is_sure
        heard = self.facts.near.heard
        return describe_given(self.name, self.what, rows, is_sure=is_sure, heard=heard)

    @property
    def picture(self) -> str | None:
        """The map of the person, if answers can be drawn on one."""
        if not self.map.ground.answers_are_places:
            return None
        label = f"Map of what was said about {self.name}"
        return self.map.draw(self.facts, self.marked, label)

    @property
    def outside(self) -> int:
        """How many answers lie outside the map."""
        return self.map.outside(self.facts) if self.map.ground.answers_are_places else 0

    @property
    def error_chart(self) -> str:
        """The expected distances over time."""
        facts = self.facts
        kinds = ("answer", *KINDS)
        lines = [
            Curve(kind, kind, errors.tolist())
            for kind, errors in zip(kinds, facts.expected_errors.T, strict=True)
        ]
        return draw_curves(
            lines, self.moments, "expected distance to the truth", self.map.ground.unit
        )

    @property
    def coordinates(self) -> str:
        """The estimates over time, a chart for each column, where no map can show them."""
        if self.map.ground.answers_are_places:
            return ""
        facts, ground = self.facts, self.map.ground
        kinds = (facts.estimates, facts.lagged, facts.smoothed)
        return "".join(
            draw_curves(
                [
                    Curve(kind, kind, points[:, number].tolist())
                    for kind, points in zip(KINDS, kinds, strict=True)
                ],
                self.moments,
                column,
                ground.unit,
                height=160.0,
                from_zero=False,
            )
            for number, column in enumerate(ground.scenario.columns)
        )

    @property
    def budget_charts(self) -> list[str]:
        """What was spent over time, against each part of the limit."""
        settings = self.map.ground.scenario.settings
        limit = settings.limit and settings.limit.in_steps(settings.clock.law)
        said, slots = self.facts.track.stream.said, self.moments.slots
        budgets = budgets_of(said, limit, slots[0], slots[-1])
        return [draw_budget(one, said, self.moments) for one in budgets]

    @property
    def answers(self) -> list[tuple[Any, ...]]:
        """Both times, the numbers and the price of each answer; silent steps are left out."""
        facts, scenario = self.facts, self.map.ground.scenario
        kinds = (facts.answers, facts.estimates, facts.lagged, facts.smoothed)
        numbers = np.concatenate([scenario.in_places(kind) for kind in kinds], axis=1)
        prices = [release.epsilon for release in facts.track.releases]
        rows = zip(self.moments.labels, facts.track.times, numbers.tolist(), prices, strict=True)
        said = [row for row, rules in zip(rows, facts.track.protected, strict=True) if rules]
        return said[:ROWS_LISTED]

    @property
    def columns(self) -> list[str]:
        """What the numbers of each answer are, and its price."""
        kinds = ("", "estimate ", f"{self.facts.lag} steps later ", "hindsight ")
        columns = self.map.ground.scenario.columns
        return [f"{kind}{column}" for kind in kinds for column in columns] + ["ε"]

    def data(self) -> dict[str, Any]:
        """What the page's script needs besides what is drawn."""
        return {
            "times": self.moments.labels,
            "utc": self.moments.universal if self.moments.is_local else [],
            "zone": self.moments.zone,
            "beliefs": self.facts.packed,
        }


def group_rows(rows: Sequence[tuple[str, tuple[Any, ...]]]) -> list[tuple[str, tuple[Any, ...]]]:
    """Rows that say the same as one, with their names together.

    >>> group_rows([("ann", (1,)), ("bob", (1,)), ("eve", (2,))])
    [('ann, bob', (1,)), ('eve', (2,))]
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    for name, cells in rows:
        groups.setdefault(cells, []).append(name)
    return [
        (", ".join(names) if len(names) < 4 else f"{names[0]} and {len(names) - 1} others", cells)
        for cells, names in groups.items()
    ]
