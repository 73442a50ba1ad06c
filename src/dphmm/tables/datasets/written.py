"""Degrees as people write them: 39.9042 N, W116.4, 52°30'12", with minutes, seconds and letters.

A letter is in all rows of a file or in none. Where most rows have one, those without are bad, as
a line that was cut is; where most have none, nobody knows which half of the Earth they mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm.errors import DataError, require

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

LETTERS = {"latitude": "NS", "longitude": "EW"}
BESIDE = {"latitude": "north_south", "longitude": "east_west"}
"""Columns of letters that stand beside those of degrees."""
_PART = r"[0-9]{1,3}(?:[.,][0-9]+)?"
"""In digits that every program reads: \\d would be those of all scripts."""
_FORM = (
    rf"(?i)^([NSEW])?\s*([-+])?\s*({_PART})\s*(?:[°º:\s]\s*(?:({_PART})\s*"
    rf"(?:['′’:\s]\s*(?:({_PART})\s*(?:[\"″”]|'')?)?)?)?)?\s*([NSEW])?$"
)


class Written:
    """How one file writes one of its two columns of degrees."""

    def __init__(self, file: str, name: str) -> None:
        self._file, self._name = file, name
        self.has_letters: bool | None = None

    def degrees(self, fields: pl.DataFrame) -> pl.Series:
        """The column as numbers, null where something is none; texts that are numbers stay so."""
        polars = require("polars", "geo")
        text = fields[self._name].cast(polars.String).str.strip_chars()
        text = text.str.replace_all("−", "-", literal=True)
        beside = fields[BESIDE[self._name]] if BESIDE[self._name] in fields.columns else None
        numbers = text.cast(polars.Float64, strict=False)
        if beside is None and not self.has_letters and numbers.null_count() == text.null_count():
            self.has_letters = False if numbers.ne(0).any() else self.has_letters
            return numbers
        rows = polars.DataFrame({"text": text, "plain": numbers, "line": fields["number"]})
        return self._read(rows, beside)

    def _read(self, rows: pl.DataFrame, beside: pl.Series | None) -> pl.Series:
        polars = require("polars", "geo")
        column = polars.col
        parts = rows["text"].str.extract_groups(_FORM).struct.unnest()
        parts.columns = ["before", "sign", "degree", "minute", "second", "after"]
        given = polars.lit(None, dtype=polars.String) if beside is None else _first_letter(beside)
        read = (
            rows.with_columns(parts)
            .with_columns(
                column("before", "after").str.to_uppercase(),
                column("degree", "minute", "second").str.replace(",", ".", literal=True),
                beside=given,
            )
            .with_columns(
                letter=polars.coalesce("before", "after", "beside"),
                size=column("degree").cast(polars.Float64)
                + column("minute").cast(polars.Float64).fill_null(0) / 60
                + column("second").cast(polars.Float64).fill_null(0) / 3600,
            )
        )
        several = (
            polars.concat_list("before", "after", "beside").list.drop_nulls().list.n_unique() > 1
        )
        parted = (
            column("minute").is_null() | ~column("degree").str.contains(".", literal=True)
        ) & (column("second").is_null() | ~column("minute").str.contains(".", literal=True))
        below = (column("minute").cast(polars.Float64).fill_null(0) < 60) & (
            column("second").cast(polars.Float64).fill_null(0) < 60
        )
        here = column("letter").is_null() | column("letter").is_in([*LETTERS[self._name]])
        once = column("letter").is_null() | column("sign").is_null()
        negative = column("letter").is_in(["S", "W"]) | (column("sign") == "-")
        read = read.with_columns(
            polars.when(column("size").is_null() & column("letter").is_null())
            .then("plain")
            .when(parted & below & here & once & ~several)
            .then(polars.when(negative.fill_null(False)).then(-column("size")).otherwise("size"))
            .alias("value")
        )
        self._see(read.filter(column("value") != 0))
        if self.has_letters:
            known = column("letter").is_not_null() | (column("value") == 0)
            read = read.with_columns(polars.when(known).then("value").alias("value"))
        return read["value"].alias(self._name)

    def _see(self, read: pl.DataFrame) -> None:
        """Find out whether most rows have a letter; where most have none, nobody may have one."""
        has = read["letter"].is_not_null()
        if self.has_letters is None and len(read):
            self.has_letters = bool(2 * has.sum() > len(read))
        if has.any() and not self.has_letters:
            one, other = list(LETTERS[self._name])
            line = int(read["line"].filter(has)[0])
            raise DataError(
                f"{self._file}:{line}: {self._name} must have a letter ({one} or {other}) in all "
                f"rows or in none, got both"
            )


def _first_letter(beside: pl.Series) -> pl.Series:
    """Of N or North, in either case; null where it is none of the four."""
    polars = require("polars", "geo")
    return (
        beside.cast(polars.String)
        .str.strip_chars()
        .str.extract(r"(?i)^([NSEW])(?:orth|outh|ast|est)?$")
        .str.to_uppercase()
    )
