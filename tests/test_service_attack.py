"""A real server, a client that does its worst, and another one who must not notice."""

from __future__ import annotations

import base64
import json
import multiprocessing
import signal
import socket
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.bench_service import scenario_body
from dphmm import MarkovModel
from dphmm.books import SCOPES, Store, create_key, find_problems
from dphmm.scenario.models import write_model
from tests.crash.postgres import running_server
from tests.test_service_processes import PATIENCE, ask, opened, resident, serving

SPAWN = multiprocessing.get_context("spawn")
LONG_GAP = 99_000
ROOM = 100
"""Megabytes for a thousand connections."""

LEAST = 11
"""Releases that red asks for during an attack."""

END = 10
"""Seconds in which a server ends after SIGTERM."""


def giant(states=10_000, side=100):
    """A scenario that is small to send, and whose policy takes gigabytes."""
    here = np.arange(states)
    walk = sparse.csr_array((np.ones(states), (here, (here + 1) % states)), (states, states))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        write_model(path, MarkovModel(walk), "given, treated as public")
        model = base64.b64encode(path.read_bytes()).decode()
    rows = "\n".join(f"s{n},{n % side},{n // side}" for n in range(states))
    return {"states": f"label,x,y\n{rows}", "model": model}


GIANT = giant()


def keys_of(url):
    store = Store.open(url)
    keys = {client: create_key(store, client, SCOPES) for client in ("red", "blue")}
    store.close()
    return keys


def half_sent(port, count):
    """Connections that begin a request and never end it."""
    held = []
    for _ in range(count):
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            connection.sendall(b"POST /v1/scenarios HTTP/1.1\r\nHost: x\r\n")
            held.append(connection)
    return held


class Attack:
    """What blue does until it is over; every kind of it has a thread."""

    def __init__(self, port, key, scenario):
        self.port, self.key, self.scenario = port, key, scenario
        self.person = f"/v1/scenarios/{scenario}/people/mallory/releases"
        self.over = threading.Event()
        self.seen = {}
        kinds = (self.numbers, self.gaps, self.giants, self.slow_bodies, self.wrong_keys)
        self.threads = [threading.Thread(target=self.repeat, args=(kind,)) for kind in kinds]

    def repeat(self, kind):
        turn = 0
        while not self.over.is_set():
            turn += 1
            status = 0
            with suppress(OSError, HTTPException, ValueError):  # the server has ended
                status = kind(turn)
            self.seen.setdefault(kind.__name__, set()).add(status)

    def ask(self, method, path, body):
        return ask(self.port, self.key, method, path, body)[0]

    def numbers(self, turn):
        bad = [10**400, "1/99999999999999999989", 1e300, 100_000, "1/3000"][turn % 5]
        return self.ask("POST", self.person, {"time": 1, "state": 0, "epsilon": bad})

    def gaps(self, turn):
        person = f"/v1/scenarios/{self.scenario}/people/g{turn}"
        self.ask("PUT", person, {})
        self.ask("POST", person + "/releases", {"time": 1, "state": 0})
        return self.ask("POST", person + "/releases", {"time": LONG_GAP, "state": 0})

    def giants(self, turn):
        toml = f'name = "giant{turn}"\nepsilon = 1\n[policy]\ndistance = 40\n'
        return self.ask("POST", "/v1/scenarios", {**GIANT, "scenario": toml})

    def slow_bodies(self, turn):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        head = f"POST {self.person} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.key}\r\n"
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n".encode())
        self.over.wait(1)
        connection.close()
        return 0

    def wrong_keys(self, turn):
        time.sleep(0.01)
        return ask(self.port, f"dphmm_{turn:043}", "GET", "/v1/people")[0]

    def go_on(self, told):
        """Attack until something is told, and tell what was seen."""
        for thread in self.threads:
            thread.start()
        told.send("begun")
        told.recv()
        self.over.set()
        for thread in self.threads:
            thread.join()
        told.send(self.seen)


def attack(told, *target):
    """All of an attack, for a process of its own."""
    Attack(*target).go_on(told)


@contextmanager
def under_way(*target):
    """An attack while this lasts; gives what is filled with what it saw.

    It has a process of its own: among its threads red would wait for the interpreter that they
    share, and not for the service.
    """
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=attack, args=(theirs, *target), daemon=True)
    process.start()
    theirs.close()
    seen = {}
    assert ours.recv() == "begun"
    try:
        yield seen
    finally:
        ours.send("over")
        seen.update(ours.recv())
        process.join()


@dataclass
class Noticed:
    """What red's requests said, how long they waited before and during it, and the end."""

    statuses: set[int] = field(default_factory=set)
    calm: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    memory: tuple[float, float] = (0, 0)
    code: int = 0
    ended: float = 0
    seen: dict[str, set[int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


def ask_for(seconds, port, key, path, times, noticed, least=1):
    """How long each of red's releases takes, one after the other; health is asked, too.

    However busy the machine is, so many are asked for.
    """
    waits, end = [], time.monotonic() + seconds
    while time.monotonic() < end or len(waits) < least:
        moment = next(times)
        began = time.monotonic()
        body = {"time": moment, "state": moment % 6}
        noticed.statuses.add(ask(port, key, "POST", path, body)[0])
        waits.append(time.monotonic() - began)
        noticed.statuses.add(ask(port, "", "GET", "/health")[0])
    return waits


def attack_server(url, keys, seconds, calm=0, tick=0.0):
    """Let blue attack a server which red goes on asking, and end it in the middle of that.

    The tick is in seconds, as among the service's settings.
    """
    noticed, times = Noticed(), count(1)
    with serving(url, "--tick", f"{1000 * tick:g}") as (process, port, lines):
        path = opened(port, keys["red"], ["anna"]) + "anna/releases"
        status, added = ask(port, keys["blue"], "POST", "/v1/scenarios", scenario_body())
        assert status == 201
        person = f"/v1/scenarios/{added['id']}/people/mallory"
        assert ask(port, keys["blue"], "PUT", person, {})[0] == 200
        noticed.calm = ask_for(calm, port, keys["red"], path, times, noticed)
        before = resident(process)
        held = half_sent(port, 1100)
        with under_way(port, keys["blue"], added["id"]) as seen:
            noticed.attacked = ask_for(seconds, port, keys["red"], path, times, noticed, LEAST)
            noticed.memory = before, resident(process)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)  # in the middle of it
            noticed.code = process.wait(PATIENCE)
            noticed.ended = time.monotonic() - began
        for connection in held:
            connection.close()
    noticed.seen, noticed.lines = seen, lines
    return noticed


def check_attack(url, seconds):
    keys = keys_of(url)
    noticed = attack_server(url, keys, seconds)
    assert noticed.statuses == {200}
    assert len(noticed.attacked) >= LEAST
    assert noticed.code == 0
    assert noticed.ended < END
    seen = noticed.seen
    assert seen["numbers"] <= {422, 429, 200, 503, 0}
    assert 500 not in {status for found in seen.values() for status in found}
    assert seen["wrong_keys"] <= {401, 503, 0}
    assert seen["giants"] <= {422, 429, 503, 0}
    before, memory = noticed.memory
    assert memory < 1.5 * before + ROOM
    text = "".join(noticed.lines)
    for secret in (*keys.values(), "mallory", "anna", url):
        assert secret not in text.replace(f"serving {url}", "")
    assert all(json.loads(line) for line in noticed.lines if line.startswith("{"))
    store = Store.open(url)
    assert find_problems(store) == []
    store.close()


def test_what_is_measured_under_attack_has_the_tick_that_was_asked_for(tmp_path):
    url, tick = str(tmp_path / "store.db"), 0.05
    noticed = attack_server(url, keys_of(url), 1, calm=1, tick=tick)
    assert min(noticed.calm + noticed.attacked) >= tick


def test_an_attack_is_not_noticed_by_another_client(tmp_path):
    check_attack(str(tmp_path / "store.db"), 8)


@pytest.mark.slow
def test_an_attack_is_not_noticed_for_a_minute(tmp_path):
    check_attack(str(tmp_path / "store.db"), 60)


@pytest.mark.slow
@pytest.mark.postgres
def test_an_attack_is_not_noticed_on_postgresql():
    with running_server() as postgres:
        check_attack(postgres.new_database(), 20)
