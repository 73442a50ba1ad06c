"""Tables of other libraries, in and out: Polars, pandas, GeoPandas, scikit-mobility, Arrow."""

from __future__ import annotations

from typing import Any

from dphmm.errors import ArgumentError, require

__all__ = ["as_polars", "is_table", "like", "not_trips"]

MOBILITY = {"uid": "person", "datetime": "time", "lat": "latitude", "lng": "longitude"}
"""What scikit-mobility calls what we call otherwise."""
DEGREES = ["latitude", "longitude"]


def is_table(source: object) -> bool:
    """Whether something is a table of Polars, pandas, GeoPandas or Arrow."""
    known = ("__arrow_c_stream__", "iter_rows", "collect_schema")
    return any(hasattr(source, name) for name in known)


def as_polars(table: Any) -> Any:
    """The same table for Polars."""
    polars = require("polars", "cli")
    if isinstance(table, polars.DataFrame):
        return table
    if isinstance(table, polars.LazyFrame):
        return table.collect()
    if _library(table) == "skmob":
        # A column of ours stays what it is, and theirs of the same meaning with it.
        named = {old: new for old, new in MOBILITY.items() if new not in table.columns}
        table = require("pandas", "pandas").DataFrame(table).rename(columns=named)
    elif hasattr(table, "to_crs"):
        table = _with_degrees(table)
    _check_names(table)
    try:
        return polars.DataFrame(table)
    except (TypeError, ValueError, polars.exceptions.PolarsError):
        raise not_trips(table) from None


def _check_names(table: Any) -> None:
    """Refuse a name that a table has twice: nobody can tell which column is meant."""
    kind = _library(table)
    names = table.schema.names if kind == "pyarrow" else table.columns if kind == "pandas" else ()
    names = [str(name) for name in names]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ArgumentError(f"trips must have each column once, got {twice!r} more often")


def not_trips(given: object) -> ArgumentError:
    """What to say of something that is neither a file nor a table."""
    return ArgumentError(
        f"trips must be a file or a table of Polars, pandas or Arrow, got {type(given).__name__}"
    )


def _with_degrees(table: Any) -> Any:
    """A table of GeoPandas as one of pandas, its points as latitude and longitude."""
    kinds = {*table.geometry.geom_type.dropna()} - {"Point"}
    if kinds:
        raise ArgumentError(f"trips must have points for places, got {', '.join(sorted(kinds))}")
    points = (table if table.crs is None else table.to_crs(4326)).geometry
    plain = table.drop(columns=table.geometry.name)
    return plain.assign(latitude=points.y, longitude=points.x)


def like(table: Any, given: Any) -> Any:
    """A Polars table as the kind of table that was given; a file gets Polars.

    What has no latitude and longitude is no table of GeoPandas or scikit-mobility, but of pandas.
    """
    kind = _library(given)
    if kind == "polars" and hasattr(given, "collect"):
        return table.lazy()
    if kind == "pyarrow":
        return table.to_arrow()
    if kind not in ("pandas", "geopandas", "skmob"):
        return table
    made = table.to_pandas()
    if not {*DEGREES} <= {*made.columns}:
        return made
    if kind == "geopandas":
        return _with_points(made, given)
    if kind == "skmob":
        theirs = {new: old for old, new in MOBILITY.items()}
        return type(given)(made.rename(columns=theirs))
    return made


def _library(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


def _with_points(table: Any, given: Any) -> Any:
    """A table of pandas as one of GeoPandas, in the coordinates and under the names of another."""
    geopandas = require("geopandas", "geopandas")
    said = table[DEGREES].notna().all(axis=1)
    points = geopandas.GeoSeries(
        geopandas.points_from_xy(table["longitude"], table["latitude"]), crs=given.crs and 4326
    ).where(said, None)
    if given.crs is not None:
        points = points.to_crs(given.crs)
    plain = table.drop(columns=DEGREES)
    named = {given.geometry.name: points.to_numpy()}
    return geopandas.GeoDataFrame(
        plain.assign(**named), geometry=given.geometry.name, crs=given.crs
    )
