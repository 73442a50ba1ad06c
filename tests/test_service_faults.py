"""The service with bad input and in trouble: a problem in words, and nothing spent."""

from __future__ import annotations

import asyncio
import json
import threading

import httpx
import pytest

from dphmm import DphmmError, StoreError
from dphmm.books import Store, find_problems
from dphmm.books.scenarios import find_scenario
from dphmm.scenario.packing import unpack
from dphmm.service.committing import can_write
from tests.crash import paper_scenario
from tests.crash.world import release
from tests.service_worlds import World, service


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    assert find_problems(world.store) == []
    world.close()


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b'{"time": 1}', 422),
        (b'{"time": "1.5", "state": 1}', 422),
        (b'{"time": "2024-05-01T10:05:00Z", "state": 1}', 422),
        (b'{"time": true, "state": 1}', 422),
        (b'{"time": 0, "state": 1}', 422),
        (b'{"time": -1, "state": 1}', 422),
        (b'{"time": 100001, "state": 1}', 422),
        (b'{"time": 9007199254740993, "state": 1}', 422),
        (b'{"time": 9999999999999999999, "state": 1}', 422),
        (b'{"time": 1.5, "state": 1}', 422),
        (b'{"time": 1, "state": NaN}', 422),
        (b'{"time": 1, "state": [Infinity, 0]}', 422),
        (b'{"time": 1, "state": 1, "extra": 1}', 422),
        (b'{"time": 1, "state": 1, "epsilon": 0}', 422),
        (b'{"time": 1, "state": 1, "epsilon": "x"}', 422),
        (b'{"time": 1, "state": 1, "epsilon": "1e999999999"}', 422),
        (b'{"time": 1, "state": 1, "epsilon": NaN}', 422),
        (b'{"time": 1, "state": "\\ud800"}', 422),
        (b'{"time": ' + b"9" * 5000 + b', "state": 1}', 400),
        (b"[" * 10_000, 400),
        (b"\xff\xfe", 400),
    ],
)
def test_a_malformed_body_is_refused(world, content, status):
    key = world.keys["red", "release"]
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    answer = world.http.post(world.person + "/releases", content=content, headers=headers)
    assert answer.status_code in (status, 422)
    assert answer.json()["problem"]


@pytest.mark.parametrize("name", ["%00", "%0A", "a" * 201, "%ED%A0%80", "%FF", "."])
def test_a_strange_name_never_breaks_anything(world, name):
    for method, path in (
        ("PUT", f"/v1/scenarios/{world.scenario}/people/{name}"),
        ("GET", f"/v1/people/{name}/ledger"),
    ):
        assert world.ask(method, path, {} if method == "PUT" else None).status_code < 500


def test_a_page_begins_after_a_name_that_somebody_can_have(world):
    """PostgreSQL cannot even compare a text with a NUL, which was called trouble of the store."""
    for after in ("%00", "a%00b", "%0A", "Zoe%CC%88"):
        assert world.ask("GET", f"/v1/people?after={after}").status_code == 422
    assert world.ask("GET", "/v1/people?after=").status_code == 200


@pytest.mark.parametrize("path", ["/live/", "/docs/", "/openapi.json/", "/ready/"])
def test_nobody_is_sent_elsewhere(world, path):
    """The address would be made of the header Host, which whoever asks has chosen."""
    answer = world.ask("GET", path)
    assert (answer.status_code, answer.json()) == (404, {"problem": "not found"})


@pytest.mark.parametrize(
    "change",
    [
        {"scenario": "epsilon = "},
        {"scenario": 'epsilon = 1\nstates = "/etc/passwd"'},
        {"scenario": 'epsilon = 1\nstates = "../../x"'},
        {"scenario": 'epsilon = 1\nmodel = "/dev/zero"'},
        {"scenario": "epsilon = 0"},
        {"scenario": "epsilon = " + "9" * 5000},
        {"scenario": "epsilon = " + "[" * 5000 + "]" * 5000},
        {"scenario": "epsilon" + ".a" * 5000 + " = 1"},
        {"scenario": "\ud800"},
        {"states": ""},
        {"states": "label,x,y\na,1,2"},
        {"transition": [[1.0]]},
        {"transition": [[0.5, 0.4], [0.5]]},
        {"transition": [[float("nan")] * 6] * 6},
        {"transition": None},
        {"transition": None, "model": "not base64!"},
        {"transition": None, "model": "AAAA"},
        {"model": "AAAA"},
        {"edges": "a,b\ns1"},
    ],
)
def test_a_scenario_that_is_none_is_refused_and_reads_no_file(world, change):
    content = json.dumps({**paper_scenario.body(), **change})
    headers = {
        "authorization": f"Bearer {world.keys['red', 'scenarios']}",
        "content-type": "application/json",
    }
    answer = world.http.post("/v1/scenarios", content=content, headers=headers)
    if change == {"edges": "a,b\ns1"}:  # a table that the scenario does not name is not read
        assert answer.status_code == 201
        return
    assert answer.status_code == 422
    assert "root:" not in answer.text


def test_a_huge_body_is_refused_before_it_is_read(world):
    answer = world.release(1, "x" * 100_000)
    assert answer.status_code == 413
    assert "at most" in answer.json()["problem"]
    assert world.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "0"


def drive(app, messages, path="/health", headers=()):
    """Play a connection to the application; what it sends back."""
    sent, waiting = [], list(messages)

    async def receive():
        if waiting:
            return waiting.pop(0)
        await asyncio.sleep(3600)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
    }
    asyncio.run(app(scope, receive, send))
    return sent


def test_a_body_that_does_not_come_is_given_up(tmp_path):
    with service(tmp_path, slowest_body=0.05) as world:
        sent = drive(world.app, [{"type": "http.request", "body": b"{", "more_body": True}])
        assert sent[0]["status"] == 408


def test_a_body_with_two_lengths_is_refused(world):
    """Whoever passed it on may have read the other one, and the rest as somebody's request."""
    headers = [(b"content-length", b"4"), (b"transfer-encoding", b"chunked")]
    sent = drive(world.app, [{"type": "http.request", "body": b"", "more_body": False}], "/live")
    assert sent[0]["status"] == 200
    sent = drive(
        world.app, [{"type": "http.request", "body": b"", "more_body": False}], "/live", headers
    )
    assert sent[0]["status"] == 400
    assert (b"connection", b"close") in sent[0]["headers"]


def test_a_body_that_grows_beyond_its_announcement_is_cut_off(tmp_path):
    with service(tmp_path, largest_body=2000) as world:
        parts = [{"type": "http.request", "body": b"x" * 900, "more_body": True}] * 3
        assert drive(world.app, parts)[0]["status"] == 413


def test_a_client_has_few_bytes_under_way_and_others_have_theirs(tmp_path, monkeypatch):
    """What waits for a worker is held in memory: of one client not more than it may send."""
    gate = asyncio.Event()

    async def wait(*_):
        await gate.wait()
        raise DphmmError("that was all")

    def rows(size):
        return {"rows": [{"person": "anna", "time": 1, "state": "x" * size}]}

    async def ask_at_once(world):
        path = f"/v1/scenarios/{world.scenario}/releases:batch"
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(world.app), base_url="http://test"
        ) as http:

            def send(client):
                headers = {"authorization": f"Bearer {world.keys[client, 'release']}"}
                return asyncio.create_task(http.post(path, json=rows(1500), headers=headers))

            tasks = [send("red") for _ in range(6)]
            while sum(task.done() for task in tasks) < 3:
                await asyncio.sleep(0.01)
            other = send("blue")
            await asyncio.sleep(0.2)
            assert not other.done()
            refused = [task.result() for task in tasks if task.done()]
            assert [(one.status_code, one.headers["retry-after"]) for one in refused] == 3 * [
                (429, "1")
            ]
            gate.set()
            await asyncio.gather(*tasks, other)
            assert (await send("red")).status_code == 422

    with service(tmp_path, largest_body=2000, sent_at_once=5000) as world:
        monkeypatch.setattr("dphmm.service.workers.Workers.run", wait)
        asyncio.run(asyncio.wait_for(ask_at_once(world), 60))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/releases", b'{"time": 1, "time": 2, "state": 1}'),
        ("/releases", b'{"time": 1, "state": 1, "\\u0073tate": 2}'),
        ("/releases", b'{"time": 1, "state": 1, "epsilon": 1, "epsilon": 0.5}'),
        ("", b'{"budget": 1, "budget": 100}'),
        ("batch", b'{"rows": [{"person": "anna", "time": 1, "time": 2, "state": 1}]}'),
        ("batch", b'{"rows": [], "rows": [{"person": "anna", "time": 1, "state": 1}]}'),
    ],
)
def test_a_name_that_is_there_twice_is_refused(world, path, body):
    """Two readers of such a body would not read the same."""
    method = "POST" if path else "PUT"
    scope = "release" if path else "people"
    asked = world.person + path
    if path == "batch":
        asked = f"/v1/scenarios/{world.scenario}/releases:batch"
    headers = {
        "authorization": f"Bearer {world.keys['red', scope]}",
        "content-type": "application/json",
    }
    answer = world.http.request(method, asked, content=body, headers=headers)
    assert answer.status_code == 422
    assert answer.json() == {"problem": "the body must have each name once, got one twice"}
    assert world.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "0"


def test_a_name_that_is_there_twice_in_a_line_is_refused(world):
    lines = b'{"person": "anna", "time": 1, "state": 1, "time": 2}\n'
    headers = {
        "authorization": f"Bearer {world.keys['red', 'release']}",
        "content-type": "application/x-ndjson",
    }
    path = f"/v1/scenarios/{world.scenario}/releases:batch"
    answer = world.http.post(path, content=lines, headers=headers)
    assert (answer.status_code, "each name once" in answer.text) == (422, True)


def test_a_client_that_hangs_up_early_gets_nothing_and_changes_nothing(world):
    assert drive(world.app, [{"type": "http.disconnect"}]) == []


def test_a_client_that_hangs_up_late_finds_its_answer_again(world):
    """The answer was stored before the client was gone; asking again gives the same one."""
    terms = unpack(find_scenario(world.store, world.scenario, client="red")).terms
    lost, _ = release(world.store, "anna", 1, 4, terms, client="red")
    again = world.release(1, 2).json()
    assert again["repeated"]
    assert again["lattice"] == lost.lattice.tolist()


def test_a_store_in_trouble_is_a_503_that_says_what_to_do(world, monkeypatch):
    def fail(*_, **__):
        raise StoreError("the store postgresql://bank.example/store is locked by another program")

    monkeypatch.setattr(world.store, "commit", fail)
    answer = world.release(1, 4)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "ask again" in answer.json()["problem"]
    assert "bank.example" not in answer.text


def test_a_service_that_is_closing_refuses_new_requests(world):
    world.app.closing = True
    answer = world.release(1, 4)
    world.app.closing = False
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert world.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "0"


def test_a_service_with_too_many_waiting_says_so(tmp_path):
    with service(tmp_path, threads=1, waiting=1) as world:
        gate, seen = threading.Event(), []
        original = world.store.commit
        world.store.commit = lambda *a, **k: (gate.wait(30), original(*a, **k))[1]

        async def ask_at_once():
            transport = httpx.ASGITransport(world.app)
            headers = {"authorization": f"Bearer {world.keys['red', 'release']}"}
            async with httpx.AsyncClient(
                transport=transport, base_url="http://test", headers=headers
            ) as http:
                path, body = world.person + "/releases", {"time": 1, "state": 4}
                tasks = [asyncio.create_task(http.post(path, json=body)) for _ in range(6)]
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                gate.set()
                seen.extend(answer.status_code for answer in await asyncio.gather(*tasks))
                assert {task.result().status_code for task in done} == {503}

        asyncio.run(ask_at_once())
        assert set(seen) == {200, 503}


def test_unknown_paths_and_methods_are_problems_too(world):
    assert world.ask("GET", "/v1/nothing").json() == {"problem": "not found"}
    refused = world.ask("DELETE", "/v1/people")
    assert refused.status_code == 405
    assert refused.headers["allow"] == "GET"
    assert world.http.get("/nothing").status_code == 404


def test_a_store_that_cannot_be_written_is_not_ready_and_the_process_is_alive(world, monkeypatch):
    assert world.http.get("/ready").json() == {"status": "ok"}
    monkeypatch.setattr("dphmm.service.readiness.FRESH", 0)
    monkeypatch.setattr("dphmm.service.readiness.can_write", lambda store: False)
    for path in ("/ready", "/health"):
        answer = world.http.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert world.store.database.name not in answer.text
    assert world.http.get("/live").status_code == 200


def test_a_store_that_says_nothing_is_not_ready(world, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr("dphmm.service.readiness.PATIENCE", 0.1)
    monkeypatch.setattr("dphmm.service.readiness.can_write", lambda store: gate.wait(30))
    assert world.http.get("/ready").status_code == 503
    assert world.http.get("/live").status_code == 200
    gate.set()


def test_whether_a_store_can_be_written_is_tried(tmp_path):
    store = Store.open(str(tmp_path / "closed.db"))
    assert can_write(store)
    store.database._connection().execute("PRAGMA query_only = ON")
    assert not can_write(store)
    store.close()
