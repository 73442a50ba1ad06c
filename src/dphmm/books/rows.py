"""Releases and ledger entries as rows, and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.books.database import Row, Transaction
from dphmm.books.rules import Rules
from dphmm.cost.ledger import Entry
from dphmm.release.stream import Release

__all__ = ["Person", "stored_release", "stored_releases", "write_entry", "write_release"]

RELEASE = "time, lattice, estimate, epsilon, statement, private"


@dataclass(frozen=True)
class Person:
    """A row of people, locked by the transaction that read it."""

    number: int
    name: str
    limit: Fraction | None
    spent: Fraction
    entries: int


def stored_release(
    transaction: Transaction, rules: Rules, person: int, time: int
) -> Release | None:
    """The answer to the scenario's query at a time, if there is one."""
    row = transaction.row(
        f"SELECT {RELEASE} FROM releases "
        "WHERE person = ? AND scenario = ? AND time = ? AND query = ?",
        (person, rules.scenario, time, rules.query_name),
    )
    return None if row is None else _read_release(rules, row)


def stored_releases(
    transaction: Transaction, rules: Rules, person: int, after: int = 0, most: int | None = None
) -> list[Release]:
    """The answers in a scenario after a time, in order, not more than `most`."""
    found = transaction.rows(
        f"SELECT {RELEASE} FROM releases WHERE person = ? AND scenario = ? AND query = ? "
        "AND time > ? ORDER BY time LIMIT ?",
        (person, rules.scenario, rules.query_name, after, 2**62 if most is None else most),
    )
    return [_read_release(rules, row) for row in found]


def _read_release(rules: Rules, row: Row) -> Release:
    time, lattice, estimate, epsilon, statement, private = row
    point = np.array(json.loads(lattice))
    return Release(
        time=time,
        answer=rules.query.in_units(point),
        lattice=point,
        estimate=np.array(json.loads(estimate)),
        epsilon=Fraction(epsilon),
        statement=statement,
        private=bool(private),
    )


def write_release(
    transaction: Transaction, person: int, query: str, release: Release, scenario: str
) -> None:
    """Write an answer down; the database refuses a second one for the same moment."""
    transaction.rows(
        "INSERT INTO releases (person, scenario, time, query, lattice, estimate, epsilon, "
        "statement, private) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            person,
            scenario,
            release.time,
            query,
            json.dumps(release.lattice.tolist()),
            json.dumps(release.estimate.tolist()),
            str(release.epsilon),
            release.statement,
            int(release.private),
        ),
    )


def write_entry(transaction: Transaction, person: Person, entry: Entry) -> None:
    """Write down what it cost, and the new sum."""
    number = person.entries + 1
    transaction.rows(
        "INSERT INTO ledger (person, number, scenario, time, query, epsilon, constrained) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            person.number,
            number,
            entry.scenario,
            entry.time,
            entry.query,
            str(entry.epsilon),
            str(entry.constrained),
        ),
    )
    transaction.rows(
        "UPDATE people SET spent = ?, entries = ? WHERE id = ?",
        (str(person.spent + entry.epsilon), number, person.number),
    )
