"""Whether a store is sound, what is in it, and all of it as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from dphmm.books.database import Row, Transaction
from dphmm.books.opening import version_of
from dphmm.books.rows import (
    PERSON,
    Person,
    find_facts,
    find_queries,
    find_standing,
    person_of,
)
from dphmm.books.sealing import MODULUS, extend, total
from dphmm.books.store import Store
from dphmm.books.tombstones import STONE, Tombstone, read_tombstone
from dphmm.books.writing import CELLS, put_mark
from dphmm.cost.budget import Budget
from dphmm.cost.limit import Limit, begin_of, step_of
from dphmm.errors import DataError, NotFoundError, StoreError
from dphmm.geometry.exact import as_text
from dphmm.release.standing import Standing

__all__ = ["export", "find_problems", "inspect"]

QUERY, TIME, EPSILON = (CELLS.split(", ").index(name) + 1 for name in ("query", "time", "epsilon"))
"""Where they stand behind an answer's number."""

COUNTED = ("people", "standings", "answers", "tombstones", "scenarios", "keys")


def find_problems(store: Store) -> list[str]:
    """One sentence for each thing that does not add up; none for a sound store.

    Every person's prices sum to what is written as spent, answers are numbered without a gap,
    no limit is passed, every line with answers stands somewhere, at or after its last answer,
    and its standing is readable and has spent what its answers cost. Chains lead over all answers
    to their heads, standings have their checksums, tombstones are within their budgets, all seals
    together are the sum of the roots, and these are those of the anchor.
    """
    found: list[str] = []
    try:
        store.check()
    except StoreError as fault:
        found.append(f"anchor: {fault}")
    with store.database.transaction(write=False) as transaction:
        stones = {
            hashed: read_tombstone(row)
            for hashed, *row in transaction.rows(f"SELECT person, {STONE} FROM tombstones")
        }
        found += _tombstone_problems(stones)
        sealed = sum(stone.seal(hashed) for hashed, stone in stones.items())
        known = set()
        rows = transaction.rows(f"SELECT client, name, {PERSON} FROM people ORDER BY id")
        for client, name, *row in rows:
            person = person_of(client, name, row)
            known.add(person.number)
            stone = stones.get(store.hash_name(person=name, client=client), Tombstone())
            problems = _person_problems(transaction, person, stone)
            found += [f"{client}/{name}: {what}" for what in problems]
            sealed += person.seal()
        for table in ("standings", "answers"):
            owners = {row[0] for row in transaction.rows(f"SELECT DISTINCT person FROM {table}")}
            if owners - known:
                found.append(f"{table}: {len(owners - known)} people are not in the store")
        if sealed % MODULUS != total(transaction):
            found.append(
                "roots: the people and tombstones are not those of the last commit; something was "
                "changed, removed or put back"
            )
        if store.database.dialect == "sqlite":
            checked = transaction.rows("PRAGMA integrity_check")
            found += [f"file: {row[0]}" for row in checked if row[0] != "ok"]
        if "erased" in find_facts(transaction):
            found.append("log: somebody was erased whose name it still has; end all readers")
    return found


def _tombstone_problems(stones: Mapping[str, Tombstone]) -> Iterator[str]:
    for hashed, stone in stones.items():
        limit = stone.budget
        if limit is not None and limit.total is not None and stone.spent > limit.total:
            spent = as_text(stone.spent)
            yield f"tombstone {hashed[:8]}: spent is {spent}, which is over the budget of {limit}"
        if stone.spent and not stone.times:
            yield f"tombstone {hashed[:8]}: its last slots are missing"


def _person_problems(transaction: Transaction, person: Person, stone: Tombstone) -> Iterator[str]:
    limit = person.limit or Limit()
    said = transaction.rows(
        f"SELECT number, {CELLS} FROM answers WHERE person = ? ORDER BY number", (person.number,)
    )
    if [row[0] for row in said] != list(range(1, person.entries + 1)):
        yield f"the answers' numbers must be 1 to {person.entries} without a gap"
    head, cost = stone.head, Fraction(0)
    for row in said:
        head = extend(head, person.salt, tuple(row))
        cost += Fraction(row[EPSILON])
    if head != person.head:
        yield "the chain does not lead from the first answer to its head"
    if person.carried != stone.spent:
        yield f"{person.carried} is carried from before, the tombstone has {stone.spent}"
    if cost + person.carried != person.spent:
        yield f"the answers cost {cost + person.carried}, written as spent is {person.spent}"
    if limit.total is not None and max(cost + person.carried, person.spent) > limit.total:
        yield f"spent is {person.spent}, which is over the budget of {person.budget}"
    yield from _standing_problems(transaction, person, said)
    yield from _window_problems(transaction, person, said, limit)


def _standing_problems(
    transaction: Transaction, person: Person, said: Sequence[Row]
) -> Iterator[str]:
    latest: dict[str, int] = {}
    for row in said:
        latest[row[QUERY]] = max(row[TIME], latest.get(row[QUERY], row[TIME]))
    standings = transaction.rows(
        "SELECT query, time, content FROM standings WHERE person = ?", (person.number,)
    )
    if latest and not standings:
        yield "there are answers but no standing"
    marks = ""
    for query, _, content in standings:
        marks = put_mark(marks, query, bytes(content))
    if marks != person.marks:
        yield "the standings are not those that were written last"
    spent = Fraction(0)
    for query, time, content in standings:
        try:
            standing = Standing.from_bytes(bytes(content))
        except DataError as fault:
            yield f"the standing of {query!r} cannot be read: {fault}"
            continue
        if time != standing.time or standing.time < latest.get(query, standing.time):
            yield f"the standing of {query!r} is at {standing.time}, before its last answer"
        spent += standing.spent
        if (standing.line.client, standing.line.query) != (person.client, query):
            yield f"the standing of {query!r} is another line's"
    cost = sum((Fraction(row[EPSILON]) for row in said), start=Fraction(0))
    if spent != cost:
        yield f"the standings have spent {spent}, the answers cost {cost}"


def _window_problems(
    transaction: Transaction, person: Person, said: Sequence[Row], limit: Limit
) -> Iterator[str]:
    if not limit.windows:
        return
    clocks: dict[str, str] = {}
    for query in find_queries(transaction, person):
        with suppress(StoreError):  # of one that cannot be read it is said already
            standing = find_standing(transaction, person.number, query)
            assert standing is not None
            clocks[query] = standing.clock
    # Windows that are counted in steps are longer for slower clocks: faster ones pass them.
    for clock in sorted(set(clocks.values())):
        unit, size = step_of(clock)
        spans = [
            (*begin_of(row[TIME], own, clock), Fraction(row[EPSILON]))
            for query, own in clocks.items()
            if step_of(own)[0] == unit and step_of(own)[1] >= size
            for row in said
            if row[QUERY] == query
        ]
        budget = Budget(limit.in_steps(clock, "budget"), spans=spans, size=size)
        for window in budget.windows:
            if budget.most(window.width) > window.amount:
                most = as_text(budget.most(window.width))
                yield f"spent is {most} in a window, which is over the budget of {window}"


def inspect(store: Store) -> dict[str, Any]:
    """What the store holds, in numbers."""
    with store.database.transaction(write=False) as transaction:
        counts: dict[str, Any] = {}
        for table in COUNTED:
            row = transaction.row(f"SELECT count(*) FROM {table}")
            counts[table] = 0 if row is None else row[0]
        version = version_of(transaction, store.database.dialect)
    return {
        "store": store.database.name,
        "backend": store.database.dialect,
        "version": version,
        **counts,
    }


def export(store: Store, person: str | None = None, *, client: str = "") -> Iterator[str]:
    """One line of JSON for each answer of a person, or of everybody.

    For a person who asks what is kept about them. Beliefs follow from the answers and are
    not exported; true states are not there to be.
    """
    chosen = "" if person is None else " WHERE client = ? AND name = ?"
    with store.database.transaction(write=False) as transaction:
        people = transaction.rows(
            f"SELECT id, client, name, budget, carried, spent FROM people{chosen} ORDER BY id",
            () if person is None else (client, person),
        )
    if person is not None and not people:
        raise NotFoundError("person must be one of the store, got another")
    for row in people:
        # A transaction of its own for each, so that none is open while lines are written out.
        with store.database.transaction(write=False) as transaction:
            lines = list(_person_lines(transaction, row))
        yield from lines


def _person_lines(transaction: Transaction, row: Row) -> Iterator[str]:
    number, client, name, budget, carried, spent = row
    yield _line("person", client, name, {"budget": budget, "carried": carried, "spent": spent})
    for query, time, law in transaction.rows(
        "SELECT query, time, law FROM standings WHERE person = ? ORDER BY query", (number,)
    ):
        yield _line("standing", client, name, {"query": query, "slot": time, "law": law})
    names = (
        *("slot", "query", "law", "lattice", "spacing", "estimate", "epsilon"),
        *("constrained", "statement"),
    )
    for cells in transaction.rows(
        "SELECT time, query, law, lattice, spacing, estimate, epsilon, constrained, statement "
        "FROM answers WHERE person = ? ORDER BY number",
        (number,),
    ):
        facts = dict(zip(names, cells, strict=True))
        facts |= {name: json.loads(facts[name]) for name in ("lattice", "estimate")}
        yield _line("answer", client, name, facts)


def _line(kind: str, client: str, person: str, facts: dict[str, Any]) -> str:
    return json.dumps({"kind": kind, "client": client, "person": person, **facts})
