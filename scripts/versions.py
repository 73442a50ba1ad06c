"""The versions of the documentation that stand beside each other, as one small page.

Every version has a folder of its own, which later ones leave alone. The page is made from these
folders, so that nothing is asked from elsewhere, and the site works from a disk too.
"""

from __future__ import annotations

import re
from pathlib import Path

_VERSION = re.compile(r"(\d+(?:\.\d+)+)(.*)")

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Versions of dphmm</title>
<style>
  :root {{ background: Canvas; color: CanvasText; color-scheme: light dark; }}
  body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 40rem;
    padding: 0 1rem; }}
</style>
<main>
<h1>Versions of dphmm</h1>
<ul>
{lines}
</ul>
</main>
</html>
"""

FIRST = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<title>dphmm</title>
<main><p><a href="{newest}/index.html">The documentation of dphmm {newest}</a></p></main>
</html>
"""


def find_versions(site: Path) -> list[str]:
    """The versions that have a folder with pages, the newest first."""
    found = (page.parent.name for page in site.glob("*/index.html"))
    return sorted(filter(_VERSION.fullmatch, found), key=_parts, reverse=True)


def _parts(version: str) -> tuple[list[int], bool, str]:
    """What versions are compared by: 1.10 comes after 1.9, and 1.0rc1 before 1.0."""
    found = _VERSION.fullmatch(version)
    assert found is not None
    numbers, rest = found.groups()
    return [int(part) for part in numbers.split(".")], not rest, rest


def write_versions(site: Path) -> None:
    """Write the list of versions, and a first page that leads to the newest."""
    found = find_versions(site)
    lines = [
        f'<li><a href="{name}/index.html">dphmm {name}</a>{"" if place else ", the newest"}</li>'
        for place, name in enumerate(found)
    ]
    page = PAGE.format(lines="\n".join(lines))
    (site / "versions.html").write_text(page, encoding="utf-8")
    (site / "index.html").write_text(FIRST.format(newest=found[0]), encoding="utf-8")
