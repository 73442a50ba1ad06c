"""`dphmm reproduce`: the paper's evaluation on one dataset, as tables, figures and a page."""

from __future__ import annotations

from pathlib import Path

import click

from dphmm.cli.common import json_option, print_json, progress, say
from dphmm.evaluate.experiments import Measurable, run, tasks_of
from dphmm.evaluate.study import folds_of
from dphmm.evaluate.workloads import load_workload
from dphmm.report import worked
from dphmm.report.reproduction import Reproduction
from dphmm.tables.files import csv_text, write_whole

__all__ = ["command"]


@click.command("reproduce")
@click.argument("dataset", type=click.Choice(["paper", "geolife", "gowalla", "city"]))
@click.option("--data", type=click.Path(path_type=Path), help="The folder of the datasets.")
@click.option(
    "-o",
    "--output",
    default="reproduction",
    show_default=True,
    type=click.Path(path_type=Path),
    help="A folder; results in it are used again.",
)
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1))
@click.option("--quick", is_flag=True, help="A few short sequences, to see that it works.")
@json_option
def command(
    dataset: str, data: Path | None, output: Path, workers: int, quick: bool, as_json: bool
) -> int:
    r"""Repeat what the paper shows: its worked examples, or its evaluation on DATASET.

    `paper` computes every number of the running example again and draws its figures: page.html
    and worked.csv, which are public. For geolife, gowalla and a made-up city it is section 8:
    CSV tables, SVG and PNG figures, and private-page.html, which says for each claim of
    the paper whether it held. Everything is about true states: private. A run that was
    stopped goes on where it was.

    \b
    Example:
      dphmm reproduce paper -o out/paper
      dphmm reproduce geolife --data ../shared/data -o out/geolife
      dphmm reproduce city --quick -o out/city
    """
    if dataset == "paper":
        return _work_out(output, as_json)
    workload = load_workload(dataset, data, quick=quick)
    folds = folds_of(workload, quick=quick)
    tasks: list[Measurable] = [*folds, *tasks_of(workload)]
    output.mkdir(parents=True, exist_ok=True)
    for _ in progress(
        run(output, workload, tasks, workers=workers), total=len(tasks), what="experiments"
    ):
        pass
    reproduction = Reproduction(output, workload, folds)
    page, *_ = reproduction.write()
    facts = reproduction.facts()
    if as_json:
        print_json({"page": str(page), **facts})
        return 0
    say(f"{page}: private, do not publish without its owners' consent")
    for claim in facts["claims"]:
        if (claim["learned"], claim["moves"]) == ("others", "all"):
            say(f"  {'held' if claim['held'] else 'not held':8}  {claim['claim']}")
    return 0


def _work_out(output: Path, as_json: bool) -> int:
    """The running example's page and table; public, since nobody's data are in them."""
    rows = worked.table()
    output.mkdir(parents=True, exist_ok=True)
    page = output / "page.html"
    write_whole(page, worked.page())
    write_whole(output / "worked.csv", csv_text(rows))
    head, *body = rows
    if as_json:
        print_json(
            {"page": str(page), "worked": [dict(zip(head, row, strict=True)) for row in body]}
        )
        return 0
    say(f"{page}: the paper's examples, computed again")
    for where, what, printed, ours, verdict, _ in body:
        said = f"{ours} (the paper: {printed})" if verdict == "did not hold" else ours
        say(f"  {verdict:12}  {where}: {what}: {said}")
    return 0
