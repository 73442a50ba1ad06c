"""The synthetic city: its laws, and that a chain learned in it is worth having."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.errors import ArgumentError
from dphmm.tables import datasets


@pytest.fixture(scope="module")
def city() -> datasets.City:
    return datasets.synthetic_city(people=60, days=7, rng=np.random.default_rng(3))


# Laws


def test_a_city_is_the_same_again_from_the_same_generator(city: datasets.City) -> None:
    again = datasets.synthetic_city(people=60, days=7, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(again.states, city.states)
    other = datasets.synthetic_city(people=60, days=7, rng=np.random.default_rng(4))
    assert (other.states != city.states).any()


def test_people_move_along_the_roads_a_little_at_a_time(city: datasets.City) -> None:
    cells = city.grid.row_col[city.states]
    steps = np.abs(np.diff(cells, axis=1)).sum(axis=-1)
    assert steps.max() <= 2
    assert (steps > 0).mean() > 0.01


def test_the_river_is_crossed_on_bridges_only(city: datasets.City) -> None:
    crossings = [s for s, category in enumerate(city.categories) if category == "bridge"]
    assert len(crossings) == 3
    assert city.grid.n_states == 30 * 30 - 30 + len(crossings)


def test_people_sleep_at_home_and_work_by_day(city: datasets.City) -> None:
    night = city.states[:, 3 * 60 :: 24 * 60]
    assert (night == city.homes[:, None]).mean() > 0.95
    workers = city.workplaces >= 0
    morning = city.states[workers][:, [day * 1440 + 11 * 60 for day in range(5)]]
    assert (morning == city.workplaces[workers, None]).mean() > 0.9
    sunday = city.states[workers, 6 * 1440 + 11 * 60]
    assert (sunday == city.workplaces[workers]).mean() < 0.1


def test_trips_go_from_stay_to_stay_and_days_are_whole(city: datasets.City) -> None:
    for trip in city.trips():
        assert trip.states[0] != trip.states[1]
        assert trip.states[-1] != trip.states[-2]
        row = city.states[city.names.index(trip.person)]
        np.testing.assert_array_equal(row[trip.times], trip.states)
    days = city.days()
    assert len(days) == 60 * 7
    np.testing.assert_array_equal(np.concatenate([d.states for d in days]), city.states.ravel())
    assert {len(part) for part in city.days(6.5, 10)} == {210}
    assert city.days(6.5, 10)[1].start == 24 * 60 + 390


def test_a_city_is_a_table_of_tracks(city: datasets.City) -> None:
    trips = datasets.split_trips(city.table(), max_gap=1)
    np.testing.assert_array_equal([trip.states for trip in trips], city.states)
    assert tuple(trip.person for trip in trips) == city.names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"people": 0}, "people must be at least 1, got 0"),
        ({"days": 0}, "days must be at least 1, got 0"),
        ({"size": 9}, "size must be at least 10, got 9"),
        ({"step_minutes": 7}, "step_minutes must be a whole divisor"),
    ],
)
def test_impossible_cities_are_refused(change: dict[str, int], message: str) -> None:
    arguments = {"people": 1, "days": 1} | change
    with pytest.raises(ArgumentError, match=message):
        datasets.synthetic_city(rng=np.random.default_rng(0), **arguments)


def test_hours_outside_a_day_are_refused(city: datasets.City) -> None:
    with pytest.raises(ArgumentError, match="start_hour and end_hour must lie in order"):
        city.days(10, 9)


# Oracle


def test_a_learned_chain_halves_the_error_of_planar_noise(city: datasets.City) -> None:
    """Planar Laplace noise at epsilon 1 per km, filtered with a chain of other people."""
    rng = np.random.default_rng(1)
    count = city.grid.n_states
    kilometres = city.grid.centers / 1000
    learned, tested = city.states[:40], city.states[40:]
    near = np.abs(city.grid.row_col[:, None] - city.grid.row_col[None]).sum(axis=-1) <= 2
    chain = 0.05 * near + 1e-6
    np.add.at(chain, (learned[:, :-1].ravel(), learned[:, 1:].ravel()), 1)
    chain /= chain.sum(axis=1, keepdims=True)
    raw, filtered = [], []
    for row in tested[:5]:
        belief = np.full(count, 1 / count)
        for state in row[390:600]:
            radius, angle = rng.gamma(2), rng.uniform(0, 2 * np.pi)
            answer = kilometres[state] + radius * np.array([np.cos(angle), np.sin(angle)])
            belief = belief @ chain * np.exp(-np.linalg.norm(kilometres - answer, axis=1))
            belief /= belief.sum()
            raw.append(radius)
            filtered.append(np.linalg.norm(belief @ kilometres - kilometres[state]))
    assert np.mean(raw) == pytest.approx(2, rel=0.1)
    assert np.mean(filtered) < 0.5 * np.mean(raw)
