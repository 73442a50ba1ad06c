"""One way to release: one moment, one answer, one price, by whatever route it is asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Batch,
    BudgetError,
    Clock,
    Ledger,
    MarkovModel,
    MemoryBook,
    Plan,
    Policy,
    PolicyGraph,
    Query,
    Scenario,
    Standing,
    Stream,
)
from dphmm.release import engine
from dphmm.release.book import Book
from tests import paper
from tests.releasing import (
    BOOKS,
    DAY,
    KEYED,
    answers_of,
    ask,
    book_of,
    key_file,
    wide_scenario,
    write,
)
from tests.scenarios import paper_scenario, run, trips, written

# Finding 1: keyed noise never repeats across days


def equal_answers(first: Sequence[object], second: Sequence[object]) -> int:
    return sum(one == other for one, other in zip(first, second, strict=True))


def day_of_stream(scenario: Scenario, day: int, state: int = 1) -> list[list[int]]:
    stream = scenario.stream("ann", time=day * DAY, randomness=KEYED)
    return [stream.release(state).lattice.tolist() for _ in range(DAY)]


def day_of_command(folder: Path, day: int, name: str) -> list[tuple[str, ...]]:
    """A day released by the command line under a name of its own, with a fresh ledger."""
    scenario = wide_scenario()
    scenario.replace(name=name).save(folder / f"{name}.toml")
    rows = trips(*(("ann", day * DAY + step, 2) for step in range(1, DAY + 1)))
    result = run("release", folder / f"{name}.toml", "-", "--key-file", key_file(folder),
                 "--ledger", folder / f"{name}.jsonl", stdin=rows)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return [row[2:] for row in answers_of(result.stdout)]


# Two fresh answers agree with probability at most 0.02 here (the likeliest point of the lattice
# noise), so 60 steps agree 1.2 times on average; 12 or more happen less than once in 10**8 runs.
FEW_EQUAL = 12


def test_two_days_under_one_key_share_no_noise(tmp_path: Path) -> None:
    scenario = wide_scenario()
    assert equal_answers(day_of_stream(scenario, 1), day_of_stream(scenario, 2)) < FEW_EQUAL
    days = [day_of_command(tmp_path, day, f"day{day}") for day in (1, 2)]
    assert equal_answers(*days) < FEW_EQUAL


def test_the_same_day_under_one_key_is_the_same_by_any_name(tmp_path: Path) -> None:
    assert day_of_command(tmp_path, 1, "one") == day_of_command(tmp_path, 1, "two")


def test_another_client_law_or_query_name_gets_other_noise() -> None:
    scenario = wide_scenario()
    mine = day_of_stream(scenario, 1)
    stream = scenario.stream("ann", time=DAY, randomness=KEYED, client="clinic")
    clinic = [stream.release(1).lattice.tolist() for _ in range(DAY)]
    assert equal_answers(mine, clinic) < FEW_EQUAL
    for change in ({"query": "other"}, {"repair": "nearest"}, {"clock": Clock(2)}):
        assert equal_answers(mine, day_of_stream(scenario.replace(**change), 1)) < FEW_EQUAL
    for same in ({"name": "other"}, {"limit": 1000}):
        assert day_of_stream(scenario.replace(**same), 1) == mine


def test_a_key_without_a_time_is_refused() -> None:
    with pytest.raises(ArgumentError, match="time must be given when noise is keyed"):
        paper_scenario().stream("ann", randomness=KEYED)


def test_the_encoding_of_a_question_has_fixed_vectors() -> None:
    """Answers under a key outlive this code: a change here is a change of all of them."""
    plan = Plan(PolicyGraph.by_category(paper.CATEGORIES), Query(paper.VALUES))
    model = MarkovModel(paper.TRANSITION)
    stream = Stream(
        model, plan, epsilon=1, start=0, time=100, person="ann", client="c1", randomness=KEYED
    )
    assert stream.law.hex() == VECTORS["law"]
    said = [stream.release(state).lattice.tolist() for state in (1, 3, 4)]
    assert said == VECTORS["answers"]
    assert KEYED.fingerprint == VECTORS["fingerprint"]
    # A staircase by cones and by layers, and with a gamma of one's own.
    for gamma, wanted in VECTORS["staircase"].items():
        steps = plan.replace(mechanism="staircase", gamma=None if gamma == "best" else gamma)
        stream = Stream(
            model, steps, epsilon=1, start=0, time=100, person="ann", client="c1", randomness=KEYED
        )
        assert stream.law.hex() == wanted["law"]
        prices = zip((1, 3, 4), (1, 4, "1/2"), strict=True)
        said = [stream.release(*question).lattice.tolist() for question in prices]
        assert said == wanted["answers"]


VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


# Finding 2: one key gives one answer by every route


ROWS = [
    *(("ann", 11, 1), ("bob", 12, 2), ("ann", 12, 3), ("ann", 15, 4)),
    *((f"p{n}", 11 + n % 3 + k, (n + k) % 6) for n in range(20) for k in range(4)),
]


def by_streams(scenario: Scenario) -> dict[tuple[str, int], list[int]]:
    answers = {}
    for person in dict.fromkeys(name for name, _, _ in ROWS):
        rows = [row for row in ROWS if row[0] == person]
        stream = scenario.stream(person, time=rows[0][1] - 1, randomness=KEYED)
        for _, time, state in rows:
            stream.skip(time - stream.time - 1)
            answers[person, time] = stream.release(state).lattice.tolist()
    return answers


def by_book(scenario: Scenario, book: Book) -> dict[tuple[str, int], list[int]]:
    (answered,) = engine.release(book, [ask(scenario, ROWS)], KEYED)
    assert not answered.faults
    return {
        (person, time): answered.release(row).lattice.tolist()
        for row, (person, time, _) in enumerate(ROWS)
    }


def by_command(folder: Path, *options: object) -> dict[tuple[str, int], list[int]]:
    text = trips(*((person, time, state + 1) for person, time, state in ROWS))
    (folder / "trips.csv").write_text(text)
    result = run("release", folder / "paper.toml", folder / "trips.csv", "--key-file",
                 key_file(folder), *options)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return {
        (person, int(time)): [int(float(x)), int(float(y))]
        for person, time, x, y in answers_of(result.stdout)
    }


@pytest.mark.parametrize("change", [{}, {"mechanism": "staircase", "epsilon": Fraction(3, 2)}])
def test_one_key_gives_one_answer_by_every_route(tmp_path: Path, change: dict[str, object]) -> None:
    written(tmp_path, **change)
    scenario = Scenario.load(tmp_path / "paper.toml")
    expected = by_streams(scenario)
    for kind in BOOKS:
        with book_of(kind, tmp_path) as book:
            assert by_book(scenario, book) == expected, kind
    assert by_command(tmp_path, "--ledger", tmp_path / "ledger") == expected
    assert by_command(tmp_path, "--store", tmp_path / "store.db") == expected


# Finding 3: threads


def threaded_trial(threads: int) -> tuple[list[tuple[int, tuple[int, ...]]], Stream]:
    plan = Plan(PolicyGraph.complete(3), Query([0, 100, 250]))
    model = MarkovModel(np.full((3, 3), 1 / 3))
    stream = Stream(model, plan, epsilon=1, start=0, ledger=Ledger(limit=2))
    said: list[tuple[int, tuple[int, ...]]] = []
    ready = threading.Barrier(threads)

    def ask_once() -> None:
        ready.wait()
        try:
            release = stream.release(1)
        except BudgetError:
            return
        said.append((release.time, tuple(release.lattice.tolist())))

    workers = [threading.Thread(target=ask_once) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return said, stream


def check_trials(count: int) -> None:
    for _ in range(count):
        said, stream = threaded_trial(8)
        assert sorted(time for time, _ in said) == [1, 2]
        assert stream.ledger.spent == 2
        assert sorted(entry.time for entry in stream.ledger.entries) == [1, 2]


def test_threads_on_one_stream_get_one_answer_a_moment() -> None:
    check_trials(150)


@pytest.mark.slow
def test_threads_on_one_stream_get_one_answer_a_moment_ten_thousand_times() -> None:
    check_trials(10_000)


# Finding 4: nothing is spent on a file that cannot be answered whole


@pytest.mark.parametrize("place", ["--ledger", "--store"])
def test_a_file_with_a_row_too_far_spends_nothing(tmp_path: Path, place: str) -> None:
    path = written(tmp_path)
    (tmp_path / "trips.csv").write_text(trips(("ann", 1, 2), ("ann", 2, 4), ("ann", 200_005, 5)))
    book = tmp_path / "book"
    result = run("release", path, tmp_path / "trips.csv", place, book)
    assert result.exit_code == 2
    assert "trips.csv:4: time must be within 100000 steps" in result.stderr
    shown = json.loads(run("ledger", "show", book, "--json").stdout)
    assert shown["people"] == []


# Finding 5: a standing is all that is needed to go on


@given(
    states=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    cut=st.integers(0, 6),
    epsilon=st.sampled_from(["0.1", "1", "40"]),
)
def test_a_stream_goes_on_from_its_standing_to_the_last_bit(
    states: list[int], cut: int, epsilon: str
) -> None:
    scenario = paper_scenario(epsilon=epsilon, start="uniform")
    through = scenario.stream("ann", time=5, randomness=KEYED)
    first = scenario.stream("ann", time=5, randomness=KEYED)
    for state in states[:cut]:
        through.release(state)
        first.release(state)
    standing = Standing.from_bytes(first.standing.to_bytes())
    assert standing.to_bytes() == first.standing.to_bytes()
    second = scenario.terms.stream(standing, randomness=KEYED)
    for state in states[cut:]:
        ours, theirs = second.release(state), through.release(state)
        assert ours.lattice.tolist() == theirs.lattice.tolist()
        np.testing.assert_array_equal(ours.estimate, theirs.estimate)
    assert second.standing.to_bytes() == through.standing.to_bytes()


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_standing_is_refused(place: int, change: int) -> None:
    data = bytearray(paper_scenario().stream("ann").standing.to_bytes())
    data[place % len(data)] ^= change
    with pytest.raises(ValueError, match="standing must be"):
        Standing.from_bytes(bytes(data))


def test_a_standing_of_another_law_is_refused() -> None:
    standing = paper_scenario().stream("ann", time=0).standing
    other = paper_scenario(policy=Policy(complete=True))
    with pytest.raises(ArgumentError, match="standing must be of the stream's law"):
        other.terms.stream(standing)


# Files and pipes


def test_rows_of_a_file_are_answered_in_order_of_time(tmp_path: Path) -> None:
    path = written(tmp_path)
    rows = [("ann", 3, 5), ("ann", 1, 2), ("ann", 2, 4)]
    shuffled = run("release", path, write(tmp_path, rows), "--key-file", key_file(tmp_path),
                   "--ledger", tmp_path / "a")  # fmt: skip
    ordered = run("release", path, write(tmp_path, sorted(rows, key=lambda row: row[1])),
                  "--key-file", key_file(tmp_path), "--ledger", tmp_path / "b")  # fmt: skip
    assert shuffled.exit_code == 0, shuffled.stderr
    assert sorted(answers_of(shuffled.stdout)) == sorted(answers_of(ordered.stdout))
    assert [row[1] for row in answers_of(shuffled.stdout)] == ["3", "1", "2"]


def test_a_second_row_of_a_step_gets_the_first_ones_answer(tmp_path: Path) -> None:
    path = written(tmp_path, clock=Clock("5 min"))
    times = ("2024-05-01T10:00:00Z", "2024-05-01T10:04:59Z", "2024-05-01T10:05:00Z")
    rows = [("ann", time, state) for time, state in zip(times, (2, 3, 4), strict=True)]
    result = run("release", path, write(tmp_path, rows))
    assert result.exit_code == 0, result.stderr
    first, second, third = answers_of(result.stdout)
    assert first == second
    assert first[1] == "2024-05-01T10:00:00Z"
    assert third[1] == "2024-05-01T10:05:00Z"
    assert "1 rows got the answer" in result.stderr


@pytest.mark.parametrize(("slots_open", "code"), [(0, 2), (1, 0)])
def test_a_live_slot_stays_open_as_long_as_the_clock_says(
    tmp_path: Path, slots_open: int, code: int
) -> None:
    path = written(tmp_path, clock=Clock(open=slots_open))
    late = trips(("ann", 1, 2), ("ann", 3, 5), ("ann", 2, 4), ("ann", 4, 5))
    result = run("release", path, "-", stdin=late)
    assert result.exit_code == code
    if code == 0:
        assert [row[1] for row in answers_of(result.stdout)] == ["1", "2", "3", "4"]
    else:
        assert "time must come after" in result.stderr


def test_times_in_answers_and_ledger_are_the_steps_own(tmp_path: Path) -> None:
    path = written(tmp_path, clock=Clock("5 min"))
    planted = ("2024-05-01T08:07:02.125Z", "2024-05-01T08:13:58.375Z")
    rows = [("ann", time, 2) for time in planted]
    result = run("release", path, write(tmp_path, rows))
    kept = (tmp_path / "paper.ledger.jsonl").read_text() + result.stdout
    assert not [part for part in ("07:02", "02.125", "13:58", "58.375") if part in kept]
    raw = run("release", path, write(tmp_path, rows), "--raw-times")
    assert [row[1] for row in answers_of(raw.stdout)] == list(planted)


# Names


def test_a_name_has_no_blanks_at_its_ends(tmp_path: Path) -> None:
    """A file's cells are read without them, so by another route it would be somebody else."""
    scenario, path = paper_scenario(clock=Clock(origin=0)), written(tmp_path, clock=Clock(origin=0))
    rows = write(tmp_path, [("ann", 1, 2), (" ann ", 1, 3), (" ann", 2, 3)])
    result = run("release", path, rows)
    assert result.exit_code == 0, result.stderr
    assert [row[0] for row in answers_of(result.stdout)] == ["ann"] * 3
    assert "1 rows got the answer" in result.stderr
    table = scenario.release(rows, book=MemoryBook())
    assert table["person"].to_list() == ["ann"] * 3
    for name in (" ann", "ann ", " "):
        refused = pytest.raises(ArgumentError, match="none of them a blank at either end")
        for route in (
            lambda name: scenario.stream(name),
            lambda name: scenario.stream(name, book=MemoryBook()),
            lambda name: scenario.release(rows, person=name),
            lambda name: engine.release(MemoryBook(), [ask(scenario, [(name, 1, 1)])]),
            lambda name: Batch(
                scenario.model, scenario.plan, epsilon=1, people=[name], start=scenario.start
            ),
            lambda name: Query([0, 1], name=name),
        ):
            with refused:
                route(name)
        asked = run("release", path, rows, "--person", name)
        assert asked.exit_code == 2
        assert "a blank at either end" in asked.stderr
