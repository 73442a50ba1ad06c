"""Files that this project had never seen: rides of a bike share, collars of deer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dphmm.errors import DataError
from dphmm.tables import datasets
from tests.test_cli_import import ok, run

RIDES = (
    "ride_id,started_at,ended_at,start_station_name,end_station_name,"
    "start_lat,start_lng,end_lat,end_lng,rider_id"
)
MARK = "40.7291"
"""A true latitude, which no message may hold."""


def at(time: datetime, latitude: float, longitude: float) -> tuple[str, datetime, float, float]:
    return "ann", time, latitude, longitude


def rides(*rows: str) -> str:
    return "\n".join([RIDES, *rows, ""])


# Rides


def test_a_ride_is_its_start_and_its_end(tmp_path: Path) -> None:
    file = tmp_path / "rides.csv"
    # The clocks go back at two in the night: 04:30 is five hours behind, 00:50 was four.
    file.write_text(
        rides(
            "A1,2025-11-02 00:50:00.577,2025-11-02 04:30:00.340,here,there,"
            "40.7248,-74.05,40.7322,-74.06,ann"
        )
    )
    table, report = datasets.load_tracks(file, time_zone="America/New_York")
    first = datetime(2025, 11, 2, 4, 50, 0, 577_000, tzinfo=UTC)
    last = datetime(2025, 11, 2, 9, 30, 0, 340_000, tzinfo=UTC)
    assert table.rows() == [at(first, 40.7248, -74.05), at(last, 40.7322, -74.06)]
    assert (report.rows_read, report.rows_kept) == (2, 2)
    (taken,) = report.taken
    assert "end_time = ended_at, end_latitude = end_lat, end_longitude = end_lng" in taken
    assert "a row is a start and an end" in taken


def test_a_bike_that_nobody_brought_back_has_a_start_only(tmp_path: Path) -> None:
    file = tmp_path / "rides.csv"
    file.write_text(
        rides(
            f"A1,2025-11-03 08:00:00,2025-11-03 08:10:00,here,,{MARK},-74.05,,,ann",
            "A2,2025-11-03 09:00:00,2025-11-03 09:10:00,here,there,40.7,-74.05,40.8,-74,bob",
        )
    )
    table, report = datasets.load_tracks(file, time_zone="UTC")
    assert table["person"].to_list() == ["ann", "bob", "bob"]
    assert [(bad.line, bad.problem) for bad in report.first_bad] == [
        (2, "latitude must be a number in -90..90")
    ]
    assert MARK not in str(report)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "table"])
def test_every_kind_of_file_may_hold_rides(kind: str, tmp_path: Path) -> None:
    columns = ["rider", "start_time", "end_time", "start_lat", "start_lon", "end_lat", "end_lon"]
    cells = ("ann", "2025-11-03T08:00:00Z", "2025-11-03T08:10:00Z", 40.7, -74.0, 40.8, -74.1)
    table = pl.DataFrame([cells], schema=columns, orient="row")
    file = tmp_path / f"rides.{kind}"
    if kind == "csv":
        table.write_csv(file)
    elif kind == "jsonl":
        table.write_ndjson(file)
    found, _ = datasets.load_tracks(table if kind == "table" else file)
    assert found["latitude"].to_list() == [40.7, 40.8]
    assert found["longitude"].to_list() == [-74.0, -74.1]


def test_an_end_without_a_place_or_with_a_day_elsewhere_is_no_end(tmp_path: Path) -> None:
    file = tmp_path / "rides.csv"
    file.write_text("id,time,end_time,lat,lon\nann,2025-11-03T08:00Z,2025-11-03T08:10Z,40.7,-74\n")
    table, report = datasets.load_tracks(file)
    assert len(table) == 1
    assert "not used: end_time" in next(iter(report.taken))
    # Somebody who rides past midnight would end before they began.
    file.write_text(
        "id,date,time,end_time,lat,lon,end_lat,end_lon\n"
        "ann,2025-11-03,23:50:00,00:10:00,40.7,-74,40.8,-74.1\n"
    )
    table, report = datasets.load_tracks(file, time_zone="UTC")
    assert table["latitude"].to_list() == [40.7]
    assert "not used: end_time" in next(iter(report.taken))


def test_rides_go_all_the_way(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(4), []
    for rider in range(12):
        time = datetime(2025, 11, 3, 7, int(rng.integers(60)))
        place = np.array([40.735, -74.045])
        for ride in range(12):
            goal = place + rng.normal(0, 0.004, 2)
            stop = time + timedelta(minutes=int(rng.integers(8, 25)))
            ends = f"{place[0]:.6f},{place[1]:.6f},{goal[0]:.6f},{goal[1]:.6f}"
            rows.append(f"{rider}-{ride},{time},{stop},a,b,{ends},rider{rider}")
            time, place = stop + timedelta(minutes=int(rng.integers(5, 30))), goal
    (tmp_path / "rides.csv").write_text(rides(*rows))
    town = tmp_path / "town"
    new = ("--zone", "America/New_York", "--around", "40.735,-74.045", "--kilometres", 6)
    ok("import", tmp_path / "rides.csv", *new, "--step", "30 min", "-o", town)
    ok("learn", town / "trips.csv", "--scenario", town / "scenario.toml", "--force")
    ok("release", town / "scenario.toml", town / "trips.csv", "-o", town / "released.csv")
    ok("report", town / "scenario.toml", town / "released.csv", "-o", town / "report.html")
    released = pl.read_csv(town / "released.csv")
    assert released["person"].n_unique() == 12


# Collars


@pytest.mark.parametrize("header", [True, False], ids=["header", "no header"])
def test_a_collar_of_windows_with_commas_and_days_first_is_read(
    tmp_path: Path, header: bool
) -> None:
    rows = [
        "10430;03.02.2024;00:21:05;46,5958;10,1458;1,9",
        "10430;3.2.2024;04:21:00;46,6;10,15;2,5",
    ]
    if header:
        rows.insert(0, "CollarID;UTC_Date;UTC_Time;Latitude [°];Longitude [°];DOP")
    file = tmp_path / "collars.csv"
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*rows, ""]).encode())
    table, report = datasets.load_tracks(file, time_zone="UTC")
    assert table.rows() == [
        ("10430", datetime(2024, 2, 3, 0, 21, 5, tzinfo=UTC), 46.5958, 10.1458),
        ("10430", datetime(2024, 2, 3, 4, 21, tzinfo=UTC), 46.6, 10.15),
    ]
    assert report.rows_bad == 0
    assert "times are %d.%m.%Y %H:%M:%S" in next(iter(report.taken))


def test_times_without_seconds_and_slashes_which_nobody_can_tell(tmp_path: Path) -> None:
    file = tmp_path / "walk.csv"
    file.write_text("id,time,lat,lon\nann,13.02.2024 08:05,46.6,10.1\n")
    table, _ = datasets.load_tracks(file, time_zone="Europe/Zurich")
    assert table["time"].to_list() == [datetime(2024, 2, 13, 7, 5, tzinfo=UTC)]
    file.write_text("id,time,lat,lon\nann,02/03/2024 08:05,46.6,10.1\n")
    table, report = datasets.load_tracks(file, time_zone="Europe/Zurich")
    assert (len(table), report.rows_bad) == (0, 1)
    around = ("--zone", "UTC", "--around", "46.6,10.1", "-o", tmp_path / "town")
    result = run("import", file, *around)
    assert result.exit_code == 2
    assert "--time says how times are written, such as '%d/%m/%Y %H:%M'" in result.stderr


def test_names_of_movebank_are_known(tmp_path: Path) -> None:
    file = tmp_path / "gulls.csv"
    file.write_text(
        "event-id,timestamp,location-long,location-lat,individual-local-identifier\n"
        "1,2024-02-13 08:05:00.000,10.1,46.6,Eric\n"
    )
    table, _ = datasets.load_tracks(file, time_zone="UTC")
    assert table.row(0)[0] == "Eric"
    assert table.row(0)[2:] == (46.6, 10.1)


def test_a_name_that_a_file_has_not_is_refused_for_ends_too(tmp_path: Path) -> None:
    file = tmp_path / "rides.csv"
    file.write_text(rides("A1,2025-11-03 08:00:00,2025-11-03 08:10:00,a,b,40.7,-74,40.8,-74.1,ann"))
    with pytest.raises(DataError, match="header must have the column 'stopped'"):
        datasets.load_tracks(file, columns={"end_time": "stopped"}, time_zone="UTC")


# Rooms


def test_states_without_a_place_say_what_they_lack(tmp_path: Path) -> None:
    (tmp_path / "rooms.csv").write_text("label,kind\nhall,public\nward,closed\n")
    (tmp_path / "clinic.toml").write_text(
        'epsilon = 1\nstates = "rooms.csv"\n[policy]\ncomplete = true\n'
    )
    rows = "person,time,state\nann,1,hall\nann,2,ward\nann,3,hall\n"
    (tmp_path / "days.csv").write_text(rows)
    ok("learn", tmp_path / "days.csv", "--states", tmp_path / "rooms.csv", "-o",
       tmp_path / "model.npz")  # fmt: skip
    result = run("check", tmp_path / "clinic.toml")
    assert result.exit_code == 2
    assert (
        "rooms.csv: states must have x and y or latitude and longitude, or columns of numbers to "
        'answer with, such as [query] columns = ["minutes"]; got kind'
    ) in result.stderr
    (tmp_path / "rooms.csv").write_text("label,kind,minutes\nhall,public,2\nward,closed,30\n")
    text = (tmp_path / "clinic.toml").read_text()
    (tmp_path / "clinic.toml").write_text(text + '[query]\ncolumns = ["minutes"]\n')
    assert run("check", tmp_path / "clinic.toml").exit_code == 0


# Collars for two months


@pytest.fixture
def collars(tmp_path: Path) -> Path:
    """Six animals with a fix every two hours or so, for sixty days."""
    rng, rows = (
        np.random.default_rng(15),
        ["tag-local-identifier,timestamp,location-long,location-lat"],
    )
    for animal in range(6):
        home = np.array([-1.5, 11.7]) + rng.normal(0, 0.03, 2)
        place, time = home, datetime(2023, 5, 1) + timedelta(minutes=int(rng.integers(120)))
        for _ in range(12 * 60):
            rows.append(f"E{animal},{time:%Y-%m-%d %H:%M:%S}.000,{place[0]:.5f},{place[1]:.5f}")
            place = place + rng.normal(0, 0.006, 2) + 0.05 * (home - place)
            time += timedelta(minutes=float(120 + rng.normal(0, 3)))
    file = tmp_path / "collars.csv"
    file.write_text("\n".join([*rows, ""]))
    return file


ELEPHANTS = ("--zone", "UTC", "--around", "11.7,-1.5", "--kilometres", "30", "--cell", "2")


def test_sixty_days_that_the_limit_refuses_are_told_of_before_anybody_waits(collars: Path) -> None:
    town = collars.parent / "town"
    new = ("import", collars, *ELEPHANTS, "--step", "2 hours", "-o", town)
    result = run(*new, "--quiet")
    assert result.exit_code == 0, result.output
    assert "limit of 12 in all is too little for 6 of 6 people" in result.stderr
    assert 'limit = "12 per 1 day" in' in result.stderr
    assert 'limit = "12"' in (town / "scenario.toml").read_text(), "nothing is weakened by itself"
    ok("learn", town / "trips.csv", "--scenario", town / "scenario.toml", "--force")
    release = ("release", town / "scenario.toml", town / "trips.csv", "-o", town / "released.csv")
    refused = run(*release)
    assert refused.exit_code == 1
    assert "is too little for 6 of 6 people" in refused.stderr
    # The limit that was named is enough, and nothing is said of it any more.
    told = run(*new, "--limit", "12 per 1 day", "--replace")
    assert (told.exit_code, "limit" in told.stderr) == (0, False)
    ok(*release)
    ok("report", town / "scenario.toml", town / "released.csv", "-o", town / "report.html")
    assert pl.read_csv(town / "released.csv")["person"].n_unique() == 6


def test_a_map_that_is_there_has_its_own_limit(collars: Path) -> None:
    town = collars.parent / "town"
    ok("grid", *ELEPHANTS[2:], "--step", "2 hours", "--limit", "12 per 1 day", "-o", town)
    old = ("import", collars, "--zone", "UTC", "--map", town, "-o", town / "people.csv")
    for option in ("--limit", "--epsilon", "--radius", "--cell", "--kilometres"):
        result = run(*old, option, "2")
        assert result.exit_code == 2, option
        assert f"--map must stand without {option}" in result.stderr
    assert run(*old).stderr == ""
    toml = town / "scenario.toml"
    toml.write_text(toml.read_text().replace("12 per 1 day", "12"))
    result = run(*old, "--json", "--replace")
    assert "is too little for 6 of 6 people" in result.stderr
    assert "--limit" not in result.stderr
