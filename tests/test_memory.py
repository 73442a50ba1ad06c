"""Chains with memory: states with a past, and everything else about places."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    Batch,
    KeyedRandomness,
    MarkovModel,
    MemoryModel,
    Plan,
    PolicyGraph,
    Query,
    Stream,
    TimeVaryingModel,
)
from dphmm.chain.belief import Belief
from dphmm.chain.memory import Memory
from dphmm.cost.adversary import attack
from dphmm.errors import ArgumentError

REL = 1e-12
KEYED = KeyedRandomness(bytes(range(32)))


def random_memory(rng: np.random.Generator, places: int = 4, anywhere: float = 0.05) -> MemoryModel:
    """Two or three states a place, moves between about half of them."""
    current = np.repeat(np.arange(places), rng.integers(1, 4, size=places))
    fresh = np.searchsorted(current, np.arange(places))
    n = len(current)
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.5) + np.eye(n)
    matrix = weights / weights.sum(axis=1, keepdims=True)
    density = rng.dirichlet(np.ones(places)) if anywhere else None
    return MemoryModel(matrix, current, fresh, anywhere=anywhere, density=density)


def dense(model: MarkovModel) -> np.ndarray:
    return (1 - model.anywhere) * model.transition.toarray() + model.jumps


def plan_of(places: int, **options: object) -> Plan:
    query = Query([[3 * place, place % 2] for place in range(places)])
    return Plan(PolicyGraph.within_distance(query, 4), query, **options)


# Laws


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05]))
def test_beliefs_about_places_sum_those_about_states(seed: int, anywhere: float) -> None:
    rng = np.random.default_rng(seed)
    model = random_memory(rng, anywhere=anywhere)
    belief = Belief.uniform(model.n_states).condition(-2000 * rng.random(model.n_states))
    merged = model.place_belief(belief)
    sums = np.bincount(model.current, weights=belief.probabilities, minlength=4)
    np.testing.assert_allclose(merged.probabilities, sums, rtol=1e-9, atol=1e-15)
    assert (np.isfinite(merged.log_probabilities) == merged.possible).all()
    np.testing.assert_allclose(model.memory.sum(belief.probabilities), sums, rtol=REL)
    some = rng.random(model.n_states) < 0.3
    assert model.place_mask(some).tolist() == [some[model.current == k].any() for k in range(4)]
    # A start that names a place is that place, without a past.
    for place in range(4):
        known = model.known(place)
        assert np.flatnonzero(known.possible).tolist() == [model.memory.fresh[place]]
        assert model.place_belief(known).probabilities[place] == 1
    assert model.known(known) is known


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05]), st.sampled_from(["mean", "median"]))
def test_a_batch_equals_its_streams(seed: int, anywhere: float, estimate: str) -> None:
    rng = np.random.default_rng(seed)
    model, plan = random_memory(rng, anywhere=anywhere), plan_of(4)
    people = [f"p{number}" for number in range(7)]
    options = {"epsilon": 2, "start": 1, "time": 9, "randomness": KEYED, "estimate": estimate}
    batch = Batch(model, plan, people=people, **options)
    streams = [Stream(model, plan, person=person, **options) for person in people]
    for _ in range(4):
        states, active = rng.integers(4, size=7), rng.random(7) < 0.7
        said = batch.release(states, active=active)
        for number, stream in enumerate(streams):
            if not active[number]:
                stream.skip()
                continue
            release = stream.release(int(states[number]))
            row = np.flatnonzero(said.people == number)[0]
            assert said.lattice[row].tolist() == release.lattice.tolist()
            np.testing.assert_array_equal(said.estimate[row], release.estimate)
    for number, stream in enumerate(streams):
        assert batch.standings([number])[0].to_bytes() == stream.standing.to_bytes()


def test_a_stream_goes_on_where_it_stood() -> None:
    model, plan = random_memory(np.random.default_rng(1)), plan_of(4)
    options = {"epsilon": 1, "start": 2, "randomness": KEYED}
    whole = Stream(model, plan, person="ann", time=3, **options)
    first = Stream(model, plan, person="ann", time=3, **options)
    states = [0, 3, 1, 2]
    said = [whole.release(state) for state in states]
    for state in states[:2]:
        first.release(state)
    again = Stream.resume(pickle.loads(pickle.dumps(first.standing)), model, plan, **options)
    for state, expected in zip(states[2:], said[2:], strict=True):
        release = again.release(state)
        assert (release.lattice == expected.lattice).all()
        assert (release.estimate == expected.estimate).all()
    assert again.standing.to_bytes() == whole.standing.to_bytes()


def test_a_step_that_goes_anywhere_leads_to_places_without_a_past() -> None:
    matrix = np.eye(3)
    model = MemoryModel(matrix, [0, 0, 1], [1, 2], anywhere=0.5, density=[0.2, 0.8])
    np.testing.assert_allclose(model.jumps, [0, 0.1, 0.4], rtol=REL)
    np.testing.assert_allclose(model.place_density, [0.2, 0.8], rtol=REL)
    belief = model.predict(Belief.certain(0, 3), 1)
    np.testing.assert_allclose(belief.probabilities, [0.5, 0.1, 0.4], rtol=REL)


def test_the_law_tells_chains_apart_that_remember_otherwise() -> None:
    matrix = np.full((3, 3), 1 / 3)
    one = MemoryModel(matrix, [0, 0, 1], [0, 2])
    assert one.digest != MemoryModel(matrix, [0, 1, 1], [0, 1]).digest
    assert one.digest != MemoryModel(matrix, [0, 0, 1], [1, 2]).digest
    assert one.digest == MemoryModel(matrix, [0, 0, 1], [0, 2]).digest


def test_with_a_term_every_place_stays_possible_and_no_sentence_has_a_condition() -> None:
    rng = np.random.default_rng(0)
    model, plan = random_memory(rng), plan_of(4)
    stream = Stream(model, plan, epsilon=1, start=0)
    for state in (3, 0, 3, 1):
        release = stream.release(state)
        assert "move as the model" not in release.statement
        assert stream.possible.all()
    stated = Stream(random_memory(rng, anywhere=0.0), plan, epsilon=1, start=0)
    assert stated.model.has_stated_zeros
    assert stream.statement().releases == 4


def test_a_chain_of_hours_may_remember() -> None:
    rng = np.random.default_rng(3)
    one = random_memory(rng)
    other = MemoryModel(
        rng.dirichlet(np.ones(one.n_states), size=one.n_states), one.current, one.memory.fresh
    )
    chain = TimeVaryingModel([one, other])
    assert (chain.n_places, chain.n_states) == (4, one.n_states)
    assert chain.on_places.memory is None
    stream = Stream(chain, plan_of(4), epsilon=1, start=0)
    stream.release(2)
    stream.skip()
    stream.release(3)
    assert stream.smoothed().shape == (3, 2)
    with pytest.raises(ArgumentError, match="models must remember alike"):
        TimeVaryingModel([one, MarkovModel(np.eye(one.n_states))])


def test_the_chain_over_places_allows_what_the_one_with_memory_does() -> None:
    model = random_memory(np.random.default_rng(5), anywhere=0.0)
    for time in range(1, 4):
        for place in range(4):
            possible = model.current == place
            led = model.place_mask(model.reach(possible, time))
            assert (model.on_places.successors([place]) == led).all()
    edges = PolicyGraph.one_step(model).edges.tolist()
    assert edges == PolicyGraph.one_step(model.on_places).edges.tolist()


def test_delta_protects_likely_places() -> None:
    # Half of all steps go anywhere, which must not fill the set.
    model, plan = random_memory(np.random.default_rng(2), anywhere=0.5), plan_of(4, delta="0.3")
    prior = model.predict(model.known(0), 1)
    chosen = plan.to_protect(prior, model.memory)
    by_own = model.own.predict(model.known(0), 1)
    likely = model.place_belief(by_own).probabilities
    assert likely[chosen].sum() >= 0.7 > likely[chosen].sum() - likely[chosen].min()
    stream = Stream(model, plan, epsilon=1, start=0, estimate="median")
    stream.release(1)
    assert stream.smoothed().shape == (1, 2)


# Oracle


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05]))
def test_inference_about_places_agrees_with_every_path(seed: int, anywhere: float) -> None:
    rng = np.random.default_rng(seed)
    model = random_memory(rng, places=3, anywhere=anywhere)
    rows = [-5 * rng.random(3), None, -5 * rng.random(3)]
    matrix, n = dense(model), model.n_states
    paths = np.array(list(itertools.product(range(n), repeat=3)))
    weights = matrix[model.memory.fresh[1], paths[:, 0]]
    weights = weights * matrix[paths[:, 0], paths[:, 1]] * matrix[paths[:, 1], paths[:, 2]]
    places = model.current[paths]
    for step in (0, 2):
        weights = weights * np.exp(rows[step][places[:, step]])
    for step, belief in enumerate(model.smooth(rows, start=1)):
        exact = np.bincount(places[:, step], weights=weights, minlength=3)
        np.testing.assert_allclose(belief.probabilities, exact / exact.sum(), rtol=1e-9)
    last = model.filter(rows, start=1)[-1]
    np.testing.assert_allclose(last.probabilities, exact / exact.sum(), rtol=1e-9)
    assert model.score(rows, start=1) == pytest.approx(np.log(weights.sum()), rel=1e-9)
    score, path = model.decode(rows, start=1)
    assert score == pytest.approx(np.log(weights.max()), rel=1e-9)
    assert path.tolist() in places[weights > weights.max() * (1 - 1e-9)].tolist()
    found = attack(rows, model=model, start=1)
    assert found.path.tolist() == path.tolist()
    walk = model.sample(50, rng=rng, start=1)
    assert walk.min() >= 0
    assert walk.max() < 3


def test_a_stream_believes_what_a_plain_chain_over_the_same_states_does() -> None:
    rng = np.random.default_rng(7)
    model, plan = random_memory(rng), plan_of(4)
    # The same states as places of their own, with the query of their place.
    plain = MarkovModel(dense(model))
    stream = Stream(model, plan, epsilon=1, start=1)
    for state in (1, 0, 2):
        stream.release(state)
    rows = [row[model.current] for row in stream.observations()]
    beliefs = plain.filter(rows, start=int(model.memory.fresh[1]))
    np.testing.assert_allclose(
        stream.posterior.probabilities, beliefs[-1].probabilities, rtol=1e-9, atol=1e-15
    )


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Memory([0, 1, 0], [0, 1]), "current must name every place in order"),
        (lambda: Memory([0, 0], [0, 1]), "current must name every place in order"),
        (lambda: Memory([0, 1], [1, 0]), "fresh must name a state of each place"),
        (
            lambda: MemoryModel(np.eye(3), [0, 1], [0, 1]),
            "current must name the place of each of 3 states, got 2",
        ),
        (
            lambda: MemoryModel(np.eye(2), [0, 1], [0, 1], density=[0.5, 0.5]),
            "anywhere must be above 0 when a density is given",
        ),
        (lambda: Memory([0], [0]).merge(Belief.uniform(2)), "belief must have 1 states, got 2"),
        (
            lambda: Stream(
                MemoryModel(np.eye(3), [0, 0, 1], [0, 2]), plan_of(3), epsilon=1, start=0
            ),
            "model must have the 3 states of the query, got 2",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
