"""Schedules by every route: one decision a moment, written down, and nothing told by silence."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    BudgetError,
    Clock,
    DataError,
    Journal,
    MarkovModel,
    MemoryBook,
    Policy,
    PolicyGraph,
    Scenario,
    Schedule,
    States,
    Store,
)
from dphmm.errors import MovedError
from dphmm.release import admission, asking, engine
from dphmm.release.admission import LONGEST_GAP, Verdict
from dphmm.release.book import Book
from dphmm.release.moment import Line
from dphmm.release.schedule import SILENCE
from dphmm.scenario.released import read_releases
from dphmm.scenario.speaking import how_often, spoken_steps
from dphmm.spark import partition
from dphmm.spark.partition import Partition
from dphmm.spark.streaming import answer
from dphmm.tables.trips import Row
from tests.releasing import BOOKS, KEY, KEYED, ask, book_of
from tests.scenarios import FEWER, run
from tests.spark_worlds import as_batch, city

BASE = 5_700_000
"""The first slot of dates: of 5 minutes, at 17:00 in Berlin on a day of 2024."""

Said = dict[tuple[str, int], list[int]]


def said_in(book: Any, scenario: Scenario, people: Sequence[str]) -> Said:
    return {
        (person, record.time): list(record.lattice)
        for person in dict.fromkeys(people)
        for record in book.answers(Line("", person, scenario.query.name))
    }


def rows_with_gaps(first: int = 11) -> list[tuple[str, int, int]]:
    """Twenty people, so that they go by a batch; some rows are missing, one is there twice."""
    rng = np.random.default_rng(7)
    rows = [("ann", first + 4, 1), ("ann", first + 4, 3)]
    for number in range(20):
        times = np.sort(rng.choice(14, rng.integers(2, 9), replace=False))
        rows += [(f"p{number}", first + int(t), int(rng.integers(9))) for t in times]
    return rows


# Oracle: every route against streams that are asked at every step


def by_streams(scenario: Scenario, rows: Sequence[tuple[str, int, int]]) -> Said:
    """Plain streams with the schedule; who fills gaps asks for the last state again."""
    schedule = scenario.settings.schedule
    said: Said = {}
    for person in dict.fromkeys(name for name, _, _ in rows):
        mine: dict[int, list[int]] = {}
        for _, time, state in sorted(row for row in rows if row[0] == person):
            mine.setdefault(time, []).append(state)
        stream = scenario.stream(person, time=min(mine) - 1, randomness=KEYED)
        for time in range(min(mine), max(mine) + 1):
            if time in mine:
                said[person, time] = stream.release(mine[time][0]).lattice.tolist()
                last = mine[time][-1]
            elif schedule is not None and schedule.gaps == "answer":
                said[person, time] = stream.release(last).lattice.tolist()
            else:
                stream.skip()
    return said


def by_command(
    folder: Path, scenario: Scenario, rows: Sequence[tuple[str, int, int]], *options: object,
    live: bool = False,
) -> Said:  # fmt: skip
    clock = scenario.settings.clock
    lines = [f"{person},{clock.time_of(time)},{state}" for person, time, state in rows]
    text = "\n".join(["person,time,state", *lines]) + "\n"
    (folder / "trips.csv").write_text(text)
    (folder / "key").write_bytes(KEY)
    (folder / "key").chmod(0o600)
    scenario.save(folder / "city.toml")
    result = run("release", folder / "city.toml", "-" if live else folder / "trips.csv",
                 "--key-file", folder / "key", *options, stdin=text)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return read_said(scenario, result.stdout)


def read_said(scenario: Scenario, text: str) -> Said:
    said: Said = {}
    for row in csv.DictReader(io.StringIO(text)):
        time = row["time"] if scenario.settings.clock.has_dates else int(row["time"])
        moment = row["person"], scenario.settings.clock.slot_of(time)
        lattice = [] if row["x"] == "" else scenario.on_lattice([float(row["x"]), float(row["y"])])
        point = lattice if row["x"] == "" else lattice[0].tolist()
        assert said.get(moment, point) == point
        said[moment] = point
        assert (row["epsilon"] == "0") == (row["x"] == "")
        assert row["estimate_x"]
    return said


def by_partition(scenario: Scenario, rows: Sequence[tuple[str, int, int]]) -> Said:
    ordered = [Row(0, name, str(time), time, state) for name, time, state in sorted(rows)]
    done = Partition(scenario, KEYED).answer([as_batch(ordered)])
    found = [row for batch in done for row in batch.to_pylist() if row["table"] == "answers"]
    for row in found:
        silent = row["lattice"] == "[]"
        assert (row["x"] is None) == silent == (row["epsilon"] == "0")
        assert row["estimate_x"] is not None
    return {(row["person"], row["slot"]): json.loads(row["lattice"]) for row in found}


def by_micro_batch(scenario: Scenario, rows: Sequence[tuple[str, int, int]]) -> Said:
    said: Said = {}
    for person in dict.fromkeys(name for name, _, _ in rows):
        mine = sorted(row for row in rows if row[0] == person)
        _, tables, _ = answer(KEYED, None, ask(scenario, mine))
        for table in tables:
            said |= {(r.line.person, r.time): list(r.lattice) for r in table.records()}
    return said


SCHEDULES = [
    Schedule(every=3),
    Schedule(every=2, phase=1, epsilon=3),
    Schedule(apart=4),
    Schedule(error="95.6"),
    Schedule(error="95.5", apart=2),
]
FILLING = [replace(one, gaps="answer") for one in (Schedule(), *SCHEDULES)]


@pytest.mark.parametrize("when", [*SCHEDULES, *FILLING], ids=lambda when: f"{when}, {when.gaps}")
def test_one_key_gives_one_decision_and_one_answer_by_every_route(
    tmp_path: Path, when: Schedule
) -> None:
    scenario, rows = city(3, when=when), rows_with_gaps()
    people = [name for name, _, _ in rows]
    expected = by_streams(scenario, rows)
    kinds = {bool(point) for point in expected.values()}
    assert kinds == ({True} if when == FILLING[0] else {True, False})
    for kind in BOOKS:
        with book_of(kind, tmp_path) as book:
            (answered,) = engine.release(book, [ask(scenario, rows)], KEYED)
            assert not answered.faults
            assert said_in(book, scenario, people) == expected, kind
            for row, (person, time, _) in enumerate(rows):
                assert answered.release(row).lattice.tolist() == expected[person, time]
    assert by_command(tmp_path, scenario, rows, "--ledger", tmp_path / "a") == expected
    assert by_command(tmp_path, scenario, rows, "--store", tmp_path / "b.db") == expected
    assert by_command(tmp_path, scenario, rows, "--ledger", tmp_path / "c", live=True) == expected
    assert by_partition(scenario, rows) == expected
    assert by_micro_batch(scenario, rows) == expected


def test_hours_are_the_same_by_every_route(tmp_path: Path) -> None:
    clock = Clock("5 min", zone="Europe/Berlin")
    when = Schedule(hours=["17:15", "17:40-18:00"], gaps="answer")
    scenario, rows = city(3, when=when, clock=clock), rows_with_gaps(BASE)
    expected = by_streams(scenario, rows)
    assert 0 < sum(map(bool, expected.values())) < len(expected)
    assert by_command(tmp_path, scenario, rows, "--ledger", tmp_path / "a") == expected
    assert by_partition(scenario, rows) == expected


def test_a_table_has_no_answer_and_an_estimate_where_nothing_is_said() -> None:
    import polars

    scenario = city(3, when=Schedule(every=500, phase=3))
    rows = polars.DataFrame({"person": ["ann"] * 300, "time": range(300), "state": ["4"] * 300})
    table = scenario.release(rows)
    assert table["x"].is_null().sum() == 299
    assert table["epsilon"].to_list() == ["1" if time == 3 else "0" for time in range(300)]
    assert table["estimate_x"].null_count() == 0


def test_a_person_with_very_many_rows_is_filled_alike_however_they_are_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gap between two parts or two windows is filled from the last row before it."""
    scenario, rows = city(3, when=Schedule(every=2, gaps="answer")), rows_with_gaps()
    expected = by_streams(scenario, rows)
    monkeypatch.setattr(engine, "LONG", 3)
    monkeypatch.setattr(asking, "TOGETHER", 5)
    monkeypatch.setattr(partition, "ROWS", 4)
    book = MemoryBook()
    engine.release(book, [ask(scenario, rows)], KEYED)
    assert said_in(book, scenario, [name for name, _, _ in rows]) == expected
    assert by_partition(scenario, rows) == expected


# Oracle: admission with a schedule, by the plain rules


def plain_verdicts(
    schedule: Schedule, known: dict[int, bool], times: list[int], room: int | None
) -> list[Verdict]:
    """Rows in order of time, one after the other; `known` says where something was said."""
    verdicts: dict[int, Verdict] = {}
    latest = max(known, default=min(times) - 1)
    spoken = [time for time, spoke in known.items() if spoke]
    for time in sorted(set(times)):
        every, apart = int(schedule.every), int(schedule.apart)
        speaks = time % every == 0 and not (spoken and time - max(spoken) < apart)
        if time in known:
            verdicts[time] = Verdict.REPEATED
        elif time <= latest:
            verdicts[time] = Verdict.LATE
        elif time - latest > LONGEST_GAP:
            verdicts[time] = Verdict.FAR
        elif speaks and room is not None and room < 1:
            verdicts[time] = Verdict.OVER
        else:
            verdicts[time] = Verdict.NEW if speaks else Verdict.SILENT
            latest = time
            spoken += [time] * speaks
            room = None if room is None else room - speaks
    seen: set[int] = set()
    result = []
    for time in times:
        again = time in seen and verdicts[time] <= Verdict.NEW
        result.append(Verdict.REPEATED if again else verdicts[time])
        seen.add(time)
    return result


slots = st.one_of(st.integers(0, 25), st.just(200_000))
batches = st.lists(st.lists(slots, min_size=1, max_size=9), min_size=1, max_size=4)


@FEWER
@given(batches=batches, limit=st.sampled_from([None, 1, 3]), every=st.sampled_from([1, 2, 3]),
       apart=st.sampled_from([1, 4]))  # fmt: skip
def test_every_book_gives_the_verdicts_of_the_plain_rules(
    batches: list[list[int]], limit: int | None, every: int, apart: int
) -> None:
    schedule = Schedule(every=every, apart=apart)
    model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    scenario = Scenario([0, 1], model, PolicyGraph.complete(2), epsilon=1, limit=limit,
                        when=schedule)  # fmt: skip
    with TemporaryDirectory() as folder:
        seen = []
        for kind in BOOKS:
            with book_of(kind, Path(folder)) as book:
                seen.append([verdicts_of(book, scenario, times) for times in batches])
    assert seen[0] == seen[1] == seen[2]
    known: dict[int, bool] = {}
    for times, verdicts in zip(batches, seen[0], strict=True):
        room = None if limit is None else limit - sum(known.values())
        assert verdicts == plain_verdicts(schedule, known, times, room)
        for time, verdict in zip(times, verdicts, strict=True):
            if verdict <= Verdict.NEW:
                known[time] = verdict == Verdict.NEW


def verdicts_of(book: Book, scenario: Scenario, times: list[int]) -> list[int]:
    asked = ask(scenario, [("ann", time, 0) for time in times])
    judged = engine.judge(book, asked)
    (answered,) = engine.release(book, [asked])
    assert judged.verdicts.tolist() == answered.verdicts.tolist()
    for row, verdict in enumerate(answered.verdicts.tolist()):
        if verdict == Verdict.SILENT:
            assert answered.release(row).statement == SILENCE
            assert answered.release(row).epsilon == 0
    return answered.verdicts.tolist()


# Laws: decisions are made once


@pytest.mark.parametrize("kind", BOOKS)
@pytest.mark.parametrize("when", [Schedule(error="95.6"), Schedule(every=2), Schedule(apart=3)])
def test_who_asks_again_reads_the_decision_in_the_book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, when: Schedule
) -> None:
    scenario = city(3, when=when)
    rows = [("ann", time, time % 9) for time in range(10)]
    with book_of(kind, tmp_path) as book:
        (first,) = engine.release(book, [ask(scenario, rows)])
        # Another machine's floats might decide otherwise; nobody asks them again.
        monkeypatch.setattr(admission, "holds", lambda *a: pytest.fail("decided again"))
        (again,) = engine.release(book, [ask(scenario, rows)])
        assert again.repeated == len(rows)
        for row in range(len(rows)):
            one, other = first.release(row), again.release(row)
            assert one.lattice.tolist() == other.lattice.tolist()
            assert one.estimate.tolist() == other.estimate.tolist()
            assert (one.epsilon, one.statement) == (other.epsilon, other.statement)


@pytest.mark.parametrize(
    "when", [Schedule(error="95.6", gaps="answer"), Schedule(every=2, apart=3)]
)
def test_a_ledger_cut_anywhere_leads_to_the_same_answers(tmp_path: Path, when: Schedule) -> None:
    """What a kill has left is followed, and under a key the rest is said as it would have been."""
    scenario = city(3, when=when)
    days = [
        [(person, time, (time + len(person)) % 9) for time in times for person in ("ann", "bo")]
        for times in ((1, 2, 5), (7, 8, 11), (12, 14))
    ]
    whole = tmp_path / "whole"
    with Journal(whole) as journal:
        for rows in days[:2]:
            engine.release(journal, [ask(scenario, rows)], KEYED)
    content = whole.read_bytes()
    with Journal(whole) as journal:
        engine.release(journal, [ask(scenario, days[2])], KEYED)
        expected = said_in(journal, scenario, ["ann", "bo"])
        places = journal.places(journal.lines())
        ends = [place.standing.to_bytes() for place in places if place.standing is not None]
    for cut in {0, 5, *range(30, len(content), 193), len(content) - 1}:
        path = tmp_path / "cut"
        path.write_bytes(content[:cut])
        with Journal(path) as journal:
            for rows in days:
                engine.release(journal, [ask(scenario, rows)], KEYED)
            assert said_in(journal, scenario, ["ann", "bo"]) == expected
            stands = [place.standing for place in journal.places(journal.lines())]
            assert [one.to_bytes() for one in stands if one is not None] == ends


@pytest.mark.parametrize(
    "when", [Schedule(error="95.6"), Schedule(apart=3), Schedule(gaps="answer")]
)
def test_many_at_once_decide_every_moment_once(tmp_path: Path, when: Schedule) -> None:
    scenario = city(3, when=when)
    with closing(Store.open(str(tmp_path / "book.db"))) as store:
        seen: list[dict[int, tuple[int, ...]]] = []

        def work(offset: int) -> None:
            mine = {}
            for first in range(1, 19, 3):
                rows = [("ann", first + k, (first + k + offset) % 9) for k in (0, 2)]
                (answered,) = engine.release(store, [ask(scenario, rows)])
                for row, (_, time, _) in enumerate(rows):
                    if row not in answered.faults:  # late, behind the others
                        mine[time] = tuple(answered.release(row).lattice.tolist())
            seen.append(mine)

        threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = said_in(store, scenario, ["ann"])
        for mine in seen:
            assert all(list(point) == held["ann", time] for time, point in mine.items())
        if when.gaps == "answer":
            assert [time for _, time in held] == list(range(1, 19))


def test_a_limit_refuses_what_is_said_and_not_what_is_silent() -> None:
    scenario = city(3, limit=2, when=Schedule(every=3))
    rows = [("ann", time, 4) for time in range(1, 12)]
    (answered,) = engine.release(MemoryBook(), [ask(scenario, rows)])
    silent, new, over = Verdict.SILENT, Verdict.NEW, Verdict.OVER
    assert answered.verdicts.tolist() == (
        [silent, silent, new, silent, silent, new, silent, silent, over, silent, silent]
    )
    fault = answered.faults[8]
    assert isinstance(fault, BudgetError)
    assert fault.requested == 3


def test_where_the_belief_decides_a_limit_counts_what_was_really_said() -> None:
    """A file is not refused for answers that would not be given."""
    scenario = city(3, limit=3, when=Schedule(error="95.6"))
    rows = [("ann", time, 4) for time in range(1, 200)]
    book = MemoryBook()
    assert not engine.judge(book, ask(scenario, rows)).faults
    (answered,) = engine.release(book, [ask(scenario, rows)], KEYED)
    assert (answered.verdicts == Verdict.NEW).sum() == 3
    first = min(answered.faults)
    fault = answered.faults[first]
    assert isinstance(fault, BudgetError)
    assert (fault.spent, fault.requested) == (3, 1)
    (place,) = book.places([Line("", "ann", "state")])
    assert place.spent == 3


@FEWER
@given(
    times=st.sets(st.integers(0, 30), min_size=1, max_size=14),
    when=st.sampled_from(
        [Schedule(error="95.6"), Schedule(error=1), Schedule(apart=2), Schedule(every=2)]
    ),
    gaps=st.sampled_from(["skip", "answer"]),
    cut=st.integers(0, 14),
)
@example(times={4, 5, 6, 7}, when=Schedule(error=1), gaps="skip", cut=1)
def test_windows_count_what_is_said_and_refuse_nothing_else(
    times: set[int], when: Schedule, gaps: str, cut: int
) -> None:
    """Two answers in any five steps, against a look at every window, over two runs."""
    limited = city(3, limit="2 per 5 steps", when=replace(when, gaps=gaps))
    rows = [("ann", time, time % 9) for time in sorted(times)]
    seen = []
    for kind in BOOKS:
        with TemporaryDirectory() as folder, book_of(kind, Path(folder)) as book:
            verdicts: list[int] = []
            for some in (rows[:cut], rows[cut:]):
                if some:
                    (answered,) = engine.release(book, [ask(limited, some)], KEYED)
                    verdicts += answered.verdicts.tolist()
            said = said_in(book, limited, ["ann"])
            seen.append((verdicts, said))
    assert seen[0] == seen[1] == seen[2]
    verdicts, said = seen[0]
    spoken = [time for (_, time), point in said.items() if point]
    for time, verdict in zip(sorted(times), verdicts, strict=True):
        held = sum(time - 5 < other < time for other in spoken)
        assert (verdict == Verdict.OVER) <= (held == 2), "nothing that is allowed is refused"
        assert (verdict == Verdict.NEW) == (time in spoken)
    assert all(sum(t <= other < t + 5 for other in spoken) <= 2 for t in range(-5, 31))


def test_a_request_at_its_own_price_is_silent_for_nothing() -> None:
    scenario = city(3, when=Schedule(every=2))
    prices = [Fraction(5)] * 3
    asked = ask(scenario, [("ann", time, 4) for time in (1, 2, 3)], prices=prices)
    (answered,) = engine.release(MemoryBook(), [asked])
    assert [answered.release(row).epsilon for row in range(3)] == [0, 5, 0]


def test_a_changed_schedule_is_another_law() -> None:
    book = MemoryBook()
    engine.release(book, [ask(city(3, when=Schedule(every=2)), [("ann", 1, 4)])])
    (answered,) = engine.release(book, [ask(city(3, when=Schedule(every=3)), [("ann", 2, 4)])])
    assert answered.verdicts.tolist() == [Verdict.CHANGED]
    dearer = city(3, when=Schedule(every=2, epsilon=9))
    (answered,) = engine.release(book, [ask(dearer, [("ann", 2, 4)])])
    assert answered.release(0).epsilon == 9


@pytest.mark.parametrize("kind", BOOKS)
def test_a_stream_follows_its_book_through_silence(tmp_path: Path, kind: str) -> None:
    scenario = city(3, when=Schedule(error="95.6", apart=2))
    with book_of(kind, tmp_path) as book:
        stream = scenario.stream("ann", book=book, time=10, randomness=KEYED)
        said = [stream.release(time % 9) for time in range(6)]
        plain = scenario.stream("ann", time=10, randomness=KEYED)
        assert [one.lattice.tolist() for one in said] == [
            plain.release(time % 9).lattice.tolist() for time in range(6)
        ]
        assert stream.ledger.spent == plain.ledger.spent
        again = scenario.stream("ann", book=book, randomness=KEYED)
        assert again.standing.to_bytes() == stream.standing.to_bytes() == plain.standing.to_bytes()
        if isinstance(book, Store):
            assert len(book.ledger("ann").entries) == len(plain.ledger.entries)


def test_a_stream_of_a_book_without_gaps_skips_nothing() -> None:
    stream = city(3, when=Schedule(gaps="answer")).stream("ann", book=MemoryBook(), time=3)
    stream.release(4)
    with pytest.raises(ArgumentError, match="skip must not be asked of a stream without gaps"):
        stream.skip()


# Gaps


@given(present=st.sets(st.integers(2, 11), max_size=10), seed=st.integers(0, 100))
@FEWER
def test_lines_do_not_say_which_steps_had_a_row(present: set[int], seed: int) -> None:
    """Whatever rows are there between the first and the last, the same steps are told."""
    scenario = city(3, when=Schedule(every=3, gaps="answer"))
    rng = np.random.default_rng(seed)
    rows = [("ann", time, int(rng.integers(9))) for time in sorted({1, 12, *present})]
    rows += [("bob", 5, 2), ("ann", 1, 3), ("bob", 5, 2)]
    rng.shuffle(rows)
    import polars

    columns = dict(
        zip(("person", "time", "state"), map(list, zip(*rows, strict=True)), strict=True)
    )
    columns["state"] = [str(state) for state in columns["state"]]
    columns["time"] = [int(time) for time in columns["time"]]
    table = scenario.release(polars.DataFrame(columns))
    told = sorted(table.select("person", "time", "epsilon").rows())
    assert told == [
        *(("ann", time, "1" if time % 3 == 0 else "0") for time in range(1, 13)),
        ("bob", 5, "0"),
    ]
    ordered = [time for person, time in table.select("person", "time").rows() if person == "ann"]
    assert ordered == list(range(1, 13))


@pytest.mark.parametrize("place", ["--ledger", "--store"])
def test_a_gap_between_two_runs_is_filled_from_the_first_row_after_it(
    tmp_path: Path, place: str
) -> None:
    scenario = city(3, when=Schedule(gaps="answer"))
    book = tmp_path / "book"
    first = by_command(tmp_path, scenario, [("ann", 1, 0), ("ann", 3, 8)], place, book)
    later = [("ann", 6, 5), ("ann", 8, 2)]
    second = by_command(tmp_path, scenario, later, place, book)
    assert [time for _, time in first] == [1, 2, 3]
    assert [time for _, time in second] == [4, 5, 6, 7, 8]
    stream = scenario.stream("ann", time=0, randomness=KEYED)
    states = [0, 0, 8, 5, 5, 5, 5, 2]
    expected = [stream.release(state).lattice.tolist() for state in states]
    assert [*first.values(), *second.values()] == expected
    # A run whose output was lost is run again; which steps came with it nobody knows any more,
    # so all of them do, and none is missing.
    again = by_command(tmp_path, scenario, later, place, book)
    assert list(again.values()) == expected


def test_a_late_row_of_a_filled_step_gets_the_answer_that_was_given(tmp_path: Path) -> None:
    scenario, book = city(3, when=Schedule(gaps="answer")), MemoryBook()
    engine.release(book, [ask(scenario, [("ann", 1, 0), ("ann", 4, 8)])])
    before = said_in(book, scenario, ["ann"])
    (late,) = engine.release(book, [ask(scenario, [("ann", 2, 7)])])
    assert late.verdicts.tolist() == [Verdict.REPEATED]
    assert late.release(0).lattice.tolist() == before["ann", 2]
    assert said_in(book, scenario, ["ann"]) == before
    live = by_command(tmp_path, scenario, [("ann", 1, 0), ("ann", 4, 8), ("ann", 2, 7)],
                      "--ledger", tmp_path / "a", live=True)  # fmt: skip
    assert [time for _, time in live] == [1, 2, 3, 4], "each step once"


def test_a_filled_step_has_its_price() -> None:
    scenario, book = city(3, limit=4, when=Schedule(gaps="answer")), MemoryBook()
    (answered,) = engine.release(book, [ask(scenario, [("ann", 1, 0), ("ann", 6, 8)])])
    assert answered.verdicts.tolist() == [Verdict.NEW, Verdict.OVER]
    assert isinstance(answered.faults[1], BudgetError)
    assert list(said_in(book, scenario, ["ann"])) == [("ann", time) for time in (1, 2, 3, 4)]


def test_a_row_too_far_ahead_fills_nothing() -> None:
    scenario, book = city(3, when=Schedule(gaps="answer")), MemoryBook()
    far = [("ann", 1, 0), ("ann", 3, 0), ("ann", LONGEST_GAP + 4, 0), ("ann", 10**17, 0)]
    (answered,) = engine.release(book, [ask(scenario, far)])
    assert answered.verdicts.tolist() == [Verdict.NEW, Verdict.NEW, Verdict.FAR, Verdict.FAR]
    assert list(said_in(book, scenario, ["ann"])) == [("ann", time) for time in (1, 2, 3)]


def test_a_row_is_far_only_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows are judged one by one, because the belief decides."""
    monkeypatch.setattr(admission, "LONGEST_GAP", 5)
    scenario = city(3, when=Schedule(error=1))
    rows = [("ann", time, 4) for time in (1, 5, 9, 20)]
    (answered,) = engine.release(MemoryBook(), [ask(scenario, rows)])
    assert answered.verdicts.tolist() == [Verdict.NEW] * 3 + [Verdict.FAR]


def test_somebody_who_was_faster_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server answers a person between reading and writing: what it left is filled."""
    scenario, book = city(3, when=Schedule(gaps="answer")), MemoryBook()
    honest = MemoryBook.commit
    faster = iter([True])

    def commit(self: MemoryBook, *given: Any) -> None:
        if next(faster, False):
            engine.release(book, [ask(scenario, [("ann", 2, 1)])], KEYED)
            raise MovedError([Line("", "ann", "state")])
        honest(self, *given)

    monkeypatch.setattr(MemoryBook, "commit", commit)
    (answered,) = engine.release(book, [ask(scenario, [("ann", 6, 5), ("ann", 8, 2)])], KEYED)
    assert not answered.faults
    assert [time for _, time in said_in(book, scenario, ["ann"])] == [2, 3, 4, 5, 6, 7, 8]


def test_somebody_who_was_erased_begins_anew(tmp_path: Path) -> None:
    scenario = city(3, when=Schedule(gaps="answer"))
    with closing(Store.open(str(tmp_path / "book.db"))) as store:
        engine.release(store, [ask(scenario, [("ann", 1, 0)])])
        store.erase("ann")
        engine.release(store, [ask(scenario, [("ann", 5, 0), ("ann", 7, 0)])])
        assert [time for _, time in said_in(store, scenario, ["ann"])] == [5, 6, 7]


def test_raw_times_would_show_the_gaps(tmp_path: Path) -> None:
    city(3, when=Schedule(gaps="answer")).save(tmp_path / "city.toml")
    (tmp_path / "trips.csv").write_text("person,time,state\nann,1,0\n")
    result = run("release", tmp_path / "city.toml", tmp_path / "trips.csv", "--raw-times")
    assert result.exit_code == 2
    assert "--raw-times must not go with gaps" in result.stderr


# Files and commands


def test_a_scenario_file_says_when(tmp_path: Path) -> None:
    when = Schedule(every="1 h", hours=["08:00-20:00"], error="250.5", apart=6, epsilon=2,
                    gaps="answer")  # fmt: skip
    scenario = city(3, when=when, clock=Clock("5 min", zone="Europe/Berlin"))
    assert scenario.settings.epsilon == 2
    scenario.save(tmp_path / "city.toml")
    again = Scenario.load(tmp_path / "city.toml")
    assert again.settings == scenario.settings
    assert again.law == scenario.law != scenario.replace(when=None).law
    assert (again.terms.schedule, again.terms.epsilon) == (scenario.settings.schedule, 2)
    assert again.settings.schedule is not None
    assert again.settings.schedule.every == 12


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('every = "7 min"', "city.toml:3: when.every must be a whole number of the clock's steps"),
        ("evry = 2", "city.toml:3: when.evry is not a key of a scenario; did you mean 'every'?"),
        ("every = 2.5", "city.toml:3: when.every must be a whole number, got 2.5"),
        ('hours = "08:00"', "city.toml:3: when.hours must be a list"),
        ('hours = ["8 am"]', "city.toml:3: when.hours must be times such as '08:00'"),
        ("error = 0", "city.toml:3: when.error must be positive, got 0"),
        ('gaps = "fill"', "city.toml:3: when.gaps must be skip or answer, got 'fill'"),
    ],
)
def test_a_mistake_in_the_file_is_located(tmp_path: Path, lines: str, message: str) -> None:
    text = f'epsilon = 1\n[when]\n{lines}\n[time]\nstep = "5 min"\n'
    (tmp_path / "city.toml").write_text(text)
    result = run("check", tmp_path / "city.toml")
    assert result.exit_code == 2
    assert message in result.stderr


def test_check_tells_how_often_it_speaks_and_what_that_costs(tmp_path: Path) -> None:
    when = Schedule(every="2 h", epsilon=2)
    scenario = city(3, when=when, clock=Clock("5 min"))
    sentence = (
        "It speaks every 2 h: at most 12 answers in any 24 hours, which cost 24 in all, as much "
        "as 1/12 at every step. At other steps nothing is said or spent."
    )
    assert scenario.check().guarantee.endswith(sentence)
    scenario.save(tmp_path / "city.toml")
    assert sentence in run("check", tmp_path / "city.toml").stdout
    facts = json.loads(run("check", tmp_path / "city.toml", "--json").stdout)["speaks"]
    assert (facts["answers"], facts["epsilon"], facts["steps"]) == (12, "24", 288)
    assert str(how_often(city(3, when=Schedule(every=4, apart=6)))).startswith(
        "It speaks every 4 steps, at least 6 steps apart: at most 1 answer in any 8 steps, which "
        "cost 1 in all, as much as 0.125 at every step."
    )
    assert how_often(city(3)) is None
    night = city(3, when=Schedule(hours=["01:30"]), clock=Clock("30 min", zone="Europe/Moscow"))
    assert "It speaks at 01:30 (Europe/Moscow): at most 2 answers" in night.check().guarantee
    assert "at 01:30 (Europe/Moscow)" in night._repr_html_()


def test_check_counts_the_answers_that_the_schedule_allows(tmp_path: Path) -> None:
    path = tmp_path / "city.toml"
    city(3, when=Schedule(every=4, phase=3)).save(path)
    plain = run("check", path, "--steps", 9).stdout
    wherever = "as [when] says, wherever they begin (at most 3 of them):\n  3 releases, epsilon"
    assert wherever in plain
    hours = Schedule(hours=("08:00-09:00",), apart=4, step="15 min")
    eight = 8 * 4 - 1
    assert spoken_steps(hours, 6, eight) == [(True, False, False, False, False, False)]
    assert spoken_steps(replace(hours, apart=1), 6, eight) == [(True,) * 4 + (False,) * 2]
    # A start may be before the hour or within it; after silence it speaks at once.
    assert len(spoken_steps(hours, 6) or ()) == 6
    assert spoken_steps(Schedule(error=10**9), 3) == [(True,) * 3]
    never = Schedule(every=96, phase=1, hours=("00:00",), step="15 min")
    assert spoken_steps(never, 50) == []
    assert len(spoken_steps(Schedule(every=10**6, phase=7), 100) or ()) == 100


def test_check_does_not_count_what_takes_too_many_starts() -> None:
    rare = Schedule(every=10**6 + 3, hours=("08:00",))
    assert city(3, when=rare, clock=Clock("1 s")).check(3).costs is None


def test_a_ledger_shows_when_it_last_spoke(tmp_path: Path) -> None:
    scenario = city(3, when=Schedule(every=3))
    by_command(tmp_path, scenario, [("ann", 3, 0), ("ann", 5, 0)], "--ledger", tmp_path / "a")
    shown = run("ledger", "show", tmp_path / "a").stdout
    assert "slot 5 " in shown
    assert "spent 1, last answer at slot 3" in shown
    facts = json.loads(run("ledger", "show", tmp_path / "a", "--json").stdout)
    assert (facts["people"][0]["slot"], facts["people"][0]["spoke"]) == (5, 3)


def test_a_report_has_estimates_where_nothing_was_said(tmp_path: Path) -> None:
    scenario = city(3, when=Schedule(every=3))
    rows = [("ann", time, 4) for time in range(1, 13)] + [("bob", 1, 2)]
    by_command(tmp_path, scenario, rows, "--ledger", tmp_path / "a", "-o", tmp_path / "out.csv")
    (track,) = read_releases(tmp_path / "out.csv", scenario)
    assert track.person == "ann", "nothing was said about bob"
    assert [one.silent for one in track.releases] == [time % 3 != 0 for time in range(1, 13)]
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    for line, release in zip(lines, track.releases, strict=False):
        # Files have no digits beyond a thousandth of the lattice's step, which is 10.
        assert float(line["estimate_x"]) == pytest.approx(release.estimate[0], abs=0.01)
    truth = ("--private-truth", tmp_path / "trips.csv", "--json")
    page = tmp_path / "page.html"
    result = run("report", tmp_path / "city.toml", tmp_path / "out.csv", "-o", page, *truth)
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert (facts["releases"], facts["people"]) == (4, 1)
    assert facts["private_errors"]["smoothed"] > 0
    text = page.read_text()
    assert "nan" not in text
    assert "4 answers in 12 steps" in text
    assert "<th>releases</th>" not in text, "places are given away at steps, not by as many answers"


@pytest.mark.parametrize("more", [(), ("--lag", 2), ("--json",)])
def test_silence_on_a_map_of_latitudes_and_longitudes(tmp_path: Path, more: tuple[str]) -> None:
    states = States(("a", "b"), {"latitude": np.array([48.1, 48.2]), "longitude": np.full(2, 11.5)})
    moves = MarkovModel([[0.9, 0.1], [0.1, 0.9]])
    Scenario(states, moves, Policy(complete=True), epsilon=3, when=Schedule(every=2)).save(
        tmp_path / "town.toml"
    )
    rows = "".join(f"ann,{slot},{'ab'[slot % 2]}\n" for slot in range(1, 8))
    (tmp_path / "trips.csv").write_text("person,time,state\n" + rows)
    result = run("release", tmp_path / "town.toml", tmp_path / "trips.csv", *more)
    assert result.exit_code == 0, result.stderr
    if more == ("--json",):
        told = [json.loads(line) for line in result.stdout.splitlines()]
    else:
        told = list(csv.DictReader(io.StringIO(result.stdout)))
        (tmp_path / "out.csv").write_text(result.stdout)
        for words in (("report",), ("export", "answers"), ("export", "estimates")):
            made = run(
                *words, tmp_path / "town.toml", tmp_path / "out.csv", "-o", tmp_path / "made"
            )
            assert made.exit_code == 0, made.stderr
    assert [bool(row["latitude"]) for row in told] == [slot % 2 == 0 for slot in range(1, 8)]
    assert all(48 < float(row["estimate_latitude"]) < 48.3 for row in told)


def test_a_file_without_any_answer_has_no_report(tmp_path: Path) -> None:
    scenario = city(3, when=Schedule(every=300))
    by_command(tmp_path, scenario, [("ann", 1, 0)], "--ledger", tmp_path / "a", "-o",
               tmp_path / "out.csv")  # fmt: skip
    with pytest.raises(DataError, match="file must hold at least one release, got none"):
        read_releases(tmp_path / "out.csv", scenario)
