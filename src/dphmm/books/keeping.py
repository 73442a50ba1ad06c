"""What an operator does with a store: recovery after a loss, lower budgets, retention.

None of it opens a slot that was answered or fills a budget that was spent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from dphmm.books.database import Transaction
from dphmm.books.rows import (
    PERSON,
    Person,
    find_facts,
    find_latest,
    find_queries,
    find_standing,
    person_of,
    set_fact,
)
from dphmm.books.sealing import Seals
from dphmm.books.store import Store
from dphmm.books.tombstones import (
    STONE,
    Tombstone,
    hold_tombstones,
    read_tombstone,
    write_tombstone,
)
from dphmm.books.writing import replace_people
from dphmm.cost.limit import FOREVER, Limit, begin_of, step_of
from dphmm.errors import ArgumentError, NotFoundError
from dphmm.geometry.exact import Exact, as_epsilon

__all__ = ["expire", "lower_budgets", "recover"]

LEAST = Fraction(1, 10**9)
"""A budget that is used up before anything was said: a limit is positive, so it is this."""


def recover(store: Store, not_before: Mapping[str, int]) -> None:
    """Let a store that has lost something answer again, from some instants on.

    Nothing before them is answered any more, whatever was said there. The present anchor, if
    there is one, is this store's from now on; other copies, and servers that run, are refused.

    Args:
        store: The store.
        not_before: For each unit of time, seconds ("s") or numbers (""), the instant from which
            on nothing was said that the store does not know of.
    """
    if store.witness.anchor is not None:
        store.witness.anchor.make_room(store.witness.store)
    with store.database.transaction() as transaction:
        transaction.hold("facts", "EXCLUSIVE")  # what is said until then, the anchor begins with
        missing = {step_of(clock)[0] for clock in _clocks(transaction)} - not_before.keys()
        if missing or not not_before:
            kinds = " and ".join("a date" if unit else "a number" for unit in sorted(missing))
            raise ArgumentError(
                f"not_before must be {kinds or 'a time'} for the times of the store, got none"
            )
        closed: dict[str, int] = json.loads(find_facts(transaction).get("closed", "{}"))
        for unit, instant in not_before.items():
            closed[unit] = max(instant, closed.get(unit, instant))
        set_fact(transaction, "closed", json.dumps(closed))
        set_fact(transaction, "restored", None)
        Seals(transaction).write_root()
        roots = store.witness.begin_epoch(transaction)
    store.witness.closed = closed
    store.witness.anchor_first(roots)


def _clocks(transaction: Transaction) -> set[str]:
    """How time is cut for anybody in a store, erased or not."""
    clocks = set(find_latest(transaction))
    for (text,) in transaction.rows("SELECT DISTINCT clocks FROM tombstones"):
        clocks.update(json.loads(text).values())
    return clocks


def _everybody(transaction: Transaction, locking: str = "") -> Iterator[Person]:
    """Everybody in a store, in the order in which commits lock people."""
    order = f"client{transaction.by_bytes}, name{transaction.by_bytes}"
    rows = transaction.rows(f"SELECT client, name, {PERSON} FROM people ORDER BY {order}{locking}")
    for client, name, *row in rows:
        yield person_of(client, name, row)


def lower_budgets(
    store: Store,
    *,
    to: Exact | None = None,
    by: Exact | None = None,
    client: str | None = None,
    person: str | None = None,
) -> int:
    """Lower what may be spent on people in all, erased ones too; gives for how many it changed.

    A budget is never lowered below what was spent, which is then all that there was.

    Args:
        store: The store.
        to: The most that may be spent in all.
        by: How much less than now; whoever has no budget in all keeps having none.
        client: Only this client's people. Without a person, erased people are lowered for all
            clients or for none: nobody can tell whose they were.
        person: Only this one.
    """
    if (to is None) == (by is None):
        raise ArgumentError("to must be given or by must, got both or neither")
    amount = as_epsilon(to, "to") if to is not None else as_epsilon(by or 0, "by")

    def lower(limit: Limit | None, spent: Fraction) -> Limit | None:
        total = None if limit is None else limit.total
        if to is None:
            wanted = None if total is None else total - amount
        else:
            wanted = amount if total is None else min(total, amount)
        if wanted is None:
            return limit
        return replace(limit or Limit(), total=max(wanted, spent, LEAST))

    chosen = None if person is None else store.hash_name(person, client=client or "")
    changed = 0
    with store.writing() as seals:
        hold_tombstones(seals, alone=True)
        pairs: list[tuple[Person | None, Person]] = []
        found = 0
        for one in _everybody(seals.transaction, seals.transaction.for_update):
            if client not in (None, one.client) or person not in (None, one.name):
                continue
            found += 1
            limit = lower(one.limit, one.spent)
            if limit != one.limit:
                after = one._replace(budget=str(limit), version=one.version + 1)
                pairs.append((one, after))
        replace_people(seals, pairs)
        stones = _stones(seals.transaction)
        if chosen is not None:
            stones = {hashed: stone for hashed, stone in stones.items() if hashed == chosen}
        elif client is not None:
            stones = {}
        for hashed, stone in stones.items():
            limit = stone.budget if stone.closed else lower(stone.budget, stone.spent)
            if limit != stone.budget:
                write_tombstone(seals, hashed, stone, replace(stone, budget=limit))
                changed += 1
        if person is not None and not found and not stones:
            raise NotFoundError("person must be one of the store, got another")
    return changed + len(pairs)


def _stones(transaction: Transaction) -> dict[str, Tombstone]:
    rows = transaction.rows(f"SELECT person, {STONE} FROM tombstones ORDER BY person")
    return {hashed: read_tombstone(row) for hashed, *row in rows}


def expire(
    store: Store,
    *,
    people: Mapping[str, int] | None = None,
    tombstones: Mapping[str, int] | None = None,
) -> tuple[int, int]:
    """Erase people who were not asked about for long, and close tombstones that are older.

    A closed tombstone is the hash of a name and nothing else. For that name nothing is ever
    answered again, so neither its slots nor its budget are open.

    Args:
        store: The store.
        people: For each unit of time the instant before which the last step of somebody lies who
            is erased.
        tombstones: The same for tombstones that are closed.
    """

    def is_old(transaction: Transaction, person: Person) -> bool:
        return bool(people) and _is_before(_last_slots(transaction, person), people or {})

    with store.database.transaction(write=False) as transaction:
        old = [
            (person.client, person.name)
            for person in _everybody(transaction)
            if is_old(transaction, person)
        ]
    erased = closed = 0
    for client, name in old:
        with suppress(NotFoundError):  # erased by somebody else, or asked about meanwhile
            store.erase(name, client=client, unless=lambda *found: not is_old(*found))
            erased += 1
    with store.writing() as seals:
        hold_tombstones(seals, alone=True)
        living = {
            store.hash_name(one.name, client=one.client) for one in _everybody(seals.transaction)
        }
        for hashed, stone in _stones(seals.transaction).items():
            slots = [(stone.clocks.get(query), time) for query, time in stone.times.items()]
            if stone.closed or hashed in living or not tombstones:
                continue
            if _is_before(slots, tombstones):
                gone = Tombstone(version=stone.version, closed=True)
                write_tombstone(seals, hashed, stone, gone)
                closed += 1
    return erased, closed


def _last_slots(transaction: Transaction, person: Person) -> list[tuple[str | None, int]]:
    return [
        (standing.clock, standing.time)
        for query in find_queries(transaction, person)
        if (standing := find_standing(transaction, person.number, query)) is not None
    ]


def _is_before(slots: Sequence[tuple[str | None, int]], instants: Mapping[str, int]) -> bool:
    """Whether all of some slots, at least one, begin before the instant of their unit."""
    return bool(slots) and all(
        clock is not None
        and begin_of(slot, clock, clock)[0] < instants.get(step_of(clock)[0], -FOREVER)
        for clock, slot in slots
    )
