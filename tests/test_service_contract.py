"""The page is a contract: Schemathesis, as a stranger, with every check and with ids that exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dphmm.books import OPERATE, SCOPES, Store, create_key, find_key, find_problems
from tests.crash import paper_scenario
from tests.service_worlds import World
from tests.test_service_processes import ask, opened, serving

# What a text says (a scenario, a time of the scenario's clock, a price) is in no schema, so a
# body of the right form may still be refused with 422.
CONFIG = """
[parameters]
"path.digest" = "{digest}"
"path.person" = "anna"
"path.name" = "{name}"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "422", "429", "5xx"]
"""


def check_contract(folder, examples):
    url = str(folder / "store.db")
    store = Store.open(url)
    keys = create_key(store, "red", SCOPES), create_key(store, "", [OPERATE])
    name = find_key(store, create_key(store, "red", ["read"])).name
    store.close()
    with serving(url, "--tick", "0") as (_, port, _):
        path = opened(port, keys[0], ["anna"])
        assert ask(port, keys[0], "POST", path + "anna/releases", {"time": 1, "state": 4})[0] == 200
        config = folder / "schemathesis.toml"
        config.write_text(CONFIG.format(digest=path.split("/")[3], name=name))
        for key, chosen in (
            (keys[0], ("--exclude-path", "/metrics")),
            (keys[1], ("--include-path", "/metrics", "--include-path", "/v1/acts")),
        ):
            command = [
                str(Path(sys.executable).parent / "schemathesis"),
                *("--config-file", str(config), "run", f"http://127.0.0.1:{port}/openapi.json"),
                *("-H", f"Authorization: Bearer {key}", "--checks", "all", "--no-color"),
                *("--phases", "examples,coverage,fuzzing", "--generation-deterministic"),
                *("--max-examples", str(examples), *chosen),
            ]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
            assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    store = Store.open(url)
    assert find_problems(store) == []
    store.close()


def test_a_stranger_finds_nothing(tmp_path):
    check_contract(tmp_path, 3)


@pytest.mark.slow
def test_a_patient_stranger_finds_nothing(tmp_path):
    check_contract(tmp_path, 100)


# What strangers found before


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def test_a_whole_number_may_be_written_with_a_point(world):
    path, body = world.person + "/releases", {"time": 5.0, "state": 4}
    assert world.ask("POST", path, body).json()["time"] == 5
    assert world.ask("POST", path, {"time": 6.5, "state": 4}).status_code == 422


def test_an_empty_scenario_is_refused_by_the_page_too(world):
    refused = world.ask("POST", "/v1/scenarios", {**paper_scenario.body(), "scenario": ""})
    assert refused.json()["where"] == ["body", "scenario"]


def test_all_methods_of_a_path_are_named(world):
    refused = world.ask("PATCH", world.person + "/releases")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, POST")


def test_a_refusal_of_metrics_is_json_as_described(world):
    refused = world.ask("GET", "/metrics", scope="read")
    assert refused.headers["content-type"] == "application/json"
    page = world.http.get("/openapi.json").json()["paths"]["/metrics"]["get"]["responses"]
    assert set(page["403"]["content"]) == {"application/json"}
    assert "text/plain" in page["200"]["content"]


@pytest.mark.parametrize("name", ["M%FCller", "M%F6ller", "%ED%A0%80"])
def test_a_name_that_is_not_utf_8_is_nobody(world, name):
    refused = world.ask("PUT", world.person.replace("anna", name), {})
    assert (refused.status_code, refused.json()) == (
        400,
        {"problem": "the path must be UTF-8, got other bytes"},
    )
    assert world.ask("PUT", world.person.replace("anna", "M%C3%BCller"), {}).status_code == 200
    assert world.ask("GET", "/v1/people").json()["people"] == ["Müller", "anna"]


def test_a_name_in_parts_is_refused(world):
    parts = world.ask("PUT", world.person.replace("anna", "Mu%CC%88ller"), {})
    assert "form NFC" in parts.json()["problem"]


def test_a_body_is_not_parsed_before_the_scope_is_asked(world):
    """Whoever may not release learns that, whatever they sent."""
    headers = {"authorization": f"Bearer {world.keys['red', 'read']}"}
    answer = world.http.post(world.person + "/releases", content=b"{" * 10, headers=headers)
    assert answer.status_code == 403
