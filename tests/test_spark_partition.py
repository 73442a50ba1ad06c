"""What a worker does with a partition, without Spark: the engine's verdicts and answers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm import BudgetError, DataError
from dphmm.books.memory import MemoryBook
from dphmm.errors import ArgumentError, DphmmError
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release import engine
from dphmm.release.admission import LONGEST_GAP, Verdict
from dphmm.release.standing import Standing
from dphmm.scenario import Clock, Row, Scenario
from dphmm.scenario.releasing import ask_rows
from dphmm.spark import partition
from dphmm.spark.partition import Partition
from dphmm.spark.sessions import exact_faults, plain_faults
from dphmm.spark.streaming import answer
from tests.releasing import CHANGES
from tests.scenarios import paper_scenario
from tests.spark_worlds import KEYED, as_batch, city, local_run, same_answers, walks

pytestmark = pytest.mark.spark

OTHER = KeyedRandomness(bytes(32))

# Beliefs of a batch and of a stream are sums of the same numbers in another order.
CLOSE = 1e-9


def run(scenario: Scenario, batches: Any, **options: Any) -> tuple[list[Any], list[Any]]:
    """The answers and the state of one partition."""
    done = Partition(scenario, options.pop("key", KEYED), **options).answer(batches)
    found = [row for batch in done for row in batch.to_pylist()]
    return tuple([r for r in found if r["table"] == name] for name in ("answers", "state"))


def rows_of(person: str, *slots: int, states: int = 16) -> list[Row]:
    return [Row(0, person, str(slot), slot, slot % states) for slot in slots]


# Laws


@settings(max_examples=15)
@given(st.data())
def test_however_rows_are_cut_the_answers_are_the_local_ones(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 1000))
    client = data.draw(st.sampled_from(["", "acme"]))
    scenario = city(4, start=data.draw(st.sampled_from(["uniform", "5"])))
    # From 16 people on they go by a batch.
    rows = walks(16, people=data.draw(st.sampled_from([1, 9, 20])), longest=12, seed=seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    batches = [
        as_batch(rows[first:end])
        for first, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        if end > first
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partition, "ROWS", data.draw(st.sampled_from([7, 2**16])))
        answers, state = run(scenario, batches, client=client)
    with local_run(scenario, rows, client) as journal:
        assert same_answers(scenario, answers, journal)
        for row in state:
            said = journal.records(client, row["person"])
            standing = Standing.from_bytes(row["standing"])
            assert standing.line == (client, row["person"], scenario.query.name)
            assert standing.time == said[-1].time
            assert standing.spent == Fraction(row["spent"]) == sum(r.epsilon for r in said)
            assert row["key"] == KEYED.fingerprint


@settings(max_examples=40)
@given(st.data())
def test_every_row_gets_the_verdict_that_the_local_engine_gives(data: st.DataObject) -> None:
    """Late, repeated, far and forbidden rows, in bulk and in a stream, over several runs."""
    limit = data.draw(st.sampled_from([None, Fraction(3), Fraction(6)]))
    clock = Clock(origin=data.draw(st.sampled_from([None, 4])))
    scenario = city(3, limit=limit, clock=clock)
    slot = st.one_of(st.integers(1, 14), st.just(LONGEST_GAP + 20))
    days = data.draw(st.lists(st.lists(slot, min_size=1, max_size=6), min_size=1, max_size=3))
    book, state, held = MemoryBook(), [], None
    late = repeated = refused = 0
    for day in days:
        rows = rows_of("ann", *sorted(day), states=9)
        ask = ask_rows(scenario, rows)
        judged = engine.judge(book, ask, KEYED)
        (place,) = book.places([judged.answers.lines[0]])
        # The folder of one run does not know what earlier ones said before their last answer.
        closed = ask.times < (-1 if place.latest is None else place.latest)
        verdicts = np.where(closed, Verdict.LATE, judged.verdicts)
        before = held
        held, said, dropped = answer(KEYED, held, ask)
        late, repeated, refused = (
            count + int(np.isin(verdicts, kinds).sum())
            for count, kinds in (
                (late, [Verdict.LATE]),
                (repeated, [Verdict.REPEATED]),
                (refused, [Verdict.FAR, Verdict.OVER]),
            )
        )
        assert held[2:] == (late, repeated, refused)
        new = ask.times[verdicts == Verdict.NEW].tolist()
        assert [time for some in said for time in some.times.tolist()] == new
        assert dropped.tolist() == ask.times[verdicts != Verdict.NEW].tolist()
        options: dict[str, Any] = {"used": KEYED.fingerprint} if state else {}
        worst = [row for row, verdict in enumerate(verdicts) if verdict > Verdict.LATE]
        if worst:
            with pytest.raises(DphmmError) as refusal:
                run(scenario, [as_batch(rows, state)], **options)
            assert type(refusal.value) is type(judged.faults[worst[0]])
            assert str(refusal.value) == str(judged.faults[worst[0]])
            held = before
            return
        answers, state = run(scenario, [as_batch(rows, state)], **options)
        assert [row["slot"] for row in answers] == new
        assert (state[0]["late"], state[0]["repeated"]) == (late, repeated)
        assert state[0]["standing"] == held[1]
        engine.release(book, [ask], KEYED)


def test_late_and_repeated_rows_are_counted_whatever_the_batches_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = city(4)
    rows, more = rows_of("ann", 3, 3, 4, 4, 4, 9), rows_of("ann", 2, 4, 9, 9, 11)
    for size in (1, 2, 6):
        monkeypatch.setattr(partition, "ROWS", size)
        cut = [as_batch(rows[first : first + size]) for first in range(0, 6, size)]
        answers, state = run(scenario, cut)
        assert [row["slot"] for row in answers] == [3, 4, 9]
        assert [(row["late"], row["repeated"]) for row in state] == [(0, 3)]
        answers, state = run(scenario, [as_batch(more, state)], used=KEYED.fingerprint)
        assert [row["slot"] for row in answers] == [11]
        assert [(row["late"], row["repeated"]) for row in state] == [(2, 5)]


def test_those_who_did_not_move_are_carried_over_as_they_are() -> None:
    scenario = city(3)
    _, state = run(scenario, [as_batch(rows_of("ann", 1, states=9) + rows_of("bob", 2, states=9))])
    answers, later = run(
        scenario, [as_batch(rows_of("bob", 5, states=9), state)], used=KEYED.fingerprint
    )
    assert [row["person"] for row in answers] == ["bob"]
    assert {row["person"] for row in later} == {"ann", "bob"}
    assert [row for row in later if row["person"] == "ann"] == state[:1]


def test_a_person_with_very_many_rows_goes_through_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition, "ROWS", 50)
    scenario = city(3)
    rows = rows_of("ann", *range(1, 1001), states=9)
    held = []

    def batches() -> Iterator[Any]:
        for first in range(0, 1000, 40):
            held.append(first)
            yield as_batch(rows[first : first + 40])

    sizes = []
    found: list[dict[str, Any]] = []
    for batch in Partition(scenario, KEYED).answer(batches()):
        sizes.append(batch.num_rows)
        assert len(found) + batch.num_rows + 80 >= held[-1], "rows pile up"
        found += [row for row in batch.to_pylist() if row["table"] == "answers"]
    assert max(sizes) <= 80
    with local_run(scenario, rows) as journal:
        assert same_answers(scenario, found, journal)


def test_two_days_share_no_more_answers_than_fresh_noise_would() -> None:
    """With relative steps in the noise all sixty were equal, because the states are."""
    scenario = city(4)
    day = [Row(0, "ann", str(n), n, n % 16) for n in range(1, 61)]
    other = [Row(0, "ann", str(1440 + row.slot), 1440 + row.slot, row.state) for row in day]
    one, _ = run(scenario, [as_batch(day)])
    two, _ = run(scenario, [as_batch(other)])
    # One noise in about a thousand is the same again; ten of sixty would be no accident.
    assert sum(a["lattice"] == b["lattice"] for a, b in zip(one, two, strict=True)) < 10
    again, _ = run(scenario, [as_batch(day)])
    assert again == one


def test_what_the_local_engine_refuses_is_refused_with_its_numbers() -> None:
    limited = city(3, limit=Fraction(7, 3), epsilon=Fraction(1))
    rows = rows_of("ann", 1, 2, 3, states=9)
    with pytest.raises(BudgetError):
        run(limited, [as_batch(rows)])
    with pytest.raises(ArgumentError, match='"spent": "0"') as words, exact_faults():
        run(limited, [as_batch(rows)])
    with pytest.raises(BudgetError) as refusal, plain_faults():
        # As Spark hands it on.
        raise RuntimeError(f"dphmm.errors.ArgumentError: {words.value}\n at java")
    assert (refusal.value.spent, refusal.value.requested) == (0, 3)
    assert refusal.value.remaining == Fraction(7, 3)
    far = rows_of("ann", 1, 200_000, states=9)
    with pytest.raises(ArgumentError, match="within 100000 steps"):
        run(city(3), [as_batch(far)])
    with pytest.raises(ArgumentError, match="person must be 1 to 200 printable"):
        run(city(3), [as_batch(rows_of("a" * 300, 1, states=9))])


def test_a_state_is_continued_under_its_own_key_and_law() -> None:
    rows, later = rows_of("ann", 1, states=9), rows_of("ann", 2, states=9)
    _, state = run(city(3), [as_batch(rows)])
    with pytest.raises(ArgumentError, match="key must be the one that this ledger's answers"):
        run(city(3), [as_batch(later, state)], key=OTHER, used=KEYED.fingerprint)
    with pytest.raises(ArgumentError, match="scenario must be as it was"):
        run(city(3, repair="nearest"), [as_batch(later, state)], used=KEYED.fingerprint)
    broken = {**state[0], "standing": state[0]["standing"][:-1] + b"x"}
    with pytest.raises(DataError, match="standing must be as it was written"):
        run(city(3), [as_batch(later, [broken])], used=KEYED.fingerprint)
    with pytest.raises(DataError, match="state must have one row for each person"):
        run(city(3), [as_batch(later, state * 2)], used=KEYED.fingerprint)
    held, _, _ = answer(KEYED, None, ask_rows(city(3), rows))
    with pytest.raises(ArgumentError, match="key must be the one that this ledger's answers"):
        answer(OTHER, held, ask_rows(city(3), later))
    with pytest.raises(ArgumentError, match="scenario must be as it was"):
        answer(KEYED, held, ask_rows(city(3, repair="nearest"), later))


@pytest.mark.parametrize("change", CHANGES)
def test_an_answered_slot_is_not_answered_again_by_a_changed_scenario(change: str) -> None:
    scenario = paper_scenario(clock=Clock(origin=0))
    rows = [Row(0, "ann", "1", 1, 1)]
    _, state = run(scenario, [as_batch(rows)])
    again, after = run(CHANGES[change](scenario), [as_batch(rows, state)], used=KEYED.fingerprint)
    assert not again
    assert (after[0]["repeated"], after[0]["spent"]) == (1, "1")


# Oracle


def test_one_stream_by_hand_says_the_same() -> None:
    scenario = city(4)
    rows = walks(16, people=20, longest=12, seed=8)
    answers, state = run(scenario, [as_batch(rows)])
    for row in state:
        mine = [r for r in rows if r.person == row["person"]]
        stream = scenario.stream(row["person"], time=mine[0].slot - 1, randomness=KEYED)
        said = {r["slot"]: r for r in answers if r["person"] == row["person"]}
        for r in mine:
            stream.skip(r.slot - stream.time - 1)
            release = stream.release(r.state)
            assert said[r.slot]["lattice"] == str(release.lattice.tolist())
            assert [said[r.slot][c] for c in scenario.columns] == release.answer.tolist()
            estimate = [said[r.slot][f"estimate_{c}"] for c in scenario.columns]
            (expected,) = scenario.in_places([release.estimate]).tolist()
            assert estimate == pytest.approx(expected, rel=CLOSE)
