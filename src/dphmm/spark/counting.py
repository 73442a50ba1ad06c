"""Moves counted over any table: the local engine's model, to the last count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dphmm._types import IntArray
from dphmm.chain.anywhere import Zeros
from dphmm.errors import DataError, require
from dphmm.geometry.exact import Exact
from dphmm.scenario import learning
from dphmm.scenario.counting import Counted, Counting
from dphmm.scenario.models import LearnedModel
from dphmm.scenario.private import Levels
from dphmm.spark.sessions import check_encrypted, plain_faults
from dphmm.spark.tables import locate_rows
from dphmm.tables.clock import Clock
from dphmm.tables.states import States

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["learn_private", "learn_public"]

COUNTS = "turn bigint, source bigint, target bigint, moves bigint"
ROW = ("person", "slot", "state")


def learn_public(
    table: DataFrame,
    states: States,
    clock: Clock,
    *,
    smoothing: float = 0.0,
    support: sparse.csr_array | None = None,
    slots: int = 1,
    zeros: Zeros = "guesses",
    anywhere: float | None = None,
    columns: Mapping[str, str] | None = None,
    name: str = "table",
    counting: Counting | None = None,
) -> LearnedModel:
    """The chain of raw counts, as `dphmm.scenario.learning.learn_public` gives it.

    A second row of a person in one step of the clock is left out. With `counting` the chain is
    that of `dphmm.scenario.learning.learn_walks`.
    """
    if counting is not None:
        walked = partial(_walked, counting=counting)
        counted = Counted(*_summed(table, states, clock, columns, name, walked))
        options: dict[str, Any] = {"smoothing": smoothing, "support": support}
        model = counting.learn(counted, zeros=zeros, anywhere=anywhere, **options)
        return LearnedModel(model, counting.source)
    counts = _counts(table, states, clock, slots, columns, name)
    return learning.from_public_counts(
        counts, smoothing=smoothing, support=support, zeros=zeros, anywhere=anywhere
    )


def learn_private(
    table: DataFrame,
    states: States,
    clock: Clock,
    levels: Levels,
    *,
    epsilon: Exact,
    prior: float = 0.5,
    zeros: Zeros = "guesses",
    anywhere: float | None = None,
    columns: Mapping[str, str] | None = None,
    name: str = "table",
) -> LearnedModel:
    """The private chain, as `dphmm.scenario.private.learn_private` gives it.

    Each person's grains are dealt where their rows meet; noise is drawn once, on the driver.
    """
    dealt = partial(_walked, counting=levels)
    counted = Counted(*_summed(table, states, clock, columns, name, dealt))
    return levels.learn(counted, epsilon=epsilon, prior=prior, zeros=zeros, anywhere=anywhere)


def _counts(
    table: DataFrame,
    states: States,
    clock: Clock,
    slots: int,
    columns: Mapping[str, str] | None,
    name: str,
) -> list[sparse.csr_array]:
    count = partial(_moves, slots=slots)
    turn, source, target, moves = _summed(table, states, clock, columns, name, count)
    matrices = []
    for wanted in range(slots):
        here = turn == wanted
        cells = (source[here], target[here])
        matrix = sparse.csr_array((moves[here].astype(np.float64), cells), (len(states),) * 2)
        matrix.sum_duplicates()
        matrices.append(matrix)
    return matrices


def _summed(
    table: DataFrame,
    states: States,
    clock: Clock,
    columns: Mapping[str, str] | None,
    name: str,
    count: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> tuple[IntArray, ...]:
    """What `count` finds in the sorted rows of people, added up over the whole table."""
    functions = require("pyspark.sql.functions", "spark")
    check_encrypted(table.sparkSession)
    rows = locate_rows(table, states, clock, columns=columns, name=name)
    ordered = rows.repartition("person").sortWithinPartitions("person", "slot", "moment", "state")
    parts = ordered.mapInArrow(count, COUNTS)
    sums = parts.groupBy("turn", "source", "target").agg(functions.sum("moves").alias("moves"))
    with plain_faults():
        counted = sums.toArrow()
        if not counted.num_rows and rows.isEmpty():
            raise DataError(f"{name}: table must hold at least one row, got none")
    return tuple(np.asarray(column).astype(np.int64) for column in counted.columns)


def _walked(
    batches: Iterable[pa.RecordBatch], counting: Counting | Levels
) -> Iterator[pa.RecordBatch]:
    """What the rows of a sorted partition count for, a person at a time."""
    whose: str | None = None
    slots: list[int] = []
    states: list[int] = []
    for batch in batches:
        for name, slot, state in zip(*(batch[n].to_pylist() for n in ROW), strict=True):
            if name != whose and slots:
                yield _as_batch(*counting.count(slots, states))
                slots, states = [], []
            whose = name
            slots.append(slot)
            states.append(state)
    if slots:
        yield _as_batch(*counting.count(slots, states))


def _moves(batches: Iterable[pa.RecordBatch], slots: int) -> Iterator[pa.RecordBatch]:
    """The counts of a sorted partition, a batch at a time."""
    for moves in _steps(batches):
        yield _sum(moves, slots)


def _steps(batches: Iterable[pa.RecordBatch]) -> Iterator[learning.Moves]:
    """The moves of each batch; a track goes on across batches."""
    last: tuple[str, int, int, int] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        names = batch["person"]
        number = _numbers(names)
        when, where = (
            batch[column].to_numpy(zero_copy_only=False).astype(np.int64)
            for column in ("slot", "state")
        )
        if last is not None:
            number += last[1] + (names[0].as_py() != last[0])
            number, when, where = (
                np.concatenate([[before], column])
                for before, column in zip(last[1:], (number, when, where), strict=True)
            )
        same = np.concatenate([[False], np.diff(number) == 0])
        kept = ~(same & np.concatenate([[False], np.diff(when) == 0]))
        number, when, where = number[kept], when[kept], where[kept]
        last = (names[-1].as_py(), int(number[-1]), int(when[-1]), int(where[-1]))
        next_to = np.flatnonzero((np.diff(number) == 0) & (np.diff(when) == 1))
        yield learning.Moves(where[next_to], where[next_to + 1], when[next_to + 1])


def _numbers(names: pa.Array) -> IntArray:
    """0, 1, 2... for the people of a sorted column."""
    pc = require("pyarrow.compute", "spark")
    ends = pc.run_end_encode(names).run_ends.to_numpy()
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _sum(moves: learning.Moves, slots: int) -> pa.RecordBatch:
    cells = np.stack([moves.slots % slots, moves.sources, moves.targets])
    found, counts = np.unique(cells, axis=1, return_counts=True)
    return _as_batch(*found, counts)


def _as_batch(*columns: IntArray) -> pa.RecordBatch:
    pa = require("pyarrow", "spark")
    arrays = [pa.array(column.astype(np.int64)) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=["turn", "source", "target", "moves"])
