"""How to spend a budget: what is compared, what is recommended, and whether it is true."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    BudgetDesign,
    Clock,
    Limit,
    MarkovModel,
    Policy,
    PolicyGraph,
    Scenario,
    Schedule,
    SeededRandomness,
    Spending,
    TimeVaryingModel,
    find_budget,
    find_schedule,
)
from dphmm.cost.limit import Window
from dphmm.demo import (
    HELD_OUT,
    MOST_PEOPLE,
    STEP_MINUTES,
    TEACHERS,
    demo_city,
    demo_scenario,
)
from dphmm.geometry.exact import as_text
from dphmm.scenario.spending import Person, intervals, schedule_of, spend
from tests.scenarios import FEWER, is_one_line, run, scenarios, trips, written

WORSE = 2.5
"""Speaking at every step errs at least so many times as much as the best way, at 24 a day."""

CLOSE = 0.25
"""What is expected on tracks is so near, in parts of itself, to what others get."""

DAY = 24 * 60 // STEP_MINUTES
STEPS = "2 per 12 steps"


def line(n_states: int = 6, **changes: object) -> Scenario:
    """States on a line, of which neighbours must look alike."""
    moves = np.eye(n_states) * 0.8
    moves += 0.1 * (np.eye(n_states, k=1) + np.eye(n_states, k=-1))
    moves /= moves.sum(axis=1, keepdims=True)
    edges = [[state, state + 1] for state in range(n_states - 1)]
    places = [[10.0 * state] for state in range(n_states)]
    options = {"epsilon": 1, "start": "uniform"} | changes
    return Scenario(places, MarkovModel(moves), PolicyGraph(n_states, edges), **options)


# Paper: it releases at every step; budgets, schedules and their errors are ours.


# Laws


@given(width=st.integers(1, 3000))
def test_intervals_begin_with_every_step_and_waste_little(width: int) -> None:
    found = list(intervals(width))
    assert found[0] == 1
    assert found == sorted(set(found))
    assert found[-1] <= width
    for every in found:
        answers = schedule_of(every).most_in(width)
        assert answers == -(-width // every)
        assert every == 1 or schedule_of(every - 1).most_in(width) > answers


@FEWER
@given(scenario=scenarios(), amount=st.fractions("1/50", 40), width=st.integers(1, 9))
def test_what_is_adopted_is_never_refused_by_its_own_limit(
    scenario: Scenario, amount: Fraction, width: int
) -> None:
    budget = Limit(None, (Window(amount, width),))
    found = find_schedule(scenario, budget, people=1)
    for way in found.ways:
        assert schedule_of(way.every).most_in(width) * way.epsilon <= amount
        assert min(way.now, way.hindsight, way.adversary) >= 0
    chosen = found.adopt(scenario)
    assert chosen.settings.mechanism == found.best.mechanism
    assert chosen.settings.limit is not None
    assert chosen.settings.limit.windows == budget.windows
    stream = chosen.stream("ann", randomness=SeededRandomness(np.random.default_rng(0)))
    for _ in range(2 * width + 1):
        stream.release(0)


def test_the_same_seed_finds_the_same() -> None:
    one, two, other = (find_schedule(line(), STEPS, people=2, seed=seed) for seed in (3, 3, 4))
    assert one == two != other


def test_a_budget_that_is_larger_is_worth_more() -> None:
    small, large = (find_schedule(line(), f"{k} per 12 steps", people=6) for k in (1, 30))
    assert large.error(large.best) < small.error(small.best)
    assert large.best.adversary <= small.best.adversary


def test_the_budget_found_keeps_the_error_and_the_next_smaller_does_not() -> None:
    found = find_budget(line(), 6, "12 steps", people=3)
    assert found is not None
    assert found.error(found.best) <= 6
    amounts = [amount for amount, _, _ in found.tried]
    assert amounts == sorted(amounts)
    place = amounts.index(found.budget.windows[0].amount)
    assert all(error > 6 for _, _, error in found.tried[:place])
    assert 1 < amounts[place] / amounts[place - 1] < 1.4, "the next smaller one"
    assert found.tried[place][2] == found.error(found.best)
    assert found.adopt(line()).settings.limit == found.budget
    assert find_budget(line(), "0.000001", "12 steps", people=2, estimate="mean") is None


def test_each_budget_that_is_tried_is_spent_as_well_as_it_can_be() -> None:
    """At the least budgets no way helps, so their best interval says nothing about others."""
    found = find_budget(line(20), 8, "24 steps", people=3)
    assert found is not None
    for amount, way, error in found.tried:
        alone = find_schedule(line(20), f"{as_text(amount)} per 24 steps", people=3)
        # Only the intervals around the best one are tried, which is as good as all.
        assert error <= 1.05 * alone.error(alone.best), amount
        assert way in alone.ways or way.estimate == "median", amount


def test_a_budget_is_found_without_following_many_people() -> None:
    followed: list[int] = []
    found = find_budget(line(20), 8, "24 steps", people=12, done=followed.append)
    assert found is not None
    # Bisection over some fifty budgets takes six; everybody, all intervals and both noises each.
    assert sum(followed) < 4 * 12 * 2 * len(list(intervals(24)))


def test_an_error_that_is_always_kept_needs_the_least_budget() -> None:
    found = find_budget(line(), 1000, "12 steps", people=2)
    assert found is not None
    assert found.budget.windows[0].amount == Fraction(1, 100)


def test_a_total_limit_outlives_the_design() -> None:
    found = find_schedule(line(), STEPS, people=2)
    assert str(found.adopt(line(limit=50)).settings.limit) == "2 per 12 steps, 50 in all"
    assert str(found.adopt(line(limit="9 per 3 steps")).settings.limit) == STEPS


def test_k_norm_noise_is_recommended_where_it_is_nearly_as_close() -> None:
    plain = Spending(1, Fraction(1), "knorm", "mean", 9.0, 100.0, 1.0, 5.0)
    sharp = replace(plain, mechanism="staircase", hindsight=99.0, adversary=1.0)
    design = BudgetDesign(Limit.read(STEPS), (plain, sharp), "hindsight", 2, simulated=True)
    assert design.best == plain
    assert replace(design, ways=(plain, replace(sharp, hindsight=90.0))).best.hindsight == 90.0
    assert replace(design, ways=(sharp,)).best == sharp


def test_what_is_expected_is_evened_out_with_the_intervals_beside_it() -> None:
    ways = [
        Spending(every, Fraction(every), "knorm", "mean", 9.0, error, 1.0, 5.0)
        for every, error in ((1, 400.0), (2, 100.0), (4, 25.0), (8, 100.0))
    ]
    other = replace(ways[2], estimate="median", hindsight=20.0)
    found = BudgetDesign(Limit.read(STEPS), (*ways, other), "hindsight", 2, simulated=True)
    expected = [found.error(way) for way in (*ways, other)]
    assert expected == pytest.approx([400, 100, 50, 100, 40], rel=1e-12)
    assert found.best == other


def test_the_error_that_counts_is_the_one_asked_for() -> None:
    late, now = (
        find_schedule(line(), STEPS, people=3, error_of=one) for one in ("hindsight", "now")
    )
    assert late.measured(late.best) == late.best.hindsight
    assert now.measured(now.best) == now.best.now
    assert {way.estimate for way in now.ways} == {"mean", "median"}
    fixed = find_schedule(line(), STEPS, people=3, estimate="median", mechanisms=["laplace"])
    assert {(way.estimate, way.mechanism) for way in fixed.ways} == {("median", "laplace")}


# Strange scenarios and budgets


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("0 per 1 day", "budget must be positive"),
        ("24", "budget must have one window"),
        ("24 per 1 day, 100 in all", "budget must have one window"),
        ("24 per 1 day, 3 per 1 hour", "budget must have one window"),
        ("24 per 3 minutes", "budget must have windows of whole steps"),
        ("24 per fortnight", "budget must be like"),
        ("-3 per 1 day", "budget must be positive"),
        ("lots per 1 day", "budget must be"),
    ],
)
def test_a_budget_that_is_none_is_refused(budget: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        find_schedule(line(clock=Clock("5 min")), budget, people=1)


def test_a_budget_of_days_needs_a_clock_of_dates() -> None:
    with pytest.raises(ArgumentError, match="budget must count its windows in steps"):
        find_schedule(line(), "24 per 1 day")
    with pytest.raises(ArgumentError, match="per must count its windows in steps"):
        find_budget(line(), 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"people": 0}, "people must be at least 1"),
        ({"mechanisms": []}, "mechanisms must name at least one"),
        ({"mechanisms": ["gauss"]}, "each of mechanisms must be"),
        ({"error_of": "then"}, "error_of must be"),
        ({"estimate": "mode"}, "estimate must be"),
        ({"tracks": []}, "tracks must hold at least one person"),
        ({"tracks": [([], [])]}, "tracks must hold at least one person"),
        ({"tracks": [([1, 2], [0])]}, "tracks must be pairs"),
        ({"tracks": [([1], [6])]}, r"tracks must name states 0\.\.5$"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        find_schedule(line(), STEPS, **options)


def test_tiny_and_huge_budgets_have_a_best_way() -> None:
    for budget in ("0.000001 per 12 steps", "100000 per 12 steps"):
        found = find_schedule(line(), budget, people=2)
        assert np.isfinite(found.error(found.best))
    assert found.best.hindsight < 1


def test_somebody_in_the_only_state_is_never_missed() -> None:
    alone = Scenario([[0.0, 0.0]], MarkovModel([[1.0]]), PolicyGraph(1, []), epsilon=1)
    found = find_schedule(alone, STEPS, people=2)
    assert {(way.now, way.hindsight, way.adversary) for way in found.ways} == {(0, 0, 0)}


def test_chains_that_change_with_time_and_answers_that_are_no_places() -> None:
    plain = line()
    turns = TimeVaryingModel([plain.model.at(1), MarkovModel(np.full((6, 6), 1 / 6))])
    ages = Scenario(plain.states, turns, PolicyGraph.complete(6), epsilon=1, columns=plain.columns)
    assert find_schedule(ages, STEPS, people=2).best.hindsight > 0


def test_rows_in_any_order_with_gaps_are_followed_at_their_slots() -> None:
    tracks = [([40, 3, 3, 9], [1, 2, 5, 2]), ([7], [0])]
    found = find_schedule(line(), STEPS, tracks=tracks, people=9)
    assert (found.people, found.simulated) == (2, False)
    assert found.whom == "2 people of the tracks given"


# The command


def test_design_prints_a_table_and_writes_a_page_and_a_scenario(tmp_path: Path) -> None:
    path = written(tmp_path, unit="m", policy=Policy(complete=True), start="uniform")
    (tmp_path / "public.csv").write_text(trips(*(("ann", 1 + k, 1 + k % 6) for k in range(30))))
    words = ("design", path, "--find", "schedule", "--budget", STEPS, "--people", 2)
    other = tmp_path / "there" / "best.toml"
    result = run(*words, "--plot", tmp_path / "curve.html", "-o", other)
    assert result.exit_code == 0, result.stderr
    assert "tried on 2 simulated people; mean distances in m" in result.stdout
    assert "recommended" in result.stdout
    assert "Expected on 2 simulated people" in result.stdout
    page = (tmp_path / "curve.html").read_text()
    assert "<polyline" in page
    assert "simulated people" in page
    chosen = Scenario.load(other).settings
    assert str(chosen.limit) == STEPS
    assert chosen.when is not None
    assert "mechanism = " in other.read_text()
    before = (tmp_path / "model.npz").read_bytes()
    beside = tmp_path / "best.toml"
    told = run(*words, "--trips", tmp_path / "public.csv", "-o", beside, "--json")
    facts = json.loads(told.stdout)
    assert facts["expected_on"] == "1 people of the tracks given"
    assert (facts["budget"], facts["unit"]) == (STEPS, "m")
    assert Scenario.load(beside).settings.epsilon == Fraction(facts["best"]["epsilon"])
    assert (tmp_path / "model.npz").read_bytes() == before


def test_design_finds_a_budget_or_says_that_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "line.toml"
    line().save(path)
    words = ("design", path, "--find", "budget", "--people", 2, "--per", "12 steps")
    found = json.loads(run(*words, "--error", 8, "--json").stdout)
    assert found["expected"] <= 8
    assert found["tried"]
    none = run(*words, "--error", "0.000001", "--estimate", "mean")
    assert (none.exit_code, none.stdout) == (1, "No budget meets the wish.\n")


def test_a_scenario_that_answers_gaps_still_does_and_is_tried_so() -> None:
    town, steps = line(when=Schedule(gaps="answer")), "60 per 12 steps"
    gap = [([*range(12), *range(24, 36)], [0] * 24)]
    silent = find_schedule(line(), steps, tracks=gap, error_of="now")
    told = find_schedule(town, steps, tracks=gap, error_of="now")
    assert told.adopt(town).settings.when == replace(schedule_of(told.best.every), gaps="answer")
    assert told.ways[0].now < silent.ways[0].now


@pytest.mark.parametrize(
    "words",
    [
        ("--find", "schedule"),
        ("--find", "schedule", "--budget", STEPS, "--error", "3"),
        ("--find", "schedule", "--budget", STEPS, "--per", "3 steps"),
        ("--find", "schedule", "--budget", STEPS, "--protection", "3"),
        ("--find", "budget", "--budget", STEPS),
        ("--find", "budget", "--error", "3"),
        ("--find", "epsilon", "--error", "3", "--budget", STEPS),
        ("--find", "schedule", "--budget", "0 per 1 day"),
        ("--find", "schedule", "--budget", "1 per 1 day"),
        ("--find", "budget", "--error", "0", "--per", "3 steps"),
    ],
)
def test_wishes_that_do_not_go_together_get_one_line(tmp_path: Path, words: tuple[str]) -> None:
    result = run("design", written(tmp_path), *words)
    assert (result.exit_code, is_one_line(result.stderr)) == (2, True), result.output


def test_design_does_not_write_over_what_it_reads(tmp_path: Path) -> None:
    path = written(tmp_path)
    result = run("design", path, "--find", "schedule", "--budget", STEPS, "-o", path)
    assert (result.exit_code, is_one_line(result.stderr)) == (2, True)


# Oracle: the made-up city, whose people may be looked at


@pytest.fixture(scope="module")
def city() -> tuple[Scenario, list[Person], list[Person]]:
    """The demo's scenario, the public Monday of some whom it was not learned from, and others."""
    made = demo_city()
    slots = np.arange(DAY)
    public = [Person(slots, states[:DAY]) for states in made.states[-HELD_OUT:]]
    released = made.states[TEACHERS : TEACHERS + MOST_PEOPLE]
    others = [Person(DAY + slots, states[DAY:]) for states in released]
    return demo_scenario(made), public, others


def hindsight(
    scenario: Scenario,
    every: int,
    mechanism: str,
    people: list[Person],
    amount: Fraction | int = 24,
) -> float:
    window = Window(Fraction(amount), DAY)
    return spend(
        scenario, window, every, mechanism, "median", people, 1, lambda count: None
    ).hindsight


def test_two_hours_are_better_than_every_step_for_people_who_were_not_seen(
    city: tuple[Scenario, list[Person], list[Person]],
) -> None:
    scenario, public, others = city
    always, seldom = (hindsight(scenario, every, "staircase", others[:8]) for every in (1, 24))
    assert always >= WORSE * seldom
    # Of eight people the mean is not known to a quarter, so this is only a sanity check.
    assert hindsight(scenario, 24, "staircase", public[:8]) == pytest.approx(seldom, rel=0.5)


@pytest.mark.slow
def test_the_design_is_2_5_times_better_and_says_what_others_will_get(
    city: tuple[Scenario, list[Person], list[Person]],
) -> None:
    scenario, public, others = city
    found = find_schedule(scenario, "24 per 1 day", tracks=public, people=24)
    best = found.best
    measured = hindsight(scenario, best.every, best.mechanism, others[:80])
    assert found.error(best) == pytest.approx(measured, rel=CLOSE)
    assert hindsight(scenario, 1, best.mechanism, others[:80]) >= WORSE * measured


@pytest.mark.slow
def test_a_budget_for_a_city_is_found_and_says_what_others_will_get(
    city: tuple[Scenario, list[Person], list[Person]],
) -> None:
    scenario, public, others = city
    followed: list[int] = []
    found = find_budget(scenario, 500, tracks=public, people=24, done=followed.append)
    assert found is not None
    assert sum(followed) < 2000, "days; one takes a tenth of a second"
    best, (window,) = found.best, found.budget.windows
    measured = hindsight(scenario, best.every, best.mechanism, others[:80], window.amount)
    assert found.error(best) == pytest.approx(measured, rel=CLOSE)
