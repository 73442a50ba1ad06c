"""Whether a store is sound, what is in it, and all of it as lines of JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dphmm.books.database import Row, Transaction
from dphmm.books.opening import version_of
from dphmm.books.store import Store
from dphmm.errors import NotFoundError

__all__ = ["exported", "inspected", "problems"]

COUNTED = ("people", "streams", "releases", "ledger", "tombstones", "scenarios", "keys")


def problems(store: Store) -> list[str]:
    """One sentence for each thing that does not add up; none for a sound store.

    Every ledger's sum is what is written as spent, its numbers have no gap, every release
    has exactly one entry with its epsilon and the other way round, no moment has two
    answers, and no stream stands before its latest release.
    """
    found: list[str] = []
    with store.database.transaction(write=False) as transaction:
        people = transaction.rows(
            "SELECT id, client, name, carried, spent, entries FROM people ORDER BY id"
        )
        for number, client, name, carried, spent, entries in people:
            who = f"{client}/{name}"
            found += [f"{who}: {what}" for what in _person_problems(transaction, number)]
            ledger = transaction.rows(
                "SELECT number, epsilon FROM ledger WHERE person = ? ORDER BY number", (number,)
            )
            if [row[0] for row in ledger] != list(range(1, entries + 1)):
                found.append(f"{who}: the ledger's numbers must be 1 to {entries} without a gap")
            total = sum((Fraction(row[1]) for row in ledger), start=Fraction(carried))
            if total != Fraction(spent):
                found.append(f"{who}: the ledger sums to {total}, written as spent is {spent}")
        known = {row[0] for row in people}
        for table in ("streams", "releases", "ledger"):
            owners = {row[0] for row in transaction.rows(f"SELECT DISTINCT person FROM {table}")}
            if owners - known:
                found.append(f"{table}: {len(owners - known)} people are not in the store")
        if store.database.dialect == "sqlite":
            checked = transaction.rows("PRAGMA integrity_check")
            found += [f"file: {row[0]}" for row in checked if row[0] != "ok"]
    return found


def _person_problems(transaction: Transaction, person: int) -> Iterator[str]:
    moments = "scenario, time, query, epsilon"
    releases = Counter(
        map(
            tuple,
            transaction.rows(f"SELECT {moments} FROM releases WHERE person = ?", (person,)),
        )
    )
    entries = Counter(
        map(tuple, transaction.rows(f"SELECT {moments} FROM ledger WHERE person = ?", (person,)))
    )
    for scenario, time, _, _ in releases - entries:
        yield f"the release at time {time} of {scenario} is not in the ledger"
    for scenario, time, _, _ in entries - releases:
        yield f"the ledger's entry for time {time} of {scenario} has no release"
    answered = Counter(moment[:3] for moment in releases.elements())
    for (scenario, time, _), count in answered.items():
        if count > 1:
            yield f"time {time} of {scenario} has {count} answers"
    streams: dict[str, int] = dict(
        map(
            tuple,
            transaction.rows("SELECT scenario, time FROM streams WHERE person = ?", (person,)),
        )
    )
    for scenario in {moment[0] for moment in releases}:
        latest = max(moment[1] for moment in releases if moment[0] == scenario)
        if scenario not in streams:
            yield f"the releases of {scenario} have no stream"
        elif streams[scenario] < latest:
            yield f"the stream of {scenario} stands at {streams[scenario]}, before time {latest}"


def inspected(store: Store) -> dict[str, Any]:
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


def exported(store: Store, person: str | None = None, *, client: str = "") -> Iterator[str]:
    """One line of JSON for each release and entry of a person, or of everybody.

    For a person who asks what is kept about them. Beliefs follow from the releases and are
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
    for scenario, time in transaction.rows(
        "SELECT scenario, time FROM streams WHERE person = ? ORDER BY scenario", (number,)
    ):
        yield _line("stream", client, name, {"scenario": scenario, "time": time})
    releases = transaction.rows(
        "SELECT r.scenario, r.time, r.query, r.lattice, r.estimate, r.epsilon, "
        "l.constrained, r.statement FROM releases r JOIN ledger l ON "
        "l.person = r.person AND l.scenario = r.scenario AND l.time = r.time "
        "AND l.query = r.query WHERE r.person = ? ORDER BY l.number",
        (number,),
    )
    for scenario, time, query, lattice, estimate, epsilon, constrained, statement in releases:
        facts = {
            "scenario": scenario,
            "time": time,
            "query": query,
            "lattice": json.loads(lattice),
            "estimate": json.loads(estimate),
            "epsilon": epsilon,
            "constrained": constrained,
            "statement": statement,
        }
        yield _line("release", client, name, facts)


def _line(kind: str, client: str, person: str, facts: dict[str, Any]) -> str:
    return json.dumps({"kind": kind, "client": client, "person": person, **facts})
