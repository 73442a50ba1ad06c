"""The exact sampler in bulk, beside OpenDP's and diffprivlib's noise."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import product
from types import ModuleType

import numpy as np

from benchmarks import Figure
from benchmarks.worlds import distance_policy, fastest, lazy_grid
from dphmm import (
    KeyedRandomness,
    Mechanism,
    Query,
    Randomness,
    SecureRandomness,
    SensitivityHull,
    best_gamma,
    sensitivity_hull,
)

PART = 4_096
DRAWS = 50_000
PRICES = ("0.01", "0.1", "3", "10", "20", "50", "100")
STEPS = ("0.1", "1", "2", "4")
PYTHON_IN_FOUR = 140
"""Microseconds of a draw in four dimensions at epsilon 1 with Python's integers, as it was."""


def mechanism() -> Mechanism:
    """One kilometre around a cell of the Beijing grid, at epsilon 1."""
    _, query = lazy_grid(1_369)
    return Mechanism(query, sensitivity_hull(query, distance_policy(query)), Fraction(1))


def bulk(noise: Mechanism, randomness: Randomness, repeats: int = 40) -> float:
    """Seconds an answer of many answers on one core."""
    # A part that is small enough for one thread, so that this is a core's speed.
    (seconds,) = fastest(lambda: noise.sample_lattice_many(0, PART, randomness), repeats=repeats)
    return seconds / PART


def bodies(dimension: int) -> dict[str, SensitivityHull]:
    """Boxes, cross-polytopes, long bodies and the hull of 300 random points."""
    rng = np.random.default_rng(dimension)
    signs = np.array(list(product((1, -1), repeat=dimension)))
    sides = np.array([1000] + [10] * (dimension - 1))
    turn = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    vectors = {
        "box": 500 * signs,
        "cross-polytope": 500 * np.eye(dimension, dtype=int),
        "random cross-polytope": rng.integers(-500, 501, (dimension, dimension)),
        "box 100 to 1": sides * signs,
        "turned box 100 to 1": np.rint((sides * signs) @ turn).astype(int),
        "hull of 300 points": rng.integers(-500, 501, (300, dimension)),
    }
    return {name: SensitivityHull.from_lattice(rows) for name, rows in vectors.items()}


def by_price(dimension: int) -> list[Figure]:
    """A draw at small and large epsilons beside one at epsilon 1, for each body."""
    origin, figures = Query(np.zeros((1, dimension), dtype=int)), []
    for name, body in bodies(dimension).items():
        one = bulk(Mechanism(origin, body, 1), SecureRandomness(), repeats=10)
        for price in PRICES:
            drawn = bulk(Mechanism(origin, body, price), SecureRandomness(), repeats=10)
            figures.append(
                Figure(
                    f"{name}, {dimension} dimensions, epsilon {price}",
                    1e6 * drawn,
                    "us",
                    "epsilon 1",
                    drawn / one,
                    "ratio <= 10",
                )
            )
        if dimension == 4:
            figures.append(
                Figure(
                    f"{name}, 4 dimensions, epsilon 1",
                    1e6 * one,
                    "us",
                    f"{PYTHON_IN_FOUR} us, as it was",
                    PYTHON_IN_FOUR / (1e6 * one),
                    "ratio >= 10",
                )
            )
    return figures


def staircase(dimension: int) -> list[Figure]:
    """A staircase draw beside a K-norm draw at the same epsilon, for each body."""
    origin, figures = Query(np.zeros((1, dimension), dtype=int)), []
    for name, body in bodies(dimension).items():
        for price in STEPS:
            noises = [
                Mechanism(origin, body, price, gamma)
                for gamma in (None, best_gamma(body.rank, price))
            ]
            smooth, steps = (bulk(noise, SecureRandomness(), repeats=10) for noise in noises)
            figures.append(
                Figure(
                    f"staircase, {name}, {dimension} dimensions, epsilon {price}",
                    1e6 * steps,
                    "us",
                    "K-norm noise",
                    smooth / steps,
                    "ratio >= 0.5",
                )
            )
    return figures


def opendp_laplace(size: int, scale: float) -> float:
    """Seconds of OpenDP's discrete Laplace for so many two-dimensional answers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=scale)
    values = [0] * (2 * size)
    (seconds,) = fastest(lambda: measurement(values), repeats=5)
    return seconds / size


def diffprivlib_laplace(scale: float) -> float:
    """Seconds of two of diffprivlib's Laplace numbers, which have no bulk call."""
    # Its package imports scikit-learn's models; only the mechanisms are wanted here.
    sys.modules.setdefault("diffprivlib.models", ModuleType("diffprivlib.models"))
    from diffprivlib.mechanisms import Laplace

    noise = Laplace(epsilon=1.0, sensitivity=scale)
    (seconds,) = fastest(lambda: (noise.randomise(0.0), noise.randomise(0.0)), inner=500)
    return seconds


def run() -> list[Figure]:
    noise = mechanism()
    scale = float(noise.body.l1_sensitivity)
    secure, keyed = bulk(noise, SecureRandomness()), bulk(noise, KeyedRandomness(bytes(32)))
    opendp, opendp_one = opendp_laplace(DRAWS, scale), opendp_laplace(1, scale)
    ours_one, diffprivlib = (
        fastest(lambda: noise.sample_lattice(0), inner=500)[0],
        diffprivlib_laplace(scale),
    )
    figures = [
        Figure("answers a second, secure, one core", 1 / secure, "1/s", target="value >= 500000"),
        Figure("answers a second, keyed, one core", 1 / keyed, "1/s", target="value >= 600000"),
        Figure(
            "OpenDP discrete Laplace in the plane, bulk",
            1e6 * opendp,
            "us",
            "ours, bulk",
            opendp / secure,
            "ratio >= 8",
        ),
        Figure("one call of OpenDP", 1e6 * opendp_one, "us", "one of ours", opendp_one / ours_one),
        Figure(
            "two calls of diffprivlib",
            1e6 * diffprivlib,
            "us",
            "one of ours",
            diffprivlib / ours_one,
            "ratio >= 2",
        ),
    ]
    rng = np.random.default_rng(0)
    for dimension in (1, 2, 3, 4):
        body = SensitivityHull.from_lattice(rng.integers(-500, 500, (3 * dimension, dimension)))
        origin = Query(np.zeros((1, dimension), dtype=int))
        drawn = bulk(Mechanism(origin, body, Fraction(1)), SecureRandomness())
        figures.append(Figure(f"an answer in {dimension} dimensions, bulk", 1e6 * drawn, "us"))
        figures += by_price(dimension) + staircase(dimension)
    return figures
