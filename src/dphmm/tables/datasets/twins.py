"""Ids that are one person: two devices, or one track under two names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dphmm.errors import ArgumentError
from dphmm.tables.datasets.tracks import Trip

__all__ = ["LEAST_SHARED", "same_person"]

LEAST_SHARED = 100
"""Records of the same time and state that make two ids one person.

Two people who travel together share some; ids of GeoLife that share this many share up to
thousands. A constant, chosen without looking at any result.
"""


def same_person(trips: Sequence[Trip], least: int = LEAST_SHARED) -> dict[str, str]:
    """For every id the first of those that are the same person.

    Ids that share at least `least` records, the same state at the same time, are one person,
    and so are ids that a chain of such pairs links. Who learns from some people and evaluates
    on others must keep them together.

    >>> walk = Trip("a", np.arange(5), np.array([3, 3, 4, 5, 5]))
    >>> again = Trip("b", np.arange(2, 8), np.array([4, 5, 5, 6, 7, 8]))
    >>> alone = Trip("c", np.arange(5), np.array([0, 0, 0, 0, 5]))
    >>> same_person([walk, again, alone], least=3)
    {'a': 'a', 'b': 'a', 'c': 'c'}
    """
    if least < 1:
        raise ArgumentError(f"least must be at least 1, got {least!r}")
    names = sorted({trip.person for trip in trips})
    if not names:
        return {}
    number = {name: place for place, name in enumerate(names)}
    owners = np.concatenate([np.full(len(trip), number[trip.person]) for trip in trips])
    records = np.stack(
        [np.concatenate([getattr(trip, part) for trip in trips]) for part in ("times", "states")]
    )
    _, record = np.unique(records, axis=1, return_inverse=True)
    record = record.ravel()
    shape = (len(names), int(record.max(initial=-1)) + 1)
    held = sparse.csr_array((np.ones(len(owners)), (owners, record)), shape=shape)
    held.sum_duplicates()
    held.data[:] = 1.0
    shared = sparse.csr_array(held @ held.T)
    shared.data = (shared.data >= least).astype(np.float64)
    shared.eliminate_zeros()
    _, group = connected_components(shared, directed=False)
    first = {int(one): names[place] for place, one in reversed(list(enumerate(group)))}
    return {name: first[int(group[place])] for place, name in enumerate(names)}
