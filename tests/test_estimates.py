"""Mean and median of a belief, and the choice between them by every route."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dphmm import (
    Batch,
    Belief,
    KeyedRandomness,
    MarkovModel,
    MemoryBook,
    Plan,
    PolicyGraph,
    Query,
    Scenario,
    Stream,
)
from dphmm.errors import ArgumentError, ScenarioError
from tests.scenarios import paper_scenario, run, trips, written

NEAR = 1e-3
"""Share of the least expected distance by which a median may miss it: the iteration is cut off."""

TRIPS = trips(("ann", 1, 2), ("ann", 2, 4), ("bob", 1, 3))


def expected_distance(values: np.ndarray, chances: np.ndarray, point: np.ndarray) -> float:
    return float(chances @ np.sqrt(((values - point) ** 2).sum(axis=1)))


# Laws


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_the_median_is_no_worse_than_the_mean_or_any_state(seed: int, axes: int, flat: bool):
    rng = np.random.default_rng(seed)
    values = rng.integers(-4, 5, size=(rng.integers(1, 12), axes)).astype(float)
    values[:, 1:] *= not flat
    belief = Belief.from_probabilities(rng.dirichlet(np.full(len(values), 0.5)))
    costs = [
        expected_distance(values, belief.probabilities, point)
        for point in (belief.median(values), belief.mean(values), *values)
    ]
    assert costs[0] <= min(costs[1:]) * (1 + NEAR) + 1e-12


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(0, 99))
def test_on_a_line_half_of_the_probability_lies_on_either_side(weights: list[int], seed: int):
    values = np.random.default_rng(seed).permutation(len(weights)).astype(float)
    belief = Belief.from_probabilities(np.array(weights) / sum(weights))
    middle = float(belief.median(values))
    below = sum(w for w, v in zip(weights, values, strict=True) if v < middle)
    until = sum(w for w, v in zip(weights, values, strict=True) if v <= middle)
    assert 2 * below < sum(weights) <= 2 * until


def test_a_state_with_half_of_the_probability_is_the_median_to_the_last_bit() -> None:
    values = np.array([[0.1, 0.7], [5.3, 0.2], [0.4, 9.9]])
    assert (Belief.from_probabilities([0.5, 0.3, 0.2]).median(values) == values[0]).all()
    # Two states at one place count together.
    twice = np.concatenate([values, values[:1]])
    assert (Belief.from_probabilities([0.3, 0.3, 0.2, 0.2]).median(twice) == values[0]).all()


# Oracle


@given(st.integers(0, 2**32 - 1))
def test_the_median_is_the_least_that_a_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rng.integers(3, 20), 2))
    belief = Belief.from_probabilities(rng.dirichlet(np.ones(len(values))))

    def cost(point: np.ndarray) -> float:
        return expected_distance(values, belief.probabilities, point)

    found = minimize(cost, belief.mean(values), method="Nelder-Mead").fun
    assert cost(belief.median(values)) <= min(found, *map(cost, values)) * (1 + NEAR)


# The choice


def plan() -> tuple[MarkovModel, Plan]:
    cells = np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2)
    near = np.abs(cells[:, None] - cells[None, :]).max(axis=2) <= 1
    query = Query(cells * 340)
    model = MarkovModel(near / near.sum(axis=1, keepdims=True), anywhere=0.01)
    return model, Plan(PolicyGraph.within_distance(query, 500), query)


def test_a_batch_of_medians_equals_its_streams() -> None:
    model, chosen = plan()
    key = KeyedRandomness(bytes(32))
    people = [f"p{number}" for number in range(20)]
    paths = np.random.default_rng(0).integers(16, size=(5, 20))
    batch = Batch(
        model, chosen, epsilon=2, people=people, start=5, time=0, randomness=key, estimate="median"
    )
    said = [batch.release(states) for states in paths]
    for number, person in enumerate(people):
        options = {"epsilon": 2, "start": 5, "time": 0, "person": person, "randomness": key}
        stream = Stream(model, chosen, estimate="median", **options)
        mean = Stream(model, chosen, **options)
        for step, states in enumerate(paths):
            release = stream.release(int(states[number]))
            assert (release.estimate == said[step].estimate[number]).all()
            assert (release.estimate == stream.posterior.median(chosen.query.values)).all()
            assert (mean.release(int(states[number])).lattice == release.lattice).all()
        smoothed = [belief.median(chosen.query.values) for belief in stream.smooth()]
        assert (stream.smoothed() == np.array(smoothed)).all()


def test_an_estimate_is_no_part_of_the_law_and_survives_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, estimate="median")
    scenario = Scenario.load(path)
    assert scenario.settings.estimate == scenario.stream("ann").estimate == "median"
    assert scenario.law == paper_scenario().law
    assert "estimate" not in paper_scenario().settings.to_toml()


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_release_with_medians_says_the_same_answers(tmp_path: Path) -> None:
    path, key = written(tmp_path), tmp_path / "key"
    (tmp_path / "trips.csv").write_text(TRIPS)
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    options = ("release", path, tmp_path / "trips.csv", "--key-file", key)
    mean, median = (
        rows(run(*options, "--ledger", tmp_path / name, *more).stdout)
        for name, more in (("a.jsonl", ()), ("b.jsonl", ("--estimate", "median")))
    )
    assert [row["x"] for row in mean] == [row["x"] for row in median]
    assert [row["estimate_x"] for row in mean] != [row["estimate_x"] for row in median]
    # What left is what is written down: a second run gets it, whatever it asks for.
    again = rows(run(*options, "--ledger", tmp_path / "b.jsonl").stdout)
    assert again == median


def test_a_book_keeps_the_estimate_that_left() -> None:
    book = MemoryBook()
    median = paper_scenario(estimate="median").stream("ann", book=book, time=0).release(1)
    stream = paper_scenario().stream("ann", book=book)
    (record,) = book.answers(stream.line)
    assert record.estimate == tuple(median.estimate.tolist())


# Bad input


def test_another_estimate_is_refused(tmp_path: Path) -> None:
    model, chosen = plan()
    with pytest.raises(ArgumentError, match=r"estimate must be mean or median, got 'mode'"):
        Stream(model, chosen, epsilon=1, start=0, estimate="mode")
    path = written(tmp_path)
    path.write_text('estimate = "mode"\n' + path.read_text())
    with pytest.raises(ScenarioError, match=r"paper.toml:1: estimate must be one of mean, median"):
        Scenario.load(path)
    with pytest.raises(ArgumentError, match=r"values must have one row for each of 2 states"):
        Belief.uniform(2).median([1.0])
