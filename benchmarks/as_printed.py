"""The paper's algorithms as printed, in honest vectorised NumPy and SciPy floats.

All edges' differences, Qhull, a linear program for every pair that Algorithm 4 looks at, and
a hull for every candidate of Algorithm 3. No grouping, no caching, no exactness: what one
would write first from the paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

Floats = NDArray[np.float64]


class AsPrinted:
    """Algorithm 2 with dense probabilities and an edge list."""

    def __init__(self, transition: Floats, edges: NDArray[np.int64], answers: Floats) -> None:
        self.transition = transition
        self.edges = edges
        self.answers = answers
        self.rng = np.random.default_rng(0)

    def hull(self, possible: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
        """The corners of K, and which states have a neighbour."""
        alive = self.edges[possible[self.edges[:, 0]] & possible[self.edges[:, 1]]]
        differences = self.answers[alive[:, 0]] - self.answers[alive[:, 1]]
        both = np.concatenate([differences, -differences])
        connected = np.zeros(len(possible), dtype=bool)
        connected[alive.ravel()] = True
        return both[ConvexHull(both).vertices], connected

    def degree(self, state: int, corners: Floats, possible: NDArray[np.bool_]) -> int:
        """Algorithm 4: how many possible states lie in f(state) + K."""
        count = 0
        bounds = np.vstack([corners.T, np.ones(len(corners))])
        for other in np.flatnonzero(possible):
            target = np.append(self.answers[other] - self.answers[state], 1.0)
            solved = linprog(np.zeros(len(corners)), A_eq=bounds, b_eq=target)
            count += solved.status == 0
        return count

    def step(self, posterior: Floats, true_state: int, epsilon: float) -> Floats:
        """One pass of Algorithm 2: the posterior after a release."""
        prior = posterior @ self.transition
        possible = prior > 0
        corners, connected = self.hull(possible)
        for state in np.flatnonzero(possible & ~connected):
            if self.degree(state, corners, possible) == 1:
                apart = np.linalg.norm(self.answers - self.answers[state], axis=1)
                apart[~possible] = np.inf
                apart[state] = np.inf
                new = self.answers[np.argmin(apart)] - self.answers[state]
                both = np.concatenate([corners, [new, -new]])
                corners = both[ConvexHull(both).vertices]
        polygon = ConvexHull(corners)
        normals, offsets = polygon.equations[:, :-1], -polygon.equations[:, -1]
        answer = self.answers[true_state] + self._noise(polygon, epsilon)
        heights = (answer - self.answers) @ (normals / offsets[:, None]).T
        weights = prior * np.exp(-epsilon * heights.max(axis=1))
        return weights / weights.sum()

    def _noise(self, polygon: ConvexHull, epsilon: float) -> Floats:
        cones = polygon.points[polygon.simplices]
        volumes = np.abs(np.linalg.det(cones))
        cone = cones[self.rng.choice(len(cones), p=volumes / volumes.sum())]
        weights = self.rng.exponential(1 / epsilon, len(cone))
        return weights @ cone


def smallest_area(corners: Floats, candidates: Floats) -> int:
    """The inner loop of Algorithm 3: the candidate whose hull is smallest."""
    areas = [ConvexHull(np.concatenate([corners, [w, -w]])).volume for w in candidates]
    return int(np.argmin(areas))
