"""Files of ships, buses, watches, phones and scooters: read as they are, or asked about."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dphmm.errors import DataError
from dphmm.tables import datasets
from tests.scenarios import run

NOON = datetime(2024, 3, 5, 12, tzinfo=UTC)
NOON_UNIX = int(NOON.timestamp())


def only(path: Path, **options: Any) -> tuple[str, list[tuple[Any, ...]]]:
    """What a file was taken for, and its rows."""
    table, report = datasets.load_tracks(path, **options)
    assert report.rows_bad == 0, str(report)
    (taken,) = report.taken
    return taken, table.rows()


# Ships


@pytest.mark.parametrize(
    ("header", "row", "options"),
    [
        (
            "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,SOG",
            "05/03/2024 12:00:00,Class A,219000001,55.6,12.7,12.1",
            {"time": "%d/%m/%Y %H:%M:%S", "time_zone": "UTC"},
        ),
        (
            "MMSI,BaseDateTime,LAT,LON,SOG,VesselName",
            '219000001,2024-03-05T12:00:00,55.6,12.7,12.1,"SEA, STAR"',
            {"time_zone": "UTC"},
        ),
    ],
    ids=["Denmark", "United States"],
)
def test_ships_are_read_as_their_countries_write_them(
    header: str, row: str, options: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "ships.csv"
    file.write_text(f"{header}\n{row}\n")
    assert only(file, **options)[1] == [("219000001", NOON, 55.6, 12.7)]


# Buses


def bus(number: int, seconds: int) -> dict[str, Any]:
    return {
        "id": f"{seconds}-{number}",
        "vehicle": {
            "trip": {"tripId": "T7", "startDate": "20240305"},
            "position": {
                "latitude": 60.17,
                "longitude": round(24.94 + number / 1000, 3),
                "speed": 8.3,
            },
            "timestamp": str(NOON_UNIX + seconds),
            "vehicle": {"id": f"bus{number}", "label": "7"},
        },
    }


def by_entity() -> str:
    return "".join(json.dumps(bus(n, s)) + "\n" for s in (0, 30) for n in (1, 2))


def by_feed() -> str:
    # A feed has a time of its own, which is not that of its vehicles.
    feeds = [
        {"header": {"timestamp": str(NOON_UNIX + 999)}, "entity": [bus(n, s) for n in (1, 2)]}
        for s in (0, 30)
    ]
    return "".join(json.dumps(feed) + "\n" for feed in feeds)


def by_document() -> str:
    return json.dumps({"entity": [bus(n, s) for s in (0, 30) for n in (1, 2)]}, indent=1)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", by_entity), ("a.jsonl", by_feed), ("a.json", by_document)],
    ids=["an entity a line", "a feed a line", "one feed"],
)
def test_feeds_of_buses_are_read_however_deep_their_objects_are(
    name: str, text: Callable[[], str], tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text())
    taken, rows = only(file, columns={"person": "vehicle.vehicle.id"})
    later = NOON + timedelta(seconds=30)
    first = [("bus1", NOON, 60.17, 24.941), ("bus1", later, 60.17, 24.941)]
    assert rows == [*first, ("bus2", NOON, 60.17, 24.942), ("bus2", later, 60.17, 24.942)]
    assert "time = vehicle.timestamp, latitude = vehicle.position.latitude" in taken


def test_a_bad_line_among_feeds_has_its_own_number(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    first, second = by_feed().splitlines()
    file.write_text(f"{first}\n{{broken\n{second}\n")
    table, report = datasets.load_tracks(file, columns={"person": "vehicle.vehicle.id"})
    assert len(table) == 4
    assert [bad.line for bad in report.first_bad] == [2]


def test_a_list_beside_a_place_is_not_taken_for_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    seen = {"id": "ann", "time": "2024-03-05T12:00:00Z", "lat": 60.17, "lon": 24.94}
    file.write_text(json.dumps({**seen, "satellites": [{"lat": 0, "lon": 0}] * 5}) + "\n")
    assert only(file)[1] == [("ann", NOON, 60.17, 24.94)]


def test_features_one_a_line_are_points(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    point = {"type": "Point", "coordinates": [24.94, 60.17]}
    properties = {"user": "ann", "time": "2024-03-05T12:00:00Z"}
    file.write_text(json.dumps({"type": "Feature", "geometry": point, "properties": properties}))
    assert only(file)[1] == [("ann", NOON, 60.17, 24.94)]


# Watches and phones


@pytest.mark.parametrize(("unit", "told"), [(2**31 / 180, "semicircles"), (1, "")])
def test_a_watch_counts_semicircles_or_degrees(unit: float, told: str, tmp_path: Path) -> None:
    file = tmp_path / "ride.csv"
    place = [round(52.5 * unit, 6), round(13.4 * unit, 6)]
    cells = [str(int(each)) if unit > 1 else str(each) for each in place]
    file.write_text(
        f"timestamp,position_lat,position_long\n2024-03-05T12:00:00Z,{','.join(cells)}\n"
    )
    taken, ((person, time, latitude, longitude),) = only(file)
    assert (person, time) == ("ride", NOON)
    assert (latitude, longitude) == pytest.approx((52.5, 13.4), abs=1e-6)
    assert ("semicircles" in taken) == bool(told)


def test_a_phone_counts_ten_millionths_of_degrees(tmp_path: Path) -> None:
    file = tmp_path / "Records.json"
    place = {"latitudeE7": 525_000_000, "longitudeE7": -134_000_000}
    file.write_text(json.dumps({"locations": [{**place, "timestamp": "2024-03-05T12:00:00.000Z"}]}))
    taken, ((person, time, latitude, longitude),) = only(file)
    assert (person, time) == ("Records", NOON)
    assert (latitude, longitude) == pytest.approx((52.5, -13.4), abs=1e-9)
    assert "degrees are in 1e-7" in taken


def test_parts_of_degrees_are_not_taken_for_degrees_by_a_release(tmp_path: Path) -> None:
    # There every number has a nearest state, so a wrong unit would be no error.
    from dphmm.tables.columns import match_columns

    header = ["person", "time", "latitudeE7", "longitudeE7", "position_lat", "position_long"]
    assert match_columns("a.csv:1", header, ["latitude", "longitude"], None) == {}


# Points in one column


def wkb(order: str, x: float, y: float) -> bytes:
    return struct.pack(f"{order}BIdd", order == "<", 1, x, y)


POINTS = (
    "POINT (13.4 52.5)",
    "point(13.4 52.5)",
    "POINT Z (13.4 52.5 34.0)",
    "SRID=4326;POINT(1.34e1 52.5)",
)


def wkb_with_height(order: str, kind: int, *place: int, more: int = 1) -> bytes:
    """A point with other numbers behind its two."""
    whole = "I" * (1 + len(place))
    numbers = (13.4, 52.5, 34.0, 7.0)[: 2 + more]
    return struct.pack(f"{order}B{whole}{2 + more}d", order == "<", kind, *place, *numbers)


HEIGHTS = (
    wkb_with_height("<", 1001),
    wkb_with_height(">", 1001),
    wkb_with_height("<", 2001),
    wkb_with_height("<", 3001, more=2),
    wkb_with_height("<", 1 | 1 << 31),
    wkb_with_height(">", 1 | 1 << 31 | 1 << 29, 4326),
    wkb_with_height("<", 1 | 1 << 31 | 1 << 30, more=2),
)


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        *(("csv", point) for point in POINTS),
        *(("parquet", point) for point in (*POINTS, wkb("<", 13.4, 52.5), wkb(">", 13.4, 52.5))),
        *((kind, point) for point in HEIGHTS for kind in ("csv", "parquet")),
    ],
)
def test_points_in_a_column_have_the_longitude_first(
    kind: str, point: str | bytes, tmp_path: Path
) -> None:
    file = tmp_path / f"scooters.{kind}"
    if kind == "csv" and isinstance(point, bytes):
        point = point.hex()
    table = pl.DataFrame({"scooter_id": ["a"], "ts": ["2024-03-05T12:00:00Z"], "geometry": [point]})
    if kind == "parquet":
        table.write_parquet(file)
    else:
        table.write_csv(file)
    taken, rows = only(file)
    assert rows == [("a", NOON, 52.5, 13.4)]
    assert "points are longitude and latitude" in taken


@pytest.mark.parametrize(
    "point",
    [
        *("LINESTRING (13 52, 14 53)", "", None, wkb("<", 1, 2)[:-1], wkb("<", 1, 2) + bytes(8)),
        *(HEIGHTS[0][:-8], wkb_with_height("<", 1002), b"\x02" + HEIGHTS[0][1:], b"\x01"),
    ],
)
def test_what_is_no_point_is_a_bad_row_that_does_not_tell(
    point: str | bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "scooters.parquet"
    good = wkb("<", 13.4, 52.5) if isinstance(point, bytes) else "POINT (13.4 52.5)"
    times = ["2024-03-05T12:00:00Z", "2024-03-05T12:05:00Z"]
    pl.DataFrame({"id": ["a", "a"], "time": times, "geom": [good, point]}).write_parquet(file)
    table, report = datasets.load_tracks(file)
    assert table["latitude"].to_list() == [52.5]
    assert [(bad.line, bad.problem) for bad in report.first_bad] == [
        (2, "latitude must be a number in -90..90")
    ]


# Several people in one file


def watches(people: int, *, by_time: bool, newest_first: bool = False, who: str = "watch") -> str:
    rng = np.random.default_rng(1)
    rows = [
        (person, n, f"{person};{NOON + timedelta(seconds=60 * n + person)};{52.5 + p:.5f};13.4;80")
        for person in range(people)
        for n, p in enumerate(np.cumsum(rng.normal(0, 0.001, 40)))
    ]
    if by_time:
        rows.sort(key=lambda row: row[1])
    if newest_first:
        rows.reverse()
    return "\n".join([f"{who};time;lat;lon;heart", *(row[2] for row in rows), ""])


@pytest.mark.parametrize("newest_first", [False, True])
def test_several_tracks_at_once_are_not_one_person(newest_first: bool, tmp_path: Path) -> None:
    file = tmp_path / "watches.csv"
    file.write_text(watches(4, by_time=False, newest_first=newest_first, who="watch_no"))
    with pytest.raises(DataError, match=r"^watches.csv: .* got 4; .* such as person=watch_no, by"):
        datasets.load_tracks(file)
    table, _ = datasets.load_tracks(file, columns={"person": "watch_no"})
    assert table["person"].n_unique() == 4
    table, _ = datasets.load_tracks(file, person="ann")
    assert table["person"].n_unique() == 1, "whoever says that it is one person is believed"


def test_a_column_that_may_tell_people_apart_is_asked_about(tmp_path: Path) -> None:
    file = tmp_path / "watches.csv"
    town = ("--around", "52.5,13.4", "--step", "1 min", "-o", tmp_path / "town")
    file.write_text(watches(4, by_time=True, who="watch_no"))
    assert "got 4; say which column" in run("import", file, *town).stderr, "they take turns"
    file.write_text(watches(1, by_time=True, who="watch_no"))
    result = run("import", file, *town)
    assert result.exit_code == 0, result.output
    assert "note: 1 files: taken for one person's; if watch_no tells people apart" in result.stderr
    file.write_text(watches(1, by_time=True))
    assert datasets.load_tracks(file).report.doubts == {}, "nothing looks like a name"


def new_tracks() -> Any:
    from dphmm.tables.datasets.together import Tracks

    return Tracks()


def times(*stretches: tuple[int, int]) -> Any:
    tracks = new_tracks()
    tracks.see(np.concatenate([np.arange(*stretch) for stretch in stretches]))
    return tracks


def test_tracks_at_the_same_time_are_known_by_their_order() -> None:
    assert times((0, 100), (50, 150), (10, 80)).at_once() == 3
    assert times((0, 100), (100, 200)).at_once() == 0, "one after the other"
    assert times((200, 300), (0, 100), (100, 200)).at_once() == 0, "in any order"
    assert times((0, 10), (900, 990), (10, 900)).at_once() == 0, "one within a gap of another"
    assert times((0, 1000), (995, 1005), (2000, 4000)).at_once() == 0, "few of many"
    assert new_tracks().at_once() == 0
    shuffled = new_tracks()
    shuffled.see(np.random.default_rng(2).permutation(500))
    assert shuffled.at_once() == 0, "no order at all tells nothing"


def test_somebody_in_two_places_at_once_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    rows = [f"ann,{NOON + timedelta(minutes=n)},{52.5 + n / 1e4},13.4" for n in range(20)]
    file.write_text("\n".join(["name,time,lat,lon", *rows, ""]))
    town = ("--around", "52.5,13.4", "--step", "1 min", "--replace", "-o", tmp_path / "town")
    assert "two places" not in run("import", file, *town).output
    near = [row.replace("13.4", "13.401") for row in rows]
    file.write_text("\n".join(["name,time,lat,lon", *rows, *near, ""]))
    assert "two places" not in run("import", file, *town).output, "a receiver that is not sure"
    far = [row.replace("13.4", "13.45").replace("ann", "ann ") for row in rows[:15]]
    file.write_text("\n".join(["name,time,lat,lon", *rows, *far, ""]))
    assert "15 moments have one person in two places" in run("import", file, *town).output


# Times, names and fixes that are none


@pytest.mark.parametrize(("unit", "form"), [(10**6, "unix-us"), (10**9, "unix-ns")])
def test_times_of_pandas_are_small_parts_of_seconds(unit: int, form: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"id,ts,lat,lon\nann,{NOON_UNIX * unit + unit // 2},52.5,13.4\n")
    for options in ({}, {"time": form}):
        taken, rows = only(file, **options)
        assert rows == [("ann", NOON + timedelta(seconds=0.5), 52.5, 13.4)]
        assert f"times are {form}" in taken


def test_words_of_a_name_may_stand_apart(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("Driver ID,Event Time,Lat,Long\nann,2024-03-05T12:00:00Z,52.5,13.4\n")
    assert only(file)[1] == [("ann", NOON, 52.5, 13.4)]


def test_zeros_of_both_degrees_are_no_fix(tmp_path: Path) -> None:
    # Receivers write them before they know where they are; on a map they would be its corner.
    file = tmp_path / "a.csv"
    rows = ["ann,2024-03-05T12:00:00Z,0.000000,0", "ann,2024-03-05T12:05:00Z,0,13.4"]
    file.write_text("\n".join(["id,time,lat,lon", *rows, ""]))
    table, report = datasets.load_tracks(file)
    assert table["longitude"].to_list() == [13.4]
    assert [(bad.line, bad.problem) for bad in report.first_bad] == [
        (2, "latitude and longitude must not both be 0: no fix")
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_people_of_json_are_no_numbers_with_a_point(name: str, tmp_path: Path) -> None:
    # 7 and 7.0 are one person, who would have two budgets.
    rows = [{"id": id, "time": 1709640000, "lat": 52.5, "lon": 13.4} for id in (7, 7.0)]
    file = tmp_path / name
    lines = [json.dumps(row) for row in rows]
    file.write_text("\n".join(lines) if name == "a.jsonl" else f"[{','.join(lines)}]")
    result = run("import", file, "--around", "52.5,13.4", "-o", tmp_path / "town")
    assert result.exit_code == 2
    assert f"{name}: person must be a text or a whole number" in result.output


# All the way


def test_buses_go_from_a_feed_to_a_report(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    where = 60.17 + rng.normal(0, 0.01, 8)
    feeds = []
    for minute in range(0, 240, 5):
        where = where + rng.normal(0, 0.004, 8)
        entities = [bus(n, 60 * minute) for n in range(8)]
        for entity, latitude in zip(entities, where, strict=True):
            entity["vehicle"]["position"]["latitude"] = round(float(latitude), 6)
        feeds.append(json.dumps({"header": {"version": "2.0"}, "entity": entities}))
    file, town = tmp_path / "feeds.jsonl", tmp_path / "town"
    file.write_text("\n".join(feeds))
    new = ("--around", "60.17,24.94", "--cell", "1", "--column", "person=vehicle.vehicle.id")
    for words in (
        ("import", file, *new, "-o", town),
        ("learn", town / "trips.csv", "--scenario", town / "scenario.toml", "--force"),
        ("release", town / "scenario.toml", town / "trips.csv", "-o", town / "released.csv"),
        ("report", town / "scenario.toml", town / "released.csv", "-o", town / "report.html"),
    ):
        result = run(*words)
        assert result.exit_code == 0, (words, result.output)
    assert pl.read_csv(town / "released.csv")["person"].n_unique() == 8
