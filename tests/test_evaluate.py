"""Metrics by hand, experiments on a made-up city, claims on made-up curves, readers by counting."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    DataError,
    PolicyGraph,
    Query,
    degree_of_protection,
    sensitivity_hull,
)
from dphmm.chain.ground import Ground
from dphmm.chain.momentum import contexts_of
from dphmm.cli.program import program
from dphmm.evaluate import (
    POLICIES,
    Curves,
    Task,
    Workload,
    claims_of,
    distances,
    first_order,
    folds_of,
    hidden_among,
    hourly,
    load_workload,
    measure,
    momentum,
    moving_average,
    protected_state,
    ratios,
    run,
    second_order,
    tasks_of,
)
from dphmm.evaluate.experiments import MEASURES
from dphmm.evaluate.parts import measured
from dphmm.evaluate.readers import at_hours
from dphmm.evaluate.study import READERS, deal
from dphmm.tables.datasets import Trip
from dphmm.tables.geo import Grid

EXACT = 1e-12
GRID = Grid.rectangle(5, 5, 0.5)
GROUND = Ground(GRID.centers)


@pytest.fixture(scope="module")
def city() -> Workload:
    return load_workload("city", None, quick=True)


# Paper


def test_the_error_is_the_distance_from_the_true_answer() -> None:
    assert distances([[3.0, 4.0]], [[0.0, 0.0]]).tolist() == [5.0]


def test_the_degree_of_protection_of_one_state_is_that_of_definition_5_2() -> None:
    query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    policy = PolicyGraph.by_category(["cafe", "school", "school", "shop", "shop", "shop"])
    possible = np.array([False, True, False, True, True, True])
    hull = sensitivity_hull(query, policy, possible)
    found = [hidden_among(query, possible, hull, state) for state in range(6)]
    assert found == [0, 3, 0, 4, 4, 3]


def test_a_state_outside_the_possible_set_is_protected_as_its_stand_in() -> None:
    query = Query([[0, 0], [1, 0], [5, 0]])
    possible = np.array([True, False, True])
    assert [protected_state(query, possible, state) for state in range(3)] == [0, 0, 2]


def test_a_task_measures_every_sequence_at_every_step(city: Workload) -> None:
    results = measure(city, Task("distance", radius=city.radius, anew=True))
    assert set(results) == set(MEASURES)
    for values in results.values():
        assert values.shape == (len(city.sequences), city.steps)
        assert np.isfinite(values).all()
    assert (results["hidden"] >= 2).all()
    assert (results["hidden"] <= results["possible"]).all()


def test_the_one_step_policy_hides_more_than_a_short_distance_does(city: Workload) -> None:
    near = measure(city, Task("distance", "same", radius="0.5"))
    step = measure(city, Task("one_step", "same"))
    assert step["hidden"].mean() > near["hidden"].mean()


def test_the_location_set_is_smaller_than_the_possible_set(city: Workload) -> None:
    narrow = measure(city, Task("location_set"))["possible"]
    wide = measure(city, Task("one_step"))["possible"]
    assert (narrow <= wide).all()
    assert narrow.sum() < wide.sum()


def test_degrees_of_protection_do_not_depend_on_epsilon(city: Workload) -> None:
    low, high = (measure(city, Task("one_step", epsilon=price)) for price in ("0.5", "2"))
    np.testing.assert_array_equal(low["hidden"], high["hidden"])
    assert low["error"].mean() > high["error"].mean()


def made_up(city: Workload, hidden: dict[str, float], error: dict[str, float]) -> Curves:
    """Curves flat over time; with r both grow, with epsilon only the error falls."""

    def result(task: Task) -> dict[str, np.ndarray]:
        flat = np.ones((2, city.steps))
        reach = float(task.radius or 1)
        return {
            "hidden": hidden[task.policy] * reach * flat,
            "error": error[task.policy] * reach / float(task.epsilon) * flat,
            "possible": 100 * flat,
            "seconds": flat,
            "anew": (1.0 if task.policy == "location_set" else 1.2) * flat,
        }

    return Curves(city, "others", "all", result)


def test_every_claim_holds_on_curves_made_to_fit_it(city: Workload) -> None:
    hidden = {"distance": 60.0, "one_step": 110.0, "location_set": 50.0}
    error = {"distance": 1.0, "one_step": 3.0, "location_set": 2.5}
    claims = claims_of(made_up(city, hidden, error))
    assert [claim.text for claim in claims if not claim.held] == []
    assert len(claims) == 18


def test_a_claim_that_fails_says_so_and_why(city: Workload) -> None:
    hidden = {"distance": 5.0, "one_step": 10.0, "location_set": 500.0}
    error = {"distance": 9.0, "one_step": 3.0, "location_set": 1.0}
    failed = {
        claim.text: claim for claim in claims_of(made_up(city, hidden, error)) if not claim.held
    }
    assert list(failed) == [
        "The one-step policy gives the true state the largest DoP.",
        "With the one-step policy the true state hides among about 100 states.",
        "The one-step policy's error is higher than the distance policy's.",
        "The distance policy's error is below the δ-location set's.",
        "The distance policy's DoP is above the δ-location set's.",
        "The one-step policy sacrifices little utility against the δ-location set.",
        "Error stays below the δ-location set's for most r.",
    ]
    first = next(iter(failed.values()))
    assert first.found == "mean DoP: one-step 10, distance 5.0, δ-location set 500"
    assert "grows here from 100 to 100 states" in first.why


# Laws


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(0, 6))
def test_a_moving_average_stays_between_the_extremes(values: list[float], half: int) -> None:
    smooth = moving_average(values, 2 * half + 1)
    assert len(smooth) == len(values)
    slack = 1e-9 * (1 + np.abs(values).max())
    assert smooth.min() >= min(values) - slack
    assert smooth.max() <= max(values) + slack


def test_a_moving_average_of_an_even_width_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"width must be an odd number of steps, got 4"):
        moving_average([1, 2], 4)


@given(st.lists(st.integers(0, 24), min_size=3, max_size=40), st.integers(1, 5))
def test_contexts_follow_each_other_as_the_momentum_chain_has_it(
    path: list[int], patience: int
) -> None:
    states = np.array(path)
    # Learned from elsewhere, so that only the chain's own rule makes these moves possible.
    reader = momentum([np.array([0, 1, 0])], GROUND, weight=1.0, trust=1.0, patience=patience)
    contexts = 8 + patience
    expanded = states * contexts + contexts_of(states, GROUND, patience)
    within_reach = np.abs(np.diff(GRID.row_col[states], axis=0)).max(axis=1) <= 2
    moves = reader.chain.at(1).transition[expanded[:-1], expanded[1:]]
    np.testing.assert_array_equal(np.asarray(moves).ravel() > 0, within_reach)
    np.testing.assert_array_equal(reader.chain.current[expanded], states)


def test_folds_part_people_not_trips(city: Workload) -> None:
    fold = deal(city.trips)
    assert set(fold) == {trip.person for trip in city.trips}
    sizes = np.bincount(list(fold.values()))
    assert sizes.max() - sizes.min() <= 1


def test_readers_are_learned_from_other_people_than_they_read(city: Workload) -> None:
    everybody = {trip.person for trip in city.trips}
    read: list[str] = []
    for fold in folds_of(city):
        training, runs = fold.parts(city)
        evaluated = {trip.person for trip in runs}
        assert evaluated
        assert {trip.person for trip in training} == everybody - evaluated
        read += evaluated
    assert sorted(read) == sorted(everybody)


def test_a_chain_of_others_has_never_seen_the_evaluated_people(city: Workload) -> None:
    evaluated = {trip.person for trip in city.sequences}
    everybody = city.counts("same").sum()
    steps = sum(len(trip) - 1 for trip in city.trips if trip.person in evaluated)
    assert city.counts("others").sum() == everybody - steps
    assert city.counts("same", "short").sum() < everybody


def test_tasks_have_different_names(city: Workload) -> None:
    names = [task.name for task in [*tasks_of(city), *folds_of(city)]]
    assert len(set(names)) == len(names)


# Oracle


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=12), st.integers(0, 3))
def test_a_moving_average_is_the_mean_of_its_neighbours(values: list[int], half: int) -> None:
    wanted = [np.mean(values[max(k - half, 0) : k + half + 1]) for k in range(len(values))]
    found = moving_average(values, 2 * half + 1)
    np.testing.assert_allclose(found, wanted, rtol=EXACT, atol=1e-10)


def test_one_state_s_protection_is_that_of_all_states_together(city: Workload) -> None:
    policy = PolicyGraph.within_distance(city.query, 1)
    possible = np.arange(city.query.n_states) % 3 > 0
    hull = sensitivity_hull(city.query, policy, possible)
    every = degree_of_protection(city.query, policy, possible, hull)
    for state in range(0, city.query.n_states, 97):
        assert hidden_among(city.query, possible, hull, state) == every[state]


def test_readers_without_trust_in_others_are_the_counted_chains() -> None:
    states = np.array([0, 1, 2, 1, 0, 1, 6, 1])
    plain = first_order([states], GROUND, weight=1e-9).chain.at(1).transition
    assert plain[1, 2] == pytest.approx(1 / 3, rel=1e-6)
    assert plain[0, 1] == pytest.approx(1, rel=1e-6)
    pairs = second_order([states], GROUND, weight=1e-3, trust=1e-9)
    model = pairs.chain.at(1)
    keys = {tuple(pair): place for place, pair in enumerate(model.pairs.tolist())}
    after = model.transition[[keys[0, 1]], [keys[1, 2]]]
    assert float(np.asarray(after).ravel()[0]) == pytest.approx(1 / 2, rel=1e-6)


def test_readers_read_what_filter_and_smoother_say_by_hand() -> None:
    rng = np.random.default_rng(0)
    walk = [rng.integers(0, 25, 50) for _ in range(4)]
    reader = first_order(walk, GROUND, weight=1.0)
    rows = [np.log(rng.random(25)) for _ in range(4)]
    matrix = reader.chain.at(1).transition.toarray()
    before = [reader.start.probabilities]
    for row in rows:
        belief = before[-1] @ matrix * np.exp(row)
        before.append(belief / belief.sum())
    later = np.ones(25)
    smooth = []
    for belief, row in zip(before[:0:-1], rows[::-1], strict=True):
        both = belief * later
        smooth.append(both / both.sum())
        later = matrix @ (later * np.exp(row))
    places = GRID.centers / 1000
    estimates = reader.read(rows, places)
    np.testing.assert_allclose(estimates["filtered"], np.array(before[1:]) @ places, rtol=1e-9)
    np.testing.assert_allclose(estimates["smoothed"], np.array(smooth[::-1]) @ places, rtol=1e-9)


def test_an_hourly_reader_uses_the_band_of_the_step_it_reads() -> None:
    sequences = [np.array([0, 0, 0, 0]), np.array([0, 1, 0, 1])]
    bands = [np.array([0, 0, 0, 0]), np.array([1, 1, 1, 1])]
    models = hourly(sequences, bands, GROUND, weight=1e-3, trust=1e-3)
    start = first_order(sequences, GROUND, weight=1.0).start
    reader = at_hours(models, np.array([0, 1]), start)
    assert reader.chain.at(1) is models[0]
    assert reader.chain.at(2) is models[1]
    assert models[0].transition[0, 0] > 0.99 > 0.01 > models[1].transition[0, 0]


def test_bands_are_quarters_of_the_local_day() -> None:
    trip = Trip("a", np.arange(3), np.arange(3))
    workload = Workload(
        "x", "", "", GRID, [trip], [trip], "1", ("1",), ("1",), 1, utc_offset_hours=8
    )
    hours = 3600 * np.array([0, 3, 4, 16, 22])
    assert workload.bands(hours).tolist() == [1, 1, 2, 0, 1]


def test_shares_are_the_ratio_of_means_and_their_spread_over_folds() -> None:
    names = [
        f"{reader}_{kind}"
        for reader in READERS
        for kind in ("filtered", "filtered_median", "smoothed", "smoothed_median")
    ]
    one = {"raw": np.full((1, 2), 2.0)} | {name: np.full((1, 2), 1.0) for name in names}
    other = {"raw": np.full((3, 2), 2.0)} | {name: np.full((3, 2), 0.5) for name in names}
    share, spread = ratios([one, other])["momentum_smoothed"]
    assert share == pytest.approx(0.3125, rel=EXACT)
    assert spread == pytest.approx(0.125, rel=EXACT)


# The command


def test_results_are_kept_and_used_again(city: Workload, tmp_path: Path) -> None:
    task = Task("distance", radius=city.radius)
    assert [was for _, was in run(tmp_path, city, [task], workers=1)] == [False]
    assert [was for _, was in run(tmp_path, city, [task], workers=1)] == [True]
    assert measured(tmp_path, city, task)["error"].shape[1] == city.steps


def test_reproduce_writes_a_page_that_is_one_file_and_marked_private(tmp_path: Path) -> None:
    arguments = ["reproduce", "city", "--quick", "--workers", "1", "-o", str(tmp_path), "--json"]
    outcome = CliRunner().invoke(program, arguments)
    assert outcome.exit_code == 0, outcome.output
    facts = json.loads(outcome.stdout)
    assert facts["private"] is True
    assert {claim["learned"] for claim in facts["claims"]} == {"others", "same"}
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "Private" in page
    assert page.count("<img") == page.count("data:image/svg+xml;base64,") == 6
    assert "http" not in page.split("<body>")[1].replace("base64,", "")[:2000]
    written = [path.name for path in tmp_path.iterdir()]
    assert all(name.startswith("private-") for name in written)
    with (tmp_path / "private-over-time.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["policy"] for row in rows} == set(POLICIES)


def test_a_missing_dataset_is_one_line_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"geolife_beijing_3rdring_plt_1min.zip: file must exist"):
        load_workload("geolife", tmp_path)
    with pytest.raises(ArgumentError, match="data must be the folder"):
        load_workload("gowalla", None)
    with pytest.raises(
        ArgumentError, match="dataset must be one of geolife, gowalla, gowalla-nyc, city"
    ):
        load_workload("beijing", None)


# The shared data


@pytest.mark.data
@pytest.mark.parametrize(("name", "states"), [("geolife", 1280), ("gowalla", 1377)])
def test_the_paper_s_order_of_errors_holds_on_real_data(
    name: str, states: int, shared_data: Path
) -> None:
    workload = load_workload(name, shared_data, quick=True)
    assert workload.query.n_states == states
    near = measure(workload, Task("distance", "same", radius=workload.radius))
    step = measure(workload, Task("one_step", "same"))
    assert near["error"].mean() < step["error"].mean()
    assert near["hidden"].mean() < step["hidden"].mean()


@pytest.mark.slow
@pytest.mark.data
def test_a_reader_with_momentum_comes_closer_on_held_out_people(shared_data: Path) -> None:
    workload = load_workload("geolife", shared_data, quick=True)
    fold = folds_of(workload, quick=True)[0]
    shares = ratios([fold.measure(workload)])
    assert shares["momentum_filtered"][0] < 0.7
    assert shares["momentum_smoothed"][0] < shares["momentum_filtered"][0]
