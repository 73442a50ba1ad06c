"""Many releases in one request: the same answers, one commit, and a problem a row."""

from __future__ import annotations

import json

import pytest

from dphmm import KeyedRandomness
from dphmm.books import find_problems
from tests.service_worlds import FAST, World

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


def test_lines_go_in_and_come_out(world):
    path = f"/v1/scenarios/{world.scenario}/releases:batch"
    headers = {
        "authorization": f"Bearer {world.keys['red', 'release']}",
        "content-type": "application/x-ndjson",
    }
    rows = [{"person": f"p{number}", "time": 1, "state": 2} for number in range(3)]
    content = "\n".join(map(json.dumps, rows)) + "\n\n"
    answer = world.http.post(path, content=content, headers=headers)
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["person"] for line in lines] == ["p0", "p1", "p2"]
    for wrong in ("", "{", '{"person": "p0"}', '{"person": "p0", "time": 1, "state": [1, "x"]}'):
        refused = world.http.post(path, content=wrong, headers=headers)
        assert refused.status_code == 422


def test_a_batch_of_another_clients_scenario_is_not_found(world):
    assert batch(world, [{"person": "p0", "time": 1, "state": 1}], client="blue").status_code == 404
    assert batch(world, []).status_code == 422
