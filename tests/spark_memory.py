"""What a worker needs at most: python -m tests.spark_memory SIDE PEOPLE STEPS, in MB."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from typing import Any

from dphmm.scenario import Row
from dphmm.spark.partition import Partition
from tests.spark_worlds import KEYED, as_batch, city

ROWS = 10_000


def batches(states: int, people: int, steps: int) -> Iterator[Any]:
    rows: list[Row] = []
    for person in range(people):
        for step in range(1, steps + 1):
            state = (37 * person + step) % states
            rows.append(Row(0, f"person {person:06d}", str(step), step, state))
            if len(rows) == ROWS:
                yield as_batch(rows)
                rows = []
    if rows:
        yield as_batch(rows)


def main(side: int, people: int, steps: int) -> None:
    partition = Partition(city(side), KEYED)
    done = sum(part.num_rows for part in partition.answer(batches(side**2, people, steps)))
    assert done == people * (steps + 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stdout.write(f"{peak}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
