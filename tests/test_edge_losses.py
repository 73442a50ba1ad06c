"""The law of one answer's loss, against exact counts of lattice points at the edges of layers."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dphmm import Mechanism, PolicyGraph, Query, sensitivity_hull
from dphmm.cost.edge_losses import HALF, edge_curve, edge_differences
from dphmm.cost.privacy_loss import ROUNDING, PrivacyLoss
from dphmm.noise.coins import exp_bounds

LOOKED_AT = np.array([-32, -31, -16, -1, 0, 1, 16, 31, 32])
"""Entries of a curve: a staircase's bends at the first, the middle and the last alone."""

DIGITS = 200
"""Binary digits of the exponentials, which are kept between two fractions."""


@cache
def between(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Two fractions around e^exponent."""
    parts = ceil(abs(exponent)) or 1
    low, high = (
        Fraction(bound, 2**DIGITS) ** parts for bound in exp_bounds(abs(exponent) / parts, DIGITS)
    )
    return (low, high) if exponent <= 0 else (1 / high, 1 / low)


def layers_of(mechanism: Mechanism, noise: np.ndarray) -> np.ndarray:
    """ceil(max(norm - gamma, 0)) with integers: norm - gamma is a numerator over den offset."""
    shape, gamma = mechanism.body.body, mechanism.gamma
    assert gamma is not None
    inside = (noise @ mechanism.body.transform.astype(np.int64))[:, : mechanism.body.rank]
    heights = np.abs(inside @ shape.normals.astype(np.int64).T)
    offsets = shape.offsets.astype(np.int64)
    assert heights.max() * gamma.denominator < 2**62
    over = heights * gamma.denominator - gamma.numerator * offsets
    return np.asarray(np.maximum(-(-over // (gamma.denominator * offsets)), 0).max(axis=1))


def exact_curve(mechanism: Mechanism, vector: list[int], last: int) -> list[tuple[Fraction, ...]]:
    """Two fractions around the hockey-stick curve of one edge.

    Points up to a layer are counted one by one; the rest of the noise is in between.
    """
    epsilon, rank = mechanism.epsilon, mechanism.body.rank
    extent = np.abs(mechanism.body.lattice_vertices).max(axis=0) * (last + 2)
    noise = np.array(list(product(*(range(-int(x), int(x) + 1) for x in extent))))
    own = layers_of(mechanism, noise)
    noise, own = noise[own <= last], own[own <= last]
    told = layers_of(mechanism, noise + np.array(vector)) - own
    assert set(told.tolist()) <= {-1, 0, 1}
    low, high = between(-epsilon)
    # A layer k has at most (2k + 3)^rank times the points of the first one's box.
    box = int(np.prod(2 * np.abs(mechanism.body.lattice_vertices).max(axis=0) + 1))
    tail = 2 * box * (2 * last + 5) ** rank * high ** (last + 1)
    assert (2 * last + 7) ** rank * high * 2 < (2 * last + 5) ** rank
    masses = {}
    for more in (-1, 0, 1):
        counts = np.bincount(own[told == more], minlength=last + 1).tolist()
        masses[more] = [
            sum(n * decay**layer for layer, n in enumerate(counts)) for decay in (low, high)
        ]
    fewest, largest = (sum(mass[side] for mass in masses.values()) for side in (0, 1))
    curve = []
    for entry in (float(epsilon) * LOOKED_AT / HALF).tolist():
        few, many = between(Fraction(entry))
        least, most = Fraction(0), tail
        for more, mass in masses.items():
            fall, rise = between(-epsilon * more)
            least += mass[0] * max(1 - many * rise, 0)
            most += mass[1] * max(1 - few * fall, 0)
        curve.append((least / (largest + tail), most / fewest))
    return curve


def star(corners: list[list[int]], epsilon: str, gamma: Fraction) -> tuple[Mechanism, PolicyGraph]:
    query = Query([[0] * len(corners[0]), *corners])
    policy = PolicyGraph(len(corners) + 1, [(0, i + 1) for i in range(len(corners))])
    return Mechanism(query, sensitivity_hull(query, policy), epsilon, gamma), policy


def check(mechanism: Mechanism, vector: list[int], last: int, tight: bool = True) -> None:
    """The bound is nowhere below the exact curve, and hardly above."""
    bounds = edge_curve(mechanism, np.array([vector], dtype=object))[HALF + LOOKED_AT].tolist()
    for bound, (least, most) in zip(bounds, exact_curve(mechanism, vector, last), strict=True):
        assert most - least < 1e-6
        assert Fraction(bound) >= least - Fraction(ROUNDING)
        assert not tight or Fraction(bound) <= most + Fraction(1, 10**6)


THIRD = Fraction(1, 3)
ON_EDGE = [
    ([[3]], "2", THIRD, 24),
    ([[3]], "2", 2 * THIRD, 24),
    ([[7]], "3", Fraction(3, 7), 18),
    ([[3, 0], [0, 3]], "3", THIRD, 16),
    ([[3, 0], [0, 3], [2, 2]], "3", 2 * THIRD, 16),
    ([[2, 1], [-1, 3]], "3", Fraction(2, 7), 16),
    ([[3, 1], [-1, 3], [1, 0]], "4", Fraction(2, 5), 12),
    ([[6, 3], [4, 2]], "2", THIRD, 20),
    ([[3, 0, 0], [0, 3, 0], [0, 0, 3]], "6", THIRD, 6),
    ([[2, 1, 0], [0, 2, 1], [1, 0, 2]], "6", 2 * THIRD, 6),
]


# Oracle


@pytest.mark.parametrize(("corners", "epsilon", "gamma", "last"), ON_EDGE)
def test_layers_that_end_on_lattice_points_are_told_exactly(
    corners, epsilon, gamma, last, monkeypatch
) -> None:
    # Enough for a block to be a point also where the rank is three.
    monkeypatch.setattr("dphmm.cost.edge_losses.BLOCKS", 2**27)
    mechanism, policy = star(corners, epsilon, gamma)
    differences = edge_differences(mechanism, policy).astype(int).tolist()
    points = np.array(list(product(range(-9, 10), repeat=len(corners[0]))))
    points = points[np.isfinite(mechanism.body.lattice_norms(points))]
    assert any((mechanism.body.lattice_norm(point) - gamma) % 1 == 0 for point in points)
    for vector in differences:
        check(mechanism, vector, last)


BESIDE = [Fraction(sign, part) for part in (1000, 10**15) for sign in (-1, 0, 1)]
places = st.tuples(st.integers(-3, 3), st.integers(-3, 3)).filter(any)


@given(st.lists(places, min_size=2, max_size=3, unique=True), places, st.sampled_from(BESIDE))
def test_a_layer_may_end_at_any_point_or_just_beside_it(corners, edge, beside) -> None:
    """So small a part as 10**-15 is too fine for floats, so there the bound need not be tight."""
    body = star(corners, "4", Fraction(1, 2))[0].body
    norm = body.lattice_norm(np.array(edge))
    gamma = norm % 1 + beside if norm < np.inf else Fraction(1, 3)
    assume(0 < gamma < 1)
    mechanism, policy = star(corners, "4", gamma)
    for vector in edge_differences(mechanism, policy).astype(int).tolist():
        check(mechanism, vector, 10, tight=gamma.denominator < 10**9)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(any),
    st.integers(-9000, 9000),
    st.fractions(Fraction(1, 100), 2, max_denominator=100),
    st.fractions(1, 7, max_denominator=9),
    st.sampled_from([0.0, np.inf]),
)
@example([1.0], 8000, Fraction(1), Fraction(2), 0.0)
def test_a_wider_grid_tells_no_less_at_any_loss(masses, first, epsilon, wider, beside) -> None:
    """Its step may be just beside a multiple, where floats find a loss on the grid that is not."""
    step = float(epsilon) / HALF
    share = np.array(masses) / sum(masses)
    law = PrivacyLoss(epsilon, step, first, share)
    coarse = law._on_grid(float(np.nextafter(step * float(wider), beside)))
    for number in range(coarse.first, coarse.first + len(coarse.masses)):
        loss = Fraction(coarse.step) * number
        assert exact_delta(coarse, loss)[1] >= exact_delta(law, loss)[0]


@given(
    st.lists(st.integers(-2 * HALF, 2 * HALF), min_size=1, max_size=4),
    st.sampled_from(["0.1", "1", "6"]),
)
def test_a_law_tells_no_less_than_its_curve(entries, epsilon) -> None:
    law = PrivacyLoss.pure(epsilon)
    high = between(law.total)[1]
    for entry in entries:
        loss = Fraction(law.step) * entry
        odds = between(loss)
        true = max((high - odds[1]) / (1 + high), 1 - odds[1], 0)
        assert exact_delta(law, loss)[1] >= true - Fraction(1, 2**100)


def exact_delta(law: PrivacyLoss, loss: Fraction) -> tuple[Fraction, Fraction]:
    """Two fractions around what a law tells more than a loss, with the rounding that it carries."""
    told = [Fraction(law.beyond)] * 2
    for place, mass in enumerate(law.masses.tolist()):
        further = loss - Fraction(law.step) * (law.first + place)
        if further < 0:
            few, many = between(further)
            told = [
                one + Fraction(mass) * (1 - e) for one, e in zip(told, (many, few), strict=True)
            ]
    factor = 1 + Fraction(law.rounding)
    return told[0] * factor, told[1] * factor
