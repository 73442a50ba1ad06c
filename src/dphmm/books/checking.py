"""Whether a store is sound, what is in it, and all of it as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dphmm.books.database import Row, Transaction
from dphmm.books.opening import version_of
from dphmm.books.store import Store
from dphmm.cost.budget import Budget
from dphmm.cost.limit import Limit, begin_of, step_of
from dphmm.errors import DataError, NotFoundError
from dphmm.geometry.exact import as_text
from dphmm.release.standing import Standing

__all__ = ["export", "find_problems", "inspect"]

COUNTED = ("people", "standings", "answers", "tombstones", "scenarios", "keys")


def find_problems(store: Store) -> list[str]:
    """One sentence for each thing that does not add up; none for a sound store.

    Every person's prices sum to what is written as spent, answers are numbered without a gap,
    no limit is passed, every line with answers stands somewhere, at or after its last answer,
    and its standing is readable and has spent what its answers cost.
    """
    found: list[str] = []
    with store.database.transaction(write=False) as transaction:
        people = transaction.rows(
            "SELECT id, client, name, budget, carried, spent, entries FROM people ORDER BY id"
        )
        for number, client, name, budget, carried, spent, entries in people:
            who = f"{client}/{name}"
            limit = Limit() if budget is None else Limit.read(budget)
            problems = _person_problems(transaction, number, client, limit)
            found += [f"{who}: {what}" for what in problems]
            said = transaction.rows(
                "SELECT number, epsilon FROM answers WHERE person = ? ORDER BY number", (number,)
            )
            if [row[0] for row in said] != list(range(1, entries + 1)):
                found.append(f"{who}: the answers' numbers must be 1 to {entries} without a gap")
            total = sum((Fraction(row[1]) for row in said), start=Fraction(carried))
            if total != Fraction(spent):
                found.append(f"{who}: the answers cost {total}, written as spent is {spent}")
            if limit.total is not None and total > limit.total:
                found.append(f"{who}: spent is {total}, which is over the budget of {budget}")
        known = {row[0] for row in people}
        for table in ("standings", "answers"):
            owners = {row[0] for row in transaction.rows(f"SELECT DISTINCT person FROM {table}")}
            if owners - known:
                found.append(f"{table}: {len(owners - known)} people are not in the store")
        if store.database.dialect == "sqlite":
            checked = transaction.rows("PRAGMA integrity_check")
            found += [f"file: {row[0]}" for row in checked if row[0] != "ok"]
    return found


def _person_problems(
    transaction: Transaction, person: int, client: str, limit: Limit
) -> Iterator[str]:
    latest: dict[str, int] = {}
    prices: dict[str, list[tuple[int, Fraction]]] = {}
    clocks: dict[str, str] = {}
    total = Fraction(0)
    for query, time, epsilon in transaction.rows(
        "SELECT query, time, epsilon FROM answers WHERE person = ?", (person,)
    ):
        total += Fraction(epsilon)
        prices.setdefault(query, []).append((time, Fraction(epsilon)))
        latest[query] = max(time, latest.get(query, time))
    standings = transaction.rows(
        "SELECT query, time, content FROM standings WHERE person = ?", (person,)
    )
    if latest and not standings:
        yield "there are answers but no standing"
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
        clocks[query] = standing.clock
        if standing.line.client != client or standing.line.query != query:
            yield f"the standing of {query!r} is another line's"
    if spent != total:
        yield f"the standings have spent {spent}, the answers cost {total}"
    # Windows that are counted in steps are longer for slower clocks: faster ones pass them.
    for clock in sorted(set(clocks.values())) if limit.windows else ():
        unit, size = step_of(clock)
        spans = [
            (*begin_of(time, own, clock), price)
            for query, own in clocks.items()
            if step_of(own)[0] == unit and step_of(own)[1] >= size
            for time, price in prices.get(query, ())
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
