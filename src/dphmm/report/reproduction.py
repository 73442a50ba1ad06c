"""The page of `dphmm reproduce`: our curves beside the paper's claims. Private.

Everything here is computed from true states, so files and page are named and marked private.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.claims import Claim, Curves, claims_of
from dphmm.evaluate.experiments import POLICIES, Task
from dphmm.evaluate.parts import measured
from dphmm.evaluate.study import READERS, Fold, ratios
from dphmm.evaluate.workloads import LEARNED, MOVES, Workload
from dphmm.report import plots
from dphmm.report.rendering import render
from dphmm.tables.files import csv_text, write_whole

__all__ = ["Reproduction"]

PEOPLE = {"others": "learned from other people", "same": "learned from everybody, as in the paper"}
LENGTHS = {"all": "all moves", "short": "short moves only"}
KINDS = ("filtered", "filtered_median", "smoothed", "smoothed_median")
TARGETS = {"filtered": 0.35, "smoothed": 0.20}
READER_WORDS = {
    "first_order": "The chain of states, with a little smoothing over neighbouring cells.",
    "hourly": "The same for each quarter of the day.",
    "second_order": "Pairs of states, mixed with the chain of states.",
    "momentum": "States with the direction of the last move, or how long they have stayed.",
}


class Reproduction:
    """The results of one dataset, read from where the experiments kept them."""

    def __init__(self, folder: Path, workload: Workload, folds: Sequence[Fold]) -> None:
        self.folder = folder
        self.workload = workload
        self._results: dict[str, dict[str, FloatArray]] = {}
        self.curves = {
            (learned, moves): Curves(workload, learned, moves, self.result)
            for learned in LEARNED
            for moves in MOVES
        }
        self.claims = {key: claims_of(curves) for key, curves in self.curves.items()}
        self.folds = [measured(folder, workload, fold) for fold in folds]
        self.shares = ratios(self.folds) if any(len(fold["raw"]) for fold in self.folds) else {}

    def result(self, task: Task) -> dict[str, FloatArray]:
        """What a task measured."""
        if task.name not in self._results:
            self._results[task.name] = measured(self.folder, self.workload, task)
        return self._results[task.name]

    def write(self) -> list[Path]:
        """Write tables, figures and the page; returns their paths, the page first."""
        written = []
        for name, head, rows in self._tables():
            written.append(self.folder / f"private-{name}.csv")
            write_whole(
                written[-1],
                csv_text([head, *([str(c) for c in row] for row in rows)]),
                private=True,
            )
        figures = {}
        for (learned, moves), curves in self.curves.items():
            figures[f"performance-{learned}-{moves}"] = plots.performance(curves)
        figures["runtime"] = plots.runtime(self.curves["others", "all"])
        if self.shares:
            figures["readers"] = plots.readers(self.shares, READERS)
        images = {}
        for name, figure in figures.items():
            for form in ("svg", "png"):
                path = self.folder / f"private-{name}.{form}"
                content = plots.to_bytes(figure, form)
                write_whole(path, content, private=True)
                written.append(path)
                if form == "svg":
                    images[name] = b64encode(content).decode()
        page = self.folder / "private-page.html"
        write_whole(page, self._page(images), private=True)
        return [page, *written]

    def facts(self) -> dict[str, Any]:
        """The outcome for programs: every claim, and the readers' shares."""
        return {
            "dataset": self.workload.name,
            "private": True,
            "claims": [
                {"learned": learned, "moves": moves, "claim": claim.text, "held": claim.held}
                | {"found": claim.found}
                for (learned, moves), claims in self.claims.items()
                for claim in claims
            ],
            "readers": {
                name: {"share": share, "spread": spread}
                for name, (share, spread) in self.shares.items()
            },
        }

    def options(self) -> list[tuple[str, str, float, float]]:
        """Policy, what differs, mean error and mean DoP, for repairs and bodies."""
        rows = []
        for policy in ("distance", "one_step"):
            usual = self.curves["others", "all"].task(policy)
            for words, task in (
                ("min_error repair (default)", usual),
                ("nearest repair", Task(policy, radius=usual.radius, repair="nearest")),
                ("enlarged body", Task(policy, radius=usual.radius, shape="enlarged")),
            ):
                found = self.result(task)
                error, hidden = float(found["error"].mean()), float(found["hidden"].mean())
                rows.append((policy, words, error, hidden))
        return rows

    def _tables(self) -> Iterable[tuple[str, list[str], list[list[object]]]]:
        measures = ("hidden", "error", "filtered", "smoothed", "possible", "stand_in", "seconds")
        time: list[list[object]] = []
        price: list[list[object]] = []
        reach: list[list[object]] = []
        for (learned, moves), curves in self.curves.items():
            for policy in POLICIES:
                rows = np.stack([curves.over_time(measure, policy) for measure in measures], axis=1)
                for step, row in enumerate(rows, start=1):
                    time.append([learned, moves, policy, step, *_round(row)])
                for epsilon in self.workload.epsilons if curves.varied else ():
                    pair = [
                        curves.mean(m, policy, epsilon) for m in ("hidden", "error", "filtered")
                    ]
                    price.append([learned, moves, policy, epsilon, *_round(pair)])
            for radius in self.workload.radii if curves.varied else ():
                pair = [
                    curves.mean(m, "distance", radius=radius)
                    for m in ("hidden", "error", "filtered")
                ]
                reach.append([learned, moves, radius, *_round(pair)])
        yield "over-time", ["learned", "moves", "policy", "step", *measures], time
        head = ["hidden", "error", "filtered"]
        yield "by-epsilon", ["learned", "moves", "policy", "epsilon", *head], price
        yield "by-radius", ["learned", "moves", "radius", *head], reach
        claims: list[list[object]] = [
            [learned, moves, claim.text, claim.held, claim.found, "" if claim.held else claim.why]
            for (learned, moves), rows in self.claims.items()
            for claim in rows
        ]
        yield "claims", ["learned", "moves", "claim", "held", "found", "why_not"], claims
        shares: list[list[object]] = [[n, *_round(share)] for n, share in self.shares.items()]
        yield "readers", ["estimate", "share_of_raw_error", "spread_over_folds"], shares
        yield "options", ["policy", "option", "error", "hidden"], [list(r) for r in self.options()]

    def _page(self, images: dict[str, str]) -> str:
        texts = dict.fromkeys(claim.text for claims in self.claims.values() for claim in claims)
        raws = [fold["raw"] for fold in self.folds if len(fold["raw"])]
        return render(
            "reproduction.html",
            workload=self.workload,
            images=images,
            titles={key: f"{PEOPLE[key[0]]}; {LENGTHS[key[1]]}" for key in self.claims},
            curves=self.curves,
            usual=self.curves["others", "all"],
            claims=self.claims,
            summary=[
                (text, [_claim(claims, text) for claims in self.claims.values()]) for text in texts
            ],
            options=self.options(),
            policy_names=plots.LABELS,
            folds=len(self.folds),
            raw=np.concatenate(raws) if raws else None,
            readers=[
                (words, [self.shares[f"{name}_{kind}"] for kind in KINDS])
                for name, words in READER_WORDS.items()
                if self.shares
            ],
            goal_met=bool(self.shares)
            and all(self.shares[f"momentum_{kind}"][0] <= most for kind, most in TARGETS.items()),
        )


def _claim(claims: Sequence[Claim], text: str) -> Claim | None:
    return next((claim for claim in claims if claim.text == text), None)


def _round(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
