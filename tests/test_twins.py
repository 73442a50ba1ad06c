"""Ids that are one person."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError
from dphmm.evaluate import load_workload
from dphmm.tables.datasets import Trip, same_person


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
