"""The error that no mechanism goes below: closed forms, our own noise, the best noise there is."""

from __future__ import annotations

from itertools import product
from math import exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from dphmm import ArgumentError, Mechanism, Query, SensitivityHull, least_error
from dphmm.geometry.shapes import enlarge
from dphmm.noise import bound

EPSILONS = ("0.02", "0.3", "1", "3", "8")

TAIL = 1e-3
"""What the linear program may be off: its tolerance, and noise beyond its box (36 e^-12)."""

# Paper


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("reach", [1, 7, 1000])
def test_on_a_line_it_is_the_error_of_geometric_noise_in_steps_of_the_sensitivity(
    reach: int, epsilon: str
) -> None:
    q = exp(-float(epsilon))
    hull = SensitivityHull.from_vertices([[reach]])
    assert least_error(hull, epsilon) == pytest.approx(reach * sqrt(2 * q) / (1 - q), rel=1e-12)
    # With a sensitivity of one step our noise is that noise.
    if reach == 1:
        noise = Mechanism(Query([0]), hull, epsilon)
        assert noise.mean_squared_error == pytest.approx(least_error(hull, epsilon) ** 2, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("a", "b"), [(1, 1), (5, 5), (40, 3), (1000, 10)])
def test_a_box_is_as_wide_as_its_diagonal(a: int, b: int, epsilon: str) -> None:
    # Along the diagonal of length D the box reaches D; across it 2ab/D from the middle.
    q = exp(-float(epsilon))
    hull = SensitivityHull.from_vertices([[a, b], [a, -b]])
    squares = a * a + b * b
    widths = squares + (2 * a * b) ** 2 / squares
    assert least_error(hull, epsilon) ** 2 == pytest.approx(widths * 2 * q / (1 - q) ** 2, rel=1e-9)
    # The volume's bound of the same box: Pick counts the points of m K.
    cells = sum(
        (2 * a * m + 1) * (2 * b * m + 1) * q**m * (1 - q) for m in range(int(60 / float(epsilon)))
    )
    assert bound._by_volume(hull, float(epsilon)) == pytest.approx(
        cells / (2 * pi) - 1 / 6, rel=1e-9
    )


def test_k_norm_noise_is_nearly_the_best_for_squares_and_diamonds_at_small_epsilon() -> None:
    for corners in ([[50, 50], [50, -50]], [[50, 0], [0, 50]], [[50]]):
        hull = SensitivityHull.from_vertices(corners)
        ours = Mechanism(Query([[0] * len(corners[0])]), hull, "0.05").mean_squared_error
        assert least_error(hull, "0.05") ** 2 == pytest.approx(ours, rel=1e-3)


# Laws


@st.composite
def bodies(draw: st.DrawFn) -> SensitivityHull:
    rank = draw(st.integers(1, 3))
    size = draw(st.sampled_from([2, 9, 30 if rank < 3 else 9]))
    corner = st.lists(st.integers(-size, size), min_size=rank, max_size=rank)
    corners = draw(st.lists(corner, min_size=1, max_size=6))
    return SensitivityHull.from_vertices(corners, step=draw(st.sampled_from(["1", "0.25"])))


@given(bodies(), st.sampled_from(EPSILONS))
def test_no_noise_of_ours_is_better(hull: SensitivityHull, epsilon: str) -> None:
    query = Query(np.zeros((1, hull.dimension)), step=hull.step)
    least = least_error(hull, epsilon) ** 2
    shapes = [hull, hull.l1_ball()] + ([enlarge(hull)] if hull.rank == hull.dimension else [])
    for body in shapes:
        if body.rank and sum(body.determinants) < 200_000:
            ours = Mechanism(query, body, epsilon).mean_squared_error
            assert least <= ours * (1 + 1e-9)


@given(bodies(), st.sampled_from(EPSILONS), st.integers(2, 5))
def test_it_grows_with_the_body_and_with_the_step_and_falls_with_epsilon(
    hull: SensitivityHull, epsilon: str, factor: int
) -> None:
    larger = SensitivityHull.from_lattice(hull.lattice_vertices * factor, hull.step)
    assert least_error(larger, epsilon) >= least_error(hull, epsilon) * (1 - 1e-9)
    coarser = SensitivityHull.from_lattice(hull.lattice_vertices, hull.step * factor)
    assert least_error(coarser, epsilon) == pytest.approx(factor * least_error(hull, epsilon))
    assert least_error(hull, float(epsilon) * factor) <= least_error(hull, epsilon) * (1 + 1e-9)


def test_an_empty_body_needs_no_noise_and_a_wrong_one_is_refused() -> None:
    assert least_error(SensitivityHull.from_vertices([[0, 0]]), 1) == 0
    with pytest.raises(ArgumentError, match="hull must be a SensitivityHull"):
        least_error([[1]], 1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="epsilon must be positive"):
        least_error(SensitivityHull.from_vertices([[1]]), 0)


# Oracle


def best_error(corners: list[list[int]], epsilon: float, reach: int) -> float:
    """The smallest mean squared error of noise on the lattice, by a linear program.

    Noise further out than `reach` is left out, which changes the value by less than its tail.
    """
    hull = SensitivityHull.from_vertices(corners)
    points = np.array(list(product(range(-reach, reach + 1), repeat=hull.dimension)))
    place = {tuple(point): number for number, point in enumerate(points.tolist())}
    near = [p for p in points.tolist() if any(p) and hull.contains(p)]
    rows = []
    for point, number in place.items():
        for step in near:
            other = place.get(tuple(np.add(point, step).tolist()))
            if other is not None:
                row = np.zeros(len(points))
                row[number], row[other] = 1, -exp(epsilon)
                rows.append(row)
    found = linprog(
        (points**2).sum(axis=1),
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=np.ones((1, len(points))),
        b_eq=[1],
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize(
    ("corners", "epsilon", "reach"),
    [
        ([[1]], 1.0, 25),
        ([[3]], 1.0, 45),
        ([[3]], 3.0, 20),
        ([[1, 0], [0, 1]], 2.0, 6),
        ([[1, 1], [1, -1]], 2.0, 6),
        ([[2, 0], [0, 1]], 3.0, 6),
        ([[2, 1], [-1, 1]], 3.0, 6),
    ],
)
def test_the_best_noise_there_is_is_not_below_it_and_not_far_above(
    corners: list[list[int]], epsilon: float, reach: int
) -> None:
    best = best_error(corners, epsilon, reach)
    least = least_error(SensitivityHull.from_vertices(corners), epsilon) ** 2
    assert least <= best * (1 + TAIL)
    assert best <= 1.5 * least
