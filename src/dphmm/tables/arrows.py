"""Streams of Apache Arrow: how tables travel."""

from __future__ import annotations

from typing import Any

from dphmm.errors import require

__all__ = ["ARROW", "write_stream"]

ARROW = "application/vnd.apache.arrow.stream"
"""The media type."""


def write_stream(table: Any) -> bytes:
    """A table of Arrow as a stream."""
    pyarrow, ipc = require("pyarrow", "arrow"), require("pyarrow.ipc", "arrow")
    sink = pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
