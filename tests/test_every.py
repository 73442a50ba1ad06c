"""Steps that are several steps of a chain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    Batch,
    KeyedRandomness,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Stream,
    TimeVaryingModel,
)
from dphmm.chain.belief import Belief
from dphmm.errors import ArgumentError
from tests.test_memory import plan_of, random_memory

REL = 1e-9
KEYED = KeyedRandomness(bytes(range(32)))


def random_model(
    rng: np.random.Generator, n: int, anywhere: float, stays: bool = True
) -> MarkovModel:
    always = np.eye(n) if stays else np.eye(n)[rng.integers(n, size=n)]
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.5) + always
    return MarkovModel(weights / weights.sum(axis=1, keepdims=True), anywhere=anywhere)


# Laws


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_inference_at_every_few_steps_is_inference_with_silence_between(seed, steps):
    rng = np.random.default_rng(seed)
    for chain in (
        TimeVaryingModel([random_model(rng, 4, 0.1), random_model(rng, 4, 0.0)]),
        random_memory(rng),
    ):
        slow = chain.every(steps)
        rows = [-3 * rng.random(4) for _ in range(3)]
        fine = [row for seen in rows for row in [*[None] * (steps - 1), seen]]
        at = {"start": 1, "time": 5 * steps}
        for verb in ("filter", "smooth"):
            ours = getattr(slow, verb)(rows, start=1, time=5)
            theirs = getattr(chain, verb)(fine, **at)[steps - 1 :: steps]
            for one, other in zip(ours, theirs, strict=True):
                assert (one.probabilities == other.probabilities).all()
        assert slow.score(rows, start=1, time=5) == chain.score(fine, **at)
        path = chain.decode(fine, **at)[1][steps - 1 :: steps]
        assert slow.decode(rows, start=1, time=5)[1].tolist() == path.tolist()
        one, other = (np.random.default_rng(seed) for _ in range(2))
        walk = chain.sample(3 * steps, rng=one, **at)[steps - 1 :: steps]
        assert slow.sample(3, rng=other, start=1, time=5).tolist() == walk.tolist()


@given(st.integers(0, 2**32 - 1))
def test_a_batch_equals_its_streams(seed):
    rng = np.random.default_rng(seed)
    chain, plan = random_memory(rng).every(3), plan_of(4)
    options = {"epsilon": 1, "start": 1, "time": 9, "randomness": KEYED}
    people = ["ann", "bob", "eve"]
    batch = Batch(chain, plan, people=people, **options)
    streams = [Stream(chain, plan, person=person, **options) for person in people]
    for step in range(3):
        states, active = rng.integers(4, size=3), rng.random(3) < 0.7
        if step == 1:
            batch.skip()
            for stream in streams:
                stream.skip()
        batch.release(states, active=active)
        for number, stream in enumerate(streams):
            stream.release(int(states[number])) if active[number] else stream.skip()
    for number, stream in enumerate(streams):
        assert batch.standings([number])[0].to_bytes() == stream.standing.to_bytes()


def test_a_stream_with_a_slow_clock_is_one_that_skips_in_between():
    model, plan = random_memory(np.random.default_rng(0)), plan_of(4)
    slow = Stream(model.every(3), plan, epsilon=1, start=0, person="ann", time=2, randomness=KEYED)
    for state in (1, 3, 2):
        release = slow.release(state)
    fine = Stream(model, plan, epsilon=1, start=0)
    for said in slow.said:
        fine.skip(2)
        again = fine.repeat(said.lattice, said.epsilon)
    assert (fine.posterior.probabilities == slow.posterior.probabilities).all()
    assert (again.estimate == release.estimate).all()
    assert (slow.smoothed() == fine.smoothed()[2::3]).all()


def test_every_of_every_is_one_chain_and_has_its_own_law():
    model = MarkovModel([[0.5, 0.5], [1.0, 0.0]])
    assert repr(model.every(2).every(3)) == repr(model.every(6))
    assert len({model.digest, model.every(2).digest, model.every(3).digest}) == 3
    np.testing.assert_allclose(
        model.every(3).stationary().probabilities, model.stationary().probabilities
    )
    turns = TimeVaryingModel([model, model]).every(2)
    with pytest.raises(ArgumentError, match="must not change with time"):
        turns.stationary()


def test_a_location_set_forgets_every_jump_on_the_way():
    line = np.eye(30, k=1)
    line[29, 29] = 1
    model = MarkovModel(line, anywhere=0.2)
    plan = Plan(PolicyGraph.complete(30), Query(np.arange(30)), delta="0.1")
    prior = model.every(4).predict(Belief.certain(0, 30), 1)
    assert np.flatnonzero(plan.to_protect(prior)).tolist() == [4]


def test_several_steps_too_small_for_a_float_stay_possible() -> None:
    rare = MarkovModel([[1 - 1e-200, 1e-200, 0], [0, 1 - 1e-200, 1e-200], [0, 0, 1.0]])
    assert rare.every(2).at(1).successors([0]).all()
    guess = MarkovModel(np.eye(3), anywhere=1e-200)
    assert not guess.every(2).at(1).has_stated_zeros
    stream = Stream(
        rare.every(2), Plan(PolicyGraph(3, [(0, 1), (1, 2)]), Query([0, 1, 10])), epsilon=1, start=0
    )
    stream.repeat([0])
    statement = stream.statement()
    assert statement.tells is not None
    assert statement.tells.leakage is not None
    assert statement.tells.leakage.linked >= np.log(statement.tells.realised)
    assert statement.tells.leakage.counted in statement.text()


# Oracle


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_one_matrix_for_several_steps_is_their_product(seed, steps):
    rng = np.random.default_rng(seed)
    # A stated step may rule out places where a jump before it led.
    stated = random_model(rng, 4, 0.0, stays=bool(rng.integers(2)))
    chain = TimeVaryingModel([stated, random_model(rng, 4, 0.1)])
    product = np.eye(4)
    for time in range(steps + 1, 2 * steps + 1):
        one = chain.at(time)
        product = product @ ((1 - one.anywhere) * one.transition.toarray() + one.jumps)
    whole = chain.every(steps).at(2)
    np.testing.assert_allclose(
        (1 - whole.anywhere) * whole.transition.toarray() + whole.jumps, product, rtol=REL
    )
    assert whole.has_stated_zeros or product.min() > 0


def test_accounting_counts_the_moves_of_whole_steps():
    ring = MarkovModel(np.eye(6)[[1, 2, 3, 4, 5, 0]] * 0.5 + np.eye(6) * 0.5)
    plan = Plan(PolicyGraph.complete(6), Query(np.arange(6)))
    stream = Stream(ring.every(2), plan, epsilon=1, start=0)
    stream.release(1)
    assert stream.possible.tolist() == [True, True, True, False, False, False]
    stream.release(2)
    assert stream.statement().releases == 2


# Bad input


def test_a_chain_with_memory_is_no_one_matrix():
    model = random_memory(np.random.default_rng(0)).every(2)
    with pytest.raises(ArgumentError, match="model must be over places to be one matrix"):
        model.at(1)
    assert model.on_places.at(1).n_states == 4
    with pytest.raises(ArgumentError, match="steps must be at least 1, got 0"):
        model.every(0)
