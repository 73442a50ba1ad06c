"""The published numbers, the laws of damaged files, and a slow reader as the oracle."""

from __future__ import annotations

import gzip
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import ArgumentError, DataError
from dphmm.tables import datasets
from dphmm.tables.geo import Grid, LocalPlane

HEADER = [
    b"Geolife trajectory",
    b"WGS 84",
    b"Altitude is in Feet",
    b"Reserved 3",
    b"0,2,255,My Track,0,0,2,8421376",
    b"0",
]
START = datetime(2008, 10, 26, tzinfo=UTC)

Row = tuple[float, float, datetime]
rows = st.tuples(
    st.integers(-89_999_999, 89_999_999).map(lambda n: n / 1_000_000),
    st.integers(91_000_000, 179_999_999).map(lambda n: n / 1_000_000),
    st.integers(0, 10**8).map(lambda second: START + timedelta(seconds=second)),
)


def plt_line(row: Row) -> bytes:
    return f"{row[0]},{row[1]},0,492,39744.12,{row[2]:%Y-%m-%d,%H:%M:%S}".encode()


def gowalla_line(row: Row, person: int = 7) -> bytes:
    return f"{person}\t{row[2]:%Y-%m-%dT%H:%M:%SZ}\t{row[0]}\t{row[1]}\t420315".encode()


def csv_line(row: Row) -> bytes:
    return f"ann,{row[2]:%Y-%m-%dT%H:%M:%SZ},{row[0]},{row[1]}".encode()


def swapped(line: bytes, separator: bytes, first: int, second: int) -> bytes:
    fields = line.split(separator)
    fields[first], fields[second] = fields[second], fields[first]
    return separator.join(fields)


# Every way to spoil a line: the place of latitude, longitude and time, then the spoiling.
DAMAGES: list[Callable[[bytes, bytes, int], bytes]] = [
    lambda line, separator, at: line[:-1] if separator == b"," and at == 0 else line[:9],
    lambda line, separator, at: line.replace(separator, separator + b"\0", 1),
    lambda line, separator, at: line.replace(b".", b"\xff\xfe", 1),
    lambda line, separator, at: swapped(line, separator, at, at + 1),
    lambda line, separator, at: replaced(line, separator, at, b"400"),
    lambda line, separator, at: replaced(line, separator, at, b"nan"),
    lambda line, separator, at: replaced(line, separator, at, b"1e999"),
    lambda line, separator, at: replaced(line, separator, at + 1, b"-"),
    lambda line, separator, at: replaced(line, separator, at, b""),
    lambda line, separator, at: line + separator + b"1",
    lambda line, separator, at: b"\0" * len(line),
    lambda line, separator, at: b"\xf0\x28\x8c\x28",
    lambda line, separator, at: re.sub(rb"\d{4}-\d\d-", b"2008-13-", line),
    lambda line, separator, at: re.sub(rb"\d\d:\d\d:", b"25:61:", line),
]


def replaced(line: bytes, separator: bytes, index: int, value: bytes) -> bytes:
    fields = line.split(separator)
    fields[index] = value
    return separator.join(fields)


@st.composite
def spoiled(
    draw: st.DrawFn, line_of: Callable[[Row], bytes], separator: bytes, at: int, first: int
) -> tuple[list[bytes], list[Row], list[int]]:
    """Lines, the rows of the good ones, and the numbers (from `first`) of the bad ones."""
    lines, good, bad = [], [], []
    for row in draw(st.lists(rows, max_size=12, unique_by=lambda row: row[2])):
        if draw(st.integers(0, 5)) == 0:
            lines.append(draw(st.sampled_from([b"", b"  ", b"\t"])))
        if draw(st.booleans()):
            lines.append(line_of(row))
            good.append(row)
        else:
            damage = draw(st.sampled_from(DAMAGES))
            lines.append(damage(line_of(row), separator, at))
            bad.append(first + len(lines) - 1)
    return lines, good, bad


def check(loaded: datasets.Loaded, good: list[Row], bad: list[int]) -> None:
    table, report = loaded
    assert table.select("latitude", "longitude", "time").rows() == sorted(good, key=lambda r: r[2])
    assert [place.line for place in report.first_bad] == bad
    assert sum(report.problems.values()) == report.rows_bad == len(bad)
    assert report.rows_kept == len(good)
    assert not report.damaged


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Room for generated examples, each of which takes a new folder in it."""
    return tmp_path_factory.mktemp("scratch")


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# Paper


@pytest.mark.data
def test_geolife_has_its_published_rows_and_its_minutes(shared_data: Path) -> None:
    calls: list[tuple[int, int]] = []
    table, report = datasets.load_geolife(
        shared_data / "geolife" / "geolife_beijing_3rdring_plt_1min.zip",
        progress=lambda done, total: calls.append((done, total)),
    )
    assert report == datasets.LoadReport(5675, 218_009, 218_009)
    assert table["person"].n_unique() == 162
    assert calls[-1][0] == calls[-1][1]
    minutes = datasets.resample(table, timedelta(minutes=1))
    assert len(minutes) == 217_894  # the rows of the derived file
    latitude, longitude = minutes["latitude"], minutes["longitude"]
    plane = LocalPlane.around(latitude, longitude)
    grid = Grid.from_points(*plane.to_plane(latitude, longitude), 0.34)
    trips = datasets.split_trips(
        datasets.to_states(minutes, grid, plane), max_gap=timedelta(minutes=6)
    )
    # The 144 runs (62 people) of the data's own notes last 100 minutes; 89 have 100 fixes.
    lasting = [trip for trip in trips if trip.times[-1] - trip.times[0] >= 99 * 60]
    assert (len(lasting), len({trip.person for trip in lasting})) == (144, 62)
    cut = datasets.cut_trips(trips, 100)
    assert (len(cut), len({trip.person for trip in cut})) == (97, 49)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "count", "people", "active"),
    [
        ("gowalla_LA_checkins_sample.txt.gz", 49_033, 4_657, 64),
        ("gowalla_NYC_checkins.txt.gz", 138_957, 7_115, 249),
    ],
)
def test_gowalla_has_its_published_rows(
    shared_data: Path, name: str, count: int, people: int, active: int
) -> None:
    table, report = datasets.load_gowalla(shared_data / "gowalla" / name)
    assert report == datasets.LoadReport(1, count, count)
    per_person = table.group_by("person").len()["len"]
    assert len(per_person) == people
    assert (per_person >= 100).sum() == active
    assert (
        table.select((pl.col("time").diff().over("person") < pl.duration()).any()).item() is False
    )


# Laws


@given(content=spoiled(plt_line, b",", 0, 7), returns=st.booleans(), last=st.booleans())
def test_good_rows_of_a_plt_file_survive_and_bad_ones_are_located(
    scratch: Path, content: tuple[list[bytes], list[Row], list[int]], returns: bool, last: bool
) -> None:
    lines, good, bad = content
    end = b"\r\n" if returns else b"\n"
    folder = Path(tempfile.mkdtemp(dir=scratch))
    data = end.join([*HEADER, *lines]) + (end if last else b"")
    write(folder / "Data" / "042" / "Trajectory" / "1.plt", data)
    write(folder / "Data" / "043" / "Trajectory" / "2.plt", b"")
    loaded = datasets.load_geolife(folder)
    check(loaded, good, bad)
    assert set(loaded.table["person"]) <= {"042"}
    with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Data/042/Trajectory/1.plt", data)
    check(datasets.load_geolife(folder / "all.zip"), good, bad)


@given(content=spoiled(gowalla_line, b"\t", 2, 1), zipped=st.booleans())
def test_good_rows_of_a_gowalla_file_survive_and_bad_ones_are_located(
    scratch: Path, content: tuple[list[bytes], list[Row], list[int]], zipped: bool
) -> None:
    lines, good, bad = content
    data = b"\n".join(lines)
    path = write(
        Path(tempfile.mkdtemp(dir=scratch)) / "checkins", gzip.compress(data) if zipped else data
    )
    check(datasets.load_gowalla(path), good, bad)


@given(content=spoiled(csv_line, b",", 2, 2))
def test_good_rows_of_a_csv_file_survive_and_bad_ones_are_located(
    scratch: Path,
    content: tuple[list[bytes], list[Row], list[int]],
) -> None:
    lines, good, bad = content
    data = b"\n".join([b"User,Timestamp,lat,lon", *lines]) + b"\n"
    path = write(Path(tempfile.mkdtemp(dir=scratch)) / "tracks.csv", data)
    check(datasets.load_tracks(path), good, bad)


@given(row_list=st.lists(rows, min_size=1, max_size=40), cut=st.floats(0, 1))
def test_a_cut_gzip_file_keeps_every_whole_line_before_the_cut(
    scratch: Path, row_list: list[Row], cut: float
) -> None:
    packed = gzip.compress(b"".join(gowalla_line(row) + b"\n" for row in row_list))
    packed = packed[: 2 + int(cut * (len(packed) - 3))]
    path = write(Path(tempfile.mkdtemp(dir=scratch)) / "checkins.txt.gz", packed)
    table, report = datasets.load_gowalla(path)
    whole = zlib.decompressobj(31).decompress(packed)
    assert len(table) == whole.count(b"\n") == report.rows_kept
    assert report.rows_bad == (0 if whole.endswith(b"\n") or not whole else 1)
    assert [(place.file, place.line) for place in report.damaged] == [
        ("checkins.txt.gz", whole.count(b"\n") + 1)
    ]


@given(row_list=st.lists(rows, min_size=1, max_size=40))
def test_a_gzip_file_with_a_wrong_checksum_keeps_its_rows_and_is_reported(
    scratch: Path, row_list: list[Row]
) -> None:
    packed = bytearray(gzip.compress(b"".join(gowalla_line(row) + b"\n" for row in row_list)))
    packed[-8] ^= 1
    path = write(Path(tempfile.mkdtemp(dir=scratch)) / "checkins.txt.gz", bytes(packed))
    table, report = datasets.load_gowalla(path)
    assert len(table) == report.rows_read == len(row_list)
    assert [place.line for place in report.damaged] == [len(row_list) + 1]


def test_gzip_files_after_one_another_are_one(folder: Path) -> None:
    lines = [gowalla_line((1.0, 2.0, START + timedelta(days=day))) + b"\n" for day in range(2)]
    packed = b"".join(map(gzip.compress, lines)) + b"\0\0"
    table, report = datasets.load_gowalla(write(folder / "checkins.txt.gz", packed))
    assert len(table) == 2
    assert not report.damaged


@given(
    files=st.lists(st.lists(rows, min_size=1, max_size=5), min_size=2, max_size=4),
    data=st.data(),
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
)
def test_a_damaged_member_of_a_zip_harms_no_other(
    scratch: Path, files: list[list[Row]], data: st.DataObject, method: int
) -> None:
    path = Path(tempfile.mkdtemp(dir=scratch)) / "geolife.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for number, row_list in enumerate(files):
            lines = b"\r\n".join([*HEADER, *map(plt_line, row_list), b""])
            archive.writestr(f"Data/{number:03d}/Trajectory/1.plt", lines)
    info = zipfile.ZipFile(path).infolist()[0]
    content = bytearray(path.read_bytes())
    start = info.header_offset + 30 + len(info.filename)
    place = start + data.draw(st.integers(0, info.compress_size - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    table, report = datasets.load_geolife(path)
    if method == zipfile.ZIP_DEFLATED and not report.damaged:
        # The bits after the end of a deflated stream mean nothing: the member is whole.
        assert len(table) == sum(map(len, files))
        return
    assert [place.file for place in report.damaged] == ["Data/000/Trajectory/1.plt"]
    others = table.filter(pl.col("person") != "000")
    assert len(others) == sum(len(row_list) for row_list in files[1:])
    if method == zipfile.ZIP_STORED:  # one byte harms one line, or two if it parted them
        assert len(table) - len(others) >= len(files[0]) - 2


@given(people=st.lists(st.sampled_from("abc"), max_size=40), gap=st.integers(1, 5), data=st.data())
def test_trips_are_the_table_cut_at_long_gaps(
    people: list[str], gap: int, data: st.DataObject
) -> None:
    times = data.draw(st.lists(st.integers(0, 60), min_size=len(people), max_size=len(people)))
    table = pl.DataFrame(
        {"person": people, "time": times, "state": list(range(len(people)))},
        schema={"person": pl.String, "time": pl.Int64, "state": pl.Int64},
    )
    table = datasets.resample(table, 1)
    trips = datasets.split_trips(table, max_gap=gap, min_length=1)
    found = [
        (trip.person, time, state)
        for trip in trips
        for time, state in zip(trip.times.tolist(), trip.states.tolist(), strict=True)
    ]
    assert found == table.rows()
    assert all((np.diff(trip.times) <= gap).all() for trip in trips)
    for before, after in pairwise(trips):
        assert before.person != after.person or after.start - before.times[-1] > gap


def test_a_point_among_the_header_lines_is_kept(folder: Path) -> None:
    row = (39.9, 116.3, START)
    short = write(folder / "a" / "Trajectory" / "1.plt", b"\n".join([HEADER[0], plt_line(row)]))
    check(datasets.load_geolife(short), [row], [])
    bare = write(folder / "b" / "Trajectory" / "1.plt", b"\n".join([plt_line(row), b"rubbish"]))
    check(datasets.load_geolife(bare), [row], [2])
    assert datasets.load_geolife(bare).table["person"].to_list() == ["b"]


def test_a_clock_fault_is_a_bad_row_and_an_early_one_in_the_file_is_sorted(folder: Path) -> None:
    late, early = (39.9, 116.3, START + timedelta(hours=1)), (39.9, 116.3, START)
    fault = (39.9, 116.3, datetime(2000, 1, 1, tzinfo=UTC))
    lines = [*HEADER, *map(plt_line, [late, early, fault])]
    path = write(folder / "000" / "Trajectory" / "1.plt", b"\r\n".join(lines))
    check(datasets.load_geolife(path), [early, late], [9])
    check(datasets.load_geolife(path, years=(1999, 2012)), [fault, early, late], [])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "ascii"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_do_not_matter(folder: Path, encoding: str, end: str) -> None:
    row = (39.9, 116.3, START)
    text = end.join([*(line.decode() for line in HEADER), plt_line(row).decode(), ""])
    path = write(folder / "000" / "Trajectory" / "1.plt", text.encode(encoding))
    check(datasets.load_geolife(path), [row], [])


def test_a_report_names_the_first_bad_rows_and_counts_all_without_their_values(
    folder: Path,
) -> None:
    lines = [b"person,time,latitude,longitude"]
    lines += [b"ann,2020-01-01T00:00:00Z,123.456,7.89"] * 5
    path = write(folder / "tracks.csv", b"\n".join(lines))
    report = datasets.load_tracks(path, listed=2).report
    assert str(report) == (
        "0 of 5 rows kept from 1 files, 5 bad rows, 0 damaged files\n"
        "  5 rows: latitude must be a number in -90..90\n"
        "  tracks.csv:2: latitude must be a number in -90..90\n"
        "  tracks.csv:3: latitude must be a number in -90..90\n"
        "  and 3 more bad rows"
    )


def test_csv_columns_are_found_by_their_usual_names_or_as_told(folder: Path) -> None:
    path = write(
        folder / "a.csv",
        b'note;Lng;LAT;rider;when\n"x; ""y""";7.5;48.5;bo;2020-01-01 00:00+01:00\n;7;48;al;'
        b"2020-01-01T00:00:01.5+0100\n",
    )
    table, report = datasets.load_tracks(path, columns={"person": "rider", "time": "when"})
    assert report.rows_bad == 0
    assert table.rows() == [
        ("al", datetime(2019, 12, 31, 23, 0, 1, 500_000, tzinfo=UTC), 48.0, 7.0),
        ("bo", datetime(2019, 12, 31, 23, tzinfo=UTC), 48.5, 7.5),
    ]
    with pytest.raises(DataError, match=r"^a.csv:1: header must have the column 'nobody'"):
        datasets.load_tracks(path, columns={"person": "nobody"})
    with pytest.raises(ArgumentError, match="columns must name some of"):
        datasets.load_tracks(path, columns={"where": "LAT"})
    with pytest.raises(DataError, match=r"^a.csv:1: header must have a time;"):
        datasets.load_tracks(path)


def test_a_large_file_is_read_in_chunks_with_progress_and_right_line_numbers(folder: Path) -> None:
    line = b"ann,2020-01-01T00:00:00Z,1,2," + b"x" * 900 + b"\n"
    head = b"person,time,lat,lon,note\n"
    data = head + line * 79_999 + b"bad\n" + line  # two chunks of 32 MB and a rest
    write(folder / "a.csv", data)
    write(folder / "b.csv", head + line + b"bad\n")
    calls: list[tuple[int, int]] = []
    _, report = datasets.load_tracks(folder, progress=lambda *call: calls.append(call))
    total = sum(path.stat().st_size for path in folder.iterdir())
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert any(0 < amount < len(data) for amount in done)
    assert calls[-1] == (total, total)
    assert report.rows_kept == 80_001
    bad = [(place.file, place.line) for place in report.first_bad]
    assert bad == [("a.csv", 80_001), ("b.csv", 3)]


def test_quotation_marks_may_stand_around_anything(folder: Path) -> None:
    lines = ['"person","time","state"', '"a, ""b""","0","5"', '"c","1","6"', '"d,"2","7"', 'e"']
    path = write(folder / "a.csv", "\n".join(lines).encode())
    table, report = datasets.load_tracks(path)
    assert table.rows() == [('a, "b"', 0, 5), ("c", 1, 6)]
    assert [place.line for place in report.first_bad] == [4, 5]


def test_states_and_metres_and_integer_times_are_tracks_too(folder: Path) -> None:
    states = write(folder / "ann.csv", b"time,state\n0,5\n1,-6\n2,7\nx,7\n3,7.5\n")
    table, report = datasets.load_tracks(states)
    assert table.rows() == [("ann", 0, 5), ("ann", 2, 7)]
    assert [place.line for place in report.first_bad] == [3, 5, 6]
    metres = write(folder / "m" / "bob.tsv", b"time\tx\ty\n0\t1.5\t-2\n1\tinf\t0\n")
    table, report = datasets.load_tracks(metres)
    assert table.rows() == [("bob", 0, 1.5, -2.0)]
    assert report.problems == {"x must be a finite number": 1}
    assert datasets.to_states(table, Grid.rectangle(1, 1, 1)).rows() == [("bob", 0, 0)]
    with pytest.raises(DataError, match="same kind of time and place"):
        datasets.load_tracks(folder)


ZONED = b"time,latitude,longitude\n2020-07-01T12:00:00%b,1,2\n2020-12-01T12:00:00%b,1,2\n"


@pytest.mark.parametrize(
    ("zones", "time_zone", "message"),
    [
        ((b"", b""), None, "t.csv:2: time must have a zone"),
        ((b"Z", b""), None, "t.csv:3: time must have a zone"),
        ((b"Z", b""), "Europe/Berlin", "t.csv:3: time must have a zone in all rows or in none"),
        ((b"+02:00", b"+01:00"), None, "t.csv:3: time must have one zone in the whole file"),
    ],
)
def test_times_without_a_zone_and_of_two_zones_are_errors(
    folder: Path, zones: tuple[bytes, bytes], time_zone: str | None, message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        datasets.load_tracks(write(folder / "t.csv", ZONED % zones), time_zone=time_zone)


@pytest.mark.parametrize("zones", [(b"", b""), (b"+02:00", b"+01:00")])
def test_a_time_zone_says_what_naive_and_changing_clocks_mean(
    folder: Path, zones: tuple[bytes, bytes]
) -> None:
    path = write(folder / "t.csv", ZONED % zones)
    table = datasets.load_tracks(path, time_zone="Europe/Berlin").table
    assert [time.hour for time in table["time"]] == [10, 11]
    with pytest.raises(ArgumentError, match="time_zone must be a name such as"):
        datasets.load_tracks(path, time_zone="Mars/Base")


def test_a_local_time_that_never_was_or_was_twice_is_a_bad_row(folder: Path) -> None:
    data = b"time,latitude,longitude\n2020-03-29T02:30:00,1,2\n2020-10-25T02:30:00,1,2\n"
    report = datasets.load_tracks(write(folder / "t.csv", data), time_zone="Europe/Berlin").report
    assert [place.line for place in report.first_bad] == [2, 3]


def test_parquet_rows_are_checked_like_any_others(folder: Path) -> None:
    frame = pl.DataFrame(
        {
            "user": [1, 2, None, 4],
            "timestamp": [START, START, START, None],
            "lat": [1.0, 91.0, 1.0, 1.0],
            "lon": [2.0, 2.0, 2.0, 2.0],
        }
    )
    frame.write_parquet(folder / "a.parquet")
    table, report = datasets.load_tracks(folder / "a.parquet")
    assert table.rows() == [("1", START, 1.0, 2.0)]
    assert [place.line for place in report.first_bad] == [2, 3, 4]
    naive = frame.with_columns(pl.col("timestamp").dt.replace_time_zone(None))
    naive.write_parquet(folder / "b.parquet")
    with pytest.raises(DataError, match=r"^b.parquet:1: time must have a zone"):
        datasets.load_tracks(folder / "b.parquet")
    assert datasets.load_tracks(folder / "b.parquet", time_zone="UTC").table.rows() == table.rows()


@given(cut=st.integers(0, 200))
def test_a_cut_parquet_file_is_reported_as_damaged(scratch: Path, cut: int) -> None:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    pl.DataFrame({"time": [0], "state": [0]}).write_parquet(folder / "a.parquet")
    write(folder / "a.parquet", (folder / "a.parquet").read_bytes()[:cut])
    table, report = datasets.load_tracks(folder / "a.parquet")
    assert len(table) == 0
    assert [place.file for place in report.damaged] == ["a.parquet"]


GPX_HEAD = b'<?xml version="1.0"?>\n<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n'
GPX_TAIL = b"</trkseg></trk></gpx>\n"


def gpx_point(row: Row) -> bytes:
    return (
        f'<trkpt lat="{row[0]}" lon="{row[1]}"><ele>4</ele>'
        f"<time>{row[2]:%Y-%m-%dT%H:%M:%SZ}</time></trkpt>\n"
    ).encode()


@given(
    row_list=st.lists(rows, max_size=8, unique_by=lambda row: row[2]),
    bad=st.sets(st.integers(0, 7)),
)
def test_good_points_of_a_gpx_file_survive_and_bad_ones_are_located(
    scratch: Path, row_list: list[Row], bad: set[int]
) -> None:
    points = [
        gpx_point(row).replace(b'lat="', b'lat="9', 1).replace(b"<time>", b"<time>x")
        if number in bad
        else gpx_point(row)
        for number, row in enumerate(row_list)
    ]
    path = write(
        Path(tempfile.mkdtemp(dir=scratch)) / "ann.gpx", b"".join([GPX_HEAD, *points, GPX_TAIL])
    )
    good = [row for number, row in enumerate(row_list) if number not in bad]
    check(datasets.load_tracks(path), good, [n + 3 for n in sorted(bad) if n < len(row_list)])


@given(row_list=st.lists(rows, min_size=1, max_size=8), cut=st.floats(0, 1, exclude_max=True))
def test_a_cut_gpx_file_keeps_every_whole_point_before_the_cut(
    scratch: Path, row_list: list[Row], cut: float
) -> None:
    whole = b"".join([GPX_HEAD, *map(gpx_point, row_list), GPX_TAIL])
    data = whole[: int(cut * (len(whole) - 2))]
    table, report = datasets.load_tracks(
        write(Path(tempfile.mkdtemp(dir=scratch)) / "ann.gpx", data)
    )
    assert len(table) == data.count(b"</trkpt>")
    assert len(report.damaged) == 1


def test_a_gpx_file_with_a_document_type_is_refused(folder: Path) -> None:
    bomb = b'<!DOCTYPE gpx [<!ENTITY a "aaaa">]><gpx>&a;</gpx>'
    report = datasets.load_tracks(write(folder / "a.gpx", bomb)).report
    assert report.damaged[0].problem == "file must be XML to its end, got ValueError"


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda f: datasets.load_geolife(f / "no"), "path must name a file or folder that exists"),
        (lambda f: datasets.load_geolife(f), "path must hold PLT files, got none"),
        (lambda f: datasets.load_geolife(write(f / "a.zip", b"PK\3\4")), "path must be a folder, "),
        (lambda f: datasets.load_tracks(f), "path must hold tracks"),
        (lambda f: datasets.load_tracks(write(f / "a.doc", b"")), "path must end in one of"),
    ],
)
def test_paths_without_tracks_are_refused(
    folder: Path, load: Callable[[Path], object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load(folder)


def test_an_empty_file_is_reported(folder: Path) -> None:
    table, report = datasets.load_tracks(write(folder / "a.csv", b""))
    assert len(table) == 0
    assert [str(place) for place in report.damaged] == ["a.csv:1: file must not be empty"]


INTEGER_TABLE = pl.DataFrame({"person": ["a", "a"], "time": [0, 0], "state": [1, 2]})
DATED_TABLE = INTEGER_TABLE.with_columns(time=pl.lit(START))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.resample(INTEGER_TABLE, 0), "step must be a positive integer"),
        (lambda: datasets.resample(DATED_TABLE, 5), "step must be a positive timedelta"),
        (lambda: datasets.resample(INTEGER_TABLE.drop("time"), 1), "table must have the columns"),
        (
            lambda: datasets.resample(INTEGER_TABLE.cast({"time": pl.String}), 1),
            "time must be UTC datetimes or integers",
        ),
        (lambda: datasets.split_trips(DATED_TABLE, max_gap=5), "max_gap must be a positive timed"),
        (lambda: datasets.split_trips(INTEGER_TABLE, max_gap=0), "max_gap must be a positive int"),
        (lambda: datasets.split_trips(INTEGER_TABLE, max_gap=1), "one row for a person at a time"),
        (
            lambda: datasets.split_trips(INTEGER_TABLE, max_gap=1, min_length=0),
            "min_length must be at least 1",
        ),
        (
            lambda: datasets.split_trips(INTEGER_TABLE.drop("state"), max_gap=1),
            "table must have a column 'state'",
        ),
        (lambda: datasets.cut_trips([], 0), "length must be at least 1"),
        (
            lambda: datasets.to_states(INTEGER_TABLE, Grid.rectangle(1, 1, 1)),
            "plane must be given",
        ),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# Oracle


def slowly(data: bytes) -> tuple[list[Row], list[int]]:
    """A PLT file read line by line with the standard library."""
    good: list[Row] = []
    bad: list[int] = []
    lines = re.split(rb"\r\n|\r|\n", data)
    titled = lines[0].strip(b" \t\r").lower().startswith(b"geolife")
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "replace").strip(" \t\r")
        if not text:
            continue
        fields = text.split(",")
        form = [r"\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s*"] * 2 + [r"[^,]*"] * 3
        form += [r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d"]
        if len(fields) != 7 or not all(map(re.fullmatch, form, fields)) or "\0" in fields[4]:
            if not (titled and number <= 6):
                bad.append(number)
            continue
        try:
            latitude, longitude = float(fields[0]), float(fields[1])
            time = datetime.fromisoformat(f"{fields[5]}T{fields[6]}+00:00")
        except ValueError:
            bad.append(number)
            continue
        inside = -90 <= latitude <= 90 and -180 <= longitude <= 180 and 2007 <= time.year <= 2012
        if inside:
            good.append((latitude, longitude, time))
        else:
            bad.append(number)
    return good, bad


@given(
    row_list=st.lists(rows, min_size=1, max_size=6, unique_by=lambda row: row[2]),
    changes=st.lists(
        st.tuples(
            st.floats(0, 1),
            st.sampled_from([b"", b"\0", b"\xff", b"\n", b",", b"9", b"-", b"e", b":", b" "]),
            st.integers(0, 3),
        ),
        max_size=8,
    ),
)
def test_a_file_with_bytes_changed_anywhere_reads_as_line_by_line(
    scratch: Path, row_list: list[Row], changes: list[tuple[float, bytes, int]]
) -> None:
    data = b"\r\n".join([*HEADER, *map(plt_line, row_list)])
    for where, put, dropped in changes:
        place = int(where * len(data))
        data = data[:place] + put + data[place + dropped :]
    path = write(Path(tempfile.mkdtemp(dir=scratch)) / "000" / "Trajectory" / "1.plt", data)
    good, bad = slowly(data)
    table, report = datasets.load_geolife(path)
    found = table.select("latitude", "longitude", "time").rows()
    assert sorted(found) == sorted(good)
    assert [place.line for place in report.first_bad] == bad
