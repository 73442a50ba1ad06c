"""Answers, standings and people, read from the rows of a database."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import NamedTuple

from dphmm.books.database import Database, Row, Transaction
from dphmm.books.sealing import NO_HEAD, seal
from dphmm.cost.budget import Span
from dphmm.cost.ledger import Entry
from dphmm.cost.limit import Limit
from dphmm.errors import DataError, StoreError, check_text
from dphmm.geometry.exact import whole
from dphmm.release.book import KeyInUse
from dphmm.release.moment import Line
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = [
    "AnsweredTimes",
    "Person",
    "RecentSpans",
    "find_answers",
    "find_entries",
    "find_facts",
    "find_latest",
    "find_person",
    "find_prices",
    "find_queries",
    "find_standing",
    "key_in_use",
    "latest_answers",
    "list_answers",
    "set_fact",
]

ANSWER = "time, law, epsilon, constrained, lattice, spacing, estimate, statement, private"


class Person(NamedTuple):
    """A row of people, as it is written; prices and limits are read from it when they are asked.

    Args:
        client: Whose person it is.
        name: What they are called.
        number: Its id, which is never given to another.
        budget: The person's own limit, if there is one.
        carried_text: What was spent on them before they were erased.
        spent_text: The sum over everything said, what was erased included.
        entries: How many answers there are.
        version: How often anything about the person was committed.
        salt: What hides their answers in the chain; it is erased with them.
        head: The end of the chain.
        marks: For every question a line with its name and the checksum of where it stands.
    """

    client: str
    name: str
    number: int = 0
    budget: str | None = None
    carried_text: str = "0"
    spent_text: str = "0"
    entries: int = 0
    version: int = 0
    salt: bytes = b""
    head: bytes = NO_HEAD
    marks: str = ""

    @property
    def limit(self) -> Limit | None:
        """The person's own limit."""
        return None if self.budget is None else read_limit(self.budget)

    @property
    def carried(self) -> Fraction:
        """What was spent on them before they were erased."""
        return read_fraction(self.carried_text)

    @property
    def spent(self) -> Fraction:
        """The sum over everything said, what was erased included."""
        return read_fraction(self.spent_text)

    def seal(self) -> int:
        """What stands in the store's sum for all that is kept of the person."""
        return _seal_of(self)


# What is written in one commit is read in the next one, with the same seal.
@lru_cache(2**14)
def _seal_of(person: Person) -> int:
    cells = (*person[:8], person.marks)
    return seal(b"person", person.salt, person.head, cells)


# A few texts stand in many rows, and reading a number or a limit is slow.
read_limit = lru_cache(1024)(Limit.read)
read_fraction = lru_cache(4096)(Fraction)

PERSON = "id, budget, carried, spent, entries, commits, salt, head, marks"


def find_person(
    transaction: Transaction, client: str, name: str, *, lock: bool = False
) -> Person | None:
    """The person, if the store knows them; locked until the end of the transaction if asked."""
    check_text(client, "client")
    check_text(name, "person")
    row = transaction.row(
        f"SELECT {PERSON} FROM people WHERE client = ? AND name = ?"
        + (transaction.for_update if lock else ""),
        (client, name),
    )
    return None if row is None else person_of(client, name, row)


def person_of(client: str, name: str, row: Row) -> Person:
    """The person of a row with the columns `PERSON`."""
    number, budget, carried, spent, entries, version, salt, head, marks = row
    return Person(
        *(client, name, number, budget, carried, spent, entries, version),
        *(bytes(salt), bytes(head), marks),
    )


def find_facts(transaction: Transaction, *, writing: bool = False) -> dict[str, str]:
    """What is written of the store as a whole: its version, epoch, key and the like.

    Who writes locks no row but has the table's lock of those who would, which whoever must be
    alone waits for, and which nobody who only reads has.
    """
    asked = "SELECT name, value FROM facts"
    if writing:
        nobody = f"SELECT 1 FROM facts WHERE 1 = 0{transaction.for_update}"
        asked += f" WHERE NOT EXISTS (SELECT 1 FROM ({nobody}) AS nobody)"
    return dict(transaction.rows(asked))  # type: ignore[arg-type]


def set_fact(transaction: Transaction, name: str, value: str | None) -> None:
    """Write something down of the store as a whole; None takes it away."""
    if value is None:
        transaction.rows("DELETE FROM facts WHERE name = ?", (name,))
        return
    transaction.rows(
        "INSERT INTO facts (name, value) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


def key_in_use(facts: Mapping[str, str]) -> KeyInUse | None:
    """The key that the store's noise comes from; None before the first answer."""
    return _read_key(facts["key"]) if "key" in facts else None


@lru_cache(16)
def _read_key(text: str) -> KeyInUse:
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


class RecentSpans:
    """What was spent, looked up when somebody asks, and once for each clock and instant."""

    def __init__(self, find: Callable[[str, int], list[Span]]) -> None:
        self._find = find
        self._found: dict[tuple[str, int], list[Span]] = {}

    def __call__(self, clock: str, since: int) -> list[Span]:
        """What was spent since an instant of a clock."""
        asked = (clock, since)
        if asked not in self._found:
            self._found[asked] = self._find(clock, since)
        return self._found[asked]


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
            found[time] = record_of(line, row)
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
    return [record_of(line, row) for row in rows]


def record_of(line: Line, row: Row) -> Record:
    """What a row with the columns `ANSWER` says of a line."""
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
