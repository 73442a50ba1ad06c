"""Real server processes on the loopback: how they stop, share a store and hold their memory."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from dphmm import Client
from dphmm.books import SCOPES, Store, create_key, find_problems
from dphmm.service import server as service_server
from dphmm.studio import server as studio_server
from tests.crash import paper_scenario
from tests.crash.postgres import running_server

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60
STEPS = 5
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
DPHMM = [sys.executable, "-c", "from dphmm.cli import main; main()"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@contextmanager
def serving(url, *options, port=None, **environment):
    """A `dphmm serve` process and the port that it listens on, a free one unless it is given."""
    port = port or free_port()
    process = subprocess.Popen(
        [*DPHMM, "serve", url, "--port", str(port), "--rate", "0", *options],
        env=ENVIRONMENT | environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    drained = threading.Thread(target=lambda: lines.extend(process.stderr))
    lines = []
    drained.start()
    try:
        end = time.monotonic() + PATIENCE
        while ask(port, "", "GET", "/health")[0] != 200:
            assert process.poll() is None, lines
            assert time.monotonic() < end
            time.sleep(0.05)
        yield process, port, lines
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        drained.join()
        process.stderr.close()


def ask(port, key, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except OSError:
        return 0, {}
    finally:
        connection.close()


def key_of(url):
    store = Store.open(url)
    key = create_key(store, "red", SCOPES)
    store.close()
    return key


def opened(port, key, people):
    status, scenario = ask(port, key, "POST", "/v1/scenarios", paper_scenario.body())
    assert status in (200, 201)
    path = f"/v1/scenarios/{scenario['id']}/people/"
    for person in people:
        assert ask(port, key, "PUT", path + person, {})[0] == 200
    return path


def verified(url):
    done = subprocess.run(
        [*DPHMM, "store", "verify", url],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout


def test_a_server_that_is_told_to_stop_finishes_what_it_accepted(tmp_path):
    url = str(tmp_path / "store.db")
    key = key_of(url)
    with serving(url, "--tick", "1500") as (process, port, lines):
        path = opened(port, key, ["anna"]) + "anna/releases"
        answers = []

        def release():
            answers.append(ask(port, key, "POST", path, {"time": 1, "state": 4}))

        client = threading.Thread(target=release)
        client.start()
        store = Store.open(url)
        end = time.monotonic() + PATIENCE
        while store.ledger("anna", client="red").spent == 0 and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)  # stored, and waiting for its tick
        client.join(PATIENCE)
        assert process.wait(PATIENCE) == 0
        assert answers[0][0] == 200
        assert answers[0][1]["lattice"] is not None
        assert find_problems(store) == []
        store.close()
    assert all(json.loads(line) for line in lines if line.startswith("{"))
    assert key not in "".join(lines)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_has_closed_everything_is_gone_at_once(tmp_path, workers):
    """What Python tidies up at the end takes long on a busy machine, beyond every grace."""
    marker = tmp_path / "tidied up"
    lines = f"import atexit\natexit.register(lambda: open({str(marker)!r}, 'w'))\n"
    (tmp_path / "sitecustomize.py").write_text(lines)
    url = str(tmp_path / "streams.db")
    Store.open(url).close()
    with serving(url, "--workers", workers, PYTHONPATH=str(tmp_path)) as (process, _, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert not marker.exists()


@pytest.mark.postgres
def test_two_servers_share_one_postgresql():
    people = [f"p{number}" for number in range(8)]
    with running_server() as postgres:
        url = postgres.new_database()
        key = key_of(url)
        with serving(url, "--tick", "0") as one, serving(url, "--tick", "0") as two:
            first, second = one[1], two[1]
            scenario = opened(first, key, people).split("/")[3]
            seen, guard = [], threading.Lock()

            def client(port, state):
                # Locked for long on a busy machine: it asks again.
                with Client(f"http://127.0.0.1:{port}", key=key, retries=100) as service:
                    for moment in range(1, STEPS + 1):
                        for person in people:
                            answer = service.release(scenario, person, moment, state)
                            with guard:
                                seen.append((person, moment, 200, answer.lattice))

            threads = [
                threading.Thread(target=client, args=(port, state))
                for port in (first, second)
                for state in (2, 4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        answered = [entry for entry in seen if entry[2] == 200]
        # A client that falls behind by a step finds every one of them answered already.
        assert len(answered) == len(seen) == 4 * STEPS * len(people)
        assert len({entry[:2] for entry in answered}) == STEPS * len(people)
        assert len({(*entry[:2], entry[3]) for entry in answered}) == STEPS * len(people)
        assert verified(url) == (
            0,
            f"sound: {len(people)} people, {STEPS * len(people)} answers\n",
        )


@pytest.mark.parametrize("server", [service_server, studio_server])
def test_the_body_of_an_answer_does_not_wait_for_its_heading(server):
    # On a connection that stays open it did, 40 ms for every answer.
    def asked(reader, writer):
        kept.append(writer.get_extra_info("socket"))
        at_once.append(kept[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async def look():
        listener = server._listen("127.0.0.1", 0)
        async with await asyncio.start_server(asked, sock=listener):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            await reader.read()
            writer.close()

    kept, at_once = [], []
    asyncio.run(look())
    assert at_once == [1]


def guesses(port):
    """Whether the last of many guessed keys, each from another address, was told to wait."""
    for number in range(12):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        headers = {"authorization": "Bearer guess", "x-forwarded-for": f"10.0.0.{number}"}
        connection.request("GET", "/v1/people", headers=headers)
        response = connection.getresponse()
        assert response.status == 401
        response.read()
        connection.close()
    return response.headers["retry-after"] is not None


def test_an_address_is_believed_only_from_a_proxy_that_was_named(tmp_path):
    with serving(str(tmp_path / "one.db"), "--set", "wrong_keys=1") as (_, port, _):
        assert guesses(port)
    trusted = ("--trusted-proxy", "127.0.0.1")
    with serving(str(tmp_path / "two.db"), "--set", "wrong_keys=1", *trusted) as (_, port, _):
        assert not guesses(port)


def test_an_address_with_a_password_is_in_no_argument(tmp_path):
    """The unit file gives the address by the environment."""
    unit = (ROOT / "deploy/dphmm.service").read_text()
    assert "serve env:STORE" in unit
    assert "${STORE}" not in unit
    assert '"serve", "env:STORE"' in (ROOT / "deploy/Containerfile").read_text()
    done = subprocess.run(
        [*DPHMM, "serve", "postgresql://ann:hunter2@127.0.0.1:1/store"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert "password" in done.stderr
    assert "hunter2" not in done.stderr


def resident(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def soaked(url, releases, seconds=0):
    """Resident megabytes, in time, while four clients release."""
    key = key_of(url)
    held = []
    with serving(url, "--tick", "0") as (process, port, _):
        path = opened(port, key, [f"p{number}" for number in range(4)])
        end = time.monotonic() + seconds

        def client(number):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            moment = 0
            while moment < releases or time.monotonic() < end:
                moment += 1
                body = json.dumps({"time": moment, "state": moment % 6})
                connection.request("POST", f"{path}p{number}/releases", body, headers)
                assert connection.getresponse().read().startswith(b'{"time"')
                if moment % 10 == 0:
                    held.append(resident(process))
            connection.close()

        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    store = Store.open(url)
    assert find_problems(store) == []
    store.close()
    return held


GROWTH = 1.05


def is_flat(held):
    third = max(1, len(held) // 3)
    return max(held[-third:]) <= GROWTH * max(held[third : 2 * third])


def test_memory_stays_flat(tmp_path):
    assert is_flat(soaked(str(tmp_path / "store.db"), releases=150))
    assert not is_flat([100.0 + 2 * step for step in range(30)])  # what a leak looks like


@pytest.mark.slow
def test_memory_stays_flat_for_ten_minutes(tmp_path):
    assert is_flat(soaked(str(tmp_path / "store.db"), releases=150, seconds=600))


@pytest.mark.parametrize("page", ["README.md", "docs/service.md"])
def test_the_lines_of_the_documentation_work_when_pasted(tmp_path, page):
    """Every curl line of a page, in order, against the server that it starts."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    text = (ROOT / page).read_text()
    start, lines = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[:2]
    command = shlex.split(start)
    assert command[:2] == ["dphmm", "serve"]
    command[command.index("key.txt")] = str(tmp_path / "key.txt")
    with serving(str(tmp_path / command[2]), *command[3:]) as (_, port, _):
        done = subprocess.run(
            ["bash", "-c", lines.replace(":8000", f":{port}")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )
        source = re.search(r"```python\n(from dphmm import Client.*?)```", text, re.DOTALL)[1]
        python = subprocess.run(
            [sys.executable, "-c", source],
            cwd=tmp_path,
            env={**ENVIRONMENT, "DPHMM_URL": f"http://127.0.0.1:{port}"},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )
    assert "[200, 200, 200]\n3 releases, epsilon 1 at an instant" in python.stdout, python
    assert '"repeated":false' in done.stdout, done
    assert '"text":"1 release, epsilon 1 in all.' in done.stdout
    assert (tmp_path / "key.txt").stat().st_mode & 0o077 == 0
