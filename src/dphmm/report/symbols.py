"""The shape of each category, beside its colour; the order is the studio's."""

from __future__ import annotations

from math import cos, pi, sin

__all__ = ["draw_symbol", "symbol_key"]


def draw_symbol(number: int, x: float, y: float, radius: float) -> str:
    """The symbol of a category around a point, as the data of a path.

    Args:
        number: Of the category; the eighth and all later ones share the last symbol.
        x: Where it is.
        y: Where it is.
        radius: How large it is.
    """
    corners = _SHAPES[min(number, len(_SHAPES) - 1)]
    moved = (f"{x + radius * a:.1f} {y + radius * b:.1f}" for a, b in corners)
    return f"M{'L'.join(moved)}z"


def symbol_key(kind: str) -> str:
    """The symbol in the key of a category's colour; nothing for other kinds."""
    if not (kind[:1] == "c" and kind[1:].isdigit()):
        return ""
    return draw_symbol(int(kind[1:]), 6, 6, 3.2)


def _star(points: int, inner: float, turn: float = -pi / 2) -> list[tuple[float, float]]:
    corners = []
    for number in range(2 * points):
        size, angle = (1.25 if number % 2 == 0 else inner), turn + pi * number / points
        corners.append((size * cos(angle), size * sin(angle)))
    return corners


def _ring(points: int, turn: float, size: float = 1.0) -> list[tuple[float, float]]:
    angles = (turn + 2 * pi * number / points for number in range(points))
    return [(size * cos(angle), size * sin(angle)) for angle in angles]


_CROSS = [
    *((0.35, -1.1), (0.35, -0.35), (1.1, -0.35), (1.1, 0.35), (0.35, 0.35), (0.35, 1.1)),
    *((-0.35, 1.1), (-0.35, 0.35), (-1.1, 0.35), (-1.1, -0.35), (-0.35, -0.35), (-0.35, -1.1)),
]
_WYE = [
    point
    for number in range(3)
    for angle in (pi / 2 + 2 * pi * number / 3,)
    for point in (
        (1.2 * cos(angle) + 0.3 * sin(angle), 1.2 * sin(angle) - 0.3 * cos(angle)),
        (1.2 * cos(angle) - 0.3 * sin(angle), 1.2 * sin(angle) + 0.3 * cos(angle)),
        (0.35 * cos(angle + pi / 3), 0.35 * sin(angle + pi / 3)),
    )
]
_SHAPES = (
    _ring(12, 0.0),
    _ring(4, pi / 4, 1.2),
    [(0.0, -1.35), (0.8, 0.0), (0.0, 1.35), (-0.8, 0.0)],
    _ring(3, -pi / 2, 1.25),
    _star(5, 0.5),
    _CROSS,
    _WYE,
    _ring(8, pi / 8),
)
"""Circle, square, diamond, triangle, star, cross, wye, octagon."""
