"""What one client asks is that client's own: nobody else's requests fail or wait for it."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
import time
from collections import deque

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
from dphmm.service.bodies import NewRelease
from dphmm.service.committing import GroupCommit, Threads
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


def ask_at_once(world, requests):
    """The answers to requests that come together."""

    async def run():
        transport = httpx.ASGITransport(world.app)
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
        world.store._standings.clear()
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


def test_a_way_is_long_for_all_who_share_a_commit(tmp_path):
    """Many ways that are each just short enough do not make a long group."""
    with service(tmp_path) as world:
        people = [f"p{number}" for number in range(8)]
        with_people(world, people)
        answers = ask_at_once(world, [("red", person, 1500) for person in people])
        assert {a.status_code for a in answers} == {200}
        assert len({str(a.json()["lattice"]) for a in answers}) > 1


# Workers


def running(store, **chosen):
    return Workers(store, ServiceSettings(**chosen))


def slow_release(store):
    """A release that takes seconds: 400 states and a long way."""
    digest, text = pack(*(scenario_body()[name] for name in ("scenario", "states", "transition")))
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
    workers = running(store, workers=1, long_waiting=2)
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
