"""Whether rows that are taken for one person's are several tracks at the same time.

Nobody is in two places at once, so then a column that was not used tells people apart, and what
was learned from them and promised to them together would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from dphmm._types import FloatArray, IntArray

__all__: list[str] = []

SHORTEST = 5
"""Rows that a track has on average where rows stand in order; those of a shuffled file are two."""
MIXED = 0.25
"""The share of rows after which, in time, another stretch's comes: 3/4 where four go together."""
MOST_LOOKED = 20_000
"""Rows among which a column is looked for that parts them into several tracks."""
SHORTER = 5.0
"""How many times longer the way is that goes from one of several people to the next."""
OFTEN, FAST = 600.0, 70.0
"""Seconds within which nobody goes to and fro all the time, and metres a second of nobody."""
_WHO = re.compile(
    r"(?i)(^|[^a-z])(id|ids|uuid|identifier|name|tag|code|number|no|nr|ref)$|[a-z]ID$"
)


class Tracks:
    """The stretches of a file in which time goes one way."""

    def __init__(self) -> None:
        self._times: list[IntArray] = []
        self._first: tuple[FloatArray, dict[str, IntArray]] | None = None

    def see(
        self,
        times: IntArray,
        places: FloatArray | None = None,
        others: dict[str, IntArray] | None = None,
    ) -> None:
        """Go on with the times of some rows, in their order.

        Args:
            times: Whole numbers; microseconds where there are places.
            places: Where it was in metres, a row each.
            others: Columns that were not used, each with a number for every value.
        """
        if self._first is None and places is not None:
            few = {name: values[:MOST_LOOKED] for name, values in (others or {}).items()}
            self._first = places[:MOST_LOOKED], few
        self._times.append(times)

    def parted_by(self) -> tuple[str, int] | None:
        """A column that makes several short ways of one that goes to and fro, and how many.

        Its values take turns in time, so that it is no number of a trip or a day, and that either
        often or faster than anybody goes, so that it is no home and office.
        """
        if self._first is None:
            return None
        places, others = self._first
        times = self._times[0][: len(places)]
        order = np.argsort(times, kind="stable")
        places, waits = places[order], np.diff(times[order]) / 1e6
        ways = np.hypot(*np.diff(places, axis=0).T)
        for name, values in others.items():
            value = values[order]
            kinds, turns = len(np.unique(value)), np.diff(value) != 0
            if not 1 < kinds <= len(value) / SHORTEST or turns.sum() < MIXED * len(value):
                continue
            speed = np.quantile(ways[turns] / np.maximum(waits[turns], 1.0), 0.75)
            if np.median(waits) > OFTEN and speed < FAST:
                continue
            by_value = np.argsort(value, kind="stable")
            own = np.hypot(*np.diff(places[by_value], axis=0).T)[np.diff(value[by_value]) == 0]
            if ways.sum() > SHORTER * own.sum():
                return name, kinds
        return None

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
