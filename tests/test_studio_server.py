"""The studio's server: its numbers are the library's, and it trusts nothing from the page."""

from __future__ import annotations

import importlib
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from dphmm.errors import ArgumentError, DphmmError, MissingExtraError
from dphmm.policy.graph import PolicyGraph
from dphmm.scenario import Scenario
from dphmm.studio import examples, guard, requests
from dphmm.studio import shelf as shelf_module
from dphmm.studio.requests import read_body, read_request
from dphmm.studio.server import run_in_background, serve
from tests import paper

S3, S4, S5, S6 = 2, 3, 4, 5
TWO_STEPS_FROM_S1 = {"changes": {"start": "s1"}, "step": 2}


class Client:
    """Requests as a page, or anybody else, might write them."""

    def __init__(self, address: str) -> None:
        self.host, self.port = urlsplit(address).hostname, urlsplit(address).port
        self.own = f"{self.host}:{self.port}"
        status, page, _ = self.send("GET", "/", {})
        assert status == 200
        found = re.search(rb'name="studio-token" content="([^"]+)"', page)
        assert found is not None
        self.token = found[1].decode()

    def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = HTTPConnection(self.host or "", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Host": self.own, **headers})
            response = connection.getresponse()
            answered = {name.lower(): value for name, value in response.getheaders()}
            return response.status, response.read(), answered
        finally:
            connection.close()

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        sent = {"Content-Type": "application/json", guard.TOKEN: self.token, **headers}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer, _ = self.send("POST", path, sent, content)
        return status, json.loads(answer)

    def ask(self, path: str, **body: Any) -> Any:
        status, answer = self.post(path, body)
        assert status == 200, answer
        return answer

    def file(self, path: str, **body: Any) -> bytes:
        sent = {"Content-Type": "application/json", guard.TOKEN: self.token}
        status, content, _ = self.send("POST", path, sent, json.dumps(body).encode())
        assert status == 200, content
        return content


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with run_in_background() as address:
        yield Client(address)


@pytest.fixture(scope="module")
def example(client: Client) -> str:
    """The name under which the server keeps the paper's example."""
    name: str = client.ask("/api/open", name="paper")["world"]
    return name


# Paper


def test_the_example_on_the_page_is_the_one_of_the_tests() -> None:
    scenario = examples.paper().scenario
    assert scenario.model.at(1).transition.toarray().tolist() == [
        list(row) for row in paper.TRANSITION
    ]
    assert scenario.query.points.tolist() == [list(row) for row in paper.VALUES]
    assert scenario.policy == PolicyGraph.by_category(paper.CATEGORIES)


def test_two_steps_after_s1_the_third_state_is_exposed(client: Client, example: str) -> None:
    effects = client.ask("/api/effects", world=example, **TWO_STEPS_FROM_S1)
    assert effects["possible"] == [S3, S4, S5, S6]
    assert effects["before"]["exposed"] == effects["released"]["exposed"] == [S3]
    assert effects["before"]["area"]["exact"] == str(paper.AREA_BEFORE_REPAIR)
    assert effects["before"]["squared_error"]["exact"] == paper.ERROR_BEFORE_REPAIR
    assert effects["released"]["headline"].endswith("1 of 4 places hides alone")


def test_before_repair_and_as_released_stand_side_by_side(client: Client, example: str) -> None:
    asked = {"changes": {"start": "s1", "repair": "min_error"}, "step": 2, "world": example}
    effects = client.ask("/api/effects", **asked)
    assert effects["before"]["exposed"] == [S3]
    assert effects["released"] is None
    released = client.ask("/api/released", **asked)
    assert released["exposed"] == []
    assert released["added"] == [[S3, S5]]
    assert released["area"]["exact"] == str(paper.REPAIRED_AREA[S5])
    assert released["squared_error"]["exact"] == str(paper.REPAIRED_ERROR[S5])


def test_every_partner_of_the_third_state_costs_what_the_paper_says(
    client: Client, example: str
) -> None:
    answer = client.ask("/api/repairs", world=example, **TWO_STEPS_FROM_S1)
    assert answer["state"] == S3
    areas = {row["state"]: int(row["area"]["exact"]) for row in answer["candidates"]}
    errors = {row["state"]: int(row["squared_error"]["exact"]) for row in answer["candidates"]}
    picks = {row["state"]: row["picked_by"] for row in answer["candidates"]}
    assert areas == paper.REPAIRED_AREA
    assert errors == paper.REPAIRED_ERROR
    assert picks == {S4: ["min_area"], S5: ["nearest", "min_error"], S6: []}


@pytest.mark.parametrize(
    ("draft", "linked"),
    [
        ({}, {"linked": True, "own": False}),
        ({"changes": {"policy.category": None}}, {"linked": False, "own": False}),
        ({"edges": [[4, 3]]}, {"linked": True, "own": True}),
    ],
)
def test_two_states_are_said_to_be_linked_by_a_rule_or_by_hand(
    client: Client, example: str, draft: dict[str, Any], linked: dict[str, bool]
) -> None:
    for states in ([3, 4], [4, 3]):
        assert client.ask("/api/linked", world=example, states=states, **draft) == linked


# Walks


def test_a_walk_is_marked_as_simulated_and_its_releases_as_not_private(
    client: Client, example: str
) -> None:
    walk = client.ask("/api/walk", world=example, length=5)
    assert walk["simulated"] is True
    assert [step["private"] for step in walk["runs"][0]["steps"]] == [False] * 5


def test_the_same_seed_gives_the_same_walk_and_another_seed_another(
    client: Client, example: str
) -> None:
    def walk(seed: int) -> Any:
        return client.ask("/api/walk", world=example, length=12, seed=seed)

    assert walk(3) == walk(3)
    assert walk(3)["runs"] != walk(4)["runs"]


def test_two_ways_to_release_share_one_walk(client: Client, example: str) -> None:
    runs = [{}, {"changes": {"policy.complete": True, "epsilon": "0.5"}}]
    walk = client.ask("/api/walk", world=example, length=6, runs=runs)
    first, second = walk["runs"]
    assert (first["spent"]["exact"], second["spent"]["exact"]) == ("6", "3")
    assert len(walk["path"]) == len(first["smoothed"]) == len(second["lagged"]) == 6


def test_several_people_walk_as_each_would_alone(client: Client, example: str) -> None:
    film = client.ask("/api/walk", world=example, length=12, seed=3, people=3, person=1)
    alone = [client.ask("/api/walk", world=example, length=12, seed=3 + n) for n in range(3)]
    assert film["path"] == alone[1]["path"]
    assert film["runs"] == alone[1]["runs"]
    assert [one["number"] for one in film["others"]] == [0, 2]
    assert [one["places"] for one in film["others"]] == [alone[0]["places"], alone[2]["places"]]
    assert all(
        "posterior" not in step for one in film["others"] for step in one["runs"][0]["steps"]
    )
    errors = [one["runs"][0]["mean_error"]["answer"] for one in alone]
    assert film["mean_error"][0]["answer"] == pytest.approx(sum(errors) / 3, rel=1e-12)
    status, answer = client.post("/api/walk", {"world": example, "people": 7})
    assert (status, answer["error"]) == (400, "people must be less than or equal to 6, got 7")


def test_a_walk_goes_on_after_the_ledger_refused(client: Client, example: str) -> None:
    runs = [{"changes": {"limit": "4 per 3 steps", "epsilon": "2"}}]
    run = client.ask("/api/walk", world=example, length=6, runs=runs)["runs"][0]
    said = [step["answer"] is not None for step in run["steps"]]
    assert said == [True, True, False, True, True, False]
    assert (run["answers"], run["refused"]) == (4, 2)


def test_a_walk_is_silent_when_the_schedule_is(client: Client, example: str) -> None:
    runs = [{"changes": {"when.every": 3}}]
    run = client.ask("/api/walk", world=example, length=6, runs=runs)["runs"][0]
    assert [step["answer"] is not None for step in run["steps"]] == [False, False, True] * 2
    assert (run["spent"]["exact"], run["refused"]) == ("2", 0)


def test_expected_errors_are_mean_distances_over_a_few_people(client: Client, example: str) -> None:
    found = client.ask("/api/expected", world=example)["mean_error"]
    assert set(found) == {"answer", "estimate", "lagged", "smoothed"}
    assert found["smoothed"] < found["estimate"] < found["answer"]


# Scenarios


def test_without_a_scenario_there_is_none_to_open(client: Client) -> None:
    assert client.post("/api/open", {"name": "own"})[0] == 400


@pytest.mark.parametrize(
    ("request_", "states"), [({"name": "city", "size": 12}, 129), ({"name": "clinic"}, 8)]
)
def test_other_worlds_open_and_can_be_taken_away(
    client: Client, request_: dict[str, Any], states: int, tmp_path: Path
) -> None:
    opened = client.ask("/api/open", **request_)
    assert len(opened["labels"]) == len(opened["categories"]) == opened["n_states"]
    assert abs(opened["n_states"] - states) <= 10
    draft = {"world": opened["world"], "edges": [[0, 5]], "changes": {"policy.complete": False}}
    with ZipFile(io.BytesIO(client.file("/api/scenario", **draft))) as archive:
        archive.extractall(tmp_path)
    loaded = Scenario.load(tmp_path / "scenario.toml")
    assert loaded.policy.has_edge(0, 5)
    step = loaded.check(1).steps[0]
    assert client.ask("/api/released", **draft)["step"]["error"] == step.error
    assert client.post("/api/save", draft)[0] == 400


def test_a_few_scenarios_are_kept_and_the_oldest_forgotten() -> None:
    shelf = shelf_module.Shelf()
    requests_ = [
        {"name": "grid", "rows": 1, "columns": n + 1} for n in range(shelf_module.REMEMBERED + 1)
    ]
    names = [shelf.open(request)["world"] for request in requests_]
    assert len(set(names)) == len(names)
    assert len(shelf.find({"world": names[-1]}).scenario.states) == shelf_module.REMEMBERED + 1
    with pytest.raises(shelf_module.ForgottenError):
        shelf.find({"world": names[0]})


# Requests that nobody's page would send


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/api/open", {"name": "grid", "rows": 1000, "columns": 1000}, "at most 10000"),
        ("/api/open", {"name": "grid", "rows": 10**9, "columns": 1}, "rows must be"),
        ("/api/open", {"name": "city", "size": -3}, "size must be"),
        ("/api/open", {"name": "elsewhere"}, "name must be 'paper', 'city'"),
        ("/api/open", {"name": ["paper"]}, "name must be 'paper', 'city'"),
        ("/api/open", [], "body must be an object"),
    ],
)
def test_a_world_that_is_too_large_or_unknown_is_refused(
    client: Client, path: str, body: Any, message: str
) -> None:
    status, answer = client.post(path, body)
    assert status == 400
    assert message in answer["error"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"changes": {"policy.distance": "-1"}}, "distance must not be negative"),
        ({"changes": {"policy.distance": "1e999999999"}}, "policy.distance must be a number"),
        ({"changes": {"policy.distance": "1/0"}}, "policy.distance must"),
        ({"changes": {"policy.distance": [0.5]}}, "must"),
        ({"changes": {"policy.sideways": "1"}}, "must be 'epsilon', 'limit'"),
        ({"changes": {"states": "/etc/passwd"}}, "must be 'epsilon', 'limit'"),
        ({"changes": {"policy.edges": "../edges.csv"}}, "policy.edges must stay as it is"),
        ({"changes": {"policy.category": "nothing"}}, "policy.category must be a column"),
        ({"changes": {"mechanism": "magic"}}, "mechanism must be one of knorm"),
        ({"changes": {"epsilon": "0"}}, "epsilon must be"),
        ({"changes": {"epsilon": "NaN"}}, "epsilon must"),
        ({"changes": {"epsilon": None}}, "epsilon must be given"),
        ({"changes": {"start": "nowhere"}}, "start must be a label"),
        ({"changes": {"when.every": 0}}, "when.every must be"),
        ({"edges": [[0, 6]]}, "edges must name states 0..5"),
        ({"edges": [[0, 0]]}, "edges must name each state once"),
        ({"edges": [[0, True]]}, "edges must be a valid integer, got True"),
        ({"edges": [[0]]}, "edges must have at least 2 items"),
        ({"edges": "all"}, "edges must be a valid list, got 'all'"),
        ({"edges": [[0, 1]] * 100_001}, "edges must have at most 100000 items"),
        ({"step": 10**6}, "step must be"),
    ],
)
def test_a_hand_made_request_gets_one_sentence_that_names_the_field(
    client: Client, example: str, body: dict[str, Any], message: str
) -> None:
    status, answer = client.post("/api/effects", {"world": example, **body})
    assert status == 400
    assert message in answer["error"]


def test_a_walk_of_a_million_steps_is_refused(client: Client, example: str) -> None:
    status, answer = client.post("/api/walk", {"world": example, "length": 10**6})
    assert (status, answer["error"]) == (
        400,
        "length must be less than or equal to 600, got 1000000",
    )


def test_a_million_states_do_not_fit_into_a_request(client: Client) -> None:
    body = json.dumps({"name": "paper", "labels": ["state"] * 10**6}).encode()
    assert client.post("/api/open", body)[0] == 413


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b'{"world": NaN}', b"[" * 100_000, b"\xff\xfe", b'{"world": "\\ud800"}'),
        b'{"world": ' + b"1" * 1_000_000 + b"}",
    ],
)
def test_what_is_not_json_is_refused(client: Client, body: bytes) -> None:
    status, answer = client.post("/api/effects", body)
    assert status == 400
    assert "body must be" in answer["error"]


def test_a_world_that_was_never_opened_is_not_found(client: Client) -> None:
    assert client.post("/api/effects", {"world": "0" * 16})[0] == 404


@pytest.mark.parametrize(
    "host", ["example.org", "example.org:{port}", "127.0.0.1", "127.0.0.1:1", "evil.127.0.0.1", ""]
)
@pytest.mark.parametrize("path", ["/", "/static/js/main.js", "/api/effects"])
def test_another_host_is_refused_everywhere(client: Client, host: str, path: str) -> None:
    named = host.replace("{port}", str(client.port))
    status, answer, _ = client.send("GET", path, {"Host": named})
    assert status == 421
    assert b"Host must be" in answer


def test_localhost_is_this_host_too(client: Client) -> None:
    assert client.send("GET", "/", {"Host": f"localhost:{client.port}"})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://{own}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {guard.TOKEN: "guessed"},
        {guard.TOKEN: ""},
    ],
)
def test_another_origin_or_a_wrong_token_is_forbidden(
    client: Client, headers: dict[str, str]
) -> None:
    named = {name: value.replace("{own}", client.own) for name, value in headers.items()}
    assert client.post("/api/open", {"name": "paper"}, **named)[0] == 403


def test_the_page_s_own_origin_is_welcome(client: Client) -> None:
    own = {"Origin": f"http://{client.own}", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/open", {"name": "paper"}, **own)[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_form_can_send_is_not_taken(client: Client, kind: str) -> None:
    assert client.post("/api/open", {"name": "paper"}, **{"Content-Type": kind})[0] == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    assert client.send(method, "/api/open", {})[0] == 405


def test_a_computing_route_does_not_answer_a_get(client: Client) -> None:
    assert client.send("GET", "/api/open", {})[0] == 405


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/docs"])
def test_nothing_outside_the_static_files_is_served(client: Client, path: str) -> None:
    assert client.send("GET", path, {})[0] == 404


def test_every_answer_forbids_other_sources_and_frames(client: Client) -> None:
    _, _, headers = client.send("GET", "/", {})
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


def test_the_page_names_no_other_machine() -> None:
    folder = Path(guard.__file__).parent / "static"
    for path in folder.rglob("*"):
        if path.is_file() and "vendor" not in path.parts:
            addresses = set(re.findall(r"https?://[^\s\"'`)]+", path.read_text()))
            assert addresses <= {"http://www.w3.org/2000/svg"}, path.name


def test_the_page_asks_for_all_its_scripts_at_once(client: Client) -> None:
    scripts = {path.name for path in (Path(guard.__file__).parent / "static" / "js").glob("*.js")}
    page = client.send("GET", "/", {})[1].decode()
    assert set(re.findall(r'rel="modulepreload" href="/static/js/([^"]+)"', page)) == scripts


def test_no_script_of_the_page_is_long() -> None:
    folder = Path(guard.__file__).parent / "static"
    scripts = [*(folder / "js").glob("*.js"), *folder.glob("*.css")]
    assert len(scripts) > 10
    assert [path.name for path in scripts if path.read_text().count("\n") > 400] == []


def test_without_its_extra_the_studio_says_which_one_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(MissingExtraError, match=r"pydantic .* pip install 'dphmm\[service\]'"):
        importlib.reload(sys.modules["dphmm.studio"])


def test_the_studio_listens_on_loopback_only() -> None:
    with pytest.raises(ArgumentError, match=r"host must be 127\.0\.0\.1"):
        serve(port=0, host="0.0.0.0", ready=lambda address: None)


def test_a_port_that_is_taken_is_an_error_that_says_so(client: Client) -> None:
    with pytest.raises(ArgumentError, match=f"port must be free, got {client.port}"):
        serve(port=client.port or 0, ready=lambda address: None)


def test_the_command_serves_the_page_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "dphmm", "studio", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found is not None
        assert Client(found[0]).ask("/api/open", name="paper")["n_states"] == 6
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) in (0, 130)


# Laws


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["epsilon", "policy.distance", "start", "when.hours", "limit", "gamma"])


@settings(max_examples=200)
@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_any_draft_is_read_or_refused_with_our_own_error(changes: dict[str, Any]) -> None:
    opened = examples.paper()
    try:
        draft = read_request(requests.Draft, {"changes": changes}, 6)
        made = opened.scenario_of(draft)
    except DphmmError as error:
        said = str(error)
    else:
        assert len(made.states) == 6
        return
    assert "\n" not in said


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_our_own_error(body: bytes) -> None:
    try:
        content = read_body(body)
    except ArgumentError:
        return
    assert isinstance(content, dict)
