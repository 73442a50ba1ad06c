"""GPX track points (not waypoints, not routes), up to the first fault in the XML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from dphmm.errors import require
from dphmm.tables.datasets.reading import (
    BadRow,
    LoadReport,
    first_problem,
    on_earth,
)
from dphmm.tables.datasets.streams import DAMAGE, file_source
from dphmm.tables.datasets.times import Zones

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

_POINT = "trkpt"


class _Points:
    """The points an XML parser has come by; texts, since a point may be bad."""

    def __init__(self) -> None:
        self.latitude: list[str] = []
        self.longitude: list[str] = []
        self.time: list[str] = []
        self.line: list[int] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse
        self._point: tuple[str, str, int] | None = None
        self._time = ""
        self._in_time = False

    def _refuse(self, *_: Any) -> None:
        # No GPX file needs a document type, and entities can make a small file huge.
        raise ValueError("a document type")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if tag == _POINT:
            line = self.parser.CurrentLineNumber
            self._point = (attributes.get("lat", ""), attributes.get("lon", ""), line)
            self._time = ""
        self._in_time = tag == "time" and self._point is not None

    def _text(self, text: str) -> None:
        if self._in_time:
            self._time += text

    def _end(self, tag: str) -> None:
        self._in_time = False
        if tag.rpartition(":")[2] == _POINT and self._point is not None:
            self.close()

    def close(self) -> None:
        """Take the point that is open, whole or not."""
        if self._point is None:
            return
        latitude, longitude, line = self._point
        self.latitude.append(latitude)
        self.longitude.append(longitude)
        self.line.append(line)
        self.time.append(self._time)
        self._point = None


def read_gpx(
    path: Path, person: str, time_zone: str | None, listed: int
) -> tuple[list[pl.DataFrame], LoadReport]:
    """The points of a GPX file and the report; lines are those of the point's first tag."""
    polars = require("polars", "geo")
    points = _Points()
    damaged: tuple[BadRow, ...] = ()
    try:
        for chunk, _ in file_source(path).chunks():
            points.parser.Parse(chunk, False)
        points.parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError, *DAMAGE) as fault:
        problem = f"file must be XML to its end, got {type(fault).__name__}"
        damaged = (BadRow(path.name, points.parser.CurrentLineNumber, problem),)
        points._time = ""
        points.close()
    texts = polars.DataFrame(
        {
            "number": points.line,
            "time": points.time,
            "latitude": points.latitude,
            "longitude": points.longitude,
        },
        schema_overrides={
            "number": polars.Int64,
            "time": polars.String,
            "latitude": polars.String,
            "longitude": polars.String,
        },
    )
    rows = texts.with_columns(
        polars.lit(person).alias("person"),
        polars.col("latitude", "longitude").str.strip_chars().cast(polars.Float64, strict=False),
        Zones(path.name, time_zone).utc(texts["time"].str.strip_chars(), texts["number"]),
    ).with_columns(
        first_problem(
            [
                *on_earth(polars.col("latitude"), polars.col("longitude")),
                (polars.col("time").is_not_null(), "time must be a time that exists once"),
            ]
        )
    )
    bad = rows.filter(polars.col("problem").is_not_null())
    good = rows.filter(polars.col("problem").is_null())
    report = LoadReport(
        1,
        len(rows),
        len(good),
        dict(bad["problem"].value_counts().sort("problem").iter_rows()),
        tuple(
            BadRow(path.name, number, problem)
            for number, problem in bad.select("number", "problem").head(listed).iter_rows()
        ),
        damaged,
    )
    return [good.select("person", "time", "latitude", "longitude")], report
