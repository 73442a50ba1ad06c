"""A service with clients, keys and a person, for its tests."""

from __future__ import annotations

from contextlib import contextmanager

from dphmm import Client
from dphmm.books import OPERATE, SCOPES, Store, create_key
from dphmm.service import ServiceSettings
from dphmm.service.app import create_app
from tests.crash import paper_scenario
from tests.crash.http import Direct, Http

FAST = ServiceSettings(tick=0, rate=0, wrong_keys=0, key_memory=0)


def scope_of(method, path):
    """What a key needs."""
    if path == "/metrics":
        return OPERATE
    if path.startswith(("/v1/keys", "/v1/acts")):
        return "keys"
    if method == "POST" and path == "/v1/scenarios":
        return "scenarios"
    return {"GET": "read", "PUT": "people", "DELETE": "people"}.get(method, "release")


class World:
    """A service with two clients, a scenario and a person."""

    def __init__(self, path, chosen=FAST, randomness=None, **parts):
        self.store = Store.open(str(path / "store.db"))
        self.keys = {
            (client, scope): create_key(self.store, client, [scope])
            for client in ("red", "blue")
            for scope in SCOPES
        }
        for client in ("red", "blue"):
            self.keys[client, OPERATE] = create_key(self.store, "", [OPERATE])
        self.app = create_app(self.store, chosen, randomness, **parts)
        self.http = Http(self.app)
        self.scenario = self.ask("POST", "/v1/scenarios", paper_scenario.body()).json()["id"]
        self.person = f"/v1/scenarios/{self.scenario}/people/anna"
        assert self.ask("PUT", self.person, {}).status_code == 200

    def ask(self, method, path, body=None, *, client="red", scope=None, key=None, **options):
        scope = scope or scope_of(method, path)
        held = self.keys[client, scope] if key is None else key
        headers = {"authorization": f"Bearer {held}"} if held else {}
        return self.http.request(method, path, json=body, headers=headers, **options)

    def release(self, time, state, **options):
        return self.ask(
            "POST", self.person + "/releases", {"time": time, "state": state}, **options
        )

    def client(self, client="red", scope=None, **options):
        """A client of the service with a key for everything, or for one scope."""
        if scope is None and (client, None) not in self.keys:
            self.keys[client, None] = create_key(self.store, client, SCOPES)
        held = self.keys[client, scope]
        return Client("http://127.0.0.1", key=held, transport=Direct(self.app), **options)

    def close(self):
        self.app.close()
        self.store.close()


@contextmanager
def service(path, **chosen):
    world = World(path, ServiceSettings(**{"tick": 0, "rate": 0, "key_memory": 0, **chosen}))
    yield world
    world.close()
