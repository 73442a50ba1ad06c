"""Write the numbers of docs/results into the pages, or check that they stand there.

python scripts/include_results.py            write them, and the figures
python scripts/include_results.py --check    say which pages differ, and exit with 1

Pages are README.md and those under docs; in notebooks no measured number may stand at all.
docs/results/without-file.toml names the lines whose
numbers only look measured, and counts by page those that have no file yet; there may not be more
than it says.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from functools import cache
from pathlib import Path

from dphmm.errors import DphmmError
from dphmm.evaluate.evidence import studies
from dphmm.evaluate.results import Result, read_results
from dphmm.report.inclusion import include, included, unsourced
from dphmm.report.trade_off import draw_trade_off

ROOT = Path(__file__).resolve().parent.parent
WITHOUT = "docs/results/without-file.toml"
MADE = "docs/reference"
"""Pages that `make docs` makes from the code; they hold no measurements."""
FIGURE = "docs/figures/comparison.svg"
BUDGETS = {"288": "1 a step (288 a day)", "24": "24 a day", "4": "4 a day"}


def pages(root: Path) -> list[Path]:
    """Every page whose numbers are checked."""
    docs, made = root / "docs", root / MADE
    written = [path for path in docs.rglob("*.md") if made not in path.parents]
    return [root / "README.md", *sorted(written)]


@cache
def planned() -> frozenset[str]:
    """The results that `make evidence`, its last run and `make bench` write."""
    every = [*studies(), *studies(final=True)]
    benches = (path.stem for path in (ROOT / "benchmarks").glob("bench_*.py"))
    return frozenset(
        ["evidence", *(study.name for study in every), *(b.replace("_", ".", 1) for b in benches)]
    )


def differences(root: Path, *, write: bool = False) -> list[str]:
    """A sentence for each page that differs from the files of results; none once it is written."""
    results = read_results(root / "docs" / "results")
    found = []
    for path in pages(root):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(root)
        try:
            wanted = include(text, results, planned())
        except DphmmError as error:
            found.append(f"{name}: {error}")
            continue
        if wanted != text and write:
            path.write_text(wanted, encoding="utf-8")
        elif wanted != text:
            lines = zip(text.splitlines(), wanted.splitlines(), strict=False)
            place = next((n for n, (a, b) in enumerate(lines, start=1) if a != b), 1)
            found.append(f"{name}:{place}: numbers must be those of docs/results; run make pages")
    return found + figure(root, results, write=write) + too_many(root)


def figure(root: Path, results: dict[str, Result], *, write: bool = False) -> list[str]:
    """A sentence if the figure of the comparison differs from its file of results."""
    path = root / FIGURE
    names = [f"compare.city-{total}" for total in BUDGETS]
    shown = [results[name] for name in names if name in results]
    if not shown:
        return []
    wanted = draw_trade_off(shown, BUDGETS)
    if path.exists() and path.read_text(encoding="utf-8") == wanted:
        return []
    if not write:
        return [f"{FIGURE}: figure must be that of docs/results; run make pages"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(wanted, encoding="utf-8")
    return []


def words_of(path: Path) -> str:
    """What a page says; of a notebook what stands between its code, and what code has shown."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    said = []
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] != "code":
            said.append("".join(cell["source"]))
        for output in cell.get("outputs", []):
            shown = output.get("text", output.get("data", {}).get("text/plain", ""))
            said.append("".join(shown))
    return "\n\n".join(said)


def too_many(root: Path) -> list[str]:
    """A sentence for each page with more measured numbers that have no file than are listed."""
    listed = tomllib.loads((root / WITHOUT).read_text(encoding="utf-8"))
    found = []
    for path in [*pages(root), *sorted((root / "docs" / "notebooks").glob("*.ipynb"))]:
        name = path.relative_to(root).as_posix()
        entry = listed.get(name, {})
        lines = unsourced(words_of(path))
        settings = entry.get("settings", [])
        found += [
            f"{WITHOUT}: no line of {name} has the setting {words!r}"
            for words in settings
            if not any(words in line.text for line in lines)
        ]
        lines = [line for line in lines if not any(words in line.text for words in settings)]
        most = entry.get("measured", 0)
        if len(lines) > most:
            shown = "".join(f"\n    {line.line}: {line.text[:90]}" for line in lines)
            found.append(
                f"{name}: lines with numbers that no file of results holds must be at most "
                f"{most}, got {len(lines)}:{shown}"
            )
    return found


def older(results: dict[str, Result]) -> list[str]:
    """The results that other code than the present made: make evidence measures them again."""
    return [name for name, result in results.items() if not result.is_current]


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0, or 1 if a page differs from the files or has new numbers without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    try:
        faults = differences(ROOT, write=not check)
        results = read_results(ROOT / "docs" / "results")
    except DphmmError as error:  # a spoiled file of results
        sys.stderr.write(f"{error}\n")
        return 1
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    shown = {name for path in pages(ROOT) for name, _ in included(path.read_text("utf-8"))}
    old = older({name: result for name, result in results.items() if name in shown})
    if old:
        sys.stdout.write(
            f"other code than the present measured (make evidence): {', '.join(old)}\n"
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
