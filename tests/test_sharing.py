"""What answers is one object in one process: no fork and no copy of it answers a second time."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dphmm import (
    ArgumentError,
    Batch,
    BudgetError,
    Clock,
    Entry,
    Journal,
    KeyedRandomness,
    Ledger,
    MarkovModel,
    MemoryBook,
    Plan,
    PolicyGraph,
    Query,
    Scenario,
    SecureRandomness,
    Store,
    Stream,
)
from dphmm.release.moment import Line
from tests.crash.world import release
from tests.stopping import stop_at

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
        said = in_a_fork(partial(ledger.record, Entry(1, "state", Fraction(1))))
        assert "must be used by the process that made it" in said, said


CIRCLE = MarkovModel([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])


@pytest.mark.parametrize("act", ["skip", "release"])
def test_a_stream_that_is_stopped_stands_where_its_time_says(act: str) -> None:
    line, reached = 0, {0: [0], 1: [1], 2: [2], 3: [0, 1], 4: [1, 2], 5: [0, 1, 2]}
    while True:
        line += 1
        stream = Stream(CIRCLE, PLAN, epsilon=1, start=0)
        stream.release(1)
        todo = stream.skip if act == "skip" else partial(stream.release, 2)
        found = stop_at(line, todo, ("release/stream.py", "/cost/ledger.py"))
        for _ in range(3):
            assert [i for i in range(3) if stream.possible[i]] == reached[stream.time], line
            stream.statement()
            stream.smooth()
            if stream.ledger.has(stream.time + 1, PLAN.query.name):
                with pytest.raises(ArgumentError, match="already answered"):
                    stream.release(2)  # paid for, and never told
                stream.skip()
            else:
                stream.release(2)
        if not found:
            break
    assert line > 2


# A signal's handler may raise what it likes: TimeoutError is the usual one, and an OSError, too.
@pytest.mark.parametrize("fault", [KeyboardInterrupt, TimeoutError])
def test_a_journal_that_is_stopped_while_it_is_written_holds_one_answer_a_moment(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    line = 0
    while True:
        line += 1
        path = tmp_path / f"{line}"
        journal = Journal(path)
        stream = TOWN.stream("ann", book=journal, time=0)
        found = stop_at(line, partial(stream.release, 1), ("journal.py",), fault)
        told, closed = [], journal._file.closed
        with suppress(ArgumentError):  # it says: open it again
            told = [tuple(stream.release(2).lattice.tolist())]
        if closed and not told:
            with pytest.raises(ArgumentError, match="open it again"):
                stream.release(2)
        journal.close()
        with Journal(path) as again:
            release = TOWN.stream("ann", book=again, time=0).release(0)
            said = {record.time: record.lattice for record in again.records("", "ann")}
            assert sorted(said) == list(range(1, release.time + 1)), line
            assert not told or told[0] in said.values(), line
            assert float(again.places([stream.line])[0].spent) == len(said), line
        if not found:
            break
    assert line > 20


def test_a_book_in_memory_that_is_stopped_while_it_is_written_counts_every_answer() -> None:
    """Half a commit would be an answer that no window counts, or that no list holds."""
    town = Scenario(PLAN.query, WALK, PLAN.policy, epsilon=1, limit="1 per 10 steps")
    line = 0
    while True:
        line += 1
        book, told = MemoryBook(), []
        stream = town.stream("ann", book=book, time=0)
        found = stop_at(line, partial(stream.release, 1), ("books/memory.py",))
        for _ in range(3):
            with suppress(BudgetError):
                told.append(tuple(stream.release(2).lattice.tolist()))
        held = [record.lattice for record in book.records("", "ann")]
        assert len(held) == 1, line
        assert told in ([], held), line
        (place,) = book.places([stream.line])
        assert place.standing is not None, line
        assert place.standing.time == 1, line
        assert place.spent >= 1, line  # who is stopped may have paid twice, and nobody for nothing
        if not found:
            break
    assert line > 20


def test_who_looks_back_waits_until_a_step_is_whole() -> None:
    stream = Stream(WALK, PLAN, epsilon=1, start=0)
    stream.release(1)
    looked = threading.Thread(target=stream.smooth)
    with stream._lock:
        looked.start()
        looked.join(0.2)
        assert looked.is_alive()
    looked.join()


def test_a_book_goes_on_before_1970_as_a_table_does() -> None:
    town = Scenario(PLAN.query, WALK, PLAN.policy, epsilon=1, clock=Clock("1 h"))
    first, key = town.settings.clock.slot_of("1960-01-01T05:00:00Z"), KeyedRandomness(b"k" * 32)
    ann = town.stream("ann", book=MemoryBook(), time=first - 1, randomness=key)
    alone = town.stream("ann", time=first - 1, randomness=key)
    rows = {"person": ["ann"], "time": ["1960-01-01T05:59:59Z"], "state": [1]}
    table = town.release(pl.DataFrame(rows), randomness=key)
    answer = ann.release(1).answer.tolist()
    assert answer == alone.release(1).answer.tolist() == [table["x"][0], table["y"][0]]


def test_a_fork_while_another_thread_remembers_somebody_answers(tmp_path: Path) -> None:
    """A store may be used after a fork; the lock of a thread that is not there never opens."""
    with closing(Store.open(tmp_path / "answers.db")) as store:
        first, _ = release(store, "ann", 1, 4)
        held, done = threading.Event(), threading.Event()

        def remember() -> None:
            with store._guard:
                held.set()
                done.wait()

        thread = threading.Thread(target=remember)
        thread.start()
        held.wait()

        def act() -> list[int]:
            signal.alarm(30)
            release(store, "ann", 2, 4)
            return [int(x) for x in release(store, "ann", 1, 3)[0].lattice]

        try:
            said = in_a_fork(act)
        finally:
            done.set()
            thread.join()
        assert said == f"did it: {first.lattice.tolist()}"
        assert len(store.answers(Line("", "ann", "state"))) == 2
