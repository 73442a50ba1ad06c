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
    SecureRandomness,
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


class Forking(SecureRandomness):
    """Words after a fork: whoever asked for them goes on twice."""

    child: int | None = None

    def words(self, context: tuple[bytes, ...], state: int) -> Any:
        if self.child is None:
            self.child = os.fork()
        return super().words(context, state)

    def many(self, *arguments: Any) -> Any:
        if self.child is None:
            self.child = os.fork()
        return super().many(*arguments)


@pytest.mark.parametrize("kind", ["stream", "batch"])
def test_a_fork_in_the_middle_of_an_answer_gives_one(kind: str) -> None:
    randomness, reading = Forking(), os.pipe()
    parent = os.getpid()
    try:
        if kind == "stream":
            Stream(WALK, PLAN, epsilon=1, start=0, randomness=randomness).release(1)
        else:
            Batch(
                WALK, PLAN, epsilon=1, people=["ann"], start=0, randomness=randomness, threads=1
            ).release([1])
        said = "answered"
    except BaseException as fault:
        said = str(fault)
    if os.getpid() != parent:
        os.write(reading[1], said.encode())
        os._exit(0)
    os.close(reading[1])
    assert randomness.child is not None
    os.waitpid(randomness.child, 0)
    with os.fdopen(reading[0]) as pipe:
        assert "must be used by the process that made it" in pipe.read()
    assert said == "answered"


class Same(Ledger):
    """A ledger that takes all others for itself."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    __hash__ = None  # type: ignore[assignment]


def test_two_that_call_themselves_equal_are_two_in_a_fork() -> None:
    for ledger in [Same(limit=1), Same(limit=1)]:
        said = in_a_fork(lambda ledger=ledger: ledger.record(Entry(1, "state", 1)))  # type: ignore[misc]
        assert "must be used by the process that made it" in said, said
