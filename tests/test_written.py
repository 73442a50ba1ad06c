"""Tracks as programs and people write them: letters, metres, local hours, preambles, line ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dphmm.errors import DataError
from dphmm.tables import datasets
from tests.scenarios import run

NOON = datetime(2024, 3, 5, 12, tzinfo=UTC)
Row = Callable[[str, float, float], str]


def iso(minutes: int) -> str:
    return (NOON + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def file_of(folder: Path, header: str, row: Row, *, south: float = 0, west: float = 0) -> Path:
    """Twelve fixes five minutes apart, from 52.5, 13.4 or so on."""
    rows = [row(iso(5 * n), 52.5 + n / 1000 - south, 13.4 + n / 1000 - west) for n in range(12)]
    file = folder / "a.csv"
    file.write_text("\n".join([header, *rows, ""]))
    return file


def places(file: Path, **options: Any) -> tuple[str, list[list[float]]]:
    """What a file was taken for, and where its first two rows are."""
    table, report = datasets.load_tracks(file, **options)
    assert report.rows_bad == 0, str(report)
    (taken,) = report.taken
    rows = table.select("latitude", "longitude").head(2).rows()
    return taken, [[round(number, 6) for number in row] for row in rows]


def imported(file: Path, *options: object) -> Any:
    return run("import", file, *options, "--around", "52.5,13.4", "--replace", "-o",
               file.parent / "town")  # fmt: skip


def parts(degrees: float) -> tuple[int, int, float]:
    seconds = round(abs(degrees) * 3600, 2)
    return int(seconds // 3600), int(seconds % 3600 // 60), seconds % 60


# Letters, minutes and seconds


@pytest.mark.parametrize(
    "row",
    [
        lambda time, a, b: f"ann;{time};{-a:.4f} S;{-b:.4f}W",
        lambda time, a, b: f"ann;{time};s{-a:.4f};W {-b:.4f}".replace(".", ","),
        lambda time, a, b: "ann;{};{}°{:02}'{:05.2f}\"S;{}°{:02}'{:05.2f}\"W".format(
            time, *parts(a), *parts(b)
        ),
        lambda time, a, b: f"ann;{time};{int(-a)}° {-a % 1 * 60:.4f}' S;{-b:.4f}° W",
        lambda time, a, b: "ann;{};-{} {} {:.2f};-{}:{}:{:.2f}".format(time, *parts(a), *parts(b)),
        lambda time, a, b: f"ann;{time};\N{MINUS SIGN}{-a:.4f};\N{MINUS SIGN}{-b:.4f}",
    ],
    ids=["behind", "before", "seconds", "minutes", "no letters", "a minus of its own"],
)
def test_degrees_are_read_as_people_write_them(row: Row, tmp_path: Path) -> None:
    file = file_of(tmp_path, "id;time;lat;lon", row, south=85.9, west=84.0)
    taken, found = places(file)
    assert found == [[-33.4, -70.6], [-33.399, -70.599]]
    lettered = "S" in file.read_text().upper().partition("\n")[2]
    assert ("letters say which half of the Earth" in taken) == lettered


@pytest.mark.parametrize(
    "header",
    [
        *("id,time,lat,N/S,lon,E/W", "id,time,lat,hemi,lon,hemi", ""),
        "id,time,latitude,latitude_ref,longitude,longitude_ref",
        "id,time,lat,Lat Direction,lng,lng-dir",
    ],
    ids=str,
)
def test_letters_may_have_columns_of_their_own(header: str, tmp_path: Path) -> None:
    # Without them this is a wrong map on the other half of the Earth, without a word.
    row: Row = lambda time, a, b: f"ann,{time},{-a:.4f},S,{-b:.4f},W"  # noqa: E731
    file = file_of(tmp_path, header, row, south=85.9, west=84.0)
    assert places(file)[1] == [[-33.4, -70.6], [-33.399, -70.599]]


def test_letters_of_objects_are_known_by_their_names(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    photo = {"id": "ann", "time": iso(0), "lat": 33.4, "GPSLatitudeRef": "South", "lon": 70.6,
             "GPSLongitudeRef": "west"}  # fmt: skip
    file.write_text(json.dumps(photo) + "\n")
    assert places(file)[1] == [[-33.4, -70.6]]


@pytest.mark.parametrize(
    ("first", "second"),
    [("33.4 S", "33.4"), ("33.4", "33.4S"), ("33.4S", "-33.4")],
)
def test_a_letter_is_in_all_rows_or_in_none(first: str, second: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"id,time,lat,lon\nann,{iso(0)},{first},13.4\nann,{iso(5)},{second},13.4\n")
    with pytest.raises(
        DataError, match=r"a.csv:[23]: latitude must have a letter \(N or S\) in all"
    ):
        datasets.load_tracks(file)


def test_a_line_that_was_cut_is_a_bad_row_and_not_a_bad_file(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [f"ann;{iso(n)};33.4 S;13.4 E" for n in (0, 5)]
    file.write_text("\n".join(["id;time;lat;lon", *rows, f"ann;{iso(10)};33.4 S;13."]))
    table, report = datasets.load_tracks(file)
    assert (len(table), report.rows_bad) == (2, 1)


@pytest.mark.parametrize(
    "wrong", ["-33.4 S", "33.4 E", "N 33.4 S", "33 60 0 S", "33.5 30 S", "33 30.5 10 S", "5230.5 S"]
)
def test_degrees_that_say_two_things_are_bad(wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"id;time;lat;lon\nann;{iso(0)};{wrong};13.4\nann;{iso(5)};33.4 S;13.4\n")
    table, report = datasets.load_tracks(file)
    assert table["latitude"].to_list() == [-33.4]
    assert [str(bad) for bad in report.first_bad] == [
        "a.csv:2: latitude must be a number in -90..90"
    ]


def test_longitudes_may_go_to_360(tmp_path: Path) -> None:
    row: Row = lambda time, a, b: f"ann,{time},{a:.4f},{b:.4f}"  # noqa: E731
    taken, found = places(file_of(tmp_path, "id,time,lat,lon", row, south=70, west=-276))
    assert found == [[-17.5, -70.6], [-17.499, -70.599]]
    assert "longitudes go to 360" in taken
    file = file_of(tmp_path, "id,time,lat,lon", row, south=70, west=-166.595)
    assert places(file)[1] == [[-17.5, 179.995], [-17.499, 179.996]]
    table, _ = datasets.load_tracks(file)
    assert round(table["longitude"][-1], 3) == -179.994, "nobody goes around the Earth"
    file.write_text(file.read_text() + f"ann,{iso(60)},-17.4,-120.0\n")
    assert datasets.load_tracks(file).report.rows_bad == 6, "some are negative, so 181 is a fault"


# Metres


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id;time;easting;northing", "ann;{};391000;5820000"),
        ("id;time;UTM_E;UTM_N;zone", "ann;{};391000;5820000;33U"),
        ("id;time;lat;lon", "ann;{};5820000.5;391000.5"),
        ("id;time;geometry", "ann;{};POINT (1491000 6891000)"),
        ("id;time;x;y", "ann;{};391000;5820000"),
        ("id;time;lat;lon", "ann;{};5230.1234;01324.5678"),
    ],
)
def test_metres_of_a_map_are_no_degrees(header: str, row: str, tmp_path: Path) -> None:
    file = file_of(tmp_path, header, lambda time, a, b: row.format(time))
    result = imported(file)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert "convert metres of a map to degrees (EPSG:4326) first" in last
    assert not (tmp_path / "town").exists()


# Times


def local(folder: Path, first: datetime, rows: int = 24) -> Path:
    file = folder / "a.csv"
    lines = [
        f"ann,{(first + timedelta(minutes=5 * n)).isoformat()},{52.5 + n / 1e4},13.4"
        for n in range(rows)
    ]
    file.write_text("\n".join(["id,time,lat,lon", *lines, ""]))
    return file


@pytest.mark.parametrize(
    ("first", "fault"),
    [
        (datetime(2024, 10, 27, 1, 30), "hour that clocks had twice: write its offset, such as"),
        (datetime(2024, 3, 31, 1, 30), "hour that clocks skipped"),
    ],
)
def test_hours_that_clocks_had_twice_or_skipped_are_named(
    first: datetime, fault: str, tmp_path: Path
) -> None:
    file = local(tmp_path, first)
    result = imported(file, "--zone", "Europe/Berlin")
    assert result.exit_code == 0
    assert f"12 rows: time must not lie in the {fault}" in result.output
    quiet = imported(file, "--zone", "Europe/Berlin", "-q")
    told = "note: 12 of 24 rows were not kept and 0 files are damaged: mostly: time must not lie in"
    assert f"{told} the {fault}" in quiet.stderr


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ("2024-03-04T24:00:00Z", {}),
        ("2024/03/05 00:00", {"time_zone": "UTC"}),
        ("2024-03-05T01:00:00+01:00[Europe/Berlin]", {}),
        ("1.7095968e9", {}),
        ("202403050000", {"time_zone": "UTC"}),
        ("20240305000000", {"time_zone": "UTC"}),
        ("202403050100", {"time_zone": "Europe/Berlin"}),
    ],
)
def test_a_midnight_is_read_however_it_is_written(
    written: str, options: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    # In the same form, but full of digits.
    other = "1.709596801e9" if "e9" in written else written
    file.write_text(f"id,time,lat,lon\nann,{written},52.5,13.4\nbob,{other},52.5,13.4\n")
    table, _ = datasets.load_tracks(file, **options)
    assert table["time"][0] == NOON - timedelta(hours=12)


def test_times_that_an_office_program_rounded_are_no_times(tmp_path: Path) -> None:
    # Otherwise a whole day is one moment.
    file = file_of(tmp_path, "id,time,lat,lon", lambda time, a, b: f"ann,1.70964E+09,{a:.4f},{b}")
    result = imported(file)
    assert result.exit_code == 2
    assert "time must be written in full, not rounded before an exponent" in result.stderr


def test_somebody_with_one_step_is_no_track(tmp_path: Path) -> None:
    file = file_of(tmp_path, "id,time,lat,lon", lambda time, a, b: f"ann,{iso(0)},{a:.4f},{b}")
    assert "tracks must have several steps of somebody, got 1 person" in imported(file).stderr
    assert imported(file, "--gaps", "allow").exit_code == 0


# One column and two meanings


def test_a_name_that_a_header_has_twice_is_asked_about(tmp_path: Path) -> None:
    row: Row = lambda time, a, b: f"ann,{time},{a + 9:.4f},{b + 9:.4f},{a:.4f},{b:.4f}"  # noqa: E731
    file = file_of(tmp_path, "id,time,lat,lon,Lat [deg],lon", row)
    with pytest.raises(DataError, match=r"must have 'lat' once, got it 2 times; .* latitude=3, by"):
        datasets.load_tracks(file)
    _, found = places(file, columns={"latitude": 5, "longitude": 6})
    assert found[0] == [52.5, 13.4], "a number is that column and not the first of its name"


def test_a_column_is_one_thing(tmp_path: Path) -> None:
    file = file_of(tmp_path, "id,time,lat,lon", lambda time, a, b: f"ann,{time},{a:.4f},{b:.4f}")
    with pytest.raises(DataError, match="'lat' must be one thing, got latitude and longitude"):
        datasets.load_tracks(file, columns={"latitude": "lat", "longitude": 3})


# Several people in order of time


@pytest.mark.parametrize("seconds", [0, 20, 150])
def test_people_who_take_turns_are_not_one_person(seconds: int, tmp_path: Path) -> None:
    rows = [
        f"{who},{(NOON + timedelta(seconds=300 * n + late))},{52.5 + n / 2000:.5f},{where},80"
        for n in range(30)
        for who, late, where in (("a", 0, 13.4), ("b", seconds, 13.45))
    ]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["watch,time,lat,lon,heart", *rows, ""]))
    with pytest.raises(DataError, match=r"several tracks .* got 2; .* such as person=watch, by"):
        datasets.load_tracks(file)
    assert len(datasets.load_tracks(file, person="ann").table) == 60
    assert len(datasets.load_tracks(file, owner="file").table) == 60, "whoever says it is believed"
    walk = [row.replace("13.45", "13.4") for row in rows]
    file.write_text("\n".join(["mode,time,lat,lon,heart", *walk, ""]))
    assert len(datasets.load_tracks(file).table) == 60, "one person who walks and runs by turns"
    trips = [f"{n // 6}{row[1:]}" for n, row in enumerate(rows[::2])]
    file.write_text("\n".join(["trip,time,lat,lon,heart", *trips, ""]))
    assert len(datasets.load_tracks(file).table) == 30, "trips do not take turns"


def test_home_and_office_are_not_two_people(tmp_path: Path) -> None:
    rows = [
        f"{place},{NOON + timedelta(hours=8 * n)},{where},13.4"
        for n, (place, where) in enumerate([("home", 52.5), ("office", 52.55)] * 20)
    ]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["place,time,lat,lon", *rows, ""]))
    assert len(datasets.load_tracks(file).table) == 40


def test_columns_that_hold_lists_or_bytes_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    places = {"lat": [52.5, 52.6], "lon": [13.4, 13.5], "box": [[1.0], [2.0]], "raw": [b"a", b"b"]}
    pl.DataFrame({"time": [NOON, NOON + timedelta(minutes=5)], **places}).write_parquet(file)
    assert len(datasets.load_tracks(file).table) == 2


def gpx(*tracks: tuple[str, float]) -> str:
    return "<gpx>" + "".join(
        f"<trk><name>{who}</name><trkseg>"
        + "".join(
            f'<trkpt lat="{52.5 + n / 2000:.5f}" lon="{where}"><name>x</name>'
            f"<time>{iso(5 * n)}</time></trkpt>"
            for n in range(30)
        )
        + "</trkseg></trk>"
        for who, where in tracks
    ) + "</gpx>"  # fmt: skip


def test_tracks_of_a_gpx_file_at_the_same_time_are_several_people(tmp_path: Path) -> None:
    file = tmp_path / "a.gpx"
    file.write_text(gpx(("ann", 13.4), ("bob", 13.45)))
    with pytest.raises(DataError, match=r"several tracks .* got 2; .* such as person=track, by"):
        datasets.load_tracks(file)
    table, _ = datasets.load_tracks(file, columns={"person": "track"})
    assert table["person"].unique().sort().to_list() == ["ann", "bob"]
    assert datasets.load_tracks(file, person="ann").table["person"].n_unique() == 1
    file.write_text(gpx(("ann", 13.4)))
    (taken,) = datasets.load_tracks(file).report.taken
    assert "track" not in taken


# Files


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: text.replace("\n", "\r", 3).replace("\n", "\r\n", 4).encode(),
        lambda text: ("sep=;\n" + text.replace(",", ";")).encode(),
        lambda text: ("# Logger 3.1\n# 2024\nDevice: 7\n\n" + text).encode(),
    ],
    ids=["UTF-16", "UTF-16 the other way", "UTF-32", "three line ends", "sep=", "preamble"],
)
def test_bytes_and_lines_before_the_header_do_not_matter(
    encoded: Callable[[str], bytes], tmp_path: Path
) -> None:
    file = file_of(tmp_path, "id,time,lat,lon", lambda time, a, b: f"ann,{time},{a:.4f},{b:.4f}")
    file.write_bytes(encoded(file.read_text()))
    table, report = datasets.load_tracks(file)
    assert (len(table), report.rows_read) == (12, 12)


def test_files_that_are_not_read_are_named(tmp_path: Path) -> None:
    row: Row = lambda time, a, b: f"ann,{time},{a:.4f},{b:.4f}"  # noqa: E731
    folder = file_of(tmp_path, "id,time,lat,lon", row).parent
    for name in ("b.kml", "c.KML", "README.md"):
        (folder / name).write_text("x")
    assert datasets.load_tracks(folder).report.doubts == {
        "not read, since .kml is no kind that is read": 2
    }


# Notes


@pytest.mark.parametrize("way", ["-q", "--json"])
def test_notes_are_there_for_the_quiet_and_for_programs(way: str, tmp_path: Path) -> None:
    row: Row = lambda time, a, b: f"ann,{time},{a:.4f},{b:.4f}"  # noqa: E731
    (folder := tmp_path / "tracks").mkdir()
    file = file_of(folder, "id,time,lat,lon", row)
    file.write_text(file.read_text() + "".join(f"ann,{iso(n)},52.5,13.45\n" for n in (0, 5)))
    (folder / "bad.csv.gz").write_bytes(b"\x1f\x8b\x08")
    for radius, found in (("100km", "so all look alike"), ("1m", "so no two are linked")):
        result = run("import", folder, way, "--around", "52.5,13.4", "--radius", radius,
                     "--replace", "-o", tmp_path / "town")  # fmt: skip
        assert result.exit_code == 0, result.output
        notes = [line for line in result.stderr.splitlines() if line.startswith("dphmm: note:")]
        assert [note for note in notes if found in note]
        assert [note for note in notes if "2 moments have one person in two places" in note]
        assert [note for note in notes if "1 files are damaged: bad.csv.gz" in note]
