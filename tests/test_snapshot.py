"""Snapshots: a stream resumes bit for bit, with what it spent, and refuses what is not its own."""

from __future__ import annotations

import json
from fractions import Fraction
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError, BudgetError, DataError
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.release.snapshot import EARLIER, restore, snapshot
from dphmm.release.stream import Stream
from tests import geometry, paper

KEY = bytes(range(32))
QUERY = Query(paper.VALUES)
SPEED = Query([[i % 3] for i in range(6)])


def fresh(**options):
    arguments = {"epsilon": 1, "start": 0, "key": KEY, "person": "ann", **options}
    query = arguments.pop("query", QUERY)
    policy = PolicyGraph.by_category(paper.CATEGORIES)
    return Stream(MarkovModel(paper.TRANSITION), policy, query, **arguments)


def moved(**options):
    stream = fresh(**options)
    stream.release(1)
    stream.release_also(1, SPEED, epsilon="1/3")
    stream.skip()
    stream.release(4, epsilon="2.5")
    return stream


def same_belief(a, b):
    for one, other in zip(a.arrays(), b.arrays(), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.tobytes() == other.tobytes()


def facts_of(data):
    with np.load(BytesIO(data)) as arrays:
        return json.loads(arrays["facts"].tobytes())


def rewritten(data, **changes):
    """The same snapshot with some facts changed."""
    with np.load(BytesIO(data)) as arrays:
        held = dict(arrays)
    facts = {**json.loads(held["facts"].tobytes()), **changes}
    held["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    buffer = BytesIO()
    np.savez(buffer, **held)
    return buffer.getvalue()


# Paper: Algorithm 2 goes on as if it had never stopped


def test_a_resumed_stream_goes_on_bit_for_bit():
    stream = moved(limit=20)
    again = restore(fresh(limit=20), snapshot(stream), [SPEED])
    assert again.time == stream.time
    assert again.ledger.entries == stream.ledger.entries
    assert again.ledger.limit == stream.ledger.limit
    same_belief(again.posterior, stream.posterior)
    np.testing.assert_array_equal(again.smoothed(), stream.smoothed())
    for state in (5, 4, 3):
        one, other = stream.release(state), again.release(state)
        assert one.lattice.tolist() == other.lattice.tolist()
        assert one.estimate.tobytes() == other.estimate.tobytes()
        assert one.statement == other.statement
        same_belief(again.posterior, stream.posterior)
    np.testing.assert_array_equal(again.smoothed(), stream.smoothed())
    assert again.ledger.entries == stream.ledger.entries


def test_a_release_that_was_lost_is_given_again():
    """Killed after the answer left and before the next snapshot: the same answer comes again."""
    stream = moved()
    data = snapshot(stream)
    lost = stream.release(5)
    again = restore(fresh(), data, [SPEED]).release(5)
    assert again.lattice.tolist() == lost.lattice.tolist()


# Laws


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["1/10", "8", "60"]), st.integers(0, 6))
def test_any_stream_resumes_anywhere(seed, epsilon, cut):
    rng = np.random.default_rng(seed)
    points, edges, _ = geometry.random_case(rng, 2, states=5)
    n = len(points)
    model = MarkovModel(np.full((n, n), 1 / n))

    def start():
        policy = PolicyGraph(n, edges)
        return Stream(model, policy, Query(points), epsilon=epsilon, start=0, key=KEY, person="p")

    whole, part = start(), start()
    states = rng.integers(n, size=7).tolist()
    for time, state in enumerate(states):
        if time == cut:
            part = restore(start(), snapshot(part))
        if state == 0:
            whole.skip()
            part.skip()
            continue
        assert whole.release(state).lattice.tolist() == part.release(state).lattice.tolist()
        same_belief(whole.posterior, part.posterior)
    assert whole.ledger.entries == part.ledger.entries


@pytest.mark.parametrize("history", [True, False])
def test_what_was_spent_stays_spent(history):
    stream = moved(limit=4)
    data = snapshot(stream, history=history)
    again = restore(fresh(limit=4), data, [SPEED])
    assert again.ledger.spent == stream.ledger.spent == Fraction(23, 6)
    assert again.ledger.constrained == stream.ledger.constrained
    with pytest.raises(BudgetError) as caught:
        again.release(5)
    assert caught.value.remaining == Fraction(1, 6)
    assert again.release(5, epsilon="1/6").time == 4


def test_without_history_a_snapshot_is_shorter_and_says_nothing_of_the_past():
    stream = moved()
    data = snapshot(stream, history=False)
    assert len(data) < len(snapshot(stream))
    assert facts_of(data)["said"] == []
    (entry,) = restore(fresh(), data).ledger.entries
    assert (entry.time, entry.query, entry.epsilon) == (0, EARLIER, Fraction(23, 6))
    same_belief(restore(fresh(), data).posterior, stream.posterior)
    twice = restore(fresh(), data)
    twice.release(5)
    later = restore(fresh(), snapshot(twice, history=False))
    assert later.ledger.spent == Fraction(29, 6)


def test_the_snapshots_limit_holds_until_the_stream_names_another():
    data = snapshot(moved(limit=4))
    assert restore(fresh(), data, [SPEED]).ledger.limit == 4
    assert restore(fresh(limit=9), data, [SPEED]).ledger.limit == 9
    assert restore(fresh(limit=1), data, [SPEED]).ledger.limit == 1


def test_beliefs_too_small_for_floats_are_kept():
    model = MarkovModel(np.full((2, 2), 0.5))
    arguments = {"epsilon": 1, "start": 0, "key": KEY, "person": "ann"}

    def far():
        return Stream(model, PolicyGraph(2), Query([[0], [1]]), **arguments)

    stream = far()
    for _ in range(3):
        stream.repeat([5_000])
    assert np.isfinite(stream.posterior.log_probabilities).all()
    again = restore(far(), snapshot(stream))
    same_belief(again.posterior, stream.posterior)


def test_huge_answers_are_kept_exactly():
    query = Query(np.array([[2**62 - 1], [-(2**62) + 1]]))
    model = MarkovModel(np.full((2, 2), 0.5))

    def huge():
        policy = PolicyGraph.complete(2)
        return Stream(model, policy, query, epsilon="1/65536", start=0, key=KEY, person="ann")

    stream = huge()
    said = [stream.release(time % 2).lattice.tolist() for time in range(6)]
    assert max(abs(answer[0]) for answer in said) > 2**63
    again = restore(huge(), snapshot(stream))
    assert [entry.lattice.tolist() for entry in again.said] == said


# Oracle: what does not belong is refused


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (lambda: moved(), "stream must be fresh"),
        (lambda: fresh(query=Query(np.array(paper.VALUES) + 1)), "must have the query"),
        (lambda: fresh(query=Query(paper.VALUES, step="1/2")), "must have the query"),
        (lambda: fresh(person="bob"), "snapshot's person and scenario, got 'bob'"),
        (lambda: fresh(scenario="work"), "snapshot's person and scenario"),
    ],
)
def test_another_stream_is_refused(stream, message):
    with pytest.raises(ArgumentError, match=message):
        restore(stream(), snapshot(moved()), [SPEED])


def test_further_queries_must_be_given():
    with pytest.raises(ArgumentError, match="queries must hold all 1 further queries"):
        restore(fresh(), snapshot(moved()))


def test_a_refused_snapshot_leaves_the_stream_fresh():
    stream = fresh()
    for data in (b"", snapshot(moved(person="bob"))):
        with pytest.raises((ArgumentError, DataError)):
            restore(stream, data)
    assert (stream.time, stream.ledger.entries, stream.said) == (0, (), [])
    assert restore(stream, snapshot(moved()), [SPEED]).time == 3


@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x03\x04 broken", snapshot(moved())[:-40]])
def test_other_bytes_are_refused(data):
    with pytest.raises(DataError, match="snapshot must be one that dphmm wrote"):
        restore(fresh(), data)


def test_arrays_that_are_no_snapshot_are_refused():
    buffer = BytesIO()
    np.savez(buffer, other=np.zeros(3))
    with pytest.raises(DataError, match="snapshot must be one that dphmm wrote"):
        restore(fresh(), buffer.getvalue())


def test_another_format_or_number_of_states_is_refused():
    with pytest.raises(DataError, match="must fit this version"):
        restore(fresh(), rewritten(snapshot(moved()), format=2), [SPEED])
    few = Stream(
        MarkovModel([[1.0]]), PolicyGraph(1), Query([[0, 0]]), epsilon=1, start=0, person="ann"
    )
    with pytest.raises((DataError, ArgumentError)):
        restore(few, snapshot(moved()))


def test_a_snapshot_holds_no_key():
    data = snapshot(moved())
    assert KEY not in data
    assert KEY.hex() not in json.dumps(facts_of(data))
