"""A moment has one answer: whatever scenario asks, by whatever route, however often."""

from __future__ import annotations

import asyncio
import json

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from dphmm import ArgumentError, MarkovModel
from dphmm.books import SCOPES, Store, create_key, find_problems
from dphmm.books.scenarios import find_scenario
from dphmm.cli.program import program
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release import engine
from dphmm.scenario.models import write_model
from dphmm.scenario.packing import unpack
from dphmm.service import ServiceSettings
from dphmm.service.app import create_app
from tests import paper
from tests.crash import paper_scenario
from tests.crash.http import Http

FAST = ServiceSettings(tick=0, rate=0, wrong_keys=0)
KEY = bytes(range(32))
STEPS = ((1, "s3"), (2, "s6"), (3, "s5"), (6, "s4"))


class Client:
    """One client of a service, and the people of one of its scenarios."""

    def __init__(self, store, app, name="red", toml=paper_scenario.TOML, **changes):
        self.store, self.app, self.name = store, app, name
        self.http = Http(app)
        self.key = create_key(store, name, SCOPES)
        body = {**paper_scenario.body(toml), **changes}
        self.scenario = self.ask("POST", "/v1/scenarios", body).json()["id"]

    def ask(self, method, path, body=None):
        headers = {"authorization": f"Bearer {self.key}"}
        return self.http.request(method, path, json=body, headers=headers)

    def person(self, name="anna"):
        return f"/v1/scenarios/{self.scenario}/people/{name}"

    def begin(self, name="anna", body=None):
        return self.ask("PUT", self.person(name), body)

    def release(self, time, state, name="anna", **more):
        return self.ask(
            "POST", self.person(name) + "/releases", {"time": time, "state": state, **more}
        )


def write_scenario(folder, toml=paper_scenario.TOML):
    (folder / "paper.toml").write_text(toml)
    (folder / "states.csv").write_text(paper_scenario.STATES)
    write_model(folder / "model.npz", MarkovModel(paper.TRANSITION), "given")


def write_key(path, key):
    path.touch(mode=0o600)
    path.write_bytes(key)
    return str(path)


@pytest.fixture
def store(tmp_path):
    store = Store.open(str(tmp_path / "store.db"))
    yield store
    assert find_problems(store) == []
    store.close()


# Paper


CHANGED = {
    "name": {"toml": paper_scenario.TOML.replace('"paper"', '"renamed"')},
    "epsilon": {"toml": paper_scenario.TOML.replace("epsilon = 1", "epsilon = 2")},
    "policy": {"toml": paper_scenario.TOML.replace('category = "kind"', "complete = true")},
    "model": {"transition": [[1 / 6] * 6] * 6},
    "start": {"toml": paper_scenario.TOML.replace('start = "s1"', 'start = "uniform"')},
}


@pytest.mark.parametrize("change", CHANGED)
def test_another_scenario_never_opens_a_second_answer(store, change):
    app = create_app(store, FAST)
    red = Client(store, app)
    red.begin()
    first = red.release(1, "s3").json()
    other = Client(store, app, **CHANGED[change])
    assert other.scenario != red.scenario
    assert other.begin().json()["slot"] == 1
    again = other.release(1, "s6")
    assert again.status_code == 200
    assert again.json() == {**first, "repeated": True}
    new = other.release(2, "s6")
    if change in ("name", "epsilon"):  # neither is a law
        assert not new.json()["repeated"]
        assert new.json()["epsilon"] == ("2" if change == "epsilon" else "1")
    else:
        assert new.status_code == 422
        assert "dphmm ledger adopt" in new.json()["problem"]
        assert red.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "1"
        assert red.release(2, "s6").status_code == 200


def test_erasing_does_not_fill_a_budget_again(store):
    red = Client(store, create_app(store, FAST))
    red.begin(body={"budget": 2})
    assert [red.release(time, "s3").status_code for time in (1, 2, 3)] == [200, 200, 409]
    assert red.ask("DELETE", "/v1/people/anna").json() == {"spent": "2", "slots": {"state": 2}}
    assert red.begin().json()["slot"] == 2
    refused = red.release(3, "s3")
    assert refused.status_code == 409
    assert refused.json()["remaining"] == "0"
    assert red.begin(body={"budget": 9}).status_code == 422
    assert red.ask("GET", "/v1/people/anna/ledger").json()["budget"] == "2"


def test_one_key_gives_one_answer_by_every_route(store, tmp_path):
    randomness = KeyedRandomness(KEY)
    red = Client(store, create_app(store, FAST, randomness))
    red.begin()
    over_http = [red.release(time, state).json()["lattice"] for time, state in STEPS]

    scenario = unpack(find_scenario(store, red.scenario, client="red"))
    stream = scenario.stream("anna", client="red", randomness=randomness)
    alone = []
    for time, state in STEPS:
        stream.skip(time - stream.time - 1)
        alone.append(stream.release(state).lattice.tolist())
    assert alone == over_http

    write_scenario(tmp_path)
    rows = "".join(f"anna,{time},{state}\n" for time, state in STEPS)
    (tmp_path / "trips.csv").write_text("person,time,state\n" + rows)
    key = write_key(tmp_path / "key", KEY)
    command = ["release", str(tmp_path / "paper.toml"), str(tmp_path / "trips.csv"), "--json"]
    command += ["--key-file", key, "--client", "red"]
    for url in (str(tmp_path / "fresh.db"), store.database.name):
        done = CliRunner().invoke(program, [*command, "--store", url])
        assert done.exit_code == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [[row["temperature"], row["noise"]] for row in answers] == over_http
    assert "4 rows got the answer" in done.stderr


def test_a_store_is_not_served_with_another_key(store, tmp_path):
    red = Client(store, create_app(store, FAST, KeyedRandomness(KEY)))
    red.begin()
    red.release(1, "s3")
    for wrong in (None, KeyedRandomness(b"o" * 32)):
        with pytest.raises(ArgumentError, match="key must be the one"):
            create_app(store, FAST, wrong)
    other = write_key(tmp_path / "other", b"o" * 32)
    command = ["serve", store.database.name, "--key-file", other]
    done = CliRunner().invoke(program, command)
    assert done.exit_code == 2
    assert "key must be the one" in done.stderr


def test_two_clients_never_share_their_noise(store):
    app = create_app(store, FAST, KeyedRandomness(KEY))
    clients = [Client(store, app, name) for name in ("red", "blue")]
    found = []
    for client in clients:
        client.begin()
        found.append([client.release(time, "s5").json()["lattice"] for time in range(1, 31)])
    equal = sum(one == two for one, two in zip(*found, strict=True))
    assert equal < 10  # shared noise would give 30; the likeliest point has less than 1/10


def test_a_changed_law_goes_on_when_it_is_adopted_and_a_key_when_it_is_rotated(store, tmp_path):
    red = Client(store, create_app(store, FAST, KeyedRandomness(KEY)))
    red.begin()
    red.release(1, "s3")
    changed = CHANGED["policy"]["toml"]
    other = Client(store, red.app, toml=changed)
    assert other.release(2, "s6").status_code == 422
    write_scenario(tmp_path, changed)
    command = ["ledger", "adopt", store.database.name, str(tmp_path / "paper.toml")]
    assert CliRunner().invoke(program, [*command, "--same-states"]).exit_code == 0
    assert other.ask("GET", other.person() + "/track").json()["slots"] == []
    assert other.release(2, "s6").status_code == 200
    assert red.release(3, "s6").status_code == 422
    # What was said since can be read, and says since when.
    answers = [other.release(time, "s5").json() for time in (3, 5)]
    track = other.ask("GET", other.person() + "/track").json()
    assert track["slots"] == [2, 3, 4, 5]
    assert track["track"][-1] == pytest.approx(answers[-1]["estimate"], rel=1e-9)
    costs = other.ask("GET", other.person() + "/privacy").json()
    assert (costs["releases"], costs["spent"], costs["since"]) == (3, "3", 1)
    assert costs["before"] == "1"
    assert "epsilon 1 was spent before, which nothing here counts" in costs["text"]
    assert costs["text"].startswith("After slot 1, where this scenario was adopted:\n3 releases")
    new = write_key(tmp_path / "new", b"n" * 32)
    command = ["ledger", "rotate", store.database.name, "--key-file", new]
    assert CliRunner().invoke(program, command).exit_code == 0
    refused = other.release(6, "s6")  # the running server still has the old key
    assert refused.status_code == 422
    assert "key must be the one" in refused.json()["problem"]
    again = Client(store, create_app(store, FAST, KeyedRandomness(b"n" * 32)), toml=changed)
    assert again.release(2, "s3").json()["repeated"]
    assert again.release(6, "s6").status_code == 200
    assert again.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "5"


def test_a_name_has_no_blanks_at_its_ends(store):
    red = Client(store, create_app(store, FAST))
    red.begin()
    red.release(1, "s3")
    for name in ("%20anna", "anna%20", "%20"):
        refused = red.begin(name)
        assert refused.status_code == 422
        assert "a blank at either end" in refused.json()["problem"]
        assert red.release(1, "s6", name).status_code == 422
        assert red.ask("GET", red.person(name) + "/track").status_code == 404
    assert store.people(client="red") == ["anna"]


# Laws


def test_times_are_those_of_the_scenarios_trips(store):
    toml = paper_scenario.TOML.replace("origin = 0", 'step = "5 min"')
    red = Client(store, create_app(store, FAST), toml=toml)
    red.begin()
    first = red.release("2024-05-01T10:07:02Z", "s3").json()
    assert first["time"] == "2024-05-01T10:05:00Z"
    assert first["slot"] == unpack(
        find_scenario(store, red.scenario, client="red")
    ).settings.clock.slot_of(first["time"])
    same_slot = red.release("2024-05-01T12:09:59+02:00", "s6").json()
    assert same_slot == {**first, "repeated": True}
    red.release("2024-05-01T10:15:00Z", "s5")
    later = red.ask("GET", red.person() + "/releases?after=2024-05-01T10:06:00Z").json()
    assert [answer["time"] for answer in later["releases"]] == ["2024-05-01T10:15:00Z"]
    track = red.ask("GET", red.person() + "/track").json()
    assert track["times"] == [f"2024-05-01T10:{minute:02}:00Z" for minute in (5, 10, 15)]
    for wrong in (7, "2024-05-01T10:15:00", "yesterday", "x" * 41):
        assert red.release(wrong, "s3").status_code == 422
    assert red.ask("GET", red.person() + "/releases?after=soon").status_code == 422


def test_reading_writes_nothing(store):
    red = Client(store, create_app(store, FAST, KeyedRandomness(KEY)))
    red.begin()
    assert red.ask("GET", red.person() + "/track").json()["times"] == []
    assert red.ask("GET", red.person() + "/privacy").status_code == 422
    for time, state in STEPS:
        red.release(time, state)
    with store.database.transaction(write=False) as transaction:
        before = [
            transaction.rows(f"SELECT * FROM {table}") for table in ("people", "answers", "facts")
        ]
    for path in ("/track", "/privacy", "/releases"):
        assert red.ask("GET", red.person() + path).status_code == 200
    with store.database.transaction(write=False) as transaction:
        assert before == [
            transaction.rows(f"SELECT * FROM {table}") for table in ("people", "answers", "facts")
        ]


def test_a_fault_of_one_request_stays_its_own(store, monkeypatch):
    """Requests that share a commit, of which one cannot be drawn."""
    app = create_app(store, FAST)
    red = Client(store, app)
    people = [f"p{number}" for number in range(5)]
    for person in people:
        red.begin(person)
    draw, sizes = engine.draw, []

    def fail_for_one(works, source):
        sizes.append(len(works))
        if any(work.line.person == "p3" for work in works):
            raise ZeroDivisionError
        return draw(works, source)

    monkeypatch.setattr(engine, "draw", fail_for_one)

    async def ask_at_once():
        transport = httpx.ASGITransport(app)
        headers = {"authorization": f"Bearer {red.key}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", headers=headers
        ) as http:
            body = {"time": 1, "state": 4}
            tasks = [http.post(red.person(name) + "/releases", json=body) for name in people]
            return [answer.status_code for answer in await asyncio.gather(*tasks)]

    assert asyncio.run(ask_at_once()) == [200, 200, 200, 500, 200]
    assert max(sizes) > 1
    assert store.ledger("p3", client="red").spent == 0
    assert np.all([store.ledger(name, client="red").spent == 1 for name in people if name != "p3"])
