"""Noise on the lattice: its guarantee in fractions, its samples against its probabilities."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, product
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.cones import Fan, fan_of
from dphmm.noise.mechanism import BLOCK, MAX_SUMMED, Mechanism, body_for, lattice_vector
from dphmm.noise.randomness import KeyedRandomness, SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.repair import protect
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry, paper
from tests.noise_laws import p_value, window_of

KEY = bytes(range(32))
QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
HULL = sensitivity_hull(QUERY, POLICY)

DRAWS = 8_000
MANY_DRAWS = 60_000
# A right sampler falls below this for one seed in ten thousand, so over the thirty fixed
# cases here the seed was a fair choice; the wrong samplers stay below it for every seed tried.
RARE = 1e-4
FLOAT_REL = 1e-9  # sums of positive floats
TAIL_REL = 1e-6  # what the brute-force window leaves out, see `window_sums`

# Answers and edges: rank 1 to 4, full and flat.
CASES = {
    "rank 1": ([[0], [2], [3]], [[0, 1], [1, 2], [0, 2]]),
    "rank 1 in the plane": ([[0, 0], [2, 4], [1, 2]], [[0, 1], [1, 2]]),
    "rank 2": (paper.VALUES, POLICY.edges),
    "rank 2 long": ([[0, 0], [5, 1], [1, 1]], [[0, 1], [0, 2]]),
    "rank 2 in space": ([[0, 0, 0], [1, 0, 1], [0, 2, 2], [1, 1, 2]], [[0, 1], [0, 2], [1, 3]]),
    "rank 3": ([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 2]], [[0, 1], [0, 2], [0, 3], [1, 2]]),
    "rank 3 cube": (
        list(product((0, 1), repeat=3)),
        [[0, 7], [1, 6], [2, 5], [3, 4]],
    ),
    "rank 3 in four": (
        [[0, 0, 0, 0], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]],
        [[0, 1], [0, 2], [0, 3], [1, 2]],
    ),
    "rank 4": (
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 2]],
        [[0, 1], [0, 2], [0, 3], [0, 4]],
    ),
}
BODIES = {
    "knorm": body_for("knorm"),
    "laplace": body_for("laplace"),
    "enlarged": body_for("knorm", "enlarged"),
}


def case_of(name):
    points, edges = CASES[name]
    query = Query(points)
    return query, PolicyGraph(query.n_states, edges)


def body_of(hull, kind):
    make = BODIES[kind]
    return hull if make is None else make(hull)


def window_sums(body, epsilon, radius):
    """Z and E|x|^2 by brute force over ||x|| <= radius; the rest weighs about e^(-eps radius)."""
    reach = int(radius * np.abs(body.body.corners.astype(int)).max())
    vectors = window_of(body, reach)
    norms = body.lattice_norms(vectors)
    weights = np.where(norms <= radius, np.exp(-float(epsilon) * norms), 0.0)
    squares = (vectors.astype(np.float64) ** 2).sum(axis=1)
    return weights.sum(), (weights * squares).sum() / weights.sum()


def noise_from(fan, epsilon, n, seed=0):
    """Draws of a fan with Python's integers, which a broken one goes through as well."""
    source = SeededRandomness(np.random.default_rng(seed))
    return [tuple(fan.draw_with_integers(epsilon, source.words((), 0))) for _ in range(n)]


def sampled(mechanism, state, n, seed=0):
    source = SeededRandomness(np.random.default_rng(seed))
    point = mechanism.query.points[state]
    return [tuple((mechanism.sample_lattice(state, source) - point).tolist()) for _ in range(n)]


# Paper


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("name", CASES)
def test_no_answer_tells_linked_states_apart_by_more_than_epsilon(name, kind):
    """The exponents of two linked states differ by at most 1, as fractions (Theorem 5.2)."""
    query, policy = case_of(name)
    hull = sensitivity_hull(query, policy)
    body = body_of(hull, kind)
    reach = {1: 20, 2: 6, 3: 3, 4: 2}[body.rank]
    window = [vector.astype(object) for vector in window_of(body, reach)]
    attained = set()
    for low, high in policy.edges.tolist():
        edge = (query.points[low] - query.points[high]).astype(object)
        for vector in window:
            # The answer z = f(low) + vector, whose two norms are finite together.
            gap = body.lattice_norm(vector) - body.lattice_norm(vector + edge)
            assert isinstance(gap, Fraction)
            assert -1 <= gap <= 1
            if abs(gap) == 1:
                attained.add((low, high))
    on_boundary = {
        (low, high)
        for low, high in policy.edges.tolist()
        if body.lattice_norm(query.points[low] - query.points[high]) == 1
    }
    assert on_boundary <= attained
    if kind == "knorm":
        assert on_boundary


@pytest.mark.parametrize("name", [name for name in CASES if " in " in name])
def test_a_flat_body_says_with_certainty_which_span_an_answer_is_in(name):
    query, policy = case_of(name)
    mechanism = Mechanism(query, sensitivity_hull(query, policy), Fraction(1))
    beside = query.points[0] + np.eye(query.dimension, dtype=int)[0]
    assert (mechanism.lattice_log_probability(beside) == -inf).all()
    for low, high in policy.edges.tolist():
        assert np.isfinite(mechanism.lattice_log_probability(query.points[low])[high])


def test_the_ratio_of_s2_and_s3_is_exactly_epsilon():
    mechanism = Mechanism(QUERY, HULL, Fraction(3, 4))
    logs = mechanism.lattice_log_probability(QUERY.points[1])
    assert logs[1] - logs[2] == pytest.approx(0.75 * float(HULL.norm([1, -1])), rel=FLOAT_REL)


def test_isotropic_noise_is_k_norm_noise_under_another_name():
    assert body_for("isotropic") is body_for("knorm") is None
    assert body_for("isotropic", "enlarged") is body_for("knorm", "enlarged")


def test_laplace_noise_has_the_probabilities_of_independent_discrete_laplace():
    """With the cross-polytope of size S the axes are independent, with ratio e^(-eps/S) each."""
    mechanism = Mechanism(QUERY, HULL.l1_ball(), Fraction(2))
    ratio = exp(-2 / paper.L1_SENSITIVITY)
    alone = log((1 - ratio) / (1 + ratio))
    for answer in ([2, 1], [3, 0], [-4, 7]):
        distance = np.abs(np.array(answer) - QUERY.points).sum(axis=1)
        wanted = 2 * alone + distance * log(ratio)
        np.testing.assert_allclose(
            mechanism.lattice_log_probability(answer), wanted, rtol=FLOAT_REL
        )
    variance = 2 * ratio / (1 - ratio) ** 2
    assert mechanism.mean_squared_error == pytest.approx(2 * variance, rel=FLOAT_REL)


def test_the_notes_rectangle_has_the_notes_errors():
    """Section 1 of the notes: RMSE 2007 for the rectangle and 1771 with w = (0, 400)."""
    query = Query([[0, 0]])
    rectangle = SensitivityHull.from_vertices([[1000, 100], [1000, -100]])
    larger = SensitivityHull.from_vertices([[1000, 100], [1000, -100], [0, 400]])
    one = Fraction(1)
    for body, wanted in ((rectangle, 2007), (larger, 1771)):
        # The notes drew samples and print four digits.
        error = sqrt(Mechanism(query, body, one).mean_squared_error)
        assert error == pytest.approx(wanted, rel=2e-3)


# Laws


@given(geometry.cases(reach=3), st.sampled_from(["1/10", "1", "7/2"]), st.integers(0, 2**32))
def test_every_answer_lies_in_the_span_of_its_state_and_repeats_under_its_key(case, price, salt):
    points, edges, possible = case
    query = Query(points)
    hull = sensitivity_hull(query, PolicyGraph(len(points), edges), possible)
    mechanism = Mechanism(query, hull, Fraction(price))
    source, context = KeyedRandomness(KEY), (b"%d" % salt,)
    for state in range(query.n_states):
        answer = mechanism.sample_lattice(state, source, context)
        assert answer.dtype == np.int64
        assert np.isfinite(mechanism.lattice_log_likelihood(answer)[state])
        assert answer.tolist() == mechanism.sample_lattice(state, source, context).tolist()
        if hull.rank == 0:
            assert answer.tolist() == query.points[state].tolist()


@given(geometry.cases(reach=3), st.integers(0, 2**32))
def test_a_state_that_is_not_possible_is_answered_as_the_nearest_that_is(case, salt):
    points, edges, possible = case
    query = Query(points)
    mechanism = Mechanism(query, protected_hull(query, edges, possible), Fraction(1))
    source, context = KeyedRandomness(KEY), (b"%d" % salt,)
    for state in np.flatnonzero(~possible).tolist():
        distances = ((query.points - query.points[state]) ** 2).sum(axis=1)
        nearest = min(np.flatnonzero(possible), key=lambda other: (distances[other], other))
        answer = mechanism.sample_lattice(state, source, context, possible)
        stand_in = mechanism.sample_lattice(int(nearest), source, context, possible)
        assert answer.tolist() == stand_in.tolist()


@given(geometry.cases(reach=3), st.sampled_from(["1/10", "1", "7/2"]), st.integers(0, 2**32))
def test_many_answers_are_those_one_by_one(case, price, salt):
    points, edges, possible = case
    query = Query(points)
    hull = sensitivity_hull(query, PolicyGraph(len(points), edges), possible)
    mechanism = Mechanism(query, hull, Fraction(price))
    source = KeyedRandomness(salt.to_bytes(32, "big"))
    many = mechanism.sample_lattice_many(0, 3, source)
    for number, answer in enumerate(many):
        assert answer.tolist() == mechanism.sample_lattice(0, source, (b"%d" % number,)).tolist()


def test_many_answers_from_a_huge_body_are_those_one_by_one():
    body = SensitivityHull.from_vertices([[2**40, 1], [5, 2**40]])
    mechanism = Mechanism(Query([[3, 4]]), body, Fraction(1))
    source = KeyedRandomness(KEY)
    assert fan_of(body).compiled(Fraction(1)) is None
    assert (
        mechanism.sample_lattice_many(0, 1, source)[0].tolist()
        == mechanism.sample_lattice(0, source, (b"0",)).tolist()
    )


def test_many_answers_in_blocks_are_as_many_as_asked_for():
    mechanism = Mechanism(QUERY, HULL, Fraction(1))
    assert mechanism.sample_lattice_many(1, 0).shape == (0, 2)
    answers = mechanism.sample_lattice_many(1, BLOCK + 3)
    assert answers.shape == (BLOCK + 3, 2)
    assert len(np.unique(answers[BLOCK:], axis=0)) > 1


@pytest.mark.parametrize(("arguments", "message"), [((6, 1), "state must"), ((0, -1), "size must")])
def test_wrong_states_and_sizes_of_many_answers_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Mechanism(QUERY, HULL, Fraction(1)).sample_lattice_many(*arguments)


def protected_hull(query, edges, possible):
    policy = protect(query, PolicyGraph(query.n_states, edges), possible)
    return sensitivity_hull(query, policy)


@pytest.mark.parametrize("bad", [-1, 6, 777])
def test_a_state_out_of_range_is_refused_without_naming_it(bad):
    with pytest.raises(ArgumentError, match="one of the 6 states") as caught:
        Mechanism(QUERY, HULL, Fraction(1)).sample_lattice(bad)
    assert str(bad) not in str(caught.value).replace("the 6 states", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gauss",), "mechanism must be knorm, staircase, laplace or isotropic, got 'gauss'"),
        (("reference_knorm",), "last bits of its floats"),
        (("knorm", "round"), "shape must be hull, enlarged or l1, got 'round'"),
        (("laplace", "enlarged"), "must go with knorm"),
    ],
)
def test_unknown_mechanisms_and_shapes_say_what_they_must_be(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        body_for(*arguments)


def test_an_answer_off_the_lattice_is_refused():
    with pytest.raises(
        ArgumentError, match="lattice must be integers that count steps, got float64"
    ):
        Mechanism(QUERY, HULL, Fraction(1)).lattice_log_likelihood([0.5, 1.0])


# Oracle


# Laplace in four dimensions needs a window of millions; its axes are compared one by one above.
SUMMED = [pair for pair in product(CASES, BODIES) if pair != ("rank 4", "laplace")]


@pytest.mark.parametrize(("name", "kind"), SUMMED)
def test_normaliser_and_error_are_the_sums_over_the_lattice(name, kind):
    query, policy = case_of(name)
    body = body_of(sensitivity_hull(query, policy), kind)
    epsilon, radius = {1: (1, 40), 2: (2, 14), 3: (4, 6), 4: (6, 4)}[body.rank]
    mass, error = window_sums(body, epsilon, radius)
    mechanism = Mechanism(query, body, Fraction(epsilon))
    assert mechanism.log_normalizer == pytest.approx(log(mass), abs=TAIL_REL)
    assert mechanism.mean_squared_error == pytest.approx(error, rel=10 * TAIL_REL)


def test_the_error_is_in_the_units_of_the_query():
    coarse = Query(paper.VALUES, step=1)
    fine = Query(np.array(paper.VALUES) / 4, step="1/4")
    hulls = [sensitivity_hull(query, POLICY) for query in (coarse, fine)]
    errors = [
        Mechanism(query, hull, Fraction(1)).mean_squared_error
        for query, hull in zip((coarse, fine), hulls, strict=True)
    ]
    assert errors[0] == pytest.approx(16 * errors[1], rel=FLOAT_REL)


@pytest.mark.parametrize("name", ["rank 1", "rank 2", "rank 2 in space", "rank 3"])
def test_on_a_fine_lattice_sums_become_integrals(name):
    points, edges = CASES[name]
    scale = {1: 10_000, 2: 300, 3: 40}[sensitivity_hull(*case_of(name)).rank]
    query = Query(np.array(points) * scale)
    hull = sensitivity_hull(query, PolicyGraph(query.n_states, edges))
    assert sum(hull.determinants) < MAX_SUMMED
    mechanism = Mechanism(query, hull, Fraction(1))
    # The lattice is 1/scale of the hull or finer, and the error falls with its square.
    close = 1 / scale
    assert mechanism.mean_squared_error == pytest.approx(
        float(hull.mean_squared_error(1)), rel=close
    )
    assert mechanism.log_normalizer == pytest.approx(log(sum(hull.determinants)), abs=close)


def test_where_the_lattice_is_too_fine_to_sum_the_integral_stands_in():
    hull = SensitivityHull.from_vertices([[10_000, 0], [0, 10_000]])
    assert sum(hull.determinants) > MAX_SUMMED
    mechanism = Mechanism(Query([[0, 0]]), hull, Fraction(1, 2))
    assert mechanism.mean_squared_error == float(hull.mean_squared_error("1/2"))
    wanted = log(4 * 10_000**2) + 2 * log(2)
    assert mechanism.log_normalizer == pytest.approx(wanted, rel=FLOAT_REL)


SAMPLED = [
    ("rank 1", "1/10"),
    ("rank 1", "1"),
    ("rank 1", "4"),
    ("rank 1 in the plane", "1"),
    ("rank 2", "1/2"),
    ("rank 2", "1"),
    ("rank 2", "4"),
    ("rank 2 long", "2/3"),
    ("rank 2 in space", "1"),
    ("rank 3", "1"),
    ("rank 3", "5/2"),
    ("rank 3 cube", "3/2"),
    ("rank 3 in four", "1"),
    ("rank 4", "1"),
    ("rank 4", "2"),
]


def samples_fit(name, epsilon, kind, n):
    query, policy = case_of(name)
    mechanism = Mechanism(query, body_of(sensitivity_hull(query, policy), kind), Fraction(epsilon))
    noise = sampled(mechanism, query.n_states - 1, n)
    return p_value(mechanism.body, mechanism.epsilon, noise) > RARE


@pytest.mark.parametrize(("name", "epsilon"), SAMPLED)
def test_samples_have_the_exact_probabilities(name, epsilon):
    assert samples_fit(name, epsilon, "knorm", DRAWS)


@pytest.mark.parametrize("kind", ["laplace", "enlarged"])
@pytest.mark.parametrize("name", ["rank 2 long", "rank 3"])
def test_samples_from_larger_bodies_have_the_exact_probabilities(name, kind):
    assert samples_fit(name, "2", kind, DRAWS)


def test_samples_drawn_with_python_integers_have_the_exact_probabilities():
    noise = noise_from(fan_of(HULL), Fraction(1), DRAWS)
    assert p_value(HULL, Fraction(1), noise) > RARE


class StartingAfresh(SeededRandomness):
    """Gives a draw that was cut short other words instead of more words."""

    def longer(self, rows, people, shared, states, size):
        return self.many(people, shared, states, size)


@pytest.mark.slow  # the short form is in test_fan, row by row
@pytest.mark.parametrize(("kind", "fits"), [(SeededRandomness, True), (StartingAfresh, False)])
def test_draws_cut_short_in_a_block_go_on_with_their_own_words(kind, fits, monkeypatch):
    """With rows this short many are; with fresh words far answers would be too rare."""
    monkeypatch.setattr(Fan, "words_wanted", lambda self, epsilon: 34)
    monkeypatch.setattr("dphmm.noise.drawing.FIRST_WORDS", 34)
    mechanism = Mechanism(QUERY, HULL, Fraction(4))
    mechanism.__dict__["sampler"] = fan_of(HULL)
    answers = mechanism.sample_lattice_many(2, 20 * DRAWS, kind(np.random.default_rng(0)))
    noise = (answers - QUERY.points[2]).tolist()
    assert (p_value(HULL, Fraction(4), noise) > RARE) == fits


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), SAMPLED)
def test_many_samples_have_the_exact_probabilities(name, epsilon):
    assert samples_fit(name, epsilon, "knorm", MANY_DRAWS)


# Samplers made wrong on purpose, which the chi-square test must see


def test_cones_chosen_by_the_length_of_their_side_are_seen():
    fan = Fan(HULL, fan_of(HULL).cones)
    lengths = [round(1000 * np.hypot(*np.subtract(*cone.generators))) for cone in fan.cones]
    fan.__dict__["_edges"] = list(accumulate(lengths))
    assert p_value(HULL, Fraction(1), noise_from(fan, Fraction(1), DRAWS)) < RARE


@pytest.mark.parametrize("factor", ["9/10", "11/10"])
def test_an_epsilon_that_is_off_by_a_tenth_is_seen(factor):
    noise = noise_from(fan_of(HULL), Fraction(factor), DRAWS)
    assert p_value(HULL, Fraction(1), noise) < RARE


@pytest.mark.parametrize("name", ["rank 1", "rank 2", "rank 3"])
def test_a_side_given_to_no_cone_or_to_two_is_seen(name):
    body = sensitivity_hull(*case_of(name))
    right = fan_of(body).cones
    for side in range(body.rank):
        strict = [flag != (j == side) for j, flag in enumerate(right[0].strict)]
        cones = [replace(right[0], strict=strict), *right[1:]]
        noise = noise_from(Fan(body, cones), Fraction(2), 2 * DRAWS)
        assert p_value(body, Fraction(2), noise) < RARE


# Far away and huge


@pytest.mark.parametrize("offset", [0, 2**61, -(2**62) + 5])
def test_noise_does_not_depend_on_where_the_answers_are(offset):
    moved = Query(QUERY.points + offset)
    body = sensitivity_hull(moved, POLICY)
    assert body == HULL
    mechanism = Mechanism(moved, body, Fraction(1))
    words = [SeededRandomness(np.random.default_rng(4)) for _ in range(2)]
    near = Mechanism(QUERY, HULL, Fraction(1)).sample_lattice(2, words[0])
    far = mechanism.sample_lattice(2, words[1])
    assert [int(x) - offset for x in far] == near.tolist()
    np.testing.assert_array_equal(
        mechanism.lattice_log_likelihood(far),
        Mechanism(QUERY, HULL, Fraction(1)).lattice_log_likelihood(near),
    )


def test_answers_beyond_64_bits_stay_exact():
    query = Query(np.array([[2**62 - 1, 0], [-(2**62) + 1, 1], [0, 2**62 - 1]]))
    body = sensitivity_hull(query, PolicyGraph.complete(3))
    mechanism = Mechanism(query, body, Fraction(1, 2**16))
    source = KeyedRandomness(KEY)
    seen = 0
    for time in range(20):
        answer = mechanism.sample_lattice(0, source, (b"%d" % time,))
        assert all(isinstance(entry, int) for entry in answer.tolist())
        seen += answer.dtype == object
        likelihood = mechanism.lattice_log_likelihood(answer)
        for state in range(3):
            norm = body.lattice_norm(answer.astype(object) - query.points[state].astype(object))
            assert likelihood[state] == pytest.approx(-float(norm) / 2**16, rel=1e-14)
    assert seen > 10


def test_integers_beyond_63_bits_never_become_floats():
    for entries in ([2**63, -1], [2**64, 0], [-(2**63), 2**62], [2**62 - 1, 5]):
        vector = lattice_vector(entries)
        assert vector.tolist() == entries
        assert vector.dtype in (np.int64, object)


def test_noise_that_leads_beyond_62_bits_is_added_with_python_integers():
    """Compiled noise is added to a place in one step; where that leads too far, it may not wrap."""
    edge = 2**62 - 1
    query = Query(np.array([[edge, -edge], [edge - 9, 9 - edge]]))
    body = SensitivityHull.from_vertices([[9, -9], [9, 9]])
    mechanism, source, far = Mechanism(query, body, 1), KeyedRandomness(KEY), 0
    for number in range(60):
        context = (b"%d" % number,)
        answer = mechanism.sample_lattice(0, source, context)
        words = source.words((*context, *mechanism.law), 0)
        x, y = mechanism.sampler.draw_with_integers(Fraction(1), words)
        assert answer.tolist() == [edge + x, y - edge]
        beyond = max(map(abs, answer.tolist())) > edge
        assert (answer.dtype == object) == beyond
        far += beyond
    assert 0 < far < 60
