"""Limits with windows by every route: none is ever passed, and nothing allowed is refused."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
    Limit,
    MarkovModel,
    MemoryBook,
    PolicyGraph,
    Scenario,
    Schedule,
    Standing,
    Store,
    Stream,
)
from dphmm.books import find_problems
from dphmm.books.changing import rotate_key
from dphmm.cost.limit import Window
from dphmm.release import engine, standing
from dphmm.release.admission import Verdict
from dphmm.release.book import Book
from dphmm.release.engine import Answered, Ask
from dphmm.spark.folder import FolderBook, Person
from tests.older_store import make_older
from tests.scenarios import FEWER, run
from tests.windows import PRICES, SCHEDULES, SLOTS, Plain, Row, allows, holds, limits

KEYED = KeyedRandomness(bytes(range(32)))
TOWN = Scenario(
    [0, 1], MarkovModel([[0.5, 0.5], [0.5, 0.5]]), PolicyGraph.complete(2), epsilon=1, name="town"
)
ROWS = st.lists(st.tuples(SLOTS, PRICES), min_size=1, max_size=5)
ASKS = st.lists(st.tuples(st.sampled_from(["place", "speed"]), ROWS), min_size=1, max_size=5)
BOOKS = ("memory", "journal", "store", "postgresql")


def ask(scenario: Scenario, query: str, rows: Sequence[Row], person: str = "ann") -> Ask:
    slots, prices = zip(*rows, strict=True)
    terms = scenario.replace(query=query).terms
    return Ask(terms, [person] * len(rows), np.array(slots), np.ones(len(rows), dtype=int), prices)


class Opened:
    """A book that is closed and opened again between two asks, as two runs would."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind, self.url = kind, url
        self._memory = MemoryBook()

    @contextmanager
    def book(self) -> Iterator[Any]:
        if self.kind == "memory":
            yield self._memory
        elif self.kind == "journal":
            with Journal(self.url) as journal:
                yield journal
        else:
            with closing(Store.open(self.url)) as store:
                yield store


@contextmanager
def opened(request: pytest.FixtureRequest, kind: str) -> Iterator[Opened]:
    with TemporaryDirectory() as folder:
        url = str(Path(folder) / "book")
        if kind == "postgresql":
            url = request.getfixturevalue("postgres_server").new_database()
        yield Opened(kind, url)


def check_answered(answered: Answered, expected: list[int], rows: Sequence[Row]) -> None:
    assert answered.verdicts.tolist() == expected
    for row, verdict in enumerate(expected):
        if verdict == Verdict.OVER:
            fault = answered.faults[row]
            assert isinstance(fault, BudgetError)
            assert fault.opens is None or fault.opens > rows[row][0]


# The engine and its books


def check_asks(
    held: Opened,
    asks: list[tuple[str, list[Row]]],
    chosen: list[Limit | None],
    own: Limit | None,
    when: Schedule | None,
) -> None:
    """Asks of two questions, under limits that may change from one to the next."""
    plain = Plain()
    if own is not None and held.kind in ("store", "postgresql"):
        with held.book() as store:
            store.begin("ann", budget=own)
    else:
        own = None
    for number, (query, rows) in enumerate(asks):
        limit = chosen[number % len(chosen)]
        asked = ask(TOWN.replace(limit=limit, when=when), query, rows)
        expected, _ = plain.judge(query, rows, limit, own, when=when)
        with held.book() as book:
            if when is None or when.error is None:
                assert engine.judge(book, asked).verdicts.tolist() == expected
            (answered,) = engine.release(book, [asked])
            check_answered(answered, expected, rows)
            if held.kind in ("store", "postgresql"):
                assert find_problems(book) == []
    if len(chosen) == 1 and chosen[0] is not None:
        assert holds(plain.paid, chosen[0])
    if own is not None:
        assert holds(plain.paid, own)


OWN = st.one_of(st.none(), limits())


@pytest.mark.parametrize("kind", BOOKS[:2])
@given(asks=ASKS, limit=limits(), when=SCHEDULES)
def test_two_questions_share_the_windows_of_a_book(
    request: pytest.FixtureRequest,
    kind: str,
    asks: list[tuple[str, list[Row]]],
    limit: Limit,
    when: Schedule | None,
) -> None:
    with opened(request, kind) as held:
        check_asks(held, asks, [limit], None, when)


@FEWER
@given(
    asks=ASKS,
    chosen=st.lists(st.one_of(st.none(), limits()), min_size=1, max_size=3),
    own=OWN,
    when=SCHEDULES,
)
def test_a_store_counts_the_persons_own_windows_beside_the_scenarios(
    request: pytest.FixtureRequest,
    asks: list[tuple[str, list[Row]]],
    chosen: list[Limit | None],
    own: Limit | None,
    when: Schedule | None,
) -> None:
    with opened(request, "store") as held:
        check_asks(held, asks, chosen, own, when)


@pytest.mark.postgres
def test_postgresql_counts_as_sqlite_does(request: pytest.FixtureRequest) -> None:
    """A few hundred random rows in one database, a person each."""
    check_many(request.getfixturevalue("postgres_server").new_database(), 25, seed=1)


def check_many(url: str, people: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices = [Fraction(1, 2), Fraction(1), Fraction(7, 5)]
    with closing(Store.open(url)) as store:
        for person in range(people):
            width, total = int(rng.integers(1, 9)), [None, Fraction(5)][person % 2]
            limit, own = Limit(total, (Window(Fraction(2), width),)), Limit.read("5/2 per 4 steps")
            plain, name = Plain(), f"p{person}"
            store.begin(name, budget=own)
            for query in rng.choice(["place", "speed"], size=4).tolist():
                slots = rng.integers(1, 15, size=4).tolist()
                rows = [(slot, prices[int(rng.integers(3))]) for slot in slots]
                expected, _ = plain.judge(query, rows, limit, own)
                asked = ask(TOWN.replace(limit=limit), query, rows, name)
                (answered,) = engine.release(store, [asked])
                check_answered(answered, expected, rows)
            assert holds(plain.paid, limit)
            assert holds(plain.paid, own)
        assert find_problems(store) == []


@given(asks=ASKS, chosen=st.lists(st.one_of(st.none(), limits()), min_size=1, max_size=3))
def test_limits_that_change_are_held_against_all_answers_of_a_journal(
    request: pytest.FixtureRequest, asks: list[tuple[str, list[Row]]], chosen: list[Limit | None]
) -> None:
    with opened(request, "journal") as held:
        check_asks(held, asks, chosen, None, None)


def test_rows_of_one_price_go_the_short_way_with_the_same_verdicts() -> None:
    """Nearly everybody's rows are all new and of one price: the check for all of them at once."""
    for count, slots in ((2, range(1, 9)), (1, range(1, 30, 4)), (3, [1, 2, 9, 10, 11, 20])):
        limit = Limit(None, (Window(Fraction(count), 4),))
        rows = [(slot, Fraction(1)) for slot in slots]
        for split in range(1, len(rows)):
            book, plain = MemoryBook(), Plain()
            for some in (rows[:split], rows[split:]):
                asked = ask(TOWN.replace(limit=limit), "place", some)
                same = Ask(asked.terms, asked.people, asked.times, asked.states)
                expected, _ = plain.judge("place", some, limit)
                (answered,) = engine.release(book, [same])
                check_answered(answered, expected, some)
            assert holds(plain.paid, limit)


def test_a_row_before_another_questions_answers_is_held_against_them() -> None:
    """The other question is ahead: windows that begin before the row and end after it count."""
    limit, book = Limit.read("2 per 3 steps"), MemoryBook()
    ahead = ask(TOWN.replace(limit=limit), "speed", [(11, Fraction(1)), (12, Fraction(1))])
    engine.release(book, [ahead])
    for slot, verdict in ((9, Verdict.NEW), (10, Verdict.OVER), (13, Verdict.OVER)):
        asked = ask(TOWN.replace(limit=limit), "place", [(slot, Fraction(1))])
        assert engine.judge(book, asked).verdicts.tolist() == [verdict], slot


# Standings alone, as Spark has them


def folder_run(
    book: FolderBook, limit: Limit, rows: Sequence[Row], when: Schedule | None = None
) -> list[int]:
    asked = ask(TOWN.replace(limit=limit, when=when), "place", rows)
    (answered,) = engine.release(book, [asked], KEYED)
    book.people = {
        name: Person(person.to_bytes(), person.spent) for name, person in book.people.items()
    }
    return answered.verdicts.tolist()


@given(
    asks=st.lists(ROWS, min_size=3, max_size=8), limit=limits(windows=1), when=SCHEDULES,
)  # fmt: skip
def test_a_standing_remembers_what_its_windows_need(
    asks: list[list[Row]], limit: Limit, when: Schedule | None
) -> None:
    """Each ask is a run of its own, which knows nothing but the bytes of the standing."""
    book, plain = FolderBook(), Plain()
    for number, some in enumerate(asks):
        # Short runs that go on in time, so that a window reaches over several.
        rows = [(2 * number + slot % 5, price) for slot, price in some]
        expected, _ = plain.judge("place", rows, limit, when=when)
        found = folder_run(book, limit, rows, when)
        # A folder knows the last answered slot only; earlier ones are late there.
        late = {Verdict.REPEATED: Verdict.LATE}
        assert [late.get(v, v) for v in found] == [late.get(v, v) for v in expected]  # type: ignore[call-overload]
        for person in book.people.values():
            stood = person.find_standing()
            assert stood is not None
            assert sum(price for _, price in stood.recent) == stood.spent
            assert len(stood.recent) <= limit.width + 1
    assert holds(plain.paid, limit)


@given(st.lists(st.tuples(ROWS, limits()), min_size=1, max_size=6))
def test_a_standing_under_a_wider_limit_never_allows_too_much(
    runs: list[tuple[list[Row], Limit]],
) -> None:
    """What nobody has kept counts at its latest slot: sound, and over within one window."""
    book = FolderBook()
    paid = []
    for rows, limit in runs:
        before = list(paid)
        for (slot, price), verdict in zip(rows, folder_run(book, limit, rows), strict=True):
            if verdict == Verdict.NEW:
                paid.append((slot, price))
        for slot, price in paid[len(before) :]:
            others = [one for one in paid if one != (slot, price)]
            assert allows(others, limit, slot, price)


def test_a_standing_is_small_whatever_was_said() -> None:
    limit, book = Limit.read("1000 per 288 steps"), FolderBook()
    sizes = []
    for day in range(4):
        asked = ask(TOWN.replace(limit=limit), "place", [
            (288 * day + slot, Fraction(1)) for slot in range(1, 289, 3)
        ])  # fmt: skip
        (answered,) = engine.release(book, [asked], KEYED)
        assert not answered.faults
        stood = book.people["ann"].find_standing()
        assert stood is not None
        assert len(stood.recent) <= 97
        sizes.append(len(stood.to_bytes()))
        assert Standing.from_bytes(stood.to_bytes()).recent == stood.recent
    # Prices at equal distances are one run.
    assert max(sizes) < 500


def test_a_standing_that_was_written_before_windows_is_read() -> None:
    """Its prices count at its latest slot."""
    stream = TOWN.stream("ann", time=0)
    for _ in range(3):
        stream.release(0)
    content = stream.standing.to_bytes()[: -standing.CHECKSUM]
    known = b', "recent": [[3, 0, 1, "3"]]'
    assert known in content
    size = len(standing.MAGIC)
    head = int.from_bytes(content[size : size + 4], "little") - len(known)
    rest = content[size + 4 :].replace(known, b"")
    older = standing.OLDER + head.to_bytes(4, "little") + rest
    checksum = hashlib.blake2b(older, digest_size=standing.CHECKSUM).digest()
    assert Standing.from_bytes(older + checksum).recent == ((3, Fraction(3)),)


# Streams and batches without a book


@given(
    st.lists(st.tuples(st.booleans(), PRICES), min_size=1, max_size=14), limits(windows=1),
    st.integers(0, 13),
)  # fmt: skip
def test_streams_and_batches_refuse_what_the_plain_rules_refuse(
    schedule: list[tuple[bool, Fraction]], limit: Limit, cut: int
) -> None:
    """Both are taken up again from their standings' bytes in the middle."""
    model, plan = TOWN.model, TOWN.plan
    given: dict[str, Any] = {"epsilon": 1, "start": 0}
    stream = Stream(model, plan, **given, time=5, ledger=Ledger(limit), person="ann")
    batch = Batch(model, plan, **given, people=["ann", "bob"], time=[5, 90], limit=limit, law=b"1")
    paid: list[Row] = []
    for step, (speaks, price) in enumerate(schedule, start=1):
        if step == cut:
            where = Standing.from_bytes(stream.standing.to_bytes())
            ledger = Ledger(limit, spent=where.spent, recent=where.recent)
            stream = Stream.resume(where, model, plan, **given, ledger=ledger)
            stood = [Standing.from_bytes(one.to_bytes()) for one in batch.standings()]
            assert stood[0].recent == where.recent
            batch = Batch.resume(stood, model, plan, epsilon=1, limit=limit, law=b"1")
        allowed = allows(paid, limit, 5 + step, price)
        assert batch.affordable(price).tolist() == [allowed] * 2
        assert (stream.ledger.remaining_at(5 + step) >= price) == allowed
        if not speaks:
            stream.skip()
            batch.skip()
        elif allowed:
            assert stream.release(0, price).epsilon == price
            batch.release([0, 0], price)
            paid.append((5 + step, price))
        else:
            before = stream.time, stream.ledger.spent
            later = range(5 + step, 60)
            opens = next((slot for slot in later if allows(paid, limit, slot, price)), None)
            with pytest.raises(BudgetError) as caught:
                stream.release(0, price)
            assert caught.value.opens == opens
            with pytest.raises(BudgetError) as caught:
                batch.release([0, 0], price)
            assert caught.value.opens == opens
            assert (stream.time, stream.ledger.spent) == before
            stream.skip()
            batch.skip()
        for person in (0, 1):
            ledger = batch.ledger(person)
            assert ledger.spent == stream.ledger.spent
            here = int(batch.times[person]) + 1
            assert ledger.remaining_at(here) == stream.ledger.remaining_at(stream.time + 1)
    assert holds(paid, limit)


def test_where_one_state_is_possible_a_full_limit_does_not_matter() -> None:
    """Nothing is drawn there and nothing is spent."""
    model = MarkovModel([[0.0, 1.0], [1.0, 0.0]])
    stream = Stream(model, TOWN.plan, epsilon=1, start=0, ledger=Ledger("1/2 per 2 steps"))
    assert [stream.release(0).epsilon for _ in range(3)] == [0, 0, 0]


def test_a_batch_refuses_a_window_without_a_clock() -> None:
    with pytest.raises(ArgumentError, match="limit must count its windows in steps"):
        Batch(TOWN.model, TOWN.plan, epsilon=1, people=["ann"], start=0, limit="24 per 1 day")


# Clocks


def dated(step: str, limit: str | None, query: str = "place") -> Scenario:
    return TOWN.replace(clock=Clock(step), limit=limit and Limit.read(limit), query=query)


def at(scenario: Scenario, *times: str) -> Ask:
    slots = np.array([scenario.settings.clock.slot_of(f"2024-05-01T{time}Z") for time in times])
    return Ask(scenario.terms, ["ann"] * len(times), slots, np.zeros(len(times), dtype=int))


def test_a_window_of_an_hour_is_any_twelve_slots_of_five_minutes() -> None:
    town, book = dated("5 min", "2 per 1 hour"), MemoryBook()
    asked = at(town, "10:00", "10:30", "10:55", "11:00", "11:25", "11:30")
    (answered,) = engine.release(book, [asked])
    assert answered.verdicts.tolist() == [0, 0, Verdict.OVER, 0, Verdict.OVER, 0]
    with pytest.raises(BudgetError, match="limit of 2 per 1 hour, got a request for 1 with 2 "
                       "spent and 0 remaining; ask for less or ask again for "
                       "2024-05-01T11:00:00Z or later"):  # fmt: skip
        answered.release(2)


def test_a_window_must_be_whole_steps() -> None:
    with pytest.raises(ArgumentError, match="windows of whole steps of 420 s, got '24 per 1 day'"):
        dated("7 min", "24 per 1 day")
    with pytest.raises(ArgumentError, match="count its windows in steps where steps have no dur"):
        TOWN.replace(limit="24 per 1 day")
    with pytest.raises(ArgumentError, match="limit must have windows"):
        dated("5 min", "24 per 1 day").replace(clock=Clock("7 min"))


STEPS = {"place": 2, "speed": 3, "mood": 1}
"""Questions, and how many seconds their steps are."""


def check_clocks(held: Opened, asks: list[tuple[str, list[Row]]], limit: Limit, own: bool) -> None:
    """Asks of questions with several time steps, each window of so many seconds looked at."""
    plain = Plain()
    seconds = replace(limit, windows=tuple(replace(w, timed=False) for w in limit.windows))
    if own:
        with held.book() as store:
            store.begin("ann", budget=limit)
    for query, rows in asks:
        town = TOWN.replace(clock=Clock(f"{STEPS[query]} s"), limit=None if own else limit)
        expected, _ = plain.judge(query, rows, seconds, size=STEPS[query])
        with held.book() as book:
            asked = ask(town, query, rows)
            assert engine.judge(book, asked).verdicts.tolist() == expected
            (answered,) = engine.release(book, [asked])
            check_answered(answered, expected, rows)
            if held.kind == "store":
                assert find_problems(book) == []
    assert holds(plain.paid, seconds)


TIMED = st.builds(
    lambda total, windows: Limit(total, tuple(windows)),
    st.sampled_from([None, None, Fraction(6)]),
    st.lists(
        st.builds(
            lambda amount, count: Window(amount, 6 * count, timed=True),
            st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(10, 3)]),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=2,
    ),
)
CLOCKED = st.lists(st.tuples(st.sampled_from(list(STEPS)), ROWS), min_size=1, max_size=6)


@FEWER
@pytest.mark.parametrize("kind", BOOKS[:2])
@given(asks=CLOCKED, limit=TIMED)
def test_questions_with_several_time_steps_share_the_windows_of_a_book(
    request: pytest.FixtureRequest, kind: str, asks: list[tuple[str, list[Row]]], limit: Limit
) -> None:
    with opened(request, kind) as held:
        check_clocks(held, asks, limit, own=False)


@FEWER
@given(asks=CLOCKED, limit=TIMED, own=st.booleans())
def test_questions_with_several_time_steps_share_the_windows_of_a_store(
    asks: list[tuple[str, list[Row]]], limit: Limit, own: bool
) -> None:
    with TemporaryDirectory() as folder:
        check_clocks(Opened("store", str(Path(folder) / "book")), asks, limit, own)


@pytest.mark.parametrize("kind", BOOKS[:3])
def test_no_order_of_two_clocks_passes_a_window(request: pytest.FixtureRequest, kind: str) -> None:
    fine, coarse = dated("5 min", "2 per 1 hour"), dated("10 min", "2 per 1 hour", "speed")
    with opened(request, kind) as held, held.book() as book:
        engine.release(book, [at(fine, "10:05", "11:00")])
        (answered,) = engine.release(book, [at(coarse, "10:30", "11:10")])
        assert answered.verdicts.tolist() == [Verdict.OVER, 0]
        assert "or ask again for 2024-05-01T11:10:00Z or later" in str(answered.faults[0])
        left = coarse.stream("ann", book=book).ledger
        slots = [coarse.settings.clock.slot_of(f"2024-05-01T{t}Z") for t in ("11:10", "12:00")]
        assert [left.remaining_at(slot) for slot in slots] == [0, 1]


def test_verify_and_the_ledger_count_the_windows_of_several_clocks(store_url: str) -> None:
    fine, coarse = dated("5 min", None), dated("10 min", None, "speed")
    slot = coarse.settings.clock.slot_of("2024-05-01T10:30Z")
    with closing(Store.open(store_url)) as store:
        store.begin("ann", budget="2 per 1 hour")
        engine.release(store, [at(fine, "10:05", "11:00"), at(coarse, "11:10")])
        assert store.ledger("ann").remaining == 0
        assert find_problems(store) == []
        with store.database.transaction() as transaction:
            transaction.rows("UPDATE answers SET time = ? WHERE query = 'speed'", (slot,))
        assert "/ann: spent is 3 in a window, which is over the budget of 2 per 1 hour" in (
            find_problems(store)
        )


def test_windows_in_steps_are_as_long_as_the_steps_of_the_question(store: Store) -> None:
    fine, coarse = dated("5 min", None), dated("10 min", None, "speed")
    store.begin("ann", budget="1 per 2 steps")
    (answered,) = engine.release(store, [at(coarse, "10:00", "10:20")])
    assert not answered.faults
    (answered,) = engine.release(store, [at(fine, "10:05", "10:10")])
    assert answered.verdicts.tolist() == [Verdict.OVER, 0]
    assert find_problems(store) == []


def test_dates_and_numbers_share_a_window_only_as_a_total() -> None:
    """Nobody can say when a numbered step was, so all of both counts in every window."""
    limit, book = Limit.read("2 per 10 steps"), MemoryBook()
    numbered = TOWN.replace(query="other", limit=limit)
    slots = [(1, Fraction(1)), (100, Fraction(1))]
    engine.release(book, [at(dated("5 min", None).replace(limit=limit), "10:00")])
    (answered,) = engine.release(book, [ask(numbered, "other", slots)])
    assert answered.verdicts.tolist() == [0, Verdict.OVER]
    (answered,) = engine.release(book, [ask(numbered, "other", slots[1:])])
    assert answered.verdicts.tolist() == [Verdict.OVER]


def test_a_ledger_with_a_window_counts_one_clock() -> None:
    ledger = Ledger("2 per 3 steps")
    dated("5 min", None).stream("ann", time=0, ledger=ledger)
    with pytest.raises(ArgumentError, match="ledger must count the slots of one time step"):
        dated("10 min", None, "speed").stream("ann", time=0, ledger=ledger)
    plain = Ledger(4)
    dated("5 min", None).stream("ann", time=0, ledger=plain)
    dated("10 min", None, "speed").stream("ann", time=0, ledger=plain)


@pytest.mark.parametrize("kind", BOOKS[:3])
def test_an_answer_under_another_clock_counts_where_its_slot_begins(
    request: pytest.FixtureRequest, kind: str
) -> None:
    hourly = dated("1 hour", "2 per 3 hours", "speed")
    often = dated("5 min", "2 per 1 hour")
    whole = TOWN.replace(query="other", limit=Limit.read("2 per 100 steps"))
    with opened(request, kind) as held, held.book() as book:
        (first,) = engine.release(book, [at(hourly, "10:20")])
        assert not first.faults
        # It counts at 10:00, so in no window of an hour with 11:00.
        asked = at(often, "10:50", "10:55", "11:00", "11:45", "11:50")
        (answered,) = engine.release(book, [asked])
        assert answered.verdicts.tolist() == [0, Verdict.OVER, 0, Verdict.OVER, 0]
        # Those of 11:00 and 11:50 fill every window of three hours with one of them.
        asked = at(hourly, "13:00", "14:00", "15:00")
        assert engine.judge(book, asked).verdicts.tolist() == [Verdict.OVER, 0, 0]
        # Whole numbers are no dates: nobody can say that they are apart.
        asked = Ask(whole.terms, ["ann"], np.array([10**6]), np.array([0]))
        judged = engine.judge(book, asked)
        assert judged.verdicts.tolist() == [Verdict.OVER]
        assert judged.faults[0].opens is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", BOOKS[:3])
def test_a_key_is_rotated_for_each_clock_from_its_own_next_slot_on(
    request: pytest.FixtureRequest, kind: str
) -> None:
    hourly, often = dated("1 hour", None, "speed"), dated("5 min", None)
    tens, numbered = dated("10 min", None, "other"), TOWN.replace(query="number")
    new = KeyedRandomness(bytes(32))
    late = [Verdict.LATE, 0]
    with opened(request, kind) as held:
        with held.book() as book:
            engine.release(book, [at(hourly, "10:00"), at(often, "10:25")], KEYED)
            key = rotate_key(book, new)
            slots = [one.settings.clock.slot_of("2024-05-01T10:00Z") for one in (hourly, often)]
            assert key.clocks == {"3600 s": slots[0] + 1, "300 s": slots[1] + 6}
        with held.book() as book:
            for people, asked in (
                ("ann", at(hourly, "10:00", "11:00")),
                ("ben", at(hourly, "10:30", "11:00")),
                ("ben", at(often, "10:25", "10:30")),
                ("ben", at(tens, "10:20", "10:30")),  # after the latest of those in seconds
            ):
                asked = replace(asked, people=[people] * 2)
                (answered,) = engine.release(book, [asked], new)
                assert answered.verdicts.tolist() == ([1, 0] if people == "ann" else late)
            (answered,) = engine.release(book, [ask(numbered, "number", [(1, Fraction(1))])], new)
            assert answered.verdicts.tolist() == [0]


# Two writers


APART = Schedule(apart=2)


def race(books: Sequence[Book], limit: Limit, rows: Sequence[tuple[str, Row]]) -> None:
    """Every row is asked for by a thread of its own turn, on one of the books."""
    answers: list[tuple[str, Row, int]] = []
    guard, turns = threading.Lock(), iter(rows)

    def work(book: Book) -> None:
        while True:
            with guard:
                turn = next(turns, None)
            if turn is None:
                return
            asked = ask(TOWN.replace(limit=limit, when=APART), turn[0], [turn[1]])
            (answered,) = engine.release(book, [asked])
            with guard:
                answers.append((*turn, int(answered.verdicts[0])))

    threads = [threading.Thread(target=work, args=(book,)) for book in books for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    paid = [row for _, row, verdict in answers if verdict == Verdict.NEW]
    assert len(answers) == len(rows)
    assert holds(paid, limit)
    for query in ("place", "speed"):
        said = [slot for name, (slot, _), verdict in answers if (name, verdict) == (query, 0)]
        assert (np.diff(sorted(said)) >= 2).all()
    # What is spent only grows, so whatever was refused must still be.
    for _, (slot, price), verdict in answers:
        if verdict == Verdict.OVER:
            assert not allows(paid, limit, slot, price)


def random_rows(count: int, seed: int) -> list[tuple[str, Row]]:
    rng = np.random.default_rng(seed)
    prices = [Fraction(1, 2), Fraction(1), Fraction(3, 2)]
    slots = np.sort(rng.integers(1, 2 * count, size=count)).tolist()
    return [(["place", "speed"][int(rng.integers(2))], (slot, prices[int(rng.integers(3))]))
            for slot in slots]  # fmt: skip


def test_threads_on_one_book_never_pass_a_window() -> None:
    race([MemoryBook()] * 2, Limit.read("3 per 5 steps, 40 in all"), random_rows(60, 1))


def test_two_stores_on_one_file_never_pass_a_window(tmp_path: Path) -> None:
    url = str(tmp_path / "store.db")
    with closing(Store.open(url)) as one, closing(Store.open(url)) as two:
        race([one, two], Limit.read("3 per 5 steps, 40 in all"), random_rows(60, 2))


@pytest.mark.postgres
def test_two_stores_on_one_server_never_pass_a_window(request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_server").new_database()
    with closing(Store.open(url)) as one, closing(Store.open(url)) as two:
        race([one, two], Limit.read("3 per 5 steps, 40 in all"), random_rows(60, 3))


# Erased and come back


def test_whoever_comes_back_waits_until_the_window_has_passed(store: Store) -> None:
    limit = Limit.read("3 per 5 steps, 20 in all")
    store.begin("ann", budget="9 per 20 steps")
    rows = [(slot, Fraction(1)) for slot in (1, 2, 3)]
    engine.release(store, [ask(TOWN.replace(limit=limit), "place", rows)])
    store.erase("ann")
    asked = ask(TOWN.replace(limit=limit), "place", [(s, Fraction(1)) for s in (6, 7, 8, 9)])
    # All three count at slot 3, of which the window of slot 8 is free.
    assert engine.judge(store, asked).verdicts.tolist() == [Verdict.OVER, Verdict.OVER, 0, 0]
    (answered,) = engine.release(store, [asked])
    assert answered.verdicts.tolist() == [Verdict.OVER, Verdict.OVER, 0, 0]
    assert store.ledger("ann").remaining_at(9) == 4
    more = ask(TOWN.replace(limit=limit), "speed", [(7, Fraction(1)), (10, Fraction(1))])
    assert engine.judge(store, more).verdicts.tolist() == [Verdict.OVER, 0]


def test_erased_slots_are_not_those_of_another_clock(store: Store) -> None:
    """Slot 5 of another clock is another time: nobody could say that it is new."""
    hourly, often = dated("1 hour", None), dated("5 min", None)
    engine.release(store, [at(hourly, "10:00")])
    store.erase("ann")
    assert engine.judge(store, at(often, "11:00")).verdicts.tolist() == [Verdict.OTHERWISE]
    assert engine.judge(store, at(hourly, "10:00", "11:00")).verdicts.tolist() == [Verdict.LATE, 0]


def test_a_tombstone_of_an_older_store_counts_in_every_window(tmp_path: Path) -> None:
    """It does not say when its prices were paid."""
    url = str(tmp_path / "store.db")
    with closing(Store.open(url)) as store:
        engine.release(store, [ask(TOWN, "place", [(1, Fraction(1))])])
        store.erase("ann")
        with store.database.transaction() as transaction:
            make_older(transaction, 4)
    with closing(Store.open(url)) as store:
        later = [(1000, Fraction(1))]
        for limit, verdict in (("1 per 3 steps", Verdict.OVER), ("2 per 3 steps", 0), ("2", 0)):
            asked = ask(TOWN.replace(limit=Limit.read(limit)), "place", later)
            assert engine.judge(store, asked).verdicts.tolist() == [verdict]


def test_verify_finds_a_window_that_was_passed(store_url: str) -> None:
    with closing(Store.open(store_url)) as store:
        store.begin("ann", budget="2 per 3 steps")
        rows = [(slot, Fraction(1)) for slot in (1, 2, 4)]
        (answered,) = engine.release(store, [ask(TOWN, "place", rows)])
        assert not answered.faults
        assert find_problems(store) == []
        with store.database.transaction() as transaction:
            transaction.rows("UPDATE answers SET time = 3 WHERE time = 4")
        assert "/ann: spent is 3 in a window, which is over the budget of 2 per 3 steps" in (
            find_problems(store)
        )


# What is said about it


def test_a_statement_tells_the_price_at_an_instant_in_a_window_and_in_all() -> None:
    hourly = dated("1 hour", "5 per 3 hours, 20 in all")
    stream = hourly.stream("ann", time=0)
    for price in (1, 2, None, 2, 2, None, None, 1):
        if price is None:
            stream.skip()
        else:
            stream.release(0, price)
    statement = stream.statement()
    assert statement.windows == (("3 hours", Fraction(4)),)
    assert statement.prices == "2 at an instant, 4 at most in any 3 hours, 8 in all"
    assert statement.text().startswith("5 releases, epsilon 2 at an instant, 4 at most in any 3 ")
    plain = TOWN.stream("ann")
    plain.release(0)
    assert plain.statement().prices == "1 in all"


def test_the_report_shows_the_limit_and_what_is_left_of_it(tmp_path: Path) -> None:
    town = dated("1 hour", "3 per 4 hours, 20 in all")
    town.save(tmp_path / "town.toml")
    rows = "".join(f"ann,2024-05-01T{hour}:00:00Z,1\n" for hour in ("10", "12", "15"))
    (tmp_path / "trips.csv").write_text("person,time,state\n" + rows)
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    released = run("release", tmp_path / "town.toml", tmp_path / "trips.csv", "-o", out)
    assert released.exit_code == 0, released.stderr
    done = run("report", tmp_path / "town.toml", out, "-o", page)
    assert done.exit_code == 0, done.stderr
    text = page.read_text()
    assert "3 in any 4 hours, 20 in all" in text
    assert "3 releases, epsilon 1 at an instant, 2 at most in any 4 hours, 3 in all." in text
    assert re.search(r"ann</td>\s*<td>3</td>\s*<td>3</td>\s*<td>1</td>", text)
