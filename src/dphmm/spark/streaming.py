"""Rows answered as they arrive: where each person stands is in Spark's state store.

A query that is killed goes on from its checkpoint. A micro-batch that Spark runs twice finds
the same rows and the same standings, and noise is keyed, so files that a killed run left
behind hold the same answers as those that count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._types import IntArray
from dphmm.errors import require
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release import engine
from dphmm.release.admission import Verdict
from dphmm.release.engine import Ask
from dphmm.release.terms import Terms
from dphmm.scenario.scenario import Scenario
from dphmm.spark.folder import FolderBook, Person, Tables
from dphmm.spark.sessions import check_encrypted
from dphmm.spark.tables import locate_rows
from dphmm.spark.workers import Setup, terms_of

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from dphmm.release.answers import Answers

__all__ = ["release_stream"]

STATE = "key string, standing binary, late bigint, repeated bigint, refused bigint"
"""What the state store keeps of a person; the last three count rows that got no answer."""


def release_stream(
    trips: DataFrame,
    scenario: Scenario,
    out: str,
    *,
    checkpoint: str,
    key_file: str,
    client: str = "",
    columns: Mapping[str, str] | None = None,
    person: str | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that answers the rows of a stream and writes them to a folder of Parquet.

    Rows that come late or twice, or that limit or clock do not allow, are not answered: they
    are in the table "dropped" with person and time. `trigger` is Spark's, such as
    {"availableNow": True}. Read the folder through Spark, whose log says which files count.
    """
    spark = trips.sparkSession
    check_encrypted(spark)
    functions = require("pyspark.sql.functions", "spark")
    types = require("pyspark.sql.pandas.types", "spark")
    rows = locate_rows(
        trips, scenario.states, scenario.settings.clock, columns=columns, person=person,
        name="stream",
    )  # fmt: skip
    tables = Tables(scenario, client)
    said = rows.groupBy("person").transformWithStateInPandas(
        Processor(Setup.carry(scenario, key_file, client)),
        types.from_arrow_schema(tables.said),
        outputMode="Append",
        timeMode="None",
    )
    said = said.withColumns({k: functions.lit(v) for k, v in tables.constants.items()})
    writer = said.writeStream.format("parquet").partitionBy("table").outputMode("append")
    writer = writer.option("path", out).option("checkpointLocation", checkpoint)
    return writer.trigger(**(trigger or {"processingTime": "10 seconds"})).start()


class Processor:
    """What Spark calls for each person of a micro-batch; it is a `StatefulProcessor`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def init(self, handle: Any) -> None:
        """Open the state; Spark does so on the driver too, which may have no key."""
        self._state = handle.getValueState("standing", STATE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: tuple[str], rows: Iterable[pd.DataFrame], timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        """Answer a person's new rows and write down where they stand."""
        held = self._state.get() if self._state.exists() else None
        ask = ask_in_order(self._terms, self._setup.client, key[0], rows)
        kept, answers, unanswered = answer(self._randomness, held, ask)
        self._state.update(kept)
        if len(unanswered):
            yield self._to_pandas(self._tables.dropped(key[0], unanswered))
        for some in answers:
            yield self._to_pandas(self._tables.answers(some))

    @cached_property
    def _terms(self) -> Terms:
        return terms_of(self._setup.scenario())

    @cached_property
    def _randomness(self) -> KeyedRandomness:
        return self._setup.randomness()

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self._setup.scenario())

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self, key: Any, timer_values: Any, expired: Any
    ) -> Iterator[pd.DataFrame]:
        """Nothing: there are no timers."""
        return iter([])

    def handleInitialState(  # noqa: N802 - Spark's name
        self, key: Any, initial: Any, timer_values: Any
    ) -> None:
        """Nothing: a stream starts with nobody."""

    def close(self) -> None:
        """Nothing is open."""

    def _to_pandas(self, batch: Any) -> pd.DataFrame:
        return batch.select(self._tables.said.names).to_pandas()


def answer(
    randomness: KeyedRandomness, held: tuple[Any, ...] | None, ask: Ask
) -> tuple[tuple[Any, ...], list[Answers], IntArray]:
    """What to keep of a person, the answers to their rows, and the slots that got none.

    A changed scenario is refused: dropping everybody's rows would lose them.
    """
    used, data, *counts = held or (None, None, 0, 0, 0)
    name, book = ask.people[0], FolderBook(used)
    if data is not None:
        book.people[name] = Person(bytes(data))
    (answered,) = engine.release(book, [ask], randomness)
    verdicts = answered.verdicts
    for row in np.flatnonzero(verdicts >= Verdict.CHANGED)[:1].tolist():
        raise answered.faults[row]
    person = book.people.setdefault(name, Person())
    if person.find_standing() is None:
        person.move(ask.terms.begin(ask.client, name, int(ask.times[0])))
    kinds = (verdicts == Verdict.LATE, verdicts == Verdict.REPEATED, verdicts > Verdict.LATE)
    counts = [before + int(kind.sum()) for before, kind in zip(counts, kinds, strict=True)]
    kept = (randomness.fingerprint, person.to_bytes(), *counts)
    return kept, book.drawn, ask.times[verdicts > Verdict.NEW]


def ask_in_order(terms: Terms, client: str, person: str, parts: Iterable[pd.DataFrame]) -> Ask:
    """The rows of all parts in the order that a bulk run gives them."""
    rows = sorted(
        row
        for part in parts
        for row in zip(part["slot"], part["moment"], part["state"], strict=True)
    )
    slots, _, states = zip(*rows, strict=True)
    times, true_states = (np.array(column, dtype=np.int64) for column in (slots, states))
    return Ask(terms, [person] * len(rows), times, true_states, client=client)
