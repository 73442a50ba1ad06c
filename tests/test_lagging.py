"""Estimates that wait: between the filter and the smoother, in bounded memory."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    Estimates,
    FixedLag,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    SecondOrderModel,
    SeededRandomness,
    Stream,
    TimeVaryingModel,
)
from dphmm.chain.markov import Chain
from dphmm.errors import ArgumentError
from tests.test_memory import plan_of, random_memory

CLOSE = 1e-12


def random_model(rng: np.random.Generator, n: int, anywhere: float = 0.0) -> MarkovModel:
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.5) + np.eye(n)
    return MarkovModel(weights / weights.sum(axis=1, keepdims=True), anywhere=anywhere)


def chains(seed: int, places: int = 4) -> dict[str, Chain]:
    """One of every kind, over the same places."""
    rng = np.random.default_rng(seed)
    walks = [rng.integers(0, places, 20) for _ in range(3)]
    return {
        "plain": random_model(rng, places),
        "anywhere": random_model(rng, places, 0.1),
        "turns": TimeVaryingModel([random_model(rng, places), random_model(rng, places, 0.1)]),
        "memory": random_memory(rng, places),
        "stated memory": random_memory(rng, places, anywhere=0.0),
        "pairs": SecondOrderModel.fit(walks, n_states=places),
        "every": random_memory(rng, places).every(3),
    }


def silent_some(rng: np.random.Generator, steps: int, places: int = 4) -> list[np.ndarray | None]:
    return [None if rng.random() < 0.3 else -6 * rng.random(places) for _ in range(steps)]


def late(chain: Chain, rows: list[np.ndarray | None], lag: int, **start: int) -> list[np.ndarray]:
    waiting = FixedLag(chain, lag=lag, **start)
    settled = [one for row in rows for one in waiting.step(row)] + waiting.finish()
    assert [one.time for one in settled] == list(
        range(waiting.time - len(rows) + 1, waiting.time + 1)
    )
    return [one.belief.probabilities for one in settled]


# Laws


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 3))
def test_without_a_lag_it_is_the_filter_and_with_all_the_smoother(seed, steps, time):
    rng = np.random.default_rng(seed)
    for chain in chains(seed).values():
        rows = silent_some(rng, steps)
        for lag, beliefs in (
            (0, chain.filter(rows, start=1, time=time)),
            (steps, chain.smooth(rows, start=1, time=time)),
        ):
            found = late(chain, rows, lag, start=1, time=time)
            exact = [belief.probabilities for belief in beliefs]
            np.testing.assert_allclose(found, exact, rtol=CLOSE, atol=CLOSE)


@given(st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_each_belief_is_the_smoother_s_of_what_had_come_by_then(seed, lag):
    rng = np.random.default_rng(seed)
    for chain in chains(seed).values():
        rows = silent_some(rng, 6)
        found = late(chain, rows, lag, start=2)
        for step in range(6):
            seen = chain.smooth(rows[: step + lag + 1], start=2)[step].probabilities
            np.testing.assert_allclose(found[step], seen, rtol=CLOSE, atol=CLOSE)


def test_numbers_too_small_for_floats_lose_nobody():
    model = MarkovModel([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    rows = [np.array([0.0, -900.0, -2000.0]), np.array([-np.inf, 0.0, -5000.0]), np.zeros(3)]
    found = FixedLag(model, lag=5, start=0)
    for row in rows:
        found.step(row)
    for one, exact in zip(found.finish(), model.smooth(rows, start=0), strict=True):
        np.testing.assert_allclose(one.belief.log_probabilities, exact.log_probabilities, rtol=1e-9)
        assert (one.belief.possible == exact.possible).all()


def test_memory_does_not_grow_with_time():
    chain = random_memory(np.random.default_rng(0))
    plan = plan_of(4)
    waiting = Estimates(chain, plan, start=0, lag=5)
    sizes = []
    for time in range(1, 200):
        if time % 3:
            waiting.tell(time, [time % 7, 1], 1)
        if time % 50 == 49:
            # The plan keeps the possible sets that it met; here there is one.
            sizes.append(len(pickle.dumps(waiting._late._window)))
    assert len(waiting._late._window) == 5
    assert max(sizes) <= min(sizes) * 1.1


@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.sampled_from(["mean", "median"]))
def test_a_stream_s_estimates_are_those_of_its_answers(seed, lag, estimate):
    rng = np.random.default_rng(seed)
    for chain in chains(seed).values():
        plan = plan_of(4)
        stream = Stream(
            chain, plan, epsilon=1, start=1, time=7, estimate=estimate,
            randomness=SeededRandomness(rng),
        )  # fmt: skip
        live, told = (
            stream.estimates(lag=lag),
            Estimates(chain, plan, start=1, time=7, lag=lag, estimate=estimate),
        )
        now, ready, heard = [], [], []
        for _ in range(6):
            if rng.random() < 0.3:
                stream.skip()
                heard += told.wait(stream.time)
                now.append(None)
            else:
                release = stream.release(int(rng.integers(4)))
                heard += told.tell(release.time, release.lattice, release.epsilon or 1)
                now.append(release.estimate)
            ready += live.ready()
            assert len(ready) == max(0, stream.time - 7 - lag)
        ready, heard = ready + live.finish(), heard + told.finish()
        assert [one.time for one in ready] == list(range(8, 14))
        values = np.array([one.value for one in ready])
        np.testing.assert_array_equal(values, [one.value for one in heard])
        if estimate == "mean":
            at_once = [one.value for one in _all(stream.estimates(lag=0))]
            for one, expected in zip(at_once, now, strict=True):
                if expected is not None:
                    np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-9)
            whole = [one.value for one in _all(stream.estimates(lag=6))]
            np.testing.assert_allclose(whole, stream.smoothed(), rtol=1e-9, atol=1e-9)


def _all(estimates: Estimates) -> list:
    return [*estimates.ready(), *estimates.finish()]


def test_a_further_answer_at_a_step_counts_for_those_that_wait():
    model = MarkovModel([[0.6, 0.4], [0.4, 0.6]])
    plan = Plan(PolicyGraph.complete(2), Query([0, 1]))
    rng = SeededRandomness(np.random.default_rng(0))
    stream = Stream(model, plan, epsilon=1, start=0, randomness=rng)
    live = stream.estimates(lag=1)
    stream.release(0)
    first = live.ready()
    stream.release_also(0, Query([5, 7], name="other"))
    stream.release(1)
    assert first == []
    both = [*live.ready(), *live.finish()]
    np.testing.assert_allclose([one.value for one in both], stream.smoothed(), rtol=CLOSE)


# Oracle


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_late_beliefs_agree_with_every_path(seed, lag):
    rng = np.random.default_rng(seed)
    model = random_memory(rng, places=3)
    rows = silent_some(rng, 4, places=3)
    matrix = (1 - model.anywhere) * model.transition.toarray() + model.jumps
    found = late(model, rows, lag, start=0)
    for step in range(4):
        last = min(step + lag, 3)
        paths = np.array(list(itertools.product(range(model.n_states), repeat=last + 1)))
        weights = np.ones(len(paths))
        before = np.full(len(paths), model.memory.fresh[0])
        for time in range(last + 1):
            weights *= matrix[before, paths[:, time]]
            if rows[time] is not None:
                weights *= np.exp(rows[time][model.current[paths[:, time]]])
            before = paths[:, time]
        exact = np.bincount(model.current[paths[:, step]], weights=weights, minlength=3)
        np.testing.assert_allclose(found[step], exact / exact.sum(), rtol=CLOSE, atol=CLOSE)


# Bad input


def test_bad_arguments_are_refused():
    model = MarkovModel(np.eye(2))
    plan = Plan(PolicyGraph.complete(2), Query([0, 1]))
    with pytest.raises(ArgumentError, match="lag must be at least 0, got -1"):
        FixedLag(model, lag=-1, start=0)
    waiting = Estimates(model, plan, start=0, time=3, lag=1)
    with pytest.raises(ArgumentError, match="time must be after 3, got 3"):
        waiting.tell(3, [0], 1)
    with pytest.raises(ArgumentError, match="ready must be asked of a stream's estimates"):
        waiting.ready()
    with pytest.raises(ArgumentError, match="estimate must be mean or median"):
        Stream(model, plan, epsilon=1, start=0).estimates(lag=1, estimate="mode")
