"""`dphmm import`, `grid`, `export` and `learn` after them: from files to a report, and refusals."""

from __future__ import annotations

import csv
import gzip
import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import Clock, MarkovModel
from dphmm.scenario import Scenario, Settings, read_model
from dphmm.scenario.models import write_model
from tests.scenarios import is_one_line, run

AROUND = ("--around", "37.77,-122.42", "--kilometres", "4")
SECRET = "37.7712345"
"""A latitude that is nowhere else."""


def walk(seed: int, steps: int = 60, start: int = 1_211_000_100) -> str:
    """A taxi's file, newest first: latitude, longitude, occupied, seconds since 1970."""
    rng = np.random.default_rng(seed)
    track = np.cumsum(rng.normal(0, 0.001, (steps, 2)), axis=0).clip(-0.015, 0.015)
    rows = [
        f"{37.77 + a:.5f} {-122.42 + b:.5f} {n % 2} {start + 60 * n}\n"
        for n, (a, b) in enumerate(track)
    ]
    return "".join(reversed(rows))


@pytest.fixture
def cabs(tmp_path: Path) -> Path:
    for name, seeds in (("train", range(6)), ("people", range(6, 9))):
        folder = tmp_path / name
        folder.mkdir()
        for seed in seeds:
            (folder / f"new_{seed}.txt").write_text(walk(seed))
    return tmp_path


def ok(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (arguments, result.output)
    return result.stdout


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# Paper


def test_five_commands_lead_from_a_folder_to_a_report(cabs: Path) -> None:
    town = cabs / "town"
    said = ok("import", cabs / "train", *AROUND, "-o", town)
    assert "6 files: person = the file, time = column 4, latitude = column 1" in said
    assert "360 of 360 rows kept from 6 files" in said
    assert "72 steps of 6 people, 66 moves, 0 lost to gaps" in said
    ok("import", cabs / "people", "--map", town, "-o", town / "people.csv")
    said = ok("learn", town / "trips.csv", "--scenario", town / "scenario.toml")
    assert "from 6 people and 66 moves of theirs; not counted: 0 lost to gaps, 0 beyond" in said
    ok("release", town / "scenario.toml", town / "people.csv", "-o", town / "released.csv")
    ok("report", town / "scenario.toml", town / "released.csv", "-o", town / "report.html")
    released = rows_of(town / "released.csv")
    assert len(released) == len(rows_of(town / "people.csv")) == 36
    assert {row["person"] for row in released} == {"new_6", "new_7", "new_8"}
    for name in ("trips.csv", "people.csv"):
        assert (town / name).stat().st_mode & 0o077 == 0
    scenario = Scenario.load(town / "scenario.toml")
    assert 'mechanism = "knorm"' in (town / "scenario.toml").read_text()
    assert (str(scenario.settings.limit), scenario.settings.unit) == ("288", "m")


def test_a_map_tells_nothing_about_the_tracks(cabs: Path) -> None:
    ok("import", cabs / "train", *AROUND, "-o", cabs / "a" / "town")
    ok("import", cabs / "people", *AROUND, "-o", cabs / "b" / "town")
    ok("grid", *AROUND, "-o", cabs / "c" / "town")
    for name in ("cells.csv", "cells.geojson", "scenario.toml"):
        texts = {(cabs / folder / "town" / name).read_bytes() for folder in "abc"}
        assert len(texts) == 1, name


@pytest.mark.parametrize("kind", ["squares", "h3", "polygons", "points", "roads"])
def test_every_kind_of_states_goes_all_the_way(kind: str, cabs: Path) -> None:
    geojson, shapely = pytest.importorskip("geojson"), pytest.importorskip("shapely")
    town = cabs / "town"
    given: dict[str, tuple[object, ...]] = {
        "squares": AROUND,
        "h3": (*AROUND, "--h3", 8),
        "polygons": ("--places", cabs / "given.geojson"),
        "points": ("--places", cabs / "given.geojson"),
        "roads": ("--roads", cabs / "given.geojson"),
    }
    if kind == "h3":
        pytest.importorskip("h3")
    (cabs / "given.geojson").write_text(json.dumps(quarters(kind)))
    ok("import", cabs / "train", *given[kind], "-o", town)
    ok("import", cabs / "people", "--map", town, "-o", town / "people.csv")
    moves = ("--moves", town / "moves.csv") if kind == "roads" else ("--radius", "3km")
    learn = ("learn", town / "trips.csv", "--scenario", town / "scenario.toml")
    ok(*learn, *moves, "--smoothing", 0.1)
    assert run("check", town / "scenario.toml").exit_code == 0
    ok("release", town / "scenario.toml", town / "people.csv", "-o", town / "released.csv")
    ok("report", town / "scenario.toml", town / "released.csv", "-o", town / "report.html")
    kinds: dict[str, set[str]] = {}
    for what in ("map", "policy", "answers", "estimates"):
        about = [town / "released.csv"] if what in ("answers", "estimates") else []
        ok("export", what, town / "scenario.toml", *about, "-o", town / f"{what}.geojson")
        document = geojson.loads((town / f"{what}.geojson").read_text())
        assert document.is_valid, document.errors()
        shapes = [shapely.geometry.shape(one["geometry"]) for one in document["features"]]
        assert all(shape.is_valid for shape in shapes)
        assert all(one["properties"] for one in document["features"])
        kinds[what] = {shape.geom_type for shape in shapes}
    assert kinds["policy"] == {"LineString"}
    assert kinds["answers"] == kinds["estimates"] == {"Point"}
    of_map = {"points": {"Point"}, "roads": {"Point", "LineString"}}
    assert kinds["map"] == of_map.get(kind, {"Polygon"})
    answers = json.loads((town / "answers.geojson").read_text())["features"]
    assert [one["properties"]["person"] for one in answers] == [
        row["person"] for row in rows_of(town / "released.csv")
    ]


def quarters(kind: str) -> dict[str, Any]:
    """A town in 16 quarters: as polygons, points or roads between their middles."""
    side, features = 0.01, []
    places = [(-122.44 + side * (n % 4), 37.75 + side * (n // 4)) for n in range(16)]
    for number, (x, y) in enumerate(places):
        ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
        middle = [x + side / 2, y + side / 2]
        ends = [[x, y], [x + side, y]], [[x, y], [x, y + side]]
        shapes = {
            "polygons": [("Polygon", [ring])],
            "points": [("Point", middle)],
            "roads": [("LineString", line) for line in ends],
        }.get(kind, [])
        for shape, coordinates in shapes:
            geometry = {"type": shape, "coordinates": coordinates}
            facts = {"name": f"q{number}", "kind": "homes"}
            features.append({"type": "Feature", "geometry": geometry, "properties": facts})
    return {"type": "FeatureCollection", "features": features}


# What is told


def test_the_first_rows_are_shown_on_a_terminal_and_nowhere_else(cabs: Path) -> None:
    (cabs / "train" / "new_0.txt").write_text(f"{SECRET} -122.42 0 1211000000\n")
    command = ["import", str(cabs / "train"), *AROUND, "-o", str(cabs / "town"), "--replace"]
    result = run(*command)
    assert result.exit_code == 0
    assert SECRET not in result.output
    screen, terminal = pty.openpty()
    arguments = [sys.executable, "-m", "dphmm", *command]
    done = subprocess.run(
        arguments, stderr=terminal, stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    os.close(terminal)
    shown = os.read(screen, 10_000).decode()
    os.close(screen)
    assert SECRET not in done.stdout
    assert f"new_0  2008-05-17 04:53:20+00:00  {SECRET}  -122.42" in shown
    quiet = run(*command, "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_what_lies_outside_is_counted_dropped_or_refused(cabs: Path) -> None:
    (cabs / "train" / "new_0.txt").write_text(walk(0).replace("37.7", "37.9"))
    said = ok("import", cabs / "train", *AROUND, "-o", cabs / "town")
    assert "360 fixes, 60 outside the map (16.7%; half of them within 2" in said
    facts = json.loads(
        ok("import", cabs / "train", *AROUND, "-o", cabs / "less", "--outside", "drop", "--json")
    )
    assert (facts["outside"], facts["fixes"], facts["steps"], facts["people"]) == (60, 360, 60, 5)
    elsewhere = run("import", cabs / "train", "--around", "48.1,11.5", "-o", cabs / "munich")
    assert elsewhere.exit_code == 2
    assert is_one_line(elsewhere.stderr)
    assert "got 360 of 360 fixes outside" in elsewhere.stderr
    assert not (cabs / "munich").exists()
    only = run("import", cabs / "train", "--around", "48.1,11.5", "--outside", "drop", "-o", "x")
    assert only.exit_code == 2


PORTO = ("--around", "41.15,-8.63", "--kilometres", "8")
STRANGE = ['José "Pepe" Ñ', "../x", "=1+1", "<b>b</b>", "x,y;z", "🚕 7", "007", "7", "nan", "-5"]


def porto(head: str, form: str) -> str:
    """Strange people on the way through a city where both coordinates could be a latitude."""
    rows = [head] if head else []
    for number, name in enumerate(STRANGE):
        for step in range(30):
            latitude, longitude = 41.14 + 0.0004 * step, -8.64 + 0.001 * number
            when = f"2013-07-01T0{6 + step // 12}:{5 * (step % 12):02d}:00+01:00"
            quoted = '"' + name.replace('"', '""') + '"'
            rows.append(
                form.format(name=quoted, when=when, lat=f"{latitude:.5f}", lon=f"{longitude:.5f}")
            )
    return "\n".join(rows) + "\n"


def test_people_with_strange_names_go_from_another_schema_to_a_report(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        porto("Driver_ID,Datetime,Lng,Lat", "{name},{when},{lon},{lat}")
    )
    town = tmp_path / "town"
    assert "person = Driver_ID" in ok("import", tmp_path / "a.csv", *PORTO, "-o", town)
    ok("learn", town / "trips.csv", "--scenario", town / "scenario.toml", "--force")
    ok("release", town / "scenario.toml", town / "trips.csv", "-o", town / "released.csv")
    ok("report", town / "scenario.toml", town / "released.csv", "-o", town / "report.html")
    assert {row["person"] for row in rows_of(town / "released.csv")} == set(STRANGE)
    assert "<b>b</b>" not in (town / "report.html").read_text(encoding="utf-8")


def test_coordinates_that_were_taken_for_each_other_are_seen(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(porto("", "{name},{when},{lon},{lat}"))
    refused = run("import", tmp_path / "a.txt", *PORTO, "-o", tmp_path / "town")
    assert (refused.exit_code, is_one_line(refused.stderr)) == (2, True)
    assert "latitude and longitude seem exchanged: say which column is which" in refused.stderr
    columns = ("--column", "latitude=4", "--column", "longitude=3")
    said = ok("import", tmp_path / "a.txt", *PORTO, "-o", tmp_path / "town", *columns)
    assert "300 fixes, 0 outside the map" in said
    # Nothing of the kind where it would not help.
    (tmp_path / "a.txt").write_text(porto("", "{name},{when},{lat},{lon}"))
    elsewhere = run("import", tmp_path / "a.txt", "--around", "48,11", "-o", tmp_path / "other")
    assert "take another map" in elsewhere.stderr


def test_gaps_are_counted_and_refused_when_they_are_most(cabs: Path) -> None:
    command = ("import", cabs / "train", *AROUND, "-o", cabs / "town", "--step", "20 s")
    refused = run(*command)
    assert refused.exit_code == 2
    assert is_one_line(refused.stderr)
    assert "got 354 of 354 after a gap, since half of the fixes come 60 s" in refused.stderr
    assert "0 moves, 354 lost to gaps" in ok(*command, "--gaps", "allow")


def test_learning_says_how_much_was_counted_and_doubts_a_wrong_step(cabs: Path) -> None:
    town, model = cabs / "town", cabs / "town" / "other.npz"
    ok("import", cabs / "train", *AROUND, "-o", town)
    learn = ("learn", town / "trips.csv", "--states", town / "cells.csv", "-o", model)
    wrong = run(*learn, "--time-step", "1 min")
    assert wrong.exit_code == 2
    assert is_one_line(wrong.stderr)
    assert "trips must hold neighbouring steps, got 66 gaps and no move" in wrong.stderr
    assert not model.exists()
    facts = json.loads(
        ok(*learn, "--time-step", "5 min", "--radius", "0.5km", "--smoothing", 1, "--json")
    )
    assert facts["from"]["moves"] + facts["from"]["beyond"] == 66
    assert facts["from"]["people"] == 6
    private = ("--time-step", "5 min", "--radius", 1500, "--epsilon", 1)
    said = run(*learn, *private, "--force")
    assert said.exit_code == 0
    assert "private: for your eyes" in said.stderr
    assert "from 6 people and 66 moves of theirs" in said.stderr
    assert "66" not in read_model(model).source
    assert "private" in json.loads(ok(*learn, *private, "--json"))
    (town / "few.csv").write_text(
        "person,time,state\n" + "".join(f"a,2024-05-01T0{h}:00Z,1-1\n" for h in range(5))
        + "b,2024-05-01T00:00Z,1-1\nb,2024-05-01T00:05Z,1-1\n"
    )  # fmt: skip
    few = run("learn", town / "few.csv", *learn[2:], "--time-step", "5 min")
    assert few.exit_code == 0
    assert "note: most steps come after a gap; is '5 min' the right time step?" in few.stderr


def test_a_private_model_that_is_forced_is_written_whatever_people_did(cabs: Path) -> None:
    town, model = cabs / "town", cabs / "town" / "other.npz"
    ok("import", cabs / "train", *AROUND, "-o", town)
    learn = ("learn", town / "trips.csv", "--states", town / "cells.csv", "-o", model)
    nobody_moves = (*learn, "--time-step", "1 min", "--epsilon", 1)
    assert run(*nobody_moves).exit_code == 2
    assert not model.exists()
    forced = run(*nobody_moves, "--force")
    assert forced.exit_code == 0
    assert model.exists()
    assert "note: private: most steps come after a gap" in forced.stderr
    assert "gap" not in forced.stdout


# Nothing edited is lost


def test_files_that_somebody_changed_are_not_written_over(cabs: Path) -> None:
    town = cabs / "town"
    command = ("import", cabs / "train", *AROUND, "-o", town)
    ok(*command)
    ok(*command)
    edited = (town / "scenario.toml").read_text().replace('epsilon = "1"', 'epsilon = "0.5"')
    (town / "scenario.toml").write_text(edited)
    for again in (command, ("grid", *AROUND, "-o", town)):
        result = run(*again)
        assert result.exit_code == 2
        assert is_one_line(result.stderr)
        assert "scenario.toml: file must be new or as it would be written" in result.stderr
        assert f"--map {town}" in result.stderr
    assert (town / "scenario.toml").read_text() == edited
    other = ("import", cabs / "people", "--map", town, "-o", town / "trips.csv")
    result = run(*other)
    assert result.exit_code == 2
    assert "trips.csv: file must be new" in result.stderr
    assert "(--replace)" in result.stderr
    ok(*other, "--replace")
    assert {row["person"] for row in rows_of(town / "trips.csv")} == {"new_6", "new_7", "new_8"}
    ok(*command, "--replace")
    assert 'epsilon = "1"' in (town / "scenario.toml").read_text()


# Bad input


GOOD = walk(0)
BAD: dict[str, tuple[str, bytes, tuple[str, ...], str]] = {
    "no size": ("a.txt", GOOD.encode(), ("--cell", "0"), "cell must be a length in 1 m"),
    "too many states": ("a.txt", GOOD.encode(), ("--kilometres", "500", "--cell", "0.01"),
                        "at most 100000 states, got 2500000000"),
    "a length that is none": ("a.txt", GOOD.encode(), ("--cell", "small"), "cell must be"),
    "no place": ("a.txt", GOOD.encode(), ("--around", "here"), "--around must be LAT,LON"),
    "no time": ("a.txt", GOOD.encode(), ("--time", "fast"), "time must be unix, unix-ms"),
    "no zone": ("a.txt", GOOD.encode(), ("--zone", "Mars/Base"), "must be a name such as"),
    "no column": ("a.txt", GOOD.encode(), ("--column", "time=9"), "must have the column '9'"),
    "no such meaning": ("a.txt", GOOD.encode(), ("--column", "speed=1"), "--column must name"),
    "an empty file": ("a.txt", b"", (), "tracks must hold times with latitude and longitude"),
    "words": ("a.txt", b"Dear reader,\n", (), "a.txt:1: header must have a time"),
    "bare numbers": ("a.txt", b"1 2\n", (), "a.txt:1: columns must be named"),
    "bytes": ("a.csv", bytes(range(256)), (), "header must have a time"),
    "a kind nobody knows": ("a.doc", b"x", (), "path must end in one of .csv, .tsv"),
    "half a zip": ("a.zip", b"PK\3\4", (), "path must be a whole zip archive"),
    "half a gzip": ("a.csv.gz", gzip.compress(GOOD.encode())[:12], (), "tracks must hold times"),
    "half a Parquet": ("a.parquet", b"PAR1", (), "tracks must hold times"),
    "half a GPX": ("a.gpx", b"<gpx><trk>", (), "tracks must hold times"),
    "half a GeoJSON": ("a.geojson", b'{"type": "Feat', (), "header must have a time"),
    "times without a zone": ("a.csv", b"time,lat,lon\n2024-05-01T10:00,37.77,-122.42\n", (),
                             "got none; or name the zone of its place, by --zone or"),
    "dates in another form": ("a.csv", b"time,lat,lon\nMay 1st at ten,37.77,-122.42\n", (),
                              "got 1 bad ones, mostly: time must be"),
    "numbers for dates": ("a.csv", b"time,lat,lon\n1,37.77,-122.42\n", (), "got whole numbers"),
    "metres for degrees": ("a.csv", b"time,x,y\n1211000000,1,2\n", (), "latitude and longitude"),
    "a limit that is none": ("a.txt", GOOD.encode(), ("--limit", "24 per moon"), "limit must"),
    "a map that is none": ("a.txt", GOOD.encode(), ("--places", "nowhere.geojson"), "must stand"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_tracks_that_cannot_be_used_are_one_line_and_nothing_is_written(
    fault: str, tmp_path: Path
) -> None:
    name, content, options, message = BAD[fault]
    (tmp_path / name).write_bytes(content)
    command = ("import", tmp_path / name, *AROUND, "-o", tmp_path / "town", *options)
    result = run(*command, "--quiet")
    assert result.exit_code == 2, result.output
    assert is_one_line(result.stderr)
    assert message in result.stderr
    assert "37.7" not in result.stderr.replace(name, "")
    assert not (tmp_path / "town").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--map", "nowhere", "-o", "x.csv"), "nowhere: file must be readable"),
        (("--map", "town", "-o", "town"), "output must be a file of trips with --map"),
        (("--map", "town", "--around", "1,2", "-o", "x.csv"), "--map must stand without --around"),
        (("-o", "x"), "--around must be given, or --places, --roads or --map"),
        ((*AROUND, "-o", "train/new_0.txt"), "output must be a folder, got a file"),
    ],
)
def test_a_map_that_is_not_there_or_said_twice_is_one_line(
    options: tuple[str, ...], message: str, cabs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cabs)
    ok("grid", *AROUND, "-o", "town")
    result = run("import", "train", *options)
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert message in result.stderr


def test_an_archive_with_good_and_bad_files_keeps_the_good(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("day/new_0.txt", GOOD)
        archive.writestr("day/README.txt", "What is what\n")
        archive.writestr("day/broken.gpx", "<gpx>")
    facts = json.loads(
        ok("import", tmp_path / "all.zip", *AROUND, "-o", tmp_path / "town", "--json")
    )
    assert (facts["people"], facts["fixes"]) == (1, 60)


def test_a_broken_archive_among_good_files_is_one_damaged_file(cabs: Path) -> None:
    for name, content in (("broken.zip", b"PK\3\4 no zip"), ("empty.zip", b"")):
        (cabs / "train" / name).write_bytes(content)
    told = run("import", cabs / "train", *AROUND, "-o", cabs / "town")
    assert told.exit_code == 0, told.stderr
    assert "2 damaged files" in told.stdout
    assert "broken.zip" in told.stdout
    assert "empty.zip" in told.stdout
    # Named by itself it is what was asked for, and cannot be had.
    alone = run("import", cabs / "train" / "broken.zip", *AROUND, "-o", cabs / "other")
    assert alone.exit_code == 2
    assert "path must be a whole zip archive" in alone.stderr


def test_places_of_a_table_go_by_their_usual_names(cabs: Path) -> None:
    (cabs / "stations.csv").write_text(
        "station_id,Lat,LNG,docks\nS1,37.77,-122.42,9\nS2,37.78,-122.41,12\n"
    )
    ok("import", cabs / "train", "--places", cabs / "stations.csv", "-o", cabs / "town")
    assert rows_of(cabs / "town" / "cells.csv")[1] == {
        "label": "S2", "docks": "12.0", "latitude": "37.78", "longitude": "-122.41",
    }  # fmt: skip
    assert "S1" in {row["state"] for row in rows_of(cabs / "town" / "trips.csv")}
    (cabs / "rooms.csv").write_text("room,kind\nA1,bed\nA2,bed\n")
    refused = run("grid", "--places", cabs / "rooms.csv", "-o", cabs / "ward")
    assert refused.exit_code == 2
    assert is_one_line(refused.stderr)
    assert (
        "rooms.csv: columns must be latitude and longitude, or x and y, to say where places"
        in refused.stderr
    )
    assert "got room, kind" in refused.stderr


def test_a_table_without_a_column_of_labels_says_what_its_states_are_called(cabs: Path) -> None:
    (cabs / "rooms.csv").write_text("room,x,y\nA1,0,0\nA2,3,0\n")
    (cabs / "badges.csv").write_text("person,time,state\nann,1,A1\nann,2,A2\n")
    result = run("learn", cabs / "badges.csv", "--states", cabs / "rooms.csv", "-o", cabs / "m.npz")
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert (
        "badges.csv:2: state must be a label of rooms.csv, whose states are 0, 1, 2 and so on; "
        "a column label, state, name or id names them otherwise" in result.stderr
    )


@pytest.mark.parametrize(
    ("what", "others", "message"),
    [
        ("answers", (), "answers and estimates must go with RELEASES"),
        ("map", ("released.csv",), "answers and estimates must go with RELEASES"),
        ("answers", ("trips.csv",), "trips.csv:1: header must have the column epsilon"),
        ("answers", ("nowhere.csv",), "nowhere.csv: file must be readable"),
    ],
)
def test_an_export_that_cannot_be_is_one_line(
    what: str, others: tuple[str, ...], message: str, cabs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok("import", cabs / "train", *AROUND, "-o", cabs / "town")
    ok("learn", cabs / "town" / "trips.csv", "--scenario", cabs / "town" / "scenario.toml")
    monkeypatch.chdir(cabs / "town")
    result = run("export", what, "scenario.toml", *others, "-o", "out.geojson")
    assert result.exit_code == 2
    assert is_one_line(result.stderr)
    assert message in result.stderr
    assert not Path("out.geojson").exists()


def test_a_policy_of_nobody_or_everybody_is_said_and_small_places_have_a_fine_lattice(
    tmp_path: Path,
) -> None:
    around = ("--around", "52.52,13.4", "--kilometres")
    assert run("grid", *around, 10, "-o", tmp_path / "usual").stderr == ""
    far = run("grid", *around, 50, "--cell", "5 km", "-o", tmp_path / "far").stderr
    assert "note: the states lie 5,000 m apart, so no two are linked; --radius says" in far
    near = run("grid", *around, "0.12", "--cell", "12m", "-o", tmp_path / "near").stderr
    assert "note: the states lie within 153 m, so all look alike; --radius says" in near
    steps = [Settings.read(tmp_path / n / "scenario.toml").step for n in ("usual", "far", "near")]
    assert steps == [10, 10, 1]


def test_links_across_the_antimeridian_do_not_go_around_the_earth(tmp_path: Path) -> None:
    town = tmp_path / "sea"
    ok("grid", "--around", "-17.5,179.99", "--kilometres", "4", "--cell", "1 km", "-o", town)
    write_model(
        town / "model.npz", MarkovModel(np.full((16, 16), 1 / 16)), "test", Clock("5 min").law
    )
    ok("export", "policy", town / "scenario.toml", "-o", town / "policy.geojson")
    lines = json.loads((town / "policy.geojson").read_text())["features"]
    ends = [line["geometry"]["coordinates"] for line in lines]
    assert any(a[0] < 180 < b[0] for a, b in ends)
    assert all(abs(a[0] - b[0]) < 1 for a, b in ends)
