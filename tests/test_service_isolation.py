"""What one client asks is that client's own: nobody else's requests fail or wait for it."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import threading
import time
from collections import deque
from concurrent.futures import Future
from multiprocessing import forkserver

import httpx
import pytest

from benchmarks.bench_service import scenario_body
from dphmm import ArgumentError, BudgetError, StoreError, TooLargeError
from dphmm.books import Store
from dphmm.books.scenarios import add_scenario
from dphmm.errors import MovedError
from dphmm.release import engine
from dphmm.release.engine import Ask
from dphmm.scenario.packing import pack
from dphmm.service import ServiceSettings
from dphmm.service.access import RefusedError
from dphmm.service.app import create_app
from dphmm.service.bodies import NewRelease
from dphmm.service.committing import GroupCommit, Threads
from dphmm.service.handlers import Handlers
from dphmm.service.preparing import Preparing
from dphmm.service.workers import WorkerError, Workers
from tests.crash import paper_scenario
from tests.service_worlds import service

SOON = 20
LONG_GAP = 90_000
PRIMES = [1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099]


def dense(states):
    """A scenario that is small to write and larger to have."""
    rows = "\n".join(f"s{n},{n},{n * n % 97}" for n in range(states))
    toml = 'name = "dense"\nepsilon = 1\n[policy]\ndistance = 1\n'
    row = [round(1 / states, 9)] * (states - 1)
    row.append(1 - sum(row))
    return {"scenario": toml, "states": f"label,x,y\n{rows}", "transition": [row] * states}


@pytest.fixture
def store(tmp_path):
    held = Store.open(str(tmp_path / "store.db"))
    yield held
    held.close()


# Numbers


@pytest.mark.parametrize("prime", PRIMES)
def test_prices_whose_sum_could_not_be_printed_are_refused(tmp_path, prime):
    with service(tmp_path) as world:
        body = {"time": 1, "state": 4, "epsilon": f"1/{prime}"}
        refused = world.ask("POST", world.person + "/releases", body)
        assert refused.status_code == 422
        assert "a denominator of at most 1000" in refused.json()["problem"]
        fine = world.ask("POST", world.person + "/releases", {**body, "epsilon": "1/997"})
        assert fine.json()["epsilon"] == "1/997"


def test_no_scenario_has_such_a_price_of_its_own(tmp_path):
    with service(tmp_path) as world:
        toml = paper_scenario.TOML.replace("epsilon = 1", 'epsilon = "1/1000003"')
        refused = world.ask("POST", "/v1/scenarios", paper_scenario.body(toml))
        assert refused.status_code == 422


# Groups


def ask_at_once(world, requests, app=None):
    """The answers to requests that come together."""

    async def run():
        transport = httpx.ASGITransport(app or world.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            tasks = []
            for client, person, time_ in requests:
                key = world.keys[client, "release"]
                path = world.person.replace("anna", person) + "/releases"
                headers = {"authorization": f"Bearer {key}"}
                body = {"time": time_, "state": 4}
                tasks.append(http.post(path, json=body, headers=headers))
            return await asyncio.gather(*tasks)

    return asyncio.run(run())


def with_people(world, people):
    for client in ("red", "blue"):
        world.ask("POST", "/v1/scenarios", paper_scenario.body(), client=client)
        for person in people:
            path = world.person.replace("anna", person)
            assert world.ask("PUT", path, {}, client=client).status_code == 200


def test_a_damaged_person_fails_alone(tmp_path):
    with service(tmp_path) as world:
        people = [f"p{number}" for number in range(6)]
        with_people(world, people)
        assert world.ask("POST", world.person.replace("anna", "p3") + "/releases",
                         {"time": 1, "state": 4}).status_code == 200  # fmt: skip
        with world.store.database.transaction() as transaction:
            transaction.rows("UPDATE standings SET content = ?", (b"damaged",))
        world.store._kept.clear()
        answers = ask_at_once(world, [("red", person, 2) for person in people])
        assert [a.status_code for a in answers] == [200, 200, 200, 503, 200, 200]


def test_a_store_that_cannot_be_written_is_not_asked_for_each(tmp_path, monkeypatch):
    with service(tmp_path) as world:
        people = [f"p{number}" for number in range(6)]
        with_people(world, people)
        tries = []

        def fail(*_, **__):
            tries.append(1)
            raise StoreError("the store /secret/place is locked by another program")

        monkeypatch.setattr(world.store, "commit", fail)
        monkeypatch.setattr("dphmm.service.committing.can_write", lambda store: False)
        answers = ask_at_once(world, [("red", person, 1) for person in people])
        assert {a.status_code for a in answers} == {503}
        assert len(tries) <= 2
        assert "/secret/place" not in "".join(a.text for a in answers)


def test_a_short_queue_does_not_wait_behind_a_long_one(store):
    """Clients take turns, and nobody is in a group twice."""
    settings = ServiceSettings()
    commit = GroupCommit(store, Threads(settings), settings)

    def waiting(client, people):
        asks = [Ask(None, [person], None, None, client=client) for person in people]
        return deque((ask, None) for ask in asks)

    people = [f"p{number}" for number in range(80)]
    commit._waiting = {
        "red": waiting("red", people),
        "blue": waiting("blue", ["p0"]),
        "grey": waiting("grey", ["p0", "p0"]),
    }
    groups = []
    while group := commit._next():
        groups.append([(ask.client, ask.people[0]) for ask, _ in group])
    assert groups[0][:3] == [("red", "p0"), ("blue", "p0"), ("grey", "p0")]
    assert [len(group) for group in groups] == [64, 19]
    assert ("grey", "p0") in groups[1]
    assert not commit._waiting


# Long ways


def test_a_long_way_is_gone_elsewhere_and_the_answer_is_the_same_one_again(tmp_path):
    with service(tmp_path) as world:
        assert world.release(1, 4).status_code == 200
        threads, release = [], engine.release

        def watched(book, asks, *rest, **options):
            threads.append(release(book, asks, *rest, **options))
            return threads[-1]

        engine.release = watched
        try:
            far = world.release(LONG_GAP, 4)
        finally:
            engine.release = release
        assert far.status_code == 200
        assert not far.json()["repeated"]
        assert isinstance(threads[0][0].faults[0], engine.LongWayError)
        assert world.release(LONG_GAP, 3).json() == {**far.json(), "repeated": True}
        assert world.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "2"


def test_ways_that_are_long_only_together_are_gone_one_group_after_the_other(tmp_path, monkeypatch):
    """After a night everybody has a gap: no worker is asked, and nobody is refused."""
    with service(tmp_path, long_waiting=1) as world:
        people = [f"p{number}" for number in range(8)]
        with_people(world, people)
        monkeypatch.setattr("dphmm.service.workers.Workers.submit", None)
        answers = ask_at_once(world, [("red", person, 1500) for person in people])
        assert {a.status_code for a in answers} == {200}
        assert len({str(a.json()["lattice"]) for a in answers}) > 1


# Workers


def running(store, **chosen):
    return Workers(store, ServiceSettings(**chosen))


def slow_release(store):
    """A release that takes seconds: 400 states, from each to each, and a long way."""
    body = scenario_body()
    walk = [[0.5 * share + 0.5 / len(row) for share in row] for row in body["transition"]]
    digest, text = pack(body["scenario"], body["states"], walk)
    add_scenario(store, digest, text, client="red")
    store.begin("anna", client="red")
    near, far = (NewRelease(time=time, state=0) for time in (1, LONG_GAP))
    return [("red", "release", "red", digest, "anna", body) for body in (near, far)]


def test_what_takes_too_long_is_ended_and_the_next_one_runs(store):
    near, far = slow_release(store)
    workers = running(store)
    first = workers.submit(*near).result(SOON)
    workers.close()
    workers = running(store, long_seconds=0.5)
    with pytest.raises(TooLargeError, match=r"within 0.5 seconds"):
        workers.submit(*far).result(SOON)
    assert store.ledger("anna", client="red").spent == 1
    assert len(workers.submit("red", "scenarios", "red").result(SOON)["scenarios"]) == 1
    workers.close()
    again = running(store)
    assert again.submit(*near).result(SOON).shown == {**first.shown, "repeated": True}
    again.close()


def test_what_takes_too_much_memory_is_refused(store):
    workers = running(store, long_memory=2**26)
    with pytest.raises(TooLargeError, match="64 MB"):
        workers.submit("red", "add_scenario", "red", json.dumps(dense(1200)).encode()).result(SOON)
    assert workers.submit("red", "scenarios", "red").result(SOON) == {"scenarios": []}
    workers.close()


def test_workers_come_again_when_the_process_that_they_come_from_has_died(store):
    for _ in range(3):
        workers = running(store)
        assert workers.submit("red", "scenarios", "red").result(SOON) == {"scenarios": []}
        os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
        assert workers.submit("red", "scenarios", "red").result(SOON) == {"scenarios": []}
        workers.close()


def test_a_worker_that_was_asked_for_comes_though_who_was_asked_has_died(store):
    first = running(store)
    first.submit("red", "scenarios", "red").result(SOON)
    first.close()
    workers, asked = running(store), forkserver._forkserver._forkserver_pid
    os.kill(asked, signal.SIGSTOP)
    launched = threading.Event()
    launch, workers._fork = workers._fork, lambda: (launched.set(), launch())[1]
    job = workers.submit("red", "scenarios", "red")
    assert launched.wait(SOON)
    time.sleep(0.3)  # it is asked, and would answer if it ran
    os.kill(asked, signal.SIGKILL)
    assert job.result(SOON) == {"scenarios": []}
    workers.close()


def test_closing_ends_what_runs_at_once(store):
    near, far = slow_release(store)
    workers = running(store)
    workers.submit(*near).result(SOON)
    slow = workers.submit(*far)
    while not slow.running():
        time.sleep(0.01)
    workers.close()
    with pytest.raises(RefusedError, match="shutting down"):
        slow.result(2)
    with pytest.raises(RefusedError):
        workers.submit("red", "scenarios", "red")


def test_clients_take_turns_and_a_client_may_not_have_many_waiting(store):
    workers = running(store, long_workers=1, long_waiting=2)
    gate = threading.Event()
    ask, order = workers._ask, []

    def waited(process, connection, job):
        gate.wait(SOON)
        order.append(job.client)
        return ask(process, connection, job)

    workers._ask = waited
    first = workers.submit("red", "scenarios", "red")
    end = time.monotonic() + SOON
    while not first.running() and time.monotonic() < end:
        time.sleep(0.01)
    waiting = [workers.submit("red", "scenarios", "red") for _ in range(2)]
    with pytest.raises(RefusedError, match="one by one"):
        workers.submit("red", "scenarios", "red")
    other = workers.submit("blue", "scenarios", "blue")
    gate.set()
    for job in (first, *waiting, other):
        job.result(SOON)
    assert order.index("blue") < 3
    workers.close()


def test_a_fault_in_a_worker_has_a_kind_and_a_place_and_no_words(store):
    workers = running(store)
    with pytest.raises(WorkerError) as told:
        workers.submit("red", "no_such_handler_s5-the-secret").result(SOON)
    assert told.value.kind == "AttributeError"
    assert "s5-the-secret" not in str(told.value.at)
    workers.close()


def test_every_error_survives_the_way_between_processes():
    for fault in (
        BudgetError(spent=1, requested=2, remaining=3, opens=7),
        MovedError(["a"]),
        RefusedError(422, "words", where=["body"]),
        engine.LongWayError(),
        ArgumentError("words"),
    ):
        again = pickle.loads(pickle.dumps(fault))
        assert (type(again), str(again)) == (type(fault), str(fault))
        assert vars(again) == vars(fault)


# A server that has just started


def cold(world, **chosen):
    """Another server on the same store, which has prepared nothing yet."""
    settings = ServiceSettings(**{"tick": 0, "rate": 0, "key_memory": 60, **chosen})
    return create_app(Store.open(world.store.database.name), settings)


def count_loads(monkeypatch, change=lambda job, future: future):
    """The preparations that workers are asked for, as a list that grows."""
    loads, submit = [], Workers.submit

    def watched(self, client, name, *arguments):
        future = submit(self, client, name, *arguments)
        if name != "load":
            return future
        loads.append((client, *arguments))
        return change(client, future)

    monkeypatch.setattr(Workers, "submit", watched)
    return loads


def test_all_who_come_while_a_scenario_is_prepared_wait_for_that_once(tmp_path, monkeypatch):
    with service(tmp_path) as world:
        people = [f"p{number}" for number in range(100)]
        for person in people:
            world.store.begin(person, client="red")
        loads = count_loads(monkeypatch)
        app = cold(world, long_waiting=1)
        answers = ask_at_once(world, [("red", person, 1) for person in people], app)
        assert {answer.status_code for answer in answers} == {200}
        assert len(loads) == 1
        app.close()


def test_nobody_else_waits_for_a_scenario_that_is_being_prepared(tmp_path, monkeypatch):
    with service(tmp_path) as world:
        with_people(world, ["p0", "p1"])
        gates = {"red": Future(), "blue": Future()}

        def gate(client, future):
            if client == "blue":
                future.add_done_callback(lambda done: gates["blue"].set_result(done.result()))
                # Whoever came first is answered after the other client, or never.
                gates["blue"].add_done_callback(lambda done: gates["red"].set_result(None))
            return gates[client]

        count_loads(monkeypatch, gate)
        app = cold(world)
        asked = [("red", "p0", 1), ("red", "p1", 1), ("blue", "p0", 1)]
        assert [answer.status_code for answer in ask_at_once(world, asked, app)] == [200, 200, 200]
        app.close()


def test_who_waits_for_a_preparation_longer_than_a_request_may_take_is_told(tmp_path, monkeypatch):
    with service(tmp_path) as world:
        with_people(world, ["p0"])
        loads = count_loads(monkeypatch, lambda client, future: Future())
        app = cold(world, long_seconds=0.2)
        (answer,) = ask_at_once(world, [("red", "p0", 1)], app)
        assert answer.status_code == 503
        assert "being prepared" in answer.json()["problem"]
        assert answer.headers["retry-after"] == "1"
        assert len(loads) == 1
        app.close()


def test_a_preparation_that_failed_is_begun_again_by_the_next_request(tmp_path, monkeypatch):
    with service(tmp_path) as world:
        with_people(world, ["p0"])
        faults = [StoreError("the store is away")]

        def fail(client, future):
            if not faults:
                return future
            failed = Future()
            failed.set_exception(faults.pop())
            return failed

        loads = count_loads(monkeypatch, fail)
        app = cold(world)
        assert {one.status_code for one in ask_at_once(world, [("red", "p0", 1)], app)} == {503}
        assert {one.status_code for one in ask_at_once(world, [("red", "p0", 1)], app)} == {200}
        assert len(loads) == 2
        app.close()


def test_who_hangs_up_does_not_end_the_preparation_for_the_others(tmp_path):
    with service(tmp_path) as world:
        handlers, held = Handlers(world.store, ServiceSettings()), Future()
        preparing = Preparing(handlers, lambda client, *_: held, 5)

        async def run():
            waiting = [asyncio.create_task(preparing.is_small("red", "d")) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.sleep(0)
            held.set_result(None)
            return await asyncio.gather(*waiting, return_exceptions=True)

        first, *others = asyncio.run(run())
        assert isinstance(first, asyncio.CancelledError)
        assert others == [False, False]


# Quotas


def test_a_client_has_so_many_scenarios_states_and_people(tmp_path):
    with service(tmp_path, most_scenarios=2, most_people=2, most_states=6) as world:

        def add(name, **options):
            body = paper_scenario.body(paper_scenario.TOML.replace('"paper"', f'"{name}"'))
            return world.ask("POST", "/v1/scenarios", body, **options)

        assert add("second").status_code == 201
        assert add("third").status_code == 422
        assert "at most 2" in add("third").json()["problem"]
        assert add("second").status_code == 200  # it is there already
        assert add("third", client="blue").status_code == 201
        path = world.person.replace("anna", "{}")
        assert world.ask("PUT", path.format("bob"), {}).status_code == 200
        refused = world.ask("PUT", path.format("carl"), {})
        assert refused.status_code == 422
        assert "people must be at most 2" in refused.json()["problem"]
        assert world.ask("PUT", world.person, {}).status_code == 200  # known already


@pytest.mark.parametrize("chosen", [{"most_states": 5}, {"most_bytes": 300}])
def test_too_many_states_or_bytes_are_refused(tmp_path, chosen):
    store = Store.open(str(tmp_path / "store.db"))
    workers = running(store, **chosen)
    body = json.dumps(paper_scenario.body()).encode()
    with pytest.raises(TooLargeError, match="must be at most"):
        workers.submit("red", "add_scenario", "red", body).result(SOON)
    workers.close()
    store.close()
