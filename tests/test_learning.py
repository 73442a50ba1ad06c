"""Learning: raw counts, and EM on releases; `test_private.py` has what is private."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dphmm import (
    Belief,
    Ledger,
    MarkovModel,
    Stream,
    TimeVaryingModel,
)
from dphmm.noise.randomness import SeededRandomness
from dphmm.scenario import PUBLIC_SOURCE
from dphmm.scenario.learning import (
    Moves,
    learn_from_releases,
    learn_public,
)
from tests import paper
from tests.scenarios import paper_scenario

STATES = 4


# Paper


def test_long_walks_teach_the_running_example() -> None:
    model = MarkovModel(paper.TRANSITION)
    walks = [
        model.sample(4000, rng=np.random.default_rng(seed), start=seed % 6) for seed in range(12)
    ]
    people = [Moves.of_track(np.arange(len(walk)), walk) for walk in walks]
    learned = learn_public(people, 6)
    assert learned.source == PUBLIC_SOURCE
    # 48,000 moves: every visited row has thousands, so 0.05 is more than five deviations.
    seen = np.flatnonzero(np.bincount(np.concatenate(walks), minlength=6) > 1000)
    found = learned.model.at(1).transition.toarray()
    np.testing.assert_allclose(found[seen], np.array(paper.TRANSITION)[seen], rtol=0, atol=0.05)


# Laws


def test_a_gap_is_no_move_and_each_slot_learns_its_own() -> None:
    moves = Moves.of_track([0, 1, 2, 4, 5], [0, 1, 0, 2, 3])
    assert moves.targets.tolist() == [1, 0, 3]
    learned = learn_public([moves], STATES, slots=2).model
    assert isinstance(learned, TimeVaryingModel)
    assert learned.at(1).transition.toarray()[0, 1] == 1
    assert learned.at(2).transition.toarray()[1, 0] == 1
    assert learned.at(1).transition.toarray()[2, 3] == 1


def test_learning_from_releases_needs_no_states_and_costs_nothing() -> None:
    scenario = paper_scenario(epsilon=Fraction(4))
    model = MarkovModel(paper.TRANSITION)
    streams = []
    for seed in range(6):
        randomness = SeededRandomness(np.random.default_rng(seed))
        stream = scenario.stream(f"person {seed}", ledger=Ledger(), randomness=randomness)
        for state in model.sample(30, rng=np.random.default_rng(seed + 100), start=0):
            stream.release(int(state))
        streams.append(stream)
    spent = [stream.ledger.spent for stream in streams]
    learned = learn_from_releases(streams, iterations=5)
    assert [stream.ledger.spent for stream in streams] == spent
    assert learned.source == "from releases of 6 people by EM; no further cost"

    def score(model: MarkovModel) -> float:
        return sum(model.score(s.observations(), start=s.start) for s in streams)

    assert score(learned.model.at(1)) > score(scenario.model.at(1))
    assert (learned.model.at(1).transition.toarray() > 0).tolist() == (
        np.array(paper.TRANSITION) > 0
    ).tolist()


def test_a_stream_that_was_taken_up_again_teaches_from_where_it_stood() -> None:
    """Only its later answers are in it, so what is known before them is no longer the start."""
    scenario, randomness = paper_scenario(), SeededRandomness(np.random.default_rng(5))
    stream = scenario.stream("ann", ledger=Ledger(), randomness=randomness)
    for state in (1, 2, 3):
        stream.release(state)
    standing = stream.standing
    options = {"epsilon": 1, "start": scenario.terms.start, "law": stream.law}
    later = Stream.resume(standing, scenario.model, scenario.plan, randomness=randomness, **options)
    for state in (4, 3, 4, 5):
        later.release(state)
    model = scenario.model.at(1)
    learned = learn_from_releases([later], iterations=3)

    def oracle(start: Belief) -> np.ndarray:
        found = model.fit_em([later.observations()], start=[start], n_iter=3, smoothing=0.1)
        return found.model.transition.toarray()

    np.testing.assert_array_equal(learned.model.at(1).transition.toarray(), oracle(standing.belief))
    assert (oracle(standing.belief) != oracle(scenario.terms.start)).any()
