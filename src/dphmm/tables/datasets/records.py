"""Objects of JSON as tracks: one a line, in a list, within others, or GeoJSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dphmm.errors import DataError, require
from dphmm.tables.columns import NOT_WHOLE, match_columns
from dphmm.tables.datasets.rows import Meaning, Wishes
from dphmm.tables.geojson import track_records

if TYPE_CHECKING:
    import polars as pl

__all__: list[str] = []

_SAMPLE = 50
_PLACES = ("latitude", "point", "x", "state")


class JsonLines:
    """One file of JSON, a document a line."""

    def __init__(self, file: str, owner: str, wishes: Wishes) -> None:
        self.file, self.owner, self.wishes = file, owner, wishes
        self.meaning: Meaning | None = None

    def __call__(self, lines: pl.DataFrame) -> pl.DataFrame:
        """The lines' rows, judged; a line that is none is a bad row."""
        polars = require("polars", "geo")
        found = [_read(line) or [{}] for line in lines["line"]]
        records = [record for each in found for record in each]
        if self.meaning is None:
            keys = dict.fromkeys(key for record in records[:_SAMPLE] for key in record)
            self.meaning = Meaning.of(self.file, list(keys), self.wishes, self.owner)
        check_people(self.file, records, self.meaning)
        fields = text_columns(records, self.meaning.fields)
        lengths = polars.Series([len(each) for each in found], dtype=polars.UInt32)
        numbers = polars.int_range(len(lines), eager=True).repeat_by(lengths).explode()
        return self.meaning.judge(
            lines.select("number", "source")[numbers].with_columns(
                polars.Series("whole", [bool(record) for record in records]), *fields
            )
        )


def text_columns(records: Sequence[dict[str, Any]], names: dict[str, str]) -> list[pl.Series]:
    """Columns of texts, by our names, from objects of JSON."""
    polars = require("polars", "geo")
    return [
        polars.Series(
            ours,
            [None if (value := record.get(theirs)) is None else str(value) for record in records],
            dtype=polars.String,
        )
        for ours, theirs in names.items()
    ]


def check_people(file: str, records: Sequence[dict[str, Any]], meaning: Meaning) -> None:
    """Refuse people who are numbers with a point, as tables are refused: 7 and 7.0 are one."""
    column = meaning.fields.get("person")
    if column is not None and any(isinstance(one.get(column), float) for one in records):
        raise DataError(f"{file}: {NOT_WHOLE}")


def _read(line: str) -> list[dict[str, Any]]:
    try:
        return records_of(json.loads(line))
    except (ValueError, RecursionError):
        return []


def records_of(document: Any) -> list[dict[str, Any]]:
    """The rows of a document: points of GeoJSON, objects of a list, or itself.

    An object without a place, but with a list of objects, is those, each with what is beside it:

    >>> records_of({"user": "ann", "points": [{"lat": 48.1, "lon": 11.6}]})
    [{'lat': 48.1, 'lon': 11.6, 'user': 'ann'}]
    """
    if isinstance(document, list):
        return [row for each in document if isinstance(each, dict) for row in records_of(each)]
    if not isinstance(document, dict):
        return []
    if document.get("type") in ("Feature", "FeatureCollection"):
        return [flat(record) for record in track_records(document)]
    beside = flat(document)
    lists = [key for key, value in document.items() if _is_list_of_objects(value)]
    lists = lists or [key for key, value in beside.items() if _is_list_of_objects(value)]
    if len(lists) != 1 or match_columns("", beside, _PLACES, None):
        return [beside]
    within = records_of(beside.pop(lists[0]))
    # Its own names come first: where two end alike, the nearer one is meant.
    return [{**row, **beside, **row} for row in within]


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """What objects within an object hold, under all their names.

    >>> flat({"who": "ann", "at": {"lat": 48.1, "lon": 11.6}})
    {'who': 'ann', 'at.lat': 48.1, 'at.lon': 11.6}
    """
    plain = {key: value for key, value in record.items() if not isinstance(value, dict)}
    for key, value in record.items():
        if isinstance(value, dict):
            plain |= {f"{key}.{name}": inner for name, inner in flat(value).items()}
    return plain
