"""Answers, standings and people as rows of a database, written if nobody was quicker."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dphmm.books.database import Transaction
from dphmm.books.rows import Person, find_person
from dphmm.books.sealing import Seals, extend
from dphmm.cost.totals import add_up
from dphmm.errors import MovedError
from dphmm.release.moment import Line
from dphmm.release.said import Record
from dphmm.release.standing import CHECKSUM, Standing

__all__ = ["CELLS", "add_person", "put_mark", "replace_people", "write"]


def write(
    seals: Seals, work: Sequence[tuple[Person, Standing, Sequence[Record]]]
) -> list[tuple[Person, Standing]]:
    """Write what was said about some people and where they stand now; gives them as they are then.

    Nothing is written if somebody is not any more as they are given here: `MovedError`. And the
    database refuses a second answer for the same moment.
    """
    answers: list[tuple[object, ...]] = []
    standings: list[tuple[object, ...]] = []
    people: list[tuple[Person, Person]] = []
    for person, standing, records in work:
        head, prices = person.head, [person.spent]
        for number, record in enumerate(records, start=person.entries + 1):
            cells = _cells(record)
            head = extend(head, person.salt, (number, *cells))
            answers.append((person.number, number, *cells))
            prices.append(record.epsilon)
        law, query, content = standing.law.hex(), standing.line.query, standing.to_bytes()
        standings.append((person.number, query, law, standing.time, content))
        after = Person(
            *(*person[:5], str(add_up(prices)), person.entries + len(records), person.version + 1),
            *(person.salt, head, put_mark(person.marks, query, content)),
        )
        people.append((person, after))
    transaction = seals.transaction
    _swap_seals(seals, people)
    # Budget, salt and what is carried stay as they are. First of all, since it locks people.
    changed = transaction.many(
        "UPDATE people SET spent = ?, entries = ?, commits = ?, head = ?, marks = ? "
        "WHERE id = ? AND commits = ?",
        [
            (*after[5:8], after.head, after.marks, after.number, before.version)
            for before, after in people
        ],
    )
    if changed != len(people):
        raise MovedError(_find_moved(transaction, work, people))
    transaction.many(
        f"INSERT INTO answers (person, number, {CELLS}) VALUES (?{11 * ', ?'})", answers
    )
    transaction.many(
        "INSERT INTO standings (person, query, law, time, content) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (person, query) DO UPDATE SET "
        "law = excluded.law, time = excluded.time, content = excluded.content",
        standings,
    )
    return [(after, one[1]) for (_, after), one in zip(people, work, strict=True)]


def _find_moved(
    transaction: Transaction,
    work: Sequence[tuple[Person, Standing, Sequence[Record]]],
    people: Sequence[tuple[Person, Person]],
) -> list[Line]:
    """The lines of those who are not as they were just written: somebody else was quicker."""
    moved = []
    for (_, standing, _), (_, after) in zip(work, people, strict=True):
        now = find_person(transaction, after.client, after.name)
        if now is None or (now.version, now.head, now.marks) != (
            after.version,
            after.head,
            after.marks,
        ):
            moved.append(standing.line)
    return moved or [standing.line for _, standing, _ in work]


def put_mark(marks: str, query: str, content: bytes) -> str:
    """The lines of all questions, with the checksum at the end of a standing's bytes for one."""
    begin = f"{query}\t"
    others = [line for line in marks.split("\n") if line and not line.startswith(begin)]
    return "\n".join(sorted([*others, begin + content[-CHECKSUM:].hex()]))


def replace_people(seals: Seals, pairs: Sequence[tuple[Person | None, Person]]) -> None:
    """Write people as they are now, who were locked as they were before; None had no seal yet."""
    _swap_seals(seals, pairs)
    seals.transaction.many(
        "UPDATE people SET budget = ?, carried = ?, spent = ?, entries = ?, commits = ?, "
        "salt = ?, head = ?, marks = ? WHERE id = ?",
        [(*after[3:], after.number) for _, after in pairs],
    )


def _swap_seals(seals: Seals, pairs: Sequence[tuple[Person | None, Person]]) -> None:
    for before, after in pairs:
        seals.swap(0 if before is None else before.seal(), after.seal())


def add_person(seals: Seals, person: Person) -> None:
    """Write somebody new, unless another server was quicker."""
    client, name, _, *facts = person
    added = seals.transaction.row(
        "INSERT INTO people (client, name, budget, carried, spent, entries, commits, salt, head, "
        f"marks) VALUES (?{9 * ', ?'}) ON CONFLICT (client, name) DO NOTHING RETURNING id",
        (client, name, *facts),
    )
    if added is not None:
        seals.swap(0, person._replace(number=added[0]).seal())


CELLS = "query, time, law, lattice, spacing, estimate, epsilon, constrained, private, statement"
"""What is written of an answer, in the order of its commitment; the statement is a free text."""


def _cells(record: Record) -> tuple[object, ...]:
    return (
        record.line.query,
        record.time,
        record.law,
        _listed(record.lattice),
        str(record.spacing),
        _listed(record.estimate),
        str(record.epsilon),
        str(record.constrained),
        int(record.private),
        record.statement,
    )


def _listed(values: tuple[float, ...]) -> str:
    """Numbers as JSON; Python writes finite ones alike, and several times quicker."""
    text = str(list(values))
    return json.dumps(values) if "n" in text else text
