"""Vector tiles of a local PMTiles file, as shapes in degrees.

The archive is read with the `pmtiles` package. What is in a tile (Mapbox Vector Tile 2.1) is
read here: the usual package for it brings Shapely and Clipper along and wants an old protobuf.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from math import atan, ceil, cos, floor, log, log2, pi, radians, sinh, tan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dphmm._types import FloatArray
from dphmm.errors import DataError, require

__all__ = ["Shape", "decode_tile", "read_tiles"]

MOST_TILES = 36
"""That are read for one map."""

MOST_TILE = 20_000_000
"""Bytes of one tile once it is unpacked."""

LINE, POLYGON = 2, 3


class Shape(NamedTuple):
    """Lines or rings of one feature."""

    layer: str
    properties: dict[str, Any]
    closed: bool
    parts: list[FloatArray]
    """Rows of x and y, from the north-west corner of the tile; its side is 1."""


def read_tiles(
    path: Path, south: float, west: float, north: float, east: float
) -> Iterator[tuple[Shape, list[FloatArray]]]:
    """The shapes of a box on Earth, each with its parts as longitudes and latitudes.

    Of the zoom levels it is the finest whose tiles are not too many.
    """
    reader: Any = require("pmtiles.reader", "geo")
    with path.open("rb") as file:
        try:
            archive = reader.Reader(reader.MmapSource(file))
            header = archive.header()
            zoom = _zoom(header, south, west, north, east)
            for x, y in _covering(zoom, south, west, north, east):
                packed = archive.get(zoom, x, y)
                for shape in decode_tile(_unpacked(packed)) if packed else ():
                    yield shape, [_degrees(part, zoom, x, y) for part in shape.parts]
        except (ValueError, KeyError, IndexError, TypeError, EOFError, OSError, zlib.error):
            raise _broken(path) from None
        except Exception as fault:  # the package has errors of its own, without a common base
            if isinstance(fault, DataError) or "pmtiles" not in type(fault).__module__:
                raise
            raise _broken(path) from None


def _broken(path: Path) -> DataError:
    return DataError(f"{path.name}: base map must be PMTiles with vector tiles, got another file")


def _zoom(header: Any, south: float, west: float, north: float, east: float) -> int:
    least, most = int(header["min_zoom"]), int(header["max_zoom"])
    wanted = min(most, max(least, ceil(log2(360 / max(east - west, 1e-6))) + 2))
    while wanted > least and len(_covering(wanted, south, west, north, east)) > MOST_TILES:
        wanted -= 1
    return wanted


def _covering(
    zoom: int, south: float, west: float, north: float, east: float
) -> list[tuple[int, int]]:
    """The tiles that a box lies in; x goes around the Earth."""
    count = 2**zoom
    left, right = (floor((degrees + 180) / 360 * count) for degrees in (west, east))
    top, bottom = (
        min(max(floor(_down(degrees) * count), 0), count - 1) for degrees in (north, south)
    )
    if (right - left + 1) * (bottom - top + 1) > 10**6:
        return [(0, 0)] * (MOST_TILES + 1)
    return [(x % count, y) for x in range(left, right + 1) for y in range(top, bottom + 1)]


def _down(latitude: float) -> float:
    """How far down a latitude is on the square map of the Earth, from 0 to 1 (Mercator)."""
    angle = radians(min(max(latitude, -85.05), 85.05))
    return (1 - log(tan(angle) + 1 / cos(angle)) / pi) / 2


def _degrees(part: FloatArray, zoom: int, x: int, y: int) -> FloatArray:
    count = 2**zoom
    east = (x + part[:, 0]) / count * 360 - 180
    north = [
        atan(sinh(pi * (1 - 2 * (y + down) / count))) * 180 / pi for down in part[:, 1].tolist()
    ]
    return np.stack([east, north], axis=1)


def _unpacked(tile: bytes) -> bytes:
    if tile[:2] != b"\x1f\x8b":
        return tile
    with gzip.GzipFile(fileobj=BytesIO(tile)) as file:
        content = file.read(MOST_TILE + 1)
    if len(content) > MOST_TILE:
        raise ValueError
    return content


def decode_tile(tile: bytes) -> list[Shape]:
    """The lines and polygons of a tile; points are left out. What is no tile is a ValueError.

    Args:
        tile: Its bytes, unpacked.
    """
    try:
        layers = [layer for field, layer in _fields(tile) if field == 3]
        return [shape for layer in layers for shape in _decode_layer(layer)]
    except (AttributeError, IndexError, RuntimeError, TypeError, struct.error) as fault:
        raise ValueError(f"tile must be a vector tile: {fault}") from None


def _decode_layer(content: bytes) -> Iterator[Shape]:
    name, extent = "", 4096
    keys: list[str] = []
    values: list[Any] = []
    features: list[bytes] = []
    for field, value in _fields(content):
        if field == 1:
            name = value.decode("utf-8")
        elif field == 2:
            features.append(value)
        elif field == 3:
            keys.append(value.decode("utf-8"))
        elif field == 4:
            values.append(_value(value))
        elif field == 5:
            extent = int(value)
    for feature in features:
        parts = dict(_fields(feature))
        kind = int(parts.get(3, 0))
        if kind in (LINE, POLYGON):
            tags = list(_varints(parts.get(2, b"")))
            pairs = zip(tags[::2], tags[1::2], strict=False)
            facts = {keys[key]: values[value] for key, value in pairs}
            lines = [np.array(line, dtype=float) / extent for line in _lines(parts.get(4, b""))]
            yield Shape(name, facts, kind == POLYGON, lines)


def _lines(geometry: bytes) -> list[list[tuple[int, int]]]:
    """The lines or rings that some commands draw: move, line to, close."""
    numbers = _varints(geometry)
    found: list[list[tuple[int, int]]] = []
    x = y = 0
    for command in numbers:
        verb, count = command & 7, command >> 3
        if verb == 7:
            found[-1].append(found[-1][0])
            continue
        if verb not in (1, 2):
            raise ValueError
        for _ in range(count):
            x, y = x + _signed(next(numbers)), y + _signed(next(numbers))
            if verb == 1:
                found.append([])
            found[-1].append((x, y))
    return [line for line in found if len(line) > 1]


def _value(content: bytes) -> Any:
    for field, value in _fields(content):
        if field == 1:
            return value.decode("utf-8")
        if field == 2:
            return struct.unpack("<f", value)[0]
        if field == 3:
            return struct.unpack("<d", value)[0]
        return bool(value) if field == 7 else _signed(value) if field == 6 else value
    return None


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer, each with its number: whole numbers, or bytes."""
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        wire = key & 7
        if wire == 0:
            value, place = _varint(content, place)
            yield key >> 3, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, place = _varint(content, place)
        if place + size > len(content):
            raise ValueError
        yield key >> 3, content[place : place + size]
        place += size


def _varints(content: bytes) -> Iterator[int]:
    place = 0
    while place < len(content):
        value, place = _varint(content, place)
        yield value


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A whole number in groups of seven bits, and where it ends."""
    value = shift = 0
    while True:
        if place >= len(content) or shift > 63:
            raise ValueError
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _signed(number: int) -> int:
    """A number that was written with its sign last."""
    return (number >> 1) ^ -(number & 1)
