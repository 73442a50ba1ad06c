"""Releases a second: the store called directly, and the service with 200 connections.

SQLite with synchronous=FULL, a city of 20 by 20 cells, everything on the loopback. The client
runs on the same machine and takes its share of it. Memory is watched over the whole run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import Figure

ROOT = Path(__file__).resolve().parent.parent
SIDE = 20
STATES = SIDE * SIDE
CONNECTIONS = 200
FEWER = 50
SECONDS = float(os.environ.get("DPHMM_BENCH_SECONDS", "10"))
SOAK = float(os.environ.get("DPHMM_SOAK_SECONDS", "20"))
TICK = 0.05

TOML = """
name = "city"
epsilon = 1
[policy]
distance = 2
"""

SERVER = """
import sys
from dphmm.service import ServiceSettings
from dphmm.service.server import serve
from dphmm.books import Store
url, port, tick = sys.argv[1:]
serve(Store.open(url), ServiceSettings(tick=float(tick), rate=0), port=int(port))
"""


def scenario_body() -> dict[str, Any]:
    rows = [f"c{x}_{y},{x},{y}" for x in range(SIDE) for y in range(SIDE)]
    transition = []
    for x in range(SIDE):
        for y in range(SIDE):
            row = [0.0] * STATES
            near = [
                (x + dx, y + dy)
                for dx in (-1, 0, 1)
                for dy in (-1, 0, 1)
                if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE
            ]
            for other in near:
                row[other[0] * SIDE + other[1]] = 1 / len(near)
            transition.append(row)
    return {"scenario": TOML, "states": "label,x,y\n" + "\n".join(rows), "transition": transition}


def direct(folder: str) -> float:
    """Releases a second of the engine over a store, one row at a time, in one thread."""
    import numpy as np

    from dphmm.books import Store
    from dphmm.release import engine
    from dphmm.release.engine import Ask
    from dphmm.scenario.packing import pack, unpack

    body = scenario_body()
    _, text = pack(body["scenario"], body["states"], body["transition"])
    terms, store = unpack(text).terms, Store.open(f"{folder}/direct.db")
    people = [f"c{number}" for number in range(CONNECTIONS)]

    def release(person: str, time: int, state: int) -> None:
        ask = Ask(terms, [person], np.array([time]), np.array([state]))
        engine.release(store, [ask])[0].release(0)

    for person in people:
        release(person, 1, 0)
    begun, count, moment = time.monotonic(), 0, 2
    while time.monotonic() < begun + SECONDS:
        for person in people:
            release(person, moment, (moment * 7) % STATES)
            count += 1
        moment += 1
    rate = count / (time.monotonic() - begun)
    store.close()
    return rate


@contextmanager
def running(url: str, tick: float, bare: bool = False) -> Iterator[tuple[int, int]]:
    """A server process: its port and process id."""
    port = free_port()
    command = ["-m", "benchmarks.bare", url, str(port)]
    server = subprocess.Popen(
        [sys.executable, *(command if bare else ["-c", SERVER, url, str(port), str(tick)])],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port, server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def ask(port: int, key: str, method: str, path: str, body: Any) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {key}", "content-type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def prepare(port: int, key: str) -> str:
    """The scenario's id, with a stream open for every connection."""
    scenario = ask(port, key, "POST", "/v1/scenarios", scenario_body())["id"]
    for number in range(CONNECTIONS):
        ask(port, key, "PUT", f"/v1/scenarios/{scenario}/people/c{number}", {})
    return str(scenario)


def run_load(
    port: int, key: str, scenario: str, seconds: float, first: int, connections: int = CONNECTIONS
) -> dict[str, Any]:
    arguments = [port, key, scenario, STATES, connections, seconds, first]
    command = [sys.executable, "-m", "benchmarks.load", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=seconds + 120
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def rows_a_second(port: int, key: str, scenario: str, people: int, times: range) -> float:
    """Releases a second by one request."""
    rows = [
        {"person": f"c{number}", "time": time, "state": (number + time) % STATES}
        for time in times
        for number in range(people)
    ]
    begun = time.monotonic()
    done = ask(port, key, "POST", f"/v1/scenarios/{scenario}/releases:batch", {"rows": rows})
    assert all(row["status"] == 200 and not row["repeated"] for row in done["rows"])
    return len(rows) / (time.monotonic() - begun)


def resident(process: int) -> float:
    """Resident memory in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def watch(process: int, held: list[float], over: threading.Event) -> None:
    while not over.wait(0.5):
        held.append(resident(process))


def run() -> list[Figure]:
    from dphmm.books import SCOPES, Store, create_key, find_problems

    figures = []
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        plain = direct(folder)
        figures.append(Figure("store: releases, one thread, 400 states", plain, "1/s"))
        url = f"{folder}/service.db"
        store = Store.open(url)
        key = create_key(store, "bench", SCOPES)
        store.close()
        with running(url, 0) as (port, process):
            scenario = prepare(port, key)
            warm = run_load(port, key, scenario, 1, 1)
            result = run_load(port, key, scenario, SECONDS, warm["next"])
            errors = warm["errors"] + result["errors"]
            held: list[float] = []
            over = threading.Event()
            watcher = threading.Thread(target=watch, args=(process, held, over))
            watcher.start()
            soak = run_load(port, key, scenario, SOAK, result["next"])
            over.set()
            watcher.join()
            errors += soak["errors"]
        with running(url, TICK) as (port, _):
            ticked = run_load(port, key, scenario, SECONDS, soak["next"])
            errors += ticked["errors"]
        with running(f"{folder}/bare.db", 0, bare=True) as (port, _):
            run_load(port, key, scenario, 1, 1, FEWER)
            bare = run_load(port, key, scenario, SECONDS, 1, FEWER)
        with running(url, 0) as (port, _):
            warm = run_load(port, key, scenario, 1, ticked["next"], FEWER)
            fewer = run_load(port, key, scenario, SECONDS, warm["next"], FEWER)
            errors += warm["errors"] + fewer["errors"]
            first = fewer["next"]
            batch = max(
                rows_a_second(port, key, scenario, CONNECTIONS, range(begin, begin + 50))
                for begin in (first, first + 50, first + 100)
            )
        store = Store.open(url)
        sound = len(find_problems(store))
        store.close()
    third = len(held) // 3
    early, late = max(held[:third]), max(held[-third:])
    return [
        *figures,
        Figure(
            "service: releases, 200 connections, tick off",
            result["rate"],
            "1/s",
            against="store",
            ratio=result["rate"] / plain,
            target="ratio >= 0.5",
        ),
        Figure("service: p50, tick off", 1000 * result["p50"], "ms"),
        Figure("service: p99, tick off", 1000 * result["p99"], "ms"),
        Figure("service: releases, 200 connections, tick 50 ms", ticked["rate"], "1/s"),
        Figure("service: p50, tick 50 ms", 1000 * ticked["p50"], "ms"),
        Figure("service: p99, tick 50 ms", 1000 * ticked["p99"], "ms"),
        Figure(
            "service: releases, 50 connections, tick off",
            fewer["rate"],
            "1/s",
            against="a bare insert with FastAPI",
            ratio=fewer["rate"] / bare["rate"],
            target="ratio >= 0.7",
        ),
        Figure("service: rows of a batch request", batch, "1/s", target="value >= 10000"),
        Figure(
            "service: errors, 200 connections at a server that has just started",
            ticked["errors"],
            "",
            target="value <= 0",
        ),
        Figure("service: errors", errors, "", target="value <= 0"),
        Figure("service: problems that verify finds", sound, "", target="value <= 0"),
        Figure("service: releases during the soak", soak["answers"], ""),
        Figure(
            "service: memory, last third of the soak",
            late,
            "MB",
            against="the first third",
            ratio=late / early,
            target="ratio <= 1.1",
        ),
    ]
