"""A release goes past the framework, and nobody can tell."""

from __future__ import annotations

import pytest

from tests.service_worlds import World

GOOD = {"time": 3, "state": 4}
REQUESTS = {
    "as the page says": GOOD,
    "a whole number with a point": {**GOOD, "time": 3.0},
    "a label": {**GOOD, "state": "s3"},
    "coordinates": {**GOOD, "state": [1, 2.5]},
    "an own price": {**GOOD, "epsilon": "1/2"},
    "a price that is too large": {"time": 4, "state": 4, "epsilon": 7},
    "a price beyond all numbers": '{"time": 4, "state": 4, "epsilon": 1' + "0" * 400 + "}",
    "a slot that is closed": {**GOOD, "time": 2},
    "a time that is none": {**GOOD, "time": "soon"},
    "a field too many": {**GOOD, "why": 1},
    "a field too few": {"time": 3},
    "no number": '{"time": 3, "state": NaN}',
    "a state that is none": {**GOOD, "state": 99},
    "a field twice": '{"time": 1, "state": 4, "time": 3}',
    "a list": [GOOD],
    "nothing": "",
    "no JSON": "{time: 3}",
    "letters that are none": b'{"time": "\xff", "state": 4}',
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("shortcut"))
    assert made.release(3, 4).status_code == 200
    yield made
    made.close()


def ask_both_ways(world, path, body, kind="application/json"):
    """What is said by the short way and by the framework's."""
    headers = {"authorization": f"Bearer {world.keys['red', 'release']}", "content-type": kind}
    options = {"json": body} if isinstance(body, (dict, list)) else {"content": body}
    by_shortcut = world.http.post(path, headers=headers, **options)
    shortcut, world.app._shortcut = world.app._shortcut, nothing
    try:
        by_framework = world.http.post(path, headers=headers, **options)
    finally:
        world.app._shortcut = shortcut
    return by_shortcut, by_framework


async def nothing(scope, content):
    return None


def check_alike(first, second):
    assert first.status_code == second.status_code
    assert first.json() == second.json()
    kept = ("content-type", "retry-after", "connection", "cache-control")
    assert [first.headers.get(name) for name in kept] == [second.headers.get(name) for name in kept]


@pytest.mark.parametrize("name", REQUESTS)
def test_both_ways_say_the_same(world, name):
    check_alike(*ask_both_ways(world, world.person + "/releases", REQUESTS[name]))


@pytest.mark.parametrize(
    ("part", "other"),
    [("anna", "nobody"), ("anna", "x" * 201), ("anna", "%20anna"), ("anna", "a%2Fb")],
)
def test_both_ways_know_the_same_people(world, part, other):
    path = world.person.replace(part, other) + "/releases"
    check_alike(*ask_both_ways(world, path, GOOD))


@pytest.mark.parametrize("digest", ["0" * 64, "A" * 64, "0" * 63])
def test_both_ways_know_the_same_scenarios(world, digest):
    path = world.person.replace(world.scenario, digest) + "/releases"
    check_alike(*ask_both_ways(world, path, GOOD))


@pytest.mark.parametrize("kind", ["text/plain", "application/json; charset=utf-8", ""])
def test_both_ways_read_the_same_kinds_of_bodies(world, kind):
    check_alike(*ask_both_ways(world, world.person + "/releases", GOOD, kind))


def test_the_short_way_is_gone_by_what_the_page_says_and_by_nothing_else(world, monkeypatch):
    gone, answer = [], world.app._shortcut._answer

    async def watched(*asked):
        gone.append(asked[2])
        return await answer(*asked)

    monkeypatch.setattr(world.app._shortcut, "_answer", watched)
    assert world.release(3, 4).json()["repeated"]
    assert gone == ["anna"]
    assert world.release("soon", 4).status_code == 422
    assert world.ask("GET", world.person + "/releases").status_code == 200
    assert world.release(3, [None]).status_code == 422
    assert len(gone) == 2
