"""Columns of times written as text, as instants; see `dphmm.tables.zones` for their zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm.errors import require
from dphmm.tables.zones import ZoneRule

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

_TIME = (
    r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
    r" ?(?:(Z|z|UTC|GMT)|([+-]\d\d):?(\d\d)?)?$"
)
_LARGEST_OFFSET = 14 * 60


class Zones:
    """What the rows of one file have said so far about their zone."""

    def __init__(self, file: str, time_zone: str | None) -> None:
        self.file = file
        self.time_zone = time_zone
        self._rule = ZoneRule(file, time_zone is not None, "give time_zone=")

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
        if len(known) and self._rule.is_naive:
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
            self._rule.see(naive, offset, number)


def _first_number() -> pl.Expr:
    polars = require("polars", "geo")
    expression: pl.Expr = polars.col("number").min()
    return expression
