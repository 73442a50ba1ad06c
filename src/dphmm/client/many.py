"""Many rows at once: dealt into requests so that nobody's rows are torn apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar

from dphmm.client.arrows import as_arrow, read_rows, write_rows
from dphmm.client.operations import row_of, scenario_path
from dphmm.client.results import Answer, ScenarioFacts, Verdict, build
from dphmm.client.talking import JSON, Call, Reply, Steps, fault_of
from dphmm.errors import ArgumentError, DphmmError, ServiceError, check_name, expect_each
from dphmm.geometry.exact import whole
from dphmm.tables.arrows import ARROW
from dphmm.tables.frames import as_polars, is_table

__all__ = ["deal", "release_many"]

Thing = TypeVar("Thing")
Form: TypeAlias = Callable[[list[int]], tuple[str, bytes]]
"""Writes some rows: their media type, and the body."""

MOST_ROWS = 2**16
"""Rows that a service takes in one request."""

COLUMNS = ("person", "time", "state", "epsilon")


def release_many(
    scenario: ScenarioFacts | str, rows: Any, *, chunk: int = 4096
) -> Steps[list[Verdict]]:
    """A verdict for each row, in their order: its answer, or the error that it would have raised.

    Rows may come in any order of time. All rows of a person go in one request, because a slot
    before one that was answered is closed. Where the service can no longer be asked, the rows
    that are left have that as their verdict, and all of it may be asked again: what was answered
    is repeated and costs nothing.

    Args:
        scenario: The scenario or its id.
        rows: A table of Polars, pandas or Arrow with the columns person, time, state and, if
            they have prices of their own, epsilon (others are not sent); or mappings with these
            names. A table goes as Arrow where pyarrow is installed. Secret.
        chunk: About how many rows go in one request.
    """
    whole(chunk, "chunk", 1)
    path = scenario_path(scenario) + "/releases:batch"
    names, forms = _forms(rows)
    found: dict[int, Verdict] = {}
    fault: DphmmError | None = None
    for numbers in deal(names, min(chunk, MOST_ROWS)):
        if fault is None:
            reply = yield _call(path, forms[-1], numbers)
            if reply.status == 415 and len(forms) > 1:
                forms.pop()
                reply = yield _call(path, forms[-1], numbers)
            fault = _lost(reply)
            if fault is None:
                found.update(zip(numbers, _verdicts(reply, len(numbers)), strict=True))
                continue
        status = getattr(fault, "status", None) or 0
        found.update((number, Verdict(names[number], status, error=fault)) for number in numbers)
    return [found[number] for number in range(len(names))]


def deal(people: Sequence[Hashable], chunk: int) -> list[list[int]]:
    """The numbers of rows in requests of about a size, each person's in one of them.

    >>> deal(["ann", "bob", "ann", "eve"], 2)
    [[0, 2], [1, 3]]
    """
    whose: dict[Hashable, list[int]] = {}
    for number, person in enumerate(people):
        whose.setdefault(person, []).append(number)
    if any(len(numbers) > MOST_ROWS for numbers in whose.values()):
        raise ArgumentError(f"rows of one person must be at most {MOST_ROWS} at once, got more")
    dealt: list[list[int]] = []
    for numbers in whose.values():
        if not dealt or len(dealt[-1]) + len(numbers) > chunk:
            dealt.append([])
        dealt[-1] += numbers
    return [sorted(numbers) for numbers in dealt]


def _lost(reply: Reply) -> ServiceError | None:
    """What kept a whole request from being answered, if asking later may help; else it raises."""
    try:
        reply.check()
    except ServiceError as fault:
        if fault.status in (401, 403):
            raise
        return fault
    return None


def _verdicts(reply: Reply, count: int) -> list[Verdict]:
    given: Any
    if reply.headers.get("content-type") == ARROW:
        given = read_rows(reply.content)
    else:
        facts = reply.facts()
        given = facts.get("rows") if isinstance(facts, dict) else None
    if not isinstance(given, list) or len(given) != count:
        raise ServiceError("the service must give a verdict for each row, got others")
    return [_verdict(one) for one in given]


def _verdict(facts: Any) -> Verdict:
    known = build(Verdict, {"person": facts["person"], "status": facts["status"]})
    if known.status == 200:
        return Verdict(known.person, 200, build(Answer, facts))
    return Verdict(known.person, known.status, error=fault_of(known.status, facts))


def _forms(rows: Any) -> tuple[list[str], list[Form]]:
    """Whose each row is, and how some of them are written: as JSON, a table rather as Arrow."""
    if is_table(rows) and find_spec("pyarrow") is not None:
        table = as_arrow(rows, COLUMNS)
        names = [
            _right(number, partial(check_name, name, "person"))
            for number, name in enumerate(table.column("person").to_pylist())
        ]

        def plainly(numbers: list[int]) -> tuple[str, bytes]:
            return _as_json([_row(row) for row in table.take(numbers).to_pylist()])

        return _some(names), [plainly, lambda numbers: (ARROW, write_rows(table, numbers))]
    if is_table(rows):
        table = as_polars(rows)
        rows = table.select([name for name in COLUMNS if name in table.columns])
        rows = rows.iter_rows(named=True)
    names, listed = _listed(rows)
    return names, [lambda numbers: _as_json([listed[number] for number in numbers])]


def _as_json(rows: list[dict[str, Any]]) -> tuple[str, bytes]:
    return JSON, json.dumps({"rows": rows}).encode()


def _call(path: str, form: Form, numbers: list[int]) -> Call:
    kind, content = form(numbers)
    return Call("POST", path, content=content, kind=kind)


def _listed(rows: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Whose each row is, and the rows as the service takes them."""
    if isinstance(rows, (str, bytes, Mapping)):
        raise ArgumentError("rows must be a table, or mappings with person, time and state")
    listed = []
    for number, row in enumerate(expect_each(rows, object, "rows")):
        listed.append(_right(number, partial(_row, row)))
    return _some([row["person"] for row in listed]), listed


def _some(names: list[str]) -> list[str]:
    if not names:
        raise ArgumentError("rows must be one or more, got none")
    return names


def _right(number: int, make: Callable[[], Thing]) -> Thing:
    """What is made of a row, or the row's number with what is wrong about it."""
    try:
        return make()
    except ArgumentError as fault:
        raise ArgumentError(f"rows must be right, got row {number}: {fault}") from None


def _row(row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping) or not {*COLUMNS[:3]} <= row.keys() <= {*COLUMNS}:
        raise ArgumentError("each must have person, time, state and perhaps epsilon")
    person = check_name(row["person"], "person")
    return {"person": person, **row_of(row["time"], row["state"], row.get("epsilon"))}
