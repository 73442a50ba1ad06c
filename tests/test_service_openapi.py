"""Schemathesis and other strangers: whatever is sent, no 5xx and nobody else's data."""

from __future__ import annotations

import json
import tempfile

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dphmm.books import SCOPES, Store, create_key, find_problems, list_keys
from dphmm.service import ServiceSettings
from dphmm.service.app import create_app
from tests.crash import paper_scenario
from tests.crash.http import Http

SECRET_PERSON = "blue-person-zq17"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A service that two clients use; the second one's data must never be seen."""
    store = Store.open(str(tmp_path_factory.mktemp("openapi") / "store.db"))
    keys = {client: create_key(store, client, SCOPES) for client in ("red", "blue")}
    for client in keys:
        create_key(store, client, ["read"])
    chosen = ServiceSettings(tick=0, rate=0, wrong_keys=0, largest_body=2**18)
    app = create_app(store, chosen)
    http = Http(app)
    ids = {}
    for client, name in (("red", "paper"), ("blue", "blue-scenario-zq17")):
        headers = {"authorization": f"Bearer {keys[client]}"}
        body = paper_scenario.body(paper_scenario.TOML.replace('"paper"', f'"{name}"'))
        ids[client] = http.post("/v1/scenarios", json=body, headers=headers).json()["id"]
        person = "anna" if client == "red" else SECRET_PERSON
        path = f"/v1/scenarios/{ids[client]}/people/{person}"
        assert http.request("PUT", path, json={}, headers=headers).status_code == 200
        answer = http.post(path + "/releases", json={"time": 1, "state": 4}, headers=headers)
        assert answer.status_code == 200
    yield app, http, keys, ids, store
    assert find_problems(store) == []
    store.close()


def sent(http, case, key):
    """The answer to a generated request; the key is ours, everything else is generated."""
    made = case.as_transport_kwargs(base_url="http://test")
    prepared = requests.Request(
        **{
            name: made[name]
            for name in ("method", "url", "headers", "params", "json", "data", "cookies")
            if name in made
        }
    ).prepare()
    headers = {
        k: v
        for k, v in prepared.headers.items()
        if k.lower() not in ("authorization", "content-length")
    }
    headers["authorization"] = f"Bearer {key}"
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
    return http.request(prepared.method, prepared.url, content=body, headers=headers)


def page():
    """The description of the service, which is the same for every store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"{folder}/empty.db")
        try:
            return create_app(store).app.openapi()
        finally:
            store.close()


PAGE = page()
OPERATIONS = {
    f"{operation.ok().method} {operation.ok().path}": operation.ok()
    for operation in schemathesis.openapi.from_dict(PAGE).get_all_operations()
}
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
# There is nothing about these that could be asked wrongly.
PLAIN = {"get /health", "get /live", "get /ready"}
TRIED = [
    (name, mode) for name in OPERATIONS for mode in MODES if mode != MODES[1] or name not in PLAIN
]


@pytest.mark.parametrize(("name", "mode"), TRIED)
def test_the_openapi_page_tells_the_truth(name, mode, place):
    _, http, keys, ids, store = place
    names = {key.client: key.name for key in list_keys(store) if key.scopes == {"read"}}

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(
        case=OPERATIONS[name].as_strategy(generation_mode=mode),
        known=st.sampled_from(["red", "blue", None]),
    )
    def run(case, known):
        # Random names would only ever meet the 404; these meet what is behind it.
        if known is not None and case.path_parameters:
            person = "anna" if known == "red" else SECRET_PERSON
            chosen = {"digest": ids[known], "person": person, "name": names[known]}
            case.path_parameters = {key: chosen[key] for key in case.path_parameters}
        response = sent(http, case, keys["red"])
        assert response.status_code < 500
        assert "blue-scenario-zq17" not in response.text
        if known != "blue":
            assert SECRET_PERSON not in response.text
        elif case.path_parameters:
            assert response.status_code in (400, 403, 404, 413, 422)
        case.validate_response(response, checks=CHECKS)

    run()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "time": st.integers(-5, 2**60) | JSON,
        "state": st.integers(-2, 8) | st.lists(st.floats(), max_size=3) | JSON,
        "epsilon": st.sampled_from(["1/7", "0.001", 1, 1e-300, "1/0", "-1", 2**70]) | JSON,
        "budget": JSON,
    },
)
PATHS = st.sampled_from(["/releases", "", "/track", "/privacy", "/nothing"])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "PATCH"]),
    rest=PATHS,
    body=FIELDS | JSON,
    person=st.sampled_from(["anna", SECRET_PERSON]) | st.text(max_size=10),
    theirs=st.booleans(),
)
def test_nothing_that_a_client_sends_breaks_the_service(place, method, rest, body, person, theirs):
    _, http, keys, ids, _ = place
    from urllib.parse import quote

    name = quote(person.encode("utf-8", "surrogatepass"), safe="")
    path = f"/v1/scenarios/{ids['blue' if theirs else 'red']}/people/{name}{rest}"
    headers = {"authorization": f"Bearer {keys['red']}", "content-type": "application/json"}
    answer = http.request(method, path, content=json.dumps(body), headers=headers)
    assert answer.status_code < 500
    assert "blue-scenario-zq17" not in answer.text
    if theirs:
        assert answer.status_code in (404, 405, 413, 422)
    if person != SECRET_PERSON:
        assert SECRET_PERSON not in answer.text
