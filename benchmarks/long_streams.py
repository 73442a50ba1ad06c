"""GeoLife, people held out, several seeds of noise: estimates now, ten steps later, in hindsight.

    python -m benchmarks.long_streams ../shared/data out/long --lag 10
    python -m benchmarks.long_streams ../shared/data out/long --epsilon 5 --every 5 --lag 10

Both kinds of noise, one after the other. Errors are shares of the K-norm answer's at epsilon 1,
drawn in the same run. Results are kept in the folder, so a run that was stopped goes on where it
was. They are about true states: private.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from dphmm import Schedule
from dphmm.evaluate.late import KINDS, Late, late_shares
from dphmm.evaluate.parts import measured
from dphmm.evaluate.runs import run
from dphmm.evaluate.study import FOLDS
from dphmm.evaluate.workloads import Workload, load_workload

GOALS = {("1", 1): (0.31, 0.18), ("5", 5): (0.17, 0.085)}
"""Of staircase noise, by price and interval: filtered and smoothed, at most."""


def main() -> None:
    """Measure what is asked for and print a line for each seed, and their mean and spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--dataset", default="geolife")
    parser.add_argument("--mechanisms", nargs="+", default=["knorm", "staircase"])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--lag", type=int, help="For the last noise's first seed: it is slow.")
    parser.add_argument("--estimate", default="median")
    parser.add_argument("--anywhere", type=float)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, help="Runs of each fold at most.")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    workload = load_workload(asked.dataset, asked.data)
    names = ("epsilon", "every", "estimate", "anywhere", "limit")
    first = Late(0, lag=None, **{name: getattr(asked, name) for name in names})
    print(f"{workload.title}; {asked.estimate}, {asked.seeds} seeds of noise")
    print(f"Two paths that are linked at every time: {_promise(first)}")
    for mechanism in asked.mechanisms:
        lag = asked.lag if mechanism == asked.mechanisms[-1] else None
        print(f"{mechanism}:", flush=True)
        one = replace(first, mechanism=mechanism)
        shares = [
            _shares(asked, workload, replace(one, seed=seed, lag=None if seed else lag))
            for seed in range(asked.seeds)
        ]
        known = np.ma.masked_invalid(shares)
        mean = known.mean(axis=0).filled(np.nan)
        print("  mean:   " + _line(mean))
        print("  spread: " + _line(known.std(axis=0).filled(np.nan)))
        goals = GOALS.get((asked.epsilon, asked.every))
        if mechanism == "staircase" and goals:
            told = zip(("filtered", "smoothed"), mean[[0, -1]], goals, strict=True)
            parts = (f"{kind} {100 * (goal - value):+.2f} points" for kind, value, goal in told)
            print("  below the goal by: " + ", ".join(parts))


def _shares(asked: argparse.Namespace, workload: Workload, one: Late) -> list[float]:
    """The shares of one seed over all folds, printed; the first seed's for each fold, too."""
    folds = [replace(one, fold=fold) for fold in range(FOLDS)]
    for _ in run(asked.output, workload, folds, workers=asked.workers):
        pass
    results = [measured(asked.output, workload, fold) for fold in folds]
    shares = late_shares(results)
    print(f"  seed {one.seed}: " + _line(shares.values()), flush=True)
    for fold, result in enumerate([] if one.seed else results):
        if len(result["raw"]):
            found = _line(late_shares([result]).values())
            print(f"    fold {fold}, {len(result['raw'])} runs: {found}")
    return [shares[kind] for kind in KINDS]


def _promise(one: Late) -> str:
    """The price at an instant, in the window that the stream's ledger holds, and of a run."""
    most = {width: Schedule(every=one.every).most_in(width) for width in (one.every, one.steps)}
    parts = [f"epsilon {one.epsilon} at an instant"]
    parts += [f"{n} x {one.epsilon} in any {width} steps" for width, n in most.items()]
    return ", ".join(parts)


def _line(values: Iterable[float]) -> str:
    pairs = zip(KINDS, values, strict=True)
    return ", ".join(f"{kind} {100 * v:.2f}%" for kind, v in pairs if not np.isnan(v))


if __name__ == "__main__":
    main()
