"""The paper's figures: exact where they are, drawn where not, with intervals and verdicts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import ArgumentError, Plan, PolicyGraph, SeededRandomness
from dphmm.evaluate import Result, Task, Workload, load_workload, measure, run_study
from dphmm.evaluate.course import Course, Drawn, Timed
from dphmm.evaluate.course import _Errors as ExpectedErrors
from dphmm.evaluate.holding import FIGURES, Holding
from dphmm.evaluate.intervals import (
    CANNOT_TELL,
    DID_NOT_HOLD,
    HELD,
    RULE,
    People,
    by_person,
    interval_of,
    median_of,
    verdict_of,
)
from dphmm.evaluate.observed import Observed
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.section8 import claims_study, clock_study
from dphmm.noise.distance import mean_noise

SAMPLES = 2000
EXACT = 1e-9


@pytest.fixture(scope="module")
def city() -> Workload:
    return load_workload("city", None, quick=True)


# Verdicts


@given(st.floats(-5, 5), st.floats(0, 5))
def test_a_verdict_is_sure_only_where_the_whole_interval_is(low: float, width: float) -> None:
    found = verdict_of(low, low + width)
    assert (found == HELD) == (low > 0)
    assert (found == DID_NOT_HOLD) == (low + width < 0)
    assert found in (HELD, DID_NOT_HOLD, CANNOT_TELL)


def test_intervals_come_from_what_each_person_adds() -> None:
    rng = np.random.default_rng(0)
    people = People({"a": rng.normal(1, 1, 50), "b": rng.normal(0, 1, 50)}, seeds=20)
    value, low, high = people.interval(lambda means: means["a"])
    assert value == pytest.approx(people.columns["a"].mean(), rel=EXACT)
    # The standard error of the mean, 2.01 times to each side (Student's t of 50), and more at one
    # end for the skewness that so few have by chance.
    error = people.columns["a"].std(ddof=1) / 50**0.5
    assert max(value - low, high - value) < 1.1 * 2.01 * error
    assert min(value - low, high - value) == pytest.approx(2.0096 * error, rel=1e-4)
    assert people.verdict(lambda means: means["a"], "a").value == HELD
    assert people.verdict(lambda means: -means["a"], "a").value == DID_NOT_HOLD
    assert people.verdict(lambda means: means["b"] / 10, "b").value == CANNOT_TELL
    shown = people.verdict(lambda means: means["a"], "the rule")
    assert shown.note.startswith("the rule: ")
    assert shown.low is not None
    assert shown.low > 0
    assert (shown.people, shown.seeds) == (50, 20)


def test_of_fewer_people_than_the_protocol_asks_for_nothing_is_claimed() -> None:
    least = protocol()["verdicts"]["least_people"]
    assert f"fewer than {least} people" in RULE
    for number, found in ((1, CANNOT_TELL), (least - 1, CANNOT_TELL), (least, HELD)):
        sure = People({"x": np.linspace(1, 1.01, number)})
        assert sure.verdict(lambda means: means["x"], "").value == found


def test_a_share_lies_between_none_and_all() -> None:
    rare = People({"x": np.array([0, 0, 0, 0, 0, 0.3])})
    value, low, high = rare.interval(lambda means: means["x"])
    assert low < 0 < value < high
    assert rare.mean("x", ".0%", share=True).low == 0
    often = People({"x": 1 - rare.columns["x"]})
    assert often.mean("x", ".0%", share=True).high == 1
    assert often.mean("x", ".0%").high > 1  # type: ignore[operator]


def test_people_count_equally_or_by_their_steps() -> None:
    means, counts = by_person(np.array([1.0, 1.0, 1.0, 5.0]), ["a", "a", "a", "b"])
    assert People({"x": means}).interval(lambda m: m["x"])[0] == 3.0
    assert People({"x": means}, counts).interval(lambda m: m["x"])[0] == 2.0


def test_a_tie_is_a_tie() -> None:
    """Nothing is claimed of a difference that is zero for everybody, and nothing by chance."""
    same = People({"x": np.zeros(20)})
    assert same.verdict(lambda means: means["x"], "").value == CANNOT_TELL


def test_people_must_have_one_figure_each() -> None:
    for columns in ({}, {"a": np.zeros(0)}, {"a": np.zeros(2), "b": np.zeros(3)}):
        with pytest.raises(ArgumentError, match="columns must have one figure for each person"):
            People(columns)


# Oracle


@pytest.mark.parametrize("people", [5, 8, 11, 32, 100])
@pytest.mark.parametrize("figure", FIGURES)
def test_intervals_hold_the_truth_about_as_often_as_they_say(figure: str, people: int) -> None:
    """Of lognormal people whose standard deviation is half of their mean, as distances here are."""
    found = Holding(figure, people, "0.5", SAMPLES).measure(None)["holds"]  # type: ignore[arg-type]
    # Asked for are 95%, and at most 3 points are given away to skewness. Four standard errors of
    # a share of 95% among 2,000 are 1.9 points.
    assert found > 0.92 - 4 * (0.95 * 0.05 / SAMPLES) ** 0.5
    assert found < 1


def test_skewness_is_corrected_for() -> None:
    """Of people who are very unlike each other; Student's t alone holds 88% here."""
    found = Holding("mean", 32, "1", SAMPLES).measure(None)["holds"]  # type: ignore[arg-type]
    # Four standard errors of a share of 93% among 2,000 are 2.3 points.
    assert found > 0.93 - 4 * (0.93 * 0.07 / SAMPLES) ** 0.5


def test_drawing_people_again_held_the_truth_too_seldom() -> None:
    """The way before, which the threshold above must refuse."""
    rng, people = np.random.default_rng(1), 5
    rows = rng.lognormal(0, 0.5, (SAMPLES, people))
    drawn = rng.integers(0, people, (500, people))
    low, high = np.quantile(rows[:, drawn].mean(axis=2), [0.025, 0.975], axis=1)
    truth = np.exp(0.5**2 / 2)
    assert ((low <= truth) & (truth <= high)).mean() < 0.92 - 4 * (0.95 * 0.05 / SAMPLES) ** 0.5


def test_without_skewness_an_interval_is_student_s() -> None:
    column = np.array([1.0, 2, 4, 6, 7])
    low, high = People({"x": column}).interval(lambda means: means["x"])[1:]
    # From a table: 2.776 standard errors of the mean of five, 4 +- 2.776 * sqrt(6.5 / 5).
    assert (low, high) == pytest.approx((4 - 3.1656, 4 + 3.1656), abs=1e-3)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=40))
def test_an_interval_holds_its_figure_and_grows_with_the_level(column: list[float]) -> None:
    rows = np.array(column)
    without = (rows.sum() - rows) / (len(rows) - 1)
    ends = [interval_of(rows.mean(), without, level) for level in (0.8, 0.95)]
    assert ends[1][0] <= ends[0][0] <= rows.mean() <= ends[0][1] <= ends[1][1]
    turned = interval_of(-rows.mean(), -without, 0.95)
    np.testing.assert_allclose([-turned[1], -turned[0]], ends[1], rtol=1e-6, atol=1e-9)


def test_one_who_is_unlike_all_others_does_not_make_an_end_run_away() -> None:
    column = np.append(np.linspace(19, 21, 19), 2)
    value, low, high = People({"x": column}).interval(lambda means: means["x"])
    error = column.std(ddof=1) / 20**0.5
    assert value - low == pytest.approx(2 * 2.093 * error, rel=1e-3)
    assert high - value == pytest.approx(2.093 * error, rel=1e-3)


def test_a_median_s_interval_is_among_the_figures() -> None:
    rows = np.random.default_rng(3).lognormal(0, 1, (20, 25))
    middle, low, high = median_of(rows)
    assert middle == np.median(rows)
    assert {low, high} <= set(rows.ravel().tolist())
    assert low < middle < high
    assert median_of(np.zeros((4, 9))) == (0, 0, 0)


@pytest.mark.parametrize("policy", ["distance", "one_step"])
def test_a_course_without_draws_is_what_every_stream_of_releases_goes_through(
    city: Workload, policy: str
) -> None:
    radius = city.radius if policy == "distance" else ""
    exact = Course(policy, ("0.5", "1"), radius).measure(city)
    for epsilon in ("0.5", "1"):
        drawn = measure(city, Task(policy, epsilon=epsilon, radius=radius))
        np.testing.assert_array_equal(exact["possible"], drawn["possible"])
        np.testing.assert_array_equal(exact["stand_in"], drawn["stand_in"])
        known = exact["stand_in"] == 0
        np.testing.assert_array_equal(exact["hidden"][known], drawn["hidden"][known])
        assert not exact["hidden"][~known].any()
        # 36 draws of a law whose spread is below its mean: four standard errors are two thirds.
        expected = exact[f"error_{epsilon}"].mean()
        assert drawn["error"].mean() == pytest.approx(expected, rel=0.67)


def test_a_truth_outside_the_possible_set_has_no_protection(city: Workload) -> None:
    """Everybody else stays at the first state's neighbours, and one goes far away."""
    walk = city.sequences[0]
    here = np.array([walk.states[0], walk.states[0] + 1] * 5)
    far = (int(walk.states[0]) + city.query.n_states // 2) % city.query.n_states
    gone = replace(walk, states=np.append(walk.states[0], np.full(3, far)))
    others = replace(walk, person="others", times=np.arange(10), states=here)
    workload = replace(city, trips=[others], sequences=[gone])
    found = Course("distance", ("1",), city.radius).measure(workload)
    assert found["stand_in"].all()
    assert not found["hidden"].any()
    apart = city.query.values[far] - city.query.values[here[:2]]
    # An answer about somewhere else is off by at least how far that is, on average.
    assert (found["error_1"] >= 0.9 * np.linalg.norm(apart, axis=1).min()).all()


def test_the_error_of_an_answer_about_a_stand_in_grows_with_its_distance(city: Workload) -> None:
    plan = Plan(PolicyGraph.within_distance(city.query, city.radius), city.query)
    mechanism = plan.at(np.ones(city.query.n_states, dtype=bool)).mechanism(Fraction(1))
    errors = ExpectedErrors(SeededRandomness(np.random.default_rng(0)))
    none, near, far = (errors.of(mechanism, np.array([x, 0]), 0) for x in (0, 100, 1000))
    assert none == mean_noise(mechanism)
    assert none < near < far
    assert far == pytest.approx(10, rel=0.1)
    assert errors.of(mechanism, np.array([100, 0]), 0) == near


def test_draws_of_the_location_set_differ_by_seed_and_repeat(city: Workload) -> None:
    one, again = Drawn((0, 1), limit=1).measure(city), Drawn((1,), limit=1).measure(city)
    assert one["error"].shape == (2, 1, city.steps)
    np.testing.assert_array_equal(one["error"][1], again["error"][0])
    assert (one["error"][0] != one["error"][1]).any()
    assert (one["hidden"][one["stand_in"] == 1] == 0).all()


def test_times_are_of_the_public_half_and_of_a_whole_release(city: Workload) -> None:
    found = Timed("distance", city.radius, limit=1).measure(city)
    assert set(found) == {"anew", "shipped"}
    assert found["anew"].shape == (1, city.steps)
    assert found["anew"].sum() > 0


# Studies


def test_every_claim_gets_a_verdict_with_its_rule(city: Workload, tmp_path: Path) -> None:
    study = claims_study("city", quick=True)
    *_, result = run_study(tmp_path, study, lambda name: city, workers=1)
    assert isinstance(result, Result)
    table = result.table("claims")
    assert len(table.rows) == 19
    for text, verdict, found, rule in table.rows:
        assert text
        assert verdict in (HELD, DID_NOT_HOLD, CANNOT_TELL)
        assert found
        assert rule
    assert result.value("hidden.distance").low is not None
    assert result.value("hidden.distance").seeds is None
    assert result.value("hidden.location_set").seeds == 2
    worst, mean = result.value("worst.error.distance"), result.value("error.distance")
    assert float(worst.value) >= float(mean.value)
    assert "whole 95% interval" in str(result.settings["rule"])
    assert "processors" in (result.machine or {})


def test_the_clock_s_study_has_a_row_for_every_clock(city: Workload, tmp_path: Path) -> None:
    study = clock_study(quick=True)
    names = dict.fromkeys(name for name, _ in study.parts)
    assert list(names) == ["geolife-5s", "geolife-60s"]

    def load(name: str) -> Workload:
        return replace(city, name=name)

    *_, result = run_study(tmp_path, study, load, workers=1)
    assert isinstance(result, Result)
    for table in ("figures", "verdicts", "worst"):
        assert [row[0] for row in result.table(table).rows] == ["5 s", "60 s"]
    assert result.value("5s.verdict.higher").value in (HELD, DID_NOT_HOLD, CANNOT_TELL)


def test_the_protocol_s_clocks_reach_from_seconds_to_minutes() -> None:
    clock = protocol()["clock"]
    assert min(clock["seconds"]) == 2
    assert max(clock["seconds"]) == 600
    assert len(clock["seconds"]) == len(clock["steps"])
    assert protocol()["geolife"]["paper_clock"] in clock["seconds"]


def test_a_claim_that_is_wrong_is_not_called_held(city: Workload) -> None:
    """The same figures for all three policies: nothing is larger, and nothing is certain."""
    # Of six people: fewer would not be enough for any verdict.
    city = replace(
        city, sequences=[replace(city.sequences[0], person=f"p{number}") for number in range(6)]
    )
    study = claims_study("city", quick=True)
    shape = (len(city.sequences), city.steps)
    found = {}
    for _, task in study.parts:
        if isinstance(task, Course):
            parts = {f"error_{e}": np.full(shape, 2.0) for e in task.epsilons}
        elif isinstance(task, Drawn):
            lead = (len(task.seeds), *shape)[1 if task.limit == 0 else 0 :]
            parts = {"error": np.full(lead, 2.0)}
        else:
            found[task] = {name: np.full((6, city.steps), 0.001) for name in ("anew", "shipped")}
            continue
        size = parts[next(iter(parts))].shape
        found[task] = parts | {name: np.full(size, 5.0) for name in ("hidden", "possible")}
        found[task] |= {"stand_in": np.zeros(size)}
    claims = {claim.key: claim for claim in Observed(city, found, True).claims()}
    verdicts = {key: claim.people.verdict(claim.margin, "").value for key, claim in claims.items()}
    unsure = ("largest", "higher", "lower", "above", "radius.hidden", "radius.error")
    assert {verdicts[key] for key in unsure} == {CANNOT_TELL}
    assert verdicts["about"] == DID_NOT_HOLD
    assert verdicts["little"] == HELD
    assert verdicts["time.distance"] == CANNOT_TELL
