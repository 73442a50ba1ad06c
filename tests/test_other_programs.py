"""Tracks as other programs leave them: ticks and mixed clocks, PostGIS, GeoParquet, togeojson."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dphmm.errors import ArgumentError, DataError
from dphmm.tables import datasets
from tests.scenarios import run

START = datetime(2024, 5, 1, 8, tzinfo=UTC)
FIXES = [
    (START + timedelta(minutes=5 * n), round(52.5 + n / 1000, 6), round(13.4 + n / 1000, 6))
    for n in range(12)
]
SECONDS = int(START.timestamp())
TIMES = [time.strftime("%Y-%m-%dT%H:%M:%SZ") for time, _, _ in FIXES]
POINTS = [[east, north] for _, north, east in FIXES]


def text_of(times: list[Any]) -> str:
    rows = [f"{time},{a},{b}" for time, (_, a, b) in zip(times, FIXES, strict=True)]
    return "\n".join(["time,lat,lon", *rows, ""])


def file_of(folder: Path, content: str, name: str = "ann.csv") -> Path:
    (folder / name).write_text(content)
    return folder / name


def imported(file: Path, *options: object) -> Any:
    return run("import", file, "--around", "52.5,13.4", *options, "-o", file.parent / "town")


def places_of(source: Any, **options: Any) -> list[list[float]]:
    table = datasets.load_tracks(source, **options).table
    return [[round(cell, 6) for cell in row] for row in table["longitude", "latitude"].iter_rows()]


# Times


@pytest.mark.parametrize(
    "times",
    [
        [(SECONDS + 300 * n) * 10**7 + 621_355_968_000_000_000 for n in range(12)],
        [SECONDS - 978_307_200 + 300 * n for n in range(12)],
        [f"{time:%y%m%d%H%M%S}" for time, _, _ in FIXES],
    ],
    ids=["ticks of .NET", "seconds since 2001", "dates of twelve digits"],
)
def test_numbers_that_are_no_seconds_since_1970_are_not_taken_for_the_last_century(
    tmp_path: Path, times: list[Any]
) -> None:
    file = file_of(tmp_path, text_of(times))
    assert datasets.load_tracks(file).table.schema["time"] == pl.Int64
    told = imported(file)
    assert told.exit_code == 2
    assert "got whole numbers; say how they are written" in told.stderr
    assert not (tmp_path / "town").exists()


def test_whoever_says_that_times_are_unix_is_believed(tmp_path: Path) -> None:
    file = file_of(tmp_path, text_of([600_000_000 + 300 * n for n in range(12)]))
    table = datasets.load_tracks(file, time="unix").table
    assert {time.year for time in table["time"]} == {1989}


def test_seconds_among_milliseconds_are_bad_rows(tmp_path: Path) -> None:
    times = [(SECONDS + 300 * n) * (1 if n == 4 else 1000) for n in range(12)]
    table, report = datasets.load_tracks(file_of(tmp_path, text_of(times)))
    assert (len(table), report.rows_bad, report.first_bad[0].line) == (11, 1, 6)


def test_days_of_a_spreadsheet_are_named(tmp_path: Path) -> None:
    days = [45413 + (480 + 5 * n) / 1440 for n in range(12)]
    told = imported(file_of(tmp_path, text_of([f"{day:.8f}" for day in days])))
    assert told.exit_code == 2
    assert "not as a spreadsheet's number of days" in told.stderr


@pytest.mark.parametrize("form", ["%m/%d/%Y %I:%M", "%m/%d/%Y %H:%M %p"])
def test_half_of_a_twelve_hour_form_is_refused(tmp_path: Path, form: str) -> None:
    file = file_of(tmp_path, text_of([f"{time:%m/%d/%Y %I:%M %p}" for time, _, _ in FIXES]))
    told = imported(file, "--zone", "UTC", "--time", form)
    assert told.exit_code == 2
    assert "time must have %I and %p together, or %H alone" in told.stderr
    whole = datasets.load_tracks(file, time="%m/%d/%Y %I:%M %p", time_zone="UTC")
    assert whole.table["time"].to_list() == [time for time, _, _ in FIXES]


def test_lengths_of_time_are_no_times() -> None:
    table = pl.DataFrame(FIXES, schema=["time", "lat", "lon"], orient="row")
    table = table.with_columns(pl.col("time") - START)
    with pytest.raises(DataError, match="time must be dates, text or numbers, got Duration"):
        datasets.load_tracks(table)


# People


def test_people_with_a_point_in_their_number_are_refused() -> None:
    table = pl.DataFrame(FIXES, schema=["time", "lat", "lon"], orient="row")
    with pytest.raises(DataError, match="person must be a text or a whole number"):
        datasets.load_tracks(table.with_columns(person=pl.lit(7.0)))


def test_names_that_no_release_would_take_are_bad_rows(tmp_path: Path) -> None:
    names = ["x" * 201, "a\u200bb", *["ann"] * 10]
    rows = [f"{name},{line}" for name, line in zip(names, text_of(TIMES).split()[1:], strict=True)]
    file = file_of(tmp_path, "\n".join(["person,time,lat,lon", *rows, ""]))
    report = datasets.load_tracks(file).report
    assert report.problems == {"person must be 1 to 200 printable characters": 2}
    for person in ("", "a\nb"):
        told = imported(file_of(tmp_path, text_of(TIMES)), "--person", person)
        assert told.exit_code == 2
        assert "person must be 1 to 200 printable characters" in told.stderr


def test_the_accents_of_a_mac_make_nobody_two_people(tmp_path: Path) -> None:
    file_of(tmp_path, text_of(TIMES), "Rene\u0301.csv")
    (tmp_path / "more").mkdir()
    rows = [f"Ren\u00e9,{line}" for line in text_of(TIMES).split()[1:]]
    file_of(tmp_path / "more", "\n".join(["person,time,lat,lon", *rows, ""]), "b.csv")
    assert set(datasets.load_tracks(tmp_path).table["person"]) == {"Ren\u00e9"}


# Places


@pytest.mark.parametrize("srid", [None, 4326])
def test_points_in_the_digits_of_postgis(tmp_path: Path, srid: int | None) -> None:
    kind = struct.pack("<BI", 1, 1) if srid is None else struct.pack("<BII", 1, 1 | 1 << 29, srid)
    cells = [(kind + struct.pack("<dd", *point)).hex().upper() for point in POINTS]
    rows = [f"{time},{cell}" for time, cell in zip(TIMES, cells, strict=True)]
    file = file_of(tmp_path, "\n".join(["time,geom", *rows, ""]))
    assert places_of(file) == POINTS


def test_points_of_another_system_are_bad_rows(tmp_path: Path) -> None:
    kind = struct.pack("<BII", 1, 1 | 1 << 29, 25833)
    cells = [(kind + struct.pack("<dd", *point)).hex() for point in POINTS]
    rows = [f"{time},{cell}" for time, cell in zip(TIMES, cells, strict=True)]
    report = datasets.load_tracks(file_of(tmp_path, "\n".join(["time,geom", *rows, ""]))).report
    assert (report.rows_kept, report.rows_bad) == (0, 12)


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_the_geoparquet_of_geopandas(tmp_path: Path, encoding: Any) -> None:
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy(*zip(*POINTS, strict=True))
    frame = geopandas.GeoDataFrame({"time": TIMES}, geometry=points, crs=4326)
    frame.to_parquet(tmp_path / "ann.parquet", geometry_encoding=encoding)
    assert places_of(tmp_path / "ann.parquet") == POINTS
    assert places_of(frame.to_arrow()) == POINTS


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": {"person": "ann", **properties}}


def geojson_of(folder: Path, *features: Any) -> Path:
    document = {"type": "FeatureCollection", "features": features}
    return file_of(folder, json.dumps(document), "a.geojson")


def test_lines_of_togeojson(tmp_path: Path) -> None:
    parts = [POINTS[:5], POINTS[5:]]
    times = {"times": [TIMES[:5], TIMES[5:]]}
    line = {"type": "LineString", "coordinates": POINTS}
    lines = {"type": "MultiLineString", "coordinates": parts}
    one = feature(line, coordinateProperties={"times": TIMES})
    assert places_of(geojson_of(tmp_path, one)) == POINTS
    assert places_of(geojson_of(tmp_path, feature(lines, **times))) == POINTS
    both = feature(lines, coordinateProperties=times)
    assert places_of(geojson_of(tmp_path, both)) == POINTS


def test_a_feature_that_is_nowhere_is_a_bad_row(tmp_path: Path) -> None:
    points = [{"type": "Point", "coordinates": point} for point in POINTS]
    points[3:5] = [None, {"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [1, 2], [1, 1]]]}]  # type: ignore[list-item]
    several = [feature(each, time=time) for each, time in zip(points, TIMES, strict=True)]
    report = datasets.load_tracks(geojson_of(tmp_path, *several)).report
    assert (report.rows_kept, report.rows_bad) == (10, 2)


def test_the_time_of_an_extension_is_not_the_points(tmp_path: Path) -> None:
    extension = "<extensions><a:b><a:time>1999-01-01T00:00:00Z</a:time></a:b></extensions>"
    points = [
        f'<trkpt lat="{a}" lon="{b}">{extension}<time>{time}</time>{extension}</trkpt>'
        for time, (_, a, b) in zip(TIMES, FIXES, strict=True)
    ]
    gpx = f'<gpx xmlns:a="b"><trk><trkseg>{"".join(points)}</trkseg></trk></gpx>'
    table = datasets.load_tracks(file_of(tmp_path, gpx, "ann.gpx")).table
    assert table["time"].to_list() == [time for time, _, _ in FIXES]


# What is not read, and what is no fix


def test_what_an_archive_holds_and_is_not_read_is_said(tmp_path: Path) -> None:
    within = io.BytesIO()
    with zipfile.ZipFile(within, "w") as archive:
        archive.writestr("bob.csv", text_of(TIMES))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("ann.csv", text_of(TIMES))
        archive.writestr("more.zip", within.getvalue())
        archive.writestr("cat.kml", "<kml/>")
    (tmp_path / "dan.tar.gz").write_bytes(b"")
    told = {"not read, since .zip in .zip is no kind that is read": 1}
    told |= {"not read, since .kml in .zip is no kind that is read": 1}
    assert datasets.load_tracks(tmp_path / "all.zip").report.doubts == told
    told |= {"not read, since .tar is no kind that is read": 1}
    assert datasets.load_tracks(tmp_path).report.doubts == told


@pytest.mark.parametrize("marker", ["90,180", "-1,-1"])
def test_one_point_outside_again_and_again_is_asked_about(tmp_path: Path, marker: str) -> None:
    lines = text_of(TIMES).splitlines()
    lines[2:11:2] = [f"{line.partition(',')[0]},{marker}" for line in lines[2:11:2]]
    file = file_of(tmp_path, "\n".join([*lines, ""]))
    told = imported(file)
    assert told.exit_code == 0
    assert "5 fixes outside the map are at one and the same point" in told.stderr
    assert marker not in told.output
    told = imported(file, "--outside", "drop", "--gaps", "allow", "--replace")
    assert told.exit_code == 0
    assert "same point" not in told.stderr


def test_digits_of_other_scripts_are_bad_rows(tmp_path: Path) -> None:
    arabic = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    lines = text_of(TIMES).split()
    lines[2] = lines[2].translate(arabic)
    time, rest = lines[4].split(",", 1)
    lines[4] = f"{time},{rest.translate(arabic)}"
    lines[6] = lines[6].replace("Z,", ".٥Z,")
    report = datasets.load_tracks(file_of(tmp_path, "\n".join([*lines, ""]))).report
    assert (report.rows_kept, report.rows_bad) == (9, 3)


def test_feeds_of_bikes_and_scooters(tmp_path: Path) -> None:
    gbfs, mds = tmp_path / "gbfs", tmp_path / "mds"
    gbfs.mkdir()
    mds.mkdir()
    for number, (time, north, east) in enumerate(FIXES):
        bikes = [{"bike_id": "ann", "lat": north, "lon": east}]
        feed = {"last_updated": int(time.timestamp()), "ttl": 60, "data": {"bikes": bikes}}
        file_of(gbfs, json.dumps(feed), f"{number:02}.json")
    table = datasets.load_tracks(gbfs, columns={"time": "last_updated"}).table
    assert table.rows() == [("ann", *fix) for fix in FIXES]
    points = [
        {**feature({"type": "Point", "coordinates": point}), "properties": {"timestamp": time}}
        for point, time in zip(POINTS, [(SECONDS + 300 * n) * 1000 for n in range(12)], strict=True)
    ]
    route = {"type": "FeatureCollection", "features": points}
    trips = {"version": "1.2", "data": {"trips": [{"device_id": "ann", "route": route}]}}
    file = file_of(mds, json.dumps(trips), "mds.json")
    assert datasets.load_tracks(file).table.rows() == [("ann", *fix) for fix in FIXES]


@pytest.mark.parametrize(
    ("kind", "other"),
    [(("--h3", 8, "--around", "52.5,13.4"), "--cell"), (("--places", "a.csv"), "--kilometres"),
     (("--places", "a.csv"), "--around"), (("--roads", "a.csv"), "--h3")],
)  # fmt: skip
def test_what_a_kind_of_map_does_not_have_is_refused(
    tmp_path: Path, kind: tuple[object, ...], other: str
) -> None:
    given = "52.5,13.4" if other == "--around" else 1
    told = run("grid", *kind, other, given, "-o", tmp_path / "town")
    assert told.exit_code == 2
    assert f"{kind[0]} must stand without {other}" in told.stderr
    assert not (tmp_path / "town").exists()


# Letters beside degrees, where no import has read them


@pytest.mark.parametrize("command", ["learn", "release", "evaluate"])
@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("ns", "ew"), 1),
        (("latitude_ref", "lon direction"), 1),
        (("a", "b"), 2),
        (("hemi", "b"), 2),
    ],
)
def test_letters_beside_degrees_are_refused_where_they_are_not_read(
    tmp_path: Path, command: str, names: tuple[str, str], line: int
) -> None:
    town = tmp_path / "town"
    assert imported(file_of(tmp_path, text_of(TIMES))).exit_code == 0
    toml = town / "scenario.toml"
    assert run("learn", town / "trips.csv", "--scenario", toml, "--force").exit_code == 0
    rows = [f"ann,{time},{a},S,{b},E" for time, (_, a, b) in zip(TIMES, FIXES, strict=True)]
    header = f"person,time,lat,{names[0]},lon,{names[1]}"
    south = file_of(tmp_path, "\n".join([header, *rows, ""]), "south.csv")
    given: dict[str, tuple[object, ...]] = {
        "learn": (south, "--scenario", toml, "-o", tmp_path / "new"),
        "release": (toml, south, "-o", tmp_path / "new"),
        "evaluate": (toml, south),
    }
    told = run(command, *given[command])
    assert told.exit_code == 2
    assert f"south.csv:{line}: header must have degrees with a sign, got letters" in told.stderr
    assert "dphmm import --map" in told.stderr
    assert not (tmp_path / "new").exists()
    rows = [row.split(",")[:3] + row.split(",")[4:5] for row in rows]
    plain = "\n".join(["person,time,lat,lon", *(",".join(row) for row in rows), ""])
    south.write_text(plain)
    assert run(command, *given[command], *(["--force"] if command == "learn" else [])).exit_code < 2


def test_tables_of_something_else_say_what_is_wrong() -> None:
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy(*zip(*POINTS, strict=True))
    frame = geopandas.GeoDataFrame({"time": TIMES}, geometry=points, crs=4326)
    with pytest.raises(ArgumentError, match="trips must have points for places, got Polygon"):
        datasets.load_tracks(frame.set_geometry(points.buffer(0.1)))
    twice = frame.drop(columns="geometry").assign(lat=52.5, lon=13.4)[["time", "lat", "lon", "lat"]]
    with pytest.raises(ArgumentError, match="trips must have each column once, got 'lat' more"):
        datasets.load_tracks(twice)
    columns = [pl.Series(TIMES), *2 * [pl.Series([point[0] for point in POINTS])]]
    arrow = pytest.importorskip("pyarrow").table(columns, names=["time", "lat", "lon"])
    assert len(datasets.load_tracks(arrow).table) == 12
    with pytest.raises(ArgumentError, match="trips must have each column once, got 'lat' more"):
        datasets.load_tracks(arrow.rename_columns(["time", "lat", "lat"]))
