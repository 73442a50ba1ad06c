"""The envelope: a cross-polytope around every body, exact draws under it, and who gets it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import kernels
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.lattice import determinant
from dphmm.geometry.query import Query
from dphmm.noise.choice import sampler_of
from dphmm.noise.coins import bernoulli_exp, exp_digits, geometric, laplace, whole_steps
from dphmm.noise.cones import Fan, fan_of
from dphmm.noise.envelope import Envelope, envelope_of
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import (
    SHORT,
    KeyedRandomness,
    SecureRandomness,
    SeededRandomness,
    Words,
)
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry
from tests.noise_laws import law, p_value

KEY = bytes(range(32))
DRAWS = 8_000
TRIALS = 12
# A right sampler falls below this for one seed in ten thousand, and about fifty seeds are
# fixed here; the wrong samplers fall below it for every seed tried.
RARE = 1e-4

BODIES = {
    "interval": [[7]],
    "flat interval": [[2, 4]],
    "square": [[3, 3], [3, -3]],
    "diamond": [[1, 1], [1, -1]],
    "long and turned": [[9, 7], [-1, 1]],
    "flat rhombus": [[2, 0, 2], [0, 3, 3]],
    "cube": [[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]],
    "slanted": [[1, 0, 0], [0, 2, 1], [1, 1, 3]],
    "flat in four": [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 2, 1]],
    "four dimensions": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 2]],
}
LARGE = {
    "box": 500 * np.array(list(product((1, -1), repeat=4))),
    "cross-polytope": 500 * np.eye(4, dtype=int),
    "long": np.array([1000, 10, 10, 10]) * np.array(list(product((1, -1), repeat=4))),
    "hull": np.random.default_rng(3).integers(-500, 501, (8, 4)),
    "hull in space": np.random.default_rng(3).integers(-9999, 10000, (30, 3)),
    "huge in the plane": [[2**22, 1], [5, 2**22]],
}
EPSILONS = ["1/100", "1", "7/3", "10", "100", "10007/10000"]


def body_of(name):
    return SensitivityHull.from_vertices(BODIES[name] if name in BODIES else LARGE[name])


def words(number):
    return KeyedRandomness(KEY).words((b"envelope",), number)


def inside(envelope, vectors):
    """The coordinates of lattice vectors of the span in the envelope's basis."""
    span = vectors.astype(object) @ envelope.body.transform[:, : envelope.body.rank]
    scale = determinant(envelope.basis)
    exact = np.array(envelope.basis, dtype=object)
    rank = envelope.body.rank
    return np.array(
        [
            [
                determinant([*exact[:j].tolist(), row.tolist(), *exact[j + 1 :].tolist()]) // scale
                for j in range(rank)
            ]
            for row in span
        ],
        dtype=object,
    ).reshape(-1, rank)


# Laws


@given(geometry.cases(reach=4))
def test_the_envelope_holds_the_body_and_its_basis_the_whole_lattice(case):
    points, edges, possible = case
    hull = sensitivity_hull(Query(points), PolicyGraph(len(points), edges), possible)
    if hull.rank == 0:
        assert isinstance(sampler_of(hull, Fraction(100)), Fan)
        return
    envelope = envelope_of(hull)
    assert abs(determinant(envelope.basis)) == 1
    corners = np.abs(inside(envelope, hull.lattice_vertices))
    sums = corners @ np.array(envelope.slopes, dtype=object)
    # Every corner is inside and one touches, so ||x|| >= sum |x_j| / S_j cannot be improved.
    assert max(sums) == envelope.scale
    assert envelope.tries >= 1
    x = [number - 2 for number in range(hull.rank)]
    height, offset = envelope._norm(x)
    vector = (np.array(x, dtype=object) @ envelope.rows).astype(np.int64)
    assert Fraction(height, offset) == hull.lattice_norm(vector)


@given(geometry.cases(reach=4), st.randoms(use_true_random=False))
def test_basis_and_slopes_depend_on_the_body_alone(case, random):
    points, edges, possible = case
    hull = sensitivity_hull(Query(points), PolicyGraph(len(points), edges), possible)
    if hull.rank == 0:
        return
    corners = hull.lattice_vertices.tolist()
    random.shuffle(corners)
    again = SensitivityHull.from_lattice(np.array([[-x for x in c] for c in corners] + corners[:1]))
    one, two = envelope_of(hull), envelope_of(again)
    assert (one.basis, one.slopes, one.scale) == (two.basis, two.slopes, two.scale)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", [*BODIES, *LARGE])
def test_compiled_and_python_integers_draw_the_same_from_the_same_words(name, epsilon):
    envelope, price = envelope_of(body_of(name)), Fraction(epsilon)
    kernel, arguments = envelope.compiled(price)
    for number in range(TRIALS):
        noise, done = np.zeros((1, envelope.body.dimension), dtype=np.int64), np.empty(1, bool)
        kernel(words(number).leading(8192)[None], *arguments, noise, done)
        assert done[0]
        expected = envelope.draw_with_integers(price, words(number))
        assert noise[0].tolist() == expected
        assert envelope.draw(price, words(number)).tolist() == expected


@pytest.mark.parametrize("epsilon", ["1/100", "1", "10007/10000"])
@pytest.mark.parametrize("name", LARGE)
def test_cones_of_two_words_are_those_of_python_integers(name, epsilon):
    fan, price = fan_of(body_of(name)), Fraction(epsilon)
    kernel, arguments = fan.compiled(price)
    wide = max(cone.volume for cone in fan.cones) >= 2**31
    assert (kernel is kernels.sampler.wide_draw_many) == wide
    for number in range(TRIALS):
        noise, done = np.zeros((1, fan.body.dimension), dtype=np.int64), np.empty(1, bool)
        kernel(words(number).leading(8192)[None], *arguments, noise, done)
        assert done[0]
        assert noise[0].tolist() == fan.draw_with_integers(price, words(number))


def test_a_body_beyond_two_words_is_drawn_with_python_integers():
    body = SensitivityHull.from_vertices([[2**61, 1], [5, 2**61]])
    envelope = envelope_of(body)
    assert envelope.compiled(Fraction(2)) is None
    noise = envelope.draw(Fraction(2, 2**16), words(0))
    assert noise.dtype == object
    assert body.lattice_norm(noise) > 1


@pytest.mark.parametrize("name", ["diamond", "flat rhombus", "four dimensions", "hull"])
def test_many_answers_are_those_one_by_one(name):
    body = body_of(name)
    mechanism = Mechanism(Query(np.zeros((1, body.dimension), dtype=int)), body, 12)
    assert isinstance(mechanism.sampler, Envelope)
    source = KeyedRandomness(KEY)
    # Rows of words that are too short for many of the draws, which then go on in longer ones.
    mechanism.sampler.__dict__["words_wanted"] = lambda epsilon: 1
    many = mechanism.sample_lattice_many(0, 200, source)
    for number, answer in enumerate(many):
        assert answer.tolist() == mechanism.sample_lattice(0, source, (b"%d" % number,)).tolist()


# The rule


@pytest.mark.parametrize("name", [*BODIES, *LARGE])
def test_cones_serve_small_epsilons_and_the_envelope_large_ones(name):
    body = body_of(name)
    prices = [Fraction(n, 10) for n in range(1, 100)]
    chosen = [isinstance(sampler_of(body, price), Envelope) for price in prices]
    assert chosen == sorted(chosen)
    assert not any(chosen[:10])
    assert chosen[-1]


def test_the_rule_is_a_comparison_of_whole_numbers():
    """Twice 2 tries for a square against (epsilon + 1/2)^2: the border is exactly 3/2."""
    body = SensitivityHull.from_vertices([[1, 1], [1, -1]])
    square = SensitivityHull.from_vertices([[500, 500], [500, -500]])
    assert envelope_of(square).tries == 2
    assert envelope_of(body).tries == 2
    assert isinstance(sampler_of(square, Fraction(3, 2)), Fan)
    assert isinstance(sampler_of(square, Fraction(3, 2) + Fraction(1, 10**30)), Envelope)


def test_a_long_body_has_a_scale_for_each_axis():
    """One for all would take a hundred times the tries."""
    envelope = envelope_of(SensitivityHull.from_vertices([[1000, 10], [1000, -10]]))
    assert sorted(Fraction(envelope.scale, slope) for slope in envelope.slopes) == [20, 2000]
    assert envelope.tries == 2


# Oracle: the numbers themselves, enumerated or beside Python's


@pytest.mark.parametrize(("p", "q", "depth"), [(1, 1, 7), (2, 1, 7), (1, 2, 7), (3, 2, 7)])
def test_a_coordinate_is_discrete_laplace(p, q, depth, monkeypatch):
    def by_coins(source):
        whole = 0
        while bernoulli_exp(1, 1, source):
            whole += 1
        return whole

    monkeypatch.setattr("dphmm.noise.coins.whole_steps", by_coins)
    results, undecided = law(lambda w: laplace(p, q, w), depth)
    assert sum(results.values()) + undecided == 1
    ratio = exp(-p / q)
    for m in range(-2, 3):
        wanted = (1 - ratio) / (1 + ratio) * ratio ** abs(m)
        assert results[m] <= wanted <= results[m] + undecided
    assert undecided < Fraction(1, 2)
    assert results[1] == results[-1]


def digits_of(*numbers):
    data = b"".join(number.to_bytes(4, "little") for number in numbers)
    return Words(lambda wanted: (data + bytes(wanted))[:wanted])


@pytest.mark.parametrize("digits", [32, 64, 320])
def test_digits_of_powers_of_e_are_those_of_decimals(digits):
    with localcontext(prec=200):
        for m in range(1, 64):
            assert exp_digits(m, digits) == int(Decimal(-m).exp() * 2**digits)


def test_a_whole_step_counts_the_powers_of_e_above_a_uniform_number():
    """Exactly: digits below those of e^-m are below e^-m, and equal ones leave it to the next."""
    powers = np.array([exp_digits(m, 32) for m in range(1, 64)], dtype=np.int64)
    for m in range(1, 22):
        first, second = divmod(exp_digits(m, 64), 2**32)
        assert whole_steps(digits_of(first - 1, 0)) == m
        assert whole_steps(digits_of(first + 1, 0)) == m - 1
        assert whole_steps(digits_of(first, second - 1)) == m
        assert whole_steps(digits_of(first, second + 1)) == m - 1
        for number in (first - 1, first, first + 1):
            cursor = np.zeros(1, dtype=np.int64)
            words = np.array([number], dtype=np.uint32)
            drawn = kernels.coins.whole_steps(powers, words, cursor)
            assert cursor[0] == (-1 if number == first else 1)
            assert number == first or drawn == whole_steps(digits_of(number, 0))
    assert whole_steps(digits_of(2**32 - 1)) == 0
    assert whole_steps(digits_of(0, 1)) == 44 == int(log(2**64))


WORD = 2**64
NUMBERS = st.one_of(
    st.integers(0, WORD**2 - 1),
    st.integers(0, WORD - 1),
    st.builds(lambda bits, off: (2**bits + off) % WORD**2, st.integers(0, 128), st.integers(-2, 2)),
)


def pair(number):
    return np.uint64(number // WORD), np.uint64(number % WORD)


def number_of(wide):
    return int(wide[0]) * WORD + int(wide[1])


@given(NUMBERS, NUMBERS)
def test_two_words_count_like_python_integers(a, b):
    wide = kernels.wide
    low = b % WORD
    assert number_of(wide.plus(pair(a), pair(b))) == (a + b) % WORD**2
    assert number_of(wide.minus(pair(a), pair(b))) == (a - b) % WORD**2
    assert number_of(wide.times(pair(a), np.uint64(low))) == a * low % WORD**2
    assert number_of(wide.product(np.uint64(a % WORD), np.uint64(low))) == a % WORD * low
    assert wide.is_less(pair(a), pair(b)) == (a < b)
    if b:
        assert number_of(wide.remainder(pair(a), pair(b))) == a % b
    if low:
        short = a % (low * WORD)
        quotient, rest = wide.divide(pair(short), np.uint64(low))
        assert (int(quotient), int(rest)) == divmod(short, low)


@given(NUMBERS, st.integers(-2, 2), st.binary(min_size=32, max_size=32))
def test_a_wide_number_below_n_is_the_one_of_python_integers(n, beside, data):
    n = max(n % 2**126, SHORT + 1)
    size = WORD if n <= WORD else WORD**2
    first = min(size - size % n + beside, size - 1)
    read = b"".join(
        (first >> shift & 0xFFFFFFFF).to_bytes(4, "little")
        for shift in range(96 if size > WORD else 32, -1, -32)
    )
    source = Words(lambda wanted: (read + data * (1 + wanted // 32))[:wanted])
    cursor = np.zeros(1, dtype=np.int64)
    drawn = kernels.coins.wide_below(pair(n), source.leading(400), cursor)
    assert number_of(drawn) == source.below(n)
    assert cursor[0] == source._next


# Oracle: draws against the exact probability of every lattice point


SAMPLED = [
    ("interval", "1/10"),
    ("interval", "20"),
    ("flat interval", "3"),
    ("square", "1/4"),
    ("square", "10"),
    ("diamond", "1/2"),
    ("diamond", "4"),
    ("long and turned", "2/3"),
    ("long and turned", "25"),
    ("flat rhombus", "3"),
    ("cube", "1"),
    ("cube", "5"),
    ("slanted", "5"),
    ("flat in four", "4"),
    ("four dimensions", "1"),
    ("four dimensions", "4"),
]


def noise_of(envelope, epsilon, n=DRAWS, seed=0):
    """Draws with Python's integers, which a broken envelope goes through as well."""
    source = SeededRandomness(np.random.default_rng(seed))
    return [tuple(envelope.draw_with_integers(epsilon, source.words((), 0))) for _ in range(n)]


@pytest.mark.parametrize(("name", "epsilon"), SAMPLED)
def test_draws_in_bulk_have_the_exact_probabilities(name, epsilon):
    envelope, price = envelope_of(body_of(name)), Fraction(epsilon)
    source = SeededRandomness(np.random.default_rng(1))
    states = np.zeros(DRAWS, dtype=np.int64)
    noise = envelope.draw_many(price, source, [b""] * DRAWS, (), states)
    assert p_value(envelope.body, price, noise.tolist()) > RARE


@pytest.mark.parametrize("name", ["interval", "diamond", "flat rhombus", "four dimensions"])
@pytest.mark.parametrize("route", ["secure", "secure in bulk", "keyed", "keyed in bulk"])
def test_answers_by_every_route_have_the_exact_probabilities(name, route, monkeypatch):
    body, price = body_of(name), Fraction(5)
    mechanism = Mechanism(Query(np.zeros((1, body.dimension), dtype=int)), body, price)
    assert isinstance(mechanism.sampler, Envelope)
    if route.startswith("secure"):
        monkeypatch.setattr("os.urandom", np.random.default_rng(2).bytes)
        source = SecureRandomness()
    else:
        source = KeyedRandomness(KEY)
    if route.endswith("bulk"):
        noise = mechanism.sample_lattice_many(0, DRAWS, source).tolist()
    else:
        names = [(b"%d" % number,) for number in range(DRAWS)]
        noise = [mechanism.sample_lattice(0, source, name).tolist() for name in names]
    assert p_value(body, price, noise) > RARE


@pytest.mark.parametrize("name", ["diamond", "slanted"])
def test_draws_with_python_integers_have_the_exact_probabilities(name):
    envelope, price = envelope_of(body_of(name)), Fraction(3)
    assert p_value(envelope.body, price, noise_of(envelope, price)) > RARE


# Envelopes made wrong on purpose, which the chi-square test must see


def test_a_basis_made_of_corners_is_seen():
    """The corners of the diamond span every second point only: the parity of an answer tells."""
    right = envelope_of(body_of("diamond"))
    wrong = replace(right, basis=[[1, 1], [1, -1]], slopes=[1, 1], scale=1)
    assert determinant(wrong.basis) == -2
    assert p_value(right.body, Fraction(1), noise_of(wrong, Fraction(1))) < RARE


@pytest.mark.parametrize(("name", "epsilon"), [("square", 1), ("diamond", 2), ("slanted", 2)])
def test_a_cross_polytope_that_does_not_hold_the_body_is_seen(name, epsilon):
    right = envelope_of(body_of(name))
    wrong = replace(right, slopes=[4 * right.slopes[0], *right.slopes[1:]])
    assert p_value(right.body, Fraction(epsilon), noise_of(wrong, Fraction(epsilon))) < RARE


@pytest.mark.parametrize(("name", "epsilon"), [("square", 1), ("square", 8), ("cube", 2)])
def test_draws_that_are_all_kept_are_seen(name, epsilon, monkeypatch):
    envelope = envelope_of(body_of(name))
    monkeypatch.setattr("dphmm.noise.envelope.bernoulli_exp", lambda *_: True)
    assert p_value(envelope.body, Fraction(epsilon), noise_of(envelope, Fraction(epsilon))) < RARE


def test_a_zero_that_comes_with_both_signs_is_seen(monkeypatch):
    def doubled(p, q, source):
        m = geometric(p, q, source)
        return m if source.below(2) else -m

    envelope = envelope_of(body_of("interval"))
    monkeypatch.setattr("dphmm.noise.envelope.laplace", doubled)
    assert p_value(envelope.body, Fraction(5), noise_of(envelope, Fraction(5))) < RARE
