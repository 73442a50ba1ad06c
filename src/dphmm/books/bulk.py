"""The rows of a file, many people at a time.

People who are new to the ledger are moved step by step in a `Batch`, which says what their
streams would say, bit for bit. Those whose last steps differ at most twofold go together, so
that nobody is carried far beyond their own last row; beliefs of one group take at most
256 MiB. Groups that are too small are left to single streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dphmm._types import IntArray
from dphmm.release.batch import Batch, BatchRelease
from dphmm.scenario.scenario import Scenario

__all__ = ["Walk", "groups", "released_together"]

FEWEST_PEOPLE = 16
FEWEST_ROWS = 64
"""Groups with fewer are not worth a batch."""

ROOM = 2**28
"""Bytes for the beliefs of one group."""


@dataclass(eq=False)
class Walk:
    """Which rows of a file are one person's, in order of time, and the steps they are for."""

    person: str
    base: int
    """The slot of step 0."""
    rows: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The step of the last row."""
        return self.steps[-1]


def groups(walks: Iterable[Walk], n_states: int) -> list[list[Walk]]:
    """Those who are released together, the longest walks first; the others are in no group.

    >>> walks = [Walk(f"person {n}", 0, [n], [last]) for n, last in enumerate([9, 3, 6] * 50)]
    >>> [(len(group), group[0].last, group[-1].last) for group in groups(walks, 100)]
    [(100, 9, 6)]
    """
    room = ROOM // (8 * n_states)
    found: list[list[Walk]] = [[]]
    for walk in sorted(walks, key=lambda walk: -walk.last):
        group = found[-1]
        if group and (len(group) >= room or 2 * walk.last < group[0].last):
            found.append(group := [])
        group.append(walk)
    return [
        group
        for group in found
        if len(group) >= FEWEST_PEOPLE and sum(len(walk.rows) for walk in group) >= FEWEST_ROWS
    ]


def released_together(
    scenario: Scenario, key: bytes | None, group: Sequence[Walk], states: IntArray
) -> Iterator[tuple[list[int], BatchRelease]]:
    """What is said at every step at which somebody has a row, with the rows that it answers.

    `states` holds the true state of every row of the file.
    """
    batch = Batch(
        scenario.model,
        scenario.plan,
        epsilon=scenario.settings.epsilon,
        people=[walk.person for walk in group],
        start=scenario.start,
        limit=scenario.settings.limit,
        scenario=scenario.name,
        key=key,
    )
    counts = [len(walk.rows) for walk in group]
    people = np.repeat(np.arange(len(group)), counts)
    steps = np.concatenate([walk.steps for walk in group])
    rows = np.concatenate([walk.rows for walk in group])
    order = np.lexsort((people, steps))
    people, steps, rows = people[order], steps[order], rows[order]
    bounds = np.flatnonzero(np.diff(steps, prepend=-1, append=-1))
    for first, end in pairwise(bounds.tolist()):
        while batch.time < steps[first] - 1:
            batch.skip()
        speaking = people[first:end]
        true_states = np.zeros(len(group), dtype=np.int64)
        true_states[speaking] = states[rows[first:end]]
        active = np.zeros(len(group), dtype=bool)
        active[speaking] = True
        yield rows[first:end].tolist(), batch.release(true_states, active=active)
