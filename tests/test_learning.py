"""Learning: raw counts, private counts, and EM on releases."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from dphmm import (
    ArgumentError,
    Ledger,
    MarkovModel,
    Mechanism,
    Query,
    SensitivityHull,
    TimeVaryingModel,
)
from dphmm.noise.randomness import SeededRandomness
from dphmm.scenario import PUBLIC_SOURCE
from dphmm.scenario.learning import (
    Moves,
    _bounded,
    _counts,
    learn_from_releases,
    learn_private,
    learn_public,
    moves_within,
)
from tests import paper
from tests.scenarios import paper_scenario

STATES = 4
PLACES = [[0, 0], [1, 0], [2, 0], [9, 9]]

# Chi-square: a right sampler fails with this probability, and the seed is fixed.
SIGNIFICANCE = 1e-4


def seeded(seed: int) -> SeededRandomness:
    return SeededRandomness(np.random.default_rng(seed))


tracks = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, STATES - 1)), min_size=1, max_size=30
).map(
    lambda steps: Moves.of_track(np.cumsum([gap for gap, _ in steps]), [at for _, at in steps])
)  # fmt: skip


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


@given(st.lists(tracks, max_size=5), tracks, st.integers(1, 8), st.integers(1, 3))
def test_one_person_changes_the_counts_by_at_most_the_bound(
    others: list[Moves], person: Moves, max_moves: int, slots: int
) -> None:
    support = moves_within(PLACES, 1)
    rows = np.repeat(np.arange(STATES), np.diff(support.indptr))
    keys = rows * STATES + support.indices

    def counts(people: list[Moves]) -> np.ndarray:
        bounded = [_bounded(moves, keys, STATES, max_moves) for moves in people]
        return np.stack([c.toarray() for c in _counts(bounded, STATES, slots)])

    change = counts([*others, person]) - counts(others)
    assert np.abs(change).sum() <= max_moves
    assert (counts([person])[:, support.toarray() == 0] == 0).all()


def test_a_person_with_many_moves_reaches_the_bound_and_not_more() -> None:
    person = Moves.of_track(np.arange(100), np.arange(100) % 3)
    keys = np.arange(STATES * STATES)
    assert len(_bounded(person, keys, STATES, 7)) == 7
    chosen = _bounded(person, keys, STATES, 7).slots
    assert chosen.min() < 15
    assert chosen.max() > 80, "they are spread over the whole track"


@given(st.lists(tracks, max_size=4), st.lists(tracks, max_size=4), st.integers(0, 99))
def test_what_is_possible_does_not_depend_on_the_data(
    one: list[Moves], other: list[Moves], seed: int
) -> None:
    support = moves_within(PLACES, 1)
    models = [
        learn_private(people, STATES, epsilon=1, max_moves=3, support=support,
                      randomness=seeded(seed)).model.at(1)
        for people in (one, other)
    ]  # fmt: skip
    for model in models:
        assert sparse.csr_array((model.transition > 0) != (support > 0)).nnz == 0


def test_the_file_says_what_was_promised() -> None:
    learned = learn_private(
        [], STATES, epsilon="0.5", max_moves=20, support=moves_within(PLACES, 1)
    )
    assert learned.source.startswith("private, epsilon=0.5 for everything about one person")
    assert "at most 20 moves a person" in learned.source
    assert "scale 40" in learned.source


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0}, {"epsilon": -1}, {"max_moves": 0}, {"max_moves": True}, {"prior": 0.0},
     {"support": sparse.csr_array((2, 2))}, {"slots": 0}],
)  # fmt: skip
def test_learning_refuses_what_makes_no_sense(wrong: dict[str, object]) -> None:
    arguments = {"epsilon": 1, "max_moves": 5, "support": moves_within(PLACES, 1), **wrong}
    with pytest.raises(ArgumentError, match="must"):
        learn_private([], STATES, **arguments)  # type: ignore[arg-type]


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


# Oracle


def noisy_rows(seed: int, cells: int, max_moves: int, epsilon: Fraction) -> np.ndarray:
    """Learned from nobody: each row has two moves, equal if their clamped noise is."""
    places = np.stack([np.repeat(np.arange(cells), 2), np.tile([0, 1], cells)])
    support = sparse.csr_array((np.ones(2 * cells), places), shape=(cells, cells))
    model = learn_private(
        [], cells, epsilon=epsilon, max_moves=max_moves, support=support,
        randomness=seeded(seed),
    ).model.at(1)  # fmt: skip
    return model.transition[:, [0, 1]].toarray()


def chance_of_a_tie(max_moves: int, epsilon: Fraction) -> float:
    """P(max(a, 0) == max(b, 0)) for independent discrete Laplace a and b."""
    decay = exp(-float(epsilon) / max_moves)
    zero = (1 - decay) / (1 + decay)
    at_most_zero = zero + (1 - zero) / 2
    return at_most_zero**2 + sum((zero * decay**k) ** 2 for k in range(1, 2000))


@pytest.mark.parametrize(("scale", "fits"), [(1.0, True), (2.0, False)])
def test_the_noise_on_the_counts_is_the_discrete_laplace(scale: float, fits: bool) -> None:
    cells, max_moves, epsilon = 3000, 3, Fraction(2)
    rows = noisy_rows(7, cells, max_moves, epsilon)
    ties = int((rows[:, 0] == rows[:, 1]).sum())
    chance = chance_of_a_tie(max_moves, epsilon * Fraction(scale))
    accepted = stats.binomtest(ties, cells, chance).pvalue > SIGNIFICANCE
    assert bool(accepted) is fits


def test_the_noise_on_one_count_has_the_exact_probabilities() -> None:
    draws, max_moves, epsilon = 4000, 2, Fraction(1)
    mechanism = Mechanism(Query([0]), SensitivityHull.from_vertices([[max_moves]]), epsilon)
    source = seeded(11)
    seen = Counter(int(mechanism.sample_lattice(0, source)[0]) for _ in range(draws))
    decay = exp(-float(epsilon) / max_moves)
    edge = 8
    chances = {k: (1 - decay) / (1 + decay) * decay ** abs(k) for k in range(-edge, edge + 1)}
    observed = [seen[k] for k in chances]
    observed.append(draws - sum(observed))
    expected = [*(draws * chance for chance in chances.values())]
    expected.append(draws - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > SIGNIFICANCE
