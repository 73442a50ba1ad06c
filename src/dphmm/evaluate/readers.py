"""Chains for reading answers that were already given: the same releases, better estimates.

What is published does not change, so neither does the guarantee: reading is post-processing.
A `Reader` is a chain over more than the states, such as states with the direction of the last
move, and the map back to the states that answers are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.chains import SecondOrderModel, TimeVaryingModel
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.errors import ArgumentError
from dphmm.evaluate.metrics import visits
from dphmm.evaluate.workloads import counted
from dphmm.tables.geo import Grid

__all__ = [
    "ESTIMATES",
    "Reader",
    "at_hours",
    "first_order",
    "hourly",
    "momentum",
    "second_order",
]

ESTIMATES = ("filtered", "filtered_median", "smoothed", "smoothed_median")
TURNS = 8
"""Directions of a move, 45 degrees apart; further contexts count the steps of a stay."""

REACH = 2
"""Cells, to every side, that a move nobody made in training may span."""

RARE = 0.5
"""Added to the count of every displacement, so that none within reach is impossible."""


@dataclass(frozen=True, eq=False)
class Reader:
    """A chain whose states are states of the query with some memory."""

    chain: Chain
    current: IntArray
    """The query's state of each of the chain's."""
    start: Belief

    def read(
        self, observations: Sequence[FloatArray | None], values: FloatArray
    ) -> dict[str, FloatArray]:
        """The estimates of each kind, one row a step: from answers so far, and from all."""
        rows = [None if row is None else row[self.current] for row in observations]
        estimates = {}
        for name, beliefs in (
            ("filtered", self.chain.filter(rows, start=self.start)),
            ("smoothed", self.chain.smooth(rows, start=self.start)),
        ):
            merged = [self._merged(belief, len(values)) for belief in beliefs]
            estimates[name] = np.array([belief.mean(values) for belief in merged])
            estimates[f"{name}_median"] = np.array([belief.median(values) for belief in merged])
        return estimates

    def _merged(self, belief: Belief, n_states: int) -> Belief:
        merged = np.bincount(self.current, belief.probabilities, n_states)
        return Belief.from_probabilities(merged)


def first_order(sequences: list[IntArray], grid: Grid, *, weight: float) -> Reader:
    """The chain of counted moves; `weight` moves from each state go as people go anywhere."""
    model = MarkovModel(first_order_matrix(sequences, grid, weight))
    start = Belief.from_probabilities(visits(sequences, grid.n_states))
    return Reader(model, np.arange(grid.n_states), start)


def first_order_matrix(sequences: list[IntArray], grid: Grid, weight: float) -> sparse.csr_array:
    """Counts plus `weight` times the displacements of all moves together, row by row."""
    counts = counted(sequences, grid.n_states)
    return _normalised(counts + weight * _displacements(counts, grid))


def hourly(
    sequences: list[IntArray], bands: list[IntArray], grid: Grid, *, weight: float, trust: float
) -> tuple[MarkovModel, ...]:
    """A first-order chain for each band of the day, drawn to the one of all day by `trust` moves.

    `bands` says for each state of each sequence in which band it lies, as `at_hours` does for
    the steps to be read.
    """
    whole = first_order_matrix(sequences, grid, weight)
    sources = np.concatenate([states[:-1] for states in sequences])
    targets = np.concatenate([states[1:] for states in sequences])
    into = np.concatenate([rows[1:] for rows in bands])
    models = []
    for band in range(int(into.max()) + 1):
        chosen = into == band
        entries = (np.ones(chosen.sum()), (sources[chosen], targets[chosen]))
        counts = sparse.csr_array(entries, shape=whole.shape)
        models.append(MarkovModel(_normalised(counts + trust * whole)))
    return tuple(models)


def at_hours(models: tuple[MarkovModel, ...], bands: IntArray, start: Belief) -> Reader:
    """The reader of steps that lie in these bands of the day."""
    latest = len(models) - 1
    slots = [min(int(band), latest) for band in bands]
    # The list repeats and begins at time 0, the start; the first step leads into time 1.
    chain = TimeVaryingModel(models, [slots[-1], *slots])
    return Reader(chain, np.arange(models[0].n_states), start)


def second_order(sequences: list[IntArray], grid: Grid, *, weight: float, trust: float) -> Reader:
    """The chain of state pairs, drawn to the first-order chain by `trust` moves a pair."""
    first = first_order_matrix(sequences, grid, weight)
    n_states = grid.n_states
    degree = np.diff(first.indptr)
    previous = np.repeat(np.arange(n_states), degree)
    pairs = np.stack([previous, first.indices], axis=1).astype(np.int64)
    keys = pairs[:, 0] * n_states + pairs[:, 1]
    width = degree[pairs[:, 1]]
    offsets = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
    targets = np.repeat(first.indptr[:-1][pairs[:, 1]], width) + offsets
    indptr = np.concatenate([[0], np.cumsum(width)])
    shape = (len(pairs), len(pairs))
    general = sparse.csr_array((first.data[targets], targets, indptr), shape=shape)
    before = np.concatenate([states[:-2] * n_states + states[1:-1] for states in sequences])
    after = np.concatenate([states[1:-1] * n_states + states[2:] for states in sequences])
    places = (np.searchsorted(keys, before), np.searchsorted(keys, after))
    counts = sparse.csr_array((np.ones(len(before)), places), shape=shape)
    model = SecondOrderModel(_normalised(counts + trust * general), pairs, n_states)
    weights = first.data * visits(sequences, n_states)[previous]
    return Reader(model, model.current, Belief.from_probabilities(weights / weights.sum()))


def momentum(
    sequences: list[IntArray], grid: Grid, *, weight: float, trust: float, patience: int
) -> Reader:
    """The chain of states with a context: the last move's direction, or how long they stayed.

    From a state and context, `trust` moves are spread as the first-order chain has it, turned
    to what people anywhere do in that context; the rest is counted. A stay is told apart up
    to `patience` steps.
    """
    matrix, weights, contexts = momentum_matrix(sequences, grid, weight, trust, patience)
    current = np.repeat(np.arange(grid.n_states), contexts)
    return Reader(MarkovModel(matrix), current, Belief.from_probabilities(weights))


def momentum_matrix(
    sequences: list[IntArray], grid: Grid, weight: float, trust: float, patience: int
) -> tuple[sparse.csr_array, FloatArray, int]:
    """The transitions over (state, context), how often each is visited, how many contexts."""
    if patience < 1:
        raise ArgumentError(f"patience must be at least one step, got {patience!r}")
    contexts, cells = TURNS + patience, grid.row_col
    first = first_order_matrix(sequences, grid, weight).tocoo()
    seen = [context_of(states, cells, patience) for states in sequences]
    sources = np.concatenate([states[:-1] for states in sequences])
    targets = np.concatenate([states[1:] for states in sequences])
    before = np.concatenate([context[:-1] for context in seen])
    after = np.concatenate([context[1:] for context in seen])

    kinds = _kinds(cells[targets] - cells[sources])
    habits = np.zeros((contexts, 2 * TURNS + 1))
    np.add.at(habits, (before, kinds), 1)
    usual = (habits.sum(axis=0) + RARE) / (habits + RARE).sum()
    share = (habits + 20 * usual) / (habits.sum(axis=1, keepdims=True) + 20)
    turned = share / usual

    steps = cells[first.col] - cells[first.row]
    kind, direction = _kinds(steps), _directions(steps)
    rows, columns, weights = [], [], []
    for context in range(contexts):
        longer = min(context + 1, contexts - 1) if context >= TURNS else TURNS
        rows.append(first.row * contexts + context)
        columns.append(first.col * contexts + np.where(direction < 0, longer, direction))
        weights.append(first.data * turned[context, kind])
    shape = (grid.n_states * contexts, grid.n_states * contexts)
    entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
    general = _normalised(sparse.csr_array(entries, shape=shape))
    places = (sources * contexts + before, targets * contexts + after)
    counts = sparse.csr_array((np.ones(len(sources)), places), shape=shape)
    visited = np.bincount(places[0], minlength=shape[0]) + 0.01
    return _normalised(counts + trust * general), visited / visited.sum(), contexts


def context_of(states: IntArray, cells: IntArray, patience: int) -> IntArray:
    """The context at each position: a direction 0..7, or 8 and on for the steps of a stay.

    >>> cells = np.array([[0, 0], [0, 1], [1, 1]])
    >>> context_of(np.array([0, 0, 1, 1, 1, 1, 2]), cells, 2).tolist()
    [8, 9, 0, 8, 9, 9, 2]
    """
    direction = np.concatenate([[-1], _directions(np.diff(cells[states], axis=0))])
    position = np.arange(len(states))
    last_move = np.maximum.accumulate(np.where(direction >= 0, position, -1))
    stay = np.minimum(position - last_move - 1, patience - 1)
    return np.where(direction >= 0, direction, TURNS + stay)


def log_score(matrix: sparse.csr_array, sources: IntArray, targets: IntArray) -> float:
    """The mean log-probability of moves; moves that the chain rules out count as very rare."""
    chances = np.asarray(matrix[sources, targets]).ravel()
    return float(np.log(np.maximum(chances, 1e-8)).mean())


def _directions(steps: IntArray) -> IntArray:
    """Which of eight directions a step of (rows, columns) goes, or -1 for none."""
    turn = np.round(np.arctan2(steps[:, 0], steps[:, 1]) / (np.pi / 4)).astype(np.int64) % TURNS
    return np.where((steps == 0).all(axis=1), -1, turn)


def _kinds(steps: IntArray) -> IntArray:
    """0 for a stay, 1..8 for a short move of each direction, 9..16 for a long one."""
    direction = _directions(steps)
    long = np.abs(steps).max(axis=1) > 1
    return np.where(direction < 0, 0, 1 + direction + TURNS * long)


def _displacements(counts: sparse.csr_array, grid: Grid) -> sparse.csr_array:
    """From every state, the moves within reach as likely as they are from all states together."""
    moves = counts.tocoo()
    steps = grid.row_col[moves.col] - grid.row_col[moves.row]
    near = (np.abs(steps) <= REACH).all(axis=1)
    table = np.full((2 * REACH + 1, 2 * REACH + 1), RARE)
    np.add.at(table, tuple((steps[near] + REACH).T), moves.data[near])
    table /= table.sum()
    rows, columns = grid.shape
    state = np.full((rows + 2 * REACH, columns + 2 * REACH), -1)
    state[tuple((grid.row_col + REACH).T)] = np.arange(grid.n_states)
    sources, targets, weights = [], [], []
    for (down, right), weight in np.ndenumerate(table):
        there = state[grid.row_col[:, 0] + down, grid.row_col[:, 1] + right]
        exists = np.flatnonzero(there >= 0)
        sources.append(exists)
        targets.append(there[exists])
        weights.append(np.full(len(exists), weight))
    entries = (np.concatenate(weights), (np.concatenate(sources), np.concatenate(targets)))
    return _normalised(sparse.csr_array(entries, shape=counts.shape))


def _normalised(matrix: sparse.csr_array) -> sparse.csr_array:
    rows = sparse.csr_array(matrix)
    rows.sum_duplicates()
    sums = np.asarray(rows.sum(axis=1)).ravel()
    rows.data /= np.repeat(sums, np.diff(rows.indptr))
    return rows
