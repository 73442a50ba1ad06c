"""Several processes on one port: one answer a moment, one count, one limit, whoever is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dphmm import Client, ServiceError
from dphmm.books import OPERATE, SCOPES, Store, create_key, find_problems
from dphmm.service.limits import Buckets
from dphmm.service.quotas import SHARE, Quota
from dphmm.service.sharing import Shared, SharedBuckets
from tests.crash.postgres import running_server
from tests.test_service_isolation import LONG_GAP
from tests.test_service_processes import ENVIRONMENT, PATIENCE, ask, opened, serving

PEOPLE = [f"p{number}" for number in range(6)]


def children(process):
    """The processes that serve, by the one that began them."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in found]


def keys_of(url, anchor=None):
    store = Store.open(url, anchor=anchor)
    keys = create_key(store, "red", SCOPES), create_key(store, "", [OPERATE])
    store.close()
    return keys


def counted(text, name):
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M))


def hammer(url, options, kills, steps, anchor=None):
    """Releases by several clients while processes are killed; everything must add up."""
    key, operator = keys_of(url, anchor)
    seen, guard = {}, threading.Lock()
    with serving(url, "--tick", "0", "--workers", "2", *options) as (process, port, lines):
        scenario = opened(port, key, PEOPLE).split("/")[3]
        address = f"http://127.0.0.1:{port}"
        with Client(address, key=key) as service:
            service.begin(scenario, "poor", budget=2)

        def client(number):
            for step in range(1, steps + 1):
                for person in PEOPLE:
                    # Each on a connection of its own, so that all processes have work.
                    with Client(address, key=key, retries=100) as service:
                        answer = service.release(scenario, person, step, number)
                    with guard:
                        seen.setdefault((person, step), set()).add(answer.lattice)

        threads = [threading.Thread(target=client, args=(number,)) for number in (1, 3)]
        for thread in threads:
            thread.start()
        killed = set()
        for _ in range(kills):
            time.sleep(0.3)
            here = [pid for pid in children(process) if pid not in killed]
            if here:
                killed.add(here[0])
                os.kill(here[0], signal.SIGKILL)
        for thread in threads:
            thread.join(4 * PATIENCE)
        with Client(address, key=operator, retries=100) as service:
            text = service.metrics()
            while counted(text, "dphmm_workers") != 2:
                time.sleep(0.05)
                text = service.metrics()
        with Client(address, key=key, retries=100) as service:
            spent = service.ledger(PEOPLE[0]).spent
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert len(seen) == len(PEOPLE) * steps
    assert all(len(answers) == 1 for answers in seen.values()), "one answer a moment"
    assert spent == steps
    assert sum("a worker ended" in line for line in lines) == len(killed)
    store = Store.open(url, anchor=anchor)
    assert find_problems(store) == []
    store.close()
    return text, killed


def test_processes_may_be_killed_and_nothing_is_lost(tmp_path):
    """With an anchor, so that a process that is killed between commit and anchor counts too."""
    url, anchor = str(tmp_path / "store.db"), str(tmp_path / "anchor")
    text, killed = hammer(url, ("--anchor", anchor), kills=2, steps=3, anchor=anchor)
    assert killed
    # What was counted by those that are gone is still counted, but for what they died over.
    answers = counted(text, "dphmm_answers_total")
    assert len(PEOPLE) * 3 * 2 - len(killed) * 2 <= answers
    assert counted(text, "dphmm_ready") == 1


@pytest.mark.slow
@pytest.mark.postgres
def test_processes_on_postgresql_may_be_killed_and_nothing_is_lost():
    with running_server() as postgres:
        hammer(postgres.new_database(), (), kills=10, steps=20)


@pytest.mark.slow
def test_many_kills(tmp_path):
    hammer(str(tmp_path / "store.db"), (), kills=40, steps=40)


def test_a_rate_is_for_all_processes_together_and_they_end_with_the_first(tmp_path):
    url = str(tmp_path / "store.db")
    key, operator = keys_of(url)
    options = ("--workers", "3", "--rate", "2", "--set", "connections=30")
    with serving(url, "--tick", "0", *options) as (process, port, _):
        statuses = []
        for _ in range(12):
            with Client(f"http://127.0.0.1:{port}", key=key, retries=0) as service:
                try:
                    statuses.append(bool(service.scenarios()) or 200)
                except ServiceError as fault:
                    statuses.append(fault.status)
        # Two at once, and some more while it took so long; three processes apart would give six.
        assert set(statuses) <= {200, 429}
        assert 429 in statuses
        before = children(process)
        assert len(before) == 3
        with Client(f"http://127.0.0.1:{port}", key=operator, retries=100) as service:
            assert counted(service.metrics(), "dphmm_workers") == 3
        process.kill()
        process.wait()
        end = time.monotonic() + PATIENCE
        while any(Path(f"/proc/{pid}").exists() for pid in before):
            assert time.monotonic() < end, "processes end when the one that began them is gone"
            time.sleep(0.05)


# Parts


def test_shared_buckets_are_the_same_as_others():
    shared = Shared(2)
    one, other = (SharedBuckets(3, shared, "client") for _ in range(2))
    alone = Buckets(3)
    for _ in range(5):
        assert one.take("ann") == alone.take("ann")
    assert not other.take("ann")
    assert not other.left("ann")
    assert other.left("bob")
    assert SharedBuckets(3, shared, "address").take("ann"), "another kind of bucket"
    assert all(SharedBuckets(0, shared, "client").take("ann") for _ in range(9))
    time.sleep(0.4)
    assert other.take("ann"), "tokens come back"


def test_a_bucket_is_shared_by_forked_processes():
    shared = Shared(2)
    buckets = SharedBuckets(1000, shared, "client")
    pids = []
    for _ in range(4):
        pid = os.fork()
        if not pid:
            taken = sum(buckets.take("ann") for _ in range(150))
            os._exit(0 if taken == 150 else 1)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 4
    left = sum(buckets.take("ann") for _ in range(1000))
    assert left < 1000, "what others took is gone"


def test_many_names_have_their_places():
    buckets = SharedBuckets(1, Shared(1), "address")
    assert all(buckets.take(f"10.0.{n >> 8}.{n & 255}") for n in range(20_000))


def test_pids_are_written_down():
    shared = Shared(3)
    assert shared.pids() == []
    shared.set_pid(1, 4242)
    assert shared.pids() == [4242]
    shared.set_pid(1, 0)
    assert shared.pids() == []


def test_processes_share_the_room_for_people(tmp_path):
    """Several that count apart stay within the limit, but for one each."""
    store = Store.open(str(tmp_path / "store.db"))
    quotas = [Quota(store, 20) for _ in range(3)]
    made = 0
    while made < 100:
        try:
            quotas[made % 3].take("red")
        except Exception:
            break
        store.begin(f"p{made}", client="red")
        made += 1
    store.close()
    assert 20 <= made <= 22
    assert SHARE >= 3


def fork_servers(process):
    """The processes that workers for long work come from, of one that serves."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    pids = [int(pid) for task in tasks for pid in task.read_text().split()]
    return [
        pid
        for pid in pids
        if b"multiprocessing.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def test_a_service_goes_on_when_what_its_workers_come_from_is_killed(tmp_path):
    url = str(tmp_path / "store.db")
    key, _ = keys_of(url)
    with serving(url, "--tick", "0") as (process, port, _):
        path = opened(port, key, ["anna"]) + "anna/releases"
        killed = set()
        for slot in range(1, 4 * LONG_GAP, LONG_GAP):
            assert ask(port, key, "POST", path, {"time": slot, "state": 4})[0] == 200
            if slot > 1:  # it was a long way, which is gone elsewhere
                (pid,) = fork_servers(process)
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
                end = time.monotonic() + PATIENCE
                while " Z " not in Path(f"/proc/{pid}/stat").read_text():  # all its ends are closed
                    assert time.monotonic() < end
                    time.sleep(0.01)
        assert len(killed) == 3
        assert ask(port, key, "GET", "/v1/people/anna/ledger")[1]["spent"] == "4"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


HOPELESS = """
from dphmm.errors import StoreError
from dphmm.service import processes
from dphmm.service.logs import log_lines
from dphmm.service.sharing import Shared

def work():
    raise StoreError("the store is gone")

log_lines()
processes.LONGEST_PAUSE = 0.01
raise SystemExit(processes.supervise(Shared(2), work, 2, 5.0))
"""


def test_processes_that_cannot_begin_are_given_up():
    done = subprocess.run(
        [sys.executable, "-c", HOPELESS],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert done.stderr.count('"fault": "the store is gone"') >= 10
    assert "giving up" in done.stderr
