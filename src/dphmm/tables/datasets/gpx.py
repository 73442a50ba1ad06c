"""GPX track points (not waypoints, not routes), up to the first fault in the XML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from dphmm.errors import require
from dphmm.tables.datasets.reading import BadRow
from dphmm.tables.datasets.streams import DAMAGE, Source

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

_POINT = "trkpt"
TRACK = "track"
"""The name of a file's tracks as a column, where there are several."""


class _Points:
    """The points an XML parser has come by; texts, since a point may be bad."""

    def __init__(self) -> None:
        self.latitude: list[str] = []
        self.longitude: list[str] = []
        self.time: list[str] = []
        self.line: list[int] = []
        self.track: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse
        self._point: tuple[str, str, int] | None = None
        self._time = ""
        self._in_time = False
        self._depth = 0
        self._tracks, self._name = 0, ""
        self._in_name: bool | None = None

    def _refuse(self, *_: Any) -> None:
        # No GPX file needs a document type, and entities can make a small file huge.
        raise ValueError("a document type")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "trk":
            self._tracks += 1
            self._name, self._in_name = "", False
        elif tag == "trkseg":
            # A name that comes later is a segment's or a point's.
            self._in_name = None
        elif tag == "name" and self._in_name is False:
            self._in_name = True
        if tag == _POINT:
            line = self.parser.CurrentLineNumber
            self._point = (attributes.get("lat", ""), attributes.get("lon", ""), line)
            self._time, self._depth = "", -1
        self._depth += 1
        # What stands deeper, in an extension, is another time.
        self._in_time = tag == "time" and self._point is not None and self._depth == 1

    def _text(self, text: str) -> None:
        if self._in_time:
            self._time += text
        if self._in_name:
            self._name += text

    def _end(self, tag: str) -> None:
        self._in_time = False
        self._depth -= 1
        if tag.rpartition(":")[2] == "name" and self._in_name:
            self._in_name = None
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
        self.track.append(self._name.strip() or f"{self._tracks}")
        self._point = None


def read_gpx(source: Source) -> tuple[pl.DataFrame, list[int], tuple[BadRow, ...]]:
    """The points' texts, the lines of their first tags, and where the file broke off, if so."""
    polars = require("polars", "geo")
    points = _Points()
    damaged: tuple[BadRow, ...] = ()
    try:
        for chunk, _ in source.chunks():
            points.parser.Parse(chunk, False)
        points.parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError, *DAMAGE) as fault:
        problem = f"file must be XML to its end, got {type(fault).__name__}"
        damaged = (BadRow(source.name, points.parser.CurrentLineNumber, problem),)
        points._time = ""
        points.close()
    texts = {"time": points.time, "latitude": points.latitude, "longitude": points.longitude}
    if len({*points.track}) > 1:
        texts[TRACK] = points.track
    return polars.DataFrame(texts, schema=dict.fromkeys(texts, polars.String)), points.line, damaged
