"""Utility and privacy on the same axes: a picture drawn from a file of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10

from dphmm.errors import ArgumentError
from dphmm.evaluate.compare.field import CONTENDERS, TITLES
from dphmm.evaluate.results import Result
from dphmm.report.svg import tag

__all__ = ["draw_trade_off"]

WIDTH, HEIGHT = 900.0, 560.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 590.0, 30.0, 500.0
COLOURS = ("#0b6e75", "#b9770e", "#7d6bb0", "#a23b3b")
"""Of the budgets, the largest first; the shapes differ too, for those who see no colours."""
TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
STYLE = "text{font:13px sans-serif;fill:#222}.small{font-size:11px}.mark{fill:#fff;font-size:10px}"


def draw_trade_off(results: Sequence[Result], totals: dict[str, str]) -> str:
    """An SVG: for every mechanism and budget a reader's error against an adversary's.

    To the right a reader who has the answers so far is farther off; upwards so is an adversary
    who has all answers and knows the person's past. Both axes are logarithmic, in kilometres.

    Args:
        results: Comparisons, with `NAME.TOTAL.filtered` and `NAME.TOTAL.own` among their values.
        totals: The budgets to draw, as their values are named, and what the legend calls them.
    """
    points = [point for result in results for point in _points(result, totals)]
    if not points:
        raise ArgumentError(f"results must hold errors at {', '.join(totals)}, got none")
    every = [number for _, _, *both in points for number in both]
    low, high = 0.9 * min(every), 1.1 * max(every)

    def across(value: float) -> float:
        return LEFT + (RIGHT - LEFT) * (log10(value) - log10(low)) / (log10(high) - log10(low))

    def up(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (log10(value) - log10(low)) / (log10(high) - log10(low))

    parts = [tag("rect", width=WIDTH, height=HEIGHT, fill="#fff")]
    parts += _axes(low, high, across, up)
    names = list(CONTENDERS)
    for name, total, utility, privacy in points:
        place = list(totals).index(total)
        parts.append(_mark(across(utility), up(privacy), place, names.index(name) + 1))
    parts += _legend(names, totals)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}">'
    return f"{head}<style>{STYLE}</style>{''.join(parts)}</svg>\n"


def _points(result: Result, totals: dict[str, str]) -> list[tuple[str, str, float, float]]:
    found = []
    for total in totals:
        for name in CONTENDERS:
            key = f"{name}.{total}"
            if f"{key}.own" in result.values:
                utility, privacy = (
                    float(result.value(f"{key}.{one}").value) for one in ("filtered", "own")
                )
                found.append((name, total, utility, privacy))
    return found


Scale = Callable[[float], float]


def _axes(low: float, high: float, across: Scale, up: Scale) -> list[str]:
    parts = [tag("path", d=f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}", fill="none", stroke="#222")]
    corner = f"M{across(low):.1f} {up(low):.1f}L{across(high):.1f} {up(high):.1f}"
    parts.append(tag("path", d=corner, stroke="#bbb", stroke_dasharray="4 4"))
    for tick in (tick for tick in TICKS if low <= tick <= high):
        x, y, text = across(tick), up(tick), f"{tick:g}"
        parts.append(tag("text", text, x=x, y=BOTTOM + 18, text_anchor="middle", kind="small"))
        parts.append(tag("text", text, x=LEFT - 8, y=y + 4, text_anchor="end", kind="small"))
        parts.append(
            tag("path", d=f"M{LEFT} {y:.1f}H{RIGHT}M{x:.1f} {TOP}V{BOTTOM}", stroke="#eee")
        )
    words = "a reader's error now, km (left is more useful)"
    parts.append(tag("text", words, x=(LEFT + RIGHT) / 2, y=BOTTOM + 42, text_anchor="middle"))
    turned = f"rotate(-90 22 {(TOP + BOTTOM) / 2:g})"
    words = "error of an adversary who knows the past, km (up is more private)"
    parts.append(
        tag("text", words, x=22.0, y=(TOP + BOTTOM) / 2, text_anchor="middle", transform=turned)
    )
    return parts


def _mark(x: float, y: float, place: int, number: int) -> str:
    """A number in a shape: the shape and its colour are the budget's."""
    colour, size = COLOURS[place % len(COLOURS)], 9.0
    if place % 3 == 0:
        shape = tag("circle", cx=x, cy=y, r=size, fill=colour)
    elif place % 3 == 1:
        shape = tag("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, fill=colour)
    else:
        corners = (
            f"{x:.1f},{y - 12:.1f} {x + 12:.1f},{y:.1f} {x:.1f},{y + 12:.1f} {x - 12:.1f},{y:.1f}"
        )
        shape = tag("polygon", points=corners, fill=colour)
    return shape + tag("text", str(number), x=x, y=y + 3.5, text_anchor="middle", kind="mark")


def _legend(names: list[str], totals: dict[str, str]) -> list[str]:
    parts, y = [], TOP + 10
    for place, words in enumerate(totals.values()):
        parts.append(_mark(RIGHT + 34, y, place, 0).replace(">0<", "> <"))
        parts.append(tag("text", words, x=RIGHT + 54, y=y + 5))
        y += 28
    y += 12
    for number, name in enumerate(names, start=1):
        parts.append(tag("text", f"{number}  {TITLES[name]}", x=RIGHT + 24, y=y))
        y += 24
    return parts
