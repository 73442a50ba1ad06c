"""Whether rows that are taken for one person's are several tracks at the same time.

Nobody is in two places at once, so then a column that was not used tells people apart, and what
was learned from them and promised to them together would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from dphmm._types import IntArray

__all__: list[str] = []

SHORTEST = 5
"""Rows that a track has on average where rows stand in order; those of a shuffled file are two."""
MIXED = 0.25
"""The share of rows after which, in time, another stretch's comes: 3/4 where four go together."""
_WHO = re.compile(
    r"(?i)(^|[^a-z])(id|ids|uuid|identifier|name|tag|code|number|no|nr|ref)$|[a-z]ID$"
)


class Tracks:
    """The stretches of a file in which time goes one way."""

    def __init__(self) -> None:
        self._times: list[IntArray] = []

    def see(self, times: IntArray) -> None:
        """Go on with the times of some rows, in their order."""
        self._times.append(times)

    def at_once(self) -> int:
        """How many stretches are made at the same time, row beside row; 0 if they are not.

        Stretches of one person may stand in any order, and even overlap for some rows.
        """
        times = np.concatenate([np.empty(0, np.int64), *self._times])
        waits = np.diff(times)
        # Newest first is an order too.
        back = (waits > 0) if (waits < 0).sum() > (waits > 0).sum() else (waits < 0)
        stretch = np.concatenate([[0], np.cumsum(back)])
        if not back.any() or len(times) < SHORTEST * (1 + stretch[-1]):
            return 0
        beside = np.diff(stretch[np.argsort(times, kind="stable")]) != 0
        if beside.sum() < MIXED * len(beside):
            return 0
        starts = np.flatnonzero(np.concatenate([[True], back]))
        first, last = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
        begun = np.searchsorted(np.sort(first), first, "right")
        return int((begun - np.searchsorted(np.sort(last), first)).max())


def telling(unused: Sequence[str]) -> str | None:
    """The first of some columns that by its name may say who it was."""
    return next((name for name in unused if _WHO.search(name.strip())), None)
