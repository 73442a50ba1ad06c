"""Run every benchmarks/bench_*.py, print a table and write bench/results.json.

python -m benchmarks.run                        all of them
python -m benchmarks.run hull                   only bench_hull.py
python -m benchmarks.run --results docs/results    and a file of results for each, for pages
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import traceback
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from benchmarks import Figure
from benchmarks.results import as_result
from dphmm import kernels

HERE = Path(__file__).parent
RESULTS = HERE.parent / "bench" / "results.json"


def modules(wanted: list[str]) -> list[str]:
    """The names after bench_, all of them unless some are wanted."""
    found = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = sorted(set(wanted) - set(found))
    if unknown:
        raise SystemExit(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(found)}")
    return [name for name in found if name in wanted or not wanted]


def row(figure: Figure) -> str:
    """One line of the table."""
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}x {figure.against}"
    verdict = {None: "", True: f"met: {figure.target}", False: f"MISSED: {figure.target}"}
    return (
        f"{figure.name:<58} {figure.value:>10.4g} {figure.unit:<10} {ratio:<34} "
        f"{verdict[figure.met]}"
    ).rstrip()


def machine() -> dict[str, str | int | None]:
    """What the numbers were measured on."""
    versions = {name: version(name) for name in ("dphmm", "numpy", "scipy", "numba")}
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        **versions,
    }


def main(arguments: list[str]) -> int:
    """Exit code 0, or 1 if a target was missed or a benchmark failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--results", type=Path)
    asked = parser.parse_args(arguments)
    # What is measured is the compiled code, from the first call on.
    kernels.compile_at_once()
    results, failed = [], []
    for name in modules(asked.names):
        print(f"-- {name}", flush=True)
        load = os.getloadavg()[0]
        try:
            figures = importlib.import_module(f"benchmarks.bench_{name}").run()
        except Exception:  # one broken benchmark must not hide the others
            traceback.print_exc()
            failed.append(name)
            continue
        if asked.results is not None:
            as_result(name, figures, load).write(asked.results)
        for figure in figures:
            print(row(figure), flush=True)
            results.append({"benchmark": name, **asdict(figure), "met": figure.met})
    RESULTS.parent.mkdir(exist_ok=True)
    content = {"machine": machine(), "failed": failed, "figures": results}
    RESULTS.write_text(json.dumps(content, indent=2) + "\n")
    missed = sum(result["met"] is False for result in results)
    print(f"{len(results)} figures, {missed} targets missed, {len(failed)} benchmarks failed")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
