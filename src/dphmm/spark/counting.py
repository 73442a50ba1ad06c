"""Moves counted over any table: the local engine's model, to the last count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from dphmm._types import IntArray
from dphmm.chain.anywhere import Zeros
from dphmm.errors import DataError, require
from dphmm.geometry.exact import Exact
from dphmm.scenario import learning
from dphmm.scenario.models import LearnedModel
from dphmm.spark.sessions import check_encrypted, plain_faults
from dphmm.spark.tables import locate_rows
from dphmm.tables.clock import Clock
from dphmm.tables.states import States

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["learn_private", "learn_public"]

COUNTS = "turn int, source int, target int, moves bigint"


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
) -> LearnedModel:
    """The chain of raw counts, as `dphmm.scenario.learning.learn_public` gives it.

    A second row of a person in one step of the clock is left out.
    """
    counts = _counts(table, states, clock, slots, columns, name, None)
    return learning.from_public_counts(
        counts, smoothing=smoothing, support=support, zeros=zeros, anywhere=anywhere
    )


def learn_private(
    table: DataFrame,
    states: States,
    clock: Clock,
    *,
    epsilon: Exact,
    max_moves: int,
    support: sparse.csr_array,
    prior: float = 0.5,
    slots: int = 1,
    zeros: Zeros = "guesses",
    anywhere: float | None = None,
    columns: Mapping[str, str] | None = None,
    name: str = "table",
) -> LearnedModel:
    """The chain of noisy counts, as `dphmm.scenario.learning.learn_private` gives it.

    Each person is cut to `max_moves` where their rows meet; noise is drawn once, on the driver.
    """
    bounds = learning.Bounds(support, max_moves)
    counts = _counts(table, states, clock, slots, columns, name, bounds)
    return learning.from_private_counts(
        counts, bounds, epsilon=epsilon, prior=prior, zeros=zeros, anywhere=anywhere
    )


def _counts(
    table: DataFrame,
    states: States,
    clock: Clock,
    slots: int,
    columns: Mapping[str, str] | None,
    name: str,
    bounds: learning.Bounds | None,
) -> list[sparse.csr_array]:
    functions = require("pyspark.sql.functions", "spark")
    check_encrypted(table.sparkSession)
    rows = locate_rows(table, states, clock, columns=columns, name=name)
    ordered = rows.repartition("person").sortWithinPartitions("person", "slot", "time", "state")
    parts = ordered.mapInArrow(partial(_moves, slots=slots, bounds=bounds), COUNTS)
    sums = parts.groupBy("turn", "source", "target").agg(functions.sum("moves").alias("moves"))
    with plain_faults():
        counted = sums.toArrow()
        if not counted.num_rows and rows.isEmpty():
            raise DataError(f"{name}: table must hold at least one row, got none")
    turn, source, target, moves = (np.asarray(column) for column in counted.columns)
    matrices = []
    for wanted in range(slots):
        here = turn == wanted
        cells = (source[here].astype(np.int64), target[here].astype(np.int64))
        matrix = sparse.csr_array((moves[here].astype(np.float64), cells), (len(states),) * 2)
        matrix.sum_duplicates()
        matrices.append(matrix)
    return matrices


def _moves(
    batches: Iterable[pa.RecordBatch], slots: int, bounds: learning.Bounds | None
) -> Iterator[pa.RecordBatch]:
    """The counts of a sorted partition, a batch at a time."""
    steps = _steps(batches)
    for moves in steps if bounds is None else _bound(steps, bounds):
        yield _sum(moves, slots)


def _steps(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[IntArray, learning.Moves]]:
    """The moves of each batch with a number for each person; a track goes on across batches."""
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
        yield (
            number[next_to],
            learning.Moves(where[next_to], where[next_to + 1], when[next_to + 1]),
        )


def _numbers(names: pa.Array) -> IntArray:
    """0, 1, 2... for the people of a sorted column."""
    pc = require("pyarrow.compute", "spark")
    ends = pc.run_end_encode(names).run_ends.to_numpy()
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _bound(
    steps: Iterable[tuple[IntArray, learning.Moves]], bounds: learning.Bounds
) -> Iterator[tuple[IntArray, learning.Moves]]:
    """The moves that count, once a person's are all there: the rule sees one whole person."""
    waiting: list[learning.Moves] = []
    whose: int | None = None
    for number, moves in steps:
        cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
        for first, end in pairwise(cuts):
            if first == end:
                continue
            if number[first] != whose and waiting:
                yield number, bounds.cut(learning.Moves.joined(waiting))
                waiting = []
            whose = int(number[first])
            waiting.append(moves.at(np.arange(first, end)))
    if waiting:
        yield np.zeros(0, dtype=np.int64), bounds.cut(learning.Moves.joined(waiting))


def _sum(step: tuple[IntArray, learning.Moves], slots: int) -> pa.RecordBatch:
    pa = require("pyarrow", "spark")
    moves = step[1]
    cells = np.stack([moves.slots % slots, moves.sources, moves.targets])
    found, counts = np.unique(cells, axis=1, return_counts=True)
    columns = [pa.array(column.astype(np.int32)) for column in found]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array(counts.astype(np.int64))], names=["turn", "source", "target", "moves"]
    )
