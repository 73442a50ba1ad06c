"""Tracks of every kind: what is found from names and values, and that all kinds say the same."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError, DataError
from dphmm.tables import datasets

START = datetime(2008, 5, 17, 10, tzinfo=UTC)
ROWS = [
    ("ann", START + timedelta(minutes=number), 37.75 + number / 1000, -122.4 - number / 500)
    for number in range(4)
]
UNIX = int(START.timestamp())


def gpx(rows: list[Any]) -> str:
    points = "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><time>{time:%Y-%m-%dT%H:%M:%SZ}</time></trkpt>'
        for _, time, lat, lon in rows
    )
    return f'<gpx version="1.1"><trk><trkseg>{points}</trkseg></trk></gpx>'


def features(rows: list[Any], *, line: bool) -> str:
    times = [f"{time:%Y-%m-%dT%H:%M:%SZ}" for _, time, _, _ in rows]
    places = [[lon, lat, 12.0] for _, _, lat, lon in rows]
    found = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": place},
            "properties": {"user": "ann", "time": time},
        }
        for place, time in zip(places, times, strict=True)
    ]
    if line:
        found = [
            {
                "type": "Feature",
                "geometry": {"type": "LineString", "coordinates": places},
                "properties": {"user": "ann", "coordTimes": times},
            }
        ]
    return json.dumps({"type": "FeatureCollection", "features": found})


def lines(form: str) -> str:
    return "".join(
        form.format(time=time, lat=lat, lon=lon, unix=int(time.timestamp())) + "\n"
        for _, time, lat, lon in reversed(ROWS)
    )


FILES = {
    "headerless, as taxis have it": ("ann.txt", lines("{lat} {lon} 0 {unix}")),
    "the other way round": ("ann.txt", lines("{unix}\t{lon}\t{lat}")),
    "with a person": ("a.csv", lines("ann,{time:%Y-%m-%d %H:%M:%S}Z,{lon},{lat}")),
    "a date and a time of day": ("ann.csv", lines("{lat};{lon};{time:%Y-%m-%d};{time:%H:%M:%S}Z")),
    "milliseconds": ("ann.csv", "lat,lng,ts\n" + lines("{lat},{lon},{unix}000")),
    "seconds with a fraction": ("ann.csv", "lat,lng,ts\n" + lines("{lat},{lon},{unix}.0")),
    "two columns of time": (
        "ann.tsv",
        "date\ttime\tlat\tlon\n" + lines("{time:%Y-%m-%d}\t{time:%H:%M}Z\t{lat}\t{lon}"),
    ),
    "JSON lines": ("a.jsonl", lines('{{"id":"ann","timestamp":{unix},"lat":{lat},"lon":{lon}}}')),
    "JSON lines in a JSON file": ("ann.json", lines('{{"ts":{unix},"lat":"{lat}","lon":{lon}}}')),
    "a list of objects": (
        "ann.json",
        json.dumps([{"ts": int(t.timestamp()), "lat": a, "lon": o} for _, t, a, o in ROWS]),
    ),
    "GeoJSON points": ("a.geojson", features(ROWS, line=False)),
    "a GeoJSON line": ("a.geojson", features(ROWS, line=True)),
    "GPX": ("ann.gpx", gpx(ROWS)),
    "PLT": (
        "ann.plt",
        "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,x,0,0,2,8421376\n0\n"
        + lines("{lat},{lon},0,492,39744.12,{time:%Y-%m-%d},{time:%H:%M:%S}"),
    ),
}


# Laws


@pytest.mark.parametrize("packed", ["plain", "gzip", "zip"])
@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_gives_the_same_tracks(kind: str, packed: str, tmp_path: Path) -> None:
    name, text = FILES[kind]
    path = tmp_path / name
    if packed == "plain":
        path.write_text(text)
    elif packed == "gzip":
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path = tmp_path / "all.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"data/{name}", text)
            archive.writestr("__MACOSX/._junk.csv", b"\0")
            archive.writestr("data/read.me", b"nothing")
    table, report = datasets.load_tracks(path)
    assert table.rows() == ROWS
    assert (report.rows_bad, len(report.damaged), sum(report.taken.values())) == (0, 0, 1)


@pytest.mark.parametrize("early", [True, False], ids=["first line", "far into the file"])
def test_names_that_are_no_utf_8_stay_different_people(tmp_path: Path, early: bool) -> None:
    # A file of an office program: "M\xfcller" and "M\xf6ller" must not become one person.
    rows = [
        f"{name};2024-05-01 00:0{n}:00;48,1;11,5" for n, name in enumerate(("Müller", "Möller"))
    ]
    filled = [] if early else [f"ann;2024-05-02 00:00:{n % 60:02};48,1;11,5" for n in range(40_000)]
    text = "\n".join(
        ["Fahrer;Zeit;Breite;Länge" if early else "Fahrer;Zeit;Breite;L", *filled, *rows]
    )
    path = tmp_path / "office.csv"
    path.write_bytes(text.encode("cp1252"))
    columns = {"person": "Fahrer", "time": "Zeit", "latitude": "Breite"}
    columns["longitude"] = "Länge" if early else "L"
    table, _ = datasets.load_tracks(path, columns=columns, time_zone="UTC")
    assert set(table["person"]) - {"ann"} == {"Müller", "Möller"}
    # Bytes that the usual code page lacks print as nothing: nobody else, but no name either.
    path.write_bytes(b"person,time,lat,lon\n" + b"".join(
        b"a" + bytes([odd]) + b",2024-05-01T00:00:00Z,48.1,11.5\n" for odd in (0x81, 0x8D, 0xFF)
    ))  # fmt: skip
    table, report = datasets.load_tracks(path)
    assert table["person"].to_list() == ["aÿ"]
    assert report.problems == {"person must be 1 to 200 printable characters": 2}


@pytest.mark.parametrize("how", ["polars", "lazy", "pandas", "arrow", "geopandas", "parquet"])
def test_every_kind_of_table_gives_the_same_tracks(how: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS, schema=["uid", "datetime", "lat", "lon"], orient="row")
    if how == "polars":
        given: Any = frame
    elif how == "lazy":
        given = frame.lazy()
    elif how == "arrow":
        pytest.importorskip("pyarrow")
        given = frame.to_arrow()
    elif how == "parquet":
        given = tmp_path / "a.parquet"
        frame.write_parquet(given)
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        given = pandas.DataFrame(ROWS, columns=["uid", "datetime", "lat", "lon"])
    if how == "geopandas":
        geopandas = pytest.importorskip("geopandas")
        points = geopandas.points_from_xy(given["lon"], given["lat"], crs=4326)
        given = geopandas.GeoDataFrame(given[["uid", "datetime"]], geometry=points)
        given = given.to_crs(32610)
    table, _ = datasets.load_tracks(given)
    assert [row[:2] for row in table.rows()] == [row[:2] for row in ROWS]
    for row, expected in zip(table.rows(), ROWS, strict=True):
        assert row[2:] == pytest.approx(expected[2:], abs=1e-9)


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_verbs_take_other_tables_and_give_them_back(kind: str) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pl.DataFrame(ROWS, schema=["person", "time", "latitude", "longitude"], orient="row")
    given = table.to_pandas() if kind == "pandas" else table.to_arrow()
    steps = datasets.resample(given, "2 min")
    assert type(steps).__module__.partition(".")[0] == kind
    grid = datasets.Grid.rectangle(9, 9, 1.0)
    states = datasets.to_states(steps, grid, datasets.LocalPlane(37.75, -122.4))
    assert type(states).__module__.partition(".")[0] == kind
    (trip,) = datasets.split_trips(states, max_gap="2 min")
    assert len(trip) == 2


@given(
    rows=st.lists(
        st.tuples(st.floats(-89, 89), st.floats(-179, 179), st.integers(2 * 10**8, 4 * 10**9)),
        min_size=1,
        max_size=20,
        unique_by=lambda row: row[2],
    ),
    order=st.permutations(["latitude", "longitude", "time", "note"]),
)
def test_columns_that_are_told_are_taken_wherever_they_stand(
    rows: list[tuple[float, float, int]], order: list[str]
) -> None:
    cells = [
        {"latitude": repr(a), "longitude": repr(o), "time": str(t), "note": "7"} for a, o, t in rows
    ]
    columns = {name: order.index(name) + 1 for name in ("latitude", "longitude", "time")}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ann.txt"
        path.write_text("".join(" ".join(row[name] for name in order) + "\n" for row in cells))
        table, report = datasets.load_tracks(path, columns=columns, time="unix")
    found = table.select("latitude", "longitude", "time").rows()
    assert [(a, o, int(t.timestamp())) for a, o, t in found] == sorted(rows, key=lambda r: r[2])
    assert report.rows_bad == 0


# What is understood


def test_a_form_of_dates_may_be_told_and_needs_a_zone(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    path.write_text("date,time,lat,lon\n17/05/2008,12:00,37.75,-122.4\n18/13/2008,x,1,2\n")
    told = {"time": "%d/%m/%Y %H:%M"}
    with pytest.raises(DataError, match=r"^ann.csv:2: time must have a zone"):
        datasets.load_tracks(path, **told)
    table, report = datasets.load_tracks(path, time_zone="Europe/Berlin", **told)
    assert table.rows() == [ROWS[0]]
    assert [place.line for place in report.first_bad] == [3]
    zoned = tmp_path / "bob.csv"
    zoned.write_text("when,lat,lon\n17.05.2008 12:00 +0200,37.75,-122.4\n")
    form = "%d.%m.%Y %H:%M %z"
    table, _ = datasets.load_tracks(zoned, columns={"time": "when"}, time=form)
    assert table["time"].to_list() == [START]
    with pytest.raises(
        ArgumentError, match="time must be unix, unix-ms, unix-us, unix-ns, iso or a form"
    ):
        datasets.load_tracks(path, time="fast")


def test_numbers_that_are_no_seconds_stay_numbers(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    path.write_text("time,lat,lon\n1,1,2\n2,1,2\n")
    assert datasets.load_tracks(path).table["time"].to_list() == [1, 2]
    as_told = datasets.load_tracks(path, time="unix").table["time"].to_list()
    assert as_told == [datetime(1970, 1, 1, 0, 0, s, tzinfo=UTC) for s in (1, 2)]
    path.write_text("time,lat,lon\n1e300,1,2\nnan,1,2\n-5,1,2\n9,1,2\n")
    assert len(datasets.load_tracks(path, time="unix").report.first_bad) == 3


def test_what_cannot_be_seen_from_values_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "ann.txt"
    path.write_text("1 2 3\n4 5 6\n")
    with pytest.raises(DataError, match=r"^ann.txt:1: columns must be named .* it has 3$"):
        datasets.load_tracks(path)
    columns = {"x": 1, "y": 2, "time": 3}
    assert datasets.load_tracks(path, columns=columns).table.rows() == [
        ("ann", 3, 1.0, 2.0),
        ("ann", 6, 4.0, 5.0),
    ]
    with pytest.raises(DataError, match=r"^ann.txt:1: header must have the column '4'"):
        datasets.load_tracks(path, columns={**columns, "time": 4})


def test_columns_that_nobody_uses_are_named_so_that_a_person_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("guest,time,lat,lon\nann,1211000000,48.1,11.5\nbob,1211000000,48.2,11.6\n")
    _, report = datasets.load_tracks(path)
    assert list(report.taken) == [
        "person = the file, time = time, latitude = lat, longitude = lon; times are unix; "
        "not used: guest"
    ]
    for name in ("device_id", "Vehicle", "MMSI"):
        path.write_text(path.read_text().replace(path.read_text().split(",")[0], name, 1))
        assert datasets.load_tracks(path).table["person"].to_list() == ["ann", "bob"]


def test_objects_within_objects_are_columns_but_the_name_of_a_place_is_nobody(
    tmp_path: Path,
) -> None:
    row = {"ts": 1211000000000, "coords": {"lat": 48.1, "lng": 11.5}, "place": {"name": "park"}}
    for name, text in (("a.jsonl", json.dumps(row) + "\n"), ("a.json", json.dumps([row]))):
        (tmp_path / name).write_text(text)
        table, report = datasets.load_tracks(tmp_path / name)
        assert table.select("person", "latitude", "longitude").row(0) == ("a", 48.1, 11.5)
        assert "latitude = coords.lat" in next(iter(report.taken))
        assert "not used: place.name" in next(iter(report.taken))
        columns = {"person": "place.name", "latitude": "coords.lat"}
        table, _ = datasets.load_tracks(tmp_path / name, columns=columns)
        assert table["person"].to_list() == ["park"]


def test_degrees_may_have_a_decimal_comma_and_metres_may_not(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time;lat;lon\n1211000000;-48,125;11,5\n1211000060;1.234,5;11,5\n")
    table, report = datasets.load_tracks(path)
    assert table.select("latitude", "longitude").rows() == [(-48.125, 11.5)]
    assert report.rows_bad == 1
    path.write_text("1211000000;-48,125;11,5\n1211000060;-48,126;11,6\n")
    assert datasets.load_tracks(path).table["longitude"].to_list() == [11.5, 11.6]
    path.write_text("time;x;y\n1211000000;1,234;5\n")
    assert datasets.load_tracks(path).report.problems == {"x must be a finite number": 1}


def test_a_separator_within_quotation_marks_is_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    names = ["x,y", "x y", 'x "," y', "xy", "a\x1fb"]
    with path.open("w", newline="") as file:
        written = csv.writer(file)
        written.writerow(["person", "time", "x", "y"])
        written.writerows([name, 1_211_000_000 + n, 1.5, 2] for n, name in enumerate(names))
    table, report = datasets.load_tracks(path)
    assert table["person"].to_list() == ['x "," y', "x y", "x,y", "xy"]
    assert (report.rows_kept, report.rows_read) == (4, 5), "a control character is no name"


def test_a_header_says_what_it_lacks(tmp_path: Path) -> None:
    for head, lacks in (
        ("when,lat,lon", "a time"),
        ("time,lat", "latitude and longitude, x and y, or state"),
        ("when,lat", "a time and latitude and longitude, x and y, or state"),
    ):
        (tmp_path / "a.csv").write_text(f"{head}\n")
        with pytest.raises(DataError, match=rf"^a.csv:1: header must have {lacks}; say.*--column"):
            datasets.load_tracks(tmp_path / "a.csv")


def test_files_among_others_that_are_no_tracks_are_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "ann.txt").write_text(lines("{lat} {lon} 0 {unix}"))
    (tmp_path / "README.txt").write_text("These are the tracks of one taxi.\n")
    table, report = datasets.load_tracks(tmp_path)
    assert table.rows() == ROWS
    assert [(place.file, place.line) for place in report.damaged] == [("README.txt", 1)]
    (tmp_path / "ann.txt").unlink()
    with pytest.raises(DataError, match=r"^README.txt:1: header must have a time"):
        datasets.load_tracks(tmp_path)


def test_people_are_told_apart_by_file_or_by_folder(tmp_path: Path) -> None:
    for who in ("ann", "bob"):
        for day in ("monday", "tuesday"):
            path = tmp_path / who / f"{day}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(lines("{lat} {lon} 0 {unix}"))

    def people(**options: Any) -> list[str]:
        return datasets.load_tracks(tmp_path, **options).table["person"].unique().sort().to_list()

    assert people(owner="folder") == ["ann", "bob"]
    assert people() == ["ann/monday", "ann/tuesday", "bob/monday", "bob/tuesday"]
    assert people(person="eve") == ["eve"]
    assert datasets.load_tracks(str(tmp_path / "ann" / "*.txt")).table["person"].n_unique() == 2
    with pytest.raises(ArgumentError, match="owner must be file or folder, got 'name'"):
        datasets.load_tracks(tmp_path, owner="name")
    with pytest.raises(DataError, match="path must hold tracks"):
        datasets.load_tracks(str(tmp_path / "*.doc"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.geojson", '{"type": "FeatureCollection", "features": []}', "points with their times"),
        ("a.json", "[1, 2]", "points with their times"),
        ("a.parquet", "PAR1", "readable Parquet file"),
    ],
)
def test_a_file_without_points_is_reported(
    name: str, text: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    table, report = datasets.load_tracks(tmp_path / name)
    assert len(table) == 0
    assert problem in report.damaged[0].problem


def test_steps_are_texts_for_dates_and_numbers_for_numbers() -> None:
    dates = pl.DataFrame(ROWS, schema=["person", "time", "latitude", "longitude"], orient="row")
    assert len(datasets.resample(dates, "5 min")) == 1
    for step in ("5 mins", "0 min", 5):
        with pytest.raises(ArgumentError, match="step must be"):
            datasets.resample(dates, step)
    with pytest.raises(ArgumentError, match="trips must be a file or a table"):
        datasets.resample(object(), "5 min")
    with pytest.raises(ArgumentError, match="step must be a positive integer for integer times"):
        datasets.resample(dates.with_columns(time=pl.lit(3)), "5 min")
