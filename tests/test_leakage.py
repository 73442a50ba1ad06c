"""What all answers together tell of one moment, over every path before and after it."""

from __future__ import annotations

from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dphmm import (
    ArgumentError,
    Belief,
    History,
    MarkovModel,
    Mechanism,
    Plan,
    PolicyGraph,
    Query,
    SensitivityHull,
    Stream,
    TooLargeError,
    kernels,
    paper_sequence_epsilon,
    realised_leakage,
    sensitivity_hull,
    temporal_leakage,
    worst_pair,
)
from dphmm.chain.stochastic import LEVEL
from dphmm.cost import leakage, small_chains
from dphmm.cost.moments import Rows
from tests.paper import CATEGORIES, TRANSITION, VALUES

CLOSE = 1e-9
STEP = SensitivityHull.from_vertices([[1]])


def brute_force(history: History, start: np.ndarray, beyond: int) -> float:
    """The largest loss over all sequences of answers in a window around the states."""
    query, steps = history.charges[0][0].query, len(history)
    model = history.models[0]
    moves = model.outgoing.toarray() + model.jumps[None, :]
    priors = [start @ np.linalg.matrix_power(moves, step + 1) for step in range(steps)]
    lowest, highest = query.points.min(axis=0) - beyond, query.points.max(axis=0) + beyond
    answers = list(product(*(range(a, b + 1) for a, b in zip(lowest, highest, strict=True))))
    seen = []
    for charges in history.charges:
        (charge,) = charges
        noise = Mechanism(query, charge.hull, charge.epsilon, charge.gamma)
        seen.append(np.exp([noise.lattice_log_likelihood(z) for z in answers]))
    worst = 0.0
    for moment in range(steps):
        here = priors[moment] > 0
        past, future = np.ones((1, len(here))), np.ones((1, len(here)))
        for step in range(moment):
            joint = priors[0] if step == 0 else past @ moves
            past = (np.atleast_2d(joint)[:, None, :] * seen[step]).reshape(-1, len(here))
        if moment:
            past = past @ moves
            past[:, here] /= priors[moment][here]
        for step in range(steps - 1, moment, -1):
            future = (future[:, None, :] * seen[step]).reshape(-1, len(here)) @ moves.T
        logs = [np.log(part[:, here]) for part in (past, seen[moment], future)]
        losses = sum((one[:, :, None] - one[:, None, :]).max(axis=0) for one in logs)
        worst = max(worst, float(np.max(losses)))
    return worst


@st.composite
def chains(draw, states=4, steps=4, answers=3, dimension=1):
    count, length = draw(st.integers(2, states)), draw(st.integers(1, steps))
    weight = st.sampled_from([0, 0, 1, 2, 5])
    rows = [[draw(weight) for _ in range(count)] for _ in range(count)]
    matrix = np.array([row if any(row) else [1] * count for row in rows], dtype=float)
    places = st.tuples(*[st.integers(0, answers)] * dimension)
    query = Query([draw(places) for _ in range(count)])
    model = MarkovModel(
        matrix / matrix.sum(axis=1, keepdims=True), anywhere=draw(st.sampled_from([0, 0.1]))
    )
    start = np.array([draw(st.integers(1, 4)) for _ in range(count)], dtype=float)
    prices = [draw(st.sampled_from(["0.3", "1"])) for _ in range(length)]
    return query, model, start / start.sum(), prices


def moments(history: History, start: np.ndarray) -> leakage.Moments:
    return leakage.Moments(history, Belief.known(start, len(start)))


# Paper


def test_the_running_example_tells_of_a_moment_what_the_page_says() -> None:
    query, model = Query(VALUES), MarkovModel(TRANSITION)
    policy = PolicyGraph.by_category(CATEGORIES)
    hull = sensitivity_hull(query, policy)
    start = np.full(6, 1 / 6)
    for steps, loss, linked in ((1, 1.0, 0.5), (2, 1.814779, 1.173691), (3, 2.407140, 1.756626)):
        history = History.of(query, model, [hull] * steps, "0.5", start=start)
        told = temporal_leakage(history, start=start, policy=policy)
        assert told.is_exact
        assert told.loss == pytest.approx(loss, abs=1e-6)
        assert told.linked == pytest.approx(linked, abs=1e-6)
        assert told.loss <= paper_sequence_epsilon(history) + CLOSE


def test_two_states_follow_the_recursion_of_cao_et_al() -> None:
    """One answer later adds log (q (e^a - 1) + 1) / (d (e^a - 1) + 1), q and d the rows' masses."""
    model = MarkovModel([[0.8, 0.2], [0.1, 0.9]])
    history = History.of(Query([0, 1]), model, [STEP] * 3, 1)
    grown = 0.0
    for _ in range(2):
        gain = np.expm1(grown + 1)
        grown = max(log((q * gain + 1) / (d * gain + 1)) for q, d in ((0.8, 0.1), (0.9, 0.2)))
    told = temporal_leakage(history, start=[0.5, 0.5], moment=0)
    assert told.loss == pytest.approx(1 + grown, rel=CLOSE)


# Laws


@given(chains())
def test_a_bound_is_no_less_than_what_some_answers_tell(world) -> None:
    query, model, start, prices = world
    history = History.of(query, model, [STEP] * len(prices), prices, start=start)
    exactly = temporal_leakage(history, start=start)
    bounded = max(table.max() for _, table in leakage._every(moments(history, start)))
    assert bounded >= exactly.loss - CLOSE
    assert bounded <= paper_sequence_epsilon(history) + 1e-6
    for moment in range(len(prices)):
        table = leakage._around(moments(history, start), moment, 1)
        assert table.max() >= temporal_leakage(history, start=start, moment=moment).loss - CLOSE


@given(chains(steps=1))
def test_one_release_tells_its_own_loss(world) -> None:
    query, model, start, prices = world
    history = History.of(query, model, [STEP], prices, start=start)
    possible = history.possible[0]
    own = float(worst_pair(query, STEP, prices[0], possible).epsilon)
    assert temporal_leakage(history, start=start).loss == pytest.approx(own, abs=CLOSE)
    (table,) = [table for _, table in leakage._every(moments(history, start))]
    assert table.max() == pytest.approx(own, abs=CLOSE)


def test_a_chain_that_forgets_passes_nothing_on_and_one_that_stays_passes_all() -> None:
    for stay, told in ((0.5, 1.0), (1.0, 3.0)):
        model = MarkovModel([[stay, 1 - stay], [1 - stay, stay]])
        history = History.of(Query([0, 1]), model, [STEP] * 3, 1)
        assert temporal_leakage(history, start=[0.5, 0.5]).loss == pytest.approx(told, abs=CLOSE)


def test_a_model_that_goes_anywhere_bounds_any_number_of_steps() -> None:
    grid = np.array([(x, y) for x in range(6) for y in range(6)])
    near = np.abs(grid[:, None] - grid[None, :]).max(axis=2) <= 1
    model = MarkovModel(near / near.sum(axis=1, keepdims=True), anywhere=0.05)
    query = Query(grid)
    policy = PolicyGraph.within_distance(query, 2)
    body = sensitivity_hull(query, policy)
    start = np.full(36, 1 / 36)
    bounds = []
    for steps in (10, 40):
        history = History.of(query, model, [body] * steps, 1, start=start)
        told = temporal_leakage(history, start=start, policy=policy)
        assert not told.is_exact
        assert told.linked <= told.loss < float(paper_sequence_epsilon(history))
        bounds.append(told.loss)
    assert bounds[1] == pytest.approx(bounds[0], rel=0.01)


def test_what_answers_really_told_is_no_more_than_the_bound() -> None:
    query, model = Query(VALUES), MarkovModel(TRANSITION, anywhere=0.1)
    policy = PolicyGraph.by_category(CATEGORIES)
    start = np.full(6, 1 / 6)
    stream = Stream(model, Plan(policy, query), epsilon="0.5", start=start)
    for state in (1, 2, 4):
        stream.release(state)
    steps = stream.said
    history = History.of(query, model, [one.step.body for one in steps], "0.5", start=start)
    prior, after = model.smooth([None] * 3, start=start), stream.smooth()
    bound = temporal_leakage(history, start=start, policy=policy)
    assert 0 < realised_leakage(prior, after, policy) <= bound.linked + CLOSE


def test_wrong_arguments_are_refused(monkeypatch) -> None:
    model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    history = History.of(Query([0, 1]), model, [STEP] * 2, 1)
    with pytest.raises(ArgumentError, match=r"moment must be one of 0\.\.1, got 2"):
        temporal_leakage(history, start=0, moment=2)
    with pytest.raises(ArgumentError, match="policy must have 2 states, got 3"):
        temporal_leakage(history, start=0, policy=PolicyGraph(3))
    fewer = History.of(Query([0, 1]), model, [STEP] * 2, 1, possible=[[0], [0, 1]])
    with pytest.raises(ArgumentError, match="every state possible that the start leads to"):
        temporal_leakage(fewer, start=[0.5, 0.5])
    monkeypatch.setattr(small_chains, "SMALL_STATES", 1)
    monkeypatch.setattr(leakage, "MOST_WORK", 1)
    with pytest.raises(TooLargeError, match="moment must be given for 2 steps of 2 states"):
        temporal_leakage(history, start=[0.5, 0.5])
    two, three = Belief.uniform(2), Belief.uniform(3)
    with pytest.raises(ArgumentError, match="beliefs must have 2 states, got 3"):
        realised_leakage([two], [three], PolicyGraph(2))
    with pytest.raises(ArgumentError, match="posterior must have a belief for each of 1 times"):
        realised_leakage([two], [], PolicyGraph(2))
    with pytest.raises(ArgumentError, match="prior must be a Belief, got list"):
        realised_leakage([[0.5, 0.5]], [two], PolicyGraph(2))


def test_a_clique_is_told_apart_at_its_ends() -> None:
    before, after = Belief.uniform(4), Belief.known([0.1, 0.2, 0.3, 0.4], 4)
    everybody, pairs = PolicyGraph.complete(4), PolicyGraph(4, PolicyGraph.complete(4).edges)
    told = realised_leakage([before], [after], everybody)
    assert told == pytest.approx(log(4), rel=CLOSE)
    assert told == realised_leakage([before], [after], pairs)
    assert realised_leakage([before], [after], PolicyGraph(4)) == 0


def test_no_number_of_answers_is_too_many_to_be_counted() -> None:
    """Somebody who never moves loses the sum of all, which once was cut at 1201."""
    history = History.of(Query([0, 1]), MarkovModel(np.eye(2)), [STEP] * 150, 10)
    start = Belief.uniform(2)
    told = leakage.bound_leakage(history, start, PolicyGraph.complete(2))
    assert 1500 <= told.loss <= 1500 + 1e-6


def test_rare_moves_are_followed_to_the_end() -> None:
    """Products of 1e-30 are too small for floats; the statement once never came back."""
    count = 12
    matrix = np.eye(count) * (1 - 1e-30) + np.eye(count, k=1) * 1e-30
    model, places = MarkovModel(matrix), PolicyGraph.complete(count)
    stream = Stream(model, Plan(places, Query(list(range(count)))), epsilon=1, start=0)
    for _ in range(count):
        stream.repeat([0])
    statement = stream.statement()
    assert statement.tells is not None
    assert statement.tells.leakage is not None
    bound = statement.tells.leakage.loss
    assert log(statement.tells.realised) <= bound <= float(statement.paper_sequence) + 1e-6
    assert "nan" not in statement.text()


def test_numbers_that_are_none_end_too() -> None:
    rows = np.array([0, 1, 2]), np.array([0, 1]), np.full(2, np.nan)
    rest = np.zeros(2), np.full(2, -np.inf), np.full(2, 0.5)
    kernels.leakage.passed_on(np.full((2, 2), np.nan), *rows, *rest)


def test_statements_let_other_threads_run() -> None:
    for module in (kernels.leakage, kernels.losses, kernels.pairs):
        compiled = [one for one in vars(module).values() if hasattr(one, "py_func")]
        own = [one for one in compiled if one.__module__ == module.__name__]
        assert own
        assert all(one.targetoptions.get("nogil") for one in own)


def test_a_statement_does_not_follow_moments_where_that_would_take_long() -> None:
    count = 300
    everywhere, line = MarkovModel(np.full((count, count), 1 / count)), np.arange(count)
    for model, followed in ((everywhere, False), (MarkovModel(np.eye(count)), True)):
        plan = Plan(PolicyGraph(count, [(0, 1)]), Query(line))
        stream = Stream(model, plan, epsilon=1, start=Belief.uniform(count))
        stream.release(0)
        tells = stream.statement().tells
        assert tells is not None
        assert (tells.leakage is not None) is followed


def test_around_a_moment_no_more_is_followed_than_there_is_time_for(monkeypatch) -> None:
    history = History.of(Query([0, 1]), MarkovModel([[0.5, 0.5], [0.5, 0.5]]), [STEP] * 5, 1)
    start = np.array([0.5, 0.5])
    assert leakage._around(moments(history, start), 2, 6).max() == pytest.approx(1, abs=CLOSE)
    monkeypatch.setattr(leakage, "MOST_WORK", 1)
    assert leakage._around(moments(history, start), 2, 6).max() == pytest.approx(5, abs=CLOSE)


# Oracle


@st.composite
def wide_rows(draw):
    """Rows of any probabilities, and likelihoods however far apart."""
    count, size = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    chance = st.sampled_from([0.0, 0.0, 1.0, 0.5, 1e-3, 1e-17, 1e-30, 1e-200, 1e-310])
    moves = np.array([[draw(chance) for _ in range(size)] for _ in range(count)])
    moves[:, draw(st.integers(0, size - 1))] += 1e-320
    levels = [float(draw(st.integers(0, 5))) for _ in range(size)]
    prior = np.array([[draw(st.sampled_from([1.0, 3.0, 1e-70])) for _ in range(size)], levels])
    share = draw(st.sampled_from([0.0, 0.0, 1e-300, 1e-17, 0.3]))
    jumps = share * np.array([draw(st.sampled_from([1.0, 1e-5])) for _ in range(count)])
    density = np.array([draw(st.integers(1, 3)) for _ in range(size)], dtype=float)
    height = st.sampled_from([0.0, 1.0, 30.0, 100.0, 500.0, 700.0, 2000.0])
    heights = np.array([[draw(height) for _ in range(size)] for _ in range(2)])
    return moves, prior, jumps, density / density.sum(), heights


@given(wide_rows())
def test_rows_pass_on_no_less_than_their_means_differ(world) -> None:
    moves, prior, jumps, density, heights = world
    rows = Rows.of(sparse.csr_array(moves), prior, jumps, density)
    told = (heights[:, :, None] - heights[:, None, :]).max(axis=0)
    passed = rows.pass_on(told)
    with np.errstate(divide="ignore"):
        logs = np.log(moves) + np.log(prior[0]) - prior[1] * LEVEL
        both = np.concatenate([logs, np.log(jumps)[:, None] + np.log(density)], axis=1)
    both -= np.logaddexp.reduce(both, axis=1)[:, None]
    means = [np.logaddexp.reduce(both + np.tile(one, 2), axis=1) for one in heights]
    truth = np.max([one[:, None] - one[None, :] for one in means], axis=0)
    assert (passed >= truth - 1e-12 * (1 + heights.max())).all()
    assert (passed <= max(told.max(), 0) + 1e-9).all()


@given(chains())
def test_small_chains_tell_what_brute_force_finds(world) -> None:
    query, model, start, prices = world
    history = History.of(query, model, [STEP] * len(prices), prices, start=start)
    told = temporal_leakage(history, start=start)
    assert told.is_exact
    assert told.loss == pytest.approx(brute_force(history, start, 0), abs=CLOSE)


@given(chains(states=3, steps=3))
def test_staircases_tell_what_brute_force_finds(world) -> None:
    query, model, start, prices = world
    wide = SensitivityHull.from_vertices([[2]])
    history = History.of(query, model, [wide] * len(prices), prices, start=start, gamma="0.6")
    told = temporal_leakage(history, start=start)
    assert told.is_exact
    assert told.loss == pytest.approx(brute_force(history, start, 3), abs=CLOSE)


@given(chains(states=3, steps=2, answers=2, dimension=2))
def test_in_the_plane_too_over_a_window_that_is_wide_enough(world) -> None:
    query, model, start, prices = world
    body = SensitivityHull.from_vertices([[1, 0], [1, 1], [0, 1]])
    history = History.of(query, model, [body] * len(prices), prices, start=start)
    told = temporal_leakage(history, start=start)
    assert told.is_exact
    assert told.loss == pytest.approx(brute_force(history, start, 4), abs=CLOSE)
