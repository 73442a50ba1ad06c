"""Times in files as steps of a chain.

The clock is cut into steps from 1970 (or from zero, for whole numbers), and a row belongs to
the step that it falls in. Whole numbers and ISO 8601 dates do not mix, nor do two time zones
unless the scenario names the place whose clocks change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dphmm.errors import ArgumentError, DataError, expect
from dphmm.geometry.exact import seconds, whole
from dphmm.release.hours import find_zone
from dphmm.tables.zones import ZoneRule

__all__ = ["Clock", "Slots"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST = (datetime(2, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND


@dataclass(frozen=True)
class Clock:
    """How time is cut into steps: slots that are counted from 1970, or from zero.

    Args:
        step: How long a step is: a whole number, or a duration such as "5 min" for dates.
        origin: The time of step 0, at which the start is known; without it that is the step
            before a person's first row.
        zone: The place of dates that name no zone.
        open: How many slots a live row may come late: so long its slot is held open, and rows
            are answered in order of time. Rows of a file are always answered in that order.
    """

    step: int | str = 1
    origin: int | str | None = None
    zone: str | None = None
    open: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.step, bool) or (isinstance(self.step, int) and self.step < 1):
            raise ArgumentError(f"step must be at least 1, got {self.step!r}")
        if isinstance(self.step, str):
            seconds(self.step, "step")
        if isinstance(self.open, bool) or not isinstance(self.open, int) or self.open < 0:
            raise ArgumentError(f"open must be a whole number from 0, got {self.open!r}")
        find_zone(self.zone, "zone")
        if self.origin is not None:
            try:
                Slots(self, "origin").of(self.origin, 0)
            except DataError:
                raise ArgumentError(
                    f"origin must be a time like those of the trips, got {self.origin!r}"
                ) from None

    @property
    def has_dates(self) -> bool:
        """Whether times are dates."""
        return isinstance(self.step, str)

    @property
    def seconds(self) -> int:
        """How long a step is, for dates."""
        if not isinstance(self.step, str):
            raise ArgumentError(f"step must be a duration like '5 min', got {self.step!r}")
        return seconds(self.step, "step")

    @property
    def first_slot(self) -> int | None:
        """The slot of step 0, if the scenario fixes it."""
        return None if self.origin is None else Slots(self, "origin").of(self.origin, 0)

    @property
    def law(self) -> str:
        """The part of the clock that answers follow: how long a step is."""
        if isinstance(self.step, str):
            return f"{seconds(self.step, 'step')} s"
        return "" if self.step == 1 else str(self.step)

    def steps_of(self, law: str) -> int:
        """How many steps of another clock one of this clock's is.

        Args:
            law: The other clock's `law`.

        >>> Clock("15 min").steps_of(Clock("5 min").law)
        3
        """
        expect(law, str, "law")
        (ours, unit), (theirs, other) = _length(self.law), _length(law)
        if unit != other or ours % theirs:
            raise ArgumentError(
                f"step must be a whole number of steps of {law or '1'}, got {self.step!r}"
            )
        return ours // theirs

    def slot_of(self, time: object) -> int:
        """The slot that a time falls in; for many times of one file use `Slots`.

        Args:
            time: A whole number, or an ISO 8601 date.
        """
        try:
            return Slots(self, "").of(time, 0)
        except DataError as fault:
            raise ArgumentError(str(fault).partition(": ")[2]) from None

    def time_of(self, slot: int) -> int | str:
        """The time at which a slot begins, as files have it; dates are in UTC.

        Args:
            slot: The slot's number.

        >>> clock = Clock("5 min")
        >>> clock.time_of(clock.slot_of("2024-05-01T10:07:02.125Z"))
        '2024-05-01T10:05:00Z'
        """
        slot = whole(slot, "slot", None)
        if isinstance(self.step, int):
            return slot * self.step
        try:
            moment = _EPOCH + timedelta(seconds=slot * seconds(self.step, "step"))
        except OverflowError:
            raise ArgumentError(f"slot must be of the years 1 to 9999, got {slot!r}") from None
        return moment.isoformat().replace("+00:00", "Z")

    def hour_of(self, slot: int) -> float | None:
        """The hour of the day at which a slot begins, in the clock's zone; None without dates.

        Args:
            slot: The slot's number.

        >>> clock = Clock("5 min", zone="Asia/Shanghai")
        >>> clock.hour_of(clock.slot_of("2024-05-01T10:30:00Z"))
        18.5
        """
        if not self.has_dates:
            return None
        moment = datetime.fromisoformat(str(self.time_of(slot)))
        zone = find_zone(self.zone, "zone")
        local = moment if zone is None else moment.astimezone(zone)
        return local.hour + local.minute / 60 + local.second / 3600


def _length(law: str) -> tuple[int, str]:
    """The number and the unit of a clock's law."""
    parts = re.fullmatch(r"(\d*)(?: (s))?", law)
    if parts is None:
        raise ArgumentError(f"law must be the law of a clock, got {law!r}")
    return int(parts[1] or 1), parts[2] or ""


class Slots:
    """The slots of one file's times; remembers the zone that the file began with.

    >>> slots = Slots(Clock("5 min"), "trips.csv")
    >>> slots.of("2024-05-01T10:05:00Z", 2) - slots.of("2024-05-01T10:04:59Z", 3)
    1
    >>> slots.of("2024-05-01T10:05:00+02:00", 4)
    Traceback (most recent call last):
    dphmm.errors.DataError: trips.csv:4: time must have one zone in the whole file, got a \
second; if its place changes its clocks, give the scenario a time zone
    """

    def __init__(self, clock: Clock, file: str) -> None:
        self._clock = clock
        self._file = file
        self._zone = find_zone(clock.zone, "zone")
        step = clock.step
        self.size = step if isinstance(step, int) else seconds(step, "step") * 1_000_000
        """How long a slot is, as moments are counted."""
        self._rule = ZoneRule(file, self._zone is not None, "give the scenario a time zone")

    def of(self, time: object, line: int) -> int:
        """The slot that a time falls in."""
        return self.moment(time, line) // self.size

    def moment(self, time: object, line: int) -> int:
        """A time as a number: microseconds since 1970, or itself."""
        if isinstance(self._clock.step, int):
            return self._whole(time, line)
        try:
            micros = (self._moment(time, line) - _EPOCH) // _MICROSECOND
        except OverflowError:
            raise self._wrong(line, "must be a date of the years 2 to 9998") from None
        if micros - micros % self.size < _EARLIEST:
            raise self._wrong(line, "must lie in a step that begins after the year 1")
        return micros

    def _whole(self, time: object, line: int) -> int:
        text = "" if time is None or isinstance(time, bool) else str(time).strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            wants = (
                "" if not _is_date(text) else "; for dates give the scenario a step like '5 min'"
            )
            raise self._wrong(line, f"must be a whole number{wants}")
        return int(text)

    def _moment(self, time: object, line: int) -> datetime:
        try:
            moment = datetime.fromisoformat(time.strip() if isinstance(time, str) else "")
        except ValueError:
            raise self._wrong(line, "must be a date like 2024-05-01T10:05:00Z") from None
        offset = moment.utcoffset()
        self._rule.see(offset is None, offset, line)
        if offset is not None:
            return moment
        placed = moment.replace(tzinfo=self._zone)
        # Where clocks go forward some times do not come: they would share another hour's slots.
        if placed.astimezone(UTC).astimezone(self._zone).replace(tzinfo=None) != moment:
            raise self._wrong(line, "must be one that clocks show, got one that they skip there")
        return placed

    def _wrong(self, line: int, what: str) -> DataError:
        return DataError(f"{self._file}:{line}: time {what}")


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
