"""Batches: the same answers, possible sets, hulls and ledgers as single streams."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Belief,
    BudgetError,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Standing,
    Stream,
)
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release.batch import Batch
from dphmm.release.belief_table import BLOCK
from tests import paper

KEYED = KeyedRandomness(bytes(range(32)))


def lazy_grid(side: int, anywhere: float = 0.0) -> tuple[MarkovModel, Query]:
    """A walk that stays or moves to one of the eight cells around, or goes anywhere."""
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    near = np.abs(cells[:, None] - cells[None, :]).max(axis=2) <= 1
    matrix = near / near.sum(axis=1, keepdims=True)
    return MarkovModel(matrix, anywhere=anywhere), Query(cells * 340)


def assert_same(batch: Batch, streams: list[Stream]) -> None:
    for number, stream in enumerate(streams):
        belief = batch.belief(number)
        np.testing.assert_array_equal(belief.possible, stream.possible)
        np.testing.assert_array_equal(belief.probabilities, stream.posterior.probabilities)
        assert batch.ledger(number).entries == stream.ledger.entries
        assert batch.ledger(number).spent == stream.ledger.spent
        ours, theirs = batch.standings([number])[0], stream.standing
        assert ours.to_bytes() == theirs.to_bytes()


def compare(
    model: MarkovModel,
    plan: Plan,
    starts: list[int],
    paths: np.ndarray,
    active: np.ndarray,
    epsilon: str = "1",
    **options: object,
) -> Batch:
    """Release for everybody both ways, step by step."""
    names = [f"person {number}" for number in range(len(starts))]
    batch = Batch(
        model,
        plan,
        epsilon=epsilon,
        people=names,
        start=np.array(starts),
        time=17,
        randomness=KEYED,
        **options,
    )
    streams = [
        Stream(model, plan, epsilon=epsilon, start=start, person=name, time=17, randomness=KEYED)
        for name, start in zip(names, starts, strict=True)
    ]  # fmt: skip
    for states, answered in zip(paths, active, strict=True):
        said = batch.release(states, active=answered)
        for number, stream in enumerate(streams):
            if not answered[number]:
                stream.skip()
                continue
            release = stream.release(int(states[number]))
            row = np.flatnonzero(said.people == number)[0]
            assert said.lattice[row].tolist() == release.lattice.tolist()
            np.testing.assert_array_equal(said.estimate[row], release.estimate)
        assert_same(batch, streams)
    return batch


# Paper


def test_the_running_example_is_released_alike_for_many() -> None:
    model, query = MarkovModel(paper.TRANSITION), Query(paper.VALUES)
    plan = Plan(PolicyGraph.by_category(paper.CATEGORIES), query)
    rng = np.random.default_rng(1)
    starts = [0, 3, 5, 0, 2]
    paths = np.array([model.sample(6, rng=rng, start=start) for start in starts]).T
    compare(model, plan, starts, paths, np.ones(paths.shape, dtype=bool))


# Laws


@given(
    seed=st.integers(0, 2**32 - 1),
    people=st.integers(1, 9),
    epsilon=st.sampled_from(["0.1", "1", "8", "1/3"]),
    policy=st.sampled_from(["complete", "distance", "one_step", "empty"]),
    anywhere=st.sampled_from([0.0, 0.01, 1e-30]),
)
def test_a_batch_equals_its_streams(
    seed: int, people: int, epsilon: str, policy: str, anywhere: float
) -> None:
    rng = np.random.default_rng(seed)
    model, query = lazy_grid(4, anywhere)
    graph = {
        "complete": PolicyGraph.complete(16),
        "distance": PolicyGraph.within_distance(query, 500),
        "one_step": PolicyGraph.one_step(model),
        "empty": PolicyGraph(16),
    }[policy]
    starts = rng.integers(16, size=people).tolist()
    # States are drawn anywhere, so that some are impossible and stand-ins are used.
    paths = rng.integers(16, size=(4, people))
    active = rng.random((4, people)) < 0.7
    compare(model, Plan(graph, query), starts, paths, active, epsilon)


def test_more_people_than_a_block_and_any_number_of_threads_say_the_same() -> None:
    model, query = lazy_grid(5)
    plan = Plan(PolicyGraph.within_distance(query, 700), query)
    people = [f"p{number}" for number in range(2 * BLOCK + 3)]
    rng = np.random.default_rng(3)
    paths = rng.integers(25, size=(3, len(people)))
    answers = []
    for threads in (1, 4):
        batch = Batch(model, plan, epsilon=1, people=people, start=12, time=0, randomness=KEYED,
                      threads=threads)  # fmt: skip
        answers.append([batch.release(states).estimate for states in paths])
    np.testing.assert_array_equal(answers[0], answers[1])


def test_beliefs_beyond_the_range_of_floats_are_carried_on() -> None:
    model, query = lazy_grid(12)
    plan = Plan(PolicyGraph.within_distance(query, 340), query)
    paths = np.zeros((12, 2), dtype=int)
    batch = compare(model, plan, [0, 143], paths, np.ones(paths.shape, dtype=bool), "40")
    assert batch._table._apart


def test_flat_hulls_cut_each_persons_possible_set_for_itself() -> None:
    model, query = lazy_grid(4)
    rows = PolicyGraph.by_category(query.points[:, 1].tolist())
    plan = Plan(rows, query, full_rank=False)
    rng = np.random.default_rng(5)
    paths = rng.integers(16, size=(4, 5))
    batch = compare(model, plan, [5] * 5, paths, np.ones(paths.shape, dtype=bool))
    assert len({batch.belief(number).possible.tobytes() for number in range(5)}) > 1


# Threads


def test_threads_on_one_batch_give_one_answer_a_moment_and_the_ledgers_agree() -> None:
    model, query = lazy_grid(4)
    names, paths = [f"p{n}" for n in range(20)], [5] * 20

    def begin() -> Batch:
        plan = Plan(PolicyGraph.complete(16), query)
        return Batch(model, plan, epsilon=1, people=names, start=5, time=0, randomness=KEYED)

    alone, shared = begin(), begin()
    expected = {step: alone.release(paths).lattice.tolist() for step in range(1, 41)}
    said: list[tuple[int, list[list[int]]]] = []

    def ask() -> None:
        for _ in range(5):
            release = shared.release(paths)
            said.append((int(release.times[0]), release.lattice.tolist()))
            assert shared.standings([3])[0].spent >= int(release.times[0])

    workers = [threading.Thread(target=ask) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(time for time, _ in said) == list(expected)
    assert dict(said) == expected
    for number in range(20):
        assert shared.ledger(number).entries == alone.ledger(number).entries
        assert shared.standings([number])[0].to_bytes() == alone.standings([number])[0].to_bytes()


# Bad input


def make(**options: object) -> Batch:
    model, query = lazy_grid(3)
    settings = {"epsilon": 1, "people": ["a", "b"], "start": 4, **options}
    return Batch(model, Plan(PolicyGraph.complete(9), query), **settings)


def test_names_must_differ() -> None:
    with pytest.raises(ArgumentError, match="people must have different names"):
        make(people=["a", "a"])


def test_a_wrong_state_is_refused_without_being_shown() -> None:
    batch = make()
    with pytest.raises(ArgumentError, match="true_states must be among the 9 states") as refusal:
        batch.release([1, 77])
    assert "77" not in str(refusal.value)
    assert batch.times.tolist() == [0, 0]


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(ArgumentError, match="one state for each of 2 people"):
        make().release([1])
    with pytest.raises(ArgumentError, match="boolean mask over 2 people"):
        make().release([1, 2], active=[True])


def test_a_limit_is_each_persons_own() -> None:
    batch = make(limit="2.5")
    batch.release([1, 1], active=np.array([True, False]))
    batch.release([1, 1])
    assert batch.affordable().tolist() == [False, True]
    with pytest.raises(BudgetError) as refusal:
        batch.release([1, 1])
    assert (refusal.value.spent, refusal.value.remaining) == (2, Fraction(1, 2))
    assert batch.times.tolist() == [2, 2]
    assert batch.release([1, 1], active=batch.affordable()).people.tolist() == [1]
    assert batch.release([1, 1], epsilon="0.5", active=np.array([True, False])).times == 4


def test_skipping_costs_nothing_and_spreads_the_belief() -> None:
    batch = make(start=Belief.certain(0, 9))
    batch.skip()
    assert batch.belief(0).possible.sum() == 4
    assert batch.ledger(0).spent == 0


def test_memory_is_stated() -> None:
    batch = make(threads=1)
    assert batch.memory == 8 * 9 * 2 + 2 * BLOCK * 9 * 8


def test_people_continue_where_an_earlier_batch_left_them() -> None:
    model, query = lazy_grid(4)
    plan = Plan(PolicyGraph.within_distance(query, 700), query)
    names = [f"person {number}" for number in range(BLOCK + 3)]
    paths = np.random.default_rng(2).integers(0, 16, (6, len(names)))
    options = {"epsilon": "1/2", "limit": 3, "randomness": KEYED, "threads": 1}
    options |= {"law": b"one law"}
    fresh = {"people": names, "time": np.arange(len(names)) % 3 - 5}
    through = Batch(model, plan, start=np.arange(len(names)) % 16, **fresh, **options)
    said = [through.release(states) for states in paths]
    first = Batch(model, plan, start=np.arange(len(names)) % 16, **fresh, **options)
    for states in paths[:3]:
        first.release(states)
    standings = [Standing.from_bytes(standing.to_bytes()) for standing in first.standings()]
    second = Batch.resume(standings, model, plan, **options)
    for states, before in zip(paths[3:], said[3:], strict=True):
        again = second.release(states)
        assert again.lattice.tolist() == before.lattice.tolist()
        np.testing.assert_array_equal(again.estimate, before.estimate)
        assert again.times.tolist() == before.times.tolist()
        assert [c.constrained for c in again.charges] == [c.constrained for c in before.charges]
    assert second.ledger(5).entries == through.ledger(5).entries[3:]
    assert second.ledger(5).spent == through.ledger(5).spent
    ends = zip(second.standings(), through.standings(), strict=True)
    assert all(one.to_bytes() == other.to_bytes() for one, other in ends)
    with pytest.raises(BudgetError):
        second.release(paths[0])
    with pytest.raises(ArgumentError, match="one a person, got 1"):
        Batch(model, plan, start=[first.belief(0)], **fresh, **options)


# Stopped in the middle


@pytest.mark.parametrize("steps", [1, 2])
def test_a_step_that_was_refused_or_stopped_leaves_everybody_where_they_were(steps, monkeypatch):
    model = MarkovModel([[0, 1, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]])
    query = Query([[0, 0], [30, 0], [0, 40], [9, 9]])
    plan, chain = Plan(PolicyGraph(4, [(0, 1), (2, 3)]), query), model.every(steps)
    batch = Batch(chain, plan, epsilon=1, people=["ann", "bob"], start=2)
    with monkeypatch.context() as patch:

        def stop(*_):
            raise KeyboardInterrupt

        patch.setattr(Plan, "at", stop)
        with pytest.raises(KeyboardInterrupt):
            batch.release([0, 0])
    assert batch.belief(0).possible.tolist() == [False, False, True, False]
    batch.release([0, 0])
    stream = Stream(chain, plan, epsilon=1, start=2)
    stream.skip()
    assert batch.belief(0).possible.tolist() == stream.possible.tolist()


def test_nobody_goes_on_from_half_a_step(monkeypatch):
    model, query = lazy_grid(2)
    plan = Plan(PolicyGraph.complete(4), query)
    batch = Batch(model, plan, epsilon=1, people=["ann", "bob"], start=3)
    before = batch.standings()
    with monkeypatch.context() as patch:

        def stop(*_):
            raise MemoryError

        patch.setattr("dphmm.release.belief_table._moved", stop)
        with pytest.raises(MemoryError):
            batch.release([1, 1])
    for act in (lambda: batch.release([1, 1]), batch.skip, batch.standings):
        with pytest.raises(ArgumentError, match="stopped in the middle of a step"):
            act()
    law = before[0].law
    Batch.resume(before, model, plan, epsilon=1, law=law).release([1, 1])
