"""Adversaries: other knowledge, other models, inference from tracks, the attack on LocalDP."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.belief import Belief
from dphmm.chain.markov import MarkovModel
from dphmm.cost.adversary import (
    attack,
    guarantee_against,
    largest_gains,
    private_identification_rate,
    private_score,
    suspect_probabilities,
)
from dphmm.cost.charges import constrained_epsilon
from dphmm.cost.local_noise import LocalRelease, local_hull
from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.release.stream import Stream
from tests import geometry, paper

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
MODEL = MarkovModel(paper.TRANSITION)
S2, S4, S5, S6 = 1, 3, 4, 5
FLOAT_REL = 1e-9
DRAWS = 300


def mask(*states):
    return np.isin(np.arange(6), states)


# Paper: adversarial knowledge (appendix)


def test_case_i_narrowed_to_s2_and_s6_leaves_s2_unprotected():
    """The paper says that DPHMM still holds; the norm of s6 - s2 is 5/3."""
    possible = np.array(paper.POSSIBLE_HIDING_S2)
    body = sensitivity_hull(QUERY, POLICY, possible)
    before = guarantee_against(QUERY, POLICY, body, 1, possible=possible, known=possible)
    assert (before.case, before.unprotected.tolist()) == ("same", [])
    after = guarantee_against(QUERY, POLICY, body, 1, possible=possible, known=mask(S2, S6))
    assert (after.case, after.epsilon) == ("I", Fraction(5, 3))
    assert S2 in after.unprotected


def test_case_i_holds_while_a_state_that_hides_remains():
    possible = np.array(paper.POSSIBLE_HIDING_S2)
    body = sensitivity_hull(QUERY, POLICY, possible)
    seen = guarantee_against(QUERY, POLICY, body, 1, possible=possible, known=mask(S2, S4, S6))
    assert (seen.case, seen.unprotected.tolist()) == ("I", [])


def test_case_ii_exposes_a_state_that_the_model_ruled_out():
    """Noise was made for {s4, s5, s6}; whoever also thinks of s3 finds it exposed."""
    possible, known = mask(S4, S5, S6), np.array(paper.POSSIBLE_EXPOSING_S3)
    body = sensitivity_hull(QUERY, POLICY, possible)
    seen = guarantee_against(QUERY, POLICY, body, 1, possible=possible, known=known)
    assert (seen.case, seen.unprotected.tolist()) == ("II", [2])
    # He is nearly sure of s3, and an answer at s6 takes that from him: a gain of 19 and more.
    prior, mechanism = np.array([0, 0, 0.97, 0.01, 0.01, 0.01]), Mechanism(QUERY, body, Fraction(1))
    gains = largest_gains(mechanism, prior)
    assert gains[S6] == gains.max() > 19 > exp(1)
    assert gains.max() <= exp(seen.epsilon)
    # A stream answers s3 as s5: then nobody gains more than e^epsilon, whatever the answer.
    assert QUERY.nearest_states(np.array([2]), possible).tolist() == [S5]
    for answer in product(range(-9, 10), repeat=2):
        heard = np.exp(mechanism.lattice_log_likelihood(answer))
        heard[2] = heard[S5]
        assert (heard[possible] / (prior @ heard)).max() <= exp(1) * (1 + 1e-9)


def test_sets_that_share_nothing_have_nothing_to_guarantee():
    body = sensitivity_hull(QUERY, POLICY)
    seen = guarantee_against(QUERY, POLICY, body, 1, possible=mask(S2), known=mask(S5))
    assert (seen.case, seen.epsilon, seen.common.any()) == ("other", 0, False)


def test_adversarial_privacy_holds_over_all_priors_and_not_back_from_one():
    """Constrained DP bounds the gain for every prior; the Markov prior alone stays well below.

    So adversarial privacy for that one prior says less than constrained DP (erratum).
    """
    prior = Belief.certain(0, 6).predict(MODEL).predict(MODEL)
    possible = prior.possible
    assert possible.tolist() == list(paper.POSSIBLE_EXPOSING_S3)
    body = sensitivity_hull(QUERY, POLICY.with_edges([[2, 4]]), possible)
    mechanism = Mechanism(QUERY, body, Fraction(1))
    limit = exp(constrained_epsilon(QUERY, body, 1, possible))
    markov = largest_gains(mechanism, prior).max()
    assert markov < 0.8 * limit
    far = [(a, b) for a in np.flatnonzero(possible) for b in np.flatnonzero(possible)]
    norms = [body.lattice_norm(QUERY.points[a] - QUERY.points[b]) for a, b in far]
    a, b = far[int(np.argmax([float(norm) for norm in norms]))]
    sure = np.where(np.arange(6) == b, 1 - 1e-9, 0.0) + np.where(np.arange(6) == a, 1e-9, 0.0)
    assert largest_gains(mechanism, sure)[a] == pytest.approx(limit, rel=1e-6)


# Paper: the attack on LocalDP (appendix), with the path s4 - s6 - s5 that it needs

PATH = PolicyGraph(6, [(S4, S6), (S6, S5)])
POSSIBLE = mask(S4, S5, S6)


def test_localdp_puts_answers_on_lines_that_name_the_state():
    leaky = LocalRelease.local(QUERY, PATH, 1, POSSIBLE)
    assert sorted(leaky.hulls[S4].lattice_vertices.tolist()) == [[-1, -1], [1, 1]]
    assert sorted(leaky.hulls[S5].lattice_vertices.tolist()) == [[-3, 0], [3, 0]]
    assert leaky.lattice_candidates(QUERY.points[S4] + 2) == [S4, S6]
    assert leaky.lattice_candidates(QUERY.points[S5] - [2, 0]) == [S5, S6]
    assert leaky.lattice_candidates([2, 5]) == [S6]


@pytest.mark.parametrize("state", [S4, S5, S6])
def test_the_attack_rules_states_out_of_localdp_and_none_out_of_ours(state):
    source = SeededRandomness(np.random.default_rng(0))
    leaky = LocalRelease.local(QUERY, PATH, 1, POSSIBLE)
    ours = LocalRelease.shared(QUERY, sensitivity_hull(QUERY, PATH, POSSIBLE), 1, POSSIBLE)
    left = [leaky.lattice_candidates(leaky.sample_lattice(state, source)) for _ in range(DRAWS)]
    assert all(state in candidates for candidates in left)
    assert np.mean([len(candidates) < 3 for candidates in left]) > 0.8
    if state == S6:
        assert [S6] in left
    for _ in range(DRAWS):
        assert ours.lattice_candidates(ours.sample_lattice(state, source)) == [S4, S5, S6]


def test_in_the_papers_clique_all_states_have_the_same_neighbours_and_the_attack_fails():
    leaky = LocalRelease.local(QUERY, POLICY, 1, POSSIBLE)
    assert leaky.hulls[S4] == leaky.hulls[S5] == leaky.hulls[S6]


def test_a_stream_uses_one_hull_whatever_the_true_state_is():
    hulls = []
    for state in (S4, S5, S6):
        stream = Stream(MODEL, Plan(PATH, QUERY), epsilon=1, start=S6)
        stream.release(state)
        hulls.append(stream.hull)
    assert hulls[0] == hulls[1] == hulls[2]


# Laws


@given(geometry.cases(reach=4, dimensions=(1, 2, 3)), st.integers(0, 2**32))
def test_no_gain_passes_the_constrained_epsilon_and_gains_are_at_least_one(case, seed):
    points, edges, possible = case
    query = Query(points)
    weights = np.random.default_rng(seed).random(len(points)) * possible
    if not weights.sum():
        return
    hull = sensitivity_hull(query, PolicyGraph(len(points), edges), possible)
    mechanism = Mechanism(query, hull, Fraction(1, 2))
    gains = largest_gains(mechanism, weights / weights.sum())
    limit = constrained_epsilon(query, hull, Fraction(1, 2), weights > 0)
    assert gains.min() >= 1 - FLOAT_REL
    assert np.log(gains.max()) <= limit * (1 + FLOAT_REL) + FLOAT_REL


@given(geometry.cases(reach=4, dimensions=(1, 2)), st.integers(0, 2**32))
def test_what_is_guaranteed_never_grows_with_what_is_known(case, seed):
    points, edges, _ = case
    query, policy = Query(points), PolicyGraph(len(points), edges)
    rng = np.random.default_rng(seed)
    everything = np.ones(len(points), dtype=bool)
    fewer = rng.random(len(points)) < 0.6
    if not fewer.any():
        return
    body = sensitivity_hull(query, policy)
    all_known = guarantee_against(query, policy, body, 1, possible=everything, known=everything)
    more = guarantee_against(query, policy, body, 1, possible=everything, known=fewer)
    assert more.epsilon <= all_known.epsilon
    assert (more.common == fewer).all()
    assert set(more.unprotected) <= set(np.flatnonzero(fewer))


def test_smoothing_and_the_true_model_help_and_a_wrong_model_hurts():
    """Averages over sixty tracks: differences are several standard errors wide."""
    rng = np.random.default_rng(7)
    side = range(5)
    cells = np.array([(x, y) for x in side for y in side])
    near = np.abs(cells[:, None] - cells[None, :]).sum(axis=2) <= 1
    walk = MarkovModel(near / near.sum(axis=1, keepdims=True))
    blind = MarkovModel(np.full((25, 25), 1 / 25))
    query = Query(cells * 100)
    policy = PolicyGraph.within_distance(query, 150)
    scores = {"true": [], "blind": []}
    for _ in range(60):
        stream = Stream(
            walk, Plan(policy, query), epsilon=2, start=12, randomness=SeededRandomness(rng)
        )
        truth = walk.sample(15, rng=rng, start=12)
        for state in truth:
            stream.release(int(state))
        for name, model in (("true", walk), ("blind", blind)):
            found = attack(stream.observations(), model=model, start=12)
            scores[name].append(private_score(found, truth, query, model=walk, start=12))
    mean = {
        name: {
            kind: np.mean([getattr(score, kind).error for score in some])
            for kind in ("prior", "filtered", "smoothed", "path")
        }
        for name, some in scores.items()
    }
    assert mean["true"]["smoothed"] < mean["true"]["filtered"] < mean["true"]["prior"]
    assert mean["true"]["filtered"] < mean["blind"]["filtered"]
    assert all(score.private for score in scores["true"])
    right = [np.mean([getattr(s, k).right for s in scores["true"]]) for k in ("prior", "smoothed")]
    assert right[0] < right[1]


def test_an_incomplete_model_that_forbids_the_releases_is_refused():
    stays = MarkovModel(np.eye(2))
    with pytest.raises(ArgumentError, match="model must allow the releases"):
        attack([[-inf, 0.0]], model=stays, start=0)


def test_tracks_are_traced_to_their_owners_more_often_than_by_chance():
    rng = np.random.default_rng(3)
    query = Query([[0, 0], [4, 0], [0, 4], [4, 4]])
    policy = PolicyGraph.complete(4)
    starts = [0, 1, 2, 3]
    home = [0.97 * np.eye(4) + 0.01, 0.9 * np.roll(np.eye(4), 1, 1) + 0.025]
    models = [MarkovModel(matrix / matrix.sum(axis=1, keepdims=True)) for matrix in home]
    suspects = [(model, start) for model in models for start in starts]
    found, owners = [], []
    for owner, (model, start) in enumerate(suspects * 3):
        stream = Stream(
            model, Plan(policy, query), epsilon=2, start=start, randomness=SeededRandomness(rng)
        )
        for state in model.sample(12, rng=rng, start=start):
            stream.release(int(state))
        found.append(suspect_probabilities(stream.observations(), suspects))
        owners.append(owner % len(suspects))
    right, given_to_owner = private_identification_rate(found, owners)
    assert right > 0.5 > 1 / len(suspects)
    assert given_to_owner > 0.4


def test_a_suspect_who_cannot_have_been_there_is_cleared():
    stays, moves = MarkovModel(np.eye(2)), MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    seen = [[-inf, 0.0]]
    assert suspect_probabilities(seen, [(stays, 0), (moves, 0)]).tolist() == [0.0, 1.0]
    with pytest.raises(ArgumentError, match="suspects must include"):
        suspect_probabilities(seen, [(stays, 0)])


def test_a_prior_about_suspects_moves_the_verdict():
    fair = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    same = [(fair, 0), (fair, 0)]
    assert suspect_probabilities([[0.0, -1.0]], same, [0.9, 0.1]) == pytest.approx([0.9, 0.1])


# Oracle


@pytest.mark.parametrize("weights", [(1, 1, 1, 1, 1, 1), (9, 1, 0, 2, 1, 5), (0, 1, 0, 0, 0, 99)])
def test_the_largest_gain_is_that_of_every_answer_in_a_window(weights):
    prior = np.array(weights, dtype=float) / sum(weights)
    mechanism = Mechanism(QUERY, sensitivity_hull(QUERY, POLICY), Fraction(3, 2))
    best = np.ones(6)
    for answer in product(range(-9, 15), range(-9, 13)):
        likelihood = np.exp(mechanism.lattice_log_likelihood(answer))
        best = np.maximum(best, np.where(prior > 0, likelihood / (prior @ likelihood), 1.0))
    assert largest_gains(mechanism, prior) == pytest.approx(best, rel=FLOAT_REL)


def test_the_score_of_an_attack_is_that_of_all_paths():
    model = MarkovModel([[0.5, 0.5], [0.2, 0.8]])
    rows = np.log([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
    found = attack(rows, model=model, start=0)
    matrix, likelihood = model.transition.toarray(), np.exp(rows)
    weights = {
        path: np.prod([matrix[a, b] for a, b in zip((0, *path), path, strict=False)])
        * np.prod([likelihood[t, s] for t, s in enumerate(path)])
        for path in product((0, 1), repeat=3)
    }
    total = sum(weights.values())
    assert found.score == pytest.approx(log(total), rel=FLOAT_REL)
    assert tuple(found.path) == max(weights, key=weights.get)
    truth = (1, 0, 1)
    query = Query([[0, 0], [3, 4]])
    score = private_score(found, truth, query, model=model, start=0)
    right = sum(
        weight / total * np.mean([a == b for a, b in zip(path, truth, strict=True)])
        for path, weight in weights.items()
    )
    assert score.smoothed.right == pytest.approx(right, rel=FLOAT_REL)
    assert score.smoothed.error == pytest.approx(5 * (1 - right), rel=FLOAT_REL)
    assert score.path.right == np.mean([a == b for a, b in zip(found.path, truth, strict=True)])


# Arguments


def test_bad_arguments_say_what_they_must_be_and_no_state():
    model, query = MarkovModel([[0.5, 0.5], [0.5, 0.5]]), Query([[0], [1]])
    found = attack([[0.0, 0.0]], model=model, start=0)
    for truth in ([0, 1], [0.5], [777]):
        with pytest.raises(ArgumentError, match="truth must be") as caught:
            private_score(found, truth, query, model=model, start=0)
        assert "777" not in str(caught.value)
    with pytest.raises(ArgumentError, match="suspects must name"):
        suspect_probabilities([[0.0, 0.0]], [])
    with pytest.raises(ArgumentError, match="prior must have"):
        suspect_probabilities([[0.0, 0.0]], [(model, 0)], [0.5, 0.5])
    for owners in ([0, 1], [5], [0.5]):
        with pytest.raises(ArgumentError, match="owners must be"):
            private_identification_rate([[0.5, 0.5]], owners)


def test_a_lone_state_without_neighbours_has_a_local_hull_of_rank_zero():
    assert local_hull(QUERY, POLICY, 0).rank == 0
    assert local_hull(QUERY, POLICY, 0) == SensitivityHull.from_lattice(np.zeros((0, 2), dtype=int))
