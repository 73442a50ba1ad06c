"""The zone of a file's times: one in the whole file, unless somebody names its place.

A time without a zone could be any of 24 hours, so it is an error until a zone is given; so
are two zones in one file, unless the file comes from a place whose clocks change. A file with
and without zones is an error in every case.
"""

from __future__ import annotations

from dphmm.errors import DataError

__all__ = ["ZoneRule"]


class ZoneRule:
    """What the times of one file have said so far about their zone.

    `given` is whether a zone was given for the file, and `way_out` how one is given.
    """

    def __init__(self, file: str, given: bool, way_out: str) -> None:
        self._file, self._given, self._way_out = file, given, way_out
        self._seen: tuple[bool, object] | None = None

    @property
    def is_naive(self) -> bool:
        """Whether the times name no zone."""
        return self._seen is not None and self._seen[0]

    def see(self, naive: bool, offset: object, line: int) -> None:
        """Refuse a time that does not go with those before it."""
        place = f"{self._file}:{line}: time"
        if self._seen is not None and self._seen[0] != naive:
            raise DataError(f"{place} must have a zone in all rows or in none, got both")
        if naive and not self._given:
            raise DataError(
                f"{place} must have a zone, such as a final Z, got none; or {self._way_out}"
            )
        if self._seen is not None and self._seen[1] != offset and not self._given:
            raise DataError(
                f"{place} must have one zone in the whole file, got a second; "
                f"if its place changes its clocks, {self._way_out}"
            )
        self._seen = self._seen or (naive, offset)
