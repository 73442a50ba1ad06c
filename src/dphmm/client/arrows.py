"""Tables on their way to a service and back, as streams of Apache Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphmm.errors import ArgumentError, ServiceError, require
from dphmm.tables.arrows import write_stream

__all__ = ["as_arrow", "read_rows", "write_rows"]


def as_arrow(table: Any, columns: Sequence[str]) -> Any:
    """A table of any kind as one of Arrow with some columns, of which the last may be missing."""
    pyarrow = require("pyarrow", "arrow")
    try:
        if hasattr(table, "collect_schema") and hasattr(table, "collect"):
            table = table.collect()
        if type(table).__module__.partition(".")[0] in ("pandas", "geopandas", "skmob"):
            # Other columns may hold what Arrow has no type for, such as points.
            wanted = [name for name in columns if list(table.columns).count(name) == 1]
            made = pyarrow.Table.from_pandas(table[wanted], preserve_index=False)
        elif hasattr(table, "to_arrow"):
            made = table.to_arrow()
        else:
            made = pyarrow.table(table)
        named = [name for name in columns if made.schema.names.count(name) == 1]
    except (TypeError, ValueError, pyarrow.ArrowException):
        raise ArgumentError(
            "rows must be a table with columns of one kind each, got another"
        ) from None
    if not {*columns[:-1]} <= {*named}:
        raise ArgumentError(f"rows must have the columns {', '.join(columns[:-1])}, got others")
    return made.select(named)


def write_rows(table: Any, numbers: Sequence[int]) -> bytes:
    """Some rows of a table as a stream."""
    pyarrow = require("pyarrow", "arrow")
    return write_stream(table.take(pyarrow.array(numbers, pyarrow.int64())))


def read_rows(content: bytes) -> list[dict[str, Any]]:
    """The rows of a stream, as JSON would have them: what is null is left out of a problem."""
    pyarrow, ipc = require("pyarrow", "arrow"), require("pyarrow.ipc", "arrow")
    try:
        with ipc.open_stream(content) as reader:
            rows: list[dict[str, Any]] = reader.read_all().to_pylist()
        for row in rows:
            if row["lattice"] is not None:  # as text where numbers are long
                row["lattice"] = [int(number) for number in row["lattice"]]
    except (KeyError, TypeError, ValueError, pyarrow.ArrowException):
        raise ServiceError("the service must answer in Arrow, got something else") from None
    return [
        row
        if row["status"] == 200
        else {name: value for name, value in row.items() if value is not None}
        for row in rows
    ]
