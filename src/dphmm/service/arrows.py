"""Rows as a stream of Apache Arrow: columns in, columns out.

What comes from a stranger is read in a worker, whose time and memory have limits: a small stream
may unpack to a large table, and a broken one is checked whole before anything in it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphmm.errors import MissingExtraError, require
from dphmm.service.access import RefusedError
from dphmm.service.showing import Json, too_many
from dphmm.tables.arrows import write_stream

__all__ = ["read_arrow", "write_arrow"]

NEEDED = ("person", "time", "state")
COLUMNS = (*NEEDED, "epsilon")

TEXTS = ("epsilon", "statement", "problem", "spent", "requested", "remaining", "window")


def read_arrow(content: bytes, most: int) -> list[Json]:
    """The rows of a stream, of which there are at most so many, as JSON would have them."""
    pyarrow = _pyarrow()
    try:
        with pyarrow.ipc.open_stream(content) as reader:
            names = reader.schema.names
            if not {*NEEDED} <= {*names} <= {*COLUMNS} or len(names) != len({*names}):
                raise _not_rows()
            batches, count = [], 0
            for batch in reader:
                count += batch.num_rows
                if count > most:
                    raise too_many(most)
                batch.validate(full=True)
                batches.append(batch)
        table = pyarrow.Table.from_batches(batches, reader.schema)
        columns = {name: table.column(name).to_pylist() for name in names}
    except (MemoryError, RefusedError):
        raise
    except Exception:  # whatever a broken stream makes of its reader
        raise _not_rows() from None
    if pyarrow.types.is_timestamp(table.schema.field("time").type):
        columns["time"] = [None if one is None else one.isoformat() for one in columns["time"]]
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def write_arrow(rows: Sequence[Json]) -> bytes:
    """What came of every row, in columns; null where a row has no such field."""
    pyarrow = _pyarrow()

    def column(name: str, kind: Any) -> Any:
        return pyarrow.array([row.get(name) for row in rows], kind)

    times = {type(row["time"]) for row in rows if row.get("time") is not None}
    floats = pyarrow.list_(pyarrow.float64())
    columns = {
        "person": column("person", pyarrow.string()),
        "status": column("status", pyarrow.int16()),
        "time": column("time", pyarrow.string() if times == {str} else pyarrow.int64()),
        "slot": column("slot", pyarrow.int64()),
        "silent": column("silent", pyarrow.bool_()),
        "answer": column("answer", floats),
        "lattice": _whole_numbers(pyarrow, rows),
        "estimate": column("estimate", floats),
        "repeated": column("repeated", pyarrow.bool_()),
        "where": column("where", pyarrow.list_(pyarrow.string())),
        **{name: column(name, pyarrow.string()) for name in TEXTS},
    }
    columns["statement"] = columns["statement"].dictionary_encode()  # few differ
    return write_stream(pyarrow.table(columns))


def _whole_numbers(pyarrow: Any, rows: Sequence[Json]) -> Any:
    """The lattice points; as text where one of them is longer than 64 bits."""
    points = [row.get("lattice") for row in rows]
    try:
        return pyarrow.array(points, pyarrow.list_(pyarrow.int64()))
    except (OverflowError, pyarrow.ArrowInvalid):
        texts = [None if point is None else [str(one) for one in point] for point in points]
        return pyarrow.array(texts, pyarrow.list_(pyarrow.string()))


def _not_rows() -> RefusedError:
    return RefusedError(
        422, "body: must be an Arrow stream with the columns person, time, state, perhaps epsilon"
    )


def _pyarrow() -> Any:
    try:
        require("pyarrow.ipc", "arrow")
        return require("pyarrow", "arrow")
    except MissingExtraError:
        raise RefusedError(415, "Arrow must be installed at the service; send JSON") from None
