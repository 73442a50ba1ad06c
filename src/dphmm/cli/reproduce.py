"""`dphmm reproduce`: the paper's evaluation on one dataset, as tables, figures and a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic

import click

from dphmm.cli.common import json_option, print_json, progress, progress_bar, say
from dphmm.errors import ArgumentError, expect_one_of
from dphmm.evaluate.effort import effort
from dphmm.evaluate.evidence import studies
from dphmm.evaluate.experiments import tasks_of
from dphmm.evaluate.parts import Measurable, Study
from dphmm.evaluate.protocol import read_final
from dphmm.evaluate.renewal import changes
from dphmm.evaluate.results import Result, read_results
from dphmm.evaluate.runs import Done, run, run_studies
from dphmm.evaluate.study import folds_of
from dphmm.evaluate.workloads import load_workload
from dphmm.report import worked
from dphmm.report.reproduction import Reproduction
from dphmm.tables.files import csv_text, write_whole

__all__ = ["command"]


@click.command("reproduce")
@click.argument("dataset", type=click.Choice(["evidence", "paper", "geolife", "gowalla", "city"]))
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
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="evidence: the folder of the files of results; by default in the output folder.",
)
@click.option("--only", multiple=True, help="evidence: a study by its name; may be repeated.")
@click.option(
    "--compare",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="evidence: a folder of results; say which of them the new ones do not confirm.",
)
@click.option("--final", is_flag=True, help="evidence: of the locked people, at the very end.")
@json_option
def command(
    dataset: str,
    data: Path | None,
    output: Path,
    workers: int,
    quick: bool,
    results: Path | None,
    only: tuple[str, ...],
    compare: Path | None,
    final: bool,
    as_json: bool,
) -> int:
    r"""Repeat what the paper shows: its worked examples, or its evaluation on DATASET.

    `paper` computes every number of the running example again and draws its figures: page.html
    and worked.csv, which are public. For geolife, gowalla and a made-up city it is section 8:
    CSV tables, SVG and PNG figures, and private-page.html, which says for each claim of
    the paper whether it held. Everything is about true states: private. A run that was
    stopped goes on where it was.

    `evidence` measures every number that stands in the documentation and writes a file of
    results for each study, with the code, data, seeds and settings that it comes from. With
    --compare it says which numbers of those files are not the same again: exact ones as printed,
    others within their interval; it exits with 1 if there are some.

    \b
    Example:
      dphmm reproduce paper -o out/paper
      dphmm reproduce geolife --data ../shared/data -o out/geolife
      dphmm reproduce city --quick -o out/city
      dphmm reproduce evidence --data ../shared/data -o evidence --results docs/results
    """
    if dataset == "evidence":
        asked = Asked(data, output, results, workers, quick, only, compare, final)
        return _give_evidence(asked, as_json)
    if results is not None or only or compare is not None or final:
        given = "--results, --only, --compare and --final"
        raise ArgumentError(f"{given} must come with evidence, got {dataset}")
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


@dataclass(frozen=True)
class Asked:
    """What was asked of `dphmm reproduce evidence`."""

    data: Path | None
    output: Path
    results: Path | None
    workers: int
    quick: bool
    only: tuple[str, ...]
    compare: Path | None
    final: bool

    @property
    def whole(self) -> bool:
        """Whether everything is measured that stands on pages, so that its time is of interest."""
        return not (self.quick or self.only or self.final)

    def studies(self) -> list[Study]:
        """Those that were asked for, in order."""
        every = {study.name: study for study in studies(quick=self.quick, final=self.final)}
        for name in self.only:
            expect_one_of(name, tuple(every), "only")
        return [study for name, study in every.items() if name in self.only or not self.only]


def _give_evidence(asked: Asked, as_json: bool) -> int:
    """Every study's file of results. A quick run's numbers must not stand on a page."""
    for given, option in ((asked.results, "--results"), (asked.compare, "--compare")):
        if asked.quick and given is not None:
            raise ArgumentError(f"{option} must not come with --quick, whose numbers are rough")
    if asked.final:
        read_final()
    chosen = asked.studies()
    # Read first: the same folder may be written.
    before = {} if asked.compare is None else read_results(asked.compare)
    load = cache(lambda name: load_workload(name, asked.data, quick=asked.quick, final=asked.final))
    total = len({part for study in chosen for part in study.parts}) + len(chosen)
    done: list[Done] = []
    made: list[Result] = []
    written: list[Path] = []
    began = monotonic()

    def write(result: Result) -> None:
        made.append(result)
        written.append(result.write(asked.results or asked.output / "results"))
        if not as_json:
            say(f"{written[-1]}: {len(result.values)} values")

    with progress_bar(total=total, what="parts") as update:
        for item in run_studies(asked.output, chosen, load, workers=asked.workers):
            update(1)
            if isinstance(item, Done):
                done.append(item)
            else:
                write(item)
    if asked.whole:
        write(effort(chosen, done, (monotonic() - began) / 60, asked.workers))
    changed = [
        line for one in made if one.name in before for line in changes(before[one.name], one)
    ]
    if as_json:
        print_json({"results": [str(path) for path in written], "changed": changed})
    else:
        for line in changed:
            say(line)
    return 1 if changed else 0


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
