"""Charts over the time of a track, with a line that a page can move along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isnan

import numpy as np

from dphmm.cost.limit import Limit
from dphmm.release.said import Said
from dphmm.report.moments import LABEL, Moments
from dphmm.report.svg import WIDTH, Curve, drawing, nice_ticks, points_list, tag, write_number

__all__ = ["Budget", "budgets_of", "draw_budget", "draw_curves"]

LEFT, RIGHT, TOP, BOTTOM = 64.0, 12.0, 30.0, 28.0


@dataclass(frozen=True)
class Budget:
    """What was spent within one part of a limit, answer by answer."""

    words: str
    """What is drawn, such as "ε within any 1 day"."""
    limit: Fraction | None
    times: tuple[int, ...]
    """The slots at which the sum changes: at answers, and where they leave a window."""
    sums: tuple[Fraction, ...]
    """The sum from that slot on."""
    before: Fraction
    """The sum before the first of them."""


def budgets_of(said: Sequence[Said], limit: Limit | None, first: int, last: int) -> list[Budget]:
    """What was spent over time, for each window of a limit and in all.

    Args:
        said: All answers that are known.
        limit: What may be spent, in steps.
        first: The first slot that is drawn.
        last: The last one.
    """
    windows = () if limit is None else limit.windows
    found = [
        _within(said, f"ε within any {one.length}", one.amount, one.width, first, last)
        for one in windows
    ]
    if limit is None or limit.total is not None or not found:
        total = None if limit is None else limit.total
        found.append(_within(said, "ε in all", total, None, first, last))
    return found


def _within(
    said: Sequence[Said],
    words: str,
    limit: Fraction | None,
    width: int | None,
    first: int,
    last: int,
) -> Budget:
    changes: dict[int, Fraction] = {}
    for one in said:
        changes[one.time] = changes.get(one.time, Fraction(0)) + one.epsilon
        if width is not None:
            end = one.time + width
            changes[end] = changes.get(end, Fraction(0)) - one.epsilon
    total = before = Fraction(0)
    times, sums = [], []
    for time in sorted(changes):
        total += changes[time]
        if time < first:
            before = total
        elif time <= last:
            times.append(time)
            sums.append(total)
    return Budget(words, limit, tuple(times), tuple(sums), before)


def draw_budget(budget: Budget, said: Sequence[Said], moments: Moments) -> str:
    """The sum as steps, a mark at each answer, and the limit that it stays below."""
    sums = [float(one) for one in budget.sums]
    most = max([float(budget.before), *sums, float(budget.limit or 0)]) or 1.0
    chart = _Axes(moments, 160.0, 0.0, most)
    parts = chart.frame(budget.words)
    level = float(budget.before)
    line = [(0.0, level)]
    for time, value in zip(budget.times, sums, strict=True):
        at = moments.position(time)
        line += [(at, level), (at, value)]
        level = value
    line.append((1.0, level))
    parts.append(tag("polyline", points=chart.points(line), kind="curve spent"))
    if budget.limit is not None:
        height = chart.up(float(budget.limit))
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=height, y2=height, kind="limit"))
        text = f"limit {write_number(float(budget.limit))}"
        parts.append(tag("text", text, x=WIDTH / 2, y=height - 5, kind="small middle halo"))
    drawn = {one.time for one in said}
    marks = [
        (moments.position(time), value)
        for time, value in zip(budget.times, sums, strict=True)
        if time in drawn
    ]
    for at, value in marks:
        x, y = chart.across(at), chart.up(value)
        parts.append(tag("path", d=f"M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z", kind="answered"))
    return drawing(parts, chart.height, f"{budget.words}, over time")


def draw_curves(
    lines: Sequence[Curve],
    moments: Moments,
    what: str,
    unit: str,
    *,
    height: float = 210.0,
    from_zero: bool = True,
) -> str:
    """Values at every moment as lines; where there is none at some, as marks."""
    known = np.concatenate([np.asarray(line.values, dtype=float) for line in lines])
    known = known[~np.isnan(known)]
    most, least = (float(known.max()), float(known.min())) if len(known) else (1.0, 0.0)
    chart = _Axes(moments, height, min(least, 0.0) if from_zero else least, most)
    parts = chart.frame(f"{what} ({unit})" if unit else what)
    places = [moments.position(slot) for slot in moments.slots]
    for line in lines:
        there = [(at, v) for at, v in zip(places, line.values, strict=True) if not isnan(v)]
        if len(there) == len(places):
            parts.append(tag("polyline", points=chart.points(there), kind=f"curve {line.kind}"))
            continue
        for at, value in there:
            x, y = chart.across(at), chart.up(value)
            parts.append(tag("circle", cx=x, cy=y, r=2.6, kind=f"dot {line.kind}"))
    return drawing(parts, height, f"{what}, {unit}" if unit else what)


class _Axes:
    """The axes of a chart over time."""

    def __init__(self, moments: Moments, height: float, least: float, most: float) -> None:
        self.moments, self.height = moments, height
        self.ticks = nice_ticks(least, most, 4)
        self.most, self.least = max(most, self.ticks[-1]), min(least, self.ticks[0])

    def across(self, at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at

    def up(self, value: float) -> float:
        share = (value - self.least) / (self.most - self.least or 1)
        return self.height - BOTTOM - (self.height - TOP - BOTTOM) * share

    def points(self, line: Sequence[tuple[float, float]]) -> str:
        return points_list(np.array([[self.across(at), self.up(value)] for at, value in line]))

    def frame(self, title: str) -> list[str]:
        """Title, lines across, and labels of both axes."""
        parts = [tag("text", title, x=0.0, y=14.0, kind="small")]
        for tick in self.ticks:
            height = self.up(tick)
            parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=height, y2=height, kind="grid"))
            text = write_number(tick)
            parts.append(tag("text", text, x=LEFT - 6, y=height + 4, kind="small end"))
        for at, label in self.moments.ticks(WIDTH - LEFT - RIGHT):
            x = self.across(at)
            if x + LABEL * len(label) / 2 <= WIDTH:
                parts.append(tag("text", label, x=x, y=self.height - 6, kind="small middle tick"))
        base, top = self.height - BOTTOM, TOP - 4
        parts.append(tag("line", x1=LEFT, x2=LEFT, y1=top, y2=base, kind="cursor"))
        return parts
