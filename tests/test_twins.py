"""Ids that are one person."""

from __future__ import annotations

import gzip
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError
from dphmm.evaluate import load_workload
from dphmm.evaluate.division import find_twins, join_copies
from dphmm.evaluate.workloads import GEOLIFE
from dphmm.tables.datasets import Trip, load_geolife, same_person
from dphmm.tables.datasets.twins import LEAST_SHARED

polars = pytest.importorskip("polars")

CELLS = "geolife_beijing_3rdring_cells_1min.csv.gz"


def test_nobody_is_nobody_s_twin() -> None:
    assert same_person([]) == {}
    with pytest.raises(ArgumentError, match="least must be at least 1, got 0"):
        same_person([], 0)


@pytest.mark.data
def test_geolife_has_twins(shared_data: Path) -> None:
    person = load_workload("geolife", shared_data).twins
    assert person["163"] == person["153"]
    assert person["003"] == person["000"]
    assert person["085"] == person["084"]
    # Copies of fewer records than make a twin: 75 of their minutes, all of 129's fixes as logged.
    assert person["179"] == person["096"]
    assert person["129"] == person["069"]
    # These two once were at one place in one second.
    assert person["067"] != person["095"]
    assert len(person) == 162
    assert len(set(person.values())) == 136


@pytest.mark.data
def test_the_shipped_cells_have_the_eighteen_pairs_of_the_rule(shared_data: Path) -> None:
    """The file that the rule was made on, and the fixes that we read, say the same."""
    with gzip.open(shared_data / "geolife" / CELLS, "rt") as file:
        rows = [line.rstrip().split(",") for line in list(file)[1:]]
    minutes = {time: place for place, time in enumerate(sorted({row[2] for row in rows}))}
    held: dict[str, list[tuple[int, int]]] = {}
    for user, _, time, _, _, cell in rows:
        held.setdefault(f"{int(user):03}", []).append((minutes[time], int(cell)))
    sets = {name: set(records) for name, records in held.items()}
    pairs = [
        pair for pair in itertools.combinations(sorted(sets), 2)
        if len(sets[pair[0]] & sets[pair[1]]) >= LEAST_SHARED
    ]  # fmt: skip
    assert len(pairs) == 18
    assert len(sets["096"] & sets["179"]) == 75
    trips = [Trip(name, *np.array(sorted(records)).T) for name, records in sorted(held.items())]
    of_cells = same_person(trips)
    table, _ = load_geolife(shared_data / GEOLIFE)
    assert find_twins(table, timedelta(minutes=1), 0.34) == of_cells
    assert len(set(of_cells.values())) == 149


def test_copied_fixes_make_one_person_and_the_same_cells_do_not() -> None:
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    rows = [("a", second, 39.9 + second / 1e5) for second in range(30)]
    rows += [("b", second, 39.9 + second / 1e5) for second in range(26, 30)]  # four of them
    rows += [("c", second, 39.9 + second / 1e5) for second in range(25, 30)]  # five of them
    rows += [("d", second, 39.9 + second / 1e5 + 1e-7) for second in range(30)]  # beside a
    columns = list(zip(*rows, strict=True))
    times = [begin + timedelta(seconds=second) for second in columns[1]]
    table = polars.DataFrame(
        {"person": columns[0], "time": times, "latitude": columns[2], "longitude": [116.4] * 69}
    )
    alone = {name: name for name in "abcd"}
    assert join_copies(table, alone, 5) == {**alone, "c": "a"}
    # What is known already is kept, and names the first of all.
    assert join_copies(table, {**alone, "c": "b"}, 5) == {**alone, "b": "a", "c": "a"}


# Oracle


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_ids_that_share_enough_records_are_one_person(seed: int, least: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]
    trips = [
        Trip(name, np.sort(rng.choice(12, 6, replace=False)), rng.integers(0, 2, 6))
        for name in names
        for _ in range(2)
    ]
    records: dict[str, set[tuple[int, int]]] = {name: set() for name in names}
    for trip in trips:
        records[trip.person] |= set(zip(trip.times.tolist(), trip.states.tolist(), strict=True))
    group = {name: {name} for name in names}
    for _ in names:
        for one, other in itertools.product(names, names):
            if len(records[one] & records[other]) >= least:
                group[one] |= group[other]
    assert same_person(trips, least) == {name: min(group[name]) for name in names}
