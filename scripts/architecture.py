"""The picture of the rooms in CONTRIBUTING.md, drawn from what the code imports.

`make pages` writes it; a test fails where picture and code differ. Rooms stand in their layers,
the lowest at the bottom. An arrow is an import; those that follow from others are left out, so
that the picture can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "docs" / "figures" / "rooms.svg"
WIDE, HIGH, GAP, ACROSS = 96, 30, 34, 14
"""A room's box, and the space below and beside it."""


def reduced(imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The imports without those that others lead to."""

    def below(room: str) -> set[str]:
        found: set[str] = set()
        waiting = [room]
        while waiting:
            new = imports.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    return {
        room: {one for one in targets if not any(one in below(o) for o in targets - {one})}
        for room, targets in imports.items()
    }


def split(layer: Sequence[str], imports: Mapping[str, set[str]]) -> list[list[str]]:
    """A layer in rows, the lowest first: a room stands above those of its layer it imports."""
    rows: list[list[str]] = []
    left = [room for room in layer if room in imports]
    while left:
        rows.append([room for room in left if not imports[room] & set(left) - {room}])
        left = [room for room in left if room not in rows[-1]]
    return rows


def picture(layers: Sequence[Sequence[str]], imports: Mapping[str, set[str]]) -> str:
    """The picture as SVG, light or dark as the reader's page."""
    rows = [part for row in layers for part in split(row, imports)][::-1]
    width = max(len(row) for row in rows) * (WIDE + ACROSS) + ACROSS
    places = {}
    for number, row in enumerate(rows):
        left = (width - len(row) * (WIDE + ACROSS) + ACROSS) / 2
        for column, room in enumerate(row):
            places[room] = (left + column * (WIDE + ACROSS), ACROSS + number * (HIGH + GAP))
    height = len(rows) * (HIGH + GAP) - GAP + 2 * ACROSS
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="13">',
        "<title>The rooms of dphmm and what they import</title>",
        "<style>path{fill:none;stroke:#8a8f98}rect{fill:#fff;stroke:#2f7fb0}text{fill:#1b1f24}"
        "@media(prefers-color-scheme:dark){rect{fill:#14181c}text{fill:#eceff2}}</style>",
    ]
    for room, targets in sorted(reduced(imports).items()):
        lines += [_arrow(places[room], places[target]) for target in sorted(targets)]
    for room, (x, y) in places.items():
        lines.append(f'<rect x="{x:g}" y="{y:g}" width="{WIDE}" height="{HIGH}" rx="5"/>')
        middle = f'x="{x + WIDE / 2:g}" y="{y + HIGH / 2 + 4:g}" text-anchor="middle"'
        lines.append(f"<text {middle}>{escape(room)}</text>")
    return "\n".join([*lines, "</svg>", ""])


def _arrow(upper: tuple[float, float], lower: tuple[float, float]) -> str:
    x, y = upper[0] + WIDE / 2, upper[1] + HIGH
    to, end = lower[0] + WIDE / 2, lower[1]
    return f'<path d="M{x:g} {y:g}C{x:g} {y + GAP / 2:g} {to:g} {end - GAP / 2:g} {to:g} {end:g}"/>'


def main() -> None:
    """Write the picture of the present code."""
    from tests.test_project import drawn_rooms

    FILE.write_text(drawn_rooms(), encoding="utf-8")


if __name__ == "__main__":
    main()
