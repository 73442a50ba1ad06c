"""Answers, standings and people as rows of a database, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf

from dphmm.books.database import Database, Row, Transaction
from dphmm.cost.ledger import Entry
from dphmm.cost.limit import Limit
from dphmm.cost.totals import Totals
from dphmm.errors import DataError, StoreError, expect
from dphmm.geometry.exact import whole
from dphmm.release.book import KeyInUse
from dphmm.release.moment import Line
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = [
    "AnsweredTimes",
    "Person",
    "find_answers",
    "find_entries",
    "find_key_in_use",
    "find_latest",
    "find_person",
    "find_prices",
    "find_queries",
    "find_standing",
    "latest_answers",
    "list_answers",
    "write",
]

ANSWER = "time, law, epsilon, constrained, lattice, spacing, estimate, statement, private"


@dataclass(frozen=True)
class Person:
    """A row of people.

    Args:
        number: Its id, which is never given to another.
        limit: The person's own limit.
        carried: What was spent on them before they were erased.
        spent: The sum over everything said, what was erased included.
        entries: How many answers there are.
        version: How often anything about the person was committed.
    """

    number: int
    limit: Limit | None
    carried: Fraction
    spent: Fraction
    entries: int
    version: int


def find_person(
    transaction: Transaction, client: str, name: str, *, lock: bool = False
) -> Person | None:
    """The person, if the store knows them; locked until the end of the transaction if asked."""
    expect(client, str, "client")
    expect(name, str, "person")
    row = transaction.row(
        "SELECT id, budget, carried, spent, entries, version FROM people "
        "WHERE client = ? AND name = ?" + (transaction.for_update if lock else ""),
        (client, name),
    )
    if row is None:
        return None
    number, budget, carried, spent, entries, version = row
    limit = None if budget is None else Limit.read(budget)
    return Person(number, limit, _fraction(carried), _fraction(spent), entries, version)


@lru_cache(maxsize=1024)
def _fraction(text: str) -> Fraction:
    """A price of a row; a person is read twice for every answer, and reading one is slow."""
    return Fraction(text)


def find_key_in_use(transaction: Transaction) -> KeyInUse | None:
    """The key that the store's noise comes from; None before the first answer."""
    row = transaction.row("SELECT value FROM facts WHERE name = 'key'")
    return None if row is None else _key(row[0])


@lru_cache(maxsize=16)
def _key(text: str) -> KeyInUse:
    """The key of a row that every commit reads again."""
    return KeyInUse(**json.loads(text))


def find_standing(
    transaction: Transaction, person: int, query: str, *, adopted: bool = False
) -> Standing | None:
    """Where a line stands, or where it stood when it adopted its present law."""
    table = "adoptions" if adopted else "standings"
    row = transaction.row(
        f"SELECT content FROM {table} WHERE person = ? AND query = ? AND content IS NOT NULL",
        (person, query),
    )
    try:
        return None if row is None else Standing.from_bytes(bytes(row[0]))
    except DataError as fault:
        raise StoreError(f"a standing of the store cannot be used: {fault}") from fault


class AnsweredTimes:
    """The slots of a line that were answered, looked up when somebody asks."""

    def __init__(self, database: Database, person: int, query: str) -> None:
        self._database, self._person, self._query = database, person, query

    def __contains__(self, time: object) -> bool:
        with self._database.transaction(write=False) as transaction:
            row = transaction.row(
                "SELECT 1 FROM answers WHERE person = ? AND query = ? AND time = ?",
                (self._person, self._query, time),
            )
        return row is not None


def find_answers(
    transaction: Transaction, person: int, line: Line, times: Sequence[int]
) -> dict[int, Record]:
    """What was said at some times."""
    found = {}
    for time in times:
        row = transaction.row(
            f"SELECT {ANSWER} FROM answers WHERE person = ? AND query = ? AND time = ?",
            (person, line.query, time),
        )
        if row is not None:
            found[time] = _record(line, row)
    return found


def list_answers(
    transaction: Transaction,
    person: int,
    line: Line,
    after: int | None = None,
    most: int | None = None,
) -> list[Record]:
    """The answers of a line after a time, in order, not more than `most`."""
    rows = transaction.rows(
        f"SELECT {ANSWER} FROM answers WHERE person = ? AND query = ? AND time > ? "
        "ORDER BY time LIMIT ?",
        (
            person,
            line.query,
            -(2**62) if after is None else whole(after, "after", None),
            2**62 if most is None else whole(most, "most"),
        ),
    )
    return [_record(line, row) for row in rows]


def _record(line: Line, row: Row) -> Record:
    time, law, epsilon, constrained, lattice, spacing, estimate, statement, private = row
    return Record(
        line=line,
        time=time,
        law=law,
        epsilon=Fraction(epsilon),
        constrained=_cost(constrained),
        lattice=tuple(json.loads(lattice)),
        estimate=tuple(json.loads(estimate)),
        statement=statement,
        private=bool(private),
        spacing=Fraction(spacing),
    )


def _cost(text: str) -> Fraction | float:
    """A price that may be infinite."""
    return inf if text == "inf" else Fraction(text)


def find_queries(transaction: Transaction, person: Person) -> list[str]:
    """The questions about a person that stand somewhere."""
    rows = transaction.rows("SELECT query FROM standings WHERE person = ?", (person.number,))
    return [row[0] for row in rows]


def find_entries(transaction: Transaction, person: int) -> list[Entry]:
    """What was said about a person, to every question, and what it cost."""
    rows = transaction.rows(
        "SELECT time, query, epsilon, constrained FROM answers "
        "WHERE person = ? AND lattice <> '[]' ORDER BY number",
        (person,),
    )
    return [Entry(time, query, Fraction(e), _cost(cost)) for time, query, e, cost in rows]


def find_prices(
    transaction: Transaction, person: int, query: str, since: int
) -> list[tuple[int, Fraction]]:
    """The slots of a question from one on, and what their answers cost."""
    rows = transaction.rows(
        "SELECT time, epsilon FROM answers WHERE person = ? AND query = ? AND time >= ?",
        (person, query, max(since, -(2**62))),
    )
    # Many answers have few prices, and reading a fraction is slow.
    prices = {text: Fraction(text) for text in {epsilon for _, epsilon in rows}}
    return [(time, prices[epsilon]) for time, epsilon in rows]


def find_latest(transaction: Transaction) -> dict[str, int]:
    """The last slot of each clock that was answered for anybody."""
    rows = transaction.rows(
        "SELECT standings.law, max(answers.time), max(standings.person), max(standings.query) "
        "FROM answers LEFT JOIN standings ON standings.person = answers.person "
        "AND standings.query = answers.query GROUP BY standings.law, standings.query"
    )
    found: dict[str, int] = {}
    for _, last, person, query in rows:
        # One clock for all who follow a law, of which it is a part.
        standing = None if person is None else find_standing(transaction, person, query)
        clock = "" if standing is None else standing.clock
        found[clock] = max(last, found.get(clock, last))
    return found


def latest_answers(transaction: Transaction, person: int) -> dict[str, int]:
    """The last slot of each question that was answered."""
    rows = transaction.rows(
        "SELECT query, max(time) FROM answers WHERE person = ? GROUP BY query", (person,)
    )
    return dict(map(tuple, rows))


def write(
    transaction: Transaction, work: Sequence[tuple[Person, Standing, Sequence[Record]]]
) -> None:
    """Write what was said about some people and where they stand now.

    The database refuses a second answer for the same moment.
    """
    answers: list[tuple[object, ...]] = []
    standings, totals = [], []
    for person, standing, records in work:
        total = Totals([person.spent])
        for number, record in enumerate(records, start=person.entries + 1):
            answers.append((person.number, number, *_cells(record)))
            total.add(0, record.epsilon)
        law = standing.law.hex()
        content = standing.to_bytes()
        standings.append((person.number, standing.line.query, law, standing.time, content))
        entries = person.entries + len(records)
        totals.append((str(total.of(0)), entries, person.version + 1, person.number))
    transaction.many(
        "INSERT INTO answers (person, number, query, time, law, lattice, spacing, estimate, "
        "epsilon, constrained, statement, private) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        answers,
    )
    transaction.many(
        "INSERT INTO standings (person, query, law, time, content) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (person, query) DO UPDATE SET "
        "law = excluded.law, time = excluded.time, content = excluded.content",
        standings,
    )
    transaction.many("UPDATE people SET spent = ?, entries = ?, version = ? WHERE id = ?", totals)


def _cells(record: Record) -> tuple[object, ...]:
    return (
        record.line.query,
        record.time,
        record.law,
        json.dumps(record.lattice),
        str(record.spacing),
        json.dumps(record.estimate),
        str(record.epsilon),
        str(record.constrained),
        record.statement,
        int(record.private),
    )
