"""The fan: every lattice point in one half-open cone, and exact draws from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import kernels
from dphmm.errors import GeometryError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.coins import bernoulli_exp, geometric
from dphmm.noise.cones import fan_of
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import (
    SHORT,
    KeyedRandomness,
    Randomness,
    SecureRandomness,
    SeededRandomness,
)
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull
from tests import geometry, paper
from tests.noise_laws import Scripted, law

KEY = bytes(range(32))
TRIALS = 150
# An epsilon at which windows out to twice the body hold all but e^-16 of the noise.
STEEP = 8.0
WINDOW_REL = 1e-5

HULL = sensitivity_hull(Query(paper.VALUES), PolicyGraph.by_category(paper.CATEGORIES))
BODIES = {
    "interval": [[3]],
    "flat interval": [[2, 4]],
    "running example": HULL.lattice_vertices.tolist(),
    "flat rhombus": [[2, 0, 2], [0, 3, 3]],
    "cube": [[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]],
    "slanted": [[1, 0, 0], [0, 2, 1], [1, 1, 3]],
    "four dimensions": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 2]],
    "wide": [[2**14, 1], [5, 2**14]],
}
EPSILONS = ["1/10", "1", "4", "65537/196608", "1/65536", "16777213/16777215"]


def body_of(name):
    return SensitivityHull.from_vertices(BODIES[name])


def words(number):
    return KeyedRandomness(KEY).words((b"fan",), number)


# Paper: section 6 draws in the plane with floats; these are the integers that replace it.


def test_the_running_example_has_one_cone_for_each_side_with_the_area_of_its_triangle():
    fan = fan_of(HULL)
    assert len(fan.cones) == len(HULL.lattice_vertices)
    assert sum(cone.volume for cone in fan.cones) == 2 * paper.AREA


# Laws


@given(geometry.cases(reach=3))
def test_every_lattice_point_is_in_one_cone_and_its_norm_is_linear_there(case):
    points, edges, possible = case
    hull = sensitivity_hull(Query(points), PolicyGraph(len(points), edges), possible)
    cones = fan_of(hull).cones
    if hull.rank == 0:
        assert cones == []
        return
    reach = {1: 20, 2: 6, 3: 3, 4: 2}[hull.rank]
    window = np.array(list(product(range(-reach, reach + 1), repeat=hull.rank)))
    owners = np.zeros(len(window), dtype=int)
    heights = [Fraction(0)] * len(window)
    for cone in cones:
        numerators = window.astype(object) @ np.array(cone.adjugate, dtype=object)
        held = np.all(np.where(cone.strict, numerators > 0, numerators >= 0).astype(bool), axis=1)
        owners += held
        for i in np.flatnonzero(held):
            heights[i] = Fraction(int(numerators[i].sum()), cone.volume)
    assert (owners == 1).all()
    vectors = window.astype(object) @ hull.basis
    chosen = np.linspace(0, len(window) - 1, 40).astype(int)
    assert all(heights[i] == hull.lattice_norm(vectors[i]) for i in chosen)


@pytest.mark.parametrize("name", ["flat interval", "running example", "cube", "slanted"])
def test_a_point_of_a_cell_is_uniform_over_as_many_cosets_as_its_volume(name):
    body = body_of(name)
    fan = fan_of(body)
    for cone in fan.cones:
        if cone.volume**body.rank > 5000:
            continue
        cells = Counter()
        for script in product(range(cone.volume), repeat=body.rank):
            cells[tuple(fan._parallelepiped_point(cone, Scripted(script)))] += 1
        hits = 1 if cone.volume == 1 else cone.volume ** (body.rank - 1)
        assert set(cells.values()) == {hits}
        assert len(cells) == cone.volume
        for cell in cells:
            low = [1 if strict else 0 for strict in cone.strict]
            assert all(n >= least for n, least in zip(cell, low, strict=True))
            assert max(cell) <= cone.volume
            inside = np.array(cell, dtype=object) @ np.array(cone.generators, dtype=object)
            assert not (inside % cone.volume).any()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", BODIES)
def test_compiled_and_python_integers_draw_the_same_from_the_same_words(name, epsilon):
    body, price = body_of(name), Fraction(epsilon)
    fan = fan_of(body)
    kernel, arguments = fan.compiled(price)
    done = 0
    for number in range(TRIALS):
        noise, is_done = np.zeros((1, body.dimension), dtype=np.int64), np.empty(1, dtype=bool)
        expected = fan.draw_with_integers(price, words(number))
        kernel(words(number).leading()[None], *arguments, noise, is_done)
        if is_done[0]:
            done += 1
            assert noise[0].tolist() == expected
        assert fan.draw(price, words(number)).tolist() == expected
    assert done > TRIALS // 20


def test_many_compiled_draws_are_those_one_by_one():
    fan, price = fan_of(HULL), Fraction(1)
    rows = np.array([words(number).leading() for number in range(TRIALS)])
    noise = np.zeros((TRIALS, 2), dtype=np.int64)
    kernel, arguments = fan.compiled(price)
    done = np.empty(TRIALS, dtype=bool)
    kernel(rows, *arguments, noise, done)
    for number in np.flatnonzero(done):
        assert noise[number].tolist() == fan.draw_with_integers(price, words(int(number)))
    assert done.sum() > TRIALS // 2


def test_one_draw_and_many_are_compiled_once_for_both(monkeypatch):
    """A second kind of words would compile the whole sampler again, on everybody's first run."""
    fan, price, kinds = fan_of(HULL), Fraction(1), []
    kernel, arguments = fan.compiled(price)

    def recording(*given):
        kinds.append(tuple(numba.typeof(one) for one in given))
        return kernel(*given)

    size = fan._ready[price.as_integer_ratio()][1]
    monkeypatch.setitem(fan._ready, price.as_integer_ratio(), ((recording, arguments), size))
    fan.draw(price, words(0))
    names = [b"ann", b"bob"]
    for source in (
        SecureRandomness(),
        SeededRandomness(np.random.default_rng(0)),
        KeyedRandomness(KEY),
    ):
        fan.draw_many(price, source, names, (), np.zeros(2, dtype=np.int64))
    assert len(kinds) >= 4
    assert len(set(kinds)) == 1


@pytest.mark.parametrize(
    "source",
    [SecureRandomness(), SeededRandomness(np.random.default_rng(0)), KeyedRandomness(KEY)],
)
def test_a_draw_that_its_row_cut_short_goes_on_with_the_same_words(source):
    """With fresh words instead, far answers would be too rare and epsilon not exact."""
    (row,) = source.many([b"name"], (), np.zeros(1, dtype=np.int64))
    again = source.after(row, (b"name",), 0)
    assert [again.word() for _ in row] == row.tolist()
    more = [again.word() for _ in row]
    assert len(set(more)) == len(row)
    assert set(more).isdisjoint(row.tolist())
    (long,) = source.longer(row[None], [b"name"], (), np.zeros(1, dtype=np.int64), 200)
    assert long[: len(row)].tolist() == row.tolist()
    assert len(set(long.tolist())) == 200


@pytest.mark.parametrize("name", [name for name in BODIES if name != "wide"])
def test_the_share_of_each_cone_is_the_sum_over_its_lattice_points(name):
    body = body_of(name)
    fan = fan_of(body)
    reach = {1: 60, 2: 60, 3: 12, 4: 5}[body.rank]
    box = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * body.rank, indexing="ij"), -1)
    box = box.reshape(-1, body.rank)
    sums = np.zeros(len(fan.cones))
    for number, cone in enumerate(fan.cones):
        layers = box @ np.array(cone.adjugate, dtype=np.int64)
        held = (layers >= np.array(cone.strict, dtype=np.int64)).all(axis=1)
        sums[number] = np.exp(-STEEP * layers[held].sum(axis=1) / cone.volume).sum()
    assert fan.masses(STEEP) == pytest.approx(sums / sums.sum(), rel=WINDOW_REL)


@given(
    st.one_of(st.integers(1, 2**24 + 9), st.integers(1, 2**62)),
    st.integers(-2, 2),
    st.integers(0, 2**64 - 1),
)
def test_a_compiled_number_below_n_is_the_one_of_python_integers(n, beside, second):
    bits = 32 if n <= SHORT else 64
    limit = 2**bits - 2**bits % n
    numbers = [min(limit + beside, 2**bits - 1), second % 2**bits]
    kept = next((number for number in numbers if number < limit), None)
    cursor = np.zeros(1, dtype=np.int64)
    # Two words make a long number, the first of them its high half.
    read = [half for number in numbers for half in divmod(number, 2**32)]
    given_words = read if bits == 64 else numbers
    drawn = kernels.coins.below(n, np.array(given_words, dtype=np.uint32), cursor)
    assert isinstance(drawn, int)
    if n == 1:
        assert (drawn, cursor[0]) == (0, 0)
    elif kept is None:
        assert cursor[0] == -1
    else:
        assert drawn == kept % n


@pytest.mark.parametrize("size", [2**31, 2**40, 2**61])
def test_bodies_too_large_for_two_words_are_drawn_with_python_integers(size):
    body = SensitivityHull.from_vertices([[size, 1], [5, size]])
    fan = fan_of(body)
    assert fan.compiled(Fraction(1)) is None
    noise = fan.draw(Fraction(1, 2**16), words(0))
    assert noise.dtype == object
    assert body.lattice_norm(noise) > 1


# Oracle: every outcome of every number, enumerated with its probability


@pytest.mark.parametrize(
    ("numerator", "denominator", "depth"), [(0, 1, 1), (1, 1, 6), (1, 2, 5), (2, 3, 4), (5, 2, 6)]
)
def test_a_coin_falls_with_probability_exp_minus_gamma(numerator, denominator, depth):
    results, undecided = law(lambda w: bernoulli_exp(numerator, denominator, w), depth)
    assert sum(results.values()) + undecided == 1
    # The series is cut after `depth` numbers, and what is undecided may fall either way.
    wanted = exp(-numerator / denominator)
    assert results[True] <= wanted <= results[True] + undecided
    assert undecided < Fraction(1, 20)


@pytest.mark.parametrize(("p", "q", "depth"), [(1, 1, 7), (2, 1, 7), (1, 2, 8), (3, 2, 8)])
def test_a_multiple_is_geometric_with_ratio_exp_minus_epsilon(p, q, depth):
    results, undecided = law(lambda w: geometric(p, q, w), depth)
    assert sum(results.values()) + undecided == 1
    ratio = exp(-p / q)
    for multiple in range(3):
        wanted = (1 - ratio) * ratio**multiple
        assert results[multiple] <= wanted <= results[multiple] + undecided
    assert undecided < Fraction(1, 5)


# The four assertions, each on a boundary damaged for it


def damaged(body, **changes):
    return replace(body, body=replace(body.body, **changes))


class NoWords(Randomness):
    """A source that must never be asked."""

    def words(self, context, state):
        raise AssertionError("noise was drawn from a broken fan")

    def after(self, row, context, state):
        return self.words(context, state)


def refused(body, message):
    query = Query(np.zeros((1, body.dimension), dtype=int))
    with pytest.raises(GeometryError, match=message):
        Mechanism(query, body, Fraction(1)).sample_lattice(0, NoWords())


@pytest.mark.parametrize("name", ["running example", "cube", "four dimensions"])
def test_a_generic_direction_on_a_side_is_refused(name, monkeypatch):
    """No boundary can lead to one, because the direction is built to avoid every side."""

    def no_sides(matrix):
        return [[0] * len(matrix) for _ in matrix]

    monkeypatch.setattr("dphmm.noise.cones.adjugate", no_sides)
    refused(body_of(name), "lies on a side")


@pytest.mark.parametrize("name", ["running example", "cube", "four dimensions"])
def test_a_flat_simplex_is_refused(name):
    body = body_of(name)
    simplices = body.body.simplices.copy()
    simplices[0] = simplices[0][0]
    with pytest.raises(GeometryError):
        fan_of(damaged(body, simplices=simplices))


def test_a_boundary_that_goes_round_twice_is_refused():
    body = body_of("running example")
    corners = np.concatenate([body.body.corners, body.body.corners])
    numbers = np.arange(len(corners))
    simplices = np.stack([numbers, np.roll(numbers, -1)], axis=1)
    refused(damaged(body, corners=corners, simplices=simplices), "2 cones")


@pytest.mark.parametrize("name", ["interval", "running example", "cube", "four dimensions"])
@pytest.mark.parametrize("missing", [0, -1])
def test_a_boundary_with_a_hole_is_refused(name, missing):
    body = body_of(name)
    simplices = np.delete(body.body.simplices, missing, axis=0)
    refused(damaged(body, simplices=simplices), "not closed")


@pytest.mark.parametrize("name", ["interval", "running example", "cube", "four dimensions"])
def test_a_facet_that_cuts_off_a_corner_is_refused(name):
    body = body_of(name)
    offsets = body.body.offsets.copy()
    offsets[0] -= 1
    refused(damaged(body, offsets=offsets), "cuts off a corner")


@pytest.mark.parametrize("name", ["interval", "running example", "cube", "four dimensions"])
def test_a_simplex_without_its_facet_is_refused(name):
    body = body_of(name)
    offsets = body.body.offsets.copy()
    offsets[-1] += 1
    refused(damaged(body, offsets=offsets), "in no facet")


def test_a_facet_through_the_origin_is_refused():
    body = body_of("running example")
    normals, offsets = body.body.normals.copy(), body.body.offsets.copy()
    normals[0], offsets[0] = 0, 0
    refused(damaged(body, normals=normals, offsets=offsets), "cuts off a corner")
