"""Planted secrets, names and true states: a busy run of every route, and none of them is found.

Bodies, headers, the log, metrics, traces, arguments of processes and files are searched. Each
kind of place is searched a second time with a leak planted, which must be found.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from dphmm.books import OPERATE, SCOPES, Store, create_key, find_key
from tests import paper
from tests.test_service_processes import PATIENCE, serving

SECRET, NOISE = bytes(range(100, 132)), bytes(range(7, 39))
NAMES = [f"Zoë Q{number}-8452" for number in range(3)]
GHOST = "ghost-8452-nobody"
LABEL = "lair-3391"
PLACE = [0.7431977, 1.3319774]
WRONG_STATE = "no-such-state-5519"
WRONG_KEY = "dphmm_wrong-key-2287"

TOWN = """
name = "town"
epsilon = 1
start = "lair-3391"
[policy]
complete = true
[time]
origin = 0
"""


def scenario_body():
    values = paper.VALUES[:3]
    labels = (LABEL, "b", "c")
    rows = "\n".join(f"{one},{x},{y}" for one, (x, y) in zip(labels, values, strict=True))
    even = [[1 / 3] * 3 for _ in range(3)]
    return {"scenario": TOWN, "states": "label,x,y\n" + rows, "transition": even}


class Run:
    """Requests to a service, and everything that was heard."""

    def __init__(self, port, keys):
        self.port, self.keys = port, keys
        self.told: list[tuple[str, bytes]] = []
        """Whom the answer was about, as far as the request said so; and the answer."""
        self.routes = set()

    def ask(self, method, path, body=None, *, pattern="", whose="", key="red", raw=None, kind=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        headers = {"content-type": kind or "application/json"}
        headers["authorization"] = f"Bearer {self.keys.get(key, key)}"
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        read = answer.read()
        told = json.dumps(dict(answer.getheaders())).encode() + read
        self.told.append((whose, told))
        self.routes.add((method.lower(), pattern or path))
        connection.close()
        return json.loads(read) if answer.headers["content-type"] == "application/json" else read

    def everything(self, name):
        """Every route, as it should be asked and as it should not, about these people."""
        kept = self.ask("POST", "/v1/scenarios", scenario_body())["id"]
        base, pattern = f"/v1/scenarios/{kept}", "/v1/scenarios/{digest}"
        stream = pattern + "/people/{person}"
        self.ask("GET", "/v1/scenarios")
        self.ask("GET", base, pattern=pattern)
        for person in NAMES:
            at = f"{base}/people/{quote(person)}"
            self.ask("PUT", at, {"budget": 3}, pattern=stream, whose=person)
            for time, state in ((1, LABEL), (2, PLACE), (2, LABEL), (3, WRONG_STATE), (9, [1])):
                body = {"time": time, "state": state}
                self.ask("POST", at + "/releases", body, pattern=stream + "/releases", whose=person)
            for rest in ("/releases", "/track", "/privacy"):
                self.ask("GET", at + rest, pattern=stream + rest, whose=person)
            late = {"time": person, "state": LABEL, "epsilon": "lots", "more": LABEL}
            self.ask("POST", at + "/releases", late, pattern=stream + "/releases", whose=person)
            self.ask("PATCH", at, pattern=stream, whose=person)
        rows = [
            {"person": person, "time": time, "state": state}
            for person in (*NAMES, GHOST)
            for time, state in ((4, LABEL), (5, PLACE), (6, WRONG_STATE), (7, LABEL), (8, LABEL))
        ]
        every = "".join((*NAMES, GHOST))
        batch = {"pattern": pattern + "/releases:batch", "whose": every}
        self.ask("POST", base + "/releases:batch", {"rows": rows}, **batch)
        lines = "\n".join(map(json.dumps, rows)).encode()
        ndjson = {"kind": "application/x-ndjson", **batch}
        self.ask("POST", base + "/releases:batch", raw=lines, **ndjson)
        self.ask("POST", base + "/releases:batch", raw=lines[:-5], **ndjson)
        arrow = {"kind": "application/vnd.apache.arrow.stream", **batch}
        self.ask("POST", base + "/releases:batch", raw=lines, **arrow)
        self.ask("GET", "/v1/people", whose=every)
        for person in (NAMES[0], GHOST):
            at, pattern = f"/v1/people/{quote(person)}", "/v1/people/{person}"
            self.ask("GET", at + "/ledger", pattern=pattern + "/ledger", whose=person)
            self.ask("GET", at + "/ledger", pattern=pattern + "/ledger", whose=person, key="blue")
        self.ask("DELETE", f"/v1/people/{quote(NAMES[2])}", pattern=pattern, whose=NAMES[2])
        self.ask("GET", f"/v1/{quote(GHOST)}/{LABEL}", whose=GHOST)
        self.ask("GET", "/v1/people", key=WRONG_KEY)
        self.ask("POST", "/v1/scenarios", raw=LABEL.encode() * 2000)
        self._keys(name)
        for path in ("/live", "/ready", "/health"):
            self.ask("GET", path)
        self.ask("GET", "/metrics", key="operator")

    def _keys(self, name):
        made = self.ask("GET", "/v1/keys")
        assert made["keys"]
        new = json.dumps({"scopes": ["read"]}).encode()
        for method, path, pattern, body in (
            ("POST", "/v1/keys", "", new),
            ("POST", f"/v1/keys/{name}/rotate", "/v1/keys/{name}/rotate", b'{"hours": 1}'),
            ("PUT", f"/v1/keys/{name}", "/v1/keys/{name}", b'{"hours": 1}'),
            ("DELETE", f"/v1/keys/{name}", "/v1/keys/{name}", None),
        ):
            # What is made is shown this once, to whoever asked for it.
            answer = self.ask(method, path, raw=body, pattern=pattern)
            if "key" in answer:
                self.told.pop()
                self.keys[f"made {method} {path}"] = answer["key"]
        self.ask("GET", "/v1/acts")


class Collector(BaseHTTPRequestHandler):
    """Where traces go."""

    heard: list[bytes]

    def do_POST(self):
        self.heard.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def collecting():
    heard = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Collector,), {"heard": heard}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", heard
    server.shutdown()
    thread.join()
    server.server_close()


def arguments_of(pid):
    """The arguments of a process and of all that it began."""
    here = Path(f"/proc/{pid}")
    try:
        found = [(here / "cmdline").read_bytes()]
        for task in (here / "task").iterdir():
            for child in (task / "children").read_text().split():
                found += arguments_of(int(child))
    except OSError:
        return []
    return found


def forms(secret):
    """A secret as it is, in hexadecimal and in base64."""
    raw = secret if isinstance(secret, bytes) else secret.encode()
    return {raw, raw.hex().encode(), base64.b64encode(raw), quote(raw).encode()} | {
        json.dumps(raw.decode()).strip('"').encode() if isinstance(secret, str) else raw
    }


def find_leaks(places, planted):
    """Where which of the planted things are; `places` are named texts."""
    return sorted(
        (name, what)
        for name, text in places
        for what, secret in planted.items()
        if any(form in text for form in forms(secret))
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One busy service; gives what each kind of place held, and what was planted."""
    folder = tmp_path_factory.mktemp("leaks")
    (folder / "tmp").mkdir()
    for name, secret in (("secret", SECRET), ("noise", NOISE)):
        (folder / name).write_bytes(secret)
        (folder / name).chmod(0o600)
    url, anchor = str(folder / "store.db"), str(folder / "anchor")
    store = Store.open(url, secret=SECRET, anchor=anchor)
    keys = {client: create_key(store, client, SCOPES) for client in ("red", "blue")}
    keys["operator"] = create_key(store, "", [OPERATE])
    spare = find_key(store, create_key(store, "red", ["read"])).name
    store.close()
    options = ["--workers", "2", "--secret-file", str(folder / "secret"), "--anchor", anchor]
    options += ["--key-file", str(folder / "noise"), "--tick", "10"]
    with collecting() as (endpoint, traces):
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "TMPDIR": str(folder / "tmp"),
        }
        with serving(url, *options, **environment) as (process, port, lines):
            busy = Run(port, keys)
            busy.everything(spare)
            page = busy.ask("GET", "/openapi.json")
            busy.ask("GET", "/docs")
            arguments = arguments_of(process.pid)
            metrics = busy.ask("GET", "/metrics", key="operator")
            files = [
                (str(path), path.read_bytes())
                for path in folder.rglob("*")
                if path.is_file() and path.name not in ("secret", "noise")
            ]
    people = dict(zip(("ann", "bob", "eve", "ghost"), (*NAMES, GHOST), strict=True))
    states = {"label": LABEL, "x": str(PLACE[0]), "y": str(PLACE[1]), "wrong state": WRONG_STATE}
    secrets = {f"key {name}": key for name, key in keys.items()} | {"wrong key": WRONG_KEY}
    secrets |= {"secret": SECRET, "noise key": NOISE}
    held = {
        "bodies": busy.told,
        "log": "".join(lines).encode(),
        "metrics": metrics if isinstance(metrics, bytes) else b"",
        "traces": b"".join(traces),
        "arguments": b"\0".join(arguments),
        "files": files,
        "routes": busy.routes,
        "page": page,
    }
    return held, people, states, secrets


def test_every_route_was_asked(run):
    held, *_ = run
    listed = {(m, path) for path, routes in held["page"]["paths"].items() for m in routes}
    assert listed <= held["routes"]
    assert held["log"].count(b'"event": "request"') > 60
    assert len(held["traces"]) > 1000
    assert b"serve" in held["arguments"]
    assert held["arguments"].count(b"\0\0") >= 2, "the processes that serve are among them"


@pytest.mark.parametrize("place", ["log", "metrics", "traces", "arguments"])
def test_nothing_planted_is_in(run, place):
    held, people, states, secrets = run
    assert held[place]
    assert find_leaks([(place, held[place])], people | states | secrets) == []


def test_no_answer_tells_a_secret_a_state_or_somebody_else(run):
    held, people, states, secrets = run
    for whose, told in held["bodies"]:
        others = {name: one for name, one in people.items() if one not in whose}
        assert find_leaks([("body", told)], states | secrets | others) == []


def test_no_file_has_a_secret_or_a_state(run):
    """The scenario, with its labels, and the names of people are in the store; nobody erased is."""
    held, people, states, secrets = run
    kept = {name: state for name, state in states.items() if name != "label"}
    assert any(name.endswith("store.db") for name, _ in held["files"])
    assert find_leaks(held["files"], kept | secrets | {"eve": people["eve"]}) == []
    others = [(name, text) for name, text in held["files"] if "store.db" not in name]
    assert len(others) >= 2
    assert find_leaks(others, people | states | secrets) == []


@pytest.mark.parametrize("what", ["ann", "label", "x", "key red", "secret", "noise key"])
def test_a_leak_is_found(run, what):
    """Whatever form it has, in the middle of what was really said."""
    held, people, states, secrets = run
    planted = people | states | secrets
    for place in ("log", "metrics", "traces", "arguments"):
        for form in forms(planted[what]):
            leaking = held[place] + b"..." + form + b"..."
            assert (place, what) in find_leaks([(place, leaking)], planted)
    leaking = [*held["files"], ("leak", forms(planted[what]).pop())]
    assert ("leak", what) in find_leaks(leaking, planted)


def test_a_log_that_names_paths_would_be_found(tmp_path, monkeypatch, capsys):
    """The whole way: a service that logs the path of a request, as many do."""
    import logging

    from dphmm.service import middleware
    from dphmm.service.logs import JsonLines, log
    from tests.service_worlds import World

    def leaky(self, scope, route, status):
        log.info("request", extra={"route": scope["path"], "status": status})

    lines = []
    handler = logging.Handler()
    handler.setFormatter(JsonLines())
    handler.emit = lambda record: lines.append(handler.format(record))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        world = World(tmp_path)
        person = world.person.replace("anna", quote(NAMES[0]))
        world.ask("PUT", person, {})
        text = "".join(lines).encode()
        assert b"request" in text
        assert find_leaks([("log", text)], {"ann": NAMES[0]}) == []
        monkeypatch.setattr(middleware.Middleware, "_log", leaky)
        world.ask("PUT", person, {})
        assert find_leaks([("log", "".join(lines).encode())], {"ann": NAMES[0]}) != []
        world.close()
    finally:
        log.removeHandler(handler)
