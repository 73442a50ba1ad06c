"""`dphmm release`: trips in, private answers out, the book first."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click

from dphmm.books import Journal
from dphmm.chain.estimates import Estimate
from dphmm.cli.common import (
    KEY_HELP,
    check_apart,
    column_option,
    columns_from,
    engine_option,
    estimate_option,
    json_option,
    keyed,
    ledger_beside,
    load_with,
    note,
    print_json,
    progress,
    progress_bar,
    say,
    spark_session,
)
from dphmm.cli.stores import Opening, store_options
from dphmm.errors import BudgetError, DataError
from dphmm.noise.randomness import Randomness
from dphmm.release import engine
from dphmm.release.answers import Answers
from dphmm.release.book import Book
from dphmm.scenario import Scenario
from dphmm.scenario.affording import need_of_rows
from dphmm.scenario.releasing import (
    answer_columns,
    answer_rows,
    ask_rows,
    hold_open,
    latest_steps,
    published,
    refuse_first,
)
from dphmm.scenario.waiting import LateRows, Leaving
from dphmm.tables.files import csv_text, whole_file
from dphmm.tables.trips import Row, read_trips

__all__ = ["command"]

TOGETHER = 4096
"""Rows of a file whose coordinates are looked up together; those of a pipe never wait."""


@click.command("release")
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.argument("trips", default="-")
@click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
@click.option("--ledger", metavar="FILE", help="Default: SCENARIO.ledger.jsonl, beside it.")
@click.option("--store", metavar="STORE", help="Keep everything in a store instead of a ledger.")
@click.option("--client", default="", help="Whose people they are, as in a service.")
@click.option("--key-file", metavar="FILE", help=KEY_HELP)
@click.option("--person", help="Whose rows they are, if no column says so.")
@click.option("--raw-times", is_flag=True, help="Write each row's own time, not its step's.")
@click.option("--continue", "previous", metavar="FOLDER", help="Spark: the run to go on from.")
@click.option(
    "--lag",
    type=click.IntRange(0),
    metavar="STEPS",
    help="Write a row when so many more steps were made, with the estimate that they give.",
)
@estimate_option
@column_option
@engine_option
@json_option
@store_options
def command(
    scenario_file: str,
    trips: str,
    output: str | None,
    ledger: str | None,
    store: str | None,
    client: str,
    key_file: str | None,
    person: str | None,
    raw_times: bool,
    previous: str | None,
    lag: int | None,
    estimate: Estimate | None,
    column_names: tuple[str, ...],
    engine: str,
    master: str | None,
    as_json: bool,
    opening: Opening,
) -> int:
    r"""Answer every row of TRIPS (CSV, JSON lines or Parquet; - is standard input).

    One line in, one line out. Every answer is in the ledger, on disk, before it leaves; a step
    that was answered already gets the same answer and costs nothing, so a run that was stopped
    is simply run again. A file is checked to its end before anything is released, and many
    people in it are released together. With --lag answers are drawn as ever, and their rows wait
    for a better estimate.

    Where the scenario's schedule is silent a line has an estimate and no answer. If it answers
    gaps, the lines are one for every step instead, in order of person and time.

    With --engine spark TRIPS is any table that Spark reads and the output a folder of Parquet:
    answers with their prices, and the final state, from which --continue goes on. The key file
    is read on the workers.

    \b
    Example:
      dphmm release town.toml trips.csv -o released.csv
      tail -f live.csv | dphmm release town.toml --json
      tail -f live.csv | dphmm release town.toml --lag 10 --estimate median
      dphmm release town.toml trips.csv --store streams.db
      dphmm release town.toml trips.parquet -o monday --key-file key --engine spark
    """
    scenario = load_with(scenario_file, estimate)
    if engine == "spark":
        local = ledger or store or raw_times or lag is not None
        if output is None or key_file is None or trips == "-" or local:
            raise click.UsageError(
                "--engine spark must go with TRIPS, --output and --key-file, without --ledger, "
                "--store, --raw-times and --lag"
            )
        options: dict[str, Any] = {"key_file": key_file, "previous": previous, "person": person}
        options |= {"columns": columns_from(column_names), "client": client}
        return _on_spark(master, scenario, trips, output, as_json, options)
    if previous is not None or master is not None:
        raise click.UsageError("--continue and --master must go with --engine spark")
    if store is not None and ledger is not None:
        raise click.UsageError("--store must not go with --ledger: a store has its own")
    ending = Path(output or "").suffix.lower()
    if ending in (".parquet", ".geojson", ".gz", ".zip"):
        raise DataError(
            f"{output}: output must be CSV, or JSON lines with --json, got the name of another "
            f"kind; dphmm export writes GeoJSON"
        )
    as_json = as_json or ending in (".jsonl", ".ndjson")
    randomness = keyed(key_file)
    columns = columns_from(column_names)
    is_file = trips != "-" and Path(trips).is_file()
    if trips != "-" and not Path(trips).exists():
        raise DataError(f"{trips}: file must be readable, got none of that name")
    name = "standard input" if trips == "-" else Path(trips).name
    ledger_file = Path(ledger) if ledger else ledger_beside(scenario_file)
    folder, named = Path(scenario_file).parent, scenario.settings
    files = [folder / name for name in (named.states, named.model, named.policy.edges) if name]
    if raw_times and scenario.terms.fills_gaps:
        raise click.UsageError("--raw-times must not go with gaps that are answered: it shows them")
    given = [name for name in (trips, scenario_file, key_file, store) if name]
    check_apart(output, [*given, ledger_file, *files])

    def rows() -> Iterator[Row]:
        # Bytes that are no text are an error here, whatever the terminal's settings say.
        source = io.TextIOWrapper(sys.stdin.buffer, "utf-8", newline="") if trips == "-" else trips
        return read_trips(
            source, scenario.states, scenario.settings.clock,
            columns=columns, person=person, file=name, together=TOGETHER if is_file else 1,
        )  # fmt: skip

    with ExitStack() as stack:
        book: Book
        if store is not None:
            book = stack.enter_context(closing(opening.store(store, create=True)))
        else:
            book = stack.enter_context(Journal(ledger_file, scenario.settings.clock.time_of))
        late = None if lag is None else LateRows(scenario, book, client, lag)
        releasing = _Releasing(scenario, book, randomness, client, name, raw_times, late)
        if is_file:
            table = list(progress(rows(), what="checking"))
            done = stack.enter_context(progress_bar(total=len(table), what="releasing"))
            answered = releasing.whole(table, done)
        else:
            answered = releasing.live(rows())
        out: Callable[[str], Any] = _to_standard_output
        if output is not None and output != "-":
            file = stack.enter_context(whole_file(output))
            out = _to_file(file)
        write = _json_lines if as_json else _csv_lines
        if not as_json:
            out(csv_text([answer_columns(scenario)]))
        rows_out, people = 0, set[str]()
        for cells in answered:
            out(write(scenario, cells))
            rows_out += len(cells)
            people.update(row[0] for row in cells)
    if out is not _to_standard_output:
        say(f"{output}: {rows_out} rows of {len(people)} people; may leave")
    if releasing.repeated:
        note(f"{releasing.repeated} rows got the answer that their step had already")
    return 0


class _Releasing:
    """Rows to cells, through the engine."""

    def __init__(
        self,
        scenario: Scenario,
        book: Book,
        randomness: Randomness | None,
        client: str,
        file: str,
        raw_times: bool,
        late: LateRows | None,
    ) -> None:
        self._late = late
        self._scenario = scenario
        self._book = book
        self._randomness = randomness
        self._client = client
        self._file = file
        self._raw_times = raw_times
        self._last: dict[str, int] = {}
        """Everybody's latest true state, from which a gap is filled. Secret."""
        self._since: dict[str, int] = {}
        """Until which slot everybody's steps have been written."""
        self.repeated = 0

    def whole(self, rows: list[Row], done: Callable[[int], object]) -> Iterator[list[list[Any]]]:
        """The answers to a file, of which nothing is released unless all of it can be."""
        ask = ask_rows(self._scenario, rows, self._client)
        try:
            refuse_first(engine.judge(self._book, ask, self._randomness), rows, self._file)
        except BudgetError as fault:
            # A limit that is raised by what one row lacks would be refused at the next.
            need = need_of_rows(self._scenario.settings, rows)
            fault.args = (f"{fault}; {need}" if need else str(fault),)
            raise
        if self._late is None:
            return self._answer(rows, done)
        leaving = sorted(
            (*self._wait(rows, done), *self._late.finish()), key=lambda row: row.number
        )
        return iter([[row.cells for row in leaving]])

    def live(self, rows: Iterator[Row]) -> Iterator[list[list[Any]]]:
        """The answers to rows as they come."""
        for some in hold_open(rows, self._scenario.settings.clock.open):
            if self._late is None:
                yield from self._answer(some)
            elif left := [row.cells for row in self._wait(some)]:
                yield left
        if self._late is not None:
            yield [row.cells for row in self._late.finish()]

    def _wait(
        self, rows: list[Row], done: Callable[[int], object] = lambda count: None
    ) -> Iterator[Leaving]:
        """The rows whose estimates are final once these are answered."""
        assert self._late is not None
        answers = self._released(rows, done)
        return self._late.add(answers, answer_rows(self._scenario, answers, self._times(rows)))

    def _answer(
        self, rows: list[Row], done: Callable[[int], object] = lambda count: None
    ) -> Iterator[list[list[Any]]]:
        answers = self._released(rows, done)
        cells = answer_rows(self._scenario, answers, self._times(rows))
        while some := list(islice(cells, TOGETHER)):
            yield some

    def _released(self, rows: list[Row], done: Callable[[int], object]) -> Answers:
        """What leaves when some rows are answered."""
        ask = ask_rows(self._scenario, rows, self._client, self._last)
        since = latest_steps(self._book, ask) | self._since
        if self._late is not None:
            self._late.begin(ask, since)
        (answered,) = engine.release(self._book, [ask], self._randomness, done)
        refuse_first(answered, rows, self._file)
        self.repeated += answered.repeated
        answers = published(self._book, ask, answered, since)
        if ask.fills_gaps:
            for row in sorted(rows, key=lambda row: row.order):
                if row.slot >= self._since.get(row.person, row.slot):
                    self._since[row.person], self._last[row.person] = row.slot, row.state
        return answers

    def _times(self, rows: list[Row]) -> list[str] | None:
        return [row.time for row in rows] if self._raw_times else None


def _on_spark(
    master: str | None,
    scenario: Scenario,
    trips: str,
    output: str,
    as_json: bool,
    options: dict[str, Any],
) -> int:
    from dphmm import spark

    with spark_session(master) as session:
        done = spark.release(session, scenario, trips, output, **options)
    if as_json:
        print_json({"output": output, **asdict(done)})
        return 0
    click.echo(f"{output}: {done.answers} answers for {done.people} people")
    if done.late or done.repeated:
        note(f"{done.late} rows came late and {done.repeated} twice; none of them was answered")
    return 0


def _csv_lines(scenario: Scenario, cells: list[list[Any]]) -> str:
    return csv_text(cells)


def _json_lines(scenario: Scenario, cells: list[list[Any]]) -> str:
    names = answer_columns(scenario)
    rows = [dict(zip(names, row, strict=True)) for row in cells]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _to_standard_output(text: str) -> None:
    out = sys.stdout.buffer
    out.write(text.encode())
    out.flush()


def _to_file(file: BinaryIO) -> Callable[[str], None]:
    def write(text: str) -> None:
        file.write(text.encode())

    return write
