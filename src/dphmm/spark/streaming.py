"""Rows answered as they arrive: where each person stands is in Spark's state store.

A query that is killed goes on from its checkpoint. A micro-batch that Spark runs twice finds
the same rows and the same standings, and noise is keyed, so files that a killed run left
behind hold the same answers as those that count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._types import IntArray
from dphmm.books.releasing import LONGEST_GAP
from dphmm.errors import DataError, require
from dphmm.scenario.scenario import Scenario
from dphmm.spark.people import Rows, Standing, dropped, release_alone, renewed
from dphmm.spark.records import STANDING_SCHEMA, Tables, packed, unpacked
from dphmm.spark.rules import Rules
from dphmm.spark.sessions import check_encrypted
from dphmm.spark.tables import located

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["release_stream"]


def release_stream(
    trips: DataFrame,
    scenario: Scenario,
    out: str,
    *,
    checkpoint: str,
    key_file: str,
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
    rows = located(
        trips, scenario.states, scenario.settings.clock, columns=columns, person=person,
        name="stream",
    )  # fmt: skip
    tables = Tables(scenario)
    teller = Teller(Rules.carried(scenario, key_file))
    said = rows.groupBy("person").transformWithStateInPandas(
        teller,
        types.from_arrow_schema(tables.said),
        outputMode="Append",
        timeMode="None",
    )
    said = said.withColumns({k: functions.lit(v) for k, v in tables.constants.items()})
    writer = said.writeStream.format("parquet").partitionBy("table").outputMode("append")
    writer = writer.option("path", out).option("checkpointLocation", checkpoint)
    return writer.trigger(**(trigger or {"processingTime": "10 seconds"})).start()


class Teller:
    """What Spark calls for each person of a micro-batch; it is a `StatefulProcessor`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def init(self, handle: Any) -> None:
        """Open the state; Spark does so on the driver too, which may have no key."""
        self._state = handle.getValueState("standing", f"law string, {STANDING_SCHEMA}")

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: tuple[str], rows: Iterable[pd.DataFrame], timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        """Answer a person's new rows and write down where they stand."""
        known = self._known(key[0], self._state.get() if self._state.exists() else None)
        standing, answered, unanswered = told(
            self._scenario, self._key, known, _ordered(key[0], rows)
        )
        self._state.update((self._scenario.law, *packed(standing)))
        if len(unanswered):
            left = self._tables.dropped(key[0], unanswered.times, unanswered.slots)
            yield self._pandas(left)
        if answered is not None:
            yield self._pandas(self._tables.answers(answered))

    @cached_property
    def _scenario(self) -> Scenario:
        return self._rules.scenario()

    @cached_property
    def _key(self) -> bytes:
        return self._rules.key()

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self._scenario)

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

    def _known(self, person: str, cells: tuple[Any, ...] | None) -> Standing | None:
        if cells is None:
            return None
        law, *rest = cells
        if law != self._scenario.law:
            raise DataError(
                "checkpoint must be of this scenario as it is now, got that of another form of it"
            )
        return unpacked(person, rest, len(self._scenario.states))

    def _pandas(self, batch: Any) -> pd.DataFrame:
        return batch.select(self._tables.said.names).to_pandas()


def told(
    scenario: Scenario, key: bytes, standing: Standing | None, rows: Rows
) -> tuple[Standing, Any, Rows]:
    """Where a person stands now, their answers if any, and the rows that got none."""
    new, fresh = renewed(scenario, standing, rows)
    before = standing or replace(new, late=0, repeated=0)
    late, repeated = dropped(before, rows.slots)
    allowed = _allowed(scenario, new, fresh.slots)
    refused = np.setdiff1d(np.arange(len(fresh)), allowed)
    unanswered = Rows.joined([rows.at(np.flatnonzero(late | repeated)), fresh.at(refused)])
    new = replace(new, refused=new.refused + len(refused))
    if not len(allowed):
        return new, None, unanswered
    moved, answers = release_alone(scenario, key, new, fresh.at(allowed))
    return moved, answers, unanswered


def _allowed(scenario: Scenario, standing: Standing, slots: IntArray) -> IntArray:
    """The rows that clock and limit allow; one far ahead must not stop those that follow."""
    limit, price = scenario.settings.limit, scenario.settings.epsilon
    most = len(slots) if limit is None else int((limit - standing.spent) // price)
    kept: list[int] = []
    latest = standing.base + standing.step
    for row, slot in enumerate(slots.tolist()):
        if len(kept) < most and slot - latest <= LONGEST_GAP:
            kept.append(row)
            latest = slot
    return np.array(kept, dtype=np.int64)


def _ordered(person: str, parts: Iterable[pd.DataFrame]) -> Rows:
    """The rows of all parts in the order that a bulk run gives them."""
    rows = sorted(
        row for part in parts for row in zip(part["slot"], part["time"], part["state"], strict=True)
    )
    slots, times, states = zip(*rows, strict=True)
    return Rows(
        person,
        np.array(times, dtype=object),
        np.array(slots, dtype=np.int64),
        np.array(states, dtype=np.int64),
    )
