"""One way to release: one moment, one answer, one price, by whatever route it is asked for."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Batch,
    BudgetError,
    Clock,
    Journal,
    KeyedRandomness,
    Ledger,
    MarkovModel,
    MemoryBook,
    Plan,
    Policy,
    PolicyGraph,
    Query,
    Release,
    Scenario,
    Schedule,
    Standing,
    Store,
    Stream,
)
from dphmm.books.changing import adopt_terms
from dphmm.errors import MovedError
from dphmm.release import admission, engine
from dphmm.release.admission import LONGEST_GAP, Verdict
from dphmm.release.book import Book
from dphmm.release.engine import Ask
from dphmm.release.moment import Line
from tests import paper
from tests.scenarios import FEWER, LABELS, MARK, paper_scenario, run, trips, written

KEY = bytes(range(32))
KEYED = KeyedRandomness(KEY)
DAY = 60
BOOKS = ("memory", "journal", "store")


@contextmanager
def book_of(kind: str, folder: Path) -> Iterator[Book]:
    """A book of a kind; opened again it holds what it held."""
    if kind == "memory":
        yield MemoryBook()
    elif kind == "journal":
        with Journal(folder / "book.jsonl") as journal:
            yield journal
    else:
        with closing(Store.open(str(folder / "book.db"))) as store:
            yield store


def ask(scenario: Scenario, rows: Sequence[tuple[str, int, int]], **options: object) -> Ask:
    people, times, states = zip(*rows, strict=True)
    return Ask(scenario.terms, people, np.array(times), np.array(states), **options)  # type: ignore[arg-type]


def key_file(folder: Path, key: bytes = KEY, name: str = "key") -> Path:
    path = folder / name
    path.write_bytes(key)
    path.chmod(0o600)
    return path


def answers_of(text: str) -> list[tuple[str, ...]]:
    return [tuple(row[:4]) for row in csv.reader(io.StringIO(text))][1:]


# Finding 1: keyed noise never repeats across days


def wide_scenario(**changes: object) -> Scenario:
    """Everything is possible, and an answer has many values, so that equal ones tell."""
    base = paper_scenario(policy=Policy(complete=True), start="uniform", **changes)
    model = MarkovModel(np.full((6, 6), 1 / 6))
    return Scenario.from_settings(base.settings, base.states, model)


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


# A changed law never opens a second answer


CHANGES: dict[str, Callable[[Scenario], Scenario]] = {
    "name": lambda s: s.replace(name="other"),
    "epsilon": lambda s: s.replace(epsilon=Fraction(3)),
    "policy": lambda s: s.replace(policy=Policy(complete=True)),
    "model": lambda s: Scenario.from_settings(
        s.settings, s.states, MarkovModel(np.full((6, 6), 1 / 6))
    ),
    "start": lambda s: s.replace(start="uniform"),
    "lattice": lambda s: s.replace(step=Fraction(1, 2)),
    "mechanism": lambda s: s.replace(mechanism="laplace"),
}
SAME_LAW = ("name", "epsilon")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", BOOKS)
def test_an_answered_slot_keeps_its_answer_whatever_the_scenario_becomes(
    tmp_path: Path, kind: str, change: str
) -> None:
    scenario = paper_scenario(clock=Clock(origin=0))
    other = CHANGES[change](scenario)
    with book_of(kind, tmp_path) as book:
        (first,) = engine.release(book, [ask(scenario, [("ann", 1, 1), ("ann", 2, 3)])])
        asked = ask(other, [("ann", 1, 4), ("ann", 2, 4), ("ann", 3, 4)])
        (again,) = engine.release(book, [asked])
        for row in (0, 1):
            assert again.release(row).lattice.tolist() == first.release(row).lattice.tolist()
        if change in SAME_LAW:
            assert again.release(2).time == 3
        else:
            with pytest.raises(ArgumentError, match="dphmm ledger adopt"):
                again.release(2)
            with pytest.raises(ArgumentError, match="dphmm ledger adopt"):
                other.stream("ann", book=book)
        (place,) = book.places([Line("", "ann", "state")])
        assert place.spent == 2 + (other.settings.epsilon if change in SAME_LAW else 0)


@pytest.mark.parametrize("kind", BOOKS)
def test_an_answer_of_64_bits_is_repeated_as_it_was(tmp_path: Path, kind: str) -> None:
    """From 2**63 to 2**64 numpy has unsigned integers, which once became negative ones."""
    far = Query([[0], [2**61]])
    scenario = Scenario(far, MarkovModel([[0.5] * 2] * 2), Policy(complete=True), epsilon="0.4")
    rows = [("ann", time, 1) for time in range(1, 61)]
    with book_of(kind, tmp_path) as book:
        (first,) = engine.release(book, [ask(scenario, rows)], KEYED)
        again = [engine.release(book, [ask(scenario, [row])], KEYED)[0].release(0) for row in rows]
    said = [int(number) for number in first.answers.lattice.ravel()]
    assert any(2**63 <= number < 2**64 for number in said)
    assert [int(one.lattice[0]) for one in again] == said
    kept = [int(record.release().lattice[0]) for record in first.answers.records()]
    assert kept == said


@pytest.mark.parametrize("change", CHANGES)
def test_by_hand_too_an_answered_slot_is_not_answered_again(tmp_path: Path, change: str) -> None:
    scenario = paper_scenario(clock=Clock(origin=0))
    other = CHANGES[change](scenario)
    ann = scenario.stream("ann")
    ann.release(1)
    with pytest.raises(ArgumentError, match="got one already answered"):
        other.stream("ann", ledger=ann.ledger).release(4)
    if change in SAME_LAW:
        assert other.terms.stream(ann.standing).release(4).time == 2
        assert other.terms.batch([ann.standing]).release([4]).times.tolist() == [2]
    else:
        with pytest.raises(ArgumentError, match="standing must be of the stream's law"):
            other.terms.stream(ann.standing)
        with pytest.raises(ArgumentError, match="law must be that of the standings"):
            other.terms.batch([ann.standing])
    book = MemoryBook()
    first = scenario.release(write(tmp_path, [("ann", 1, 2)]), book=book)
    again = other.release(write(tmp_path, [("ann", 1, 5)]), book=book)
    assert first["x", "y", "epsilon"].equals(again["x", "y", "epsilon"])


@pytest.mark.parametrize("place", ["--ledger", "--store"])
def test_the_command_line_keeps_answers_through_every_change(tmp_path: Path, place: str) -> None:
    scenario = paper_scenario(clock=Clock(origin=0))
    scenario.save(tmp_path / "first.toml")
    book = (place, tmp_path / "book")
    rows = trips(("ann", 1, 2), ("ann", 2, 4))
    first = run("release", tmp_path / "first.toml", "-", *book, stdin=rows)
    assert first.exit_code == 0, first.stderr
    for name, change in CHANGES.items():
        (tmp_path / name).mkdir()
        path = tmp_path / name / "other.toml"
        change(scenario).save(path)
        again = run("release", path, "-", *book, stdin=trips(("ann", 1, 5), ("ann", 2, 5)))
        assert again.exit_code == 0, (name, again.stderr)
        said = [[float(x) for x in row[2:]] for row in answers_of(first.stdout)]
        assert [[float(x) for x in row[2:]] for row in answers_of(again.stdout)] == said, name
    new = trips(("ann", 3, 5))
    path = tmp_path / "policy" / "other.toml"
    refused = run("release", path, "-", *book, stdin=new)
    assert refused.exit_code == 2
    assert "dphmm ledger adopt" in refused.stderr
    adopted = run("ledger", "adopt", tmp_path / "book", path, "--same-states")
    assert adopted.exit_code == 0, adopted.stderr
    assert run("release", path, "-", *book, stdin=new).exit_code == 0
    shown = json.loads(run("ledger", "show", tmp_path / "book", "--json").stdout)
    assert [(row["slot"], row["spent"]) for row in shown["people"]] == [(3, "3")]


@pytest.mark.parametrize("kind", BOOKS)
def test_a_book_goes_on_with_its_own_key_only(tmp_path: Path, kind: str) -> None:
    scenario, other = paper_scenario(), KeyedRandomness(bytes(32))
    with book_of(kind, tmp_path) as book:
        engine.release(book, [ask(scenario, [("ann", 5, 1)])], KEYED)
        for wrong in (other, None):
            with pytest.raises(ArgumentError, match="key must be the one"):
                engine.release(book, [ask(scenario, [("ann", 6, 1)])], wrong)
            with pytest.raises(ArgumentError, match="key must be the one"):
                scenario.stream("ann", book=book, randomness=wrong)


@pytest.mark.parametrize("place", ["--ledger", "--store"])
def test_a_key_is_rotated_from_the_next_slot_on(tmp_path: Path, place: str) -> None:
    path = written(tmp_path)
    book = tmp_path / "book"
    old, new = key_file(tmp_path), key_file(tmp_path, bytes(32), "new")

    def release(key: Path, *rows: tuple[str, int, int]) -> int:
        words = ("release", path, "-", place, book, "--key-file", key)
        return run(*words, stdin=trips(*rows)).exit_code

    assert release(old, ("ann", 5, 2)) == 0
    assert release(new, ("ann", 6, 4)) == 2
    assert run("ledger", "rotate", book, "--key-file", old).exit_code == 2
    assert run("ledger", "rotate", book, "--key-file", new).exit_code == 0
    assert release(old, ("ann", 6, 4)) == 2
    assert release(new, ("bob", 5, 2)) == 2, "a slot that the old key could have served"
    assert release(new, ("ann", 6, 4)) == 0
    assert KEY.hex() not in book.read_bytes().hex()


# Admission, by a second way


def plain_verdicts(
    answered: set[int],
    latest: int | None,
    times: list[int],
    room: int | None,
    origin: int | None,
) -> list[Verdict]:
    """The rules in plain words: rows in order of time, one after the other."""
    verdicts: dict[int, Verdict] = {}
    here = latest if latest is not None else (min(times) - 1 if origin is None else origin)
    if origin is not None:
        here = max(here, origin)
    for time in sorted(set(times)):
        if time in answered:
            verdicts[time] = Verdict.REPEATED
        elif time <= here:
            verdicts[time] = Verdict.LATE
        elif time - here > LONGEST_GAP:
            verdicts[time] = Verdict.FAR
        elif room is not None and room < 1:
            verdicts[time] = Verdict.OVER
        else:
            verdicts[time] = Verdict.NEW
            here = time
            room = None if room is None else room - 1
    seen: set[int] = set()
    result = []
    for time in times:
        again = time in seen and verdicts[time] == Verdict.NEW
        result.append(Verdict.REPEATED if again else verdicts[time])
        seen.add(time)
    return result


slots = st.one_of(st.integers(-3, 12), st.sampled_from([200_005, 100_004, 100_005]))
batches = st.lists(st.lists(slots, min_size=1, max_size=6), min_size=1, max_size=4)


@FEWER
@given(batches=batches, limit=st.sampled_from([None, 1, 3, 5]), origin=st.sampled_from([None, 0]))
def test_every_book_gives_the_verdicts_of_the_plain_rules(
    batches: list[list[int]], limit: int | None, origin: int | None
) -> None:
    settings = {"clock": Clock(origin=origin), "limit": limit}
    model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    base = Scenario([0, 1], model, PolicyGraph.complete(2), epsilon=1)
    scenario = base.replace(**settings)
    with TemporaryDirectory() as folder:
        seen = []
        for kind in BOOKS:
            with book_of(kind, Path(folder)) as book, pytest.MonkeyPatch.context() as patch:
                # Carrying a belief through a hundred thousand steps takes long and shows nothing.
                patch.setattr(Stream, "skip", fast_skip)
                seen.append([verdicts_of(book, scenario, times) for times in batches])
        assert seen[0] == seen[1] == seen[2]
        answered: set[int] = set()
        latest: int | None = None
        for times, verdicts in zip(batches, seen[0], strict=True):
            room = None if limit is None else limit - len(answered)
            assert verdicts == plain_verdicts(answered, latest, times, room, origin)
            new = {time for time, v in zip(times, verdicts, strict=True) if v == Verdict.NEW}
            answered |= new
            latest = max(answered) if answered else latest


def fast_skip(stream: Stream, steps: int = 1) -> None:
    stream.time += steps
    if steps:
        stream._answered = ()


def verdicts_of(book: Book, scenario: Scenario, times: list[int]) -> list[int]:
    asked = ask(scenario, [("ann", time, 0) for time in times])
    judged = engine.judge(book, asked)
    (answered,) = engine.release(book, [asked])
    assert judged.verdicts.tolist() == answered.verdicts.tolist()
    assert set(answered.faults) == {
        row for row, verdict in enumerate(answered.verdicts) if verdict > Verdict.REPEATED
    }
    return answered.verdicts.tolist()


def test_a_wrong_rule_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = admission.admit
    monkeypatch.setattr(
        engine, "admit", lambda place, times, *a, **k: honest(place, np.minimum(times, 9), *a, **k)
    )
    model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    scenario = Scenario([0, 1], model, PolicyGraph.complete(2), epsilon=1)
    assert verdicts_of(MemoryBook(), scenario, [8, 12]) != plain_verdicts(
        set(), None, [8, 200_005], None, None
    )


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


def write(folder: Path, rows: Sequence[tuple[str, object, int]]) -> Path:
    path = folder / "rows.csv"
    path.write_text(trips(*rows))
    return path


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
