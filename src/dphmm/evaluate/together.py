"""Many draws of one run read at once, by a chain with memory.

The same sums as a `Stream`'s estimates, for all draws together and in single precision: a product
with twenty columns takes a fraction of the time of twenty products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.memory import MemoryModel
from dphmm.noise.mechanism import Mechanism

__all__ = ["law_likelihoods", "medians", "read_together"]

Rows = list[FloatArray | None]
SINGLE = np.float32


def law_likelihoods(law: Mechanism, answers: Any) -> FloatArray:
    """How likely every place makes each answer on the lattice, up to a constant a row: (k, n)."""
    apart = answers[:, None] - law.query.points[None, :]
    flat = apart.reshape(-1, apart.shape[2])
    if law.gamma is None:
        norms = law.body.lattice_norms(flat)
    else:
        norms = law.body.lattice_layers(flat, law.gamma)
    logs = -float(law.epsilon) * np.asarray(norms).reshape(apart.shape[:2])
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def read_together(
    rows: Rows, model: MemoryModel, start: Belief, draws: int
) -> tuple[FloatArray, FloatArray]:
    """What is believed of each step's place, so far and in hindsight: (steps, draws, places) each.

    Args:
        rows: For each step how likely every place makes what was told, (draws, places); None where
            nothing was.
        model: How people move; somebody may go anywhere.
        start: What is believed before the first step.
        draws: How many columns there are.
    """
    into, out = (matrix.astype(SINGLE) for matrix in (model.incoming, model.outgoing))
    jumps = model.jumps.astype(SINGLE)
    current = model.current
    first = np.searchsorted(current, np.arange(model.n_places))
    lifted = [None if row is None else row.T.astype(SINGLE)[current] for row in rows]
    belief = np.repeat(start.probabilities[:, None].astype(SINGLE), draws, axis=1)
    filtered = []
    for row in lifted:
        belief = into @ belief + jumps[:, None] * belief.sum(axis=0)
        if row is not None:
            belief *= row
        belief /= belief.sum(axis=0)
        filtered.append(belief)
    shape = (len(rows), draws, model.n_places)
    so_far, all_told = np.empty(shape), np.empty(shape)
    later = np.ones_like(belief)
    for step in range(len(rows) - 1, -1, -1):
        so_far[step] = np.add.reduceat(filtered[step], first, axis=0).T
        all_told[step] = np.add.reduceat(filtered[step] * later, first, axis=0).T
        row = lifted[step]
        if row is not None:
            later *= row
        later = out @ later + jumps @ later
        later /= later.max(axis=0)
    return so_far, all_told


def medians(places: FloatArray, values: FloatArray) -> FloatArray:
    """The median of every belief about places: (steps, draws, dimension)."""
    found = np.empty((*places.shape[:2], values.shape[1]))
    for at in np.ndindex(*places.shape[:2]):
        row = places[at]
        found[at] = Belief.from_probabilities(row / row.sum()).median(values)
    return found
