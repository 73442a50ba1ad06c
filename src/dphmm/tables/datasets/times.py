"""Columns of times, however they were written, as instants; see `dphmm.tables.zones`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import ArgumentError, DataError, require
from dphmm.tables.zones import ZoneRule

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

_TIME = (
    r"(?-u)^(\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
    r" ?(?:(Z|z|UTC|GMT)|([+-]\d\d):?(\d\d)?(?:\[[\w/+-]+\])?)?$"
)
"""In digits that every program reads: without -u, \\d would be those of all scripts."""
UNKNOWN = "time must be a time such as 2024-03-05T12:00:00Z or a number, or as --time says"
TWICE = "time must not lie in the hour that clocks had twice: write its offset, such as +02:00"
SKIPPED = "time must not lie in the hour that clocks skipped"
ROUNDED = "time must be written in full, not rounded before an exponent"
DAYS = "time must be written as a date, not as a spreadsheet's number of days"
FAULTS = (UNKNOWN, TWICE, SKIPPED, ROUNDED, DAYS)
_DAYS = r"(?-u)^[345]\d{4}[.,]\d+$"
_POWER = r"(?-u)^\d(?:\.(\d*))?[eE]\+?(\d+)$"
_LARGEST_OFFSET = 14 * 60
_UNIX = {"unix": 1e6, "unix-ms": 1e3, "unix-us": 1.0, "unix-ns": 1e-3}
"""How many microseconds such a number is."""
_GUESSED = (946_684_800 * 1e6, 5e9 * 1e6)
"""Numbers are taken for times since 1970 where that gives 2000 to 2128: before, few people were
located, and numbers of other kinds (dates of digits, ticks, seconds since 2001) look so."""
_DAY_FIRST = (r"(?-u)^\d\d?\.\d\d?\.\d{4} \d\d?:\d\d", "%d.%m.%Y %H:%M")
"""Days before months wherever dots part them; with slashes nobody can tell."""
_RUN = r"^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])[0-5]\d"
_WHOLE = "whole numbers"
_LAST_MICROSECOND = 253_402_300_799_000_000
"""Of the year 9999."""


def check_form(form: str | None) -> None:
    """Refuse a way of writing times that is none."""
    if form is not None and form not in (*_UNIX, "iso") and "%" not in form:
        raise ArgumentError(
            f"time must be {', '.join(_UNIX)}, iso or a form such as '%d/%m/%Y %H:%M', got {form!r}"
        )


class Times:
    """How the times of one file are written: as somebody says, or as its first rows show."""

    def __init__(self, file: str, form: str | None, time_zone: str | None) -> None:
        self.file, self.form, self.time_zone = file, form, time_zone
        self._is_said = form is not None
        way_out = "name the zone of its place, by --zone or time_zone="
        self._rule = ZoneRule(file, time_zone is not None, way_out)

    def settle(self, sample: pl.Series) -> None:
        """Find out from some rows how times are written, unless that is known.

        Numbers of the size of seconds since 1970, or of parts of them, are those; others stay so.
        """
        polars = require("polars", "geo")
        sample = sample.drop_nulls()
        if self.form is not None or not len(sample) or _is_moments(sample):
            return
        self._check_kind(sample)
        numbers = sample.cast(polars.Float64, strict=False).drop_nulls()
        if 2 * len(numbers) <= len(sample):
            self.form = _dotted(sample.cast(polars.String).str.strip_chars()) or "iso"
            return
        if self._settle_run(sample.cast(polars.String).str.strip_chars()):
            return
        size = float(np.median(numbers.to_numpy()))
        low, high = _GUESSED
        fitting = (form for form, unit in _UNIX.items() if low <= size * unit < high)
        self.form = next(fitting, _WHOLE)

    def _settle_run(self, sample: pl.Series) -> bool:
        """Whether most are dates of digits only, as 20240305120000; shorter ones look like 1976."""
        for more, form in (("$", "%Y%m%d%H%M"), (r"[0-5]\d$", "%Y%m%d%H%M%S")):
            if 2 * int(sample.str.contains(_RUN + more).sum()) > len(sample):
                self.form = form
                return True
        return False

    def utc(self, given: pl.Series, numbers: pl.Series) -> list[pl.Series]:
        """The instants (or whole numbers), and the fault of what is no time, or no single one."""
        polars = require("polars", "geo")
        time, why = self._read(given, numbers)
        fault = polars.when(time.is_null()).then(why.fill_null(UNKNOWN))
        return [time.alias("time"), polars.select(fault.alias("fault")).to_series()]

    def _read(self, given: pl.Series, numbers: pl.Series) -> tuple[pl.Series, pl.Series]:
        polars = require("polars", "geo")
        nothing = polars.Series([None], dtype=polars.String).new_from_index(0, len(given))
        if _is_moments(given):
            return self._placed(given.cast(polars.Datetime("us", _zone_of(given))), numbers)
        self._check_kind(given)
        text = given.cast(polars.String).str.strip_chars()
        if self.form == _WHOLE:
            days = polars.when(text.str.contains(_DAYS)).then(polars.lit(DAYS))
            return text.cast(polars.Int64, strict=False), polars.select(days).to_series()
        if self.form in _UNIX:
            micros = text.cast(polars.Float64, strict=False) * _UNIX[self.form]
            micros = micros.round().cast(polars.Int64, strict=False)
            # Seconds among milliseconds are bad rows, not January 1970.
            span = (0, _LAST_MICROSECOND) if self._is_said else _GUESSED
            known = micros.is_between(*span)
            if given.dtype == polars.String and _is_rounded(text, self.form):
                known &= ~text.str.contains("[eE]")
                nothing = nothing.fill_null(ROUNDED)
            return micros.set(~known, None).cast(polars.Datetime("us", "UTC")), nothing
        if self.form in (None, "iso"):
            local, has_zone = self._iso(text, numbers)
            return (local, nothing) if has_zone else self._placed(local, numbers)
        try:
            local = text.str.to_datetime(self.form, time_unit="us", strict=False)
        except polars.exceptions.ComputeError:
            raise ArgumentError(
                f"time must have %I and %p together, or %H alone, got {self.form!r}"
            ) from None
        return self._placed(local, numbers)

    def _check_kind(self, given: pl.Series) -> None:
        polars = require("polars", "geo")
        kind = given.dtype
        if not (kind.is_numeric() or kind in (polars.String, polars.Null)):
            raise DataError(
                f"{self.file}: time must be dates, text or numbers, got {kind.base_type()}"
            )

    def _placed(self, local: pl.Series, numbers: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Instants in UTC, by their own zone or the one that was given, and why some are none."""
        polars = require("polars", "geo")
        instants, zone = local, self.time_zone or "UTC"
        why = polars.lit(None, dtype=polars.String)
        if _zone_of(local) is None:
            known = numbers.filter(local.is_not_null())
            if len(known):
                self._rule.see(True, 0, int(known[0]))
            instants = local.dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
            first = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
            why = (
                polars.when(first.is_not_null())
                .then(polars.lit(TWICE))
                .when(local.is_not_null())
                .then(polars.lit(SKIPPED))
            )
        shown = polars.select(polars.when(instants.is_null()).then(why)).to_series()
        return instants.dt.convert_time_zone("UTC"), shown

    def _iso(self, text: pl.Series, numbers: pl.Series) -> tuple[pl.Series, bool]:
        """Local times, or instants if they have a zone, and whether they have one."""
        polars = require("polars", "geo")
        parts = text.str.extract_groups(_TIME).struct.unnest()
        parts.columns = ["date", "clock", "second", "fraction", "zulu", "hour", "minute"]
        column = polars.col
        # The end of a day is the start of the next.
        last = (column("clock") == "24:00") & (column("second").fill_null("00") == "00")
        rows = parts.select(
            local=polars.concat_str(
                column("date").str.replace_all("/", "-", literal=True),
                polars.lit("T"),
                polars.when(last).then(polars.lit("00:00")).otherwise("clock"),
                polars.lit(":"),
                column("second").fill_null("00"),
            ).str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
            + polars.duration(days=last.fill_null(False).cast(polars.Int64))
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
        for naive, offset, number in (
            known.group_by("naive", "offset").agg(column("number").min()).sort("number").iter_rows()
        ):
            self._rule.see(naive, offset, number)
        if len(known) and self._rule.is_naive:
            return rows["local"], False
        shifted: pl.Series = rows.select(
            (column("local") - polars.duration(minutes=column("offset")))
            .dt.replace_time_zone("UTC")
            .alias("time")
        )["time"]
        return shifted, True


def _is_rounded(text: pl.Series, form: str) -> bool:
    """Whether no number before an exponent has the digits for whole seconds."""
    polars = require("polars", "geo")
    parts = text.str.extract_groups(_POWER).struct.unnest()
    parts.columns = ["digits", "power"]
    parts = parts.filter(polars.col("power").is_not_null())
    if not len(parts):
        return False
    lacking = parts["power"].cast(polars.Int64) - parts["digits"].fill_null("").str.len_chars()
    parts_of_a_second = round(np.log10(1e6 / _UNIX[form]))
    least: Any = lacking.cast(polars.Int64).min()
    return bool(least > parts_of_a_second)


def _dotted(sample: pl.Series) -> str | None:
    """The form of times whose days are parted by dots, if most are."""
    like, form = _DAY_FIRST
    if 2 * int(sample.str.contains(like).sum()) <= len(sample):
        return None
    seconds = 2 * int(sample.str.contains(like + r":\d\d$").sum()) > len(sample)
    return f"{form}:%S" if seconds else form


def _is_moments(given: pl.Series) -> bool:
    """Whether they are dates, not lengths of time or hours of no day."""
    polars = require("polars", "geo")
    return given.dtype == polars.Datetime or given.dtype == polars.Date


def _zone_of(instants: pl.Series) -> str | None:
    return getattr(instants.dtype, "time_zone", None)
