"""Measured numbers on pages: each stands between two markers and comes from a file of results.

    <!-- result: geolife.readers momentum.filtered -->31.8%<!-- end -->
    <!-- result: geolife.readers momentum.filtered interval -->31.8% (30.1% to 33.4%)<!-- end -->
    <!-- result: geolife.readers momentum.filtered .0% -->32%<!-- end -->

A marker `table: NAME KEY` holds a table on lines of its own, `origin: NAME` the sentence that says
what made the numbers. Numbers that look measured and stand outside are counted, page by page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dphmm.errors import ArgumentError
from dphmm.evaluate.results import Result

__all__ = ["Unsourced", "include", "included", "unsourced"]

BLOCK = re.compile(r"<!-- (result|table|origin): ([^>]*?) -->(.*?)<!-- end -->", re.DOTALL)
OPENING = re.compile(r"<!--\s*(result|table|origin)\s*:")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`[^`\n]*`")
MEASURED = re.compile(
    r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:"
    r"%|[  ]?(?:ms|µs|μs|us|GiB|MiB|GB|MB|kB|s|min|minutes|seconds|m|km|metres|kilometres)\b"
    r"|[ \u00a0]?(?:milliseconds|microseconds|percent|per cent)\b|(?:x\b|×)"
    r"| (?:times|releases|rows|answers|person-steps|points|cells|people)\b)"
)
"""What looks like a measurement: a number with a unit of time, size, length, speed or share."""

NOT_MEASURED = "not measured yet"


@dataclass(frozen=True)
class Unsourced:
    """A line of a page with numbers that no file of results stands behind."""

    line: int
    text: str


def include(page: str, results: Mapping[str, Result], planned: Collection[str] = ()) -> str:
    """The page with every marked number as its file has it.

    Args:
        page: A text in Markdown.
        results: The results by their names.
        planned: Results that there will be: until then a page says that they are not measured.
    """
    blocks = list(BLOCK.finditer(page))
    if len(blocks) != len(OPENING.findall(page)):
        raise ArgumentError("page must close every marker with <!-- end -->, got an open one")
    return BLOCK.sub(lambda found: _filled(found, results, planned), page)


def included(page: str) -> list[tuple[str, str]]:
    """The results that a page takes numbers from: the name of the file, and the key."""
    found = []
    for kind, words, _ in BLOCK.findall(page):
        name, *rest = words.split()
        found.append((name, "" if kind == "origin" else rest[0]))
    return found


def unsourced(page: str) -> list[Unsourced]:
    """The lines with numbers that look measured and stand outside every marker and example."""
    bare = page
    for pattern in (BLOCK, FENCE):
        bare = pattern.sub(lambda found: "\n" * found.group().count("\n"), bare)
    return [
        Unsourced(number, line.strip())
        for number, line in enumerate(bare.splitlines(), start=1)
        if MEASURED.search(SPAN.sub("", line))
    ]


def _filled(found: re.Match[str], results: Mapping[str, Result], planned: Collection[str]) -> str:
    kind, words, _ = found.groups()
    name, *rest = words.split() or [""]
    if name not in results and name in planned:
        text = f"\n*{NOT_MEASURED}*\n" if kind == "table" else NOT_MEASURED
        return f"<!-- {kind}: {words} -->{text}<!-- end -->"
    if name not in results:
        raise ArgumentError(f"result must be one of {', '.join(sorted(results))}, got {name!r}")
    return f"<!-- {kind}: {words} -->{_content(kind, results[name], rest)}<!-- end -->"


def _content(kind: str, result: Result, rest: list[str]) -> str:
    if kind == "origin" and not rest:
        return result.origin()
    if kind == "table" and len(rest) == 1:
        return f"\n{result.table(rest[0]).text()}\n"
    if kind == "result" and rest:
        value, forms = result.value(rest[0]), [word for word in rest[1:] if word != "interval"]
        if len(forms) <= 1:
            return value.text("".join(forms), interval="interval" in rest[1:])
    raise ArgumentError(
        f"marker must read like 'result: NAME KEY', 'table: NAME KEY' or 'origin: NAME', "
        f"got {' '.join([f'{kind}:', result.name, *rest])!r}"
    )
