"""Latitude and longitude however a file holds them: degrees, parts of them, or points in a column.

Points are WKT (`POINT (13.4 52.5)`) or WKB, as GeoParquet and PostGIS (in digits) have them, with
the longitude first. Watches count semicircles, 2**31 to half of the Earth, and phones
ten-millionths of a degree.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import DataError, require
from dphmm.tables.datasets.written import BESIDE, Written

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

BOTH = ("latitude", "longitude")
_NUMBER = r"([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_WKT = rf"^(?i:SRID=4326;)?\s*(?i:POINT)\s*(?i:ZM?|M)?\s*\(\s*{_NUMBER}\s+{_NUMBER}[\s\d.eE+-]*\)$"
_WKB_POINTS = {1: 2, 1001: 3, 2001: 3, 3001: 4}
"""How many numbers a point has, with a height and a measure or without, by the kind it states."""
_EWKB_Z, _EWKB_M, _EWKB_PLACE = 1 << 31, 1 << 30, 1 << 29
"""The same in EWKB, and that the system of coordinates stands behind."""
_DEGREES = 4326
_WKB_DIGITS = r"^0[01][0-9A-Fa-f]{40}([0-9A-Fa-f]{8}){0,5}$"
_SEMICIRCLE, _E7 = 180 / 2**31, 1e-7
AROUND = 0.1
"""The share of longitudes above 180 from which on they are taken to go to 360."""
METRES = "convert metres of a map to degrees (EPSG:4326) first, as ogr2ogr -t_srs EPSG:4326 does"

PHONE, WATCH = ("latitudee7", "longitudee7"), ("position_lat", "position_long")
"""Columns of parts of a degree: known here alone, since whoever releases takes degrees."""


def find_parts(header: Sequence[str]) -> dict[str, str]:
    """The columns that phones and watches have for degrees, if there are both."""
    plain = {_plain(name): name for name in reversed(header)}
    for names in (PHONE, WATCH):
        if all(name in plain for name in names):
            return {ours: plain[name] for ours, name in zip(BOTH, names, strict=True)}
    return {}


def _plain(name: str) -> str:
    return name.rpartition(".")[2].strip().lower()


class Degrees:
    """How one file writes its two columns of degrees, or its column of points."""

    def __init__(self, file: str, names: dict[str, str]) -> None:
        self._file = file
        self._point = "point" in names
        self._written = {name: Written(file, name) for name in BOTH}
        self._around: bool | None = None
        theirs = {_plain(names.get(ours, "")) for ours in BOTH}
        self._scale = _E7 if theirs == set(PHONE) else 1.0
        # Some programs write degrees under these names, so that the first rows decide.
        self._watch = theirs == set(WATCH)

    def __str__(self) -> str:
        if self._point:
            return "; points are longitude and latitude"
        told = {_E7: "; degrees are in 1e-7", _SEMICIRCLE: "; degrees are in semicircles"}.get(
            self._scale, ""
        )
        if any(written.has_letters for written in self._written.values()):
            told += "; letters say which half of the Earth"
        return told + ("; longitudes go to 360" if self._around else "")

    def parted(self, fields: pl.DataFrame) -> pl.DataFrame:
        """The fields with two columns for the one of points, if there is one."""
        polars = require("polars", "geo")
        if not self._point:
            return fields
        points = fields["point"]
        if str(points.dtype).startswith("Extension"):
            points = points.ext.storage()
        if points.dtype == polars.Struct:
            both = points.struct.unnest().rename({"x": "longitude", "y": "latitude"})
            return fields.drop("point").with_columns(both.select("longitude", "latitude"))
        if points.dtype == polars.String and points.str.contains(_WKB_DIGITS).any():
            points = points.str.strip_chars().str.decode("hex", strict=False)
        if points.dtype == polars.Binary:
            found = np.array([_of_wkb(each) for each in points]).reshape(-1, 2)
            pair = {"longitude": found[:, 0], "latitude": found[:, 1]}
            # What is no point is no number either, and no row that is kept.
            series = [polars.Series(name, cells, nan_to_null=True) for name, cells in pair.items()]
            return fields.drop("point").with_columns(series)
        text = polars.col("point").cast(polars.String).str.strip_chars()
        pairs = [text.str.extract(_WKT, n).alias(name) for n, name in ((1, BOTH[1]), (2, BOTH[0]))]
        return fields.with_columns(pairs).drop("point")

    def numbers(self, fields: pl.DataFrame) -> pl.DataFrame:
        """The fields with numbers for the two columns, and without those of letters."""
        polars = require("polars", "geo")
        letters = [name for name in BESIDE.values() if name in fields.columns]
        read = [
            self._written[name].degrees(fields)
            for name in BOTH
            if fields.schema[name] == polars.String or BESIDE[name] in letters
        ]
        return self._scaled(fields.with_columns(read).drop(letters))

    def _scaled(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows in degrees."""
        polars = require("polars", "geo")
        rows = rows.with_columns(polars.col(BOTH).cast(polars.Float64, strict=False))
        if self._watch and len(rows):
            self._watch = False
            sizes = [rows[name].abs().median() for name in BOTH]
            if all(isinstance(size, float) and size > 180 for size in sizes):
                self._scale = _SEMICIRCLE
        if self._scale != 1:
            rows = rows.with_columns(polars.col(BOTH) * self._scale)
        if self._around is None and len(rows):
            whole = rows.filter("whole") if "whole" in rows.columns else rows
            self._look(*(whole[name].drop_nulls().drop_nans().to_numpy() for name in BOTH))
        east = polars.col("longitude")
        past = east.is_between(180, 360, "right") & bool(self._around)
        return rows.with_columns(polars.when(past).then(east - 360).otherwise(east).alias(BOTH[1]))

    def _look(self, latitude: FloatArray, longitude: FloatArray) -> None:
        """See from the first rows whether they are degrees, and of which kind."""
        self._around = bool(
            len(longitude) and longitude.min() >= 0 and np.mean(longitude > 180) >= AROUND
        )
        if len(latitude) and np.median(np.abs(latitude)) > 90 and self._beyond(longitude):
            raise DataError(
                f"{self._file}: latitude and longitude must be degrees, got larger numbers; "
                f"{METRES}, and part degrees and minutes that stand in one number"
            )

    @staticmethod
    def _beyond(longitude: FloatArray) -> bool:
        return bool(len(longitude) and np.median(np.abs(longitude)) > 360)


def _of_wkb(given: Any) -> tuple[float, float]:
    """East and north of a point; no numbers of anything else."""
    none = np.nan, np.nan
    if given is None or len(given) < 5 or given[0] > 1:
        return none
    order = "<" if given[0] else ">"
    (stated,) = struct.unpack_from(f"{order}I", given, 1)
    kind, begin = stated & 0x1FFFFFFF, 5
    kind += 1000 * bool(stated & _EWKB_Z) + 2000 * bool(stated & _EWKB_M)
    if stated & _EWKB_PLACE:
        if given[5:9] != struct.pack(f"{order}I", _DEGREES):
            return none
        begin = 9
    if len(given) != begin + 8 * _WKB_POINTS.get(kind, 0) or kind not in _WKB_POINTS:
        return none
    x, y = struct.unpack_from(f"{order}2d", given, begin)
    return x, y
