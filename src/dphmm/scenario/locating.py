"""Where a key stands in the text of a scenario, and which one somebody may have meant."""

from __future__ import annotations

import difflib
import re

__all__ = ["find_line", "suggest"]


def find_line(text: str, section: str, key: str) -> int | None:
    """The number of the line of a key or, without a section, of a table, as plain lines tell."""
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        head = re.match(r"\s*\[\s*([\w\-]+)\s*\]", line)
        if head:
            current = head[1]
            if not section and current == key:
                return number
        elif current == section and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
            return number
    return None


def suggest(word: str, known: tuple[str, ...]) -> str:
    """The nearest of some words as the end of a message; nothing if none is near.

    >>> suggest("epsilom", ("epsilon", "limit"))
    "; did you mean 'epsilon'?"
    """
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
