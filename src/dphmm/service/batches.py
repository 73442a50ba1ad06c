"""Many releases in one request: rows in, rows out, as JSON, as lines of it or as Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pydantic import TypeAdapter, ValidationError

from dphmm.errors import BudgetError, DphmmError
from dphmm.release.admission import Verdict
from dphmm.release.engine import Answered
from dphmm.scenario import Scenario
from dphmm.service.arrows import read_arrow, write_arrow
from dphmm.service.bodies import BatchRow, NewBatch
from dphmm.service.showing import Json, invalid_body, problem_of, read_body, too_many
from dphmm.tables.arrows import ARROW

__all__ = ["KINDS", "MOST_ROWS", "Batched", "read_rows", "show_rows"]

JSON = "application/json"
NDJSON = "application/x-ndjson"
KINDS = (JSON, NDJSON, ARROW)
"""The media types of rows; what comes in one goes out in the same."""

MOST_ROWS = 2**16
"""Rows of one request, which share a commit."""

ROWS = TypeAdapter(list[BatchRow])


@dataclass(frozen=True)
class Batched:
    """The rows that come back, and what is counted of them."""

    content: bytes
    new: int
    repeated: int
    refused: int
    epsilon: Fraction


def read_rows(content: bytes, kind: str) -> list[BatchRow]:
    """The rows of a request; however they come, the same rules are for each."""
    if kind == ARROW:
        found = read_arrow(content, MOST_ROWS)
        try:
            rows = ROWS.validate_python(found)
        except ValidationError as fault:
            raise invalid_body(fault, "rows") from None
    elif kind == NDJSON:
        if content.count(b"\n") > 2 * MOST_ROWS:  # some lines may be empty
            raise too_many(MOST_ROWS)
        parts = [part for part in content.splitlines() if part.strip()]
        if len(parts) > MOST_ROWS:
            raise too_many(MOST_ROWS)
        rows = [read_body(BatchRow, part, "rows", row) for row, part in enumerate(parts)]
    else:
        rows = read_body(NewBatch, content).rows
    if not 0 < len(rows) <= MOST_ROWS:
        raise too_many(MOST_ROWS)
    return rows


def show_rows(
    scenario: Scenario,
    rows: Sequence[BatchRow],
    answered: Answered | None,
    taken: Sequence[int],
    faults: dict[int, DphmmError],
    kind: str,
) -> Batched:
    """What came of every row; `taken` are those that the engine was asked for, in its order."""
    shown: dict[int, Json] = {}
    if answered is not None:
        faults.update((taken[place], fault) for place, fault in answered.faults.items())
        shown = dict(_answers(scenario, answered, taken, faults))
    for row, fault in faults.items():
        status, problem = problem_of(fault)
        shown[row] = {"status": status, **problem}
    found = [{"person": rows[row].person, **shown[row]} for row in range(len(rows))]
    content = _written(found, kind)
    said = [one for one in found if one["status"] == 200 and not one["silent"]]
    repeated = sum(bool(one["repeated"]) for one in said)
    price = sum((Fraction(one["epsilon"]) for one in said if not one["repeated"]), Fraction(0))
    over = sum(isinstance(fault, BudgetError) for fault in faults.values())
    filled = Fraction(0) if answered is None else answered.filled
    return Batched(content, len(said) - repeated, repeated, over, price + filled)


def _written(rows: list[Json], kind: str) -> bytes:
    if kind == ARROW:
        return write_arrow(rows)
    if kind == NDJSON:
        return "".join(json.dumps(one) + "\n" for one in rows).encode()
    return json.dumps({"rows": rows}).encode()


def _answers(
    scenario: Scenario,
    answered: Answered,
    taken: Sequence[int],
    faults: dict[int, DphmmError],
) -> Iterator[tuple[int, Json]]:
    """The rows that were answered, of which the places are found together."""
    table, clock = answered.answers, scenario.settings.clock
    estimates = scenario.in_places(table.estimate).tolist()
    places = scenario.in_places(table.in_units()).tolist()
    points, times = table.lattice.tolist(), table.times.tolist()
    verdicts = answered.verdicts.tolist()
    for place, row in enumerate(taken):
        if row in faults:
            continue
        silent = bool(table.silent[place])
        yield (
            row,
            {
                "status": 200,
                "time": clock.time_of(times[place]),
                "slot": times[place],
                "silent": silent,
                "answer": None if silent else places[place],
                "lattice": None if silent else points[place],
                "estimate": estimates[place],
                "epsilon": str(table.epsilons[place]),
                "statement": table.statements[place],
                "repeated": verdicts[place] == int(Verdict.REPEATED),
            },
        )
