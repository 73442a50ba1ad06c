"""A standalone Spark cluster on the loopback interface: a master and workers, with a secret."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

PATIENCE = 300
"""Seconds to wait for something on a busy machine."""


@dataclass
class Cluster:
    """The processes of a cluster; each leads a group, which holds its executors."""

    folder: Path
    url: str
    env: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """The master, then the workers."""

    def start(self, name: str, *arguments: str) -> None:
        """Start a process of Spark and keep what it says."""
        spark = Path(self.env["SPARK_HOME"])
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [spark / "bin" / "spark-class", *arguments],
                env=self.env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)

    def says(self, name: str, text: str) -> bool:
        return text in (self.folder / f"{name}.log").read_text(errors="replace")


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """A cluster whose processes talk in secret, ended with everything that it started."""
    import pyspark

    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "conf" / "spark-defaults.conf"
    settings.parent.mkdir()
    settings.touch(mode=0o600)
    settings.write_text(
        f"spark.authenticate true\nspark.authenticate.secret {secrets.token_hex(16)}\n"
        f"spark.network.crypto.enabled true\nspark.executor.memory {memory}\n"
        f"spark.driver.memory 1g\nspark.driver.host 127.0.0.1\n"
    )
    env = {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(settings.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "512m",
        "PYSPARK_PYTHON": sys.executable,
    }
    port = _free_port()
    made = Cluster(folder, f"spark://127.0.0.1:{port}", env)
    try:
        made.start(
            "master", "org.apache.spark.deploy.master.Master",
            "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0",
        )  # fmt: skip
        wait_until(lambda: made.says("master", "I have been elected leader"), "the master")
        for number in range(workers):
            made.start(
                f"worker{number}", "org.apache.spark.deploy.worker.Worker",
                "--host", "127.0.0.1", "--cores", "1", "--memory", memory, "--webui-port", "0",
                "--work-dir", str(folder / f"work{number}"), made.url,
            )  # fmt: skip
        for number in range(workers):
            name = f"worker{number}"
            wait_until(lambda name=name: made.says(name, "Successfully registered"), name)
        yield made
    finally:
        for process in made.processes:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started, as a power failure would."""
    for pid in [*descendants(process.pid), process.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def wait_until(condition: Callable[[], bool], what: str) -> None:
    start = monotonic()
    while not condition():
        if monotonic() - start > PATIENCE:
            raise TimeoutError(f"{what} took more than {PATIENCE} seconds")
        sleep(0.05)


def python(made: Cluster, *arguments: object) -> subprocess.Popen[bytes]:
    """A driver: Python with some arguments, in the surroundings of a cluster."""
    command: Sequence[str] = [sys.executable, *map(str, arguments)]
    with (made.folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            command, env=made.env, stdout=log, stderr=log, start_new_session=True
        )


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
