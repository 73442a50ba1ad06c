"""The protocol: who is locked, who is whose twin, and that no chain has seen who is evaluated."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dphmm import ArgumentError
from dphmm.evaluate import load_workload
from dphmm.evaluate.compare.cast import cast_of
from dphmm.evaluate.division import divide, find_twins
from dphmm.evaluate.evidence import studies
from dphmm.evaluate.protocol import FINAL, is_locked, locked_people, protocol, seeds
from dphmm.evaluate.reading import Reading
from dphmm.evaluate.study import FOLDS, Fold
from dphmm.evaluate.workloads import RAW
from dphmm.tables import datasets

polars = pytest.importorskip("polars")

REAL = ["geolife", "gowalla", "geolife-60s"]


def walks(people: int = 12) -> object:
    """Walks of some people, the first of whom carries two devices: ids p0 and twin."""
    rng = np.random.default_rng(0)
    names, times, places = [], [], []
    for number in range(people):
        path = rng.normal(0, 0.002, (150, 2)).cumsum(axis=0) + np.array([39.9, 116.4])
        for name in ["p0", "twin"] if number == 0 else [f"p{number}"]:
            for minute, place in enumerate(path):
                names.append(name)
                times.append(datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=minute))
                places.append(place)
    latitude, longitude = np.array(places).T
    columns = {"person": names, "time": times, "latitude": latitude, "longitude": longitude}
    return polars.DataFrame(columns)


@cache
def copies(data: Path) -> list[tuple[str, str]]:
    """Pairs of ids with five fixes in common as logged, to the second and in every digit."""
    table = polars.read_parquet(data / RAW, columns=["person", "time", "latitude", "longitude"])
    fixes = table.unique()
    both = fixes.join(fixes, on=["time", "latitude", "longitude"], suffix="_other")
    pairs = both.filter(polars.col("person") < polars.col("person_other"))
    counts = pairs.group_by("person", "person_other").len().filter(polars.col("len") >= 5)
    return sorted(zip(counts["person"], counts["person_other"], strict=True))


# Laws


def test_about_a_fifth_is_locked_whoever_else_there_is() -> None:
    names = [f"{number:05}" for number in range(20_000)]
    locked = locked_people(names)
    # Four standard deviations of a binomial share of 1/5.
    assert abs(len(locked) / len(names) - 0.2) < 4 * (0.2 * 0.8 / len(names)) ** 0.5
    assert locked_people(names[:100]) == {name for name in names[:100] if name in locked}
    assert is_locked(names[0]) == (names[0] in locked)


def test_the_protocol_asks_for_enough_seeds() -> None:
    assert len(seeds()) >= 20
    assert len(set(seeds())) == len(seeds())
    assert protocol()["people"]["folds"] == FOLDS


def test_twins_are_found_and_locked_together() -> None:
    table = walks()
    person = find_twins(table, timedelta(minutes=1), 0.34)
    assert person["twin"] == person["p0"] == "p0"
    assert len(set(person.values())) == 12
    parts = divide(table, person, final=False)
    assert parts.locked is None
    left = set(parts.rows["person"])
    assert left == {name for name, one in person.items() if not is_locked(one)}
    assert 0 < len(left) < 13
    both = divide(table, person, final=True)
    assert set(both.locked["person"]) == set(person) - left


def test_dates_of_any_unit_are_resampled_alike() -> None:
    table = walks(2)
    coarse = table.with_columns(polars.col("time").cast(polars.Datetime("ms", "UTC")))
    fine, other = (datasets.resample(rows, timedelta(minutes=3)) for rows in (table, coarse))
    assert fine["time"].dt.epoch("us").to_list() == other["time"].dt.epoch("us").to_list()
    assert len(fine) == 150


def test_locked_people_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FINAL, raising=False)
    with pytest.raises(ArgumentError, match="locked people are read by `make evidence FINAL=1`"):
        load_workload("geolife", None, final=True)
    monkeypatch.setenv(FINAL, "yes")
    with pytest.raises(ArgumentError, match="final must be False"):
        load_workload("geolife", None, final=True)
    monkeypatch.setenv(FINAL, "1")
    with pytest.raises(ArgumentError, match="dataset must be one of real people for final"):
        load_workload("city", None, final=True)


def test_the_end_evaluates_locked_people_on_chains_of_the_others() -> None:
    city = load_workload("city", None, quick=True)
    names = sorted({trip.person for trip in city.trips})[:8]
    tested = [trip for trip in city.trips if trip.person in names]
    others = [trip for trip in city.trips if trip.person not in names]
    final = replace(city, trips=others, tested=tested)
    assert final.digest != city.digest
    read: set[str] = set()
    for fold in range(FOLDS):
        training, runs = Fold(fold, 20).parts(final)
        assert training == others
        read |= {trip.person for trip in runs}
    assert read == set(names)
    # And so do the studies that are repeated at the end.
    cast = cast_of(final, 12, 6)
    walked = {tuple(path) for path in cast.judged.tolist()}
    cut = {tuple(run.states.tolist()) for run in datasets.cut_trips(tested, 12)}
    assert walked <= cut
    reading = Reading(0, (0,), "staircase", "2", 2, steps=10, runs=1).measure(final)
    assert np.isfinite(reading["smoothed"]).all()
    assert {study.name.partition(".")[0] for study in studies(final=True)} == {"final"}


# The shared data


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_no_run_has_a_locked_person_or_a_twin_in_its_training(name: str, shared_data: Path) -> None:
    workload = load_workload(name, shared_data, quick=True)
    people = {trip.person for trip in workload.trips}
    assert not locked_people(people)
    # A person is the first of its ids, in trips and runs alike.
    assert all(workload.twins[person] == person for person in people)
    evaluated = {trip.person for trip in workload.sequences}
    moves = sum(len(trip) - 1 for trip in workload.trips if trip.person not in evaluated)
    assert workload.counts("others").sum() == moves
    if not workload.regular:
        return
    copied = copies(shared_data)
    assert ("069", "129") in copied
    for pair in copied:
        assert len({is_locked(workload.twins[one]) for one in pair}) == 1, pair
    for fold in range(FOLDS):
        training, runs = Fold(fold, 20).parts(workload)
        assert runs
        assert not {trip.person for trip in runs} & {trip.person for trip in training}
        again = datasets.same_person([*training, *runs])
        mixed = {again[trip.person] for trip in runs} & {again[trip.person] for trip in training}
        assert not mixed
        # Nor has a run fixes that somebody else handed in, too, to the second and the digit.
        away = {trip.person for trip in runs}
        for pair in copied:
            assert len({workload.twins[one] in away for one in pair}) == 1, pair
