"""Answers, standings and people as rows of a database, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from dphmm.books.database import Row, Transaction
from dphmm.release.moment import Line
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = ["Person", "find_answers", "find_person", "list_answers", "write_answers"]

ANSWER = "time, law, epsilon, constrained, lattice, estimate, statement, private"


@dataclass(frozen=True)
class Person:
    """A row of people.

    Args:
        number: Its id, which is never given to another.
        limit: The person's own limit.
        spent: The sum over everything said, what was erased included.
        entries: How many answers there are.
        version: How often anything about the person was committed.
    """

    number: int
    limit: Fraction | None
    spent: Fraction
    entries: int
    version: int


def find_person(
    transaction: Transaction, client: str, name: str, *, lock: bool = False
) -> Person | None:
    """The person, if the store knows them; locked until the end of the transaction if asked."""
    row = transaction.row(
        "SELECT id, budget, spent, entries, version FROM people WHERE client = ? AND name = ?"
        + (transaction.for_update if lock else ""),
        (client, name),
    )
    if row is None:
        return None
    number, budget, spent, entries, version = row
    limit = None if budget is None else Fraction(budget)
    return Person(number, limit, Fraction(spent), entries, version)


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
            -(2**62) if after is None else after,
            2**62 if most is None else most,
        ),
    )
    return [_record(line, row) for row in rows]


def _record(line: Line, row: Row) -> Record:
    time, law, epsilon, constrained, lattice, estimate, statement, private = row
    return Record(
        line=line,
        time=time,
        law=law,
        epsilon=Fraction(epsilon),
        constrained=as_cost(constrained),
        lattice=tuple(json.loads(lattice)),
        estimate=tuple(json.loads(estimate)),
        statement=statement,
        private=bool(private),
    )


def as_cost(text: str) -> Fraction | float:
    """A price that may be infinite."""
    return inf if text == "inf" else Fraction(text)


def write_answers(transaction: Transaction, person: Person, records: Sequence[Record]) -> None:
    """Write answers down; the database refuses a second one for the same moment."""
    transaction.many(
        "INSERT INTO answers (person, number, query, time, law, lattice, estimate, epsilon, "
        "constrained, statement, private) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                person.number,
                person.entries + place,
                record.line.query,
                record.time,
                record.law,
                json.dumps(record.lattice),
                json.dumps(record.estimate),
                str(record.epsilon),
                str(record.constrained),
                record.statement,
                int(record.private),
            )
            for place, record in enumerate(records, start=1)
        ],
    )


def write_standing(transaction: Transaction, person: int, standing: Standing) -> None:
    """Write down where a line stands."""
    transaction.rows(
        "INSERT INTO standings (person, query, law, time, content) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (person, query) DO UPDATE SET "
        "law = excluded.law, time = excluded.time, content = excluded.content",
        (
            person,
            standing.line.query,
            standing.law.hex(),
            standing.time,
            standing.to_bytes(),
        ),
    )
