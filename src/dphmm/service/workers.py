"""A place for work that may be long: processes of their own, which can be ended at any moment.

What a request may cost is not known before it is done: a scenario's first hull, a way of many
steps, a smoothed track. So none of that runs where other clients wait. A worker is a process
with limits on time and memory and with its own connection to the store; it runs the same
handlers. Whatever it has committed when it is ended stays, and the same request finds it again.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dphmm.books import Store
from dphmm.errors import DphmmError, TooLargeError
from dphmm.noise.randomness import Randomness
from dphmm.service.access import RefusedError
from dphmm.service.logs import places_of
from dphmm.service.settings import ServiceSettings

__all__ = ["WorkerError", "Workers"]

IDLE = 60.0
"""Seconds after which a worker without work ends."""

NICENESS = 5
"""Workers let the service go first, where processors are few."""

PAUSES = (0.05, 0.2, 0.5)
"""Seconds before a worker is begun once more whose beginning failed."""

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dphmm.service.handlers", "dphmm.service.warm"])


@dataclass(eq=False)
class _Job:
    client: str
    name: str
    arguments: tuple[Any, ...]
    result: Future[Any] = field(default_factory=Future)


class Workers:
    """Some processes that take turns between clients, one request of a client at a time."""

    def __init__(
        self, store: Store, settings: ServiceSettings, randomness: Randomness | None = None
    ) -> None:
        self._begin_with = (store.open_again, settings, randomness)
        self._settings = settings
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[_Job]] = {}
        """In the order in which clients have their turn."""
        self._served: set[str] = set()
        self._processes: dict[int, Any] = {}
        self._threads = 0
        self._idle = 0
        self._closed = False

    async def run(self, client: str, name: str, *arguments: Any) -> Any:
        """What a handler gives, in a worker; refused if the client has too much waiting."""
        return await asyncio.wrap_future(self.submit(client, name, *arguments))

    def submit(self, client: str, name: str, *arguments: Any) -> Future[Any]:
        """The same as a future of threads."""
        job = _Job(client, name, arguments)
        with self._changed:
            if self._closed:
                raise _stopping()
            queue = self._waiting.setdefault(client, deque())
            if len(queue) >= self._settings.long_waiting:
                raise RefusedError(429, "long requests must come one by one; wait for some", 1)
            queue.append(job)
            self._changed.notify()
            if len(self._waiting) > self._idle and self._threads < self._settings.long_workers:
                self._threads += 1
                threading.Thread(target=self._serve, daemon=True).start()
        return job.result

    def close(self) -> None:
        """End everything at once; whoever waits is told to ask again."""
        with self._changed:
            self._closed = True
            jobs = [job for queue in self._waiting.values() for job in queue]
            self._waiting.clear()
            for process in self._processes.values():
                process.kill()
            self._changed.notify_all()
        for job in jobs:
            _settle(job, _stopping())

    def _serve(self) -> None:
        """One worker's life, seen from here."""
        process: Any = None
        ours: Connection | None = None
        while (job := self._next()) is not None:
            try:
                if ours is None or ours.closed or not process.is_alive():
                    process, ours = self._start()
                _settle(job, self._ask(process, ours, job))
            except Exception as fault:  # no process could be started, or no message read
                _settle(job, fault)
            with self._changed:
                self._served.discard(job.client)
                self._changed.notify()
        if ours is not None:
            ours.close()
            self._forget(process)

    def _next(self) -> _Job | None:
        """The job of the client whose turn it is; None when there is none for long."""
        with self._changed:
            while not self._closed:
                for client, queue in self._waiting.items():
                    if client in self._served:
                        continue
                    job = queue.popleft()
                    del self._waiting[client]
                    if queue:  # behind the others
                        self._waiting[client] = queue
                    if job.result.set_running_or_notify_cancel():
                        self._served.add(client)
                        return job
                    break
                else:
                    self._idle += 1
                    stayed = self._changed.wait(IDLE)
                    self._idle -= 1
                    if not stayed:
                        break
            self._threads -= 1
            return None

    def _start(self) -> tuple[Any, Connection]:
        """A process and the connection to it."""
        for pause in PAUSES:
            try:
                return self._fork()
            except (EOFError, OSError):  # the process that they come from has just died
                time.sleep(pause)
        return self._fork()

    def _fork(self) -> tuple[Any, Connection]:
        ours, theirs = PROCESSES.Pipe()
        process = PROCESSES.Process(target=_work, args=(theirs, *self._begin_with), daemon=True)
        process.start()
        theirs.close()
        with self._changed:
            self._processes[id(process)] = process
            if self._closed:
                process.kill()
        return process, ours

    def _ask(self, process: Any, connection: Connection, job: _Job) -> Any:
        """The result of a job, or what was wrong with it as an exception."""
        result: Any = _too_long(self._settings)
        try:
            connection.send((job.name, job.arguments))
            # It ends itself when its time is over; this is for one that cannot even do that.
            if connection.poll(self._settings.long_seconds + 5):
                result = connection.recv()
        except (EOFError, OSError):
            pass
        if not isinstance(result, TooLargeError):
            return result
        # It is gone, or is about to go with its memory full: the next job gets a fresh one.
        connection.close()
        self._forget(process)
        return _stopping() if self._closed else result

    def _forget(self, process: Any) -> None:
        process.kill()
        process.join()
        with self._changed:
            self._processes.pop(id(process), None)


def _settle(job: _Job, result: Any) -> None:
    with suppress(InvalidStateError):  # its client is gone
        if isinstance(result, BaseException):
            job.result.set_exception(result)
        else:
            job.result.set_result(result)


def _stopping() -> RefusedError:
    return RefusedError(503, "the service is shutting down; ask again", 5)


def _too_long(settings: ServiceSettings) -> TooLargeError:
    return TooLargeError(
        f"the request must be done within {settings.long_seconds:g} seconds and "
        f"{settings.long_memory >> 20} MB here; ask for less at once"
    )


def _work(
    connection: Connection,
    open_store: Callable[[], Store],
    settings: ServiceSettings,
    randomness: Randomness | None,
) -> None:
    """What runs in the process: one handler after the other, each with its limits."""
    from dphmm.service.handlers import Handlers

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to everybody
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.nice(NICENESS)
    handlers: Handlers | None = None
    # All that a fresh process has mapped is not its work's.
    most = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (most + settings.long_memory,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            name, arguments = connection.recv()
        except (EOFError, MemoryError):
            return
        signal.setitimer(signal.ITIMER_REAL, settings.long_seconds)
        full = False
        try:
            handlers = handlers or Handlers(open_store(), settings, randomness, long=True)
            result = getattr(handlers, name)(*arguments)
        except DphmmError as fault:
            result = fault
        except MemoryError:
            result, full = _too_long(settings), True
        except Exception as fault:
            result = WorkerError(type(fault).__name__, places_of(fault.__traceback__))
        signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send(result)
        if full:  # the next one begins with an empty memory
            return


class WorkerError(Exception):
    """A fault in a worker: its kind and its places, never its words, which might quote a state.

    Args:
        kind: The class of what was raised.
        at: File and line of each frame.
    """

    def __init__(self, kind: str, at: list[str]) -> None:
        super().__init__(kind, at)
        self.kind, self.at = kind, at
