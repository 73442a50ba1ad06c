"""A PostgreSQL server of our own: a temporary folder, a unix socket, no network."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import find_postgres_programs

PORT = 54330


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

    def _signal(self, number: int) -> None:
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for process in (first, *map(int, children)):
            os.kill(process, number)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
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
