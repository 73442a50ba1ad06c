"""Vector tiles: what was put into a PMTiles file comes out where it was, or is refused."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress
from math import asinh, pi, radians, tan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import DataError
from dphmm.tables.basemap import read_base
from dphmm.tables.geo import LocalPlane
from dphmm.tables.maps import Map
from dphmm.tables.states import States
from dphmm.tables.tiles import LINE, POLYGON, decode_tile

pytest.importorskip("pmtiles")
pytest.importorskip("pyproj")

ZOOM, EXTENT = 14, 4096
PLACE = (48.137, 11.575)


# A slow, obvious writer of tiles.


def varint(number: int) -> bytes:
    found = bytearray()
    while True:
        number, byte = number >> 7, number & 127
        found.append(byte | (128 if number else 0))
        if not number:
            return bytes(found)


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def geometry(lines: list[list[tuple[int, int]]], closed: bool) -> bytes:
    numbers, x, y = [], 0, 0
    for line in lines:
        for place, (u, v) in enumerate(line):
            if place == 0:
                numbers.append(1 | 1 << 3)
            elif place == 1:
                numbers.append(2 | (len(line) - 1) << 3)
            numbers += [2 * moved if moved >= 0 else -2 * moved - 1 for moved in (u - x, v - y)]
            x, y = u, v
        if closed:
            numbers.append(7 | 1 << 3)
    return b"".join(map(varint, numbers))


def layer(
    name: str, features: list[tuple[list[list[tuple[int, int]]], bool, dict[str, Any]]]
) -> bytes:
    keys: list[str] = []
    values: list[bytes] = []
    content = field(15, 2) + field(1, name.encode())
    for lines, closed, facts in features:
        tags = []
        for key, value in facts.items():
            keys.append(key)
            written = {
                str: lambda v: field(1, v.encode()),
                float: lambda v: varint(3 << 3 | 1) + struct.pack("<d", v),
                bool: lambda v: field(7, int(v)),
                int: lambda v: field(4, v),
            }[type(value)](value)
            values.append(written)
            tags += [len(keys) - 1, len(values) - 1]
        one = field(2, b"".join(map(varint, tags)))
        one += field(3, POLYGON if closed else LINE) + field(4, geometry(lines, closed))
        content += field(2, one)
    content += b"".join(field(3, key.encode()) for key in keys)
    content += b"".join(field(4, value) for value in values)
    return field(3, content + field(5, EXTENT))


def in_tile(latitude: float, longitude: float) -> tuple[int, int, int, int]:
    """The tile of a place, and where in it."""
    across = (longitude + 180) / 360 * 2**ZOOM
    down = (1 - asinh(tan(radians(latitude))) / pi) / 2 * 2**ZOOM
    (x, u), (y, v) = divmod(across, 1), divmod(down, 1)
    return int(x), int(y), round(u * EXTENT), round(v * EXTENT)


def archive(path: Path, tiles: dict[tuple[int, int], bytes]) -> Path:
    from pmtiles.tile import Compression, TileType, zxy_to_tileid
    from pmtiles.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file)
        for (x, y), tile in sorted(tiles.items(), key=lambda one: zxy_to_tileid(ZOOM, *one[0])):
            writer.write_tile(zxy_to_tileid(ZOOM, x, y), gzip.compress(tile))
        everywhere = {"min_lon_e7": -1800000000, "min_lat_e7": -850000000}
        everywhere |= {"max_lon_e7": 1800000000, "max_lat_e7": 850000000}
        writer.finalize(
            {
                "tile_type": TileType.MVT, "tile_compression": Compression.GZIP,
                "min_zoom": ZOOM, "max_zoom": ZOOM, "center_zoom": ZOOM,
                "center_lon_e7": 0, "center_lat_e7": 0, **everywhere,
            },
            {},
        )  # fmt: skip
    return path


def surroundings() -> tuple[States, np.ndarray, np.ndarray]:
    states = Map.squares(*PLACE, kilometres=2, cell=0.5).states
    places = states.values(states.place_columns)
    return states, places.min(axis=0) - 250, places.max(axis=0) + 250


# Oracle


@given(
    st.lists(
        st.lists(st.tuples(st.integers(-99, 5000), st.integers(-99, 5000)), min_size=2, max_size=6),
        min_size=1, max_size=3,
    ),
    st.booleans(),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4) | st.booleans() | st.integers(0, 9)),
)  # fmt: skip
def test_what_was_written_is_read(
    lines: list[list[tuple[int, int]]], closed: bool, facts: dict[str, Any]
) -> None:
    (shape,) = decode_tile(layer("roads", [(lines, closed, facts)]))
    assert (shape.layer, shape.closed, shape.properties) == ("roads", closed, facts)
    for part, line in zip(shape.parts, lines, strict=True):
        expected = [*line, line[0]] if closed else line
        np.testing.assert_array_equal(part * EXTENT, expected)


def test_a_place_in_a_tile_lands_where_the_plane_has_it(tmp_path: Path) -> None:
    states, low, high = surroundings()
    x, y, u, v = in_tile(*PLACE)
    road = [(u, v), (u + 40, v), (u + 40, v + 30)]
    lake = [(u, v), (u + 20, v), (u + 20, v + 20)]
    house = [(u, v), (u + 9, v), (u + 9, v + 9)]
    tile = layer("roads", [([road], False, {"kind": "major_road"})])
    tile += layer("water", [([lake], True, {"kind": "lake"})])
    tile += layer("buildings", [([house], True, {})])
    base = read_base(archive(tmp_path / "town.pmtiles", {(x, y): tile}), states, low, high)
    assert base.kinds == ["water", "street"]
    (line,) = base.lines["street"]
    plane = states.plane
    assert plane is not None
    (east,), (north,) = plane.to_plane([PLACE[0]], [PLACE[1]])
    # A tile of zoom 14 at this latitude is 1.6 km wide: its grid is 40 cm fine.
    np.testing.assert_allclose(line[0], [east, north], atol=0.5)
    assert line[1][0] > line[0][0]
    assert line[2][1] < line[1][1]
    assert isinstance(plane, LocalPlane)


# Bad input


@pytest.mark.parametrize("content", [b"", b"PMTiles", b"x" * 400, b"PMTiles\x03" + b"\xff" * 300])
def test_what_is_no_archive_gets_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "town.pmtiles").write_bytes(content)
    states, low, high = surroundings()
    with pytest.raises(DataError, match=r"town\.pmtiles: base map must be PMTiles with vector"):
        read_base(tmp_path / "town.pmtiles", states, low, high)


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda body: field(3, body)))
def test_a_broken_tile_is_refused_and_never_anything_else(content: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(decode_tile(content), list)


def test_tiles_need_degrees(tmp_path: Path) -> None:
    x, y, u, v = in_tile(*PLACE)
    tile = layer("roads", [([[(u, v), (u + 9, v)]], False, {})])
    path = archive(tmp_path / "town.pmtiles", {(x, y): tile})
    with pytest.raises(DataError, match="must be GeoJSON where states have no latitude"):
        read_base(path, States.at([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2), np.ones(2))
