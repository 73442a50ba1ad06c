"""The moments of a track as people read them: by the clock of the place, beside UTC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise

from dphmm.release.hours import find_zone
from dphmm.tables.clock import Clock

__all__ = ["LABEL", "Moments"]

ROUND = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 43200)
"""Minutes that may lie between two labels of an axis."""

LABEL = 8.6
"""How wide a character of a label is at most, in units of a drawing."""


@dataclass(frozen=True, eq=False)
class Moments:
    """When each of some steps was, in the zone of a scenario."""

    clock: Clock
    slots: Sequence[int]

    @property
    def zone(self) -> str:
        """What to write behind a time by the clock of the place."""
        return (self.clock.zone or "UTC") if self.clock.has_dates else ""

    @property
    def is_local(self) -> bool:
        """Whether times differ from UTC."""
        return self.clock.has_dates and self.clock.zone not in (None, "UTC")

    @cached_property
    def _local(self) -> list[datetime]:
        zone = find_zone(self.clock.zone, "zone") or UTC
        times = (datetime.fromisoformat(str(self.clock.time_of(slot))) for slot in self.slots)
        return [time.astimezone(zone) for time in times]

    @cached_property
    def labels(self) -> list[str]:
        """Each moment, with its day where there are several."""
        if not self.clock.has_dates:
            return [str(self.clock.time_of(slot)) for slot in self.slots]
        several = len({time.date() for time in self._local}) > 1
        return [f"{_day(time)} {_clock(time)}" if several else _clock(time) for time in self._local]

    @cached_property
    def universal(self) -> list[str]:
        """The same in UTC, always with its day; nothing for clocks of whole numbers."""
        if not self.clock.has_dates:
            return [""] * len(self.slots)
        return [_whole(time.astimezone(UTC)) for time in self._local]

    @cached_property
    def dated(self) -> list[str | int]:
        """Each by the local clock, always with its day and year; whole numbers as they are."""
        if not self.clock.has_dates:
            return [self.clock.time_of(slot) for slot in self.slots]
        return [_whole(time) for time in self._local]

    def span(self, first: int, last: int) -> str:
        """From one of the moments to another, in words."""
        if first == last:
            return f"at {self.labels[first]}"
        start, end = self.labels[first], self.labels[last]
        if self.clock.has_dates and self._local[first].date() == self._local[last].date():
            end = _clock(self._local[last])
        return f"from {start} to {end}"

    @property
    def whole(self) -> str:
        """From the first to the last, in words: by the local clock and, if it differs, in UTC."""
        if not self.clock.has_dates:
            return f"step {self.labels[0]} to step {self.labels[-1]}"
        first, last = self._local[0], self._local[-1]
        end = _clock(last) if first.date() == last.date() else _whole(last)
        text = f"{_whole(first)} to {end} ({self.zone})"
        if self.is_local:
            text += f"; {self.universal[0]} to {self.universal[-1]} UTC"
        return text

    def position(self, slot: float) -> float:
        """Where a slot is between the first (0) and the last (1)."""
        first, last = self.slots[0], self.slots[-1]
        return 0.5 if first == last else (slot - first) / (last - first)

    def ticks(self, width: float) -> list[tuple[float, str]]:
        """Labels for an axis of some width, each with its position; no two overprint."""
        found = self._dated() if self.clock.has_dates else self._numbered()
        while len(found) > 1 and not _fits(found, width):
            found = found[::2]
        return found

    def _numbered(self) -> list[tuple[float, str]]:
        shown = range(self.slots[0], self.slots[-1] + 1)
        every = -(-len(shown) // 12)
        return [(self.position(slot), str(self.clock.time_of(slot))) for slot in shown[::every]]

    def _dated(self) -> list[tuple[float, str]]:
        """Round times by the local clock, the first of each day with its date."""
        first, last = self._local[0], self._local[-1]
        minutes = (last - first).total_seconds() / 60
        every = next((size for size in ROUND if minutes / size <= 8), ROUND[-1])
        midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
        # By the clock on the wall, so that labels stay round where clocks change.
        wall = (midnight + timedelta(minutes=every * k) for k in range(2 * 1440 // every + 60))
        found, day = [], None
        for time in wall:
            if not first <= time <= last:
                continue
            passed = time.astimezone(UTC) - first.astimezone(UTC)
            slot = self.slots[0] + passed / timedelta(seconds=self.clock.seconds)
            text = _clock(time) if day == time.date() else f"{_day(time)} {_clock(time)}"
            text = _day(time) if every >= 1440 else text
            found.append((self.position(slot), text))
            day = time.date()
        return found or [(0.0, self.labels[0])]


def _fits(ticks: list[tuple[float, str]], width: float) -> bool:
    """Whether labels centred at their positions leave room between them."""
    return all(
        (b - a) * width > LABEL * (len(one) + len(other)) / 2 + LABEL
        for (a, one), (b, other) in pairwise(ticks)
    )


def _clock(time: datetime) -> str:
    return f"{time:%H:%M:%S}" if time.second else f"{time:%H:%M}"


def _day(time: datetime) -> str:
    return f"{time.day} {time:%b}"


def _whole(time: datetime) -> str:
    return f"{_day(time)} {time.year} {_clock(time)}"
