"""Who is judged, what adversaries find, and the tables that pages take their numbers from."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from dphmm import ArgumentError, Belief, DataError, MarkovModel, Query
from dphmm._types import FloatArray
from dphmm.evaluate import Result, Value, load_workload
from dphmm.evaluate.compare import Budget, OneLaw, Told, World
from dphmm.evaluate.compare.cast import (
    CITY_STEPS,
    JUDGED,
    bands_of,
    cast_of,
    made_up_cast,
    made_up_city,
)
from dphmm.evaluate.compare.field import CONTENDERS, OURS, TITLES, contender_of, grid_of
from dphmm.evaluate.compare.guarantees import Guaranteed
from dphmm.evaluate.compare.identity import own_ranks
from dphmm.evaluate.compare.places import Habit, find_places, habits_of
from dphmm.evaluate.compare.small_map import METRIC, ON_SMALL_MAP, OneAnswer, small_map
from dphmm.evaluate.compare.studies import LABELS, SETTINGS, city_comparisons, data_comparisons
from dphmm.evaluate.compare.tables import contender_rows, guarantee_rows, place_rows, small_rows
from dphmm.evaluate.compare.tasks import FIGURES, Judged, choose_setting
from dphmm.evaluate.study import deal
from dphmm.evaluate.workloads import Workload
from dphmm.report.trade_off import draw_trade_off
from dphmm.tables.datasets import Trip
from dphmm.tables.datasets.city import City

PEOPLE = 3


@pytest.fixture(scope="module")
def workload() -> Workload:
    return load_workload("city", None, quick=True)


@pytest.fixture(scope="module")
def city() -> City:
    return made_up_city(judged=PEOPLE, tuned=2)


# Who is judged


def test_neither_chain_nor_settings_see_the_judged_people(workload: Workload) -> None:
    fold = deal(workload.trips)
    moved = [
        Trip(trip.person, trip.times, trip.states[::-1]) if fold[trip.person] in JUDGED else trip
        for trip in workload.trips
    ]
    seen, unseen = cast_of(workload, 12, 4), cast_of(replace(workload, trips=moved), 12, 4)
    assert seen.world.chain.digest == unseen.world.chain.digest
    assert (seen.tuned == unseen.tuned).all()
    assert not (seen.judged == unseen.judged).all()


def test_everybody_is_judged_by_the_mean_of_their_paths(workload: Workload) -> None:
    cast = cast_of(workload, 12, 8)
    assert len(cast.own) == len(cast.judged) == len(cast.owners)
    assert np.bincount(cast.owners).max() <= 2
    ones = cast.mean(np.ones(len(cast.judged)))
    assert ones == pytest.approx(np.ones(cast.owners.max() + 1))


def test_runs_that_do_not_exist_are_refused(workload: Workload) -> None:
    with pytest.raises(DataError, match="trips must hold runs of 5000 states"):
        cast_of(workload, 5000)


def test_a_made_up_past_is_the_week_before(city: City) -> None:
    cast = made_up_cast(city, PEOPLE, 2)
    states = city.states.copy()
    states[:PEOPLE, 7 * CITY_STEPS :] = 0
    later = made_up_cast(replace(city, states=states), PEOPLE, 2)
    states[:PEOPLE, : 7 * CITY_STEPS] = 0
    other = made_up_cast(replace(city, states=states), PEOPLE, 2)
    assert cast.world.chain.digest == later.world.chain.digest == other.world.chain.digest
    for mine, after, before in zip(cast.own, later.own, other.own, strict=True):
        assert mine[0].digest == after[0].digest != before[0].digest
    assert cast.judged.shape == (PEOPLE, CITY_STEPS)
    assert cast.tuned.shape == (2, CITY_STEPS)


def test_hours_of_free_days_are_others_than_those_of_working_days() -> None:
    friday, saturday = 4 * 24 * 60, 5 * 24 * 60
    assert bands_of(np.array([0, 59, 60, friday, saturday, saturday + 23 * 60])).tolist() == [
        0, 0, 1, 0, 24, 47,
    ]  # fmt: skip


# Home and work, and whose day


def line_world() -> World:
    chain = MarkovModel(np.full((4, 4), 0.25))
    query = Query([[0, 0], [1, 0], [2, 0], [3, 0]])
    return World(query, "1", chain, Belief.from_probabilities(np.full(4, 0.25)))


def told_of(places: list[list[int]], sharpness: float) -> Told:
    """Answers whose likelihood falls by `sharpness` with every place."""
    truth = np.array(places)
    shape = truth.shape

    def log_likelihood(step: int) -> np.ndarray:
        return -sharpness * np.abs(np.arange(4)[None, :] - truth[:, step, None])

    return Told(np.zeros((*shape, 2)), np.zeros(shape), log_likelihood)


def test_a_home_is_found_from_the_hours_at_which_people_are_there() -> None:
    there = np.zeros(48)
    there[:2] = 0.9
    habit = Habit(np.full(4, 0.25), there)
    told = told_of([[3, 3, 0, 0, 0], [1, 1, 2, 2, 2]], 5.0)
    hours = np.array([0, 1, 10, 11, 12])
    start, end = find_places(line_world(), told, habit, hours, [0, 5])
    assert end.tolist() == [3, 1]
    assert start[0] == start[1]
    # Without a difference between hours the home would be where most time is spent.
    always = Habit(np.full(4, 0.25), np.full(48, 0.9))
    assert find_places(line_world(), told, always, hours, [5])[0].tolist() == [0, 2]


def test_habits_are_those_of_the_people_who_are_known(city: City) -> None:
    habits = habits_of(city, slice(PEOPLE, None))
    assert habits["home"].there[3] > 0.9 > 0.5 > habits["home"].there[11]
    assert habits["work"].there[11] > 0.5 > habits["work"].there[3]
    assert habits["work"].there[24 + 11] == pytest.approx(0.001)
    for habit in habits.values():
        assert habit.prior.sum() == pytest.approx(1)
        assert (habit.prior > 0).all()


def test_owners_are_found_by_their_past_and_without_answers_by_chance() -> None:
    stays = [(MarkovModel(0.96 * np.eye(4) + 0.01), Belief.certain(place, 4)) for place in range(4)]
    sharp = [np.eye(4, dtype=np.float32) + np.float32(1e-3)] * 3
    assert own_ranks(list(sharp), stays, 4).tolist() == [0, 0, 0, 0]
    assert own_ranks([None] * 3, stays, 4).tolist() == [1.5] * 4
    swapped = [row[::-1] for row in sharp]
    assert (own_ranks(swapped, stays, 4) > 0).all()
    # Two draws of every track: the second four are of the same people.
    twice = [
        np.concatenate([row, other], axis=1) for row, other in zip(sharp, swapped, strict=True)
    ]
    assert own_ranks(twice, stays, 8).tolist() == [
        *own_ranks(list(sharp), stays, 4).tolist(),
        *own_ranks(swapped, stays, 4).tolist(),
    ]


# Tables


def test_rounding_decides_no_tie() -> None:
    """An answer that every place makes equally likely tells nothing, however people move."""
    rng = np.random.default_rng(3)
    people = [
        (MarkovModel(rng.dirichlet(np.ones(40), 40)), Belief.known(rng.dirichlet(np.ones(40)), 40))
        for _ in range(5)
    ]
    rows: list[FloatArray | None] = [np.full((40, 5), 0.3, dtype=np.float32)] * 300
    assert own_ranks(rows, people, 5).tolist() == [2] * 5


def test_settings_are_chosen_by_the_people_who_are_tuned_on(workload: Workload) -> None:
    cast = cast_of(workload, 12, 4)
    assert choose_setting("knorm", cast, Budget(12, 12)) == 0
    choice = choose_setting("scheduled", cast, Budget(12, 12))
    assert 0 <= choice < len(grid_of("scheduled", Budget(12, 12)))
    other = replace(cast, judged=cast.judged[:, ::-1])
    assert choose_setting("scheduled", other, Budget(12, 12)) == choice


def test_a_part_holds_a_figure_for_each_person(workload: Workload) -> None:
    part = Judged("planar", 12, 12, 4, 1)
    found = part.measure(workload)
    assert {len(found[name]) for name in FIGURES} == {len(found["raw"])}
    assert found["instant"] == found["step"] == pytest.approx(1)
    again = part.measure(workload)
    assert all((found[name] == again[name]).all() for name in found)


def figures(error: float) -> dict[str, np.ndarray]:
    people = np.linspace(0.9, 1.1, 8)
    found = dict.fromkeys(FIGURES, error * people)
    found |= dict.fromkeys(("within", "own_within"), 0.5 * people)
    return {**found, "instant": np.array(2.0), "step": np.array(1.0), "choice": np.array(0)}


def test_a_table_says_where_a_peer_is_closer() -> None:
    found = {name: figures(1.0) for name in CONTENDERS}
    found["predictive"], found["planar"] = figures(0.5), figures(2.0)
    found["knorm"]["filtered"] = found[OURS]["filtered"][::-1]
    values, table = contender_rows(found, Budget(100, 100), dict.fromkeys(found, 2))
    verdicts = {row[0]: row[-1] for row in table.rows}
    assert verdicts[TITLES["predictive"]] == "did not hold"
    assert verdicts[TITLES["planar"]] == "held"
    assert verdicts[TITLES["knorm"]] == "cannot tell"
    assert verdicts[TITLES[OURS]] == "is this one"
    assert values["planar.100.filtered"].text() == "2.00"
    assert len(table.rows) == len(CONTENDERS) >= 8


def test_a_table_of_places_has_medians_and_shares_with_intervals() -> None:
    gaps = np.array([[[3.0, 3.0, np.nan], [0.2, 0.9, np.nan], [0.0, 0.25, np.nan]]])
    part = {"home": gaps, "work": gaps, "rank": np.array([[0, 0, 3.0]]), **figures(1.0)}
    values, table = place_rows({"six-hours": part}, LABELS)
    assert values["six-hours.home.1.median"].text() == "550 m"
    assert values["six-hours.home.1.250m"].text() == "50%"
    assert values["six-hours.home.2.250m"].text() == "100%"
    assert values["six-hours.home.1.1000m"].text() == "100%"
    assert values["nothing.home.median"].text() == "3000 m"
    assert values["six-hours.identified"].text() == "67%"
    assert len(table.rows[0]) == len(table.head)
    short = {**part, "home": gaps[:, :2], "work": gaps[:, :2]}
    assert "not measured" in place_rows({"six-hours": short}, LABELS)[1].rows[0]


def test_every_setting_of_home_and_work_has_words_and_keeps_its_budget() -> None:
    assert set(SETTINGS) == set(LABELS)
    for knobs in SETTINGS.values():
        budget = Budget(knobs["total"], CITY_STEPS * knobs.get("days", 1))
        budget.part(knobs.get("every", 1), "every")
        assert all(0 <= step < budget.steps for step in knobs.get("at", ()))


@pytest.mark.parametrize("quick", [True, False])
def test_every_study_has_a_name_of_its_own_and_every_mechanism(quick: bool) -> None:
    studies = [*data_comparisons(quick), *city_comparisons(quick)]
    assert len({study.name for study in studies}) == len(studies) == (7 if quick else 9)
    for study in studies:
        names = [f"{where} {task!r}" for where, task in study.parts]
        assert len(set(names)) == len(names)
        if study.name in ("compare.geolife", "compare.city-24"):
            assert {task.contender for _, task in study.parts} == set(CONTENDERS)  # type: ignore[attr-defined]


def test_the_optimum_of_one_answer_is_below_everybody_else() -> None:
    found = OneAnswer(2.0, draws=100).measure(load_workload("city", None, quick=True))
    for name in ("planar", "l1", "knorm", "staircase"):
        raw, best, spread = found[name]
        assert best <= raw
        assert found["optimal"][1] <= best + 4 * spread
        contender = contender_of(name, small_map(), Budget(2.0, 1))
        assert isinstance(contender, OneLaw)
        places = np.repeat(np.arange(25), 4000)
        drawn = contender.draw(places, np.random.default_rng(3)) - small_map().places[places]
        lengths = np.hypot(*drawn.T)
        # Four standard errors of the mean of 100,000 lengths.
        assert raw == pytest.approx(lengths.mean(), abs=4 * lengths.std() / len(lengths) ** 0.5)
    assert found["optimal"][0] == pytest.approx(found["optimal"][1], rel=1e-6)
    # Geo-indistinguishability asks for more than the policy does, so its optimum is farther.
    assert found["optimal"][1] <= found[METRIC][1] <= found["planar"][1] + 4 * found["planar"][2]
    values, table = small_rows({2.0: found}, [*ON_SMALL_MAP, METRIC])
    assert len(table.rows) == 6
    assert values["optimal_metric.2.best"].value == pytest.approx(1000 * found[METRIC][1], rel=1e-4)


@pytest.mark.slow
def test_the_theory_counts_what_a_day_may_cost() -> None:
    found = Guaranteed("six-hours", 4, 72, people=PEOPLE).measure(
        load_workload("city", None, quick=True)
    )
    assert found["answers"] == 4
    assert found["linked_day"] == 4
    assert found["likely_day"] <= 4
    assert found["worst_day"] == pytest.approx(4 * found["worst"])
    assert found["worst"] >= found["linked"] == 1
    assert found["moment"] >= found["moment_linked"] >= 1


def test_a_table_of_guarantees_has_a_row_for_each_setting() -> None:
    names = ("answers", "linked", "linked_day", "likely_day", "worst", "worst_day")
    part = {name: np.array(4.0) for name in (*names, "moment_linked")}
    values, table = guarantee_rows({"six-hours": part}, LABELS)
    assert table.rows[0][:2] == (LABELS["six-hours"], "4")
    assert values["six-hours.worst_day"].text() == "4"


# The figure


def comparison(total: str) -> Result:
    values = {
        f"{name}.{total}.{one}": Value(0.1 * place + 0.1, ".2f")
        for place, name in enumerate(CONTENDERS)
        for one in ("filtered", "own")
    }
    return Result("compare.city", "About", "dphmm.evaluate.metrics", values, code="c", version="1")


def test_the_figure_has_a_mark_for_every_mechanism_at_every_budget() -> None:
    drawn = draw_trade_off([comparison("24"), comparison("4")], {"24": "24 a day", "4": "4 a day"})
    tree = ElementTree.fromstring(drawn)
    marks = [one for one in tree.iter() if one.get("class") == "mark" and (one.text or "").strip()]
    assert len(marks) == 2 * len(CONTENDERS)
    text = "".join(tree.itertext())
    assert all(title in text for title in TITLES.values())


def test_a_figure_without_numbers_is_refused() -> None:
    with pytest.raises(ArgumentError, match="results must hold errors at 4, got none"):
        draw_trade_off([comparison("24")], {"4": "4 a day"})
