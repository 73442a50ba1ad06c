"""Many releases in one request: the same answers, one commit, and a problem a row."""

from __future__ import annotations

import json
import sys

import polars
import pytest

from dphmm import KeyedRandomness
from dphmm.books import find_problems
from dphmm.service.access import RefusedError
from dphmm.service.arrows import write_arrow
from dphmm.service.batches import read_rows
from tests.service_worlds import FAST, World, service

KEY = bytes(range(32))


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, FAST, KeyedRandomness(KEY))
    for number in range(40):
        world.store.begin(f"p{number}", client="red")
    yield world
    assert find_problems(world.store) == []
    world.close()


def batch(world, rows, **options):
    path = f"/v1/scenarios/{world.scenario}/releases:batch"
    return world.ask("POST", path, {"rows": rows}, scope="release", **options)


def test_a_batch_gives_the_answers_of_single_releases(world, tmp_path):
    rows = [
        {"person": f"p{number}", "time": time, "state": (number + time) % 6}
        for time in (3, 1, 2)
        for number in range(40)
    ]
    before = world.ask("GET", "/metrics").text
    answer = batch(world, rows)
    assert answer.status_code == 200
    found = answer.json()["rows"]
    assert [(one["person"], one["time"]) for one in found] == [
        (row["person"], row["time"]) for row in rows
    ]
    assert {one["status"] for one in found} == {200}
    assert not any(one["repeated"] for one in found)
    other = World(tmp_path_of(tmp_path), FAST, KeyedRandomness(KEY))
    path = other.person.replace("anna", "p7")
    other.ask("PUT", path, {})
    for time in (1, 2, 3):
        single = other.ask("POST", path + "/releases", {"time": time, "state": (7 + time) % 6})
        (same,) = (one for one in found if (one["person"], one["time"]) == ("p7", time))
        assert single.json() == {k: v for k, v in same.items() if k not in ("person", "status")}
    other.close()
    assert 'dphmm_answers_total{repeated="no"} 0' in before
    assert 'dphmm_answers_total{repeated="no"} 120' in world.ask("GET", "/metrics").text
    again = batch(world, rows[:2]).json()["rows"]
    assert again == [{**one, "repeated": True} for one in found[:2]]


def tmp_path_of(path):
    folder = path / "other"
    folder.mkdir()
    return folder


def test_what_is_wrong_with_a_row_is_said_in_its_place(world):
    world.ask("PUT", world.person.replace("anna", "poor"), {"budget": "1"})
    rows = [
        {"person": "p0", "time": 1, "state": 4},
        {"person": "nobody", "time": 1, "state": 4},
        {"person": "p1", "time": 1, "state": "no such state"},
        {"person": "p2", "time": "yesterday", "state": 4},
        {"person": "p3", "time": 1, "state": 4, "epsilon": 2},
        {"person": " p4", "time": 1, "state": 4},
        {"person": "poor", "time": 1, "state": 4},
        {"person": "poor", "time": 2, "state": 4},
        {"person": "p5", "time": 1, "state": 4, "epsilon": "1/2"},
        {"person": "p0", "time": 1, "state": 2},
    ]
    found = batch(world, rows).json()["rows"]
    assert [one["status"] for one in found] == [200, 404, 422, 422, 422, 422, 200, 409, 200, 200]
    assert (found[7]["requested"], found[7]["remaining"]) == ("2", "1")
    assert found[8]["epsilon"] == "1/2"
    assert found[9] == {**found[0], "repeated": True}
    assert "no such state" not in json.dumps(found)
    assert world.ask("GET", "/v1/people/p3/ledger").json()["spent"] == "0"


JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


def send(world, content, kind):
    headers = {"authorization": f"Bearer {world.keys['red', 'release']}", "content-type": kind}
    path = f"/v1/scenarios/{world.scenario}/releases:batch"
    return world.http.post(path, content=content, headers=headers)


def stream_of(columns, **options):
    """A stream of Arrow."""
    pyarrow = pytest.importorskip("pyarrow")
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    sink = pyarrow.BufferOutputStream()
    chosen = pyarrow.ipc.IpcWriteOptions(**options)
    with pyarrow.ipc.new_stream(sink, table.schema, options=chosen) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def rows_in(answer):
    """The rows of an answer, however they came."""
    kind = answer.headers["content-type"]
    if kind == ARROW:
        pyarrow = pytest.importorskip("pyarrow")
        rows = pyarrow.ipc.open_stream(answer.content).read_all().to_pylist()
        silent = ("answer", "lattice")
        return [
            {
                k: v
                for k, v in row.items()
                if v is not None or (k in silent and row["status"] == 200)
            }
            for row in rows
        ]
    if kind == NDJSON:
        return [json.loads(line) for line in answer.text.splitlines()]
    assert kind == JSON
    return answer.json()["rows"]


ROWS = [
    {"person": "p0", "time": 1, "state": "s3", "epsilon": None},
    {"person": "p1", "time": 2, "state": "s4", "epsilon": "1/2"},
    {"person": "nobody", "time": 1, "state": "s4", "epsilon": None},
    {"person": "p2", "time": 1, "state": "no such state", "epsilon": None},
    {"person": "p1", "time": 1, "state": "s5", "epsilon": "1/2"},
    {"person": "poor", "time": 1, "state": "s5", "epsilon": None},
    {"person": "poor", "time": 2, "state": "s5", "epsilon": None},
]


def test_rows_are_the_same_in_every_form(world):
    pytest.importorskip("pyarrow")
    world.ask("PUT", world.person.replace("anna", "poor"), {"budget": "1 per 5 steps"})
    lines = "\r\n".join(map(json.dumps, ROWS)) + "\n\n"
    columns = polars.DataFrame(ROWS).to_arrow()
    forms = {
        JSON: json.dumps({"rows": ROWS}),
        NDJSON: lines,
        ARROW: stream_of(columns),
    }
    found = []
    for kind, content in forms.items():
        answer = send(world, content, kind)
        assert answer.headers["content-type"] == kind
        found.append(rows_in(answer))
    assert [row["status"] for row in found[0]] == [200, 200, 404, 422, 200, 200, 409]
    assert found[0][6]["window"] == "1 per 5 steps"
    again = [{**row, "repeated": True} if row["status"] == 200 else row for row in found[0]]
    # The refused row asked for both of a person's prices at first.
    again[6] = found[1][6]
    assert found[1] == again
    assert found[2] == again
    whole = send(world, stream_of(columns.to_pydict()), ARROW + "; v=1")
    assert rows_in(whole) == again


def test_coordinates_and_numbers_may_come_in_columns(world):
    pyarrow = pytest.importorskip("pyarrow")
    pairs = {"person": ["p3", "p4"], "time": [1, 1], "state": [[20.0, 45.0], [1.0, 2.0]]}
    rows = [dict(zip(pairs, cells, strict=True)) for cells in zip(*pairs.values(), strict=True)]
    # These states are no places; that is said of coordinates in either form.
    assert rows_in(send(world, stream_of(pairs), ARROW)) == batch(world, rows).json()["rows"]
    numbers = pyarrow.table(
        {
            "person": pyarrow.array(["p5", "p6"]).dictionary_encode(),
            "time": pyarrow.array([1, 2], pyarrow.int16()),
            "state": pyarrow.array([1, 5], pyarrow.uint8()),
            "epsilon": pyarrow.array([0.5, None]),
        }
    )
    found = rows_in(send(world, stream_of(numbers), ARROW))
    assert [(row["status"], row["epsilon"]) for row in found] == [(200, "1/2"), (200, "1")]


NOT_ROWS = "body: must be an Arrow stream with the columns person, time, state, perhaps epsilon"


def broken_streams():
    pyarrow = pytest.importorskip("pyarrow")
    good = stream_of({"person": ["p0"], "time": [9], "state": [2]})
    many = {"person": ["p0"] * 70_000, "time": [9] * 70_000, "state": [2] * 70_000}
    nulls = pyarrow.table({"person": [None], "time": [None], "state": [None]})
    twice = pyarrow.table([["p0"], ["p1"], [9], [2]], names=["person", "person", "time", "state"])
    timed = pyarrow.table({"person": ["p0"], "time": [9.5], "state": [2]})
    float_state = pyarrow.table({"person": ["p0"], "time": [9], "state": [41.25]})
    return {
        "nothing": (b"", NOT_ROWS),
        "no stream": (b"ARROW1" * 10, NOT_ROWS),
        "half": (good[: len(good) // 2], NOT_ROWS),
        "flipped": (
            good[:200] + bytes(byte ^ 255 for byte in good[200:260]) + good[260:],
            NOT_ROWS,
        ),
        "other columns": (stream_of({"person": ["p0"], "time": [9]}), NOT_ROWS),
        "more columns": (
            stream_of({"person": ["p"], "time": [9], "state": [2], "x": [1]}),
            NOT_ROWS,
        ),
        "a name twice": (stream_of(twice), NOT_ROWS),
        "no rows": (stream_of({"person": [], "time": [], "state": []}), "rows must be 1 to 65536"),
        "many rows": (stream_of(many, compression="zstd"), "rows must be 1 to 65536"),
        "nulls": (stream_of(nulls), "body rows 0 "),
        "half times": (stream_of(timed), "body rows 0 time"),
        "float states": (stream_of(float_state), "state must be a number or label"),
    }


def test_a_stream_that_is_none_gets_one_line(world):
    for name, (content, says) in broken_streams().items():
        answer = send(world, content, ARROW)
        assert answer.status_code == 422, name
        assert answer.json()["problem"].startswith(says), name
        assert "\n" not in answer.json()["problem"]
        assert "41.25" not in answer.text
    assert world.ask("GET", "/v1/people/p0/ledger").json()["spent"] == "0"


def test_a_stream_that_unpacks_to_a_flood_ends_alone(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    flood = pyarrow.table({"person": ["p" * 2**29], "time": [1], "state": [1]})
    content = stream_of(flood, compression="zstd")
    assert len(content) < 2**20
    chosen = {"tick": 0, "rate": 0, "key_memory": 0, "long_memory": 2**28}
    with service(tmp_path, **chosen) as world:
        refused = send(world, content, ARROW)
        assert refused.status_code == 422
        assert world.release(1, 4).status_code == 200


def test_lines_are_counted_before_they_are_read(world):
    refused = send(world, b"{\n" * 70_000, NDJSON)
    assert (refused.status_code, refused.json()["problem"]) == (
        422,
        "rows must be 1 to 65536, got none or more",
    )
    for wrong, says in (
        ("", "rows must be 1 to 65536"),
        ("{", "body rows 0"),
        ('{"person": "p0"}', "body rows 0 time"),
        ('{"person": "p0", "time": 1, "state": 1}\n{"person": 7}', "body rows 1 time"),
        ('{"person": "p0", "time": 1, "state": [1, "x"]}', "state must be"),
    ):
        answer = send(world, wrong, NDJSON)
        assert answer.status_code == 422
        assert answer.json()["problem"].startswith(says)


def test_a_body_that_is_too_large_is_not_parsed(tmp_path):
    with service(tmp_path, largest_body=2**14) as world:
        for kind in (JSON, NDJSON, ARROW):
            assert send(world, b" " * 2**15, kind).status_code == 413


def test_arrow_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    with pytest.raises(RefusedError, match="Arrow must be installed at the service; send JSON"):
        read_rows(b"", ARROW)


def test_long_lattice_points_are_text():
    pytest.importorskip("pyarrow")
    rows = [{"person": "p", "status": 200, "lattice": [2**70, 1]}, {"person": "q", "status": 404}]
    found = pytest.importorskip("pyarrow").ipc.open_stream(write_arrow(rows)).read_all()
    assert found.column("lattice").to_pylist() == [[str(2**70), "1"], None]


def test_a_batch_of_another_clients_scenario_is_not_found(world):
    assert batch(world, [{"person": "p0", "time": 1, "state": 1}], client="blue").status_code == 404
    assert batch(world, []).status_code == 422
