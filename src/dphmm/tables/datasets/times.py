"""Times written as text, with the zone they are in.

A time without a zone could be any of 24 hours, so it is an error until `time_zone=` says
which; so are two zones in one file, unless `time_zone=` says that the file comes from a place
whose offset changes. A file with and without zones is an error in every case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from dphmm.errors import ArgumentError, DataError, require

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

_TIME = (
    r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
    r" ?(?:(Z|z|UTC|GMT)|([+-]\d\d):?(\d\d)?)?$"
)
_LARGEST_OFFSET = 14 * 60


def check_zone(time_zone: str | None) -> None:
    """Refuse a zone that the system does not know."""
    if time_zone is None:
        return
    try:
        ZoneInfo(time_zone)
    except (KeyError, ValueError, OSError):
        raise ArgumentError(
            f"time_zone must be a name such as 'Europe/Berlin', got {time_zone!r}"
        ) from None


class Zones:
    """What the rows of one file have said so far about their zone."""

    def __init__(self, file: str, time_zone: str | None) -> None:
        self.file = file
        self.time_zone = time_zone
        self._seen: tuple[bool, int] | None = None

    def utc(self, text: pl.Series, numbers: pl.Series) -> pl.Series:
        """The instants of some texts, null where a text is no time (or no single one)."""
        polars = require("polars", "geo")
        parts = text.str.extract_groups(_TIME).struct.unnest()
        parts.columns = ["date", "clock", "second", "fraction", "zulu", "hour", "minute"]
        column = polars.col
        rows = parts.select(
            local=polars.concat_str(
                "date",
                polars.lit("T"),
                "clock",
                polars.lit(":"),
                column("second").fill_null("00"),
            ).str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
            + polars.duration(
                microseconds=column("fraction")
                .fill_null("0")
                .str.pad_end(6, "0")
                .str.slice(0, 6)
                .cast(polars.Int64)
            ),
            naive=column("zulu").is_null() & column("hour").is_null(),
            offset=polars.when(column("hour").is_null())
            .then(0)
            .otherwise(
                column("hour").cast(polars.Int64) * 60
                + column("minute").fill_null("0").cast(polars.Int64)
                * polars.when(column("hour").str.starts_with("-")).then(-1).otherwise(1)
            ),
            number=numbers,
        )
        rows = rows.with_columns(
            polars.when(column("offset").abs() <= _LARGEST_OFFSET).then("local").alias("local")
        )
        known = rows.filter(column("local").is_not_null())
        self._check(known)
        if len(known) and self._seen is not None and self._seen[0]:
            instants = rows["local"].dt.replace_time_zone(
                self.time_zone or "UTC", ambiguous="null", non_existent="null"
            )
            return instants.dt.convert_time_zone("UTC").alias("time")
        shifted: pl.Series = rows.select(
            (column("local") - polars.duration(minutes=column("offset")))
            .dt.replace_time_zone("UTC")
            .alias("time")
        )["time"]
        return shifted

    def _check(self, rows: pl.DataFrame) -> None:
        for naive, offset, number in (
            rows.group_by("naive", "offset").agg(_first_number()).sort("number").iter_rows()
        ):
            place = f"{self.file}:{number}"
            if naive and self.time_zone is None:
                raise DataError(
                    f"{place}: time must have a zone, such as a final Z, got none; "
                    f"or give time_zone="
                )
            if self._seen is not None and self._seen[0] != naive:
                raise DataError(f"{place}: time must have a zone in all rows or in none, got both")
            if self._seen is not None and self._seen[1] != offset and self.time_zone is None:
                raise DataError(
                    f"{place}: time must have one zone in the whole file, got a second; "
                    f"if its place changes its clocks, give time_zone="
                )
            self._seen = self._seen or (naive, offset)


def _first_number() -> pl.Expr:
    polars = require("polars", "geo")
    expression: pl.Expr = polars.col("number").min()
    return expression
