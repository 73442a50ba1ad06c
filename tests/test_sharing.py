"""What answers is one object in one process: no fork and no copy of it answers a second time."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dphmm import (
    ArgumentError,
    Batch,
    Entry,
    Journal,
    Ledger,
    MarkovModel,
    MemoryBook,
    Plan,
    PolicyGraph,
    Query,
    Scenario,
    Stream,
)

WALK = MarkovModel.fit([[0, 1, 2, 1, 0, 2]], n_states=3)
PLAN = Plan(PolicyGraph.complete(3), Query([[0, 0], [30, 0], [0, 40]]))
TOWN = Scenario(PLAN.query, WALK, PLAN.policy, epsilon=1)


def in_a_fork(act: Callable[[], object]) -> str:
    """What a forked process says about doing something."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = f"did it: {act()}"
        except BaseException as fault:
            said = f"{type(fault).__name__}: {fault}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


KINDS = ["stream", "batch", "book", "journal", "ledger", "stream of a book"]


@pytest.fixture(params=KINDS)
def shared(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Any, Callable[[Any], object]]]:
    """Something that answers, and how it is asked."""
    book, journal = MemoryBook(), Journal(tmp_path / "ledger")
    yield {
        "stream": (Stream(WALK, PLAN, epsilon=1, start=0), lambda stream: stream.release(1)),
        "batch": (
            Batch(WALK, PLAN, epsilon=1, people=["ann"], start=0),
            lambda batch: batch.release([1]),
        ),
        "book": (book, lambda book: TOWN.stream("ann", book=book, time=0).release(1)),
        "journal": (journal, lambda book: TOWN.stream("ann", book=book, time=0).release(1)),
        "ledger": (Ledger(limit=1), lambda ledger: ledger.record(Entry(1, "state", 1))),
        "stream of a book": (
            TOWN.stream("bob", book=book, time=0),
            lambda stream: stream.release(1),
        ),
    }[request.param]
    journal.close()


def test_a_forked_process_answers_no_moment_a_second_time(
    shared: tuple[Any, Callable[[Any], object]],
) -> None:
    thing, answer = shared
    said = in_a_fork(lambda: answer(thing))
    assert "must be used by the process that made it" in said, said
    answer(thing)  # whoever made it goes on


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_nothing_that_answers_is_copied(
    way: Callable[[Any], object], shared: tuple[Any, Callable[[Any], object]]
) -> None:
    thing, _ = shared
    with pytest.raises(ArgumentError, match="must not be copied"):
        way(thing)
