"""Worlds to measure in, and a way to time two things fairly on a busy machine."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from dphmm import MarkovModel, PolicyGraph, Query

CELL = 340
KILOMETRE = 1000


def lazy_grid(n_states: int) -> tuple[MarkovModel, Query]:
    """A walk on a square grid of 340 m cells: stay, or move to one of the eight around."""
    side = round(n_states**0.5)
    cells = np.array(list(np.ndindex(side, side)))
    pairs = cKDTree(cells).query_pairs(1.5, output_type="ndarray")
    moves = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(len(cells), len(cells)))
    pattern = sparse.csr_array(moves + moves.T + sparse.eye_array(len(cells)))
    model = MarkovModel(sparse.diags_array(1 / pattern.sum(axis=1)) @ pattern)
    return model, Query(cells * CELL)


def distance_policy(query: Query) -> PolicyGraph:
    """The paper's default for GeoLife: whatever is within a kilometre looks alike."""
    return PolicyGraph.within_distance(query, KILOMETRE)


def centre(query: Query) -> int:
    """The state in the middle of a grid."""
    side = round(query.n_states**0.5)
    return side * (side // 2) + side // 2


def fastest(
    *works: Callable[[], object],
    repeats: int = 9,
    inner: int = 1,
    clock: Callable[[], float] = perf_counter,
) -> list[float]:
    """The fastest run of each in seconds; they take turns, so that all share the load."""
    best = [float("inf")] * len(works)
    for work in works:
        work()
    for _ in range(repeats):
        for i, work in enumerate(works):
            for _ in range(inner):
                start = clock()
                work()
                best[i] = min(best[i], clock() - start)
    return best


def exponent(sizes: list[int], times: list[float]) -> float:
    """The power of the size that the time grows with, fitted on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
