"""Answers and standings as Arrow columns, the tables that a run leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._types import IntArray, ObjectArray
from dphmm.chain.belief import Belief
from dphmm.errors import DataError, require
from dphmm.geometry.exact import as_text
from dphmm.scenario.scenario import Scenario
from dphmm.spark.people import Answers, Standing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ANSWERS", "DROPPED", "STATE", "Tables", "packed", "unpacked"]

ANSWERS, STATE, DROPPED = "answers", "state", "dropped"

STANDING = (
    *("base", "step", "spent", "constrained", "possible", "probabilities", "wide"),
    *("late", "repeated", "refused"),
)
"""A standing as a row; the state store keeps the same."""

STANDING_SCHEMA = (
    "base bigint, step bigint, spent string, constrained string, possible binary, "
    "probabilities binary, wide binary, late bigint, repeated bigint, refused bigint"
)


class Tables:
    """The columns of one scenario's output: answers with their prices, and the final state."""

    def __init__(self, scenario: Scenario) -> None:
        pa = require("pyarrow", "spark")
        self._scenario = scenario
        text, whole, real = pa.string(), pa.int64(), pa.float64()
        estimates = [f"estimate_{name}" for name in scenario.columns]
        self.releases = ("person", "time", *scenario.columns, *estimates, "epsilon")
        self.ledger = (
            *("person", "time", "slot", "step", "scenario", "law", "query", "epsilon"),
            *("constrained", "lattice"),
        )
        self.state = ("person", "scenario", "law", *STANDING)
        kinds = {"table": text, "person": text, "time": text, "slot": whole, "step": whole}
        kinds |= dict.fromkeys(self.releases[2:-1], real)
        kinds |= dict.fromkeys(("epsilon", "scenario", "law", "query", "constrained"), text)
        # Exact numbers have no largest size, so they are texts.
        kinds |= {"lattice": text, "base": whole, "spent": text}
        kinds |= dict.fromkeys(("possible", "probabilities", "wide"), pa.binary())
        kinds |= dict.fromkeys(("late", "repeated", "refused"), whole)
        self.schema = pa.schema(list(kinds.items()))
        # The same in every row, so Spark adds them and no worker has to copy them.
        self.constants = {
            "epsilon": as_text(scenario.settings.epsilon),
            "scenario": scenario.name,
            "law": scenario.law,
            "query": scenario.query.name,
        }
        self.varying = pa.schema([f for f in self.schema if f.name not in self.constants])
        said = {"table", *self.releases, *self.ledger}
        self.said = pa.schema([field for field in self.varying if field.name in said])

    def answers(self, answers: Answers) -> pa.RecordBatch:
        """Answers and their prices."""
        pa = require("pyarrow", "spark")
        scenario, rows = self._scenario, len(answers)
        places = scenario.in_places(np.concatenate([answers.answer, answers.estimate]))
        coordinates = np.hstack([places[:rows], places[rows:]]).T
        columns = {
            "table": pa.repeat(ANSWERS, rows),
            "person": pa.array(answers.people, pa.string()),
            "time": pa.array(answers.times, pa.string()),
            "slot": pa.array(answers.slots),
            "step": pa.array(answers.steps),
            **dict(zip(self.releases[2:-1], map(pa.array, coordinates), strict=True)),
            "constrained": pa.array(answers.constrained, pa.string()),
            "lattice": _lattice(answers.lattice),
        }
        return self._batch(columns, rows)

    def standings(self, standings: Sequence[Standing]) -> pa.RecordBatch:
        """Where people stand."""
        pa = require("pyarrow", "spark")
        rows = len(standings)
        cells = list(zip(*map(packed, standings), strict=True))
        columns = {
            "table": pa.repeat(STATE, rows),
            "person": pa.array([standing.person for standing in standings]),
            **{
                name: pa.array(column, self.schema.field(name).type)
                for name, column in zip(STANDING, cells, strict=True)
            },
        }
        return self._batch(columns, rows)

    def dropped(self, person: str, times: ObjectArray, slots: IntArray) -> pa.RecordBatch:
        """Rows that were not answered: whose they were and of when."""
        pa = require("pyarrow", "spark")
        columns = {
            "table": pa.repeat(DROPPED, len(slots)),
            "person": pa.repeat(person, len(slots)),
            "time": pa.array(times, pa.string()),
            "slot": pa.array(slots, pa.int64()),
        }
        return self._batch(columns, len(slots))

    def _batch(self, columns: dict[str, Any], rows: int) -> pa.RecordBatch:
        pa = require("pyarrow", "spark")
        full = [columns.get(field.name, pa.nulls(rows, field.type)) for field in self.varying]
        return pa.RecordBatch.from_arrays(full, schema=self.varying)

    def standing_of(self, record: dict[str, Any]) -> Standing:
        """Where a row of the state table says somebody stands."""
        scenario = self._scenario
        if (record["scenario"], record["law"]) != (scenario.name, scenario.law):
            raise DataError(
                f"state must be of this scenario as it is now, got that of another form of it; "
                f"give the new form of {scenario.name!r} another name and start afresh"
            )
        cells = tuple(record[name] for name in STANDING)
        return unpacked(record["person"], cells, len(scenario.states))


def packed(standing: Standing) -> tuple[Any, ...]:
    """A standing as the cells of a row; probabilities only of the possible states."""
    possible, probabilities, wide = standing.belief.arrays()
    return (
        standing.base,
        standing.step,
        str(standing.spent),
        str(standing.constrained),
        np.packbits(possible).tobytes(),
        probabilities[possible].astype("<f8").tobytes(),
        None if wide is None else wide[:, possible].astype("<f8").tobytes(),
        standing.late,
        standing.repeated,
        standing.refused,
    )


def unpacked(person: str, cells: Sequence[Any], n_states: int) -> Standing:
    """The standing of a row's cells."""
    base, step, spent, constrained, mask, masses, wider, *counts = cells
    try:
        possible = np.unpackbits(np.frombuffer(mask, np.uint8), count=n_states).astype(bool)
        probabilities = np.zeros(n_states)
        probabilities[possible] = np.frombuffer(masses, "<f8")
        wide = None
        if wider:
            wide = np.zeros((2, n_states))
            wide[:, possible] = np.frombuffer(wider, "<f8").reshape(2, -1)
        cost = float("inf") if constrained == "inf" else Fraction(constrained)
        belief = Belief(possible, probabilities, wide)
        return Standing(person, base, step, belief, Fraction(spent), cost, *counts)
    except (TypeError, ValueError):
        raise DataError("state must be a table that dphmm wrote, got another") from None


def _lattice(points: Any) -> pa.Array:
    """Points as texts like [12, -7]."""
    pa, pc = require("pyarrow", "spark"), require("pyarrow.compute", "spark")
    try:
        columns = [pa.array(column.astype(np.int64)).cast(pa.string()) for column in points.T]
    except OverflowError:
        columns = [pa.array([str(number) for number in column]) for column in points.T]
    joined = pc.binary_join_element_wise(*columns, ", ")
    return pc.binary_join_element_wise("[", joined, "]", "")


def batched(items: Sequence[Standing], size: int) -> Iterator[Sequence[Standing]]:
    """The items, so many at a time."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
