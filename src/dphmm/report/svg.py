"""Pieces of SVG: frames, cells, lines, curves. Colours are classes; the page's CSS has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isnan

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray

__all__ = [
    "Curve",
    "Frame",
    "curves",
    "drawing",
    "nice_ticks",
    "points_list",
    "tag",
    "write_number",
]

WIDTH = 460.0
"""Of every drawing, in its own units; the page scales it, and its text is 13 to 16 of them high."""


def tag(name: str, text: str = "", **attributes: object) -> str:
    """An element; underscores in attribute names become hyphens, `kind` is its class.

    >>> tag("line", x1=0, stroke_width=2, kind="edge")
    '<line x1="0" stroke-width="2" class="edge"/>'
    >>> tag("text", "a < b")
    '<text>a &lt; b</text>'
    """
    written = "".join(
        f' {"class" if key == "kind" else key.replace("_", "-")}="{escape(_plain(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{escape(text)}</{name}>" if text else f"<{name}{written}/>"


def drawing(parts: Iterable[str], height: float, label: str, width: float = WIDTH) -> str:
    """A whole drawing that scales with the page; `label` says what it shows."""
    box = f"0 0 {_plain(width)} {_plain(height)}"
    return f'<svg viewBox="{box}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


@dataclass(frozen=True)
class Frame:
    """Where things on a plane stand on a drawing: same scale both ways, north is up."""

    low: FloatArray
    scale: float
    margin: float
    height: float

    @classmethod
    def around(cls, points: ArrayLike, margin: float = 16.0, tallest: float = WIDTH) -> Frame:
        """The frame that shows all points."""
        shown = np.asarray(points, dtype=np.float64)
        low, high = shown.min(axis=0), shown.max(axis=0)
        size = np.maximum(high - low, 1e-9 * max(float(np.abs(shown).max()), 1.0))
        scale = min((WIDTH - 2 * margin) / size[0], (tallest - 2 * margin) / size[1])
        middle = (low + high) / 2
        height = max(float(size[1] * scale) + 2 * margin, 60.0)
        half = np.array([WIDTH - 2 * margin, height - 2 * margin]) / 2 / scale
        return cls(middle - half, float(scale), margin, height)

    @property
    def width(self) -> float:
        """Of the drawing."""
        return WIDTH

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest point that the drawing shows."""
        low = self.low - self.margin / self.scale
        return low, low + np.array([self.width, self.height]) / self.scale

    def place(self, points: ArrayLike) -> FloatArray:
        """Drawing coordinates of points."""
        moved = (np.asarray(points, dtype=np.float64).reshape(-1, 2) - self.low) * self.scale
        moved += self.margin
        moved[:, 1] = self.height - moved[:, 1]
        return moved

    def segments(self, starts: ArrayLike, ends: ArrayLike, kind: str) -> str:
        """Lines between pairs of points, as one path."""
        pairs = np.concatenate([self.place(starts), self.place(ends)], axis=1)
        moves = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in pairs.tolist())
        return tag("path", d=moves, kind=kind) if moves else ""

    def track(self, points: ArrayLike, kind: str) -> str:
        """A line through points."""
        return tag("polyline", points=points_list(self.place(points)), kind=kind)

    def polygon(self, points: ArrayLike, kind: str) -> str:
        """A closed area."""
        return tag("polygon", points=points_list(self.place(points)), kind=kind)

    def dots(self, points: ArrayLike, radius: float, kind: str) -> str:
        """A circle at every point, as one path."""
        r, d = f"{radius:.1f}", f"{2 * radius:.1f}"
        moves = "".join(
            f"M{x - radius:.1f} {y:.1f}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0"
            for x, y in self.place(points).tolist()
        )
        return tag("path", d=moves, kind=kind) if moves else ""

    def ruler(self, unit: str) -> str:
        """A line of a round length, with its length in words."""
        length = nice_ticks(0, 0.25 * WIDTH / self.scale, 2)[-1]
        end = 10 + length * self.scale
        y = self.height - 7
        bar = tag("path", d=f"M10 {y - 4:.1f}V{y:.1f}H{end:.1f}V{y - 4:.1f}", kind="ruler")
        label = f"{write_number(length)} {unit}".strip()
        return bar + tag("text", label, x=end + 5, y=y, kind="small halo")


@dataclass(frozen=True)
class Curve:
    """One line of a chart."""

    name: str
    kind: str
    values: Sequence[float]


def curves(
    lines: Sequence[Curve],
    labels: Sequence[str],
    what: str,
    unit: str,
    height: float = 230.0,
    from_zero: bool = True,
) -> str:
    """A chart of some values over time."""
    left, right, top, bottom = 58.0, 10.0, 22.0, 24.0
    most = max((float(np.nanmax(line.values)) for line in lines), default=1.0) or 1.0
    least = min((float(np.nanmin(line.values)) for line in lines), default=0.0)
    least = min(least, 0.0) if from_zero else least
    ticks = nice_ticks(least, most, 4)
    most, least = max(most, ticks[-1]), min(least, ticks[0])
    count = len(labels)

    def across(step: float) -> float:
        return left + (WIDTH - left - right) * step / max(count - 1, 1)

    def up(value: float) -> float:
        return height - bottom - (height - top - bottom) * (value - least) / (most - least or 1)

    parts = [tag("text", f"{what} ({unit})" if unit else what, x=0.0, y=11.0, kind="small")]
    for tick in ticks:
        parts.append(tag("line", x1=left, x2=WIDTH - right, y1=up(tick), y2=up(tick), kind="grid"))
        text = write_number(tick)
        parts.append(tag("text", text, x=left - 6, y=up(tick) + 4, kind="small end"))
    shown = np.unique(np.linspace(0, count - 1, min(count, 5)).astype(int)).tolist()
    for step in shown:
        anchor = "start" if step == 0 else "end" if step == count - 1 else "middle"
        anchor = "middle" if count == 1 else anchor
        parts.append(
            tag("text", labels[step], x=across(step), y=height - 6, kind=f"small {anchor}")
        )
    for line in lines:
        known = [(k, float(v)) for k, v in enumerate(line.values) if not isnan(v)]
        points = np.array([[across(k), up(value)] for k, value in known])
        parts.append(tag("polyline", points=points_list(points), kind=f"curve {line.kind}"))
    return drawing(parts, height, f"{what}, {unit}" if unit else what)


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers from about `low` to about `high`, roughly so many steps apart.

    >>> nice_ticks(0, 1730, 4)
    [0.0, 500.0, 1000.0, 1500.0]
    """
    rough = max(high - low, 1e-300) / count
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(min((1, 2, 5, 10), key=lambda f: abs(f * power - rough)) * power)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(k * step, 12) for k in range(first, last + 1)]


def write_number(value: float) -> str:
    """A round number as people write it: commas between thousands, no powers of ten.

    >>> write_number(1500000.0), write_number(0.25), write_number(-0.0)
    ('1,500,000', '0.25', '0')
    """
    text = f"{value or 0.0:,.12f}".rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


def points_list(points: FloatArray) -> str:
    """Points as the elements of lines and areas want them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points.tolist())


def _plain(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
