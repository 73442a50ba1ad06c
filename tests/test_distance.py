"""The mean distance of an answer, against sums over the lattice and against samples."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise import distance
from dphmm.noise.distance import mean_noise
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import SeededRandomness

BODIES = {
    "a segment": [[300, 400]],
    "a parallelogram": [[300, 0], [0, 400]],
    "a thin hexagon": [[300, 10], [100, 400], [-200, 50]],
    "a box": [[50, 10, 0], [0, 70, 20], [10, 0, 90]],
}
DRAWS = 20_000
# The mean of so many lengths whose spread is below their mean: five standard errors.
CLOSE = 5 / DRAWS**0.5


def noise(corners: list[list[int]], epsilon: object, gamma: str | None) -> Mechanism:
    query = Query(np.zeros((1, len(corners[0]))))
    return Mechanism(query, SensitivityHull.from_vertices(corners), epsilon, gamma)


# Laws


@pytest.mark.parametrize("corners", BODIES.values(), ids=BODIES)
def test_it_is_below_the_root_of_the_mean_square_and_falls_with_the_price(
    corners: list[list[int]],
) -> None:
    errors = [mean_noise(noise(corners, epsilon, None)) for epsilon in ("0.5", 1, 2)]
    assert errors[0] == pytest.approx(2 * errors[1], rel=1e-3)
    assert errors[1] == pytest.approx(2 * errors[2], rel=1e-3)
    assert errors[1] < noise(corners, 1, None).mean_squared_error ** 0.5


def test_nothing_is_off_without_noise() -> None:
    assert mean_noise(noise([[0, 0]], 1, None)) == 0


# Oracle


def test_on_a_line_of_two_places_it_is_the_sum_over_whole_numbers() -> None:
    weights = [exp(-abs(n) / 3) for n in range(-300, 301)]
    wanted = sum(abs(n) * w for n, w in zip(range(-300, 301), weights, strict=True)) / sum(weights)
    assert mean_noise(noise([[3]], 1, None)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("gamma", [None, "0.4"])
@pytest.mark.parametrize("corners", BODIES.values(), ids=BODIES)
def test_it_is_what_samples_are_off_by(corners: list[list[int]], gamma: str | None) -> None:
    mechanism = noise(corners, 2, gamma)
    source = SeededRandomness(np.random.default_rng(1))
    drawn = mechanism.sample_lattice_many(0, DRAWS, source).astype(np.float64)
    seen = np.linalg.norm(drawn, axis=1).mean()
    assert mean_noise(mechanism) == pytest.approx(seen, rel=CLOSE)


@pytest.mark.parametrize("gamma", [None, "0.4"])
def test_the_sum_and_the_formula_agree_where_both_serve(
    gamma: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = noise([[20, 3], [4, 25]], 4, gamma)
    summed = mean_noise(mechanism)
    monkeypatch.setattr(distance, "SUMMED", 0)
    assert mean_noise(mechanism) == pytest.approx(summed, rel=0.01)
