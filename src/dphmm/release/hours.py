"""Times of day as slots of a clock, at a place whose clocks may change.

A time such as "08:00" is the slot in which it falls; a range such as "17:00-19:00" is every
slot that begins in it. Where clocks go forward a time of day may not come at all, where they
go back it comes twice: both are as the place has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from math import lcm

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.chain.calendar import find_zone
from dphmm.errors import ArgumentError

__all__ = ["find_zone", "most_within", "rhythms_within", "slots_within", "times_of_day"]

DAY = 86400
LONGEST_PERIOD = 10**6
"""Slots after which a rhythm and hours may repeat; of longer ones the hours are counted alone."""
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
            within |= _in_range((begins + offsets[0]) % DAY, first, last)
    return np.asarray((within & dated)[where.reshape(-1)], dtype=bool)


def _in_range(local: IntArray, first: int, last: int) -> Mask:
    late, early = local >= first, local < last
    return np.asarray((late & early) if first < last else (late | early), dtype=bool)


def most_within(
    steps: int, hours: Sequence[str], step: int, zone: str | None, every: int, phase: int
) -> int:
    """A number of slots that no `steps` in a row pass which are at the hours and at the rhythm.

    In every year: under one offset from UTC slots repeat after some days, and where clocks
    change a slot is at an hour before the change or after it. Without a change it is exact.
    """
    if lcm(DAY, every * step) // step > LONGEST_PERIOD:
        every, phase = 1, 0
    period = lcm(DAY, every * step) // step
    most = 0
    for changes, masks in _rhythms(steps, hours, step, zone, every, phase):
        each = max(int(mask.sum()) for mask in masks)
        # Stretches without a change hold at most so many periods, each of them begun.
        apart = (steps // period + changes + 1) * each
        most = max(most, min(apart, _most_in_a_row(np.any(masks, axis=0), steps)))
    return most


def rhythms_within(
    steps: int, hours: Sequence[str], step: int, zone: str | None, every: int, phase: int
) -> list[Mask] | None:
    """The slots at the hours and at the rhythm in any `steps` in a row, as masks that repeat.

    One for each offset from UTC that the place ever had; where clocks change meanwhile a slot is
    at an hour before the change or after it. None where they repeat after too long.
    """
    if lcm(DAY, every * step) // step > LONGEST_PERIOD:
        return None
    found = _rhythms(steps, hours, step, zone, every, phase)
    each = {mask.tobytes(): mask for _, masks in found for mask in [np.any(masks, axis=0)]}
    return [each[name] for name in sorted(each)]


def _rhythms(
    steps: int, hours: Sequence[str], step: int, zone: str | None, every: int, phase: int
) -> Iterator[tuple[int, list[Mask]]]:
    """How often clocks may change within so many steps, and the slots under each offset then."""
    slots = np.arange(lcm(DAY, every * step) // step)
    rhythm = slots % every == phase % every
    for offsets, changes in _offsets_within(zone, steps * step):
        yield changes, [rhythm & _at_hours(slots * step, one, hours, step) for one in offsets]


def _most_in_a_row(mask: Mask, steps: int) -> int:
    """The most of any so many consecutive slots, where a mask is repeated for ever."""
    periods, rest = divmod(steps, len(mask))
    counts = np.concatenate([[0], np.cumsum(np.concatenate([mask, mask[:rest]]))])
    return periods * int(mask.sum()) + int((counts[rest:] - counts[: len(counts) - rest]).max())


def _at_hours(begins: IntArray, offset: int, hours: Sequence[str], step: int) -> Mask:
    """Which slots would be at one of the hours if clocks never changed."""
    local = (begins + offset) % DAY
    within = np.zeros(len(begins), dtype=bool)
    for first, last in map(times_of_day, hours):
        falls = (first - local) % DAY < step
        within |= falls if last is None else _in_range(local, first, last)
    return within


@cache
def _changes(zone: str) -> list[tuple[int, int]]:
    """The days, as seconds, before whose begin clocks changed, and what they are ahead then."""
    # Before, nobody had a zone; afterwards the rules of the last years go on.
    days = np.arange(-(150 * 366) * DAY, 75 * 366 * DAY, DAY)
    offsets = _look_up(days, find_zone(zone, "zone") or UTC)
    changed = np.concatenate([[0], np.flatnonzero(np.diff(offsets)) + 1])
    return list(zip(days[changed].tolist(), offsets[changed].tolist(), strict=True))


def _offsets_within(zone: str | None, length: int) -> set[tuple[frozenset[int], int]]:
    """What clocks can be ahead within one stretch of so many seconds, and how often they change."""
    known = [(0, 0)] if zone is None else _changes(zone)
    found = set()
    for number, (day, offset) in enumerate(known):
        found.add((frozenset([offset]), 0))
        later = [ahead for when, ahead in known[number:] if when - day < length + DAY]
        if number:
            found.add((frozenset([known[number - 1][1], *later]), len(later)))
    return found


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
