"""Tables of other libraries, in and out: Polars, pandas, GeoPandas and Arrow."""

from __future__ import annotations

from typing import Any

from dphmm.errors import ArgumentError, require

__all__ = ["as_polars", "is_table", "like", "not_trips"]


def is_table(source: object) -> bool:
    """Whether something is a table of Polars, pandas, GeoPandas or Arrow."""
    known = ("__arrow_c_stream__", "iter_rows", "collect_schema")
    return any(hasattr(source, name) for name in known)


def as_polars(table: Any) -> Any:
    """The same table for Polars."""
    polars = require("polars", "cli")
    if isinstance(table, polars.DataFrame):
        return table
    if hasattr(table, "to_crs"):
        table = _with_degrees(table)
    if isinstance(table, polars.LazyFrame):
        return table.collect()
    try:
        return polars.DataFrame(table)
    except (TypeError, ValueError, polars.exceptions.PolarsError):
        raise not_trips(table) from None


def not_trips(given: object) -> ArgumentError:
    """What to say of something that is neither a file nor a table."""
    return ArgumentError(
        f"trips must be a file or a table of Polars, pandas or Arrow, got {type(given).__name__}"
    )


def _with_degrees(table: Any) -> Any:
    """A table of GeoPandas as one of pandas, its points as latitude and longitude."""
    points = (table if table.crs is None else table.to_crs(4326)).geometry
    plain = table.drop(columns=table.geometry.name)
    return plain.assign(latitude=points.y, longitude=points.x)


def like(table: Any, given: Any) -> Any:
    """A Polars table as the kind of table that was given; a file gets Polars."""
    kind = type(given).__module__.partition(".")[0]
    if kind == "pandas":
        return table.to_pandas()
    return table.to_arrow() if kind == "pyarrow" else table
