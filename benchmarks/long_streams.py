"""GeoLife, people held out, several seeds of noise: estimates now, ten steps later, in hindsight.

    python -m benchmarks.long_streams ../shared/data out/long --seeds 5
    python -m benchmarks.long_streams ../shared/data out/long --mechanism staircase --epsilon 5 \\
        --every 5

Errors are shares of the K-norm answer's at epsilon 1, drawn in the same run. Results are kept in
the folder, so a run that was stopped goes on where it was. They are about true states: private.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dphmm.evaluate.experiments import measured, run
from dphmm.evaluate.late import KINDS, Late, late_shares
from dphmm.evaluate.study import FOLDS
from dphmm.evaluate.workloads import load_workload


def main() -> None:
    """Measure what is asked for and print a line for each seed, and their mean and spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--dataset", default="geolife")
    parser.add_argument("--mechanism", default="knorm")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--lag", type=int, default=10, help="For the first seed only: it is slow.")
    parser.add_argument("--estimate", default="median")
    parser.add_argument("--anywhere", type=float)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, help="Runs of each fold at most.")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    workload = load_workload(asked.dataset, asked.data)
    names = ("mechanism", "epsilon", "every", "lag", "estimate", "anywhere", "limit")
    options = {name: getattr(asked, name) for name in names}
    tasks = {
        seed: [
            Late(fold, seed, **(options if not seed else {**options, "lag": None}))
            for fold in range(FOLDS)
        ]
        for seed in range(asked.seeds)
    }
    shares = []
    print(f"{workload.title}; {options}")
    for seed, folds in tasks.items():
        for _ in run(asked.output, workload, folds, workers=asked.workers):
            pass
        results = [measured(asked.output, workload, fold.name) for fold in folds]
        shares.append([late_shares(results)[kind] for kind in KINDS])
        print(f"seed {seed}: " + _line(shares[-1]), flush=True)
        if not seed:
            for fold, result in zip(folds, results, strict=True):
                found = late_shares([result]) if len(result["raw"]) else {}
                print(f"  fold {fold.fold}, {len(result['raw'])} runs: {_line(found.values())}")
    print("mean:   " + _line(np.nanmean(shares, axis=0)))
    print("spread: " + _line(np.nanstd(shares, axis=0)))


def _line(values: object) -> str:
    return ", ".join(
        f"{kind} {100 * value:.2f}%" for kind, value in zip(KINDS, values, strict=False)
    )


if __name__ == "__main__":
    main()
