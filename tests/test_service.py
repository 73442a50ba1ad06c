"""The service: who may ask, what comes back, and what never does."""

from __future__ import annotations

import base64
import json
import logging
import re
from contextlib import contextmanager
from fractions import Fraction
from time import sleep

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphmm import ArgumentError, MarkovModel
from dphmm.books import OPERATE, SCOPES, create_key, find_problems, list_keys, revoke_key
from dphmm.cost.words import CONDITION, OWN_MOVES
from dphmm.scenario.models import write_model
from dphmm.service import ServiceSettings
from dphmm.service.logs import JsonLines
from dphmm.service.middleware import until_tick
from tests.crash import paper_scenario
from tests.service_worlds import World, service

MARKER = "s5-the-secret"
ALLOWED_METRICS = {
    "dphmm_requests_total",
    "dphmm_requests_created",
    "dphmm_answers_total",
    "dphmm_answers_created",
    "dphmm_budget_refusals_total",
    "dphmm_budget_refusals_created",
    "dphmm_epsilon_total",
    "dphmm_epsilon_created",
    # How the service is; none depends on what was asked.
    "dphmm_info",
    "dphmm_ready",
    "dphmm_start_time_seconds",
    "dphmm_workers",
    "dphmm_disk_free_megabytes",
}


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    assert find_problems(world.store) == []
    world.close()


# Paper


def test_a_release_is_answered_once_and_then_repeated(world):
    first = world.release(1, "s3")
    assert first.status_code == 200
    assert not first.json()["repeated"]
    again = world.release(1, 4)
    assert again.json() == {**first.json(), "repeated": True}
    assert first.headers["cache-control"] == "no-store"


def test_everything_said_can_be_read(world):
    answers = [world.release(time, state).json() for time, state in ((1, 4), (2, 5), (4, "s5"))]
    page = world.ask("GET", world.person + "/releases").json()
    assert page == {"releases": [{**answer, "repeated": True} for answer in answers], "next": None}
    later = world.ask("GET", world.person + "/releases?after=2").json()["releases"]
    assert [answer["time"] for answer in later] == [4]
    track = world.ask("GET", world.person + "/track").json()
    assert track["times"] == track["slots"] == [1, 2, 3, 4]
    assert track["track"][-1] == pytest.approx(answers[-1]["estimate"], rel=1e-9)
    statement = world.ask("GET", world.person + "/privacy").json()
    assert (statement["releases"], statement["spent"], statement["linked"]) == (3, "3", "1")
    assert "3 releases, epsilon 3 in all." in statement["text"]
    assert (statement["before"], statement["width"], statement["adaptive"]) == ("0", 10, False)
    # The paper's zeros are stated: every number has its condition, and there is no other path.
    assert statement["condition"] == CONDITION
    assert statement["own"] is None
    ledger = world.ask("GET", "/v1/people/anna/ledger").json()
    assert (ledger["spent"], [entry["slot"] for entry in ledger["entries"]]) == ("3", [1, 2, 4])
    assert world.ask("GET", "/v1/people").json() == {"people": ["anna"], "next": None}
    summary = world.ask("GET", f"/v1/scenarios/{world.scenario}").json()
    assert (summary["name"], summary["states"], summary["epsilon"]) == ("paper", 6, "1")
    assert world.ask("GET", "/v1/scenarios").json() == {"scenarios": [world.scenario]}
    assert world.http.get("/health").json() == {"status": "ok"}


WHEN = '[when]\nevery = 3\ngaps = "answer"\n[query]'


def test_a_schedule_is_silent_and_fills_gaps(world):
    body = paper_scenario.body(paper_scenario.TOML.replace("[query]", WHEN))
    summary = world.ask("POST", "/v1/scenarios", body).json()
    assert summary["speaks"] == "every 3 steps"
    world.person = f"/v1/scenarios/{summary['id']}/people/anna"
    silent = world.release(2, "s3").json()
    assert (silent["silent"], silent["answer"], silent["lattice"]) == (True, None, None)
    assert (silent["epsilon"], silent["repeated"], len(silent["estimate"])) == ("0", False, 2)
    assert silent["statement"].startswith("Nothing was said at this step")
    assert world.release(2, "s5").json() == {**silent, "repeated": True}
    spoken = world.release(9, "s5").json()
    assert (spoken["silent"], spoken["epsilon"], len(spoken["lattice"])) == (False, "1", 2)
    page = world.ask("GET", world.person + "/releases").json()["releases"]
    assert [one["slot"] for one in page] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert [one["silent"] for one in page] == [True, False, True, True, False, True, True, False]
    assert page[-1] == {**spoken, "repeated": True}
    late = world.release(6, "s1").json()
    assert late == {**page[4], "repeated": True}, "a late row of a step that was filled"
    assert len(world.ask("GET", world.person + "/track").json()["slots"]) == 9
    assert world.ask("GET", world.person + "/privacy").json()["releases"] == 3
    ledger = world.ask("GET", "/v1/people/anna/ledger").json()
    assert (ledger["spent"], [entry["slot"] for entry in ledger["entries"]]) == ("3", [3, 6, 9])
    text = world.ask("GET", "/metrics").text
    assert "dphmm_epsilon_total 3.0" in text
    assert 'dphmm_answers_total{repeated="no"} 1.0' in text


def test_a_learned_model_has_values_for_every_path_and_for_its_own_moves(world, tmp_path):
    ring = np.roll(np.eye(6), 1, axis=1)
    learned = MarkovModel((ring + np.eye(6)) / 2, anywhere=0.01)
    write_model(tmp_path / "model.npz", learned, "counted")
    body = paper_scenario.body() | {"transition": None}
    body["model"] = base64.b64encode((tmp_path / "model.npz").read_bytes()).decode()
    digest = world.ask("POST", "/v1/scenarios", body).json()["id"]
    person = f"/v1/scenarios/{digest}/people/bert"
    assert world.ask("PUT", person, {}).status_code == 200
    for time, state in ((1, 4), (2, 5)):
        world.ask("POST", person + "/releases", {"time": time, "state": state})
    found = world.ask("GET", person + "/privacy").json()
    assert found["condition"] is None
    assert found["own"]["condition"] == f"for {OWN_MOVES}"
    assert found["own"]["condition"] in found["text"]
    # From s1 a ring leads to s1 and s2, and then to s1, s2 and s3.
    for name in ("event", "window", "sequence"):
        assert 0 < Fraction(found["own"][name]) < Fraction(found[name])


def test_the_same_scenario_again_is_the_same(world):
    again = world.ask("POST", "/v1/scenarios", paper_scenario.body())
    assert (again.status_code, again.json()["id"]) == (200, world.scenario)


def test_a_budget_is_kept_across_scenarios(world):
    other = paper_scenario.body(paper_scenario.TOML.replace("[query]", '[query]\nname = "other"'))
    second = world.ask("POST", "/v1/scenarios", other)
    assert second.status_code == 201
    there = f"/v1/scenarios/{second.json()['id']}/people/anna"
    assert world.ask("PUT", there, {"budget": "3/2"}).status_code == 200
    assert world.release(1, 4).status_code == 200
    refused = world.ask("POST", there + "/releases", {"time": 1, "state": 4})
    assert refused.status_code == 409
    assert (refused.json()["spent"], refused.json()["remaining"]) == ("1", "1/2")
    small = {"time": 1, "state": 4, "epsilon": "1/2"}
    assert world.ask("POST", there + "/releases", small).status_code == 200


def test_a_price_above_the_scenarios_own_is_refused(world):
    dear = {"time": 1, "state": 4, "epsilon": "2000"}
    refused = world.ask("POST", world.person + "/releases", dear)
    assert refused.status_code == 422
    assert refused.json()["problem"] == (
        "epsilon must be at most 1 for a release of this scenario here, got '2000'"
    )
    assert world.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "0"
    for own in ("1", 1, 1.0, "3/4"):
        fine = {"time": 1, "state": 4, "epsilon": own}
        assert world.ask("POST", world.person + "/releases", fine).status_code == 200


def test_a_service_may_allow_a_larger_price(tmp_path):
    with service(tmp_path, largest_epsilon="5/2") as world:
        for time, price, status in [(1, "5/2", 200), (2, "2.51", 422), (3, 3, 422), (4, 2, 200)]:
            asked = {"time": time, "state": 4, "epsilon": price}
            assert world.ask("POST", world.person + "/releases", asked).status_code == status


def test_a_smaller_largest_price_never_refuses_the_scenarios_own(tmp_path):
    with service(tmp_path, largest_epsilon="1/2") as world:
        assert world.release(1, 4).status_code == 200


@pytest.mark.parametrize("price", [1e-300, 10**21, "1/100000000000000000001", 1e21])
def test_a_price_with_too_many_digits_is_refused_before_it_is_used(world, price):
    asked = {"time": 1, "state": 4, "epsilon": price}
    answer = world.ask("POST", world.person + "/releases", asked)
    assert answer.status_code == 422
    assert answer.json()["problem"]
    there = world.ask("PUT", world.person.replace("anna", "bob"), {"budget": price})
    assert there.status_code == 422


def test_a_largest_price_must_be_positive():
    with pytest.raises(ArgumentError, match="largest_epsilon must be positive, got 0"):
        ServiceSettings(largest_epsilon=0)


def test_an_erased_person_cannot_start_afresh(world):
    world.release(3, 4)
    buried = world.ask("DELETE", "/v1/people/anna").json()
    assert buried == {"spent": "1", "slots": {"state": 3}}
    assert world.ask("GET", "/v1/people/anna/ledger").status_code == 404
    assert world.release(4, 4).status_code == 404
    assert world.ask("PUT", world.person, {}).json()["time"] == 3
    assert world.release(3, 4).status_code == 422
    assert world.release(4, 4).status_code == 200
    assert world.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "2"


# Access


ROUTES = {
    ("GET", "/metrics"): "operate",
    ("POST", "/v1/scenarios"): "scenarios",
    ("GET", "/v1/scenarios"): "read",
    ("GET", "/v1/scenarios/{digest}"): "read",
    ("PUT", "/v1/scenarios/{digest}/people/{person}"): "people",
    ("POST", "/v1/scenarios/{digest}/people/{person}/releases"): "release",
    ("POST", "/v1/scenarios/{digest}/releases:batch"): "release",
    ("GET", "/v1/scenarios/{digest}/people/{person}/releases"): "read",
    ("GET", "/v1/scenarios/{digest}/people/{person}/track"): "read",
    ("GET", "/v1/scenarios/{digest}/people/{person}/privacy"): "read",
    ("GET", "/v1/people"): "read",
    ("GET", "/v1/people/{person}/ledger"): "read",
    ("DELETE", "/v1/people/{person}"): "people",
    ("GET", "/v1/keys"): "keys",
    ("POST", "/v1/keys"): "keys",
    ("POST", "/v1/keys/{name}/rotate"): "keys",
    ("PUT", "/v1/keys/{name}"): "keys",
    ("DELETE", "/v1/keys/{name}"): "keys",
    ("GET", "/v1/acts"): "keys",
}


def test_the_page_describes_every_route_and_loads_nothing(world):
    answer = world.http.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    for path in world.http.get("/openapi.json").json()["paths"]:
        assert path in answer.text
    assert "<script" not in answer.text
    assert "http://" not in answer.text
    assert "https://" not in answer.text


OPEN = {("GET", path) for path in ("/health", "/live", "/ready")}


def body_for(method, path):
    if path == "/v1/scenarios" and method == "POST":
        return paper_scenario.body()
    if path.endswith(":batch"):
        return {"rows": [{"person": "anna", "time": 2, "state": 4}]}
    if path == "/v1/keys" and method == "POST":
        return {"scopes": ["keys"]}
    if path.startswith("/v1/keys"):
        return None if method in ("GET", "DELETE") else {"hours": 1}
    return {"POST": {"time": 2, "state": 4}, "PUT": {}}.get(method)


def test_the_table_of_routes_is_complete(world):
    listed = world.http.get("/openapi.json").json()["paths"]
    found = {(method.upper(), path) for path, routes in listed.items() for method in routes}
    assert found == set(ROUTES) | OPEN


def opened_by_operators(pattern):
    return {OPERATE} if pattern.startswith(("/v1/keys", "/v1/acts")) else set()


def at(world, pattern):
    """A path of things that are there."""
    key = next(k for k in list_keys(world.store) if k.client == "red" and k.scopes == {"scenarios"})
    path = pattern.replace("{digest}", world.scenario).replace("{person}", "anna")
    return path.replace("{name}", key.name)


@pytest.mark.parametrize(("method", "pattern"), ROUTES)
def test_every_route_is_closed_without_the_right_key(world, method, pattern):
    world.release(1, 4)
    before = world.ask("GET", "/v1/people/anna/ledger").json()
    path = at(world, pattern)
    body = body_for(method, pattern)
    for key in ("", "wrong", "dphmm_" + "A" * 43, " "):
        refused = world.ask(method, path, body, key=key)
        assert refused.status_code == 401, key
        assert set(refused.json()) == {"problem"}
    bare = world.http.request(method, path, headers={"authorization": "Basic eDp5"}, json=body)
    assert bare.status_code == 401
    for scope in {*SCOPES, OPERATE} - {ROUTES[method, pattern]} - opened_by_operators(pattern):
        refused = world.ask(method, path, body, scope=scope)
        assert refused.status_code == 403
    assert world.ask("GET", "/v1/people/anna/ledger").json() == before
    assert world.ask(method, path, body, scope=ROUTES[method, pattern]).status_code in (200, 201)


@pytest.mark.parametrize(("method", "pattern"), [r for r in ROUTES if "{" in r[1]])
def test_another_clients_things_look_like_unknown_ones(world, method, pattern):
    world.release(1, 4)
    mine = at(world, pattern)
    nobody = pattern.replace("{digest}", "0" * 64).replace("{person}", "nobody")
    nobody = nobody.replace("{name}", "0" * 16)
    answers = [
        world.ask(
            method, path, body_for(method, pattern), client="blue", scope=ROUTES[method, pattern]
        )
        for path in (mine, nobody)
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert set(answers[0].headers) == set(answers[1].headers)


def test_lists_show_only_the_clients_own(world):
    assert world.ask("GET", "/v1/people", client="blue").json() == {"people": [], "next": None}
    assert world.ask("GET", "/v1/scenarios", client="blue").json() == {"scenarios": []}


def test_people_come_in_pages(world, monkeypatch):
    monkeypatch.setattr("dphmm.service.handlers.PAGE", 2)
    for name in ("carl", "bert"):
        world.store.begin(name, client="red")
    first = world.ask("GET", "/v1/people").json()
    assert first == {"people": ["anna", "bert"], "next": "bert"}
    rest = world.ask("GET", "/v1/people?after=bert").json()
    assert rest == {"people": ["carl"], "next": None}


def test_a_revoked_key_stops_working(world):
    assert world.ask("GET", "/v1/people").status_code == 200
    digest = next(
        k.digest for k in list_keys(world.store) if k.client == "red" and "read" in k.scopes
    )
    revoke_key(world.store, digest[:20])
    assert world.ask("GET", "/v1/people").status_code == 401


def test_keys_are_long_random_and_kept_as_hashes(world, tmp_path):
    keys = set(world.keys.values())
    assert len(keys) == 2 * len(SCOPES) + 2
    assert all(re.fullmatch(r"dphmm_[\w-]{43}", key) for key in keys)  # 43 letters hold 256 bits
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(key.encode() in held or key[6:].encode() in held for key in keys)
    with pytest.raises(ArgumentError, match="scopes must be some of"):
        create_key(world.store, "red", ["everything"])


def test_a_key_that_asks_too_often_is_slowed(tmp_path):
    with service(tmp_path, rate=3) as world:
        found = [world.ask("GET", "/v1/people") for _ in range(12)]
        statuses = [answer.status_code for answer in found]
        assert statuses[0] == 200
        assert 429 in statuses
        assert found[statuses.index(429)].headers["retry-after"] == "1"


def test_an_address_that_guesses_keys_does_not_reach_the_store_and_locks_nobody_out(tmp_path):
    with service(tmp_path, wrong_keys=3) as world:
        assert world.ask("GET", "/v1/people").status_code == 200
        answers = [world.ask("GET", "/v1/people", key="wrong") for _ in range(12)]
        assert {answer.status_code for answer in answers} == {401}
        assert "retry-after" not in answers[0].headers
        assert answers[-1].headers["retry-after"] == "1"
        assert world.ask("GET", "/v1/people").status_code == 200
        fresh = create_key(world.store, "red", ["read"])
        sleep(1)  # the list of keys is read again once a second
        for _ in range(12):
            world.ask("GET", "/v1/people", key="wrong")
        assert world.ask("GET", "/v1/people", key=fresh).status_code == 200


# Secrets


STATES = st.one_of(
    st.just(MARKER),
    st.just([MARKER, 1]),
    st.just({"a": MARKER}),
    st.just([[MARKER]]),
    st.just(None),
    st.booleans(),
    st.integers(-(10**30), -1).map(lambda n: n - 7_777_777_777),
    st.integers(7_777_777_777, 10**40),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.123456789),
    st.lists(st.just(8_888_888_888), max_size=4),
    st.lists(st.just(MARKER), max_size=3),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=STATES)
def test_no_message_repeats_a_state(world, state):
    with capture() as lines:
        answer = world.release(1, state)
    assert answer.status_code == 422
    for secret in (MARKER, "7777777", "8888888888", "123456"):
        if secret in json.dumps(state):
            assert secret not in answer.text
    assert not any(MARKER in line for line in lines)
    assert world.ask("GET", "/v1/people/anna/ledger").json()["spent"] == "0"


@contextmanager
def capture(formatter=None):
    """The lines that the service logs, as they would be written."""
    lines = []

    class Handler(logging.Handler):
        def emit(self, record):
            lines.append((formatter or JsonLines()).format(record))

    logger, handler = logging.getLogger("dphmm.service"), Handler()
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def test_a_line_of_the_log_names_no_person_key_state_or_duration(world):
    with capture() as lines:
        world.release(1, "s3")
        world.ask("GET", "/v1/people/anna/ledger")
    text = "".join(lines)
    assert not any(secret in text for secret in ("anna", "s3", *world.keys.values()))
    assert [set(json.loads(line)) for line in lines] == 2 * [
        {"time", "level", "event", "request", "method", "route", "status", "client", "key"}
    ]
    assert json.loads(lines[0])["route"].endswith("/people/{person}/releases")


def test_a_fault_is_logged_without_its_text(world, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError(MARKER)

    monkeypatch.setattr(world.store, "commit", fail)
    with capture() as lines, capture(logging.Formatter()) as of_another_program:
        answer = world.release(1, 4)
    assert answer.status_code == 500
    assert MARKER not in answer.text + "".join(lines)
    assert "RuntimeError" in of_another_program[0]
    assert MARKER not in "".join(of_another_program)
    assert json.loads(lines[0])["fault"] == "RuntimeError"
    assert any("engine.py" in place for place in json.loads(lines[0])["at"])


def test_metrics_count_and_measure_no_time(world):
    world.release(1, 4)
    world.release(1, 5)
    text = world.ask("GET", "/metrics").text
    names = {re.split(r"[ {]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    assert names <= ALLOWED_METRICS
    assert 'dphmm_answers_total{repeated="no"} 1.0' in text
    assert 'dphmm_answers_total{repeated="yes"} 1.0' in text
    assert "dphmm_epsilon_total 1.0" in text
    assert "anna" not in text


# The tick


@given(passed=st.floats(0, 1000), tick=st.floats(0.001, 10))
def test_an_answer_leaves_on_a_whole_tick(passed, tick):
    wait = until_tick(passed, tick)
    assert 0 <= wait <= tick + 1e-9
    ticks = (passed + wait) / tick
    assert ticks == pytest.approx(round(ticks), abs=1e-6)
    assert round(ticks) >= 1


def test_the_tick_waits_before_the_answer_leaves(tmp_path, monkeypatch):
    waits = []

    async def note(seconds):
        waits.append(seconds)

    monkeypatch.setattr("dphmm.service.middleware.asyncio.sleep", note)
    with service(tmp_path, tick=5.0) as world:
        world.release(1, 4)
        assert 0 < waits[-1] <= 5
        count = len(waits)
        world.http.get("/health")
        assert len(waits) == count


@pytest.mark.parametrize("bad", [{"tick": -1}, {"tick": 100}, {"threads": 0}, {"waiting": 0}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ArgumentError, match="must be"):
        ServiceSettings(**bad)
