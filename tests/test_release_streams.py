"""Streams that go on from a book, and books that were cut, killed or closed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dphmm import (
    ArgumentError,
    BudgetError,
    Clock,
    Journal,
    MemoryBook,
    Policy,
    Query,
    Release,
    Scenario,
    Schedule,
)
from dphmm.books.changing import adopt_terms
from dphmm.errors import MovedError
from dphmm.release import engine
from dphmm.release.admission import Verdict
from dphmm.release.book import Book
from dphmm.release.moment import Line
from tests.releasing import (
    BOOKS,
    KEYED,
    ask,
    book_of,
    wide_scenario,
    write,
)
from tests.scenarios import LABELS, MARK, paper_scenario, run, written

# Streams that go on from a book


@pytest.mark.parametrize("kind", ["journal", "store"])
def test_a_stream_goes_on_from_its_book(tmp_path: Path, kind: str) -> None:
    scenario = paper_scenario(limit=4, clock=Clock(origin=0))
    with book_of(kind, tmp_path) as book:
        ann = scenario.stream("ann", book=book)
        said = [ann.release(LABELS[1]), ann.release(3)]
    with book_of(kind, tmp_path) as book:
        ann = scenario.stream("ann", book=book)
        assert ann.time == 2
        assert ann.ledger.remaining == 2
        assert [one.lattice.tolist() for one in ann.said] == [one.lattice.tolist() for one in said]
        ann.skip()
        ann.release(4)
        assert ann.statement().releases == 3
        (answered,) = engine.release(book, [ask(scenario, [("ann", 2, 5), ("ann", 5, 5)])])
        assert answered.release(0).lattice.tolist() == said[1].lattice.tolist()
        again = ann.release(4)
        assert again.lattice.tolist() == answered.release(1).lattice.tolist(), "it is followed"
        with pytest.raises(BudgetError):
            ann.release(4)
        assert ann.time == 5


def test_a_failing_book_leaves_a_stream_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    book = MemoryBook()
    ann = paper_scenario().stream("ann", book=book, time=0)
    ann.release(1)
    before = ann.standing.to_bytes()

    def fail(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(book, "commit", fail)
    with pytest.raises(OSError, match="disk full"):
        ann.release(3)
    assert ann.standing.to_bytes() == before
    assert ann.ledger.spent == 1


@pytest.mark.parametrize("kind", BOOKS)
def test_streams_and_engines_on_one_book_never_answer_a_moment_twice(
    tmp_path: Path, kind: str
) -> None:
    """Found from outside: streams with a book used to look at it too late."""
    scenario = paper_scenario(limit=30, clock=Clock(origin=0))
    said: dict[int, set[tuple[int, ...]]] = {}
    guard = threading.Lock()

    def note(release: Release) -> None:
        with guard:
            said.setdefault(release.time, set()).add(tuple(release.lattice.tolist()))

    with book_of(kind, tmp_path) as book:

        def by_stream() -> None:
            stream = scenario.stream("ann", book=book)
            while stream.time < 20:
                try:
                    note(stream.release(1))
                except ArgumentError:
                    stream.skip()

        def by_engine() -> None:
            for time in range(1, 21):
                (answered,) = engine.release(book, [ask(scenario, [("ann", time, 3)])])
                if not answered.faults:
                    note(answered.release(0))

        workers = [threading.Thread(target=work) for work in (by_stream, by_engine) * 2]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert said
        assert all(len(answers) == 1 for answers in said.values())
        (place,) = book.places([Line("", "ann", "state")])
        assert place.spent == len(said) <= 30


def test_a_stream_of_an_adopted_and_killed_ledger_follows_all_of_it(tmp_path: Path) -> None:
    first, second = paper_scenario(), paper_scenario(policy=Policy(complete=True))
    path = tmp_path / "ledger"
    with Journal(path) as journal:
        engine.release(journal, [ask(first, [("ann", 1, 1), ("ann", 2, 3)])])
        assert len(list(adopt_terms(journal, second.terms, same_states=True))) == 1
        (said,) = engine.release(journal, [ask(second, [("ann", 3, 4), ("ann", 4, 5)])])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))  # what closing wrote is gone
    with Journal(path) as journal:
        stream = second.stream("ann", book=journal)
        assert stream.time == 4
        assert stream.said[-1].lattice.tolist() == said.release(1).lattice.tolist()


@pytest.mark.parametrize("kind", BOOKS)
def test_a_stream_follows_its_book_from_the_last_adoption_on(tmp_path: Path, kind: str) -> None:
    first, second = paper_scenario(), paper_scenario(policy=Policy(complete=True))
    line = Line("", "ann", "state")

    def check(book: Book, scenario: Scenario, times: list[int]) -> None:
        stream, (place,) = scenario.stream("ann", book=book), book.places([line])
        assert [one.time for one in stream.said] == times
        assert place.standing is not None
        assert stream.standing.to_bytes() == place.standing.to_bytes()

    with book_of(kind, tmp_path) as book:
        engine.release(book, [ask(first, [("ann", 1, 1), ("ann", 2, 3)])])
        check(book, first, [1, 2])
        assert len(list(adopt_terms(book, second.terms, same_states=True))) == 1  # type: ignore
        engine.release(book, [ask(second, [("ann", 3, 4), ("ann", 5, 5)])])
        check(book, second, [3, 5])
        # Back again: the answers of slots 1 and 2 followed this law, but not into this belief.
        assert len(list(adopt_terms(book, first.terms, same_states=False))) == 1  # type: ignore
        check(book, first, [])
        engine.release(book, [ask(first, [("ann", 6, 4)])])
        check(book, first, [6])
    if kind == "journal":
        with book_of(kind, tmp_path) as book:
            check(book, first, [6])


@pytest.mark.parametrize("kind", BOOKS)
def test_a_stream_that_was_open_at_an_adoption_states_nothing_false(
    tmp_path: Path, kind: str
) -> None:
    """Under the other law fewer states are linked, so its answers tell more than the stream's."""
    first, second = paper_scenario(policy=Policy(complete=True)), paper_scenario()
    with book_of(kind, tmp_path) as book:
        old = first.stream("ann", book=book, time=0)
        old.release(1)
        assert len(list(adopt_terms(book, second.terms, same_states=True))) == 1  # type: ignore
        second.stream("ann", book=book).release(3)
        for act in (lambda: old.release(3), old.statement):
            with pytest.raises(ArgumentError, match="dphmm ledger adopt"):
                act()


@pytest.mark.parametrize("kind", BOOKS)
def test_a_law_is_adopted_only_from_where_a_line_stands(tmp_path: Path, kind: str) -> None:
    """Another thread, or process, may answer between looking and adopting."""
    town = paper_scenario()
    with book_of(kind, tmp_path) as book:
        engine.release(book, [ask(town, [("ann", 1, 1)])])
        (place,) = book.places([Line("", "ann", "state")])
        engine.release(book, [ask(town, [("ann", 2, 3)])])
        with pytest.raises(MovedError):
            book.adopt(place.standing)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", BOOKS)
def test_a_statement_counts_what_was_answered_where_the_stream_skipped(
    tmp_path: Path, kind: str
) -> None:
    town = paper_scenario()
    with book_of(kind, tmp_path) as book:
        ann, other = (town.stream("ann", book=book, time=0) for _ in range(2))
        ann.release(1)
        other.release(1)
        ann.skip()
        other.release(3)
        ann.release(4)
        assert ann.statement() == town.stream("ann", book=book).statement()
        assert ann.statement().spent == 3


def test_a_schedule_that_looks_at_answers_has_no_chance_of_less_in_a_book() -> None:
    """Times that answers decide are not fixed beforehand, by whichever route they come."""
    town = wide_scenario(when=Schedule(error="1/1000"), epsilon="1/10")
    streams = town.stream("ann", time=0), town.stream("ann", book=MemoryBook(), time=0)
    for stream in streams:
        for _ in range(10):
            stream.release(0)
        told = stream.statement().tells
        assert told is not None
        assert told.linked_delta is None


def test_a_disk_that_takes_a_part_of_a_write_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "ledger")
    raw, written = journal._file, []

    class Filling:
        """Takes fewer bytes each time, as a raw file may, and in the end none."""

        def write(self, data: memoryview) -> int:
            written.append(len(data))
            if len(written) > 3:
                raise OSError(28, "No space left on device")
            return int(raw.write(bytes(data[: len(data) // 2])) or 0)

        def __getattr__(self, name: str) -> object:
            return getattr(raw, name)

    monkeypatch.setattr(journal, "_file", Filling())
    with pytest.raises(OSError, match="No space left"):
        engine.release(journal, [ask(paper_scenario(), [("ann", 1, 1)])])
    monkeypatch.setattr(journal, "_file", raw)
    (answered,) = engine.release(journal, [ask(paper_scenario(), [("ann", 1, 1)])])
    assert answered.verdicts.tolist() == [Verdict.NEW]
    journal.close()
    with Journal(tmp_path / "ledger") as again:
        assert [record.time for record in again.records("", "ann")] == [1]


def test_another_clock_is_another_time(tmp_path: Path) -> None:
    """Slot 5 of a clock of two is time 10, and slot 5 of a clock of one is time 5."""
    scenario, other = paper_scenario(clock=Clock(2)), paper_scenario(clock=Clock(1))
    with book_of("journal", tmp_path) as book:
        engine.release(book, [ask(scenario, [("ann", 5, 1)])])
        (answered,) = engine.release(book, [ask(other, [("ann", 5, 1), ("ann", 9, 1)])])
        assert answered.verdicts.tolist() == [Verdict.OTHERWISE] * 2
        with pytest.raises(ArgumentError, match="time step of the person's answers"):
            list(adopt_terms(book, other.terms, same_states=True))  # type: ignore[arg-type]


def test_a_further_query_is_not_asked_of_a_book() -> None:
    ann = paper_scenario().stream("ann", book=MemoryBook(), time=0)
    ann.release(1)
    with pytest.raises(ArgumentError, match="release_also must be asked of a stream without"):
        ann.release_also(1, Query([[i] for i in range(6)], name="number"))


@pytest.mark.parametrize("bad", [b"zq3", ["zq3", "zq4"], None, [], {}, 1.5, [10**400, 0]])
def test_no_error_about_a_place_says_where_it_is(bad: object) -> None:
    ann = paper_scenario().stream("ann")
    with pytest.raises(ArgumentError, match="true_state must be") as caught:
        ann.release(bad)
    assert MARK not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["paper.toml", "states.csv", "model.npz", "book"])
def test_an_output_never_replaces_what_a_run_reads(tmp_path: Path, name: str) -> None:
    path = written(tmp_path)
    rows = write(tmp_path, [("ann", 1, 2)])
    assert run("release", path, rows, "--store", tmp_path / "book").exit_code == 0
    before = (tmp_path / name).read_bytes()
    result = run("release", path, rows, "--store", tmp_path / "book", "-o", tmp_path / name)
    assert result.exit_code == 2
    assert (tmp_path / name).read_bytes() == before
    book = tmp_path / "book"
    assert run("store", "export", book, "-o", book).exit_code == 2


def test_a_stream_of_a_closed_journal_says_so(tmp_path: Path) -> None:
    with Journal(tmp_path / "ledger.jsonl") as journal:
        ann = paper_scenario().stream("ann", book=journal, time=0)
        ann.release(1)
    with pytest.raises(ArgumentError, match="book must be open, got a journal that was closed"):
        ann.statement()


def test_a_journal_that_was_killed_says_its_last_answers_to_the_belief_again(
    tmp_path: Path,
) -> None:
    scenario = paper_scenario()
    rows = [("ann", time, 1 + time % 5) for time in range(1, 9)]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for path in (whole, cut):
        with Journal(path) as journal:
            engine.release(journal, [ask(scenario, rows[:3])], KEYED)
            engine.release(journal, [ask(scenario, rows[3:6])], KEYED)
    lines = cut.read_bytes().splitlines(keepends=True)
    assert b'"standing"' in lines[-2]
    cut.write_bytes(b"".join(lines[:-2]))  # what closing wrote is gone
    ends = []
    for path in (whole, cut):
        with Journal(path) as journal:
            (answered,) = engine.release(journal, [ask(scenario, rows[6:])], KEYED)
            (place,) = journal.places([Line("", "ann", "state")])
            assert place.standing is not None
            ends.append((answered.release(1).lattice.tolist(), place.standing.to_bytes()))
    assert ends[0] == ends[1]


def test_standings_that_were_put_down_are_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dphmm.books.journal.HELD", 10)
    scenario = paper_scenario()
    days = [
        [(f"p{n}", time, (n + time) % 6) for n in range(20) for time in range(first, first + 3)]
        for first in (1, 4)
    ]
    ends = []
    for book in (MemoryBook(), Journal(tmp_path / "ledger")):
        for rows in days:
            engine.release(book, [ask(scenario, rows)], KEYED)
        places = book.places([Line("", f"p{n}", "state") for n in range(20)])
        ends.append([place.standing.to_bytes() for place in places if place.standing is not None])
        if isinstance(book, Journal):
            assert not book._standings
            book.close()
    assert ends[0] == ends[1]
    assert len(ends[0]) == 20


def test_marks_of_true_states_are_in_no_book(tmp_path: Path) -> None:
    path = written(tmp_path)
    for place in ("--ledger", "--store"):
        book = tmp_path / place.strip("-")
        assert run("release", path, write(tmp_path, [("ann", 1, 2)]), place, book).exit_code == 0
        assert MARK.encode() + b"2" not in book.read_bytes()
        assert book.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("keyed", [True, False])
def test_a_ledger_cut_anywhere_gives_no_second_answer(tmp_path: Path, keyed: bool) -> None:
    """What is left of a write that was cut has not left the program, and is as if never drawn."""
    scenario, source = paper_scenario(), KEYED if keyed else None
    rows = [(person, time, 1 + time % 5) for time in (1, 2, 4) for person in ("ann", "bob")]
    whole = tmp_path / "whole"
    with Journal(whole) as journal:
        engine.release(journal, [ask(scenario, rows[:2])], source)
        (before,) = engine.release(journal, [ask(scenario, rows[:4])], source)
    content = whole.read_bytes()
    spoken = content.index(b'"slot": 2')
    for cut in {0, 5, *range(30, len(content), 97), len(content) - 1}:
        path = tmp_path / "cut"
        path.write_bytes(content[:cut])
        with Journal(path) as journal:
            (again,) = engine.release(journal, [ask(scenario, rows)], source)
            assert not again.faults
            for row in range(4 if keyed else (2 if cut > spoken else 0)):
                assert again.release(row).lattice.tolist() == before.release(row).lattice.tolist()
            places = journal.places([Line("", person, "state") for person in ("ann", "bob")])
            assert [(place.latest, place.spent) for place in places] == [(4, 3), (4, 3)]
            assert all(place.standing is not None for place in places)
