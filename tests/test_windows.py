"""Limits with windows by every route: none is ever passed, and nothing allowed is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Batch,
    BudgetError,
    Ledger,
    Limit,
    MarkovModel,
    MemoryBook,
    Schedule,
    Standing,
    Store,
    Stream,
)
from dphmm.books import find_problems
from dphmm.cost.limit import Window
from dphmm.release import engine, standing
from dphmm.release.admission import Verdict
from dphmm.release.engine import Ask
from dphmm.spark.folder import FolderBook, Person
from tests.scenarios import FEWER
from tests.window_books import (
    ASKS,
    BOOKS,
    KEYED,
    ROWS,
    TOWN,
    Opened,
    ask,
    check_answered,
    opened,
)
from tests.windows import PRICES, SCHEDULES, Plain, Row, allows, holds, limits

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
