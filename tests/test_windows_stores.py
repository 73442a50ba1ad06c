"""Windows where several write at once, or somebody is erased and comes back; and what is said."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dphmm import (
    Limit,
    MemoryBook,
    Schedule,
    Store,
)
from dphmm.books import find_problems
from dphmm.release import engine
from dphmm.release.admission import Verdict
from dphmm.release.book import Book
from tests.older_store import make_older
from tests.scenarios import run
from tests.window_books import (
    TOWN,
    ask,
    at,
    dated,
)
from tests.windows import Row, allows, holds

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
