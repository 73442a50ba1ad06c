"""A PostgreSQL server of our own: a temporary folder, a unix socket, no network."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import find_postgres_programs

PORT = 54330
PATIENCE = 100
"""Tenths of a second for a server to start again."""


@dataclass
class Server:
    folder: Path
    programs: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_database(self) -> str:
        """The URL of an empty database."""
        import psycopg

        name = f"test{next(self.numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, name: str) -> str:
        return f"postgresql:///{name}?host={self.folder}&port={PORT}&user=test"

    @property
    def socket(self) -> str:
        """Where it listens."""
        return f"{self.folder}/.s.PGSQL.{PORT}"

    def start(self) -> None:
        options = (
            f"-p {PORT} -c listen_addresses= -c unix_socket_directories={self.folder} "
            "-c fsync=off -c max_connections=60"
        )
        data, log = self.folder / "data", self.folder / "log"
        self._run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "stop")

    def freeze(self) -> None:
        """Let no process of the server run; its connections stay."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the server as a fault of its machine would."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        self._signal(signal.SIGKILL)
        while Path(f"/proc/{first}").exists() and _is_running(first):
            time.sleep(0.01)

    @contextmanager
    def killed(self, _: int) -> Iterator[None]:
        """A strike: the server is killed, and started again at the end."""
        self.kill()
        yield
        self._start_again()

    @contextmanager
    def full(self, _: int) -> Iterator[None]:
        """A strike: nothing is written beyond the first page of a file, as on a full disk.

        PostgreSQL cannot write its log then and ends, or is ended here; it is started again.
        """
        for process in self._processes():
            with suppress(subprocess.CalledProcessError):  # a session that has just ended
                self._run_as_its_user("prlimit", "--pid", process, "--fsize=8192:unlimited")
        yield
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")
        self._start_again()

    @contextmanager
    def frozen(self, _: int) -> Iterator[None]:
        """A strike: nothing comes from the server, and nobody is told."""
        self.freeze()
        yield
        self.thaw()

    @contextmanager
    def read_only(self, _: int) -> Iterator[None]:
        """A strike: every session may only read."""
        self._set("default_transaction_read_only", "on")
        yield
        self._set("default_transaction_read_only", "off")

    def _start_again(self) -> None:
        for last in range(PATIENCE, -1, -1):
            with suppress(() if not last else subprocess.CalledProcessError):
                self.start()
                break
            time.sleep(0.1)  # a session of the one that was killed has not noticed yet

    def _set(self, name: str, value: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER SYSTEM SET {name} = {value}")
            connection.execute("SELECT pg_reload_conf()")

    def _processes(self) -> list[int]:
        """The first process, if it is there, and those of its sessions."""
        with suppress(OSError, ValueError, IndexError):
            first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
            children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
            return [first, *map(int, children)]
        return []

    def _signal(self, number: int) -> None:
        for process in self._processes():
            with suppress(ProcessLookupError):  # a session that has just ended
                os.kill(process, number)

    def _run(self, program: str, *arguments: object) -> None:
        self._run_as_its_user(self.programs / program, *arguments)

    def _run_as_its_user(self, *words: object) -> None:
        command = [*map(str, words)]
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            command = ["su", "postgres", "-s", "/bin/bash", "-c", shlex.join(command)]
        subprocess.run(
            command,
            check=True,
            timeout=60,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _is_running(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def running_server() -> Iterator[Server]:
    programs = find_postgres_programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="dphmm-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        folder.chmod(0o755)
        server = Server(folder, programs)
        server._run("initdb", "-D", folder / "data", "-A", "trust", "-U", "test", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
