"""`dphmm release`: trips in, private answers out, the ledger first."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import click

from dphmm.books import Store
from dphmm.books.journal import Journal
from dphmm.books.releasing import Answer, Releaser
from dphmm.books.store_releasing import StoreReleaser
from dphmm.cli.common import (
    column_option,
    columns_from,
    engine_option,
    json_option,
    print_json,
    progress,
    progress_bar,
    read_key,
    spark_session,
)
from dphmm.errors import DataError
from dphmm.geometry.exact import as_text
from dphmm.scenario.scenario import Scenario
from dphmm.tables.files import csv_text, whole_file
from dphmm.tables.trips import Row, read_trips

__all__ = ["command"]

BATCH = 256
"""Rows of a file that share one wait for the disk; rows of a pipe never share."""


@click.command("release")
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.argument("trips", default="-")
@click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
@click.option("--ledger", metavar="FILE", help="Default: SCENARIO.ledger.jsonl, beside it.")
@click.option("--store", metavar="STORE", help="Keep everything in a store instead of a ledger.")
@click.option("--key-file", metavar="FILE", help="32 secret bytes, for repeatable noise.")
@click.option("--person", help="Whose rows they are, if no column says so.")
@click.option("--continue", "previous", metavar="FOLDER", help="Spark: the run to go on from.")
@column_option
@engine_option
@json_option
def command(
    scenario_file: str,
    trips: str,
    output: str | None,
    ledger: str | None,
    store: str | None,
    key_file: str | None,
    person: str | None,
    previous: str | None,
    column_names: tuple[str, ...],
    engine: str,
    master: str | None,
    as_json: bool,
) -> int:
    r"""Answer every row of TRIPS (CSV, JSON lines or Parquet; - is standard input).

    One line in, one line out. Every answer is in the ledger, on disk, before it leaves; one
    that the ledger holds already is said again and costs nothing, so a run that was stopped
    is simply run again. A file is checked to its end before anything is released, and many
    people in it are released together.

    With --engine spark TRIPS is any table that Spark reads and the output a folder of Parquet:
    answers with their prices, and the final state, from which --continue goes on. The key file
    is read on the workers.

    \b
    Example:
      dphmm release town.toml trips.csv -o released.csv
      tail -f live.csv | dphmm release town.toml --json
      dphmm release town.toml trips.csv --store streams.db
      dphmm release town.toml trips.parquet -o monday --key-file key --engine spark
    """
    if engine == "spark":
        if output is None or key_file is None or trips == "-" or ledger or store:
            raise click.UsageError(
                "--engine spark must go with TRIPS, --output and --key-file, without --ledger "
                "and --store"
            )
        options: dict[str, Any] = {"key_file": key_file, "previous": previous, "person": person}
        options |= {"columns": columns_from(column_names)}
        return _on_spark(master, Scenario.load(scenario_file), trips, output, as_json, options)
    if previous is not None or master is not None:
        raise click.UsageError("--continue and --master must go with --engine spark")
    if store is not None and ledger is not None:
        raise click.UsageError("--store must not go with --ledger: a store has its own")
    key = None if key_file is None else read_key(key_file)
    scenario = Scenario.load(scenario_file)
    columns = columns_from(column_names)
    is_file = trips != "-" and Path(trips).is_file()
    if trips != "-" and not Path(trips).exists():
        raise DataError(f"{trips}: file must be readable, got none of that name")
    name = "standard input" if trips == "-" else Path(trips).name
    ledger_file = Path(ledger) if ledger else _ledger_beside(scenario_file)
    _check_apart(output, [trips, scenario_file, ledger_file, *([key_file] if key_file else [])])

    def rows() -> Iterator[Row]:
        # Bytes that are no text are an error here, whatever the terminal's settings say.
        source = io.TextIOWrapper(sys.stdin.buffer, "utf-8", newline="") if trips == "-" else trips
        return read_trips(
            source, scenario.states, scenario.settings.clock,
            columns=columns, person=person, file=name, together=BATCH if is_file else 1,
        )  # fmt: skip

    with ExitStack() as stack:
        releaser: Releaser | StoreReleaser
        if store is not None:
            held = stack.enter_context(closing(Store.open(store)))
            releaser = StoreReleaser(scenario, held, key, name)
        else:
            journal = stack.enter_context(Journal(ledger_file))
            releaser = Releaser(scenario, journal, key, name)
        answered: Iterable[list[Answer]]
        if is_file and isinstance(releaser, Releaser):
            read = list(progress(rows(), what="checking"))
            releaser.check(read)
            done = stack.enter_context(progress_bar(total=len(read), what="releasing"))
            answered = releaser.answer_all(read, done)
        else:
            total = releaser.check(progress(rows(), what="checking")) if is_file else None
            source = progress(rows(), total=total, what="releasing")
            answered = map(releaser.answer, _batches(source, BATCH if is_file else 1))
        out: Callable[[str], Any] = _to_standard_output
        if output is not None and output != "-":
            file = stack.enter_context(whole_file(output))
            out = _to_file(file)
        write = _json_lines if as_json else _csv_lines
        if not as_json:
            out(csv_text([header(scenario)]))
        repeated = 0
        for answers in answered:
            out(write(scenario, answers))
            repeated += sum(answer.repeated for answer in answers)
    if repeated:
        click.echo(f"dphmm: note: {repeated} answers were in the ledger already", err=True)
    return 0


def _on_spark(
    master: str | None,
    scenario: Scenario,
    trips: str,
    output: str,
    as_json: bool,
    options: dict[str, Any],
) -> int:
    from dphmm import spark as engine

    with spark_session(master) as session:
        done = engine.release(session, scenario, trips, output, **options)
    if as_json:
        print_json({"output": output, **asdict(done)})
        return 0
    click.echo(f"{output}: {done.answers} answers for {done.people} people")
    if done.late or done.repeated:
        click.echo(
            f"dphmm: note: {done.late} rows came late and {done.repeated} twice; "
            f"none of them was answered",
            err=True,
        )
    return 0


def _check_apart(output: str | None, others: list[str | Path]) -> None:
    """Refuse an output that would replace what the run reads."""
    if output is not None and any(Path(output).resolve() == Path(o).resolve() for o in others):
        raise DataError(f"{output}: output must be a file of its own, got one that the run reads")


def header(scenario: Scenario) -> list[str]:
    """The columns of the output."""
    columns = scenario.columns
    return ["person", "time", *columns, *(f"estimate_{name}" for name in columns), "epsilon"]


def _cells(answer: Answer) -> list[Any]:
    numbers = [*answer.answer.tolist(), *answer.estimate.tolist()]
    return [answer.person, answer.time, *numbers, as_text(answer.epsilon)]


def _csv_lines(scenario: Scenario, answers: list[Answer]) -> str:
    return csv_text([[str(cell) for cell in _cells(answer)] for answer in answers])


def _json_lines(scenario: Scenario, answers: list[Answer]) -> str:
    names = header(scenario)
    rows = [dict(zip(names, _cells(answer), strict=True)) for answer in answers]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _to_standard_output(text: str) -> None:
    out = sys.stdout.buffer
    out.write(text.encode())
    out.flush()


def _to_file(file: BinaryIO) -> Callable[[str], None]:
    def write(text: str) -> None:
        file.write(text.encode())

    return write


def _batches(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    for first in rows:
        yield list(chain([first], islice(rows, size - 1)))


def _ledger_beside(scenario_file: str) -> Path:
    path = Path(scenario_file)
    return path.with_name(f"{path.stem}.ledger.jsonl")
