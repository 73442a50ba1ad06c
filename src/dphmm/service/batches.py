"""Many releases in one request: rows in, rows out, as one JSON document or as lines of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dphmm.errors import BudgetError, DphmmError
from dphmm.release.admission import Verdict
from dphmm.release.engine import Answered
from dphmm.scenario import Scenario
from dphmm.service.access import RefusedError
from dphmm.service.bodies import BatchRow, NewBatch
from dphmm.service.showing import Json, problem_of, read_body

__all__ = ["NDJSON", "Batched", "read_rows", "show_rows"]

NDJSON = "application/x-ndjson"

MOST_ROWS = 2**16
"""Rows of one request, which share a commit."""


@dataclass(frozen=True)
class Batched:
    """The rows that come back, and what is counted of them."""

    content: bytes
    new: int
    repeated: int
    refused: int
    epsilon: Fraction


def read_rows(content: bytes, lines: bool) -> list[BatchRow]:
    """The rows of a request."""
    if lines:
        parts = [part for part in content.splitlines() if part.strip()]
        rows = [read_body(BatchRow, part) for part in parts[: MOST_ROWS + 1]]
    else:
        rows = read_body(NewBatch, content).rows
    if not 0 < len(rows) <= MOST_ROWS:
        raise RefusedError(422, f"rows must be 1 to {MOST_ROWS}, got none or more")
    return rows


def show_rows(
    scenario: Scenario,
    rows: Sequence[BatchRow],
    answered: Answered | None,
    taken: Sequence[int],
    faults: dict[int, DphmmError],
    lines: bool,
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
    if lines:
        content = "".join(json.dumps(one) + "\n" for one in found)
    else:
        content = json.dumps({"rows": found})
    said = [one for one in found if one["status"] == 200 and not one["silent"]]
    repeated = sum(bool(one["repeated"]) for one in said)
    price = sum((Fraction(one["epsilon"]) for one in said if not one["repeated"]), Fraction(0))
    over = sum(isinstance(fault, BudgetError) for fault in faults.values())
    filled = Fraction(0) if answered is None else answered.filled
    return Batched(content.encode(), len(said) - repeated, repeated, over, price + filled)


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
