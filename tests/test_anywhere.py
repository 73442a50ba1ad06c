"""A learned zero is a guess: models that were learned can go anywhere, stated ones cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Belief,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    SeededRandomness,
    Stream,
)
from dphmm.chain.anywhere import ANYWHERE
from dphmm.cost.bracket import path_epsilon
from dphmm.evaluate.workloads import load_workload
from dphmm.release.said import history_of
from dphmm.scenario.learning import Moves, learn_public, moves_within
from dphmm.scenario.private import Levels, learn_private
from dphmm.tables.datasets import synthetic_city


def test_a_matrix_that_is_given_states_its_zeros() -> None:
    model = MarkovModel([[0.5, 0.5], [0, 1]])
    assert (model.zeros, model.anywhere, model.own) == ("facts", 0, model)
    assert not model.jumps.any()
    assert model.successors([1]).tolist() == [False, True]


def test_a_model_that_was_learned_can_go_anywhere() -> None:
    for model in (
        MarkovModel.fit([[0, 1, 0]], n_states=3),
        MarkovModel.from_counts([[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
    ):
        assert (model.zeros, model.anywhere) == ("guesses", ANYWHERE)
        assert model.successors([0]).all()
        assert not model.successors([False] * 3).any()
        assert model.own.successors([0]).tolist() == [False, True, False]
        assert repr(model) == "MarkovModel(3 states, 3 moves, 0.01 anywhere)"


def test_whoever_says_facts_gets_facts() -> None:
    stated = MarkovModel.fit([[0, 1, 0]], n_states=3, zeros="facts")
    assert stated.zeros == "facts"
    assert stated.digest == MarkovModel(stated.transition).digest
    assert MarkovModel.from_counts([[1.0]], zeros="facts").zeros == "facts"


def test_the_fingerprint_tells_how_often_and_where_to() -> None:
    matrix = np.eye(2)
    digests = {
        MarkovModel(matrix).digest,
        MarkovModel(matrix, anywhere=0.1).digest,
        MarkovModel(matrix, anywhere=0.2).digest,
        MarkovModel(matrix, anywhere=0.2, density=[0.3, 0.7]).digest,
    }
    assert len(digests) == 4


def test_policies_and_location_sets_are_made_from_the_own_moves() -> None:
    ring = np.roll(np.eye(8), 1, axis=1)
    learned, stated = MarkovModel(ring, anywhere=0.3), MarkovModel(ring)
    assert PolicyGraph.one_step(learned).digest == PolicyGraph.one_step(stated).digest
    plan = Plan(PolicyGraph.complete(8), Query(np.arange(8)), delta=0.01)
    prior = Belief.certain(0, 8).predict(learned)
    assert np.flatnonzero(plan.to_protect(prior)).tolist() == [1]
    # Made from the whole belief, the set would hold nearly everything.
    assert plan.to_protect(Belief.from_probabilities(prior.probabilities)).sum() >= 7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MarkovModel([[1.0]], anywhere=1),
            "anywhere must be at least 0 and below 1, got 1",
        ),
        (lambda: MarkovModel([[1.0]], anywhere=-0.1), "anywhere must be at least 0"),
        (lambda: MarkovModel([[1.0]], density=[1.0]), "anywhere must be above 0 when a density"),
        (lambda: MarkovModel(np.eye(2), anywhere=0.1, density=[1.0]), "density must have 2 values"),
        (lambda: MarkovModel(np.eye(2), anywhere=0.1, density=[1, 0]), "above zero in every state"),
        (
            lambda: MarkovModel(np.eye(2), anywhere=0.1, density=[0.5, 0.6]),
            "density must be above zero in every state and sum to one",
        ),
        (lambda: MarkovModel.fit([], n_states=1, zeros="never"), "zeros must be guesses or facts"),
        (
            lambda: MarkovModel.fit([], n_states=1, zeros="facts", anywhere=0.1),
            "anywhere must be 0 when zeros are facts, got 0.1",
        ),
        (lambda: MarkovModel.fit([], n_states=1, anywhere=0), "say zeros='facts'"),
    ],
)
def test_bad_arguments_are_refused(make: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()  # type: ignore[operator]


# Chosen by people held out


def ring_walks(anywhere: float, people: int) -> list[np.ndarray]:
    """Walks on a ring of 30 places, to a neighbour or nowhere, and sometimes anywhere."""
    rng = np.random.default_rng(3)
    moves = sum(np.roll(np.eye(30), shift, axis=1) for shift in (-1, 0, 1)) / 3
    model = MarkovModel(moves, anywhere=anywhere)
    return [model.sample(100, rng=rng, start=int(rng.integers(30))) for _ in range(people)]


@pytest.mark.parametrize("anywhere", [0.002, 0.01, 0.03])
def test_people_held_out_choose_how_often_people_go_anywhere(anywhere: float) -> None:
    # 4,000 moves, of which 4000 * anywhere went anywhere: give or take three times its root.
    walks = ring_walks(anywhere, people=40)
    model = MarkovModel.fit(walks, n_states=30, anywhere="held-out")
    assert model.zeros == "guesses"
    assert model.anywhere == pytest.approx(anywhere, abs=3 * (anywhere / 4000) ** 0.5 + 0.002)
    by_slots = learn_public([Moves.of_track(range(100), walk) for walk in walks], 30,
                            anywhere="held-out")  # fmt: skip
    assert by_slots.model.at(1).anywhere == model.anywhere


def test_no_other_share_makes_those_held_out_likelier() -> None:
    walks = ring_walks(0.05, people=7)
    chosen = MarkovModel.fit(walks, n_states=30, anywhere="held-out").anywhere

    def score(anywhere: float) -> float:
        total = 0.0
        for fold in range(5):
            others = [walk for number, walk in enumerate(walks) if number % 5 != fold]
            model = MarkovModel.fit(others, n_states=30, anywhere=anywhere)
            matrix = model.outgoing.toarray() + model.jumps
            total += sum(np.log(matrix[w[:-1], w[1:]]).sum() for w in walks[fold::5])
        return total

    best = score(chosen)
    assert all(best >= score(share) - 1e-3 for share in np.geomspace(1e-4, 0.5, 60))


def test_where_everything_was_seen_before_the_share_stays_above_zero() -> None:
    same = [[0, 1, 0, 1]] * 4
    model = MarkovModel.fit(same, n_states=2, anywhere="held-out")
    assert model.anywhere == 1e-4
    assert not model.has_stated_zeros


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MarkovModel.fit([[0, 1]], n_states=2, anywhere="held-out"),
            "anywhere must be a number when fewer than two people are known",
        ),
        (
            lambda: MarkovModel.fit([[0]] * 2, n_states=1, zeros="facts", anywhere="held-out"),
            "anywhere must be 0 when zeros are facts, got 'held-out'",
        ),
        (
            lambda: MarkovModel.from_counts([[1]], anywhere="held-out"),
            "anywhere must be a number where nobody's own moves may be looked at",
        ),
        (
            lambda: learn_private(
                [([0, 1], [0, 0])],
                Levels.of_moves(moves_within([[0.0]], 1)),
                epsilon=1,
                anywhere="held-out",  # type: ignore[arg-type]
            ),
            "anywhere must be a number where nobody's own moves may be looked at",
        ),
    ],
)
def test_a_choice_that_would_look_at_what_it_must_not_is_refused(
    make: object, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()  # type: ignore[operator]


# The promise


ANSWERS = [0, 100, 110, 1, 111]
LINKS = [(0, 1), (0, 3), (2, 4)]


def largest_loss(stream: Stream, pair: tuple[int, int]) -> Fraction:
    """The exact loss between two true states at the stream's next release.

    Noise is shift-invariant: it is epsilon times the norm of the answers' difference, once
    each state is replaced by the one that is answered in its place.
    """
    prior = stream.posterior.predict(stream.model.at(stream.time + 1))
    step = stream.plan.at(stream.plan.to_protect(prior))
    states = np.array(pair)
    outside = ~step.possible[states]
    states[outside] = stream.query.nearest_states(states[outside], step.possible)
    points = stream.query.points
    return step.body.lattice_norm(points[states[0]] - points[states[1]]) * stream.epsilon


def test_linked_states_never_lose_more_than_the_release_says() -> None:
    walk = [0, 2, 3, 4, 0, 3, 2, 4, 0]  # nobody was ever seen in state 1
    plan = Plan(PolicyGraph(5, LINKS), Query(ANSWERS))
    learned = MarkovModel.fit([walk], n_states=5)
    stream = Stream(learned, plan, epsilon=1, start=[0.2] * 5)
    for state in (1, 0, 1, 2):
        assert all(largest_loss(stream, link) <= 1 for link in LINKS)
        release = stream.release(state)
        assert release.statement.endswith("by at most a factor exp(1).")
    # The same counts taken for facts break the sentence for whoever is in state 1, and say so.
    stated = MarkovModel.fit([walk], n_states=5, zeros="facts")
    stream = Stream(stated, plan, epsilon=1, start=[0.25, 0, 0.25, 0.25, 0.25])
    assert largest_loss(stream, (0, 1)) == 110
    release = stream.release(0)
    assert release.statement.endswith(
        "for people who move as the model says is possible from its start."
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_no_walk_is_impossible_for_a_learned_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    query = Query(rng.integers(-50, 50, size=(n, int(rng.integers(1, 3)))))
    links = [(a, b) for a in range(n) for b in range(a) if rng.random() < 0.4]
    model = MarkovModel.fit([rng.integers(0, n, 3)], n_states=n)
    plan = Plan(PolicyGraph(n, links), query)
    stream = Stream(model, plan, epsilon=1, start=int(rng.integers(n)))
    for state in rng.integers(0, n, 4).tolist():
        if rng.random() < 0.2:
            stream.skip()
        for link in links:
            assert largest_loss(stream, link) <= 1
        stream.release(state)
        assert stream.said[-1].step.possible.all()
    statement = stream.statement(width=2)
    path, other = rng.integers(0, n, (2, stream.time))
    history = history_of(stream.said, model, stream.start, stream.began)
    lost = path_epsilon(history, path[: len(history)], other[: len(history)])
    assert lost <= statement.sequence  # type: ignore[operator]


STEPS = 40


def walk_errors(
    model: MarkovModel, plan: Plan, walks: Sequence[np.ndarray]
) -> tuple[float, float, int]:
    """The mean error of estimates and of raw answers, and the most equal answers of a walk."""
    estimates, answers, most = [], [], 0
    for number, walk in enumerate(walks):
        rng = SeededRandomness(np.random.default_rng(number))
        stream = Stream(model, plan, epsilon=1, start=int(walk[0]), randomness=rng)
        said = []
        for state in walk[1 : STEPS + 1].tolist():
            release = stream.release(state)
            truth = plan.query.values[state]
            estimates.append(np.linalg.norm(release.estimate - truth))
            answers.append(np.linalg.norm(release.answer - truth))
            said.append(tuple(release.lattice.tolist()))
        most = max(most, STEPS - len(set(said)))
    return float(np.mean(estimates)), float(np.mean(answers)), most


# Two of 40 answers about one place meet on a lattice of 10 m with noise of more than a
# kilometre with probability below 40^2 / 2 / (2 pi 100^2) = 0.013: three equal ones do not.
MOST_EQUAL = 2


def test_a_model_of_five_people_follows_others_in_the_made_up_city() -> None:
    city = synthetic_city(people=17, days=1, rng=np.random.default_rng(7), step_minutes=5)
    query = Query(city.grid.centers, step=10)
    plan = Plan(PolicyGraph.within_distance(query, 1000), query)
    walks = [states[90:] for states in city.states[5:]]
    model = MarkovModel.fit(city.states[:5], n_states=city.grid.n_states)
    estimate, raw, equal = walk_errors(model, plan, walks)
    assert equal <= MOST_EQUAL
    assert estimate < raw
    # Taken for facts, the same counts hold people fast: the mechanism that must fail.
    stated = MarkovModel.fit(city.states[:5], n_states=city.grid.n_states, zeros="facts")
    lost, _, equal = walk_errors(stated, plan, walks)
    assert equal == STEPS - 1
    assert lost > 2 * estimate


@pytest.mark.data
def test_a_model_of_five_people_follows_others_in_geolife(shared_data: Path) -> None:
    workload = load_workload("geolife", shared_data)
    names = sorted({trip.person for trip in workload.trips})
    known = [trip for trip in workload.trips if trip.person in names[:5]]
    # Ids are not people: whoever shares many minutes and cells with the five is one of them.
    records = {pair for trip in known for pair in zip(trip.times, trip.states, strict=True)}
    shared: Counter[str] = Counter()
    for trip in workload.trips:
        pairs = zip(trip.times, trip.states, strict=True)
        shared[trip.person] += sum(pair in records for pair in pairs)
    others = {name for name in names[5:] if shared[name] < 100}
    walks = [trip.states for trip in workload.sequences if trip.person in others]
    assert len(walks) > 15
    plan = Plan(PolicyGraph.within_distance(workload.query, 1), workload.query)
    model = MarkovModel.fit([trip.states for trip in known], n_states=workload.query.n_states)
    estimate, raw, equal = walk_errors(model, plan, walks)
    assert equal <= MOST_EQUAL
    assert estimate <= raw
