"""The page of `dphmm reproduce`: our curves beside the paper's claims. Private.

Everything here is computed from true states, so files and page are named and marked private.
"""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from dphmm import __version__
from dphmm._types import FloatArray
from dphmm.evaluate.claims import Claim, Curves, claims_of
from dphmm.evaluate.experiments import POLICIES, Task, measured
from dphmm.evaluate.study import READERS, Fold, ratios
from dphmm.evaluate.workloads import LEARNED, MOVES, Workload
from dphmm.report import plots
from dphmm.tables.files import write_whole

__all__ = ["Reproduction"]

PEOPLE = {"others": "learned from other people", "same": "learned from everybody, as in the paper"}
LENGTHS = {"all": "all moves", "short": "short moves only"}
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
        self.folds = [measured(folder, workload, fold.name) for fold in folds]
        self.shares = ratios(self.folds) if any(len(fold["raw"]) for fold in self.folds) else {}

    def result(self, task: Task) -> dict[str, FloatArray]:
        """What a task measured."""
        if task.name not in self._results:
            self._results[task.name] = measured(self.folder, self.workload, task.name)
        return self._results[task.name]

    def write(self) -> list[Path]:
        """Write tables, figures and the page; returns their paths, the page first."""
        written = [self._table(name, head, rows) for name, head, rows in self._tables()]
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
                content = plots.saved(figure, form)
                write_whole(path, content)
                written.append(path)
                if form == "svg":
                    images[name] = b64encode(content).decode()
        page = self.folder / "private-page.html"
        write_whole(page, self._page(images))
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
                    time.append([learned, moves, policy, step, *_rounded(row)])
                for epsilon in self.workload.epsilons if curves.varied else ():
                    pair = [
                        curves.mean(m, policy, epsilon) for m in ("hidden", "error", "filtered")
                    ]
                    price.append([learned, moves, policy, epsilon, *_rounded(pair)])
            for radius in self.workload.radii if curves.varied else ():
                pair = [
                    curves.mean(m, "distance", radius=radius)
                    for m in ("hidden", "error", "filtered")
                ]
                reach.append([learned, moves, radius, *_rounded(pair)])
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
        shares: list[list[object]] = [[n, *_rounded(share)] for n, share in self.shares.items()]
        yield "readers", ["estimate", "share_of_raw_error", "spread_over_folds"], shares
        yield "options", ["policy", "option", "error", "hidden"], [list(r) for r in self.options()]

    def _table(self, name: str, head: list[str], rows: list[list[object]]) -> Path:
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
        path = self.folder / f"private-{name}.csv"
        write_whole(path, text.getvalue())
        return path

    def _page(self, images: dict[str, str]) -> str:
        workload = self.workload
        style = (files("dphmm.report") / "page.css").read_text(encoding="utf-8")
        body = [
            f"<h1>DPHMM reproduced: {escape(workload.title)}</h1>",
            '<p class="badge bad">Private: errors and degrees of protection of true states. '
            "The noise came from a seeded generator.</p>",
            f'<p class="lead">{len(workload.sequences)} sequences of {workload.steps} answers, '
            f"{workload.query.n_states} states, ε = 1 and r = {workload.radius} km unless varied, "
            f"δ = {workload.delta}. Curves over time are moving averages, as in the paper.</p>",
            f"<p>{escape(workload.rule)}</p>",
            f"<p>{escape(self._handling())}</p>",
            "<h2>Claims of section 8, in one table</h2>",
            self._summary(),
        ]
        for key, curves in self.curves.items():
            body.append(self._section(key, curves, images))
        body.append("<h2>Runtime</h2>")
        body.append(_figure(images["runtime"], "Runtime", "Median over the sequences."))
        body.append(self._options_section())
        if self.shares:
            body.append(self._readers_section(images["readers"]))
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>DPHMM on {escape(workload.name)}</title><style>\n{style}"
            "th, td { white-space: normal; text-align: left; vertical-align: top; } "
            "td:first-child { min-width: 18em; } figure { margin-top: 12px; } "
            "figure img { display: block; max-width: 100%; background: #fff; }</style></head>"
            f"<body><main>{''.join(body)}<footer>Written by dphmm {__version__}. This page is one "
            "file and loads nothing from elsewhere.</footer></main></body></html>\n"
        )

    def _handling(self) -> str:
        usual = self.curves["others", "all"]
        stand_ins = {policy: usual.mean("stand_in", policy) for policy in POLICIES}
        return (
            "States are the cells that anybody visited. A chain learned from other people may "
            "rule out where somebody really is; the answer is then about the possible state "
            "nearest to it, its stand-in, and DoP counts the stand-in's. The error is always "
            "measured from the true state. A start from which the chain does not roam is moved "
            "to the nearest from which it does. Stand-ins were needed in "
            f"{100 * stand_ins['distance']:.1f}% of the steps with the distance and one-step "
            f"policies and in {100 * stand_ins['location_set']:.1f}% with the δ-location set. "
            f"Short moves are the shortest {100 * self.workload.short:.0f}% of all moves; a chain "
            "of them shows what the long ones do to the one-step policy. That share was picked "
            "after looking at results, so it explains the paper's figure and does not confirm it."
        )

    def _summary(self) -> str:
        heads = "".join(f"<th>{PEOPLE[a]}; {LENGTHS[b]}</th>" for a, b in self.claims)
        texts = list(dict.fromkeys(c.text for rows in self.claims.values() for c in rows))
        lines = []
        for text in texts:
            cells = []
            for rows in self.claims.values():
                found = [claim for claim in rows if claim.text == text]
                cells.append(f"<td>{_verdict(found[0]) if found else '-'}</td>")
            lines.append(f"<tr><td>{escape(text)}</td>{''.join(cells)}</tr>")
        return _scroll(f"<thead><tr><th>Claim</th>{heads}</tr></thead>{''.join(lines)}")

    def _section(self, key: tuple[str, str], curves: Curves, images: dict[str, str]) -> str:
        learned, moves = key
        title = f"Chain {PEOPLE[learned]}; {LENGTHS[moves]}"
        rows = "".join(
            f"<tr><td>{escape(claim.text)}</td><td>{_verdict(claim)}</td>"
            f"<td>{escape(claim.found)}"
            + ("" if claim.held else f"<br><em>Why not: {escape(claim.why)}</em>")
            + "</td></tr>"
            for claim in self.claims[key]
        )
        caption = "DoP of the true state and error over time"
        if curves.varied:
            caption += ", against ε, and against r (dashed: the δ-location set)"
        caption += f". The longest move is {curves.longest_move():.1f} km."
        return (
            f"<h2>{escape(title)}</h2>"
            + _figure(images[f"performance-{learned}-{moves}"], title, caption)
            + _scroll(
                "<thead><tr><th>The paper says</th><th>Here</th><th>Found</th></tr></thead>" + rows
            )
        )

    def _options_section(self) -> str:
        rows = "".join(
            f"<tr><td>{plots.LABELS[policy]}</td><td>{words}</td><td>{error:.3f}</td>"
            f"<td>{hidden:.1f}</td></tr>"
            for policy, words, error, hidden in self.options()
        )
        return "<h2>Repair and body of the noise</h2>" + _scroll(
            "<thead><tr><th>Policy</th><th>Option</th><th>Mean error (km)</th><th>Mean DoP</th>"
            f"</tr></thead>{rows}"
        )

    def _readers_section(self, image: str) -> str:
        runs = sum(len(fold["raw"]) for fold in self.folds)
        raw = np.concatenate([fold["raw"] for fold in self.folds if len(fold["raw"])]).mean()
        rows = "".join(
            f"<tr><td>{READER_WORDS[name]}</td>"
            + "".join(
                f"<td>{100 * self.shares[f'{name}_{kind}'][0]:.1f}% "
                f"± {100 * self.shares[f'{name}_{kind}'][1]:.1f}</td>"
                for kind in ("filtered", "filtered_median", "smoothed", "smoothed_median")
            )
            + "</tr>"
            for name in READERS
        )
        met = all(self.shares[f"momentum_{kind}"][0] <= most for kind, most in TARGETS.items())
        return (
            "<h2>Better estimates from the same answers</h2>"
            f"<p>{runs} sequences of held-out people, {len(self.folds)} folds of people, distance "
            f"policy, ε = 1, start unknown. The raw answers are {raw:.2f} km off on average; "
            "the table has the estimates' mean error as a share of that, ± the standard "
            "deviation over folds. Weights were chosen within the training people, by how well "
            "they predict moves. Our goal, at most 35% from answers so far and 20% from all, is "
            f"{'met' if met else 'not met'} by the last row.</p>"
            + _figure(image, "Readers", "Mean error as a share of the raw answers'.")
            + _scroll(
                "<thead><tr><th>Chain of the reader</th><th>Answers so far, mean</th>"
                "<th>Answers so far, median</th><th>All answers, mean</th>"
                f"<th>All answers, median</th></tr></thead>{rows}"
            )
        )


def _verdict(claim: Claim) -> str:
    return '<b class="good">held</b>' if claim.held else '<b class="bad">did not hold</b>'


def _scroll(table: str) -> str:
    return f'<div class="scroll"><table>{table}</table></div>'


def _figure(image: str, label: str, caption: str) -> str:
    return (
        f'<figure><img alt="{escape(label)}" src="data:image/svg+xml;base64,{image}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
