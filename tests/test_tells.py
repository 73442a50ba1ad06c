"""What a long stream tells, in words that need no mathematics, and each with its condition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Clock,
    MarkovModel,
    MemoryBook,
    Plan,
    Policy,
    PolicyGraph,
    Query,
    Scenario,
    Schedule,
    SeededRandomness,
    States,
    Stream,
    TimeVaryingModel,
    Whereabouts,
    realised_leakage,
    whereabouts,
)
from dphmm.cost.tells import DELTA, linked_loss
from tests.paper import CATEGORIES, TRANSITION, VALUES

LINE = np.array([[0.0], [100.0], [200.0], [5000.0]])


def grid(side: int = 5, **options) -> Scenario:
    cells = np.array([(x, y) for x in range(side) for y in range(side)])
    near = np.abs(cells[:, None] - cells[None, :]).max(axis=2) <= 1
    walk = MarkovModel(near / near.sum(axis=1, keepdims=True), anywhere=0.01)
    policy = PolicyGraph.within_distance(Query(cells), 2)
    options = {"epsilon": "0.2", "clock": Clock("30 min")} | options
    return Scenario(cells, walk, policy, **options)


def uniform(n: int) -> MarkovModel:
    return MarkovModel(np.full((n, n), 1 / n))


def said(scenario: Scenario, steps: int) -> Stream:
    rng = np.random.default_rng(3)
    stream = scenario.stream("ann", time=0, randomness=SeededRandomness(rng))
    for state in rng.integers(len(scenario.states), size=steps).tolist():
        stream.release(state)
    return stream


# Paper


def test_the_running_example_is_told_of_states_because_it_has_no_places() -> None:
    plan = Plan(PolicyGraph.by_category(CATEGORIES), Query(VALUES))
    model = MarkovModel(TRANSITION, anywhere=0.01)
    stream = Stream(model, plan, epsilon=1, start=np.full(6, 1 / 6))
    stream.release(3)
    tells = stream.statement().tells
    assert not tells.whereabouts.has_places
    assert "names your state rightly with probability" in stream.statement().text()
    assert tells.linked == 1
    assert tells.linked_delta is None  # one answer has no chance to tell less


# Laws


def test_a_statement_says_what_linked_paths_lose_with_its_condition() -> None:
    statement = said(grid(), 48).statement()
    tells, text = statement.tells, statement.text()
    assert tells.linked == statement.spent == Fraction("9.6")
    assert 0 < tells.linked_delta < tells.linked
    assert "Two paths that are equal or linked at every time" in text
    assert (
        "The same for the chance of any conclusion from all answers, if times and prices were not "
        "chosen after earlier ones" in text
    )
    assert tells.delta == DELTA
    assert "an upper bound" in text
    assert np.log(tells.realised) <= tells.leakage.linked


def test_a_shaped_noise_has_the_sum_alone() -> None:
    tells = said(grid(delta="0.1"), 12).statement().tells
    assert tells.linked == Fraction("2.4")
    assert tells.linked_delta is None
    assert tells.leakage is None


def test_times_that_follow_the_belief_leave_the_sum_alone() -> None:
    when = Schedule(error="0.01")
    tells = said(grid(when=when), 12).statement().tells
    assert tells.linked == Fraction("2.4")
    assert tells.linked_delta is None
    assert said(grid(when=Schedule(every=1)), 12).statement().tells.linked_delta is not None


def test_answers_that_are_rare_count_with_their_price_alone() -> None:
    stream = said(grid(), 16)
    answers = [(one.step, one.epsilon) for one in stream.said]
    often = linked_loss(answers)
    rare = linked_loss([(step, Fraction(n, 100)) for n, (step, _) in enumerate(answers, 1)])
    assert often.total == Fraction("3.2")
    assert rare.total == Fraction(sum(range(1, 17)), 100)
    assert linked_loss([]) is None


def test_places_are_told_for_parts_of_the_day_and_home_for_the_nights() -> None:
    statement = said(grid(clock=Clock("30 min", zone="Asia/Shanghai")), 48).statement()
    near = statement.tells.whereabouts
    assert [when for when, _ in near.radii] == [
        "at night",
        "in the morning",
        "in the afternoon",
        "in the evening",
    ]
    assert near.home is not None
    assert near.zone == ""
    assert "taking it that you spend your nights at one place" in statement.text()
    in_utc = said(grid(), 48).statement().tells.whereabouts
    assert "(hours in UTC)" in in_utc.text()


def test_without_dates_there_is_no_night() -> None:
    near = said(grid(clock=Clock()), 10).statement().tells.whereabouts
    assert [when for when, _ in near.radii] == [""]
    assert near.home is None


def test_degrees_are_told_in_metres() -> None:
    latitudes = 39.9 + np.arange(4) / 100
    states = States(
        tuple("abcd"), {"latitude": latitudes, "longitude": np.full(4, 116.4)}, source="cells"
    )
    model = MarkovModel(np.full((4, 4), 0.25))
    scenario = Scenario(states, model, PolicyGraph.complete(4), epsilon="0.1")
    near = said(scenario, 2).statement().tells.whereabouts
    assert near.unit == "m"
    assert 500 < near.before < 600
    assert " m" in near.text()


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), st.integers(1, 3))
def test_a_radius_holds_half_of_the_belief(weights, steps) -> None:
    belief = np.array(weights) / sum(weights)
    near = whereabouts([belief] * steps, [belief] * steps, LINE)
    ((_, radius),) = near.radii
    # An interval that long, from some state on, holds half of it.
    spans = [np.abs(LINE - left - radius) <= radius + 1e-9 for left in LINE]
    assert max(float(belief @ span[:, 0]) for span in spans) >= 0.5 - 1e-9
    assert near.before == radius


@given(st.integers(1, 3), st.sampled_from([4, 70, 700]), st.integers(0, 10**6), st.booleans())
def test_a_radius_is_that_of_sorting_every_state(steps, count, seed, is_even) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 30, (count, 2)).astype(float)
    weights = (
        rng.integers(1, 4, (steps, count)) if is_even else rng.gamma(0.05, size=(steps, count))
    )
    beliefs = (weights + 1e-9) / (weights + 1e-9).sum(axis=1, keepdims=True)
    near = whereabouts(beliefs, beliefs, points)
    assert near.before == radius_by_sorting(beliefs, points)


def radius_by_sorting(beliefs, points) -> float:
    """Around the best of two means and three likeliest states, with nothing left unsorted."""
    distances = []
    for belief in beliefs:
        order = np.argsort(-belief, kind="stable")
        half = order[: np.searchsorted(np.cumsum(belief[order]), 0.5) + 1]
        centres = [belief @ points, points[half].mean(axis=0), *points[order[:3]]]
        apart = [np.sqrt(((points - centre) ** 2).sum(axis=1)) for centre in centres]
        distances.append(min(apart, key=lambda row: half_within(row**2, belief)))
    return half_within(np.concatenate(distances), beliefs.ravel())


def half_within(distances, weights) -> float:
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(weights[order])
    return float(distances[order[np.searchsorted(reached, reached[-1] / 2 * (1 - 1e-12))]])


def test_a_sentence_never_rounds_somebody_into_safety() -> None:
    near = Whereabouts((("at night", 859.0),), 12_345.0, 309.0, 0.5, 0.1, unit="m")
    assert "within 850 m at night" in near.text()
    assert "that place to ±300 m" in near.text()
    assert "without the answers within 12 km" in near.text()
    certain = Whereabouts((("at night", 0.0),), 1.0, 0.0, 1.0, 0.1)
    assert "within one place of the map at night" in certain.text()
    assert "that place exactly" in certain.text()


def test_wrong_beliefs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="beliefs must have the shape of prior"):
        whereabouts([[0.5, 0.5]], [[1.0, 0.0, 0.0]], None)
    with pytest.raises(ArgumentError, match="places must have a row for each of 2 states"):
        whereabouts([[0.5, 0.5]], [[0.5, 0.5]], LINE)


# Oracle


def test_home_is_the_place_that_all_nights_speak_for() -> None:
    prior = np.full((4, 4), 0.25)
    heard = [np.log([0.4, 0.3, 0.2, 0.1])] * 3 + [np.log([0.1, 0.1, 0.1, 0.7])]
    near = whereabouts(prior, prior, LINE, hours=[0, 1, 2, 12], heard=heard)
    product = np.array([0.4, 0.3, 0.2, 0.1]) ** 3
    share = product / product.sum()  # 0.64, 0.27, 0.08, 0.01: the first place has half
    assert share[0] > 0.5
    assert near.home == 0.0
    less = whereabouts(prior, prior, LINE, hours=[0, 1, 2, 12], heard=[heard[0], None, None, None])
    assert less.home == 50.0


def test_a_statement_says_what_was_spent_on_a_person_besides() -> None:
    """Two questions in one book: of each instant the two together tell twice as much."""
    places = States.on_plane([[0, 0], [300, 0], [0, 400]], labels=["home", "work", "park"])
    model, book = MarkovModel(np.full((3, 3), 1 / 3)), MemoryBook()
    where, again = (
        Scenario(
            places, model, Policy(complete=True), epsilon=1, query=name, limit="24 per 10 steps"
        )
        for name in ("where", "again")
    )
    alone = where.stream("ann", book=book, time=0)
    alone.release("work")
    assert alone.statement().besides == 0
    again.stream("ann", book=book, time=0).release("work")
    statement = where.stream("ann", book=book).statement()
    assert statement.spent == statement.besides == 1
    lines = statement.text().splitlines()
    assert "1 in all" not in lines[0]
    assert "epsilon 1 was spent on this person besides, which nothing here counts" in lines[0]
    limits = [line for line in lines if "at most" in line and "releases" not in line][1:]
    assert len(limits) >= 6
    assert all("by these answers alone" in line for line in limits)
    assert statement.plain()["condition"] == "by these answers alone"


def test_a_stream_that_is_open_learns_of_what_is_spent_besides_meanwhile() -> None:
    """What a book's stream says is true when it says it, whoever else was asked since."""
    book = MemoryBook()
    where, again = (
        Scenario([[0], [1], [2]], uniform(3), Policy(complete=True), epsilon=1, query=name)
        for name in ("where", "again")
    )
    stream = where.stream("ann", book=book)
    stream.release(0)
    assert "epsilon 1 in all" in stream.statement().text()
    again.stream("ann", book=book).release(0)
    assert stream.statement().besides == stream.statement().spent == 1
    assert stream.ledger.spent == 2
    stream.release(1)
    assert (stream.statement().spent, stream.ledger.spent) == (2, 3)


def test_what_was_spent_before_is_a_condition_of_every_sentence() -> None:
    """Three answers before and one since: the path of all four loses 4, not 1."""
    plan = Plan(PolicyGraph.complete(3), Query([0, 1, 2]))
    first = Stream(uniform(3), plan, epsilon=1, start=[1 / 3] * 3)
    for _ in range(3):
        first.release(0)
    stream = Stream.resume(first.standing, uniform(3), plan, epsilon=1, start=[1 / 3] * 3)
    stream.release(1)
    lines = stream.statement().text().splitlines()
    assert "epsilon 3 was spent before" in lines[0]
    limits = [line for line in lines if "at most" in line]
    assert len(limits) >= 6
    assert all("by these answers alone" in line for line in limits)
    assert "who knew what was said before" in stream.statement().text()


def test_moments_after_the_last_answer_are_not_spoken_of() -> None:
    """The ends of a line come together afterwards in two linked states, which then lose more."""
    everywhere, meet = uniform(4), np.eye(4)[[0, 2, 2, 1]]
    model = TimeVaryingModel([MarkovModel(meet), everywhere])
    plan = Plan(PolicyGraph(4, [(0, 1), (1, 2), (2, 3)]), Query([0, 1, 2, 3]))
    stream = Stream(model, plan, epsilon=1, start=[0.25] * 4)
    stream.repeat([-9])
    statement = stream.statement()
    assert statement.tells is not None
    assert statement.tells.leakage is not None
    told = statement.tells.leakage.linked
    assert told is not None
    stream.skip()
    before = model.filter([None] * 2, start=stream.start)
    after = model.smooth(stream.observations(), start=stream.start)
    assert realised_leakage(before, after, plan.policy) > 2 * told
    for line in statement.text().splitlines():
        if " moment " in line and "Where you were" not in line:
            assert "from the first" in line
            assert "to the last" in line
        assert "at no time," not in line


def test_a_guess_is_never_called_certain() -> None:
    near = whereabouts([[0.9996, 0.0004]], [[0.5, 0.5]], None)
    assert "rightly with probability more than 99% on average" in near.text()
    assert "without the answers 50%" in near.text()


def test_a_part_of_the_answers_says_so_of_its_windows_too() -> None:
    """What was said before counts in the same windows, and nothing here counts it."""
    statement = said(grid(limit="1 per 4 steps"), 3).statement()
    assert statement.prices == "0.2 at an instant, 0.6 at most in any 4 steps, 0.6 in all"
    part = replace(statement, before=Fraction(1))
    alone = statement.prices.replace("in all", "together")
    assert part.prices == f"{alone}, by these answers alone"
