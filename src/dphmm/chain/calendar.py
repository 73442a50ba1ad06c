"""Hours and days of the week as turns of a chain that changes with time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import IntArray
from dphmm.errors import ArgumentError, expect_one_of
from dphmm.geometry.exact import whole
from dphmm.geometry.states import as_array

__all__ = ["PARTS", "Calendar", "find_zone"]

PARTS = {"hour": 24, "weekday": 7}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Calendar:
    """Which part of the day or week each slot of a clock begins in; a schedule of models.

    Slots are counted from 1970 in UTC, as a scenario's clock does.

    Args:
        by: "hour" for the 24 hours of the day, "weekday" for the 7 days from Monday on.
        seconds: How long a slot is.
        zone: The place whose clocks are meant, such as "Europe/Berlin"; UTC by default.

    >>> calendar = Calendar("hour", 1800, "Europe/Berlin")
    >>> [calendar(slot) for slot in (0, 1, 2)], len(calendar)
    ([1, 1, 2], 24)
    """

    by: str
    seconds: int
    zone: str | None = None

    def __post_init__(self) -> None:
        expect_one_of(self.by, tuple(PARTS), "by")
        whole(self.seconds, "seconds", 1)
        _ = self._zone

    def __len__(self) -> int:
        return PARTS[self.by]

    def __call__(self, time: int) -> int:
        """The part that a slot begins in.

        Args:
            time: The slot.
        """
        slot = whole(time, "time", None)
        try:
            local = (_EPOCH + timedelta(seconds=slot * self.seconds)).astimezone(self._zone)
        except (OverflowError, ValueError):
            raise ArgumentError("time must be a slot of the years 1 to 9999") from None
        return local.hour if self.by == "hour" else local.weekday()

    def parts(self, times: ArrayLike) -> IntArray:
        """The parts that slots begin in.

        Args:
            times: The slots.
        """
        given = as_array(times, "times")
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ArgumentError("times must be slots, a whole number each")
        slots, places = np.unique(given.astype(np.int64), return_inverse=True)
        return np.array([self(slot) for slot in slots.tolist()], dtype=np.int64)[places]

    @cached_property
    def _zone(self) -> tzinfo:
        return find_zone(self.zone, "zone") or UTC


def find_zone(name: str | None, argument: str) -> ZoneInfo | None:
    """The zone of a name; refused if the system does not know it.

    Args:
        name: A name such as "Europe/Berlin".
        argument: What a message calls it.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        raise ArgumentError(
            f"{argument} must be a name such as 'Europe/Berlin', got {name!r}"
        ) from None
