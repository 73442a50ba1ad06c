"""Times of day as slots of a clock, at a place whose clocks may change.

A time such as "08:00" is the slot in which it falls; a range such as "17:00-19:00" is every
slot that begins in it. Where clocks go forward a time of day may not come at all, where they
go back it comes twice: both are as the place has them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.chain.calendar import find_zone
from dphmm.errors import ArgumentError

__all__ = ["find_zone", "slots_within", "times_of_day"]

DAY = 86400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_100_000_000, 253_300_000_000
"""Seconds of the years 3 to 9996: dates end soon after."""

_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})")


def times_of_day(hours: str) -> tuple[int, int | None]:
    """A time of day in seconds, or the two ends of a range, whose second may be the next day.

    >>> times_of_day("08:30"), times_of_day("22:00-06:00")
    ((30600, None), (79200, 21600))
    """
    parts = hours.split("-") if isinstance(hours, str) else []
    found = [_TIME.fullmatch(part.strip()) for part in parts]
    ends = [int(one[1]) * 3600 + int(one[2]) * 60 for one in found if one and int(one[2]) < 60]
    single = len(ends) == len(parts) == 1 and ends[0] < DAY
    ranged = len(ends) == len(parts) == 2 and ends[0] < DAY and ends[1] <= DAY
    if not single and not (ranged and ends[0] != ends[1]):
        raise ArgumentError(
            f"hours must be times such as '08:00' and ranges such as '17:00-19:00', got {hours!r}"
        )
    return ends[0], ends[1] if ranged else None


def slots_within(slots: IntArray, hours: Sequence[str], step: int, zone: str | None = None) -> Mask:
    """Which slots, of `step` seconds each, are at one of the hours; in UTC without a zone."""
    place = find_zone(zone, "zone") or UTC
    different, where = np.unique(slots, return_inverse=True)
    dated = (different >= _FIRST // step) & (different <= _LAST // step)
    begins = np.where(dated, different, 0) * step
    # The clocks of the place at both ends of each slot: nearly always the same.
    offsets = [_offsets(begins, place), _offsets(begins + step - 1, place)]
    within = np.zeros(len(different), dtype=bool)
    for first, last in map(times_of_day, hours):
        if last is None:
            for offset in offsets:
                falls = begins + (first - begins - offset) % DAY
                inside = falls < begins + step
                unsure = inside & (offsets[0] != offsets[1])
                inside[unsure] = _offsets(falls[unsure], place) == offset[unsure]
                within |= inside
        else:
            local = (begins + offsets[0]) % DAY
            late, early = local >= first, local < last
            within |= (late & early) if first < last else (late | early)
    return np.asarray((within & dated)[where.reshape(-1)], dtype=bool)


def _offsets(seconds: IntArray, place: tzinfo) -> IntArray:
    """How far the clocks of a place are ahead of UTC at some seconds since 1970."""
    days, day_of = np.unique(seconds // DAY, return_inverse=True)
    first, last = _look_up(days * DAY, place), _look_up((days + 1) * DAY, place)
    offsets = first[day_of.reshape(-1)]
    # Only on a day on which clocks change is every second looked up.
    changing = np.flatnonzero((first != last)[day_of.reshape(-1)])
    offsets[changing] = _look_up(seconds[changing], place)
    return offsets


def _look_up(seconds: IntArray, place: tzinfo) -> IntArray:
    found = (
        (_EPOCH + timedelta(seconds=second)).astimezone(place).utcoffset() or timedelta()
        for second in seconds.tolist()
    )
    return np.array([offset // timedelta(seconds=1) for offset in found], dtype=np.int64)
