"""Rows of any file or table as tracks: which column is what, and which rows are good."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dphmm.errors import LONGEST_NAME, ArgumentError, DataError, check_name, require
from dphmm.release.hours import find_zone
from dphmm.tables.columns import ALIASES, NOT_WHOLE, match_columns
from dphmm.tables.datasets.degrees import BOTH, METRES, Degrees, find_parts
from dphmm.tables.datasets.reading import BadRow, LoadReport, first_problem, on_earth
from dphmm.tables.datasets.times import FAULTS, Times, check_form
from dphmm.tables.datasets.together import Tracks, telling
from dphmm.tables.datasets.written import BESIDE

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

PLACES = (BOTH, ("x", "y"), ("state",))

END = {"end_time": "time", "end_latitude": "latitude", "end_longitude": "longitude"}
"""Columns of rides: a row is a start and an end."""

_METRES = re.compile(r"(?i)easting|northing|utm|(^|[^a-z])epsg")
"""Names of columns that are no degrees."""

METRES_A_DEGREE = 111_195.0
NO_NAME = f"person must be 1 to {LONGEST_NAME} printable characters"
_OTHER = "other:"
"""Before the number of a column that is not used."""

MOST_NAMED = 8
"""Columns that are named although nobody uses them."""

Columns: TypeAlias = Mapping[str, str | int]
"""The name or number (from 1) of a column, by our names."""


@dataclass(frozen=True)
class Wishes:
    """What somebody says about their files: columns, times, zone, and whose they all are."""

    columns: Columns | None = None
    time: str | None = None
    time_zone: str | None = None
    person: str | None = None
    is_sure: bool = False
    """Whether every file, or folder, without a column of people is certainly one person's."""

    def __post_init__(self) -> None:
        find_zone(self.time_zone, "time_zone")
        if self.person is not None:
            check_name(self.person, "person")
        check_form(self.time)
        for name in self.columns or {}:
            if name not in ALIASES:
                raise ArgumentError(f"columns must name some of {sorted(ALIASES)}, got {name!r}")


class UnknownColumnsError(DataError):
    """A file in which nothing is a time or a place; among others it may be left out."""


class Meaning:
    """What the columns of one file mean: found once, and then applied to all of its rows."""

    def __init__(
        self, file: str, header: Sequence[str], wishes: Wishes, found: dict[str, str], owner: str
    ) -> None:
        self.header = header
        self.owner = owner
        self._is_one_person = wishes.person is not None or wishes.is_sure
        self.times = Times(file, wishes.time, wishes.time_zone)
        if "time" not in found and "date" in found:
            found["time"] = found.pop("date")
        self.place = next((p for p in PLACES if all(name in found for name in p)), ())
        columns = list(self.place)
        if not self.place and "point" in found:
            self.place, columns = BOTH, ["point"]
        missing = [] if "time" in found else ["a time"]
        missing += [] if self.place else ["latitude and longitude, x and y, or state"]
        if missing:
            way_out = (
                "say which column is which, such as time=4 or time=when, by --column or columns="
            )
            if not self.place and any(_METRES.search(name) for name in header):
                way_out = METRES
            raise UnknownColumnsError(
                f"{file}:1: header must have {' and '.join(missing)}; {way_out}"
            )
        wanted = ["person", "date", "time", *columns]
        wanted += BESIDE.values() if columns == [*BOTH] else ()
        # A day of its own may be that of the start only.
        if columns == [*BOTH] and all(name in found for name in END) and "date" not in found:
            wanted += END
        self.names = {name: found[name] for name in wanted if name in found}
        self._degrees = Degrees(file, self.names)
        self._tracks = Tracks()

    @classmethod
    def of(cls, file: str, header: Sequence[str], wishes: Wishes, owner: str) -> Meaning:
        """The meaning of a header's names."""
        try:
            found = match_columns(f"{file}:1", header, ALIASES, wishes.columns)
            found = find_parts(header) | found
        except DataError as fault:
            raise UnknownColumnsError(str(fault)) from None
        return cls(file, header, wishes, found, owner)

    @property
    def _comma(self) -> str:
        """Numbers with a decimal comma: degrees only, since 1,234 m may be more than a mile."""
        return r"^([-+]?\d{1,3}),(\d+)$" if self.place == PLACES[0] else "^()()$"

    @property
    def order(self) -> list[str]:
        """The columns of the tracks."""
        return ["person", "time", *self.place]

    def __str__(self) -> str:
        parts = [f"{ours} = {_shown(theirs)}" for ours, theirs in self.names.items()]
        if "person" not in self.names:
            parts.insert(0, "person = the file")
        left = [_shown(name) for name in self._unused]
        unused = f"; not used: {', '.join(left[:MOST_NAMED])}" if left else ""
        unused += f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        rides = "; a row is a start and an end" if self._is_rides else ""
        form = self.times.form or "dates"
        return f"{', '.join(parts)}; times are {form}{self._degrees}{rides}{unused}"

    @property
    def fields(self) -> dict[str, str]:
        """The columns to read, by our names; with those that may tell people apart."""
        if "person" in self.names or self._is_one_person or self._is_rides:
            return self.names
        others = self._unused[:MOST_NAMED]
        return self.names | {f"{_OTHER}{number}": name for number, name in enumerate(others)}

    @property
    def _unused(self) -> list[str]:
        return [name for name in self.header if name not in self.names.values()]

    def _doubt(self) -> str | None:
        """What to ask of a file that is taken for one person's; an error if it cannot be."""
        if "person" in self.names or self._is_one_person or not self._unused:
            return None
        known = telling(self._unused)
        parted = self._tracks.parted_by()
        if tracks := (parted[1] if parted else self._tracks.at_once()):
            such = parted[0] if parted else known or self._unused[0]
            raise DataError(
                f"{self.times.file}: rows of one person must not be several tracks at the same "
                f"time, got {tracks}; say which column tells people apart, such as "
                f"person={such}, by --column or columns=, or whose rows they are, by --person, or "
                f"by --owner file that every file is one person's"
            )
        return known and (
            f"taken for one person's; if {known} tells people apart, say person={known} by "
            f"--column or columns="
        )

    @property
    def _is_rides(self) -> bool:
        return "end_time" in self.names

    def report(self) -> LoadReport:
        """What was taken for what, once all rows are read."""
        doubt = self._doubt()
        return LoadReport(0, 0, 0, taken={str(self): 1}, doubts={doubt: 1} if doubt else {})

    def judge(self, fields: pl.DataFrame) -> pl.DataFrame:
        """Typed rows, each with its problem or null.

        The fields have our names, and `number`; `whole` says which rows had all of their fields.
        """
        polars = require("polars", "geo")
        if self._is_rides:
            ends = fields.drop(END.values()).rename(END)
            both = [fields.drop(END), ends.select(fields.drop(END).columns)]
            fields = polars.concat(both).sort("number", maintain_order=True)
        if "person" not in self.names:
            fields = fields.with_columns(person=polars.lit(self.owner))
        if "date" in self.names:
            day = polars.col("date").cast(polars.String).str.strip_chars()
            clock = polars.col("time").cast(polars.String).str.strip_chars()
            joined = polars.concat_str(day, polars.lit(" "), clock)
            fields = fields.with_columns(
                polars.when(clock.str.contains(r"^\d\d?:\d\d"))
                .then(joined)
                .otherwise(clock)
                .alias("time")
            ).drop("date")
        whose = fields.schema["person"]
        if whose.is_float() or whose.is_decimal():
            raise DataError(f"{self.times.file}: {NOT_WHOLE}")
        self.times.settle(fields.filter("whole")["time"] if "whole" in fields else fields["time"])
        fields = self._degrees.parted(fields)
        texts = [name for name in self.place if fields.schema[name] == polars.String]
        rows = fields.with_columns(
            # Names of files on a Mac have accents of their own; nobody is two people for that.
            polars.col("person").cast(polars.String).str.strip_chars().str.normalize("NFC"),
            *self.times.utc(fields["time"], fields["number"]),
            polars.col(texts).str.strip_chars().str.replace(self._comma, "${1}.${2}"),
        )
        if self.place == BOTH:
            rows = self._degrees.numbers(rows)
        else:
            kind = polars.Int64 if self.place == ("state",) else polars.Float64
            rows = rows.with_columns(polars.col(self.place).cast(kind, strict=False))
        rows = rows.with_columns(first_problem(self._checks(rows)))
        if not self._is_rides and "person" not in self.names:
            self._see_tracks(rows.filter(polars.col("problem").is_null()))
        return rows.drop(name for name in rows.columns if name.startswith(_OTHER))

    def _see_tracks(self, rows: pl.DataFrame) -> None:
        polars = require("polars", "geo")
        others = {
            theirs: rows[ours].cast(polars.String).fill_null("").rank("dense").to_numpy()
            for ours, theirs in self.fields.items()
            if ours.startswith(_OTHER) and not _holds_more(rows.schema[ours])
        }
        places = None
        if self.place == BOTH and rows.schema["time"].is_temporal():
            places = METRES_A_DEGREE * rows.select(self.place).to_numpy()
            places[:, 1] *= np.cos(np.radians(rows["latitude"].to_numpy()))
        self._tracks.see(rows["time"].cast(polars.Int64).to_numpy(), places, others)

    def _checks(self, rows: pl.DataFrame) -> list[tuple[Any, str]]:
        polars = require("polars", "geo")
        column = polars.col
        checks: list[tuple[Any, str]] = []
        if "whole" in rows.columns:
            checks.append((column("whole"), "row must have the fields of the header"))
        checks.append((column("person") != "", "person must be given"))
        nameless = [name for name in rows["person"].unique() if not _is_name(name)]
        checks.append((~column("person").is_in(nameless), NO_NAME))
        checks += [(column("fault").ne_missing(fault), fault) for fault in FAULTS]
        if self.place == ("latitude", "longitude"):
            return checks + on_earth(column("latitude"), column("longitude"))
        if self.place == ("state",):
            return [*checks, (column("state") >= 0, "state must be a whole number from 0")]
        return checks + [
            (column(n).is_finite(), f"{n} must be a finite number") for n in self.place
        ]

    def judge_all(
        self, raw: pl.DataFrame, listed: int, numbers: Sequence[int] | None = None
    ) -> tuple[pl.DataFrame, LoadReport]:
        """The good rows of a whole table, and the report; rows count from 1 unless numbered."""
        polars = require("polars", "geo")
        fields = raw.select(polars.col(theirs).alias(o) for o, theirs in self.fields.items())
        lines = range(1, len(raw) + 1) if numbers is None else numbers
        rows = self.judge(fields.with_columns(number=polars.Series(lines, dtype=polars.Int64)))
        bad = rows.filter(polars.col("problem").is_not_null())
        good = rows.filter(polars.col("problem").is_null()).select(self.order)
        report = LoadReport(
            1,
            len(rows),
            len(good),
            dict(bad["problem"].value_counts().sort("problem").iter_rows()),
            tuple(
                BadRow(self.times.file, number, problem)
                for number, problem in bad.select("number", "problem").head(listed).iter_rows()
            ),
        )
        return good, report + self.report()


def _is_name(name: str | None) -> bool:
    """Whether releases would take it, too; rows without a name have a fault of their own."""
    try:
        return name is None or bool(check_name(name, "person"))
    except ArgumentError:
        return False


def _holds_more(kind: pl.DataType) -> bool:
    """Whether a column holds lists, objects or bytes."""
    polars = require("polars", "geo")
    return bool(kind.is_nested() or kind in (polars.Binary, polars.Object))


def _shown(theirs: str) -> str:
    return f"column {theirs}" if theirs.isdigit() else theirs
