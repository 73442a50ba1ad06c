"""What one client notices of another that does its worst: waits, errors, and the end by SIGTERM.

The attacker sends bad numbers, long gaps, giant scenarios, slow bodies, half-sent heads and a
hundred wrong keys a second, from a process of its own on the same machine, whose cores it shares.
The other asks for one release after the other, first in peace. With the service's own tick, and
with none; on SQLite and, where its programs are, on PostgreSQL.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import Figure
from dphmm.service import ServiceSettings
from tests.conftest import find_postgres_programs
from tests.crash.postgres import running_server
from tests.test_service_attack import END, attack_server, keys_of

SECONDS = float(os.environ.get("DPHMM_BENCH_SECONDS", "10"))
MOST = 3


def percentile(waits: list[float]) -> float:
    """Of a hundred the one before the last, in seconds."""
    return sorted(waits)[int(len(waits) * 0.99)]


def figures(name: str, url: str, tick: float) -> Iterator[Figure]:
    """What was noticed on one database."""
    noticed = attack_server(url, keys_of(url), SECONDS, calm=SECONDS, tick=tick)
    calm, attacked = percentile(noticed.calm), percentile(noticed.attacked)
    yield Figure(
        f"attack: p99 of another client, {name}",
        1000 * attacked,
        "ms",
        against="in peace",
        ratio=attacked / calm,
        target=f"ratio <= {MOST}" if tick else "",
    )
    errors = len(noticed.statuses - {200})
    yield Figure(f"attack: kinds of errors, {name}", errors, "", target="value <= 0")
    yield Figure(f"attack: end by SIGTERM, {name}", noticed.ended, "s", target=f"value <= {END}")


def run() -> list[Figure]:
    """SQLite and PostgreSQL, each with the tick of the service and without one."""
    found: list[Figure] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        places = {"SQLite": lambda: f"{folder}/{len(found)}.db"}
        if find_postgres_programs() is not None:
            places["PostgreSQL"] = stack.enter_context(running_server()).new_database
        for database, new in places.items():
            for tick in (ServiceSettings().tick, 0.0):
                name = f"{database}, tick {1000 * tick:g} ms"
                found += figures(name, new(), tick)
    return found
