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
from fractions import Fraction
from http.client import HTTPConnection
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError, DphmmError, MissingExtraError
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.scenario import Policy, Scenario, Settings, States
from dphmm.scenario.checking import check_steps
from dphmm.studio import examples, files, guard, requests, server, simulate
from dphmm.studio.effects import make_policy
from dphmm.studio.requests import read_body, read_request
from dphmm.studio.server import run_in_background, serve
from tests import paper

S3, S4, S5, S6 = 2, 3, 4, 5
TWO_STEPS_FROM_S1 = {"start": 0, "steps": 2}


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
    scenario, _ = examples.paper()
    assert scenario.model.at(1).transition.toarray().tolist() == [
        list(row) for row in paper.TRANSITION
    ]
    assert scenario.query.points.tolist() == [list(row) for row in paper.VALUES]
    assert scenario.policy == PolicyGraph.by_category(paper.CATEGORIES)


def test_the_whole_example_has_the_area_of_the_paper(client: Client, example: str) -> None:
    effects = client.ask("/api/effects", world=example, policy={"base": "categories"})
    assert effects["hull"]["area"]["exact"] == str(paper.AREA)
    assert effects["hull"]["sensitivity"]["exact"] == str(paper.L1_SENSITIVITY)
    assert effects["exposed"] == []
    assert effects["possible"] is None


def test_two_steps_after_s1_the_third_state_is_exposed(client: Client, example: str) -> None:
    effects = client.ask(
        "/api/effects", world=example, policy={"base": "categories"}, moment=TWO_STEPS_FROM_S1
    )
    assert effects["possible"] == [S3, S4, S5, S6]
    assert effects["exposed"] == [S3]
    assert effects["degree"][S3] == 1
    assert effects["hull"]["area"]["exact"] == str(paper.AREA_BEFORE_REPAIR)
    assert effects["hull"]["error"]["exact"] == paper.ERROR_BEFORE_REPAIR


def test_every_partner_of_the_third_state_costs_what_the_paper_says(
    client: Client, example: str
) -> None:
    answer = client.ask(
        "/api/repairs", world=example, policy={"base": "categories"}, moment=TWO_STEPS_FROM_S1
    )
    assert answer["state"] == S3
    areas = {row["state"]: int(row["area"]["exact"]) for row in answer["candidates"]}
    errors = {row["state"]: int(row["error"]["exact"]) for row in answer["candidates"]}
    picks = {row["state"]: row["picked_by"] for row in answer["candidates"]}
    assert areas == paper.REPAIRED_AREA
    assert errors == paper.REPAIRED_ERROR
    assert picks == {S4: ["min_area"], S5: ["nearest", "min_error"], S6: []}


def test_exposure_comes_and_goes_along_the_timeline(client: Client, example: str) -> None:
    steps = client.ask(
        "/api/timeline", world=example, policy={"base": "categories"}, moment={"start": 0}
    )["steps"]
    assert [step["possible"] for step in steps[:3]] == [1, 3, 4]
    assert [step["exposed"] for step in steps[:4]] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("policy", "linked"),
    [
        ({"base": "categories"}, True),
        ({"base": "categories", "unlinks": [[3, 4]]}, False),
        ({"base": "none"}, False),
        ({"base": "none", "cliques": [[2, 3, 4]]}, True),
    ],
)
def test_two_states_are_said_to_be_linked_or_not(
    client: Client, example: str, policy: dict[str, Any], linked: bool
) -> None:
    for states in ([3, 4], [4, 3]):
        answer = client.ask("/api/linked", world=example, policy=policy, states=states)
        assert answer == {"linked": linked}


def test_more_or_fewer_than_two_states_cannot_be_linked(client: Client, example: str) -> None:
    for states in ([], [1], [1, 2, 3]):
        assert client.post("/api/linked", {"world": example, "states": states})[0] == 400


# A walk


def test_a_walk_is_marked_as_simulated_and_its_releases_as_not_private(
    client: Client, example: str
) -> None:
    walk = client.ask(
        "/api/walk", world=example, length=5, runs=[{"policy": {"base": "categories"}}]
    )
    assert walk["simulated"] is True
    assert [step["private"] for step in walk["runs"][0]["steps"]] == [False] * 5


def test_the_same_seed_gives_the_same_walk_and_another_seed_another(
    client: Client, example: str
) -> None:
    def walk(seed: int) -> Any:
        runs = [{"policy": {"base": "categories"}}]
        return client.ask("/api/walk", world=example, length=12, seed=seed, runs=runs)

    assert walk(3) == walk(3)
    assert walk(3)["runs"] != walk(4)["runs"]


def test_another_seed_draws_other_noise_too(client: Client, example: str) -> None:
    def noise(seed: int) -> list[list[float]]:
        runs = [{"policy": {"base": "complete"}}]
        walk = client.ask("/api/walk", world=example, length=12, seed=seed, runs=runs)
        steps = zip(walk["runs"][0]["steps"], walk["places"], strict=True)
        return [[a - b for a, b in zip(s["answer"], p, strict=True)] for s, p in steps]

    # From the third step on the possible set, and with it the shape of the noise, stays the
    # same, so that only the seed can tell two walks' noise apart.
    assert noise(3)[3:] != noise(4)[3:]


def test_two_ways_to_release_share_one_walk(client: Client, example: str) -> None:
    runs = [
        {"policy": {"base": "categories"}, "epsilon": "1"},
        {"policy": {"base": "complete"}, "epsilon": "0.5"},
    ]
    walk = client.ask("/api/walk", world=example, length=6, runs=runs)
    first, second = walk["runs"]
    assert (first["spent"]["exact"], second["spent"]["exact"]) == ("6", "3")
    assert len(walk["path"]) == len(first["smoothed"]) == len(second["smoothed"]) == 6


def test_the_ledger_stops_a_walk_at_its_limit(client: Client, example: str) -> None:
    runs = [{"policy": {"base": "complete"}, "epsilon": "2", "limit": "5"}]
    run = client.ask("/api/walk", world=example, length=6, runs=runs)["runs"][0]
    assert len(run["steps"]) == 2
    assert run["spent"]["exact"] == "4"
    assert "limit" in run["refused"]


def test_repair_leaves_nobody_on_a_walk_exposed(client: Client, example: str) -> None:
    repaired = {"policy": {"base": "categories"}}
    bare = {"policy": {"base": "categories"}, "repair": "none"}
    walk = client.ask("/api/walk", world=example, length=3, runs=[repaired, bare])
    least = [[step["least_degree"] for step in run["steps"]] for run in walk["runs"]]
    assert min(least[0]) >= 2
    assert min(least[1]) == 1


# Scenarios


DRAWN = {
    "complete": {"base": "complete"},
    "categories": {"base": "categories"},
    "distance": {"base": "distance", "radius": "2.5"},
    "one step": {"base": "one_step"},
    "drawn": {"base": "none", "links": [[0, 1]], "cliques": [[2, 3, 4]]},
    "categories and a link": {"base": "categories", "links": [[0, 4]]},
    "complete less an edge": {"base": "complete", "unlinks": [[0, 5]]},
    "painted": {"base": "categories", "categories": ["a", "a", "b", "b", "c", "c"]},
}


def saved(shown: examples.Shown, drawn: dict[str, Any]) -> Scenario:
    """The scenario that the page would take away."""
    scenario = shown.scenario
    request = read_request(requests.Save, drawn, len(scenario.states))
    return files.make_scenario(scenario, request)


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_a_saved_scenario_protects_as_the_page_said(
    client: Client, example: str, drawn: dict[str, Any], tmp_path: Path
) -> None:
    request = {"world": example, "policy": drawn, "moment": {"start": 0}, "epsilon": "0.5"}
    with ZipFile(io.BytesIO(client.file("/api/scenario", **request, limit="3"))) as archive:
        archive.extractall(tmp_path)
    scenario = Scenario.load(tmp_path / "scenario.toml")
    assert str(scenario.settings.limit) == "3"
    asked = {**request, "moment": TWO_STEPS_FROM_S1}
    said = client.ask("/api/effects", **asked)
    assert (
        scenario.policy.edges.ravel().tolist()
        == (client.ask("/api/effects", **{**request, "moment": {}})["edges"]["drawn"])
    )
    step = list(check_steps(scenario, 2))[-1]
    assert step.possible == said["n_possible"]
    assert list(step.exposed_before) == [f"s{state + 1}" for state in said["exposed"]]
    if not step.added:
        assert step.volume == said["hull"]["area"]["value"]
        assert step.rank == said["hull"]["rank"]
        assert step.error == client.ask("/api/repairs", **asked)["released_error"]


def test_a_staircase_is_shown_walked_and_saved(client: Client, example: str) -> None:
    asked = {
        "world": example,
        "policy": {"base": "categories"},
        "moment": {"states": [3, 4, 5, 0]},
        "epsilon": "4",
    }
    said = {
        noise: (client.ask("/api/effects", **asked, mechanism=noise)["worst"]["exact"],
                client.ask("/api/repairs", **asked, mechanism=noise)["released_error"])
        for noise in ("knorm", "staircase")
    }  # fmt: skip
    assert said["knorm"][1] != said["staircase"][1]
    assert Fraction(said["staircase"][0]) == 4 * ceil(Fraction(said["knorm"][0]) / 4)
    own = saved(examples.paper(), {"policy": {"base": "complete"}, "mechanism": "staircase"})
    assert 'mechanism = "staircase"' in own.settings.to_toml()
    view = files.opening_view(own)
    assert view["walk"] == {"mechanism": "staircase"}
    request = read_request(requests.Walk, {"length": 3, "runs": [own_run(view)]}, n_states=6)
    assert len(simulate.walk(examples.paper(), request)["runs"][0]["steps"]) == 3


def own_run(view: dict[str, Any]) -> dict[str, Any]:
    return {"policy": view["policy"], **view["walk"]}


def test_only_what_was_drawn_is_saved_as_edges() -> None:
    drawn = {"policy": {"base": "categories", "links": [[0, 4]]}}
    assert saved(examples.paper(), drawn).edges == (("s1", "s5"),)


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_a_scenario_opens_on_the_policy_that_it_was_saved_with(drawn: dict[str, Any]) -> None:
    scenario = saved(examples.paper(), {"policy": drawn, "moment": {"start": 0}})
    again, view = examples.draw(scenario), files.opening_view(scenario)
    reopened = saved(again, view)
    assert reopened.policy == scenario.policy
    assert reopened.query.points.tolist() == scenario.query.points.tolist()
    assert view["moment"] == {"start": 0, "steps": 0}


def test_a_scenario_on_earth_keeps_its_places_and_its_protection() -> None:
    pytest.importorskip("pyproj")
    places = {
        "latitude": np.array([48.0, 48.01, 48.0, 48.01]),
        "longitude": np.array([11.0, 11.0, 11.02, 11.02]),
    }
    chosen = Policy(distance=Fraction(1200))
    scenario = Scenario.from_settings(
        Settings("town", Fraction(1), policy=chosen),
        States(("a", "b", "c", "d"), places),
        MarkovModel(np.full((4, 4), 0.25)),
    )
    shown, view = examples.draw(scenario), files.opening_view(scenario)
    again = saved(shown, view)
    assert again.policy == scenario.policy
    assert again.query.points.tolist() == scenario.query.points.tolist()
    assert again.columns == ("latitude", "longitude")
    request = read_request(requests.Walk, {"length": 3, "runs": [view]}, n_states=4)
    walked = simulate.walk(shown, request)
    longitude, latitude = walked["runs"][0]["degrees"][0]
    assert abs(longitude - 11) < 1
    assert abs(latitude - 48) < 1


def test_cells_of_a_scenario_from_disk_are_drawn_as_cells() -> None:
    grid = examples.plain_grid(6, 7)
    again = examples.draw(saved(grid, {"policy": {"base": "complete"}}))
    assert again.drawing.cell == grid.drawing.cell
    assert again.describe()["answers_are_places"] is True


def test_the_page_opens_on_a_scenario_from_disk() -> None:
    scenario = saved(examples.paper(), {"policy": {"base": "one_step"}})
    with run_in_background(scenario) as address:
        client = Client(address)
        assert b'name="studio-own" content="studio"' in client.send("GET", "/", {})[1]
        opened = client.ask("/api/open", name="own")
        assert opened["view"]["policy"]["base"] == "one_step"
        assert client.ask("/api/effects", world=opened["world"])["n_possible"] == 6


def test_without_a_scenario_there_is_none_to_open(client: Client) -> None:
    assert client.post("/api/open", {"name": "own"})[0] == 400


@pytest.mark.parametrize(
    ("request_", "states"), [({"name": "city", "size": 12}, 129), ({"name": "clinic"}, 8)]
)
def test_other_worlds_open_and_can_be_saved(
    client: Client, request_: dict[str, Any], states: int, tmp_path: Path
) -> None:
    opened = client.ask("/api/open", **request_)
    assert len(opened["labels"]) == len(opened["categories"]) == opened["n_states"]
    assert abs(opened["n_states"] - states) <= 10
    policy = {"base": "distance", "radius": opened["radius"]["step"]}
    with ZipFile(
        io.BytesIO(client.file("/api/scenario", world=opened["world"], policy=policy))
    ) as archive:
        archive.extractall(tmp_path)
    loaded = Scenario.load(tmp_path / "scenario.toml")
    effects = client.ask("/api/effects", world=opened["world"], policy=policy)
    assert (
        float(sensitivity_hull(loaded.query, loaded.policy).volume)
        == (effects["hull"]["area"]["value"])
    )


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
        ({"policy": {"base": "distance", "radius": "-1"}}, "radius must be a number in 0.."),
        ({"policy": {"base": "distance", "radius": "1e999999999"}}, "radius must be a number"),
        ({"policy": {"base": "distance", "radius": "1/0"}}, "radius must be a number"),
        ({"policy": {"base": "distance", "radius": 0.5}}, "radius must be a number"),
        ({"policy": {"base": "sideways"}}, "base must be 'none', 'complete'"),
        ({"policy": {"links": [[0, 6]]}}, "links must name states 0..5"),
        ({"policy": {"links": [[0, 0]]}}, "links must name each state once"),
        ({"policy": {"links": [[0, True]]}}, "links must be a valid integer, got True"),
        ({"policy": {"links": [[0]]}}, "links must have at least 2 items"),
        ({"policy": {"links": [[0, 1, 2]]}}, "links must have at most 2 items"),
        ({"policy": {"links": "all"}}, "links must be a valid list, got 'all'"),
        ({"policy": {"links": [[0, 1]] * 100_001}}, "links must have at most 100000 items"),
        ({"policy": {"cliques": [[0, 0]]}}, "cliques must name each state once"),
        ({"policy": {"cliques": [list(range(7))]}}, "cliques must name states 0..5"),
        ({"policy": {"base": "categories", "categories": ["a"]}}, "categories must have 6"),
        ({"epsilon": "0"}, "epsilon must be a number in 1/1000..1000"),
        ({"epsilon": "NaN"}, "epsilon must be a number"),
        ({"epsilon": "-1"}, "epsilon must be a number in 1/1000..1000"),
        ({"moment": {"start": -1}}, "start must name states 0..5"),
        ({"moment": {"start": 0, "steps": 10**6}}, "steps must be"),
        ({"moment": {"states": []}}, "states must have at least 1 item"),
        ({"moment": 3}, "moment must be an object, got 3"),
        ({"policy": {"cliques": [[0, 1]] * 5_001}}, "cliques must have at most 5000 items"),
        ({"policy": {"base": "categories", "categories": ["a"] * 5 + [""]}}, "categories must"),
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
        "length must be less than or equal to 200, got 1000000",
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
NAMES = st.sampled_from(["base", "radius", "links", "unlinks", "cliques", "categories"])


def drawn_policy(content: Any) -> PolicyGraph:
    """The policy that the server makes of a drawing on the running example."""
    scenario, _ = examples.paper()
    drawn = read_request(requests.DrawnPolicy, content, len(scenario.states))
    return make_policy(scenario, drawn)


@settings(max_examples=200)
@given(st.dictionaries(NAMES, JSON, max_size=6))
def test_any_policy_is_read_or_refused_with_our_own_error(policy: dict[str, Any]) -> None:
    try:
        assert drawn_policy(policy).n_states == 6
    except DphmmError as error:
        said = str(error)
    else:
        return
    assert re.fullmatch(r"\w+ must [^\n]+, got [^\n]+", said)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_our_own_error(body: bytes) -> None:
    try:
        content = read_body(body)
    except ArgumentError:
        return
    assert isinstance(content, dict)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6),
    st.lists(st.lists(st.integers(0, 5), max_size=4, unique=True), max_size=2),
)
def test_what_is_drawn_is_the_policy(pairs: list[tuple[int, int]], groups: list[list[int]]) -> None:
    links = [list(pair) for pair in pairs if pair[0] != pair[1]]
    wanted = {(min(a, b), max(a, b)) for a, b in links}
    wanted |= {(a, b) for group in groups for a in group for b in group if a < b}
    made = drawn_policy({"links": links, "cliques": groups})
    assert {tuple(edge) for edge in made.edges.tolist()} == wanted


# Oracle


@given(st.integers(1, 60))
def test_a_radius_beyond_every_distance_is_read_as_complete(tenths: int) -> None:
    radius = f"{tenths / 10:.1f}"
    read = drawn_policy({"base": "distance", "radius": radius})
    assert read == PolicyGraph.within_distance(Query(paper.VALUES), radius)


def test_a_timeline_goes_on_with_the_step_that_lasts(client: Client, example: str) -> None:
    request = {"world": example, "policy": {"base": "categories"}, "moment": {"start": 0}}
    steps = client.ask("/api/timeline", **request, horizon=20)["steps"]
    assert [step["time"] for step in steps] == list(range(21))
    for time in (4, 20):
        moment = {"start": 0, "steps": time}
        effects = client.ask("/api/effects", **{**request, "moment": moment})
        found = (effects["n_possible"], len(effects["exposed"]))
        assert (steps[time]["possible"], steps[time]["exposed"]) == found


def test_a_few_scenarios_are_kept_and_the_oldest_forgotten() -> None:
    opened = server.Opened()
    requests_ = [
        {"name": "grid", "rows": 1, "columns": n + 1} for n in range(server.REMEMBERED + 1)
    ]
    names = [opened.open(request)["world"] for request in requests_]
    assert len(set(names)) == len(names)
    assert len(opened.find({"world": names[-1]}).scenario.states) == server.REMEMBERED + 1
    with pytest.raises(server._ForgottenError):
        opened.find({"world": names[0]})


def test_a_million_states_are_more_than_a_request_may_name() -> None:
    with pytest.raises(ArgumentError, match="states must have at most 10000 items"):
        read_request(requests.Moment, {"states": list(range(10**6))}, n_states=10**6)


def test_many_small_cliques_are_still_too_many_members() -> None:
    cliques = [list(range(50))] * 2_001
    with pytest.raises(ArgumentError, match="cliques must have at most 100000 members"):
        read_request(requests.DrawnPolicy, {"cliques": cliques}, n_states=50)


def test_a_painted_category_is_saved_where_the_policy_finds_it() -> None:
    states = States(("a", "b", "c"), {"x": np.arange(3.0)})
    chain = MarkovModel(np.full((3, 3), 1 / 3))
    plain = Scenario(states, chain, Policy(complete=True), epsilon=1, columns=("x",))
    painted = {"base": "categories", "categories": ["red", "red", "blue"]}
    scenario = saved(examples.draw(plain), {"policy": painted})
    assert scenario.policy.edges.tolist() == [[0, 1]]
