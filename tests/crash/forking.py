"""A process that forks servers: `main`, with the arguments URL [late] [anchor=PLACE].

Everything is imported once, and not again in workers, which import the main module of a process.
Each line on standard input forks a server on the same listening socket, and its process id comes
back on standard output. The socket outlives the servers, so clients that connect while none is
there wait a moment, and several servers share it. SIGUSR1 makes the SQLite store of a server
read-only, or lets it be written again.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import closing
from importlib import import_module
from multiprocessing import forkserver
from tempfile import TemporaryDirectory

from dphmm.books import MemoryBook, Store
from dphmm.books.database import Database, Sqlite
from dphmm.service import ServiceSettings, warm  # noqa: F401  loaded before the forks
from dphmm.service.app import create_app
from dphmm.service.connections import limited_protocol
from dphmm.service.server import serve
from dphmm.service.workers import PROCESSES
from tests.crash import world

SETTINGS = ServiceSettings(tick=0, rate=0, threads=4)
LATE = 5


class LateSqlite(Sqlite):
    """Broken on purpose: answers leave first, only every fifth of them is committed."""

    begun = 0

    def _is_idle(self, connection):
        return True  # what was said and not committed is meant to stay open

    def _run(self, begin):
        connection = self._connection()
        if not connection.in_transaction:
            if begin != "BEGIN IMMEDIATE":  # a read, maybe from a thread that never writes
                yield from super()._run(begin)
                return
            connection.execute(begin)
        yield from super()._run.__func__(_NoBegin(self, connection), begin)
        self.begun += begin == "BEGIN IMMEDIATE"
        if self.begun % LATE == 0:
            connection.execute("COMMIT")


class _NoBegin:
    """The database as `_run` sees it when it may neither begin nor commit."""

    def __init__(self, database, connection):
        self._database, self._real = database, connection
        self.in_transaction = False

    def _connection(self):
        return self

    def execute(self, sql, values=()):
        return (
            None
            if sql in ("BEGIN", "BEGIN IMMEDIATE", "COMMIT")
            else self._real.execute(sql, values)
        )

    def executemany(self, sql, rows):
        return self._real.executemany(sql, rows)

    def _leave(self, connection, fault):
        pass

    def _check_place(self):
        pass

    def _explained(self, error):
        return self._database._explained(error)


def obey_signal(database: Database) -> None:
    """Let a signal say whether the database can be written."""
    connection, is_closed = database._connection, [False]

    def find():
        found = connection()
        found.execute(f"PRAGMA query_only = {int(is_closed[0])}")
        return found

    database._connection = find
    signal.signal(signal.SIGUSR1, lambda *_: is_closed.__setitem__(0, not is_closed[0]))


def run_server(url: str, late: bool, anchor: str | None, descriptor: int) -> None:
    store = Store.open(url, anchor=anchor)
    settings = SETTINGS
    if late:
        path = store.database.name
        store.close()
        store.database = LateSqlite(path)
        settings = ServiceSettings(tick=0, rate=0, threads=1)
    elif isinstance(store.database, Sqlite):
        obey_signal(store.database)
    serve(store, settings, descriptor=descriptor)


def share_workers() -> None:
    """Start the process that workers come from here, once, and not in every server.

    It loads the compiled code, which takes seconds; a server that was forked finds it by the
    same address. Who asked for a worker and was killed is gone for the worker all the same.
    """
    preload = forkserver._forkserver._preload_modules
    PROCESSES.set_forkserver_preload([*preload, "tests.crash.patience"])
    PROCESSES.Process(target=os.getpid).start()
    forkserver._forkserver.ensure_running = lambda: None


def load_everything() -> None:
    """Import here, once, what a server imports when it starts."""
    with TemporaryDirectory() as folder, closing(Store.open(f"{folder}/none.db")) as store:
        create_app(store, SETTINGS).close()
    for name in ("uvicorn", "uvicorn.loops.auto", "uvicorn.lifespan.on"):
        import_module(name)
    limited_protocol(SETTINGS)


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    url, late = sys.argv[1], "late" in sys.argv[2:]
    named = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    world.release(MemoryBook(), "warm", 1, 4)  # compiled code is loaded before the first fork
    share_workers()
    load_everything()
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    say(listening.getsockname()[1])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends is gone at once
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            run_server(url, late, named.get("anchor"), listening.fileno())
            os._exit(0)
        say(child)
